//===- WgmmaTile.cpp - What the roles of a wgmma block share --------------===//
#include "WgmmaTile.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Schedule/Alignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
  warp = toIndex(b, uniformWarp);
}

Value WgmmaThread::actsFor(ImplicitLocOpBuilder &b, int64_t warpNumber) const {
  Value isWarp = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, uniformWarp,
                                       createI32(b, warpNumber));
  return arith::AndIOp::create(b, isWarp, isElected);
}

WgmmaKernel::WgmmaKernel(const TileEmission &block)
    : workload(*block.described),
      schedule(WgmmaSchedule::of(block.family.schedule)),
      multiplied(multipliedType(workload)) {
  for (unsigned part = 0; part < block.family.tiles.size(); ++part)
    layouts.push_back(wgmmaLayout(workload, block.family, part));
}

Value WgmmaTile::stagesOf(unsigned factor) const {
  return sharedPointer(b, tile.sharedMemory,
                       factor == 0 ? 0 : layout.stagesBytes(0));
}

Value WgmmaTile::emitSteps() const {
  IndexMath math(b);
  Value steps =
      math.div(math.add(tile.extents[tile.axes.k], layout.bk - 1), layout.bk);
  return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), steps);
}

/// Computes in 32 bits, which hold the coordinates of boxes.
ContractionTile ftuner::movedInside(const WgmmaTile &given) {
  ImplicitLocOpBuilder &b = given.b;
  const WgmmaLayout &layout = given.layout;
  ContractionTile tile = given.tile;
  auto toI32 = [&](Value index) {
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  };
  for (unsigned factor : {0, 1}) {
    unsigned axis = tile.axes.space(factor);
    if (!layout.hasTma(factor) || tile.exact[axis])
      continue;
    Value &offset = factor == 0 ? tile.rowOffset : tile.columnOffset;
    tile.firstStored[axis] = offset;
    // Runs of columns begin at aligned addresses.
    Value extent =
        factor == 0
            ? tile.extents[axis]
            : tile.storedColumns(b, widestAccessBytes /
                                        elementBytesOf(tile.output.getType()));
    Value last = b.createOrFold<arith::SubIOp>(
        toI32(extent), createI32(b, layout.sideOf(factor).extent));
    last = b.createOrFold<arith::MaxSIOp>(last, createI32(b, 0));
    offset = toIndex(b, b.createOrFold<arith::MinSIOp>(toI32(offset), last));
  }
  return tile;
}

static TileCopy copyOf(const WgmmaTile &wgmma, unsigned factor) {
  return createFactorCopy(
      wgmma.b, wgmma.tile, factor, wgmma.layout.tileOf(factor),
      wgmma.stagesOf(factor), factorType(wgmma.b, wgmma.multiplied),
      wgmma.layout.copyingThreads(), wgmma.schedule.accessBytes,
      isRoundedFactor(wgmma.tile, factor));
}

ThreadCopies::ThreadCopies(const WgmmaTile &wgmma, Value threadId)
    : lhs(copyOf(wgmma, 0)), rhs(copyOf(wgmma, 1)),
      isAsynchronous(
          copiesAsynchronously(wgmma.tile.device, wgmma.schedule.accessBytes,
                               lhs.isConverted() || rhs.isConverted())) {
  prepareCopies(wgmma.tile, lhs, rhs, isAsynchronous, threadId);
}
