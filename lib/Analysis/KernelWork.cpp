//===- KernelWork.cpp - Work of a kernel ----------------------------------===//
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Analysis/OperatorKind.h"

#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

/// How often an operation runs each time that a body does: in loops of constant
/// bounds more than once.
static int64_t timesOf(Operation *op, Block &body) {
  int64_t times = 1;
  for (Operation *parent = op->getParentOp(); parent != body.getParentOp();
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      if (std::optional<APInt> trips = loop.getStaticTripCount())
        times *= trips->getSExtValue();
  return times;
}

int64_t ftuner::flopsOf(Block &body) {
  double count = 0;
  body.walk([&](Operation *op) {
    if (std::optional<Operations> operations = operationsOf(*op))
      count += operations->flops() * static_cast<double>(timesOf(op, body));
  });
  return static_cast<int64_t>(count);
}

std::string ftuner::operatorNameOf(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (!isa<linalg::GenericOp, linalg::MapOp, linalg::ReduceOp,
           ukernel::OperatorOpInterface>(op))
    return name;
  if (auto window = op->getAttrOfType<StringAttr>(kWindowAttrName))
    return window.str();
  llvm::SetVector<StringRef> inner;
  op->walk([&](Operation *nested) {
    std::optional<Operations> operations = operationsOf(*nested);
    if (nested != op && operations && operations->flops() > 0)
      inner.insert(nested->getName().getStringRef());
  });
  return inner.empty() ? name : name + " (" + llvm::join(inner, ", ") + ")";
}

static AffineExpr productOf(MLIRContext *context, ArrayRef<AffineExpr> factors,
                            int64_t number = 1) {
  AffineExpr result = getAffineConstantExpr(1, context);
  for (AffineExpr factor : factors)
    result = result * factor;
  return result * number;
}

static NamedAttrList makeWork(MLIRContext *context, unsigned numSizes,
                              ArrayRef<AffineExpr> amounts,
                              ArrayRef<AffineExpr> extents = {}) {
  NamedAttrList fields;
  fields.set("amounts",
             AffineMapAttr::get(AffineMap::get(0, numSizes, amounts, context)));
  if (!extents.empty())
    fields.set("extents", AffineMapAttr::get(
                              AffineMap::get(0, numSizes, extents, context)));
  return fields;
}

DictionaryAttr
ftuner::workOf(linalg::LinalgOp op, const LoopSplit &split, unsigned numSizes,
               llvm::function_ref<AffineExpr(Value, int64_t)> dimOf) {
  MLIRContext *context = op->getContext();
  SmallVector<AffineExpr> dims;
  for (OpOperand &operand : op->getOpOperands())
    for (size_t dim = 0; dim < op.getShape(&operand).size(); ++dim)
      dims.push_back(dimOf(operand.get(), dim));
  SmallVector<AffineExpr> extents;
  for (AffineExpr result : op.getShapesToLoopsMap().getResults())
    extents.push_back(result.replaceDims(dims));
  AffineExpr iterations = productOf(context, extents);
  AffineExpr points = getAffineConstantExpr(1, context);
  for (unsigned loop : split.parallel)
    points = points * extents[loop];

  AffineExpr steps = getAffineConstantExpr(1, context);
  for (unsigned loop : split.sequential) {
    bool isAcrossLanes = split.isAcrossLanes && loop == split.sequential.back();
    steps = steps * (isAcrossLanes ? extents[loop].ceilDiv(LoopSplit::kLanes)
                                   : extents[loop]);
  }

  AffineExpr bytes = getAffineConstantExpr(0, context), accesses = bytes;
  int64_t loadsOfStep = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isOutput = op.isDpsInit(&operand);
    bool isRead = op.payloadUsesValueFromOperand(&operand) ||
                  (isOutput && !split.sequential.empty());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<AffineExpr> elements;
    for (unsigned dim = 0; dim < map.getNumResults(); ++dim)
      elements.push_back(dimOf(operand.get(), dim));
    int64_t times = (isRead ? 1 : 0) + (isOutput ? 1 : 0);
    bytes = bytes + productOf(context, elements,
                              times * elementBytesOf(operand.get().getType()));
    accesses = accesses + (isOutput ? points * times : iterations * times);
    loadsOfStep += isRead && !isOutput;
  }
  // The body itself may load, such as a row of a table. Windows overlap: the
  // buffer that they read is moved once.
  llvm::SmallPtrSet<Value, 2> windowed;
  op.getBlock()->walk([&](Operation *nested) {
    if (!isa<MemoryEffectOpInterface>(nested) || isMemoryEffectFree(nested) ||
        nested->getNumResults() != 1)
      return;
    int64_t times = timesOf(nested, *op.getBlock());
    accesses = accesses + iterations * times;
    loadsOfStep += times;
    auto load = dyn_cast<memref::LoadOp>(nested);
    if (!load || !op->hasAttr(kWindowAttrName)) {
      bytes =
          bytes + iterations * elementBytesOf(nested->getResult(0).getType());
      return;
    }
    if (!windowed.insert(load.getMemRef()).second)
      return;
    SmallVector<AffineExpr> elements;
    for (unsigned dim = 0; dim < load.getMemRefType().getRank(); ++dim)
      elements.push_back(dimOf(load.getMemRef(), dim));
    bytes = bytes +
            productOf(context, elements, elementBytesOf(load.getMemRefType()));
  });
  AffineExpr operations = iterations * flopsOf(*op.getBlock());
  return makeWork(context, numSizes,
                  {operations, bytes, accesses, steps * loadsOfStep})
      .getDictionary(context);
}

DictionaryAttr ftuner::siteOf(Operation *op) {
  Builder b(op->getContext());
  std::string position = sourcePosition(op->getLoc(), /*hasFolder=*/false);
  NamedAttrList fields;
  fields.set("kind", b.getStringAttr(wordFor(kindOf(op))));
  fields.set("operator", b.getStringAttr(operatorNameOf(op)));
  fields.set("location", b.getStringAttr(position));
  if (auto copied = op->getAttrOfType<StringAttr>(kCopyAttrName))
    fields.set("copied", copied);
  return fields.getDictionary(op->getContext());
}

/// Returns the operations of all computations of an operator, at each of their
/// points.
static AffineExpr flopsOfNest(ukernel::OperatorOpInterface op,
                              ArrayRef<AffineExpr> extents) {
  MLIRContext *context = op.getContext();
  AffineExpr result = getAffineConstantExpr(0, context);
  for (const Computation &computation : toUnrangedWorkload(op).computations) {
    auto axisExtents = llvm::map_to_vector(
        computation.axes.list(), [&](unsigned axis) { return extents[axis]; });
    result = result +
             productOf(context, axisExtents,
                       static_cast<int64_t>(flopsOf(computation.operations)));
  }
  return result;
}

AffineExpr ftuner::flopsOf(ukernel::OperatorOpInterface operation,
                           ArrayRef<AffineExpr> extents) {
  auto op = dyn_cast<ukernel::ReductionOpInterface>(operation.getOperation());
  if (!op)
    return flopsOfNest(operation, extents);
  MLIRContext *context = op.getContext();
  AffineExpr result =
      productOf(context, extents, flopsOf(op.getCombiner().front()));
  if (!op.hasEpilogue())
    return result;
  SmallVector<AffineExpr> space;
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (!op.isReduceAxis(axis))
      space.push_back(extent);
  return result + productOf(context, space, flopsOf(op.getEpilogue().front()));
}

/// The extents of axes, and behind them of the loops of fused ones: known ones
/// as they are; of the others of an axis the first has all that is left, since
/// the work is told by axes alone.
static SmallVector<AffineExpr> extentsOfDims(ukernel::OperatorOpInterface op,
                                             ArrayRef<AffineExpr> extents) {
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> result(extents);
  SmallVector<int64_t> known = ukernel::staticSizesOfDims(op);
  SmallVector<ukernel::FusedLoop> loops = op.getFusedLoops();
  for (auto [number, loop] : llvm::enumerate(loops)) {
    int64_t extent = known[extents.size() + number], ofKnown = 1;
    bool isFirst = true;
    for (auto [other, otherLoop] : llvm::enumerate(loops)) {
      if (otherLoop.axis != loop.axis)
        continue;
      int64_t size = known[extents.size() + other];
      if (ShapedType::isStatic(size))
        ofKnown *= size;
      else
        isFirst &= other >= number;
    }
    if (ShapedType::isStatic(extent))
      result.push_back(getAffineConstantExpr(extent, context));
    else if (isFirst)
      result.push_back(
          extents[loop.axis].floorDiv(std::max<int64_t>(ofKnown, 1)));
    else
      result.push_back(getAffineConstantExpr(1, context));
  }
  return result;
}

DictionaryAttr ftuner::workOf(ukernel::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  ukernel::OperatorOpInterface op;
  kernel.walk([&](ukernel::OperatorOpInterface inner) { op = inner; });
  SmallVector<AffineExpr> extents;
  SmallVector<int64_t, 4> known = op.getStaticExtents();
  for (auto [axis, extent] : llvm::enumerate(known))
    extents.push_back(ShapedType::isDynamic(extent)
                          ? getAffineSymbolExpr(axis, context)
                          : getAffineConstantExpr(extent, context));
  AffineExpr operations = flopsOf(op, extents);
  AffineExpr zero = getAffineConstantExpr(0, context), bytes = zero;
  SmallVector<AffineExpr> reached = extentsOfDims(op, extents);
  // Points of several dynamic loops count as those of the first of them. So the
  // elements of their windows are those by which windows advance.
  unsigned numAxes = extents.size();
  SmallVector<ukernel::FusedLoop> loops = op.getFusedLoops();
  auto elementsAlong = [&](AffineExpr position) {
    SmallVector<AffineExpr> ofPoints = reached;
    SmallVector<AffineExpr> first(reached.size(), zero);
    bool isOfPoints = false;
    for (unsigned dim = 0; dim < reached.size(); ++dim) {
      bool isFixed =
          dim >= numAxes && ShapedType::isStatic(loops[dim - numAxes].extent);
      if (isFixed)
        ofPoints[dim] = zero;
      else
        isOfPoints |= position.isFunctionOfDim(dim);
    }
    if (!isa<ukernel::PointwiseOp>(*op) || !isOfPoints)
      return ukernel::reachOf(position, reached);
    return position.replaceDims(ofPoints) - position.replaceDims(first);
  };
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!isa<MemRefType>(type))
      continue;
    auto sizes = llvm::map_to_vector(
        op.getMatchingIndexingMap(&operand).getResults(), elementsAlong);
    bytes = bytes + productOf(context, sizes, elementBytesOf(type));
  }
  NamedAttrList fields = makeWork(context, extents.size(),
                                  {operations, bytes, zero, zero}, extents);
  Builder b(context);
  SmallVector<Attribute> names;
  for (unsigned axis : llvm::seq(op.getNumAxes()))
    names.push_back(b.getStringAttr(axisNameOf(op, axis)));
  fields.set("axes", b.getArrayAttr(names));
  return fields.getDictionary(context);
}

DictionaryAttr ftuner::dropFixedSizes(DictionaryAttr work,
                                      ArrayRef<bool> isPassed) {
  MLIRContext *context = work.getContext();
  SmallVector<AffineExpr> symbols;
  unsigned next = 0;
  for (bool passed : isPassed)
    symbols.push_back(passed ? getAffineSymbolExpr(next++, context)
                             : getAffineConstantExpr(0, context));
  NamedAttrList fields(work);
  for (StringRef key : {"amounts", "extents"})
    if (auto map = work.getAs<AffineMapAttr>(key))
      fields.set(key, AffineMapAttr::get(map.getValue().replaceDimsAndSymbols(
                          {}, symbols, 0, next)));
  return fields.getDictionary(context);
}
