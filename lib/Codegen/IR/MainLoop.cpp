//===- MainLoop.cpp - The loop over steps of the reduce axis --------------===//
#include "FTuner/Codegen/IR/MainLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <algorithm>

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
                           TileCopy &rhs, bool isAsynchronous, Value threadId) {
  const ContractionAxes &axes = tile.axes;
  auto prepare = [&](TileCopy &copy, Value offset, unsigned axis) {
    copy.prepare(threadId ? threadId : tile.threadId, offset,
                 tile.extents[axis], tile.exact[axis], tile.extents[axes.k],
                 tile.exact[axes.k], isAsynchronous);
  };
  for (unsigned factor : {0, 1})
    if (tile.hasPaddedSteps(factor))
      (factor == 0 ? lhs : rhs).endWithinVectors();
  if (!tile.batchTile().sides.empty()) {
    lhs.alongBatch(tile, 0);
    rhs.alongBatch(tile, 1);
  }
  prepare(lhs, tile.rowOffset, axes.m);
  prepare(rhs, tile.columnOffset, axes.n);
}

Values MainLoop::emit(ImplicitLocOpBuilder &b, const Values &accumulators,
                      Multiply multiply) const {
  Values sums = isAsynchronous ? emitAsynchronous(b, accumulators, multiply)
                               : emitStaged(b, accumulators, multiply);
  awaitProducts(0);
  return sums;
}

Values MainLoop::emit(ImplicitLocOpBuilder &b, const Values &accumulators,
                      const KBlocks &kBlocks) const {
  return isAsynchronous ? emitAsynchronous(b, accumulators, kBlocks)
                        : emitStaged(b, accumulators, kBlocks);
}

void MainLoop::publish() const {
  if (asyncProducts)
    asyncProducts->publish();
}

void MainLoop::awaitProducts(int64_t newer) const {
  if (asyncProducts)
    asyncProducts->await(newer);
}

Value MainLoop::nextStage(ImplicitLocOpBuilder &b, Value stage) const {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b,
                                     b.getIntegerAttr(stage.getType(), value));
  };
  Value next = IndexMath(b).add(stage, constant(1));
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                      constant(stages));
  return arith::SelectOp::create(b, wraps, constant(0), next);
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
  publish();
  gpu::BarrierOp::create(b);
  auto startNext = [&] {
    start(writeStage, math.add(loop.getInductionVar(), stepsAhead() * depth));
  };
  if (!asyncProducts)
    startNext();
  Values next = multiply(readStage, Values(state.drop_back(2)));
  if (asyncProducts)
    startNext();
  awaitProducts(1);
  next.push_back(nextStage(b, readStage));
  next.push_back(nextStage(b, writeStage));
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back(2));
}

void MainLoop::copyFirst(ImplicitLocOpBuilder &b) const {
  IndexMath math(b);
  Value zero = math.constant(0);
  emitIf(b, math.less(zero, reduceExtent), [&] {
    lhs.store(zero, lhs.load(zero), zero);
    rhs.store(zero, rhs.load(zero), zero);
  });
}

Values MainLoop::loadStep(ImplicitLocOpBuilder &b, Value reduceOffset,
                          Value isInside) const {
  SmallVector<Type> types = lhs.loadedTypes();
  llvm::append_range(types, rhs.loadedTypes());
  auto ifOp = scf::IfOp::create(b, types, isInside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Values loaded = lhs.load(reduceOffset);
  llvm::append_range(loaded, rhs.load(reduceOffset));
  scf::YieldOp::create(b, loaded);
  b.setInsertionPointToStart(ifOp.elseBlock());
  Values zeros;
  for (Type type : types)
    zeros.push_back(arith::ConstantOp::create(b, type, b.getZeroAttr(type)));
  scf::YieldOp::create(b, zeros);
  return Values(ifOp.getResults());
}

void MainLoop::storeStep(ValueRange loaded, Value stage,
                         Value reduceOffset) const {
  size_t lhsVectors = lhs.loadedTypes().size();
  lhs.store(stage, loaded.take_front(lhsVectors), reduceOffset);
  rhs.store(stage, loaded.drop_front(lhsVectors), reduceOffset);
}

Values MainLoop::emitStaged(ImplicitLocOpBuilder &b, const Values &accumulators,
                            Multiply multiply) const {
  IndexMath math(b);
  Value zero = math.constant(0);
  copyFirst(b);
  publish();

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
  Values vectors = loadStep(b, reduceOffset, hasNext);
  Values next = multiply(stage, Values(state.drop_back()));
  awaitProducts(0);
  Value nextStageValue = nextStage(b, stage);
  emitIf(b, hasNext, [&] { storeStep(vectors, nextStageValue, reduceOffset); });
  publish();
  next.push_back(nextStageValue);
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back());
}

//===----------------------------------------------------------------------===//
// With k blocks that are loaded ahead
//===----------------------------------------------------------------------===//

/// Most k blocks of a step that a share of its copies precedes. Loads from
/// shared memory do not pass copies into it, so many copies in one place hold
/// up the fragments of the k blocks behind them. In the main loops that a100's
/// plans choose for Llama-2-7B, of 32 to 40 products, warps issue 4 to 15 %
/// longer than the products take with all copies in one place, and at most 7 %
/// with copies in two (benchmarks/tensor_cores/main_loops.py).
static constexpr int64_t kMostCopyParts = 2;

/// What counts steps and stages has 32 bits: extents fit 31, and what is added
/// to them does not pass 32.
static scf::ForOp createStepLoop(ImplicitLocOpBuilder &b, Value reduceExtent,
                                 int64_t depth, ValueRange initial) {
  Value end =
      arith::IndexCastUIOp::create(b, b.getI32Type(), reduceExtent).getResult();
  scf::ForOp loop = createLoop(b, Unrolling::Never, end, depth, initial);
  loop.setUnsignedCmp(true);
  return loop;
}

static Value addUnsigned(ImplicitLocOpBuilder &b, Value number, int64_t more) {
  return arith::AddIOp::create(b, number, createI32(b, more),
                               arith::IntegerOverflowFlags::nuw);
}

Values MainLoop::emitAsynchronous(ImplicitLocOpBuilder &b,
                                  const Values &accumulators,
                                  const KBlocks &kBlocks) const {
  IndexMath math(b);
  // The copies of a step in parts, of which the last one ends their group.
  auto start = [&](Value stage, Value reduceOffset, int64_t part,
                   int64_t parts) {
    Value isInside = math.less(reduceOffset, reduceExtent);
    lhs.issueAsync(stage, reduceOffset, isInside, part, parts);
    rhs.issueAsync(stage, reduceOffset, isInside, part, parts);
    if (part + 1 == parts)
      NVVM::CpAsyncCommitGroupOp::create(b);
  };
  // Of the groups that are committed then, waits for the least that holds the
  // next step.
  auto awaitNext = [&] {
    NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
    gpu::BarrierOp::create(b);
  };
  {
    scf::ForOp loop =
        createLoop(b, Unrolling::Never, math.constant(stages - 1), 1, {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value stage = loop.getInductionVar();
    start(stage, math.mul(stage, depth), 0, 1);
  }
  awaitNext();

  size_t numSums = accumulators.size();
  Values initial = accumulators;
  llvm::append_range(initial, kBlocks.load(math.constant(0), 0));
  initial.push_back(createI32(b, 0));
  initial.push_back(createI32(b, stages - 1));
  scf::ForOp loop = createStepLoop(b, reduceExtent, depth, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value writeStage = state.back(),
        next = nextStage(b, state.drop_back().back());
  Value readStage = toIndex(b, state.drop_back().back());
  Values sums(state.take_front(numSums)),
      loaded(state.drop_front(numSums).drop_back(2));
  int64_t parts = std::clamp<int64_t>(kBlocks.count - 1, 1, kMostCopyParts);
  Value nextOffset =
      addUnsigned(b, loop.getInductionVar(), (stages - 1) * depth);
  auto startNext = [&](int64_t part) {
    start(toIndex(b, writeStage), toIndex(b, nextOffset), part, parts);
  };
  for (int64_t kBlock = 0; kBlock < kBlocks.count; ++kBlock) {
    bool isLast = kBlock + 1 == kBlocks.count;
    auto loadAhead = [&] {
      if (!isLast)
        return kBlocks.load(readStage, kBlock + 1);
      awaitNext();
      return kBlocks.load(toIndex(b, next), 0);
    };
    // Fragments of an only k block would have to be moved to the registers of
    // those that are multiplied meanwhile.
    Values ahead;
    if (kBlocks.count > 1)
      ahead = loadAhead();
    if (kBlock < parts)
      startNext(kBlock);
    sums = kBlocks.multiply(loaded, std::move(sums));
    loaded = kBlocks.count > 1 ? std::move(ahead) : loadAhead();
  }
  llvm::append_range(sums, loaded);
  sums.push_back(next);
  sums.push_back(nextStage(b, writeStage));
  scf::YieldOp::create(b, sums);
  return Values(loop.getResults().take_front(numSums));
}

Values MainLoop::emitStaged(ImplicitLocOpBuilder &b, const Values &accumulators,
                            const KBlocks &kBlocks) const {
  IndexMath math(b);
  copyFirst(b);
  gpu::BarrierOp::create(b);

  size_t numSums = accumulators.size();
  Values initial = accumulators;
  llvm::append_range(initial, kBlocks.load(math.constant(0), 0));
  initial.push_back(createI32(b, 0));
  scf::ForOp loop = createStepLoop(b, reduceExtent, depth, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value next = nextStage(b, state.back()), stage = toIndex(b, state.back()),
        target = toIndex(b, next);
  Value reduceOffset =
      toIndex(b, addUnsigned(b, loop.getInductionVar(), depth));
  Values vectors =
      loadStep(b, reduceOffset, math.less(reduceOffset, reduceExtent));
  Values sums(state.take_front(numSums)),
      loaded(state.drop_front(numSums).drop_back());
  // Behind the last step zeros are stored, where nobody reads any more.
  auto storeNext = [&] {
    storeStep(vectors, target, reduceOffset);
    gpu::BarrierOp::create(b);
    return kBlocks.load(target, 0);
  };
  for (int64_t kBlock = 0; kBlock < kBlocks.count; ++kBlock) {
    bool isLast = kBlock + 1 == kBlocks.count;
    Values ahead;
    if (!isLast)
      ahead = kBlocks.load(stage, kBlock + 1);
    else if (kBlocks.count > 1)
      ahead = storeNext();
    sums = kBlocks.multiply(loaded, std::move(sums));
    // The products of the only k block are all that loads can hide behind.
    if (kBlocks.count == 1)
      ahead = storeNext();
    loaded = std::move(ahead);
  }
  llvm::append_range(sums, loaded);
  sums.push_back(next);
  scf::YieldOp::create(b, sums);
  return Values(loop.getResults().take_front(numSums));
}
