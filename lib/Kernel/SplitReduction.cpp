//===- SplitReduction.cpp - Split-K in two steps --------------------------===//
#include "FTuner/Kernel/SplitReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ftuner;

ukernel::FamilyAttr ftuner::wholeFamily(ukernel::FamilyAttr family) {
  return ukernel::FamilyAttr::get(
      family.getContext(), family.getSchedule(), family.getAxis(),
      family.getTiles(), family.getReduce(), /*split=*/1, family.getBalanced());
}

MemRefType ftuner::slicesType(ukernel::WorkloadOp op) {
  auto output = cast<MemRefType>(op.getOutput().getType());
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  llvm::append_range(shape, output.getShape());
  return MemRefType::get(shape, op.getAccumulatorType());
}

ukernel::WorkloadOp ftuner::buildSliceOperator(OpBuilder &builder,
                                               ukernel::WorkloadOp op,
                                               Value sums) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Type type = op.getAccumulatorType();
  Value zero = arith::ConstantOp::create(b, type, b.getZeroAttr(type));
  SmallVector<AffineMap> maps = {op.getLhsMap(), op.getRhsMap()};
  for (unsigned index = 0; index < op.getInputs().size(); ++index)
    maps.push_back(op.getInputMap(index));
  maps.push_back(op.getOutputMap());
  auto slice = ukernel::WorkloadOp::create(
      b, TypeRange(), op.getLhs(), op.getRhs(), op.getInputs(), zero,
      /*extras=*/ValueRange(), sums, b.getAffineMapArrayAttr(maps),
      /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr(),
      op.getPrecisionAttr(), op.getTruncatedAttr(), op.getPackedAttr(),
      /*epiloguesCount=*/0);
  IRMapping mapping;
  op.getContract().cloneInto(&slice.getContract(), mapping);
  return slice;
}

namespace {
/// The operator's axes as loops over its output.
class OutputLoops {
public:
  explicit OutputLoops(ukernel::WorkloadOp op) : context(op.getContext()) {
    for (AffineExpr position : op.getOutputMap().getResults())
      axes.push_back(cast<AffineDimExpr>(position).getPosition());
  }

  size_t count() const { return axes.size(); }
  AffineMap map(ArrayRef<AffineExpr> results) const {
    return AffineMap::get(axes.size(), 0, results, context);
  }
  AffineExpr loop(unsigned number) const {
    return getAffineDimExpr(number, context);
  }
  /// Of an operand that is indexed by axes of the output.
  AffineMap of(AffineMap operand) const {
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

linalg::GenericOp ftuner::buildSumOfSlices(OpBuilder &builder,
                                           ukernel::WorkloadOp op,
                                           int64_t numSlices, Value slices) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  OutputLoops loops(op);
  SmallVector<Value> inputs(numSlices, slices);
  SmallVector<AffineMap> maps;
  for (int64_t slice = 0; slice < numSlices; ++slice)
    maps.push_back(loops.all(slice));
  Value init = op.getInit();
  bool isZero = init && (matchPattern(init, m_AnyZeroFloat()) ||
                         matchPattern(init, m_Zero()));
  if (init && !isZero) {
    inputs.push_back(init);
    AffineMap map = op.getInitMap();
    maps.push_back(map ? loops.of(map) : loops.map({}));
  }
  for (auto [index, extra] : llvm::enumerate(op.getExtras())) {
    inputs.push_back(extra);
    maps.push_back(loops.of(op.getExtraMap(index)));
  }
  maps.push_back(loops.all());
  SmallVector<utils::IteratorType> iterators(loops.count(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      b, TypeRange(), inputs, op.getOutput(), maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder body(loc, inner);
        ValueRange read = arguments.drop_back();
        Value sum = read.front();
        for (Value slice : read.slice(1, numSlices - 1))
          sum = buildSum(body, sum, slice);
        ValueRange extras = read.drop_front(numSlices);
        // Without an init operand the sum continues the output's own value.
        if (!init) {
          sum = buildSum(body, sum, arguments.back());
        } else if (!isZero) {
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
