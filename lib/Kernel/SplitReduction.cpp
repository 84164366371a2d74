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

MemRefType ftuner::slicesType(ukernel::OperatorOpInterface op) {
  auto output = cast<MemRefType>(op.getOutputOperand().get().getType());
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  llvm::append_range(shape, output.getShape());
  return MemRefType::get(shape, op.getAccumulatorType());
}
