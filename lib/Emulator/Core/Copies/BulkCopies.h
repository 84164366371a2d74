//===- BulkCopies.h - Copies of whole ranges and boxes ----------*- C++ -*-===//
//
// cp.async.bulk: one thread has a range of bytes or a box of a tensor copied.
// An mbarrier counts the bytes that reach shared memory (Transfers.h); until
// then they are NaN. Copies from shared memory read and write when their thread
// waits for that.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_COPIES_BULKCOPIES_H
#define FTUNER_LIB_EMULATOR_CORE_COPIES_BULKCOPIES_H

#include "Barriers/Mbarriers.h"
#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"
#include "Copies/BulkRange.h"
#include "Copies/Transfers.h"
#include <deque>
#include <vector>

namespace ftuner::emulator {

/// Bulk copies to or from the shared memory of a block.
class BulkCopies {
public:
  BulkCopies(Scheduler &scheduler, BlockMemory &memory, Mbarriers &mbarriers,
             Transfers &transfers)
      : scheduler(scheduler), memory(memory), mbarriers(mbarriers),
        transfers(transfers) {}
  BulkCopies(const BulkCopies &) = delete;
  BulkCopies &operator=(const BulkCopies &) = delete;

  void begin() { stores.clear(); }
  /// At the block's end: writes what was read, and reports the other stores.
  void finishStores();

  // What compiled kernels ask for, called on the fiber of the thread.
  /// The box whose first element has `rank` coordinates; reports what is wrong
  /// with the map, and then does not return.
  BulkRange makeBox(Fiber &fiber, const char *map, const int32_t *coordinates,
                    uint32_t rank, uint32_t site) const;
  /// To shared memory of this block or, as in copyInCluster, of another.
  void load(Fiber &fiber, char *target, const BulkRange &range, char *mbarrier,
            uint32_t site);
  /// Copies to each block whose bit is in `mask`, at the same offsets.
  void multicast(Fiber &fiber, char *target, const BulkRange &range,
                 char *mbarrier, uint32_t mask, uint32_t site);
  /// From the block's shared memory to that of another of the cluster.
  void copyInCluster(Fiber &fiber, char *target, char *source, uint32_t bytes,
                     char *mbarrier, uint32_t site);
  void store(Fiber &fiber, char *source, const BulkRange &range, uint32_t site);
  /// Waits for all but the last `pendingGroups` groups, where `isRead` only
  /// until their sources are read.
  void waitForStores(Fiber &fiber, uint32_t pendingGroups, bool isRead);

private:
  /// A copy from shared to global memory.
  struct Store {
    BulkRange range;
    char *source;
    uint32_t thread;
    uint32_t group; ///< Number among the thread's groups.
    uint32_t site;
    bool isRead = false;    ///< The source was read, into `bytes`.
    bool isWritten = false; ///< Early, without waiting for it.
    std::vector<char> bytes;
  };

  /// The bulk copies of the block that has `address` in its shared memory: this
  /// one where no other has.
  BulkCopies &ownerOf(const char *address);
  /// Reports what is wrong with a copy to or from `place` in shared memory, and
  /// then does not return.
  void check(Fiber &fiber, const BulkRange &range, const char *place,
             bool isLoad, bool isFromShared, uint32_t site);
  /// Counts the rows of a box that is copied to shared memory.
  void count(const BulkRange &range) const;
  /// A copy to this block, by a thread of any of the cluster, from global
  /// memory or, where it is not null, `sharedSource` in the thread's block.
  void issueLoad(Fiber &fiber, char *target, const BulkRange &range,
                 char *mbarrier, char *sharedSource, uint32_t site);
  static void readSource(Store &store);

  Scheduler &scheduler;
  BlockMemory &memory;
  Mbarriers &mbarriers;
  Transfers &transfers;
  std::deque<Store> stores; ///< Stores not written or not waited for.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_COPIES_BULKCOPIES_H
