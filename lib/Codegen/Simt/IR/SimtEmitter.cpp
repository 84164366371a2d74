//===- SimtEmitter.cpp - The SIMT codegen path ------------------*- C++ -*-===//
#include "SimtEmitter.h"
#include "../SimtAddresses.h"
#include "FTuner/Codegen/IR/ScheduleAttr.h"

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
  if (!layout.batch.sides.empty())
    for (int64_t number = 0; number < layout.rb; ++number)
      batchElements.push_back(batchElement(math, layout, thread, number));
  emitEpilogue(emitMainLoop());
  return success();
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
/// `#ukernel.simt`.
struct SimtAttr {
  static constexpr llvm::StringLiteral name = "ukernel.simt";
  static const CodegenModel &model() { return simtModel(); }
};

void simtRegister(DialectRegistry &registry) {
  registerSchedule<SimtAttr>(registry);
}

const CodegenPath &simtPath() {
  static const SimtPath path;
  return path;
}
} // namespace ftuner
