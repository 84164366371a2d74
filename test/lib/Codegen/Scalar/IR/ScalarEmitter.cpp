//===- ScalarEmitter.cpp - One element for each thread --------------------===//
#include "../ScalarSchedule.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Schedule/Grid.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ftuner;

namespace {

class ScalarEmitter {
public:
  ScalarEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile)
      : b(b), tile(tile), op(tile.op), grid(gridOf(tile.family)),
        position(op.getNumAxes()) {}
  void emit();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// An operand's element at the thread's position, or the scalar that it is.
  Value load(unsigned number);
  SmallVector<Value> indicesOf(unsigned number);
  /// The operands of a role, loaded.
  SmallVector<Value> loadAll(OperandRole role);
  Value inlineRegion(Block &body, ValueRange arguments);
  /// The accumulator after the loops over the reduce axes from `axis` on.
  Value reduce(unsigned axis, Value accumulator);
  void emitElement();

  ImplicitLocOpBuilder &b;
  const TileEmission &tile;
  ukernel::OperatorOpInterface op;
  Grid grid;
  /// By axis; null for batch axes, and for reduce axes outside of their loops.
  SmallVector<Value> position;
};

SmallVector<Value> ScalarEmitter::indicesOf(unsigned number) {
  SmallVector<Value> indices, axes = position;
  // The operand begins at the positions on batch axes.
  for (Value &index : axes)
    if (!index)
      index = constant(0);
  for (AffineExpr expr : op.getMapOfOperand(number).getResults()) {
    auto axis = dyn_cast<AffineDimExpr>(expr);
    if (!axis || position[axis.getPosition()])
      indices.push_back(
          affine::expandAffineExpr(b, b.getLoc(), expr, axes, ValueRange()));
  }
  return indices;
}

Value ScalarEmitter::load(unsigned number) {
  Value operand = tile.operands[number];
  if (!isa<MemRefType>(operand.getType()))
    return operand;
  return memref::LoadOp::create(b, operand, indicesOf(number));
}

SmallVector<Value> ScalarEmitter::loadAll(OperandRole role) {
  SmallVector<Value> values;
  for (unsigned number = 0; number < tile.operands.size(); ++number)
    if (op.getOperandRole(number) == role)
      values.push_back(load(number));
  return values;
}

Value ScalarEmitter::inlineRegion(Block &body, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &operation : body.without_terminator())
    b.clone(operation, mapping);
  return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
}

Value ScalarEmitter::reduce(unsigned axis, Value accumulator) {
  while (axis < position.size() && !op.isReduceAxis(axis))
    ++axis;
  if (axis == position.size()) {
    SmallVector<Value> arguments;
    for (unsigned number = 0; number < tile.operands.size(); ++number)
      if (op.isInput(number))
        arguments.push_back(load(number));
    arguments.push_back(accumulator);
    return inlineRegion(op.getCombiner().front(), arguments);
  }
  auto loop = scf::ForOp::create(b, constant(0), tile.extents[axis],
                                 constant(1), accumulator);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  position[axis] = loop.getInductionVar();
  scf::YieldOp::create(b, reduce(axis + 1, loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

void ScalarEmitter::emitElement() {
  SmallVector<Value> start =
      loadAll(op.readsOutput() ? OperandRole::Output : OperandRole::Init);
  Value accumulator = start.front();
  if (Type type = op.getAccumulatorType(); accumulator.getType() != type)
    accumulator = arith::ExtFOp::create(b, type, accumulator);
  Value result = reduce(0, accumulator);
  if (op.hasEpilogue()) {
    SmallVector<Value> arguments = {result};
    llvm::append_range(arguments, loadAll(OperandRole::Extra));
    result = inlineRegion(op.getEpilogue().front(), arguments);
  }
  unsigned output = op.getOutputOperand().getOperandNumber();
  memref::StoreOp::create(b, result, tile.operands[output], indicesOf(output));
}

void ScalarEmitter::emit() {
  ScalarSchedule schedule = ScalarSchedule::of(tile.family.schedule);
  Value width = constant(schedule.threadsN);
  unsigned rows = grid.rowAxis();
  position[rows] = arith::AddIOp::create(
      b, tile.rowOffset, arith::DivUIOp::create(b, tile.threadId, width));
  auto isInside = [&](unsigned axis) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position[axis],
                                 tile.extents[axis]);
  };
  Value inside = isInside(rows);
  if (std::optional<unsigned> columns = grid.columnAxis()) {
    position[*columns] = arith::AddIOp::create(
        b, tile.columnOffset, arith::RemUIOp::create(b, tile.threadId, width));
    inside = arith::AndIOp::create(b, inside, isInside(*columns));
  }
  auto ifOp = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitElement();
}

class ScalarPath final : public CodegenPath {
public:
  explicit ScalarPath(const CodegenModel &facts) : facts(facts) {}
  const CodegenModel &model() const override { return facts; }
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    ScalarEmitter(builder, tile).emit();
    return success();
  }

private:
  const CodegenModel &facts;
};

} // namespace

namespace ftuner {
const CodegenPath &scalarPath() {
  static const ScalarPath path(scalarModel());
  return path;
}

const CodegenPath &exactPath() {
  static const ScalarPath path(exactModel());
  return path;
}
} // namespace ftuner
