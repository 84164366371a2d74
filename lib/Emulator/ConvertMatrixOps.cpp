//===- ConvertMatrixOps.cpp - Rules for matrix operations of a warp -------===//
#include "KernelConverter.h"
#include "Matrices/WarpMatrix.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

Value KernelConverter::matrixRegisters(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &array = registerArrays[function];
  if (!array) {
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    Location loc = function.getLoc();
    Value count = i32(builder, loc, MmaVariant::kMaxRegisters);
    array = LLVM::AllocaOp::create(builder, loc, pointerType, i32Type, count,
                                   /*alignment=*/16);
  }
  return array;
}

/// The address of the register of number `index`.
static Value registerAt(OpBuilder &builder, Location loc, Value registers,
                        unsigned index) {
  return LLVM::GEPOp::create(builder, loc, registers.getType(),
                             builder.getI32Type(), registers,
                             ArrayRef<LLVM::GEPArg>{int32_t(index)});
}

Value KernelConverter::storeRegisters(Operation *op, ValueRange values) {
  OpBuilder builder(op);
  Value registers = matrixRegisters(op);
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(
        builder, op->getLoc(), value,
        registerAt(builder, op->getLoc(), registers, static_cast<unsigned>(i)));
  return registers;
}

void KernelConverter::replaceByRegisters(Operation *op, Value registers,
                                         unsigned first) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  auto load = [&](unsigned index, Type element) -> Value {
    return LLVM::LoadOp::create(
        builder, loc, element,
        registerAt(builder, loc, registers, first + index));
  };
  Value result;
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    result = LLVM::PoisonOp::create(builder, loc, type);
    for (auto [i, member] : llvm::enumerate(record.getBody()))
      result = LLVM::InsertValueOp::create(
          builder, loc, result, load(static_cast<unsigned>(i), member),
          ArrayRef<int64_t>{int64_t(i)});
  } else {
    result = load(0, type);
  }
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static std::optional<MmaElement>
convertElement(std::optional<NVVM::MMATypes> type) {
  if (!type)
    return std::nullopt;
  switch (*type) {
  case NVVM::MMATypes::f16:
    return MmaElement::F16;
  case NVVM::MMATypes::bf16:
    return MmaElement::BF16;
  case NVVM::MMATypes::tf32:
    return MmaElement::TF32;
  case NVVM::MMATypes::s8:
    return MmaElement::S8;
  case NVVM::MMATypes::u8:
    return MmaElement::U8;
  default:
    return std::nullopt;
  }
}

/// The variant of `op`, if the emulator has it.
static std::optional<MmaVariant> getVariant(NVVM::MmaOp op) {
  std::optional<MmaElement> a = convertElement(op.getMultiplicandAPtxType());
  std::optional<MmaElement> b = convertElement(op.getMultiplicandBPtxType());
  NVVM::MMATypes accumulator = op.accumPtxType();
  if (!a || !b || accumulator != op.resultPtxType() ||
      op.getLayoutA() != NVVM::MMALayout::row ||
      op.getLayoutB() != NVVM::MMALayout::col)
    return std::nullopt;
  MmaVariant variant{*a, *b, MmaAccumulator::F32, 0, 0};
  bool isInteger = MmaVariant::packing(*a) == 4;
  if (isInteger ? MmaVariant::packing(*b) != 4 : *a != *b)
    return std::nullopt;
  if (isInteger)
    variant.accumulator =
        op.getIntOverflowBehavior() == NVVM::MMAIntOverflow::wrapped
            ? MmaAccumulator::I32
            : MmaAccumulator::SaturatedI32;
  else if (accumulator == NVVM::MMATypes::f16 && *a == MmaElement::F16)
    variant.accumulator = MmaAccumulator::F16;
  else if (accumulator != NVVM::MMATypes::f32)
    return std::nullopt;
  NVVM::MMAShapeAttr shape = op.getShape();
  variant.rowGroups = static_cast<unsigned>(shape.getM()) / 8;
  variant.depthGroups =
      static_cast<unsigned>(shape.getK()) / (4 * MmaVariant::packing(*a));
  // m8n8k16 of 8 bits, m16n8 of all types.
  bool isSmall = shape.getM() == 8 && isInteger && variant.depthGroups == 1;
  bool isLarge = shape.getM() == 16 &&
                 (variant.depthGroups == 1 || variant.depthGroups == 2);
  if (shape.getN() != 8 || shape.getK() != static_cast<int>(variant.depth()) ||
      !(isSmall || isLarge))
    return std::nullopt;
  return variant;
}

LogicalResult KernelConverter::convertMma(NVVM::MmaOp op) {
  std::optional<MmaVariant> variant = getVariant(op);
  SmallVector<Value> values(op.getOperandA());
  llvm::append_range(values, op.getOperandB());
  llvm::append_range(values, op.getOperandC());
  auto isRegister = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.getNumElements() == 2 &&
                        vector.getElementTypeBitWidth() == 16
                  : type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 32;
  };
  if (!variant || op.getOperandA().size() != variant->registersOfA() ||
      op.getOperandB().size() != variant->registersOfB() ||
      op.getOperandC().size() != variant->registersOfC() ||
      !llvm::all_of(ValueRange(values).getTypes(), isRegister))
    return op.emitError("no emulation rule for ")
           << op->getName() << " of shape " << op.getShape().getM() << "x"
           << op.getShape().getN() << "x" << op.getShape().getK()
           << " and these types";
  OpBuilder builder(op);
  Value registers = storeRegisters(op, values);
  callRuntime(
      op, "ftuner_emulator_multiply_matrices", voidType,
      {registers, i32(builder, op.getLoc(), variant->encode()), site(op)});
  replaceByRegisters(op, registers,
                     variant->registersOfA() + variant->registersOfB());
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The copy, if the emulator has it.
static std::optional<MatrixCopy> getCopy(NVVM::LdStMatrixShapeAttr shape,
                                         NVVM::LdStMatrixEltType element,
                                         NVVM::MMALayout layout, size_t count) {
  if (shape.getM() != 8 || shape.getN() != 8 ||
      element != NVVM::LdStMatrixEltType::B16 ||
      (count != 1 && count != 2 && count != 4))
    return std::nullopt;
  return MatrixCopy{static_cast<unsigned>(count),
                    layout == NVVM::MMALayout::col};
}

static LogicalResult rejectCopy(Operation *op) {
  return op->emitError("no emulation rule for ")
         << op->getName()
         << " other than of 1, 2 or 4 matrices of 8x8 elements of 16 bits";
}

LogicalResult KernelConverter::convertMatrixCopy(Operation *op) {
  OpBuilder builder(op);
  auto encode = [&](const MatrixCopy &copy) {
    return i32(builder, op->getLoc(), copy.encode());
  };
  if (auto load = dyn_cast<NVVM::LdMatrixOp>(op)) {
    std::optional<MatrixCopy> copy = getCopy(load.getShape(), load.getEltType(),
                                             load.getLayout(), load.getNum());
    if (!copy)
      return rejectCopy(op);
    Value registers = matrixRegisters(op);
    callRuntime(op, "ftuner_emulator_load_matrix", voidType,
                {load.getPtr(), registers, encode(*copy), site(op)});
    replaceByRegisters(op, registers, /*first=*/0);
    return success();
  }
  auto store = cast<NVVM::StMatrixOp>(op);
  std::optional<MatrixCopy> copy =
      getCopy(store.getShape(), store.getEltType(), store.getLayout(),
              store.getSources().size());
  if (!copy)
    return rejectCopy(op);
  Value registers = storeRegisters(op, store.getSources());
  callRuntime(op, "ftuner_emulator_store_matrix", voidType,
              {store.getPtr(), registers, encode(*copy), site(op)});
  op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

LogicalResult KernelConverter::convertToTF32(NVVM::ConvertFloatToTF32Op op) {
  if (op.getRelu() || op.getSat() != NVVM::SaturationMode::NONE)
    return op.emitError("no emulation rule for ")
           << op->getName() << " with relu or saturation";
  constexpr int64_t unit = 1 << 13; // The lowest bit of tf32's mantissa.
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) { return i32(builder, loc, value); };
  Value bits = LLVM::BitcastOp::create(builder, loc, i32Type, op.getSrc());
  Value rounded = bits;
  switch (op.getRnd()) {
  case NVVM::FPRoundingMode::RNA: // Ties away from zero.
    rounded = LLVM::AddOp::create(builder, loc, bits, constant(unit / 2));
    break;
  case NVVM::FPRoundingMode::RN: { // Ties to even.
    Value odd = LLVM::AndOp::create(
        builder, loc, LLVM::LShrOp::create(builder, loc, bits, constant(13)),
        constant(1));
    Value half = LLVM::AddOp::create(builder, loc, odd, constant(unit / 2 - 1));
    rounded = LLVM::AddOp::create(builder, loc, bits, half);
    break;
  }
  case NVVM::FPRoundingMode::RZ:
    break;
  default:
    return op.emitError("no emulation rule for ")
           << op->getName() << " with this rounding";
  }
  Value result = LLVM::AndOp::create(builder, loc, rounded, constant(-unit));
  Value isNan = LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::uno,
                                     op.getSrc(), op.getSrc());
  op.replaceAllUsesWith(
      LLVM::SelectOp::create(builder, loc, isNan, constant(0x7fffffff), result)
          .getResult());
  op.erase();
  return success();
}
