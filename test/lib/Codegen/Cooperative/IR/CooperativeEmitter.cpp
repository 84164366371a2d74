//===- CooperativeEmitter.cpp - Warps that reduce rows together -----------===//
#include "../CooperativeSchedule.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Codegen/IR/WarpShuffle.h"
#include "FTuner/Schedule/Grid.h"
#include "TestOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ftuner;

namespace {

using Values = SmallVector<Value>;

class CooperativeEmitter {
public:
  CooperativeEmitter(ImplicitLocOpBuilder &b, const TileEmission &tile,
                     test::RowsOp op)
      : b(b), tile(tile), op(op),
        schedule(CooperativeSchedule::of(tile.family.schedule)),
        grid(gridOf(tile.family)), position(op.getRowAxis() + 1) {}
  void emit();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value isLess(Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lhs, rhs);
  }
  Values indicesOf(unsigned number) {
    return test::indicesAt(b, op, number, position);
  }
  /// The inputs' elements at the position.
  Values load();
  void store(ArrayRef<unsigned> outputs, ValueRange values);
  /// Emits `body` for each of the row's elements that are the thread's.
  Values forEachElement(ValueRange first,
                        llvm::function_ref<Values(ValueRange)> body);
  /// The state of both parts, in the order of the parts.
  Values merge(ValueRange first, ValueRange second);
  Values mergeLanes(Values state);
  Values mergeWarps(Values state);

  ImplicitLocOpBuilder &b;
  const TileEmission &tile;
  test::RowsOp op;
  CooperativeSchedule schedule;
  Grid grid;
  /// By axis; null for batch axes, and for the row outside of its loops.
  Values position;
  /// Of the thread: its row in the block, and its number in the row.
  Value row, lane, isInside;
};

Values CooperativeEmitter::load() {
  Values values;
  for (unsigned number = 0; number < op.getInputs().size(); ++number) {
    Value operand = tile.operands[number];
    values.push_back(
        isa<MemRefType>(operand.getType())
            ? memref::LoadOp::create(b, operand, indicesOf(number)).getResult()
            : operand);
  }
  return values;
}

void CooperativeEmitter::store(ArrayRef<unsigned> outputs, ValueRange values) {
  for (auto [number, value] : llvm::zip(outputs, values))
    memref::StoreOp::create(b, value, tile.operands[number], indicesOf(number));
}

Values CooperativeEmitter::forEachElement(
    ValueRange first, llvm::function_ref<Values(ValueRange)> body) {
  unsigned axis = op.getRowAxis();
  // Threads of rows beyond the last stay, for the others' sake.
  Value end =
      arith::SelectOp::create(b, isInside, tile.extents[axis], constant(0));
  auto loop =
      scf::ForOp::create(b, lane, end, constant(schedule.lanes()), first);
  OpBuilder::InsertionGuard guard(b);
  if (first.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(loop.getBody());
  position[axis] = loop.getInductionVar();
  Values next = body(loop.getRegionIterArgs());
  if (!first.empty())
    scf::YieldOp::create(b, next);
  position[axis] = Value();
  return Values(loop.getResults());
}

Values CooperativeEmitter::merge(ValueRange first, ValueRange second) {
  Values both(first);
  llvm::append_range(both, second);
  return test::inlineRegion(b, op.getMerge(), both);
}

Values CooperativeEmitter::mergeLanes(Values state) {
  for (int64_t distance = CooperativeSchedule::warpSize / 2; distance > 0;
       distance /= 2) {
    // Both lanes of a pair merge in the same order, and so to the same bits.
    Value bit = arith::AndIOp::create(b, lane, constant(distance));
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, constant(0));
    Values first, second;
    for (Value own : state) {
      Value other = shuffleXor(b, own, distance);
      first.push_back(arith::SelectOp::create(b, isFirst, own, other));
      second.push_back(arith::SelectOp::create(b, isFirst, other, own));
    }
    state = merge(first, second);
  }
  return state;
}

Values CooperativeEmitter::mergeWarps(Values state) {
  if (schedule.warps == 1)
    return state;
  // An array of each accumulator, one element for each warp of each row.
  int64_t numStates = schedule.blockRows * schedule.warps, offset = 0;
  auto workgroup =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  Values arrays;
  for (Value accumulator : state) {
    auto type = MemRefType::get({numStates}, accumulator.getType(),
                                MemRefLayoutAttrInterface(), workgroup);
    arrays.push_back(memref::ViewOp::create(b, type, tile.sharedMemory,
                                            constant(offset), ValueRange()));
    offset += numStates * 4;
  }
  Value first = arith::MulIOp::create(b, row, constant(schedule.warps));
  Value warp =
      arith::DivUIOp::create(b, lane, constant(CooperativeSchedule::warpSize));
  Value number = arith::AddIOp::create(b, first, warp);
  Value isFirstLane = arith::CmpIOp::create(
      b, arith::CmpIPredicate::eq,
      arith::RemUIOp::create(b, lane, constant(CooperativeSchedule::warpSize)),
      constant(0));
  auto ifOp = scf::IfOp::create(b, isFirstLane, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    for (auto [array, accumulator] : llvm::zip_equal(arrays, state))
      memref::StoreOp::create(b, accumulator, array, number);
  }
  gpu::BarrierOp::create(b);
  auto read = [&](int64_t warp) {
    Value at = arith::AddIOp::create(b, first, constant(warp));
    return llvm::map_to_vector(arrays, [&](Value array) -> Value {
      return memref::LoadOp::create(b, array, at);
    });
  };
  Values merged = read(0);
  for (int64_t warp = 1; warp < schedule.warps; ++warp)
    merged = merge(merged, read(warp));
  return merged;
}

void CooperativeEmitter::emit() {
  Value lanes = constant(schedule.lanes());
  row = arith::DivUIOp::create(b, tile.threadId, lanes);
  lane = arith::RemUIOp::create(b, tile.threadId, lanes);
  unsigned rows = grid.rowAxis();
  position[rows] = arith::AddIOp::create(b, tile.rowOffset, row);
  isInside = isLess(position[rows], tile.extents[rows]);
  if (std::optional<unsigned> columns = grid.columnAxis())
    position[*columns] = tile.columnOffset;

  Values state;
  for (auto identity : op.getIdentities().getAsRange<TypedAttr>())
    state.push_back(arith::ConstantOp::create(b, identity));
  state = forEachElement(state, [&](ValueRange last) {
    Values arguments = load();
    llvm::append_range(arguments, last);
    return test::inlineRegion(b, op.getReduce(), arguments);
  });
  state = mergeWarps(mergeLanes(std::move(state)));
  Values values = test::inlineRegion(b, op.getFinish(), state);

  SmallVector<unsigned, 2> statistics = op.getOutputNumbers(/*alongRow=*/false);
  if (!statistics.empty()) {
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, constant(0));
    auto ifOp =
        scf::IfOp::create(b, arith::AndIOp::create(b, isInside, isFirst),
                          /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    store(statistics, values);
  }
  SmallVector<unsigned, 2> elements = op.getOutputNumbers(/*alongRow=*/true);
  if (elements.empty())
    return;
  forEachElement({}, [&](ValueRange) {
    Values arguments = load();
    llvm::append_range(arguments, values);
    store(elements, test::inlineRegion(b, op.getMap(), arguments));
    return Values();
  });
}

class CooperativePath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return cooperativeModel(); }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &tile) const override {
    auto op = dyn_cast<test::RowsOp>(*tile.op);
    if (!op)
      return tile.op->emitOpError("expected a test.rows for the path "
                                  "'cooperative'");
    CooperativeEmitter(builder, tile, op).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(cooperative, CooperativePath)
} // namespace ftuner
