//===- WorkloadOp.cpp - A contraction with its fused epilogue -------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner::ukernel;

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

AffineMap WorkloadOp::getMapOf(unsigned operandNumber) {
  unsigned index = operandNumber;
  if (Value init = getInit(); init && !isShaped(init.getType())) {
    if (operandNumber == 2)
      return {};
    if (operandNumber > 2)
      --index;
  }
  return cast<AffineMapAttr>(getIndexingMaps()[index]).getValue();
}

AffineMap WorkloadOp::getLhsMap() { return getMapOf(0); }
AffineMap WorkloadOp::getRhsMap() { return getMapOf(1); }
AffineMap WorkloadOp::getInitMap() {
  return getInit() ? getMapOf(2) : AffineMap();
}
AffineMap WorkloadOp::getExtraMap(unsigned index) {
  return getMapOf(2 + (getInit() ? 1 : 0) + index);
}
AffineMap WorkloadOp::getOutputMap() {
  return getMapOf((*this)->getNumOperands() - 1);
}

StringRef WorkloadOp::getAxisName(unsigned axis) {
  static constexpr StringLiteral names[] = {"m", "n", "k", "b0", "b1", "b2"};
  static_assert(std::size(names) == kNumProductAxes + kMaxBatchAxes);
  return names[axis];
}

SmallVector<int64_t, 4> WorkloadOp::getStaticExtents() {
  SmallVector<int64_t, 4> extents(getNumAxes(), ShapedType::kDynamic);
  for (OpOperand &operand : (*this)->getOpOperands()) {
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap map = getMapOf(operand.getOperandNumber());
    for (auto [dim, result] : llvm::enumerate(map.getResults()))
      if (!type.isDynamicDim(dim))
        extents[cast<AffineDimExpr>(result).getPosition()] =
            type.getDimSize(dim);
  }
  return extents;
}

std::pair<Value, int64_t> WorkloadOp::getExtentSource(unsigned axis) {
  bool isInLhs = getLhsMap().isFunctionOfDim(axis);
  Value operand = isInLhs ? getLhs() : getRhs();
  AffineMap map = isInLhs ? getLhsMap() : getRhsMap();
  std::optional<unsigned> dim =
      map.getResultPosition(getAffineDimExpr(axis, getContext()));
  return {operand, static_cast<int64_t>(*dim)};
}

Type WorkloadOp::getAccumulatorType() {
  return getElementTypeOrSelf(getInit() ? getInit() : getOutput());
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// workload_c1 and workload_c2.
static LogicalResult verifyKinds(WorkloadOp op) {
  bool onTensors = isa<TensorType>(op.getOutput().getType());
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Type type = operand.get().getType();
    bool mustBeShaped = number < 2 || number + 1 == op->getNumOperands();
    auto shaped = dyn_cast<ShapedType>(type);
    if (!shaped && mustBeShaped)
      return op.emitOpError("expected operand ")
             << number << " with a shape, but got " << type;
    if (!shaped) {
      if (!type.isIntOrIndexOrFloat())
        return op.emitOpError("expected operand ")
               << number << " with a shape or a number, but got " << type;
      continue;
    }
    bool isRightKind =
        onTensors ? isa<RankedTensorType>(type) : isa<MemRefType>(type);
    if (!isRightKind)
      return op.emitOpError("expected operand ")
             << number << " to be a ranked "
             << (onTensors ? "tensor" : "memref") << ", but got " << type;
  }
  unsigned numResults = onTensors ? 1 : 0;
  if (op->getNumResults() != numResults)
    return op.emitOpError("expected ")
           << numResults << " results, but got " << op->getNumResults();
  if (onTensors && op->getResult(0).getType() != op.getOutput().getType())
    return op.emitOpError("expected the result to be of type ")
           << op.getOutput().getType() << " as the output, but got "
           << op->getResult(0).getType();
  return success();
}

/// workload_c5: which of m, n and k an operand has and may have.
static LogicalResult verifyProductAxes(WorkloadOp op, unsigned number,
                                       AffineMap map) {
  using W = WorkloadOp;
  auto has = [&](unsigned axis) { return map.isFunctionOfDim(axis); };
  auto expect = [&](bool holds, StringRef what) -> LogicalResult {
    if (holds)
      return success();
    return op.emitOpError("expected ")
           << what << ", but got " << AffineMapAttr::get(map);
  };
  if (number == 0)
    return expect(has(W::kM) && has(W::kK) && !has(W::kN),
                  "lhs indexed by m and k");
  if (number == 1)
    return expect(has(W::kK) && has(W::kN) && !has(W::kM),
                  "rhs indexed by k and n");
  if (number + 1 == op->getNumOperands())
    return expect(has(W::kM) && has(W::kN) && !has(W::kK),
                  "out indexed by m and n");
  return expect(!has(W::kK), "init and extras not indexed by k");
}

/// workload_c5: which operands have a batch axis.
static LogicalResult verifyBatchAxes(WorkloadOp op) {
  for (unsigned axis = WorkloadOp::kNumProductAxes; axis < op.getNumAxes();
       ++axis) {
    if (!op.getOutputMap().isFunctionOfDim(axis))
      return op.emitOpError("expected out indexed by ")
             << WorkloadOp::getAxisName(axis) << ", but got "
             << AffineMapAttr::get(op.getOutputMap());
    if (!op.getLhsMap().isFunctionOfDim(axis) &&
        !op.getRhsMap().isFunctionOfDim(axis))
      return op.emitOpError("expected lhs or rhs indexed by ")
             << WorkloadOp::getAxisName(axis) << ", but got "
             << AffineMapAttr::get(op.getLhsMap()) << " and "
             << AffineMapAttr::get(op.getRhsMap());
  }
  return success();
}

/// "(m, n, k, b0)" for four axes.
static std::string axisList(unsigned numAxes) {
  auto names = llvm::map_range(llvm::seq(numAxes), WorkloadOp::getAxisName);
  return "(" + llvm::join(names, ", ") + ")";
}

/// workload_c3 to workload_c6.
static LogicalResult verifyMaps(WorkloadOp op) {
  Value init = op.getInit();
  bool hasScalarInit = init && !WorkloadOp::isShaped(init.getType());
  unsigned numMaps = op->getNumOperands() - (hasScalarInit ? 1 : 0);
  if (op.getIndexingMaps().size() != numMaps)
    return op.emitOpError("expected ")
           << numMaps << " maps, but got " << op.getIndexingMaps().size();
  unsigned numAxes = op.getNumAxes();
  if (numAxes < WorkloadOp::kNumProductAxes ||
      numAxes > WorkloadOp::kNumProductAxes + WorkloadOp::kMaxBatchAxes)
    return op.emitOpError("expected maps of m, n, k and up to ")
           << WorkloadOp::kMaxBatchAxes << " batch axes, but got "
           << AffineMapAttr::get(op.getOutputMap());
  SmallVector<int64_t, 4> extents(numAxes, ShapedType::kDynamic);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    AffineMap map = op.getMapOf(number);
    if (!map)
      continue;
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    int64_t rank = type ? type.getRank() : 0;
    if (map.getNumDims() != numAxes || map.getNumSymbols() != 0 ||
        !map.isProjectedPermutation() || map.getNumResults() != rank)
      return op.emitOpError("expected a projected permutation of ")
             << axisList(numAxes) << " with " << rank << " results for operand "
             << number << ", but got " << AffineMapAttr::get(map);
    if (failed(verifyProductAxes(op, number, map)))
      return failure();
    for (auto [dim, result] : llvm::enumerate(map.getResults())) {
      unsigned axis = cast<AffineDimExpr>(result).getPosition();
      if (type.isDynamicDim(dim))
        continue;
      int64_t size = type.getDimSize(dim);
      if (ShapedType::isStatic(extents[axis]) && extents[axis] != size)
        return op.emitOpError("expected ")
               << WorkloadOp::getAxisName(axis) << " to be " << extents[axis]
               << " in operand " << number << ", but got " << size;
      extents[axis] = size;
    }
  }
  return verifyBatchAxes(op);
}

LogicalResult WorkloadOp::verify() {
  if (failed(verifyKinds(*this)) || failed(verifyMaps(*this)))
    return failure();
  StringRef extentsName = UKernelDialect::kExtentsAttrName;
  auto extents = (*this)->getAttrOfType<ArrayAttr>(extentsName);
  if (extents && extents.size() != getNumAxes())
    return emitOpError("'")
           << extentsName << "' expected one entry for each of "
           << axisList(getNumAxes()) << ", but got " << extents;
  std::optional<ArrayAttr> ranges = getRanges();
  if (!ranges)
    return success();
  if (ranges->size() != getNumAxes() ||
      !llvm::all_of(*ranges, llvm::IsaPred<RangeAttr>))
    return emitOpError("expected one range for each of ")
           << axisList(getNumAxes()) << ", but got " << *ranges;
  return success();
}

static LogicalResult verifyRegion(WorkloadOp op, Region &region, StringRef name,
                                  ArrayRef<Type> arguments, Type result) {
  if (region.empty() || region.getArgumentTypes() != TypeRange(arguments))
    return op.emitOpError("expected ")
           << name << " to take (" << arguments << "), but got ("
           << region.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(region.front().back());
  if (!yield)
    return op.emitOpError("expected ")
           << name << " to end with 'ukernel.yield'";
  if (yield.getValue().getType() != result)
    return op.emitOpError("expected ")
           << name << " to yield " << result << ", but got "
           << yield.getValue().getType();
  return success();
}

LogicalResult WorkloadOp::verifyRegions() {
  Type accumulator = getAccumulatorType();
  Type element = getElementTypeOrSelf(getOutput().getType());
  if (failed(
          verifyRegion(*this, getContract(), "contract",
                       {getElementTypeOrSelf(getLhs().getType()),
                        getElementTypeOrSelf(getRhs().getType()), accumulator},
                       accumulator)))
    return failure();
  if (getEpilogues().size() > 1)
    return emitOpError("expected at most one epilogue, but got ")
           << getEpilogues().size();
  if (hasEpilogue()) {
    SmallVector<Type> arguments = {accumulator};
    for (Value extra : getExtras())
      arguments.push_back(getElementTypeOrSelf(extra.getType()));
    return verifyRegion(*this, getEpilogue(), "epilogue", arguments, element);
  }
  if (!getExtras().empty())
    return emitOpError("expected an epilogue for the extras");
  if (accumulator != element)
    return emitOpError("expected an epilogue from ")
           << accumulator << " to " << element;
  return success();
}

LogicalResult WorkloadOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  FlatSymbolRefAttr name = getPlanAttr();
  if (!name)
    return success();
  auto plan = symbolTable.lookupNearestSymbolFrom<PlanOp>(getOperation(), name);
  if (!plan)
    return emitOpError("expected ") << name << " to be a 'ukernel.plan'";
  size_t rank = plan.getPlan().getFamilies().front().getRank();
  if (rank != getNumAxes())
    return emitOpError("expected a plan of ")
           << getNumAxes() << " axes, but got " << rank;
  return success();
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void WorkloadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  OpOperand &output = getOutputMutable();
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isOutput = &operand == &output;
    if (!isOutput || !getInit())
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
    if (isOutput)
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

LogicalResult WorkloadOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  if ((*this)->getNumResults() == 0)
    return success();
  reifiedReturnShapes.push_back(
      tensor::getMixedSizes(builder, getLoc(), getOutput()));
  return success();
}
