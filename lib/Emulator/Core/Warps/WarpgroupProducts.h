//===- WarpgroupProducts.h - Asynchronous products --------------*- C++ -*-===//
//
// wgmma: four warps issue a product of matrices in shared memory. Shared memory
// is read, and accumulators are written, as late as the rules allow: when a
// thread waits for the product and no other can run. Until then the
// accumulators of a thread are not its own.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_WARPS_WARPGROUPPRODUCTS_H
#define FTUNER_LIB_EMULATOR_CORE_WARPS_WARPGROUPPRODUCTS_H

#include "Block/BlockMemory.h"
#include "Block/Scheduler.h"
#include "Copies/AsyncCopies.h"
#include "Matrices/WarpMatrix.h"
#include <array>
#include <deque>
#include <vector>

namespace ftuner::emulator {

struct ProductRequest {
  uint64_t a, b;    ///< Matrix descriptors.
  uint32_t variant; ///< A GroupVariant.
  uint32_t site;
  /// Returns whether the products are the same, wherever issued.
  bool operator==(const ProductRequest &other) const {
    return a == other.a && b == other.b && variant == other.variant;
  }
};

class WarpgroupProducts {
public:
  WarpgroupProducts(Scheduler &scheduler, const BlockMemory &memory,
                    AsyncCopies &copies)
      : scheduler(scheduler), memory(memory), copies(copies) {}

  void begin();
  /// At the block's end.
  void reportPending() const;

  // What compiled kernels ask for, called on the fiber of the thread.
  /// Returns the version of the accumulators that the product makes.
  uint32_t issue(Fiber &fiber, uint32_t *accumulators, const uint32_t *start,
                 uint32_t version, const ProductRequest &request);
  void readAccumulators(Fiber &fiber, const uint32_t *accumulators,
                        uint32_t *registers, uint32_t version, uint32_t count,
                        uint32_t site);
  /// Waits for all but the last `pendingGroups` groups of products.
  void wait(Fiber &fiber, uint32_t pendingGroups, uint32_t site);

  /// Performs the products that threads wait for once nothing else can run.
  /// Returns whether a thread goes on.
  bool complete();
  /// Reports that not all threads issue the products for which a thread
  /// waits.
  bool reportMissingThreads() const;

private:
  struct Product {
    ProductRequest request;
    /// Registers of D by thread; null for threads that did not come yet.
    std::array<uint32_t *, kGroupThreads> registers = {};
  };
  /// Four warps from a multiple of four.
  struct Warpgroup {
    std::deque<Product> products; ///< Pending, oldest first.
    uint32_t performed = 0;       ///< Number of the first of them.
  };

  /// There are now so many products in flight.
  void countInFlight(size_t count);
  /// Performs the oldest products of the group below number `end` that all
  /// threads have issued.
  void performBelow(size_t group, uint32_t end);
  void perform(size_t group, const Product &product);
  void gather(const Fiber &fiber, const ProductRequest &request, bool isA,
              GroupOperand &operand) const;
  /// Tells the checker what the fiber's warp reads, on issue or after it.
  void checkReads(Fiber &fiber, const ProductRequest &request, bool isIssue);

  Scheduler &scheduler;
  const BlockMemory &memory;
  AsyncCopies &copies;
  std::vector<Warpgroup> warpgroups;
  size_t inFlight = 0; ///< Products of all warpgroups.
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_WARPS_WARPGROUPPRODUCTS_H
