//===- BlockWork.h - Work of one thread block -------------------*- C++ -*-===//
//
// What a codegen path says of the code that it emits for one uKernel, free of
// prices: a cost model asks here for instructions, bytes, lane addresses and
// registers, and never guesses them.
//
// A "step" is one k iteration: a trip of the main loop, over one reduce tile.
// Counts are warp instructions, summed over the warps of the block.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_BLOCKWORK_H
#define FTUNER_SCHEDULE_BLOCKWORK_H

#include "FTuner/Device/DeviceSpec.h"
#include <array>
#include <cstdint>
#include <vector>

namespace ftuner {

/// One memory instruction of a warp, and how often a step executes it or one
/// with the same pattern.
struct WarpAccess {
  enum class Kind {
    SharedLoad,
    SharedStore,
    /// From global memory, into registers or straight into shared memory.
    GlobalLoad,
    /// From registers to global memory.
    GlobalStore,
  };
  Kind kind = Kind::SharedLoad;
  /// Words of 4 bytes that each lane moves: 1, 2 or 4.
  int64_t width = 1;
  /// Word address of each lane's first word, relative to any origin that is a
  /// multiple of 32 words; negative for a lane that does not take part.
  std::array<int64_t, 32> address = {};
  double count = 1;
};

/// Instructions of the tensor cores in a step, and what they compute.
struct TensorWork {
  TensorPipe pipe = TensorPipe::F16;
  /// Summed over the warps that issue them, be it together with others.
  double instructions = 0;
  /// True if they run at the pipe's peak rate. Others run at the share of it
  /// that instructions of single warps reach (SmFacts::warpTensorShare).
  bool hasPeakRate = false;
  /// Multiplications and additions.
  double operations = 0;
};

/// Work by pipe: the CUDA cores' multiply-adds, the tensor cores, and what all
/// instructions take of issue slots; memory by accesses and bytes.
struct BlockWork {
  int64_t warps = 0;
  /// Reduce elements of a step.
  int64_t kTile = 0;
  /// Fused multiply-adds of a step on the CUDA cores; of memory-bound work all
  /// that the f32 lanes execute: sums, products and extremes, too.
  double fma = 0;
  /// Instructions of the tensor cores; empty if there are none.
  std::vector<TensorWork> tensor;
  /// All other instructions of a step.
  double otherInstructions = 0;
  /// Registers of a warp that loads of a step write: 4 for a vector of 4.
  double loadedRegisters = 0;
  /// Bytes of the operands' tiles that arrive at the SM for a step, by
  /// whichever block of a cluster they were read.
  double globalBytes = 0;
  /// Registers that the compiled code is expected to take, which decides how
  /// many blocks an SM holds. More than it needs (KernelResources): ptxas takes
  /// what costs nothing.
  double registersPerThread = 0;
  /// Steps between the start of a copy and its use: 1 with double buffering;
  /// a fraction where both lie in one step.
  double stepsAhead = 1;
  /// Cycles of a step in which a warp of the block that has its scheduler to
  /// itself issues no product, though copies have landed: it waits for the
  /// block's other warps, or for loads from shared memory that its products do
  /// not hide.
  double headCycles = 0;
  /// Warp instructions behind the main loop, from sums in registers to the
  /// output, once a tile.
  double epilogueInstructions = 0;
  /// True if a block takes one tile after the other, and copies for the next
  /// one while it computes.
  bool isPersistent = false;
  /// True if it stores a tile while it computes the next one.
  bool hidesStores = false;
  /// True if memory bounds it, as it does elementwise kernels and reductions of
  /// rows. The fields below apply only to such work.
  bool isStreaming = false;
  /// Operations of lanes in a step that the special function units execute.
  double specialOperations = 0;
  /// Bytes of a step that go to the output.
  double storedBytes = 0;
  /// The first steps that keep what they load, and how often a block loads
  /// again what the others have loaded.
  double heldSteps = 0, laterPasses = 0;
  /// Rows that a block has one after the other. While it has one that it holds,
  /// it loads the next one. Steps, shuffles and barriers that it waits for are
  /// those of one row, everything else is of all of them.
  double rowLoop = 1;
  /// Bytes among `globalBytes` of operands that all rows share, such as the
  /// scale of a norm, and how many of them have different addresses: an SM's L1
  /// serves the others. A block that holds its rows loads them for the first of
  /// `rowLoop` rows only.
  double commonBytes = 0, distinctCommonBytes = 0;
  /// Bytes next to each other that a warp accesses at once, from a place on
  /// that is a row's begin and a multiple of such accesses; 0: those of the
  /// row, whose accesses all begin at sectors of DRAM.
  double runBytes = 0;
  /// Shuffles and barriers that a block waits for one after the other.
  double shuffles = 0, barriers = 0;
  /// Accesses of a step; equal patterns are one entry.
  std::vector<WarpAccess> accesses;
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_BLOCKWORK_H
