//===- Scheduler.h - The threads of a block ---------------------*- C++ -*-===//
//
// The threads of a block are fibers of one CPU thread: one runs until it waits
// or is through, then the next one does, in the order of the launch. What a
// thread waits for is its state.
//
// The other roles of a block (BlockRunner.h) know the block by its scheduler:
// its launch, its place in its cluster, and its threads, which they stop and
// let go.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCK_SCHEDULER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCK_SCHEDULER_H

#include "Block/Cluster.h"
#include "Block/Launch.h"
#include "Checks/Text.h"
#include "Fibers/Fiber.h"
#include "Fibers/FiberStacks.h"
#include <random>
#include <string>
#include <vector>

namespace ftuner::emulator {

class Scheduler {
public:
  Scheduler(Cluster &cluster, uint32_t rank)
      : sharedCluster(cluster), blockRank(rank) {}
  Scheduler(const Scheduler &) = delete;
  Scheduler &operator=(const Scheduler &) = delete;

  // What BlockRunner has it do.
  /// Makes room for the threads of a block of `launch`, which the thread that
  /// launched will run, or another. Returns false if the system has no memory
  /// for the stacks.
  bool prepare(const Launch &launch, bool runsOnCaller);
  /// A block begins: all of its threads are ready.
  void begin(BlockRunner &runner, const SharedMemory &shared,
             uint64_t linearBlock);
  /// Runs the threads that can go on until none can, or the cluster stops.
  void resumeReady();
  void noteEnd() { isAtEnd = true; }

  // The block.
  const Launch &launch() const { return *thisLaunch; }
  ErrorLog &log() const { return *thisLaunch->log; }
  /// Reports an error of a thread, with the parts of its text. A thread that is
  /// killed for it frees nothing on its stack: by then the text must be gone.
  template <typename... Parts>
  void report(const Fiber &fiber, ErrorKind kind, uint32_t site,
              const Parts &...text) const {
    log().report(fiber, kind, site, joinText(text...));
  }
  /// Null where nothing is checked, or counted.
  MemoryChecker *checker() const { return thisLaunch->checker; }
  ExecutionCounter *counter() const { return thisLaunch->counter; }
  Cluster &cluster() const { return sharedCluster; }
  uint32_t rank() const { return blockRank; } ///< In the cluster.
  /// " of block 1 of the cluster", or "" where there is one block.
  std::string blockName() const;
  /// Returns whether all of its threads are through, and what they left was
  /// looked for.
  bool hasEnded() const { return isAtEnd; }
  /// The next of the random numbers of the launch's seed.
  size_t drawNumber() { return random(); }

  // Its threads.
  std::vector<Fiber> &fibers() { return threads; }
  const std::vector<Fiber> &fibers() const { return threads; }
  bool owns(const Fiber &fiber) const { return fiber.scheduler == this; }
  size_t warpCount() const { return lanes.size(); }
  /// Lanes of a warp that there are and that were not killed.
  uint32_t liveLanes(size_t warp) const { return lanes[warp]; }
  /// Returns the number of threads in a state.
  unsigned count(Fiber::State state) const {
    return counts[static_cast<unsigned>(state)];
  }
  /// Returns whether all are through.
  bool isThrough() const {
    return count(Fiber::State::Exited) + count(Fiber::State::Killed) ==
           threads.size();
  }
  void setState(Fiber &fiber, Fiber::State state) {
    --counts[static_cast<unsigned>(fiber.state)];
    fiber.state = state;
    ++counts[static_cast<unsigned>(state)];
  }
  /// Lets all threads go that are in this state.
  void wakeAll(Fiber::State state) {
    unsigned woken = 0;
    for (Fiber &fiber : threads)
      if (fiber.state == state) {
        fiber.state = Fiber::State::Ready;
        ++woken;
      }
    counts[static_cast<unsigned>(state)] -= woken;
    counts[static_cast<unsigned>(Fiber::State::Ready)] += woken;
  }

  // What the running thread does, on its own fiber.
  /// The thread of a kernel that runs on this CPU thread; null between two.
  static Fiber *running();
  /// Returns once another has made the thread ready.
  void yield(Fiber &fiber, Fiber::State state);
  /// Ends the thread, which may be one of another block of the cluster.
  [[noreturn]] void kill(Fiber &fiber);

private:
  static void fiberMain(boost::context::detail::transfer_t transfer);
  void initializeFiber(Fiber &fiber, uint32_t index,
                       const SharedMemory &shared);
  void initializeIds(ThreadRegisters &registers, uint64_t linearBlock) const;
  void resume(Fiber &fiber);
  /// Returns whether the launch is to end early.
  bool isInterrupted() const {
    Interruption *interruption = thisLaunch->interruption;
    return interruption &&
           (isCaller ? interruption->poll() : interruption->isRaised());
  }

  Cluster &sharedCluster;
  const uint32_t blockRank;
  const Launch *thisLaunch = nullptr;
  bool isCaller = false;
  bool isAtEnd = false;
  std::vector<Fiber> threads;
  std::vector<uint32_t> lanes; ///< Lanes that are alive, by warp.
  unsigned counts[Fiber::kNumStates] = {};
  std::vector<uint32_t> order;
  std::mt19937 random;
  FiberStacks stacks;
  boost::context::detail::fcontext_t ownContext = nullptr; ///< Its own.
  SanitizerFiber ownSanitizer;                             ///< Its own stack.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCK_SCHEDULER_H
