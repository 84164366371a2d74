//===- SearchSetup.cpp - From values of options to a search ---------------===//
#include "FTuner/Search/Setup/SearchSetup.h"
#include "FTuner/Search/Problem/MeasureOptions.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

/// Returns a line for each option whose value is not the default, and which the
/// search does not read.
static std::vector<std::string> unreadOptions(const OptionValues &given,
                                              const SearchSetup &setup) {
  // Fallback kernels are priced with the calibration of `latency`, whatever
  // model ranks the others.
  OptionDecls read =
      joined({setup.strategy->options(), setup.costModel->options(),
              findCostModel("latency")->options()});
  // A model that replaces the device reads its own options, too, except the
  // number of programs that it orders anew.
  auto [kind, measuring] = splitMeasurerName(setup.options.measuring.measurer);
  if (const CostModel *model = findCostModel(measuring);
      kind == "model" && model && setup.options.measuring.isOn())
    for (const OptionDecl *decl : model->options())
      if (decl->name != "learned-programs")
        read.push_back(decl);
  std::vector<std::string> lines;
  for (const DeclaredOption &option : searchOptionList().options()) {
    auto value = given.find(option.decl->name);
    if (value == given.end() || value->second == option.decl->defaultValue ||
        option.readers.front().kind == "search" ||
        llvm::is_contained(read, option.decl))
      continue;
    auto names = llvm::map_range(
        option.readers, [](const OptionReader &reader) { return reader.name; });
    lines.push_back(("option --" + option.decl->name + "=" +
                     toText(value->second) + " has no effect: it is read by " +
                     llvm::join(names, ", ") + ", but not by strategy '" +
                     setup.strategy->name() + "' with cost model '" +
                     setup.costModel->name() + "'")
                        .str());
  }
  return lines;
}

Calibration SearchSetup::calibrationFor(const DeviceSpec &device) const {
  if (calibration)
    return *calibration;
  bool hasCorrection = llvm::any_of(options.cost.loaded, [](const auto &data) {
    return data.second->corrects();
  });
  return hasCorrection ? defaultCalibration(device) : kernelCalibration(device);
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
  setup.options.closedFields = setup.paths.closedFields;
  if (setup.strategy->measures()) {
    setup.options.measuring.top = 0;
    setup.options.measuring.set = MeasuredSet::None;
    setup.options.measuring.byStrategy =
        !setup.options.measuring.measurer.empty();
  }
  if (llvm::Error error = setup.options.measuring.checkMeasurer())
    return error;
  llvm::Expected<std::optional<Calibration>> calibration =
      givenCalibration(given);
  if (!calibration)
    return calibration.takeError();
  setup.calibration = std::move(*calibration);
  for (const CostModel *model : costModels()) {
    llvm::Expected<std::shared_ptr<const CostModelData>> data =
        model->load(given);
    if (!data)
      return data.takeError();
    if (*data)
      setup.options.cost.loaded[model] = std::move(*data);
  }
  setup.unread = unreadOptions(given, setup);
  llvm::append_range(setup.unread, setup.strategy->unreadOptions(given));
  llvm::append_range(setup.unread,
                     unreadMeasureOptions(given, setup.options.measuring));
  if (setup.strategy->measures())
    for (const char *name : {"measure-top", "measure"})
      if (auto value = given.find(name);
          value != given.end() &&
          value->second != searchOptionList().find(name)->decl->defaultValue)
        setup.unread.push_back(
            (llvm::Twine("option --") + name + "=" + toText(value->second) +
             " has no effect: strategy '" + setup.strategy->name() +
             "' chooses itself what it measures")
                .str());
  for (auto [name, value] : {std::pair("proven-paths", &choice.provenPaths),
                             {"failed-paths", &choice.failedPaths}})
    if (choice.paths != kAutoPaths && !value->empty())
      setup.unread.push_back((llvm::Twine("option --") + name + "=" + *value +
                              " has no effect: 'paths' names paths")
                                 .str());
  return setup;
}
