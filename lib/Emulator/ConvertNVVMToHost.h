//===- ConvertNVVMToHost.h - NVVM dialect to host code ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
#define FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <array>
#include <cstdint>
#include <optional>
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
  uint32_t staticSharedBytes = 0;
  /// Launches must have exactly this block (gpu.known_block_size).
  std::optional<std::array<uint32_t, 3>> knownBlock;
  /// Launches must have at most this many threads in a block (nvvm.maxntid).
  std::optional<uint32_t> maxThreads;
  /// Constants of the module by name, with their bytes.
  std::vector<std::pair<std::string, uint64_t>> constants;
};

/// Whether `op` is a function with a body that is marked as a kernel.
bool isKernel(mlir::Operation &op);

/// Converts `kernel`, a function of a gpu.module, and what it refers to. With
/// `instrument` every access of memory is preceded by a call of the checker.
/// Emits an error and fails where an operation has no emulation rule.
mlir::FailureOr<HostKernel> convertToHost(mlir::Operation *kernel,
                                          bool instrument, SiteTable &sites);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CONVERTNVVMTOHOST_H
