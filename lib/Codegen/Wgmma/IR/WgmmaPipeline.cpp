//===- WgmmaPipeline.cpp - Groups that copy and groups that multiply ------===//
//
// Barriers of stages order copies and products. Producers, which do nothing but
// copy, and consumers, which multiply, run at their own pace:
//
//   producer, each step:  wait until the stage is free; copy; publish an
//                         earlier step, whose copies have landed
//   consumer, each step:  wait until the stage is filled; multiply; wait for
//                         the products of the step before; free its stage
//
// With tensor maps one thread of the producers starts boxes, on which the
// barrier of a stage counts bytes; nothing is left to publish. Without
// producers that is a thread of those that multiply:
//
//   each step:  wait until the stage is filled; barrier of the block; multiply;
//               start step + stages − 2; wait for the products of the step
//               before
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

void WgmmaTileEmitter::ifTrue(Value condition,
                              llvm::function_ref<void()> body) {
  auto ifOp = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

static Value compare(ImplicitLocOpBuilder &b, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, predicate, lhs, rhs);
}

static Value toIndex(ImplicitLocOpBuilder &b, Value value) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), value);
}

Value WgmmaTileEmitter::emitSteps() {
  Value steps =
      math.div(math.add(tile.extents[Workload::kK], layout.bk - 1), layout.bk);
  return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), steps);
}

Value WgmmaTileEmitter::actsFor(int64_t warpNumber) {
  return arith::AndIOp::create(
      b,
      compare(b, arith::CmpIPredicate::eq, uniformWarp, constant(warpNumber)),
      isElected);
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

void WgmmaTileEmitter::emitPipeline() {
  isElected = NVVM::ElectSyncOp::create(b, b.getI1Type(), Value());

  StageBarriers barriers(
      b, sharedPointer(b, tile.sharedMemory, layout.barriersOffset()),
      layout.stages);
  if (layout.hasMaps)
    prepareMaps();
  // Of a stage that threads copy, all of them say that it is filled; one lane
  // of each warp that multiplies says that it is free.
  ifTrue(actsFor(0), [&] {
    barriers.initialize(layout.hasMaps ? 1 : layout.copyingThreads(),
                        layout.warps());
    if (boxes.empty())
      return;
    // Without steps an operand may have no elements, and no map then.
    ifTrue(compare(b, arith::CmpIPredicate::ne, emitSteps(), constant(0)), [&] {
      for (const Boxes &factor : boxes)
        NVVM::PrefetchOp::create(b, NVVM::PrefetchCacheLevelAttr(),
                                 NVVM::CacheEvictionPriorityAttr(), factor.map,
                                 /*predicate=*/Value(), /*tensormap=*/true,
                                 /*uniform=*/false, /*in_param_space=*/false);
    });
  });
  gpu::BarrierOp::create(b);
  if (layout.producers)
    return emitRoles(barriers);
  prepareMatrices();
  emitEpilogue(multiplyBesideMaps(barriers), /*hasAsynchronousCopies=*/false);
}

void WgmmaTileEmitter::emitRoles(StageBarriers &barriers) {
  // The model has found them.
  WgmmaRegisters registers =
      *wgmmaRegisters(toWorkload(tile.workload), tile.family);
  // What a block starts with follows from how many an SM is to hold.
  b.getInsertionBlock()
      ->getParent()
      ->getParentOfType<gpu::GPUFuncOp>()
      ->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                b.getI32IntegerAttr(static_cast<int32_t>(registers.blocks)));
  auto setRegisters = [&](int64_t count, NVVM::SetMaxRegisterAction action) {
    if (registers.areMoved)
      NVVM::SetMaxRegisterOp::create(b, static_cast<uint32_t>(count), action);
  };
  Value multiplies = compare(b, arith::CmpIPredicate::ult, uniformWarp,
                             constant(layout.warps()));
  auto ifOp = scf::IfOp::create(b, multiplies, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  setRegisters(registers.consumer, NVVM::SetMaxRegisterAction::increase);
  prepareMatrices();
  emitEpilogue(consume(barriers), /*hasAsynchronousCopies=*/false);
  b.setInsertionPointToStart(ifOp.elseBlock());
  setRegisters(registers.producer, NVVM::SetMaxRegisterAction::decrease);
  if (layout.hasMaps)
    produceByMaps(barriers);
  else
    produceByThreads(barriers);
}

Values WgmmaTileEmitter::consume(StageBarriers &barriers) {
  Values initial = initialSums();
  size_t numSums = initial.size();
  StagePhase first = barriers.first();
  llvm::append_values(initial, first.stage, first.parity, /*before=*/
                      first.stage);
  scf::ForOp loop = createLoop(b, Unrolling::Never, emitSteps(), 1, initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    ValueRange state = loop.getRegionIterArgs();
    StagePhase at{state[numSums], state[numSums + 1]};
    Value before = state[numSums + 2];
    barriers.await(barriers.filled(at.stage), at.parity);
    Values next = multiply(at.stage, Values(state.take_front(numSums)));
    NVVM::WgmmaWaitGroupSyncOp::create(b, 1);
    Value hasBefore = compare(b, arith::CmpIPredicate::ne,
                              loop.getInductionVar(), constant(0));
    Value isFirstLane = compare(
        b, arith::CmpIPredicate::eq,
        arith::IndexCastOp::create(b, b.getI32Type(), lane), constant(0));
    ifTrue(arith::AndIOp::create(b, hasBefore, isFirstLane),
           [&] { barriers.arrive(barriers.free(before)); });
    StagePhase then = barriers.next(at);
    llvm::append_values(next, then.stage, then.parity, at.stage);
    scf::YieldOp::create(b, next);
  }
  NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
  return pinned(loop.getResults().take_front(numSums));
}

void WgmmaTileEmitter::produceByThreads(StageBarriers &barriers) {
  Copies copies =
      createCopies(math.sub(tile.threadId, layout.multiplyingThreads()));
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
  ifTrue(compare(b, arith::CmpIPredicate::ult, step, steps), [&] {
    barriers.awaitFree(at);
    Value stage = toIndex(b, at.stage);
    Value reduceOffset = math.mul(toIndex(b, step), layout.bk);
    copies.lhs.issueAsync(stage, reduceOffset);
    copies.rhs.issueAsync(stage, reduceOffset);
  });
  // Also behind the last step, so that groups count steps.
  NVVM::CpAsyncCommitGroupOp::create(b);
  NVVM::CpAsyncWaitGroupOp::create(b, ahead);
  Value publishes =
      compare(b, arith::CmpIPredicate::uge, step, constant(ahead));
  ifTrue(publishes, [&] {
    fenceAsyncProxy(b);
    barriers.arrive(barriers.filled(published));
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
  Workload workload = toWorkload(tile.workload);
  auto maps = wgmmaModel().tensorMaps(workload, tile.family, tile.part);
  for (auto [factor, map] : llvm::enumerate(maps)) {
    const TensorMapOperand &given = tile.tensorMaps[factor];
    Boxes &of = boxes.emplace_back();
    of.map = given.map;
    for (auto [number, dim] : llvm::enumerate(map.dims)) {
      unsigned axis = *workload.operands[map.operand].position(dim).asAxis();
      Value first = given.origin[number];
      if (axis == Workload::kK) {
        of.reduce = number;
      } else if (axis < Workload::kFirstBatch) {
        of.space = number;
        first =
            math.add(first, factor == 0 ? tile.rowOffset : tile.columnOffset);
      }
      of.origin.push_back(
          b.createOrFold<arith::IndexCastOp>(b.getI32Type(), first));
    }
  }
}

void WgmmaTileEmitter::startBoxes(StageBarriers &barriers, Value stage,
                                  Value step) {
  Value filled = barriers.filled(stage);
  int64_t bytes =
      layout.stageBytes(layout.lhs()) + layout.stageBytes(layout.rhs());
  NVVM::MBarrierArriveExpectTxOp::create(
      b, /*res=*/Type(), filled, constant(bytes), NVVM::MemScopeKind::CTA,
      /*relaxed=*/false,
      /*predicate=*/Value());
  Value reduceOffset = arith::MulIOp::create(b, step, constant(layout.bk));
  for (unsigned factor : {0, 1}) {
    const SharedTile &shared = layout.tileOf(factor);
    const Boxes &of = boxes[factor];
    Values first = of.origin;
    first[of.reduce] =
        b.createOrFold<arith::AddIOp>(first[of.reduce], reduceOffset);
    Value memory = stagesOf(factor);
    memory = LLVM::GEPOp::create(
        b, memory.getType(), b.getI8Type(), memory,
        ValueRange{arith::MulIOp::create(b, stage,
                                         constant(layout.stageBytes(shared)))});
    int64_t rows = layout.boxRowsOf(shared);
    for (int64_t box = 0; box < layout.boxesOf(shared); ++box) {
      Values coordinates = first;
      // Panels are neighbours along the contiguous axis.
      int64_t distance = shared.reduceContiguous ? rows : shared.pitch;
      if (box > 0)
        coordinates[of.space] = arith::AddIOp::create(b, coordinates[of.space],
                                                      constant(box * distance));
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          b, offsetPointer(b, memory, box * rows * kWgmmaRowBytes), of.map,
          coordinates, filled, /*im2colOffsets=*/ValueRange(),
          /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
          NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(),
          /*predicate=*/Value());
    }
  }
}

void WgmmaTileEmitter::produceByMaps(StageBarriers &barriers) {
  ifTrue(actsFor(layout.warps()), [&] {
    StagePhase first = barriers.first();
    scf::ForOp loop = createLoop(b, Unrolling::Never, emitSteps(), 1,
                                 {first.stage, first.parity});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    StagePhase at{loop.getRegionIterArg(0), loop.getRegionIterArg(1)};
    barriers.awaitFree(at);
    startBoxes(barriers, at.stage, loop.getInductionVar());
    StagePhase then = barriers.next(at);
    scf::YieldOp::create(b, {then.stage, then.parity});
  });
}

Values WgmmaTileEmitter::multiplyBesideMaps(StageBarriers &barriers) {
  Value steps = emitSteps(), copies = actsFor(0);
  int64_t ahead = layout.stepsAhead();
  auto start = [&](Value stage, Value step) {
    Value exists = compare(b, arith::CmpIPredicate::ult, step, steps);
    ifTrue(arith::AndIOp::create(b, exists, copies),
           [&] { startBoxes(barriers, stage, step); });
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
    barriers.await(barriers.filled(at.stage), at.parity);
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
  return pinned(loop.getResults().take_front(numSums));
}
