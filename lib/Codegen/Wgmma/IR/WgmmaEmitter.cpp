//===- WgmmaEmitter.cpp - The wgmma codegen path --------------------------===//
#include "WgmmaEmitter.h"
#include "../WgmmaTypes.h"
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ftuner;

/// What all lanes get from the first one the assembler knows to be equal in all
/// of them: descriptors stay in registers of the warp, and roles are branches
/// of whole warps.
WgmmaThread::WgmmaThread(ImplicitLocOpBuilder &b, Value number) {
  constexpr int32_t kWholeWarp = 31;
  IndexMath math(b);
  lane = math.rem(number, 32);
  Value ofWarp =
      b.createOrFold<arith::IndexCastOp>(b.getI32Type(), math.div(number, 32));
  uniformWarp = NVVM::ShflOp::create(
      b, b.getI32Type(), createI32(b, -1), ofWarp, createI32(b, 0),
      createI32(b, kWholeWarp), NVVM::ShflKind::idx,
      /*return_value_and_is_valid=*/UnitAttr());
  warp = arith::IndexCastUIOp::create(b, b.getIndexType(), uniformWarp);
}

Value WgmmaThread::actsFor(ImplicitLocOpBuilder &b, int64_t warpNumber) const {
  Value isWarp = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, uniformWarp,
                                       createI32(b, warpNumber));
  return arith::AndIOp::create(b, isWarp, isElected);
}

WgmmaTileEmitter::WgmmaTileEmitter(ImplicitLocOpBuilder &b,
                                   const ContractionTile &tile,
                                   const WgmmaThread &thread)
    : b(b), math(b), tile(tile), workload(*tile.described),
      layout(wgmmaLayout(workload, tile.family, tile.part)),
      multiplied(multipliedType(workload)),
      schedule(WgmmaSchedule::of(tile.family.schedule)),
      elementType(factorType(b, multiplied)),
      accumulatorType(multiplied == ElementType::I8 ? Type(b.getI32Type())
                                                    : b.getF32Type()),
      thread(thread) {
  int64_t ofInstruction =
      layout.warpTile().accumulators() / layout.instructions();
  sumsType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(ofInstruction, accumulatorType));
}

void WgmmaTileEmitter::emit() {
  prepareMatrices();
  Values accumulators = emitMainLoop();
  emitEpilogue(accumulators, isAsynchronous);
}

Value WgmmaTileEmitter::constant(int64_t value) { return createI32(b, value); }

void WgmmaTileEmitter::emitEpilogue(const Values &accumulators,
                                    bool hasAsynchronousCopies) {
  Value row = math.add(
      math.mul(rowWarpgroup, layout.rows.warpgroupExtent()),
      math.mul(math.rem(thread.warp, kWgmmaWarps), FragmentTile::kRows));
  Value column = math.mul(columnWarpgroup, layout.columns.warpgroupExtent());
  if (layout.isSwapped())
    std::swap(row, column);
  FragmentTile fragments = layout.warpTile();
  int64_t threads = layout.producerWarpgroups ? layout.consumerThreads() : 0;
  FragmentEpilogue(b, tile, fragments, schedule.accessBytes,
                   {thread.warp, thread.lane, row, column, threads,
                    layout.stagingOffset(), layout.stagingStride})
      .emit(accumulators, hasAsynchronousCopies);
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
    WgmmaTileEmitter(builder, tile, thread).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
/// `#ukernel.wgmma`.
struct WgmmaAttr {
  static constexpr llvm::StringLiteral name = "ukernel.wgmma";
  static const CodegenModel &model() { return wgmmaModel(); }
};

void wgmmaRegister(DialectRegistry &registry) {
  registerSchedule<WgmmaAttr>(registry);
}

const CodegenPath &wgmmaPath() {
  static const WgmmaPath path;
  return path;
}
} // namespace ftuner
