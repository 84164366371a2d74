//===- WorkloadOp.cpp - A contraction with its fused epilogue -------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

/// Returns the number of init; without init, the number of the operand that
/// would follow it.
static unsigned initNumber(WorkloadOp op) { return 2 + op.getInputs().size(); }

AffineMap WorkloadOp::getMapOf(unsigned operandNumber) {
  unsigned index = operandNumber;
  if (Value init = getInit(); init && !isShaped(init.getType())) {
    if (operandNumber == initNumber(*this))
      return {};
    if (operandNumber > initNumber(*this))
      --index;
  }
  return cast<AffineMapAttr>(getIndexingMaps()[index]).getValue();
}

AffineMap WorkloadOp::getLhsMap() { return getMapOf(0); }
AffineMap WorkloadOp::getRhsMap() { return getMapOf(1); }
AffineMap WorkloadOp::getInputMap(unsigned index) {
  return getMapOf(2 + index);
}
AffineMap WorkloadOp::getInitMap() {
  return getInit() ? getMapOf(initNumber(*this)) : AffineMap();
}
AffineMap WorkloadOp::getExtraMap(unsigned index) {
  return getMapOf(initNumber(*this) + (getInit() ? 1 : 0) + index);
}
AffineMap WorkloadOp::getOutputMap() {
  return getMapOf((*this)->getNumOperands() - 1);
}

StringRef WorkloadOp::getAxisName(unsigned axis) {
  static constexpr StringLiteral names[] = {"m", "n", "k", "b0", "b1", "b2"};
  static_assert(std::size(names) == kNumProductAxes + kMaxBatchAxes);
  return names[axis];
}

SmallVector<utils::IteratorType> WorkloadOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> kinds(getNumAxes(),
                                         utils::IteratorType::parallel);
  kinds[kK] = utils::IteratorType::reduction;
  return kinds;
}

SmallVector<FusedLoop> WorkloadOp::getFusedLoops() {
  SmallVector<FusedLoop> loops;
  unsigned number = 0;
  for (int64_t axis : getFused().value_or(ArrayRef<int64_t>())) {
    number = !loops.empty() && loops.back().axis == axis ? number + 1 : 0;
    bool isKnown = axis >= 0 && axis < kNumProductAxes + kMaxBatchAxes;
    loops.push_back(
        {static_cast<unsigned>(axis),
         ((isKnown ? getAxisName(axis) : "?") + Twine(number)).str()});
  }
  return loops;
}

std::optional<ftuner::Identity> WorkloadOp::getOutside(unsigned number) {
  bool mayBeOutside = getPadded() && number < 2 &&
                      !llvm::all_of(getMapOf(number).getResults(),
                                    llvm::IsaPred<AffineDimExpr>);
  return mayBeOutside ? std::optional(Identity::Zero) : std::nullopt;
}

AffineMap WorkloadOp::getMatchingIndexingMap(OpOperand *operand) {
  AffineMap map = getMapOf(operand->getOperandNumber());
  return map ? map
             : AffineMap::get(getOutputMap().getNumDims(), 0, getContext());
}

SmallVector<AffineMap> WorkloadOp::getIndexingMapsArray() {
  return llvm::map_to_vector((*this)->getOpOperands(), [&](OpOperand &operand) {
    return getMatchingIndexingMap(&operand);
  });
}

ftuner::OperandRole WorkloadOp::getOperandRole(unsigned number) {
  if (number < 2)
    return number == 0 ? OperandRole::Lhs : OperandRole::Rhs;
  if (number + 1 == (*this)->getNumOperands())
    return OperandRole::Output;
  if (number < initNumber(*this))
    return OperandRole::Input;
  return number == initNumber(*this) && getInit() ? OperandRole::Init
                                                  : OperandRole::Extra;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// workload_c1, workload_c2 and workload_c13.
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
    if (!WorkloadOp::isOperandType(shaped))
      return op.emitOpError("expected operand ")
             << number
             << " with floats, booleans or integers of 8, 16, 32 or 64 bits, "
                "but got "
             << type;
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

bool WorkloadOp::isOperandType(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isInteger(1) || fillsBytes(type);
}

/// Returns whether a map has an axis, or some loop of it.
static bool hasAxis(WorkloadOp op, AffineMap map, unsigned axis) {
  return llvm::any_of(OperatorOpInterface(op).getDimsOfAxis(axis),
                      [&](unsigned dim) { return map.isFunctionOfDim(dim); });
}

/// Verifies workload_c5 for m, n and k: an operand has the axes that it must
/// have, and only axes that it may have.
static LogicalResult verifyProductAxes(WorkloadOp op, unsigned number,
                                       AffineMap map) {
  using W = WorkloadOp;
  auto has = [&](unsigned axis) { return hasAxis(op, map, axis); };
  auto expect = [&](bool holds, StringRef expected) -> LogicalResult {
    if (holds)
      return success();
    return op.emitOpError("expected ")
           << expected << ", but got " << AffineMapAttr::get(map);
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
  if (op.getOperandRole(number) == OperandRole::Input)
    return expect(!has(W::kM) || !has(W::kN),
                  "inputs not indexed by both m and n");
  return expect(!has(W::kK), "init and extras not indexed by k");
}

/// Verifies workload_c5 for batch axes.
static LogicalResult verifyBatchAxes(WorkloadOp op) {
  for (unsigned axis = WorkloadOp::kNumProductAxes; axis < op.getNumAxes();
       ++axis) {
    if (!hasAxis(op, op.getOutputMap(), axis))
      return op.emitOpError("expected out indexed by ")
             << WorkloadOp::getAxisName(axis) << ", but got "
             << AffineMapAttr::get(op.getOutputMap());
    if (!hasAxis(op, op.getLhsMap(), axis) &&
        !hasAxis(op, op.getRhsMap(), axis))
      return op.emitOpError("expected lhs or rhs indexed by ")
             << WorkloadOp::getAxisName(axis) << ", but got "
             << AffineMapAttr::get(op.getLhsMap()) << " and "
             << AffineMapAttr::get(op.getRhsMap());
  }
  return success();
}

/// Returns whether a map reads dimensions of `op` as workload_c4 asks: every
/// result is one dimension alone, each at most once, or, where windows are
/// allowed, a sum of multiples.
static bool isAccess(AffineMap map, bool hasWindows) {
  if (!hasWindows)
    return map.isProjectedPermutation();
  SmallVector<AffineExpr> plain;
  for (AffineExpr position : map.getResults())
    if (isa<AffineDimExpr>(position))
      plain.push_back(position);
  return AffineMap::get(map.getNumDims(), 0, plain, map.getContext())
      .isProjectedPermutation();
}

/// Returns the name of a dimension of the maps, an axis or a loop.
static std::string nameOfDim(WorkloadOp op, unsigned dim) {
  unsigned numAxes = op.getNumAxes();
  return dim < numAxes ? WorkloadOp::getAxisName(dim).str()
                       : op.getFusedLoops()[dim - numAxes].name;
}

/// The loops of fused axes stand in the order of the axes.
static LogicalResult verifyFused(WorkloadOp op) {
  int64_t numAxes = op.getOutputMap().getNumDims();
  ArrayRef<int64_t> fused = op.getFused().value_or(ArrayRef<int64_t>());
  numAxes -= fused.size();
  if (llvm::all_of(fused,
                   [&](int64_t axis) { return axis >= 0 && axis < numAxes; }) &&
      llvm::is_sorted(fused))
    return success();
  return op.emitOpError("expected the axes of loops in their order, of ")
         << std::max<int64_t>(numAxes, 0) << " axes, but got [" << fused << "]";
}

/// workload_c3 to workload_c6, and workload_c14.
static LogicalResult verifyMaps(WorkloadOp op) {
  Value init = op.getInit();
  bool hasScalarInit = init && !WorkloadOp::isShaped(init.getType());
  unsigned numMaps = op->getNumOperands() - (hasScalarInit ? 1 : 0);
  if (op.getIndexingMaps().size() != numMaps)
    return op.emitOpError("expected ")
           << numMaps << " maps, but got " << op.getIndexingMaps().size();
  if (failed(verifyFused(op)))
    return failure();
  unsigned numAxes = op.getNumAxes();
  unsigned numDims = op.getOutputMap().getNumDims();
  if (numAxes < WorkloadOp::kNumProductAxes ||
      numAxes > WorkloadOp::kNumProductAxes + WorkloadOp::kMaxBatchAxes)
    return op.emitOpError("expected maps of m, n, k and up to ")
           << WorkloadOp::kMaxBatchAxes << " batch axes, but got "
           << AffineMapAttr::get(op.getOutputMap());
  SmallVector<int64_t, 4> extents(numDims, ShapedType::kDynamic);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    AffineMap map = op.getMapOf(number);
    if (!map)
      continue;
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    int64_t rank = type ? type.getRank() : 0;
    if (map.getNumDims() != numDims || map.getNumSymbols() != 0 ||
        !isAccess(map, /*hasWindows=*/number < 2) ||
        map.getNumResults() != rank)
      return op.emitOpError("expected a projected permutation of ")
             << axisList(op) << (numDims > numAxes ? " and their loops" : "")
             << " with " << rank << " results for operand " << number
             << ", but got " << AffineMapAttr::get(map);
    if (failed(verifyProductAxes(op, number, map)))
      return failure();
    for (auto [dim, result] : llvm::enumerate(map.getResults())) {
      auto plain = dyn_cast<AffineDimExpr>(result);
      if (!plain || type.isDynamicDim(dim))
        continue;
      unsigned axis = plain.getPosition();
      int64_t size = type.getDimSize(dim);
      if (ShapedType::isStatic(extents[axis]) && extents[axis] != size)
        return op.emitOpError("expected ")
               << nameOfDim(op, axis) << " to be " << extents[axis]
               << " in operand " << number << ", but got " << size;
      extents[axis] = size;
    }
  }
  if (op.getPadded() && !op.getOutside(0) && !op.getOutside(1))
    return op.emitOpError("expected a factor with windows that is padded");
  return verifyBatchAxes(op);
}

/// workload_c12.
static LogicalResult verifyPacked(WorkloadOp op) {
  if (!op.getPacked())
    return success();
  auto type = cast<ShapedType>(op.getRhs().getType());
  if (type.getRank() != 2 || !type.hasStaticShape() || op.getFused())
    return op.emitOpError("expected a packed rhs of static k and n alone, but "
                          "got ")
           << type;
  unsigned bits =
      type.getElementType().isIntOrFloat() ? type.getElementTypeBitWidth() : 0;
  if (bits != 8 && bits != 16 && bits != 32)
    return op.emitOpError("expected a packed rhs with elements of 1, 2 or 4 "
                          "bytes, but got ")
           << type.getElementType();
  if (!op.getPackedOrder().isWhole())
    return op.emitOpError("expected a packed rhs of whole steps of ")
           << PackedOrder::kStepBytes << " bytes along k and whole groups of "
           << PackedOrder::kGroup << " along n, but got " << type;
  return success();
}

LogicalResult WorkloadOp::verify() {
  return failure(failed(verifyKinds(*this)) || failed(verifyMaps(*this)) ||
                 failed(verifyPacked(*this)));
}

PackedOrder WorkloadOp::getPackedOrder() {
  auto type = cast<ShapedType>(getRhs().getType());
  bool isReduceFirst =
      cast<AffineDimExpr>(getRhsMap().getResult(0)).getPosition() == kK;
  return {type.getDimSize(isReduceFirst ? 0 : 1),
          type.getDimSize(isReduceFirst ? 1 : 0), elementBytesOf(type)};
}

LogicalResult WorkloadOp::verifyRegions() {
  Type accumulator = getAccumulatorType();
  Type element = getElementTypeOrSelf(getOutput().getType());
  SmallVector<Type> factors = {getElementTypeOrSelf(getLhs().getType()),
                               getElementTypeOrSelf(getRhs().getType())};
  for (Value input : getInputs())
    factors.push_back(getElementTypeOrSelf(input.getType()));
  factors.push_back(accumulator);
  if (failed(verifyScalarRegion(*this, getContract(), "contract", factors,
                                accumulator)))
    return failure();
  if (std::optional<Type> precision = getPrecision()) {
    if (!isa<FloatTF32Type>(*precision))
      return emitOpError("expected a precision of tf32, but got ")
             << *precision;
    std::optional<SumOfProducts> parts =
        matchSumOfProducts(getContract().front());
    if (!parts || !parts->factors[0].getType().isF32())
      return emitOpError("expected a sum of products of f32 with a precision "
                         "of tf32");
  } else if (getTruncated()) {
    return emitOpError("expected a precision that factors are truncated to");
  }
  if (getEpilogues().size() > 1)
    return emitOpError("expected at most one epilogue, but got ")
           << getEpilogues().size();
  if (hasEpilogue()) {
    SmallVector<Type> arguments = {accumulator};
    for (Value extra : getExtras())
      arguments.push_back(getElementTypeOrSelf(extra.getType()));
    return verifyScalarRegion(*this, getEpilogue(), "epilogue", arguments,
                              element);
  }
  if (!getExtras().empty())
    return emitOpError("expected an epilogue for the extras");
  if (accumulator != element)
    return emitOpError("expected an epilogue from ")
           << accumulator << " to " << element;
  return success();
}

LogicalResult WorkloadOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  return verifyPlanUse(*this, symbolTable);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void WorkloadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  getOperatorEffects(*this, effects);
}

LogicalResult WorkloadOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  return reifyOutputShapes(*this, builder, reifiedReturnShapes);
}

void WorkloadOp::describe(Workload &workload) {
  if (getPacked())
    workload.operands[getRhsMutable().getOperandNumber()].isPacked = true;
  describeReduction(*this, workload, [&](ContractionParts &parts) {
    if (!getPrecision() || parts.multipliedType != ElementType::F32)
      return;
    parts.multipliedType = toElementType(*getPrecision());
    parts.truncatesFactors = getTruncated();
  });
}

Operation *WorkloadOp::buildSlice(OpBuilder &builder, ValueRange states) {
  WorkloadOp op = *this;
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Type type = op.getAccumulatorType();
  Value zero = arith::ConstantOp::create(b, type, b.getZeroAttr(type));
  SmallVector<AffineMap> maps = {op.getLhsMap(), op.getRhsMap()};
  for (unsigned index = 0; index < op.getInputs().size(); ++index)
    maps.push_back(op.getInputMap(index));
  maps.push_back(op.getOutputMap());
  auto slice = WorkloadOp::create(
      b, TypeRange(), op.getLhs(), op.getRhs(), op.getInputs(), zero,
      /*extras=*/ValueRange(), states.front(), b.getAffineMapArrayAttr(maps),
      op.getFusedAttr(), op.getPaddedAttr(), /*ranges=*/ArrayAttr(),
      /*plan=*/FlatSymbolRefAttr(), op.getPrecisionAttr(),
      op.getTruncatedAttr(), op.getPackedAttr(),
      /*epiloguesCount=*/0);
  IRMapping mapping;
  op.getContract().cloneInto(&slice.getContract(), mapping);
  // Factors and their inputs have the same numbers.
  SmallVector<int64_t> padded(paddedRowsOf(op));
  llvm::erase_if(padded, [&](int64_t number) { return !op.isInput(number); });
  setPaddedRows(slice, padded);
  return slice;
}
