//===- Strides.cpp - Strides of joined dimensions -------------------------===//
#include "FTuner/Dialect/UKernel/Utils/Strides.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

bool ftuner::haveOneStride(MemRefType type, int64_t first, int64_t count) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (dim > first && dim < first + count)
      groups.back().push_back(dim);
    else
      groups.emplace_back(1, dim);
  }
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(type, groups))
    return false;
  MemRefType collapsed =
      memref::CollapseShapeOp::computeCollapsedType(type, groups);
  int64_t stride = type.getStridesAndOffset().first[first + count - 1];
  return collapsed.getStridesAndOffset().first[first] == stride;
}
