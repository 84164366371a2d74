//===- SplitCandidates.cpp - Candidates with split-K slices ---------------===//
//
// Slices give idle SMs work if a product, or a reduction of rows, has few
// blocks and a long reduce axis. They cost one or more further kernels and the
// traffic of their sums, both of which the cost model prices. So they are tried
// for shapes whose blocks without slices fill less than about one wave, and
// whose kernel takes clearly longer than the second kernel would.
//
// Slices within a block (`CodegenModel::slicedVariants`) cost no second kernel.
// They give few blocks more threads, which copy more at once. They are tried if
// not every SM has a block, and if a path that has such blocks is the fastest
// one without slices.
//
//===----------------------------------------------------------------------===//
#include "SplitCandidates.h"
#include "FTuner/Schedule/Grid.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include "FTuner/Workload/RowReduction.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

using namespace ftuner;

/// Split-K factors. From one factor to the next, slices get shorter by a
/// quarter to a half.
static constexpr int64_t kFactors[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};
/// Split-K factors of rows, whose slices have whole slots and segments.
static constexpr int64_t kRowFactors[] = {2,  4,   8,   16,  32,
                                          64, 128, 256, 512, 1024};
/// Minimum time of a kernel as a multiple of the cost of a second kernel.
/// FTuner's own took 1.3 µs for 16 rows and 3.5 for 512 on an H200, by the
/// price 3 and more; a slower kernel loses little by a wrong price
/// (benchmarks/results/h200-2026-11-26-2).
static constexpr double kMinTime = 3;
/// Like kMinTime, for rows, where slices cost only the later launches; their
/// number is part of the score of a choice.
static constexpr double kMinRowsTime = 1;

/// Maximum time without slices within blocks, as a multiple of the fastest
/// candidate's: such slices hardly double the speed.
static constexpr double kMaxTimeOfSliced = 2;

namespace {
/// A candidate with slices, for one shape.
struct SplitChoice {
  double score;
  unsigned candidate;
  KernelFamily family;
};

class SplitFinder {
public:
  SplitFinder(const SearchProblem &problem, const CandidateSet &set)
      : problem(problem), set(set),
        constants(problem.options.cost.calibration.constants) {}

  /// Notes the best choices for a shape, if slices save time.
  void visit(const Shape &shape);
  /// Families with slices, by candidate, split-K factor, and schedule with the
  /// step along the reduce axis.
  using Key = std::tuple<unsigned, int64_t, std::vector<int64_t>>;
  std::map<Key, KernelFamily> chosen;

private:
  bool isWorthLooking(const KernelFamily &best, double score,
                      const Shape &shape) const;
  /// Returns whether the family has fewer blocks than `waves` for each SM.
  bool hasFewBlocks(const KernelFamily &family, const Shape &shape,
                    int64_t waves) const {
    return blocksOf(family, shape) < waves * problem.device.smCount;
  }
  /// Add choices for a shape whose fastest candidate has the score `best`: with
  /// slices of several blocks, or with slices within the blocks of a path.
  /// `scores` has the scores of all candidates.
  void addSplit(const Shape &shape, double best,
                std::vector<SplitChoice> &choices) const;
  void addSliced(const Shape &shape, const CodegenModel &path,
                 llvm::ArrayRef<double> scores, double best,
                 std::vector<SplitChoice> &choices) const;
  int64_t blocksOf(const KernelFamily &family, const Shape &shape) const {
    NumberArithmetic math;
    return launchOf(math, gridOf(family), llvm::ArrayRef<int64_t>(shape))
        .blocks;
  }

  const SearchProblem &problem;
  const CandidateSet &set;
  const LatencyConstants &constants;
};
} // namespace

bool SplitFinder::isWorthLooking(const KernelFamily &best, double score,
                                 const Shape &shape) const {
  double microseconds = -score - constants.launch;
  double minTime = best.path().sharesOutSlices() ? kMinRowsTime : kMinTime;
  return microseconds > minTime * constants.secondKernel;
}

void SplitFinder::visit(const Shape &shape) {
  // Scores are negated times.
  double best = 0;
  const KernelFamily *fastest = nullptr;
  std::vector<double> scores;
  for (const Candidate &candidate : set.candidates) {
    scores.push_back(problem.score(candidate.family, shape));
    if (problem.isRejected(candidate.family) ||
        (fastest && scores.back() <= best))
      continue;
    best = scores.back();
    fastest = &candidate.family;
  }
  if (!fastest || !hasFewBlocks(*fastest, shape, tuning::maxSliceWaves))
    return;
  std::vector<SplitChoice> choices;
  if (problem.options.splitK && isWorthLooking(*fastest, best, shape))
    addSplit(shape, best, choices);
  if (problem.options.slicedK && hasFewBlocks(*fastest, shape, 1))
    addSliced(shape, fastest->path(), scores, best, choices);
  llvm::stable_sort(choices, [](const SplitChoice &a, const SplitChoice &b) {
    return a.score > b.score;
  });
  size_t taken = 0;
  for (const SplitChoice &choice : choices) {
    const KernelFamily &family = choice.family;
    if (problem.isRejected(family) || !isFeasible(problem, family))
      continue;
    std::vector<int64_t> fields(family.schedule.fields().begin(),
                                family.schedule.fields().end());
    fields.push_back(family.tiles.front()[gridOf(family).reduceAxis()]);
    chosen.insert({Key(choice.candidate, family.reduceSplit, fields), family});
    if (++taken == tuning::slicesPerShape)
      break;
  }
}

void SplitFinder::addSplit(const Shape &shape, double best,
                           std::vector<SplitChoice> &choices) const {
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    KernelFamily family = candidate.family;
    unsigned axis = gridOf(family).reduceAxis();
    int64_t steps = ceilDiv(shape[axis], family.tiles.front()[axis]);
    int64_t blocks = blocksOf(family, shape);
    bool ofRows = family.path().sharesOutSlices();
    if (!ofRows && !problem.workload.isContraction())
      continue;
    for (int64_t split :
         ofRows ? llvm::ArrayRef(kRowFactors) : llvm::ArrayRef(kFactors)) {
      if (steps < tuning::minSliceSteps * split ||
          blocks * split > tuning::maxSliceWaves * problem.device.smCount)
        break;
      family.reduceSplit = split;
      // Slices of rows must follow further rules.
      if (ofRows && !isFeasible(problem, family))
        continue;
      double score = problem.score(family, shape);
      if (score > best * (1 - tuning::minSliceGain))
        choices.push_back({score, static_cast<unsigned>(index), family});
    }
  }
}

void SplitFinder::addSliced(const Shape &shape, const CodegenModel &path,
                            llvm::ArrayRef<double> scores, double best,
                            std::vector<SplitChoice> &choices) const {
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    const KernelFamily &family = candidate.family;
    if (&family.path() != &path || !hasFewBlocks(family, shape, 1) ||
        scores[index] < kMaxTimeOfSliced * best)
      continue;
    for (KernelFamily &variant : path.slicedVariants(family)) {
      if (!isFeasible(problem, variant))
        continue;
      double score = problem.score(variant, shape);
      if (score > best * (1 - tuning::minSliceGain))
        choices.push_back(
            {score, static_cast<unsigned>(index), std::move(variant)});
    }
  }
}

void ftuner::addSplitCandidates(const SearchProblem &problem,
                                CandidateSet &set) {
  const SearchOptions &options = problem.options;
  if ((!options.splitK && !options.slicedK) ||
      !problem.costModel.predictsTime() || options.pool == ProgramPool::Exact ||
      (!problem.workload.isContraction() && !problem.workload.asRowReduction()))
    return;
  SplitFinder finder(problem, set);
  unsigned mainAxis = problem.workload.mainAxis();
  for (const ShapeCell &cell : shapeCells(problem.workload, mainAxis))
    // Sizes have a constant ratio, since an extent counts in units of a tile.
    for (const SizeSample &sample :
         sampleSizes(problem.workload.axes[mainAxis], tuning::maxSliceShapes))
      finder.visit(shapeAt(problem.workload, cell, mainAxis, sample.size));
  for (auto &[key, family] : finder.chosen) {
    Candidate candidate = set.candidates[std::get<0>(key)];
    candidate.family = family;
    candidate.ukernel = candidate.family.ukernel(0);
    set.candidates.push_back(std::move(candidate));
    ++set.numSplit;
  }
}
