//===- WgmmaTile.h - What the roles of a wgmma block share ------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMATILE_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMATILE_H

#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"

namespace ftuner {

/// The thread that runs.
struct WgmmaThread {
  WgmmaThread(mlir::ImplicitLocOpBuilder &b, Value number);

  /// Whether it is the one that acts for a warp, an i1.
  Value actsFor(mlir::ImplicitLocOpBuilder &b, int64_t warpNumber) const;

  /// Numbers of the lane in its warp and the warp in the block.
  Value lane, warp;
  /// The number of the warp as an i32.
  Value uniformWarp;
  /// With barriers of stages: whether the lane acts for its warp.
  Value isElected;
};

/// Facts of a kernel that all of its tiles share.
struct WgmmaKernel {
  explicit WgmmaKernel(const TileEmission &block);

  const Workload &workload;
  WgmmaSchedule schedule;
  /// The type in which instructions multiply.
  ElementType multiplied;
  /// The layout of each part of the family.
  llvm::SmallVector<WgmmaLayout, 2> layouts;
};

/// A tile that a block computes, and its place in shared memory. Whatever a
/// thread does for the tile, it does in a role: `WgmmaProducts` multiplies,
/// `TmaCopies` and `ThreadCopies` copy. WgmmaPipeline.cpp deals the roles out
/// to warpgroups, WgmmaEmitter.cpp gives all of them to every thread.
struct WgmmaTile {
  WgmmaTile(mlir::ImplicitLocOpBuilder &b, const WgmmaKernel &kernel,
            const ContractionTile &tile, const WgmmaThread &thread)
      : b(b), tile(tile), workload(kernel.workload), thread(thread),
        layout(kernel.layouts[tile.part]), schedule(kernel.schedule),
        multiplied(kernel.multiplied) {}

  /// A pointer to the stages of a factor, lhs (0) or rhs (1).
  Value stagesOf(unsigned factor) const;
  /// Steps along the reduce axis, an i32.
  Value emitSteps() const;
  Value constant(int64_t value) const { return createI32(b, value); }

  mlir::ImplicitLocOpBuilder &b;
  const ContractionTile &tile;
  const Workload &workload;
  const WgmmaThread &thread;
  const WgmmaLayout &layout;
  const WgmmaSchedule &schedule;
  ElementType multiplied;
};

/// Returns a tile that reaches beyond the tensors moved back, to where all of
/// it lies inside, or to their beginning if they are smaller than the tile:
/// along m and n, where tensor maps copy the factor of that axis. A row of a
/// box that lies outside takes an SM 5 to 10 cycles, one inside 1 to 2
/// (docs/latency-tensor-cores.md). It stores what the tile stores. Each role
/// moves it where it needs it: positions would take registers in main loops.
ContractionTile movedInside(const WgmmaTile &given);

/// The copies of both factors into the first stage by threads, which have
/// numbers below `WgmmaLayout::copyingThreads`.
struct ThreadCopies {
  ThreadCopies(const WgmmaTile &wgmma, Value threadId);

  TileCopy lhs, rhs;
  /// No factor is cast on the way, and copies are wide enough.
  bool isAsynchronous;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMATILE_H
