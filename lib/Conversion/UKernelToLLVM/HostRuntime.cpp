//===- HostRuntime.cpp - Calls of the runtime -------------------*- C++ -*-===//
#include "HostFunction.h"

#include "FTuner/Kernel/KernelSignature.h"
#include "FTuner/Kernel/TensorMapEncoding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;
using namespace ftuner;

HostRuntime::HostRuntime(ModuleOp module, StringRef moduleSymbol)
    : module(module), moduleSymbol(moduleSymbol.str()),
      types(module.getContext()) {}

Type HostRuntime::getPointerType() const {
  return LLVM::LLVMPointerType::get(types.getDialect()->getContext());
}

LLVM::LLVMFuncOp HostRuntime::declare(StringRef name, ArrayRef<Type> inputs) {
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  return LLVM::LLVMFuncOp::create(
      b, module.getLoc(), name,
      LLVM::LLVMFunctionType::get(b.getI32Type(), inputs));
}

LLVM::LLVMFuncOp HostRuntime::declareOptional(StringRef name,
                                              ArrayRef<Type> inputs) {
  LLVM::LLVMFuncOp function = declare(name, inputs);
  if (!moduleSymbol.empty())
    function.setLinkage(LLVM::Linkage::ExternWeak);
  return function;
}

LLVM::LLVMFuncOp HostRuntime::getFail() {
  return declare("ftrt_fail", {getPointerType()});
}

LLVM::LLVMFuncOp HostRuntime::getFailSizes() {
  Type pointer = getPointerType();
  Type i32 = IntegerType::get(module.getContext(), 32);
  return declareOptional("ftrt_fail_sizes", {pointer, pointer, i32});
}

LLVM::LLVMFuncOp HostRuntime::getLaunch() {
  Type pointer = getPointerType();
  Type i32 = IntegerType::get(module.getContext(), 32);
  return declare("ftrt_launch", {pointer, i32, i32, i32, pointer, pointer});
}

LLVM::LLVMFuncOp HostRuntime::getEncode() {
  Type pointer = getPointerType();
  return declareOptional("ftrt_tensor_map_encode", {pointer, pointer, pointer,
                                                    pointer, pointer, pointer});
}

LLVM::LLVMFuncOp HostRuntime::getImageIsExact() {
  Type pointer = getPointerType();
  return declareOptional("ftrt_image_is_exact", {pointer, pointer, pointer});
}

Value HostRuntime::getString(ImplicitLocOpBuilder &b, StringRef text) {
  LLVM::GlobalOp &global = strings[text];
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    std::string data = (text + Twine('\0')).str();
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), data.size());
    global = LLVM::GlobalOp::create(
        b, type, /*isConstant=*/true, LLVM::Linkage::Internal,
        "ftrt_string_" + std::to_string(strings.size() - 1),
        b.getStringAttr(data));
  }
  return LLVM::AddressOfOp::create(b, global);
}

Value HostRuntime::getKernelModule(ImplicitLocOpBuilder &b) {
  if (moduleSymbol.empty())
    return LLVM::ZeroOp::create(b, getPointerType());
  auto global = module.lookupSymbol<LLVM::GlobalOp>(moduleSymbol);
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    // Opaque here: only the runtime looks into it.
    global = LLVM::GlobalOp::create(
        b, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
        LLVM::Linkage::External, moduleSymbol, Attribute());
  }
  return LLVM::AddressOfOp::create(b, global);
}

Value HostRuntime::getKernel(ImplicitLocOpBuilder &b, StringRef name) {
  if (!kernels.contains(name)) {
    Type pointer = getPointerType();
    // ftrt_kernel: its name, the module that holds it, the runtime's handle.
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                 {pointer, pointer, pointer});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto global = LLVM::GlobalOp::create(
        b, type, /*isConstant=*/false, LLVM::Linkage::Internal,
        ("ftrt_kernel_" + name).str(), Attribute());
    kernels[name] = global;
    b.createBlock(&global.getInitializerRegion());
    Value text = getString(b, name);
    Value value = LLVM::PoisonOp::create(b, type);
    value = LLVM::InsertValueOp::create(b, value, text, ArrayRef<int64_t>{0});
    value = LLVM::InsertValueOp::create(b, value, getKernelModule(b),
                                        ArrayRef<int64_t>{1});
    value = LLVM::InsertValueOp::create(
        b, value, LLVM::ZeroOp::create(b, pointer), ArrayRef<int64_t>{2});
    LLVM::ReturnOp::create(b, value);
  }
  return LLVM::AddressOfOp::create(b, kernels[name]);
}

LLVM::LLVMStructType HostRuntime::getTensorMapType() {
  MLIRContext *context = module.getContext();
  SmallVector<Type> types(2, getPointerType());
  types.append(4 + kMaxTensorMapRank, IntegerType::get(context, 32));
  return LLVM::LLVMStructType::getLiteral(context, types);
}

Value HostRuntime::getTensorMap(ImplicitLocOpBuilder &b, StringRef kernel,
                                const KernelParameter &parameter) {
  std::string name = ("ftrt_tensor_map_" + kernel + "_" + parameter.name).str();
  LLVM::GlobalOp &global = tensorMaps[name];
  if (!global) {
    TensorMapEncoding encoding = encodingOf(parameter.map, parameter.type);
    Type type = getTensorMapType(), i32 = b.getI32Type();
    SmallVector<uint32_t> numbers = {encoding.elementType, encoding.rank};
    llvm::append_range(numbers, encoding.box);
    numbers.append({encoding.swizzle, encoding.l2Promotion});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    global = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name, Attribute());
    b.createBlock(&global.getInitializerRegion());
    SmallVector<Value> fields = {getString(b, kernel),
                                 getString(b, parameter.name)};
    for (uint32_t number : numbers)
      fields.push_back(LLVM::ConstantOp::create(
          b, i32, b.getI32IntegerAttr(static_cast<int32_t>(number))));
    Value value = LLVM::PoisonOp::create(b, type);
    for (auto [index, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(
          b, value, field, ArrayRef<int64_t>{static_cast<int64_t>(index)});
    LLVM::ReturnOp::create(b, value);
  }
  return LLVM::AddressOfOp::create(b, global);
}

void ftuner::returnCode(ImplicitLocOpBuilder &b, func::FuncOp func,
                        Value code) {
  Type type = func.getResultTypes().front();
  if (type != code.getType()) {
    code = arith::ExtSIOp::create(b, type, code);
    Value zero = arith::ConstantOp::create(b, b.getIntegerAttr(type, 0));
    code = arith::SubIOp::create(b, zero, code);
  }
  func::ReturnOp::create(b, code);
}

/// Branches to a new block, at the function's end, if `condition` holds.
/// Leaves the builder in that block and returns the block to go on in.
static Block *branchAway(ImplicitLocOpBuilder &b, Value condition) {
  Block *block = b.getInsertionBlock();
  Block *next = block->splitBlock(b.getInsertionPoint());
  Block *away = b.createBlock(block->getParent(), block->getParent()->end());
  b.setInsertionPointToEnd(block);
  cf::CondBranchOp::create(b, condition, away, next);
  b.setInsertionPointToEnd(away);
  return next;
}

/// Emits the call that fails with sizes. Leaves the builder where the runtime
/// that the library runs with has no such function.
static void failWithSizes(ImplicitLocOpBuilder &b, HostRuntime &runtime,
                          func::FuncOp func, StringRef message,
                          ValueRange sizes) {
  LLVM::LLVMFuncOp fail = runtime.getFailSizes();
  Type pointer = runtime.getPointerType(), i64 = b.getI64Type();
  Value address = LLVM::AddressOfOp::create(b, fail);
  Value null = LLVM::ZeroOp::create(b, pointer);
  Value isThere =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, address, null);
  Block *without = branchAway(b, isThere);
  Value count = arith::ConstantOp::create(b, b.getI64IntegerAttr(sizes.size()));
  Value array = LLVM::AllocaOp::create(b, pointer, i64, count);
  for (auto [index, size] : llvm::enumerate(sizes)) {
    Value place = LLVM::GEPOp::create(
        b, pointer, i64, array,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
    LLVM::StoreOp::create(b, size, place);
  }
  Value number =
      arith::ConstantOp::create(b, b.getI32IntegerAttr(sizes.size()));
  Value text = runtime.getString(b, message);
  auto call = LLVM::CallOp::create(b, fail, ValueRange{text, array, number});
  returnCode(b, func, call.getResult());
  b.setInsertionPointToStart(without);
}

/// The message for runtimes that put no sizes into it.
static std::string withoutSizes(StringRef message, size_t count) {
  std::string text = message.str();
  for (size_t i = 0; i < count; ++i) {
    std::string place = "{" + std::to_string(i) + "}";
    for (size_t at = text.find(place); at != std::string::npos;
         at = text.find(place))
      text.replace(at, place.size(), "another size");
  }
  return text;
}

void ftuner::failIf(ImplicitLocOpBuilder &b, HostRuntime &runtime,
                    Value condition, StringRef given, ValueRange sizes) {
  auto func = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  Block *next = branchAway(b, condition);
  if (!sizes.empty())
    failWithSizes(b, runtime, func, given, sizes);
  std::string message = withoutSizes(given, sizes.size());
  Value text = runtime.getString(b, message);
  auto call = LLVM::CallOp::create(b, runtime.getFail(), ValueRange{text});
  returnCode(b, func, call.getResult());
  b.setInsertionPointToStart(next);
}

void ftuner::expectFunction(ImplicitLocOpBuilder &b, HostRuntime &runtime,
                            LLVM::LLVMFuncOp function) {
  if (function.getLinkage() != LLVM::Linkage::ExternWeak)
    return;
  Value address = LLVM::AddressOfOp::create(b, function);
  Value null = LLVM::ZeroOp::create(b, runtime.getPointerType());
  Value isMissing =
      LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::eq, address, null);
  failIf(b, runtime, isMissing,
         ("expected a libftrt.so.1 with the function '" + function.getName() +
          "', but got an older one: use that of the FTuner that compiled the "
          "library, or a newer one")
             .str());
}

void ftuner::returnIfFailed(ImplicitLocOpBuilder &b, Value code) {
  auto func = cast<func::FuncOp>(b.getInsertionBlock()->getParentOp());
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value isBad = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, code, zero);
  Block *next = branchAway(b, isBad);
  returnCode(b, func, code);
  b.setInsertionPointToStart(next);
}
