//===- ConvertNVVMOps.cpp - Rules for operations of the NVVM dialect ------===//
#include "Fibers/Fiber.h"
#include "KernelConverter.h"
#include "llvm/ADT/StringMap.h"
#include <cstddef>

using namespace mlir;
using namespace ftuner::emulator;

/// Offset in ThreadRegisters of a special register, by its name in PTX.
static std::optional<size_t> findRegister(StringRef name) {
  auto element = [](size_t base, unsigned index) {
    return base + index * sizeof(uint32_t);
  };
#define DIMS(name, member)                                                     \
  {name ".x", element(offsetof(ThreadRegisters, member), 0)},                  \
      {name ".y", element(offsetof(ThreadRegisters, member), 1)}, {            \
    name ".z", element(offsetof(ThreadRegisters, member), 2)                   \
  }
  static const llvm::StringMap<size_t> registers = {
      DIMS("tid", threadId),
      DIMS("ntid", blockDim),
      DIMS("ctaid", blockId),
      DIMS("nctaid", gridDim),
      DIMS("clusterid", clusterId),
      DIMS("nclusterid", clusterGrid),
      DIMS("cluster.ctaid", blockInCluster),
      DIMS("cluster.nctaid", clusterDim),
      {"cluster.ctarank", offsetof(ThreadRegisters, clusterRank)},
      {"cluster.nctarank", offsetof(ThreadRegisters, clusterSize)},
      {"laneid", offsetof(ThreadRegisters, laneId)},
      {"warpid", offsetof(ThreadRegisters, warpId)},
      {"nwarpid", offsetof(ThreadRegisters, warpCount)},
      {"warpsize", offsetof(ThreadRegisters, warpSize)},
      {"lanemask.eq", element(offsetof(ThreadRegisters, laneMasks), 0)},
      {"lanemask.le", element(offsetof(ThreadRegisters, laneMasks), 1)},
      {"lanemask.lt", element(offsetof(ThreadRegisters, laneMasks), 2)},
      {"lanemask.ge", element(offsetof(ThreadRegisters, laneMasks), 3)},
      {"lanemask.gt", element(offsetof(ThreadRegisters, laneMasks), 4)},
      {"dynamic_smem_size", offsetof(ThreadRegisters, dynamicSharedBytes)},
  };
#undef DIMS
  auto it = registers.find(name);
  if (it == registers.end())
    return std::nullopt;
  return it->second;
}

bool KernelConverter::convertSpecialRegister(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("nvvm.read.ptx.sreg."))
    return false;
  std::optional<size_t> offset = findRegister(name);
  if (!offset || op->getNumResults() != 1 ||
      op->getResult(0).getType() != i32Type)
    return false;
  op->getResult(0).replaceAllUsesWith(loadRegister(op, *offset, i32Type));
  op->erase();
  return true;
}

LogicalResult KernelConverter::convertBarrier(Operation *op) {
  OpBuilder builder(op);
  Value id;
  Value threads;
  bool waits = true;
  if (auto barrier = dyn_cast<NVVM::BarrierArriveOp>(op)) {
    id = barrier.getBarrierId();
    threads = barrier.getNumberOfThreads();
    waits = false;
  }
  if (auto barrier = dyn_cast<NVVM::BarrierOp>(op)) {
    threads = barrier.getNumberOfThreads();
    if (barrier.getReductionOp())
      return op->emitError("no emulation rule for ")
             << op->getName() << " with a reduction";
    id = barrier.getBarrierId();
  }
  if (!id)
    id = i32(builder, op->getLoc(), 0);
  if (threads)
    callRuntime(op, "ftuner_emulator_named_barrier", voidType,
                {id, threads, i32(builder, op->getLoc(), waits), site(op)});
  else
    callRuntime(op, "ftuner_emulator_barrier", voidType, {id, site(op)});
  op->erase();
  return success();
}

/// The value of `result` of a collective, in the op's own result type.
static Value convertResult(OpBuilder &builder, Location loc, Value result,
                           Type type) {
  auto narrow = [&](Value value, Type to) -> Value {
    unsigned width = to.getIntOrFloatBitWidth();
    Type integer = IntegerType::get(builder.getContext(), width);
    value = LLVM::TruncOp::create(builder, loc, integer, value);
    return to == integer ? value
                         : LLVM::BitcastOp::create(builder, loc, to, value);
  };
  auto record = dyn_cast<LLVM::LLVMStructType>(type);
  if (!record)
    return narrow(result, type);
  Value shift = LLVM::ConstantOp::create(builder, loc, result.getType(),
                                         builder.getI64IntegerAttr(32));
  Value high = LLVM::LShrOp::create(builder, loc, result, shift);
  Value both = LLVM::PoisonOp::create(builder, loc, type);
  SmallVector<Value> parts{narrow(result, record.getBody()[0]),
                           narrow(high, record.getBody()[1])};
  for (auto [i, part] : llvm::enumerate(parts))
    both = LLVM::InsertValueOp::create(builder, loc, both, part,
                                       ArrayRef<int64_t>{int64_t(i)});
  return both;
}

LogicalResult KernelConverter::convertWarpOp(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value zero = i32(builder, loc, 0);
  WarpOp kind = WarpOp::Sync;
  Value mask, value = zero, offset = zero, clamp = zero;
  if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
    switch (shuffle.getKind()) {
    case NVVM::ShflKind::bfly:
      kind = WarpOp::ShuffleXor;
      break;
    case NVVM::ShflKind::up:
      kind = WarpOp::ShuffleUp;
      break;
    case NVVM::ShflKind::down:
      kind = WarpOp::ShuffleDown;
      break;
    case NVVM::ShflKind::idx:
      kind = WarpOp::ShuffleIndex;
      break;
    }
    mask = shuffle.getThreadMask();
    value = shuffle.getVal();
    if (value.getType() != i32Type)
      value = LLVM::BitcastOp::create(builder, loc, i32Type, value);
    offset = shuffle.getOffset();
    clamp = shuffle.getMaskAndClamp();
  } else if (auto vote = dyn_cast<NVVM::VoteSyncOp>(op)) {
    switch (vote.getKind()) {
    case NVVM::VoteSyncKind::any:
      kind = WarpOp::VoteAny;
      break;
    case NVVM::VoteSyncKind::all:
      kind = WarpOp::VoteAll;
      break;
    case NVVM::VoteSyncKind::ballot:
      kind = WarpOp::VoteBallot;
      break;
    case NVVM::VoteSyncKind::uni:
      kind = WarpOp::VoteUniform;
      break;
    }
    mask = vote.getMask();
    value = LLVM::ZExtOp::create(builder, loc, i32Type, vote.getPred());
  } else if (auto elect = dyn_cast<NVVM::ElectSyncOp>(op)) {
    kind = WarpOp::Elect;
    mask =
        elect.getMembermask() ? elect.getMembermask() : i32(builder, loc, -1);
  } else {
    mask = cast<NVVM::SyncWarpOp>(op).getMask();
  }
  LLVM::CallOp call =
      callRuntime(op, "ftuner_emulator_warp_op", i64Type,
                  {i32(builder, loc, static_cast<uint32_t>(kind)), mask, value,
                   offset, clamp, site(op)});
  if (op->getNumResults() == 1)
    op->getResult(0).replaceAllUsesWith(convertResult(
        builder, loc, call.getResult(), op->getResult(0).getType()));
  op->erase();
  return success();
}

void KernelConverter::guard(Operation *op, Value predicate) {
  Block *before = op->getBlock();
  Block *guarded = before->splitBlock(op);
  Block *after = guarded->splitBlock(op->getNextNode());
  OpBuilder builder = OpBuilder::atBlockEnd(before);
  LLVM::CondBrOp::create(builder, op->getLoc(), predicate, guarded, after);
  builder.setInsertionPointToEnd(guarded);
  LLVM::BrOp::create(builder, op->getLoc(), after);
}

LogicalResult KernelConverter::convertNVVMOp(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  if (convertSpecialRegister(op))
    return success();
  if (isa<NVVM::Barrier0Op, NVVM::BarrierOp, NVVM::BarrierArriveOp>(op))
    return convertBarrier(op);
  if (isa<NVVM::ShflOp, NVVM::VoteSyncOp, NVVM::SyncWarpOp, NVVM::ElectSyncOp>(
          op))
    return convertWarpOp(op);
  if (std::optional<LogicalResult> result = convertMbarrierOp(op))
    return *result;
  if (std::optional<LogicalResult> result = convertBulkOp(op))
    return *result;
  if (auto mma = dyn_cast<NVVM::MmaOp>(op))
    return convertMma(mma);
  if (isa<NVVM::LdMatrixOp, NVVM::StMatrixOp>(op))
    return convertMatrixCopy(op);
  if (auto convert = dyn_cast<NVVM::ConvertFloatToTF32Op>(op))
    return convertToTF32(convert);
  if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op)) {
    Value bytes = i32(builder, loc, copy.getSize());
    Value sourceBytes = copy.getCpSize() ? copy.getCpSize() : bytes;
    callRuntime(op, "ftuner_emulator_copy_async", voidType,
                {copy.getDst(), copy.getSrc(), bytes, sourceBytes, site(op)});
  } else if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
    callRuntime(op, "ftuner_emulator_copy_commit", voidType, {});
  } else if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
    callRuntime(op, "ftuner_emulator_copy_wait", voidType,
                {i32(builder, loc, wait.getN())});
  } else if (isa<NVVM::WgmmaFenceAlignedOp>(op)) {
    callRuntime(op, "ftuner_emulator_product_fence", voidType, {});
  } else if (isa<NVVM::WgmmaGroupSyncAlignedOp>(op)) {
    callRuntime(op, "ftuner_emulator_product_commit", voidType, {});
  } else if (auto wait = dyn_cast<NVVM::WgmmaWaitGroupSyncOp>(op)) {
    callRuntime(
        op, "ftuner_emulator_product_wait", voidType,
        {i32(builder, loc, static_cast<int64_t>(wait.getGroup())), site(op)});
  } else if (auto fence = dyn_cast<NVVM::FenceProxyOp>(op)) {
    if (fence.getKind() == NVVM::ProxyKind::async ||
        fence.getKind() == NVVM::ProxyKind::async_shared)
      callRuntime(op, "ftuner_emulator_proxy_fence", voidType, {});
  } else if (auto reciprocal = dyn_cast<NVVM::RcpApproxFtzF32Op>(op)) {
    Type type = reciprocal.getType();
    Value one = LLVM::ConstantOp::create(builder, loc, type,
                                         builder.getFloatAttr(type, 1.0));
    reciprocal.replaceAllUsesWith(
        LLVM::FDivOp::create(builder, loc, type, one, reciprocal.getArg())
            .getResult());
  } else if (auto map = dyn_cast<NVVM::MapaOp>(op)) {
    LLVM::CallOp call =
        callRuntime(op, "ftuner_emulator_map_address", pointerType,
                    {map.getA(), map.getB(), site(op)});
    map.replaceAllUsesWith(call.getResult());
  } else if (!isa<NVVM::MembarOp, NVVM::FenceScClusterOp, NVVM::PrefetchOp>(
                 op)) {
    // Fences and prefetches have nothing to do: threads run one at a time.
    return reject(op);
  }
  op->erase();
  return success();
}
