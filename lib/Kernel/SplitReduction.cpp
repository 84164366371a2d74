//===- SplitReduction.cpp - Split-K in two steps --------------------------===//
#include "FTuner/Kernel/SplitReduction.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ftuner;

ukernel::FamilyAttr ftuner::wholeFamily(ukernel::FamilyAttr family) {
  return ukernel::FamilyAttr::get(
      family.getContext(), family.getSchedule(), family.getAxis(),
      family.getTiles(), family.getReduce(), /*split=*/1, family.getBalanced());
}

SmallVector<SliceBuffer, 1>
ftuner::sliceBuffersOf(ukernel::OperatorOpInterface op) {
  SmallVector<SliceBuffer, 1> buffers;
  SmallVector<int64_t> extents = ukernel::staticSizesOfDims(op);
  for (const ukernel::SliceState &state : op.getSliceStates()) {
    SliceBuffer &buffer = buffers.emplace_back();
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    for (AffineExpr position : state.map.getResults()) {
      buffer.axes.push_back(cast<AffineDimExpr>(position).getPosition());
      shape.push_back(extents[buffer.axes.back()]);
    }
    buffer.type = MemRefType::get(shape, state.elementType);
  }
  return buffers;
}
