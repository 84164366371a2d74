//===- ZeroPoints.cpp - Quantized products without zero points ------------===//
//
// Products of numbers of 8 bits with zero points become plain ones, which
// tensor cores compute, and sums over one factor:
//
//   sum (l - zl) (r - zr) = sum l r - zl sum r - zr sum l + k zl zr
//
// All of it wraps around as the program's sums do, so it is exact. Sums over
// one factor become products with ones when workloads are formed: kernels for
// products read a factor in full lines, whichever of its dimensions is
// contiguous. (Upstream's patterns would undo this earlier.)
//
// For the same reason, sums of products in i64 of which only the lower half is
// read are sums in i32.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// Named operators with zero points to linalg.generic.
template <typename NamedOp>
struct GeneralizeQuantized : public OpRewritePattern<NamedOp> {
  using OpRewritePattern<NamedOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(NamedOp op,
                                PatternRewriter &rewriter) const override {
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

/// Scalar inputs that a product's body reads from outside are dropped.
struct DropUnusedScalars : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() == 0)
      return failure();
    BitVector dropped(op.getBody()->getNumArguments());
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand &operand : op->getOpOperands()) {
      bool isDropped = !isa<ShapedType>(operand.get().getType()) &&
                       op.getMatchingBlockArgument(&operand).use_empty();
      if (isDropped) {
        dropped.set(operand.getOperandNumber());
        continue;
      }
      maps.push_back(op.getMatchingIndexingMap(&operand));
      if (op.isDpsInput(&operand))
        inputs.push_back(operand.get());
    }
    if (dropped.none())
      return failure();
    auto result = linalg::GenericOp::create(
        rewriter, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(),
        maps, op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op.getRegion(), result.getRegion(),
                                result.getRegion().begin());
    result.getBody()->eraseArguments(dropped);
    rewriter.replaceOp(op, result);
    return success();
  }
};

Value createFilled(ImplicitLocOpBuilder &b, ArrayRef<OpFoldResult> sizes,
                   Type type, int64_t value) {
  Value scalar = arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  Value empty = tensor::EmptyOp::create(b, sizes, type);
  return linalg::FillOp::create(b, scalar, empty).getResult(0);
}

/// The operator that alone reads a tensor of i64, and that only casts it to
/// i32.
linalg::GenericOp matchTruncation(Value tensor) {
  if (!tensor.hasOneUse() || !getElementTypeOrSelf(tensor).isInteger(64))
    return {};
  auto op = dyn_cast<linalg::GenericOp>(*tensor.user_begin());
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || !op.isDpsInput(&*tensor.use_begin()) ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }) ||
      op.getBody()->getOperations().size() != 2)
    return {};
  auto cast = dyn_cast<arith::TruncIOp>(op.getBody()->front());
  bool isTruncation = cast && cast.getType().isInteger(32) &&
                      cast.getIn() == op.getBody()->getArgument(0) &&
                      op.getBody()->back().getOperand(0) == cast.getResult();
  return isTruncation ? op : linalg::GenericOp();
}

/// Sums of products in i64 that are cast to i32 to sums in i32.
struct NarrowTruncatedSum : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
      return failure();
    linalg::GenericOp truncation = matchTruncation(op->getResult(0));
    Value start = matchFill(op.getDpsInits()[0]);
    APInt number;
    if (!truncation || !start || !matchPattern(start, m_ConstantInt(&number)))
      return failure();
    Block &body = *op.getBlock();
    SumOfProducts parts = *matchSumOfProducts(body);
    if (!llvm::all_of(parts.factors, isExtension))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, b.getLoc(), op.getDpsInits()[0]);
    Value init =
        createFilled(b, sizes, b.getI32Type(), number.trunc(32).getSExtValue());
    auto narrow = linalg::GenericOp::create(
        b, init.getType(), op.getDpsInputs(), init, op.getIndexingMapsArray(),
        op.getIteratorTypesArray(),
        [&](OpBuilder &nested, Location loc, ValueRange arguments) {
          IRMapping mapping;
          mapping.map(body.getArguments().drop_back(), arguments.drop_back());
          Value lhs = cloneNarrow(nested, parts.factors[0], mapping);
          Value rhs = cloneNarrow(nested, parts.factors[1], mapping);
          Value sum = arith::MulIOp::create(nested, loc, lhs, rhs);
          sum = arith::AddIOp::create(nested, loc, arguments.back(), sum);
          linalg::YieldOp::create(nested, loc, sum);
        });
    rewriter.replaceOp(truncation, narrow);
    return success();
  }

private:
  /// Whether a value is one of at most 32 bits, extended.
  static bool isExtension(Value value) {
    return isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(
               value.getDefiningOp()) &&
           value.getDefiningOp()
                   ->getOperand(0)
                   .getType()
                   .getIntOrFloatBitWidth() <= 32;
  }

  /// What is extended to i64, extended to i32.
  static Value cloneNarrow(OpBuilder &b, Value value, IRMapping &mapping) {
    Operation *extension = value.getDefiningOp();
    SmallVector<Operation *> casts;
    for (Operation *cast = extension; cast;
         cast = cast->getOperand(0).getDefiningOp())
      casts.push_back(cast);
    for (Operation *cast : llvm::reverse(ArrayRef(casts).drop_front()))
      b.clone(*cast, mapping);
    Value source = mapping.lookup(extension->getOperand(0));
    if (source.getType().isInteger(32))
      return source;
    Value result = b.clone(*extension, mapping)->getResult(0);
    result.setType(b.getI32Type());
    return result;
  }
};

struct ZeroPointsToSums : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override;
};

/// The zero points of a product's factors, scalars from outside; null for none.
std::optional<std::array<Value, 2>> matchZeroPoints(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1)
    return std::nullopt;
  std::optional<Contraction> loops = matchLoops(op);
  if (!loops || loops->m.empty() || loops->n.empty() || loops->k.empty())
    return std::nullopt;
  std::optional<SumOfProducts> parts = matchSumOfProducts(*op.getBody());
  if (!parts || !parts->factors[0].getType().isInteger(32))
    return std::nullopt;
  std::array<Value, 2> zeroPoints;
  for (unsigned factor : {0, 1}) {
    Value value = parts->factors[factor];
    if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
      if (difference->getBlock() != op.getBody() ||
          difference.getRhs().getParentRegion() == &op.getRegion())
        return std::nullopt;
      zeroPoints[factor] = difference.getRhs();
      value = difference.getLhs();
    }
    if (Operation *cast = value.getDefiningOp(); cast && isExactCast(cast))
      value = cast->getOperand(0);
    if (value != op.getBody()->getArgument(factor))
      return std::nullopt;
  }
  if (!zeroPoints[0] && !zeroPoints[1])
    return std::nullopt;
  return zeroPoints;
}

/// The product without zero points.
linalg::GenericOp clonePlain(linalg::GenericOp op, PatternRewriter &rewriter) {
  auto plain = cast<linalg::GenericOp>(rewriter.clone(*op));
  for (auto difference :
       llvm::make_early_inc_range(plain.getBody()->getOps<arith::SubIOp>()))
    rewriter.replaceOp(difference, difference.getLhs());
  return plain;
}

/// Sums of a factor over the loops that are reduced, a tensor of its other
/// dimensions in order; `loops` receives their loops.
Value sumFactor(linalg::GenericOp plain, unsigned factor,
                SmallVectorImpl<unsigned> &loops, PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(plain.getLoc(), rewriter);
  OpOperand *operand = plain.getDpsInputOperand(factor);
  Value tensor = operand->get();
  AffineMap map = plain.getMatchingIndexingMap(operand);
  SmallVector<utils::IteratorType> iterators;
  SmallVector<AffineExpr> sums;
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(position).getPosition();
    iterators.push_back(plain.getIteratorTypesArray()[loop]);
    if (linalg::isReductionIterator(iterators.back()))
      continue;
    loops.push_back(loop);
    sums.push_back(b.getAffineDimExpr(dim));
    sizes.push_back(tensor::getMixedSize(b, b.getLoc(), tensor, dim));
  }
  Type sum = b.getI32Type();
  Value start = createFilled(b, sizes, sum, 0);
  unsigned rank = iterators.size();
  // The factor is cast as the product casts it.
  Operation *widening =
      *plain.getBody()->getArgument(factor).getUsers().begin();
  return linalg::GenericOp::create(
             b, start.getType(), tensor, start,
             ArrayRef<AffineMap>{b.getMultiDimIdentityMap(rank),
                                 AffineMap::get(rank, 0, sums, b.getContext())},
             iterators,
             [&](OpBuilder &nested, Location loc, ValueRange arguments) {
               Value value = arguments[0];
               if (value.getType() != sum) {
                 IRMapping mapping;
                 mapping.map(widening->getOperand(0), value);
                 value = nested.clone(*widening, mapping)->getResult(0);
               }
               value = arith::AddIOp::create(nested, loc, arguments[1], value);
               linalg::YieldOp::create(nested, loc, value);
             })
      .getResult(0);
}

/// The number of points that are summed up, of type i32.
Value countPoints(linalg::GenericOp plain, PatternRewriter &rewriter) {
  ImplicitLocOpBuilder b(plain.getLoc(), rewriter);
  OpOperand *operand = plain.getDpsInputOperand(0);
  AffineMap map = plain.getMatchingIndexingMap(operand);
  Value count = arith::ConstantOp::create(b, b.getI32IntegerAttr(1));
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    unsigned loop = cast<AffineDimExpr>(position).getPosition();
    if (!linalg::isReductionIterator(plain.getIteratorTypesArray()[loop]))
      continue;
    Value size = b.createOrFold<tensor::DimOp>(operand->get(), dim);
    size = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), size);
    count = b.createOrFold<arith::MulIOp>(count, size);
  }
  return count;
}

LogicalResult
ZeroPointsToSums::matchAndRewrite(linalg::GenericOp op,
                                  PatternRewriter &rewriter) const {
  std::optional<std::array<Value, 2>> zeroPoints = matchZeroPoints(op);
  if (!zeroPoints)
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  linalg::GenericOp plain = clonePlain(op, rewriter);
  AffineMap outMap = plain.getMatchingIndexingMap(plain.getDpsInitOperand(0));
  unsigned rank = outMap.getNumResults();
  SmallVector<Value> inputs = {plain.getResult(0)};
  SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(rank)};
  // What is subtracted: zero points by the sums over the other factor.
  SmallVector<Value> scales;
  for (unsigned factor : {0, 1}) {
    Value zeroPoint = (*zeroPoints)[factor];
    if (!zeroPoint || matchPattern(zeroPoint, m_Zero()))
      continue;
    SmallVector<unsigned> loopsOfSums;
    inputs.push_back(sumFactor(plain, 1 - factor, loopsOfSums, rewriter));
    auto dims = llvm::map_to_vector(loopsOfSums, [&](unsigned loop) {
      return b.getAffineDimExpr(
          *outMap.getResultPosition(getAffineDimExpr(loop, b.getContext())));
    });
    maps.push_back(AffineMap::get(rank, 0, dims, b.getContext()));
    scales.push_back(zeroPoint);
  }
  if (scales.empty()) {
    rewriter.replaceOp(op, plain);
    return success();
  }
  Value offset;
  if (scales.size() == 2)
    offset = b.createOrFold<arith::MulIOp>(
        countPoints(plain, rewriter),
        b.createOrFold<arith::MulIOp>(scales[0], scales[1]));
  Value empty = tensor::EmptyOp::create(
      b, tensor::getMixedSizes(b, b.getLoc(), plain.getDpsInits()[0]),
      b.getI32Type());
  maps.push_back(maps.front());
  auto corrected = linalg::GenericOp::create(
      b, op->getResultTypes(), inputs, ValueRange{empty}, maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Value value = arguments.front();
        for (auto [sum, scale] :
             llvm::zip_equal(arguments.drop_front().drop_back(), scales))
          value = arith::SubIOp::create(
              nested, loc, value,
              arith::MulIOp::create(nested, loc, scale, sum));
        if (offset)
          value = arith::AddIOp::create(nested, loc, value, offset);
        linalg::YieldOp::create(nested, loc, value);
      });
  rewriter.replaceOp(op, corrected);
  return success();
}

} // namespace

void ftuner::populateGeneralizeQuantizedPatterns(RewritePatternSet &patterns) {
  patterns.add<GeneralizeQuantized<linalg::QuantizedMatmulOp>,
               GeneralizeQuantized<linalg::QuantizedBatchMatmulOp>>(
      patterns.getContext());
}

/// What a sum of numbers of 8 bits casts each by, before it adds it to i32;
/// null if the operator is none.
static Operation *matchNarrowSum(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0 ||
      op.getNumParallelLoops() == 0 ||
      op.getBody()->getOperations().size() != 3 ||
      !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isPermutation() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0))
           .isProjectedPermutation())
    return nullptr;
  Block &body = *op.getBody();
  Operation *cast = &body.front(), *sum = cast->getNextNode();
  bool isSum = isa<arith::ExtSIOp, arith::ExtUIOp>(cast) &&
               isa<arith::AddIOp>(sum) &&
               cast->getOperand(0) == body.getArgument(0) &&
               body.getArgument(0).getType().isInteger(8) &&
               sum->getResult(0).getType().isInteger(32) &&
               llvm::is_contained(sum->getOperands(), cast->getResult(0)) &&
               llvm::is_contained(sum->getOperands(), body.getArgument(1)) &&
               body.back().getOperand(0) == sum->getResult(0);
  return isSum ? cast : nullptr;
}

LogicalResult ftuner::sumToProduct(linalg::GenericOp op,
                                   RewriterBase &rewriter) {
  Operation *widening = matchNarrowSum(op);
  if (!widening)
    return failure();
  rewriter.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), rewriter);
  Value tensor = op.getDpsInputs()[0], start = op.getDpsInits()[0];
  AffineMap readMap = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  AffineMap sumMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  unsigned numLoops = op.getNumLoops();
  // One more loop, of extent 1, that ones have beside those that are reduced.
  AffineExpr unit = b.getAffineDimExpr(numLoops);
  auto iterators = op.getIteratorTypesArray();
  SmallVector<AffineExpr> ones = {unit}, sums = {unit};
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1)};
  for (auto [dim, position] : llvm::enumerate(readMap.getResults())) {
    unsigned loop = cast<AffineDimExpr>(position).getPosition();
    if (!linalg::isReductionIterator(iterators[loop]))
      continue;
    ones.push_back(position);
    sizes.push_back(tensor::getMixedSize(b, b.getLoc(), tensor, dim));
  }
  iterators.push_back(utils::IteratorType::parallel);
  llvm::append_range(sums, sumMap.getResults());
  // The result gets the same dimension in front.
  auto type = cast<RankedTensorType>(start.getType());
  SmallVector<int64_t> shape = {1};
  llvm::append_range(shape, type.getShape());
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    groups.push_back(dim == 0 ? ReassociationIndices{0, 1}
                              : ReassociationIndices{dim + 1});
  Value one = createFilled(b, sizes, b.getI8Type(), 1);
  Value expanded;
  if (Value scalar = matchFill(start)) {
    SmallVector<OpFoldResult> sizesOfSums = {b.getIndexAttr(1)};
    llvm::append_range(sizesOfSums,
                       tensor::getMixedSizes(b, b.getLoc(), start));
    Value empty =
        tensor::EmptyOp::create(b, sizesOfSums, type.getElementType());
    expanded = linalg::FillOp::create(b, scalar, empty).getResult(0);
  } else {
    expanded = tensor::ExpandShapeOp::create(
        b, RankedTensorType::get(shape, type.getElementType()), start, groups);
  }
  auto mapOf = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(numLoops + 1, 0, results, b.getContext());
  };
  auto product = linalg::GenericOp::create(
      b, expanded.getType(), ValueRange{one, tensor}, ValueRange{expanded},
      ArrayRef<AffineMap>{mapOf(ones), mapOf(readMap.getResults()),
                          mapOf(sums)},
      iterators, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Type sum = arguments[2].getType();
        IRMapping mapping;
        mapping.map(widening->getOperand(0), arguments[1]);
        Value value = nested.clone(*widening, mapping)->getResult(0);
        Value one = arith::ExtSIOp::create(nested, loc, sum, arguments[0]);
        value = arith::MulIOp::create(nested, loc, one, value);
        value = arith::AddIOp::create(nested, loc, arguments[2], value);
        linalg::YieldOp::create(nested, loc, value);
      });
  rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
      op, type, product.getResult(0), groups);
  return success();
}

void ftuner::populateZeroPointPatterns(RewritePatternSet &patterns) {
  patterns.add<DropUnusedScalars, NarrowTruncatedSum, ZeroPointsToSums>(
      patterns.getContext());
}
