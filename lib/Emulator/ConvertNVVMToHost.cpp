//===- ConvertNVVMToHost.cpp - NVVM dialect to host code ------------------===//
#include "ConvertNVVMToHost.h"
#include "Fibers/Fiber.h"
#include "KernelConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <cstddef>

using namespace mlir;
using namespace ftuner::emulator;

namespace {
constexpr unsigned kSharedSpace = 3;
constexpr StringLiteral kThreadFunction = "ftuner_emulator_thread";
} // namespace

//===----------------------------------------------------------------------===//
// Extraction
//===----------------------------------------------------------------------===//

bool ftuner::emulator::isKernel(Operation &op) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  return function && !function.isExternal() &&
         (function->hasAttr("gpu.kernel") || function->hasAttr("nvvm.kernel"));
}

FailureOr<std::vector<Operation *>>
ftuner::emulator::findKernels(ModuleOp module) {
  std::vector<Operation *> kernels;
  llvm::StringSet<> names;
  WalkResult result = module.walk([&](gpu::GPUModuleOp gpuModule) {
    for (Operation &op : *gpuModule.getBody()) {
      if (auto function = dyn_cast<gpu::GPUFuncOp>(op)) {
        function.emitError("expected kernels at the level of the NVVM dialect, "
                           "but got gpu.func '")
            << function.getName() << "'";
        return WalkResult::interrupt();
      }
      if (!isKernel(op))
        continue;
      StringRef name = cast<LLVM::LLVMFuncOp>(op).getName();
      if (!names.insert(name).second) {
        op.emitError("expected unique kernel names, but got two kernels '")
            << name << "'";
        return WalkResult::interrupt();
      }
      kernels.push_back(&op);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return kernels;
}

/// Clones `kernel` and the symbols it refers to, directly or not, into a new
/// module.
static FailureOr<OwningOpRef<ModuleOp>> extractKernel(Operation *kernel) {
  SymbolTable symbols(kernel->getParentOp());
  llvm::SetVector<Operation *> needed;
  needed.insert(kernel);
  for (size_t i = 0; i < needed.size(); ++i) {
    std::optional<SymbolTable::UseRange> uses =
        SymbolTable::getSymbolUses(needed[i]);
    if (!uses)
      return needed[i]->emitError("expected known symbol uses");
    for (const SymbolTable::SymbolUse &use : *uses)
      if (Operation *symbol =
              symbols.lookup(use.getSymbolRef().getLeafReference()))
        needed.insert(symbol);
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel->getLoc());
  for (Operation *op : needed)
    module->push_back(op->clone());
  return module;
}

static std::optional<SmallVector<uint32_t>> getDims(Operation *op,
                                                    StringRef name) {
  auto dims = op->getAttrOfType<DenseI32ArrayAttr>(name);
  if (!dims || dims.empty())
    return std::nullopt;
  SmallVector<uint32_t> result(3, 1);
  for (auto [value, dim] : llvm::zip(result, dims.asArrayRef()))
    value = dim;
  return result;
}

static LogicalResult readClusterSize(Operation *kernel, KernelLimits &limits) {
  if (kernel->hasAttr(NVVM::NVVMDialect::getBlocksAreClustersAttrName()))
    return kernel->emitError("no emulation rule for ")
           << NVVM::NVVMDialect::getBlocksAreClustersAttrName();
  StringRef name = NVVM::NVVMDialect::getClusterDimAttrName();
  std::optional<SmallVector<uint32_t>> dims = getDims(kernel, name);
  if (!dims)
    return success();
  limits.clusterSize = (*dims)[0];
  if ((*dims)[1] != 1 || (*dims)[2] != 1)
    return kernel->emitError("no emulation rule for clusters of several blocks "
                             "along y or z");
  return success();
}

FailureOr<HostKernel>
ftuner::emulator::convertToHost(Operation *kernel,
                                const Instrumentation &instrumentation,
                                SiteTable &sites) {
  FailureOr<OwningOpRef<ModuleOp>> module = extractKernel(kernel);
  if (failed(module))
    return failure();
  HostKernel result;
  result.module = std::move(*module);
  StringRef name = cast<LLVM::LLVMFuncOp>(kernel).getName();
  result.entryName = ("ftuner_emulator_entry_" + name).str();
  for (StringRef attribute : {"gpu.known_block_size", "nvvm.reqntid"})
    if (auto dims = getDims(kernel, attribute))
      result.limits.knownBlock = {{(*dims)[0], (*dims)[1], (*dims)[2]}};
  if (auto dims = getDims(kernel, "nvvm.maxntid"))
    result.limits.maxThreads = (*dims)[0] * (*dims)[1] * (*dims)[2];
  if (failed(readClusterSize(kernel, result.limits)))
    return failure();
  result.hasPartialOrder =
      result.limits.clusterSize > 1 || hasPartialOrder(*result.module);
  if (failed(KernelConverter(*result.module, sites)
                 .convert(instrumentation, result)))
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

KernelConverter::KernelConverter(ModuleOp module, SiteTable &sites)
    : module(module), context(module.getContext()), sites(sites),
      i32Type(IntegerType::get(context, 32)),
      i64Type(IntegerType::get(context, 64)),
      voidType(LLVM::LLVMVoidType::get(context)),
      pointerType(LLVM::LLVMPointerType::get(context)) {}

LogicalResult KernelConverter::reject(Operation *op) {
  return op->emitError("no emulation rule for ") << op->getName();
}

Value KernelConverter::i32(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, i32Type,
                                  builder.getI32IntegerAttr(value));
}

Value KernelConverter::i64(OpBuilder &builder, Location loc, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, i64Type,
                                  builder.getI64IntegerAttr(value));
}

LLVM::LLVMFuncOp KernelConverter::declare(StringRef name, Type result,
                                          ArrayRef<Type> arguments) {
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto function =
      LLVM::LLVMFuncOp::create(builder, module.getLoc(), name,
                               LLVM::LLVMFunctionType::get(result, arguments));
  function.setNoUnwind(true);
  if (name == kThreadFunction) {
    // One call serves a thread's whole life, inlined functions included.
    function.setWillReturn(true);
    function.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
        context, {LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef,
                  LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef,
                  LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef}));
  } else {
    function.setConvergent(true);
  }
  return function;
}

Value KernelConverter::thread(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &value = threads[function];
  if (!value) {
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    LLVM::LLVMFuncOp callee = declare(kThreadFunction, pointerType, {});
    value = LLVM::CallOp::create(builder, function.getLoc(), callee, {})
                .getResult();
  }
  return value;
}

Value KernelConverter::loadRegister(Operation *op, size_t offset, Type type) {
  OpBuilder builder(op);
  Value address = LLVM::GEPOp::create(
      builder, op->getLoc(), pointerType, builder.getI8Type(), thread(op),
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  auto load = LLVM::LoadOp::create(builder, op->getLoc(), type, address);
  load.setInvariant(true);
  return load;
}

LLVM::CallOp KernelConverter::callRuntime(Operation *op, StringRef name,
                                          Type result,
                                          ArrayRef<Value> arguments) {
  SmallVector<Value> all{thread(op)};
  all.append(arguments.begin(), arguments.end());
  SmallVector<Type> types = llvm::to_vector(ValueRange(all).getTypes());
  LLVM::LLVMFuncOp callee = declare(name, result, types);
  OpBuilder builder(op);
  return LLVM::CallOp::create(builder, op->getLoc(), callee, all);
}

Value KernelConverter::site(Operation *op) {
  auto [it, isNew] = siteOf.try_emplace(op, sites.size());
  if (isNew)
    sites.push_back(op->getLoc());
  OpBuilder builder(op);
  return i32(builder, op->getLoc(), it->second);
}

//===----------------------------------------------------------------------===//
// Memory spaces
//===----------------------------------------------------------------------===//

/// Returns whether a global has a value other than undefined.
static bool isInitialized(LLVM::GlobalOp global) {
  if (global.getValueAttr())
    return true;
  Block *block = global.getInitializerBlock();
  if (!block)
    return false;
  auto result = cast<LLVM::ReturnOp>(block->getTerminator());
  Operation *value =
      result.getArg() ? result.getArg().getDefiningOp() : nullptr;
  return !isa_and_nonnull<LLVM::UndefOp, LLVM::PoisonOp>(value);
}

LogicalResult KernelConverter::convertGlobals(HostKernel &info) {
  DataLayout layout(module);
  uint64_t offset = 0;
  SmallVector<LLVM::GlobalOp> shared;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    uint64_t bytes = layout.getTypeSize(global.getGlobalType());
    if (global.getAddrSpace() == kSharedSpace) {
      if (isInitialized(global))
        return global.emitError("expected shared memory without an initial "
                                "value, but got one for '")
               << global.getName() << "'";
      // As in PTX: what has no size of its own is the dynamic part.
      bool isDynamic =
          bytes == 0 || global.getName().starts_with("__dynamic_shmem__");
      if (!isDynamic) {
        uint64_t alignment = std::max<uint64_t>(
            global.getAlignment().value_or(1),
            layout.getTypeABIAlignment(global.getGlobalType()));
        offset = llvm::alignTo(offset, alignment);
      }
      sharedGlobals[global.getSymNameAttr()] = {isDynamic, offset};
      if (!isDynamic)
        offset += bytes;
      shared.push_back(global);
      continue;
    }
    if (!global.getConstant())
      return global.emitError("no emulation rule for the writable global '")
             << global.getName() << "'";
    info.constants.push_back({global.getName().str(), bytes});
    global.setAddrSpace(0);
    // Checks look its address up.
    global.setLinkage(LLVM::Linkage::External);
  }
  for (LLVM::GlobalOp global : shared)
    global.erase();
  info.limits.staticSharedBytes = static_cast<uint32_t>(offset);
  return success();
}

void KernelConverter::flattenAddressSpaces() {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](LLVM::LLVMPointerType type) -> Type {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

LogicalResult KernelConverter::convertAddressOf(LLVM::AddressOfOp op) {
  auto it = sharedGlobals.find(op.getGlobalNameAttr().getAttr());
  if (it == sharedGlobals.end())
    return success(); // A constant or a function: kept.
  SharedGlobal place = it->second;
  Value address =
      loadRegister(op,
                   place.isDynamic ? offsetof(ThreadRegisters, dynamicShared)
                                   : offsetof(ThreadRegisters, staticShared),
                   pointerType);
  if (!place.isDynamic && place.offset != 0) {
    OpBuilder builder(op);
    address = LLVM::GEPOp::create(
        builder, op.getLoc(), pointerType, builder.getI8Type(), address,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(place.offset)});
  }
  op.replaceAllUsesWith(address);
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Operations of the LLVM dialect
//===----------------------------------------------------------------------===//

LogicalResult KernelConverter::convertCall(LLVM::CallOp call) {
  std::optional<StringRef> callee = call.getCallee();
  if (!callee)
    return call.emitError("no emulation rule for an indirect call");
  auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(*callee);
  if (!function || function.isExternal())
    return call.emitError("no emulation rule for the external function '")
           << *callee << "'";
  return success();
}

/// The target-independent intrinsic for an approximation of the hardware.
static StringRef getExactIntrinsic(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .StartsWith("llvm.nvvm.ex2.approx", "llvm.exp2")
      .StartsWith("llvm.nvvm.lg2.approx", "llvm.log2")
      .StartsWith("llvm.nvvm.sqrt", "llvm.sqrt")
      .StartsWith("llvm.nvvm.sin.approx", "llvm.sin")
      .StartsWith("llvm.nvvm.cos.approx", "llvm.cos")
      .StartsWith("llvm.nvvm.tanh.approx", "llvm.tanh")
      .StartsWith("llvm.nvvm.fabs", "llvm.fabs")
      .StartsWith("llvm.nvvm.fma.rn", "llvm.fma")
      .Default("");
}

LogicalResult
KernelConverter::convertIntrinsicCall(LLVM::CallIntrinsicOp call) {
  StringRef name = call.getIntrin();
  if (!name.starts_with("llvm.nvvm."))
    return success();
  if (name.starts_with("llvm.nvvm.rcp") ||
      name.starts_with("llvm.nvvm.rsqrt")) {
    OpBuilder builder(call);
    Location loc = call.getLoc();
    Type type = call.getResult(0).getType();
    Value value = call.getArgs()[0];
    if (name.starts_with("llvm.nvvm.rsqrt"))
      value = LLVM::SqrtOp::create(builder, loc, type, value);
    Value one = LLVM::ConstantOp::create(builder, loc, type,
                                         builder.getFloatAttr(type, 1.0));
    call.getResult(0).replaceAllUsesWith(
        LLVM::FDivOp::create(builder, loc, type, one, value));
    call.erase();
    return success();
  }
  StringRef exact = getExactIntrinsic(name);
  if (exact.empty())
    return call.emitError("no emulation rule for ") << name;
  call.setIntrin(exact);
  return success();
}

void KernelConverter::convertDivision(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value dividend = op->getOperand(0), divisor = op->getOperand(1);
  Type type = divisor.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto constant = [&](const APInt &value) -> Value {
    TypedAttr attribute =
        builder.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, value);
    return LLVM::ConstantOp::create(builder, loc, type, attribute);
  };
  auto equals = [&](Value value, const APInt &other) -> Value {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, value,
                                constant(other));
  };
  Value traps = equals(divisor, APInt::getZero(width));
  if (isa<LLVM::SDivOp, LLVM::SRemOp>(op)) {
    Value overflows = LLVM::AndOp::create(
        builder, loc, equals(dividend, APInt::getSignedMinValue(width)),
        equals(divisor, APInt::getAllOnes(width)));
    traps = LLVM::OrOp::create(builder, loc, traps, overflows);
  }
  op->setOperand(1, LLVM::SelectOp::create(builder, loc, traps,
                                           constant(APInt(width, 1)), divisor));
}

LogicalResult KernelConverter::convertLLVMOp(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallOp>(op))
    return convertCall(call);
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return convertIntrinsicCall(call);
  if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
    return convertAddressOf(address);
  if (isa<LLVM::SDivOp, LLVM::UDivOp, LLVM::SRemOp, LLVM::URemOp>(op)) {
    convertDivision(op);
    return success();
  }
  if (auto cast = dyn_cast<LLVM::AddrSpaceCastOp>(op)) {
    cast.getRes().replaceAllUsesWith(cast.getArg());
    cast.erase();
    return success();
  }
  if (auto multiplyAdd = dyn_cast<LLVM::FMulAddOp>(op)) {
    // NVPTX always fuses it; a host may or may not.
    OpBuilder builder(op);
    auto fused = LLVM::FMAOp::create(
        builder, op->getLoc(), multiplyAdd.getType(), multiplyAdd.getA(),
        multiplyAdd.getB(), multiplyAdd.getC(), multiplyAdd.getFastmathFlags());
    multiplyAdd.replaceAllUsesWith(fused.getResult());
    op->erase();
    return success();
  }
  // Hosts take any alignment, so a promise that does not hold has no effect
  // here; `checkBounds` looks for those.
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    if (load.getOrdering() == LLVM::AtomicOrdering::not_atomic)
      load.setAlignment(1);
    return success();
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    if (store.getOrdering() == LLVM::AtomicOrdering::not_atomic)
      store.setAlignment(1);
    return success();
  }
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op)) {
    load.setAlignment(1);
    return success();
  }
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op)) {
    store.setAlignment(1);
    return success();
  }
  if (isa<LLVM::AssumeOp>(op)) {
    op->erase();
    return success();
  }
  if (auto cast = dyn_cast<LLVM::PtrToIntOp>(op))
    if (!cast.getType().isInteger(64))
      return cast.emitError("no emulation rule for a pointer as ")
             << cast.getType();
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return convertTiedAssembly(assembly);
  if (isa<LLVM::LLVMFuncOp, LLVM::AliasOp, LLVM::InvokeOp, LLVM::VaStartOp>(op))
    return reject(op);
  return success();
}

LogicalResult KernelConverter::convertOp(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "llvm")
    return convertLLVMOp(op);
  if (dialect == "nvvm")
    return convertNVVMOp(op);
  return reject(op);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

void KernelConverter::convertFunction(LLVM::LLVMFuncOp function) {
  // Attributes speak of the GPU, and alignments may be promised wrongly.
  SmallVector<StringAttr> attributes;
  for (NamedAttribute attribute : function->getDiscardableAttrs())
    attributes.push_back(attribute.getName());
  for (StringAttr name : attributes)
    function->removeAttr(name);
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
    for (StringRef name : {"llvm.align", "llvm.byval", "nvvm.grid_constant",
                           "llvm.dereferenceable"})
      function.removeArgAttr(i, name);
  function.removeMemoryEffectsAttr();
  function.setCConv(LLVM::CConv::C);
  function.setLinkage(LLVM::Linkage::Internal);
}

void KernelConverter::emitEntry(LLVM::LLVMFuncOp kernel,
                                const HostKernel &info) {
  // A parameter passed by value in memory is its own address.
  SmallVector<bool> isByValue;
  for (unsigned i = 0, e = kernel.getNumArguments(); i < e; ++i)
    isByValue.push_back(bool(kernel.getArgAttr(i, "llvm.byval")));
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, info.entryName,
      LLVM::LLVMFunctionType::get(voidType, {pointerType}));
  Block *block = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    Value slot = LLVM::GEPOp::create(
        builder, loc, pointerType, pointerType, block->getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    Value value = LLVM::LoadOp::create(builder, loc, pointerType, slot);
    if (!isByValue[i])
      value = LLVM::LoadOp::create(builder, loc, type, value, /*alignment=*/1);
    arguments.push_back(value);
  }
  LLVM::CallOp::create(builder, loc, kernel, arguments);
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
}

LogicalResult KernelConverter::convert(const Instrumentation &instrumentation,
                                       HostKernel &info) {
  LLVM::LLVMFuncOp kernel;
  SmallVector<Operation *> ops;
  SmallVector<LLVM::LLVMFuncOp> functions;
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      if (isKernel(op) && !kernel)
        kernel = function;
      functions.push_back(function);
      continue;
    }
    if (!isa<LLVM::GlobalOp>(op))
      return reject(&op);
  }
  if (failed(convertGlobals(info)))
    return failure();
  flattenAddressSpaces();
  for (LLVM::LLVMFuncOp function : functions)
    function.getBody().walk([&](Operation *op) { ops.push_back(op); });
  if (instrumentation.basicBlocks)
    for (LLVM::LLVMFuncOp function : functions)
      countInstructions(function, info.basicBlocks);
  if (instrumentation.accesses)
    for (Operation *op : ops)
      if (failed(instrumentOp(op)))
        return failure();
  if (failed(convertProducts(kernel, ops)))
    return failure();
  for (Operation *op : ops)
    if (failed(convertOp(op)))
      return failure();
  emitEntry(kernel, info);
  for (LLVM::LLVMFuncOp function : functions) {
    if (function.isExternal())
      function.erase(); // Not called: calls of them are errors.
    else
      convertFunction(function);
  }
  return verify(module);
}
