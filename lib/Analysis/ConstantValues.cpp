//===- ConstantValues.cpp - Values that constants determine ---------------===//
#include "FTuner/Analysis/ConstantValues.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::hasConstantOperands(Operation *op,
                                 const DenseSet<Value> &constants) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return constants.contains(operand);
  });
}

/// Returns whether the results of an operation depend only on its operands.
static bool isFunctionOfOperands(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || op->hasAttr(kConstantAttrName))
    return true;
  if (op->isRegistered())
    return !isa<CallOpInterface>(op) && isMemoryEffectFree(op);
  // A barrier hides its operand on purpose.
  StringRef name = op->getName().stripDialect();
  return op->getNumOperands() > 0 && op->getNumRegions() == 0 &&
         !name.contains("call") && !name.contains("barrier");
}

DenseSet<Value> ftuner::findConstantValues(FunctionOpInterface function) {
  DenseSet<Value> constants;
  // Operands are defined before the operations that take them.
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!hasConstantOperands(op, constants) || !isFunctionOfOperands(op))
      return;
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    if (llvm::all_of(captured,
                     [&](Value value) { return constants.contains(value); }))
      constants.insert_range(op->getResults());
  });
  return constants;
}
