//===- LaunchCounter.h - Counts what a launch executes ----------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_LAUNCHCOUNTER_H
#define FTUNER_LIB_EMULATOR_LAUNCHCOUNTER_H

#include "Block/ExecutionCounter.h"
#include "ConvertNVVMToHost.h"
#include "FTuner/Emulator/Counters.h"
#include "llvm/ADT/DenseMap.h"
#include <deque>

namespace ftuner::emulator {

/// Adds what one launch executes to the counters of its kernel.
class LaunchCounter : public ExecutionCounter {
public:
  /// `basicBlocks` are those of the kernel.
  LaunchCounter(llvm::ArrayRef<InstructionCounts> basicBlocks,
                KernelCounters &counters)
      : basicBlocks(basicBlocks), counters(counters) {}

  void beginBlock(const SharedMemory &shared, uint32_t rank,
                  size_t threads) override;
  void enter(const Fiber &fiber, uint32_t basicBlock) override {
    ++blockOf(fiber).entries[fiber.index * basicBlocks.size() + basicBlock];
  }
  void access(const Fiber &fiber, const char *address, size_t bytes,
              AccessKind kind, uint32_t alignment, uint32_t site) override;
  void copy(const Fiber &fiber, const AsyncCopy &copy) override;
  void copyMatrices(const MatrixCopy &copy, const MatrixRows &rows,
                    AccessKind kind) override;
  void copyBox(uint64_t rows, uint64_t rowsOutside) override {
    counters.boxRows += rows;
    counters.boxRowsOutside += rowsOutside;
  }
  void passBarrier(uint32_t rank) override;
  void endBlock(uint32_t rank) override;

private:
  /// An instruction of a warp, with what its lanes asked for so far.
  struct Request {
    uint32_t arrived = 0;
    std::array<uintptr_t, kWarpSize> address;
    /// 0 where the lane does not access memory.
    std::array<uint8_t, kWarpSize> bytes = {};
  };
  /// The requests of a warp by one instruction since the last barrier, or the
  /// last time that its lanes met. Lanes that took no part in a request then
  /// have not had one fewer than the others.
  struct Stream {
    RequestKind kind;
    uint32_t lanes;     ///< Lanes of the warp.
    uint32_t phase = 0; ///< Number of times that they had met.
    /// Requests that are complete, and were counted and removed.
    uint32_t numCounted = 0;
    std::array<uint32_t, kWarpSize> numArrivals = {};
    std::deque<Request> open;
  };

  /// A block of the cluster that runs.
  struct Block {
    SharedMemory shared;
    /// How often each thread entered each basic block.
    std::vector<uint32_t> entries;
    std::vector<Stream> streams;
    /// Their indices, by warp, site and kind.
    llvm::DenseMap<uint64_t, unsigned> streamOf;
  };
  Block &blockOf(const Fiber &fiber) {
    return blocks[fiber.registers.clusterRank];
  }

  /// `bytes` is at most 16.
  void arrive(const Fiber &fiber, RequestKind kind, const char *address,
              size_t bytes, uint32_t site);
  void countOpenRequests(Block &block);
  void countOpenRequests(Stream &stream);
  void count(RequestKind kind, const Request &request);

  llvm::ArrayRef<InstructionCounts> basicBlocks;
  KernelCounters &counters;
  size_t numThreads = 0;
  std::vector<Block> blocks; ///< By rank.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_LAUNCHCOUNTER_H
