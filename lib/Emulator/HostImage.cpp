//===- HostImage.cpp - Kernels for the emulator, ahead of time ------------===//
#include "FTuner/Emulator/HostImage.h"
#include "ConvertNVVMToHost.h"
#include "EmulatedKernelCompiler.h"
#include "FTuner/Emulator/FloatConversions.h"
#include "RuntimeFunctions.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;

namespace ftuner::emulator {

//===----------------------------------------------------------------------===//
// The processor
//===----------------------------------------------------------------------===//

namespace {
/// The machine that LLVM generates code for.
struct HostTarget {
  const llvm::Target *target;
  llvm::Triple triple;
  std::string cpu;
  std::string features;

  std::unique_ptr<llvm::TargetMachine> createMachine() const {
    return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
        triple, cpu, features, llvm::TargetOptions(), llvm::Reloc::PIC_));
  }
};
} // namespace

static FailureOr<HostTarget> findTarget(ModuleOp module,
                                        const HostImageOptions &options) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  HostTarget result;
  result.triple = llvm::Triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  result.target = llvm::TargetRegistry::lookupTarget(result.triple, error);
  if (!result.target)
    return module.emitError("cannot compile for this machine: ") << error;
  llvm::SubtargetFeatures features(options.features);
  result.cpu = options.cpu;
  if (options.cpu.empty()) {
    result.cpu = result.triple.isX86_64() ? "x86-64-v3" : "generic";
  } else if (options.cpu == "native") {
    result.cpu = llvm::sys::getHostCPUName().str();
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features.AddFeature(feature.getKey(), feature.getValue());
  }
  removeFlushingConversions(result.triple, features);
  result.features = features.getString();
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      result.target->createMCSubtargetInfo(result.triple, "", ""));
  if (!subtarget->isCPUStringValid(result.cpu))
    return module.emitError("expected a processor that LLVM knows for ")
           << result.triple.str() << ", but got '" << result.cpu << "'";
  subtarget.reset(result.target->createMCSubtargetInfo(
      result.triple, result.cpu, result.features));
  // The emulator itself asks for them (Core/EmulatorLibrary.cpp).
  if (result.triple.isX86_64() &&
      !subtarget->checkFeatures("+avx2,+bmi2,+f16c,+fma"))
    return module.emitError("expected a processor with the instructions of "
                            "x86-64-v3 (AVX2 and FMA), but got '")
           << result.cpu << "'";
  return result;
}

/// Generates an object file.
static llvm::Expected<std::string> emitObject(llvm::Module &module,
                                              llvm::TargetMachine &machine) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("LLVM cannot write object files for " +
                                   module.getTargetTriple().str());
  passes.run(module);
  return bytes.str().str();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static std::string getTableName(StringRef image) {
  return (image + "_functions").str();
}
static std::string getEntryName(StringRef image, size_t kernel) {
  return (image + "_entry" + Twine(kernel)).str();
}

/// Makes kernels call the emulator through the image's table.
static void callThroughTable(llvm::Module &module, StringRef image) {
  llvm::Type *pointer = llvm::PointerType::get(module.getContext(), 0);
  auto *tableType = llvm::ArrayType::get(pointer, kRuntimeFunctionCount);
  auto *table = new llvm::GlobalVariable(
      module, tableType, /*isConstant=*/false,
      llvm::GlobalValue::ExternalLinkage, nullptr, getTableName(image));
  table->setVisibility(llvm::GlobalValue::HiddenVisibility);
  for (uint32_t i = 0; i < kRuntimeFunctionCount; ++i) {
    llvm::Function *function =
        module.getFunction(getRuntimeFunctions()[i].name);
    if (!function)
      continue;
    for (llvm::User *user : llvm::make_early_inc_range(function->users())) {
      auto *call = llvm::cast<llvm::CallInst>(user);
      llvm::IRBuilder<> builder(call);
      llvm::Value *slot =
          builder.CreateConstInBoundsGEP2_64(tableType, table, 0, i);
      llvm::LoadInst *address = builder.CreateLoad(pointer, slot);
      // Filled in before the first launch.
      address->setMetadata(llvm::LLVMContext::MD_invariant_load,
                           llvm::MDNode::get(module.getContext(), {}));
      // An indirect call has no declaration to take its properties from.
      llvm::AttrBuilder attributes(module.getContext(),
                                   function->getAttributes().getFnAttrs());
      call->setAttributes(call->getAttributes().addFnAttributes(
          module.getContext(), attributes));
      call->setCalledOperand(address);
    }
    function->eraseFromParent();
  }
}

/// Leaves one symbol of the kernel, its entry, visible to the image.
static void prepareSymbols(llvm::Module &module, StringRef entry,
                           StringRef newName) {
  for (llvm::GlobalValue &value : module.global_values()) {
    if (value.isDeclaration())
      continue;
    if (value.getName() == entry) {
      value.setVisibility(llvm::GlobalValue::HiddenVisibility);
      value.setName(newName);
    } else {
      value.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
}

namespace {
/// One kernel of the image, without its code.
struct ImageKernel {
  std::string name;
  uint32_t staticSharedBytes;
  uint16_t threads;
  uint16_t clusterSize;
};
} // namespace

static FailureOr<std::string> compileKernel(Operation *op, StringRef image,
                                            size_t index,
                                            const HostTarget &target,
                                            ImageKernel &info) {
  SiteTable sites{UnknownLoc::get(op->getContext())};
  FailureOr<HostKernel> kernel = convertToHost(op, Instrumentation(), sites);
  if (failed(kernel))
    return failure();
  info.name = cast<SymbolOpInterface>(op).getName().str();
  info.staticSharedBytes = kernel->limits.staticSharedBytes;
  const auto &block = kernel->limits.knownBlock;
  if (!block || (*block)[1] != 1 || (*block)[2] != 1)
    return op->emitError("expected a known block size of the form (x, 1, 1)");
  if (std::max((*block)[0], kernel->limits.clusterSize) > UINT16_MAX)
    return op->emitError("expected a block and clusters of at most ")
           << UINT16_MAX << ", but got " << (*block)[0] << " threads and "
           << kernel->limits.clusterSize << " blocks";
  info.threads = static_cast<uint16_t>((*block)[0]);
  info.clusterSize = static_cast<uint16_t>(kernel->limits.clusterSize);

  auto fail = [&](llvm::Error error) {
    return op->emitError("cannot compile kernel for the emulator: ")
           << llvm::toString(std::move(error));
  };
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine = target.createMachine();
  auto module = translateKernel(*kernel, context, *machine);
  if (!module)
    return fail(module.takeError());
  prepareSymbols(**module, kernel->entryName, getEntryName(image, index));
  callThroughTable(**module, image);
  if (llvm::Error error = makeOptimizingTransformer(
          /*optLevel=*/2, /*sizeLevel=*/0, machine.get())(module->get()))
    return fail(std::move(error));
  addFloatConversions(**module);
  auto object = emitObject(**module, *machine);
  if (!object)
    return fail(object.takeError());
  return std::move(*object);
}

//===----------------------------------------------------------------------===//
// The image
//===----------------------------------------------------------------------===//

/// The object of the ftrt_host_image itself (FTuner/Runtime/ftrt.h).
static llvm::Expected<std::string> compileTables(StringRef image,
                                                 ArrayRef<ImageKernel> kernels,
                                                 const HostTarget &target) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine = target.createMachine();
  llvm::Module module(image, context);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i32 = llvm::Type::getInt32Ty(context);
  llvm::Type *i16 = llvm::Type::getInt16Ty(context);
  auto makeGlobal = [&](llvm::Constant *value, bool isConstant,
                        llvm::GlobalValue::LinkageTypes linkage,
                        const llvm::Twine &name) {
    auto *global = new llvm::GlobalVariable(module, value->getType(),
                                            isConstant, linkage, value, name);
    if (!global->hasLocalLinkage())
      global->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return global;
  };

  auto *tableType = llvm::ArrayType::get(pointer, kRuntimeFunctionCount);
  auto *table =
      makeGlobal(llvm::ConstantAggregateZero::get(tableType),
                 /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                 getTableName(image));
  auto *kernelType = llvm::StructType::get(pointer, pointer, i32, i16, i16);
  auto *entryType = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                            {pointer}, /*isVarArg=*/false);
  std::vector<llvm::Constant *> records;
  for (auto [index, kernel] : llvm::enumerate(kernels)) {
    auto *name = makeGlobal(
        llvm::ConstantDataArray::getString(context, kernel.name),
        /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, "name");
    auto *entry =
        llvm::Function::Create(entryType, llvm::GlobalValue::ExternalLinkage,
                               getEntryName(image, index), module);
    entry->setVisibility(llvm::GlobalValue::HiddenVisibility);
    records.push_back(llvm::ConstantStruct::get(
        kernelType,
        {name, entry, llvm::ConstantInt::get(i32, kernel.staticSharedBytes),
         llvm::ConstantInt::get(i16, kernel.threads),
         llvm::ConstantInt::get(i16, kernel.clusterSize)}));
  }
  auto *list =
      makeGlobal(llvm::ConstantArray::get(
                     llvm::ArrayType::get(kernelType, records.size()), records),
                 /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                 image + "_kernels");
  auto *imageType = llvm::StructType::get(pointer, i32, i32, pointer);
  makeGlobal(
      llvm::ConstantStruct::get(
          imageType, {table, llvm::ConstantInt::get(i32, kRuntimeFunctionCount),
                      llvm::ConstantInt::get(i32, records.size()), list}),
      /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, image);
  return emitObject(module, *machine);
}

static bool isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

FailureOr<std::vector<std::string>>
compileHostImage(ModuleOp module, const HostImageOptions &options) {
  if (!isIdentifier(options.name))
    return module.emitError("expected a C identifier as name of the host "
                            "image, but got '")
           << options.name << "'";
  FailureOr<HostTarget> target = findTarget(module, options);
  if (failed(target))
    return failure();
  auto kernels = findKernels(module);
  if (failed(kernels))
    return failure();
  if (kernels->empty())
    return module.emitError("nothing to compile: the module holds no kernels");
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);

  std::vector<std::string> objects(kernels->size());
  std::vector<ImageKernel> infos(kernels->size());
  ParallelDiagnosticHandler diagnostics(context);
  auto compile = [&](size_t index) -> LogicalResult {
    diagnostics.setOrderIDForThread(index);
    FailureOr<std::string> object = compileKernel(
        (*kernels)[index], options.name, index, *target, infos[index]);
    diagnostics.eraseOrderIDForThread();
    if (failed(object))
      return failure();
    objects[index] = std::move(*object);
    return success();
  };
  if (failed(failableParallelForEachN(context, 0, kernels->size(), compile)))
    return failure();
  auto tables = compileTables(options.name, infos, *target);
  if (!tables)
    return module.emitError("cannot compile the host image: ")
           << llvm::toString(tables.takeError());
  objects.push_back(std::move(*tables));
  return objects;
}

} // namespace ftuner::emulator
