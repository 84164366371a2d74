//===- ConvertMbarrierOps.cpp - Mbarriers and registers -------------------===//
#include "Barriers/Mbarrier.h"
#include "KernelConverter.h"

using namespace mlir;
using namespace ftuner::emulator;

/// Converts arrivals, with and without bytes, and changes of only the bytes.
LogicalResult KernelConverter::convertArrival(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value address = op->getOperand(0), count, bytes;
  uint32_t options = 0;
  bool isRelaxed = false, isNegative = false;
  if (auto arrive = dyn_cast<NVVM::MBarrierArriveOp>(op)) {
    count = arrive.getCount();
    isRelaxed = arrive.getRelaxed();
  } else if (auto arrive = dyn_cast<NVVM::MBarrierArriveDropOp>(op)) {
    count = arrive.getCount();
    isRelaxed = arrive.getRelaxed();
    options |= kDroppedArrival;
  } else if (auto arrive = dyn_cast<NVVM::MBarrierArriveNocompleteOp>(op)) {
    count = arrive.getCount();
    options |= kNoCompletion;
  } else if (auto arrive = dyn_cast<NVVM::MBarrierArriveDropNocompleteOp>(op)) {
    count = arrive.getCount();
    options |= kNoCompletion | kDroppedArrival;
  } else if (auto arrive = dyn_cast<NVVM::MBarrierArriveExpectTxOp>(op)) {
    bytes = arrive.getTxcount();
    isRelaxed = arrive.getRelaxed();
    if (Value predicate = arrive.getPredicate()) {
      if (op->getNumResults() != 0)
        return op->emitError("no emulation rule for ")
               << op->getName() << " with a predicate and a result";
      guard(op, predicate);
      builder.setInsertionPoint(op);
    }
  } else if (auto arrive = dyn_cast<NVVM::MBarrierArriveDropExpectTxOp>(op)) {
    bytes = arrive.getTxcount();
    isRelaxed = arrive.getRelaxed();
    options |= kDroppedArrival;
  } else if (auto expect = dyn_cast<NVVM::MBarrierExpectTxOp>(op)) {
    bytes = expect.getTxcount();
    options |= kBytesWithoutOne;
  } else {
    bytes = cast<NVVM::MBarrierCompleteTxOp>(op).getTxcount();
    options |= kBytesWithoutOne;
    isNegative = true;
  }
  if (isRelaxed)
    options |= kRelaxedArrival;
  if (!count)
    count = i32(builder, loc, 1);
  bytes = bytes ? LLVM::ZExtOp::create(builder, loc, i64Type, bytes).getResult()
                : i64(builder, loc, 0);
  if (isNegative)
    bytes = LLVM::SubOp::create(builder, loc, i64(builder, loc, 0), bytes);
  LLVM::CallOp call = callRuntime(
      op, "ftuner_emulator_mbarrier_arrive", i64Type,
      {address, count, bytes, i32(builder, loc, options), site(op)});
  if (op->getNumResults() == 1)
    op->getResult(0).replaceAllUsesWith(call.getResult());
  op->erase();
  return success();
}

LogicalResult KernelConverter::convertMbarrierWait(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  uint32_t kind = kTestWait;
  Value address = op->getOperand(0), phase = op->getOperand(1);
  bool isRelaxed = false;
  if (auto wait = dyn_cast<NVVM::MBarrierTestWaitOp>(op)) {
    isRelaxed = wait.getRelaxed();
  } else if (auto wait = dyn_cast<NVVM::MBarrierTryWaitOp>(op)) {
    isRelaxed = wait.getRelaxed();
    kind = kTryWait;
  } else {
    kind = kLoopWait;
  }
  if (isRelaxed)
    kind |= kRelaxedWait;
  if (phase.getType() == i64Type)
    kind |= kStateWait;
  else
    phase = LLVM::ZExtOp::create(builder, loc, i64Type, phase);
  LLVM::CallOp call =
      callRuntime(op, "ftuner_emulator_mbarrier_wait", i32Type,
                  {address, phase, i32(builder, loc, kind), site(op)});
  if (op->getNumResults() == 1)
    op->getResult(0).replaceAllUsesWith(LLVM::TruncOp::create(
        builder, loc, builder.getI1Type(), call.getResult()));
  op->erase();
  return success();
}

/// The registers of a thread with which ptxas lets `kernel` begin: what it
/// states, or as many as there are for its threads; 0 where its threads are
/// unknown.
static uint32_t getRegistersAtEntry(LLVM::LLVMFuncOp kernel) {
  constexpr int64_t kRegisters = 65536, kMax = 256, kUnit = 8;
  auto getNumber = [&](StringRef name) -> int64_t {
    auto attribute = kernel->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : 0;
  };
  if (int64_t stated = getNumber("nvvm.maxnreg"))
    return static_cast<uint32_t>(stated / kUnit * kUnit);
  for (StringRef name :
       {"nvvm.reqntid", "nvvm.maxntid", "gpu.known_block_size"}) {
    auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(name);
    if (!sizes)
      continue;
    int64_t threads = std::max<int64_t>(getNumber("nvvm.minctasm"), 1);
    for (int32_t size : sizes.asArrayRef())
      threads *= std::max(size, 1);
    return static_cast<uint32_t>(std::min(kRegisters / threads, kMax) / kUnit *
                                 kUnit);
  }
  return 0;
}

LogicalResult KernelConverter::convertSetRegisters(NVVM::SetMaxRegisterOp op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  uint32_t atEntry = getRegistersAtEntry(function);
  if (atEntry == 0)
    return op.emitError("expected nvvm.maxntid, nvvm.reqntid or nvvm.maxnreg "
                        "on a kernel that changes its registers");
  OpBuilder builder(op);
  Location loc = op.getLoc();
  bool isIncrease = op.getAction() == NVVM::SetMaxRegisterAction::increase;
  callRuntime(op, "ftuner_emulator_set_registers", voidType,
              {i32(builder, loc, op.getRegCount()),
               i32(builder, loc, isIncrease), i32(builder, loc, atEntry),
               site(op)});
  op.erase();
  return success();
}

LogicalResult KernelConverter::convertClusterBarrier(Operation *op) {
  OpBuilder builder(op);
  if (isa<NVVM::ClusterWaitOp>(op)) {
    callRuntime(op, "ftuner_emulator_cluster_wait", voidType, {site(op)});
  } else {
    uint32_t options = 0;
    if (isa<NVVM::ClusterArriveRelaxedOp>(op))
      options |= kRelaxedClusterArrival;
    if (op->hasAttr("aligned"))
      options |= kAlignedClusterArrival;
    callRuntime(op, "ftuner_emulator_cluster_arrive", voidType,
                {i32(builder, op->getLoc(), options), site(op)});
  }
  op->erase();
  return success();
}

std::optional<LogicalResult> KernelConverter::convertMbarrierOp(Operation *op) {
  if (isa<NVVM::MBarrierArriveOp, NVVM::MBarrierArriveDropOp,
          NVVM::MBarrierArriveNocompleteOp,
          NVVM::MBarrierArriveDropNocompleteOp, NVVM::MBarrierArriveExpectTxOp,
          NVVM::MBarrierArriveDropExpectTxOp, NVVM::MBarrierExpectTxOp,
          NVVM::MBarrierCompleteTxOp>(op))
    return convertArrival(op);
  if (isa<NVVM::MBarrierTestWaitOp, NVVM::MBarrierTryWaitOp,
          NVVM::MBarrierTryWaitParityOp>(op))
    return convertMbarrierWait(op);
  if (auto set = dyn_cast<NVVM::SetMaxRegisterOp>(op))
    return convertSetRegisters(set);
  if (isa<NVVM::ClusterArriveOp, NVVM::ClusterArriveRelaxedOp,
          NVVM::ClusterWaitOp>(op))
    return convertClusterBarrier(op);
  OpBuilder builder(op);
  if (auto init = dyn_cast<NVVM::MBarrierInitOp>(op)) {
    if (Value predicate = init.getPredicate())
      guard(op, predicate);
    callRuntime(op, "ftuner_emulator_mbarrier_init", voidType,
                {init.getAddr(), init.getCount(), site(op)});
  } else if (auto invalidate = dyn_cast<NVVM::MBarrierInvalOp>(op)) {
    callRuntime(op, "ftuner_emulator_mbarrier_inval", voidType,
                {invalidate.getAddr(), site(op)});
  } else if (isa<NVVM::FenceMbarrierInitOp>(op)) {
    callRuntime(op, "ftuner_emulator_mbarrier_fence", voidType, {});
  } else if (auto track = dyn_cast<NVVM::CpAsyncMBarrierArriveOp>(op)) {
    callRuntime(op, "ftuner_emulator_mbarrier_track_copies", voidType,
                {track.getAddr(), i32(builder, op->getLoc(), !track.getNoinc()),
                 site(op)});
  } else {
    return std::nullopt;
  }
  op->erase();
  return success();
}

/// Returns whether `op` orders some threads of a block but not all.
static bool ordersInPart(Operation *op) {
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op))
    return bool(barrier.getNumberOfThreads());
  return isa<NVVM::BarrierArriveOp, NVVM::MBarrierInitOp, NVVM::ClusterArriveOp,
             NVVM::ClusterArriveRelaxedOp>(op);
}

bool ftuner::emulator::hasPartialOrder(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return ordersInPart(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}
