//===- SearchSetup.cpp - From values of options to a search ---------------===//
#include "FTuner/Search/SearchSetup.h"
#include "FTuner/Search/SearchOptions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

/// Values other than the defaults of options that the search does not read.
static std::vector<std::string> unreadOptions(const OptionValues &given,
                                              const SearchSetup &setup) {
  // Fallback kernels are priced with the calibration of `latency`, whatever
  // model ranks the others.
  OptionDecls read =
      joined({setup.strategy->options(), setup.costModel->options(),
              findCostModel("latency")->options()});
  std::vector<std::string> lines;
  for (const DeclaredOption &option : searchOptionList().options()) {
    auto value = given.find(option.decl->name);
    if (value == given.end() || value->second == option.decl->defaultValue ||
        option.readers.front().kind == "search" ||
        llvm::is_contained(read, option.decl))
      continue;
    auto names = llvm::map_range(
        option.readers, [](const OptionReader &reader) { return reader.name; });
    lines.push_back(
        ("option '" + option.decl->name + "' = " + toText(value->second) +
         " has no effect: it is read by " + llvm::join(names, ", ") +
         ", but not by strategy '" + setup.strategy->name() +
         "' with cost model '" + setup.costModel->name() + "'")
            .str());
  }
  return lines;
}

llvm::Expected<SearchSetup> ftuner::makeSearchSetup(const OptionValues &given) {
  if (llvm::Error error = searchOptionList().check(given))
    return error;
  if (llvm::Error error = searchOptionList().checkTexts(given))
    return error;
  SearchChoice choice = searchChoiceOptions().read(given);
  SearchSetup setup;
  setup.strategy = findSearchStrategy(choice.strategy);
  setup.costModel = findCostModel(choice.costModel);
  llvm::Expected<ChosenPaths> paths = readPaths(choice);
  if (!paths)
    return paths.takeError();
  setup.paths = std::move(*paths);
  setup.options = readSearchOptions(given);
  if (llvm::Error error = setup.options.measuring.checkMeasurer())
    return error;
  llvm::Expected<std::optional<Calibration>> calibration =
      givenCalibration(given);
  if (!calibration)
    return calibration.takeError();
  setup.calibration = std::move(*calibration);
  setup.unread = unreadOptions(given, setup);
  llvm::append_range(setup.unread,
                     unreadMeasureOptions(given, setup.options.measuring));
  if (choice.paths != kAutoPaths && !choice.provenPaths.empty())
    setup.unread.push_back("option 'proven-paths' = " + choice.provenPaths +
                           " has no effect: 'paths' names paths");
  return setup;
}
