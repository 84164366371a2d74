//===- ReductionLoops.cpp - Reductions of one loop ------------------------===//
#include "ReductionLoops.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::hasPlainMaps(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumDpsInits() == 1 && !op.hasIndexSemantics() &&
         !llvm::is_contained(op.getStaticLoopRanges(), 0) &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return map.isProjectedPermutation();
         });
}

void ftuner::reduceWholeWindow(linalg::LinalgOp op, RewriterBase &rewriter) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.hasIndexSemantics() || op.getNumReductionLoops() == 0)
    return;
  SmallVector<OpOperand *> read;
  for (OpOperand *input : op.getDpsInputOperands())
    if (op.payloadUsesValueFromOperand(input))
      read.push_back(input);
  if (read.size() != 1 || !isa<RankedTensorType>(read[0]->get().getType()) ||
      read[0]->get().getDefiningOp<tensor::PadOp>())
    return;
  AffineMap windows = op.getMatchingIndexingMap(read[0]);
  if (windows.isProjectedPermutation())
    return;
  // Loops over the only position of a window are dropped.
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators;
  SmallVector<AffineExpr> loops;
  for (auto [loop, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    bool isOfWindows =
        llvm::any_of(windows.getResults(), [&, loop = loop](AffineExpr at) {
          return !isa<AffineDimExpr>(at) && at.isFunctionOfDim(loop);
        });
    if (isOfWindows && extents[loop] == 1 &&
        kind == utils::IteratorType::parallel) {
      loops.push_back(rewriter.getAffineConstantExpr(0));
      continue;
    }
    loops.push_back(rewriter.getAffineDimExpr(iterators.size()));
    iterators.push_back(kind);
  }
  auto without = [&](AffineMap map) {
    return simplifyAffineMap(
        map.replaceDimsAndSymbols(loops, {}, iterators.size(), 0));
  };
  // A dilation has no meaning for a window of one element.
  auto undilated = [&](AffineMap map) {
    SmallVector<AffineExpr> positions(map.getResults());
    for (AffineExpr &position : positions)
      if (auto product = dyn_cast<AffineBinaryOpExpr>(position);
          product && product.getKind() == AffineExprKind::Mul) {
        auto *loop = llvm::find(loops, product.getLHS());
        if (loop != loops.end() && extents[loop - loops.begin()] == 1)
          position = product.getLHS();
      }
    return AffineMap::get(map.getNumDims(), 0, positions, op.getContext());
  };
  OpOperand *init = op.getDpsInitOperand(0);
  SmallVector<AffineMap> maps = {undilated(without(windows)),
                                 without(op.getMatchingIndexingMap(init))};
  auto image = cast<RankedTensorType>(read[0]->get().getType());
  for (auto [dim, before] : llvm::enumerate(windows.getResults())) {
    AffineExpr position = maps[0].getResult(dim);
    if (position == before || isa<AffineDimExpr>(before))
      continue;
    auto loop = llvm::find(loops, position);
    // Two dynamic sizes may differ: an image may be larger than its window.
    if (loop == loops.end() || !isa<AffineDimExpr>(position) ||
        image.isDynamicDim(dim) ||
        image.getDimSize(dim) != extents[loop - loops.begin()])
      return;
  }
  if (!maps[0].isProjectedPermutation(/*allowZeroInResults=*/true) ||
      !inversePermutation(concatAffineMaps(maps, op.getContext())))
    return;
  rewriter.setInsertionPoint(op);
  auto reduction = linalg::GenericOp::create(
      rewriter, op.getLoc(), init->get().getType(), read[0]->get(), init->get(),
      maps, iterators, [&](OpBuilder &b, Location loc, ValueRange arguments) {
        IRMapping mapping;
        mapping.map(op.getMatchingBlockArgument(read[0]), arguments[0]);
        mapping.map(op.getMatchingBlockArgument(init), arguments[1]);
        for (Operation &inner : *op.getBlock())
          b.clone(inner, mapping);
      });
  rewriter.replaceOp(op, reduction);
}

//===----------------------------------------------------------------------===//
// Loops that are not neighbours
//===----------------------------------------------------------------------===//

/// Returns the loops that an operator reduces, in groups of loops that are
/// neighbours in all operands.
static SmallVector<ReassociationIndices>
groupReductionLoops(linalg::LinalgOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  SmallVector<ReassociationIndices> groups;
  for (int64_t loop : reduced) {
    if (!groups.empty()) {
      ReassociationIndices longer = groups.back();
      longer.push_back(loop);
      if (longer[longer.size() - 2] + 1 == loop &&
          linalg::areDimSequencesPreserved(maps, {longer})) {
        groups.back() = longer;
        continue;
      }
    }
    groups.push_back({loop});
  }
  return groups;
}

namespace {

/// Splits a reduction into two.
class ReductionSplitter {
public:
  ReductionSplitter(linalg::LinalgOp op, Operation *combining,
                    TypedAttr neutral, RewriterBase &rewriter)
      : op(op), combining(combining), rewriter(rewriter), loc(op.getLoc()),
        own(neutral.getType()), wide(own), neutral(neutral) {
    if (!isNarrowFloat(own))
      return;
    wide = rewriter.getF32Type();
    this->neutral = rewriter.getFloatAttr(
        wide, cast<FloatAttr>(neutral).getValueAsDouble());
  }
  SmallVector<linalg::LinalgOp> split(ArrayRef<int64_t> inner);

private:
  /// Creates a tensor of neutral elements.
  Value createNeutral(ArrayRef<OpFoldResult> sizes) {
    Value value = arith::ConstantOp::create(rewriter, loc, neutral);
    Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, wide);
    return linalg::FillOp::create(rewriter, loc, value, empty).getResult(0);
  }
  /// Creates an operation on f32 from one on a narrower type.
  Value createWide(OpBuilder &b, Operation *operation, ValueRange operands) {
    SmallVector<Value> values;
    for (Value operand : operands)
      values.push_back(wide == own ? operand : promoted(b, loc, operand));
    OperationState state(loc, operation->getName());
    state.addOperands(values);
    state.addTypes(values.front().getType());
    // A sum of some integers may overflow where the sum of all does not.
    if (isa<FloatType>(values.front().getType()))
      state.addAttributes(operation->getAttrs());
    return b.create(state)->getResult(0);
  }
  void buildInnerBody(OpBuilder &b, ValueRange arguments);
  /// Creates the result from the reduction of all loops: adds the value that
  /// the operator starts from.
  Value createResult(Value sum);

  linalg::LinalgOp op;
  Operation *combining;
  RewriterBase &rewriter;
  Location loc;
  Type own, wide;
  TypedAttr neutral;
};

} // namespace

void ReductionSplitter::buildInnerBody(OpBuilder &b, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(op.getBlock()->getArguments(), arguments);
  // Products that are added up are as wide as their sum.
  bool isOfProducts = wide != own && isSumOfProducts(op);
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (&inner != combining && !(isOfProducts && isa<arith::MulFOp>(inner))) {
      b.clone(inner, mapping);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(mapping.lookupOrDefault(operand));
    mapping.map(inner.getResult(0), createWide(b, &inner, operands));
  }
  linalg::YieldOp::create(b, loc, mapping.lookup(combining->getResult(0)));
}

Value ReductionSplitter::createResult(Value sum) {
  Value init = op.getDpsInits()[0];
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Value output = fill ? fill.output() : init;
  auto type = cast<RankedTensorType>(init.getType());
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, output), own);
  SmallVector<Value> inputs = {sum};
  if (!fill)
    inputs.push_back(init);
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              rewriter.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, loc, type, inputs, empty, maps, iterators,
             [&](OpBuilder &b, Location, ValueRange arguments) {
               Value start = fill ? fill.value() : arguments[1];
               Value all = createWide(b, combining, {start, arguments[0]});
               linalg::YieldOp::create(b, loc, rounded(b, loc, all, own));
             })
      .getResult(0);
}

SmallVector<linalg::LinalgOp>
ReductionSplitter::split(ArrayRef<int64_t> inner) {
  rewriter.setInsertionPoint(op);
  MLIRContext *context = rewriter.getContext();
  SmallVector<Range, 4> ranges = op.createLoopRanges(rewriter, loc);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray(), rest;
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> kept, loops(op.getNumLoops());
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    loops[loop] = getAffineConstantExpr(0, context);
    if (llvm::is_contained(inner, loop))
      continue;
    loops[loop] = getAffineDimExpr(rest.size(), context);
    kept.push_back(getAffineDimExpr(loop, context));
    sizes.push_back(ranges[loop].size);
    rest.push_back(
        std::exchange(iterators[loop], utils::IteratorType::parallel));
  }
  // First the inner loops, for each point of the other loops.
  Value partial = createNeutral(sizes);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap last = maps.back();
  maps.back() = AffineMap::get(op.getNumLoops(), 0, kept, context);
  auto first = linalg::GenericOp::create(
      rewriter, loc, partial.getType(), op.getDpsInputs(), partial, maps,
      iterators, [&](OpBuilder &b, Location, ValueRange arguments) {
        buildInnerBody(b, arguments);
      });
  // Then the other loops.
  Value init = op.getDpsInits()[0];
  Value start = init;
  if (wide != own) {
    auto fill = init.getDefiningOp<linalg::FillOp>();
    start = createNeutral(
        tensor::getMixedSizes(rewriter, loc, fill ? fill.output() : init));
  }
  AffineMap output = last.replaceDimsAndSymbols(loops, {}, rest.size(), 0);
  auto second = linalg::GenericOp::create(
      rewriter, loc, start.getType(), first.getResult(0), start,
      ArrayRef<AffineMap>{rewriter.getMultiDimIdentityMap(rest.size()), output},
      rest, [&](OpBuilder &b, Location, ValueRange arguments) {
        Value next = createWide(b, combining, {arguments[1], arguments[0]});
        linalg::YieldOp::create(b, loc, next);
      });
  rewriter.replaceOp(op, wide == own ? second.getResult(0)
                                     : createResult(second.getResult(0)));
  return {first, second};
}

SmallVector<linalg::LinalgOp> ftuner::splitReduction(linalg::LinalgOp op,
                                                     RewriterBase &rewriter) {
  if (!hasPlainMaps(op))
    return {};
  SmallVector<ReassociationIndices> groups = groupReductionLoops(op);
  constexpr unsigned kMaxLoops = ukernel::RowReductionOp::kMaxSpaceAxes + 1;
  if (groups.size() < 2 ||
      op.getNumLoops() + 1 - groups.back().size() > kMaxLoops)
    return {};
  Operation *combining = ukernel::findCombiningOp(*op.getBlock());
  if (!combining)
    return {};
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combining);
  if (!neutral)
    return {};
  return ReductionSplitter(op, combining, *neutral, rewriter)
      .split(groups.back());
}
