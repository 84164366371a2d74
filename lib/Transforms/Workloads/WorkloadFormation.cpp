//===- WorkloadFormation.cpp - From contraction to workload ---------------===//
#include "WorkloadFormation.h"
#include "OperatorSizes.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;
using ukernel::WorkloadOp;

namespace {

/// Operands of the workload under construction, and their maps.
struct Operands {
  Value lhs, rhs, init, output;
  SmallVector<Value> inputs, extras;
  SmallVector<AffineMap> maps;
  /// The block argument or captured value of the epilogue for each extra.
  SmallVector<Value> extraSources;
};

/// Builds the workload of a contraction and its epilogue.
class WorkloadBuilder {
public:
  WorkloadBuilder(const WorkloadSource &source, ExtentAnalysis &extents,
                  RewriterBase &rewriter)
      : source(source), contraction(source.contraction),
        epilogue(source.epilogue), accumulator(source.getAccumulatorType()),
        extents(extents), rewriter(rewriter), context(rewriter.getContext()),
        loc(contraction.getLoc()) {}

  WorkloadOp build();

private:
  void collectInputs();
  void collectInit();
  void collectExtras();
  void addExtra(Value extra, AffineMap map, Value inBody);
  Value createEmpty(Value tensor);
  WorkloadOp createOp();
  bool needsEpilogue() { return epilogue || source.roundsAccumulator(); }
  Value buildPrologue(unsigned input, Value factor, ValueRange &inputs);
  void buildContract(WorkloadOp op);
  Value widen(Value value);
  void buildEpilogue(WorkloadOp op);

  const WorkloadSource &source;
  linalg::LinalgOp contraction;
  linalg::GenericOp epilogue;
  Type accumulator;
  ExtentAnalysis &extents;
  RewriterBase &rewriter;
  MLIRContext *context;
  Location loc;
  Operands operands;
  AffineMap initMap;
  SmallVector<AffineMap> extraMaps;
};

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Creates a tensor of the same shape whose elements are not set.
Value WorkloadBuilder::createEmpty(Value tensor) {
  Value shape = tensor;
  while (auto op = shape.getDefiningOp<DestinationStyleOpInterface>())
    shape = op.getTiedOpOperand(cast<OpResult>(shape))->get();
  if (shape.getType() == tensor.getType() &&
      shape.getDefiningOp<tensor::EmptyOp>())
    return shape;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  if (auto empty = shape.getDefiningOp<tensor::EmptyOp>())
    sizes = empty.getMixedSizes();
  else
    sizes = tensor::getMixedSizes(rewriter, loc, shape);
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!type.isDynamicDim(dim))
      size = rewriter.getIndexAttr(type.getDimSize(dim));
  return tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
}

void WorkloadBuilder::collectInputs() {
  auto addMap = [&](const SourceOperand &operand) {
    operands.maps.push_back(source.toDims(operand.map, source.contractionDims));
    return operand.value;
  };
  auto [lhs, rhs] = source.getInputNumbers();
  operands.lhs = addMap(source.getFactor(lhs));
  operands.rhs = addMap(source.getFactor(rhs));
  for (unsigned input : {lhs, rhs})
    for (auto &[operand, value] : source.getInputs(input))
      operands.inputs.push_back(addMap(operand));
}

/// Casts a constant to `type`: a float type that is at least as wide, or its
/// own.
static TypedAttr widenConstant(TypedAttr constant, Type type) {
  auto narrow = dyn_cast<FloatAttr>(constant);
  if (!narrow || narrow.getType() == type)
    return constant;
  APFloat value = narrow.getValue();
  bool losesInfo = false;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &losesInfo);
  return FloatAttr::get(type, value);
}

/// Returns the scalar that a tensor is filled with, by a fill or a constant;
/// null for other tensors. A constant is cast to the accumulator's type.
static Value getFillScalar(Value tensor, Type accumulator, OpBuilder &b,
                           Location loc) {
  Type element = getElementTypeOrSelf(tensor.getType());
  auto constant = [&](TypedAttr value) {
    return arith::ConstantOp::create(b, loc, widenConstant(value, accumulator));
  };
  if (Value scalar = matchFill(tensor)) {
    TypedAttr value;
    if (scalar.getType() != element)
      return {};
    if (element != accumulator && matchPattern(scalar, m_Constant(&value)))
      return constant(value);
    return scalar;
  }
  SplatElementsAttr splat;
  if (matchPattern(tensor, m_Constant(&splat)))
    return constant(splat.getSplatValue<TypedAttr>());
  return {};
}

/// Returns true if the contraction may overwrite the tensor that it starts
/// from: it is the only reader, and the tensor is not an argument of the
/// function, which belongs to the caller.
static bool isOverwritable(Value tensor) {
  while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                         tensor::CastOp>(tensor.getDefiningOp())) {
    if (!tensor.hasOneUse())
      return false;
    tensor = tensor.getDefiningOp()->getOperand(0);
  }
  auto argument = dyn_cast<BlockArgument>(tensor);
  bool isFunctionArgument =
      argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return tensor.hasOneUse() && !isFunctionArgument;
}

/// Collects the operand that the accumulator starts from: a scalar, the source
/// of a broadcast, or a tensor, which is accumulated in place if possible.
void WorkloadBuilder::collectInit() {
  OpOperand *operand = contraction.getDpsInitOperand(0);
  Value init = operand->get();
  AffineMap map = source.toDims(contraction.getMatchingIndexingMap(operand),
                                source.contractionDims);
  if (Value scalar = getFillScalar(init, accumulator, rewriter, loc)) {
    operands.init = scalar;
  } else if (std::optional<ProjectedCopy> copy =
                 matchProjectedCopy(init.getDefiningOp())) {
    operands.init = copy->source;
    initMap = copy->map.compose(map);
  } else if (epilogue || !isOverwritable(init)) {
    operands.init = init;
    initMap = map;
  }
  if (!epilogue)
    operands.output = operands.init ? createEmpty(init) : init;
}

void WorkloadBuilder::addExtra(Value extra, AffineMap map, Value inBody) {
  operands.extras.push_back(extra);
  operands.extraSources.push_back(inBody);
  extraMaps.push_back(map);
}

void WorkloadBuilder::collectExtras() {
  if (!epilogue)
    return;
  for (OpOperand *operand : source.getExtraOperands())
    addExtra(operand->get(),
             source.toDims(epilogue.getMatchingIndexingMap(operand),
                           source.epilogueDims),
             epilogue.getMatchingBlockArgument(operand));
  for (Value value : source.getCapturedExtras())
    addExtra(value, AffineMap::get(source.getNumDims(), 0, context), value);

  OpOperand *result = epilogue.getDpsInitOperand(0);
  bool isRead = !epilogue.getMatchingBlockArgument(result).use_empty();
  operands.output = isRead && result->get() != contraction->getResult(0)
                        ? result->get()
                        : createEmpty(result->get());
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

WorkloadOp WorkloadBuilder::createOp() {
  if (initMap)
    operands.maps.push_back(initMap);
  llvm::append_range(operands.maps, extraMaps);
  linalg::LinalgOp last = epilogue ? epilogue : contraction;
  operands.maps.push_back(
      source.toDims(last.getMatchingIndexingMap(last.getDpsInitOperand(0)),
                    epilogue ? source.epilogueDims : source.contractionDims));
  bool isPadded = source.pads[0] || source.pads[1];
  return WorkloadOp::create(
      rewriter, loc, operands.output.getType(), operands.lhs, operands.rhs,
      operands.inputs, operands.init, operands.extras, operands.output,
      rewriter.getAffineMapArrayAttr(operands.maps),
      source.fused.empty() ? DenseI64ArrayAttr()
                           : rewriter.getDenseI64ArrayAttr(source.fused),
      isPadded ? rewriter.getUnitAttr() : UnitAttr(), /*ranges=*/ArrayAttr(),
      /*plan=*/FlatSymbolRefAttr(), /*precision=*/TypeAttr(),
      /*truncated=*/UnitAttr(), /*packed=*/UnitAttr(),
      /*epiloguesCount=*/needsEpilogue() ? 1u : 0u);
}

/// Extends a float to the accumulator's type.
Value WorkloadBuilder::widen(Value value) {
  if (value.getType() == accumulator)
    return value;
  return arith::ExtFOp::create(rewriter, loc, accumulator, value);
}

/// Clones the constants that a body reads from outside.
static void cloneConstants(Region &region, IRMapping &mapping,
                           RewriterBase &rewriter) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(region, captured);
  for (Value value : captured)
    if (matchPattern(value, m_Constant()))
      mapping.map(value, rewriter.clone(*value.getDefiningOp())->getResult(0));
}

/// Clones the prologue of an input of the contraction, applied to an element
/// `factor`, and returns its result. Takes the arguments that the prologue
/// reads from the front of `inputs`.
Value WorkloadBuilder::buildPrologue(unsigned input, Value factor,
                                     ValueRange &inputs) {
  const Prologue &prologue = source.prologues[input];
  linalg::GenericOp op = prologue.op;
  if (!op)
    return factor;
  IRMapping mapping;
  mapping.map(op.getMatchingBlockArgument(prologue.factor), factor);
  for (auto &[operand, value] : source.getInputs(input)) {
    mapping.map(value, inputs.front());
    inputs = inputs.drop_front();
  }
  cloneConstants(op.getRegion(), mapping, rewriter);
  for (Operation &inner : op.getBody()->without_terminator())
    rewriter.clone(inner, mapping);
  return mapping.lookup(op.getBody()->getTerminator()->getOperand(0));
}

void WorkloadBuilder::buildContract(WorkloadOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Type> types = {getElementTypeOrSelf(op.getLhs()),
                             getElementTypeOrSelf(op.getRhs())};
  for (Value input : operands.inputs)
    types.push_back(getElementTypeOrSelf(input.getType()));
  types.push_back(accumulator);
  Block *block = rewriter.createBlock(&op.getContract(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
  Block &body = *contraction.getBlock();
  IRMapping mapping;
  ValueRange inputs = block->getArguments().drop_front(2).drop_back();
  for (auto [factor, input] : llvm::enumerate(source.getInputNumbers()))
    mapping.map(body.getArgument(input),
                buildPrologue(input, block->getArgument(factor), inputs));
  mapping.map(body.getArgument(2), block->getArguments().back());
  for (Operation &inner : body.without_terminator()) {
    // Casts of factors stay as they are; products and sums are wide.
    bool isWide = !isExactCast(&inner);
    if (isWide)
      for (Value operand : inner.getOperands())
        mapping.map(operand, widen(mapping.lookup(operand)));
    Operation *clone = rewriter.clone(inner, mapping);
    if (isWide)
      clone->getResult(0).setType(accumulator);
  }
  ukernel::YieldOp::create(rewriter, loc,
                           mapping.lookup(body.getTerminator()->getOperand(0)));
}

void WorkloadBuilder::buildEpilogue(WorkloadOp op) {
  if (!needsEpilogue())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Type> types = {accumulator};
  for (Value extra : operands.extras)
    types.push_back(getElementTypeOrSelf(extra.getType()));
  Block *block = rewriter.createBlock(&op.getEpilogue(), {}, types,
                                      SmallVector<Location>(types.size(), loc));
  // The program rounds the accumulator before the epilogue reads it.
  Value product = block->getArgument(0);
  if (source.roundsAccumulator())
    product = arith::TruncFOp::create(
        rewriter, loc, getElementTypeOrSelf(contraction->getResult(0)),
        product);
  if (!epilogue) {
    ukernel::YieldOp::create(rewriter, loc, product);
    return;
  }
  IRMapping mapping;
  for (OpOperand &operand : epilogue->getOpOperands())
    if (operand.get() == contraction->getResult(0))
      mapping.map(epilogue.getMatchingBlockArgument(&operand), product);
  for (auto [index, value] : llvm::enumerate(operands.extraSources))
    mapping.map(value, block->getArgument(1 + index));
  cloneConstants(epilogue.getRegion(), mapping, rewriter);
  Block &body = *epilogue.getBody();
  for (Operation &inner : body.without_terminator())
    rewriter.clone(inner, mapping);
  ukernel::YieldOp::create(
      rewriter, loc,
      mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
}

WorkloadOp WorkloadBuilder::build() {
  Operation *last =
      epilogue ? epilogue.getOperation() : contraction.getOperation();
  rewriter.setInsertionPoint(last);
  collectInputs();
  collectInit();
  collectExtras();
  WorkloadOp op = createOp();
  buildContract(op);
  buildEpilogue(op);
  settleSizes(op, extents, rewriter, "a matrix product");
  rewriter.replaceOp(last, op.getResult());
  if (epilogue)
    rewriter.eraseOp(contraction);
  return op;
}

} // namespace

WorkloadOp ftuner::formWorkload(const WorkloadSource &source,
                                ExtentAnalysis &extents,
                                RewriterBase &rewriter) {
  return WorkloadBuilder(source, extents, rewriter).build();
}
