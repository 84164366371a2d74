//===- RuntimeFunctions.cpp - Functions that kernels call -----------------===//
#include "RuntimeFunctions.h"
#include "BlockRunner.h"

using namespace ftuner::emulator;

extern "C" {

Fiber *ftuner_emulator_thread() { return Scheduler::running(); }

void ftuner_emulator_barrier(Fiber *thread, uint32_t id, uint32_t site) {
  thread->runner->barriers.wait(*thread, id, site);
}

void ftuner_emulator_copy_async(Fiber *thread, char *target, const char *source,
                                uint32_t bytes, uint32_t sourceBytes,
                                uint32_t site) {
  thread->runner->copies.issue(*thread,
                               {target, source, bytes, sourceBytes, site});
}

void ftuner_emulator_copy_commit(Fiber *thread) {
  thread->runner->copies.commit(*thread);
}

void ftuner_emulator_copy_wait(Fiber *thread, uint32_t pendingGroups) {
  thread->runner->copies.wait(*thread, pendingGroups);
}

uint64_t ftuner_emulator_warp_op(Fiber *thread, uint32_t op, uint32_t mask,
                                 uint32_t value, uint32_t offset,
                                 uint32_t maskAndClamp, uint32_t site) {
  return thread->runner->collectives.meet(
      *thread,
      {static_cast<WarpOp>(op), mask, value, offset, maskAndClamp, site, 0});
}

void ftuner_emulator_access(Fiber *thread, const char *address, uint64_t bytes,
                            uint32_t kind, uint32_t alignment, uint32_t site) {
  thread->runner->memory.checkAccess(
      *thread, address, bytes, static_cast<AccessKind>(kind), alignment, site);
}

void ftuner_emulator_masked_access(Fiber *thread, const char *address,
                                   uint64_t elementBytes, uint64_t mask,
                                   uint32_t kind, uint32_t site) {
  for (; mask != 0; mask >>= 1, address += elementBytes)
    if (mask & 1)
      thread->runner->memory.checkAccess(
          *thread, address, elementBytes, static_cast<AccessKind>(kind),
          static_cast<uint32_t>(elementBytes), site);
}

void ftuner_emulator_multiply_matrices(Fiber *thread, uint32_t *registers,
                                       uint32_t variant, uint32_t site) {
  thread->runner->collectives.multiply(*thread, registers, variant, site);
}

void ftuner_emulator_load_matrix(Fiber *thread, char *row, uint32_t *registers,
                                 uint32_t copy, uint32_t site) {
  thread->runner->collectives.copyMatrices(*thread, WarpOp::LoadMatrix, row,
                                           registers, copy, site);
}

void ftuner_emulator_store_matrix(Fiber *thread, char *row, uint32_t *registers,
                                  uint32_t copy, uint32_t site) {
  thread->runner->collectives.copyMatrices(*thread, WarpOp::StoreMatrix, row,
                                           registers, copy, site);
}

uint32_t ftuner_emulator_multiply_group(Fiber *thread, uint32_t *accumulators,
                                        const uint32_t *start, uint32_t version,
                                        uint64_t a, uint64_t b,
                                        uint32_t variant, uint32_t site) {
  return thread->runner->products.issue(*thread, accumulators, start, version,
                                        {a, b, variant, site});
}

void ftuner_emulator_read_accumulators(Fiber *thread,
                                       const uint32_t *accumulators,
                                       uint32_t *registers, uint32_t version,
                                       uint32_t count, uint32_t site) {
  thread->runner->products.readAccumulators(*thread, accumulators, registers,
                                            version, count, site);
}

void ftuner_emulator_product_fence(Fiber *thread) {
  thread->hasProductFence = true;
}

void ftuner_emulator_product_commit(Fiber *thread) {
  thread->productGroups.push_back(thread->productsIssued);
}

void ftuner_emulator_product_wait(Fiber *thread, uint32_t pendingGroups,
                                  uint32_t site) {
  thread->runner->products.wait(*thread, pendingGroups, site);
}

void ftuner_emulator_proxy_fence(Fiber *thread) {
  thread->runner->mbarriers.fenceProxy(*thread);
}

void ftuner_emulator_mbarrier_init(Fiber *thread, char *address, uint32_t count,
                                   uint32_t site) {
  thread->runner->mbarriers.init(*thread, address, count, site);
}

void ftuner_emulator_mbarrier_inval(Fiber *thread, char *address,
                                    uint32_t site) {
  thread->runner->mbarriers.invalidate(*thread, address, site);
}

uint64_t ftuner_emulator_mbarrier_arrive(Fiber *thread, char *address,
                                         uint32_t count, int64_t bytes,
                                         uint32_t options, uint32_t site) {
  return thread->runner->mbarriers.arrive(*thread, address, count, bytes,
                                          options, site);
}

uint32_t ftuner_emulator_mbarrier_wait(Fiber *thread, char *address,
                                       uint64_t phase, uint32_t kind,
                                       uint32_t site) {
  return thread->runner->mbarriers.wait(*thread, address, phase, kind, site);
}

void ftuner_emulator_mbarrier_fence(Fiber *thread) {
  thread->runner->mbarriers.release(*thread);
}

void ftuner_emulator_mbarrier_track_copies(Fiber *thread, char *address,
                                           uint32_t isCounted, uint32_t site) {
  thread->runner->transfers.trackCopies(*thread, address, isCounted != 0, site);
}

void ftuner_emulator_named_barrier(Fiber *thread, uint32_t id, uint32_t threads,
                                   uint32_t waits, uint32_t site) {
  thread->runner->barriers.meet(*thread, id, threads, waits != 0, site);
}

void ftuner_emulator_set_registers(Fiber *thread, uint32_t count,
                                   uint32_t isIncrease, uint32_t atEntry,
                                   uint32_t site) {
  thread->runner->registers.set(*thread, count, isIncrease != 0, atEntry, site);
}

void ftuner_emulator_bulk_load(Fiber *thread, char *target, char *source,
                               uint32_t bytes, char *mbarrier, uint32_t site) {
  thread->runner->bulkCopies.load(*thread, target, BulkRange(source, bytes),
                                  mbarrier, site);
}

void ftuner_emulator_bulk_store(Fiber *thread, char *target, char *source,
                                uint32_t bytes, uint32_t site) {
  thread->runner->bulkCopies.store(*thread, source, BulkRange(target, bytes),
                                   site);
}

void ftuner_emulator_tensor_load(Fiber *thread, char *target, const char *map,
                                 const int32_t *coordinates, uint32_t rank,
                                 char *mbarrier, uint32_t site) {
  BulkCopies &copies = thread->runner->bulkCopies;
  copies.load(*thread, target,
              copies.makeBox(*thread, map, coordinates, rank, site), mbarrier,
              site);
}

void ftuner_emulator_tensor_store(Fiber *thread, const char *map, char *source,
                                  const int32_t *coordinates, uint32_t rank,
                                  uint32_t site) {
  BulkCopies &copies = thread->runner->bulkCopies;
  copies.store(*thread, source,
               copies.makeBox(*thread, map, coordinates, rank, site), site);
}

void ftuner_emulator_bulk_commit(Fiber *thread) { ++thread->bulkGroups; }

void ftuner_emulator_bulk_wait(Fiber *thread, uint32_t pendingGroups,
                               uint32_t isRead) {
  thread->runner->bulkCopies.waitForStores(*thread, pendingGroups, isRead != 0);
}

void ftuner_emulator_cluster_arrive(Fiber *thread, uint32_t options,
                                    uint32_t site) {
  thread->runner->clusterBarrier.arrive(*thread, options, site);
}

void ftuner_emulator_cluster_wait(Fiber *thread, uint32_t site) {
  thread->runner->clusterBarrier.wait(*thread, site);
}

char *ftuner_emulator_map_address(Fiber *thread, char *address, uint32_t rank,
                                  uint32_t site) {
  return thread->runner->memory.mapAddress(*thread, address, rank, site);
}

void ftuner_emulator_bulk_multicast(Fiber *thread, char *target, char *source,
                                    uint32_t bytes, char *mbarrier,
                                    uint32_t mask, uint32_t site) {
  thread->runner->bulkCopies.multicast(
      *thread, target, BulkRange(source, bytes), mbarrier, mask, site);
}

void ftuner_emulator_tensor_multicast(Fiber *thread, char *target,
                                      const char *map,
                                      const int32_t *coordinates, uint32_t rank,
                                      char *mbarrier, uint32_t mask,
                                      uint32_t site) {
  BulkCopies &copies = thread->runner->bulkCopies;
  copies.multicast(*thread, target,
                   copies.makeBox(*thread, map, coordinates, rank, site),
                   mbarrier, mask, site);
}

void ftuner_emulator_cluster_copy(Fiber *thread, char *target, char *source,
                                  uint32_t bytes, char *mbarrier,
                                  uint32_t site) {
  thread->runner->bulkCopies.copyInCluster(*thread, target, source, bytes,
                                           mbarrier, site);
}

void ftuner_emulator_enter(Fiber *thread, uint32_t basicBlock) {
  thread->scheduler->counter()->enter(*thread, basicBlock);
}
}

const RuntimeFunctions &ftuner::emulator::getRuntimeFunctions() {
  static const RuntimeFunctions functions = {{
#define HOST_FUNCTION(NAME) {#NAME, reinterpret_cast<void *>(&NAME)},
#include "FTuner/Emulator/HostFunctions.def"
  }};
  return functions;
}
