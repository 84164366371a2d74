//===- SearchSetup.cpp - From pass options to a search --------------------===//
#include "FTuner/Transforms/SearchSetup.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

template <typename T>
static llvm::Error unknownName(llvm::StringRef option, llvm::StringRef name,
                               llvm::ArrayRef<const T *> known) {
  auto names =
      llvm::map_range(known, [](const T *item) { return item->name(); });
  return llvm::createStringError("option '" + option + "': expected one of " +
                                 llvm::join(names, ", ") + ", but got '" +
                                 name + "'");
}

llvm::Expected<SearchSetup> ftuner::findSearch(llvm::StringRef strategy,
                                               llvm::StringRef costModel,
                                               llvm::StringRef tileRule,
                                               llvm::StringRef pool) {
  SearchSetup setup;
  setup.strategy = findSearchStrategy(strategy);
  if (!setup.strategy)
    return unknownName("strategy", strategy, searchStrategies());
  setup.costModel = findCostModel(costModel);
  if (!setup.costModel)
    return unknownName("cost-model", costModel, costModels());
  std::optional<TileRule> rule = findTileRule(tileRule);
  if (!rule)
    return llvm::createStringError(
        "option 'tile-rule': expected 'divisors' or 'aligned', but got '" +
        tileRule + "'");
  setup.options.tileRule = *rule;
  std::optional<ProgramPool> programs = findProgramPool(pool);
  if (!programs)
    return llvm::createStringError(
        "option 'pool': expected 'exact' or 'tight', but got '" + pool + "'");
  setup.options.pool = *programs;
  return setup;
}

llvm::Expected<std::optional<Calibration>>
ftuner::findCalibration(llvm::StringRef nameOrPath) {
  if (nameOrPath.empty())
    return std::nullopt;
  llvm::Expected<Calibration> calibration = loadCalibration(nameOrPath);
  if (!calibration)
    return llvm::createStringError("option 'calibration': " +
                                   llvm::toString(calibration.takeError()));
  return *calibration;
}
