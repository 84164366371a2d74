//===- WgmmaBoxes.cpp - Rows that tensor maps copy ------------------------===//
//
// Counts what TmaCopies.cpp has copied, from the grid and the boxes.
//
//===----------------------------------------------------------------------===//
#include "WgmmaBoxes.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Schedule/Grid.h"

using namespace ftuner;

/// Tiles of a part along an axis.
static int64_t tilesAlong(const Grid &grid, llvm::ArrayRef<int64_t> shape,
                          unsigned axis, unsigned part) {
  NumberArithmetic math;
  if (!grid.isPairAlong(axis))
    return ceilDiv(shape[axis], grid.tile[axis]);
  int64_t beside = blocksBeside(math, grid, shape);
  auto partition = partitionOf(math, grid.partition(), shape[axis], beside);
  return part == 0 ? partition.first : partition.blocks - partition.first;
}

/// The rows of one step of a block. Of an operand as large as the block's tile
/// or larger all of them lie inside (`movedInside`); of a smaller one the tile
/// begins with it.
static BoxRows rowsOfStep(const WgmmaLayout &layout, unsigned factor,
                          int64_t extent) {
  const SharedTile &shared = layout.tileOf(factor);
  int64_t size = layout.sideOf(factor).extent;
  if (shared.reduceContiguous) {
    int64_t rows = size;
    if (layout.fitsRows(factor))
      rows = fittedBox(size, /*fitBelow=*/size, extent);
    return {rows, std::max<int64_t>(rows - extent, 0)};
  }
  int64_t inside = std::min(shared.panels, ceilDiv(extent, shared.pitch));
  int64_t panels = layout.fitsPanels(factor) ? inside : shared.panels;
  return {panels * shared.outer, (panels - inside) * shared.outer};
}

BoxRows ftuner::wgmmaBoxRows(const Workload &workload,
                             const KernelFamily &family,
                             llvm::ArrayRef<int64_t> shape) {
  BoxRows total;
  NumberArithmetic math;
  Grid grid = gridOf(family);
  ContractionView view(workload);
  int64_t batches = 1;
  for (auto [axis, extent] : llvm::enumerate(shape))
    if (view.isBatch(axis))
      batches *= extent;
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    WgmmaLayout layout = wgmmaLayout(workload, family, part);
    const BlockTile &tile = family.tiles[part];
    for (unsigned factor : {0, 1}) {
      if (!layout.hasTma(factor))
        continue;
      unsigned axis = view.space(factor), other = view.space(1 - factor);
      // Blocks of a cluster along the axis have rows of their own.
      int64_t blocks = tile[axis] / layout.sideOf(factor).extent;
      int64_t repeats = batches * blocks * tilesAlong(grid, shape, axis, part) *
                        tilesAlong(grid, shape, other, part);
      BoxRows ofStep = rowsOfStep(layout, factor, shape[axis]);
      for (int64_t slice = 0; slice < grid.reduceSplit; ++slice) {
        int64_t length = reduceRangeOf(math, grid, slice, shape[view.k]).length;
        int64_t steps = ceilDiv(length, layout.bk);
        total.copied += repeats * steps * ofStep.copied;
        total.outside += repeats * steps * ofStep.outside;
      }
    }
  }
  return total;
}
