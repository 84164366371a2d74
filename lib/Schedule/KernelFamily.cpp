//===- KernelFamily.cpp - Kernel families and their partitions
//----------------===//
#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/Grid.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace ftuner;

/// Far beyond what shared memory holds; threads and bytes of such tiles still
/// fit in 64 bits.
static constexpr int64_t maxTile = 1 << 20;

std::string ftuner::tileText(llvm::ArrayRef<int64_t> values) {
  auto texts = llvm::map_range(
      values, [](int64_t value) { return std::to_string(value); });
  return "[" + llvm::join(texts, ",") + "]";
}

std::string UKernel::str() const {
  std::string text = tileText(blockTile) + "/" + tileText(registerTile);
  if (reduceSplit != 1)
    text += "/split" + std::to_string(reduceSplit);
  return text;
}

int64_t KernelFamily::threads() const { return path().threads(*this); }

int64_t KernelFamily::alignment() const { return path().alignment(schedule); }

bool KernelFamily::takesAnyAlignment() const {
  return path().takesAnyAlignment(schedule);
}

int64_t KernelFamily::clusterBlocks() const {
  return path().cluster(schedule).blocks;
}

int64_t CodegenModel::numSliceStates(const KernelFamily &family) const {
  return family.reduceSplit;
}

UKernel CodegenModel::ukernel(const KernelFamily &family, unsigned part) const {
  UKernel ukernel;
  ukernel.blockTile = family.tiles[part];
  ukernel.registerTile.assign(ukernel.blockTile.size(), 1);
  ukernel.workers = threads(family);
  ukernel.reduceSplit = family.reduceSplit;
  return ukernel;
}

UKernel KernelFamily::ukernel(unsigned part) const {
  return path().ukernel(*this, part);
}

std::string KernelFamily::str() const {
  if (!schedule.isSet())
    return "without a schedule";
  std::string text = path().name().str();
  for (unsigned part = 0; part < tiles.size(); ++part)
    text += (part ? " + " : " ") + ukernel(part).str();
  text += " axis " + std::to_string(combineAxis) + " " + schedule.str();
  if (balancedSms)
    text += " balanced over " + std::to_string(balancedSms);
  return text;
}

llvm::Error ftuner::checkTiles(const Workload &workload,
                               const KernelFamily &family) {
  using llvm::Twine;
  size_t rank = workload.axes.size();
  AxisSet reduceAxes = workload.reduceAxes();
  unsigned combine = family.combineAxis;
  if (family.tiles.empty() || family.tiles.size() > 2)
    return llvm::createStringError("expected one or two parts, but got " +
                                   Twine(family.tiles.size()));
  if (combine >= rank || reduceAxes.contains(combine))
    return llvm::createStringError(
        "expected parts along a space axis, but got axis " + Twine(combine));
  for (const BlockTile &tile : family.tiles) {
    if (tile.size() != rank)
      return llvm::createStringError("expected tiles of " + Twine(rank) +
                                     " axes, but got " + tileText(tile));
    for (unsigned axis = 0; axis < rank; ++axis)
      if (tile[axis] < 1 || tile[axis] > maxTile)
        return llvm::createStringError(
            "axis " + Twine(axis) + ": expected a block tile of 1 to " +
            Twine(maxTile) + ", but got " + Twine(tile[axis]));
  }
  for (unsigned axis = 0; axis < rank; ++axis) {
    int64_t low = family.tiles.front()[axis], high = family.tiles.back()[axis];
    if (family.tiles.size() == 2 &&
        (axis == combine ? low >= high : low != high))
      return llvm::createStringError(
          "axis " + Twine(axis) +
          ": expected ascending heights on the combine axis and "
          "equal tiles elsewhere, but got " +
          tileText(family.tiles.front()) + " and " +
          tileText(family.tiles.back()));
    if (family.isReduceAxis(axis) != reduceAxes.contains(axis))
      return llvm::createStringError(
          "axis " + Twine(axis) +
          ": expected a family of the workload's reduce axes");
  }
  if (family.reduceSplit < 1 || family.reduceSplit > maxExtent)
    return llvm::createStringError("expected a split-K factor of 1 to " +
                                   Twine(maxExtent) + ", but got " +
                                   Twine(family.reduceSplit));
  if (family.balancedSms < 0 || family.balancedSms > maxBalancedSms ||
      (family.balancedSms > 0 && family.tiles.size() != 2))
    return llvm::createStringError(
        "expected balanced partitions of two ascending heights over a "
        "positive number of SMs, but got " +
        Twine(family.balancedSms) + " for " + Twine(family.tiles.size()) +
        " tiles");
  return llvm::Error::success();
}

/// How the family covers its combine axis.
static PartitionRule partitionRuleOf(const KernelFamily &family) {
  PartitionRule rule;
  rule.first = family.lowHeight();
  if (family.tiles.size() == 2)
    rule.second = family.highHeight();
  rule.balancedSms = family.balancedSms;
  return rule;
}

Grid ftuner::gridOf(const KernelFamily &family) {
  PartitionRule rule = partitionRuleOf(family);
  Grid grid;
  grid.tile = family.tiles.front();
  grid.combineAxis = family.combineAxis;
  grid.reduceAxes = family.reduceAxes;
  grid.secondHeight = rule.second;
  grid.balancedSms = rule.balancedSms;
  grid.reduceSplit = family.reduceSplit;
  if (family.schedule.isSet()) {
    ClusterShape cluster = family.path().cluster(family.schedule);
    grid.clusterBlocks = cluster.blocks;
    grid.clusterAxis = cluster.axis;
    grid.persistentBlocks = family.path().persistentBlocks(family.schedule);
    grid.swizzleRows = family.path().swizzleRows(family);
  }
  return grid;
}

int64_t ftuner::blocksBeside(const KernelFamily &family,
                             llvm::ArrayRef<int64_t> shape) {
  // Like `blocksBeside` of the grid, which is not made: searches ask for many
  // shapes.
  int64_t blocks = family.reduceSplit;
  if (family.schedule.isSet())
    blocks *= family.clusterBlocks();
  const BlockTile &tile = family.tiles.front();
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axis != family.combineAxis && !family.isReduceAxis(axis))
      blocks *= ceilDiv(shape[axis], tile[axis]);
  return std::max<int64_t>(blocks, 1);
}

Partition ftuner::partitionShape(const KernelFamily &family,
                                 llvm::ArrayRef<int64_t> shape) {
  int64_t beside = family.balancedSms ? blocksBeside(family, shape) : 1;
  return partitionExtent(family, shape[family.combineAxis], beside);
}

Partition ftuner::partitionExtent(const KernelFamily &family, int64_t extent,
                                  int64_t blocksBeside) {
  return partitionExtent(partitionRuleOf(family), extent, blocksBeside);
}

KernelFamily ftuner::runningParts(const KernelFamily &family,
                                  const Partition &partition) {
  KernelFamily running = family;
  if (family.tiles.size() == 2 &&
      (partition.first == 0 || partition.second == 0)) {
    running.tiles.erase(running.tiles.begin() + (partition.first > 0 ? 1 : 0));
    running.balancedSms = 0;
  }
  return running;
}

size_t ProgramNumbersHash::operator()(
    const llvm::SmallVector<int64_t, 40> &numbers) const {
  return llvm::hash_combine_range(numbers.begin(), numbers.end());
}

llvm::SmallVector<int64_t, 40> ftuner::programNumbers(const Program &program) {
  const KernelFamily &family = *program.family;
  llvm::SmallVector<int64_t, 40> numbers = {
      static_cast<int64_t>(reinterpret_cast<intptr_t>(&family.path())),
      family.combineAxis, family.reduceSplit};
  int64_t counts[] = {program.partition.first, program.partition.second};
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    if (counts[part] == 0)
      continue;
    numbers.push_back(counts[part]);
    numbers.append(family.tiles[part].begin(), family.tiles[part].end());
  }
  // Behind the tiles, as many as their number tells.
  llvm::append_range(numbers, family.schedule.fields());
  return numbers;
}
