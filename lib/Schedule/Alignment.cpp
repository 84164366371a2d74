//===- Alignment.cpp - Alignment of operands ------------------------------===//
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Workload/Pointwise.h"
#include "FTuner/Workload/RowReduction.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>

using namespace ftuner;

/// Bytes of a word, which the narrowest vectors are.
static constexpr int64_t wordBytes = 4;

/// Returns whether an operand is moved one element at a time: what the epilogue
/// accesses, if it has booleans, which are bytes in memory and not in vectors,
/// and inputs whose windows have an odd number of neighbours in memory.
static bool isMovedByElements(const Workload &workload,
                              const Operand &operand) {
  if (!isInput(operand.role))
    return operand.elementType == ElementType::I1;
  return workload.contiguousRun(operand).value_or(0) % 2 == 1;
}

bool ftuner::hasVectorEpilogue(const Workload &workload) {
  const Operand *output = workload.find(OperandRole::Output);
  std::optional<unsigned> axis =
      output ? output->contiguousAxis() : std::nullopt;
  if (!axis || !workload.isContraction())
    return true;
  const SizeRange &range = workload.axes[*axis].range;
  return !range.isFixed() ||
         llvm::none_of(workload.operands, [&](const Operand &operand) {
           return !isInput(operand.role) &&
                  !isMovedByElements(workload, operand) && !operand.isPitched &&
                  operand.contiguousAxis() == axis &&
                  range.min * operand.elementBytes % wordBytes != 0;
         });
}

bool ftuner::isVectorAccess(const Workload &workload, const Operand &operand) {
  if (std::optional<PointwiseView> points = workload.asPointwise())
    return points->isVector(operand);
  std::optional<unsigned> axis = operand.contiguousAxis();
  if (!axis || isMovedByElements(workload, operand))
    return false;
  if (!workload.find(OperandRole::Lhs))
    if (std::optional<RowReductionView> rows = workload.asRowReduction())
      // Lanes read the booleans of a row one at a time, up to its end.
      return rows->isAlongLanes(operand) &&
             !(operand.elementType == ElementType::I1 &&
               rows->laneAxis() == rows->row());
  if (isInput(operand.role))
    return true;
  const Operand *output = workload.find(OperandRole::Output);
  return output && output->contiguousAxis() == axis &&
         hasVectorEpilogue(workload);
}

/// The largest power of two that divides `bytes` (any for 0), at most
/// `widestAccessBytes`.
static int64_t alignmentOfBytes(int64_t bytes) {
  bytes |= widestAccessBytes;
  return bytes & -bytes;
}

/// Returns the widest accesses whose vectors of points do not reach from one
/// row into the next. Rows of a length that is not known are taken to be whole
/// vectors, as dispatch checks.
static int64_t pointAlignment(const PointwiseView &points) {
  std::optional<int64_t> length = points.rowLength();
  return points.hasTrips() && length
             ? alignmentOfBytes(*length * points.widestBytes())
             : widestAccessBytes;
}

/// The least alignment over operands that vectors access.
static int64_t
leastAlignment(const Workload &workload,
               llvm::function_ref<int64_t(unsigned axis, int64_t elementBytes)>
                   alignmentAlong) {
  if (std::optional<PointwiseView> points = workload.asPointwise())
    return pointAlignment(*points);
  int64_t alignment = widestAccessBytes;
  for (const Operand &operand : workload.operands) {
    if (!isVectorAccess(workload, operand) || operand.isPitched)
      continue;
    // A vector must not reach from one run into the next.
    std::optional<int64_t> run = workload.contiguousRun(operand);
    alignment =
        std::min(alignment, run ? alignmentOfBytes(*run * operand.elementBytes)
                                : alignmentAlong(*operand.contiguousAxis(),
                                                 operand.elementBytes));
  }
  return alignment;
}

int64_t ftuner::alignmentOf(const Workload &workload,
                            llvm::ArrayRef<int64_t> shape) {
  return leastAlignment(workload, [&](unsigned axis, int64_t elementBytes) {
    return alignmentOfBytes(shape[axis] * elementBytes);
  });
}

int64_t ftuner::guaranteedAlignment(const Workload &workload) {
  if (std::optional<PointwiseView> points = workload.asPointwise();
      points && points->hasTrips() && !points->rowLength())
    return 1;
  return leastAlignment(workload, [&](unsigned axis, int64_t elementBytes) {
    const SizeRange &range = workload.axes[axis].range;
    int64_t alignment = alignmentOfBytes(range.min * elementBytes);
    if (range.isFixed())
      return alignment;
    return std::min(alignment, alignmentOfBytes(range.step * elementBytes));
  });
}

/// A size of the axis that the largest power of two up to `widestAccessBytes`
/// divides: bytes of a row are as aligned as they can be.
static int64_t mostAlignedSize(const Axis &axis) {
  int64_t size = smallestSize(axis), best = size;
  // Sizes modulo the widest access repeat after at most as many steps.
  for (int64_t tries = 1; tries < widestAccessBytes; ++tries) {
    size += axis.range.step;
    if (!axis.range.contains(size))
      break;
    if (alignmentOfBytes(size) > alignmentOfBytes(best))
      best = size;
  }
  return best;
}

int64_t ftuner::reachableAlignment(const Workload &workload) {
  Shape shape;
  for (const Axis &axis : workload.axes)
    shape.push_back(mostAlignedSize(axis));
  return alignmentOf(workload, shape);
}

int64_t ftuner::naturalAlignment(const Workload &workload) {
  int64_t alignment = 1;
  for (const Operand &operand : workload.operands)
    if (!operand.axes.empty())
      alignment = std::max(alignment, operand.elementBytes);
  return alignment;
}
