//===- Jit.cpp - Just-in-time compilation for the host --------------------===//
#include "Jit.h"
#include "FTuner/Emulator/FloatConversions.h"

#include "mlir/ExecutionEngine/OptUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/Mangling.h"
#include "llvm/ExecutionEngine/Orc/Shared/ExecutorAddress.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;

namespace ftuner {

llvm::Expected<std::unique_ptr<ExecutionEngine>>
createJit(ModuleOp module,
          llvm::ArrayRef<std::pair<llvm::StringRef, void *>> symbols) {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  removeFlushingConversions(builder->getTargetTriple(), builder->getFeatures());
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  auto optimize = makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0,
                                            machine->get());
  // Options hold a reference to it.
  auto transform = [optimize](llvm::Module *code) -> llvm::Error {
    if (llvm::Error error = optimize(code))
      return error;
    addFloatConversions(*code);
    return llvm::Error::success();
  };
  ExecutionEngineOptions options;
  options.transformer = transform;
  options.enableGDBNotificationListener = false;
  options.enablePerfNotificationListener = false;
  auto engine = ExecutionEngine::create(module, options, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols([&](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap map;
    for (auto [name, address] : symbols)
      map[interner(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                             llvm::JITSymbolFlags::Exported};
    return map;
  });
  return engine;
}

} // namespace ftuner
