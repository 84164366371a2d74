//===- MainLoop.cpp - The loop over steps of the reduce axis --------------===//
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/StageBarriers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

scf::ForOp ftuner::createLoop(ImplicitLocOpBuilder &b, Unrolling unrolling,
                              Value end, int64_t step, ValueRange initial) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(end.getType(), value));
  };
  return createLoop(b, unrolling, constant(0), end, constant(step), initial);
}

scf::ForOp ftuner::createLoop(ImplicitLocOpBuilder &b, Unrolling unrolling,
                              Value first, Value end, Value step,
                              ValueRange initial) {
  auto loop = scf::ForOp::create(b, first, end, step, initial);
  MLIRContext *context = b.getContext();
  BoolAttr yes = b.getBoolAttr(true), none;
  bool isLate = unrolling == Unrolling::Late;
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/isLate ? none : yes, {},
      /*runtimeDisable=*/isLate ? yes : none, {}, {}, {}, {});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
  // Conversions hand attributes of the LLVM dialect on to the branch back.
  loop->setAttr("loop_annotation", annotation);
  return loop;
}

void ftuner::emitIf(ImplicitLocOpBuilder &b, Value condition,
                    llvm::function_ref<void()> body) {
  auto ifOp = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

void ftuner::prepareCopies(const ContractionTile &tile, TileCopy &lhs,
                           TileCopy &rhs, Value threadId) {
  auto prepare = [&](TileCopy &copy, Value offset, unsigned axis) {
    copy.prepare(threadId ? threadId : tile.threadId, offset,
                 tile.extents[axis], tile.exact[axis],
                 tile.extents[Workload::kK], tile.exact[Workload::kK]);
  };
  prepare(lhs, tile.rowOffset, Workload::kM);
  prepare(rhs, tile.columnOffset, Workload::kN);
}

Values MainLoop::emit(ImplicitLocOpBuilder &b, const Values &accumulators,
                      Multiply multiply) const {
  Values sums = isAsynchronous ? emitAsynchronous(b, accumulators, multiply)
                               : emitStaged(b, accumulators, multiply);
  awaitProducts(b, 0);
  return sums;
}

/// Makes what the thread has written to shared memory visible to deferred
/// products, behind a barrier.
void MainLoop::fenceProxy(ImplicitLocOpBuilder &b) const {
  if (isDeferred)
    fenceAsyncProxy(b);
}

/// Waits for deferred products of all but the `newer` last steps.
void MainLoop::awaitProducts(ImplicitLocOpBuilder &b, int64_t newer) const {
  if (isDeferred)
    NVVM::WgmmaWaitGroupSyncOp::create(b, newer);
}

Value MainLoop::nextStage(ImplicitLocOpBuilder &b, Value stage) const {
  IndexMath math(b);
  Value next = math.add(stage, 1);
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                      math.constant(stages));
  return arith::SelectOp::create(b, wraps, math.constant(0), next);
}

Values MainLoop::emitAsynchronous(ImplicitLocOpBuilder &b,
                                  const Values &accumulators,
                                  Multiply multiply) const {
  IndexMath math(b);
  // Starts the copies of a step unless it lies beyond the extent; the group is
  // committed either way, so that groups count steps.
  auto start = [&](Value stage, Value reduceOffset) {
    auto ifOp = scf::IfOp::create(b, math.less(reduceOffset, reduceExtent),
                                  /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      lhs.issueAsync(stage, reduceOffset);
      rhs.issueAsync(stage, reduceOffset);
    }
    NVVM::CpAsyncCommitGroupOp::create(b);
  };
  {
    scf::ForOp loop =
        createLoop(b, Unrolling::Never, math.constant(stepsAhead()), 1, {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value stage = loop.getInductionVar();
    start(stage, math.mul(stage, depth));
  }

  Values initial = accumulators;
  initial.push_back(math.constant(0));
  initial.push_back(math.constant(stepsAhead()));
  scf::ForOp loop =
      createLoop(b, Unrolling::Never, reduceExtent, depth, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value readStage = state[accumulators.size()];
  Value writeStage = state[accumulators.size() + 1];
  NVVM::CpAsyncWaitGroupOp::create(b, stepsAhead() - 1);
  fenceProxy(b);
  gpu::BarrierOp::create(b);
  auto startNext = [&] {
    start(writeStage, math.add(loop.getInductionVar(), stepsAhead() * depth));
  };
  if (!isDeferred)
    startNext();
  Values next = multiply(readStage, Values(state.drop_back(2)));
  if (isDeferred)
    startNext();
  awaitProducts(b, 1);
  next.push_back(nextStage(b, readStage));
  next.push_back(nextStage(b, writeStage));
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back(2));
}

Values MainLoop::emitStaged(ImplicitLocOpBuilder &b, const Values &accumulators,
                            Multiply multiply) const {
  IndexMath math(b);
  auto ifInRange = [&](Value reduceOffset, llvm::function_ref<void()> body) {
    emitIf(b, math.less(reduceOffset, reduceExtent), body);
  };
  Value zero = math.constant(0);
  ifInRange(zero, [&] {
    lhs.store(zero, lhs.load(zero), zero);
    rhs.store(zero, rhs.load(zero), zero);
  });
  fenceProxy(b);

  Values initial = accumulators;
  initial.push_back(zero);
  scf::ForOp loop =
      createLoop(b, Unrolling::Never, reduceExtent, depth, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value stage = state.back();
  gpu::BarrierOp::create(b);
  Value reduceOffset = math.add(loop.getInductionVar(), depth);
  Value hasNext = math.less(reduceOffset, reduceExtent);
  // The loads come before the multiplication and the stores after it, so the
  // vectors pass from one conditional to the other.
  Values vectors;
  SmallVector<Type> types = lhs.loadedTypes();
  size_t lhsVectors = types.size();
  llvm::append_range(types, rhs.loadedTypes());
  {
    auto ifOp = scf::IfOp::create(b, types, hasNext, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard ifGuard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Values loaded = lhs.load(reduceOffset);
    llvm::append_range(loaded, rhs.load(reduceOffset));
    scf::YieldOp::create(b, loaded);
    b.setInsertionPointToStart(ifOp.elseBlock());
    Values zeros;
    for (Type type : types)
      zeros.push_back(arith::ConstantOp::create(b, type, b.getZeroAttr(type)));
    scf::YieldOp::create(b, zeros);
    vectors = Values(ifOp.getResults());
  }
  Values next = multiply(stage, Values(state.drop_back()));
  awaitProducts(b, 0);
  Value nextStageValue = nextStage(b, stage);
  auto ifOp = scf::IfOp::create(b, hasNext, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard ifGuard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    ArrayRef<Value> loaded(vectors);
    lhs.store(nextStageValue, loaded.take_front(lhsVectors), reduceOffset);
    rhs.store(nextStageValue, loaded.drop_front(lhsVectors), reduceOffset);
  }
  fenceProxy(b);
  next.push_back(nextStageValue);
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back());
}
