//===- InstrumentAccesses.cpp - Calls of the checker ----------------------===//
#include "Checks/MemoryChecker.h"
#include "KernelConverter.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner::emulator;

namespace {
constexpr unsigned kRead = static_cast<unsigned>(AccessKind::Read);
constexpr unsigned kWrite = static_cast<unsigned>(AccessKind::Write);
constexpr unsigned kAtomic = static_cast<unsigned>(AccessKind::Atomic);
} // namespace

/// Bytes that a load or store of `type` touches.
static uint64_t getStoreBytes(Type type, const DataLayout &layout) {
  if (auto vector = dyn_cast<VectorType>(type))
    return llvm::divideCeil(
        layout.getTypeSizeInBits(vector.getElementType()).getFixedValue() *
            vector.getNumElements(),
        8);
  return layout.getTypeSize(type).getFixedValue();
}

/// The alignment a GPU needs for an access of `type` that promises nothing.
static uint64_t getNaturalAlignment(Type type, const DataLayout &layout) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type))
    return getNaturalAlignment(array.getElementType(), layout);
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    uint64_t alignment = 1;
    if (!record.isPacked())
      for (Type member : record.getBody())
        alignment = std::max(alignment, getNaturalAlignment(member, layout));
    return alignment;
  }
  return llvm::PowerOf2Ceil(getStoreBytes(type, layout));
}

void KernelConverter::instrumentAccess(Operation *op, Value address, Type type,
                                       std::optional<uint64_t> alignment,
                                       unsigned kind) {
  DataLayout layout(module);
  if (auto alloca = address.getDefiningOp<LLVM::AllocaOp>())
    if (getStoreBytes(type, layout) <=
        layout.getTypeSize(alloca.getElemType()).getFixedValue())
      return; // The whole variable; keeps it promotable to a register.
  OpBuilder builder(op);
  Location loc = op->getLoc();
  uint64_t required = alignment.value_or(getNaturalAlignment(type, layout));
  callRuntime(op, "ftuner_emulator_access", voidType,
              {address, i64(builder, loc, getStoreBytes(type, layout)),
               i32(builder, loc, kind), i32(builder, loc, required), site(op)});
}

void KernelConverter::instrumentMasked(Operation *op, Value address, Value mask,
                                       Type vectorType, unsigned kind) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto vector = cast<VectorType>(vectorType);
  unsigned lanes = vector.getNumElements();
  Value bits = LLVM::BitcastOp::create(builder, loc,
                                       IntegerType::get(context, lanes), mask);
  if (lanes < 64)
    bits = LLVM::ZExtOp::create(builder, loc, i64Type, bits);
  uint64_t bytes = getStoreBytes(vector.getElementType(), DataLayout(module));
  callRuntime(op, "ftuner_emulator_masked_access", voidType,
              {address, i64(builder, loc, bytes), bits, i32(builder, loc, kind),
               site(op)});
}

void KernelConverter::instrumentRange(Operation *op, Value address, Value bytes,
                                      unsigned kind) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  if (bytes.getType() != i64Type)
    bytes = LLVM::ZExtOp::create(builder, loc, i64Type, bytes);
  callRuntime(op, "ftuner_emulator_access", voidType,
              {address, bytes, i32(builder, loc, kind), i32(builder, loc, 1),
               site(op)});
}

LogicalResult KernelConverter::instrumentOp(Operation *op) {
  auto ifAtomic = [](LLVM::AtomicOrdering ordering, unsigned otherwise) {
    return ordering == LLVM::AtomicOrdering::not_atomic ? otherwise : kAtomic;
  };
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    instrumentAccess(op, load.getAddr(), load.getType(), load.getAlignment(),
                     ifAtomic(load.getOrdering(), kRead));
  } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    instrumentAccess(op, store.getAddr(), store.getValue().getType(),
                     store.getAlignment(),
                     ifAtomic(store.getOrdering(), kWrite));
  } else if (auto atomic = dyn_cast<LLVM::AtomicRMWOp>(op)) {
    instrumentAccess(op, atomic.getPtr(), atomic.getVal().getType(),
                     atomic.getAlignment(), kAtomic);
  } else if (auto atomic = dyn_cast<LLVM::AtomicCmpXchgOp>(op)) {
    instrumentAccess(op, atomic.getPtr(), atomic.getVal().getType(),
                     atomic.getAlignment(), kAtomic);
  } else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
    if (cast<VectorType>(load.getMask().getType()).getNumElements() > 64)
      return reject(op);
    instrumentMasked(op, load.getData(), load.getMask(), load.getType(), kRead);
  } else if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op)) {
    if (cast<VectorType>(store.getMask().getType()).getNumElements() > 64)
      return reject(op);
    instrumentMasked(op, store.getData(), store.getMask(),
                     store.getValue().getType(), kWrite);
  } else if (auto copy = dyn_cast<LLVM::MemcpyOp>(op)) {
    instrumentRange(op, copy.getSrc(), copy.getLen(), kRead);
    instrumentRange(op, copy.getDst(), copy.getLen(), kWrite);
  } else if (auto copy = dyn_cast<LLVM::MemmoveOp>(op)) {
    instrumentRange(op, copy.getSrc(), copy.getLen(), kRead);
    instrumentRange(op, copy.getDst(), copy.getLen(), kWrite);
  } else if (auto fill = dyn_cast<LLVM::MemsetOp>(op)) {
    instrumentRange(op, fill.getDst(), fill.getLen(), kWrite);
  } else if (isa<LLVM::masked_gather, LLVM::masked_scatter,
                 LLVM::masked_expandload, LLVM::masked_compressstore,
                 LLVM::MemcpyInlineOp, LLVM::MemsetInlineOp>(op)) {
    return reject(op);
  }
  return success();
}
