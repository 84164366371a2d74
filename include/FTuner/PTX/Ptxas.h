//===- Ptxas.h - The assembler ----------------------------------*- C++ -*-===//
//
// What NVIDIA's assembler says about kernels, and its output. Nothing that
// FTuner emits depends on it unless that is asked for.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_PTX_PTXAS_H
#define FTUNER_PTX_PTXAS_H

#include "FTuner/PTX/PTX.h"

#include "llvm/Support/Error.h"
#include <optional>

namespace ftuner {

/// Resources of a kernel for each thread, as ptxas reports them.
struct PtxResources {
  int64_t registersPerThread = 0;
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t stackBytes = 0;

  /// Bytes that are stored to and loaded from local memory for want of
  /// registers.
  int64_t spillBytes() const { return spillStoreBytes + spillLoadBytes; }
};

/// Finds ptxas on PATH, or in the folder bin of CUDA_HOME (/usr/local/cuda
/// unless it is set).
std::optional<std::string> findPtxas();

/// Assembles one kernel and reads the figures. An error says why ptxas fails,
/// e.g. for a processor that its version does not know.
llvm::Expected<PtxResources> measureResources(llvm::StringRef ptxas,
                                              const PtxKernel &kernel,
                                              const PtxTarget &target);

/// Assembles all kernels of a module for its target; returns the cubin.
llvm::Expected<std::string> assembleCubin(llvm::StringRef ptxas,
                                          const PtxModule &ptx);

} // namespace ftuner

#endif // FTUNER_PTX_PTXAS_H
