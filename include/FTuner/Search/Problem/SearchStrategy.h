//===- SearchStrategy.h - Problem, solvers and checker ----------*- C++ -*-===//
//
// Always the same three steps: the problem checks itself, a strategy solves it,
// the problem verifies the answer, whoever solved it (`solve`).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
#define FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H

#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/MeasureOptions.h"
#include "FTuner/Search/Problem/Plan.h"
#include "FTuner/Search/Problem/SearchContext.h"
#include "FTuner/Search/Problem/ShapeReport.h"
#include "FTuner/Support/Options.h"
#include <algorithm>
#include <memory>

namespace ftuner {

/// Which tiles candidates are made of.
enum class TileRule {
  /// RegTileRule and SmemTileRule of the paper (TileRules.h).
  Divisors,
  /// These, and tiles that codegen paths suggest, which the divisors of an
  /// awkward extent lack.
  Aligned,
};

/// Which uKernels may serve a shape (Filter.h).
enum class FilterReading {
  /// Algorithm 1, blocks of four warps, and the Pareto front of its metrics.
  Pareto,
  /// Algorithm 1 alone.
  Paper,
  /// The stages of the authors' code. Programs are ranked as it does
  /// (ThroughputRating.h).
  Artifact,
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

/// Hyper-parameters under the paper's names (section IV), and the bounds that
/// keep the number of candidates and of kernels small. Declared in
/// SearchOptions.h.
struct SearchOptions {
  TileRule tileRule = TileRule::Aligned;
  /// Padding threshold ε: from epsilonMin to epsilonMax by epsilonStep.
  double epsilonMin = 0.50, epsilonMax = 0.95, epsilonStep = 0.01;
  /// Occupancy threshold λ: from lambdaMax down to lambdaMin by lambdaStep.
  double lambdaMax = 0.95, lambdaMin = 0.90, lambdaStep = 0.001;
  /// Active blocks per SM that SetBound allows (ζ); 0 is the device's default
  /// (`defaultZeta`).
  int64_t zeta = 0;
  FilterReading filter = FilterReading::Pareto;
  /// Least share of the shape's best compute-to-memory ratio (ψ, relative).
  double psi = 0.5;
  /// The same as a count, by the artifact's ratio of shared memory and then by
  /// that of registers.
  int64_t psiCountShared = 20, psiCount = 10;
  /// Blocks per SM that saturate the device (ACTIVE_BLOCK_PER_SM).
  int64_t activeBlocksPerSm = 2;
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
  double leastGain = 1e-3;
  /// Most candidates for each shape after the filter.
  int64_t maxCandidates = 256;
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

/// ζ of a device: blocks of 256 threads with 128 registers each that the
/// registers of an SM hold; 2 on V100, as in the paper, which found it there
/// by heuristic search.
int64_t defaultZeta(const DeviceSpec &device);

/// Everything that a strategy may look at.
struct SearchProblem {
  const Workload &workload;
  const DeviceSpec &device;
  /// Codegen paths whose families compete. Those that do not support the
  /// workload offer none.
  llvm::ArrayRef<const CodegenModel *> paths;
  const CostModel &costModel;
  SearchOptions options;
  /// Families that must not be chosen, e.g. since ptxas spills their registers.
  std::vector<KernelFamily> rejected = {};
  /// Made on first use, see `evaluator`, `predictor` and `rankingEvaluator`;
  /// copies share them.
  mutable std::shared_ptr<CostEvaluator> madeEvaluator = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePredictor = nullptr;
  mutable std::shared_ptr<CostEvaluator> madePrefilter = nullptr;

  int64_t zeta() const {
    return options.zeta ? options.zeta : defaultZeta(device);
  }
  bool isRejected(const KernelFamily &family) const;
  /// Names of the paths, separated by commas.
  std::string pathNames() const;
  /// The evaluator of the cost model. Workload, device, options and cost model
  /// stay as they are from the first use on.
  CostEvaluator &evaluator() const;
  /// The evaluator of the cost model if that predicts time, else of `latency`.
  CostEvaluator &predictor() const;
  /// The evaluator that sees every program of a search: of the cost model, or
  /// of its prefilter (`CostModel::prefilter`), whose best programs it orders
  /// anew (Reordering.h).
  CostEvaluator &rankingEvaluator() const;
  std::optional<Prefilter> prefilter() const {
    return costModel.prefilter(options.cost);
  }
  /// What a family's program for a shape (every extent ≥ 1) is ranked by at
  /// first.
  double score(const KernelFamily &family, llvm::ArrayRef<int64_t> shape) const;
  /// The cost model's score of it, and its parts.
  CostBreakdown evaluate(const KernelFamily &family,
                         llvm::ArrayRef<int64_t> shape) const;
  /// Predicted microseconds of a family's program for a shape, and their terms,
  /// whatever the cost model is. Where rows of the shape are not aligned for
  /// the family's accesses, it is priced with narrower ones.
  CostBreakdown predict(const KernelFamily &family,
                        llvm::ArrayRef<int64_t> shape) const;
  /// The scores of many such predictions, of a shape for each family.
  std::vector<double>
  predictEach(llvm::ArrayRef<const KernelFamily *> families,
              llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes) const;

  /// Says what is wrong with the problem itself (workload, options).
  llvm::Error check() const;
  /// Says why a plan, whoever wrote it, must not be run: a family without a
  /// correct kernel (`checkKernel`), an index or a box that does not fit, or
  /// vectors that would access operands which are not aligned for them.
  llvm::Error checkLegality(const Plan &plan) const;
  /// Proves the answer of a search: it is legal, its families are feasible, and
  /// every declared shape has an entry. For every extent, partitions write each
  /// row exactly once and pad only the last block (Partition.h).
  llvm::Error verify(const Plan &plan) const;
};

/// How problems are solved. Several threads may ask one strategy at once, each
/// with its own problem and context, so it keeps no state between problems.
/// Plans and reports follow from the problem, the context's seed and the
/// measurer's answers (those of its log among them) alone.
class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  virtual llvm::StringRef name() const = 0;
  /// Options that the strategy reads beside those of every search: members of
  /// SearchOptions, or its own, whose values are in `SearchOptions::own`.
  virtual OptionDecls options() const { return {}; }
  /// Whether the strategy asks the measurer by itself where one is named, and
  /// options of `MeasureOptions` that say what is measured do not concern it.
  virtual bool measures() const { return false; }
  /// A plan that passes `SearchProblem::verify`. A strategy that measures asks
  /// the context's measurer for at most `SearchContext::budget` kernels, failed
  /// ones included. Where there is no measurer it may return an error.
  virtual llvm::Expected<Plan> search(const SearchProblem &problem,
                                      const SearchContext &context) const = 0;
  /// How the strategy judges shapes (every extent ≥ 1), one report each: what
  /// each of its stages threw out, and up to `options.topK` programs, best
  /// first. The budget is that of this call.
  virtual llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &problem, const SearchContext &context,
          llvm::ArrayRef<Shape> shapes) const = 0;
};

/// check, search, verify.
llvm::Expected<Plan> solve(const SearchProblem &problem,
                           const SearchStrategy &strategy,
                           const SearchContext &context = {});

const SearchStrategy *findSearchStrategy(llvm::StringRef name);
llvm::ArrayRef<const SearchStrategy *> searchStrategies();

} // namespace ftuner

#endif // FTUNER_SEARCH_PROBLEM_SEARCHSTRATEGY_H
