//===- RowsOp.cpp - A reduction of each row, and what follows from it -----===//
#include "TestOps.h"

#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::test;

//===----------------------------------------------------------------------===//
// Accessors
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> RowsOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> kinds(getRowAxis() + 1,
                                         utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  return kinds;
}

StringRef RowsOp::getAxisName(unsigned axis) {
  static constexpr StringLiteral space[] = {"m", "n", "b0", "b1"};
  return axis == getRowAxis() ? StringLiteral("r") : space[axis];
}

OperandRole RowsOp::getOperandRole(unsigned number) {
  return number < getInputs().size() ? OperandRole::Input : OperandRole::Output;
}

SmallVector<unsigned, 2> RowsOp::getOutputNumbers(bool alongRow) {
  SmallVector<unsigned, 2> numbers;
  for (OpOperand &output : getOutputsMutable())
    if (isAlongRow(output) == alongRow)
      numbers.push_back(output.getOperandNumber());
  return numbers;
}

SmallVector<Type, 3> RowsOp::getStateTypes() {
  return llvm::map_to_vector<3>(
      getIdentities().getAsRange<TypedAttr>(),
      [](TypedAttr identity) { return identity.getType(); });
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static std::optional<Merge> mergeRuleOf(StringRef name) {
  for (Merge rule : {Merge::Sum, Merge::Product, Merge::Maximum, Merge::Minimum,
                     Merge::ScaledSums, Merge::Moments, Merge::Other})
    if (nameOf(rule) == name)
      return rule;
  return std::nullopt;
}

LogicalResult RowsOp::verifyRegions() {
  if (getRowAxis() == 0)
    return emitOpError("expected an axis of rows beside that along them");
  if (getIdentities().empty() ||
      !llvm::all_of(getIdentities(), llvm::IsaPred<FloatAttr, IntegerAttr>))
    return emitOpError("expected a number for each accumulator, but got ")
           << getIdentities();
  if (!mergeRuleOf(getMergeRule()))
    return emitOpError("expected the name of a rule to merge states, but got '")
           << getMergeRule() << "'";
  auto elementTypes = [&](ArrayRef<unsigned> numbers) {
    return llvm::map_to_vector(numbers, [&](unsigned number) {
      return getElementTypeOrSelf((*this)->getOperand(number).getType());
    });
  };
  SmallVector<Type, 3> state = getStateTypes();
  SmallVector<Type> elements =
      llvm::map_to_vector(getInputs().getTypes(),
                          [](Type type) { return getElementTypeOrSelf(type); });
  SmallVector<Type> reduced(elements), mapped(elements),
      twoStates(state.begin(), state.end());
  llvm::append_range(reduced, state);
  llvm::append_range(twoStates, state);
  SmallVector<Type> values(getFinish().front().back().getOperandTypes());
  llvm::append_range(mapped, values);
  SmallVector<Type> statistics = elementTypes(getOutputNumbers(false));
  if (failed(ukernel::verifyScalarRegion(*this, getReduce(), "reduce", reduced,
                                         state)) ||
      failed(ukernel::verifyScalarRegion(*this, getMerge(), "merge", twoStates,
                                         state)) ||
      failed(ukernel::verifyScalarRegion(*this, getFinish(), "finish", state,
                                         values)) ||
      failed(ukernel::verifyScalarRegion(*this, getMap(), "map", mapped,
                                         elementTypes(getOutputNumbers(true)))))
    return failure();
  if (values.size() < statistics.size() ||
      ArrayRef(values).take_front(statistics.size()) != ArrayRef(statistics))
    return emitOpError("expected finish to yield ")
           << statistics << " first, for outputs of rows, but got " << values;
  return verifyComputations(*this);
}

LogicalResult RowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return ukernel::verifyPlanUse(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void RowsOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  ukernel::getOperatorEffects(*this, effects);
}

LogicalResult RowsOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return ukernel::reifyOutputShapes(*this, builder, shapes);
}

/// Which number an empty part holds, as the core names them.
static Identity identityOf(Attribute number) {
  if (auto real = dyn_cast<FloatAttr>(number)) {
    if (real.getValue().isInfinity() || real.getValue().isLargest())
      return real.getValue().isNegative() ? Identity::Lowest
                                          : Identity::Highest;
    return real.getValue().isZero() ? Identity::Zero : Identity::One;
  }
  return cast<IntegerAttr>(number).getValue().isZero() ? Identity::Zero
                                                       : Identity::One;
}

void RowsOp::describe(Workload &workload) {
  unsigned row = getRowAxis();
  AxisSet all = AxisSet::first(row + 1), space = AxisSet::first(row);
  std::vector<Read> elements;
  for (unsigned input : llvm::seq<unsigned>(getInputs().size()))
    elements.push_back(Read::operand(input));

  Computation state;
  state.name = "state";
  state.axes = all;
  state.reduce = {row};
  state.reads = elements;
  state.operations = collectOperations(getReduce().front());
  state.state.emplace();
  state.state->accumulators.clear();
  for (auto [number, identity] : llvm::enumerate(getIdentities())) {
    Accumulator &accumulator = state.state->accumulators.emplace_back();
    accumulator.name = "state" + std::to_string(number);
    accumulator.type = toElementType(cast<TypedAttr>(identity).getType());
    accumulator.identity = identityOf(identity);
  }
  state.state->merge = *mergeRuleOf(getMergeRule());
  state.state->mergeOperations = collectOperations(getMerge().front());
  workload.computations.push_back(std::move(state));

  Computation values;
  values.name = "values";
  values.axes = space;
  values.reads = {Read::computation(0)};
  values.operations = collectOperations(getFinish().front());
  values.writes = getOutputNumbers(/*alongRow=*/false);
  workload.computations.push_back(std::move(values));

  SmallVector<unsigned, 2> mapped = getOutputNumbers(/*alongRow=*/true);
  if (mapped.empty())
    return;
  Computation map;
  map.name = "map";
  map.axes = all;
  map.reads = elements;
  map.reads.push_back(Read::computation(1));
  map.operations = collectOperations(getMap().front());
  map.writes = mapped;
  workload.computations.push_back(std::move(map));
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

SmallVector<ukernel::SliceState> RowsOp::getSliceStates() {
  unsigned row = getRowAxis();
  auto rows =
      AffineMap::getMultiDimIdentityMap(row + 1, getContext()).dropResult(row);
  return llvm::map_to_vector(getStateTypes(), [&](Type type) {
    return ukernel::SliceState{type, rows};
  });
}

/// Fills a region with one block, whose arguments have these types.
static ValueRange makeBlock(OpBuilder &b, Region &region, Location loc,
                            TypeRange types) {
  return b
      .createBlock(&region, {}, types, SmallVector<Location>(types.size(), loc))
      ->getArguments();
}

Operation *RowsOp::buildSlice(OpBuilder &builder, ValueRange states) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<AffineMap> maps = getIndexingMapsArray();
  maps.truncate(getInputs().size());
  for (const ukernel::SliceState &state : getSliceStates())
    maps.push_back(state.map);
  auto slice = RowsOp::create(b, TypeRange(), getInputs(), states,
                              b.getAffineMapArrayAttr(maps), getIdentities(),
                              getMergeRule(), /*ranges=*/ArrayAttr(),
                              /*plan=*/FlatSymbolRefAttr());
  IRMapping reduce, merge;
  getReduce().cloneInto(&slice.getReduce(), reduce);
  getMerge().cloneInto(&slice.getMerge(), merge);
  SmallVector<Type, 3> types = getStateTypes();
  ukernel::YieldOp::create(
      b, ValueRange(makeBlock(b, slice.getFinish(), getLoc(), types)));
  SmallVector<Type> mapped =
      llvm::map_to_vector(getInputs().getTypes(),
                          [](Type type) { return getElementTypeOrSelf(type); });
  llvm::append_range(mapped, types);
  makeBlock(b, slice.getMap(), getLoc(), mapped);
  ukernel::YieldOp::create(b, ValueRange());
  return slice;
}

SmallVector<Operation *>
RowsOp::buildMerge(OpBuilder &builder, int64_t numSlices, ValueRange states) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  unsigned row = getRowAxis();
  SmallVector<Operation *> merges;
  // Rows' values, and then elements, by loops over rows alone and over all.
  for (bool alongRow : {false, true}) {
    SmallVector<unsigned, 2> outputs = getOutputNumbers(alongRow);
    if (outputs.empty())
      continue;
    unsigned numLoops = alongRow ? row + 1 : row;
    auto access = [&](ArrayRef<AffineExpr> results) {
      return AffineMap::get(numLoops, 0, results, b.getContext());
    };
    SmallVector<Value> inputs, written;
    SmallVector<AffineMap> maps;
    if (alongRow)
      for (OpOperand &input : getInputsMutable()) {
        inputs.push_back(input.get());
        maps.push_back(getMatchingIndexingMap(&input));
      }
    size_t numElements = inputs.size();
    for (int64_t slice = 0; slice < numSlices; ++slice)
      for (Value state : states) {
        SmallVector<AffineExpr> position = {b.getAffineConstantExpr(slice)};
        for (unsigned axis = 0; axis < row; ++axis)
          position.push_back(b.getAffineDimExpr(axis));
        inputs.push_back(state);
        maps.push_back(access(position));
      }
    for (unsigned number : outputs) {
      written.push_back((*this)->getOperand(number));
      maps.push_back(access(
          getMatchingIndexingMap(&(*this)->getOpOperand(number)).getResults()));
    }
    merges.push_back(linalg::GenericOp::create(
        b, TypeRange(), inputs, written, maps,
        SmallVector<utils::IteratorType>(numLoops,
                                         utils::IteratorType::parallel),
        [&](OpBuilder &body, Location loc, ValueRange read) {
          ValueRange elements = read.take_front(numElements);
          ValueRange rest = read.drop_front(numElements);
          SmallVector<Value> merged(rest.take_front(states.size()));
          for (int64_t slice = 1; slice < numSlices; ++slice) {
            llvm::append_range(
                merged, rest.slice(slice * states.size(), states.size()));
            merged = inlineRegion(body, getMerge(), merged);
          }
          SmallVector<Value> values = inlineRegion(body, getFinish(), merged);
          if (alongRow) {
            SmallVector<Value> arguments(elements);
            llvm::append_range(arguments, values);
            values = inlineRegion(body, getMap(), arguments);
          }
          values.truncate(outputs.size());
          linalg::YieldOp::create(body, loc, values);
        }));
  }
  return merges;
}
