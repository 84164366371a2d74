//===- LatencyFormulas.h - Time of a kernel from its facts ------*- C++ -*-===//
//
// The formulas of the latency model, on plain figures. The figures come from a
// device description and a calibration, and from a codegen path (BlockWork.h)
// and a shape, or from what is known of another library's kernels.
// docs/latency.md derives the formulas of kernels with main loops of products,
// docs/latency-memory.md the formulas of memory-bound kernels.
//
// Cycles are counted by one SM at `clockMhz`; all else is in bytes,
// microseconds, GB/s, watts and pJ.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_LATENCYFORMULAS_H
#define FTUNER_COSTMODEL_LATENCYFORMULAS_H

#include <array>
#include <limits>
#include <utility>
#include <variant>

namespace ftuner {

/// Figures of a device's data sheet. LatencyRecords.def describes the members
/// of this record and of those below.
struct LatencyDevice {
#define FTUNER_LATENCY_DEVICE(MEMBER, NAME, VALUE) double MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

/// Constants that a calibration fits (LatencyConstants.def).
struct LatencyConstants {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  double MEMBER = VALUE;
#include "FTuner/CostModel/LatencyConstants.def"
};

/// Work and resources of a block that kernels of both kinds have.
struct LatencyBlock {
#define FTUNER_LATENCY_BLOCK(TYPE, MEMBER, NAME, VALUE, NEED)                  \
  TYPE MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

/// A block of a kernel with a main loop of products.
struct LatencyLoop : LatencyBlock {
#define FTUNER_LATENCY_LOOP(TYPE, MEMBER, NAME, VALUE, NEED)                   \
  TYPE MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"

  /// Returns true if the tensor cores multiply: then operands come in
  /// asynchronous copies of 16 bytes in rows of 64 and more, past the
  /// registers.
  bool isTensor() const { return tensorInstructions > 0; }
};

/// A block of a memory-bound kernel: elementwise, or a reduction of rows.
struct LatencyStream : LatencyBlock {
#define FTUNER_LATENCY_STREAM(TYPE, MEMBER, NAME, VALUE, NEED)                 \
  TYPE MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

using LatencyKernel = std::variant<LatencyLoop, LatencyStream>;

/// Returns what blocks of both kinds have.
inline const LatencyBlock &commonBlock(const LatencyKernel &kernel) {
  if (const auto *loop = std::get_if<LatencyLoop>(&kernel))
    return *loop;
  return std::get<LatencyStream>(kernel);
}
inline LatencyBlock &commonBlock(LatencyKernel &kernel) {
  return const_cast<LatencyBlock &>(commonBlock(std::as_const(kernel)));
}

/// How blocks tile the output, and what that moves.
struct LatencyGrid {
#define FTUNER_LATENCY_GRID(TYPE, MEMBER, NAME, VALUE, NEED)                   \
  TYPE MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

/// Prices that depend only on a uKernel with a main loop, the device and the
/// constants.
struct LatencyLoopTable {
  static constexpr unsigned maxResident = 64;
  /// Blocks that an SM holds at once, 1 to maxResident.
  unsigned resident = 1;
  LatencyLoop block;
  /// Cycles of an SM per step and block when r blocks are resident, at r − 1.
  std::array<double, maxResident> step = {};
  /// Cycles of a step of a single block on each resource, when its warps are
  /// spread evenly over all schedulers and nothing hides the latency.
  double issue = 0, sharedMemory = 0, l2 = 0, latency = 0;
  /// Cycles on top of the issue of a step, if nothing hides them.
  double head = 0;
};

/// Figures of a memory-bound uKernel, whose prices depend on the launch.
struct LatencyStreamTable {
  /// Blocks that an SM holds at once, 1 to LatencyLoopTable::maxResident.
  unsigned resident = 1;
  LatencyStream block;
};

using LatencyTable = std::variant<LatencyLoopTable, LatencyStreamTable>;

/// Returns the maximum number of warps that a scheduler gets of `blocks` blocks
/// with `warps` warps each. An SM deals warps to its schedulers in turn, block
/// after block, and they stay there until they end: ⌈blocks · warps /
/// schedulers⌉. Five warps on 4 schedulers: one has 2 of them and sets the
/// pace, as if there were 8; two such blocks: 3, as if there were 12 warps and
/// not 10.
///
/// Blocks of half as many warps as there are schedulers take one half of them
/// each; `halfBlockRun` in a row take the same one.
double busiestScheduler(const LatencyDevice &device, double warps,
                        double blocks);

LatencyLoopTable tabulate(const LatencyDevice &device, const LatencyLoop &block,
                          const LatencyConstants &constants);
LatencyStreamTable tabulate(const LatencyDevice &device,
                            const LatencyStream &block,
                            const LatencyConstants &constants);
LatencyTable tabulate(const LatencyDevice &device, const LatencyKernel &kernel,
                      const LatencyConstants &constants);

/// A part of a program: `count` blocks of one uKernel, in launch order, each of
/// `steps` steps.
struct LatencyPart {
  const LatencyTable *table = nullptr;
#define FTUNER_LATENCY_PART(MEMBER, NAME, VALUE) double MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

/// Microseconds of a launch by terms that add up to `total`, and figures that
/// are not terms.
struct LatencyPrediction {
#define FTUNER_LATENCY_TERM(MEMBER, NAME) double MEMBER = 0;
#define FTUNER_LATENCY_FIGURE(MEMBER, NAME, VALUE) double MEMBER = VALUE;
#include "FTuner/CostModel/LatencyRecords.def"
};

/// Returns the microseconds of a launch of one or two parts of the same kind,
/// with more than 0 blocks each, the taller one last. Finite and positive.
double predictLatency(const LatencyDevice &device, const LatencyPart *parts,
                      unsigned numParts, const LatencyGrid &grid,
                      const LatencyConstants &constants);
/// Like `predictLatency`, but returns every term.
LatencyPrediction explainLatency(const LatencyDevice &device,
                                 const LatencyPart *parts, unsigned numParts,
                                 const LatencyGrid &grid,
                                 const LatencyConstants &constants);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_LATENCYFORMULAS_H
