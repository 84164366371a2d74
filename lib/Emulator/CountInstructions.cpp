//===- CountInstructions.cpp - Instructions of a kernel by pipe -----------===//
#include "KernelConverter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner::emulator;

namespace {
/// The instructions of an operation; `number` is 0 for operations that only
/// name values.
struct Instructions {
  InstructionKind kind;
  uint32_t number;
};

/// Elements of one instruction: f16 and bf16 go in pairs.
constexpr unsigned kSmallFloatsAtOnce = 2;
constexpr unsigned kMaxAccessBytes = 16;
} // namespace

/// Instructions of arithmetic on `type`.
static uint32_t countElements(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return 1;
  Type element = vector.getElementType();
  auto number = static_cast<uint64_t>(vector.getNumElements());
  if (element.isF16() || element.isBF16())
    number = llvm::divideCeil(number, kSmallFloatsAtOnce);
  return static_cast<uint32_t>(number);
}

/// Instructions of an access of `type`; none for a variable of the thread,
/// which is a register.
static uint32_t countAccesses(Value address, Type type,
                              std::optional<uint64_t> alignment) {
  if (address.getDefiningOp<LLVM::AllocaOp>())
    return 0;
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return 1;
  uint64_t bytes = llvm::divideCeil(
      uint64_t(vector.getNumElements()) * vector.getElementTypeBitWidth(), 8);
  uint64_t maxBytes = std::min<uint64_t>(
      alignment.value_or(bytes), std::min<uint64_t>(bytes, kMaxAccessBytes));
  return static_cast<uint32_t>(
      llvm::divideCeil(bytes, std::max<uint64_t>(maxBytes, 1)));
}

static InstructionKind getTensorKind(NVVM::MmaOp op) {
  switch (op.getMultiplicandAPtxType().value_or(NVVM::MMATypes::f16)) {
  case NVVM::MMATypes::bf16:
    return InstructionKind::TensorBF16;
  case NVVM::MMATypes::tf32:
    return InstructionKind::TensorTF32;
  case NVVM::MMATypes::s8:
  case NVVM::MMATypes::u8:
    return InstructionKind::TensorI8;
  default:
    return InstructionKind::TensorF16;
  }
}

static InstructionKind getTensorKind(NVVM::WgmmaMmaAsyncOp op) {
  switch (op.getTypeA()) {
  case NVVM::WGMMATypes::bf16:
    return InstructionKind::TensorBF16;
  case NVVM::WGMMATypes::tf32:
    return InstructionKind::TensorTF32;
  case NVVM::WGMMATypes::s8:
  case NVVM::WGMMATypes::u8:
    return InstructionKind::TensorI8;
  default:
    return InstructionKind::TensorF16;
  }
}

static bool isSpecial(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin().contains(".approx") ||
           call.getIntrin().contains("sqrt") ||
           call.getIntrin().contains("rcp");
  return isa<LLVM::FDivOp, LLVM::FRemOp, LLVM::ExpOp, LLVM::Exp2Op, LLVM::LogOp,
             LLVM::Log2Op, LLVM::Log10Op, LLVM::SqrtOp, LLVM::SinOp,
             LLVM::CosOp, LLVM::PowOp, LLVM::TanhOp, NVVM::RcpApproxFtzF32Op>(
      op);
}

static Instructions classify(Operation *op) {
  auto accesses = [](uint32_t number) {
    return Instructions{InstructionKind::LoadStore, number};
  };
  if (auto mma = dyn_cast<NVVM::MmaOp>(op))
    return {getTensorKind(mma), 1};
  if (auto product = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op))
    return {getTensorKind(product), 1};
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return accesses(
        countAccesses(load.getAddr(), load.getType(), load.getAlignment()));
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return accesses(countAccesses(store.getAddr(), store.getValue().getType(),
                                  store.getAlignment()));
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    return accesses(countElements(load.getType()));
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return accesses(countElements(store.getValue().getType()));
  if (isa<LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp, NVVM::CpAsyncOp,
          NVVM::LdMatrixOp, NVVM::StMatrixOp, NVVM::ShflOp,
          NVVM::CpAsyncBulkGlobalToSharedClusterOp,
          NVVM::CpAsyncBulkSharedCTAToGlobalOp,
          NVVM::CpAsyncBulkSharedCTAToSharedClusterOp,
          NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp,
          NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(op))
    return accesses(1);
  uint32_t elements =
      op->getNumResults() == 1 ? countElements(op->getResult(0).getType()) : 1;
  if (isSpecial(op))
    return {InstructionKind::Special, elements};
  if (isa<LLVM::FMAOp, LLVM::FMulAddOp, LLVM::FAddOp, LLVM::FSubOp,
          LLVM::FMulOp>(op))
    return {InstructionKind::Fma, elements};
  if (isa<LLVM::ConstantOp, LLVM::ZeroOp, LLVM::UndefOp, LLVM::PoisonOp,
          LLVM::AddressOfOp, LLVM::AddrSpaceCastOp, LLVM::BitcastOp,
          LLVM::PtrToIntOp, LLVM::IntToPtrOp, LLVM::AllocaOp, LLVM::FreezeOp,
          LLVM::ExtractValueOp, LLVM::InsertValueOp, LLVM::ExtractElementOp,
          LLVM::InsertElementOp, LLVM::ShuffleVectorOp, LLVM::AssumeOp>(op))
    return {InstructionKind::Other, 0};
  return {InstructionKind::Other, elements};
}

void KernelConverter::countInstructions(
    LLVM::LLVMFuncOp function, std::vector<InstructionCounts> &blocks) {
  for (Block &block : function.getBody()) {
    InstructionCounts counts = {};
    for (Operation &op : block) {
      Instructions instructions = classify(&op);
      counts[static_cast<size_t>(instructions.kind)] += instructions.number;
    }
    Operation *first = &block.front();
    OpBuilder builder(first);
    callRuntime(first, "ftuner_emulator_enter", voidType,
                {i32(builder, first->getLoc(), int64_t(blocks.size()))});
    blocks.push_back(counts);
  }
}
