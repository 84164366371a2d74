//===- Fiber.h - One emulated GPU thread ------------------------*- C++ -*-===//
//
// The record of a GPU thread. Compiled kernels read its first member, the
// registers, at fixed offsets, and hand its address to every runtime function.
// Libraries compiled ahead of time hold these offsets and the numbers of the
// enumerations: a change of either raises FTRT_ABI_VERSION.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBER_H
#define FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBER_H

#include "Fibers/SanitizerFiber.h"
#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ftuner::emulator {

class BlockRunner;
class Scheduler;

/// Lanes of a warp.
constexpr unsigned kWarpSize = 32;

/// Words of the emulator before accumulators of products of a warpgroup.
constexpr unsigned kAccumulatorHeader = 2;

/// Registers of its thread that the kernel can read. The conversion refers to
/// the members by offsetof, so the type must stay standard-layout.
struct ThreadRegisters {
  uint32_t threadId[3];
  uint32_t blockDim[3];
  uint32_t blockId[3];
  uint32_t gridDim[3];
  uint32_t laneId;
  uint32_t warpId;
  uint32_t warpCount;
  uint32_t warpSize;
  uint32_t laneMasks[5]; ///< eq, le, lt, ge, gt
  uint32_t dynamicSharedBytes;
  char *dynamicShared; ///< The block's dynamic shared memory.
  char *staticShared;  ///< The block's shared globals, laid out by conversion.
  uint32_t clusterId[3];      ///< Position of the block's cluster in the grid.
  uint32_t clusterGrid[3];    ///< Clusters of the grid.
  uint32_t blockInCluster[3]; ///< Position of the block in its cluster.
  uint32_t clusterDim[3];     ///< Blocks of a cluster.
  uint32_t clusterRank;       ///< Rank of the block in its cluster.
  uint32_t clusterSize;       ///< Blocks of a cluster, of all dimensions.
};

/// A copy from global to shared memory that was issued but not waited for.
struct AsyncCopy {
  char *target;
  const char *source;
  uint32_t bytes;       ///< Bytes written: 4, 8 or 16.
  uint32_t sourceBytes; ///< Bytes read; the rest is filled with zeros.
  uint32_t site;
};

/// The copies of a thread that were issued but not waited for, oldest first.
/// Most of what a kernel asks of the emulator goes through here.
class CopyQueue {
public:
  size_t size() const { return count; }
  const AsyncCopy &operator[](size_t index) const { return copies[index]; }
  AsyncCopy &operator[](size_t index) { return copies[index]; }
  /// The oldest one, which the others follow.
  const AsyncCopy *begin() const { return copies.data(); }
  /// Fails where there is no room.
  bool tryPush(const AsyncCopy &copy) {
    if (count == copies.size())
      return false;
    copies[count++] = copy;
    return true;
  }
  void push(const AsyncCopy &copy) {
    if (count == copies.size())
      copies.resize(2 * count + 16);
    copies[count++] = copy;
  }
  /// Takes the oldest ones away.
  void pop(size_t number) {
    std::move(copies.begin() + number, copies.begin() + count, copies.begin());
    count -= number;
  }
  void clear() { count = 0; }

private:
  std::vector<AsyncCopy> copies; ///< The first `count` are in use.
  size_t count = 0;
};

/// Operations in which the lanes of a warp meet. The shuffles are in the order
/// of NVVM::ShflKind, the votes in that of NVVM::VoteSyncKind.
enum class WarpOp : uint32_t {
  ShuffleXor,
  ShuffleUp,
  ShuffleDown,
  ShuffleIndex,
  VoteAny,
  VoteAll,
  VoteBallot,
  VoteUniform,
  Sync,
  MultiplyMatrices,
  LoadMatrix,
  StoreMatrix,
  Elect, ///< True for the lowest of the lanes.
};

struct WarpRequest {
  WarpOp op;
  uint32_t mask;  ///< Participating lanes.
  uint32_t value; ///< Matrix operations: the variant (WarpMatrix.h).
  uint32_t offset;
  uint32_t maskAndClamp;
  uint32_t site;
  uint64_t result; ///< Low half: value; bit 32: source lane was valid.
  /// Operands and results of operations on matrices.
  uint32_t *registers = nullptr;
  char *row = nullptr; ///< The matrix row that the lane names.
};

struct Fiber {
  enum class State {
    Ready,
    AtBarrier,
    AtWarpOp,
    AtProducts, ///< Waits for products of its warpgroup.
    Exited,
    Killed,         ///< Stopped after an access that must not happen.
    AtMbarrier,     ///< Waits until the phase of an mbarrier is over.
    Polling,        ///< Asked for that, and is to be told after the others ran.
    AtNamedBarrier, ///< Waits at a barrier of some of the threads.
    AtRegisters,    ///< Waits for registers that its warpgroup asked for.
    AtCluster,      ///< Waits at the barrier of its cluster.
  };
  static constexpr unsigned kNumStates = 11;

  ThreadRegisters registers;
  BlockRunner *runner;
  boost::context::detail::fcontext_t context;
  State state;
  uint32_t index; ///< Linear index in the block.
  uint32_t actor; ///< Number among the threads of the cluster.
  uint32_t barrierId;
  uint32_t site;      ///< Site of its wait.
  uint32_t warpPhase; ///< Warp-wide synchronisations so far.
  char *stackBase;    ///< Lowest usable address.
  char *stackTop;
  WarpRequest request;
  /// Copies before `committed` belong to groups.
  CopyQueue copies;
  std::vector<uint32_t> groupSizes; ///< Copies of each committed group.
  uint32_t committed;
  /// True if its registers are fenced for products (wgmma.fence).
  bool hasProductFence;
  /// Products of its warpgroup: those issued, those of the committed groups
  /// not waited for, those that it waits or has waited for. Numbers count from
  /// the block's start.
  uint32_t productsIssued;
  uint32_t productsDone;
  std::vector<uint32_t> productGroups;
  /// The mbarrier that it waits for or polls, and the phase that is to end.
  uint32_t mbarrier, mbarrierPhase;
  /// Sites, by their number modulo 64, where a wait was in vain once.
  uint64_t vainWaits;
  uint32_t copiesDone;    ///< Copies taken out of its queue.
  uint32_t registerCalls; ///< Changes of its number of registers.
  uint32_t bulkGroups;    ///< Groups of bulk copies that it committed.
  /// Its arrival at the cluster's barrier, of which it has not waited for the
  /// others: whether there is one, its phase and site.
  bool hasArrived, isArrivalAligned;
  uint32_t arrivalPhase, arrivalSite;
  uint32_t fenceTime; ///< Time of its last fence of mbarriers (races).
  /// Blocks of the cluster that are known to have started, or reported.
  uint32_t startedBlocks;
  Scheduler *scheduler;     ///< The scheduler of its block.
  SanitizerFiber sanitizer; ///< Its stack.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_FIBERS_FIBER_H
