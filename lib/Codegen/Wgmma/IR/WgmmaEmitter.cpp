//===- WgmmaEmitter.cpp - The wgmma codegen path --------------------------===//
#include "WgmmaEmitter.h"
#include "../WgmmaTypes.h"
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
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
  nameWarp();
  if (layout.hasBarriers())
    return emitPipeline();
  prepareMatrices();
  Values accumulators = emitMainLoop();
  emitEpilogue(accumulators, isAsynchronous);
}

Value WgmmaTileEmitter::constant(int64_t value) {
  return arith::ConstantOp::create(
      b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// What all lanes get from the first one the assembler knows to be equal in all
/// of them: descriptors stay in registers of the warp, and roles are branches
/// of whole warps.
void WgmmaTileEmitter::nameWarp() {
  constexpr int32_t kWholeWarp = 31;
  Value number = b.createOrFold<arith::IndexCastOp>(
      b.getI32Type(), math.div(tile.threadId, 32));
  uniformWarp =
      NVVM::ShflOp::create(b, b.getI32Type(), constant(-1), number, constant(0),
                           constant(kWholeWarp), NVVM::ShflKind::idx,
                           /*return_value_and_is_valid=*/UnitAttr());
  warp = arith::IndexCastUIOp::create(b, b.getIndexType(), uniformWarp);
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
