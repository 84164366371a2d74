//===- BulkCopies.cpp - Copies of whole ranges and boxes ------------------===//
//
// cp.async.bulk: one thread has a range of bytes or a box of a tensor copied.
// An mbarrier counts the bytes that reach shared memory, which happens when a
// thread waits for it and nobody else can go on; until then they are NaN.
// Copies from shared memory read and write when their thread waits for that.
//
//===----------------------------------------------------------------------===//
#include "BlockRunner.h"
#include "Text.h"
#include <cstring>

using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// To shared memory
//===----------------------------------------------------------------------===//

BulkRange BlockRunner::makeBox(Fiber &fiber, const char *map,
                               const int32_t *coordinates, uint32_t rank,
                               uint32_t site) {
  EmulatedTensorMap decoded;
  std::memcpy(&decoded, map, sizeof(decoded));
  if (decoded.mark != EmulatedTensorMap::kMark || decoded.rank != rank) {
    launch->log->report(
        fiber, ErrorKind::BulkCopy, site,
        decoded.mark != EmulatedTensorMap::kMark
            ? joinText("there is no tensor map of the emulator at address ",
                       formatAddress(map))
            : joinText("a copy with ", rank, " coordinates by a tensor map of ",
                       uint32_t(decoded.rank), " dimensions"));
    kill(fiber);
  }
  return BulkRange(decoded, coordinates);
}

void BlockRunner::checkBulkCopy(Fiber &fiber, const BulkRange &range,
                                const char *place, bool isLoad,
                                bool isFromShared, uint32_t site) {
  constexpr uint64_t kUnit = BulkRange::kChunk;
  uint64_t alignment = range.isBox() ? BulkRange::kBoxAlignment : kUnit;
  auto isMisaligned = [](const char *address, uint64_t unit) {
    return reinterpret_cast<uintptr_t>(address) % unit != 0;
  };
  if (isMisaligned(place, alignment)) {
    launch->log->report(
        fiber, ErrorKind::Misaligned, site,
        joinText("misaligned bulk copy: expected an alignment of ", alignment,
                 " bytes in shared memory, but got address ",
                 formatAddress(place)));
    kill(fiber);
  }
  if (!range.isBox() && (range.bytes() % kUnit != 0 || range.bytes() == 0)) {
    launch->log->report(fiber, ErrorKind::BulkCopy, site,
                        joinText("expected a bulk copy of a multiple of 16 "
                                 "bytes, but got ",
                                 range.bytes()));
    kill(fiber);
  }
  if (!shared.contains(place, range.bytes())) {
    launch->log->report(fiber, ErrorKind::OutOfBounds, site,
                        joinText("out-of-bounds bulk copy of ", range.bytes(),
                                 isLoad ? " bytes to" : " bytes from",
                                 " offset ", place - shared.dynamicBase,
                                 " of dynamic shared memory (",
                                 shared.dynamicBytes, " bytes)"));
    kill(fiber);
  }
  range.forEachRow([&](const BulkRange::Row &row) {
    if (!range.isBox() && isMisaligned(row.address, kUnit)) {
      launch->log->report(
          fiber, ErrorKind::Misaligned, site,
          joinText("misaligned bulk copy: expected an alignment of 16 bytes "
                   "in global memory, but got address ",
                   formatAddress(row.address)));
      kill(fiber);
    }
    if (isFromShared)
      return;
    AccessKind kind = isLoad ? AccessKind::Read : AccessKind::Write;
    if (launch->checker &&
        !launch->checker->access(fiber, row.address, row.bytes, kind,
                                 /*alignment=*/1, site))
      kill(fiber);
  });
}

void BlockRunner::loadBulk(Fiber &fiber, char *target, const BulkRange &range,
                           char *mbarrierAddress, uint32_t site) {
  if (BlockRunner *peer = fiber.runner == this ? findPeer(target) : nullptr)
    return peer->loadBulk(fiber, target, range, mbarrierAddress, site);
  issueLoad(fiber, target, range, mbarrierAddress, nullptr, site);
}

void BlockRunner::multicastBulk(Fiber &fiber, char *target,
                                const BulkRange &range, char *mbarrier,
                                uint32_t mask, uint32_t site) {
  size_t blocks = cluster.blocks.size();
  if (mask == 0 || mask >> blocks != 0) {
    launch->log->report(fiber, ErrorKind::BulkCopy, site,
                        joinText("expected a multicast mask of some of the ",
                                 blocks, " blocks of the cluster, but got ",
                                 mask));
    kill(fiber);
  }
  BlockRunner *peer = findPeer(target);
  const BlockRunner &place = peer ? *peer : *this;
  for (size_t i = 0; i < blocks; ++i)
    if (mask >> i & 1) {
      BlockRunner &block = *cluster.blocks[i];
      block.issueLoad(fiber, block.translate(place, target), range,
                      block.translate(place, mbarrier), nullptr, site);
    }
}

void BlockRunner::copyInCluster(Fiber &fiber, char *target, char *source,
                                uint32_t bytes, char *mbarrier, uint32_t site) {
  if (!shared.contains(source, bytes)) {
    launch->log->report(
        fiber, ErrorKind::OutOfBounds, site,
        joinText("out-of-bounds bulk copy of ", bytes, " bytes from offset ",
                 source - shared.dynamicBase, " of dynamic shared memory (",
                 shared.dynamicBytes, " bytes)"));
    kill(fiber);
  }
  BlockRunner *peer = findPeer(target);
  (peer ? peer : this)
      ->issueLoad(fiber, target, BulkRange(source, bytes), mbarrier, source,
                  site);
}

void BlockRunner::issueLoad(Fiber &fiber, char *target, const BulkRange &range,
                            char *mbarrierAddress, char *sharedSource,
                            uint32_t site) {
  if (fiber.runner != this)
    checkRemoteUse(fiber, /*isLasting=*/false, site);
  BlockRunner *owner = findPeer(mbarrierAddress);
  if (owner) {
    launch->log->report(fiber, ErrorKind::BulkCopy, site,
                        joinText("a bulk copy to shared memory", clusterName(),
                                 " is counted by an mbarrier",
                                 owner->clusterName()));
    kill(fiber);
  }
  Mbarrier &mbarrier = getMbarrier(fiber, mbarrierAddress, site);
  checkBulkCopy(fiber, range, target, /*isLoad=*/true, sharedSource != nullptr,
                site);
  if (launch->checker && sharedSource)
    launch->checker->readForBulkCopy(fiber, sharedSource, range.bytes(),
                                     /*isIssue=*/true, site);
  if (!mbarrier.isFenced) {
    launch->log->report(fiber, ErrorKind::Proxy, site,
                        joinText("a bulk copy is counted by ",
                                 describe(mbarrier),
                                 ", which was initialised without "
                                 "fence.mbarrier_init or fence.proxy.async "
                                 "behind it"));
    mbarrier.isFenced = true; // Once is enough.
  }
  if (launch->checker &&
      !launch->checker->issueBulkCopy(fiber, target, range.bytes(), site))
    kill(fiber);
  Transfer transfer;
  transfer.mbarrier = mbarrier.number;
  transfer.phase = mbarrier.phase;
  transfer.thread = &fiber;
  transfer.site = site;
  transfer.target = target;
  transfer.sharedSource = sharedSource;
  transfer.range = range;
  if (!launch->lazyAsyncCopies)
    return land(transfer);
  std::memset(target, kPoison, range.bytes());
  transfers.push_back(transfer);
}

void BlockRunner::landBulk(const Transfer &transfer, Mbarrier &mbarrier) {
  const BulkRange &range = transfer.range;
  uint64_t bytes = range.bytes();
  if (transfer.sharedSource) {
    if (transfer.thread->runner->hasEnded)
      launch->log->report(*transfer.thread, ErrorKind::BulkCopy, transfer.site,
                          "a bulk copy reads shared memory of a block that has "
                          "ended");
    if (launch->checker)
      launch->checker->readForBulkCopy(*transfer.thread, transfer.sharedSource,
                                       bytes, /*isIssue=*/false, transfer.site);
  }
  std::vector<char> loaded(bytes);
  range.load(loaded.data());
  for (uint64_t i = 0; i < bytes; i += BulkRange::kChunk)
    std::memcpy(range.chunk(transfer.target, i), &loaded[i], BulkRange::kChunk);
  if (launch->checker)
    launch->checker->land(mbarrier.actor, mbarrier.time, transfer.target, bytes,
                          /*isBulk=*/true);
  mbarrier.bytes -= static_cast<int64_t>(bytes);
}

//===----------------------------------------------------------------------===//
// From shared memory
//===----------------------------------------------------------------------===//

void BlockRunner::storeBulk(Fiber &fiber, char *source, const BulkRange &range,
                            uint32_t site) {
  checkBulkCopy(fiber, range, source, /*isLoad=*/false,
                /*isFromShared=*/false, site);
  if (launch->checker)
    launch->checker->readForBulkCopy(fiber, source, range.bytes(),
                                     /*isIssue=*/true, site);
  BulkStore &store = bulkStores.emplace_back();
  store.range = range;
  store.source = source;
  store.thread = fiber.index;
  store.group = fiber.bulkGroups;
  store.site = site;
  if (launch->lazyAsyncCopies)
    return;
  readSource(store);
  store.isRead = false; // As far as the thread knows.
  store.range.store(store.bytes.data());
  store.isWritten = true;
}

void BlockRunner::readSource(BulkStore &store) {
  store.isRead = true;
  if (store.isWritten)
    return;
  store.bytes.resize(store.range.bytes());
  for (uint64_t i = 0; i < store.bytes.size(); i += BulkRange::kChunk)
    std::memcpy(&store.bytes[i], store.range.chunk(store.source, i),
                BulkRange::kChunk);
}

void BlockRunner::waitForBulkStores(Fiber &fiber, uint32_t pendingGroups,
                                    bool isRead) {
  auto isWaitedFor = [&](const BulkStore &store) {
    return store.thread == fiber.index &&
           store.group + pendingGroups < fiber.bulkGroups;
  };
  for (BulkStore &store : bulkStores) {
    if (!isWaitedFor(store))
      continue;
    if (!store.isRead) {
      readSource(store);
      if (launch->checker)
        launch->checker->readForBulkCopy(fiber, store.source,
                                         store.range.bytes(),
                                         /*isIssue=*/false, store.site);
    }
    if (!isRead && !store.isWritten)
      store.range.store(store.bytes.data());
  }
  if (isRead)
    return;
  bulkStores.erase(
      std::remove_if(bulkStores.begin(), bulkStores.end(), isWaitedFor),
      bulkStores.end());
}

void BlockRunner::finishBulkStores() {
  for (BulkStore &store : bulkStores) {
    if (!store.isRead)
      launch->log->report(fibers[store.thread], ErrorKind::PendingCopy,
                          store.site,
                          "a bulk copy from shared memory is still pending at "
                          "the kernel's end");
    else if (!store.isWritten) // What was read is written, sooner or later.
      store.range.store(store.bytes.data());
  }
}
