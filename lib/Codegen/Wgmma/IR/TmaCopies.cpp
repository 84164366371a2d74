//===- TmaCopies.cpp - Copies by the TMA unit -----------------------------===//
#include "TmaCopies.h"
#include "FTuner/Codegen/IR/MainLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

TmaCopies::TmaCopies(const WgmmaTile &of)
    : b(of.b), math(b), of(of), tile(movedInside(of)), layout(of.layout) {
  prepareMaps();
  preparePackedRows();
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

void TmaCopies::prepareMaps() {
  auto maps = wgmmaModel().tensorMaps(of.workload, tile.family, tile.part);
  for (auto [map, given] : llvm::zip_equal(maps, tile.tensorMaps)) {
    const Operand &operand = of.workload.operands[map.operand];
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
                              of.constant(layout.sideOf(factor).extent));
  }
}

/// An operand that is smaller than the tile brings its rows, in whole patterns
/// of eight, or its panels.
Value TmaCopies::bytesOfBoxes(unsigned factor) {
  const SharedTile &shared = layout.tileOf(factor);
  Value whole = of.constant(layout.stageBytes(shared));
  const Boxes &source = boxes[factor];
  if (!source.extent)
    return whole;
  bool areRows = shared.reduceContiguous;
  int64_t unit = areRows ? kWgmmaPatternRows : shared.pitch;
  Value units = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, source.extent, of.constant(unit - 1)),
      of.constant(unit));
  Value bytes = arith::MulIOp::create(
      b, units,
      of.constant(areRows ? kWgmmaPatternBytes : layout.panelStride(shared)));
  return arith::SelectOp::create(b, source.isSmall, bytes, whole);
}

Value TmaCopies::firstSharedRow(unsigned factor) {
  if (layout.sharersOf(factor) == 1)
    return {};
  return arith::MulIOp::create(
      b, arith::IndexCastUIOp::create(b, b.getI32Type(), tile.clusterRank),
      of.constant(layout.copiedRows(factor)));
}

TmaCopies::Target TmaCopies::targetOf(unsigned factor, Value stage,
                                      Value firstRow) {
  Value offset =
      arith::MulIOp::create(b, stage, of.constant(layout.stageStrides[factor]));
  if (firstRow)
    offset = arith::AddIOp::create(
        b, offset,
        arith::MulIOp::create(b, firstRow, of.constant(kWgmmaRowBytes)));
  Value memory = of.stagesOf(factor);
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
  Value bytes = of.constant(0);
  for (unsigned factor : {0, 1})
    if (layout.hasTma(factor))
      bytes = b.createOrFold<arith::AddIOp>(bytes, bytesOfBoxes(factor));
  if (layout.hasBulkCopies(1))
    bytes = b.createOrFold<arith::AddIOp>(
        bytes, b.createOrFold<arith::MulIOp>(packedRows.ofCluster,
                                             of.constant(kWgmmaRowBytes)));
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
      arith::MulIOp::create(b, step, of.constant(layout.bk)));
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
            b, coordinates[source.space], of.constant(box * distance));
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
                          of.constant(box * layout.tileOf(factor).pitch));
  if (!firstRow)
    return {};
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, firstRow,
                                        of.constant(0));
  Value isWhole =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, source.extent,
                            of.constant(layout.sideOf(factor).extent));
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
  PackedOrder order = of.workload.packedOrder();
  int64_t ofCluster = layout.tileOf(1).outer, ofBlock = layout.copiedRows(1);
  Value firstRow = packedRows.firstShared = firstSharedRow(1);
  if (tile.exact[tile.axes.n]) {
    packedRows.ofCluster = of.constant(ofCluster);
    packedRows.ofBlock = of.constant(ofBlock);
  } else {
    auto rowsFrom = [&](Value first, int64_t most) -> Value {
      Value left = arith::SubIOp::create(b, of.constant(order.n), first);
      left = arith::MaxSIOp::create(b, left, of.constant(0));
      return arith::MinSIOp::create(b, left, of.constant(most));
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
                                              of.constant(kWgmmaRowBytes));
  auto copy = [&] {
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(b, target.memory, source,
                                                     full, bytes, target.blocks,
                                                     /*l2CacheHint=*/Value());
  };
  if (tile.exact[tile.axes.n])
    return copy();
  emitIf(
      b,
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bytes, of.constant(0)),
      copy);
}
