//===- WgmmaPipeline.cpp - Producers and consumers of stages --------------===//
//
// Barriers of stages order copies and products. Producers, which do nothing but
// copy, and consumers, which multiply, run at their own pace:
//
//   producer, each step:  wait until the stage is empty; copy; publish an
//                         earlier step, whose copies have landed
//   consumer, each step:  wait until the stage is full; multiply; wait for
//                         the products of the step before; empty its stage
//
// With TMA one thread of the producers starts boxes, on which the
// barrier of a stage counts bytes; nothing is left to publish. Without
// producers that is a thread of those that multiply:
//
//   each step:  wait until the stage is full; barrier of the block; multiply;
//               start step + stages − 2; wait for the products of the step
//               before
//
// Persistent blocks take one tile after the other, and go on in the stages
// where the tile before ended: producers copy for the next tile while consumers
// take the sums of one to the output.
//
// In ping-pong schedules two sets of consumers take turns: each computes every
// other tile of its block, and goes past the stages of those between. Their
// ordered barriers keep the products of one tile behind those of the tile
// before, so that a set has the tensor cores for itself while the other one
// stores:
//
//   consumer, each tile:  wait for the turn of the set; multiply all steps; end
//                         the turn; wait for the products; store
//
// Blocks of a cluster run the same steps. Each copies its part of the factor
// that both need into the shared memory of both, so a stage is empty when the
// warpgroups of both have read it. Barriers of the cluster keep a block from
// copying before the other's barriers are there, and from ending before the
// other has arrived at its own for the last time.
//
// A packed factor comes by bulk copies, one for each step, started by the
// thread that starts boxes, or by one of the producers that copy the other
// factor by their threads; the barrier of a stage counts their bytes beside
// boxes or threads.
//
// Products read shared memory through the async proxy. What threads copied
// (cp.async) they publish themselves, behind a fence between the proxies, which
// a barrier that copies end on by themselves would leave out.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "WgmmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, predicate, lhs, rhs);
}

static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
}

Value WgmmaTileEmitter::emitSteps() {
  Value steps =
      math.div(math.add(tile.extents[tile.axes.k], layout.bk - 1), layout.bk);
  return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), steps);
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

namespace {
/// A block whose stages have barriers.
class Pipeline {
public:
  Pipeline(ImplicitLocOpBuilder &b, BlockTiles &tiles)
      : b(b), tiles(tiles), block(tiles.block), workload(*block.described),
        layout(wgmmaLayout(workload, block.family, /*part=*/0)),
        thread(b, block.threadId),
        barriers(b, sharedPointer(b, block.sharedMemory, layout.barriersOffset),
                 layout.stages, layout.clusterBlocks()) {
    thread.isElected = NVVM::ElectSyncOp::create(b, b.getI1Type(), Value());
  }

  LogicalResult emit();

private:
  void initialize();
  void prefetchMaps();
  LogicalResult emitRoles();
  LogicalResult emitProducers();
  LogicalResult emitConsumers();
  /// What a set of consumer warpgroups, an i32, does for a tile.
  StagePhase emitPingPong(WgmmaTileEmitter &tile, StagePhase at, Value number,
                          Value set);
  /// Emits `body` for each tile; it takes and returns the stage to go on with,
  /// and takes the tile's number among those of the block, an i32.
  using Body =
      llvm::function_ref<StagePhase(WgmmaTileEmitter &, StagePhase, Value)>;
  LogicalResult forEach(Body body);
  Value constant(int64_t value) { return createI32(b, value); }

  ImplicitLocOpBuilder &b;
  BlockTiles &tiles;
  const TileEmission &block;
  Workload workload;
  /// Of the first part: what is asked of it here is the same for all.
  WgmmaLayout layout;
  WgmmaThread thread;
  StageBarriers barriers;
};
} // namespace

LogicalResult ftuner::emitWgmmaPipeline(ImplicitLocOpBuilder &b,
                                        BlockTiles &tiles) {
  return Pipeline(b, tiles).emit();
}

/// Without steps an operand may have no elements, and no map then.
void Pipeline::prefetchMaps() {
  for (unsigned part = 0; part < block.family.tiles.size(); ++part)
    for (Value map : tiles.tensorMaps(part))
      NVVM::PrefetchOp::create(b, NVVM::PrefetchCacheLevelAttr(),
                               NVVM::CacheEvictionPriorityAttr(), map,
                               /*predicate=*/Value(), /*tensormap=*/true,
                               /*uniform=*/false, /*in_param_space=*/false);
}

/// Of a stage that threads copy, all of them say that it is full, and so does
/// the one that has the rest copied; one lane of each warp that multiplies the
/// tile, in each block of the cluster, says that it is empty. Each warp of a
/// set ends its turn.
void Pipeline::initialize() {
  emitIf(b, thread.actsFor(b, 0), [&] {
    int64_t ofThreads = layout.usesTma ? 0 : layout.copyingThreads();
    int64_t ofUnit = layout.usesTma || layout.hasBulkCopies(1) ? 1 : 0;
    barriers.initialize(ofThreads + ofUnit,
                        layout.clusterBlocks() * layout.warpsOfSet(),
                        layout.consumerSets > 1 ? layout.warpsOfSet() : 0);
    if (!layout.usesTma)
      return;
    Value extent = b.createOrFold<arith::IndexCastOp>(
        b.getI32Type(), block.extents[block.family.contractionAxes().k]);
    emitIf(b, compare(b, arith::CmpIPredicate::ne, extent, constant(0)),
           [&] { prefetchMaps(); });
  });
  if (layout.clusterBlocks() > 1)
    clusterBarrier(b, /*isRelaxed=*/true);
  else
    gpu::BarrierOp::create(b);
}

LogicalResult Pipeline::emit() {
  initialize();
  if (layout.producerWarpgroups == 0)
    return forEach([&](WgmmaTileEmitter &tile, StagePhase at, Value) {
      tile.emitBesideMaps(barriers);
      return at;
    });
  if (failed(emitRoles()))
    return failure();
  if (layout.clusterBlocks() > 1)
    clusterBarrier(b);
  return success();
}

LogicalResult Pipeline::forEach(Body body) {
  StagePhase first = barriers.first();
  Value zero = constant(0);
  auto emitTile = [&](const TileEmission &emission,
                      ValueRange state) -> FailureOr<Values> {
    ContractionTile tile(emission);
    WgmmaTileEmitter emitter(b, tile, thread);
    if (state.empty()) {
      body(emitter, first, zero);
      return Values();
    }
    Value number = state[2];
    StagePhase next = body(emitter, {state[0], state[1]}, number);
    return Values{next.stage, next.parity,
                  arith::AddIOp::create(b, number, constant(1))};
  };
  Values state;
  if (layout.isPersistent)
    state = {first.stage, first.parity, zero};
  return success(succeeded(tiles.forEach(b, state, emitTile)));
}

LogicalResult Pipeline::emitRoles() {
  // The model has found them.
  WgmmaRegisters registers = *wgmmaRegisters(workload, block.family);
  auto setRegisters = [&](int64_t count, NVVM::SetMaxRegisterAction action) {
    if (registers.areMoved)
      NVVM::SetMaxRegisterOp::create(b, static_cast<uint32_t>(count), action);
  };
  Value multiplies = compare(b, arith::CmpIPredicate::ult, thread.uniformWarp,
                             constant(layout.consumerWarps()));
  auto ifOp = scf::IfOp::create(b, multiplies, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  setRegisters(registers.consumer, NVVM::SetMaxRegisterAction::increase);
  if (failed(emitConsumers()))
    return failure();
  b.setInsertionPointToStart(ifOp.elseBlock());
  setRegisters(registers.producer, NVVM::SetMaxRegisterAction::decrease);
  return emitProducers();
}

LogicalResult Pipeline::emitConsumers() {
  if (layout.consumerSets == 1)
    return forEach([&](WgmmaTileEmitter &tile, StagePhase at, Value) {
      return tile.consume(barriers, at);
    });
  Value set = arith::DivUIOp::create(b, thread.uniformWarp,
                                     constant(layout.warpsOfSet()));
  return forEach([&](WgmmaTileEmitter &tile, StagePhase at, Value number) {
    return emitPingPong(tile, at, number, set);
  });
}

/// Tiles of even numbers are set 0's, the others set 1's. Slices of k may have
/// other numbers of steps than their neighbours, so a set asks each tile that
/// it skips for its own.
StagePhase Pipeline::emitPingPong(WgmmaTileEmitter &tile, StagePhase at,
                                  Value number, Value set) {
  Value one = constant(1);
  Value isOwn = compare(b, arith::CmpIPredicate::eq,
                        arith::AndIOp::create(b, number, one), set);
  auto ifOp =
      scf::IfOp::create(b, TypeRange{b.getI32Type(), b.getI32Type()}, isOwn,
                        /*withElseRegion=*/true);
  auto emitBranch = [&](Block *block, llvm::function_ref<StagePhase()> emit) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    StagePhase then = emit();
    scf::YieldOp::create(b, ValueRange{then.stage, then.parity});
  };
  emitBranch(ifOp.thenBlock(), [&] {
    // Tile t waits for phase (t + 1) / 2 - 1 of its set's barrier, the first
    // one for none.
    Value phase = arith::ShRUIOp::create(
        b, arith::AddIOp::create(b, number, constant(3)), one);
    return tile.consume(
        barriers, at, PingPongTurn{set, arith::AndIOp::create(b, phase, one)});
  });
  emitBranch(ifOp.elseBlock(), [&] { return tile.skip(barriers, at); });
  return {ifOp.getResult(0), ifOp.getResult(1)};
}

LogicalResult Pipeline::emitProducers() {
  if (!layout.usesTma)
    return forEach([&](WgmmaTileEmitter &tile, StagePhase at, Value) {
      tile.produceByThreads(barriers);
      return at;
    });
  LogicalResult result = success();
  emitIf(b, thread.actsFor(b, layout.consumerWarps()), [&] {
    result = forEach([&](WgmmaTileEmitter &tile, StagePhase at, Value) {
      return tile.produceByMaps(barriers, at);
    });
  });
  return result;
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

StagePhase WgmmaTileEmitter::consume(StageBarriers &barriers, StagePhase first,
                                     std::optional<PingPongTurn> turn) {
  prepareMatrices();
  Values initial = initialSums();
  size_t numSums = initial.size();
  llvm::append_values(initial, first.stage, first.parity, /*before=*/
                      first.stage);
  Value steps = emitSteps();
  Value number =
      b.createOrFold<arith::IndexCastOp>(b.getI32Type(), thread.lane);
  auto release = [&](Value exists, Value stage) {
    emitIf(b, exists,
           [&] { barriers.arriveInCluster(barriers.empty(stage), number); });
  };
  if (turn)
    barriers.awaitTurn(turn->set, turn->parity);
  scf::ForOp loop = createLoop(b, Unrolling::Never, steps, 1, initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange state = loop.getRegionIterArgs();
    StagePhase at{state[numSums], state[numSums + 1]};
    Value before = state[numSums + 2];
    barriers.await(barriers.full(at.stage), at.parity);
    Values next = multiply(at.stage, Values(state.take_front(numSums)));
    NVVM::WgmmaWaitGroupSyncOp::create(b, 1);
    release(compare(b, arith::CmpIPredicate::ne, loop.getInductionVar(),
                    constant(0)),
            before);
    StagePhase then = barriers.next(at);
    llvm::append_values(next, then.stage, then.parity, at.stage);
    scf::YieldOp::create(b, next);
  }
  if (turn)
    barriers.endTurn(turn->set, number);
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
  ValueRange results = loop.getResults();
  // Nothing is copied behind the last tile.
  if (layout.isPersistent)
    release(compare(b, arith::CmpIPredicate::ne, steps, constant(0)),
            results[numSums + 2]);
  emitEpilogue(pinned(results.take_front(numSums)),
               /*hasAsynchronousCopies=*/false);
  return {results[numSums], results[numSums + 1]};
}

void WgmmaTileEmitter::produceByThreads(StageBarriers &barriers) {
  Copies copies =
      createCopies(math.sub(tile.threadId, layout.consumerThreads()));
  preparePackedRows();
  Value startsBulk = thread.actsFor(b, layout.consumerWarps());
  // Steps that copies run ahead of what is published.
  int64_t ahead = layout.copiesAhead();
  Value steps = emitSteps();
  StagePhase first = barriers.first();
  scf::ForOp loop = createLoop(
      b, Unrolling::Never, arith::AddIOp::create(b, steps, constant(ahead)), 1,
      {first.stage, first.parity, /*published=*/first.stage});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value step = loop.getInductionVar();
  StagePhase at{loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  Value published = loop.getRegionIterArg(2);
  emitIf(b, compare(b, arith::CmpIPredicate::ult, step, steps), [&] {
    barriers.awaitEmpty(at);
    Value stage = toIndex(b, at.stage);
    Value reduceOffset = math.mul(toIndex(b, step), layout.bk);
    if (layout.hasBulkCopies(1))
      emitIf(b, startsBulk, [&] { startCopies(barriers, at.stage, step); });
    copies.lhs.issueAsync(stage, reduceOffset);
    if (layout.copiesByThreads(1))
      copies.rhs.issueAsync(stage, reduceOffset);
  });
  // Also behind the last step, so that groups count steps.
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, ahead);
  Value publishes =
      compare(b, arith::CmpIPredicate::uge, step, constant(ahead));
  emitIf(b, publishes, [&] {
    fenceAsyncProxy(b);
    barriers.arrive(barriers.full(published));
  });
  StagePhase then = barriers.next(at);
  published = arith::SelectOp::create(b, publishes,
                                      barriers.nextStage(published), published);
  scf::YieldOp::create(b, {then.stage, then.parity, published});
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

void WgmmaTileEmitter::prepareMaps() {
  auto maps = wgmmaModel().tensorMaps(workload, tile.family, tile.part);
  for (auto [map, given] : llvm::zip_equal(maps, tile.tensorMaps)) {
    const Operand &operand = workload.operands[map.operand];
    unsigned factor = operand.role == OperandRole::Lhs ? 0 : 1;
    Boxes &of = boxes[factor];
    of.map = given.map;
    for (auto [number, dim] : llvm::enumerate(map.dims)) {
      unsigned axis = *operand.position(dim).asAxis();
      Value first = given.origin[number];
      if (axis == tile.axes.k) {
        of.reduce = number;
      } else if (!tile.axes.isBatch(axis)) {
        of.space = number;
        first =
            math.add(first, factor == 0 ? tile.rowOffset : tile.columnOffset);
      }
      of.origin.push_back(
          b.createOrFold<arith::IndexCastOp>(b.getI32Type(), first));
    }
  }
}

Value WgmmaTileEmitter::firstSharedRow(unsigned factor) {
  if (layout.sharersOf(factor) == 1)
    return {};
  return arith::MulIOp::create(
      b, arith::IndexCastUIOp::create(b, b.getI32Type(), tile.clusterRank),
      constant(layout.copiedRows(factor)));
}

WgmmaTileEmitter::Target
WgmmaTileEmitter::targetOf(unsigned factor, Value stage, Value firstRow) {
  Value offset =
      arith::MulIOp::create(b, stage, constant(layout.stageStrides[factor]));
  if (firstRow)
    offset = arith::AddIOp::create(
        b, offset,
        arith::MulIOp::create(b, firstRow, constant(kWgmmaRowBytes)));
  Value memory = stagesOf(factor);
  memory = LLVM::GEPOp::create(b, memory.getType(), b.getI8Type(), memory,
                               ValueRange{offset});
  if (!firstRow)
    return {memory, Value()};
  memory = LLVM::AddrSpaceCastOp::create(b, clusterPointerType(b.getContext()),
                                         memory);
  return {memory, arith::ConstantOp::create(
                      b, b.getI16IntegerAttr(static_cast<int16_t>(
                             (1 << layout.clusterBlocks()) - 1)))};
}

void WgmmaTileEmitter::startCopies(StageBarriers &barriers, Value stage,
                                   Value step) {
  Value full = barriers.full(stage);
  // What arrives at the block's own barrier, whichever block copies it.
  int64_t ofMaps = 0;
  for (unsigned factor : {0, 1})
    if (layout.hasTma(factor))
      ofMaps += layout.stageBytes(layout.tileOf(factor));
  Value bytes = constant(ofMaps);
  if (layout.hasBulkCopies(1))
    bytes = b.createOrFold<arith::AddIOp>(
        bytes, b.createOrFold<arith::MulIOp>(packedRows.ofCluster,
                                             constant(kWgmmaRowBytes)));
  NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), full, bytes,
                                         NVVM::MemScopeKind::CTA,
                                         /*relaxed=*/false,
                                         /*predicate=*/Value());
  for (unsigned factor : {0, 1}) {
    if (layout.hasTma(factor))
      startBoxes(factor, full, stage, step);
    else if (layout.hasBulkCopies(factor))
      startPackedRows(full, stage, step);
  }
}

void WgmmaTileEmitter::startBoxes(unsigned factor, Value full, Value stage,
                                  Value step) {
  const SharedTile &shared = layout.tileOf(factor);
  const Boxes &of = boxes[factor];
  Values first = of.origin;
  first[of.reduce] = b.createOrFold<arith::AddIOp>(
      first[of.reduce], arith::MulIOp::create(b, step, constant(layout.bk)));
  // The block's part of what both need.
  Value firstRow = firstSharedRow(factor);
  if (firstRow) {
    unsigned along = shared.reduceContiguous ? of.space : of.reduce;
    first[along] = b.createOrFold<arith::AddIOp>(first[along], firstRow);
  }
  Target target = targetOf(factor, stage, firstRow);
  int64_t rows = layout.boxRowsOf(factor);
  // From a box to the next: panels have rows of other blocks between.
  int64_t boxBytes =
      (shared.reduceContiguous ? rows : shared.outer) * kWgmmaRowBytes;
  for (int64_t box = 0; box < layout.boxesOf(factor); ++box) {
    Values coordinates = first;
    // Panels are neighbours along the contiguous axis.
    int64_t distance = shared.reduceContiguous ? rows : shared.pitch;
    if (box > 0)
      coordinates[of.space] = arith::AddIOp::create(b, coordinates[of.space],
                                                    constant(box * distance));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, offsetPointer(b, target.memory, box * boxBytes), of.map, coordinates,
        full, /*im2colOffsets=*/ValueRange(), target.blocks,
        /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
        /*isCTAOnly=*/!target.blocks, NVVM::CTAGroupKindAttr(),
        /*predicate=*/Value());
  }
}

//===----------------------------------------------------------------------===//
// Packed rows
//===----------------------------------------------------------------------===//

/// Rows are columns of the output. Beyond the extent, whose groups of eight are
/// whole, stages keep what they had, which is multiplied into columns that
/// nobody stores.
void WgmmaTileEmitter::preparePackedRows() {
  if (!layout.hasBulkCopies(1))
    return;
  PackedOrder order = workload.packedOrder();
  int64_t ofCluster = layout.tileOf(1).outer, ofBlock = layout.copiedRows(1);
  Value firstRow = packedRows.firstShared = firstSharedRow(1);
  if (tile.exact[tile.axes.n]) {
    packedRows.ofCluster = constant(ofCluster);
    packedRows.ofBlock = constant(ofBlock);
  } else {
    auto rowsFrom = [&](Value first, int64_t most) -> Value {
      Value left = arith::SubIOp::create(b, constant(order.n), first);
      left = arith::MaxSIOp::create(b, left, constant(0));
      return arith::MinSIOp::create(b, left, constant(most));
    };
    Value first =
        b.createOrFold<arith::IndexCastOp>(b.getI32Type(), tile.columnOffset);
    packedRows.ofCluster = rowsFrom(first, ofCluster);
    packedRows.ofBlock = packedRows.ofCluster;
    if (firstRow)
      packedRows.ofBlock =
          rowsFrom(arith::AddIOp::create(b, first, firstRow), ofBlock);
  }
  Value row = tile.columnOffset;
  if (firstRow)
    row = math.add(row, toIndex(b, firstRow));
  packedRows.first = offsetPointer(b, globalPointer(b, tile.rhs),
                                   math.mul(row, kWgmmaRowBytes));
  packedRows.stepBytes = order.stepStride() * order.elementBytes;
}

void WgmmaTileEmitter::startPackedRows(Value full, Value stage, Value step) {
  Target target = targetOf(1, stage, packedRows.firstShared);
  Value source = offsetPointer(
      b, packedRows.first, math.mul(toIndex(b, step), packedRows.stepBytes));
  Value bytes = b.createOrFold<arith::MulIOp>(packedRows.ofBlock,
                                              constant(kWgmmaRowBytes));
  auto copy = [&] {
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(b, target.memory, source,
                                                     full, bytes, target.blocks,
                                                     /*l2CacheHint=*/Value());
  };
  if (tile.exact[tile.axes.n])
    return copy();
  emitIf(b, compare(b, arith::CmpIPredicate::ne, bytes, constant(0)), copy);
}

//===----------------------------------------------------------------------===//
// Who starts them
//===----------------------------------------------------------------------===//

StagePhase WgmmaTileEmitter::produceByMaps(StageBarriers &barriers,
                                           StagePhase first) {
  prepareMaps();
  preparePackedRows();
  scf::ForOp loop = createLoop(b, Unrolling::Never, emitSteps(), 1,
                               {first.stage, first.parity});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  StagePhase at{loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  barriers.awaitEmpty(at);
  startCopies(barriers, at.stage, loop.getInductionVar());
  StagePhase then = barriers.next(at);
  scf::YieldOp::create(b, {then.stage, then.parity});
  return {loop.getResult(0), loop.getResult(1)};
}

void WgmmaTileEmitter::emitBesideMaps(StageBarriers &barriers) {
  prepareMaps();
  preparePackedRows();
  prepareMatrices();
  Value steps = emitSteps(), copies = thread.actsFor(b, 0);
  int64_t ahead = layout.stepsAhead();
  auto start = [&](Value stage, Value step) {
    Value exists = compare(b, arith::CmpIPredicate::ult, step, steps);
    emitIf(b, arith::AndIOp::create(b, exists, copies),
           [&] { startCopies(barriers, stage, step); });
  };
  for (int64_t step = 0; step < ahead; ++step)
    start(constant(step), constant(step));

  Values initial = initialSums();
  size_t numSums = initial.size();
  StagePhase first = barriers.first();
  llvm::append_values(initial, first.stage, first.parity,
                      /*written=*/constant(ahead));
  scf::ForOp loop = createLoop(b, Unrolling::Never, steps, 1, initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange state = loop.getRegionIterArgs();
    StagePhase at{state[numSums], state[numSums + 1]};
    Value written = state[numSums + 2];
    barriers.await(barriers.full(at.stage), at.parity);
    // Everyone is behind the products of the step before the last one.
    gpu::BarrierOp::create(b);
    Values next = multiply(at.stage, Values(state.take_front(numSums)));
    start(written,
          arith::AddIOp::create(b, loop.getInductionVar(), constant(ahead)));
    NVVM::WgmmaWaitGroupSyncOp::create(b, 1);
    StagePhase then = barriers.next(at);
    llvm::append_values(next, then.stage, then.parity,
                        barriers.nextStage(written));
    scf::YieldOp::create(b, next);
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
  emitEpilogue(pinned(loop.getResults().take_front(numSums)),
               /*hasAsynchronousCopies=*/false);
}
