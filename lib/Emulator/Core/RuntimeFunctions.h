//===- RuntimeFunctions.h - Functions that kernels call ---------*- C++ -*-===//
//
// The interface between a converted kernel and the runtime. Each function but
// the first takes the record of the running thread, which that one returns. A
// `site` is an index into the emulator's table of source locations; 0 is
// unknown. FTuner/Emulator/HostFunctions.def lists them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_RUNTIMEFUNCTIONS_H
#define FTUNER_LIB_EMULATOR_CORE_RUNTIMEFUNCTIONS_H

#include "Fibers/Fiber.h"
#include <array>

extern "C" {
/// The record of the running thread; constant during a thread's life.
ftuner::emulator::Fiber *ftuner_emulator_thread();

/// Waits until all threads of the block wait at barrier `id`.
void ftuner_emulator_barrier(ftuner::emulator::Fiber *thread, uint32_t id,
                             uint32_t site);

/// Copies `sourceBytes` bytes and fills up to `bytes` with zeros.
void ftuner_emulator_copy_async(ftuner::emulator::Fiber *thread, char *target,
                                const char *source, uint32_t bytes,
                                uint32_t sourceBytes, uint32_t site);
void ftuner_emulator_copy_commit(ftuner::emulator::Fiber *thread);
/// Waits until at most `pendingGroups` groups are pending.
void ftuner_emulator_copy_wait(ftuner::emulator::Fiber *thread,
                               uint32_t pendingGroups);

/// A warp collective; `op` is a WarpOp. Returns WarpRequest::result.
uint64_t ftuner_emulator_warp_op(ftuner::emulator::Fiber *thread, uint32_t op,
                                 uint32_t mask, uint32_t value, uint32_t offset,
                                 uint32_t maskAndClamp, uint32_t site);

/// Checks an access before it happens; returns only if it may happen. `kind`
/// is an AccessKind.
void ftuner_emulator_access(ftuner::emulator::Fiber *thread,
                            const char *address, uint64_t bytes, uint32_t kind,
                            uint32_t alignment, uint32_t site);
/// Like `ftuner_emulator_access` for the elements of `elementBytes` bytes whose
/// bit in `mask` is set.
void ftuner_emulator_masked_access(ftuner::emulator::Fiber *thread,
                                   const char *address, uint64_t elementBytes,
                                   uint64_t mask, uint32_t kind, uint32_t site);

/// D = A B + C of the whole warp; `variant` is an encoded MmaVariant, and
/// `registers` are those of A, B and C; D replaces C.
void ftuner_emulator_multiply_matrices(ftuner::emulator::Fiber *thread,
                                       uint32_t *registers, uint32_t variant,
                                       uint32_t site);
/// Loads and stores of matrices in shared memory by the whole warp; `copy` is
/// an encoded MatrixCopy, with a register for each matrix.
void ftuner_emulator_load_matrix(ftuner::emulator::Fiber *thread, char *row,
                                 uint32_t *registers, uint32_t copy,
                                 uint32_t site);
void ftuner_emulator_store_matrix(ftuner::emulator::Fiber *thread, char *row,
                                  uint32_t *registers, uint32_t copy,
                                  uint32_t site);

/// Issues D = A B + D of the warpgroup; `variant` is an encoded GroupVariant,
/// `a` and `b` are matrix descriptors. `accumulators` are kAccumulatorHeader
/// words of the emulator and the registers of D. `version` is what the product
/// before returned whose D is this one's, or 0: then `start` has the values.
uint32_t ftuner_emulator_multiply_group(ftuner::emulator::Fiber *thread,
                                        uint32_t *accumulators,
                                        const uint32_t *start, uint32_t version,
                                        uint64_t a, uint64_t b,
                                        uint32_t variant, uint32_t site);
/// Reads `count` registers of D unless `version` is 0: then they are there.
void ftuner_emulator_read_accumulators(ftuner::emulator::Fiber *thread,
                                       const uint32_t *accumulators,
                                       uint32_t *registers, uint32_t version,
                                       uint32_t count, uint32_t site);
void ftuner_emulator_product_fence(ftuner::emulator::Fiber *thread);
void ftuner_emulator_product_commit(ftuner::emulator::Fiber *thread);
/// Waits until at most `pendingGroups` groups of products are pending.
void ftuner_emulator_product_wait(ftuner::emulator::Fiber *thread,
                                  uint32_t pendingGroups, uint32_t site);
/// Makes what the thread wrote to shared memory visible to products.
void ftuner_emulator_proxy_fence(ftuner::emulator::Fiber *thread);

/// Mbarriers: `address` is that of the 8 bytes in shared memory.
void ftuner_emulator_mbarrier_init(ftuner::emulator::Fiber *thread,
                                   char *address, uint32_t count,
                                   uint32_t site);
void ftuner_emulator_mbarrier_inval(ftuner::emulator::Fiber *thread,
                                    char *address, uint32_t site);
/// Expects `bytes` more bytes and arrives `count` times. `options` are those of
/// MbarrierArrival. Returns the state before, for a wait.
uint64_t ftuner_emulator_mbarrier_arrive(ftuner::emulator::Fiber *thread,
                                         char *address, uint32_t count,
                                         int64_t bytes, uint32_t options,
                                         uint32_t site);
/// Returns whether the phase is over: the one of parity `phase`, or of the
/// state that an arrival returned. `kind` is a MbarrierWait.
uint32_t ftuner_emulator_mbarrier_wait(ftuner::emulator::Fiber *thread,
                                       char *address, uint64_t phase,
                                       uint32_t kind, uint32_t site);
/// Mbarriers that the thread initialised become visible to copies.
void ftuner_emulator_mbarrier_fence(ftuner::emulator::Fiber *thread);
/// Arrives once the thread's asynchronous copies so far are through; one more
/// arrival is pending until then if `isCounted`.
void ftuner_emulator_mbarrier_track_copies(ftuner::emulator::Fiber *thread,
                                           char *address, uint32_t isCounted,
                                           uint32_t site);
/// Meets `threads` threads at barrier `id`, and waits for them if `waits`.
void ftuner_emulator_named_barrier(ftuner::emulator::Fiber *thread, uint32_t id,
                                   uint32_t threads, uint32_t waits,
                                   uint32_t site);
/// Changes the registers of each thread of the warpgroup to `count`. `atEntry`
/// are those with which the kernel begins.
void ftuner_emulator_set_registers(ftuner::emulator::Fiber *thread,
                                   uint32_t count, uint32_t isIncrease,
                                   uint32_t atEntry, uint32_t site);

/// Bulk copies between global and shared memory, of `bytes` bytes, or of the
/// box of a tensor whose first element has `rank` coordinates, innermost first.
/// An mbarrier counts what reaches shared memory; groups, the others.
void ftuner_emulator_bulk_load(ftuner::emulator::Fiber *thread, char *target,
                               char *source, uint32_t bytes, char *mbarrier,
                               uint32_t site);
void ftuner_emulator_bulk_store(ftuner::emulator::Fiber *thread, char *target,
                                char *source, uint32_t bytes, uint32_t site);
void ftuner_emulator_tensor_load(ftuner::emulator::Fiber *thread, char *target,
                                 const char *map, const int32_t *coordinates,
                                 uint32_t rank, char *mbarrier, uint32_t site);
void ftuner_emulator_tensor_store(ftuner::emulator::Fiber *thread,
                                  const char *map, char *source,
                                  const int32_t *coordinates, uint32_t rank,
                                  uint32_t site);
void ftuner_emulator_bulk_commit(ftuner::emulator::Fiber *thread);
/// Waits until at most `pendingGroups` groups are pending, or, if `isRead`, not
/// yet read.
void ftuner_emulator_bulk_wait(ftuner::emulator::Fiber *thread,
                               uint32_t pendingGroups, uint32_t isRead);

/// The barrier of the cluster; `options` are those of ClusterArrival.
void ftuner_emulator_cluster_arrive(ftuner::emulator::Fiber *thread,
                                    uint32_t options, uint32_t site);
void ftuner_emulator_cluster_wait(ftuner::emulator::Fiber *thread,
                                  uint32_t site);
/// The address in block `rank` of the cluster of what lies at `address` in the
/// thread's block.
char *ftuner_emulator_map_address(ftuner::emulator::Fiber *thread,
                                  char *address, uint32_t rank, uint32_t site);
/// Bulk copies to each block of the cluster whose bit is in `mask`, at the same
/// offsets, with its own mbarrier.
void ftuner_emulator_bulk_multicast(ftuner::emulator::Fiber *thread,
                                    char *target, char *source, uint32_t bytes,
                                    char *mbarrier, uint32_t mask,
                                    uint32_t site);
void ftuner_emulator_tensor_multicast(ftuner::emulator::Fiber *thread,
                                      char *target, const char *map,
                                      const int32_t *coordinates, uint32_t rank,
                                      char *mbarrier, uint32_t mask,
                                      uint32_t site);
/// A bulk copy from the block's shared memory to that of another block of the
/// cluster, whose mbarrier counts it.
void ftuner_emulator_cluster_copy(ftuner::emulator::Fiber *thread, char *target,
                                  char *source, uint32_t bytes, char *mbarrier,
                                  uint32_t site);

/// The thread enters the basic block of this number. Only where the launch
/// counts.
void ftuner_emulator_enter(ftuner::emulator::Fiber *thread,
                           uint32_t basicBlock);
}

namespace ftuner::emulator {

struct RuntimeFunction {
  const char *name;
  void *address;
};

#define HOST_FUNCTION(NAME) +1
constexpr uint32_t kRuntimeFunctionCount = 0
#include "FTuner/Emulator/HostFunctions.def"
    ;

/// The functions above, in the order of HostFunctions.def.
using RuntimeFunctions = std::array<RuntimeFunction, kRuntimeFunctionCount>;
const RuntimeFunctions &getRuntimeFunctions();

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_RUNTIMEFUNCTIONS_H
