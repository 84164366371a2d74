//===- EmulatedKernelCompiler.cpp - Converted kernels to machine code
//------===//
#include "EmulatedKernelCompiler.h"
#include "ConvertNVVMToHost.h"
#include "FTuner/Emulator/FloatConversions.h"
#include "RuntimeFunctions.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace ftuner::emulator;
using namespace llvm::orc;

EmulatedKernelCompiler::EmulatedKernelCompiler() = default;
EmulatedKernelCompiler::~EmulatedKernelCompiler() = default;

llvm::Expected<std::unique_ptr<EmulatedKernelCompiler>>
EmulatedKernelCompiler::create() {
  static const bool hasTarget = !llvm::InitializeNativeTarget() &&
                                !llvm::InitializeNativeTargetAsmPrinter();
  if (!hasTarget)
    return llvm::createStringError("cannot compile for this machine");
  auto builder = JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  removeFlushingConversions(builder->getTargetTriple(), builder->getFeatures());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  std::unique_ptr<EmulatedKernelCompiler> compiler(new EmulatedKernelCompiler);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  compiler->machine = std::move(*machine);
  auto jit = LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(*builder))
                 .setPlatformSetUp(setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  compiler->jit = std::move(*jit);
  SymbolMap runtime;
  for (const RuntimeFunction &function : getRuntimeFunctions())
    runtime[compiler->jit->mangleAndIntern(function.name)] = {
        ExecutorAddr::fromPtr(function.address),
        llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = compiler->jit->getMainJITDylib().define(
          absoluteSymbols(std::move(runtime))))
    return error;
  return compiler;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
ftuner::emulator::translateKernel(const HostKernel &kernel,
                                  llvm::LLVMContext &context,
                                  llvm::TargetMachine &machine) {
  std::unique_ptr<llvm::Module> module =
      mlir::translateModuleToLLVMIR(*kernel.module, context, kernel.entryName);
  if (!module)
    return llvm::createStringError("cannot translate '" + kernel.entryName +
                                   "' to LLVM IR");
  module->setDataLayout(machine.createDataLayout());
  module->setTargetTriple(machine.getTargetTriple());
  return module;
}

llvm::Expected<CompiledKernel>
EmulatedKernelCompiler::compile(const HostKernel &kernel) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto translated = translateKernel(kernel, *context, *machine);
  if (!translated)
    return translated.takeError();
  std::unique_ptr<llvm::Module> module = std::move(*translated);
  if (llvm::Error error = mlir::makeOptimizingTransformer(
          /*optLevel=*/2, /*sizeLevel=*/0, machine.get())(module.get()))
    return error;
  addFloatConversions(*module);

  auto library =
      jit->createJITDylib("kernel" + std::to_string(compiledKernels++));
  if (!library)
    return library.takeError();
  library->addToLinkOrder(jit->getMainJITDylib());
  if (llvm::Error error = jit->addIRModule(
          *library, ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  auto entry = jit->lookup(*library, kernel.entryName);
  if (!entry)
    return entry.takeError();
  CompiledKernel result;
  result.entry = entry->toPtr<void (*)(void **)>();
  for (const auto &[name, bytes] : kernel.constants) {
    auto address = jit->lookup(*library, name);
    if (!address)
      return address.takeError();
    result.constants.push_back(
        {address->toPtr<char *>(), bytes, name, /*writable=*/false});
  }
  return result;
}
