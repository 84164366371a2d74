//===- Alignment.cpp - Alignment of operands ------------------------------===//
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <algorithm>

using namespace ftuner;

bool ftuner::isVectorAccess(const Workload &workload, const Operand &operand) {
  std::optional<unsigned> axis = operand.contiguousAxis();
  if (!axis)
    return false;
  if (operand.role == OperandRole::Lhs || operand.role == OperandRole::Rhs)
    return true;
  const Operand *output = workload.find(OperandRole::Output);
  return output && output->contiguousAxis() == axis;
}

/// The largest power of two that divides `bytes` (any for 0), at most
/// `widestAccessBytes`.
static int64_t alignmentOfBytes(int64_t bytes) {
  bytes |= widestAccessBytes;
  return bytes & -bytes;
}

/// The least alignment over operands that vectors access.
static int64_t
leastAlignment(const Workload &workload,
               llvm::function_ref<int64_t(unsigned axis, int64_t elementBytes)>
                   alignmentAlong) {
  int64_t alignment = widestAccessBytes;
  for (const Operand &operand : workload.operands)
    if (isVectorAccess(workload, operand))
      alignment = std::min(alignment, alignmentAlong(*operand.contiguousAxis(),
                                                     operand.elementBytes));
  return alignment;
}

int64_t ftuner::alignmentOf(const Workload &workload,
                            llvm::ArrayRef<int64_t> shape) {
  return leastAlignment(workload, [&](unsigned axis, int64_t elementBytes) {
    return alignmentOfBytes(shape[axis] * elementBytes);
  });
}

int64_t ftuner::guaranteedAlignment(const Workload &workload) {
  return leastAlignment(workload, [&](unsigned axis, int64_t elementBytes) {
    const SizeRange &range = workload.axes[axis].range;
    int64_t alignment = alignmentOfBytes(range.min * elementBytes);
    if (range.isFixed())
      return alignment;
    return std::min(alignment, alignmentOfBytes(range.step * elementBytes));
  });
}

int64_t ftuner::reachableAlignment(const Workload &workload) {
  int64_t alignment = guaranteedAlignment(workload);
  if (alignment == widestAccessBytes)
    return alignment;
  int64_t leastBytes = widestAccessBytes;
  for (const Operand &operand : workload.operands)
    if (isVectorAccess(workload, operand))
      leastBytes = std::min(leastBytes, operand.elementBytes);
  // Sizes that are multiples of the widest vector where the range holds one.
  int64_t elements = widestAccessBytes / leastBytes;
  Shape shape;
  for (const Axis &axis : workload.axes) {
    int64_t size = smallestSize(axis);
    for (int64_t tries = 1; tries < elements && size % elements != 0; ++tries)
      if (axis.range.contains(size + axis.range.step))
        size += axis.range.step;
    shape.push_back(size);
  }
  return alignmentOf(workload, shape);
}

int64_t ftuner::naturalAlignment(const Workload &workload) {
  int64_t alignment = 1;
  for (const Operand &operand : workload.operands)
    if (!operand.axes.empty())
      alignment = std::max(alignment, operand.elementBytes);
  return alignment;
}
