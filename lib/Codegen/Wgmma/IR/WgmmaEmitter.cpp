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
static void emitBySteps(const WgmmaTile &of) {
  ImplicitLocOpBuilder &b = of.b;
  WgmmaProducts products(of);
  ThreadCopies copies(of, of.tile.threadId);
  // Products read shared memory through the async proxy.
  auto publish = [&] { fenceAsyncProxy(b); };
  auto await = [&](int64_t newer) { products.wait(newer); };
  AsyncProducts asynchronous{publish, await};
  MainLoop loop{copies.lhs,
                copies.rhs,
                of.layout.stages,
                of.layout.bk,
                of.tile.extents[of.tile.axes.k],
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
    ElementType type = multipliedType(*tiles.block.described);
    const DeviceSpec &device = tiles.block.device;
    if (!findWgmmaInstruction(type, device))
      return op.emitOpError("expected a product of the tensor cores of ")
             << device.name;
    WgmmaSchedule schedule = WgmmaSchedule::of(tiles.block.family.schedule);
    if (schedule.producerWarpgroups || schedule.tma)
      return emitWgmmaPipeline(builder, tiles);
    return CodegenPath::emitBlock(builder, tiles);
  }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    ContractionTile tile(emission);
    WgmmaThread thread(builder, tile.threadId);
    emitBySteps(WgmmaTile(builder, tile, thread));
    return success();
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(wgmma, WgmmaPath)
} // namespace ftuner
