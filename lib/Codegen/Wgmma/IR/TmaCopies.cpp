//===- TmaCopies.cpp - Copies by the TMA unit -----------------------------===//
#include "TmaCopies.h"
#include "FTuner/Codegen/IR/MainLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

TmaCopies::TmaCopies(const WgmmaTile &wgmma)
    : b(wgmma.b), math(b), wgmma(wgmma), tile(movedInside(wgmma)),
      layout(wgmma.layout) {
  prepareMaps();
  preparePackedRows();
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

void TmaCopies::prepareMaps() {
  auto maps = wgmmaModel().tensorMaps(wgmma.workload, tile.family, tile.part);
  for (auto [map, given] : llvm::zip_equal(maps, tile.tensorMaps)) {
    const Operand &operand = wgmma.workload.operands[map.operand];
    unsigned factor = operand.role == OperandRole::Lhs ? 0 : 1;
    Boxes &found = boxes[factor];
    found.map = given.map;
    for (auto [number, dim] : llvm::enumerate(map.dims)) {
      unsigned axis = *operand.position(dim).asAxis();
      Value first = given.origin[number];
      if (axis == tile.axes.k) {
        found.reduce = number;
      } else if (!tile.axes.isBatch(axis)) {
        found.space = number;
        first =
            math.add(first, factor == 0 ? tile.rowOffset : tile.columnOffset);
      }
      found.origin.push_back(
          b.createOrFold<arith::IndexCastOp>(b.getI32Type(), first));
    }
    unsigned axis = tile.axes.space(factor);
    if (tile.exact[axis] ||
        !(layout.fitsRows(factor) || layout.fitsPanels(factor)))
      continue;
    found.extent =
        b.createOrFold<arith::IndexCastOp>(b.getI32Type(), tile.extents[axis]);
    found.isSmall =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, found.extent,
                              wgmma.constant(layout.sideOf(factor).extent));
  }
}

/// An operand that is smaller than the tile brings its rows, in whole patterns
/// of eight, or its panels.
Value TmaCopies::bytesOfBoxes(unsigned factor) {
  const SharedTile &shared = layout.tileOf(factor);
  Value whole = wgmma.constant(layout.stageBytes(shared));
  const Boxes &source = boxes[factor];
  if (!source.extent)
    return whole;
  bool areRows = shared.reduceContiguous;
  int64_t unit = areRows ? kWgmmaPatternRows : shared.pitch;
  Value units = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, source.extent, wgmma.constant(unit - 1)),
      wgmma.constant(unit));
  Value bytes = arith::MulIOp::create(
      b, units,
      wgmma.constant(areRows ? kWgmmaPatternBytes
                             : layout.panelStride(shared)));
  return arith::SelectOp::create(b, source.isSmall, bytes, whole);
}

Value TmaCopies::firstSharedRow(unsigned factor) {
  if (layout.sharersOf(factor) == 1)
    return {};
  return arith::MulIOp::create(
      b, arith::IndexCastUIOp::create(b, b.getI32Type(), tile.clusterRank),
      wgmma.constant(layout.copiedRows(factor)));
}

TmaCopies::Target TmaCopies::targetOf(unsigned factor, Value stage,
                                      Value firstRow) {
  Value offset = arith::MulIOp::create(
      b, stage, wgmma.constant(layout.stageStrides[factor]));
  if (firstRow)
    offset = arith::AddIOp::create(
        b, offset,
        arith::MulIOp::create(b, firstRow, wgmma.constant(kWgmmaRowBytes)));
  Value memory = wgmma.stagesOf(factor);
  memory = LLVM::GEPOp::create(b, memory.getType(), b.getI8Type(), memory,
                               ValueRange{offset});
  if (!firstRow)
    return {memory, Value()};
  memory = LLVM::AddrSpaceCastOp::create(b, clusterPointerType(b.getContext()),
                                         memory);
  return {memory, arith::ConstantOp::create(
                      b, b.getI16IntegerAttr(static_cast<int16_t>(
                             (1 << layout.clusterBlocks()) - 1)))};
}

void TmaCopies::start(StageBarriers &barriers, Value stage, Value step) {
  Value full = barriers.full(stage);
  // What arrives at the block's own barrier, whichever block copies it.
  Value bytes = wgmma.constant(0);
  for (unsigned factor : {0, 1})
    if (layout.hasTma(factor))
      bytes = b.createOrFold<arith::AddIOp>(bytes, bytesOfBoxes(factor));
  if (layout.hasBulkCopies(1))
    bytes = b.createOrFold<arith::AddIOp>(
        bytes, b.createOrFold<arith::MulIOp>(packedRows.ofCluster,
                                             wgmma.constant(kWgmmaRowBytes)));
  NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), full, bytes,
                                         NVVM::MemScopeKind::CTA,
                                         /*relaxed=*/false,
                                         /*predicate=*/Value());
  for (unsigned factor : {0, 1}) {
    if (layout.hasTma(factor))
      startBoxes(factor, full, stage, step);
    else if (layout.hasBulkCopies(factor))
      startPackedRows(full, stage, step);
  }
}

void TmaCopies::startBoxes(unsigned factor, Value full, Value stage,
                           Value step) {
  const SharedTile &shared = layout.tileOf(factor);
  const Boxes &source = boxes[factor];
  Values first = source.origin;
  first[source.reduce] = b.createOrFold<arith::AddIOp>(
      first[source.reduce],
      arith::MulIOp::create(b, step, wgmma.constant(layout.bk)));
  // The block's part of what both need.
  Value firstRow = firstSharedRow(factor);
  if (firstRow) {
    unsigned along = shared.reduceContiguous ? source.space : source.reduce;
    first[along] = b.createOrFold<arith::AddIOp>(first[along], firstRow);
  }
  Target target = targetOf(factor, stage, firstRow);
  int64_t rows = layout.boxRowsOf(factor);
  // From a box to the next: panels have rows of other blocks between.
  int64_t boxBytes =
      (shared.reduceContiguous ? rows : shared.outer) * kWgmmaRowBytes;
  // Panels are neighbours along the contiguous axis.
  int64_t distance = shared.reduceContiguous ? rows : shared.pitch;
  for (int64_t box = 0; box < layout.boxesOf(factor); ++box) {
    auto copy = [&] {
      Values coordinates = first;
      if (box > 0)
        coordinates[source.space] = arith::AddIOp::create(
            b, coordinates[source.space], wgmma.constant(box * distance));
      NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
          b, offsetPointer(b, target.memory, box * boxBytes), source.map,
          coordinates, full, /*im2colOffsets=*/ValueRange(), target.blocks,
          /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
          /*isCTAOnly=*/!target.blocks, NVVM::CTAGroupKindAttr(),
          /*predicate=*/Value());
    };
    if (Value isCopied = isBoxCopied(factor, box, firstRow))
      emitIf(b, isCopied, copy);
    else
      copy();
  }
}

/// The first of the blocks that share an operand copies all of it if it is
/// smaller than the tile. A panel has something to copy if it begins inside.
Value TmaCopies::isBoxCopied(unsigned factor, int64_t box, Value firstRow) {
  const Boxes &source = boxes[factor];
  if (!source.extent)
    return {};
  if (!layout.tileOf(factor).reduceContiguous)
    return box == 0 ? Value()
                    : arith::CmpIOp::create(
                          b, arith::CmpIPredicate::sgt, source.extent,
                          wgmma.constant(box * layout.tileOf(factor).pitch));
  if (!firstRow)
    return {};
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, firstRow,
                                        wgmma.constant(0));
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, source.extent,
                            wgmma.constant(layout.sideOf(factor).extent));
  return arith::OrIOp::create(b, isFirst, isWhole);
}

//===----------------------------------------------------------------------===//
// Packed rows
//===----------------------------------------------------------------------===//

/// Rows are columns of the output. Beyond the extent, whose groups of eight are
/// whole, stages keep what they had, which is multiplied into columns that
/// nobody stores.
void TmaCopies::preparePackedRows() {
  if (!layout.hasBulkCopies(1))
    return;
  PackedOrder order = wgmma.workload.packedOrder();
  int64_t ofCluster = layout.tileOf(1).outer, ofBlock = layout.copiedRows(1);
  Value firstRow = packedRows.firstShared = firstSharedRow(1);
  if (tile.exact[tile.axes.n]) {
    packedRows.ofCluster = wgmma.constant(ofCluster);
    packedRows.ofBlock = wgmma.constant(ofBlock);
  } else {
    auto rowsFrom = [&](Value first, int64_t most) -> Value {
      Value left = arith::SubIOp::create(b, wgmma.constant(order.n), first);
      left = arith::MaxSIOp::create(b, left, wgmma.constant(0));
      return arith::MinSIOp::create(b, left, wgmma.constant(most));
    };
    Value first =
        b.createOrFold<arith::IndexCastOp>(b.getI32Type(), tile.columnOffset);
    packedRows.ofCluster = rowsFrom(first, ofCluster);
    packedRows.ofBlock = packedRows.ofCluster;
    if (firstRow)
      packedRows.ofBlock =
          rowsFrom(arith::AddIOp::create(b, first, firstRow), ofBlock);
  }
  Value row = tile.columnOffset;
  if (firstRow)
    row = math.add(row, toIndex(b, firstRow));
  packedRows.first = offsetPointer(b, globalPointer(b, tile.rhs),
                                   math.mul(row, kWgmmaRowBytes));
  packedRows.stepBytes = order.stepStride() * order.elementBytes;
}

void TmaCopies::startPackedRows(Value full, Value stage, Value step) {
  Target target = targetOf(1, stage, packedRows.firstShared);
  Value source = offsetPointer(
      b, packedRows.first, math.mul(toIndex(b, step), packedRows.stepBytes));
  Value bytes = b.createOrFold<arith::MulIOp>(packedRows.ofBlock,
                                              wgmma.constant(kWgmmaRowBytes));
  auto copy = [&] {
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(b, target.memory, source,
                                                     full, bytes, target.blocks,
                                                     /*l2CacheHint=*/Value());
  };
  if (tile.exact[tile.axes.n])
    return copy();
  emitIf(b,
         arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bytes,
                               wgmma.constant(0)),
         copy);
}
