//===- FilterOptions.cpp - Options of FTuner's filter ---------------------===//
#include "FTuner/Search/Strategies/FilterOptions.h"
#include "llvm/ADT/STLExtras.h"
#include <iterator>

using namespace ftuner;

/// Fewer steps than a million between two thresholds.
static constexpr double minStep = 1e-6;
/// Candidates of one shape: beyond what any workload has.
static constexpr int64_t maxPrograms = 1 << 20;
/// Blocks that an SM of any device could hold.
static constexpr int64_t maxBlocksOfSm = 1024;

const OptionTable<FilterOptions> &ftuner::filterOptions() {
  using Options = FilterOptions;
  static const OptionTable<FilterOptions> table = {
      option("filter", &Options::reading,
             "The filter follows algorithm 1 of the 'paper', adds 'pareto' "
             "fronts to it, or runs the stages and the ranking of the authors' "
             "'artifact'",
             {{"pareto", FilterReading::Pareto},
              {"paper", FilterReading::Paper},
              {"artifact", FilterReading::Artifact}}),
      option("epsilon-min", &Options::epsilonMin,
             "The padding threshold begins at this value")
          .within(0, 1),
      option("epsilon-max", &Options::epsilonMax,
             "The padding threshold ends at this value")
          .within(0, 1)
          .atLeast("epsilon-min"),
      option("epsilon-step", &Options::epsilonStep,
             "The padding threshold moves by this stride")
          .within(minStep, 1),
      option("lambda-max", &Options::lambdaMax,
             "The occupancy threshold begins at this value")
          .within(0, 1),
      option("lambda-min", &Options::lambdaMin,
             "The occupancy threshold ends at this value")
          .within(0, 1)
          .atMost("lambda-max"),
      option("lambda-step", &Options::lambdaStep,
             "The occupancy threshold moves by this stride")
          .within(minStep, 1),
      option("psi", &Options::psi,
             "A uKernel needs at least this share of a shape's best "
             "compute-to-memory ratio")
          .within(0, 1),
      option("psi-count-shared", &Options::psiCountShared,
             "The filter 'artifact' keeps this number of a shape's uKernels by "
             "their compute-to-memory ratio of shared memory")
          .within(1, maxPrograms),
      option("psi-count", &Options::psiCount,
             "The filter 'artifact' keeps this number of the uKernels that "
             "'psi-count-shared' left, by their compute-to-memory ratio of "
             "registers")
          .within(1, maxPrograms),
      option("active-blocks-per-sm", &Options::activeBlocksPerSm,
             "This number of blocks on each SM saturates the device")
          .within(1, maxBlocksOfSm),
      option("max-candidates", &Options::maxCandidates,
             "The filter 'pareto' leaves at most this number of candidates for "
             "each shape")
          .within(1, maxPrograms),
  };
  return table;
}

std::vector<std::string>
ftuner::unreadFilterOptions(const OptionValues &given) {
  using Reading = FilterReading;
  static const std::pair<llvm::StringRef, std::vector<Reading>> readings[] = {
      {"epsilon-min", {Reading::Pareto, Reading::Paper}},
      {"epsilon-max", {Reading::Pareto, Reading::Paper}},
      {"epsilon-step", {Reading::Pareto, Reading::Paper}},
      {"lambda-max", {Reading::Pareto, Reading::Paper}},
      {"lambda-min", {Reading::Pareto, Reading::Paper}},
      {"lambda-step", {Reading::Pareto, Reading::Paper}},
      {"psi", {Reading::Pareto, Reading::Paper}},
      {"psi-count-shared", {Reading::Artifact}},
      {"psi-count", {Reading::Artifact}},
      {"max-candidates", {Reading::Pareto}},
  };
  Reading reading = filterOptions().read(given).reading;
  std::vector<std::string> lines;
  for (const OptionDecl *decl : filterOptions().decls()) {
    auto value = given.find(decl->name);
    auto entry = llvm::find_if(
        readings, [&](const auto &entry) { return entry.first == decl->name; });
    if (value == given.end() || value->second == decl->defaultValue ||
        entry == std::end(readings) ||
        llvm::is_contained(entry->second, reading))
      continue;
    auto filter = given.find("filter");
    lines.push_back(
        "option --" + decl->name + "=" + toText(value->second) +
        " has no effect: no stage of the filter '" +
        (filter == given.end() ? "pareto" : toText(filter->second)) +
        "' reads it");
  }
  return lines;
}
