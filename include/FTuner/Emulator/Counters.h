//===- Counters.h - Counts of the work of kernels ---------------*- C++ -*-===//
//
// Counts of emulated launches, in units of the GPU: accesses of memory by warp,
// and instructions by the pipe that executes them.
//
// A request is what one instruction asks of memory for its warp. A kernel runs
// one thread at a time, so requests are put together afterwards: those of the
// lanes of a warp that reach an instruction for the n-th time since the last
// barrier of the block, together with lanes that stay away. Accesses of more
// than 16 bytes, or of more than their alignment, are several.
//
//  * Requests to global memory move sectors of 32 bytes. The ideal number is
//    that of the different bytes, packed.
//  * Requests to shared memory take wavefronts: 32 banks give a word of 4 bytes
//    each (FTuner/CostModel/WarpAccess.h has the rule; 8 rows of a matrix
//    go at once). The ideal number is that without conflicts of banks.
//
// Instructions are those of the kernel at the level of the NVVM dialect, before
// the back end, for every time that a warp enters their basic block, be it with
// all lanes or some. So the numbers of multiply-adds, products of matrices and
// accesses are those of the machine, and that of the others is an upper bound:
// addresses are folded into accesses, and loops are unrolled.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EMULATOR_COUNTERS_H
#define FTUNER_EMULATOR_COUNTERS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ftuner::emulator {

enum class RequestKind : uint8_t {
#define FTUNER_REQUEST_KIND(ENUMERATOR, NAME, IS_SHARED) ENUMERATOR,
#include "FTuner/Emulator/Counters.def"
};

enum class InstructionKind : uint8_t {
#define FTUNER_INSTRUCTION_KIND(ENUMERATOR, NAME) ENUMERATOR,
#include "FTuner/Emulator/Counters.def"
};

#define FTUNER_REQUEST_KIND(ENUMERATOR, NAME, IS_SHARED) +1
constexpr size_t kNumRequestKinds = 0
#include "FTuner/Emulator/Counters.def"
    ;
#define FTUNER_INSTRUCTION_KIND(ENUMERATOR, NAME) +1
constexpr size_t kNumInstructionKinds = 0
#include "FTuner/Emulator/Counters.def"
    ;

/// In words joined by underscores, as in JSON.
const char *getName(RequestKind kind);
const char *getName(InstructionKind kind);
/// Returns whether requests take wavefronts and not sectors.
bool isShared(RequestKind kind);

struct RequestCounters {
  uint64_t requests = 0;
  uint64_t bytes = 0;     ///< Summed over the lanes.
  uint64_t transfers = 0; ///< Wavefronts (shared memory) or sectors (others).
  uint64_t idealTransfers = 0; ///< Minimum number of transfers for the bytes.
};

struct KernelCounters {
  std::string kernel;
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t warps = 0;
  uint64_t barriers = 0; ///< All threads of a block meet.
  /// Rows of boxes that tensor maps copy to shared memory, each once, whichever
  /// blocks of a cluster get it; and those that lie outside of the tensor.
  uint64_t boxRows = 0, boxRowsOutside = 0;
  std::array<RequestCounters, kNumRequestKinds> requests;
  /// Instructions of warps.
  std::array<uint64_t, kNumInstructionKinds> instructions = {};

  RequestCounters &operator[](RequestKind kind) {
    return requests[static_cast<size_t>(kind)];
  }
  const RequestCounters &operator[](RequestKind kind) const {
    return requests[static_cast<size_t>(kind)];
  }
  uint64_t operator[](InstructionKind kind) const {
    return instructions[static_cast<size_t>(kind)];
  }
  /// Returns the number of wavefronts that bank conflicts added: wavefronts of
  /// all requests to shared memory, minus the number that these requests take
  /// without conflicts.
  uint64_t bankConflicts() const;
};

} // namespace ftuner::emulator

#endif // FTUNER_EMULATOR_COUNTERS_H
