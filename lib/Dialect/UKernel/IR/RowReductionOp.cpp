//===- RowReductionOp.cpp - Reductions of rows ----------------------------===//
#include "FTuner/Dialect/UKernel/IR/Computations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

unsigned RowReductionOp::getRowAxis() {
  return cast<AffineMapAttr>(getIndexingMaps()[0]).getValue().getNumDims() - 1;
}

SmallVector<utils::IteratorType> RowReductionOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> kinds(getRowAxis() + 1,
                                         utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  return kinds;
}

StringRef RowReductionOp::nameAxis(unsigned axis, unsigned rowAxis) {
  static constexpr StringLiteral space[kMaxSpaceAxes] = {"m", "n", "b0", "b1"};
  return axis == rowAxis ? StringLiteral("r") : space[axis];
}

StringRef RowReductionOp::getAxisName(unsigned axis) {
  return nameAxis(axis, getRowAxis());
}

OperandRole RowReductionOp::getOperandRole(unsigned number) {
  return number < getInputs().size() ? OperandRole::Input : OperandRole::Output;
}

bool RowReductionOp::isAlongRow(unsigned number) {
  return getMatchingIndexingMap(&(*this)->getOpOperand(number))
      .isFunctionOfDim(getRowAxis());
}

SmallVector<unsigned, 2> RowReductionOp::getOutputNumbers(bool alongRow) {
  SmallVector<unsigned, 2> numbers;
  unsigned end = getPhase() ? getStateNumber(0) : (*this)->getNumOperands();
  for (unsigned number : llvm::seq<unsigned>(getInputs().size(), end))
    if (isAlongRow(number) == alongRow)
      numbers.push_back(number);
  return numbers;
}

Operation *RowReductionOp::getCombiningOp(unsigned reduction) {
  return findCombiningOp(getReductions()[reduction].front());
}

SmallVector<Type, 3> RowReductionOp::getAccumulatorTypes() {
  SmallVector<Type, 3> types;
  for (Region &reduction : getReductions())
    types.push_back(reduction.getArguments().back().getType());
  return types;
}

unsigned RowReductionOp::getStateNumber(unsigned reduction) {
  return (*this)->getNumOperands() - getReductions().size() + reduction;
}

SmallVector<unsigned, 3> RowReductionOp::getPhases() {
  SmallVector<unsigned, 3> phases;
  for (Region &region : getReductions()) {
    auto results = region.getArguments().drop_back().take_back(phases.size());
    unsigned phase = 0;
    for (auto [result, resultPhase] : llvm::zip_equal(results, phases))
      if (!result.use_empty())
        phase = std::max(phase, resultPhase + 1);
    phases.push_back(phase);
  }
  return phases;
}

unsigned RowReductionOp::getLastPhase() {
  return *llvm::max_element(getPhases()) + 1;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// row_reduction_c1 and row_reduction_c2.
static LogicalResult verifyAxes(RowReductionOp op) {
  unsigned row = op.getRowAxis();
  if (row < 1 || row > RowReductionOp::kMaxSpaceAxes)
    return op.emitOpError("expected maps of 1 to ")
           << RowReductionOp::kMaxSpaceAxes
           << " axes of rows and one along them";
  if (op.getOutputs().empty() || op.getReductions().empty())
    return op.emitOpError("expected an output and a reduction");
  for (OpOperand &output : op.getOutputsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&output);
    for (unsigned axis = 0; axis < row; ++axis)
      if (!llvm::is_contained(map.getResults(),
                              getAffineDimExpr(axis, op.getContext())))
        return op.emitOpError("expected outputs with a dimension that ")
               << op.getAxisName(axis) << " indexes alone, but got "
               << AffineMapAttr::get(map);
  }
  return success();
}

/// row_reduction_c3.
static LogicalResult verifyReduction(RowReductionOp op, unsigned number,
                                     ArrayRef<Type> elements) {
  Region &region = op.getReductions()[number];
  std::string name = "reduction " + std::to_string(number);
  if (region.getNumArguments() == 0)
    return op.emitOpError("expected ") << name << " to take an accumulator";
  SmallVector<Type, 3> accumulators = op.getAccumulatorTypes();
  SmallVector<Type> arguments(elements);
  llvm::append_range(arguments, ArrayRef(accumulators).take_front(number + 1));
  if (failed(verifyScalarRegion(op, region, name, arguments,
                                accumulators[number])))
    return failure();
  if (Type type = accumulators[number];
      !type.isF32() && !type.isF64() && !type.isInteger(32))
    return op.emitOpError("expected ")
           << name << " to have an accumulator of f32, f64 or i32, but got "
           << type;
  Operation *combining = op.getCombiningOp(number);
  if (!combining || !arith::getNeutralElement(combining))
    return op.emitOpError("expected ")
           << name
           << " to update its accumulator by one operation with a neutral "
              "element";
  return success();
}

/// row_reduction_c6, of operands alone.
static LogicalResult verifyNumStates(RowReductionOp op) {
  if (!op.getPhase())
    return success();
  if (op.hasTensors())
    return op.emitOpError("expected buffers, as it is of one phase");
  size_t states = op.getReductions().size();
  if (op.getOutputs().size() <= states)
    return op.emitOpError("expected a state for each of ")
           << states << " reductions behind the outputs";
  return success();
}

/// row_reduction_c6.
static LogicalResult verifyStates(RowReductionOp op) {
  if (!op.getPhase())
    return success();
  if (op.getPhase() > op.getLastPhase())
    return op.emitOpError("expected a phase up to ") << op.getLastPhase();
  SmallVector<SliceState> wanted = op.getSliceStates();
  for (auto [reduction, state] : llvm::enumerate(wanted)) {
    OpOperand &operand = op->getOpOperand(op.getStateNumber(reduction));
    if (getElementTypeOrSelf(operand.get().getType()) != state.elementType ||
        op.getMatchingIndexingMap(&operand) != state.map)
      return op.emitOpError("expected a state of ")
             << state.elementType << " with the map "
             << AffineMapAttr::get(state.map) << ", but got "
             << operand.get().getType() << " with "
             << AffineMapAttr::get(op.getMatchingIndexingMap(&operand));
  }
  return success();
}

LogicalResult RowReductionOp::verifyRegions() {
  if (failed(verifyAxes(*this)) || failed(verifyNumStates(*this)))
    return failure();
  auto elementType = [&](unsigned number) {
    return getElementTypeOrSelf((*this)->getOperand(number).getType());
  };
  SmallVector<Type> elements, rowValues;
  for (unsigned number : llvm::seq<unsigned>(getInputs().size())) {
    elements.push_back(elementType(number));
    if (!isAlongRow(number))
      rowValues.push_back(elements.back());
  }
  for (unsigned number : llvm::seq<unsigned>(getReductions().size()))
    if (failed(verifyReduction(*this, number, elements)))
      return failure();
  llvm::append_range(elements, getAccumulatorTypes());
  llvm::append_range(rowValues, getAccumulatorTypes());
  // row_reduction_c4.
  if (failed(verifyScalarRegion(
          *this, getValues(), "values", rowValues,
          llvm::map_to_vector(getOutputNumbers(false), elementType))) ||
      failed(verifyScalarRegion(
          *this, getMap(), "map", elements,
          llvm::map_to_vector(getOutputNumbers(true), elementType))) ||
      failed(verifyStates(*this)))
    return failure();
  return verifyComputations(*this);
}

LogicalResult IndexOp::verify() {
  if (auto points = dyn_cast_or_null<PointwiseOp>((*this)->getParentOp())) {
    int64_t numLoops = points.getNumLoops();
    if (getAxis() >= 0 && getAxis() < numLoops)
      return success();
    return emitOpError("expected one of ")
           << numLoops << " loops, but got " << getAxis();
  }
  auto rows = dyn_cast_or_null<RowReductionOp>((*this)->getParentOp());
  if (!rows)
    return emitOpError("expected to be in a region of a "
                       "'ukernel.row_reduction' or a 'ukernel.pointwise'");
  auto row = static_cast<int64_t>(rows.getRowAxis());
  int64_t axis = getAxis();
  bool isOfRows = axis >= 0 && axis < std::min<int64_t>(row, 2);
  if (!isOfRows && axis != row)
    return emitOpError("expected an axis m, n or r, but got ") << axis;
  if (axis == row && (*this)->getParentRegion() == &rows.getValues())
    return emitOpError("expected no position along a row in 'values'");
  return success();
}

LogicalResult RowReductionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyPlanUse(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void RowReductionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  getOperatorEffects(*this, effects);
}

LogicalResult
RowReductionOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  return reifyOutputShapes(*this, builder, shapes);
}

SmallVector<SliceState> RowReductionOp::getSliceStates() {
  unsigned row = getRowAxis();
  AffineMap map = AffineMap::getMultiDimIdentityMap(row + 1, getContext())
                      .getMajorSubMap(row);
  return llvm::map_to_vector(getAccumulatorTypes(),
                             [&](Type type) { return SliceState{type, map}; });
}

/// Builds the operator of a phase.
static Operation *buildPhase(RowReductionOp op, OpBuilder &builder,
                             ValueRange states, int64_t phase) {
  SmallVector<Value> outputs(op.getOutputs());
  llvm::append_range(outputs, states);
  SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
  for (const SliceState &state : op.getSliceStates())
    maps.push_back(AffineMapAttr::get(state.map));
  auto phaseOp = cast<RowReductionOp>(builder.clone(*op));
  phaseOp.getOutputsMutable().assign(outputs);
  phaseOp.setIndexingMapsAttr(builder.getArrayAttr(maps));
  phaseOp.setPhase(phase);
  phaseOp.removePlanAttr();
  phaseOp.removeRangesAttr();
  return phaseOp;
}

Operation *RowReductionOp::buildSlice(OpBuilder &builder, ValueRange states) {
  return buildPhase(*this, builder, states, /*phase=*/0);
}

SmallVector<Operation *> RowReductionOp::buildLaterSlices(OpBuilder &builder,
                                                          ValueRange states) {
  SmallVector<Operation *> phases;
  for (unsigned phase = 1; phase <= getLastPhase(); ++phase)
    phases.push_back(buildPhase(*this, builder, states, phase));
  return phases;
}

void RowReductionOp::describe(Workload &workload) {
  RowBodies bodies;
  bodies.rowAxis = getRowAxis();
  for (unsigned input : llvm::seq<unsigned>(getInputs().size()))
    bodies.inputsAlongRow.push_back(isAlongRow(input));
  for (Region &reduction : getReductions())
    bodies.reductions.push_back(&reduction.front());
  bodies.values = &getValues().front();
  bodies.map = &getMap().front();
  bodies.valueOutputs = getOutputNumbers(/*alongRow=*/false);
  bodies.mapOutputs = getOutputNumbers(/*alongRow=*/true);
  if (getPhase())
    for (unsigned number : llvm::seq<unsigned>(getReductions().size()))
      bodies.states.push_back(getStateNumber(number));
  setRowComputations(workload, bodies);
}
