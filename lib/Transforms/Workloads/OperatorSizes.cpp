//===- OperatorSizes.cpp - Sizes of an operator's axes --------------------===//
#include "OperatorSizes.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace ftuner;
using ukernel::OperatorOpInterface;

static std::string operandName(OperatorOpInterface op, unsigned number) {
  OperandRole role = op.getOperandRole(number);
  unsigned first = number;
  while (first > 0 && op.getOperandRole(first - 1) == role)
    --first;
  switch (role) {
  case OperandRole::Lhs:
    return "lhs";
  case OperandRole::Rhs:
    return "rhs";
  case OperandRole::Input:
    return "input " + std::to_string(number - first);
  case OperandRole::Init:
    return "init";
  case OperandRole::Extra:
    return "extra " + std::to_string(number - first);
  case OperandRole::Output:
    return "output";
  }
  llvm_unreachable("every role has a name");
}

/// Returns the output whose dimensions are all loops of the one fused axis, in
/// their order; null if the operator is not pointwise, or has one loop.
static Value pointsOf(OperatorOpInterface op) {
  auto points = dyn_cast<ukernel::PointwiseOp>(op.getOperation());
  return points && points.getNumLoops() > 1 ? points.getOutputs().front()
                                            : Value();
}

static Extent extentOf(ExtentAnalysis &extents, Value tensor) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  return extents.groupOf(tensor, llvm::to_vector(llvm::seq(rank)));
}

/// Asserts that the points of a pointwise operator are at most `maxExtent`,
/// unless declared ranges say so.
static void assertPoints(OperatorOpInterface op, ExtentAnalysis &extents,
                         RewriterBase &rewriter, const Twine &where) {
  Value output = pointsOf(op);
  if (!output)
    return;
  Extent extent = extentOf(extents, output);
  SizeRange range = toSizeRange(extents.rangeOf(extent));
  if (range.max && *range.max <= maxExtent)
    return;
  Location loc = op.getLoc();
  Value points = arith::ConstantIndexOp::create(rewriter, loc, 1);
  auto type = cast<RankedTensorType>(output.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    points = rewriter.createOrFold<arith::MulIOp>(
        loc, points, rewriter.createOrFold<tensor::DimOp>(loc, output, dim));
  Value fits = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::ule, points,
      arith::ConstantIndexOp::create(rewriter, loc, maxExtent));
  cf::AssertOp::create(rewriter, loc, fits,
                       "expected at most " + std::to_string(maxExtent) +
                           " elements in " + where.str());
}

/// Also asserts that extents which are products of sizes are at most
/// `maxExtent`.
void ftuner::assertSizes(OperatorOpInterface op, ExtentAnalysis &extents,
                         RewriterBase &rewriter, const Twine &where) {
  rewriter.setInsertionPoint(op);
  auto sizeOf = [&](Value tensor, int64_t dim) {
    return rewriter.createOrFold<tensor::DimOp>(op.getLoc(), tensor, dim);
  };
  auto nameOf = [&](const Extent &extent, unsigned number, int64_t dim) {
    if (std::optional<std::string> name = extents.describe(extent))
      return *name;
    return "dimension " + std::to_string(dim) + " of the " +
           operandName(op, number);
  };
  // For each axis, the first size, and the sizes that equal it by types,
  // symbols or assertions.
  struct Known {
    Value tensor;
    int64_t dim;
    unsigned number;
    SmallVector<Extent> equal;
  };
  // Axes, and loops of fused ones.
  SmallVector<Known> axes(op.getNumAxes() + op.getFusedLoops().size());
  for (OpOperand &operand : op->getOpOperands()) {
    Value tensor = operand.get();
    unsigned number = operand.getOperandNumber();
    if (!isa<ShapedType>(tensor.getType()))
      continue;
    for (auto [dim, result] :
         llvm::enumerate(op.getMapOfOperand(number).getResults())) {
      Known &known = axes[cast<AffineDimExpr>(result).getPosition()];
      Extent extent = extents.dimOf(tensor, dim);
      if (known.equal.empty()) {
        known = {tensor, static_cast<int64_t>(dim), number, {extent}};
        continue;
      }
      if (llvm::is_contained(known.equal, extent))
        continue;
      std::string message =
          "expected " + nameOf(extent, number, dim) + " to equal " +
          nameOf(known.equal.front(), known.number, known.dim) + " in " +
          where.str();
      Value size = sizeOf(tensor, dim);
      Value expected = sizeOf(known.tensor, known.dim);
      Value equal = arith::CmpIOp::create(
          rewriter, op.getLoc(), arith::CmpIPredicate::eq, size, expected);
      cf::AssertOp::create(rewriter, op.getLoc(), equal, message);
      known.equal.push_back(extent);
    }
  }
  assertPoints(op, extents, rewriter, where);
  // The search does not plan larger extents.
  for (const Known &known : axes) {
    if (known.equal.empty())
      continue;
    std::optional<std::string> names;
    for (const Extent &extent : known.equal)
      if (!names)
        names = extents.describeUnlessFits(extent);
    if (!names)
      continue;
    Value fits = arith::CmpIOp::create(
        rewriter, op.getLoc(), arith::CmpIPredicate::ule,
        sizeOf(known.tensor, known.dim),
        arith::ConstantIndexOp::create(rewriter, op.getLoc(), maxExtent));
    cf::AssertOp::create(rewriter, op.getLoc(), fits,
                         "expected " + *names + " to be at most " +
                             std::to_string(maxExtent) + " in " + where.str());
  }
}

/// Returns the narrowest declared range of each axis.
static ArrayAttr makeRanges(OperatorOpInterface op, ExtentAnalysis &extents,
                            RewriterBase &rewriter) {
  if (Value output = pointsOf(op))
    return rewriter.getArrayAttr({extents.rangeOf(extentOf(extents, output))});
  SmallVector<ukernel::RangeAttr> ranges(op.getNumAxes());
  auto isBetter = [](ukernel::RangeAttr range, ukernel::RangeAttr known) {
    if (!known || known.isFixed())
      return !known;
    if (range.isFixed() || range.isOpen() != known.isOpen())
      return range.isFixed() || known.isOpen();
    // Both are open, or both are closed: a declared range is better than none.
    return known.getMin() == 0 && range.getMin() > 0;
  };
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMapOfOperand(operand.getOperandNumber());
    for (auto [dim, result] : llvm::enumerate(map.getResults())) {
      ukernel::RangeAttr range =
          extents.rangeOf(extents.dimOf(operand.get(), dim));
      ukernel::RangeAttr &known =
          ranges[cast<AffineDimExpr>(result).getPosition()];
      if (isBetter(range, known))
        known = range;
    }
  }
  return rewriter.getArrayAttr(
      SmallVector<Attribute>(ranges.begin(), ranges.end()));
}

/// Returns `ukernel.extents`: for each axis the first extent of a dimension
/// that is a product of symbols. Null if there is no such axis.
static ArrayAttr makeExtents(OperatorOpInterface op, ExtentAnalysis &extents,
                             RewriterBase &rewriter) {
  SmallVector<Attribute> entries(op.getNumAxes(), rewriter.getUnitAttr());
  bool isKnown = false;
  auto addExtent = [&](Attribute &entry, const Extent &extent) {
    std::optional<SmallVector<StringAttr>> symbols = extents.symbolsOf(extent);
    if (!symbols || extent.factor < 1 || !isa<UnitAttr>(entry))
      return;
    SmallVector<Attribute> product = {
        rewriter.getI64IntegerAttr(extent.factor)};
    llvm::append_range(product, *symbols);
    entry = rewriter.getArrayAttr(product);
    isKnown = true;
  };
  if (Value output = pointsOf(op)) {
    addExtent(entries.front(), extentOf(extents, output));
    return isKnown ? rewriter.getArrayAttr(entries) : ArrayAttr();
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    AffineMap map = op.getMapOfOperand(operand.getOperandNumber());
    for (auto [dim, result] : llvm::enumerate(map.getResults())) {
      addExtent(entries[cast<AffineDimExpr>(result).getPosition()],
                extents.dimOf(operand.get(), dim));
    }
  }
  return isKnown ? rewriter.getArrayAttr(entries) : ArrayAttr();
}

void ftuner::declareSizes(OperatorOpInterface op, ExtentAnalysis &extents,
                          RewriterBase &rewriter) {
  op.setRangesAttr(makeRanges(op, extents, rewriter));
  if (ArrayAttr known = makeExtents(op, extents, rewriter))
    op->setAttr(ukernel::UKernelDialect::kExtentsAttrName, known);
}
