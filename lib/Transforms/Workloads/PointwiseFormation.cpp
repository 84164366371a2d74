//===- PointwiseFormation.cpp - Chains to ukernel.pointwise ---------------===//
#include "PointwiseFormation.h"

#include "OperatorSizes.h"

#include "FTuner/Dialect/UKernel/IR/Computations.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace ftuner;
using ukernel::PointwiseOp;

bool ftuner::isPointElement(Type type) {
  return type.isIntOrFloat() && (fillsBytes(type) || type.isInteger(1)) &&
         toElementType(type) != ElementType::Other;
}

bool ftuner::hasScalarBody(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &op) {
    if (isa<linalg::IndexOp, cf::AssertOp>(op))
      return true;
    return op.getNumRegions() == 0 &&
           isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
           llvm::all_of(op.getResultTypes(), [](Type type) {
             // Kernels do not convert floats of 8 bits and less.
             return type.isIntOrIndexOrFloat() &&
                    !(isa<FloatType>(type) &&
                      type.getIntOrFloatBitWidth() < 16);
           });
  });
}

/// Returns false if the static extents make more than `maxExtent` points.
/// Dynamic extents and extents of 0 count as 1.
static bool hasFewEnoughPoints(linalg::LinalgOp op) {
  double points = 1;
  for (int64_t extent : op.getStaticLoopRanges())
    if (!ShapedType::isDynamic(extent))
      points *= static_cast<double>(std::max<int64_t>(extent, 1));
  return points <= static_cast<double>(maxExtent);
}

/// Turns a map from the loops of the operator into one from the axis and the
/// loops in their new order.
static AffineMap toPoints(const PointwiseDescription &points, AffineMap map) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> dims(points.loops.size());
  for (auto [number, loop] : llvm::enumerate(points.loops))
    dims[loop] = getAffineDimExpr(points.isFused() + number, context);
  return map.replaceDimsAndSymbols(dims, {}, points.numDims(), 0);
}

/// Fills in the order of loops and the maps of outputs. Returns false if an
/// output lacks a loop, or has elements that kernels do not.
static bool describeOutputs(PointwiseDescription &points) {
  linalg::LinalgOp op = points.op;
  AffineMap first = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!first.isPermutation())
    return false;
  for (AffineExpr loop : first.getResults())
    points.loops.push_back(cast<AffineDimExpr>(loop).getPosition());
  for (OpOperand &output : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&output);
    if (!map.isPermutation() || op.payloadUsesValueFromOperand(&output) ||
        !isPointElement(getElementTypeOrSelf(output.get().getType())))
      return false;
    points.outputMaps.push_back(
        points.loops.empty()
            ? AffineMap::getMultiDimIdentityMap(1, map.getContext())
            : toPoints(points, map));
  }
  return true;
}

/// Fills in the inputs. Returns false if a position is not a loop, nor that of
/// the only element along a dimension, or if kernels do not have the elements.
static bool describeInputs(PointwiseDescription &points) {
  linalg::LinalgOp op = points.op;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!op.payloadUsesValueFromOperand(operand))
      continue;
    AffineMap map = op.getMatchingIndexingMap(operand);
    Value value = operand->get();
    if (!isPointElement(getElementTypeOrSelf(value.getType())))
      return false;
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (auto [dim, position] : llvm::enumerate(map.getResults())) {
      auto constant = dyn_cast<AffineConstantExpr>(position);
      if (!isa<AffineDimExpr>(position) &&
          !(constant && constant.getValue() == 0 && type &&
            type.getDimSize(dim) == 1))
        return false;
    }
    points.inputs.push_back(
        {value, toPoints(points, map), op.getMatchingBlockArgument(operand)});
  }
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured) {
    if (matchPattern(value, m_Constant()))
      continue;
    if (!value.getType().isIndex() && !isPointElement(value.getType()))
      return false;
    points.scalars.push_back(value);
  }
  return true;
}

std::optional<PointwiseDescription>
ftuner::describePoints(linalg::LinalgOp op) {
  if (isa<linalg::FillOp, linalg::CopyOp>(*op) ||
      !op.hasPureTensorSemantics() || op->getNumRegions() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      op.getNumLoops() > PointwiseOp::kMaxLoops || !hasScalarBody(op) ||
      !hasFewEnoughPoints(op))
    return std::nullopt;
  PointwiseDescription points;
  points.op = op;
  if (!describeOutputs(points) || !describeInputs(points))
    return std::nullopt;
  return points;
}

AffineMap ftuner::dropConstants(AffineMap map) {
  SmallVector<AffineExpr> positions;
  for (AffineExpr position : map.getResults())
    if (!isa<AffineConstantExpr>(position))
      positions.push_back(position);
  return AffineMap::get(map.getNumDims(), 0, positions, map.getContext());
}

Value ftuner::collapseUnitDims(OpBuilder &b, Value tensor, AffineMap map) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices group;
  for (auto [dim, position] : llvm::enumerate(map.getResults())) {
    group.push_back(dim);
    if (!isa<AffineConstantExpr>(position))
      groups.push_back(std::exchange(group, {}));
  }
  if (groups.size() == map.getNumResults())
    return tensor;
  if (!groups.empty())
    groups.back().append(group);
  return tensor::CollapseShapeOp::create(b, tensor.getLoc(), tensor, groups);
}

/// Views a tensor without dimensions as one that has a dimension of extent 1.
static Value viewAsOneElement(OpBuilder &b, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return tensor::ExpandShapeOp::create(
      b, tensor.getLoc(), RankedTensorType::get({1}, type.getElementType()),
      tensor, ArrayRef<ReassociationIndices>());
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

SmallVector<Value> ftuner::cloneScalarBody(linalg::LinalgOp op,
                                           ArrayRef<unsigned> loops,
                                           IRMapping &mapping,
                                           RewriterBase &rewriter,
                                           bool promote) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (!mapping.contains(value))
      mapping.map(value,
                  rewriter.clone(*value.getDefiningOp())
                      ->getResult(cast<OpResult>(value).getResultNumber()));
  for (Operation &inner : op.getBlock()->without_terminator()) {
    // Fallback kernels do not check assertions either.
    if (isa<cf::AssertOp>(inner))
      continue;
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index && promote) {
      clonePromoted(rewriter, inner, mapping);
      continue;
    }
    if (!index) {
      rewriter.clone(inner, mapping);
      continue;
    }
    int64_t loop = llvm::find(loops, index.getDim()) - loops.begin();
    mapping.map(
        index.getResult(),
        ukernel::IndexOp::create(rewriter, op.getLoc(), loop).getResult());
  }
  return llvm::map_to_vector(
      op.getBlock()->getTerminator()->getOperands(), [&](Value value) {
        Value found = mapping.lookupOrDefault(value);
        return promote ? promoted(rewriter, op.getLoc(), found) : found;
      });
}

/// Moves the body of the operator to the region of the new one.
static void buildBody(const PointwiseDescription &points, PointwiseOp result,
                      ArrayRef<unsigned> argumentOfInput,
                      RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  linalg::LinalgOp op = points.op;
  SmallVector<Type> types;
  for (Value input : result.getInputs())
    types.push_back(getElementTypeOrSelf(input.getType()));
  Block *body =
      rewriter.createBlock(&result.getMap(), {}, types,
                           SmallVector<Location>(types.size(), op.getLoc()));
  IRMapping mapping;
  for (auto [input, number] : llvm::zip_equal(points.inputs, argumentOfInput))
    mapping.map(input.argument, body->getArgument(number));
  auto scalars = body->getArguments().take_back(points.scalars.size());
  for (auto [scalar, argument] : llvm::zip_equal(points.scalars, scalars)) {
    Value value = argument;
    if (scalar.getType().isIndex())
      value = arith::IndexCastOp::create(rewriter, op.getLoc(),
                                         scalar.getType(), value);
    mapping.map(scalar, value);
  }
  ukernel::YieldOp::create(
      rewriter, op.getLoc(),
      cloneScalarBody(op, points.loops, mapping, rewriter));
}

static PointwiseOp buildPoints(const PointwiseDescription &points,
                               RewriterBase &rewriter) {
  linalg::LinalgOp op = points.op;
  Location loc = op.getLoc();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> argumentOfInput;
  for (const PointwiseDescription::Input &input : points.inputs) {
    Value value = input.value;
    AffineMap map = dropConstants(input.map);
    if (isa<RankedTensorType>(value.getType()))
      value = collapseUnitDims(rewriter, value, input.map);
    argumentOfInput.push_back(inputs.size());
    inputs.push_back(value);
    maps.push_back(map);
  }
  AffineMap scalarMap =
      AffineMap::get(points.numDims(), 0, rewriter.getContext());
  for (Value scalar : points.scalars) {
    if (scalar.getType().isIndex())
      scalar = arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                          scalar);
    inputs.push_back(scalar);
    maps.push_back(scalarMap);
  }
  llvm::append_range(maps, points.outputMaps);
  SmallVector<Value> outputs(op.getDpsInits());
  if (points.loops.empty())
    for (Value &output : outputs)
      output = viewAsOneElement(rewriter, output);
  auto result = PointwiseOp::create(
      rewriter, loc, TypeRange(outputs), inputs, outputs,
      rewriter.getAffineMapArrayAttr(maps), /*taps=*/DenseI64ArrayAttr(),
      /*padded=*/ArrayAttr(), /*ranges=*/ArrayAttr(),
      /*plan=*/FlatSymbolRefAttr());
  buildBody(points, result, argumentOfInput, rewriter);
  return result;
}

//===----------------------------------------------------------------------===//
// Formation
//===----------------------------------------------------------------------===//

/// Describes the workload of the operator to be.
static Workload toWorkload(const PointwiseDescription &points) {
  linalg::LinalgOp op = points.op;
  Workload workload;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  Axis &axis = workload.axes.emplace_back();
  axis.name = "P";
  bool isDynamic = false;
  int64_t all = 1;
  for (unsigned loop : points.loops) {
    SizeRange range;
    if (ShapedType::isStatic(extents[loop]))
      range = SizeRange::fixed(std::max<int64_t>(extents[loop], 1));
    if (points.isFused())
      axis.loops.push_back({"D" + std::to_string(axis.loops.size()), range});
    isDynamic |= !range.isFixed();
    all *= range.min;
  }
  if (!isDynamic)
    axis.range = SizeRange::fixed(all);
  auto add = [&](OperandRole role, Type type, AffineMap map) {
    Operand operand(role, {}, toElementType(type));
    for (AffineExpr position : map.getResults()) {
      operand.axes.push_back(0);
      AffineForm form = AffineForm::ofAxis(0);
      if (points.isFused())
        form.terms.front().loop =
            cast<AffineDimExpr>(position).getPosition() - 1;
      operand.windows.push_back(std::move(form));
    }
    workload.operands.push_back(std::move(operand));
  };
  Computation map;
  map.name = "map";
  map.axes = {0};
  map.operations = collectOperations(*op.getBlock());
  for (const PointwiseDescription::Input &input : points.inputs)
    add(OperandRole::Input, input.value.getType(), dropConstants(input.map));
  for (auto [output, outputMap] :
       llvm::zip_equal(op.getDpsInits(), points.outputMaps)) {
    map.writes.push_back(workload.operands.size());
    add(OperandRole::Output, output.getType(), outputMap);
  }
  workload.computations.push_back(std::move(map));
  return workload;
}

bool ftuner::isPointwiseWorkload(linalg::LinalgOp op,
                                 const PathSupport &support) {
  std::optional<PointwiseDescription> points = describePoints(op);
  if (!points)
    return false;
  return !llvm::errorToBool(support.check(::toWorkload(*points)));
}

void ftuner::formPointwise(linalg::LinalgOp op, ExtentAnalysis &extents,
                           RewriterBase &rewriter) {
  std::optional<PointwiseDescription> points = describePoints(op);
  rewriter.setInsertionPoint(op);
  PointwiseOp result = buildPoints(*points, rewriter);
  settleSizes(result, extents, rewriter, "an elementwise operator");
  SmallVector<Value> results(result.getResults());
  if (points->loops.empty()) {
    rewriter.setInsertionPointAfter(result);
    for (Value &value : results)
      value = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), value,
                                              ArrayRef<ReassociationIndices>());
  }
  rewriter.replaceOp(op, results);
}
