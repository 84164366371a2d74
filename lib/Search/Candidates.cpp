//===- Candidates.cpp - uKernels aligned to the device --------------------===//
#include "FTuner/Search/Candidates.h"
#include "FTuner/Search/Sampling.h"
#include "FTuner/Search/TileRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;
using llvm::Twine;

/// Depth and stages that hide the latency of copies at little shared memory.
static constexpr int64_t preferredReduceTile = 16;
static constexpr int64_t preferredStages = 3;
/// Elements of a row that make one 64-byte access of DRAM in f32.
static constexpr int64_t leastRow = 16;
/// Elements of the widest vector that a path has (CodegenModel::vectorWidth).
static constexpr int64_t widestVector = 4;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

KernelFamily CandidateSet::single(unsigned candidate) const {
  KernelFamily family = prototype;
  family.parts.push_back(candidates[candidate].ukernel);
  family.stages = candidates[candidate].stages;
  return family;
}

llvm::Error ftuner::checkKernel(const SearchProblem &problem,
                                const KernelFamily &family) {
  const DeviceSpec &device = problem.device;
  if (llvm::Error error =
          problem.codegen.check(problem.workload, family, device))
    return error;
  if (family.balancedSms < 0 || family.balancedSms > maxBalancedSms ||
      (family.balancedSms > 0 &&
       (family.parts.size() != 2 ||
        family.parts.front().smemTile[family.combineAxis] >=
            family.parts.back().smemTile[family.combineAxis])))
    return makeError("expected balanced covers of two ascending heights over a "
                     "positive number of SMs, but got " +
                     family.str());
  KernelResources needs = problem.codegen.resources(problem.workload, family);
  if (needs.threads < 1 || needs.threads > device.maxThreadsPerBlock)
    return makeError("expected 1 to " + Twine(device.maxThreadsPerBlock) +
                     " threads, but got " + Twine(needs.threads));
  if (needs.sharedMemoryBytes > device.sharedMemoryPerBlockBytes)
    return makeError(
        "expected at most " + Twine(device.sharedMemoryPerBlockBytes) +
        " bytes of shared memory, but got " + Twine(needs.sharedMemoryBytes));
  return llvm::Error::success();
}

llvm::Error ftuner::checkSpillFree(const SearchProblem &problem,
                                   const KernelFamily &family) {
  int64_t limit = problem.device.registersPerThreadOf(family.threads());
  int64_t registers =
      problem.codegen.spillFreeRegisters(problem.workload, family);
  if (registers <= limit)
    return llvm::Error::success();
  return makeError("expected at most " + Twine(limit) +
                   " registers per thread in blocks of " +
                   Twine(family.threads()) +
                   " threads, but got an estimate of " + Twine(registers) +
                   " to be free of spills");
}

llvm::Error ftuner::checkFamily(const SearchProblem &problem,
                                const KernelFamily &family) {
  if (llvm::Error error = checkKernel(problem, family))
    return error;
  return checkSpillFree(problem, family);
}

bool ftuner::isLegal(const SearchProblem &problem, const KernelFamily &family) {
  llvm::Error error = checkFamily(problem, family);
  bool isLegal = !error;
  llvm::consumeError(std::move(error));
  return isLegal;
}

int64_t ftuner::reachableVectorWidth(const SearchProblem &problem) {
  int64_t width = problem.codegen.guaranteedVectorWidth(problem.workload);
  if (width > 1)
    return width;
  // Sizes that are multiples of the widest vector where the range holds one.
  Shape shape;
  for (const Axis &axis : problem.workload.axes) {
    int64_t size = smallestSize(axis);
    for (int64_t tries = 1; tries < widestVector && size % widestVector != 0;
         ++tries)
      if (axis.range.contains(size + axis.range.step))
        size += axis.range.step;
    shape.push_back(size);
  }
  return problem.codegen.vectorWidth(problem.workload, shape);
}

/// A small, a middle and a large shape of the range, or fewer.
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
/// A reduce tile with a number of stages.
struct ReduceChoice {
  int64_t tile = 0;
  int64_t stages = 0;

  void applyTo(KernelFamily &family) const {
    family.parts.front().smemTile[Workload::kK] = tile;
    family.stages = stages;
  }
  bool operator==(const ReduceChoice &other) const {
    return tile == other.tile && stages == other.stages;
  }
};

class Enumerator {
public:
  Enumerator(const SearchProblem &problem, int64_t vectorWidth)
      : problem(problem), workload(problem.workload),
        granules(problem.codegen.granules(workload, problem.device)),
        rules(workload, problem.device, granules.reduceGranule) {
    set.numByRules = rules.numCandidates;
    set.numWholeWarps = rules.numWholeWarps;
    set.prototype.vectorWidth = vectorWidth;
    set.prototype.path = problem.codegen.name().str();
    unsigned mainAxis = workload.mainAxis();
    if (llvm::is_contained(granules.combineAxes, mainAxis))
      set.prototype.combineAxis = mainAxis;
    else if (!granules.combineAxes.empty())
      set.prototype.combineAxis = granules.combineAxes.front();
    orderReduceChoices();
    if (problem.costModel.predictsTime())
      predictedShapes = representativeShapes(workload);
  }

  llvm::Expected<CandidateSet> run();

private:
  void orderReduceChoices();
  /// The reduce tiles and stages, of those that are legal for the family of one
  /// uKernel, that serve best.
  llvm::SmallVector<ReduceChoice> chooseReduce(KernelFamily &family) const;
  /// Visits every tile of some threads that the tile rule allows.
  void visitThreads(int64_t threadsM, int64_t threadsN);
  /// Whether a tile of `threads` threads with `rows` elements each leaves
  /// threads or whole register tiles idle for every size of the axis.
  bool isOversized(unsigned axis, int64_t threads, int64_t rows) const;
  /// Whether rows of the tile begin and end at memory transactions in every
  /// operand that is contiguous along a space axis.
  bool isAligned(const UKernel &ukernel) const;
  /// Adds the candidate if it is legal.
  bool visit(int64_t threadsM, int64_t threadsN, int64_t rm, int64_t rn);
  void sortByPreference();

  const SearchProblem &problem;
  const Workload &workload;
  TileGranules granules;
  TileRules rules;
  llvm::SmallVector<ReduceChoice> choices;
  ReduceChoice smallest;
  /// Shapes for which the cost model chooses reduce tiles and stages; none if
  /// it cannot tell them apart.
  std::vector<Shape> predictedShapes;
  CandidateSet set;
};
} // namespace

void Enumerator::orderReduceChoices() {
  for (int64_t tile = granules.reduceGranule; tile <= granules.maxReduceTile;
       tile += granules.reduceGranule)
    for (int64_t stages : granules.stages)
      choices.push_back({tile, stages});
  if (choices.empty())
    return;
  smallest = choices.front();
  // The smallest size of a range would favour the smallest tile always.
  std::vector<int64_t> extents =
      representativeSizes(workload.axes[Workload::kK]);
  if (extents.size() > 1)
    extents.erase(extents.begin());
  auto padding = [&](int64_t tile) {
    double sum = 0;
    for (int64_t extent : extents)
      sum += 1 - static_cast<double>(extent) / ceilBy(extent, tile);
    return std::llround(100 * sum / extents.size());
  };
  auto key = [&](const ReduceChoice &choice) {
    return std::make_tuple(
        padding(choice.tile), std::abs(choice.tile - preferredReduceTile),
        -choice.tile, std::abs(choice.stages - preferredStages), choice.stages);
  };
  llvm::sort(choices, [&](const ReduceChoice &a, const ReduceChoice &b) {
    return key(a) < key(b);
  });
}

/// Whether a number of threads along an axis is 2^a · {1, 3, 5, 9}.
static bool isAlignedThreadCount(int64_t threads) {
  int64_t odd = threads / (threads & -threads);
  return odd == 1 || odd == 3 || odd == 5 || odd == 9;
}

bool Enumerator::isOversized(unsigned axis, int64_t threads,
                             int64_t rows) const {
  int64_t extent = largestSize(workload.axes[axis]);
  llvm::ArrayRef<int64_t> legal = granules.registerTiles[axis];
  const int64_t *tile = llvm::lower_bound(legal, rows);
  // The next smaller legal register tile would do.
  bool tileIsOversized = tile != legal.begin() && *std::prev(tile) >= extent;
  bool threadsAreIdle = (threads - 1) * rows >= extent;
  return tileIsOversized || threadsAreIdle;
}

bool Enumerator::isAligned(const UKernel &ukernel) const {
  for (const Operand &operand : workload.operands) {
    std::optional<unsigned> axis = operand.contiguousAxis();
    if (!axis || (*axis != Workload::kM && *axis != Workload::kN))
      continue;
    int64_t extent = largestSize(workload.axes[*axis]);
    int64_t tile = ukernel.smemTile[*axis];
    bool isPartial =
        extent >= granules.reduceGranule && tile % granules.reduceGranule != 0;
    if (isPartial || tile < std::min(extent, leastRow))
      return false;
  }
  return true;
}

bool Enumerator::visit(int64_t threadsM, int64_t threadsN, int64_t rm,
                       int64_t rn) {
  int64_t threads = threadsM * threadsN;
  // The smallest block is kept whatever the size: some block must serve
  // shapes with fewer elements than a warp has lanes.
  if (threads > granules.warpSize && (isOversized(Workload::kM, threadsM, rm) ||
                                      isOversized(Workload::kN, threadsN, rn)))
    return false;
  if (rm * rn > granules.maxAccumulators ||
      rm * rn * threads >= problem.device.registersPerBlock)
    return false;

  KernelFamily family = set.prototype;
  UKernel &ukernel = family.parts.emplace_back();
  ukernel.regTile = {rm, rn, 1};
  ukernel.smemTile = {threadsM * rm, threadsN * rn, smallest.tile};
  ukernel.regTile.resize(workload.axes.size(), 1);
  ukernel.smemTile.resize(workload.axes.size(), 1);
  family.stages = smallest.stages;
  if (!isAligned(ukernel) || !isLegal(problem, family))
    return false;
  for (const ReduceChoice &choice : chooseReduce(family)) {
    choice.applyTo(family);
    set.candidates.push_back(
        {ukernel, family.stages, problem.codegen.resources(workload, family)});
  }
  return true;
}

llvm::SmallVector<ReduceChoice>
Enumerator::chooseReduce(KernelFamily &family) const {
  if (!predictedShapes.empty()) {
    // The best for each shape.
    llvm::SmallVector<ReduceChoice> chosen(predictedShapes.size(), smallest);
    llvm::SmallVector<double> best(predictedShapes.size(),
                                   -std::numeric_limits<double>::infinity());
    for (const ReduceChoice &choice : choices) {
      choice.applyTo(family);
      if (!isLegal(problem, family))
        continue;
      for (auto [index, shape] : llvm::enumerate(predictedShapes)) {
        double score = problem.score(family, shape);
        if (score <= best[index])
          continue;
        best[index] = score;
        chosen[index] = choice;
      }
    }
    llvm::SmallVector<ReduceChoice> distinct;
    for (const ReduceChoice &choice : chosen)
      if (!llvm::is_contained(distinct, choice))
        distinct.push_back(choice);
    return distinct;
  }
  // The first that leaves room for ζ blocks, else the first.
  std::optional<ReduceChoice> first;
  for (const ReduceChoice &choice : choices) {
    choice.applyTo(family);
    if (!isLegal(problem, family))
      continue;
    int64_t bytes =
        problem.codegen.resources(workload, family).sharedMemoryBytes +
        problem.device.reservedSharedMemoryBytes();
    if (bytes * problem.zeta() <= problem.device.sharedMemoryPerSmBytes)
      return {choice};
    if (!first)
      first = choice;
  }
  return {first.value_or(smallest)};
}

void Enumerator::sortByPreference() {
  auto key = [](const Candidate &candidate) {
    const UKernel &u = candidate.ukernel;
    int64_t threads = u.threads();
    int64_t bm = u.smemTile[Workload::kM], bn = u.smemTile[Workload::kN];
    int64_t bk = u.smemTile[Workload::kK];
    int64_t distance = threads < 128   ? 128 / threads
                       : threads > 256 ? threads / 256
                                       : 0;
    int64_t uneven = (bm * bk % (widestVector * threads) != 0) +
                     (bn * bk % (widestVector * threads) != 0);
    // Eight threads along the contiguous axis read 128 bytes at once.
    bool narrow = u.threadsAlong(Workload::kN) % 8 != 0;
    int64_t elements = u.regTile[Workload::kM] * u.regTile[Workload::kN];
    int64_t perimeter = bm + bn;
    return std::make_tuple(distance, narrow, uneven, -elements, perimeter, bm,
                           bn, u.regTile[Workload::kM]);
  };
  using Keyed = std::pair<decltype(key(set.candidates.front())), Candidate>;
  std::vector<Keyed> keyed;
  for (Candidate &candidate : set.candidates)
    keyed.emplace_back(key(candidate), std::move(candidate));
  llvm::sort(keyed,
             [](const Keyed &a, const Keyed &b) { return a.first < b.first; });
  set.candidates.clear();
  for (Keyed &entry : keyed)
    set.candidates.push_back(std::move(entry.second));
}

void Enumerator::visitThreads(int64_t threadsM, int64_t threadsN) {
  bool isAlignedTile = problem.options.tileRule == TileRule::Aligned &&
                       isAlignedThreadCount(threadsM) &&
                       isAlignedThreadCount(threadsN);
  for (int64_t rm : granules.registerTiles[Workload::kM]) {
    bool ruleM = rules.allows(Workload::kM, threadsM * rm, rm);
    if (!ruleM && !isAlignedTile)
      continue;
    for (int64_t rn : granules.registerTiles[Workload::kN]) {
      bool byRules = ruleM && rules.allows(Workload::kN, threadsN * rn, rn);
      if ((byRules || isAlignedTile) && visit(threadsM, threadsN, rm, rn))
        ++(byRules ? set.numEmittable : set.numAdded);
    }
  }
}

llvm::Expected<CandidateSet> Enumerator::run() {
  int64_t maxThreads = choices.empty() ? 0 : problem.device.maxThreadsPerBlock;
  for (int64_t threadsM = 1; threadsM <= maxThreads; ++threadsM)
    for (int64_t threadsN = 1; threadsM * threadsN <= maxThreads; ++threadsN)
      if (threadsM * threadsN % granules.warpSize == 0)
        visitThreads(threadsM, threadsN);
  if (set.candidates.empty())
    return makeError("found no legal uKernel for workload '" + workload.name +
                     "' on device '" + problem.device.name +
                     "' with vectors of " + Twine(set.prototype.vectorWidth) +
                     " elements");
  sortByPreference();
  return std::move(set);
}

llvm::Expected<CandidateSet>
ftuner::enumerateCandidates(const SearchProblem &problem, int64_t vectorWidth) {
  return Enumerator(problem, vectorWidth).run();
}

llvm::Expected<CandidateSet>
ftuner::enumerateCandidates(const SearchProblem &problem) {
  return enumerateCandidates(problem, reachableVectorWidth(problem));
}
