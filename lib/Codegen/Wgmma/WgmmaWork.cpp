//===- WgmmaWork.cpp - What a block of the wgmma path executes ------------===//
//
// Counts what WgmmaMainLoop.cpp and TileCopy.cpp emit for a step of the main
// loop.
//
//===----------------------------------------------------------------------===//
#include "WgmmaWork.h"
#include "FTuner/Codegen/TileCopyWork.h"

using namespace ftuner;

static constexpr int64_t kLanes = 32;
static constexpr int64_t kWordBytes = 4, kWordsOfChunk = 4;

/// Reads of shared memory by the tensor cores, 128 bytes for each cycle, as
/// loads of consecutive chunks by a warp.
static void addReads(BlockWork &work, double bytes) {
  std::array<int64_t, kLanes> address;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    address[lane] = lane * kWordsOfChunk;
  addAccess(work, WarpAccess::Kind::SharedLoad, kWordsOfChunk, address,
            bytes / double(kLanes * kWordsOfChunk * kWordBytes));
}

BlockWork ftuner::wgmmaWork(const WgmmaLayout &layout, const WgmmaCode &code) {
  BlockWork work;
  work.warps = layout.warps();
  work.stepDepth = layout.bk;

  TensorWork tensor;
  tensor.pipe = code.instruction.pipe;
  tensor.isWarpgroup = true;
  tensor.operations = 2.0 * double(layout.rows.extent) *
                      double(layout.columns.extent) * double(layout.bk);
  // Each warp of a group issues them.
  double ofWarp = double(layout.instructions() * layout.depths());
  tensor.instructions = double(work.warps) * ofWarp;
  work.tensor.push_back(tensor);

  // Each instruction reads 64 rows of one factor and all its columns of the
  // other.
  double ofInstruction =
      double(kWgmmaRows + layout.columns.groupExtent()) * kWgmmaDepthBytes;
  addReads(work, double(layout.groups()) * ofWarp * ofInstruction);

  // Loop and stages, fences and waits; descriptors of both factors.
  work.otherInstructions += double(work.warps) * (32 + 2 * ofWarp);
  FactorCopies copies{layout.threads(), layout.elementBytes,
                      code.isAsynchronous, code.isReduceExact};
  for (unsigned factor : {0, 1})
    copies.addTo(work, layout.tileOf(factor), code.copies[factor]);
  work.stepsAhead = double(code.isAsynchronous ? layout.stages - 2 : 1);
  return work;
}
