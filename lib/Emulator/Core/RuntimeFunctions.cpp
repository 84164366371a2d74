//===- RuntimeFunctions.cpp - What compiled kernels call ------------------===//
#include "RuntimeFunctions.h"
#include "BlockRunner.h"

using namespace ftuner::emulator;

extern "C" {

void ftuner_emulator_barrier(Fiber *thread, uint32_t id, uint32_t site) {
  thread->runner->waitAtBarrier(*thread, id, site);
}

void ftuner_emulator_copy_async(Fiber *thread, char *target, const char *source,
                                uint32_t bytes, uint32_t sourceBytes,
                                uint32_t site) {
  thread->runner->issueCopy(*thread,
                            {target, source, bytes, sourceBytes, site});
}

void ftuner_emulator_copy_commit(Fiber *thread) {
  thread->runner->commitCopies(*thread);
}

void ftuner_emulator_copy_wait(Fiber *thread, uint32_t pendingGroups) {
  thread->runner->waitForCopies(*thread, pendingGroups);
}

uint64_t ftuner_emulator_warp_op(Fiber *thread, uint32_t op, uint32_t mask,
                                 uint32_t value, uint32_t offset,
                                 uint32_t maskAndClamp, uint32_t site) {
  return thread->runner->waitAtWarpOp(
      *thread,
      {static_cast<WarpOp>(op), mask, value, offset, maskAndClamp, site, 0});
}

void ftuner_emulator_access(Fiber *thread, const char *address, uint64_t bytes,
                            uint32_t kind, uint32_t alignment, uint32_t site) {
  thread->runner->checkAccess(*thread, address, bytes,
                              static_cast<AccessKind>(kind), alignment, site);
}

void ftuner_emulator_masked_access(Fiber *thread, const char *address,
                                   uint64_t elementBytes, uint64_t mask,
                                   uint32_t kind, uint32_t site) {
  for (; mask != 0; mask >>= 1, address += elementBytes)
    if (mask & 1)
      thread->runner->checkAccess(*thread, address, elementBytes,
                                  static_cast<AccessKind>(kind),
                                  static_cast<uint32_t>(elementBytes), site);
}

void ftuner_emulator_multiply_matrices(Fiber *thread, uint32_t *registers,
                                       uint32_t variant, uint32_t site) {
  thread->runner->multiplyMatrices(*thread, registers, variant, site);
}

void ftuner_emulator_load_matrix(Fiber *thread, char *row, uint32_t *registers,
                                 uint32_t copy, uint32_t site) {
  thread->runner->copyMatrices(*thread, WarpOp::LoadMatrix, row, registers,
                               copy, site);
}

void ftuner_emulator_store_matrix(Fiber *thread, char *row, uint32_t *registers,
                                  uint32_t copy, uint32_t site) {
  thread->runner->copyMatrices(*thread, WarpOp::StoreMatrix, row, registers,
                               copy, site);
}

uint32_t ftuner_emulator_multiply_group(Fiber *thread, uint32_t *accumulators,
                                        const uint32_t *start, uint32_t version,
                                        uint64_t a, uint64_t b,
                                        uint32_t variant, uint32_t site) {
  return thread->runner->issueProduct(*thread, accumulators, start, version,
                                      {a, b, variant, site});
}

void ftuner_emulator_read_accumulators(Fiber *thread,
                                       const uint32_t *accumulators,
                                       uint32_t *registers, uint32_t version,
                                       uint32_t count, uint32_t site) {
  thread->runner->readAccumulators(*thread, accumulators, registers, version,
                                   count, site);
}

void ftuner_emulator_product_fence(Fiber *thread) {
  thread->hasProductFence = true;
}

void ftuner_emulator_product_commit(Fiber *thread) {
  thread->productGroups.push_back(thread->productsIssued);
}

void ftuner_emulator_product_wait(Fiber *thread, uint32_t pendingGroups,
                                  uint32_t site) {
  thread->runner->waitForProducts(*thread, pendingGroups, site);
}

void ftuner_emulator_proxy_fence(Fiber *thread) {
  thread->runner->fenceProxy(*thread);
}

void ftuner_emulator_mbarrier_init(Fiber *thread, char *address, uint32_t count,
                                   uint32_t site) {
  thread->runner->initMbarrier(*thread, address, count, site);
}

void ftuner_emulator_mbarrier_inval(Fiber *thread, char *address,
                                    uint32_t site) {
  thread->runner->invalidateMbarrier(*thread, address, site);
}

uint64_t ftuner_emulator_mbarrier_arrive(Fiber *thread, char *address,
                                         uint32_t count, int64_t bytes,
                                         uint32_t options, uint32_t site) {
  return thread->runner->arriveAtMbarrier(*thread, address, count, bytes,
                                          options, site);
}

uint32_t ftuner_emulator_mbarrier_wait(Fiber *thread, char *address,
                                       uint64_t phase, uint32_t kind,
                                       uint32_t site) {
  return thread->runner->waitForMbarrier(*thread, address, phase, kind, site);
}

void ftuner_emulator_mbarrier_fence(Fiber *thread) {
  thread->runner->releaseMbarriers(*thread);
}

void ftuner_emulator_mbarrier_track_copies(Fiber *thread, char *address,
                                           uint32_t isCounted, uint32_t site) {
  thread->runner->trackCopies(*thread, address, isCounted != 0, site);
}

void ftuner_emulator_named_barrier(Fiber *thread, uint32_t id, uint32_t threads,
                                   uint32_t waits, uint32_t site) {
  thread->runner->meetAtNamedBarrier(*thread, id, threads, waits != 0, site);
}

void ftuner_emulator_set_registers(Fiber *thread, uint32_t count,
                                   uint32_t isIncrease, uint32_t atEntry,
                                   uint32_t site) {
  thread->runner->setRegisters(*thread, count, isIncrease != 0, atEntry, site);
}

void ftuner_emulator_bulk_load(Fiber *thread, char *target, char *source,
                               uint32_t bytes, char *mbarrier, uint32_t site) {
  thread->runner->loadBulk(*thread, target, BulkRange(source, bytes), mbarrier,
                           site);
}

void ftuner_emulator_bulk_store(Fiber *thread, char *target, char *source,
                                uint32_t bytes, uint32_t site) {
  thread->runner->storeBulk(*thread, source, BulkRange(target, bytes), site);
}

void ftuner_emulator_tensor_load(Fiber *thread, char *target, const char *map,
                                 const int32_t *coordinates, uint32_t rank,
                                 char *mbarrier, uint32_t site) {
  BlockRunner &runner = *thread->runner;
  runner.loadBulk(*thread, target,
                  runner.makeBox(*thread, map, coordinates, rank, site),
                  mbarrier, site);
}

void ftuner_emulator_tensor_store(Fiber *thread, const char *map, char *source,
                                  const int32_t *coordinates, uint32_t rank,
                                  uint32_t site) {
  BlockRunner &runner = *thread->runner;
  runner.storeBulk(*thread, source,
                   runner.makeBox(*thread, map, coordinates, rank, site), site);
}

void ftuner_emulator_bulk_commit(Fiber *thread) { ++thread->bulkGroups; }

void ftuner_emulator_bulk_wait(Fiber *thread, uint32_t pendingGroups,
                               uint32_t isRead) {
  thread->runner->waitForBulkStores(*thread, pendingGroups, isRead != 0);
}

void ftuner_emulator_cluster_arrive(Fiber *thread, uint32_t options,
                                    uint32_t site) {
  thread->runner->arriveAtCluster(*thread, options, site);
}

void ftuner_emulator_cluster_wait(Fiber *thread, uint32_t site) {
  thread->runner->waitAtCluster(*thread, site);
}

char *ftuner_emulator_map_address(Fiber *thread, char *address, uint32_t rank,
                                  uint32_t site) {
  return thread->runner->mapAddress(*thread, address, rank, site);
}

void ftuner_emulator_bulk_multicast(Fiber *thread, char *target, char *source,
                                    uint32_t bytes, char *mbarrier,
                                    uint32_t mask, uint32_t site) {
  thread->runner->multicastBulk(*thread, target, BulkRange(source, bytes),
                                mbarrier, mask, site);
}

void ftuner_emulator_tensor_multicast(Fiber *thread, char *target,
                                      const char *map,
                                      const int32_t *coordinates, uint32_t rank,
                                      char *mbarrier, uint32_t mask,
                                      uint32_t site) {
  BlockRunner &runner = *thread->runner;
  runner.multicastBulk(*thread, target,
                       runner.makeBox(*thread, map, coordinates, rank, site),
                       mbarrier, mask, site);
}

void ftuner_emulator_cluster_copy(Fiber *thread, char *target, char *source,
                                  uint32_t bytes, char *mbarrier,
                                  uint32_t site) {
  thread->runner->copyInCluster(*thread, target, source, bytes, mbarrier, site);
}

void ftuner_emulator_enter(Fiber *thread, uint32_t basicBlock) {
  thread->runner->enter(*thread, basicBlock);
}
}

const RuntimeFunctions &ftuner::emulator::getRuntimeFunctions() {
  static const RuntimeFunctions functions = {{
#define HOST_FUNCTION(NAME) {#NAME, reinterpret_cast<void *>(&NAME)},
#include "FTuner/Emulator/HostFunctions.def"
  }};
  return functions;
}
