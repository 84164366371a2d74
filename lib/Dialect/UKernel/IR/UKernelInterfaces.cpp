//===- UKernelInterfaces.cpp - Interfaces of operators --------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/Strides.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

#include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Iteration space
//===----------------------------------------------------------------------===//

/// Calls `visit` for every dimension of an operand that one axis indexes alone,
/// with the operand, the dimension and the axis, until it returns false.
static void forEachPlainDimension(
    OperatorOpInterface op,
    llvm::function_ref<bool(OpOperand &, int64_t, unsigned)> visit) {
  for (OpOperand &operand : op->getOpOperands())
    for (auto [dim, position] :
         llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto axis = dyn_cast<AffineDimExpr>(position))
        if (!visit(operand, dim, axis.getPosition()))
          return;
}

SmallVector<int64_t>
ftuner::ukernel::staticSizesOfDims(OperatorOpInterface op) {
  SmallVector<FusedLoop> loops = op.getFusedLoops();
  unsigned numAxes = op.getNumAxes();
  SmallVector<int64_t> sizes(numAxes + loops.size(), ShapedType::kDynamic);
  forEachPlainDimension(op,
                        [&](OpOperand &operand, int64_t dim, unsigned axis) {
                          auto type = cast<ShapedType>(operand.get().getType());
                          if (!type.isDynamicDim(dim))
                            sizes[axis] = type.getDimSize(dim);
                          return true;
                        });
  for (auto [number, loop] : llvm::enumerate(loops)) {
    sizes[loop.axis] = 1;
    if (ShapedType::isStatic(loop.extent))
      sizes[numAxes + number] = loop.extent;
  }
  for (auto [number, loop] : llvm::enumerate(loops)) {
    int64_t extent = sizes[numAxes + number];
    int64_t &product = sizes[loop.axis];
    if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(product))
      product = ShapedType::kDynamic;
    else
      product *= extent;
  }
  return sizes;
}

SmallVector<int64_t, 4>
ftuner::ukernel::detail::getStaticExtents(OperatorOpInterface op) {
  SmallVector<int64_t> sizes = staticSizesOfDims(op);
  return SmallVector<int64_t, 4>(ArrayRef(sizes).take_front(op.getNumAxes()));
}

static SmallVector<unsigned, 3> dimsOfAxis(unsigned axis, unsigned numAxes,
                                           ArrayRef<FusedLoop> loops) {
  SmallVector<unsigned, 3> dims;
  for (auto [number, loop] : llvm::enumerate(loops))
    if (loop.axis == axis)
      dims.push_back(numAxes + number);
  if (dims.empty())
    dims.push_back(axis);
  return dims;
}

SmallVector<unsigned, 3>
ftuner::ukernel::detail::getDimsOfAxis(OperatorOpInterface op, unsigned axis) {
  return dimsOfAxis(axis, op.getNumAxes(), op.getFusedLoops());
}

std::pair<Value, int64_t>
ftuner::ukernel::detail::getExtentSource(OperatorOpInterface op,
                                         unsigned wanted) {
  std::pair<Value, int64_t> source;
  forEachPlainDimension(op,
                        [&](OpOperand &operand, int64_t dim, unsigned other) {
                          if (other != wanted)
                            return true;
                          source = {operand.get(), dim};
                          return false;
                        });
  return source;
}

std::string ftuner::ukernel::axisList(OperatorOpInterface op) {
  auto names = llvm::map_range(llvm::seq(op.getNumAxes()), [&](unsigned axis) {
    return op.getAxisName(axis);
  });
  return "(" + llvm::join(names, ", ") + ")";
}

ArrayRef<int64_t> ftuner::ukernel::paddedRowsOf(OperatorOpInterface op) {
  auto numbers =
      op->getAttrOfType<DenseI64ArrayAttr>(UKernelDialect::kPaddedRowsAttrName);
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

void ftuner::ukernel::setPaddedRows(OperatorOpInterface op,
                                    ArrayRef<int64_t> numbers) {
  StringRef name = UKernelDialect::kPaddedRowsAttrName;
  if (numbers.empty())
    op->removeAttr(name);
  else
    op->setAttr(name, DenseI64ArrayAttr::get(op.getContext(), numbers));
}

SmallVector<ReassociationIndices>
ftuner::ukernel::groupDimensions(OperatorOpInterface op, unsigned number) {
  // Loops whose elements do not lie in one piece stay apart.
  auto buffer = dyn_cast<MemRefType>(op->getOperand(number).getType());
  return groupDimensions(op.getMapOfOperand(number), op.getNumAxes(),
                         op.getFusedLoops(), [&](size_t first, size_t count) {
                           return !buffer || !op.takesAnyStrides() ||
                                  haveOneStride(buffer, first, count);
                         });
}

SmallVector<ReassociationIndices> ftuner::ukernel::groupDimensions(
    AffineMap map, unsigned numAxes, ArrayRef<FusedLoop> loops,
    llvm::function_ref<bool(size_t, size_t)> isInOnePiece) {
  ArrayRef<AffineExpr> positions = map.getResults();
  SmallVector<ReassociationIndices> groups;
  for (size_t dim = 0; dim < positions.size();) {
    ReassociationIndices &group = groups.emplace_back(1, dim);
    auto first = dyn_cast<AffineDimExpr>(positions[dim++]);
    if (!first || first.getPosition() < numAxes)
      continue;
    auto all =
        dimsOfAxis(loops[first.getPosition() - numAxes].axis, numAxes, loops);
    ArrayRef<AffineExpr> run = positions.slice(dim - 1).take_front(all.size());
    auto isLoop = [&](auto pair) {
      auto [position, loop] = pair;
      return position == getAffineDimExpr(loop, map.getContext());
    };
    if (run.size() == all.size() && llvm::all_of(llvm::zip(run, all), isLoop) &&
        isInOnePiece(dim - 1, all.size()))
      for (size_t more = 1; more < all.size(); ++more)
        group.push_back(dim++);
  }
  return groups;
}

AffineMap ftuner::ukernel::axisMapOf(OperatorOpInterface op, unsigned number) {
  AffineMap map = op.getMapOfOperand(number);
  SmallVector<FusedLoop> loops = op.getFusedLoops();
  unsigned numAxes = op.getNumAxes();
  if (loops.empty())
    return map.isProjectedPermutation() ? map : AffineMap();
  SmallVector<AffineExpr> results;
  for (const ReassociationIndices &group : groupDimensions(op, number)) {
    auto dim = dyn_cast<AffineDimExpr>(map.getResult(group.front()));
    if (!dim)
      return {};
    unsigned axis = dim.getPosition();
    if (axis >= numAxes) {
      axis = loops[axis - numAxes].axis;
      if (op.getDimsOfAxis(axis).size() != group.size())
        return {};
    }
    results.push_back(getAffineDimExpr(axis, op->getContext()));
  }
  return AffineMap::get(numAxes, 0, results, op->getContext());
}

AffineExpr ftuner::ukernel::reachOf(AffineExpr position,
                                    ArrayRef<AffineExpr> sizes) {
  if (auto axis = dyn_cast<AffineDimExpr>(position))
    return sizes[axis.getPosition()];
  auto last = llvm::map_to_vector(
      sizes, [](AffineExpr size) -> AffineExpr { return size - 1; });
  SmallVector<AffineExpr> first(
      sizes.size(), getAffineConstantExpr(0, position.getContext()));
  return position.replaceDims(last) - position.replaceDims(first) + 1;
}

//===----------------------------------------------------------------------===//
// Operands and computation
//===----------------------------------------------------------------------===//

std::string ftuner::ukernel::detail::getOperandName(OperatorOpInterface op,
                                                    unsigned number) {
  OperandRole role = op.getOperandRole(number);
  // Roles of which there may be several are numbered.
  auto numbered = [&](StringRef name) {
    unsigned before = llvm::count_if(llvm::seq(number), [&](unsigned other) {
      return op.getOperandRole(other) == role;
    });
    return name.str() + std::to_string(before);
  };
  switch (role) {
  case OperandRole::Lhs:
    return "lhs";
  case OperandRole::Rhs:
    return "rhs";
  case OperandRole::Input:
    return numbered("input");
  case OperandRole::Init:
    return "init";
  case OperandRole::Extra:
    return numbered("extra");
  case OperandRole::Output:
    return op.getNumDpsInits() == 1 ? "output" : numbered("output");
  }
  llvm_unreachable("every role has a name");
}

Operation *ftuner::ukernel::findCombiningOp(Block &body) {
  SmallVector<Operation *, 4> operations;
  if (!matchReduction({body.getArguments().back()}, /*redPos=*/0, operations) ||
      operations.size() != 1)
    return nullptr;
  return operations.front();
}

Operation *ftuner::ukernel::detail::getCombiningOp(ReductionOpInterface op) {
  return findCombiningOp(op.getCombiner().front());
}

LogicalResult
ftuner::ukernel::reifyOutputShapes(OperatorOpInterface op, OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    shapes.push_back(tensor::getMixedSizes(
        builder, op.getLoc(), op.getDpsInitOperand(number)->get()));
  return success();
}

Type ftuner::ukernel::detail::getAccumulatorType(ReductionOpInterface op) {
  Region &combiner = op.getCombiner();
  if (combiner.empty() || combiner.getNumArguments() == 0)
    return getElementTypeOrSelf(op.getStartOperand().get().getType());
  return combiner.getArguments().back().getType();
}

OpOperand &ftuner::ukernel::detail::getStartOperand(ReductionOpInterface op) {
  for (OpOperand &operand : op->getOpOperands())
    if (op.getOperandRole(operand.getOperandNumber()) == OperandRole::Init)
      return operand;
  return op.getOutputOperand();
}

bool ftuner::ukernel::detail::startsFromOutput(OperatorOpInterface op) {
  auto reduction = dyn_cast<ReductionOpInterface>(op.getOperation());
  return reduction &&
         &reduction.getStartOperand() == &reduction.getOutputOperand();
}

SmallVector<SliceState>
ftuner::ukernel::detail::getSliceStates(OperatorOpInterface op) {
  auto reduction = cast<ReductionOpInterface>(op.getOperation());
  return {{reduction.getAccumulatorType(),
           op.getMatchingIndexingMap(&reduction.getOutputOperand())}};
}

void ftuner::ukernel::getOperatorEffects(
    OperatorOpInterface op,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isOutput = op.isOutput(operand.getOperandNumber());
    if (!isOutput || op.readsOutput())
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
    if (isOutput)
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Operation *ftuner::ukernel::detail::cloneIntoTile(OperatorOpInterface op,
                                                  OpBuilder &builder,
                                                  ValueRange operands,
                                                  ArrayRef<int64_t> tile) {
  SmallVector<Value> padded(operands);
  for (unsigned number : llvm::seq(op->getNumOperands())) {
    if (!op.isInput(number) || !isa<MemRefType>(padded[number].getType()))
      continue;
    auto sizes = llvm::map_to_vector(
        op.getMapOfOperand(number).getResults(), [&](AffineExpr position) {
          auto axis = dyn_cast<AffineDimExpr>(position);
          return axis && axis.getPosition() < tile.size()
                     ? tile[axis.getPosition()]
                     : 1;
        });
    padded[number] = builder.createOrFold<PadOp>(
        op.getLoc(), padded[number].getType(), padded[number],
        builder.getDenseI64ArrayAttr(sizes));
  }
  auto clone = cast<OperatorOpInterface>(builder.clone(*op));
  clone->setOperands(padded);
  clone.setPlanAttr({});
  clone.setRangesAttr({});
  return clone;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Returns whether the expression is a sum of multiples of dimensions, at least
/// one, and a number.
static bool isSumOfMultiples(AffineExpr position, unsigned numDims) {
  if (isa<AffineDimExpr>(position))
    return true;
  SmallVector<int64_t> coefficients;
  return succeeded(getFlattenedAffineExpr(position, numDims, /*numSymbols=*/0,
                                          &coefficients)) &&
         coefficients.size() == numDims + 1 &&
         !llvm::all_of(ArrayRef(coefficients).drop_back(),
                       [](int64_t coefficient) { return coefficient == 0; });
}

/// operator_c6.
static LogicalResult verifyLoops(OperatorOpInterface op) {
  unsigned last = 0;
  for (const FusedLoop &loop : op.getFusedLoops()) {
    if (loop.axis >= op.getNumAxes() || loop.axis < last)
      return op->emitOpError("expected loops of ")
             << axisList(op) << " in their order, but got '" << loop.name
             << "' of axis " << loop.axis;
    last = loop.axis;
  }
  return success();
}

/// operator_c2.
static LogicalResult verifyMaps(OperatorOpInterface op) {
  SmallVector<FusedLoop> loops = op.getFusedLoops();
  unsigned numDims = op.getNumAxes() + loops.size();
  size_t numMaps = op.getIndexingMapsArray().size();
  if (numMaps != op->getNumOperands())
    return op->emitOpError("expected one map for each of ")
           << op->getNumOperands() << " operands, but got " << numMaps;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    if (type && !type.hasRank())
      return op->emitOpError("expected operand ")
             << operand.getOperandNumber() << " with a rank, but got " << type;
    int64_t rank = type ? type.getRank() : 0;
    bool isAccess = map && map.getNumDims() == numDims &&
                    map.getNumSymbols() == 0 && map.getNumResults() == rank &&
                    llvm::all_of(map.getResults(), [&](AffineExpr position) {
                      return isSumOfMultiples(position, numDims);
                    });
    if (!isAccess)
      return op->emitOpError("expected a map of ")
             << axisList(op) << (loops.empty() ? "" : " and their loops")
             << " to " << rank << " sums of multiples of axes for operand "
             << operand.getOperandNumber() << ", but got "
             << AffineMapAttr::get(map);
    for (const FusedLoop &loop : loops)
      if (map.isFunctionOfDim(loop.axis))
        return op->emitOpError("expected loops of ")
               << op.getAxisName(loop.axis) << " in the map of operand "
               << operand.getOperandNumber()
               << ", but got the axis: " << AffineMapAttr::get(map);
  }
  return success();
}

/// reduction_c2.
static LogicalResult verifyStart(ReductionOpInterface op) {
  OpOperand &operand = op.getStartOperand();
  Type start = getElementTypeOrSelf(operand.get().getType());
  Type accumulator = op.getAccumulatorType();
  auto narrow = dyn_cast<FloatType>(start),
       wide = dyn_cast<FloatType>(accumulator);
  if (start == accumulator ||
      (narrow && wide && narrow.getWidth() < wide.getWidth()))
    return success();
  return op->emitOpError("expected ")
         << op.getOperandName(operand.getOperandNumber()) << " of "
         << accumulator << ", where the accumulator starts, or of a narrower "
         << "float type, but got " << start;
}

/// reduction_c3.
static LogicalResult verifySpaceOperands(ReductionOpInterface op) {
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    if (op.isInput(number))
      continue;
    for (unsigned axis : llvm::seq(op.getNumAxes()))
      if (op.isReduceAxis(axis) &&
          llvm::any_of(op.getDimsOfAxis(axis), [&](unsigned dim) {
            return op.getMapOfOperand(number).isFunctionOfDim(dim);
          }))
        return op->emitOpError("expected operand ")
               << number << " to run along space axes alone, but it has "
               << op.getAxisName(axis) << ", which is reduced";
  }
  return success();
}

/// operator_c7.
static LogicalResult verifyShapes(OperatorOpInterface op) {
  SmallVector<int64_t> sizes(op.getNumAxes(), ShapedType::kDynamic);
  for (const FusedLoop &loop : op.getFusedLoops())
    sizes.push_back(loop.extent);
  std::optional<bool> areTensors;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    if (!type)
      continue;
    bool isTensor = isa<TensorType>(type);
    if (areTensors.value_or(isTensor) != isTensor)
      return op->emitOpError("expected tensors alone or buffers alone, but got "
                             "operand ")
             << operand.getOperandNumber() << " of " << type;
    areTensors = isTensor;
    AffineMap map = op.getMapOfOperand(operand.getOperandNumber());
    for (auto [position, size] :
         llvm::zip_equal(map.getResults(), type.getShape())) {
      auto dim = dyn_cast<AffineDimExpr>(position);
      if (!dim || ShapedType::isDynamic(size))
        continue;
      int64_t &known = sizes[dim.getPosition()];
      if (!ShapedType::isDynamic(known) && known != size)
        return op->emitOpError("expected equal sizes of operands along "
                               "dimension ")
               << dim.getPosition() << " of their maps, but got " << known
               << " and " << size;
      known = size;
    }
  }
  return success();
}

LogicalResult ftuner::ukernel::detail::verifyOperator(OperatorOpInterface op) {
  unsigned numAxes = op.getNumAxes();
  if (numAxes == 0)
    return op->emitOpError("expected an iteration space with axes");
  if (failed(verifyLoops(op)) || failed(verifyMaps(op)))
    return failure();
  SmallVector<FusedLoop> loops = op.getFusedLoops();
  auto hasExtent = [&](unsigned dim) {
    return (dim >= numAxes &&
            ShapedType::isStatic(loops[dim - numAxes].extent)) ||
           op.getExtentSource(dim).first;
  };
  for (unsigned axis : llvm::seq(numAxes))
    for (unsigned dim : op.getDimsOfAxis(axis))
      if (!hasExtent(dim))
        return op->emitOpError("expected a dimension that ")
               << (dim < numAxes ? op.getAxisName(axis)
                                 : StringRef(loops[dim - numAxes].name))
               << " indexes alone";
  if (failed(verifyShapes(op)))
    return failure();
  for (OpOperand &operand : op->getOpOperands())
    if (op.isOutput(operand.getOperandNumber()) != op.isDpsInit(&operand))
      return op->emitOpError("expected operands that are written to be "
                             "outputs, but got operand ")
             << operand.getOperandNumber();
  StringRef extentsName = UKernelDialect::kExtentsAttrName;
  auto extents = op->getAttrOfType<ArrayAttr>(extentsName);
  if (extents && extents.size() != numAxes)
    return op->emitOpError("'")
           << extentsName << "' expected one entry for each of " << axisList(op)
           << ", but got " << extents;
  ArrayAttr ranges = op.getRangesAttr();
  if (ranges && (ranges.size() != numAxes ||
                 !llvm::all_of(ranges, llvm::IsaPred<RangeAttr>)))
    return op->emitOpError("expected one range for each of ")
           << axisList(op) << ", but got " << ranges;
  return success();
}

LogicalResult
ftuner::ukernel::detail::verifyReduction(ReductionOpInterface op) {
  if (int64_t outputs = op.getNumDpsInits(); outputs != 1)
    return op->emitOpError("expected one output, but got ") << outputs;
  return failure(failed(verifySpaceOperands(op)) || failed(verifyStart(op)));
}

LogicalResult ftuner::ukernel::verifyScalarRegion(OperatorOpInterface op,
                                                  Region &region,
                                                  StringRef name,
                                                  ArrayRef<Type> arguments,
                                                  ArrayRef<Type> results) {
  if (region.empty() || region.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError("expected ")
           << name << " to take (" << arguments << "), but got ("
           << region.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(region.front().back());
  if (!yield)
    return op->emitOpError("expected ")
           << name << " to end with 'ukernel.yield'";
  if (yield.getOperandTypes() != TypeRange(results))
    return op->emitOpError("expected ")
           << name << " to yield " << results << ", but got "
           << yield.getOperandTypes();
  return success();
}

LogicalResult
ftuner::ukernel::verifyPlanUse(OperatorOpInterface op,
                               SymbolTableCollection &symbolTable) {
  FlatSymbolRefAttr name = op.getPlanAttr();
  if (!name)
    return success();
  auto plan = symbolTable.lookupNearestSymbolFrom<PlanOp>(op, name);
  if (!plan)
    return op->emitOpError("expected ") << name << " to be a 'ukernel.plan'";
  size_t rank = plan.getPlan().getFamilies().front().getRank();
  if (rank != op.getNumAxes())
    return op->emitOpError("expected a plan of ")
           << op.getNumAxes() << " axes, but got " << rank;
  return success();
}
