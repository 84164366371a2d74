//===- SearchOptions.h - Options that several strategies read ---*- C++ -*-===//
//
// The options that several strategies read, and their declarations in tables by
// reader. An option of only one strategy or cost model is declared by its
// reader (Options.h explains options).
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

/// The tiles of candidates.
enum class TileRule {
  /// RegTileRule and SmemTileRule of the paper (TileRules.h).
  Divisors,
  /// Divisors, and tiles that codegen paths suggest: the divisors of an awkward
  /// extent may lack tiles that suit the device.
  Aligned,
};

/// The programs that compete for a shape.
enum class ProgramPool {
  /// uProg of algorithm 2: exact partitions of the main axis by uKernels that
  /// the filter kept for any shape of the range, ranked only by score. Other
  /// programs compete only if no partition is exact.
  Exact,
  /// Exact partitions by one uKernel, or by two of which neither divides the
  /// extent, and partitions by candidates of the shape that pad less than one
  /// row
  /// of threads. A program that misses a demand of the filter for the shape
  /// ranks lower, by the share that it misses.
  Tight,
  /// Programs of one uKernel that the filter kept for any shape of the range,
  /// ranked only by score: algorithm 1 without algorithm 2.
  Single,
};

/// The main axis, along which programs combine uKernels (MainAxis.h).
enum class MainAxis {
  /// `Workload::mainAxis`: the largest dynamic space axis.
  Dynamic,
  /// `Workload::largestSpaceAxis`: the largest space axis, as the paper says.
  Largest,
};

/// Values of the options that several strategies read, under the paper's names
/// (section IV), and of those that bound candidates and kernels.
struct SearchOptions {
  TileRule tileRule = TileRule::Aligned;
  /// Active blocks per SM that SetBound allows (ζ); 0 is the device's default
  /// (`defaultZeta`).
  int64_t zeta = 0;
  CostModelOptions cost;
  /// The measurements of strategies that rank.
  MeasureOptions measuring;
  ProgramPool pool = ProgramPool::Tight;
  MainAxis mainAxis = MainAxis::Dynamic;
  /// True if families may split the reduce axis into slices.
  bool splitK = true;
  /// True if threads of a block may share out the steps along the reduce axis.
  bool slicedK = true;
  bool batchTiles = true;
  /// True if kernels may take tensor maps (TensorMap.h). Hosts that pass only
  /// pointers and i32 have no tensor maps.
  bool tensorMaps = true;
  /// Fields of schedules that stay at their defaults because their gates are
  /// closed.
  llvm::SmallVector<const ScheduleField *> closedFields = {};
  /// Number of best programs of each shape that the plan keeps.
  int64_t topK = 1;
  /// Maximum number of kernel families of one workload, those for unaligned
  /// operands included.
  int64_t maxKernels = 24;
  /// Mean regret, as a share of the fastest programs' time, that a kernel
  /// family must save to join the plan.
  double minGain = 1e-3;
  /// Values of the options that strategies declare for themselves
  /// (`SearchStrategy::options`).
  OptionValues own = {};

  /// Checks the ranges of all members, for any workload; `solve` checks `own`.
  llvm::Error check() const;
};

/// Returns the number of best programs of a shape that explanations show: at
/// least two, since the first is compared with the second.
inline int64_t shownPrograms(const SearchOptions &options) {
  return std::max<int64_t>(options.topK, 2);
}

/// Options of every search: top-k, max-kernels, least-gain, tensor-maps.
const OptionTable<SearchOptions> &commonOptions();
/// The option for tiles of candidates: tile-rule.
const OptionTable<SearchOptions> &tileRuleOptions();
/// Further options of HardwareAlign's candidates and their programs: pool,
/// main-axis, batch-tiles, split-k, sliced-k.
const OptionTable<SearchOptions> &candidateOptions();
/// The option for blocks of an SM, which SetBound and the rule for pipeline
/// stages read: zeta.
const OptionTable<SearchOptions> &zetaOptions();
/// Returns all tables of members of SearchOptions.
llvm::ArrayRef<const OptionTable<SearchOptions> *> sharedOptions();

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHOPTIONS_H
