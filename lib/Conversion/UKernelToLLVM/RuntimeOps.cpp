//===- RuntimeOps.cpp - Launches and assertions -----------------*- C++ -*-===//
#include "HostFunction.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// Lowers the launches of one function, and its questions for the image.
class LaunchLowering {
public:
  LaunchLowering(func::FuncOp func, HostRuntime &runtime,
                 const llvm::StringMap<Attribute> &entries)
      : runtime(runtime), entries(entries),
        stream(func.getNumArguments() ? func.getArguments().back() : Value()),
        entryBlock(&func.getBody().front()) {}

  LogicalResult lower(ukernel::LaunchOp launch);
  LogicalResult lower(ukernel::ExactImageOp question);

private:
  LogicalResult check(ukernel::LaunchOp launch, ukernel::EntryAttr &entry);
  void checkRanges(ImplicitLocOpBuilder &b, ukernel::LaunchOp launch,
                   StringRef kernel);
  /// The operand of a launch for a parameter, as it is passed.
  Value passedAs(ImplicitLocOpBuilder &b, ukernel::ParameterKind kind,
                 Value operand);
  Value addressOf(ImplicitLocOpBuilder &b, Value buffer);
  /// The addresses of the kernel's parameters, from the launch's operands.
  SmallVector<Value> storeValues(ImplicitLocOpBuilder &b, StringRef kernel,
                                 ArrayRef<KernelParameter> parameters,
                                 ArrayRef<Value> operands);
  Value storeArray(ImplicitLocOpBuilder &b, Type type, ValueRange values);
  Value encode(ImplicitLocOpBuilder &b, StringRef kernel,
               const KernelParameter &map,
               function_ref<Value(StringRef name)> operandOf);
  Value fitBoxes(ImplicitLocOpBuilder &b, ukernel::TensorMapAttr map,
                 Value kind, ArrayRef<Value> sizes);
  Value toI64(ImplicitLocOpBuilder &b, Value index) {
    return arith::IndexCastOp::create(b, b.getI64Type(), index);
  }
  Value constant(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  /// Stack memory for `count` values, allocated once per call of the function.
  Value allocate(ImplicitLocOpBuilder &b, Type type, int64_t count,
                 int64_t alignment = 0) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entryBlock);
    return LLVM::AllocaOp::create(b, runtime.getPointerType(), type,
                                  constant(b, count), alignment);
  }

  HostRuntime &runtime;
  const llvm::StringMap<Attribute> &entries;
  Value stream;
  Block *entryBlock;
};
} // namespace

static LogicalResult expectInFunction(Operation *op) {
  if (isa<func::FuncOp>(op->getParentOp()))
    return success();
  return op->emitOpError("expected unstructured control flow, but got ")
         << op->getParentOp()->getName();
}

LogicalResult LaunchLowering::check(ukernel::LaunchOp launch,
                                    ukernel::EntryAttr &entry) {
  SymbolRefAttr kernel = launch.getKernel();
  auto it = entries.find(kernel.getRootReference().getValue());
  if (kernel.getNestedReferences().size() != 1 || it == entries.end())
    return launch.emitOpError("expected the kernel of a gpu.module with '")
           << ukernel::UKernelDialect::kEntryAttrName << "', but got "
           << kernel;
  entry = cast<ukernel::EntryAttr>(it->second);
  return expectInFunction(launch);
}

/// Sizes, strides and parts go as i32, the grid has at most 2^31 - 1 blocks.
void LaunchLowering::checkRanges(ImplicitLocOpBuilder &b,
                                 ukernel::LaunchOp launch, StringRef kernel) {
  Value isBad;
  auto require = [&](Value condition) {
    isBad = isBad ? b.createOrFold<arith::OrIOp>(isBad, condition) : condition;
  };
  for (ValueRange values :
       {launch.getSizes(), launch.getStrides(), launch.getParts()})
    for (Value value : values) {
      Value shifted = b.createOrFold<arith::AddIOp>(toI64(b, value),
                                                    constant(b, 1ll << 31));
      require(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ugt, shifted,
                                            constant(b, (1ll << 32) - 1)));
    }
  require(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ugt,
                                        toI64(b, launch.getBlocks()),
                                        constant(b, (1ll << 31) - 1)));
  failIf(b, runtime, isBad,
         ("kernel '" + kernel +
          "': expected sizes and strides of 32 bits and at most 2147483647 "
          "blocks, but got more")
             .str());
}

Value LaunchLowering::addressOf(ImplicitLocOpBuilder &b, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Value address =
      toI64(b, memref::ExtractAlignedPointerAsIndexOp::create(b, buffer));
  auto [strides, offset] = type.getStridesAndOffset();
  if (offset == 0)
    return address;
  Value elements =
      ShapedType::isDynamic(offset)
          ? toI64(
                b,
                memref::ExtractStridedMetadataOp::create(b, buffer).getOffset())
          : constant(b, offset);
  Value bytes = b.createOrFold<arith::MulIOp>(
      elements, constant(b, elementBytesOf(type)));
  return arith::AddIOp::create(b, address, bytes);
}

Value LaunchLowering::passedAs(ImplicitLocOpBuilder &b,
                               ukernel::ParameterKind kind, Value operand) {
  Type i32 = b.getI32Type();
  // The bits of a scalar of 64 bits.
  auto bits = [&]() -> Value {
    if (operand.getType().isIndex())
      return toI64(b, operand);
    if (operand.getType().isInteger())
      return operand;
    return arith::BitcastOp::create(b, b.getI64Type(), operand);
  };
  switch (kind) {
  case ukernel::ParameterKind::Pointer:
    return addressOf(b, operand);
  case ukernel::ParameterKind::Size:
  case ukernel::ParameterKind::Stride:
  case ukernel::ParameterKind::Part:
    return arith::TruncIOp::create(b, i32, toI64(b, operand));
  case ukernel::ParameterKind::Scalar:
    return operand.getType().isIndex() ? bits() : operand;
  case ukernel::ParameterKind::TensorMap:
    break;
  case ukernel::ParameterKind::ScalarLow:
    return arith::TruncIOp::create(b, i32, bits());
  case ukernel::ParameterKind::ScalarHigh:
    return arith::TruncIOp::create(
        b, i32, arith::ShRUIOp::create(b, bits(), constant(b, 32)));
  }
  llvm_unreachable("every kind is passed in some way");
}

/// Stack memory with values of a type, one behind the other.
Value LaunchLowering::storeArray(ImplicitLocOpBuilder &b, Type type,
                                 ValueRange values) {
  Value array = allocate(b, type, values.size());
  for (auto [index, value] : llvm::enumerate(values)) {
    Value address = LLVM::GEPOp::create(
        b, runtime.getPointerType(), type, array,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(b, value, address);
  }
  return array;
}

/// The address of a `ftrt_tensor_map` whose boxes are fitted to a tensor of
/// these sizes, i64 each: the given one, or a copy of it.
Value LaunchLowering::fitBoxes(ImplicitLocOpBuilder &b,
                               ukernel::TensorMapAttr map, Value kind,
                               ArrayRef<Value> sizes) {
  if (map.getFitBelow().empty())
    return kind;
  Type i32 = b.getI32Type();
  Type type = runtime.getTensorMapType();
  Value copy = allocate(b, type, 1);
  LLVM::StoreOp::create(b, LLVM::LoadOp::create(b, type, kind), copy);
  for (auto [number, below] : llvm::enumerate(map.getFitBelow())) {
    if (below == 0)
      continue;
    Value size = sizes[number];
    constexpr int64_t kRows = kTensorMapFitRows;
    Value fitted = arith::AndIOp::create(
        b, arith::AddIOp::create(b, size, constant(b, kRows - 1)),
        constant(b, -kRows));
    Value isSmaller = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, size,
                                            constant(b, below));
    Value box = arith::SelectOp::create(b, isSmaller, fitted,
                                        constant(b, map.getBox()[number]));
    Value place = LLVM::GEPOp::create(
        b, runtime.getPointerType(), type, copy,
        ArrayRef<LLVM::GEPArg>{
            0, static_cast<int32_t>(HostRuntime::kTensorMapBox + number)});
    LLVM::StoreOp::create(b, arith::TruncIOp::create(b, i32, box), place);
  }
  return copy;
}

/// Has the runtime encode a tensor map; its address. `operandOf` gives the
/// operand for another parameter of the kernel.
Value LaunchLowering::encode(ImplicitLocOpBuilder &b, StringRef kernel,
                             const KernelParameter &map,
                             function_ref<Value(StringRef)> operandOf) {
  auto numbers = [&](ArrayAttr extents) {
    return llvm::map_to_vector(extents, [&](Attribute extent) -> Value {
      if (auto name = dyn_cast<StringAttr>(extent))
        return toI64(b, operandOf(name));
      return constant(b, cast<IntegerAttr>(extent).getInt());
    });
  };
  Value address =
      LLVM::IntToPtrOp::create(b, runtime.getPointerType(),
                               addressOf(b, operandOf(map.map.getPointer())));
  auto sizes = numbers(map.map.getSizes());
  Value kind =
      fitBoxes(b, map.map, runtime.getTensorMap(b, kernel, map), sizes);
  Value sizesArray = storeArray(b, b.getI64Type(), sizes);
  Value strides = storeArray(b, b.getI64Type(), numbers(map.map.getStrides()));
  Value place =
      allocate(b, b.getI8Type(), kTensorMapBytes, kTensorMapAddressAlignment);
  expectFunction(b, runtime, runtime.getEncode());
  auto code = LLVM::CallOp::create(
      b, runtime.getEncode(),
      ValueRange{kind, address, sizesArray, strides, stream, place});
  returnIfFailed(b, code.getResult());
  return place;
}

SmallVector<Value>
LaunchLowering::storeValues(ImplicitLocOpBuilder &b, StringRef kernel,
                            ArrayRef<KernelParameter> parameters,
                            ArrayRef<Value> operands) {
  llvm::StringMap<Value> byName;
  for (auto [parameter, operand] : llvm::zip_equal(parameters, operands))
    byName[parameter.name] = operand;
  SmallVector<Value> addresses;
  for (auto [parameter, operand] : llvm::zip_equal(parameters, operands)) {
    if (parameter.kind == ukernel::ParameterKind::TensorMap) {
      addresses.push_back(encode(b, kernel, parameter, [&](StringRef name) {
        return byName.lookup(name);
      }));
      continue;
    }
    Value value = passedAs(b, parameter.kind, operand);
    addresses.push_back(allocate(b, value.getType(), 1));
    LLVM::StoreOp::create(b, value, addresses.back());
  }
  return addresses;
}

LogicalResult LaunchLowering::lower(ukernel::LaunchOp launch) {
  ukernel::EntryAttr entry;
  if (failed(check(launch, entry)))
    return failure();
  KernelSignature signature = KernelSignature::of(entry);
  FailureOr<SmallVector<Value>> operands = signature.valuesOf(launch);
  if (failed(operands))
    return failure();
  StringRef kernel = launch.getKernel().getLeafReference().getValue();
  ImplicitLocOpBuilder b(launch.getLoc(), launch);
  checkRanges(b, launch, kernel);
  // No blocks, no launch: go on behind it.
  Block *rest = launch->getBlock()->splitBlock(launch->getNextNode());
  Block *block = launch->getBlock();
  Block *call = block->splitBlock(launch);
  b.setInsertionPointToEnd(block);
  Value blocks = toI64(b, launch.getBlocks());
  Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, blocks,
                                        constant(b, 0));
  cf::CondBranchOp::create(b, isEmpty, rest, call);

  b.setInsertionPoint(launch);
  auto i32 = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  SmallVector<Value> addresses =
      storeValues(b, kernel, signature.getParameters(), *operands);
  Value parameters = storeArray(b, runtime.getPointerType(), addresses);
  Value grid = arith::TruncIOp::create(b, b.getI32Type(), blocks);
  auto code = LLVM::CallOp::create(
      b, runtime.getLaunch(),
      ValueRange{runtime.getKernel(b, kernel), grid, i32(entry.getThreads()),
                 i32(entry.getSharedMemoryBytes()), stream, parameters});
  returnIfFailed(b, code.getResult());
  // Behind the check is the launch alone.
  cf::BranchOp::create(b, rest);
  launch->erase();
  return success();
}

LogicalResult LaunchLowering::lower(ukernel::ExactImageOp question) {
  if (failed(expectInFunction(question)))
    return failure();
  if (!stream || !isa<LLVM::LLVMPointerType>(stream.getType()))
    return question.emitOpError("expected a function of the host ABI");
  ImplicitLocOpBuilder b(question.getLoc(), question);
  Value place = allocate(b, b.getI32Type(), 1);
  expectFunction(b, runtime, runtime.getImageIsExact());
  auto code = LLVM::CallOp::create(
      b, runtime.getImageIsExact(),
      ValueRange{runtime.getKernelModule(b), stream, place});
  returnIfFailed(b, code.getResult());
  Value answer = LLVM::LoadOp::create(b, b.getI32Type(), place);
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  question.replaceAllUsesWith(
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, answer, zero)
          .getResult());
  question.erase();
  return success();
}

static void lowerAssertion(Operation *op, HostRuntime &runtime) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Value isTrue = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value isBad = arith::XOrIOp::create(b, op->getOperand(0), isTrue);
  SmallVector<Value> sizes;
  StringRef message;
  if (auto assertion = dyn_cast<ukernel::AssertOp>(op)) {
    message = assertion.getMessage();
    for (Value size : assertion.getSizes())
      sizes.push_back(arith::IndexCastOp::create(b, b.getI64Type(), size));
  } else {
    message = cast<cf::AssertOp>(op).getMsg();
  }
  failIf(b, runtime, isBad, message, sizes);
  op->erase();
}

LogicalResult
ftuner::lowerRuntimeOps(func::FuncOp func, HostRuntime &runtime,
                        const llvm::StringMap<Attribute> &entries) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isa<cf::AssertOp, ukernel::AssertOp, ukernel::LaunchOp,
            ukernel::ExactImageOp>(op))
      ops.push_back(op);
  });
  LaunchLowering launches(func, runtime, entries);
  for (Operation *op : ops) {
    if (auto launch = dyn_cast<ukernel::LaunchOp>(op)) {
      if (failed(launches.lower(launch)))
        return failure();
      continue;
    }
    if (auto question = dyn_cast<ukernel::ExactImageOp>(op)) {
      if (failed(launches.lower(question)))
        return failure();
      continue;
    }
    if (failed(expectInFunction(op)))
      return failure();
    lowerAssertion(op, runtime);
  }
  return success();
}
