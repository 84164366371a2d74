//===- BulkCopies.cpp - Copies of whole ranges and boxes ------------------===//
#include "Copies/BulkCopies.h"
#include <algorithm>
#include <cstring>

using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

BulkRange BulkCopies::makeBox(Fiber &fiber, const char *map,
                              const int32_t *coordinates, uint32_t rank,
                              uint32_t site) const {
  EmulatedTensorMap decoded;
  std::memcpy(&decoded, map, sizeof(decoded));
  if (decoded.mark != EmulatedTensorMap::kMark) {
    scheduler.report(fiber, ErrorKind::BulkCopy, site,
                     "there is no tensor map of the emulator at address ",
                     formatAddress(map));
    scheduler.kill(fiber);
  }
  if (decoded.rank != rank) {
    scheduler.report(fiber, ErrorKind::BulkCopy, site, "a copy with ", rank,
                     " coordinates by a tensor map of ", uint32_t(decoded.rank),
                     " dimensions");
    scheduler.kill(fiber);
  }
  return BulkRange(decoded, coordinates);
}

void BulkCopies::check(Fiber &fiber, const BulkRange &range, const char *place,
                       bool isLoad, bool isFromShared, uint32_t site) {
  constexpr uint64_t kUnit = BulkRange::kChunk;
  uint64_t alignment = range.isBox() ? BulkRange::kBoxAlignment : kUnit;
  auto isMisaligned = [](const char *address, uint64_t unit) {
    return reinterpret_cast<uintptr_t>(address) % unit != 0;
  };
  if (isMisaligned(place, alignment)) {
    scheduler.report(fiber, ErrorKind::Misaligned, site,
                     "misaligned bulk copy: expected an alignment of ",
                     alignment, " bytes in shared memory, but got address ",
                     formatAddress(place));
    scheduler.kill(fiber);
  }
  if (!range.isBox() && (range.bytes() % kUnit != 0 || range.bytes() == 0)) {
    scheduler.report(fiber, ErrorKind::BulkCopy, site,
                     "expected a bulk copy of a multiple of 16 "
                     "bytes, but got ",
                     range.bytes());
    scheduler.kill(fiber);
  }
  const SharedMemory &shared = memory.shared();
  if (!shared.contains(place, range.bytes())) {
    scheduler.report(fiber, ErrorKind::OutOfBounds, site,
                     "out-of-bounds bulk copy of ", range.bytes(),
                     isLoad ? " bytes to" : " bytes from", " offset ",
                     place - shared.dynamicBase, " of dynamic shared memory (",
                     shared.dynamicBytes, " bytes)");
    scheduler.kill(fiber);
  }
  MemoryChecker *checker = scheduler.checker();
  range.forEachRow([&](const BulkRange::Row &row) {
    if (!range.isBox() && isMisaligned(row.address, kUnit)) {
      scheduler.report(
          fiber, ErrorKind::Misaligned, site,
          "misaligned bulk copy: expected an alignment of 16 bytes "
          "in global memory, but got address ",
          formatAddress(row.address));
      scheduler.kill(fiber);
    }
    if (isFromShared)
      return;
    AccessKind kind = isLoad ? AccessKind::Read : AccessKind::Write;
    if (checker && !checker->access(fiber, row.address, row.bytes, kind,
                                    /*alignment=*/1, site))
      scheduler.kill(fiber);
  });
}

BulkCopies &BulkCopies::ownerOf(const char *address) {
  const ClusterBlock *peer = memory.findPeer(address);
  return peer ? *peer->bulkCopies : *this;
}

/// A copy to several blocks counts once.
void BulkCopies::count(const BulkRange &range) const {
  ExecutionCounter *counter = scheduler.counter();
  if (!counter || !range.isBox())
    return;
  uint64_t inside = 0;
  range.forEachRow([&](const BulkRange::Row &) { ++inside; });
  counter->copyBox(range.rows(), range.rows() - inside);
}

void BulkCopies::load(Fiber &fiber, char *target, const BulkRange &range,
                      char *mbarrier, uint32_t site) {
  count(range);
  ownerOf(target).issueLoad(fiber, target, range, mbarrier,
                            /*sharedSource=*/nullptr, site);
}

void BulkCopies::multicast(Fiber &fiber, char *target, const BulkRange &range,
                           char *mbarrier, uint32_t mask, uint32_t site) {
  const std::vector<ClusterBlock> &blocks = scheduler.cluster().blocks;
  if (mask == 0 || mask >> blocks.size() != 0) {
    scheduler.report(fiber, ErrorKind::BulkCopy, site,
                     "expected a multicast mask of some of the ", blocks.size(),
                     " blocks of the cluster, but got ", mask);
    scheduler.kill(fiber);
  }
  count(range);
  const BlockMemory &place = ownerOf(target).memory;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (mask >> i & 1) {
      const BlockMemory &other = *blocks[i].memory;
      blocks[i].bulkCopies->issueLoad(fiber, other.translate(place, target),
                                      range, other.translate(place, mbarrier),
                                      /*sharedSource=*/nullptr, site);
    }
}

void BulkCopies::copyInCluster(Fiber &fiber, char *target, char *source,
                               uint32_t bytes, char *mbarrier, uint32_t site) {
  const SharedMemory &shared = memory.shared();
  if (!shared.contains(source, bytes)) {
    scheduler.report(
        fiber, ErrorKind::OutOfBounds, site, "out-of-bounds bulk copy of ",
        bytes, " bytes from offset ", source - shared.dynamicBase,
        " of dynamic shared memory (", shared.dynamicBytes, " bytes)");
    scheduler.kill(fiber);
  }
  ownerOf(target).issueLoad(fiber, target, BulkRange(source, bytes), mbarrier,
                            source, site);
}

void BulkCopies::issueLoad(Fiber &fiber, char *target, const BulkRange &range,
                           char *mbarrierAddress, char *sharedSource,
                           uint32_t site) {
  if (!scheduler.owns(fiber))
    memory.checkRemoteUse(fiber, /*isLasting=*/false, site);
  if (const ClusterBlock *owner = memory.findPeer(mbarrierAddress)) {
    scheduler.report(fiber, ErrorKind::BulkCopy, site,
                     "a bulk copy to shared memory", memory.blockName(),
                     " is counted by an mbarrier", owner->memory->blockName());
    scheduler.kill(fiber);
  }
  Mbarrier &mbarrier = mbarriers.get(fiber, mbarrierAddress, site);
  check(fiber, range, target, /*isLoad=*/true, sharedSource != nullptr, site);
  MemoryChecker *checker = scheduler.checker();
  if (checker && sharedSource)
    checker->readForBulkCopy(fiber, sharedSource, range.bytes(),
                             /*isIssue=*/true, site);
  if (!mbarrier.isFenced) {
    scheduler.report(fiber, ErrorKind::Proxy, site,
                     "a bulk copy is counted by ", mbarriers.describe(mbarrier),
                     ", which was initialised without "
                     "fence.mbarrier_init or fence.proxy.async "
                     "behind it");
    mbarrier.isFenced = true; // Once is enough.
  }
  if (checker && !checker->issueBulkCopy(fiber, target, range.bytes(), site))
    scheduler.kill(fiber);
  Transfer transfer;
  transfer.mbarrier = mbarrier.number;
  transfer.phase = mbarrier.phase;
  transfer.thread = &fiber;
  transfer.site = site;
  transfer.target = target;
  transfer.sharedSource = sharedSource;
  transfer.range = range;
  if (scheduler.launch().lazyAsyncCopies)
    std::memset(target, kPoison, range.bytes());
  transfers.add(transfer);
}

//===----------------------------------------------------------------------===//
// From shared memory
//===----------------------------------------------------------------------===//

void BulkCopies::store(Fiber &fiber, char *source, const BulkRange &range,
                       uint32_t site) {
  check(fiber, range, source, /*isLoad=*/false,
        /*isFromShared=*/false, site);
  if (MemoryChecker *checker = scheduler.checker())
    checker->readForBulkCopy(fiber, source, range.bytes(),
                             /*isIssue=*/true, site);
  Store &store = stores.emplace_back();
  store.range = range;
  store.source = source;
  store.thread = fiber.index;
  store.group = fiber.bulkGroups;
  store.site = site;
  if (scheduler.launch().lazyAsyncCopies)
    return;
  readSource(store);
  store.isRead = false; // As far as the thread knows.
  store.range.store(store.bytes.data());
  store.isWritten = true;
}

void BulkCopies::readSource(Store &store) {
  store.isRead = true;
  if (store.isWritten)
    return;
  store.bytes.resize(store.range.bytes());
  for (uint64_t i = 0; i < store.bytes.size(); i += BulkRange::kChunk)
    std::memcpy(&store.bytes[i], store.range.chunk(store.source, i),
                BulkRange::kChunk);
}

void BulkCopies::waitForStores(Fiber &fiber, uint32_t pendingGroups,
                               bool isRead) {
  auto isWaitedFor = [&](const Store &store) {
    return store.thread == fiber.index &&
           store.group + pendingGroups < fiber.bulkGroups;
  };
  for (Store &store : stores) {
    if (!isWaitedFor(store))
      continue;
    if (!store.isRead) {
      readSource(store);
      if (MemoryChecker *checker = scheduler.checker())
        checker->readForBulkCopy(fiber, store.source, store.range.bytes(),
                                 /*isIssue=*/false, store.site);
    }
    if (!isRead && !store.isWritten)
      store.range.store(store.bytes.data());
  }
  if (isRead)
    return;
  stores.erase(std::remove_if(stores.begin(), stores.end(), isWaitedFor),
               stores.end());
}

void BulkCopies::finishStores() {
  for (Store &store : stores) {
    if (!store.isRead)
      scheduler.report(scheduler.fibers()[store.thread], ErrorKind::PendingCopy,
                       store.site,
                       "a bulk copy from shared memory is still pending at "
                       "the kernel's end");
    else if (!store.isWritten) // What was read is written, sooner or later.
      store.range.store(store.bytes.data());
  }
}
