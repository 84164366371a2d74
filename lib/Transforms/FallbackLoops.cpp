//===- FallbackLoops.cpp - Points of a linalg op, a thread each -*- C++ -*-===//
#include "FallbackLoops.h"

#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

/// Whether the body of `op` computes in f32 what it states in f16 or bf16.
static bool canPromote(linalg::LinalgOp op) {
  bool hasNarrow = false;
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (isa<linalg::IndexOp, cf::AssertOp>(inner))
      continue;
    if (inner.getNumRegions() != 0 || isa<arith::BitcastOp>(inner) ||
        !isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()))
      return false;
  }
  for (Type type : op.getBlock()->getArgumentTypes())
    hasNarrow |= isNarrowFloat(type);
  return hasNarrow;
}

/// Whether an output does not depend on the sequential loops.
static bool staysInRegister(linalg::LinalgOp op, const LoopSplit &split,
                            OpOperand &output) {
  AffineMap map = op.getMatchingIndexingMap(&output);
  return llvm::none_of(split.sequential, [&](unsigned loop) {
    return map.isFunctionOfDim(loop);
  });
}

/// What combines each output with what the sequential loops add to it, in
/// order; none unless each has one combiner, of numbers of 32 bits, and a
/// register.
static std::optional<SmallVector<Operation *>>
combinersOf(linalg::LinalgOp op, const LoopSplit &split) {
  SmallVector<Operation *> all;
  ArrayRef<BlockArgument> sums = op.getRegionOutputArgs();
  for (OpOperand &output : op.getDpsInitsMutable()) {
    SmallVector<Operation *> combiners;
    BlockArgument sum = op.getMatchingBlockArgument(&output);
    if (!staysInRegister(op, split, output) ||
        !matchReduction(sums, all.size(), combiners) || combiners.size() != 1)
      return std::nullopt;
    bool isKnown = linalg::getCombinerOpKind(combiners.front()) &&
                   arith::getNeutralElement(combiners.front());
    bool isPromoted = canPromote(op) && isNarrowFloat(sum.getType());
    if (!isKnown ||
        (!isPromoted && sum.getType().getIntOrFloatBitWidth() != 32))
      return std::nullopt;
    all.push_back(combiners.front());
  }
  return all;
}

/// The sequential loop along which an operand is contiguous, if there is one.
static std::optional<unsigned> contiguousLoop(linalg::LinalgOp op,
                                              const LoopSplit &split) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<MemRefType>(input->get().getType()) || map.getNumResults() == 0)
      continue;
    auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
    if (last && llvm::is_contained(split.sequential, last.getPosition()))
      return last.getPosition();
  }
  return std::nullopt;
}

/// Least iterations that are worth a warp.
static constexpr int64_t kLeastAcrossLanes = 8;

static void splitAcrossLanes(linalg::LinalgOp op, LoopSplit &split) {
  std::optional<unsigned> loop = contiguousLoop(op, split);
  if (!loop || !combinersOf(op, split))
    return;
  int64_t extent = op.getStaticLoopRanges()[*loop];
  if (!ShapedType::isDynamic(extent) && extent < kLeastAcrossLanes)
    return;
  llvm::erase(split.sequential, *loop);
  split.sequential.push_back(*loop);
  split.isAcrossLanes = true;
}

LoopSplit ftuner::splitLoops(linalg::LinalgOp op) {
  SmallVector<AffineMap> outputs;
  for (OpOperand &operand : op.getDpsInitsMutable())
    outputs.push_back(op.getMatchingIndexingMap(&operand));
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  llvm::SmallBitVector isParallel(iterators.size());
  for (auto [loop, iterator] : llvm::enumerate(iterators))
    if (iterator == utils::IteratorType::parallel)
      isParallel[loop] = llvm::all_of(outputs, [&, loop = loop](AffineMap map) {
        return llvm::is_contained(map.getResults(),
                                  getAffineDimExpr(loop, op->getContext()));
      });
  LoopSplit split;
  // In the order of the first output, so that neighbouring threads write
  // neighbouring elements.
  if (!outputs.empty())
    for (AffineExpr expr : outputs.front().getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (isParallel[dim.getPosition()] &&
            !llvm::is_contained(split.parallel, dim.getPosition()))
          split.parallel.push_back(dim.getPosition());
  for (unsigned loop = 0; loop < iterators.size(); ++loop)
    if (!isParallel[loop])
      split.sequential.push_back(loop);
  splitAcrossLanes(op, split);
  return split;
}

SmallVector<Value>
ftuner::computeExtents(ImplicitLocOpBuilder &b, linalg::LinalgOp op,
                       llvm::function_ref<Value(unsigned, int64_t)> sizeOf) {
  AffineMap map = op.getShapesToLoopsMap();
  SmallVector<Value> sizes;
  unsigned position = 0;
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, size] : llvm::enumerate(op.getShape(&operand))) {
      bool isUsed = map.isFunctionOfDim(position++);
      if (!isUsed)
        sizes.push_back(Value());
      else if (ShapedType::isDynamic(size))
        sizes.push_back(sizeOf(operand.getOperandNumber(), dim));
      else
        sizes.push_back(arith::ConstantIndexOp::create(b, size));
    }
  SmallVector<Value> extents;
  for (AffineExpr expr : map.getResults())
    extents.push_back(
        affine::expandAffineExpr(b, b.getLoc(), expr, sizes, ValueRange()));
  return extents;
}

Value ftuner::computePoints(ImplicitLocOpBuilder &b, const LoopSplit &split,
                            ArrayRef<Value> extents) {
  Value points = arith::ConstantIndexOp::create(b, 1);
  for (unsigned loop : split.parallel)
    points = b.createOrFold<arith::MulIOp>(points, extents[loop]);
  return points;
}

namespace {
/// Emits the loads, the body and the stores of one point.
class PointEmitter {
public:
  PointEmitter(ImplicitLocOpBuilder &b, linalg::LinalgOp op,
               const LoopSplit &split, ArrayRef<Value> extents, Value lane,
               const IRMapping &mapping)
      : b(b), op(op), split(split), extents(extents), lane(lane),
        mapping(mapping), ivs(op.getNumLoops()), promote(canPromote(op)) {}

  void emit(Value point);

private:
  void delinearize(Value point);
  void emitAcrossLanes();
  /// Runs the sequential loops from `depth` on; `sums` are the accumulators of
  /// the outputs that stay in registers. Returns their new values.
  SmallVector<Value> emitLoops(unsigned depth, ValueRange sums);
  SmallVector<Value> emitBody(ValueRange sums);
  Value isFirstLane();
  /// What lanes begin with: the first one alone reads where it will write.
  Value startOfLane(OpOperand &output, Operation *combiner);
  /// What all lanes have together.
  Value combineLanes(Operation *combiner, Value value);
  void cloneOp(Operation &inner);
  Value load(OpOperand &operand);
  void store(OpOperand &operand, Value value);
  SmallVector<Value> indices(OpOperand &operand);
  bool staysInRegister(OpOperand &operand) {
    return ::staysInRegister(op, split, operand);
  }
  Value promoted(Value value) {
    return promote ? ftuner::promoted(b, b.getLoc(), value) : value;
  }

  ImplicitLocOpBuilder &b;
  linalg::LinalgOp op;
  const LoopSplit &split;
  ArrayRef<Value> extents;
  Value lane;
  IRMapping mapping;
  SmallVector<Value> ivs;
  bool promote;
};
} // namespace

void PointEmitter::delinearize(Value point) {
  for (unsigned loop : llvm::reverse(split.parallel)) {
    if (loop == split.parallel.front()) {
      ivs[loop] = point;
      break;
    }
    ivs[loop] = arith::RemUIOp::create(b, point, extents[loop]);
    point = arith::DivUIOp::create(b, point, extents[loop]);
  }
}

SmallVector<Value> PointEmitter::indices(OpOperand &operand) {
  SmallVector<Value> result;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    result.push_back(
        affine::expandAffineExpr(b, b.getLoc(), expr, ivs, ValueRange()));
  return result;
}

Value PointEmitter::load(OpOperand &operand) {
  Value source = mapping.lookupOrDefault(operand.get());
  if (!isa<MemRefType>(source.getType()))
    return promoted(source);
  return promoted(
      memref::LoadOp::create(b, source, indices(operand)).getResult());
}

void PointEmitter::store(OpOperand &operand, Value value) {
  Value target = mapping.lookupOrDefault(operand.get());
  Type type = cast<MemRefType>(target.getType()).getElementType();
  if (type != value.getType())
    value = arith::TruncFOp::create(b, type, value);
  memref::StoreOp::create(b, value, target, indices(operand));
}

void PointEmitter::cloneOp(Operation &inner) {
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    mapping.map(index.getResult(), ivs[index.getDim()]);
    return;
  }
  if (isa<cf::AssertOp>(inner))
    return;
  if (promote)
    return clonePromoted(b, inner, mapping);
  Operation *clone = b.clone(inner, mapping);
  clone->walk([&](linalg::IndexOp index) {
    index.replaceAllUsesWith(ivs[index.getDim()]);
    index.erase();
  });
  clone->walk([](cf::AssertOp assertion) { assertion.erase(); });
}

SmallVector<Value> PointEmitter::emitBody(ValueRange sums) {
  Block *body = op.getBlock();
  unsigned nextSum = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    bool isSum = op.isDpsInit(&operand) && staysInRegister(operand);
    Value sum = isSum ? sums[nextSum++] : Value();
    if (!argument.use_empty())
      mapping.map(argument, isSum ? sum : load(operand));
  }
  for (Operation &inner : body->without_terminator())
    cloneOp(inner);
  SmallVector<Value> results;
  for (OpOperand &operand : op.getDpsInitsMutable()) {
    Value value = promoted(
        mapping.lookupOrDefault(op.getMatchingYieldValue(&operand)->get()));
    if (staysInRegister(operand))
      results.push_back(value);
    else
      store(operand, value);
  }
  return results;
}

SmallVector<Value> PointEmitter::emitLoops(unsigned depth, ValueRange sums) {
  if (depth == split.sequential.size())
    return emitBody(sums);
  unsigned loop = split.sequential[depth];
  bool isAcrossLanes =
      split.isAcrossLanes && depth + 1 == split.sequential.size();
  Value first = isAcrossLanes ? lane : arith::ConstantIndexOp::create(b, 0);
  Value step =
      arith::ConstantIndexOp::create(b, isAcrossLanes ? LoopSplit::kLanes : 1);
  auto forOp = scf::ForOp::create(b, first, extents[loop], step, sums);
  OpBuilder::InsertionGuard guard(b);
  // Without sums, the loop comes with its terminator.
  if (sums.empty())
    forOp.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(forOp.getBody());
  ivs[loop] = forOp.getInductionVar();
  scf::YieldOp::create(b, emitLoops(depth + 1, forOp.getRegionIterArgs()));
  return SmallVector<Value>(forOp.getResults());
}

/// The value that changes nothing when it is combined, in `type`, which is that
/// of the combiner or f32 in its place.
static TypedAttr neutralOf(OpBuilder &b, Operation *combiner, Type type) {
  TypedAttr neutral = *arith::getNeutralElement(combiner);
  if (neutral.getType() == type)
    return neutral;
  return b.getFloatAttr(type, cast<FloatAttr>(neutral).getValueAsDouble());
}

static Value combine(OpBuilder &b, Operation *combiner, Value one,
                     Value other) {
  return vector::makeArithReduction(
      b, combiner->getLoc(), *linalg::getCombinerOpKind(combiner), one, other);
}

Value PointEmitter::isFirstLane() {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane,
                               arith::ConstantIndexOp::create(b, 0));
}

Value PointEmitter::startOfLane(OpOperand &output, Operation *combiner) {
  Type type = getElementTypeOrSelf(output.get());
  if (promote && isNarrowFloat(type))
    type = b.getF32Type();
  auto ifOp =
      scf::IfOp::create(b, type, isFirstLane(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, load(output));
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value neutral = arith::ConstantOp::create(b, neutralOf(b, combiner, type));
  scf::YieldOp::create(b, neutral);
  return ifOp.getResult(0);
}

Value PointEmitter::combineLanes(Operation *combiner, Value value) {
  for (int64_t distance = LoopSplit::kLanes / 2; distance > 0; distance /= 2)
    value = combine(b, combiner, value, shuffleXor(b, value, distance));
  return value;
}

void PointEmitter::emit(Value point) {
  delinearize(point);
  if (split.isAcrossLanes)
    return emitAcrossLanes();
  SmallVector<OpOperand *> inRegisters;
  SmallVector<Value> sums;
  for (OpOperand &operand : op.getDpsInitsMutable())
    if (staysInRegister(operand)) {
      inRegisters.push_back(&operand);
      // What no iteration reads or overwrites must stay as it is.
      bool isNeeded = !split.sequential.empty() ||
                      !op.getMatchingBlockArgument(&operand).use_empty();
      sums.push_back(isNeeded ? load(operand) : Value());
    }
  SmallVector<Value> results = emitLoops(0, sums);
  for (auto [operand, value] : llvm::zip_equal(inRegisters, results))
    store(*operand, value);
}

void PointEmitter::emitAcrossLanes() {
  SmallVector<Operation *> combiners = *combinersOf(op, split);
  SmallVector<Value> sums;
  for (auto [output, combiner] :
       llvm::zip_equal(op.getDpsInitsMutable(), combiners))
    sums.push_back(startOfLane(output, combiner));
  SmallVector<Value> results = emitLoops(0, sums);
  for (auto [value, combiner] : llvm::zip_equal(results, combiners))
    value = combineLanes(combiner, value);
  auto ifOp = scf::IfOp::create(b, isFirstLane(), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  for (auto [output, value] : llvm::zip_equal(op.getDpsInitsMutable(), results))
    store(output, value);
}

void ftuner::emitPoint(ImplicitLocOpBuilder &b, linalg::LinalgOp op,
                       const LoopSplit &split, ArrayRef<Value> extents,
                       Value point, Value lane, const IRMapping &mapping) {
  PointEmitter(b, op, split, extents, lane, mapping).emit(point);
}
