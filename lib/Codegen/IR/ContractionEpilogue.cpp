//===- ContractionEpilogue.cpp - From accumulators to the output ----------===//
#include "FTuner/Codegen/IR/ContractionEpilogue.h"

#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

void ContractionEpilogue::ifInside(Value index, unsigned axis, bool exact,
                                   llvm::function_ref<void()> body) {
  if (exact)
    return body();
  auto ifOp = scf::IfOp::create(b, math.less(index, tile.extents[axis]),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

Value ContractionEpilogue::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

llvm::MaybeAlign ContractionEpilogue::alignmentOf(VectorType type) const {
  int64_t bytes = type.getNumElements() * elementBytesOf(type);
  return llvm::MaybeAlign(std::min(bytes, tile.family.alignment()));
}

/// Whether an operand of the epilogue differs from row to row.
static bool dependsOnRow(AffineMap map) {
  return map.isFunctionOfDim(Workload::kM);
}

void ContractionEpilogue::emitRun(Value column, int64_t width, int64_t numRows,
                                  llvm::function_ref<Row(int64_t)> row) {
  // A run that is not whole has at least its first element inside.
  ifInside(column, Workload::kN, tile.exact[Workload::kN], [&] {
    ukernel::WorkloadOp workload = tile.workload;
    // Operands that are the same for all rows are loaded once.
    Values rowInvariant(tile.extras.size());
    for (auto [index, extra] : llvm::enumerate(tile.extras))
      if (AffineMap map = workload.getExtraMap(index); !dependsOnRow(map))
        rowInvariant[index] =
            loadElementwise(extra, map, /*row=*/Value(), column, width);
    for (int64_t number = 0; number < numRows; ++number) {
      Row next = row(number);
      ifInside(next.index, Workload::kM, tile.exact[Workload::kM], [&] {
        emitRow(next.index, column, next.accumulator, rowInvariant);
      });
    }
  });
}

void ContractionEpilogue::emitRow(Value row, Value column, Value accumulator,
                                  ArrayRef<Value> rowInvariant) {
  ukernel::WorkloadOp workload = tile.workload;
  int64_t width = cast<VectorType>(accumulator.getType()).getDimSize(0);
  // Without an init operand the sum continues the output's own value.
  Value start = tile.init ? tile.init : tile.output;
  if (isa<MemRefType>(start.getType())) {
    AffineMap map = tile.init ? workload.getInitMap() : workload.getOutputMap();
    Value value = loadElementwise(start, map, row, column, width);
    Type type = accumulator.getType();
    if (isa<FloatType>(getElementTypeOrSelf(type))) {
      if (value.getType() != type)
        value = arith::ExtFOp::create(b, type, value);
      accumulator = arith::AddFOp::create(b, accumulator, value);
    } else {
      if (value.getType() != type)
        value = arith::ExtSIOp::create(b, type, value);
      accumulator = arith::AddIOp::create(b, accumulator, value);
    }
  }
  if (workload.hasEpilogue()) {
    Values extras;
    for (auto [index, extra] : llvm::enumerate(tile.extras))
      extras.push_back(rowInvariant[index]
                           ? rowInvariant[index]
                           : loadElementwise(extra, workload.getExtraMap(index),
                                             row, column, width));
    accumulator = applyRegion(accumulator, extras);
  }
  storeOutput(row, column, accumulator);
}

Value ContractionEpilogue::loadElementwise(Value operand, AffineMap map,
                                           Value row, Value column,
                                           int64_t width) {
  auto memrefType = dyn_cast<MemRefType>(operand.getType());
  if (!memrefType)
    return broadcast(operand, width);
  auto indices = [&](Value columnIndex) {
    Values result;
    for (AffineExpr expr : map.getResults()) {
      unsigned axis = cast<AffineDimExpr>(expr).getPosition();
      if (!ukernel::WorkloadOp::isBatchAxis(axis))
        result.push_back(axis == Workload::kM ? row : columnIndex);
    }
    return result;
  };
  if (!map.isFunctionOfDim(Workload::kN))
    return broadcast(memref::LoadOp::create(b, operand, indices(column)),
                     width);
  auto innermost = cast<AffineDimExpr>(map.getResults().back());
  auto type = VectorType::get({width}, memrefType.getElementType());
  if (width == wholeWidth && innermost.getPosition() == Workload::kN &&
      fillsBytes(type))
    return vector::LoadOp::create(b, type, operand, indices(column),
                                  /*nontemporal=*/false, alignmentOf(type));

  // Elements beyond the last column are never stored: read the thread's own
  // first element instead. The operand may share the output's buffer, so that
  // elements of other threads must not be read.
  Values scalars;
  for (int64_t element = 0; element < width; ++element) {
    Value index = math.add(column, element);
    if (!tile.exact[Workload::kN] && element > 0)
      index = arith::SelectOp::create(
          b, math.less(index, tile.extents[Workload::kN]), index, column);
    scalars.push_back(memref::LoadOp::create(b, operand, indices(index)));
  }
  return vector::FromElementsOp::create(b, type, scalars);
}

Value ContractionEpilogue::applyRegion(Value accumulator, ValueRange extras) {
  ukernel::WorkloadOp workload = tile.workload;
  Block &body = workload.getEpilogue().front();
  int64_t width = cast<VectorType>(accumulator.getType()).getDimSize(0);
  IRMapping mapping;
  mapping.map(body.getArgument(0), accumulator);
  mapping.map(body.getArguments().drop_front(), extras);
  for (Operation &op : body.without_terminator()) {
    clonePromoted(b, op, mapping, width);
    for (Value result : op.getResults())
      if (op.hasTrait<OpTrait::ConstantLike>())
        mapping.map(result, broadcast(mapping.lookup(result), width));
  }
  Value result = body.getTerminator()->getOperand(0);
  return rounded(b, b.getLoc(), mapping.lookup(result), result.getType());
}

void ContractionEpilogue::storeOutput(Value row, Value column, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t width = type.getDimSize(0);
  // Tells the parts of a family apart. Else upstream's patterns merge equal
  // blocks of both, and the arguments of merged ones may double each time.
  Attribute height = b.getI64IntegerAttr(tile.family.height(tile.part));
  if (width == wholeWidth && fillsBytes(type)) {
    auto store =
        vector::StoreOp::create(b, vector, tile.output, ValueRange{row, column},
                                /*nontemporal=*/false, alignmentOf(type));
    store->setDiscardableAttr("tile_height", height);
    return;
  }
  for (int64_t element = 0; element < width; ++element) {
    Value index = math.add(column, element);
    Value scalar = vector::ExtractOp::create(b, vector, element);
    bool inside = tile.exact[Workload::kN] || element == 0;
    ifInside(index, Workload::kN, inside, [&] {
      auto store = memref::StoreOp::create(b, scalar, tile.output,
                                           ValueRange{row, index});
      store->setDiscardableAttr("tile_height", height);
    });
  }
}
