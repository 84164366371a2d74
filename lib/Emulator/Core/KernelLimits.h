//===- KernelLimits.h - Demands of kernels on launches ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_KERNELLIMITS_H
#define FTUNER_LIB_EMULATOR_CORE_KERNELLIMITS_H

#include <array>
#include <cstdint>
#include <optional>

namespace ftuner::emulator {

/// Demands of a kernel on its launches.
struct KernelLimits {
  uint32_t staticSharedBytes = 0;
  /// Launches must have exactly this block.
  std::optional<std::array<uint32_t, 3>> knownBlock;
  /// Launches must have at most this many threads in a block.
  std::optional<uint32_t> maxThreads;
  /// Blocks of a cluster, along x; grids must be multiples.
  uint32_t clusterSize = 1;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_KERNELLIMITS_H
