//===- WgmmaEmitter.cpp - The wgmma codegen path --------------------------===//
#include "WgmmaEmitter.h"
#include "../WgmmaTypes.h"
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ftuner;

WgmmaTileEmitter::WgmmaTileEmitter(ImplicitLocOpBuilder &b,
                                   const ContractionTile &tile,
                                   const WgmmaLayout &layout,
                                   ElementType multiplied, Type accumulatorType)
    : b(b), math(b), tile(tile), layout(layout), multiplied(multiplied),
      schedule(WgmmaSchedule::of(tile.family.schedule)),
      elementType(factorType(b, multiplied)), accumulatorType(accumulatorType) {
  int64_t ofInstruction =
      layout.warpTile().accumulators() / layout.instructions();
  sumsType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(ofInstruction, accumulatorType));
}

void WgmmaTileEmitter::emit() {
  lane = math.rem(tile.threadId, 32);
  if (layout.hasBarriers())
    return emitPipeline();
  warp = math.div(tile.threadId, 32);
  prepareMatrices();
  Values accumulators = emitMainLoop();
  emitEpilogue(accumulators, isAsynchronous);
}

void WgmmaTileEmitter::emitEpilogue(const Values &accumulators,
                                    bool hasAsynchronousCopies) {
  Value row =
      math.add(math.mul(rowGroup, layout.rows.groupExtent()),
               math.mul(math.rem(warp, kWgmmaWarps), FragmentTile::kRows));
  Value column = math.mul(columnGroup, layout.columns.groupExtent());
  if (layout.isSwapped())
    std::swap(row, column);
  FragmentTile fragments = layout.warpTile();
  int64_t threads = layout.producers ? layout.multiplyingThreads() : 0;
  FragmentEpilogue(b, tile, fragments, schedule.accessBytes,
                   {warp, lane, row, column, threads})
      .emit(accumulators, hasAsynchronousCopies);
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

class WgmmaPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return wgmmaModel(); }

  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    ContractionTile tile(emission);
    ukernel::WorkloadOp workload = tile.workload;
    ElementType type = multipliedType(toWorkload(workload));
    std::optional<WgmmaInstruction> instruction =
        findWgmmaInstruction(type, emission.device);
    if (!instruction)
      return workload.emitOpError("expected a product of the tensor cores of ")
             << emission.device.name;
    WgmmaLayout layout =
        wgmmaLayout(tile.isLhsReduceContiguous(), tile.isRhsReduceContiguous(),
                    bytesOf(type), tile.blockTile(),
                    WgmmaSchedule::of(tile.family.schedule));
    Type accumulator = instruction->accumulator == ElementType::I32
                           ? Type(builder.getI32Type())
                           : builder.getF32Type();
    WgmmaTileEmitter(builder, tile, layout, type, accumulator).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
const CodegenPath &wgmmaPath() {
  static const WgmmaPath path;
  return path;
}
} // namespace ftuner
