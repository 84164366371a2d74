//===- OperatorSizes.cpp - Sizes of an operator's axes --------------------===//
#include "OperatorSizes.h"

#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

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

/// Calls `visit` for each place where an operand has an axis: an operand, the
/// dimensions that are the axis, several of a fused one, and the axis.
static void forEachPlace(
    OperatorOpInterface op,
    llvm::function_ref<void(Value, ArrayRef<int64_t>, unsigned axis)> visit) {
  SmallVector<ukernel::FusedLoop> loops = op.getFusedLoops();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<ShapedType>(operand.get().getType()))
      continue;
    unsigned number = operand.getOperandNumber();
    AffineMap map = op.getMapOfOperand(number);
    for (const ReassociationIndices &group :
         ukernel::groupDimensions(op, number)) {
      auto dim = dyn_cast<AffineDimExpr>(map.getResult(group.front()));
      if (!dim)
        continue;
      unsigned axis = dim.getPosition();
      if (axis >= op.getNumAxes()) {
        axis = loops[axis - op.getNumAxes()].axis;
        // A loop of several.
        if (op.getDimsOfAxis(axis).size() != group.size())
          continue;
      }
      visit(operand.get(), group, axis);
    }
  }
}

/// Returns the extent of neighbouring dimensions of a tensor.
static Extent extentOf(ExtentAnalysis &extents, Value tensor,
                       ArrayRef<int64_t> dims) {
  return dims.size() == 1 ? extents.dimOf(tensor, dims.front())
                          : extents.groupOf(tensor, SmallVector<int64_t>(dims));
}

/// Returns the extent of an axis: the product of those of its loops.
static Extent extentOf(ExtentAnalysis &extents, OperatorOpInterface op,
                       unsigned axis) {
  auto sources = op.getExtentSources(axis);
  return extents.productOf(ArrayRef(sources));
}

/// Asserts that the points of fused axes are at most `maxExtent`, unless
/// declared ranges say so.
static void assertPoints(OperatorOpInterface op, ExtentAnalysis &extents,
                         RewriterBase &rewriter, const Twine &where) {
  Location loc = op.getLoc();
  for (unsigned axis : llvm::seq(op.getNumAxes())) {
    auto sources = op.getExtentSources(axis);
    // The operator itself has the extents of a window's loops.
    bool hasOwn =
        llvm::any_of(sources, [](const auto &source) { return !source.first; });
    if (sources.size() == 1 || hasOwn)
      continue;
    SizeRange range = toSizeRange(extents.rangeOf(extentOf(extents, op, axis)));
    if (range.max && *range.max <= maxExtent)
      continue;
    Value points = arith::ConstantIndexOp::create(rewriter, loc, 1);
    for (auto [tensor, dim] : sources)
      points = rewriter.createOrFold<arith::MulIOp>(
          loc, points, rewriter.createOrFold<tensor::DimOp>(loc, tensor, dim));
    Value fits = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ule, points,
        arith::ConstantIndexOp::create(rewriter, loc, maxExtent));
    bool isOfAll = llvm::count(op.getLoopIteratorTypes(),
                               utils::IteratorType::parallel) == 1;
    cf::AssertOp::create(
        rewriter, loc, fits,
        "expected at most " + std::to_string(maxExtent) +
            (isOfAll ? " elements"
                     : " points along " + op.getAxisName(axis).str()) +
            " in " + where.str());
  }
}

/// Returns the extents of the dimensions of the maps: axes, and loops of fused
/// ones; 1 for the fused axes themselves.
static SmallVector<OpFoldResult> extentsOfDims(OperatorOpInterface op,
                                               RewriterBase &rewriter) {
  SmallVector<OpFoldResult> result(op.getNumAxes() + op.getFusedLoops().size(),
                                   rewriter.getIndexAttr(1));
  SmallVector<int64_t> known = ukernel::staticSizesOfDims(op);
  for (unsigned axis : llvm::seq(op.getNumAxes()))
    for (unsigned dim : op.getDimsOfAxis(axis)) {
      auto [tensor, place] = op.getExtentSource(dim);
      result[dim] =
          ShapedType::isStatic(known[dim])
              ? OpFoldResult(rewriter.getIndexAttr(known[dim]))
              : tensor::getMixedSize(rewriter, op.getLoc(), tensor, place);
    }
  return result;
}

/// Asserts that windows end within operands, unless reads outside are defined.
/// Without any point nothing is read.
static void assertWindows(OperatorOpInterface op, RewriterBase &rewriter,
                          const Twine &where) {
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> extents;
  Value isEmpty;
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return rewriter.createOrFold<arith::CmpIOp>(loc, predicate, lhs, rhs);
  };
  auto either = [&](Value lhs, Value rhs) {
    return lhs ? rewriter.createOrFold<arith::OrIOp>(loc, lhs, rhs) : rhs;
  };
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (op.getOutside(number))
      continue;
    for (auto [dim, position] :
         llvm::enumerate(op.getMapOfOperand(number).getResults())) {
      if (isa<AffineDimExpr>(position))
        continue;
      if (extents.empty()) {
        extents = extentsOfDims(op, rewriter);
        Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
        for (OpFoldResult extent : extents)
          if (getConstantIntValue(extent).value_or(0) == 0)
            isEmpty = either(isEmpty, compare(arith::CmpIPredicate::eq,
                                              getValueOrCreateConstantIndexOp(
                                                  rewriter, loc, extent),
                                              zero));
      }
      SmallVector<AffineExpr> last;
      for (unsigned loop = 0; loop < extents.size(); ++loop)
        last.push_back(getAffineDimExpr(loop, op->getContext()) - 1);
      AffineExpr reach = position.replaceDims(last) + 1;
      Value reached = getValueOrCreateConstantIndexOp(
          rewriter, loc,
          affine::makeComposedFoldedAffineApply(
              rewriter, loc, AffineMap::get(extents.size(), 0, reach),
              extents));
      Value fits = compare(
          arith::CmpIPredicate::sle, reached,
          rewriter.createOrFold<tensor::DimOp>(loc, operand.get(), dim));
      if (matchPattern(fits, m_One()))
        continue;
      cf::AssertOp::create(rewriter, loc, either(isEmpty, fits),
                           "expected windows to end within dimension " +
                               std::to_string(dim) + " of the " +
                               operandName(op, number) + " in " + where.str());
    }
  }
}

/// Asserts that sizes are equal that one axis or loop has, that points and
/// windows are within bounds, and that extents which are products of sizes are
/// at most `maxExtent`.
static void assertSizes(OperatorOpInterface op, ExtentAnalysis &extents,
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
      auto alone = dyn_cast<AffineDimExpr>(result);
      if (!alone)
        continue;
      Known &known = axes[alone.getPosition()];
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
  assertWindows(op, rewriter, where);
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
  SmallVector<ukernel::RangeAttr> ranges(op.getNumAxes());
  auto isBetter = [](ukernel::RangeAttr range, ukernel::RangeAttr known) {
    if (!known || known.isFixed())
      return !known;
    if (range.isFixed() || range.isOpen() != known.isOpen())
      return range.isFixed() || known.isOpen();
    // Both are open, or both are closed: a declared range is better than none.
    return known.getMin() == 0 && range.getMin() > 0;
  };
  forEachPlace(op, [&](Value tensor, ArrayRef<int64_t> dims, unsigned axis) {
    ukernel::RangeAttr range = extents.rangeOf(extentOf(extents, tensor, dims));
    if (isBetter(range, ranges[axis]))
      ranges[axis] = range;
  });
  // No operand has all loops of such an axis as neighbours.
  SmallVector<int64_t, 4> known = op.getStaticExtents();
  for (auto [axis, range] : llvm::enumerate(ranges))
    if (!range)
      range = ShapedType::isStatic(known[axis])
                  ? toAttribute(op->getContext(), SizeRange::fixed(known[axis]))
                  : extents.rangeOf(extentOf(extents, op, axis));
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
  forEachPlace(op, [&](Value tensor, ArrayRef<int64_t> dims, unsigned axis) {
    addExtent(entries[axis], extentOf(extents, tensor, dims));
  });
  return isKnown ? rewriter.getArrayAttr(entries) : ArrayAttr();
}

static void declareSizes(OperatorOpInterface op, ExtentAnalysis &extents,
                         RewriterBase &rewriter) {
  op.setRangesAttr(makeRanges(op, extents, rewriter));
  if (ArrayAttr known = makeExtents(op, extents, rewriter))
    op->setAttr(ukernel::UKernelDialect::kExtentsAttrName, known);
}

void ftuner::settleSizes(OperatorOpInterface op, ExtentAnalysis &extents,
                         RewriterBase &rewriter, const Twine &where) {
  extents.assumeAssertionsBefore(op);
  declareSizes(op, extents, rewriter);
  assertSizes(op, extents, rewriter, where);
}
