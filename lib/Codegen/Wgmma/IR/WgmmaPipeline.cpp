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
// With bulk stores, consumers lay the results of a tile in shared memory and
// multiply the next tile while copies store them. They wait for these to have
// read shared memory before they lay down the next results, and before they
// end.
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
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "TmaCopies.h"
#include "WgmmaEmitter.h"
#include "WgmmaProducts.h"

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

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

namespace {
/// A turn of one of two sets of consumer warpgroups: the set's number, and the
/// parity of its barrier's phase that the turn waits for, both i32.
struct PingPongTurn {
  Value set, parity;
};
} // namespace

/// What consumer warpgroups do for a tile from a stage on, and, in ping-pong,
/// in a turn; returns the stage behind.
static StagePhase consume(const WgmmaTile &tile, StageBarriers &barriers,
                          StagePhase first,
                          std::optional<PingPongTurn> turn = std::nullopt) {
  ImplicitLocOpBuilder &b = tile.b;
  WgmmaProducts products(tile);
  Values initial = products.initialSums();
  size_t numSums = initial.size();
  llvm::append_values(initial, first.stage, first.parity, /*before=*/
                      first.stage);
  Value steps = tile.emitSteps();
  Value number =
      b.createOrFold<arith::IndexCastOp>(b.getI32Type(), tile.thread.lane);
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
    Values next =
        products.multiply(at.stage, Values(state.take_front(numSums)));
    products.wait(1);
    release(compare(b, arith::CmpIPredicate::ne, loop.getInductionVar(),
                    tile.constant(0)),
            before);
    StagePhase then = barriers.next(at);
    llvm::append_values(next, then.stage, then.parity, at.stage);
    scf::YieldOp::create(b, next);
  }
  if (turn)
    barriers.endTurn(turn->set, number);
  products.wait(0);
  ValueRange results = loop.getResults();
  // Nothing is copied behind the last tile.
  if (tile.layout.isPersistent)
    release(compare(b, arith::CmpIPredicate::ne, steps, tile.constant(0)),
            results[numSums + 2]);
  products.store(results.take_front(numSums),
                 /*hasAsynchronousCopies=*/false);
  return {results[numSums], results[numSums + 1]};
}

/// What producer warpgroups do that copy by all of their threads.
static void produceByThreads(const WgmmaTile &tile, StageBarriers &barriers) {
  ImplicitLocOpBuilder &b = tile.b;
  IndexMath math(b);
  const WgmmaLayout &layout = tile.layout;
  ThreadCopies copies(tile,
                      math.sub(tile.tile.threadId, layout.consumerThreads()));
  TmaCopies bulk(tile);
  Value startsBulk = tile.thread.actsFor(b, layout.consumerWarps());
  // Steps that copies run ahead of what is published.
  int64_t ahead = layout.copiesAhead();
  Value steps = tile.emitSteps();
  StagePhase first = barriers.first();
  scf::ForOp loop =
      createLoop(b, Unrolling::Never,
                 arith::AddIOp::create(b, steps, tile.constant(ahead)), 1,
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
      emitIf(b, startsBulk, [&] { bulk.start(barriers, at.stage, step); });
    copies.lhs.issueAsync(stage, reduceOffset);
    if (layout.copiesByThreads(1))
      copies.rhs.issueAsync(stage, reduceOffset);
  });
  // Also behind the last step, so that groups count steps.
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, ahead);
  Value publishes =
      compare(b, arith::CmpIPredicate::uge, step, tile.constant(ahead));
  emitIf(b, publishes, [&] {
    fenceAsyncProxy(b);
    barriers.arrive(barriers.full(published));
  });
  StagePhase then = barriers.next(at);
  published = arith::SelectOp::create(b, publishes,
                                      barriers.nextStage(published), published);
  scf::YieldOp::create(b, {then.stage, then.parity, published});
}

/// What the thread of the producers does that has boxes copied from a stage on;
/// returns the one behind.
static StagePhase produceByTma(const WgmmaTile &tile, StageBarriers &barriers,
                               StagePhase first) {
  ImplicitLocOpBuilder &b = tile.b;
  TmaCopies copies(tile);
  scf::ForOp loop = createLoop(b, Unrolling::Never, tile.emitSteps(), 1,
                               {first.stage, first.parity});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  StagePhase at{loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
  barriers.awaitEmpty(at);
  copies.start(barriers, at.stage, loop.getInductionVar());
  StagePhase then = barriers.next(at);
  scf::YieldOp::create(b, {then.stage, then.parity});
  return {loop.getResult(0), loop.getResult(1)};
}

/// What warpgroups do without warp specialization, of which one thread has
/// boxes copied.
static void multiplyBesideTma(const WgmmaTile &tile, StageBarriers &barriers) {
  ImplicitLocOpBuilder &b = tile.b;
  TmaCopies copies(tile);
  WgmmaProducts products(tile);
  Value steps = tile.emitSteps(), isCopying = tile.thread.actsFor(b, 0);
  int64_t ahead = tile.layout.stepsAhead();
  auto start = [&](Value stage, Value step) {
    Value exists = compare(b, arith::CmpIPredicate::ult, step, steps);
    emitIf(b, arith::AndIOp::create(b, exists, isCopying),
           [&] { copies.start(barriers, stage, step); });
  };
  for (int64_t step = 0; step < ahead; ++step)
    start(tile.constant(step), tile.constant(step));

  Values initial = products.initialSums();
  size_t numSums = initial.size();
  StagePhase first = barriers.first();
  llvm::append_values(initial, first.stage, first.parity,
                      /*written=*/tile.constant(ahead));
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
    Values next =
        products.multiply(at.stage, Values(state.take_front(numSums)));
    start(written, arith::AddIOp::create(b, loop.getInductionVar(),
                                         tile.constant(ahead)));
    products.wait(1);
    StagePhase then = barriers.next(at);
    llvm::append_values(next, then.stage, then.parity,
                        barriers.nextStage(written));
    scf::YieldOp::create(b, next);
  }
  products.wait(0);
  products.store(loop.getResults().take_front(numSums),
                 /*hasAsynchronousCopies=*/false);
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
  StagePhase emitPingPong(const WgmmaTile &tile, StagePhase at, Value number,
                          Value set);
  /// Emits `body` for each tile; it takes and returns the stage to go on with,
  /// and takes the tile's number among those of the block, an i32.
  using Body =
      llvm::function_ref<StagePhase(const WgmmaTile &, StagePhase, Value)>;
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
    return forEach([&](const WgmmaTile &tile, StagePhase at, Value) {
      multiplyBesideTma(tile, barriers);
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
    WgmmaTile wgmma(b, tile, thread);
    if (state.empty()) {
      body(wgmma, first, zero);
      return Values();
    }
    Value number = state[2];
    StagePhase next = body(wgmma, {state[0], state[1]}, number);
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
  Value set;
  if (layout.consumerSets > 1)
    set = arith::DivUIOp::create(b, thread.uniformWarp,
                                 constant(layout.warpsOfSet()));
  LogicalResult result =
      forEach([&](const WgmmaTile &tile, StagePhase at, Value number) {
        return set ? emitPingPong(tile, at, number, set)
                   : consume(tile, barriers, at);
      });
  if (layout.bulkElementBytes > 0)
    FragmentEpilogue::awaitBulkCopies(b);
  return result;
}

/// Tiles of even numbers are set 0's, the others set 1's. Slices of k may have
/// other numbers of steps than their neighbours, so a set asks each tile that
/// it skips for its own.
StagePhase Pipeline::emitPingPong(const WgmmaTile &tile, StagePhase at,
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
    return consume(tile, barriers, at,
                   PingPongTurn{set, arith::AndIOp::create(b, phase, one)});
  });
  emitBranch(ifOp.elseBlock(), [&] { // Another set multiplies it.
    return barriers.after(at, tile.emitSteps());
  });
  return {ifOp.getResult(0), ifOp.getResult(1)};
}

LogicalResult Pipeline::emitProducers() {
  if (!layout.usesTma)
    return forEach([&](const WgmmaTile &tile, StagePhase at, Value) {
      produceByThreads(tile, barriers);
      return at;
    });
  LogicalResult result = success();
  emitIf(b, thread.actsFor(b, layout.consumerWarps()), [&] {
    result = forEach([&](const WgmmaTile &tile, StagePhase at, Value) {
      return produceByTma(tile, barriers, at);
    });
  });
  return result;
}
