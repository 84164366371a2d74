//===- SimtMainLoop.cpp - The reduction of one tile -------------*- C++ -*-===//
//
// One barrier for each k iteration, called step here. With asynchronous copies:
//
//   start steps 0 … stages − 2
//   for each step: wait for it; barrier; start step + stages − 1; multiply
//
// The barrier both publishes the step's copies and says that nobody still reads
// the stage that the next copies overwrite. Without asynchronous copies, two
// stages, and the next step travels through registers while this one is
// multiplied:
//
//   load step 0 and store it
//   for each step: barrier; load step + 1; multiply; store step + 1
//
// The loop over the steps is not unrolled, by LLVM or by ptxas: its body is a
// whole step, so unrolling saves little. Where the trip count is a small
// constant, ptxas would unroll the whole loop, move loads of later steps ahead
// and take two to three times the registers, or spill.
//
// Within a step a loop runs over quads of the reduce axis. It is compiled as a
// loop until LLVM unrolls it in the end.
//
//===----------------------------------------------------------------------===//
#include "../SimtAddresses.h"
#include "SimtEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

VectorType SimtTileEmitter::vectorType(int64_t width) {
  return VectorType::get({width}, b.getF32Type());
}

Value SimtTileEmitter::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

Value SimtTileEmitter::sharedTileMemory(const SharedTile &shared,
                                        int64_t firstElement) {
  auto type = MemRefType::get(
      {layout.stages, shared.outer, shared.pitch}, b.getF32Type(),
      MemRefLayoutAttrInterface(),
      cast<MemRefType>(tile.sharedMemory.getType()).getMemorySpace());
  return memref::ViewOp::create(b, type, tile.sharedMemory,
                                math.constant(4 * firstElement), ValueRange());
}

Value SimtTileEmitter::nextStage(Value stage) {
  Value next = math.add(stage, 1);
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, next,
                                      math.constant(layout.stages));
  return arith::SelectOp::create(b, wraps, math.constant(0), next);
}

scf::ForOp SimtTileEmitter::createLoop(Unrolling unrolling, Value end,
                                       int64_t step, ValueRange initial) {
  auto loop = scf::ForOp::create(b, math.constant(0), end, math.constant(step),
                                 initial);
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

Values SimtTileEmitter::emitMainLoop() {
  Value scalarInit;
  if (tile.init && !isa<MemRefType>(tile.init.getType()))
    scalarInit = tile.init;
  Values accumulators;
  for (int64_t row = 0; row < layout.rm; ++row)
    for (const LaneChunk &chunk : columnChunks) {
      VectorType type = vectorType(chunk.width);
      accumulators.push_back(
          scalarInit ? broadcast(scalarInit, chunk.width)
                     : arith::ConstantOp::create(b, type, b.getZeroAttr(type))
                           .getResult());
    }

  lhsShared = sharedTileMemory(layout.lhs, 0);
  rhsShared =
      sharedTileMemory(layout.rhs, layout.stages * layout.lhs.elements());
  TileCopy lhsCopy(b, layout.lhs, tile.lhs, lhsShared, layout.threads(),
                   vectorWidth);
  TileCopy rhsCopy(b, layout.rhs, tile.rhs, rhsShared, layout.threads(),
                   vectorWidth);
  Value reduceExtent = tile.extents[Workload::kK];
  bool reduceExact = tile.exact[Workload::kK];
  lhsCopy.prepare(tile.threadId, tile.rowOffset, tile.extents[Workload::kM],
                  tile.exact[Workload::kM], reduceExtent, reduceExact);
  rhsCopy.prepare(tile.threadId, tile.columnOffset, tile.extents[Workload::kN],
                  tile.exact[Workload::kN], reduceExtent, reduceExact);
  return tile.device.hasAsyncCopy()
             ? emitAsyncLoop(lhsCopy, rhsCopy, accumulators)
             : emitStagedLoop(lhsCopy, rhsCopy, accumulators);
}

Values SimtTileEmitter::emitAsyncLoop(TileCopy &lhsCopy, TileCopy &rhsCopy,
                                      Values accumulators) {
  auto tokenType = nvgpu::DeviceAsyncTokenType::get(b.getContext());
  Value reduceExtent = tile.extents[Workload::kK];
  // Starts the copies of a step unless it lies beyond the extent; the group is
  // committed either way, so that groups count steps. A group holds what was
  // issued before it, so it needs no tokens of copies, which are inside
  // conditions.
  auto start = [&](Value stage, Value reduceOffset) {
    auto ifOp = scf::IfOp::create(b, math.less(reduceOffset, reduceExtent),
                                  /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(ifOp.thenBlock());
      lhsCopy.issueAsync(stage, reduceOffset);
      rhsCopy.issueAsync(stage, reduceOffset);
    }
    auto group =
        nvgpu::DeviceAsyncCreateGroupOp::create(b, tokenType, ValueRange());
    // The parser would read the next line's result as the operand of a group
    // that is printed without operands and attributes.
    group->setAttr("ukernel.step", b.getUnitAttr());
  };
  {
    scf::ForOp loop =
        createLoop(Unrolling::Never, math.constant(layout.stages - 1), 1, {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value stage = loop.getInductionVar();
    start(stage, math.mul(stage, layout.bk));
  }

  Values initial = accumulators;
  initial.push_back(math.constant(0));
  initial.push_back(math.constant(layout.stages - 1));
  scf::ForOp loop = createLoop(Unrolling::Never, tile.extents[Workload::kK],
                               layout.bk, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value readStage = state[accumulators.size()];
  Value writeStage = state[accumulators.size() + 1];
  // nvgpu's operation would want the token of a group, which may be one of the
  // loop's.
  NVVM::CpAsyncWaitGroupOp::create(b, layout.stages - 2);
  gpu::BarrierOp::create(b);
  start(writeStage,
        math.add(loop.getInductionVar(), (layout.stages - 1) * layout.bk));
  Values next = multiply(readStage, Values(state.drop_back(2)));
  next.push_back(nextStage(readStage));
  next.push_back(nextStage(writeStage));
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back(2));
}

Values SimtTileEmitter::emitStagedLoop(TileCopy &lhsCopy, TileCopy &rhsCopy,
                                       Values accumulators) {
  Value reduceExtent = tile.extents[Workload::kK];
  auto ifInRange = [&](Value reduceOffset, llvm::function_ref<void()> body) {
    auto ifOp = scf::IfOp::create(b, math.less(reduceOffset, reduceExtent),
                                  /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    body();
  };
  Value zero = math.constant(0);
  ifInRange(zero, [&] {
    lhsCopy.store(zero, lhsCopy.load(zero));
    rhsCopy.store(zero, rhsCopy.load(zero));
  });

  Values initial = accumulators;
  initial.push_back(zero);
  scf::ForOp loop = createLoop(Unrolling::Never, tile.extents[Workload::kK],
                               layout.bk, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ValueRange state = loop.getRegionIterArgs();
  Value stage = state.back();
  gpu::BarrierOp::create(b);
  Value reduceOffset = math.add(loop.getInductionVar(), layout.bk);
  Value hasNext = math.less(reduceOffset, reduceExtent);
  // The loads come before the multiplication and the stores after it, so the
  // vectors pass from one conditional to the other.
  Values vectors;
  size_t lhsVectors = lhsCopy.slotCount();
  {
    SmallVector<Type> types;
    types.append(lhsVectors + rhsCopy.slotCount(), vectorType(vectorWidth));
    auto ifOp = scf::IfOp::create(b, types, hasNext, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard ifGuard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Values loaded = lhsCopy.load(reduceOffset);
    llvm::append_range(loaded, rhsCopy.load(reduceOffset));
    scf::YieldOp::create(b, loaded);
    b.setInsertionPointToStart(ifOp.elseBlock());
    VectorType type = vectorType(vectorWidth);
    Value zeros = arith::ConstantOp::create(b, type, b.getZeroAttr(type));
    scf::YieldOp::create(b, Values(types.size(), zeros));
    vectors = Values(ifOp.getResults());
  }
  Values next = multiply(stage, Values(state.drop_back()));
  Value nextStageValue = nextStage(stage);
  auto ifOp = scf::IfOp::create(b, hasNext, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard ifGuard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    ArrayRef<Value> loaded(vectors);
    lhsCopy.store(nextStageValue, loaded.take_front(lhsVectors));
    rhsCopy.store(nextStageValue, loaded.drop_front(lhsVectors));
  }
  next.push_back(nextStageValue);
  scf::YieldOp::create(b, next);
  return Values(loop.getResults().drop_back());
}

Values SimtTileEmitter::loadReduceVectors(const SharedTile &shared,
                                          Value memory, Value stage,
                                          Value reduce,
                                          ArrayRef<LaneChunk> chunks,
                                          Value lane) {
  Values vectors;
  for (const LaneChunk &chunk : chunks) {
    Value first = firstOfChunk(math, chunk, lane);
    Value inner = reduceElementInRow(math, shared, first, reduce);
    for (int64_t element = 0; element < chunk.width; ++element)
      vectors.push_back(vector::LoadOp::create(
          b, vectorType(kQuad), memory,
          ValueRange{stage, math.add(first, element), inner},
          /*nontemporal=*/false, llvm::MaybeAlign(4 * kQuad)));
  }
  return vectors;
}

Values SimtTileEmitter::loadSpaceVectors(Value memory, Value stage,
                                         Value reduce,
                                         ArrayRef<LaneChunk> chunks,
                                         Value lane) {
  Values vectors;
  for (const LaneChunk &chunk : chunks) {
    Value first = firstOfChunk(math, chunk, lane);
    vectors.push_back(vector::LoadOp::create(
        b, vectorType(chunk.width), memory, ValueRange{stage, reduce, first},
        /*nontemporal=*/false, llvm::MaybeAlign(4 * chunk.width)));
  }
  return vectors;
}

/// Rows of a thread as scalars of step `element` within the fragments.
static Value scalarOf(ImplicitLocOpBuilder &b, ValueRange fragments,
                      bool reduceContiguous, ArrayRef<LaneChunk> chunks,
                      int64_t row, int64_t element) {
  if (reduceContiguous)
    return vector::ExtractOp::create(b, fragments[row], element);
  for (auto [chunk, fragment] : llvm::zip_equal(chunks, fragments)) {
    if (row < chunk.width)
      return vector::ExtractOp::create(b, fragment, row);
    row -= chunk.width;
  }
  llvm_unreachable("row outside of the chunks");
}

void SimtTileEmitter::multiplyChunk(ArrayRef<Value> rows, size_t chunk,
                                    Value columns, Values &accumulators) {
  int64_t width = columnChunks[chunk].width;
  for (auto [row, scalar] : llvm::enumerate(rows)) {
    Value &accumulator = accumulators[row * columnChunks.size() + chunk];
    accumulator = vector::FMAOp::create(b, broadcast(scalar, width), columns,
                                        accumulator);
  }
}

Values SimtTileEmitter::multiply(Value stage, Values accumulators) {
  scf::ForOp loop = createLoop(Unrolling::Late, math.constant(layout.bk), kQuad,
                               accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next(loop.getRegionIterArgs());
  multiplyQuad(stage, loop.getInductionVar(), next);
  scf::YieldOp::create(b, next);
  return Values(loop.getResults());
}

void SimtTileEmitter::multiplyQuad(Value stage, Value reduce,
                                   Values &accumulators) {
  // rows[element][row]: what each row contributes at each reduce element.
  SmallVector<Values> rows(kQuad);
  Values fragments;
  if (layout.lhs.reduceContiguous)
    fragments =
        loadReduceVectors(layout.lhs, lhsShared, stage, reduce, rowChunks, tm);
  for (int64_t element = 0; element < kQuad; ++element) {
    if (!layout.lhs.reduceContiguous)
      fragments = loadSpaceVectors(lhsShared, stage, math.add(reduce, element),
                                   rowChunks, tm);
    for (int64_t row = 0; row < layout.rm; ++row)
      rows[element].push_back(scalarOf(
          b, fragments, layout.lhs.reduceContiguous, rowChunks, row, element));
    if (layout.rhs.reduceContiguous)
      continue;
    Values columns = loadSpaceVectors(
        rhsShared, stage, math.add(reduce, element), columnChunks, tn);
    for (auto [chunk, vector] : llvm::enumerate(columns))
      multiplyChunk(rows[element], chunk, vector, accumulators);
  }
  if (!layout.rhs.reduceContiguous)
    return;
  // One chunk after the other, so that few fragments are alive at once.
  for (auto [chunk, columns] : llvm::enumerate(columnChunks)) {
    Values vectors =
        loadReduceVectors(layout.rhs, rhsShared, stage, reduce, columns, tn);
    for (int64_t element = 0; element < kQuad; ++element) {
      Values scalars;
      for (Value vector : vectors)
        scalars.push_back(vector::ExtractOp::create(b, vector, element));
      multiplyChunk(
          rows[element], chunk,
          vector::FromElementsOp::create(b, vectorType(columns.width), scalars),
          accumulators);
    }
  }
}
