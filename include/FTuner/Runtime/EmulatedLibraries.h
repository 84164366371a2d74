//===- EmulatedLibraries.h - Emulated kernels by their names ----*- C++ -*-===//
//
// What other runtimes' programs need to run FTuner's kernels without a GPU: the
// kernels for the emulator that lie in libraries (`ftuner-translate
// --ftuner-to-library --emulator`, or `--emulated-kernels`), which the variable
// FTRT_EMULATED_LIBRARIES names, with colons between. With the variable
// FTRT_TRACE, each launch writes a line on standard error.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_RUNTIME_EMULATEDLIBRARIES_H
#define FTUNER_RUNTIME_EMULATEDLIBRARIES_H

#include "FTuner/Runtime/ftrt.h"

#include <cstdint>
#include <string>

namespace ftuner {

/// Opens the libraries, unless that was done. Returns what is wrong with the
/// first bad one, in words; empty if all is well. Safe on any thread, as are
/// the functions below.
const std::string &loadEmulatedLibraries();

/// The kernel of that name in the libraries, the last if several have it; null
/// if none has.
ftrt_kernel *findEmulatedKernel(const std::string &name);

/// Returns the message for a kernel without an emulated one.
std::string missingEmulatedKernel(const std::string &name);

/// Blocks of a cluster of the kernel, along x; 1 without clusters.
uint32_t emulatedClusterSize(const ftrt_kernel &kernel);

/// `ftrt_launch` in the emulator, with the trace.
int32_t launchEmulatedKernel(ftrt_kernel *kernel, uint32_t blocks,
                             uint32_t threads, uint32_t sharedBytes,
                             void **parameters);

} // namespace ftuner

#endif // FTUNER_RUNTIME_EMULATEDLIBRARIES_H
