//===- SliceMerge.cpp - Operators that merge slices -----------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

namespace {
/// The operator's axes as loops over its output.
class OutputLoops {
public:
  explicit OutputLoops(ReductionOpInterface op) : context(op.getContext()) {
    AffineMap output =
        op.getMapOfOperand(op.getOutputOperand().getOperandNumber());
    for (AffineExpr position : output.getResults())
      axes.push_back(cast<AffineDimExpr>(position).getPosition());
  }

  size_t count() const { return axes.size(); }
  AffineMap map(ArrayRef<AffineExpr> results) const {
    return AffineMap::get(axes.size(), 0, results, context);
  }
  AffineExpr loop(unsigned number) const {
    return getAffineDimExpr(number, context);
  }
  /// The map of an operand that is indexed by axes of the output.
  AffineMap operandMap(AffineMap operand) const {
    SmallVector<AffineExpr> results;
    for (AffineExpr position : operand.getResults()) {
      unsigned axis = cast<AffineDimExpr>(position).getPosition();
      results.push_back(loop(llvm::find(axes, axis) - axes.begin()));
    }
    return map(results);
  }
  /// All loops, behind the number of a slice if there is one.
  AffineMap all(std::optional<int64_t> slice = std::nullopt) const {
    SmallVector<AffineExpr> results;
    if (slice)
      results.push_back(getAffineConstantExpr(*slice, context));
    for (unsigned number = 0; number < axes.size(); ++number)
      results.push_back(loop(number));
    return map(results);
  }

private:
  MLIRContext *context;
  SmallVector<unsigned> axes;
};
} // namespace

static Value buildSum(ImplicitLocOpBuilder &b, Value lhs, Value rhs) {
  Type type = lhs.getType();
  if (!isa<FloatType>(type)) {
    if (rhs.getType() != type)
      rhs = arith::ExtSIOp::create(b, type, rhs);
    return arith::AddIOp::create(b, lhs, rhs);
  }
  if (rhs.getType() != type)
    rhs = arith::ExtFOp::create(b, type, rhs);
  return arith::AddFOp::create(b, lhs, rhs);
}

Operation *
ftuner::ukernel::detail::buildSumOfSlices(OperatorOpInterface operation,
                                          OpBuilder &builder, int64_t numSlices,
                                          ValueRange states) {
  auto op = cast<ReductionOpInterface>(operation.getOperation());
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  OutputLoops loops(op);
  SmallVector<Value> inputs(numSlices, states.front());
  SmallVector<AffineMap> maps;
  for (int64_t slice = 0; slice < numSlices; ++slice)
    maps.push_back(loops.all(slice));
  auto read = [&](OpOperand &operand) {
    inputs.push_back(operand.get());
    maps.push_back(
        loops.operandMap(op.getMapOfOperand(operand.getOperandNumber())));
  };
  // Without an init operand the sum continues the output's own value.
  OpOperand &start = op.getStartOperand();
  bool isZero =
      !op.readsOutput() && (matchPattern(start.get(), m_AnyZeroFloat()) ||
                            matchPattern(start.get(), m_Zero()));
  bool hasInit = !op.readsOutput() && !isZero;
  if (hasInit)
    read(start);
  for (OpOperand &operand : op->getOpOperands())
    if (op.getOperandRole(operand.getOperandNumber()) == OperandRole::Extra)
      read(operand);
  maps.push_back(loops.all());
  SmallVector<utils::IteratorType> iterators(loops.count(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      b, TypeRange(), inputs, op.getOutputOperand().get(), maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, inner);
        ValueRange read = arguments.drop_back();
        Value sum = read.front();
        for (Value slice : read.slice(1, numSlices - 1))
          sum = buildSum(body, sum, slice);
        ValueRange extras = read.drop_front(numSlices);
        if (op.readsOutput()) {
          sum = buildSum(body, sum, arguments.back());
        } else if (hasInit) {
          sum = buildSum(body, sum, extras.front());
          extras = extras.drop_front();
        }
        if (op.hasEpilogue()) {
          Block &epilogue = op.getEpilogue().front();
          IRMapping mapping;
          mapping.map(epilogue.getArgument(0), sum);
          mapping.map(epilogue.getArguments().drop_front(), extras);
          for (Operation &nested : epilogue.without_terminator())
            body.clone(nested, mapping);
          sum =
              mapping.lookupOrDefault(epilogue.getTerminator()->getOperand(0));
        }
        linalg::YieldOp::create(body, sum);
      });
}
