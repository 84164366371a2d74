//===- EmulatedKernelCompiler.h - Converted kernels as code ----*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_EMULATEDKERNELCOMPILER_H
#define FTUNER_LIB_EMULATOR_EMULATEDKERNELCOMPILER_H

#include "Checks/MemoryChecker.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
namespace orc {
class LLJIT;
} // namespace orc
} // namespace llvm

namespace ftuner::emulator {

struct HostKernel;

struct CompiledKernel {
  void (*entry)(void **parameters);
  /// The constants of its module, for bounds checks.
  std::vector<Buffer> constants;
};

/// The kernel in LLVM IR for `machine`, not optimized.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateKernel(const HostKernel &kernel, llvm::LLVMContext &context,
                llvm::TargetMachine &machine);

/// Compiles kernels for the machine it runs on, each apart from the others, so
/// that their symbols cannot collide.
class EmulatedKernelCompiler {
public:
  static llvm::Expected<std::unique_ptr<EmulatedKernelCompiler>> create();
  ~EmulatedKernelCompiler();

  llvm::Expected<CompiledKernel> compile(const HostKernel &kernel);

private:
  EmulatedKernelCompiler();
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  unsigned compiledKernels = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_EMULATEDKERNELCOMPILER_H
