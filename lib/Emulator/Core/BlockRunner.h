//===- BlockRunner.h - Runs the threads of a block as fibers ----*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
#define FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H

#include "ErrorLog.h"
#include "ExecutionCounter.h"
#include "Fiber.h"
#include "Interruption.h"
#include "Mbarrier.h"
#include "MemoryChecker.h"
#include "WarpMatrix.h"
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace ftuner::emulator {

enum class RunOrder { Forward, Reverse, Shuffled };

/// What the blocks of one launch have in common.
struct Launch {
  void (*entry)(void **parameters);
  void **parameters;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamicSharedBytes;
  uint32_t staticSharedBytes;
  RunOrder order;
  unsigned seed;
  bool lazyAsyncCopies;
  ErrorLog *log;
  MemoryChecker *checker;     ///< Null where nothing is checked.
  ExecutionCounter *counter;  ///< Null where nothing is counted.
  Interruption *interruption; ///< Null where nobody asks for an early end.
};

/// Runs one block at a time. Stacks and shared memory are kept for the next
/// one. Belongs to one CPU thread during a launch.
class BlockRunner {
public:
  BlockRunner() = default;
  ~BlockRunner();
  BlockRunner(const BlockRunner &) = delete;
  BlockRunner &operator=(const BlockRunner &) = delete;

  /// Makes room for the blocks of `launch`, which the thread that launched will
  /// run, or another. Returns false if the system has no memory for the stacks.
  bool prepare(const Launch &launch, bool runsOnCaller);
  /// Runs one block to its end, or to an error or an interruption that stops
  /// it.
  void runBlock(uint64_t linearBlock);

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
  /// Mbarriers that the thread made become visible to copies.
  void fenceMbarriers(const Fiber &fiber);
  /// An arrival for the thread once its copies so far are through.
  void trackCopies(Fiber &fiber, char *address, bool isCounted, uint32_t site);

  // Bulk copies (BulkCopies.cpp).
  /// The box whose first element has `rank` coordinates; reports what is wrong
  /// with the map, and then does not return.
  BulkRange makeBox(Fiber &fiber, const char *map, const int32_t *coordinates,
                    uint32_t rank, uint32_t site);
  void loadBulk(Fiber &fiber, char *target, const BulkRange &range,
                char *mbarrier, uint32_t site);
  void storeBulk(Fiber &fiber, char *source, const BulkRange &range,
                 uint32_t site);
  void waitForBulkStores(Fiber &fiber, uint32_t pendingGroups, bool isRead);

  // Barriers of some of the threads, registers (PartialBarriers.cpp).
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
  bool allocateStacks(size_t count);
  void initializeBlock(uint64_t linearBlock);
  void initializeFiber(Fiber &fiber, uint32_t index);
  void finishBlock();
  void resume(Fiber &fiber);
  void yield(Fiber &fiber, Fiber::State state);
  [[noreturn]] void kill(Fiber &fiber);

  void resumeReadyFibers();
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
  /// Lets the lanes go whose partners all arrived. Returns whether any did, or
  /// sets `isStopped` where they never will.
  bool completeWarpOps();
  bool completeWarpOps(Warp &warp, Fiber *lanes);
  /// Performs what the lanes `present` wait for, and lets them go unless it
  /// sets `isStopped`.
  void execute(Warp &warp, Fiber *lanes, uint32_t present);
  void shuffle(Fiber *lanes, uint32_t present);
  void elect(Fiber *lanes, uint32_t present);
  void executeMatrixOp(Fiber *lanes, uint32_t present);
  /// Reports what is wrong with a lane's row; returns only if it may be
  /// accessed.
  void checkMatrixRow(Fiber &fiber, const char *row, AccessKind kind,
                      uint32_t site);
  void reportDivergence();

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
  /// Performs the products that threads wait for once nothing else can run, as
  /// late as the rules allow. Returns whether a thread goes on.
  bool completeProducts();
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
  /// Lets one transfer be done, which a thread waits for if `isWaitedFor`.
  /// Returns whether there was any.
  bool landTransfer(bool isWaitedFor);
  void land(const Transfer &transfer);
  void landBulk(const Transfer &transfer, Mbarrier &mbarrier);
  void landThreadCopies(const Transfer &transfer, Mbarrier &mbarrier);
  /// Reports what is wrong with a copy to or from `place` in shared memory, and
  /// then does not return.
  void checkBulkCopy(Fiber &fiber, const BulkRange &range, const char *place,
                     bool isLoad, uint32_t site);
  void readSource(BulkStore &store);
  void finishBulkStores();
  /// What an mbarrier should have been told, but nobody waited for.
  void reportTransfersAtEnd();
  /// Tells threads that ask again and again that nothing has changed. Returns
  /// false if there are none, or nothing has changed for long.
  bool answerPolls();
  /// What the threads wait for that do not wait at a barrier of the block.
  void reportDeadlock();

  struct NamedBarrier {
    uint32_t expected = 0, arrived = 0, waiting = 0;
    std::array<uint32_t, kMaxWarps> lanes = {}; ///< Of each warp, that came.
    VectorClock clock;
  };
  /// Grants registers as far as there are.
  void settleRegisters();

  /// Opens the barrier if every thread waits there, else reports why not.
  bool openBarrier();
  bool checkBarrier();
  /// Reports what is wrong with a copy on its issue; returns only if it may
  /// happen.
  void issueAnyCopy(Fiber &fiber, const AsyncCopy &copy);
  static void performCopy(const AsyncCopy &copy);

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
  /// What may end a wait has happened so often; and had, when polls were
  /// answered last, which was so often since.
  uint64_t events = 0, eventsAtPolls = 0, idlePolls = 0;
  /// Whether issuing an asynchronous copy only puts it into a queue.
  bool arePlainCopies = false;
  std::vector<uint32_t> order;
  std::mt19937 random;
  unsigned counts[Fiber::kNumStates] = {};
  bool isStopped = false;
  boost::context::detail::fcontext_t scheduler = nullptr;

  char *stacks = nullptr;
  size_t stackCount = 0;
  std::vector<char>
      arena; ///< slack, guard, static, guard, dynamic, guard, slack
  SharedMemory shared;

  // For AddressSanitizer: the scheduler's own stack.
  void *schedulerFakeStack = nullptr;
  const void *schedulerStackBase = nullptr;
  size_t schedulerStackBytes = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_BLOCKRUNNER_H
