//===- RollerTree.cpp - Tiles as Roller constructs them -------------------===//
#include "RollerTree.h"
#include "FTuner/Baselines/ConstructibleTiles.h"
#include "RollerTuning.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <set>

using namespace ftuner;

static constexpr int64_t schedulersPerSm = 4;
static constexpr int64_t threadsPerWarp = 32;
/// Threads that give each scheduler of an SM a warp.
static constexpr int64_t schedulerThreads = schedulersPerSm * threadsPerWarp;

//===----------------------------------------------------------------------===//
// Performance model
//===----------------------------------------------------------------------===//

RollerModel::RollerModel(const SearchProblem &problem, const CodegenModel &path,
                         llvm::ArrayRef<int64_t> shape)
    : problem(problem),
      axes(ContractionAxes::forReduceAxes(problem.workload.reduceAxes())),
      shape(shape.begin(), shape.end()),
      peak(path.peakFlops(problem.workload, problem.device)),
      flopsPerPoint(flopsOf(problem.workload.reduction()->operations)) {
  for (const Operand &operand : problem.workload.operands) {
    double bytes = static_cast<double>(operand.elementBytes);
    if (operand.role == OperandRole::Lhs)
      lhsBytes = bytes;
    else if (operand.role == OperandRole::Rhs)
      rhsBytes = bytes;
    else if (operand.role == OperandRole::Output)
      outputBytes = bytes;
  }
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axes.isBatch(axis))
      batch *= static_cast<double>(shape[axis]);
}

int64_t RollerModel::blocks(int64_t bm, int64_t bn) const {
  double blocks =
      batch * ceilDiv(shape[axes.m], bm) * ceilDiv(shape[axes.n], bn);
  return static_cast<int64_t>(std::min(blocks, static_cast<double>(maxBlocks)));
}

/// Blocks that one SM holds at once, at least 1.
static int64_t activeBlocks(const DeviceSpec &device,
                            const KernelResources &needs) {
  int64_t active =
      std::min(device.maxBlocksPerSm, device.maxThreadsPerSm / needs.threads);
  active = std::min(active, device.registersPerSm /
                                (needs.registersPerThread * needs.threads));
  active = std::min(active, device.sharedMemoryPerSmBytes /
                                std::max<int64_t>(needs.sharedMemoryBytes, 1));
  return std::max<int64_t>(active, 1);
}

double RollerModel::seconds(const UKernel &ukernel,
                            const KernelResources &resources) const {
  const DeviceSpec &device = problem.device;
  int64_t bm = ukernel.blockTile[axes.m];
  int64_t bn = ukernel.blockTile[axes.n];
  double rm = static_cast<double>(ukernel.registerTile[axes.m]);
  double rn = static_cast<double>(ukernel.registerTile[axes.n]);
  double depth =
      static_cast<double>(ceilBy(shape[axes.k], ukernel.blockTile[axes.k]));
  double points = static_cast<double>(bm) * static_cast<double>(bn);
  double operandBytes = depth * (lhsBytes * bm + rhsBytes * bn);
  double workerBytes = depth * static_cast<double>(ukernel.workers) *
                       (lhsBytes * rm + rhsBytes * rn);
  double compute = flopsPerPoint * points * depth / peak;
  double global =
      (operandBytes + outputBytes * points) / (device.dramGbps * 1e9);
  double shared =
      (operandBytes + workerBytes) / (device.sharedMemoryGbps() * 1e9);

  int64_t count = blocks(bm, bn);
  int64_t parallel = device.smCount * activeBlocks(device, resources);
  // Tiles that the device has time for until all blocks are done.
  auto slots = [&](int64_t warps) {
    if (count > parallel)
      return static_cast<double>(ceilBy(count, parallel));
    int64_t all = schedulersPerSm * device.smCount;
    return static_cast<double>(ceilBy(count * warps, all)) / warps;
  };
  int64_t warps = std::clamp<int64_t>(resources.threads / threadsPerWarp, 1,
                                      schedulersPerSm);
  return std::max(slots(warps) * std::max(compute, shared),
                  slots(schedulersPerSm) * global);
}

bool RollerModel::isRegisterTileComputeBound(int64_t rm, int64_t rn) const {
  double flops = flopsPerPoint * rm * rn;
  double bytes = lhsBytes * rm + rhsBytes * rn;
  return flops / peak >= bytes / (problem.device.sharedMemoryGbps() * 1e9);
}

bool RollerModel::isBlockTileComputeBound(int64_t bm, int64_t bn) const {
  double flops = flopsPerPoint * bm * bn;
  double bytes = lhsBytes * bm + rhsBytes * bn;
  return flops / peak >= bytes / (problem.device.dramGbps * 1e9);
}

double RollerModel::registerReuse(std::array<int64_t, 2> from,
                                  std::array<int64_t, 2> to) const {
  auto traffic = [&](const std::array<int64_t, 2> &tile) {
    return rhsBytes / tile[0] + lhsBytes / tile[1];
  };
  auto footprint = [](const std::array<int64_t, 2> &tile) {
    return static_cast<double>(tile[0] * tile[1] + tile[0] + tile[1]);
  };
  return (traffic(from) - traffic(to)) / (footprint(to) - footprint(from));
}

double RollerModel::blockReuse(std::array<int64_t, 2> from,
                               std::array<int64_t, 2> to) const {
  double m = static_cast<double>(shape[axes.m]);
  double n = static_cast<double>(shape[axes.n]);
  auto traffic = [&](const std::array<int64_t, 2> &tile) {
    return lhsBytes * m * ceilDiv(shape[axes.n], tile[1]) +
           rhsBytes * n * ceilDiv(shape[axes.m], tile[0]);
  };
  auto footprint = [&](const std::array<int64_t, 2> &tile) {
    return lhsBytes * tile[0] + rhsBytes * tile[1];
  };
  return (traffic(from) - traffic(to)) / (footprint(to) - footprint(from));
}

//===----------------------------------------------------------------------===//
// Aligned tiles
//===----------------------------------------------------------------------===//

llvm::Expected<CandidateSet>
ftuner::enumerateAlignedTiles(const SearchProblem &problem) {
  ContractionAxes axes =
      ContractionAxes::forReduceAxes(problem.workload.reduceAxes());
  return enumerateConstructibleTiles(
      problem, RegisterTiles::Powers, [&](const Candidate &candidate) {
        const UKernel &ukernel = candidate.ukernel;
        int64_t rm = ukernel.registerTile[axes.m];
        int64_t rn = ukernel.registerTile[axes.n];
        int64_t threads = candidate.resources.threads;
        // The sum over a worker's threads.
        int64_t registers = rm * rn + rm + rn;
        return threads <= tuning::maxBlockThreads &&
               registers * ukernel.workers <=
                   tuning::maxTileRegisters * threads &&
               2 * registers * ukernel.workers <=
                   problem.device.registersPerBlock;
      });
}

RollerTree::RollerTree(const SearchProblem &problem, const CandidateSet &set,
                       const CodegenModel &path)
    : problem(problem),
      axes(ContractionAxes::forReduceAxes(problem.workload.reduceAxes())),
      set(set), path(path),
      minRowBytes(
          path.createSpace(problem.workload, problem.device)->minRowBytes) {
  for (auto [index, candidate] : llvm::enumerate(set.candidates)) {
    if (&candidate.family.path() != &path)
      continue;
    threadsPerWorker = candidate.resources.threads / candidate.ukernel.workers;
    auto [reg, block] = tilesOf(axes, candidate.ukernel);
    tiles[reg].try_emplace(block, index);
    variants[{reg, block}].push_back(index);
  }
}

RollerTree::Tiles RollerTree::tilesOf(const ContractionAxes &axes,
                                      const UKernel &ukernel) {
  return {{ukernel.registerTile[axes.m], ukernel.registerTile[axes.n]},
          {ukernel.blockTile[axes.m], ukernel.blockTile[axes.n]}};
}

llvm::ArrayRef<unsigned> RollerTree::variantsOf(unsigned candidate) const {
  return variants.find(tilesOf(axes, set.candidates[candidate].ukernel))
      ->second;
}

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

namespace ftuner {
/// One tree: for a shape, a padding threshold and a least number of threads.
class RollerBuilder {
public:
  using Tile = std::array<int64_t, 2>;

  RollerBuilder(const RollerTree &tree, llvm::ArrayRef<int64_t> shape,
                const RollerModel &model,
                llvm::function_ref<bool(unsigned)> isAllowed, double epsilon,
                int64_t threadGranule, RollerCounts &counts)
      : tree(tree), extents({shape[tree.axes.m], shape[tree.axes.n]}),
        model(model), isAllowed(isAllowed), epsilon(epsilon),
        threadGranule(threadGranule), counts(counts) {}

  /// Leaves in the order of construction, at most `tuning::maxLeaves`.
  std::vector<unsigned> run();

private:
  /// Sizes of a tile along both axes, ascending, and indices of one tile.
  using Sizes = std::array<std::vector<int64_t>, 2>;
  using Steps = std::array<size_t, 2>;
  static Tile tileAt(const Sizes &sizes, const Steps &steps) {
    return {sizes[0][steps[0]], sizes[1][steps[1]]};
  }
  /// Allowed sizes among the keys of a map of tiles.
  template <typename Map>
  Sizes allowedSizes(const Map &map) const;
  /// Steps that enlarge a tile, the one with the most reuse first.
  template <typename Score>
  std::vector<Steps> growths(const Sizes &sizes, const Steps &steps,
                             Score score) const;

  void growRegisterTile(const Steps &steps);
  /// Goes on to blocks of a register tile.
  void descend(const Tile &reg);
  void growBlockTile(const Steps &steps);
  /// Returns whether the device could hold a block of the tile, whatever its
  /// warps are.
  bool fits(const Tile &block) const;
  /// Returns whether an allowed block of the register tile is larger than this
  /// one.
  bool hasLarger(const Tile &block) const;

  const RollerTree &tree;
  Tile extents;
  const RollerModel &model;
  llvm::function_ref<bool(unsigned)> isAllowed;
  double epsilon;
  int64_t threadGranule;
  RollerCounts &counts;

  Sizes registerSizes;
  std::set<Steps> seenRegisterTiles;
  /// The register tile whose blocks grow now, and its allowed blocks.
  Tile reg = {1, 1};
  const std::map<Tile, unsigned> *blocks = nullptr;
  Sizes blockSizes;
  std::set<Steps> seenBlockTiles;

  std::vector<unsigned> leaves;
  /// Tiles that are not compute bound but cannot grow.
  std::vector<unsigned> border;
};
} // namespace ftuner

template <typename Map>
RollerBuilder::Sizes RollerBuilder::allowedSizes(const Map &map) const {
  std::array<std::set<int64_t>, 2> found;
  for (const auto &entry : map)
    for (unsigned axis = 0; axis < 2; ++axis) {
      int64_t size = entry.first[axis];
      if (ceilBy(extents[axis], size) <= extents[axis] * (1 + epsilon))
        found[axis].insert(size);
    }
  Sizes sizes;
  for (unsigned axis = 0; axis < 2; ++axis)
    sizes[axis].assign(found[axis].begin(), found[axis].end());
  return sizes;
}

template <typename Score>
std::vector<RollerBuilder::Steps> RollerBuilder::growths(const Sizes &sizes,
                                                         const Steps &steps,
                                                         Score score) const {
  std::vector<std::pair<double, Steps>> scored;
  Tile from = tileAt(sizes, steps);
  for (unsigned axis = 0; axis < 2; ++axis) {
    Steps next = steps;
    if (++next[axis] < sizes[axis].size())
      scored.emplace_back(score(from, tileAt(sizes, next)), next);
  }
  llvm::stable_sort(
      scored, [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<Steps> result;
  for (const auto &entry : scored)
    result.push_back(entry.second);
  return result;
}

std::vector<unsigned> RollerBuilder::run() {
  registerSizes = allowedSizes(tree.tiles);
  if (!registerSizes[0].empty() && !registerSizes[1].empty())
    growRegisterTile({0, 0});
  if (leaves.empty())
    leaves = std::move(border);
  if (leaves.size() > tuning::maxLeaves)
    leaves.resize(tuning::maxLeaves);
  counts.blockTilesKept += leaves.size();
  return std::move(leaves);
}

void RollerBuilder::growRegisterTile(const Steps &steps) {
  if (leaves.size() == tuning::maxLeaves ||
      !seenRegisterTiles.insert(steps).second)
    return;
  ++counts.registerTiles;
  Tile tile = tileAt(registerSizes, steps);
  bool isComputeBound = model.isRegisterTileComputeBound(tile[0], tile[1]);
  if (isComputeBound)
    descend(tile);
  auto next = growths(registerSizes, steps, [&](const Tile &a, const Tile &b) {
    return model.registerReuse(a, b);
  });
  bool isFull = next.empty();
  for (const Steps &larger : next) {
    if (tree.tiles.count(tileAt(registerSizes, larger)))
      growRegisterTile(larger);
    else
      isFull = true;
  }
  if (isFull && !isComputeBound && leaves.empty())
    descend(tile);
}

void RollerBuilder::descend(const Tile &tile) {
  auto it = tree.tiles.find(tile);
  if (it == tree.tiles.end())
    return;
  ++counts.registerTilesKept;
  reg = tile;
  blocks = &it->second;
  blockSizes = allowedSizes(*blocks);
  seenBlockTiles.clear();
  if (!blockSizes[0].empty() && !blockSizes[1].empty())
    growBlockTile({0, 0});
}

bool RollerBuilder::fits(const Tile &block) const {
  int64_t workers = (block[0] / reg[0]) * (block[1] / reg[1]);
  int64_t registers = reg[0] * reg[1] + reg[0] + reg[1];
  const DeviceSpec &device = tree.problem.device;
  return workers * tree.threadsPerWorker <=
             std::min(tuning::maxBlockThreads, device.maxThreadsPerBlock) &&
         2 * registers * workers <= device.registersPerBlock &&
         tree.minRowBytes * (block[0] + block[1]) <=
             device.sharedMemoryPerBlockBytes;
}

void RollerBuilder::growBlockTile(const Steps &steps) {
  if (leaves.size() == tuning::maxLeaves ||
      !seenBlockTiles.insert(steps).second)
    return;
  ++counts.blockTiles;
  Tile tile = tileAt(blockSizes, steps);
  auto it = blocks->find(tile);
  bool isPeak =
      it != blocks->end() && isAllowed(it->second) &&
      tree.set.candidates[it->second].resources.threads % threadGranule == 0;
  bool isComputeBound = model.isBlockTileComputeBound(tile[0], tile[1]);
  if (isPeak && isComputeBound)
    leaves.push_back(it->second);
  auto next = growths(blockSizes, steps, [&](const Tile &a, const Tile &b) {
    return model.blockReuse(a, b);
  });
  bool isFull = next.empty();
  for (const Steps &larger : next) {
    if (fits(tileAt(blockSizes, larger)))
      growBlockTile(larger);
    else
      isFull = true;
  }
  if (isPeak && !isComputeBound && (isFull || !hasLarger(tile)))
    border.push_back(it->second);
}

bool RollerBuilder::hasLarger(const Tile &tile) const {
  return std::any_of(blocks->lower_bound(tile), blocks->end(),
                     [&](const auto &entry) {
                       const Tile &other = entry.first;
                       return other != tile && other[1] >= tile[1] &&
                              llvm::is_contained(blockSizes[0], other[0]) &&
                              llvm::is_contained(blockSizes[1], other[1]) &&
                              isAllowed(entry.second);
                     });
}

const unsigned *RollerTree::find(const Tile &reg, const Tile &block,
                                 Allowed isAllowed) const {
  auto outer = tiles.find(reg);
  if (outer == tiles.end())
    return nullptr;
  auto inner = outer->second.find(block);
  bool isFound = inner != outer->second.end() && isAllowed(inner->second);
  return isFound ? &inner->second : nullptr;
}

const unsigned *RollerTree::halve(const UKernel &ukernel, unsigned axis,
                                  Allowed isAllowed) const {
  auto [reg, block] = tilesOf(axes, ukernel);
  if (block[axis] % 2 != 0)
    return nullptr;
  block[axis] /= 2;
  if (reg[axis] % 2 == 0) {
    Tile halfReg = reg;
    halfReg[axis] /= 2;
    if (const unsigned *half = find(halfReg, block, isAllowed))
      return half;
  }
  if (block[axis] % reg[axis] != 0)
    return nullptr;
  Tile otherReg = reg;
  otherReg[1 - axis] /= 2;
  if (ukernel.workers * threadsPerWorker < 2 * schedulerThreads &&
      reg[1 - axis] % 2 == 0)
    if (const unsigned *half = find(otherReg, block, isAllowed))
      return half;
  return find(reg, block, isAllowed);
}

unsigned RollerTree::scaleOut(unsigned candidate, const RollerModel &model,
                              Allowed isAllowed) const {
  while (true) {
    const UKernel &u = set.candidates[candidate].ukernel;
    Tile block = tilesOf(axes, u).second;
    int64_t numBlocks = model.blocks(block[0], block[1]);
    if (numBlocks >= problem.device.smCount)
      return candidate;
    const unsigned *best = nullptr;
    double minReuse = std::numeric_limits<double>::infinity();
    for (unsigned axis = 0; axis < 2; ++axis) {
      const unsigned *half = halve(u, axis, isAllowed);
      if (!half)
        continue;
      Tile halfBlock = block;
      halfBlock[axis] /= 2;
      double reuse = model.blockReuse(halfBlock, block);
      // Halving that adds no blocks is of no use.
      if (model.blocks(halfBlock[0], halfBlock[1]) == numBlocks ||
          reuse >= minReuse)
        continue;
      best = half;
      minReuse = reuse;
    }
    if (!best)
      return candidate;
    candidate = *best;
  }
}

std::vector<unsigned> RollerTree::construct(llvm::ArrayRef<int64_t> shape,
                                            Allowed isAllowed,
                                            RollerCounts &counts) const {
  RollerModel model(problem, path, shape);
  std::vector<unsigned> leaves;
  auto add = [&](double epsilon, int64_t threadGranule) {
    counts.epsilon = epsilon;
    for (unsigned leaf : RollerBuilder(*this, shape, model, isAllowed, epsilon,
                                       threadGranule, counts)
                             .run())
      if (leaves.size() < tuning::maxLeaves &&
          !llvm::is_contained(leaves, leaf))
        leaves.push_back(leaf);
  };
  for (int64_t threadGranule : {schedulerThreads, int64_t(1)}) {
    if (!leaves.empty())
      break;
    counts.relaxedWarps = threadGranule == 1;
    for (int step = 0; step <= tuning::numEpsilonSteps; ++step)
      if (leaves.size() < tuning::maxLeaves)
        add(step * tuning::epsilonStep, threadGranule);
  }
  if (leaves.empty()) {
    counts.relaxedPadding = true;
    add(std::numeric_limits<double>::infinity(), 1);
  }
  // Allowed ones that no tree reaches, in the order of preference.
  for (unsigned i = 0; i < set.candidates.size() && leaves.empty(); ++i)
    if (&set.candidates[i].family.path() == &path && isAllowed(i))
      leaves.push_back(i);

  std::vector<unsigned> programs;
  for (unsigned leaf : leaves) {
    unsigned scaled = scaleOut(leaf, model, isAllowed);
    if (!llvm::is_contained(programs, scaled))
      programs.push_back(scaled);
  }
  return programs;
}
