//===- IreeImports.h - Kernels as functions of IREE's CPU code --*- C++ -*-===//
//
// What code for IREE's target `llvm-cpu` (lib/Target/Iree/IreeOps.cpp) passes
// to FTuner's plugin for IREE (lib/IreePlugin): for each kernel it imports a
// function, and a call's arguments are
//
//   ImportedLaunch, ImportedTensor for each tensor, uint32_t for each constant
//
// one after another. Tensors and constants are the kernel's parameters.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_RUNTIME_IREEIMPORTS_H
#define FTUNER_RUNTIME_IREEIMPORTS_H

#include <cstdint>

namespace ftuner::iree {

/// Before the kernel's name in that of the function.
inline constexpr char kImportPrefix[] = "ftuner_launch_";

struct ImportedLaunch {
  uint64_t blocks;
  /// Threads of a block.
  uint64_t threads;
  /// Dynamic shared memory of a block.
  uint64_t sharedBytes;
  /// Bytes that the kernel expects tensors to begin at multiples of.
  uint64_t alignment;
  /// Numbers of what follows.
  uint64_t tensors, constants;
};

struct ImportedTensor {
  void *base;
  /// In bytes.
  uint64_t offset;
};

} // namespace ftuner::iree

#endif // FTUNER_RUNTIME_IREEIMPORTS_H
