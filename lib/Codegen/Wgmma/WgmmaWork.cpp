//===- WgmmaWork.cpp - What a block of the wgmma path executes ------------===//
//
// Counts what WgmmaProducts.cpp and TileCopy.cpp emit for a step of the main
// loop.
//
//===----------------------------------------------------------------------===//
#include "WgmmaWork.h"
#include "FTuner/Codegen/TileCopyWork.h"

using namespace ftuner;

static constexpr int64_t kLanes = 32;
static constexpr int64_t kWordBytes = 4, kWordsOfChunk = 4;
/// Of each warp in a step: the loop, fences and waits. ptxas 13.0 makes 37 of
/// the loop of warps that only multiply, its 4 products among them.
static constexpr double kInstructionsOfLoop = 32;
/// Of the thread that starts boxes, for each.
static constexpr double kInstructionsOfBox = 16;

/// Accesses of shared memory by the tensor cores, 128 bytes for each cycle, as
/// those of consecutive chunks by a warp.
static void addLoads(BlockWork &work, double bytes) {
  std::array<int64_t, kLanes> address;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    address[lane] = lane * kWordsOfChunk;
  addAccess(work, WarpAccess::Kind::SharedLoad, kWordsOfChunk, address,
            bytes / double(kLanes * kWordsOfChunk * kWordBytes));
}

/// Boxes, or bulk copies, which one thread starts. The unit that copies them
/// takes neither cycles of the load/store units nor, beyond what a box needs to
/// start, instructions; nor do measured products show what it writes to shared
/// memory to compete with what the tensor cores read
/// (docs/latency-tensor-cores.md).
static void addBoxes(BlockWork &work, unsigned factor,
                     const WgmmaLayout &layout) {
  const SharedTile &tile = layout.tileOf(factor);
  // What a cluster shares is read once, but arrives at each of its SMs.
  work.globalBytes += double(tile.outer * tile.inner * layout.elementBytes);
  // A wait, its share of the loop, and the box: ptxas 13.0 makes 33
  // instructions of a step of two boxes.
  work.otherInstructions += kInstructionsOfBox * double(layout.boxesOf(factor));
}

BlockWork ftuner::wgmmaWork(const WgmmaLayout &layout, const WgmmaCode &code) {
  BlockWork work;
  // Those that copy or wait for their turn, too: they take room on an SM.
  work.warps = layout.threads() / kLanes;
  work.kTile = layout.bk;

  TensorWork tensor;
  tensor.pipe = code.instruction.pipe;
  tensor.hasPeakRate = true;
  tensor.operations = 2.0 * double(layout.rows.extent) *
                      double(layout.columns.extent) * double(layout.bk);
  // Each warp of a warpgroup issues them, of one set at a time.
  auto warps = double(layout.warpsOfSet());
  double ofWarp = double(layout.instructions() * layout.depths());
  tensor.instructions = warps * ofWarp;
  work.tensor.push_back(tensor);

  // Each instruction reads 64 rows of one factor and all its columns of the
  // other.
  double ofInstruction =
      double(kWgmmaRows + layout.columns.warpgroupExtent()) * kWgmmaDepthBytes;
  addLoads(work, double(layout.warpgroupsOfSet()) * ofWarp * ofInstruction);

  // Loop and stages, fences and waits; descriptors of both factors.
  work.otherInstructions += warps * (kInstructionsOfLoop + 2 * ofWarp);
  FactorCopies copies{layout.copyingThreads(), layout.elementBytes,
                      code.isAsynchronous, code.isReduceExact};
  for (unsigned factor : {0, 1}) {
    if (layout.copiesByThreads(factor))
      copies.addTo(work, layout.tileOf(factor), code.copies[factor]);
    else
      addBoxes(work, factor, layout);
  }
  if (!layout.usesTma)
    work.otherInstructions +=
        double(kWgmmaWarps * layout.producerWarpgroups) * kInstructionsOfLoop;
  work.isPersistent = layout.isPersistent;
  work.hidesStores = layout.consumerSets > 1 || layout.bulkElementBytes > 0;
  work.stepsAhead = double(code.isAsynchronous ? layout.stepsAhead() : 1);
  return work;
}
