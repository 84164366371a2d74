//===- WorkloadMatching.cpp - Which operators become workloads ------------===//
#include "WorkloadFormation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;
using ukernel::WorkloadOp;

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

/// Types that an epilogue computes in.
static bool isEpilogueType(Type type) {
  return type.isF32() ||
         (type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64);
}

/// Remainders of floats are loops, and would be unrolled for every element.
static bool isEpilogueBody(Block &body) {
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() &&
        isEpilogueType(op.getResult(0).getType()))
      continue;
    if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
        !OpTrait::hasElementwiseMappableTraits(&op) || isa<arith::RemFOp>(op) ||
        !llvm::all_of(op.getOperandTypes(), isEpilogueType) ||
        !llvm::all_of(op.getResultTypes(), isEpilogueType))
      return false;
  }
  return true;
}

/// Whether what the body reads can be an extra: tensors of f32 and scalars.
static bool hasEpilogueOperands(linalg::GenericOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (op.getMatchingBlockArgument(&operand).use_empty())
      continue;
    bool isTensorOfF32 =
        isa<RankedTensorType>(type) && getElementTypeOrSelf(type).isF32();
    if (!isTensorOfF32 && !isEpilogueType(type))
      return false;
    if (!op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return false;
  }
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getRegion(), captured);
  return llvm::all_of(
      captured, [](Value value) { return isEpilogueType(value.getType()); });
}

/// The elementwise operator that alone uses the value and can be fused.
static linalg::GenericOp matchEpilogue(Value accumulator) {
  if (accumulator.use_empty())
    return {};
  auto op = dyn_cast<linalg::GenericOp>(*accumulator.user_begin());
  if (!op || op->getBlock() != accumulator.getParentBlock() ||
      !llvm::all_of(accumulator.getUsers(),
                    [&](Operation *user) { return user == op; }))
    return {};
  if (!op.hasPureTensorSemantics() || op.getNumLoops() != 2 ||
      op.getNumParallelLoops() != 2 || op->getNumResults() != 1 ||
      op.hasIndexSemantics() ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return {};
  AffineMap resultMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!resultMap.isPermutation())
    return {};
  // Read at one point, everywhere the same.
  AffineMap map;
  for (OpOperand &use : accumulator.getUses()) {
    AffineMap useMap = op.getMatchingIndexingMap(&use);
    if (!useMap.isPermutation() || (map && map != useMap))
      return {};
    map = useMap;
  }
  if (!hasEpilogueOperands(op) || !isEpilogueBody(*op.getBody()))
    return {};
  return op;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// f32 throughout: multiply, add, yield, and no casts.
static bool isF32(linalg::LinalgOp op) {
  return op.getBlock()->getOperations().size() == 3 &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           return getElementTypeOrSelf(type).isF32();
         });
}

static unsigned loopOf(AffineMap map, unsigned result) {
  return cast<AffineDimExpr>(map.getResult(result)).getPosition();
}

std::optional<WorkloadSource> ftuner::matchWorkload(linalg::LinalgOp op) {
  std::optional<Contraction> loops = matchContraction(op);
  if (!loops || !isF32(op) || !loops->batch.empty() || loops->m.size() != 1 ||
      loops->n.size() != 1 || loops->k.size() != 1)
    return std::nullopt;
  WorkloadSource source;
  source.contraction = op;
  source.epilogue = matchEpilogue(op->getResult(0));

  AffineMap resultMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  // The loop of the contraction that indexes the rows of the final result.
  unsigned rowLoop = loopOf(resultMap, 0);
  if (source.epilogue) {
    linalg::GenericOp epilogue = source.epilogue;
    AffineMap outMap =
        epilogue.getMatchingIndexingMap(epilogue.getDpsInitOperand(0));
    AffineMap accumulatorMap =
        epilogue.getMatchingIndexingMap(&*op->getResult(0).use_begin());
    unsigned rowDim = *accumulatorMap.getResultPosition(outMap.getResult(0));
    rowLoop = loopOf(resultMap, rowDim);
    source.epilogueAxes.assign(2, WorkloadOp::kN);
    source.epilogueAxes[loopOf(outMap, 0)] = WorkloadOp::kM;
  }
  source.isSwapped = rowLoop != loops->m.front();
  source.contractionAxes.assign(3, WorkloadOp::kK);
  source.contractionAxes[loops->m.front()] =
      source.isSwapped ? WorkloadOp::kN : WorkloadOp::kM;
  source.contractionAxes[loops->n.front()] =
      source.isSwapped ? WorkloadOp::kM : WorkloadOp::kN;
  return source;
}

std::string ftuner::explainLeftover(linalg::LinalgOp op) {
  std::string name = "'" + op->getName().getStringRef().str() + "' ";
  std::optional<Contraction> loops = matchContraction(op);
  if (!loops)
    return name + "is no contraction";
  if (!loops->batch.empty())
    return name + "is a contraction with batch dimensions";
  if (loops->m.empty() || loops->n.empty() || loops->k.empty())
    return name + "is a contraction without m, n or k dimension";
  if (loops->m.size() > 1 || loops->n.size() > 1 || loops->k.size() > 1)
    return name + "is a contraction whose dimensions cannot be joined to one "
                  "each of m, n and k";
  return name + "is a contraction of other types than f32";
}
