//===- ConvertNVVMToHost.h - NVVM dialect to host code ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
#define FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H

#include "GridRunner.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace ftuner::emulator {

/// Source locations of operations that may fail at run time. Index 0 is no
/// location.
using SiteTable = std::vector<mlir::Location>;

/// One kernel with all it needs, as LLVM dialect for the host.
struct HostKernel {
  /// Holds `void entry(void **parameters)`, which runs one thread, and the
  /// functions and constants it uses. Released once it is compiled.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string entryName;
  /// The known block is gpu.known_block_size or nvvm.reqntid, the most threads
  /// are nvvm.maxntid.
  KernelLimits limits;
  /// Constants of the module by name, with their bytes.
  std::vector<std::pair<std::string, uint64_t>> constants;
};

/// Whether `op` is a function with a body that is marked as a kernel.
bool isKernel(mlir::Operation &op);

/// The kernels of all gpu.modules in `module`, in order. Emits an error and
/// fails for two kernels of one name and for a gpu.func.
mlir::FailureOr<std::vector<mlir::Operation *>>
findKernels(mlir::ModuleOp module);

/// Converts `kernel`, a function of a gpu.module, and what it refers to. With
/// `instrument` every access of memory is preceded by a call of the checker.
/// Emits an error and fails where an operation has no emulation rule.
mlir::FailureOr<HostKernel> convertToHost(mlir::Operation *kernel,
                                          bool instrument, SiteTable &sites);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
