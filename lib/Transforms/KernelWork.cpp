//===- KernelWork.cpp - What a kernel computes and moves ------------------===//
#include "KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace ftuner;

/// Arithmetic on elements: indices are none.
static int64_t operationsOf(Operation &op) {
  if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
          op.getDialect()) ||
      op.hasTrait<OpTrait::ConstantLike>() || op.getNumResults() != 1 ||
      op.getResult(0).getType().isIndex() ||
      isa<CastOpInterface, arith::CmpFOp, arith::CmpIOp, arith::SelectOp>(op))
    return 0;
  return isa<math::FmaOp>(op) ? 2 : 1;
}

static int64_t operationsOf(Block &body) {
  int64_t count = 0;
  body.walk([&](Operation *op) { count += operationsOf(*op); });
  return count;
}

static int64_t bytesOf(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
                             : 8;
}

/// "linalg.generic (math.exp, arith.subf)": a generic's name alone says little.
static std::string nameOf(linalg::LinalgOp op) {
  std::string name = op->getName().getStringRef().str();
  if (!isa<linalg::GenericOp, linalg::MapOp, linalg::ReduceOp>(op))
    return name;
  llvm::SetVector<StringRef> inner;
  op.getBlock()->walk([&](Operation *nested) {
    if (operationsOf(*nested) > 0)
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
  for (unsigned loop : split.sequential)
    steps = steps * extents[loop];

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
                              times * bytesOf(operand.get().getType()));
    accesses = accesses + (isOutput ? points * times : iterations * times);
    loadsOfStep += isRead && !isOutput;
  }
  // What the body itself loads, such as a row of a table.
  op.getBlock()->walk([&](Operation *nested) {
    if (!isa<MemoryEffectOpInterface>(nested) || isMemoryEffectFree(nested) ||
        nested->getNumResults() != 1)
      return;
    bytes = bytes + iterations * bytesOf(nested->getResult(0).getType());
    accesses = accesses + iterations;
    ++loadsOfStep;
  });
  AffineExpr operations = iterations * operationsOf(*op.getBlock());
  NamedAttrList fields = makeWork(
      context, numSizes, {operations, bytes, accesses, steps * loadsOfStep});
  Builder b(context);
  // Folders would make the same source another one elsewhere.
  std::string position = positionOf(op.getLoc());
  fields.set("operator", b.getStringAttr(nameOf(op)));
  fields.set("location", b.getStringAttr(llvm::sys::path::filename(position)));
  return fields.getDictionary(context);
}

DictionaryAttr ftuner::workOf(ukernel::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  ukernel::WorkloadOp op;
  kernel.walk([&](ukernel::WorkloadOp inner) { op = inner; });
  SmallVector<AffineExpr> extents;
  SmallVector<int64_t, 4> known = op.getStaticExtents();
  for (auto [axis, extent] : llvm::enumerate(known))
    extents.push_back(ShapedType::isDynamic(extent)
                          ? getAffineSymbolExpr(axis, context)
                          : getAffineConstantExpr(extent, context));
  AffineExpr iterations = productOf(context, extents);
  AffineExpr operations = iterations * operationsOf(op.getContract().front());
  if (op.hasEpilogue()) {
    SmallVector<AffineExpr> space = extents;
    space.erase(space.begin() + ukernel::WorkloadOp::kK);
    operations = operations + productOf(context, space,
                                        operationsOf(op.getEpilogue().front()));
  }
  AffineExpr zero = getAffineConstantExpr(0, context), bytes = zero;
  for (unsigned number = 0; number < op->getNumOperands(); ++number) {
    AffineMap map = op.getMapOf(number);
    Value operand = op->getOperand(number);
    if (!map || !isa<MemRefType>(operand.getType()))
      continue;
    bytes = bytes + productOf(context,
                              llvm::to_vector(llvm::map_range(
                                  map.getResults(),
                                  [&](AffineExpr result) {
                                    return result.replaceDims(extents);
                                  })),
                              bytesOf(operand.getType()));
  }
  return makeWork(context, extents.size(), {operations, bytes, zero, zero},
                  extents)
      .getDictionary(context);
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
