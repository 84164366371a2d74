//===- WgmmaRegisters.h - Registers by role of wgmma ------------*- C++ -*-===//
//
// Producer warpgroups need few registers, consumers many. A block
// starts with as many for each of its threads; then warpgroups hand registers
// back to the block's pool or take them from there (PTX ISA, setmaxnreg).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_WGMMA_WGMMAREGISTERS_H
#define FTUNER_CODEGEN_WGMMA_WGMMAREGISTERS_H

#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include <optional>

namespace ftuner {

/// Registers of a thread of a block with producers.
struct WgmmaRegisters {
  /// Blocks that an SM holds with them.
  int64_t blocks = 1;
  /// When the block starts, and in each role: multiples of 8.
  int64_t entry = 0, producer = 0, consumer = 0;
  /// Whether warpgroups hand them over: else there are enough from the start.
  bool areMoved = false;
};

/// Those of a family with producers, for as many blocks of an SM as shared
/// memory holds, or fewer; none where not even one block has enough.
std::optional<WgmmaRegisters> wgmmaRegisters(const Workload &workload,
                                             const KernelFamily &family);

/// Registers of a thread that multiplies and copies with the schedule's loader:
/// accumulators, addresses, and slots of copies.
int64_t wgmmaSharedRoleRegisters(const Workload &workload,
                                 const BlockTile &tile,
                                 const WgmmaSchedule &schedule);

} // namespace ftuner

#endif // FTUNER_CODEGEN_WGMMA_WGMMAREGISTERS_H
