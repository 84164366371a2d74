//===- Library.cpp - Ahead-of-time libraries ------------------------------===//
#include "FTuner/Target/Library.h"
#include "FTuner/Emulator/FloatConversions.h"
#include "FTuner/Emulator/HostImage.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "LibraryModule.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
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

namespace ftuner {

/// The symbol of the image for the emulator.
static std::string getHostImageSymbol(StringRef libraryName) {
  return (libraryName + "_host_image").str();
}

std::string getModuleSymbol(StringRef libraryName) {
  return (libraryName + "_module").str();
}

/// The functions that a library exports.
static llvm::StringSet<> collectExports(ModuleOp module) {
  llvm::StringSet<> exports;
  for (auto function : module.getOps<func::FuncOp>())
    if (getAbiType(function))
      for (StringRef suffix : {"", "_result_sizes", "_workspace_size"})
        exports.insert((function.getName() + suffix).str());
  return exports;
}

LogicalResult checkLibraryNames(ModuleOp module,
                                const LibraryOptions &options) {
  llvm::StringSet<> taken = collectSymbols(module);
  for (const auto &name : collectExports(module))
    taken.insert(name.getKey());
  SmallVector<std::string> added = {getModuleSymbol(options.name)};
  if (options.hasEmulatorImage)
    added.push_back(getHostImageSymbol(options.name));
  for (const std::string &name : added)
    if (taken.contains(name))
      return module.emitError("expected a name other than '")
             << name
             << "' for a function of the module: it is that of an object of "
                "the library '"
             << options.name << "'";
  return success();
}

/// A machine for the processor that `cpu` names.
static FailureOr<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(ModuleOp module, StringRef cpu) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error, name = cpu.str(), features;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return module.emitError("LLVM cannot compile for this machine: ") << error;
  if (cpu.empty()) {
    name = triple.getArch() == llvm::Triple::x86_64 ? "x86-64" : "generic";
  } else if (cpu == "native") {
    name = llvm::sys::getHostCPUName().str();
    llvm::SubtargetFeatures list;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      list.AddFeature(feature.first(), feature.second);
    features = list.getString();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!subtarget->isCPUStringValid(name))
    return module.emitError("expected a processor that LLVM knows as that of "
                            "the host code, but got '")
           << name << "'";
  subtarget.reset(target->createMCSubtargetInfo(triple, name, ""));
  if (triple.isX86_64() && !subtarget->checkFeatures("+64bit"))
    return module.emitError("expected a processor of 64 bits as that of the "
                            "host code, but got '")
           << name << "'";
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, name, features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Lowers the host functions of a copy of `module` to LLVM IR.
static std::unique_ptr<llvm::Module>
translateHostCode(ModuleOp module, StringRef libraryName,
                  llvm::LLVMContext &context) {
  OwningOpRef<ModuleOp> host = module.clone();
  PassManager pm(module.getContext());
  buildHostLoweringPipeline(pm, getModuleSymbol(libraryName));
  if (failed(pm.run(*host)))
    return nullptr;
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(*host, context, libraryName);
  if (!result)
    module.emitError("translation of the host code to LLVM IR failed");
  return result;
}

static FailureOr<std::string> emitObject(ModuleOp module, llvm::Module &code,
                                         llvm::TargetMachine &machine) {
  // A function of a large model is one long list of launches: passes of higher
  // levels find nothing more in it, and some take quadratic time.
  if (llvm::Error error = makeOptimizingTransformer(
          /*optLevel=*/1, /*sizeLevel=*/0, &machine)(&code))
    return module.emitError("LLVM cannot optimize the host code: ")
           << llvm::toString(std::move(error));
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return module.emitError("LLVM cannot write object files for this machine");
  passes.run(code);
  return object.str().str();
}

FailureOr<std::vector<std::string>>
compileLibrary(ModuleOp module, const PtxImages &ptx, StringRef manifest,
               const LibraryOptions &options) {
  if (failed(checkLibraryNames(module, options)))
    return failure();
  FailureOr<std::unique_ptr<llvm::TargetMachine>> machine =
      createHostMachine(module, options.hostCpu);
  if (failed(machine))
    return failure();

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateHostCode(module, options.name, context);
  if (!code)
    return failure();
  code->setDataLayout((*machine)->createDataLayout());
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setPICLevel(llvm::PICLevel::BigPIC);
  LibraryContents contents;
  contents.moduleSymbol = getModuleSymbol(options.name);
  if (options.hasEmulatorImage)
    contents.hostImageSymbol = getHostImageSymbol(options.name);
  contents.manifest = manifest;
  addModuleObject(*code, ptx, contents, options);
  addFloatConversions(*code);
  limitExports(*code, collectExports(module), contents.moduleSymbol);

  FailureOr<std::string> object = emitObject(module, *code, **machine);
  if (failed(object))
    return failure();
  std::vector<std::string> objects = {std::move(*object)};
  if (!options.hasEmulatorImage)
    return objects;
  FailureOr<std::vector<std::string>> image = emulator::compileHostImage(
      module, {contents.hostImageSymbol, options.hostCpu, /*features=*/""});
  if (failed(image))
    return failure();
  for (std::string &part : *image)
    objects.push_back(std::move(part));
  return objects;
}

} // namespace ftuner
