//===- SearchOptionList.h - All options of a search -------------*- C++ -*-===//
//
// The parts of a search by name (strategy, cost model, paths), and the list of
// all options: the options of every search, and the options that strategies and
// cost models declare. Passes, pipelines, tools and Python take that list
// unchanged.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_SETUP_SEARCHOPTIONLIST_H
#define FTUNER_SEARCH_SETUP_SEARCHOPTIONLIST_H

#include "FTuner/Search/Problem/SearchOptions.h"

namespace ftuner {

/// The value of the option "paths" that stands for all paths that are not
/// gated, and for the gated ones that were proven.
constexpr llvm::StringLiteral kAutoPaths = "auto";

/// The parts of a search, by name.
struct SearchChoice {
  std::string strategy = "ftuner";
  std::string costModel = "latency";
  /// Names of codegen paths, separated by commas, or "auto".
  std::string paths = kAutoPaths.str();
  /// Names of gates that are open with "auto", and of paths and gates that
  /// "auto" leaves out.
  std::string provenPaths, failedPaths;
};

/// The codegen paths of a choice.
struct ChosenPaths {
  llvm::SmallVector<const CodegenModel *> models;
  /// Gates that are open because they were proven, and gates that nothing has
  /// proven yet.
  llvm::SmallVector<Gate> proven = {}, unproven = {};
  /// Fields of the models' schedules that stay at their defaults.
  llvm::SmallVector<const ScheduleField *> closedFields = {};
};
llvm::Expected<ChosenPaths> readPaths(const SearchChoice &choice);

/// strategy, cost-model, paths, proven-paths and failed-paths.
const OptionTable<SearchChoice> &searchChoiceOptions();
/// Returns the options of every search, then the options of the strategies and
/// of the cost models, in the order of their lists.
const OptionList &searchOptionList();

/// Reads the members of SearchOptions; values of other options go into `own`
/// and `cost.own`. The values must have passed `OptionList::check`.
SearchOptions readSearchOptions(const OptionValues &given);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_SEARCHOPTIONLIST_H
