//===- ConvertNVVMToHost.h - NVVM dialect to host code ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
#define FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H

#include "FTuner/Emulator/Counters.h"
#include "KernelLimits.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ftuner::emulator {

/// Source locations of operations that may fail at run time. Index 0 is no
/// location.
using SiteTable = std::vector<mlir::Location>;

/// Calls that a converted kernel makes so that the emulator can watch it.
struct Instrumentation {
  bool accesses = false;    ///< Before every access of memory.
  bool basicBlocks = false; ///< At the start of every basic block.
};

/// Instructions of a basic block, by InstructionKind.
using InstructionCounts = std::array<uint32_t, kNumInstructionKinds>;

/// One kernel with all it needs, as LLVM dialect for the host.
struct HostKernel {
  /// Holds `void entry(void **parameters)`, which runs one thread, and the
  /// functions and constants it uses. Released once it is compiled.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entryName;
  /// The known block is gpu.known_block_size or nvvm.reqntid, the max. threads
  /// are nvvm.maxntid.
  KernelLimits limits;
  /// Something in it orders some threads of a block but not all.
  bool hasPartialOrder = false;
  /// Constants of the module by name, with their bytes.
  std::vector<std::pair<std::string, uint64_t>> constants;
  /// Counts by the number of a basic block, if Instrumentation::basicBlocks.
  std::vector<InstructionCounts> basicBlocks;
};

/// Returns whether `op` is a function with a body that is marked as a kernel.
bool isKernel(mlir::Operation &op);

/// The kernels of all gpu.modules in `module`, in order. Emits an error and
/// fails for two kernels of one name and for a gpu.func.
mlir::FailureOr<std::vector<mlir::Operation *>>
findKernels(mlir::ModuleOp module);

/// Converts `kernel`, a function of a gpu.module, and what it refers to. Emits
/// an error and fails where an operation has no emulation rule.
mlir::FailureOr<HostKernel>
convertToHost(mlir::Operation *kernel, const Instrumentation &instrumentation,
              SiteTable &sites);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
