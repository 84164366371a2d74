//===- NormalizeLinalg.cpp - The form that workloads start from -----------===//
//
// Four steps, each by greedy patterns:
//
// 1. One form for each thing: elementwise operators and data movements become
//    linalg.generic, what fills a tensor becomes linalg.fill, broadcast inputs
//    have no dimensions of extent 1, scalars are computed outside.
// 2. Convolutions of points become contractions. Contractions have no zero
//    points, read transposed, broadcast and widened operands where these come
//    from, and have few loops: neighbouring loops of one role (m, n, k) are
//    collapsed through tensor.collapse_shape, batch loops where there are too
//    many. Those of a vector get the loops that they lack.
// 3. Reshapes sink below elementwise operators and rise above data movements,
//    and these fuse into one.
// 4. Elementwise operators behind products of vectors get the loops that those
//    got.
//
// Operators are never fused into a contraction: it would stop being one. Nor
// does fusion change where a program rounds.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/LinalgStructure.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Transforms/Passes.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

namespace ftuner {
#define GEN_PASS_DEF_UKERNELNORMALIZELINALGPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

//===----------------------------------------------------------------------===//
// One form for each thing
//===----------------------------------------------------------------------===//

/// Named elementwise operators and data movements to linalg.generic.
struct GeneralizeElementwise
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()) ||
        op.getNumParallelLoops() != op.getNumLoops() || op.hasIndexSemantics())
      return failure();
    if (!llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
          return map.isProjectedPermutation();
        }))
      return failure();
    return linalg::generalizeNamedOp(rewriter, op);
  }
};

Value createFill(PatternRewriter &rewriter, Location loc, Value scalar,
                 ArrayRef<OpFoldResult> sizes) {
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, scalar.getType());
  return linalg::FillOp::create(rewriter, loc, scalar, empty).getResult(0);
}

/// linalg.generic that fills a tensor to linalg.fill.
struct GenericToFill : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1)
      return failure();
    std::optional<Value> scalar = linalg::isaFillOpInterface(op);
    if (!scalar || !scalar->getType().isIntOrIndexOrFloat() ||
        scalar->getParentBlock() == op.getBlock())
      return failure();
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, *scalar,
                                                op.getDpsInits()[0]);
    return success();
  }
};

/// tensor.splat to linalg.fill.
struct SplatToFill : public OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::SplatOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<OpFoldResult> sizes =
        getMixedValues(op.getType().getShape(), op.getDynamicSizes(), rewriter);
    rewriter.replaceOp(op,
                       createFill(rewriter, op.getLoc(), op.getInput(), sizes));
    return success();
  }
};

/// tensor.from_elements of one element to linalg.fill.
struct SingleElementToFill : public OpRewritePattern<tensor::FromElementsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::FromElementsOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getElements().size() != 1)
      return failure();
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(op.getContext(), op.getType().getShape());
    rewriter.replaceOp(
        op, createFill(rewriter, op.getLoc(), op.getElements().front(), sizes));
    return success();
  }
};

/// A constant of no elements to tensor.empty: upstream's ranges of integers
/// (arith::ConstantOp::inferResultRanges) read an element of any constant.
struct ConstantOfNothingToEmpty : public OpRewritePattern<arith::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || type.getNumElements() != 0)
      return failure();
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(op, type.getShape(),
                                                 type.getElementType());
    return success();
  }
};

/// Folds roots of constants of 16 bits, which upstream leaves alone: hoisted
/// from an operator's body, one would be computed on the host, which compilers
/// that take the rest may not do in 16 bits.
struct FoldNarrowRoot : public OpRewritePattern<math::SqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::SqrtOp op,
                                PatternRewriter &rewriter) const override {
    FloatAttr operand;
    if (!isa<Float16Type, BFloat16Type>(op.getType()) ||
        !matchPattern(op.getOperand(), m_Constant(&operand)) ||
        operand.getValue().isNegative())
      return failure();
    // A double has more than twice the digits, so it is rounded once.
    double root = std::sqrt(operand.getValueAsDouble());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, rewriter.getFloatAttr(op.getType(), root));
    return success();
  }
};

/// Powers of 16 bits with constant exponents are taken in f32, and rounded once
/// as before: upstream makes products of them, each of which would round.
template <typename PowerOp>
struct WidenNarrowPower : public OpRewritePattern<PowerOp> {
  using OpRewritePattern<PowerOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(PowerOp op,
                                PatternRewriter &rewriter) const override {
    Value exponent = op.getRhs();
    if (!isa<Float16Type, BFloat16Type>(op.getType()) ||
        !matchPattern(exponent, m_Constant()))
      return failure();
    Location loc = op.getLoc();
    Type wide = rewriter.getF32Type();
    auto widen = [&](Value value) -> Value {
      return arith::ExtFOp::create(rewriter, loc, wide, value);
    };
    if (isa<FloatType>(exponent.getType()))
      exponent = widen(exponent);
    Value power =
        PowerOp::create(rewriter, loc, wide, widen(op.getLhs()), exponent);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), power);
    return success();
  }
};

/// Scalars that a body computes from other scalars, the same for all elements,
/// are computed before the operator; scalar inputs are read from outside.
struct HoistScalars : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(input);
      if (isa<ShapedType>(input->get().getType()) || argument.use_empty())
        continue;
      rewriter.replaceAllUsesWith(argument, input->get());
      changed = true;
    }
    for (Operation &inner :
         llvm::make_early_inc_range(op.getBody()->without_terminator())) {
      if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) ||
          !isPure(&inner) ||
          !llvm::all_of(inner.getOperands(), [&](Value operand) {
            return operand.getParentRegion()->isProperAncestor(&op.getRegion());
          }))
        continue;
      rewriter.moveOpBefore(&inner, op);
      changed = true;
    }
    return success(changed);
  }
};

/// A reduction that overwrites its output in each step leaves what it started
/// from where it has no steps. Upstream takes what no body reads for undefined,
/// so the body reads it.
struct ReadOverwrittenInit : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<unsigned> reduced;
    op.getReductionDims(reduced);
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    bool mayBeEmpty = llvm::any_of(reduced, [&](unsigned loop) {
      return extents[loop] == 0 || ShapedType::isDynamic(extents[loop]);
    });
    if (!mayBeEmpty || !op.hasPureTensorSemantics())
      return failure();
    bool changed = false;
    Operation *yield = op.getBody()->getTerminator();
    rewriter.setInsertionPoint(yield);
    for (auto [number, init] : llvm::enumerate(op.getDpsInitsMutable())) {
      if (op.payloadUsesValueFromOperand(&init) ||
          init.get().getDefiningOp<tensor::EmptyOp>())
        continue;
      // True of every step, which no pass finds out.
      Location loc = op.getLoc();
      Value step = linalg::IndexOp::create(rewriter, loc, reduced.front());
      Value none = arith::ConstantIndexOp::create(rewriter, loc, -1);
      Value isStep = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ne, step, none);
      Value next = arith::SelectOp::create(rewriter, loc, isStep,
                                           yield->getOperand(number),
                                           op.getMatchingBlockArgument(&init));
      rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(number, next); });
      changed = true;
    }
    return success(changed);
  }
};

/// Inputs of extent 1 along a dimension, which a map reads at the constant 0,
/// lose that dimension.
struct DropUnitDims : public OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    bool changed = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap &map = maps[input->getOperandNumber()];
      if (std::optional<Value> source =
              dropUnitDims(rewriter, op.getLoc(), input->get(), map)) {
        rewriter.modifyOpInPlace(op, [&] { input->set(*source); });
        changed = true;
      }
    }
    if (!changed)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    });
    return success();
  }

private:
  /// The tensor without the dimensions that `map` reads at 0, and its map.
  static std::optional<Value> dropUnitDims(PatternRewriter &rewriter,
                                           Location loc, Value tensor,
                                           AffineMap &map) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || type.getEncoding())
      return std::nullopt;
    SmallVector<ReassociationIndices> groups;
    SmallVector<AffineExpr> kept;
    SmallVector<int64_t> shape;
    ReassociationIndices group;
    for (auto [dim, index] : llvm::enumerate(map.getResults())) {
      group.push_back(dim);
      auto constant = dyn_cast<AffineConstantExpr>(index);
      if (constant && constant.getValue() == 0 && type.getDimSize(dim) == 1)
        continue;
      groups.push_back(std::exchange(group, {}));
      kept.push_back(index);
      shape.push_back(type.getDimSize(dim));
    }
    if (kept.size() == map.getNumResults())
      return std::nullopt;
    if (!groups.empty())
      groups.back().append(group);
    map = AffineMap::get(map.getNumDims(), 0, kept, rewriter.getContext());
    return tensor::CollapseShapeOp::create(
        rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
        tensor, groups);
  }
};

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// A contraction reads the source of a transposed, broadcast or widened
/// operand, so that memory holds the narrow type alone.
struct FoldCopyIntoContraction
    : public OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!matchContraction(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      std::optional<ProjectedCopy> copy =
          matchExactCopy(operand->get().getDefiningOp());
      if (!copy || (copy->cast && !isFactorType(copy->source.getType())))
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
  /// Whether codegen paths multiply elements of the type by wider ones.
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
    auto generic = linalg::GenericOp::create(
        rewriter, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(),
        maps, op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op->getRegion(0), generic.getRegion(),
                                generic.getRegion().begin());
    if (copy.cast)
      castArgument(generic, number, copy, rewriter);
    rewriter.replaceOp(op, generic);
    return success();
  }

  /// The body casts what it now reads.
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

/// The operator as a linalg.generic, where its kind has no room for other maps.
FailureOr<linalg::GenericOp> toGeneric(PatternRewriter &rewriter,
                                       linalg::LinalgOp op) {
  if (auto generic = dyn_cast<linalg::GenericOp>(op.getOperation()))
    return generic;
  return linalg::generalizeNamedOp(rewriter, op);
}

/// Constant factors of fewer than 8 bits that a contraction extends become
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
  /// Whether all uses extend the argument to more than 8 bits, and with sign.
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

/// Most loops of a contraction that becomes a workload.
constexpr unsigned kMaxLoops =
    ukernel::WorkloadOp::kNumProductAxes + ukernel::WorkloadOp::kMaxBatchAxes;

/// Batch loops of extent 1 are dropped where a workload has no room for them,
/// or where they are innermost. Elsewhere they cost nothing, and epilogues may
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
    bool isNamed = !isa<linalg::GenericOp>(op.getOperation());
    FailureOr<linalg::GenericOp> generic = toGeneric(rewriter, op);
    if (failed(generic))
      return failure();
    linalg::ControlDropUnitDims options;
    options.controlFn = [&](Operation *) { return units; };
    FailureOr<linalg::DropUnitDimsResult> result =
        linalg::dropUnitDims(rewriter, *generic, options);
    if (succeeded(result))
      rewriter.replaceOp(*generic, result->replacements);
    return success(isNamed || succeeded(result));
  }
};

/// Loops of one role that every operand has side by side in one order become
/// one loop. Batch loops stay apart while a workload has room for them, so that
/// epilogues may read them one by one.
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
    SmallVector<ReassociationIndices> groups;
    unsigned numLoops = op.getNumLoops();
    auto add = [&](const ReassociationIndices &group) {
      if (group.size() < 2)
        return;
      groups.push_back(group);
      numLoops -= group.size() - 1;
    };
    auto collapse = [&](ArrayRef<unsigned> role, AffineMap order) {
      ReassociationIndices group;
      for (AffineExpr result : order.getResults()) {
        unsigned loop = cast<AffineDimExpr>(result).getPosition();
        if (!llvm::is_contained(role, loop))
          continue;
        ReassociationIndices longer = group;
        longer.push_back(loop);
        if (!linalg::areDimSequencesPreserved(maps, {longer})) {
          add(group);
          longer = {static_cast<int64_t>(loop)};
        }
        group = longer;
      }
      add(group);
    };
    collapse(loops->m, maps[0]);
    collapse(loops->n, maps[1]);
    collapse(loops->k, maps[0]);
    if (numLoops > kMaxLoops)
      collapse(loops->batch, maps[0]);
    if (groups.empty())
      return failure();
    // Collapsed, a named op would keep its maps over all loops.
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
};

/// Products of a matrix and a vector, and of two vectors, get the loops that
/// products of matrices have, of extent 1. They are outermost, so that rows of
/// the matrix become columns of the result, which are contiguous. Products of
/// pairs of vectors, such as rows of two tensors, stay: they are sums.
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
  /// Groups of dimensions, the first few of which belong to the one behind
  /// them; none where there is none behind.
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

//===----------------------------------------------------------------------===//
// Elementwise operators
//===----------------------------------------------------------------------===//

/// Whether a reduction in f16 or bf16 would round elsewhere with the producer
/// of `operand` in its body: sums of products do not round their products,
/// others do.
bool changesRoundings(OpOperand *operand) {
  auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
  if (consumer.getNumReductionLoops() == 0 ||
      llvm::none_of(consumer.getDpsInits(), [](Value init) {
        Type type = getElementTypeOrSelf(init.getType());
        return type.isF16() || type.isBF16();
      }))
    return false;
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  if (isSumOfProducts(consumer) || !producer)
    return true;
  Value produced = producer.getBlock()->getTerminator()->getOperand(
      cast<OpResult>(operand->get()).getResultNumber());
  return produced.getDefiningOp<arith::MulFOp>() != nullptr;
}

/// Whether an elementwise producer becomes part of its consumer: if nobody else
/// needs its result, or if it only moves elements.
bool shouldFuse(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  Operation *producer = operand->get().getDefiningOp();
  if (!consumer || !producer || matchContraction(consumer) ||
      changesRoundings(operand))
    return false;
  return producer->hasOneUse() || matchProjectedCopy(producer).has_value();
}

/// Whether a reshape moves past an operator, whose dimensions it collapses:
/// from an operand of an elementwise operator to the result, if it is the
/// reshape of an operator's result, or from the result of a data movement to
/// what this reads, as where a collapsed contraction starts from a broadcast.
bool shouldMoveReshape(OpOperand *operand) {
  if (isa<tensor::CollapseShapeOp>(operand->getOwner())) {
    Operation *producer = operand->get().getDefiningOp();
    return producer->hasOneUse() && matchProjectedCopy(producer).has_value();
  }
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto reshape = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
  if (!consumer || consumer.getNumParallelLoops() != consumer.getNumLoops())
    return false;
  return reshape && reshape->hasOneUse() &&
         reshape.getSrc().getDefiningOp<linalg::LinalgOp>();
}

/// Whether an elementwise operator gets the outermost dimensions of extent 1
/// that a contraction before it has (AddUnitLoops), to be its epilogue.
bool shouldExpand(OpOperand *operand) {
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  auto reshape = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  if (!consumer || consumer.getNumParallelLoops() != consumer.getNumLoops() ||
      !reshape || !reshape->hasOneUse())
    return false;
  auto producer = reshape.getSrc().getDefiningOp<linalg::LinalgOp>();
  if (!producer || !matchContraction(producer))
    return false;
  ArrayRef<int64_t> from = reshape.getSrcType().getShape();
  ArrayRef<int64_t> to = reshape.getResultType().getShape();
  return from.take_back(to.size()) == to &&
         llvm::all_equal(from.drop_back(to.size())) && from.front() == 1;
}

/// Folds of casts, reshapes, empty tensors and dimensions, as upstream's
/// fusion passes use them.
void addCleanups(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  context->getLoadedDialect<linalg::LinalgDialect>()
      ->getCanonicalizationPatterns(patterns);
  linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
  linalg::FillOp::getCanonicalizationPatterns(patterns, context);
  affine::AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  tensor::CastOp::getCanonicalizationPatterns(patterns, context);
  tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::DimOp::getCanonicalizationPatterns(patterns, context);
  tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
  tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, context);
  tensor::populateFoldTensorEmptyPatterns(patterns);
  // A dimension of a result must not count as a use of the result.
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
}

struct UKernelNormalizeLinalgPass
    : public ftuner::impl::UKernelNormalizeLinalgPassBase<
          UKernelNormalizeLinalgPass> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    auto apply = [&](llvm::function_ref<void(RewritePatternSet &)> populate) {
      RewritePatternSet patterns(context);
      populate(patterns);
      addCleanups(patterns);
      return applyPatternsGreedily(getOperation(), std::move(patterns));
    };
    if (failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateElementwiseToLinalgConversionPatterns(patterns);
          // What is read is an input, so that producers fuse without a rest.
          linalg::populateMoveInitOperandsToInputPattern(patterns);
          populateGeneralizeQuantizedPatterns(patterns);
          populateGeneralizePointConvolutionPatterns(patterns);
          populateElementGuardPatterns(patterns);
          populateNegativePadPatterns(patterns);
          // Powers with small constant exponents are products, which epilogues
          // take.
          populateMathAlgebraicSimplificationPatterns(patterns);
          patterns.add<WidenNarrowPower<math::FPowIOp>,
                       WidenNarrowPower<math::PowFOp>>(context, /*benefit=*/2);
          patterns.add<GeneralizeElementwise, GenericToFill, SplatToFill,
                       SingleElementToFill, HoistScalars, DropUnitDims,
                       FoldNarrowRoot, ReadOverwrittenInit>(context);
        })) ||
        failed(apply([&](RewritePatternSet &patterns) {
          populatePointConvolutionPatterns(patterns);
          populateZeroPointPatterns(patterns);
          patterns.add<FoldCopyIntoContraction, WidenSubByteFactor,
                       DropUnitBatch, CollapseContraction, AddUnitLoops>(
              context);
        })) ||
        failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateElementwiseOpsFusionPatterns(patterns, shouldFuse);
          linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns,
                                                             shouldMoveReshape);
          patterns.add<GenericToFill, ConstantOfNothingToEmpty>(context);
        })) ||
        // By itself: what the other operands of an operator expand from, the
        // patterns before would collapse again.
        failed(apply([&](RewritePatternSet &patterns) {
          linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                            shouldExpand);
        }))) {
      getOperation().emitError("linalg operators did not reach a fixed form");
      signalPassFailure();
    }
  }
};
} // namespace
