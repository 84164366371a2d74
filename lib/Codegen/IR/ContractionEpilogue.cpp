//===- ContractionEpilogue.cpp - From accumulators to the output ----------===//
#include "FTuner/Codegen/IR/ContractionEpilogue.h"

#include "FTuner/Codegen/IR/MainLoop.h"
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

Value ContractionEpilogue::areInside(Value first, Value last, unsigned axis) {
  Value inside = math.less(last, tile.extents[axis]);
  if (Value least = tile.firstStored[axis])
    inside = arith::AndIOp::create(
        b, inside,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, first, least));
  return inside;
}

void ContractionEpilogue::ifInside(Value index, unsigned axis, bool exact,
                                   llvm::function_ref<void()> body) {
  if (exact)
    return body();
  emitIf(b, areInside(index, index, axis), body);
}

Value ContractionEpilogue::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

llvm::MaybeAlign ContractionEpilogue::alignmentOf(VectorType type) const {
  int64_t bytes = type.getNumElements() * elementBytesOf(type);
  return llvm::MaybeAlign(std::min(bytes, tile.family.alignment()));
}

bool ContractionEpilogue::dependsOnRow(AffineMap map) const {
  return map.isFunctionOfDim(tile.axes.m);
}

void ContractionEpilogue::emitRun(Value column, int64_t width, int64_t numRows,
                                  llvm::function_ref<Row(int64_t)> row) {
  unsigned m = tile.axes.m, n = tile.axes.n;
  // A run that is not whole has at least its first element inside.
  ifInside(column, n, tile.exact[n], [&] {
    Values rowInvariant = loadRowInvariant(column, width);
    for (int64_t number = 0; number < numRows; ++number) {
      Row next = row(number);
      ifInside(next.index, m, tile.exact[m], [&] {
        Inputs inputs = loadInputs(next.index, column, width, rowInvariant);
        storeRun(tile.output, {next.index, column}, column,
                 compute(next.accumulator, inputs));
      });
    }
  });
}

Value ContractionEpilogue::startOfSum() const {
  // Without an init operand the sum continues the output's own value.
  Value start = tile.init ? tile.init : tile.output;
  return isa<MemRefType>(start.getType()) ? start : Value();
}

bool ContractionEpilogue::readsRows() const {
  return startOfSum() ||
         llvm::any_of(llvm::seq(tile.extras.size()), [&](size_t index) {
           return isa<MemRefType>(tile.extras[index].getType()) &&
                  dependsOnRow(tile.extraMaps[index]);
         });
}

Values ContractionEpilogue::loadRowInvariant(Value column, int64_t width) {
  Values loaded(tile.extras.size());
  for (auto [index, extra] : llvm::enumerate(tile.extras))
    if (AffineMap map = tile.extraMaps[index]; !dependsOnRow(map))
      loaded[index] =
          loadElementwise(extra, map, /*row=*/Value(), column, width);
  return loaded;
}

ContractionEpilogue::Inputs
ContractionEpilogue::loadInputs(Value row, Value column, int64_t width,
                                ValueRange rowInvariant) {
  Inputs inputs;
  if (Value start = startOfSum()) {
    AffineMap map = tile.init ? tile.initMap : tile.outputMap;
    inputs.start = loadElementwise(start, map, row, column, width);
  }
  for (auto [index, extra] : llvm::enumerate(tile.extras))
    inputs.extras.push_back(rowInvariant[index]
                                ? rowInvariant[index]
                                : loadElementwise(extra, tile.extraMaps[index],
                                                  row, column, width));
  return inputs;
}

Value ContractionEpilogue::compute(Value accumulator, const Inputs &inputs) {
  if (Value start = inputs.start) {
    Type type = accumulator.getType();
    if (isa<FloatType>(getElementTypeOrSelf(type))) {
      if (start.getType() != type)
        start = arith::ExtFOp::create(b, type, start);
      accumulator = arith::AddFOp::create(b, accumulator, start);
    } else {
      if (start.getType() != type)
        start = arith::ExtSIOp::create(b, type, start);
      accumulator = arith::AddIOp::create(b, accumulator, start);
    }
  }
  ukernel::ReductionOpInterface reduction = tile.reduction;
  if (reduction.hasEpilogue())
    accumulator = applyRegion(accumulator, inputs.extras);
  return accumulator;
}

//===----------------------------------------------------------------------===//
// Runs that may lie outside
//===----------------------------------------------------------------------===//

bool ContractionEpilogue::isSpeculatable() const {
  ukernel::ReductionOpInterface reduction = tile.reduction;
  return !reduction.hasEpilogue() ||
         llvm::all_of(reduction.getEpilogue().front().without_terminator(),
                      [](Operation &op) { return mlir::isSpeculatable(&op); });
}

Value ContractionEpilogue::areInside(Place first, Place last) {
  Value inside;
  for (auto [least, most, axis] : {std::tuple(first.row, last.row, tile.axes.m),
                                   {first.column, last.column, tile.axes.n}}) {
    if (tile.exact[axis])
      continue;
    Value along = areInside(least, most, axis);
    inside =
        inside ? arith::AndIOp::create(b, inside, along).getResult() : along;
  }
  return inside;
}

ContractionEpilogue::Inputs ContractionEpilogue::loadInputsIf(Value inside,
                                                              const Run &run) {
  auto width = cast<VectorType>(run.accumulator.getType()).getDimSize(0);
  auto load = [&] {
    return loadInputs(run.index, run.column, width, run.rowInvariant);
  };
  // What is read for the row.
  SmallVector<Type> types;
  auto addType = [&](Value operand) {
    types.push_back(VectorType::get(
        {width}, cast<MemRefType>(operand.getType()).getElementType()));
  };
  if (Value start = startOfSum())
    addType(start);
  for (auto [invariant, extra] : llvm::zip_equal(run.rowInvariant, tile.extras))
    if (!invariant)
      addType(extra);
  if (!inside || types.empty())
    return load();

  auto ifOp = scf::IfOp::create(b, types, inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.elseBlock());
  Values zeros;
  for (Type type : types)
    zeros.push_back(arith::ConstantOp::create(b, type, b.getZeroAttr(type)));
  scf::YieldOp::create(b, zeros);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Inputs inputs = load();
  SmallVector<Value *> read;
  if (inputs.start)
    read.push_back(&inputs.start);
  for (auto [extra, invariant] :
       llvm::zip_equal(inputs.extras, run.rowInvariant))
    if (!invariant)
      read.push_back(&extra);
  scf::YieldOp::create(
      b, llvm::map_to_vector(read, [](Value *value) { return *value; }));
  for (auto [value, result] : llvm::zip_equal(read, ifOp.getResults()))
    *value = result;
  return inputs;
}

Value ContractionEpilogue::isInside(const Run &run, bool areInside) {
  Place place{run.index, run.column};
  return areInside ? Value() : this->areInside(place, place);
}

ContractionEpilogue::Inputs ContractionEpilogue::loadRun(const Run &run,
                                                         bool areInside) {
  return loadInputsIf(isInside(run, areInside), run);
}

/// Computes without a branch what it may compute of any numbers.
void ContractionEpilogue::storeRun(const Run &run, const Inputs &inputs,
                                   bool areInside) {
  Value inside = isInside(run, areInside), result;
  if (isSpeculatable())
    result = compute(run.accumulator, inputs);
  auto store = [&] {
    Value stored = result ? result : compute(run.accumulator, inputs);
    if (run.results)
      storeRun(run.results, run.inResults, run.column, stored);
    else
      storeRun(tile.output, {run.index, run.column}, run.column, stored);
  };
  if (inside)
    emitIf(b, inside, store);
  else
    store();
}

ContractionEpilogue::Inputs ContractionEpilogue::select(ArrayRef<Inputs> inputs,
                                                        Value number) {
  Inputs chosen = inputs.front();
  for (auto [index, other] : llvm::enumerate(inputs.drop_front())) {
    Value isOther = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number,
                                          math.constant(int64_t(index) + 1));
    auto take = [&](Value &value, Value others) {
      if (value != others)
        value = arith::SelectOp::create(b, isOther, others, value);
    };
    take(chosen.start, other.start);
    for (auto [value, others] : llvm::zip_equal(chosen.extras, other.extras))
      take(value, others);
  }
  return chosen;
}

FloatType ContractionEpilogue::roundedSum() const {
  ukernel::ReductionOpInterface reduction = tile.reduction;
  if (!reduction.hasEpilogue() || startOfSum())
    return {};
  Value sum = reduction.getEpilogue().front().getArgument(0);
  FloatType rounded;
  for (Operation *user : sum.getUsers()) {
    auto cast = dyn_cast<arith::TruncFOp>(user);
    if (!cast || (rounded && rounded != cast.getType()))
      return {};
    rounded = mlir::cast<FloatType>(cast.getType());
  }
  return rounded;
}

Value ContractionEpilogue::loadElementwise(Value operand, AffineMap map,
                                           Value row, Value column,
                                           int64_t width) {
  auto memrefType = dyn_cast<MemRefType>(operand.getType());
  if (!memrefType)
    return broadcast(operand, width);
  unsigned n = tile.axes.n;
  auto indices = [&](Value columnIndex) {
    Values result;
    for (AffineExpr expr : map.getResults()) {
      unsigned axis = cast<AffineDimExpr>(expr).getPosition();
      if (!tile.axes.isBatch(axis))
        result.push_back(axis == tile.axes.m ? row : columnIndex);
    }
    return result;
  };
  if (!map.isFunctionOfDim(n))
    return broadcast(memref::LoadOp::create(b, operand, indices(column)),
                     width);
  auto innermost = cast<AffineDimExpr>(map.getResults().back());
  auto type = VectorType::get({width}, memrefType.getElementType());
  if (isWhole(width) && innermost.getPosition() == n && fillsBytes(type))
    return vector::LoadOp::create(b, type, operand, indices(column),
                                  /*nontemporal=*/false, alignmentOf(type));

  // Elements beyond the last column are never stored: read the thread's own
  // first element instead. The operand may share the output's buffer, so that
  // elements of other threads must not be read.
  Values scalars;
  for (int64_t element = 0; element < width; ++element) {
    Value index = math.add(column, element);
    if (!tile.exact[n] && element > 0)
      index = arith::SelectOp::create(b, math.less(index, tile.extents[n]),
                                      index, column);
    scalars.push_back(memref::LoadOp::create(b, operand, indices(index)));
  }
  return vector::FromElementsOp::create(b, type, scalars);
}

Value ContractionEpilogue::applyRegion(Value accumulator, ValueRange extras) {
  ukernel::ReductionOpInterface reduction = tile.reduction;
  Block &body = reduction.getEpilogue().front();
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

void ContractionEpilogue::storeRun(Value target, Place place, Value column,
                                   Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t width = type.getDimSize(0);
  unsigned n = tile.axes.n;
  // Tells the parts of a family apart. Else upstream's patterns merge equal
  // blocks of both, and the arguments of merged ones may double each time.
  Attribute height = b.getI64IntegerAttr(tile.family.height(tile.part));
  if (isWhole(width) && fillsBytes(type)) {
    auto store = vector::StoreOp::create(
        b, vector, target, ValueRange{place.row, place.column},
        /*nontemporal=*/false, alignmentOf(type));
    store->setDiscardableAttr("tile_height", height);
    return;
  }
  for (int64_t element = 0; element < width; ++element) {
    Value index = math.add(column, element);
    Value scalar = vector::ExtractOp::create(b, vector, element);
    bool inside = tile.exact[n] || element == 0;
    ifInside(index, n, inside, [&] {
      auto store = memref::StoreOp::create(
          b, scalar, target,
          ValueRange{place.row, math.add(place.column, element)});
      store->setDiscardableAttr("tile_height", height);
    });
  }
}
