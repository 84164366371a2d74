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
  if (!op.hasPureTensorSemantics() ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      op->getNumResults() != 1 || op.hasIndexSemantics() ||
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

namespace {
/// Finds the axis of each loop of a contraction.
class AxisAssignment {
public:
  AxisAssignment(linalg::LinalgOp op, const Contraction &loops)
      : op(op), maps(op.getIndexingMapsArray()), m(loops.m), n(loops.n),
        k(loops.k), extents(op.getStaticLoopRanges()) {}

  /// Fills in the axes and the roles of the inputs, or says what is in the way.
  /// `resultLoops` has the loop of each dimension of what the workload writes.
  std::optional<StringRef> assign(ArrayRef<unsigned> resultLoops,
                                  WorkloadSource &source);

private:
  unsigned rowLoop(ArrayRef<unsigned> resultLoops) const;

  linalg::LinalgOp op;
  SmallVector<AffineMap> maps;
  ArrayRef<unsigned> m, n, k;
  SmallVector<int64_t> extents;
};
} // namespace

/// Of several loops that only lhs has, the one whose blocks have rows: dynamic
/// before static, long before short, inner before outer.
unsigned AxisAssignment::rowLoop(ArrayRef<unsigned> resultLoops) const {
  auto rank = [&](unsigned loop) {
    bool isDynamic = ShapedType::isDynamic(extents[loop]);
    return std::make_pair(isDynamic, isDynamic ? 0 : extents[loop]);
  };
  std::optional<unsigned> best;
  for (unsigned loop : resultLoops)
    if (llvm::is_contained(m, loop) && (!best || rank(loop) >= rank(*best)))
      best = loop;
  return *best;
}

std::optional<StringRef> AxisAssignment::assign(ArrayRef<unsigned> resultLoops,
                                                WorkloadSource &source) {
  if (m.empty() || n.empty() || k.empty())
    return "without m, n or k dimension";
  if (k.size() > 1)
    return "whose reduce dimensions cannot be joined to one";
  unsigned column = resultLoops.back();
  source.isSwapped = llvm::is_contained(m, column);
  if (source.isSwapped) {
    std::swap(m, n);
    std::swap(maps[0], maps[1]);
  }
  unsigned lhsInner = loopOf(maps[0], maps[0].getNumResults() - 1);
  unsigned rhsInner = loopOf(maps[1], maps[1].getNumResults() - 1);
  unsigned reduce = k.front();
  bool isRowInner = llvm::is_contained(m, lhsInner);
  if (!llvm::is_contained(n, column) || (!isRowInner && lhsInner != reduce) ||
      (rhsInner != column && rhsInner != reduce))
    return "that is contiguous along a batch dimension";
  unsigned row = isRowInner ? lhsInner : rowLoop(resultLoops);
  if (op.getNumLoops() >
      WorkloadOp::kNumProductAxes + WorkloadOp::kMaxBatchAxes)
    return "with more than three batch dimensions";
  source.contractionAxes.assign(op.getNumLoops(), 0);
  source.contractionAxes[row] = WorkloadOp::kM;
  source.contractionAxes[column] = WorkloadOp::kN;
  source.contractionAxes[reduce] = WorkloadOp::kK;
  unsigned axis = WorkloadOp::kNumProductAxes;
  for (unsigned loop : resultLoops)
    if (loop != row && loop != column)
      source.contractionAxes[loop] = axis++;
  return std::nullopt;
}

/// The loop of each dimension of the contraction's result.
static SmallVector<unsigned> resultLoops(linalg::LinalgOp op) {
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return llvm::map_to_vector(map.getResults(), [](AffineExpr result) {
    return cast<AffineDimExpr>(result).getPosition();
  });
}

/// The contraction with an epilogue, if its result is stored as the codegen
/// path needs it.
static std::optional<WorkloadSource> matchWithEpilogue(linalg::LinalgOp op,
                                                       const Contraction &loops,
                                                       WorkloadSource source) {
  linalg::GenericOp epilogue = source.epilogue;
  AffineMap outMap =
      epilogue.getMatchingIndexingMap(epilogue.getDpsInitOperand(0));
  AffineMap accumulatorMap =
      epilogue.getMatchingIndexingMap(&*op->getResult(0).use_begin());
  // Loops of the epilogue as loops of the contraction.
  SmallVector<unsigned> toLoop(epilogue.getNumLoops());
  for (auto [dim, loop] : llvm::enumerate(resultLoops(op)))
    toLoop[loopOf(accumulatorMap, dim)] = loop;
  SmallVector<unsigned> written;
  for (unsigned dim = 0; dim < outMap.getNumResults(); ++dim)
    written.push_back(toLoop[loopOf(outMap, dim)]);
  if (AxisAssignment(op, loops).assign(written, source))
    return std::nullopt;
  for (unsigned loop : toLoop)
    source.epilogueAxes.push_back(source.contractionAxes[loop]);
  return source;
}

std::optional<WorkloadSource> ftuner::matchWorkload(linalg::LinalgOp op) {
  std::optional<Contraction> loops = matchContraction(op);
  if (!loops || !isF32(op))
    return std::nullopt;
  WorkloadSource source;
  source.contraction = op;
  source.epilogue = matchEpilogue(op->getResult(0));
  if (source.epilogue)
    if (auto whole = matchWithEpilogue(op, *loops, source))
      return whole;
  source.epilogue = {};
  if (AxisAssignment(op, *loops).assign(resultLoops(op), source))
    return std::nullopt;
  return source;
}

std::string ftuner::explainLeftover(linalg::LinalgOp op) {
  std::string name = "'" + op->getName().getStringRef().str() + "' ";
  std::optional<Contraction> loops = matchContraction(op);
  if (!loops)
    return name + "is no contraction";
  WorkloadSource source;
  if (std::optional<StringRef> reason =
          AxisAssignment(op, *loops).assign(resultLoops(op), source))
    return name + "is a contraction " + reason->str();
  return name + "is a contraction of other types than f32";
}
