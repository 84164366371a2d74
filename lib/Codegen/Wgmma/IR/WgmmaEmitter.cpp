//===- WgmmaEmitter.cpp - The wgmma codegen path --------------------------===//
#include "WgmmaEmitter.h"
#include "../WgmmaTypes.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Codegen/IR/StageBarriers.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "WgmmaProducts.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ftuner;

/// Multiplies in the threads that copy.
static void emitBySteps(const WgmmaTile &wgmma) {
  ImplicitLocOpBuilder &b = wgmma.b;
  WgmmaProducts products(wgmma);
  ThreadCopies copies(wgmma, wgmma.tile.threadId);
  // Products read shared memory through the async proxy.
  auto publish = [&] { fenceAsyncProxy(b); };
  auto await = [&](int64_t newer) { products.wait(newer); };
  AsyncProducts asynchronous{publish, await};
  MainLoop loop{copies.lhs,
                copies.rhs,
                wgmma.layout.stages,
                wgmma.layout.bk,
                wgmma.tile.extents[wgmma.tile.axes.k],
                copies.isAsynchronous,
                &asynchronous};
  Values sums =
      loop.emit(b, products.initialSums(), [&](Value stage, Values sums) {
        return products.multiply(stage, std::move(sums));
      });
  products.store(sums, copies.isAsynchronous);
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

class WgmmaPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return wgmmaModel(); }

  LogicalResult emitBlock(ImplicitLocOpBuilder &builder,
                          BlockTiles &tiles) const override {
    // The kernel may come from anywhere.
    ukernel::OperatorOpInterface op = tiles.block.op;
    if (failed(ContractionTile::check(op)))
      return failure();
    WgmmaKernel kernel(tiles.block);
    const DeviceSpec &device = tiles.block.device;
    if (!findWgmmaInstruction(kernel.multiplied, device))
      return op.emitOpError("expected a product of the tensor cores of ")
             << device.name;
    if (kernel.schedule.producerWarpgroups || kernel.schedule.tma)
      return emitWgmmaPipeline(builder, kernel, tiles);
    return emitTiles(builder, tiles, [&](const TileEmission &emission) {
      ContractionTile tile(emission);
      WgmmaThread thread(builder, tile.threadId);
      emitBySteps(WgmmaTile(builder, kernel, tile, thread));
      return success();
    });
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(wgmma, WgmmaPath)
} // namespace ftuner
