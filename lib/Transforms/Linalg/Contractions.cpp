//===- Contractions.cpp - The form of contractions --------------*- C++ -*-===//
//
// A contraction reads transposed, broadcast and widened operands where these
// come from, and has few loops: neighbouring loops of one role (m, n, k) are
// collapsed through tensor.collapse_shape, batch loops where there are too
// many. A product with a vector gets the loops that it lacks.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace ftuner;

OpOperand *ftuner::matchUnaryElementwise(linalg::LinalgOp op) {
  if (!op || op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
    return nullptr;
  OpOperand *found = nullptr;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (op.getRank(input) == 0)
      continue;
    if (found)
      return nullptr;
    found = input;
  }
  return found;
}

/// Returns the operator as a linalg.generic, which may have any maps.
static FailureOr<linalg::GenericOp> toGeneric(PatternRewriter &rewriter,
                                              linalg::LinalgOp op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    return generic;
  return linalg::generalizeNamedOp(rewriter, op);
}

linalg::GenericOp ftuner::takeBody(PatternRewriter &rewriter,
                                   linalg::LinalgOp op, ValueRange inputs,
                                   ValueRange inits, ArrayRef<AffineMap> maps) {
  auto generic =
      linalg::GenericOp::create(rewriter, op.getLoc(), inits.getTypes(), inputs,
                                inits, maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op->getRegion(0), generic.getRegion(),
                              generic.getRegion().begin());
  return generic;
}

LogicalResult ftuner::dropUnitLoops(PatternRewriter &rewriter,
                                    linalg::LinalgOp op,
                                    ArrayRef<unsigned> loops) {
  bool isNamed = !isa<linalg::GenericOp>(op.getOperation());
  FailureOr<linalg::GenericOp> generic = toGeneric(rewriter, op);
  if (failed(generic))
    return failure();
  linalg::ControlDropUnitDims control;
  control.controlFn = [&](Operation *) { return SmallVector<unsigned>(loops); };
  FailureOr<linalg::DropUnitDimsResult> reduced =
      linalg::dropUnitDims(rewriter, *generic, control);
  if (succeeded(reduced))
    rewriter.replaceOp(*generic, reduced->replacements);
  return success(isNamed || succeeded(reduced));
}

namespace {
/// Makes a contraction or convolution read the source of a
/// transposed, broadcast or widened operand, so that memory holds only the
/// narrow type.
struct FoldCopyIntoContraction
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Convolution> convolution = matchConvolution(op);
    if (!matchContraction(op) && !convolution)
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      std::optional<ProjectedCopy> copy =
          matchExactCopy(operand->get().getDefiningOp());
      if (!copy || (copy->cast && !isFactorType(copy->source.getType())))
        continue;
      // Kernels read the layout that an image was brought into, and repeated
      // elements leave no windows.
      bool isImage =
          convolution && operand->getOperandNumber() == convolution->image;
      if ((isImage && !copy->map.isIdentity()) ||
          (convolution && !copy->map.isPermutation()))
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      unsigned number = operand->getOperandNumber();
      maps[number] = copy->map.compose(maps[number]);
      // Every loop must still be a dimension of some operand.
      if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
        continue;
      return replaceInput(op, number, *copy, maps, rewriter);
    }
    return failure();
  }

private:
  /// Returns true if codegen paths multiply elements of the type by wider ones.
  static bool isFactorType(Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isF16() || element.isBF16() || element.isSignlessInteger(8);
  }

  static LogicalResult replaceInput(linalg::LinalgOp op, unsigned number,
                                    const ProjectedCopy &copy,
                                    ArrayRef<AffineMap> maps,
                                    PatternRewriter &rewriter) {
    SmallVector<Value> inputs = op.getDpsInputs();
    inputs[number] = copy.source;
    linalg::GenericOp generic =
        takeBody(rewriter, op, inputs, op.getDpsInits(), maps);
    if (copy.cast)
      castArgument(generic, number, copy, rewriter);
    rewriter.replaceOp(op, generic);
    return success();
  }

  /// Makes the body cast the elements of the operand's source.
  static void castArgument(linalg::GenericOp op, unsigned number,
                           const ProjectedCopy &copy,
                           PatternRewriter &rewriter) {
    OpBuilder::InsertionGuard guard(rewriter);
    Block &body = *op.getBody();
    rewriter.setInsertionPointToStart(&body);
    BlockArgument argument = body.getArgument(number);
    Operation *cast = rewriter.clone(*copy.cast);
    rewriter.replaceAllUsesWith(argument, cast->getResult(0));
    argument.setType(getElementTypeOrSelf(copy.source.getType()));
    rewriter.modifyOpInPlace(cast, [&] { cast->setOperand(0, argument); });
  }
};

/// Returns true if only a contraction reads the tensor, perhaps after reshapes
/// and elementwise operators.
bool isFactorOfContraction(Value tensor) {
  while (tensor.hasOneUse()) {
    OpOperand &use = *tensor.use_begin();
    Operation *reader = use.getOwner();
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(reader)) {
      tensor = reader->getResult(0);
      continue;
    }
    auto op = dyn_cast<linalg::LinalgOp>(reader);
    if (!op)
      return false;
    if (matchContraction(op))
      return op.isDpsInput(&use);
    if (matchUnaryElementwise(op) != &use)
      return false;
    tensor = op->getResult(0);
  }
  return false;
}

/// Returns the result of the elementwise operator for `source` in place of its
/// input with dimensions, element by element. Takes the operator's body.
Value applyTo(Value source, linalg::GenericOp op, OpOperand &input,
              PatternRewriter &rewriter) {
  Location loc = op.getLoc();
  int64_t rank = cast<RankedTensorType>(source.getType()).getRank();
  SmallVector<Value> inputs = op.getInputs();
  inputs[input.getOperandNumber()] = source;
  SmallVector<AffineMap> maps(inputs.size() + 1,
                              AffineMap::get(rank, 0, rewriter.getContext()));
  maps[input.getOperandNumber()] = maps.back() =
      AffineMap::getMultiDimIdentityMap(rank, rewriter.getContext());
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, tensor::getMixedSizes(rewriter, loc, source),
      getElementTypeOrSelf(op->getResult(0).getType()));
  auto applied = linalg::GenericOp::create(
      rewriter, loc, empty.getType(), inputs, empty, maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel));
  rewriter.inlineRegionBefore(op.getRegion(), applied.getRegion(),
                              applied.getRegion().begin());
  return applied.getResult(0);
}

/// Moves a transpose or broadcast that an elementwise operator reads, or does
/// itself, after the operator, so that a contraction reads through it: scaled
/// keys are computed once, not for each head of queries that they serve.
struct MoveCopyAfterElementwise : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    OpOperand *input = matchUnaryElementwise(op);
    if (!input || matchExactCopy(op) ||
        !isFactorOfContraction(op->getResult(0)))
      return failure();
    AffineMap read = op.getMatchingIndexingMap(input);
    AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    if (!read.isProjectedPermutation() || !written.isPermutation())
      return failure();
    AffineMap map = read.compose(inversePermutation(written));
    Value source = input->get();
    if (std::optional<ProjectedCopy> copy =
            matchProjectedCopy(source.getDefiningOp())) {
      source = copy->source;
      map = copy->map.compose(map);
    }
    if (map.isIdentity())
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value narrow = applyTo(source, op, *input, rewriter);
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        op, type, narrow, op.getOutputs()[0],
        ArrayRef<AffineMap>{map, AffineMap::getMultiDimIdentityMap(
                                     type.getRank(), rewriter.getContext())},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [](OpBuilder &builder, Location loc, ValueRange arguments) {
          linalg::YieldOp::create(builder, loc, arguments[0]);
        });
    return success();
  }
};

/// Moves an elementwise operator after the reshape of its result, so that it
/// stands before the contraction that reads it, and can be its prologue.
template <typename ReshapeOp>
struct MoveElementwiseAfterReshape : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto producer = op.getSrc().template getDefiningOp<linalg::GenericOp>();
    OpOperand *input = producer ? matchUnaryElementwise(producer) : nullptr;
    if (!input || !producer->hasOneUse() || matchExactCopy(producer) ||
        !producer.getMatchingIndexingMap(input).isIdentity() ||
        !producer.getMatchingIndexingMap(producer.getDpsInitOperand(0))
             .isIdentity() ||
        !isFactorOfContraction(op.getResult()))
      return failure();
    auto type = cast<RankedTensorType>(op.getType())
                    .clone(getElementTypeOrSelf(input->get().getType()));
    Value source;
    if constexpr (std::is_same_v<ReshapeOp, tensor::ExpandShapeOp>)
      source = tensor::ExpandShapeOp::create(
          rewriter, op.getLoc(), type, input->get(),
          op.getReassociationIndices(), op.getMixedOutputShape());
    else
      source = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), type,
                                               input->get(),
                                               op.getReassociationIndices());
    rewriter.replaceOp(op, applyTo(source, producer, *input, rewriter));
    rewriter.eraseOp(producer);
    return success();
  }
};

/// Widens constant factors of fewer than 8 bits that a contraction extends to
/// constants of 8 bits: codegen paths copy whole bytes.
struct WidenSubByteFactor : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!matchContraction(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      DenseIntElementsAttr factor;
      if (!matchPattern(operand->get(), m_Constant(&factor)) ||
          !factor.getElementType().isSignlessInteger())
        continue;
      unsigned width = factor.getElementType().getIntOrFloatBitWidth();
      std::optional<bool> isSigned =
          matchExtensions(op.getMatchingBlockArgument(operand));
      if (!isSigned || width == 1 || width >= 8)
        continue;
      Type byte = rewriter.getI8Type();
      unsigned number = operand->getOperandNumber();
      Value wide = arith::ConstantOp::create(
          rewriter, operand->get().getLoc(),
          factor.mapValues(byte, [&](const APInt &value) {
            return *isSigned ? value.sext(8) : value.zext(8);
          }));
      FailureOr<linalg::GenericOp> generic = toGeneric(rewriter, op);
      if (failed(generic))
        return failure();
      rewriter.modifyOpInPlace(*generic, [&] {
        generic->getInputsMutable()[number].set(wide);
        generic->getBody()->getArgument(number).setType(byte);
      });
      return success();
    }
    return failure();
  }

private:
  /// Returns whether all uses extend the argument with sign; none if they
  /// differ, or if one does not extend it to more than 8 bits.
  static std::optional<bool> matchExtensions(BlockArgument argument) {
    std::optional<bool> isSigned;
    for (Operation *user : argument.getUsers()) {
      if (!isa<arith::ExtSIOp, arith::ExtUIOp>(user) ||
          user->getResult(0).getType().getIntOrFloatBitWidth() <= 8 ||
          (isSigned && *isSigned != isa<arith::ExtSIOp>(user)))
        return std::nullopt;
      isSigned = isa<arith::ExtSIOp>(user);
    }
    return isSigned;
  }
};

/// Maximum number of loops of a contraction that becomes a workload.
constexpr unsigned kMaxLoops =
    ukernel::WorkloadOp::kNumProductAxes + ukernel::WorkloadOp::kMaxBatchAxes;

/// Drops batch loops of extent 1 where a workload has no room for them, or
/// where they are innermost. Elsewhere they cost nothing, and epilogues may
/// read along them.
struct DropUnitBatch : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Contraction> loops = matchContraction(op);
    if (!loops || loops->batch.empty())
      return failure();
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    SmallVector<unsigned> units;
    for (unsigned loop : loops->batch)
      if (extents[loop] == 1)
        units.push_back(loop);
    bool isInnermost =
        llvm::any_of(op.getIndexingMapsArray(), [&](AffineMap m) {
          auto last = cast<AffineDimExpr>(m.getResults().back());
          return llvm::is_contained(units, last.getPosition());
        });
    if (units.empty() || (!isInnermost && op.getNumLoops() <= kMaxLoops))
      return failure();
    return dropUnitLoops(rewriter, op, units);
  }
};

/// Returns the order in which the program stores the product's result, in the
/// product's loops: its own order after the elementwise operators and
/// transposes that alone read it. The operators become its epilogue, which
/// writes in that order.
AffineMap storedOrder(linalg::LinalgOp product) {
  AffineMap order =
      product.getMatchingIndexingMap(product.getDpsInitOperand(0));
  Value stored = product->getResult(0);
  while (stored.hasOneUse()) {
    OpOperand &use = *stored.use_begin();
    auto reader = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!reader || reader.getNumParallelLoops() != reader.getNumLoops() ||
        reader->getNumResults() != 1 || reader.isDpsInit(&use))
      break;
    AffineMap read = reader.getMatchingIndexingMap(&use);
    AffineMap written =
        reader.getMatchingIndexingMap(reader.getDpsInitOperand(0));
    if (!read.isPermutation() || !written.isPermutation())
      break;
    order = inversePermutation(read).compose(order);
    order = written.compose(order);
    stored = reader->getResult(0);
  }
  return order;
}

/// Collapses loops of one role that every operand has side by side in one order
/// into one loop. Batch loops stay apart while a workload has room for them, so
/// that epilogues may read them one by one.
///
/// In a batch of products, the loops must also lie side by side in the result
/// as the program stores it: the heads of one group and their queries are one
/// loop only if the result is stored by head, then by query. Otherwise a kernel
/// of its own would transpose the result. A single product joins them anyway:
/// its rhs, usually weights, would be read again for each step of the loop left
/// apart.
struct CollapseContraction
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Contraction> loops = matchContraction(op);
    // A static extent of 0 times a dynamic one is 0 and still a dynamic
    // extent, which upstream's collapse does not type so.
    if (!loops || llvm::is_contained(op.getStaticLoopRanges(), 0))
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    if (!loops->batch.empty())
      maps.push_back(storedOrder(op));
    SmallVector<ReassociationIndices> groups = groupsOf(*loops, maps);
    // A kernel of its own transposes the result if a workload has no room for
    // the loops that stay apart.
    if (numLoopsAfter(op, groups) > kMaxLoops)
      groups = groupsOf(*loops, op.getIndexingMapsArray());
    if (numLoopsAfter(op, groups) > kMaxLoops)
      addGroups(loops->batch, maps[0], op.getIndexingMapsArray(), groups);
    if (groups.empty())
      return failure();
    // A collapsed named op would keep its maps over all loops.
    bool isNamed = !isa<linalg::GenericOp>(op.getOperation());
    FailureOr<linalg::GenericOp> generic = toGeneric(rewriter, op);
    if (failed(generic))
      return failure();
    FailureOr<linalg::CollapseResult> result =
        linalg::collapseOpIterationDims(*generic, groups, rewriter);
    if (succeeded(result))
      rewriter.replaceOp(*generic, result->results);
    return success(isNamed || succeeded(result));
  }

private:
  /// Adds the groups of loops of one role that all maps have side by side in
  /// the given order.
  static void addGroups(ArrayRef<unsigned> role, AffineMap order,
                        ArrayRef<AffineMap> maps,
                        SmallVectorImpl<ReassociationIndices> &groups) {
    ReassociationIndices group;
    auto finish = [&] {
      if (group.size() > 1)
        groups.push_back(group);
    };
    for (AffineExpr result : order.getResults()) {
      unsigned loop = cast<AffineDimExpr>(result).getPosition();
      if (!llvm::is_contained(role, loop))
        continue;
      ReassociationIndices longer = group;
      longer.push_back(loop);
      if (!linalg::areDimSequencesPreserved(maps, {longer})) {
        finish();
        longer = {static_cast<int64_t>(loop)};
      }
      group = longer;
    }
    finish();
  }

  /// Returns the groups of m, n and k loops that all maps have side by side.
  static SmallVector<ReassociationIndices> groupsOf(const Contraction &loops,
                                                    ArrayRef<AffineMap> maps) {
    SmallVector<ReassociationIndices> groups;
    addGroups(loops.m, maps[0], maps, groups);
    addGroups(loops.n, maps[1], maps, groups);
    addGroups(loops.k, maps[0], maps, groups);
    return groups;
  }

  static unsigned numLoopsAfter(linalg::LinalgOp op,
                                ArrayRef<ReassociationIndices> groups) {
    unsigned numLoops = op.getNumLoops();
    for (const ReassociationIndices &group : groups)
      numLoops -= group.size() - 1;
    return numLoops;
  }
};

/// Adds loops of extent 1 to products of a matrix and a vector, and of two
/// vectors, so that they have the loops of products of matrices. The added
/// loops are outermost, so that rows of the matrix become columns of the
/// result, which are contiguous. Products of pairs of vectors, such as rows of
/// two tensors, stay as they are: they are sums.
struct AddUnitLoops : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Contraction> loops = matchContraction(op);
    if (!loops || loops->k.empty() || !(loops->m.empty() || loops->n.empty()))
      return failure();
    if (loops->m.empty() && loops->n.empty() && !loops->batch.empty())
      return failure();
    MLIRContext *context = rewriter.getContext();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
    SmallVector<Value> operands = op->getOperands();
    unsigned numLoops = op.getNumLoops();
    auto addUnit = [&](ArrayRef<unsigned> role, unsigned factor) {
      if (!role.empty())
        return;
      AffineExpr unit = getAffineDimExpr(numLoops++, context);
      iterators.push_back(utils::IteratorType::parallel);
      for (unsigned operand : {factor, 2u}) {
        operands[operand] =
            withLeadingUnit(rewriter, op.getLoc(), operands[operand]);
        maps[operand] = maps[operand].insertResult(unit, 0);
      }
    };
    addUnit(loops->m, 0);
    addUnit(loops->n, 1);
    for (AffineMap &map : maps)
      map = AffineMap::get(numLoops, 0, map.getResults(), context);
    auto product = linalg::GenericOp::create(
        rewriter, op.getLoc(), operands[2].getType(),
        ArrayRef<Value>(operands).take_front(2), operands[2], maps, iterators);
    rewriter.cloneRegionBefore(*op.getBlock()->getParent(), product.getRegion(),
                               product.getRegion().end());
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
        op, op->getResult(0).getType(), product.getResult(0),
        leadingUnits(cast<RankedTensorType>(operands[2].getType()).getRank(),
                     numLoops - op.getNumLoops()));
    return success();
  }

private:
  /// Returns groups of dimensions in which the leading `numUnits` join the
  /// dimension after them; no groups if no dimension follows.
  static SmallVector<ReassociationIndices> leadingUnits(int64_t rank,
                                                        int64_t numUnits) {
    SmallVector<ReassociationIndices> groups;
    for (int64_t dim = numUnits; dim < rank; ++dim)
      groups.push_back({dim});
    if (!groups.empty())
      groups[0] = llvm::to_vector<2>(llvm::seq<int64_t>(0, numUnits + 1));
    return groups;
  }

  static Value withLeadingUnit(PatternRewriter &rewriter, Location loc,
                               Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
    shape.insert(shape.begin(), 1);
    return tensor::ExpandShapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
        tensor, leadingUnits(shape.size(), 1));
  }
};
} // namespace

void ftuner::populateContractionOperandPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldCopyIntoContraction, MoveCopyAfterElementwise,
               MoveElementwiseAfterReshape<tensor::ExpandShapeOp>,
               MoveElementwiseAfterReshape<tensor::CollapseShapeOp>,
               WidenSubByteFactor>(patterns.getContext());
}

void ftuner::populateContractionLoopPatterns(RewritePatternSet &patterns) {
  // Loops that are joined leave reshapes before the contraction.
  patterns.add<FoldCopyIntoContraction, DropUnitBatch, CollapseContraction,
               AddUnitLoops, MoveElementwiseAfterReshape<tensor::ExpandShapeOp>,
               MoveElementwiseAfterReshape<tensor::CollapseShapeOp>>(
      patterns.getContext());
}
