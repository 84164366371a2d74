//===- LatencyFormulas.h - Time of a kernel from its facts ------*- C++ -*-===//
//
// The formulas of the latency model, on plain figures. Where the figures come
// from: a device description and a calibration, a codegen path (BlockWork.h)
// and a shape, or another library's kernels. docs/latency.md derives them.
//
// Cycles are those of one SM at `clockMhz`; bytes, microseconds, GB/s, watts
// and pJ otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_LATENCYFORMULAS_H
#define FTUNER_COSTMODEL_LATENCYFORMULAS_H

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace ftuner {

/// What the formulas know of a device: figures of its data sheet.
struct LatencyDevice {
  double smCount = 1;
  double clockMhz = 1;
  /// f32 lanes of an SM: FMAs per cycle.
  double fp32Lanes = 64;
  /// Warp schedulers of an SM.
  double warpSchedulers = 4;
  /// Instructions that an SM issues per cycle.
  double issueSlots = 4;
  /// Blocks of half as many warps as there are schedulers: how many of them in
  /// a row begin at the same scheduler.
  double halfBlockRun = 1;
  /// Lanes of an SM's load/store units.
  double loadStoreLanes = 32;
  /// Operations of an SM's tensor cores per cycle at their peak, by type; 0
  /// where they do not take it.
  double tf32Rate = 0, f16Rate = 0, i8Rate = 0;
  /// Share of these rates that instructions of single warps reach.
  double warpTensorShare = 1;
  double dramGbps = 1;
  double l2Bytes = 1;
  double sharedMemoryPerSmBytes = 1;
  /// Bytes that an SM's L1 may hold of global memory; 0 where it holds none.
  double l1Bytes = 0;
  double maxThreadsPerSm = 1;
  double maxBlocksPerSm = 1;
  double registersPerSm = 1;
  /// Infinite if the power limit is not known.
  double boardPowerWatts = std::numeric_limits<double>::infinity();
  /// Work per energy of the logic, relative to a process of 16 nm.
  double nodeEfficiency = 1;
};

struct LatencyConstants {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  double MEMBER = VALUE;
#include "FTuner/CostModel/LatencyConstants.def"
};

/// What a block does; a "step" is one k iteration of its main loop.
struct LatencyBlock {
  double warps = 1;
  /// Of the kernel: the larger part's.
  double registersPerThread = 32;
  double sharedMemoryBytes = 0;
  /// Reduce elements of a step.
  double kTile = 1;
  /// Warp instructions of a step.
  double fma = 0;
  /// Of the tensor cores: warp instructions, and operations by type.
  double tensorInstructions = 0;
  double tf32Operations = 0, f16Operations = 0, i8Operations = 0;
  /// Whether instructions of the tensor cores reach the peak rates; else they
  /// reach the share of those of single warps.
  bool hasPeakRate = false;
  /// Whether blocks stay on their SM and take one tile after the other, the
  /// first copies of one behind the work of the one before.
  bool isPersistent = false;
  /// Whether the stores of one tile run behind the work of the next, too, as
  /// far as that takes as long.
  bool hidesStores = false;
  /// Cycles beyond those of every kernel in which a block waits for others of
  /// its cluster when it starts and ends.
  double clusterCycles = 0;
  double otherInstructions = 0;
  /// Registers of a warp that loads of a step write.
  double loadedRegisters = 0;
  /// Cycles of the load/store units for accesses of shared memory in a step:
  /// sum of max(wavefronts, 32 / lanes).
  double sharedCycles = 0;
  /// Sum over global loads of a step of max(128-byte lines, 32 / lanes).
  double globalLines = 0;
  /// Bytes from L2 in a step.
  double l2Bytes = 0;
  /// Whether copies of later steps are under way during a step.
  bool isPipelined = true;
  /// Cycles of a step in which a warp that has its scheduler to itself issues
  /// no product, and warp instructions of all warps behind the main loop.
  double headCycles = 0, epilogueInstructions = 0;
  /// Exposed latencies of copies in a step: 1 / (steps ahead) if pipelined.
  double exposedLoads = 1;
  /// Registers per thread and step that are read straight from global memory.
  double directRegisters = 0;
  /// Registers per thread that do not fit.
  double spilledRegisters = 0;

  /// Whether the kernel is bound by memory: elementwise, or a reduction of rows
  /// (docs/latency-memory.md). The fields below are of such kernels alone.
  bool isStreaming = false;
  /// Operations of lanes by the special function units in a step.
  double specialOperations = 0;
  /// Bytes that a step stores, and those that it loads and all blocks share,
  /// such as the scale of a norm.
  double storedBytes = 0;
  /// Of a block's first steps, how many keep what they load in registers or
  /// shared memory; the others load it again in each of `laterPasses`.
  double heldSteps = 0, laterPasses = 0;
  /// Rows that a block has one after the other (BlockWork).
  double rowLoop = 1;
  /// Bytes of a step's loads that all rows share, and those of different
  /// addresses among them (BlockWork).
  double commonBytes = 0, distinctCommonBytes = 0;
  /// Bytes next to each other that a warp accesses at once; 0: a row.
  double runBytes = 0;
  /// Cycles of the shuffles and barriers that a block waits for one after the
  /// other; above 0 in kernels that reduce.
  double syncCycles = 0;

  /// Whether the tensor cores multiply: then operands come in asynchronous
  /// copies of 16 bytes in rows of 64 and more, past the registers.
  bool isTensor() const { return tensorInstructions > 0; }
};

/// How blocks tile the output, and what that moves.
struct LatencyGrid {
  /// Blocks of one problem along x (neighbours in launch order) and y, and the
  /// elements of a block along them (the mean over the parts of a program).
  double blocksX = 1, blocksY = 1;
  double tileX = 1, tileY = 1;
  /// Whether blocks are launched in near-square groups instead of rows.
  bool isSwizzled = false;
  /// Problems of the launch: batch axes times split-K slices.
  double problems = 1;
  /// Bytes of the operand along y (lhs) and of that along x (rhs), one problem.
  double lhsBytes = 0, rhsBytes = 0;
  /// Bytes that the whole launch moves once: output, and operands of the
  /// epilogue.
  double outputBytes = 0;
  /// Bytes that a memory-bound launch touches: fewer than `outputBytes` where
  /// it works in place. 0: as many.
  double touchedBytes = 0;
  /// Bytes of a row, behind which the next one lies, of a memory-bound launch
  /// whose accesses begin where rows do. 0: all accesses begin at sectors.
  double rowBytes = 0;
  /// Whether output rows start at multiples of 32 bytes.
  bool isOutputAligned = true;
  /// Contiguous bytes that a step of a block reads of a row of each operand.
  double lhsRunBytes = 128, rhsRunBytes = 128;
  /// Reduce elements of a block, and the bytes of one in a row of an operand
  /// (the mean of both).
  double reduceLength = 1, elementBytes = 4;
  /// Kernels that run after this one to sum split-K slices, and the bytes of
  /// all slices' sums: written by this one, read by them.
  double secondKernels = 0, sumBytes = 0;
  /// Cycles in which the TMA unit of an SM copies its boxes; 0 where no row of
  /// these lies outside of its operand: then products take longer.
  double boxCycles = 0;
};

/// What depends on a uKernel, the device and the constants alone.
struct LatencyTable {
  static constexpr unsigned maxResident = 64;
  /// Blocks that an SM holds at once, 1 to maxResident.
  unsigned resident = 1;
  LatencyBlock block;
  /// Cycles of an SM per step and block when r blocks are resident, at r − 1.
  std::array<double, maxResident> step = {};
  /// Cycles of a step of one block alone on each resource, when its warps are
  /// spread evenly over all schedulers and nothing hides the latency.
  double issue = 0, sharedMemory = 0, l2 = 0, latency = 0;
  /// What comes on top of the issue of a step, where nothing hides it.
  double head = 0;
};

/// Warps of the scheduler that gets the most of those of `blocks` blocks with
/// `warps` warps each. An SM deals warps to its schedulers in turn, block after
/// block, and they stay there until they end: ⌈blocks · warps / schedulers⌉.
/// Five warps on 4 schedulers: one has 2 of them and sets the pace, as if there
/// were 8; two such blocks: 3, as if there were 12 warps and not 10.
///
/// Blocks of half as many warps as there are schedulers take one half of them
/// each; `halfBlockRun` in a row take the same one.
double busiestScheduler(const LatencyDevice &device, double warps,
                        double blocks);

LatencyTable tabulate(const LatencyDevice &device, const LatencyBlock &block,
                      const LatencyConstants &constants);

/// A part of a program: `count` blocks of one uKernel, in launch order, each of
/// `steps` k iterations.
struct LatencyPart {
  const LatencyTable *table = nullptr;
  double count = 0;
  double steps = 1;
  /// Bytes that a block of the tensor cores stores behind its main loop: the
  /// mean over the launch, which the formulas take from the grid.
  double outputBytes = 0;
};

/// Microseconds of a launch and where they go: the terms add up to `total`.
struct LatencyPrediction {
  double total = 0;
  double launch = 0;
  /// Main loops by the resource that bounds them, in full waves.
  double issue = 0, sharedMemory = 0, l2 = 0, latency = 0;
  /// Starts and ends of blocks.
  double blockStart = 0;
  /// What the last, incomplete wave costs above the mean of the full ones; 0 if
  /// it is the only one.
  double tail = 0;
  double dram = 0;
  double power = 0;
  /// A second kernel that sums split-K slices.
  double secondKernel = 0;
  /// Microseconds by which boxes of TMA take longer than all else.
  double boxes = 0;
  // Figures that are no terms.
  double residentBlocks = 0;
  /// Warps of the busiest scheduler over the mean, in the fullest round of the
  /// busiest SM; 1 if all schedulers get the same.
  double schedulerImbalance = 1;
  /// Blocks over those that the device holds at once.
  double waves = 0;
  double dramBytes = 0;
  /// Microseconds that SMs, DRAM and the power limit ask for by themselves.
  double smTime = 0, dramTime = 0, powerTime = 0;
};

/// Microseconds of one or two parts with more than 0 blocks each, the taller
/// one last. Finite and positive.
double predictLatency(const LatencyDevice &device, const LatencyPart *parts,
                      unsigned numParts, const LatencyGrid &grid,
                      const LatencyConstants &constants);
/// The same with all terms.
LatencyPrediction explainLatency(const LatencyDevice &device,
                                 const LatencyPart *parts, unsigned numParts,
                                 const LatencyGrid &grid,
                                 const LatencyConstants &constants);

/// Data cycles of one shared memory access of a warp. Accesses of 2 and 4 words
/// per lane go in half and quarter warps; neighbouring ones go together when
/// every lane has the address of its neighbour (lane xor 1). A part takes as
/// many cycles as its busiest bank has different words. Negative addresses are
/// idle lanes.
int wavefronts(const std::array<int64_t, 32> &address, int64_t width);
/// The same for lanes whose words lie in different banks: one cycle for each
/// part with a lane that is not idle.
int leastWavefronts(const std::array<int64_t, 32> &address, int64_t width);
/// Different 128-byte lines that a global access of a warp touches.
int globalLines(const std::array<int64_t, 32> &address, int64_t width);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_LATENCYFORMULAS_H
