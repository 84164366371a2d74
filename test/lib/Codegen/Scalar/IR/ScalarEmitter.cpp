//===- ScalarEmitter.cpp - One element for each thread --------------------===//
#include "../ScalarSchedule.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Schedule/Grid.h"
#include "TestOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <cstddef>

using namespace mlir;
using namespace ftuner;

namespace {

class ScalarEmitter {
public:
  ScalarEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile)
      : b(b), tile(tile), op(cast<ukernel::ReductionOpInterface>(*tile.op)),
        grid(gridOf(tile.family)), workload(*tile.described),
        maps(tile.family.path().tensorMaps(workload, tile.family, tile.part)),
        position(op.getNumAxes()) {}
  void emit();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// An operand's element at the thread's position, or the scalar that it is.
  Value load(unsigned number);
  /// The same through a tensor map: zero beyond its sizes.
  Value load(const TensorMap &map, const TensorMapOperand &operand);
  /// A number of 64 bits in the emulator's encoding of a map, of type index.
  Value field(Value map, size_t offset);
  SmallVector<Value> indicesOf(unsigned number) {
    return test::indicesAt(b, op, number, position);
  }
  /// The operands of a role, loaded.
  SmallVector<Value> loadAll(OperandRole role);
  /// The accumulator after the loops over the reduce axes from `axis` on.
  Value reduce(unsigned axis, Value accumulator);
  void emitElement();

  ImplicitLocOpBuilder &b;
  const TileEmission &tile;
  ukernel::ReductionOpInterface op;
  Grid grid;
  const Workload &workload;
  SmallVector<TensorMap> maps;
  /// By axis; null for batch axes, and for reduce axes outside of their loops.
  SmallVector<Value> position;
};

Value ScalarEmitter::load(unsigned number) {
  Value operand = tile.operands[number];
  if (!isa<MemRefType>(operand.getType()))
    return operand;
  for (auto [map, mapped] : llvm::zip_equal(maps, tile.tensorMaps))
    if (map.operand == number)
      return load(map, mapped);
  return memref::LoadOp::create(b, operand, indicesOf(number));
}

Value ScalarEmitter::field(Value map, size_t offset) {
  Value address =
      LLVM::GEPOp::create(b, map.getType(), b.getI8Type(), map,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  Value number = LLVM::LoadOp::create(b, b.getI64Type(), address);
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

Value ScalarEmitter::load(const TensorMap &map,
                          const TensorMapOperand &operand) {
  using Encoded = emulator::EmulatedTensorMap;
  Type type = getElementTypeOrSelf(tile.operands[map.operand].getType());
  Value address = field(operand.map, offsetof(Encoded, address)), inside;
  for (auto [i, dim] : llvm::enumerate(map.dims)) {
    unsigned axis = *workload.operands[map.operand].position(dim).asAxis();
    Value coordinate = operand.origin[i];
    if (position[axis])
      coordinate = arith::AddIOp::create(b, coordinate, position[axis]);
    Value size = field(operand.map, offsetof(Encoded, sizes) + 8 * i);
    Value isBelow =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, coordinate, size);
    inside = inside ? arith::AndIOp::create(b, inside, isBelow) : isBelow;
    Value stride =
        i == 0 ? constant(type.getIntOrFloatBitWidth() / 8)
               : field(operand.map, offsetof(Encoded, strides) + 8 * (i - 1));
    address = arith::AddIOp::create(
        b, address, arith::MulIOp::create(b, coordinate, stride));
  }
  auto ifOp = scf::IfOp::create(b, type, inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), address);
  Value pointer = LLVM::IntToPtrOp::create(b, operand.map.getType(), number);
  scf::YieldOp::create(b, LLVM::LoadOp::create(b, type, pointer).getResult());
  b.setInsertionPointToStart(ifOp.elseBlock());
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  scf::YieldOp::create(b, zero);
  return ifOp.getResult(0);
}

SmallVector<Value> ScalarEmitter::loadAll(OperandRole role) {
  SmallVector<Value> values;
  for (unsigned number = 0; number < tile.operands.size(); ++number)
    if (op.getOperandRole(number) == role)
      values.push_back(load(number));
  return values;
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
    return test::inlineRegion(b, op.getCombiner(), arguments).front();
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
    result = test::inlineRegion(b, op.getEpilogue(), arguments).front();
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

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    if (!isa<ukernel::ReductionOpInterface>(*tile.op))
      return tile.op->emitOpError("expected a reduction with a combiner");
    ScalarEmitter(builder, tile).emit();
    return success();
  }

private:
  const CodegenModel &facts;
};

} // namespace

namespace ftuner {
struct ScalarAttr {
  static constexpr llvm::StringLiteral name = "ukernel.scalar";
  static const CodegenModel &model() { return scalarModel(); }
};
struct ExactAttr {
  static constexpr llvm::StringLiteral name = "ukernel.exact";
  static const CodegenModel &model() { return exactModel(); }
};
struct MappedAttr {
  static constexpr llvm::StringLiteral name = "ukernel.mapped";
  static const CodegenModel &model() { return mappedModel(); }
};

/// Programs with the path have the operators that it computes, too.
void scalarRegister(DialectRegistry &registry) {
  registerSchedule<ScalarAttr>(registry);
  test::registerTestDialect(registry);
}

void exactRegister(DialectRegistry &registry) {
  registerSchedule<ExactAttr>(registry);
}

void mappedRegister(DialectRegistry &registry) {
  registerSchedule<MappedAttr>(registry);
}

const CodegenPath &scalarPath() {
  static const ScalarPath path(scalarModel());
  return path;
}

const CodegenPath &exactPath() {
  static const ScalarPath path(exactModel());
  return path;
}

const CodegenPath &mappedPath() {
  static const ScalarPath path(mappedModel());
  return path;
}
} // namespace ftuner
