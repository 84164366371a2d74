//===- FragmentEpilogue.cpp - From fragments to the output ----------------===//
//
// Accumulators of a fragment lie in pairs of an instruction's columns: lane l
// has columns 2 · (l mod 4) and the next of rows l / 4 and l / 4 + 8. Stored
// from there, they would fill half a sector or less. So each warp takes 8 or 16
// rows of its tile at a time through a slab of shared memory, which no other
// warp touches. Slabs hold rows of the output: with swapped operands,
// instructions' columns.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/FragmentEpilogue.h"
#include "FTuner/Codegen/IR/ContractionEpilogue.h"
#include "FTuner/Codegen/IR/MainLoop.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

bool FragmentEpilogue::isInVectors() const {
  return accessBytes > 1 && tile.hasVectorEpilogue();
}

static constexpr int64_t kAccumulatorBytes = FragmentTile::kAccumulatorBytes;
static constexpr int64_t kRows = FragmentTile::kRows,
                         kColumns = FragmentTile::kColumns;

int64_t FragmentEpilogue::runColumns() const {
  if (!isInVectors())
    return 1;
  // Vectors of all operands that are contiguous along n: the widest of the
  // narrowest elements.
  int64_t leastBytes = 4;
  auto consider = [&](Value operand, AffineMap map) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    // What does not fill its bytes is moved element by element.
    if (!type || map.getNumResults() == 0 || !fillsBytes(type))
      return;
    auto innermost = cast<AffineDimExpr>(map.getResults().back());
    if (innermost.getPosition() == Workload::kN)
      leastBytes = std::min<int64_t>(leastBytes, elementBytesOf(type));
  };
  ukernel::WorkloadOp workload = tile.workload;
  consider(tile.output, workload.getOutputMap());
  if (tile.init && isa<MemRefType>(tile.init.getType()))
    consider(tile.init, workload.getInitMap());
  for (auto [index, extra] : llvm::enumerate(tile.extras))
    consider(extra, workload.getExtraMap(index));
  return std::clamp<int64_t>(accessBytes / std::max<int64_t>(leastBytes, 1), 1,
                             kColumns);
}

Value FragmentEpilogue::distanceAlongRows(Value row) {
  if (fragments.rowDistance == kRows || fragments.rows == 1)
    return row;
  return math.add(math.mul(math.div(row, kRows), fragments.rowDistance),
                  math.rem(row, kRows));
}

Value FragmentEpilogue::slabOffset() {
  int64_t stride = warp.slabStride ? warp.slabStride : fragments.slabBytes();
  return math.add(math.mul(warp.number, stride), warp.slabsOffset);
}

void FragmentEpilogue::storeToSlab(Value slab, ValueRange accumulators,
                                   int64_t step, int64_t firstFragment,
                                   int64_t numFragments) {
  if (fragments.isSwapped)
    storeTransposed(accumulators, step);
  else
    storeRows(slab, accumulators, step, firstFragment, numFragments);
}

/// The accumulators of 16 rows of instructions. A lane has two neighbouring
/// columns of each fragment, or four of each two where even columns come first.
void FragmentEpilogue::storeRows(Value slab, ValueRange accumulators,
                                 int64_t step, int64_t firstFragment,
                                 int64_t numFragments) {
  int64_t together = fragments.hasEvenColumnsFirst ? 2 : 1;
  int64_t width = 2 * together;
  Value row = math.div(warp.lane, 4),
        column = math.mul(math.rem(warp.lane, 4), width);
  auto type = VectorType::get({width}, accumulators.front().getType());
  for (int64_t fragment = 0; fragment < numFragments; fragment += together)
    for (int64_t half = 0; half < 2; ++half) {
      Values held;
      for (int64_t number = 0; number < width; ++number)
        held.push_back(
            accumulators[4 * (step * fragments.columns + firstFragment +
                              fragment + number % together) +
                         2 * half + number / together]);
      Value run = vector::FromElementsOp::create(b, type, held);
      vector::StoreOp::create(b, run, slab,
                              ValueRange{math.add(row, 8 * half),
                                         math.add(column, fragment * kColumns)},
                              /*nontemporal=*/false,
                              llvm::MaybeAlign(width * kAccumulatorBytes));
    }
}

/// The accumulators of 8 or 16 columns of instructions, as rows: one by one, or
/// two neighbours where even columns come first, at constant distances of the
/// lane's first.
void FragmentEpilogue::storeTransposed(ValueRange accumulators, int64_t step) {
  bool hasPairs = fragments.hasEvenColumnsFirst;
  Value row = math.mul(math.rem(warp.lane, 4), 2);
  Value column = math.mul(math.div(warp.lane, 4), hasPairs ? 2 : 1);
  auto pairType = VectorType::get({2}, accumulators.front().getType());
  Value element = math.add(math.mul(row, fragments.slabPitch()), column);
  Value first = offsetPointer(
      b, sharedPointer(b, tile.sharedMemory, 0),
      math.add(slabOffset(), math.mul(element, kAccumulatorBytes)));
  int64_t ofStep = fragments.slabRows() / kColumns;
  for (int64_t fragment = 0; fragment < ofStep; ++fragment)
    for (int64_t other = 0; other < fragments.rows; ++other)
      for (int64_t number = 0; number < (hasPairs ? 2 : 4); ++number) {
        int64_t held =
            4 * (other * fragments.columns + step * ofStep + fragment) + number;
        int64_t distance =
            (fragment * kColumns + number % 2) * fragments.slabPitch() +
            other * kRows + number / 2 * 8;
        Value run = accumulators[held];
        if (hasPairs)
          run = vector::FromElementsOp::create(
              b, pairType, ValueRange{run, accumulators[held + 2]});
        LLVM::StoreOp::create(
            b, run, offsetPointer(b, first, distance * kAccumulatorBytes),
            kAccumulatorBytes * (hasPairs ? 2 : 1));
      }
}

/// The barrier of the block is number 0.
static constexpr int32_t kBarrierOfWarps = 1;

void FragmentEpilogue::awaitWarps() {
  if (warp.threads == 0) {
    gpu::BarrierOp::create(b);
    return;
  }
  NVVM::BarrierOp::create(b, TypeRange(), createI32(b, kBarrierOfWarps),
                          createI32(b, warp.threads),
                          NVVM::BarrierReductionAttr(), Value());
}

void FragmentEpilogue::emit(ValueRange accumulators,
                            bool hasAsynchronousCopies) {
  // The slabs take the place of stages, which other warps may still read.
  if (hasAsynchronousCopies)
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
  Value allLanes = createI32(b, -1);
  if (warp.slabsOffset == 0)
    awaitWarps();
  else // Lanes may still read the tile before.
    NVVM::SyncWarpOp::create(b, allLanes);
  Type accumulatorType = accumulators.front().getType();
  auto slabType = MemRefType::get(
      {fragments.slabRows(), fragments.slabPitch()}, accumulatorType,
      MemRefLayoutAttrInterface(),
      cast<MemRefType>(tile.sharedMemory.getType()).getMemorySpace());
  Value slab = memref::ViewOp::create(b, slabType, tile.sharedMemory,
                                      slabOffset(), ValueRange());

  int64_t width = runColumns();
  ContractionEpilogue epilogue(b, tile, isInVectors() ? width : 0);
  int64_t slabRows = fragments.slabRows();
  auto runType = VectorType::get({width}, accumulatorType);
  Value firstRow = math.add(tile.rowOffset, warp.row);
  Value firstColumn = math.add(tile.columnOffset, warp.column);
  // A slab holds some rows, and all fragments of their columns or some.
  int64_t ofSlab =
      fragments.slabFragments ? fragments.slabFragments : fragments.columns;
  auto emitSlab = [&](int64_t step, int64_t firstFragment,
                      int64_t numFragments) {
    int64_t columns = fragments.isSwapped ? fragments.outputColumns()
                                          : numFragments * kColumns;
    int64_t runsPerRow = columns / width;
    int64_t runs = slabRows * runsPerRow;
    storeToSlab(slab, accumulators, step, firstFragment, numFragments);
    NVVM::SyncWarpOp::create(b, allLanes);
    scf::ForOp loop =
        createLoop(b, Unrolling::Never, math.constant(runs), 32, ValueRange());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value run = math.add(loop.getInductionVar(), warp.lane);
    auto emitRun = [&] {
      Value row = math.div(run, runsPerRow);
      Value column = math.mul(math.rem(run, runsPerRow), width);
      Value values = vector::LoadOp::create(
          b, runType, slab, ValueRange{row, column}, /*nontemporal=*/false,
          llvm::MaybeAlign(4 * std::min<int64_t>(width, 4)));
      Value inSlab = fragments.slabRow(math, row);
      int64_t distance = step * slabRows;
      if (fragments.isSwapped)
        column = distanceAlongRows(column);
      else
        distance = step * fragments.rowDistance;
      column = math.add(column, firstFragment * kColumns);
      Value index = math.add(firstRow, math.add(inSlab, distance));
      epilogue.emitRun(
          math.add(firstColumn, column), width, 1,
          [&](int64_t) -> ContractionEpilogue::Row { return {index, values}; });
    };
    if (runs % 32 == 0)
      return emitRun();
    emitIf(b, math.less(run, math.constant(runs)), emitRun);
  };
  int64_t steps = fragments.outputRows() / slabRows;
  int64_t slabs = fragments.isSwapped ? 1 : ceilDiv(fragments.columns, ofSlab);
  for (int64_t number = 0; number < steps * slabs; ++number) {
    if (number > 0)
      NVVM::SyncWarpOp::create(b, allLanes);
    int64_t first = number % slabs * ofSlab;
    emitSlab(number / slabs, first,
             std::min(ofSlab, fragments.columns - first));
  }
}
