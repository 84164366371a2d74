//===- ConvertBulkCopies.cpp - Copies of whole ranges and boxes -----------===//
#include "KernelConverter.h"

using namespace mlir;
using namespace ftuner::emulator;

void KernelConverter::issueLoad(Operation *op, StringRef toOne,
                                StringRef toSeveral,
                                SmallVector<Value> &arguments, Value mask) {
  OpBuilder builder(op);
  if (mask)
    arguments.push_back(
        LLVM::ZExtOp::create(builder, op->getLoc(), i32Type, mask));
  arguments.push_back(site(op));
  callRuntime(op, mask ? toSeveral : toOne, voidType, arguments);
}

LogicalResult KernelConverter::convertTensorLoad(
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
  if (op.getMode() != NVVM::TMALoadMode::TILE || op.getGroup())
    return op.emitError("no emulation rule for ")
           << op->getName() << " other than of tiles";
  if (Value predicate = op.getPredicate())
    guard(op, predicate);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<Value> coordinates(op.getCoordinates());
  SmallVector<Value> arguments{
      op.getDstMem(), op.getTmaDescriptor(), storeRegisters(op, coordinates),
      i32(builder, loc, int64_t(coordinates.size())), op.getMbar()};
  issueLoad(op, "ftuner_emulator_tensor_load",
            "ftuner_emulator_tensor_multicast", arguments,
            op.getMulticastMask());
  op.erase();
  return success();
}

LogicalResult KernelConverter::convertTensorStore(
    NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op) {
  if (op.getMode() != NVVM::TMAStoreMode::TILE)
    return op.emitError("no emulation rule for ")
           << op->getName() << " other than of tiles";
  if (Value predicate = op.getPredicate())
    guard(op, predicate);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<Value> coordinates(op.getCoordinates());
  callRuntime(op, "ftuner_emulator_tensor_store", voidType,
              {op.getTmaDescriptor(), op.getSrcMem(),
               storeRegisters(op, coordinates),
               i32(builder, loc, int64_t(coordinates.size())), site(op)});
  op.erase();
  return success();
}

std::optional<LogicalResult> KernelConverter::convertBulkOp(Operation *op) {
  if (auto load = dyn_cast<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(op))
    return convertTensorLoad(load);
  if (auto store = dyn_cast<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(op))
    return convertTensorStore(store);
  OpBuilder builder(op);
  Location loc = op->getLoc();
  if (auto load = dyn_cast<NVVM::CpAsyncBulkGlobalToSharedClusterOp>(op)) {
    SmallVector<Value> arguments{load.getDstMem(), load.getSrcMem(),
                                 load.getSize(), load.getMbar()};
    issueLoad(op, "ftuner_emulator_bulk_load", "ftuner_emulator_bulk_multicast",
              arguments, load.getMulticastMask());
  } else if (auto copy =
                 dyn_cast<NVVM::CpAsyncBulkSharedCTAToSharedClusterOp>(op)) {
    callRuntime(op, "ftuner_emulator_cluster_copy", voidType,
                {copy.getDstMem(), copy.getSrcMem(), copy.getSize(),
                 copy.getMbar(), site(op)});
  } else if (auto store = dyn_cast<NVVM::CpAsyncBulkSharedCTAToGlobalOp>(op)) {
    if (store.getByteMask())
      return LogicalResult(op->emitError("no emulation rule for ")
                           << op->getName() << " with a byte mask");
    callRuntime(
        op, "ftuner_emulator_bulk_store", voidType,
        {store.getDstMem(), store.getSrcMem(), store.getSize(), site(op)});
  } else if (isa<NVVM::CpAsyncBulkCommitGroupOp>(op)) {
    callRuntime(op, "ftuner_emulator_bulk_commit", voidType, {});
  } else if (auto wait = dyn_cast<NVVM::CpAsyncBulkWaitGroupOp>(op)) {
    callRuntime(op, "ftuner_emulator_bulk_wait", voidType,
                {i32(builder, loc, wait.getGroup()),
                 i32(builder, loc, wait.getRead().value_or(false))});
  } else if (!isa<NVVM::CpAsyncBulkPrefetchOp,
                  NVVM::CpAsyncBulkTensorPrefetchOp, NVVM::FenceProxyAcquireOp,
                  NVVM::FenceProxyReleaseOp>(op)) {
    // Prefetches and fences of maps have nothing to do.
    return std::nullopt;
  }
  op->erase();
  return success();
}
