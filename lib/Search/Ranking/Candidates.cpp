//===- Candidates.cpp - uKernels aligned to the device --------------------===//
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Problem/Feasibility.h"
#include "FTuner/Search/Ranking/MainAxis.h"
#include "FTuner/Search/Ranking/SearchMemory.h"
#include "FTuner/Search/Ranking/TileRules.h"
#include "FTuner/Workload/Sampling.h"
#include "SplitCandidates.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <limits>

using namespace ftuner;
using llvm::Twine;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Returns a small, a middle and a large shape of the range; each shape once.
static std::vector<Shape> representativeShapes(const Workload &workload) {
  std::vector<Shape> shapes(3);
  for (const Axis &axis : workload.axes) {
    std::vector<int64_t> sizes = representativeSizes(axis);
    for (size_t i = 0; i < shapes.size(); ++i)
      shapes[i].push_back(sizes[i * (sizes.size() - 1) / (shapes.size() - 1)]);
  }
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

namespace {
/// Enumerates the candidates of one path.
class Enumerator {
public:
  /// `alignment` is that of the operands, for which the path offers tiles.
  Enumerator(const SearchProblem &problem, const CodegenModel &path,
             int64_t alignment)
      : problem(problem), workload(problem.workload), path(path),
        alignment(alignment), space(path.createSpace(workload, problem.device)),
        combineAxis(chooseCombineAxis()) {}

  PathCandidates run();
  /// Describes the block nearest to being feasible, and why it is not, after an
  /// enumeration without a candidate.
  std::string nearestRefusal() const;

private:
  /// Returns the main axis if the path combines along it, or else the path's
  /// own combine axis.
  unsigned chooseCombineAxis() const;
  /// Visits the schedules of a block, with closed fields at their defaults.
  /// Skips a schedule that is then equal to the one before it.
  void forEachSchedule(const KernelFamily &block,
                       ScheduleSpace::FamilyVisitor visit) const {
    std::optional<KernelFamily> previous;
    space->forEachSchedule(block, [&](const KernelFamily &family) {
      if (problem.options.closedFields.empty())
        return visit(family);
      KernelFamily open = family;
      open.schedule = withDefaults(open.schedule, problem.options.closedFields);
      if (previous == open)
        return true;
      previous = open;
      return visit(open);
    });
  }
  /// Returns the best of the schedules that are feasible for the block.
  std::vector<KernelFamily> chooseSchedules(const KernelFamily &block) const;
  /// Adds the block's candidates if the block is feasible, and returns whether
  /// it is.
  bool visit(const KernelFamily &block);
  void addByPreference();

  const SearchProblem &problem;
  const Workload &workload;
  const CodegenModel &path;
  int64_t alignment;
  std::unique_ptr<ScheduleSpace> space;
  unsigned combineAxis;
  /// The paper's tile rules, which are for contractions only.
  std::optional<TileRules> rules;
  /// Shapes for which the cost model chooses schedules; empty if it cannot tell
  /// schedules apart.
  std::vector<Shape> predictedShapes;
  std::vector<KernelFamily> found;
  PathCandidates result;
};
} // namespace

unsigned Enumerator::chooseCombineAxis() const {
  if (space->combineAxes.empty() || combinesAlongMainAxis(problem, *space))
    return mainAxisOf(problem);
  return space->combineAxes.front();
}

bool Enumerator::visit(const KernelFamily &block) {
  if (!isFeasible(problem, block))
    return false;
  for (KernelFamily &family : chooseSchedules(block))
    found.push_back(std::move(family));
  return true;
}

std::vector<KernelFamily>
Enumerator::chooseSchedules(const KernelFamily &block) const {
  std::vector<KernelFamily> distinct;
  if (!predictedShapes.empty()) {
    // The best schedule for each shape.
    std::vector<KernelFamily> chosen(predictedShapes.size(), block);
    std::vector<double> best(predictedShapes.size(),
                             -std::numeric_limits<double>::infinity());
    forEachSchedule(block, [&](const KernelFamily &family) {
      if (!isFeasible(problem, family))
        return true;
      for (auto [index, shape] : llvm::enumerate(predictedShapes)) {
        double score = problem.score(family, shape);
        if (score <= best[index])
          continue;
        best[index] = score;
        chosen[index] = family;
      }
      return true;
    });
    for (KernelFamily &family : chosen)
      if (!llvm::is_contained(distinct, family))
        distinct.push_back(std::move(family));
    return distinct;
  }
  // The first schedule that leaves room for ζ blocks, or else the first one.
  std::optional<KernelFamily> first;
  forEachSchedule(block, [&](const KernelFamily &family) {
    if (!isFeasible(problem, family))
      return true;
    int64_t bytes = path.resources(workload, family).sharedMemoryBytes +
                    problem.device.reservedSharedMemoryBytes();
    if (bytes * problem.zeta() <= problem.device.sharedMemoryPerSmBytes) {
      distinct.push_back(family);
      return false;
    }
    if (!first)
      first = family;
    return true;
  });
  if (distinct.empty())
    distinct.push_back(first.value_or(block));
  return distinct;
}

void Enumerator::addByPreference() {
  using Keyed = std::pair<ScheduleSpace::Preference, KernelFamily>;
  std::vector<Keyed> keyed;
  for (KernelFamily &family : found)
    keyed.emplace_back(space->preference(family), std::move(family));
  llvm::sort(keyed,
             [](const Keyed &a, const Keyed &b) { return a.first < b.first; });
  for (auto &[key, family] : keyed) {
    Candidate candidate;
    candidate.ukernel = family.ukernel(0);
    candidate.resources = path.resources(workload, family);
    candidate.family = std::move(family);
    result.candidates.push_back(std::move(candidate));
  }
}

/// Returns whether the block has more than one element along batch axes.
static bool hasBatchTile(const TileRules &rules, const BlockTile &tile) {
  return llvm::any_of(rules.batchFactors, [&](const auto &factors) {
    return tile[factors.first] > 1;
  });
}

PathCandidates Enumerator::run() {
  CandidateCounts &counts = result.counts;
  if (workload.isContraction()) {
    rules.emplace(workload, problem.device, *space);
    counts.numByRules = rules->numCandidates;
    counts.numWholeWarps = rules->numWholeWarps;
  }
  if (problem.costModel.predictsTime())
    predictedShapes = representativeShapes(workload);
  bool isOnlyByRules = problem.options.tileRule == TileRule::Divisors;
  auto byRules = [&](const UKernel &ukernel) {
    return rules && rules->allows(ukernel);
  };
  uint32_t reduceAxes = workload.reduceAxes().mask();
  KernelFamily block;
  space->forEachBlock(alignment, [&](const KernelFamily &offered,
                                     const UKernel &ukernel, BlockKind kind) {
    if (!problem.options.batchTiles && rules &&
        hasBatchTile(*rules, ukernel.blockTile))
      return;
    bool isByRules =
        (isOnlyByRules || kind != BlockKind::Odd) && byRules(ukernel);
    if (!isByRules && (isOnlyByRules || kind != BlockKind::Suited))
      return;
    block = offered;
    block.combineAxis = combineAxis;
    block.reduceAxes = reduceAxes;
    if (visit(block))
      ++(isByRules ? counts.numEmittable : counts.numAdded);
  });
  addByPreference();
  return std::move(result);
}

std::string Enumerator::nearestRefusal() const {
  std::string refusal;
  int64_t minLacking = std::numeric_limits<int64_t>::max();
  space->forEachBlock(
      alignment, [&](const KernelFamily &offered, const UKernel &, BlockKind) {
        KernelFamily block = offered;
        block.combineAxis = combineAxis;
        block.reduceAxes = workload.reduceAxes().mask();
        llvm::Error error = checkKernel(problem, block);
        // A block that the path cannot emit at all is further from feasible
        // than one that spills.
        int64_t lacking = std::numeric_limits<int64_t>::max() - 1;
        if (!error) {
          lacking = path.spillFreeRegisters(workload, block) -
                    problem.device.registersPerThreadOf(block.threads());
          error = checkSpillFree(problem, block);
        }
        std::string reason = llvm::toString(std::move(error));
        if (reason.empty() || lacking >= minLacking)
          return;
        minLacking = lacking;
        refusal = block.str() + ": " + reason;
      });
  return refusal;
}

/// Returns the error for an empty set, with the nearest refusal of each path.
static llvm::Error
makeNoCandidatesError(const SearchProblem &problem,
                      llvm::ArrayRef<const CodegenModel *> paths,
                      int64_t alignment) {
  std::string refusals;
  for (const CodegenModel *path : paths)
    if (std::string refusal =
            Enumerator(problem, *path, alignment).nearestRefusal();
        !refusal.empty())
      refusals += "; the nearest: " + refusal;
  return makeError("found no feasible uKernel for workload '" +
                   problem.workload.name + "' on device '" +
                   problem.device.name + "' with operands aligned to " +
                   Twine(alignment) + " bytes" + refusals);
}

/// Returns the candidates of a path; enumerates them once if the problem keeps
/// them.
static PathCandidates candidatesOf(const SearchProblem &problem,
                                   const CodegenModel &path,
                                   int64_t alignment) {
  auto enumerate = [&] { return Enumerator(problem, path, alignment).run(); };
  if (!problem.memory)
    return enumerate();
  auto [it, isNew] = problem.memory->candidates.try_emplace({&path, alignment});
  if (isNew)
    it->second = enumerate();
  return it->second;
}

llvm::Expected<CandidateSet>
ftuner::enumerateCandidates(const SearchProblem &problem, int64_t alignment) {
  auto paths =
      supportingModels(problem.paths, problem.workload, problem.device);
  if (!paths)
    return paths.takeError();
  CandidateSet set;
  for (const CodegenModel *path : *paths) {
    PathCandidates own = candidatesOf(problem, *path, alignment);
    llvm::move(own.candidates, std::back_inserter(set.candidates));
    set.numByRules += own.counts.numByRules;
    set.numWholeWarps += own.counts.numWholeWarps;
    set.numEmittable += own.counts.numEmittable;
    set.numAdded += own.counts.numAdded;
  }
  if (set.candidates.empty())
    return makeNoCandidatesError(problem, *paths, alignment);
  for (const Candidate &candidate : set.candidates)
    set.alignment = std::max(set.alignment, candidate.family.alignment());
  return set;
}

llvm::Expected<CandidateSet>
ftuner::enumerateCandidates(const SearchProblem &problem) {
  llvm::Expected<CandidateSet> set =
      enumerateCandidates(problem, reachableAlignment(problem.workload));
  if (set)
    addSplitCandidates(problem, *set);
  return set;
}
