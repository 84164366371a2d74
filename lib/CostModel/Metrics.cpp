//===- Metrics.cpp - Padding, occupancy and compute-to-memory -------------===//
#include "FTuner/CostModel/Metrics.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

/// A number of blocks as an integer, at most `maxBlocks`.
static int64_t blockCount(double blocks) {
  return static_cast<int64_t>(std::min(blocks, static_cast<double>(maxBlocks)));
}

/// Returns the bytes that a block writes to shared memory and its workers read
/// from it, for each element of the reduce axis (dataTrans of equation 7).
static double sharedBytesPerReduceElement(const Workload &workload,
                                          const UKernel &ukernel) {
  double workers = static_cast<double>(ukernel.workers), sum = 0;
  ContractionAxes axes = ContractionAxes::forReduceAxes(workload.reduceAxes());
  for (const Operand &operand : workload.operands) {
    if (operand.role != OperandRole::Lhs && operand.role != OperandRole::Rhs)
      continue;
    int64_t tileElements = 0, workerElements = 0;
    for (unsigned axis : AxisSet::containing(operand.axes).list())
      if (axis == axes.m || axis == axes.n) {
        tileElements += ukernel.blockTile[axis];
        workerElements += ukernel.registerTile[axis];
      }
    // Once for each element of the batch.
    for (unsigned axis = 0; axis < ukernel.blockTile.size(); ++axis)
      if (axes.isBatch(axis)) {
        if (llvm::is_contained(operand.axes, axis))
          tileElements *= ukernel.blockTile[axis];
        workerElements *= ukernel.registerTile[axis];
      }
    sum += static_cast<double>(operand.elementBytes) *
           (tileElements + workers * workerElements);
  }
  return sum;
}

MetricRates::MetricRates(const DeviceSpec &device, MetricOptions options)
    : globalBytesPerSecond(device.dramGbps * 1e9),
      sharedBytesPerSecond(device.sharedMemoryGbps() * 1e9), device(device) {
  if (options.bandwidths == Bandwidths::Datasheet ||
      !device.hasMeasuredBandwidths())
    return;
  globalBytesPerSecond = *device.measuredDramGbps * 1e9;
  sharedBytesPerSecond = *device.measuredSharedMemoryGbps * 1e9;
  measured = device;
  measured->fp32Tflops = device.measuredFp32Tflops.value_or(device.fp32Tflops);
}

ShapeMetrics::ShapeMetrics(const Workload &workload,
                           llvm::ArrayRef<int64_t> shape,
                           const DeviceSpec &device, MetricOptions options)
    : workload(workload), rates(device, options),
      shape(shape.begin(), shape.end()),
      flops(workload.flops(workload.mainComputation(), shape)) {
  usefulPoints = workload.points(workload.mainComputation().axes, shape);
  smCount = static_cast<double>(device.smCount);
}

void ShapeMetrics::add(Totals &totals, const KernelFamily &family,
                       unsigned part, int64_t count, int64_t rows) const {
  UKernel ukernel = family.ukernel(part);
  unsigned axis = family.combineAxis;
  // Tiles and padded points along each axis; a split reduce axis is padded in
  // each of its slices.
  double split = static_cast<double>(ukernel.reduceSplit);
  double tiles = split, points = 1, reduceExtent = 1;
  llvm::SmallVector<double, 4> grid(shape.size(), 1.0);
  AxisSet reduceAxes = workload.reduceAxes();
  for (unsigned i = 0; i < shape.size(); ++i) {
    int64_t tile = ukernel.blockTile[i];
    if (reduceAxes.contains(i)) {
      points *= split * ceilBy(ceilDiv(shape[i], ukernel.reduceSplit), tile);
      reduceExtent *= static_cast<double>(shape[i]);
      continue;
    }
    grid[i] = static_cast<double>(i == axis ? count : ceilDiv(shape[i], tile));
    tiles *= grid[i];
    points *= grid[i] * tile;
  }

  double sharedBytes = sharedBytesPerReduceElement(workload, ukernel);
  Shape ofPart(shape);
  ofPart[axis] = rows;
  for (const Operand &operand : workload.operands) {
    double bytes = static_cast<double>(operand.elementBytes);
    double elements = workload.elements(operand, ofPart), rereads = 1;
    for (unsigned i = 0; i < shape.size(); ++i)
      if (!llvm::is_contained(operand.axes, i))
        rereads *= grid[i];
    switch (operand.role) {
    case OperandRole::Lhs:
    case OperandRole::Rhs:
    case OperandRole::Input:
      totals.globalBytes += bytes * elements * rereads;
      break;
    case OperandRole::Init:
    case OperandRole::Extra:
      totals.globalBytes += bytes * elements;
      break;
    case OperandRole::Output:
      totals.globalBytes += bytes * elements * split;
      break;
    }
  }
  totals.sharedBytes += tiles * sharedBytes * (reduceExtent / split);
  totals.points += points;
  totals.blocks += tiles * static_cast<double>(family.clusterBlocks());
}

Metrics ShapeMetrics::finish(const Totals &totals,
                             const CodegenModel &path) const {
  Metrics metrics;
  metrics.pad = usefulPoints / totals.points;
  metrics.occ = totals.blocks / (std::ceil(totals.blocks / smCount) * smCount);
  double memorySeconds =
      std::max(totals.globalBytes / rates.globalBytesPerSecond,
               totals.sharedBytes / rates.sharedBytesPerSecond);
  double computeSeconds = flops / rates.flopsPerSecond(path, workload);
  metrics.cmr = computeSeconds / memorySeconds;
  metrics.blocks = blockCount(totals.blocks);
  return metrics;
}

Metrics ShapeMetrics::ukernel(const KernelFamily &family, unsigned part) const {
  Totals totals;
  unsigned axis = family.combineAxis;
  add(totals, family, part, ceilDiv(shape[axis], family.height(part)),
      shape[axis]);
  return finish(totals, family.path());
}

Metrics ShapeMetrics::program(const Program &program) const {
  const KernelFamily &family = *program.family;
  unsigned axis = family.combineAxis;
  Totals totals;
  // Padding lies in the last block, so the first part's rows are all real
  // unless it is alone.
  int64_t remaining = shape[axis];
  int64_t counts[] = {program.partition.first, program.partition.second};
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    if (counts[part] == 0)
      continue;
    int64_t rows = std::min(remaining, counts[part] * family.height(part));
    add(totals, family, part, counts[part], rows);
    remaining -= rows;
  }
  return finish(totals, family.path());
}

Metrics ftuner::ukernelMetrics(const Workload &workload,
                               llvm::ArrayRef<int64_t> shape,
                               const KernelFamily &family, unsigned part,
                               const DeviceSpec &device,
                               MetricOptions options) {
  return ShapeMetrics(workload, shape, device, options).ukernel(family, part);
}

Metrics ftuner::programMetrics(const Workload &workload,
                               llvm::ArrayRef<int64_t> shape,
                               const Program &program, const DeviceSpec &device,
                               MetricOptions options) {
  return ShapeMetrics(workload, shape, device, options).program(program);
}

//===----------------------------------------------------------------------===//
// FactoredMetrics
//===----------------------------------------------------------------------===//

/// The number of `value` in `values`, to which it is added if it is new.
template <typename T>
static unsigned numberOf(std::vector<T> &values, const T &value) {
  auto it = llvm::find(values, value);
  if (it == values.end())
    it = values.insert(it, value);
  return it - values.begin();
}

FactoredMetrics::FactoredMetrics(const Workload &workload,
                                 const DeviceSpec &device,
                                 const CodegenModel &path,
                                 llvm::ArrayRef<UKernel> ukernels,
                                 MetricOptions options)
    : workload(workload), device(device), path(path), rates(device, options),
      axes(ContractionAxes::forReduceAxes(workload.reduceAxes())) {
  for (const UKernel &ukernel : ukernels) {
    Entry entry;
    entry.m = numberOf(tilesM, ukernel.blockTile[axes.m]);
    entry.n = numberOf(tilesN, ukernel.blockTile[axes.n]);
    entry.k = numberOf(
        tilesK, ReduceTile{ukernel.blockTile[axes.k], ukernel.reduceSplit});
    BlockTile batch(ukernel.blockTile);
    for (unsigned axis = 0; axis < batch.size(); ++axis)
      if (!axes.isBatch(axis))
        batch[axis] = 1;
    entry.batch = numberOf(batchTiles, batch);
    entry.sharedBytes = sharedBytesPerReduceElement(workload, ukernel);
    entries.push_back(entry);
  }
}

void FactoredMetrics::evaluate(llvm::ArrayRef<int64_t> shape,
                               std::vector<Metrics> &result) const {
  // Blocks along an axis, and the share of their points that is useful.
  struct Tiling {
    double grid, pad;
  };
  auto tilings = [](int64_t extent, llvm::ArrayRef<int64_t> tiles) {
    std::vector<Tiling> result;
    for (int64_t tile : tiles) {
      double grid = static_cast<double>(ceilDiv(extent, tile));
      result.push_back({grid, extent / (grid * tile)});
    }
    return result;
  };
  std::vector<Tiling> m = tilings(shape[axes.m], tilesM);
  std::vector<Tiling> n = tilings(shape[axes.n], tilesN);
  int64_t reduceExtent = shape[axes.k];
  std::vector<double> padK;
  for (const ReduceTile &tile : tilesK)
    padK.push_back(
        static_cast<double>(reduceExtent) /
        (tile.split * ceilBy(ceilDiv(reduceExtent, tile.split), tile.size)));

  // Of each tile of batch axes: the bytes of each kind of operand, those read
  // once for every block along n, m or both, those moved once, and the output.
  struct Batches {
    double grid = 1, pad = 1;
    double perN = 0, perM = 0, perBlock = 0, once = 0, output = 0;
  };
  std::vector<Batches> batches;
  for (const BlockTile &tile : batchTiles) {
    Batches &next = batches.emplace_back();
    llvm::SmallVector<double, 5> grid(shape.size(), 1);
    for (unsigned axis = 0; axis < shape.size(); ++axis)
      if (axes.isBatch(axis)) {
        grid[axis] = static_cast<double>(ceilDiv(shape[axis], tile[axis]));
        next.grid *= grid[axis];
        next.pad *= shape[axis] / (grid[axis] * tile[axis]);
      }
    for (const Operand &operand : workload.operands) {
      double bytes = static_cast<double>(operand.elementBytes) *
                     workload.elements(operand, shape);
      if (operand.role == OperandRole::Output) {
        next.output += bytes;
        continue;
      }
      if (operand.role != OperandRole::Lhs &&
          operand.role != OperandRole::Rhs) {
        next.once += bytes;
        continue;
      }
      for (unsigned axis = 0; axis < shape.size(); ++axis)
        if (!llvm::is_contained(operand.axes, axis))
          bytes *= grid[axis];
      bool hasM = llvm::is_contained(operand.axes, axes.m);
      bool hasN = llvm::is_contained(operand.axes, axes.n);
      (hasM ? (hasN ? next.once : next.perN)
            : (hasN ? next.perM : next.perBlock)) += bytes;
    }
  }

  double flops = workload.flops(workload.mainComputation(), shape);
  double computeSeconds = flops / rates.flopsPerSecond(path, workload);
  double globalSeconds = 1 / rates.globalBytesPerSecond;
  double sharedSeconds =
      static_cast<double>(reduceExtent) / rates.sharedBytesPerSecond;
  double smCount = static_cast<double>(device.smCount);
  result.resize(entries.size());
  for (auto [entry, metrics] : llvm::zip_equal(entries, result)) {
    const Tiling &tilingM = m[entry.m], &tilingN = n[entry.n];
    double split = static_cast<double>(tilesK[entry.k].split);
    const Batches &batch = batches[entry.batch];
    double tiles = tilingM.grid * tilingN.grid * batch.grid;
    double blocks = tiles * split;
    double globalBytes = batch.perN * tilingN.grid + batch.perM * tilingM.grid +
                         batch.perBlock * tilingM.grid * tilingN.grid +
                         batch.once + batch.output * split;
    metrics.pad = tilingM.pad * tilingN.pad * padK[entry.k] * batch.pad;
    metrics.occ = blocks / (std::ceil(blocks / smCount) * smCount);
    metrics.cmr =
        computeSeconds / std::max(globalBytes * globalSeconds,
                                  tiles * entry.sharedBytes * sharedSeconds);
    metrics.blocks = blockCount(blocks);
  }
}
