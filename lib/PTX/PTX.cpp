//===- PTX.cpp - PTX of a compiled module ---------------------------------===//
#include "FTuner/PTX/PTX.h"
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/Images.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "KernelPasses.h"
#include "PTXText.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

using namespace mlir;

namespace ftuner {

namespace {
constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";
/// NVVM's address space of shared memory.
constexpr unsigned kSharedAddressSpace = 3;
/// Vector accesses of shared memory are 16 bytes wide.
constexpr uint64_t kDynamicSharedAlignment = 16;
/// Matrices that instructions of exact architectures read from shared memory
/// are swizzled in patterns that begin at multiples of this.
constexpr uint64_t kMatrixAlignment = 1024;
} // namespace

static const llvm::Target *findNvptxTarget() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(kTriple), error);
}

/// The version of the PTX ISA, as a feature: one that all drivers of the
/// processor can read. The last drivers for Kepler read up to 7.4.
/// Bulk copies into the shared memory of a block alone, which kernels for
/// sm_90a may use, came with 8.6.
static std::string ptxFeature(const GpuArchitecture &architecture) {
  constexpr int firstMaxwell = 50, lastWithOldPtx = 90, newAmpere = 88;
  int smVersion = architecture.number;
  if (smVersion < firstMaxwell)
    return "+ptx65";
  if (architecture.isExact)
    return smVersion <= lastWithOldPtx ? "+ptx86" : "";
  return smVersion <= lastWithOldPtx && smVersion != newAmpere ? "+ptx80" : "";
}

std::string GpuArchitecture::name() const {
  return "sm_" + std::to_string(number) + (isExact ? "a" : "");
}

/// Returns whether the kernel belongs to a path that needs an exact
/// architecture. A kernel that adds up slices does not need one.
static bool needsExactArchitecture(gpu::GPUModuleOp kernel) {
  if (kernel->hasAttr(kAddsSlicesAttrName))
    return false;
  auto entry = kernel->getAttrOfType<ukernel::EntryAttr>(
      ukernel::UKernelDialect::kEntryAttrName);
  return entry && llvm::any_of(entry.getUses(), [](ukernel::UseAttr use) {
           Schedule schedule = use.getFamily().getSchedule().toSchedule();
           return schedule.path().needsExactArchitecture();
         });
}

bool needsExactArchitecture(ModuleOp module) {
  return llvm::any_of(
      module.getOps<gpu::GPUModuleOp>(),
      [](gpu::GPUModuleOp kernel) { return needsExactArchitecture(kernel); });
}

/// Selects the kernels of the exact image, or of the portable one. What nothing
/// launches is in both, if it runs there.
static std::vector<gpu::GPUModuleOp> kernelsOfImage(ModuleOp module,
                                                    bool isExact) {
  auto images = ukernel::collectLaunchedImages(module);
  std::vector<gpu::GPUModuleOp> kernels;
  for (auto kernel : module.getOps<gpu::GPUModuleOp>()) {
    auto found = images.find(kernel.getSymNameAttr());
    bool isIn = found == images.end()
                    ? isExact || !needsExactArchitecture(kernel)
                    : (isExact ? found->second.exact : found->second.portable);
    if (isIn)
      kernels.push_back(kernel);
  }
  return kernels;
}

bool hasPortableImage(ModuleOp module) {
  if (!needsExactArchitecture(module))
    return false;
  auto images = ukernel::collectLaunchedImages(module);
  bool isUsed = llvm::any_of(
      images, [](const auto &entry) { return entry.second.portable; });
  return isUsed &&
         llvm::all_of(
             module.getOps<gpu::GPUModuleOp>(), [&](gpu::GPUModuleOp kernel) {
               auto found = images.find(kernel.getSymNameAttr());
               return !needsExactArchitecture(kernel) ||
                      (found != images.end() && !found->second.portable);
             });
}

FailureOr<PtxTarget> getPtxTarget(ModuleOp module,
                                  const GpuArchitecture &architecture) {
  // No line of the module chose the architecture.
  Location nowhere = UnknownLoc::get(module.getContext());
  const llvm::Target *target = findNvptxTarget();
  if (!target)
    return emitError(nowhere, "LLVM was built without the NVPTX target");
  PtxTarget result{architecture, ptxFeature(architecture)};
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(llvm::Triple(kTriple), "", ""));
  if (!subtarget->isCPUStringValid(result.chip()))
    return emitError(nowhere, "expected an architecture that LLVM can generate "
                              "code for, but got '")
           << result.chip() << "'";
  if (needsExactArchitecture(module) &&
      (architecture.isExact || !hasPortableImage(module))) {
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return failure();
    GpuArchitecture own{device->smVersion(), /*isExact=*/true};
    if (!(architecture == own))
      return emitError(nowhere, "expected the architecture '")
             << own.name() << "', whose instructions kernels have, but got '"
             << result.chip() << "'";
  } else if (architecture.isExact) {
    return emitError(nowhere, "expected the architecture '")
           << GpuArchitecture{architecture.number}.name()
           << "', since no kernel has instructions of one architecture alone, "
              "but got '"
           << result.chip() << "'";
  }
  return result;
}

FailureOr<PtxTarget> getPtxTarget(ModuleOp module) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  if (failed(device))
    return failure();
  return getPtxTarget(module,
                      {device->smVersion(), needsExactArchitecture(module)});
}

/// Returns true for an intrinsic that PTX has no instruction for on its operand
/// type; LLVM would end the program for it.
static bool needsDeviceLibrary(const llvm::IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case llvm::Intrinsic::exp:
  case llvm::Intrinsic::exp10:
  case llvm::Intrinsic::log:
  case llvm::Intrinsic::log2:
  case llvm::Intrinsic::log10:
  case llvm::Intrinsic::pow:
  case llvm::Intrinsic::powi:
  case llvm::Intrinsic::sin:
  case llvm::Intrinsic::cos:
  case llvm::Intrinsic::sincos:
  case llvm::Intrinsic::tan:
  case llvm::Intrinsic::asin:
  case llvm::Intrinsic::acos:
  case llvm::Intrinsic::atan:
  case llvm::Intrinsic::atan2:
  case llvm::Intrinsic::sinh:
  case llvm::Intrinsic::cosh:
  case llvm::Intrinsic::tanh:
  case llvm::Intrinsic::ldexp:
  case llvm::Intrinsic::frexp:
  case llvm::Intrinsic::modf:
    return true;
  case llvm::Intrinsic::exp2:
    return call.getType()->getScalarType()->isDoubleTy();
  default:
    return false;
  }
}

/// Finds a function that exists in no kernel and in no instruction.
static std::string findMissingFunction(const llvm::Module &module) {
  for (const llvm::Function &function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      return function.getName().str();
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
        if (needsDeviceLibrary(*call))
          return call->getCalledFunction()->getName().str();
  }
  return {};
}

/// Inline assembly may be for all threads of a warp together, which no
/// operation of the LLVM dialect says: no pass may make its execution depend on
/// more.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (call->isInlineAsm())
          call->setConvergent();
}

/// Prepares the symbols for a module that many kernels share: dynamic shared
/// memory is one external array, everything else but the entry is internal to
/// the kernel and carries its name.
static void prepareSymbols(llvm::Module &module, StringRef entry,
                           llvm::Align sharedAlignment) {
  for (llvm::GlobalVariable &global :
       llvm::make_early_inc_range(module.globals())) {
    auto *array = llvm::dyn_cast<llvm::ArrayType>(global.getValueType());
    if (global.getAddressSpace() == kSharedAddressSpace && array &&
        array->getNumElements() == 0) {
      global.setInitializer(nullptr);
      global.setLinkage(llvm::GlobalValue::ExternalLinkage);
      global.setAlignment(
          std::max(sharedAlignment, global.getAlign().valueOrOne()));
      llvm::GlobalVariable *first = module.getNamedGlobal(kDynamicSharedName);
      if (first && first != &global) {
        first->setAlignment(std::max(*first->getAlign(), *global.getAlign()));
        global.replaceAllUsesWith(first);
        global.eraseFromParent();
      } else {
        global.setName(kDynamicSharedName);
      }
      continue;
    }
    if (!global.isDeclaration()) {
      global.setName(entry + "_" + global.getName());
      global.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  }
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || function.getName() == entry)
      continue;
    function.setName(entry + "_" + function.getName());
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

namespace {
/// Turns LLVM's diagnostics into MLIR's, at the operation being translated.
struct DiagnosticForwarder : llvm::DiagnosticHandler {
  explicit DiagnosticForwarder(Operation *op) : op(op) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      op->emitError("LLVM cannot generate PTX: ") << text;
      failed = true;
    }
    return true;
  }
  Operation *op;
  bool failed = false;
};
} // namespace

namespace {
/// Passes of code generation that change nothing in kernels: n-ary
/// reassociation, and the removal of common subexpressions behind it.
struct CodeGenGate : llvm::OptPassGate {
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef) const override {
    bool isReassociation = pass == "nary-reassociate";
    bool isAfterIt = wasReassociation && pass == "early-cse";
    wasReassociation = isReassociation;
    return !isReassociation && !isAfterIt;
  }

private:
  /// True if the last pass that was asked for is n-ary reassociation.
  mutable bool wasReassociation = false;
};
} // namespace

/// Generates PTX for an optimized or unoptimized LLVM module.
static std::string emitAssembly(llvm::Module &module,
                                llvm::TargetMachine &machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile))
    return {};
  passes.run(module);
  return text.str().str();
}

/// Translates one gpu.module, which holds LLVM and NVVM operations.
static FailureOr<std::string> translateKernel(gpu::GPUModuleOp kernel,
                                              StringRef entry,
                                              const PtxTarget &target) {
  llvm::LLVMContext context;
  auto handler = std::make_unique<DiagnosticForwarder>(kernel);
  DiagnosticForwarder &forwarder = *handler;
  context.setDiagnosticHandler(std::move(handler));

  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(kernel, context, entry);
  if (!module)
    return kernel.emitError("translation to LLVM IR failed");
  std::unique_ptr<llvm::TargetMachine> machine(
      findNvptxTarget()->createTargetMachine(
          llvm::Triple(kTriple), target.chip(), target.features,
          llvm::TargetOptions(), std::nullopt, std::nullopt,
          // Above that, GVN takes the place of EarlyCSE in code generation: a
          // fifth of its time, for the same instructions in the end.
          llvm::CodeGenOptLevel::Default));
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(machine->getTargetTriple());

  prepareSymbols(*module, entry,
                 llvm::Align(target.architecture.isExact
                                 ? kMatrixAlignment
                                 : kDynamicSharedAlignment));
  markConvergent(*module);
  if (std::string name = findMissingFunction(*module); !name.empty())
    return kernel.emitError("kernel '")
           << entry << "' needs the function '" << name
           << "', which only a device library provides";
  optimizeKernel(*module, *machine);
  CodeGenGate gate;
  context.setOptPassGate(gate);
  std::string text = emitAssembly(*module, *machine);
  if (forwarder.failed)
    return failure();
  if (text.empty())
    return kernel.emitError("LLVM cannot generate PTX for '")
           << target.chip() << "'";
  if (StringRef name = findExternalFunction(text); !name.empty())
    return kernel.emitError("kernel '")
           << entry << "' needs the function '" << name
           << "', which only a device library provides";
  return text;
}

/// Reports operations that the processor has no instructions for; LLVM would
/// end the program for them.
static LogicalResult checkInstructions(gpu::GPUModuleOp kernel, StringRef entry,
                                       const PtxTarget &target) {
  constexpr int smOfCpAsync = 80;
  auto [smVersion, isExact] = target.architecture;
  auto isMissing = [&, smVersion = smVersion,
                    isExact = isExact](Operation *op) {
    if (isa<NVVM::CpAsyncOp, NVVM::CpAsyncCommitGroupOp,
            NVVM::CpAsyncWaitGroupOp>(op))
      return smVersion < smOfCpAsync;
    auto required = dyn_cast<NVVM::RequiresSMInterface>(op);
    return required && !required.getRequiredMinSMVersion().isCompatibleWith(
                           {isExact, smVersion});
  };
  WalkResult result = kernel.walk([&](Operation *op) {
    if (!isMissing(op))
      return WalkResult::advance();
    auto required = dyn_cast<NVVM::RequiresSMInterface>(op);
    bool isOfFew =
        required && required.getRequiredMinSMVersion().archAccelerated;
    kernel.emitError("kernel '")
        << entry << "' uses '" << op->getName() << "', which needs "
        << (isOfFew ? "another" : "a newer") << " processor than '"
        << target.chip() << "'";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Finds the entry of a gpu.module and makes its launch bounds explicit.
static FailureOr<StringRef> prepareEntry(gpu::GPUModuleOp kernel,
                                         llvm::StringSet<> &names) {
  LLVM::LLVMFuncOp entry;
  for (auto function : kernel.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    if (entry)
      return function.emitError("expected one kernel in 'gpu.module', but got "
                                "a second one");
    entry = function;
  }
  if (!entry)
    return kernel.emitError("expected one kernel in 'gpu.module' as a function "
                            "of the LLVM dialect, but got none");
  StringRef name = entry.getName();
  auto isCharacter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (name.empty() || llvm::isDigit(name[0]) ||
      !llvm::all_of(name, isCharacter))
    return entry.emitError("expected a C identifier as name of a kernel, but "
                           "got '")
           << name << "'";
  if (!names.insert(name).second)
    return entry.emitError("expected unique names of kernels, but got '")
           << name << "' twice";
  auto descriptor = kernel->getAttrOfType<ukernel::EntryAttr>(
      ukernel::UKernelDialect::kEntryAttrName);
  StringRef bounds = NVVM::NVVMDialect::getMaxntidAttrName();
  if (descriptor && !entry->hasAttr(bounds) &&
      !entry->hasAttr(NVVM::NVVMDialect::getReqntidAttrName()))
    entry->setAttr(bounds,
                   DenseI32ArrayAttr::get(
                       kernel.getContext(),
                       {static_cast<int32_t>(descriptor.getThreads()), 1, 1}));
  return name;
}

FailureOr<PtxModule> translateToPtx(ModuleOp module) {
  FailureOr<PtxTarget> target = getPtxTarget(module);
  if (failed(target))
    return failure();
  return translateToPtx(module, *target);
}

FailureOr<PtxModule> translateToPtx(ModuleOp module, const PtxTarget &target) {
  // The kernels are changed on the way: work on a copy of them.
  MLIRContext *context = module.getContext();
  auto all = module.getOps<gpu::GPUModuleOp>();
  std::vector<gpu::GPUModuleOp> originals =
      hasPortableImage(module)
          ? kernelsOfImage(module, target.architecture.isExact)
          : std::vector<gpu::GPUModuleOp>(all.begin(), all.end());
  if (originals.empty())
    return module.emitError("nothing to compile: the module holds no kernels");
  std::vector<gpu::GPUModuleOp> kernels(originals.size());
  parallelFor(context, 0, originals.size(),
              [&](size_t index) { kernels[index] = originals[index].clone(); });
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(module.getLoc());
  for (gpu::GPUModuleOp kernel : kernels)
    scratch->push_back(kernel);
  std::vector<StringRef> entries;
  llvm::StringSet<> names;
  for (gpu::GPUModuleOp kernel : kernels) {
    FailureOr<StringRef> entry = prepareEntry(kernel, names);
    if (failed(entry))
      return failure();
    if (failed(checkInstructions(kernel, *entry, target)))
      return failure();
    entries.push_back(*entry);
  }

  PassManager pm(context);
  OpPassManager &kernelPm = pm.nest<gpu::GPUModuleOp>();
  kernelPm.addPass(createConvertNVVMToLLVMPass());
  kernelPm.addPass(createReconcileUnrealizedCastsPass());
#ifdef NDEBUG
  // LLVM verifies what becomes of them.
  pm.enableVerifier(false);
#endif
  if (failed(pm.run(*scratch)))
    return failure();

  PtxModule result;
  result.target = target;
  result.kernels.resize(kernels.size());
  // The copies are freed in parallel too.
  std::vector<OwningOpRef<gpu::GPUModuleOp>> copies;
  for (gpu::GPUModuleOp kernel : kernels) {
    kernel->remove();
    copies.emplace_back(kernel);
  }
  ParallelDiagnosticHandler diagnostics(context);
  auto translate = [&](size_t index) -> LogicalResult {
    diagnostics.setOrderIDForThread(index);
    FailureOr<std::string> text =
        translateKernel(kernels[index], entries[index], target);
    diagnostics.eraseOrderIDForThread();
    if (failed(text))
      return failure();
    result.kernels[index] = {entries[index].str(), std::move(*text)};
    copies[index] = {};
    return success();
  };
  if (failed(failableParallelForEachN(context, 0, kernels.size(), translate)))
    return failure();

  std::vector<StringRef> texts;
  for (const PtxKernel &kernel : result.kernels)
    texts.push_back(kernel.text);
  result.text = joinPtx(texts);
  return result;
}

FailureOr<PtxImages> translateImages(ModuleOp module) {
  PtxImages images;
  FailureOr<PtxModule> own = translateToPtx(module);
  if (failed(own))
    return failure();
  images.own = std::move(*own);
  if (!hasPortableImage(module))
    return images;
  FailureOr<PtxTarget> target =
      getPtxTarget(module, {images.own.target.architecture.number});
  if (failed(target))
    return failure();
  FailureOr<PtxModule> portable = translateToPtx(module, *target);
  if (failed(portable))
    return failure();
  images.portable = std::move(*portable);
  return images;
}

const PtxKernel *PtxModule::find(StringRef entry) const {
  auto found = llvm::find_if(
      kernels, [&](const PtxKernel &kernel) { return kernel.entry == entry; });
  return found == kernels.end() ? nullptr : &*found;
}

std::pair<const PtxModule *, const PtxKernel *>
PtxImages::find(StringRef entry) const {
  if (const PtxKernel *kernel = own.find(entry))
    return {&own, kernel};
  const PtxKernel *kernel = portable ? portable->find(entry) : nullptr;
  return {kernel ? &*portable : nullptr, kernel};
}

std::vector<StringRef> PtxImages::entries() const {
  std::vector<StringRef> entries;
  llvm::StringSet<> known;
  for (const PtxModule *image : {&own, portable ? &*portable : nullptr})
    if (image)
      for (const PtxKernel &kernel : image->kernels)
        if (known.insert(kernel.entry).second)
          entries.push_back(kernel.entry);
  return entries;
}

} // namespace ftuner
