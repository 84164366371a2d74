//===- MmaEmitter.cpp - The mma codegen path ------------------------------===//
#include "MmaEmitter.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace ftuner;

MmaTileEmitter::MmaTileEmitter(ImplicitLocOpBuilder &b,
                               const ContractionTile &tile,
                               const MmaLayout &layout,
                               const MmaInstruction &instruction,
                               int64_t accessBytes)
    : b(b), math(b), tile(tile), layout(layout), instruction(instruction),
      accessBytes(accessBytes),
      elementType(cast<MemRefType>(tile.lhs.getType()).getElementType()),
      accumulatorType(b.getF32Type()) {}

void MmaTileEmitter::emit() {
  warp = math.div(tile.threadId, 32);
  lane = math.rem(tile.threadId, 32);
  warpRow = math.mul(math.div(warp, layout.warpsN), layout.warpRows());
  warpColumn = math.mul(math.rem(warp, layout.warpsN), layout.warpColumns());
  emitEpilogue(emitMainLoop());
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

/// Whether an operand is contiguous along the reduce axis.
bool isReduceContiguous(AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition() ==
         Workload::kK;
}

ElementType toFactor(Type type) {
  if (type.isF16())
    return ElementType::F16;
  return type.isBF16() ? ElementType::BF16 : ElementType::Other;
}

class MmaPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return mmaModel(); }

  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    ContractionTile tile(emission);
    ukernel::WorkloadOp workload = tile.workload;
    auto lhsType = cast<MemRefType>(tile.lhs.getType());
    std::optional<MmaInstruction> instruction =
        findMmaInstruction(toFactor(lhsType.getElementType()), emission.device);
    if (!instruction)
      return workload.emitOpError("expected factors that the tensor cores of ")
             << emission.device.name << " multiply, but got "
             << lhsType.getElementType();
    MmaSchedule schedule = MmaSchedule::of(tile.family.schedule);
    MmaLayout layout = mmaLayout(isReduceContiguous(workload.getLhsMap()),
                                 isReduceContiguous(workload.getRhsMap()),
                                 lhsType.getElementTypeBitWidth() / 8,
                                 tile.blockTile(), schedule);
    MmaTileEmitter(builder, tile, layout, *instruction, schedule.accessBytes)
        .emit();
    return success();
  }
};

} // namespace

namespace ftuner {
const CodegenPath &mmaPath() {
  static const MmaPath path;
  return path;
}
} // namespace ftuner
