//===- SimtEmitter.cpp - The SIMT codegen path ------------------*- C++ -*-===//
#include "SimtEmitter.h"
#include "../SimtAddresses.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace ftuner;

SimtTileEmitter::SimtTileEmitter(ImplicitLocOpBuilder &b,
                                 const ContractionTile &tile,
                                 const SimtLayout &layout, int64_t vectorWidth)
    : b(b), math(b), tile(tile), layout(layout), vectorWidth(vectorWidth),
      elementType(
          ukernel::ReductionOpInterface(tile.reduction).getAccumulatorType()),
      rowChunks(layout.rowChunks()), columnChunks(layout.columnChunks()) {}

LogicalResult SimtTileEmitter::emit() {
  ThreadCoordinates<IndexMath> thread =
      threadCoordinates(math, layout, tile.threadId);
  tm = thread.m;
  tn = thread.n;
  firstOfStep = firstOfSlice(math, layout, thread);
  if (!layout.batch.sides.empty())
    for (int64_t number = 0; number < layout.rb; ++number)
      batchElements.push_back(batchElement(math, layout, thread, number));
  if (!thread.slice) {
    emitEpilogue(emitMainLoop());
    return success();
  }
  slice = *thread.slice;
  Values sums = emitMainLoop();
  // Sums take the place of stages, which other threads may still read.
  if (isAsynchronous)
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
  gpu::BarrierOp::create(b);
  Value zero = math.constant(0), one = math.constant(1);
  emitIf(b, math.less(zero, slice), [&] { storeSlice(sums); });
  gpu::BarrierOp::create(b);
  emitIf(b, math.less(slice, one), [&] { emitEpilogue(withSlices(sums)); });
  return success();
}

/// Bytes of a vector in shared memory, to which it is aligned there.
static int64_t bytesOfVector(Value vector) {
  return kSharedElementBytes *
         cast<VectorType>(vector.getType()).getNumElements();
}

Values SimtTileEmitter::sumPointers(ValueRange accumulators) {
  Value thread = math.add(math.mul(tm, layout.gn), tn);
  Value memory = sharedPointer(b, tile.sharedMemory, 0);
  Values pointers;
  int64_t first = 0;
  for (Value accumulator : accumulators) {
    int64_t bytes = bytesOfVector(accumulator);
    pointers.push_back(
        offsetPointer(b, memory, math.add(math.mul(thread, bytes), first)));
    first += bytes * layout.groupThreads();
  }
  return pointers;
}

void SimtTileEmitter::storeSlice(ValueRange accumulators) {
  Value distance = math.mul(math.sub(slice, 1), layout.bytesOfSlice());
  for (auto [sums, pointer] :
       llvm::zip_equal(accumulators, sumPointers(accumulators)))
    LLVM::StoreOp::create(b, sums, offsetPointer(b, pointer, distance),
                          bytesOfVector(sums));
}

Values SimtTileEmitter::withSlices(ValueRange accumulators) {
  Values all;
  for (auto [sums, pointer] :
       llvm::zip_equal(accumulators, sumPointers(accumulators))) {
    Value sum = sums;
    for (int64_t other = 0; other + 1 < layout.gk; ++other) {
      Value next = LLVM::LoadOp::create(
          b, sum.getType(),
          offsetPointer(b, pointer, other * layout.bytesOfSlice()),
          bytesOfVector(sum));
      if (isa<FloatType>(elementType))
        sum = arith::AddFOp::create(b, sum, next);
      else
        sum = arith::AddIOp::create(b, sum, next);
    }
    all.push_back(sum);
  }
  return all;
}

void SimtTileEmitter::emitEpilogue(ValueRange accumulators) {
  if (batchElements.empty())
    return emitEpilogue(tile, accumulators);
  for (auto [number, element] : llvm::enumerate(batchElements)) {
    BatchPosition position = batchPoint(math, layout.batch, element);
    auto emit = [&, number = number] {
      emitEpilogue(tile.atBatch(b, position),
                   accumulators.slice(number * numVectors(), numVectors()));
    };
    if (Value inside = tile.isInsideBatch(b, position))
      emitIf(b, inside, emit);
    else
      emit();
  }
}

void SimtTileEmitter::emitEpilogue(const ContractionTile &tile,
                                   ValueRange accumulators) {
  bool areWhole = vectorWidth == 4 && tile.hasVectorEpilogue();
  ContractionEpilogue epilogue(b, tile, areWhole ? 4 : 0);
  // Rows of a thread: chunk and element of it.
  llvm::SmallVector<std::pair<const LaneChunk *, int64_t>> rows;
  for (const LaneChunk &chunk : rowChunks)
    for (int64_t element = 0; element < chunk.width; ++element)
      rows.emplace_back(&chunk, element);
  int64_t chunks = columnChunks.size();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const LaneChunk &columns = columnChunks[chunk];
    Value column = math.add(tile.columnOffset, firstOfChunk(math, columns, tn));
    epilogue.emitRun(column, columns.width, layout.rm,
                     [&](int64_t row) -> ContractionEpilogue::Row {
                       auto [rowChunk, element] = rows[row];
                       Value ofTile =
                           math.add(firstOfChunk(math, *rowChunk, tm), element);
                       return {math.add(tile.rowOffset, ofTile),
                               accumulators[row * chunks + chunk]};
                     });
  }
}

//===----------------------------------------------------------------------===//
// The path
//===----------------------------------------------------------------------===//

namespace {

class SimtPath final : public CodegenPath {
public:
  const CodegenModel &model() const override { return simtModel(); }

protected:
  LogicalResult emitTile(ImplicitLocOpBuilder &builder,
                         const TileEmission &emission) const override {
    if (failed(ContractionTile::check(emission.op)))
      return failure();
    ContractionTile tile(emission);
    SimtSchedule schedule = SimtSchedule::of(tile.family.schedule);
    SimtLayout layout = simtLayout(*tile.described, tile.blockTile(), schedule);
    return SimtTileEmitter(builder, tile, layout, schedule.vectorWidth).emit();
  }
};

} // namespace

namespace ftuner {
FTUNER_DEFINE_CODEGEN_PATH(simt, SimtPath)
} // namespace ftuner
