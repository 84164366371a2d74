//===- Tolerance.cpp - How exact a result can be --------------------------===//
#include "FTuner/Executor/Executor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ftuner {

/// The float type that an operation rounds to, if it does.
static std::optional<ElementType> getRoundedType(Operation *op) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      op->hasTrait<OpTrait::ConstantLike>() || isa<arith::ExtFOp>(op))
    return std::nullopt;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  return std::nullopt;
}

double getRoundingTolerance(FunctionOpInterface function) {
  llvm::SetVector<Operation *> functions;
  functions.insert(function);
  double tolerance = 0;
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i]->walk([&](Operation *op) {
      if (std::optional<ElementType> type = getRoundedType(op))
        tolerance = std::max(tolerance, getDefaultTolerance(*type));
      if (auto call = dyn_cast<CallOpInterface>(op))
        if (Operation *callee = call.resolveCallable())
          functions.insert(callee);
    });
  return tolerance;
}

} // namespace ftuner
