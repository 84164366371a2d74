//===- MmaEmitter.cpp - The mma codegen path ------------------------------===//
#include "MmaEmitter.h"
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ftuner;

MmaTileEmitter::MmaTileEmitter(ImplicitLocOpBuilder &b,
                               const ContractionTile &tile,
                               const MmaLayout &layout, ElementType multiplied,
                               const MmaInstruction &instruction)
    : b(b), math(b), tile(tile), layout(layout), multiplied(multiplied),
      instruction(instruction), schedule(MmaSchedule::of(tile.family.schedule)),
      elementType(factorType(b, multiplied)),
      accumulatorType(instruction.accumulator == ElementType::I32
                          ? Type(b.getI32Type())
                          : b.getF32Type()) {}

void MmaTileEmitter::emit() {
  warp = math.div(tile.threadId, 32);
  lane = math.rem(tile.threadId, 32);
  Value ofGroup = warp;
  if (layout.groups > 1) {
    batchElement = math.div(warp, layout.warpsOfGroup());
    ofGroup = math.rem(warp, layout.warpsOfGroup());
  }
  rows.origin = math.mul(math.div(ofGroup, layout.columns.warps),
                         layout.rows.warpExtent());
  columns.origin = math.mul(math.rem(ofGroup, layout.columns.warps),
                            layout.columns.warpExtent());
  Values accumulators = emitMainLoop();
  Value row = rows.origin, column = columns.origin;
  if (layout.isSwapped())
    std::swap(row, column);
  FragmentTile fragments = layout.warpTile();
  FragmentEpilogue::Warp place = {warp, lane, row, column};
  if (!batchElement)
    return FragmentEpilogue(b, tile, fragments, schedule.accessBytes, place)
        .emit(accumulators, isAsynchronous);
  BatchPosition position = batchPoint(math, layout.batch, batchElement);
  place.isActive = tile.isInsideBatch(b, position);
  ContractionTile ofElement = tile.atBatch(b, position);
  FragmentEpilogue(b, ofElement, fragments, schedule.accessBytes, place)
      .emit(accumulators, isAsynchronous);
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

class MmaPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return mmaModel(); }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    if (failed(ContractionTile::check(emission.op)))
      return failure();
    ContractionTile tile(emission);
    ElementType type = multipliedType(*tile.described);
    std::optional<MmaInstruction> instruction =
        findMmaInstruction(type, emission.device);
    if (!instruction)
      return tile.reduction.emitOpError(
                 "expected a product of the tensor cores of ")
             << emission.device.name;
    MmaLayout layout = mmaLayout(*tile.described, tile.blockTile(),
                                 MmaSchedule::of(tile.family.schedule));
    MmaTileEmitter(builder, tile, layout, type, *instruction).emit();
    return success();
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(mma, MmaPath)
} // namespace ftuner
