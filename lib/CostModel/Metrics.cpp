//===- Metrics.cpp - Padding, occupancy and compute-to-memory -------------===//
#include "FTuner/CostModel/Metrics.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

ShapeMetrics::ShapeMetrics(const Workload &workload,
                           llvm::ArrayRef<int64_t> shape,
                           const DeviceSpec &device)
    : workload(workload), shape(shape.begin(), shape.end()) {
  double flops = workload.flops(shape);
  usefulPoints = flops / workload.flopsPerPoint;
  computeSeconds = flops / (device.fp32Tflops * 1e12);
  globalBytesPerSecond = device.dramGbps * 1e9;
  sharedBytesPerSecond = device.sharedMemoryGbps() * 1e9;
  smCount = static_cast<double>(device.smCount);
}

void ShapeMetrics::add(Totals &totals, const UKernel &ukernel, unsigned axis,
                       int64_t count, int64_t rows) const {
  // Blocks and padded points along each axis; a split reduce axis is padded in
  // each of its slices.
  double split = static_cast<double>(ukernel.reduceSplit);
  double blocks = split, points = 1, reduceExtent = 1;
  llvm::SmallVector<double, 4> grid(shape.size(), 1.0);
  for (unsigned i = 0; i < shape.size(); ++i) {
    int64_t tile = ukernel.smemTile[i];
    if (workload.axes[i].kind == AxisKind::Reduce) {
      points *= split * ceilBy(ceilDiv(shape[i], ukernel.reduceSplit), tile);
      reduceExtent *= static_cast<double>(shape[i]);
      continue;
    }
    grid[i] = static_cast<double>(i == axis ? count : ceilDiv(shape[i], tile));
    blocks *= grid[i];
    points *= grid[i] * tile;
  }

  double threads = static_cast<double>(ukernel.threads());
  double sharedBytes = 0;
  for (const Operand &operand : workload.operands) {
    double bytes = static_cast<double>(operand.elementBytes);
    double elements = 1, rereads = 1;
    int64_t tileElements = 0, threadElements = 0;
    llvm::SmallVector<bool, 4> indexes(shape.size(), false);
    for (unsigned i : operand.axes) {
      indexes[i] = true;
      elements *= static_cast<double>(i == axis ? rows : shape[i]);
      if (workload.axes[i].kind == AxisKind::Space) {
        tileElements += ukernel.smemTile[i];
        threadElements += ukernel.regTile[i];
      }
    }
    for (unsigned i = 0; i < shape.size(); ++i)
      if (!indexes[i])
        rereads *= grid[i];
    switch (operand.role) {
    case OperandRole::Lhs:
    case OperandRole::Rhs:
      totals.globalBytes += bytes * elements * rereads;
      sharedBytes += bytes * (tileElements + threads * threadElements);
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
  totals.sharedBytes += blocks * sharedBytes * (reduceExtent / split);
  totals.points += points;
  totals.blocks += blocks;
}

Metrics ShapeMetrics::finish(const Totals &totals) const {
  Metrics metrics;
  metrics.pad = usefulPoints / totals.points;
  metrics.occ = totals.blocks / (std::ceil(totals.blocks / smCount) * smCount);
  double memorySeconds = std::max(totals.globalBytes / globalBytesPerSecond,
                                  totals.sharedBytes / sharedBytesPerSecond);
  metrics.cmr = computeSeconds / memorySeconds;
  metrics.blocks = static_cast<int64_t>(totals.blocks);
  return metrics;
}

Metrics ShapeMetrics::ukernel(const UKernel &ukernel) const {
  Totals totals;
  int64_t extent = shape[Workload::kM];
  add(totals, ukernel, Workload::kM,
      ceilDiv(extent, ukernel.smemTile[Workload::kM]), extent);
  return finish(totals);
}

Metrics ShapeMetrics::program(const Program &program) const {
  const KernelFamily &family = *program.family;
  unsigned axis = family.combineAxis;
  Totals totals;
  // Padding lies in the last block, so the first part's rows are all real
  // unless it is alone.
  int64_t remaining = shape[axis];
  int64_t counts[] = {program.cover.first, program.cover.second};
  for (unsigned part = 0; part < family.parts.size(); ++part) {
    if (counts[part] == 0)
      continue;
    const UKernel &ukernel = family.parts[part];
    int64_t rows = std::min(remaining, counts[part] * ukernel.smemTile[axis]);
    add(totals, ukernel, axis, counts[part], rows);
    remaining -= rows;
  }
  return finish(totals);
}

Metrics ftuner::ukernelMetrics(const Workload &workload,
                               llvm::ArrayRef<int64_t> shape,
                               const UKernel &ukernel,
                               const DeviceSpec &device) {
  return ShapeMetrics(workload, shape, device).ukernel(ukernel);
}

Metrics ftuner::programMetrics(const Workload &workload,
                               llvm::ArrayRef<int64_t> shape,
                               const Program &program,
                               const DeviceSpec &device) {
  return ShapeMetrics(workload, shape, device).program(program);
}
