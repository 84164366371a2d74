//===- MemoryChecker.h - Bounds, alignment and races ------------*- C++ -*-===//
//
// Watches the accesses of one launch, whose blocks then run on one CPU thread.
//
// Races: execution between two barriers of a block is a phase. Two accesses of
// the same byte by different threads, one of them a write, race when they are
// of different blocks, or of the same block and phase and not ordered by a
// warp-wide synchronisation. Per 4-byte word (per byte in pages that see
// narrower accesses) the last write and the last read are remembered, with
// enough about further readers to decide every later write.
//
// A kernel with mbarriers, or with barriers of some of the threads, orders its
// threads in part (Options::partialOrder): then each thread has a vector clock,
// and all readers since the last write are remembered. What barriers of the
// whole block and warps order, phases decide as before. The threads of a
// cluster of blocks are numbered together, and only clocks order them.
//
// An asynchronous copy is a write that lasts from its issue to the wait: any
// access of its target meanwhile is an error; after the wait it counts as a
// write of the waiting thread, so other threads need a barrier too. Where an
// mbarrier counts the copy, an actor of the mbarrier writes, and who waits for
// the mbarrier comes after it.
//
// Products of matrices (wgmma) and bulk copies use the asynchronous proxy: they
// see what a thread wrote only after a fence of that thread, which must itself
// be ordered before them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CHECKS_MEMORYCHECKER_H
#define FTUNER_LIB_EMULATOR_CORE_CHECKS_MEMORYCHECKER_H

#include "Checks/ErrorLog.h"
#include "Checks/VectorClocks.h"
#include "Fibers/Fiber.h"
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ftuner::emulator {

/// A range of global memory that kernels may access.
struct Buffer {
  char *base;
  size_t bytes;
  std::string name;
  bool writable;
};

/// The values are part of the interface to compiled code.
enum class AccessKind : uint32_t { Read = 0, Write = 1, Atomic = 2 };

/// A block's shared memory: the two parts a kernel may access.
struct SharedMemory {
  char *dynamicBase = nullptr;
  size_t dynamicBytes = 0;
  char *staticBase = nullptr;
  size_t staticBytes = 0;

  bool contains(const char *address, size_t bytes) const {
    return isWithin(address, bytes, dynamicBase, dynamicBytes) ||
           isWithin(address, bytes, staticBase, staticBytes);
  }
  static bool isWithin(const char *address, size_t bytes, const char *base,
                       size_t size) {
    uintptr_t offset = reinterpret_cast<uintptr_t>(address) -
                       reinterpret_cast<uintptr_t>(base);
    return bytes <= size && offset <= size - bytes;
  }
};

class MemoryChecker {
public:
  struct Options {
    bool bounds = false;
    bool races = false;
    bool partialOrder = false; ///< With races: not only whole blocks meet.
  };

  /// `buffers` must be sorted by base and outlive the checker.
  MemoryChecker(Options options, const std::vector<Buffer> &buffers,
                ErrorLog &log)
      : options(options), buffers(buffers), log(log) {}

  /// A cluster of blocks of `threads` threads, with the shared memory of each.
  void beginCluster(std::vector<SharedMemory> memories, uint32_t linearCluster,
                    size_t threads);
  /// All threads of a block of the cluster met: accesses before are ordered
  /// before those after.
  void beginPhase(uint32_t rank);

  // Order of some of the threads.
  /// Orders the thread's work so far before all that acquires `clock`.
  void release(const Fiber &fiber, VectorClock &clock) {
    if (options.partialOrder)
      clocks.release(fiber.actor, clock);
  }
  void acquire(const Fiber &fiber, const VectorClock &clock) {
    if (options.partialOrder)
      clocks.acquire(fiber.actor, clock);
  }
  /// The time of a thread, and whether another comes after that.
  uint32_t now(const Fiber &fiber) const {
    return options.partialOrder ? clocks.now(fiber.actor) : 0;
  }
  bool isAfter(const Fiber &fiber, const Fiber &other, uint32_t time) const {
    return !options.partialOrder || &fiber == &other ||
           clocks.knows(fiber.actor, other.actor, time);
  }
  /// The time of a thread, which then begins another.
  uint32_t advance(const Fiber &fiber) {
    return options.partialOrder ? clocks.advance(fiber.actor) : 0;
  }
  /// The lanes `present` of a warp meet, from `lanes` on.
  void meet(const Fiber *lanes, uint32_t present);
  /// The thread comes after what its warp read for products.
  void acquireProductReads(const Fiber &fiber);

  // Clusters.
  /// Orders the thread's work so far before all that acquires `clock`; if
  /// `isRelaxed`, only its start, and the mbarriers that it fenced.
  void arriveAtCluster(const Fiber &fiber, bool isRelaxed, VectorClock &clock);
  /// Returns whether the thread knows that the block of this rank has started,
  /// whose cluster met `meetings` times.
  bool knowsStart(const Fiber &fiber, uint32_t rank, uint32_t meetings) const;
  /// The thread uses the shared memory of another block.
  void noteRemoteUse(const Fiber &user, uint32_t rank, uint32_t site);
  /// All threads of the block are through. Reports uses of its shared memory
  /// that may come later in another order of the threads.
  void endBlock(uint32_t rank);

  /// Checks an access of `bytes` bytes at `address`, which must be a multiple
  /// of `alignment`. Returns false if it must not happen.
  bool access(const Fiber &fiber, const char *address, size_t bytes,
              AccessKind kind, uint32_t alignment, uint32_t site);
  /// Checks a copy on its issue. Returns false if it must not happen.
  bool issueCopy(const Fiber &fiber, const AsyncCopy &copy);
  /// A warp reads for a product of matrices (wgmma), from its issue, where
  /// `isIssue`, to the wait. Such reads are of the asynchronous proxy: they see
  /// what others wrote only after a fence of the writing thread.
  void readForProduct(const Fiber &fiber, const char *address, size_t bytes,
                      bool isIssue, uint32_t site);
  void fenceProxy(const Fiber &fiber) {
    fencesOf(fiber.actor).push_back(makeRecord(fiber));
  }
  void completeCopy(const Fiber &fiber, const AsyncCopy &copy);

  // Copies that mbarriers count. `actor` is the number of the mbarrier, which
  // the functions below turn into that of its actor.
  /// A bulk copy to shared memory is issued. Returns false if it must not
  /// happen.
  bool issueBulkCopy(const Fiber &fiber, const char *target, size_t bytes,
                     uint32_t site);
  /// A bulk copy reads shared memory, from its issue to the wait.
  void readForBulkCopy(const Fiber &fiber, const char *source, size_t bytes,
                       bool isIssue, uint32_t site);
  /// The copy wrote, which its mbarrier is told at `time`.
  void land(uint32_t actor, uint32_t time, const char *target, size_t bytes,
            bool isBulk);
  /// Orders waits for the mbarrier after its actor's work until `time`.
  void releaseActor(uint32_t actor, uint32_t time, VectorClock &clock) const;

private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr unsigned kPageBytes = 4096;

  struct Record {
    uint32_t block = kNone; ///< Or cluster of blocks.
    uint32_t phase = 0;
    uint16_t warpPhase = 0;
    uint16_t thread = 0; ///< Or an actor after the threads.
    uint32_t clock = 0;  ///< Its time; only with a partial order.
  };
  struct Cell {
    Record write;
    Record read;
    bool isAtomic = false;       ///< The last write was atomic.
    bool isInFlight = false;     ///< The last write is a copy not waited for.
    bool severalThreads = false; ///< Several threads of one warp read.
    bool severalWarps = false;   ///< Several warps of the block read.
    bool severalBlocks = false;
    /// Warps of the block that read it last whose products in flight read it.
    uint8_t productReads = 0;
    bool isAsyncWrite = false; ///< The last write was of a bulk copy.
    bool isBulkRead = false;   ///< `productReads` are of bulk copies.
    /// The fences of the writing thread before the last write.
    uint32_t fenceCount = 0;
    /// Place of the readers since the last write, or 0; if order is partial.
    uint32_t readers = 0;
  };
  struct Page {
    unsigned granule = 4; ///< Bytes per cell: 4 or 1.
    std::vector<Cell> cells = std::vector<Cell>(kPageBytes / 4);
  };
  struct Place; // What is known of an address, for messages.

  Place locate(const Fiber &fiber, const char *address, size_t bytes);
  const Buffer *findBuffer(const char *address);
  bool checkBounds(const Fiber &fiber, const Place &place, const char *address,
                   size_t bytes, AccessKind kind, uint32_t site);
  Page &pageOf(uintptr_t address);
  /// Makes the cells of a page single bytes.
  void refine(Page &page);
  template <typename Function>
  void forEachCell(const char *address, size_t bytes, Function function);
  void trackAccess(const Fiber &fiber, const Place &place, const char *address,
                   size_t bytes, AccessKind kind, uint32_t site);
  /// Returns whether `earlier` is unordered with an access by `fiber` now.
  bool isUnordered(const Fiber &fiber, const Record &earlier,
                   bool isShared) const;
  bool readsAreUnordered(const Fiber &fiber, const Cell &cell,
                         bool isShared) const;
  void noteRead(const Record &now, Cell &cell, bool isShared);
  // Of partial orders, apart from what all kernels need.
  [[gnu::noinline]] void noteReader(const Record &reader, Cell &cell);
  [[gnu::noinline]] bool isKnown(const Fiber &fiber,
                                 const Record &earlier) const;
  [[gnu::noinline]] bool readersAreUnordered(const Fiber &fiber,
                                             const Cell &cell,
                                             bool isShared) const;
  /// Reads of the asynchronous proxy, which last.
  void readAsync(const Fiber &fiber, const char *address, size_t bytes,
                 bool isIssue, bool isBulk, uint32_t site);
  /// Returns whether the asynchronous proxy does not see the last write, of
  /// this block, on behalf of `fiber`.
  bool isWriteUnfenced(const Fiber &fiber, const Cell &cell);
  uint32_t threadOfActor(uint32_t actor) const {
    return static_cast<uint32_t>(actorBase + actor);
  }
  Record makeRecord(const Fiber &fiber) const;
  std::string describe(const Place &place, const char *address) const;
  /// "thread (0,0,0)", with its block where that is another one.
  std::string describeThread(const Fiber &fiber, uint32_t actor) const;
  std::string describeWriter(const Fiber &fiber, const Record &record) const;
  void reportRace(const Fiber &fiber, const Place &place, const char *address,
                  AccessKind kind, const Record &earlier,
                  const char *earlierKind, uint32_t site);

  std::vector<Record> &fencesOf(uint32_t thread) {
    if (thread >= fences.size())
      fences.resize(thread + 1);
    return fences[thread];
  }

  std::vector<std::vector<Record>> fences; ///< By thread.
  VectorClocks clocks;
  /// The first number of an actor that is no thread, in no thread's warp.
  size_t actorBase = 0;
  std::vector<std::vector<Record>> readerLists{1}; ///< The first is unused.
  std::vector<uint32_t> productReadTimes;          ///< By warp.
  Options options;
  const std::vector<Buffer> &buffers;
  ErrorLog &log;
  std::vector<SharedMemory> memories; ///< By block of the cluster.
  size_t threadsPerBlock = 0;
  size_t blockStride = 0; ///< Between the numbers of threads of two blocks.
  /// The last use of a block's shared memory by each thread of others; null
  /// where there is none.
  struct RemoteUse {
    const Fiber *user = nullptr;
    uint32_t time = 0, site = 0;
  };
  std::vector<std::vector<RemoteUse>> remoteUses; ///< By rank and thread.
  uint32_t block = 0;                             ///< Or cluster of blocks.
  uint32_t phase = 0;
  std::map<uintptr_t, std::unique_ptr<Page>> pages;
  /// The page looked up last of those with the same low bits of its number.
  struct RecentPage {
    uintptr_t number = ~uintptr_t(0);
    Page *page = nullptr;
  };
  std::array<RecentPage, 256> recentPages;
  const Buffer *lastBuffer = nullptr;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CHECKS_MEMORYCHECKER_H
