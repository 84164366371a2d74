//===- BlockRunner.h - Runs the threads of a block as fibers ----*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H

#include "Cluster.h"
#include "Fiber.h"
#include "Launch.h"
#include "Mbarrier.h"
#include "WarpMatrix.h"
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace ftuner::emulator {

/// What shared memory holds that nobody wrote: NaN of any type.
constexpr unsigned char kPoison = 0xff;

/// Runs one block at a time, with those of its cluster (ClusterRunner.h).
/// Stacks and shared memory are kept for the next one. Belongs to one CPU
/// thread during a launch.
class BlockRunner {
public:
  BlockRunner(Cluster &cluster, uint32_t rank) : cluster(cluster), rank(rank) {}
  ~BlockRunner();
  BlockRunner(const BlockRunner &) = delete;
  BlockRunner &operator=(const BlockRunner &) = delete;

  /// Makes room for the blocks of `launch`, which the thread that launched will
  /// run, or another. Returns false if the system has no memory for the stacks.
  bool prepare(const Launch &launch, bool runsOnCaller);
  const SharedMemory &sharedMemory() const { return shared; }

  // Steps of a block, from which ClusterRunner chooses. Those that return
  // whether they did anything report errors, and stop the cluster.
  void beginBlock(uint64_t linearBlock);
  /// Runs the threads that can go on until none can.
  void resumeReadyFibers();
  bool hasReadyFibers() const { return count(Fiber::State::Ready) != 0; }
  /// Lets the lanes go whose partners all arrived. Returns whether any did, or
  /// stops the cluster where they never will.
  bool completeWarpOps();
  /// Performs the products that threads wait for once nothing else can run, as
  /// late as the rules allow. Returns whether a thread goes on.
  bool completeProducts();
  /// Opens the barrier of the block if all threads that run wait there.
  bool openBarrier();
  /// Lets one transfer be done, which a thread waits for if `isWaitedFor`.
  /// Returns whether there was any.
  bool landTransfer(bool isWaitedFor);
  bool hasPolls() const { return count(Fiber::State::Polling) != 0; }
  /// Tells threads that ask again and again that nothing has changed.
  void answerPolls();
  /// Whether all threads are through.
  bool isThrough() const {
    return count(Fiber::State::Exited) + count(Fiber::State::Killed) ==
           fibers.size();
  }
  /// Once all threads are through: looks for what they left undone.
  void endIfThrough() {
    if (!hasEnded && isThrough())
      endBlock();
  }
  /// At the cluster's end: looks for writes outside of shared memory.
  void checkGuards();
  /// Says why the block cannot go on, in words about its barriers and
  /// collectives; returns false where it says nothing.
  bool reportDivergence();
  /// What threads of the block wait for in vain, and the first of them.
  std::string describeWaits(const Fiber *&first) const;

  // The barrier of the cluster, and its shared memory (ClusterBarrier.cpp).
  /// Whether all of the block's threads came to it, or are through.
  bool isAtClusterBarrier() const;
  /// Lets the threads go that wait there; returns false after a report.
  bool leaveClusterBarrier();
  bool hasKilledFibers() const { return count(Fiber::State::Killed) != 0; }

  // What compiled kernels ask for, called on the fiber of the thread.
  void waitAtBarrier(Fiber &fiber, uint32_t id, uint32_t site);
  uint64_t waitAtWarpOp(Fiber &fiber, const WarpRequest &request);
  /// `code` is an MmaVariant, whose registers are as multiplyMatrices has them.
  void multiplyMatrices(Fiber &fiber, uint32_t *registers, uint32_t code,
                        uint32_t site);
  /// `op` is LoadMatrix or StoreMatrix, `code` a MatrixCopy.
  void copyMatrices(Fiber &fiber, WarpOp op, char *row, uint32_t *registers,
                    uint32_t code, uint32_t site);
  void issueCopy(Fiber &fiber, const AsyncCopy &copy) {
    uintptr_t addresses =
        reinterpret_cast<uintptr_t>(copy.target) |
        (copy.sourceBytes ? reinterpret_cast<uintptr_t>(copy.source) : 0);
    bool isPlain = (addresses & (copy.bytes - 1)) == 0 &&
                   copy.sourceBytes <= copy.bytes &&
                   shared.contains(copy.target, copy.bytes) && arePlainCopies;
    if (isPlain && fiber.copies.tryPush(copy))
      return;
    AsyncCopy other = copy; // So that `copy` can stay in registers.
    issueAnyCopy(fiber, other);
  }
  // Products of a warpgroup (WarpgroupProducts.cpp).
  struct ProductRequest {
    uint64_t a, b;    ///< Matrix descriptors.
    uint32_t variant; ///< A GroupVariant.
    uint32_t site;
    bool operator==(const ProductRequest &other) const {
      return a == other.a && b == other.b && variant == other.variant;
    }
  };
  uint32_t issueProduct(Fiber &fiber, uint32_t *accumulators,
                        const uint32_t *start, uint32_t version,
                        const ProductRequest &request);
  void readAccumulators(Fiber &fiber, const uint32_t *accumulators,
                        uint32_t *registers, uint32_t version, uint32_t count,
                        uint32_t site);
  void waitForProducts(Fiber &fiber, uint32_t pendingGroups, uint32_t site);
  void fenceProxy(Fiber &fiber) {
    fenceMbarriers(fiber);
    if (launch->checker)
      launch->checker->fenceProxy(fiber);
  }

  // Mbarriers (Mbarriers.cpp); `options` and `kind` as RuntimeFunctions.h has
  // them.
  void initMbarrier(Fiber &fiber, char *address, uint32_t count, uint32_t site);
  void invalidateMbarrier(Fiber &fiber, char *address, uint32_t site);
  uint64_t arriveAtMbarrier(Fiber &fiber, char *address, uint32_t count,
                            int64_t bytes, uint32_t options, uint32_t site);
  bool waitForMbarrier(Fiber &fiber, char *address, uint64_t phase,
                       uint32_t kind, uint32_t site);
  /// Mbarriers that the thread made become visible to copies; with
  /// `releaseMbarriers` also to threads that come to know of its next arrival
  /// at the barrier of the cluster, be it a relaxed one.
  void fenceMbarriers(const Fiber &fiber);
  void releaseMbarriers(Fiber &fiber);
  /// An arrival for the thread once its copies so far are through.
  void trackCopies(Fiber &fiber, char *address, bool isCounted, uint32_t site);

  // Bulk copies (BulkCopies.cpp).
  /// The box whose first element has `rank` coordinates; reports what is wrong
  /// with the map, and then does not return.
  BulkRange makeBox(Fiber &fiber, const char *map, const int32_t *coordinates,
                    uint32_t rank, uint32_t site);
  void loadBulk(Fiber &fiber, char *target, const BulkRange &range,
                char *mbarrier, uint32_t site);
  /// The same to each block whose bit is in `mask`, at the same offsets.
  void multicastBulk(Fiber &fiber, char *target, const BulkRange &range,
                     char *mbarrier, uint32_t mask, uint32_t site);
  /// From the block's shared memory to that of another of the cluster.
  void copyInCluster(Fiber &fiber, char *target, char *source, uint32_t bytes,
                     char *mbarrier, uint32_t site);
  void storeBulk(Fiber &fiber, char *source, const BulkRange &range,
                 uint32_t site);
  void waitForBulkStores(Fiber &fiber, uint32_t pendingGroups, bool isRead);

  // Clusters (ClusterBarrier.cpp); `options` are those of ClusterArrival.
  void arriveAtCluster(Fiber &fiber, uint32_t options, uint32_t site);
  void waitAtCluster(Fiber &fiber, uint32_t site);
  /// The address in block `blockRank` of the cluster of what lies at `address`
  /// in a block's shared memory.
  char *mapAddress(Fiber &fiber, char *address, uint32_t blockRank,
                   uint32_t site);

  // Barriers of some of the threads, registers (BlockBarriers.cpp).
  void meetAtNamedBarrier(Fiber &fiber, uint32_t id, uint32_t threads,
                          bool waits, uint32_t site);
  void setRegisters(Fiber &fiber, uint32_t count, bool isIncrease,
                    uint32_t atEntry, uint32_t site);

  void commitCopies(Fiber &fiber);
  void waitForCopies(Fiber &fiber, uint32_t pendingGroups);
  /// Returns only if the access may happen.
  void checkAccess(Fiber &fiber, const char *address, size_t bytes,
                   AccessKind kind, uint32_t alignment, uint32_t site);

  void enter(Fiber &fiber, uint32_t basicBlock) {
    launch->counter->enter(fiber, basicBlock);
  }

private:
  static void fiberMain(boost::context::detail::transfer_t transfer);
  void freeStacks();
  bool allocateStacks(size_t count);
  void initializeFiber(Fiber &fiber, uint32_t index);
  void initializeIds(ThreadRegisters &registers, uint64_t linearBlock) const;
  void endBlock();
  void resume(Fiber &fiber);
  void yield(Fiber &fiber, Fiber::State state);
  [[noreturn]] void kill(Fiber &fiber);

  /// Whether the launch is to end early.
  bool isInterrupted() const {
    Interruption *interruption = launch->interruption;
    return interruption &&
           (isCaller ? interruption->poll() : interruption->isRaised());
  }
  void setState(Fiber &fiber, Fiber::State state);
  unsigned count(Fiber::State state) const {
    return counts[static_cast<unsigned>(state)];
  }

  // Collectives of a warp (WarpCollectives.cpp).
  struct Warp {
    uint32_t lanes = 0;   ///< Those that there are and that were not killed.
    uint32_t waiting = 0; ///< Those that wait at a collective.
    bool isMixed = false; ///< They may wait at different ones.
  };
  bool completeWarp(Warp &warp, Fiber *lanes);
  /// Performs what the lanes `present` wait for, and lets them go unless it
  /// stops the cluster.
  void execute(Warp &warp, Fiber *lanes, uint32_t present);
  void shuffle(Fiber *lanes, uint32_t present);
  void elect(Fiber *lanes, uint32_t present);
  void executeMatrixOp(Fiber *lanes, uint32_t present);
  /// Reports what is wrong with a lane's row; returns only if it may be
  /// accessed.
  void checkMatrixRow(Fiber &fiber, const char *row, AccessKind kind,
                      uint32_t site);
  void reportMissingLanes();

  /// To be called when `productsInFlight` changes.
  void updatePlainCopies() {
    arePlainCopies = !launch->checker && !launch->counter &&
                     launch->lazyAsyncCopies && productsInFlight == 0;
  }

  struct Product {
    ProductRequest request;
    /// Of D of each thread; null for those that did not come yet.
    std::array<uint32_t *, kGroupThreads> registers = {};
  };
  struct RegisterRequest {
    uint32_t count = 0;
    bool isIncrease = false, isDone = false;
    uint32_t callers = 0;
  };
  /// Four warps from a multiple of four.
  struct Warpgroup {
    std::deque<Product> products; ///< Those not performed, oldest first.
    uint32_t performed = 0;       ///< Number of the first of them.
    uint32_t registers = 0;       ///< Of a thread; 0 where none asked.
    std::vector<RegisterRequest> registerRequests;
  };
  /// Performs the oldest products of the group below number `end` that all
  /// threads have issued.
  void performProducts(size_t group, uint32_t end);
  void perform(size_t group, const Product &product);
  void gather(const Fiber &fiber, const ProductRequest &request, bool isA,
              GroupOperand &operand);
  /// Tells the checker what the fiber's warp reads, on issue or after it.
  void checkProductReads(Fiber &fiber, const ProductRequest &request,
                         bool isIssue);
  /// The window of shared memory that matrix descriptors address.
  char *sharedWindow() const {
    return reinterpret_cast<char *>(
        reinterpret_cast<uintptr_t>(shared.dynamicBase) >>
        MatrixDescriptor::kAddressBits << MatrixDescriptor::kAddressBits);
  }

  // Mbarriers (Mbarriers.cpp).
  /// The mbarrier at `address`; reports what is wrong, and then does not
  /// return. The thread uses it.
  Mbarrier &getMbarrier(Fiber &fiber, char *address, uint32_t site);
  /// Goes on to the next phase if this one is over, and wakes who waits.
  void settle(Mbarrier &mbarrier);
  std::string describe(const Mbarrier &mbarrier) const;
  bool isWaitedFor(const Mbarrier &mbarrier) const;
  void land(const Transfer &transfer);
  void landBulk(const Transfer &transfer, Mbarrier &mbarrier);
  void landThreadCopies(const Transfer &transfer, Mbarrier &mbarrier);
  /// Reports what is wrong with a copy to or from `place` in shared memory, and
  /// then does not return.
  void checkBulkCopy(Fiber &fiber, const BulkRange &range, const char *place,
                     bool isLoad, bool isFromShared, uint32_t site);
  /// A bulk copy to this block, by a thread of any of the cluster, from global
  /// memory or, where it is not null, `sharedSource` in the thread's block.
  void issueLoad(Fiber &fiber, char *target, const BulkRange &range,
                 char *mbarrier, char *sharedSource, uint32_t site);
  void readSource(BulkStore &store);
  void finishBulkStores();
  /// What an mbarrier should have been told, but nobody waited for.
  void reportTransfersAtEnd();

  struct NamedBarrier {
    uint32_t expected = 0, arrived = 0, waiting = 0;
    std::array<uint32_t, kMaxWarps> lanes = {}; ///< Of each warp, that came.
    VectorClock clock;
  };
  /// Grants registers as far as there are.
  void settleRegisters();

  /// The block of the cluster, other than this one, whose shared memory holds
  /// `address`; null if none.
  BlockRunner *findPeer(const char *address) const;
  /// To be called before a thread of another block uses this one's shared
  /// memory. Reports a block that has ended, and then does not return, or that
  /// may not have started. Without `isLasting`, something else tells this block
  /// of the end of the use.
  void checkRemoteUse(Fiber &user, bool isLasting, uint32_t site);
  /// The address in this block of what lies at `address` in `other`.
  char *translate(const BlockRunner &other, char *address) const {
    return shared.staticBase + (address - other.shared.staticBase);
  }
  /// " of block 1 of the cluster", or "" where there is one block.
  std::string clusterName() const;

  /// Reports why the barrier of the block cannot open.
  bool checkBarrier();
  /// Reports what is wrong with a copy on its issue; returns only if it may
  /// happen.
  void issueAnyCopy(Fiber &fiber, const AsyncCopy &copy);
  static void performCopy(const AsyncCopy &copy);

  Cluster &cluster;
  const uint32_t rank; ///< In the cluster.
  bool hasEnded = false;
  const Launch *launch = nullptr;
  bool isCaller = false;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  size_t productsInFlight = 0; ///< Of all warpgroups.
  std::deque<Mbarrier> mbarriers;
  std::deque<Transfer> transfers;   ///< Those that mbarriers count, in order.
  std::deque<BulkStore> bulkStores; ///< Those not written, or not waited for.
  std::array<NamedBarrier, kNamedBarriers> namedBarriers;
  uint32_t registersPerThread = 0; ///< In the block's pool, of all threads.
  /// Whether issuing an asynchronous copy only puts it into a queue.
  bool arePlainCopies = false;
  std::vector<uint32_t> order;
  std::mt19937 random;
  unsigned counts[Fiber::kNumStates] = {};
  boost::context::detail::fcontext_t scheduler = nullptr;

  char *stacks = nullptr;
  size_t stackCount = 0;
  std::vector<char>
      arena; ///< slack, guard, static, guard, dynamic, guard, slack
  SharedMemory shared;

  SanitizerFiber schedulerSanitizer; ///< The scheduler's own stack.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
