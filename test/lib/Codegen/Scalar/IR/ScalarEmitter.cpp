//===- ScalarEmitter.cpp - One element for each thread --------------------===//
#include "../ScalarSchedule.h"
#include "FTuner/Codegen/IR/CodegenPath.h"

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
      : b(b), tile(tile), workload(tile.workload) {}
  void emit();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// An operand's element at the thread's position, or the scalar that it is.
  Value load(Value operand, AffineMap map);
  SmallVector<Value> indicesOf(AffineMap map);
  Value inlineRegion(Block &body, ValueRange arguments);
  void emitElement();

  ImplicitLocOpBuilder &b;
  const TileEmission &tile;
  ukernel::WorkloadOp workload;
  /// Row, column and reduce element.
  Value position[3];
};

SmallVector<Value> ScalarEmitter::indicesOf(AffineMap map) {
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    unsigned axis = cast<AffineDimExpr>(expr).getPosition();
    if (!ukernel::WorkloadOp::isBatchAxis(axis))
      indices.push_back(position[axis]);
  }
  return indices;
}

Value ScalarEmitter::load(Value operand, AffineMap map) {
  if (!isa<MemRefType>(operand.getType()))
    return operand;
  return memref::LoadOp::create(b, operand, indicesOf(map));
}

Value ScalarEmitter::inlineRegion(Block &body, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
}

void ScalarEmitter::emitElement() {
  Value start = tile.init ? load(tile.init, workload.getInitMap())
                          : load(tile.output, workload.getOutputMap());
  auto loop = scf::ForOp::create(b, constant(0), tile.extents[Workload::kK],
                                 constant(1), start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    position[Workload::kK] = loop.getInductionVar();
    Value sum = inlineRegion(workload.getContract().front(),
                             {load(tile.lhs, workload.getLhsMap()),
                              load(tile.rhs, workload.getRhsMap()),
                              loop.getRegionIterArg(0)});
    scf::YieldOp::create(b, sum);
  }
  Value result = loop.getResult(0);
  if (workload.hasEpilogue()) {
    SmallVector<Value> arguments = {result};
    for (auto [index, extra] : llvm::enumerate(tile.extras))
      arguments.push_back(load(extra, workload.getExtraMap(index)));
    result = inlineRegion(workload.getEpilogue().front(), arguments);
  }
  memref::StoreOp::create(b, result, tile.output,
                          indicesOf(workload.getOutputMap()));
}

void ScalarEmitter::emit() {
  ScalarSchedule schedule = ScalarSchedule::of(tile.family.schedule);
  Value width = constant(schedule.threadsN);
  position[Workload::kM] = arith::AddIOp::create(
      b, tile.rowOffset, arith::DivUIOp::create(b, tile.threadId, width));
  position[Workload::kN] = arith::AddIOp::create(
      b, tile.columnOffset, arith::RemUIOp::create(b, tile.threadId, width));
  auto isInside = [&](unsigned axis) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, position[axis],
                                 tile.extents[axis]);
  };
  Value inside = arith::AndIOp::create(b, isInside(Workload::kM),
                                       isInside(Workload::kN));
  auto ifOp = scf::IfOp::create(b, inside, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  emitElement();
}

class ScalarPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return scalarModel(); }
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    ScalarEmitter(builder, tile).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
const CodegenPath &scalarPath() {
  static const ScalarPath path;
  return path;
}
} // namespace ftuner
