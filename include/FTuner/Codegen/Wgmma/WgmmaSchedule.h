//===- WgmmaSchedule.h - The schedule of the wgmma path ---------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H
#define FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H

#include "FTuner/Codegen/TensorFactors.h"

namespace ftuner {

/// The model of the path.
const CodegenModel &wgmmaModel();

/// Rows of an instruction, and what its columns are a multiple of.
constexpr int64_t kWgmmaRows = 64, kWgmmaColumns = 8;
/// Warps of a warpgroup, which execute instructions together.
constexpr int64_t kWgmmaWarps = 4;
/// Most blocks of a cluster.
constexpr int64_t kWgmmaMaxCluster = 2;

/// Bytes of an access by producers' threads, and of the rows of
/// what tensor maps copy.
constexpr int64_t kWgmmaProducedBytes = 16;
/// Most warpgroups of a block.
constexpr int64_t kWgmmaMaxWarpgroups = 4;
/// Most persistent blocks: of twice as many SMs as plans are made for.
constexpr int64_t kWgmmaMaxPersistent = 2 * maxBalancedSms;

/// What a schedule means to the wgmma path. A warpgroup of four warps computes
/// bm / warpgroupsM rows and bn / warpgroupsN columns of what its block has of
/// a tile.
struct WgmmaSchedule {
  int64_t warpgroupsM = 1, warpgroupsN = 1;
  int64_t stages = 4;
  int64_t accessBytes = 16;
  bool swapOperands = false;
  int64_t producerWarpgroups = 0;
  bool tma = false;
  int64_t clusterM = 1, clusterN = 1;
  int64_t persistentBlocks = 0;
  bool pingPong = false;
  bool fitBoxes = false;
  bool bulkStores = false;

  static constexpr auto rows() {
    using S = WgmmaSchedule;
    return std::array{
        ScheduleRow("warpgroups_m", &S::warpgroupsM,
                    "consumer warpgroups along m that compute a tile together")
            .key("warpgroups")
            .range(1, kWgmmaMaxWarpgroups),
        ScheduleRow("warpgroups_n", &S::warpgroupsN,
                    "consumer warpgroups along n that compute a tile together")
            .key("warpgroups")
            .range(1, kWgmmaMaxWarpgroups),
        stagesRow(&S::stages),
        accessRow(&S::accessBytes),
        ScheduleRow("swap_operands", &S::swapOperands,
                    "instructions compute the transposed product: the rhs "
                    "feeds their 64 rows and the lhs their columns, so that m "
                    "goes in eights and n in 64s")
            .label("swapped")
            .optional(),
        ScheduleRow("producer_warpgroups", &S::producerWarpgroups,
                    "warp specialization: warpgroups of a block beside the "
                    "consumers, which copy the operands, and do nothing else")
            .label("producers")
            .range(0, 1)
            .optional(),
        ScheduleRow("tma", &S::tma,
                    "one thread copies boxes of the operands by tensor maps, "
                    "in place of all threads, or all producers, single "
                    "accesses")
            .label("tma")
            .optional(),
        ScheduleRow("cluster_m", &S::clusterM,
                    "blocks of a cluster along m, which share a tile: each "
                    "computes an equal part, and copies its share of the "
                    "factor that both need into the shared memory of both")
            .key("cluster")
            .label("cluster")
            .range(1, kWgmmaMaxCluster)
            .optional(),
        ScheduleRow("cluster_n", &S::clusterN, "blocks of a cluster along n")
            .key("cluster")
            .label("cluster")
            .range(1, kWgmmaMaxCluster)
            .optional(),
        ScheduleRow("persistent_blocks", &S::persistentBlocks,
                    "blocks of a launch at most, which take one tile after the "
                    "other, and copy for the next tile behind the epilogue of "
                    "the one before; 0: each block has one")
            .key("persistent")
            .label("persistent")
            .range(0, kWgmmaMaxPersistent)
            .optional(),
        ScheduleRow(
            "ping_pong", &S::pingPong,
            "a persistent block has two sets of consumer warpgroups, which "
            "compute tiles in turn: one multiplies while the other stores")
            .label("ping-pong")
            .optional(),
        ScheduleRow("fit_boxes", &S::fitBoxes,
                    "boxes of an operand with fewer rows than a tile have as "
                    "many as it has, rounded up to 8, in place of the tile's")
            .label("fitted")
            .optional()
            .gated(),
        ScheduleRow("bulk_stores", &S::bulkStores,
                    "a persistent block lays results in shared memory, from "
                    "where bulk copies store their rows while it computes the "
                    "next tile")
            .label("bulk stores")
            .optional()
            .gated()};
  }
  static WgmmaSchedule of(const Schedule &schedule) {
    return unpackSchedule<WgmmaSchedule>(schedule);
  }
  Schedule pack() const { return packSchedule(wgmmaModel(), *this); }

  int64_t clusterBlocks() const { return clusterM * clusterN; }
  /// Along m (0) or n (1), the space axis of lhs (0) or rhs (1).
  int64_t clusterAlong(unsigned factor) const {
    return factor == 0 ? clusterM : clusterN;
  }
  /// Sets of consumer warpgroups, of which each computes tiles of its own;
  /// warpgroups of a set, and of all.
  int64_t consumerSets() const { return pingPong ? 2 : 1; }
  int64_t warpgroups() const { return warpgroupsM * warpgroupsN; }
  int64_t consumerWarpgroups() const { return consumerSets() * warpgroups(); }
  /// Of a block.
  int64_t threads() const {
    return 32 * kWgmmaWarps * (consumerWarpgroups() + producerWarpgroups);
  }
  int64_t alignment() const { return accessBytes; }
  /// What feeds the rows of instructions, lhs (0) or rhs (1): they lie along
  /// its space axis.
  unsigned rowFactor() const { return swapOperands ? 1 : 0; }
  unsigned columnFactor() const { return 1 - rowFactor(); }
  /// Of m (0) or n (1): warpgroups of a block along it, and the granule of a
  /// warpgroup's elements.
  int64_t warpgroupsAlong(unsigned factor) const {
    return factor == 0 ? warpgroupsM : warpgroupsN;
  }
  int64_t granuleAlong(unsigned factor) const {
    return factor == rowFactor() ? kWgmmaRows : kWgmmaColumns;
  }
  /// Of all blocks of a cluster.
  int64_t workersAlongBatch() const { return 1; }
  int64_t workersAlong(unsigned factor) const {
    return clusterAlong(factor) * warpgroupsAlong(factor);
  }
  /// Of what a tile along m (0) or n (1) is a multiple.
  int64_t tileGranuleAlong(unsigned factor) const {
    return workersAlong(factor) * granuleAlong(factor);
  }
};

/// A family of the wgmma path with one or two tiles: `rows` and `columns` are
/// the elements of a warpgroup along m and n, one number of rows for each part,
/// ascending. Axes beyond m, n and k have tile 1.
inline KernelFamily wgmmaFamily(const WgmmaSchedule &schedule,
                                llvm::ArrayRef<int64_t> rows, int64_t columns,
                                int64_t depth, unsigned numAxes = 3) {
  return contractionFamily(schedule, rows, columns, depth, numAxes);
}

} // namespace ftuner

#endif // FTUNER_CODEGEN_WGMMA_WGMMASCHEDULE_H
