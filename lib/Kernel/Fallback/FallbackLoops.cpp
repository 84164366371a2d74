//===- FallbackLoops.cpp - Points of a linalg op, a thread each -*- C++ -*-===//
#include "FTuner/Kernel/Fallback/FallbackLoops.h"

#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
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

/// Returns true where an operand with this map has the elements of neighbouring
/// points of a loop side by side.
static bool isContiguousAlong(AffineMap map, unsigned loop) {
  return map.getNumResults() > 0 &&
         map.getResults().back() == getAffineDimExpr(loop, map.getContext()) &&
         llvm::none_of(map.getResults().drop_back(), [&](AffineExpr expr) {
           return expr.isFunctionOfDim(loop);
         });
}

int64_t ftuner::vectorWidthOf(linalg::LinalgOp op, const LoopSplit &split,
                              int64_t alignment) {
  if (!split.sequential.empty() || split.parallel.empty())
    return 1;
  unsigned loop = split.parallel.back();
  int64_t extent = op.getStaticLoopRanges()[loop], bytes = 1;
  if (ShapedType::isDynamic(extent))
    return 1;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!type || !map.isFunctionOfDim(loop))
      continue;
    if (!isContiguousAlong(map, loop) || !type.getLayout().isIdentity() ||
        !fillsBytes(type))
      return 1;
    bytes = std::max(bytes, elementBytesOf(type));
  }
  int64_t width = alignment / bytes;
  return width > 1 && extent % width == 0 ? width : 1;
}

Value ftuner::computePoints(ImplicitLocOpBuilder &b, const LoopSplit &split,
                            ArrayRef<Value> extents) {
  Value points = arith::ConstantIndexOp::create(b, 1);
  for (unsigned loop : split.parallel)
    points = b.createOrFold<arith::MulIOp>(points, extents[loop]);
  if (split.vectorWidth == 1)
    return points;
  return b.createOrFold<arith::DivUIOp>(
      points, arith::ConstantIndexOp::create(b, split.vectorWidth));
}

namespace {
/// Emits the loads, the body and the stores of one point.
class PointEmitter {
public:
  PointEmitter(ImplicitLocOpBuilder &b, linalg::LinalgOp op,
               const LoopSplit &split, ArrayRef<Value> extents, Value lane,
               const IRMapping &mapping)
      : b(b), op(op), split(split), extents(extents), lane(lane),
        mapping(mapping), ivs(op.getNumLoops()),
        promote(isVector() || promotesToF32(op)) {}

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
  llvm::MaybeAlign alignmentOf(MemRefType type) const {
    return llvm::MaybeAlign(split.vectorWidth * elementBytesOf(type));
  }
  bool staysInRegister(OpOperand &operand) {
    return ftuner::staysInRegister(op, split, operand);
  }
  bool isVector() const { return split.vectorWidth > 1; }
  Value broadcast(Value scalar) {
    return vector::BroadcastOp::create(
        b, VectorType::get({split.vectorWidth}, scalar.getType()), scalar);
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
  Value width = arith::ConstantIndexOp::create(b, split.vectorWidth);
  for (unsigned loop : llvm::reverse(split.parallel)) {
    bool isOfVectors = isVector() && loop == split.parallel.back();
    Value number = point;
    if (loop != split.parallel.front()) {
      Value extent = extents[loop];
      if (isOfVectors)
        extent = b.createOrFold<arith::DivUIOp>(extent, width);
      number = arith::RemUIOp::create(b, point, extent);
      point = arith::DivUIOp::create(b, point, extent);
    }
    ivs[loop] = isOfVectors ? arith::MulIOp::create(b, number, width) : number;
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
  auto type = dyn_cast<MemRefType>(source.getType());
  if (isVector() && type &&
      op.getMatchingIndexingMap(&operand).isFunctionOfDim(
          split.parallel.back()))
    return promoted(vector::LoadOp::create(
        b, VectorType::get({split.vectorWidth}, type.getElementType()), source,
        indices(operand), /*nontemporal=*/false, alignmentOf(type)));
  Value value = source;
  if (type)
    value = memref::LoadOp::create(b, source, indices(operand));
  return promoted(isVector() ? broadcast(value) : value);
}

void PointEmitter::store(OpOperand &operand, Value value) {
  Value target = mapping.lookupOrDefault(operand.get());
  auto type = cast<MemRefType>(target.getType());
  value = rounded(b, b.getLoc(), value, type.getElementType());
  if (isVector())
    vector::StoreOp::create(b, value, target, indices(operand),
                            /*nontemporal=*/false, alignmentOf(type));
  else
    memref::StoreOp::create(b, value, target, indices(operand));
}

void PointEmitter::cloneOp(Operation &inner) {
  if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
    mapping.map(index.getResult(), ivs[index.getDim()]);
    return;
  }
  if (isa<cf::AssertOp>(inner))
    return;
  if (isVector()) {
    clonePromoted(b, inner, mapping, split.vectorWidth);
    if (inner.hasTrait<OpTrait::ConstantLike>())
      for (Value result : inner.getResults())
        mapping.map(result, broadcast(mapping.lookup(result)));
    return;
  }
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
  SmallVector<Operation *> combiners = *laneCombiners(op, split);
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
