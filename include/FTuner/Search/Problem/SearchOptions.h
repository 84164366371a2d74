//===- SearchOptions.h - Options that several strategies read ---*- C++ -*-===//
//
// The options of a search, and their declarations in tables by who reads them.
// What one strategy or one cost model reads alone it declares for itself
// (Options.h says what an option is).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHOPTIONS_H
#define FTUNER_SEARCH_PROBLEM_SEARCHOPTIONS_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/MeasureOptions.h"
#include "FTuner/Support/Options.h"
#include <algorithm>

namespace ftuner {

/// Which tiles candidates are made of.
enum class TileRule {
  /// RegTileRule and SmemTileRule of the paper (TileRules.h).
  Divisors,
  /// These, and tiles that codegen paths suggest, which the divisors of an
  /// awkward extent lack.
  Aligned,
};

/// Which programs a shape may have.
enum class ProgramPool {
  /// uProg of algorithm 2: exact partitions of the main axis by uKernels that
  /// the filter left for any shape of the range, ranked by score alone. Others
  /// only where there is none.
  Exact,
  /// Exact partitions by one uKernel, or by two that could not do so alone, and
  /// of the shape's own candidates those that pad less than one row of threads.
  /// Programs that miss what the filter asks for the shape rank lower, by the
  /// share that they miss.
  Tight,
  /// One uKernel of those that the filter left for any shape of the range,
  /// ranked by score alone: algorithm 1 without algorithm 2.
  Single,
};

/// Which axis is the main one: programs combine uKernels along it (MainAxis.h).
enum class MainAxis {
  /// `Workload::mainAxis`: the largest dynamic space axis.
  Dynamic,
  /// `Workload::largestSpaceAxis`: the largest space axis, as the paper says.
  Largest,
};

/// What several strategies read, under the paper's names (section IV), and the
/// bounds that keep the number of candidates and of kernels small.
struct SearchOptions {
  TileRule tileRule = TileRule::Aligned;
  /// Active blocks per SM that SetBound allows (ζ); 0 is the device's default
  /// (`defaultZeta`).
  int64_t zeta = 0;
  CostModelOptions cost;
  /// What is measured, by strategies that rank.
  MeasureOptions measuring;
  ProgramPool pool = ProgramPool::Tight;
  MainAxis mainAxis = MainAxis::Dynamic;
  /// Whether families may split the reduce axis into slices.
  bool splitK = true;
  /// True where threads of a block may share out the steps along the reduce
  /// axis.
  bool slicedK = true;
  bool batchTiles = true;
  /// Whether kernels may take tensor maps (TensorMap.h): hosts that pass no
  /// more than pointers and i32 have none.
  bool tensorMaps = true;
  /// Fields of schedules that stay at their defaults, as no gate is open for
  /// them.
  llvm::SmallVector<const ScheduleField *> closedFields = {};
  /// Best programs of each shape that the plan keeps.
  int64_t topK = 1;
  /// Most kernel families of one workload, those for unaligned operands
  /// included.
  int64_t maxKernels = 24;
  /// Mean regret, as a share of the fastest programs' time, that a kernel
  /// family must save to join the plan.
  double minGain = 1e-3;
  /// Values of the options that strategies declare for themselves
  /// (`SearchStrategy::options`).
  OptionValues own = {};

  /// Says which member is out of its range, whatever the workload is; `solve`
  /// checks `own`.
  llvm::Error check() const;
};

/// Best programs of a shape that explanations compare: the second one is what
/// the first is compared with.
inline int64_t shownPrograms(const SearchOptions &options) {
  return std::max<int64_t>(options.topK, 2);
}

/// Those of every search: top-k, max-kernels, least-gain, tensor-maps.
const OptionTable<SearchOptions> &commonOptions();
/// Which tiles candidates have: tile-rule.
const OptionTable<SearchOptions> &tileRuleOptions();
/// What else makes HardwareAlign's candidates and the programs of them: pool,
/// main-axis, batch-tiles, split-k, sliced-k.
const OptionTable<SearchOptions> &candidateOptions();
/// Blocks of an SM, which SetBound and the rule for pipeline stages ask for:
/// zeta.
const OptionTable<SearchOptions> &zetaOptions();
/// All tables of members of SearchOptions.
llvm::ArrayRef<const OptionTable<SearchOptions> *> sharedOptions();

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHOPTIONS_H
