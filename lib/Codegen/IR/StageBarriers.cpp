//===- StageBarriers.cpp - Barriers of a pipeline's stages ----------------===//
#include "FTuner/Codegen/IR/StageBarriers.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/SharedTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ftuner;

void ftuner::fenceAsyncProxy(ImplicitLocOpBuilder &b) {
  NVVM::FenceProxyOp::create(
      b,
      NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

void ftuner::clusterBarrier(ImplicitLocOpBuilder &b, bool isRelaxed) {
  if (isRelaxed)
    NVVM::ClusterArriveRelaxedOp::create(b, /*aligned=*/UnitAttr());
  else
    NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
}

LLVM::LLVMPointerType ftuner::clusterPointerType(MLIRContext *context) {
  return LLVM::LLVMPointerType::get(
      context, static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
}

Value StageBarriers::constant(int64_t value) { return createI32(b, value); }

/// Empty barriers come behind full ones, and those of
/// ping-pong behind them.
Value StageBarriers::barrierOf(Value number, int64_t first) {
  Value bytes = b.createOrFold<arith::MulIOp>(number, constant(kBarrierBytes));
  Value pointer = LLVM::GEPOp::create(b, barriers.getType(), b.getI8Type(),
                                      barriers, ValueRange{bytes});
  if (first == 0)
    return pointer;
  return LLVM::GEPOp::create(
      b, barriers.getType(), b.getI8Type(), pointer,
      LLVM::GEPArg(static_cast<int32_t>(first * kBarrierBytes)));
}

void StageBarriers::initialize(int64_t arrivalsOfFull, int64_t arrivalsOfEmpty,
                               int64_t arrivalsOfTurn) {
  auto initializeOne = [&](Value barrier, Value arrivals) {
    NVVM::MBarrierInitOp::create(b, barrier, arrivals, /*predicate=*/Value());
  };
  Value ofFull = constant(arrivalsOfFull), ofEmpty = constant(arrivalsOfEmpty);
  for (int64_t stage = 0; stage < stages; ++stage) {
    initializeOne(full(constant(stage)), ofFull);
    initializeOne(empty(constant(stage)), ofEmpty);
  }
  if (arrivalsOfTurn)
    for (int64_t set : {0, 1})
      initializeOne(turnOf(constant(set)), constant(arrivalsOfTurn));
  NVVM::FenceMbarrierInitOp::create(b);
  fenceAsyncProxy(b);
}

StagePhase StageBarriers::first() { return {constant(0), constant(0)}; }

StagePhase StageBarriers::next(StagePhase at) {
  Value stage = arith::AddIOp::create(b, at.stage, constant(1));
  Value wraps = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, stage,
                                      constant(stages));
  stage = arith::SelectOp::create(b, wraps, constant(0), stage);
  if (!at.parity)
    return {stage, {}};
  Value flip = arith::ExtUIOp::create(b, b.getI32Type(), wraps);
  return {stage, arith::XOrIOp::create(b, at.parity, flip)};
}

StagePhase StageBarriers::after(StagePhase at, Value steps) {
  Value end = arith::AddIOp::create(b, at.stage, steps);
  Value rounds = arith::DivUIOp::create(b, end, constant(stages));
  Value stage = arith::SubIOp::create(
      b, end, arith::MulIOp::create(b, rounds, constant(stages)));
  Value flip = arith::AndIOp::create(b, rounds, constant(1));
  return {stage, arith::XOrIOp::create(b, at.parity, flip)};
}

void StageBarriers::await(Value barrier, Value parity) {
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  // An intrinsic: LLVM may duplicate the assembly of other waits.
  Value isOver = NVVM::MBarrierTryWaitOp::create(b, b.getI1Type(), barrier,
                                                 parity, /*ticks=*/Value(),
                                                 NVVM::MemScopeKind::CTA,
                                                 /*relaxed=*/false);
  Value goesOn = arith::XOrIOp::create(
      b, isOver, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  scf::ConditionOp::create(b, goesOn, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

void StageBarriers::awaitEmpty(StagePhase at) {
  await(empty(at.stage), arith::XOrIOp::create(b, at.parity, constant(1)));
}

void StageBarriers::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(b, b.getI64Type(), barrier, /*count=*/Value(),
                                 NVVM::MemScopeKind::CTA, /*relaxed=*/false);
}

void StageBarriers::arriveInCluster(Value barrier, Value lane) {
  Value isOne = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane,
                                      constant(clusterBlocks));
  emitIf(b, isOne, [&] {
    if (clusterBlocks == 1)
      return arrive(barrier);
    NVVM::MBarrierArriveOp::create(
        b, /*res=*/Type(),
        NVVM::MapaOp::create(b, clusterPointerType(b.getContext()), barrier,
                             lane),
        /*count=*/Value(), NVVM::MemScopeKind::CTA, /*relaxed=*/false);
  });
}

void StageBarriers::awaitTurn(Value set, Value parity) {
  await(turnOf(set), parity);
}

void StageBarriers::endTurn(Value set, Value lane) {
  // One lane speaks for a warp, all of which must be behind its wait.
  NVVM::SyncWarpOp::create(b, constant(-1));
  Value other = arith::XOrIOp::create(b, set, constant(1));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane, constant(0));
  emitIf(b, isFirst, [&] { arrive(turnOf(other)); });
}
