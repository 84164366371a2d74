//===- RowDescription.cpp - Row reductions before they are built ----------===//
#include "RowDescription.h"
#include "RowAccumulation.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using ukernel::RowReductionOp;

namespace {

/// Describes the row reduction of a group.
class RowDescriber {
public:
  explicit RowDescriber(RowDescription &result)
      : result(result), group(result.group),
        b(group.getMembers().front()->getContext()) {
    for (linalg::LinalgOp op : group.getMembers())
      if (std::optional<RowAccumulation> found = matchRowReduction(op)) {
        reductions.push_back(op);
        accumulations.try_emplace(op, *found);
      }
  }

  /// Fills in all but the group. Returns false if the group has no outputs, or
  /// a loop whose extent no operand has.
  bool describe();

private:
  // Operands.
  /// Turns a map from the group's loops into a map from the axes.
  AffineMap toAxes(AffineMap map) const;
  void addInput(Value value, AffineMap access);
  void addScalar(Value value) { addInput(value, scalarAccess()); }
  AffineMap scalarAccess() const {
    return AffineMap::get(group.getNumLoops(), 0, b.getContext());
  }
  void addInputs();
  void addStart(linalg::LinalgOp op);
  void addOutputs();
  bool isUsedOutside(Value value) const;

  // Regions.
  Value createArgument(Value value, AffineMap access);
  Value createScalarArgument(Value value) {
    return createArgument(value, scalarAccess());
  }
  /// Returns the scalar that a member's value is at a point.
  Value createElement(Value value);
  /// Returns the result of a reduction from the accumulator of a whole row.
  Value createResult(linalg::LinalgOp reduction, Value accumulator);
  Value createIndex(linalg::LinalgOp op, linalg::IndexOp index);
  /// Clones the body of a member; that of a reduction updates `accumulator`.
  Value inlineBody(linalg::LinalgOp op, Value accumulator);
  std::unique_ptr<Region> createRegion(bool isOfRows, unsigned numResults,
                                       linalg::LinalgOp reduction,
                                       ArrayRef<Value> yielded);
  void createRegions();

  // Workload.
  bool addAxes();
  void describeOperands();
  void describeBodies();

  RowDescription &result;
  const RowGroup &group;
  OpBuilder b;
  SmallVector<linalg::LinalgOp> reductions;
  DenseMap<Operation *, RowAccumulation> accumulations;
  /// Values of the region under construction: arguments of inputs, final
  /// accumulators of earlier reductions, and scalars of members' values.
  SmallVector<Value> inputArguments;
  DenseMap<Value, Value> accumulators, scalars;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

AffineMap RowDescriber::toAxes(AffineMap map) const {
  unsigned numLoops = group.getNumLoops();
  SmallVector<AffineExpr> axes;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    axes.push_back(getAffineDimExpr(group.toAxis(loop), map.getContext()));
  return map.replaceDimsAndSymbols(axes, {}, numLoops, 0);
}

/// Returns a map without the results that are constant: the positions along
/// dimensions of extent 1.
static AffineMap dropConstants(AffineMap map) {
  SmallVector<AffineExpr> positions;
  for (AffineExpr position : map.getResults())
    if (!isa<AffineConstantExpr>(position))
      positions.push_back(position);
  return AffineMap::get(map.getNumDims(), 0, positions, map.getContext());
}

void RowDescriber::addInput(Value value, AffineMap access) {
  bool isKnown =
      llvm::any_of(result.inputs, [&](const RowDescription::Input &input) {
        return input.value == value && input.access == access;
      });
  if (!isKnown)
    result.inputs.push_back({value, access, group.isAlongRow(access),
                             toAxes(dropConstants(access))});
}

/// Adds the tensor or scalar that a reduction starts from.
void RowDescriber::addStart(linalg::LinalgOp op) {
  auto reduction = accumulations.find(op);
  if (reduction == accumulations.end() || !reduction->second.start)
    return;
  Value start = reduction->second.start;
  if (isa<RankedTensorType>(start.getType()))
    addInput(start, group.getAccess(op, op.getDpsInitOperand(0)));
  else
    addScalar(start);
}

void RowDescriber::addInputs() {
  for (linalg::LinalgOp op : group.getMembers()) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (!group.isValue(operand->get()) &&
          op.payloadUsesValueFromOperand(operand))
        addInput(operand->get(), group.getAccess(op, operand));
    // Scalars that the body takes from outside.
    op.getBlock()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() != op.getBlock() &&
            !matchPattern(operand, m_Constant()))
          addScalar(operand);
    });
    addStart(op);
  }
}

bool RowDescriber::isUsedOutside(Value value) const {
  SmallVector<Value> reshaped = {value};
  while (!reshaped.empty())
    for (Operation *user : reshaped.pop_back_val().getUsers()) {
      if (group.isReshape(user))
        reshaped.push_back(user->getResult(0));
      else if (!group.isMember(user))
        return true;
    }
  return false;
}

void RowDescriber::addOutputs() {
  for (bool isAlongRow : {false, true})
    for (linalg::LinalgOp op : group.getMembers()) {
      Value value = op->getResult(0);
      AffineMap layout = group.getLayout(value);
      if (group.isAlongRow(layout) != isAlongRow || !isUsedOutside(value))
        continue;
      Value shape = op.getDpsInitOperand(0)->get();
      if (auto fill = shape.getDefiningOp<linalg::FillOp>())
        shape = fill.output();
      AffineMap map = dropConstants(layout);
      if (group.hasSingleRow())
        map = map.insertResult(b.getAffineDimExpr(0), 0);
      result.outputs.push_back({value, isAlongRow, shape, toAxes(map)});
    }
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Returns the argument of the region for an input, as an index if the input is
/// one.
Value RowDescriber::createArgument(Value value, AffineMap access) {
  auto *input =
      llvm::find_if(result.inputs, [&](const RowDescription::Input &known) {
        return known.value == value && known.access == access;
      });
  Value argument = inputArguments[input - result.inputs.begin()];
  if (!value.getType().isIndex())
    return argument;
  return arith::IndexCastOp::create(b, argument.getLoc(), b.getIndexType(),
                                    argument);
}

Value RowDescriber::createElement(Value value) {
  value = group.skipReshapes(value);
  if (Value known = scalars.lookup(value))
    return known;
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  Value accumulator = accumulators.lookup(value);
  Value scalar =
      accumulator ? createResult(op, accumulator) : inlineBody(op, Value());
  scalars[value] = scalar;
  return scalar;
}

Value RowDescriber::createResult(linalg::LinalgOp reduction,
                                 Value accumulator) {
  const RowAccumulation &accumulation = accumulations.at(reduction);
  if (accumulation.hasStart()) {
    Value start;
    if (accumulation.constantStart)
      start = arith::ConstantOp::create(
          b, reduction.getLoc(), cast<TypedAttr>(accumulation.constantStart));
    else if (isa<RankedTensorType>(accumulation.start.getType()))
      start = createArgument(
          accumulation.start,
          group.getAccess(reduction, reduction.getDpsInitOperand(0)));
    else
      start = createScalarArgument(accumulation.start);
    accumulator =
        accumulation.combine(b, {accumulation.widen(b, start), accumulator});
  }
  return RowAccumulation::narrow(
      b, accumulator, getElementTypeOrSelf(reduction->getResult(0).getType()));
}

Value RowDescriber::createIndex(linalg::LinalgOp op, linalg::IndexOp index) {
  auto dim = dyn_cast<AffineDimExpr>(group.getLoop(op, index.getDim()));
  if (!dim)
    return arith::ConstantIndexOp::create(b, index.getLoc(), 0).getResult();
  return ukernel::IndexOp::create(b, index.getLoc(),
                                  group.toAxis(dim.getPosition()))
      .getResult();
}

Value RowDescriber::inlineBody(linalg::LinalgOp op, Value accumulator) {
  Block &body = *op.getBlock();
  IRMapping mapping;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(operand))
      continue;
    Value element =
        group.isValue(operand->get())
            ? createElement(operand->get())
            : createArgument(operand->get(), group.getAccess(op, operand));
    mapping.map(op.getMatchingBlockArgument(operand), element);
  }
  auto lookUp = [&](Value value) -> Value {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (matchPattern(value, m_Constant()))
      return b.clone(*value.getDefiningOp())->getResult(0);
    return createScalarArgument(value);
  };
  const RowAccumulation *accumulation =
      accumulator ? &accumulations.at(op) : nullptr;
  // Products that are added up are as wide as their sum.
  bool isWide =
      accumulation && isa<FloatType>(accumulation->type) && isSumOfProducts(op);
  for (Operation &inner : body.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), createIndex(op, index));
      continue;
    }
    bool combines = accumulation && &inner == accumulation->combining;
    if (combines || (isWide && isa<arith::MulFOp>(inner))) {
      SmallVector<Value> operands;
      for (Value operand : inner.getOperands())
        operands.push_back(operand == op.getRegionOutputArgs().front()
                               ? accumulator
                               : accumulation->widen(b, lookUp(operand)));
      mapping.map(inner.getResult(0),
                  createWide(b, &inner,
                             combines ? accumulation->name : inner.getName(),
                             operands));
      continue;
    }
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != &body)
        mapping.map(operand, lookUp(operand));
    b.clone(inner, mapping);
  }
  return lookUp(body.getTerminator()->getOperand(0));
}

/// Returns a region that takes elements of inputs, for `isOfRows` only those
/// that have one element for a row, and results of the first reductions. It
/// yields the next accumulator of `reduction`, and the elements of `yielded`.
std::unique_ptr<Region> RowDescriber::createRegion(bool isOfRows,
                                                   unsigned numResults,
                                                   linalg::LinalgOp reduction,
                                                   ArrayRef<Value> yielded) {
  Location loc = group.getMembers().front()->getLoc();
  auto region = std::make_unique<Region>();
  Block *block = b.createBlock(region.get());
  inputArguments.assign(result.inputs.size(), Value());
  accumulators.clear();
  scalars.clear();
  for (auto [argument, input] : llvm::zip_equal(inputArguments, result.inputs))
    if (!isOfRows || !input.isAlongRow) {
      Type type = getElementTypeOrSelf(input.value.getType());
      argument =
          block->addArgument(type.isIndex() ? b.getI64Type() : type, loc);
    }
  for (linalg::LinalgOp earlier : ArrayRef(reductions).take_front(numResults))
    accumulators[earlier->getResult(0)] =
        block->addArgument(accumulations.at(earlier).type, loc);
  SmallVector<Value> values;
  if (reduction)
    values.push_back(inlineBody(
        reduction, block->addArgument(accumulations.at(reduction).type, loc)));
  for (Value value : yielded)
    values.push_back(createElement(value));
  ukernel::YieldOp::create(b, loc, values);
  return region;
}

void RowDescriber::createRegions() {
  SmallVector<Value> ofRows, ofElements;
  for (const RowDescription::Output &output : result.outputs)
    (output.isAlongRow ? ofElements : ofRows).push_back(output.value);
  for (auto [number, reduction] : llvm::enumerate(reductions))
    result.reductions.push_back(
        createRegion(/*isOfRows=*/false, number, reduction, {}));
  result.values =
      createRegion(/*isOfRows=*/true, reductions.size(), {}, ofRows);
  result.map =
      createRegion(/*isOfRows=*/false, reductions.size(), {}, ofElements);
}

//===----------------------------------------------------------------------===//
// Workload
//===----------------------------------------------------------------------===//

/// Adds the axes, with the static extents of operands. Returns false if no
/// operand has the extent of an axis.
bool RowDescriber::addAxes() {
  unsigned numAxes = group.getNumLoops();
  SmallVector<std::optional<int64_t>> extents(numAxes);
  auto addExtents = [&](Value value, AffineMap layout) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    for (auto [dim, position] : llvm::enumerate(layout.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(position)) {
        std::optional<int64_t> &extent =
            extents[group.toAxis(loop.getPosition())];
        if (!extent || !type.isDynamicDim(dim))
          extent = type.getDimSize(dim);
      }
  };
  for (const RowDescription::Input &input : result.inputs)
    addExtents(input.value, input.access);
  for (const RowDescription::Output &output : result.outputs)
    addExtents(output.shape, group.getLayout(output.value));
  if (group.hasSingleRow())
    extents[group.toAxis(0)] = 1;
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    if (!extent)
      return false;
    SizeRange range;
    if (ShapedType::isStatic(*extent))
      range = SizeRange::fixed(std::max<int64_t>(*extent, 1));
    result.workload.axes.push_back(
        {RowReductionOp::nameAxis(axis, numAxes - 1).upper(), range});
  }
  return true;
}

void RowDescriber::describeOperands() {
  auto add = [&](OperandRole role, Value value, AffineMap map) {
    Type type = getElementTypeOrSelf(value.getType());
    result.workload.operands.push_back(
        toOperand(role, type.isIndex() ? b.getI64Type() : type, map));
  };
  for (const RowDescription::Input &input : result.inputs)
    add(OperandRole::Input, input.value, input.map);
  for (const RowDescription::Output &output : result.outputs)
    add(OperandRole::Output, output.value, output.map);
}

void RowDescriber::describeBodies() {
  RowBodies bodies;
  bodies.rowAxis = group.getNumLoops() - 1;
  for (const RowDescription::Input &input : result.inputs)
    bodies.inputsAlongRow.push_back(input.isAlongRow);
  for (std::unique_ptr<Region> &reduction : result.reductions)
    bodies.reductions.push_back(&reduction->front());
  bodies.values = &result.values->front();
  bodies.map = &result.map->front();
  for (auto [number, output] : llvm::enumerate(result.outputs))
    (output.isAlongRow ? bodies.mapOutputs : bodies.valueOutputs)
        .push_back(result.inputs.size() + number);
  setRowComputations(result.workload, bodies);
}

bool RowDescriber::describe() {
  addInputs();
  addOutputs();
  if (result.outputs.empty() || !addAxes())
    return false;
  createRegions();
  describeOperands();
  describeBodies();
  return !llvm::errorToBool(result.workload.check());
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// Smaller groups follow larger ones, for the case that no path supports these.
static constexpr RowGroupOptions groupOptions[] = {
    {/*hasProducers=*/true, /*hasTransposed=*/true},
    {/*hasProducers=*/true, /*hasTransposed=*/false},
    {/*hasProducers=*/false, /*hasTransposed=*/false}};

std::optional<RowDescription> ftuner::matchRows(linalg::LinalgOp seed,
                                                const PathSupport &support,
                                                RowElements &elements) {
  for (RowGroupOptions options : groupOptions) {
    RowDescription rows{RowGroup(seed, options, elements)};
    if (rows.group.isConsistent() && RowDescriber(rows).describe() &&
        support.supports(rows.workload))
      return rows;
  }
  return std::nullopt;
}
