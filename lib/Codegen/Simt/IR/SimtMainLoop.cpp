//===- SimtMainLoop.cpp - The reduction of one tile -------------*- C++ -*-===//
//
// Within a step a loop runs over quads of the reduce axis. It is compiled as a
// loop until LLVM unrolls it in the end, a part of the step at a time where all
// of it would be too long for the instruction cache.
//
//===----------------------------------------------------------------------===//
#include "../SimtAddresses.h"
#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/Prologue.h"
#include "SimtEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

VectorType SimtTileEmitter::vectorType(int64_t width) {
  return VectorType::get({width}, elementType);
}

Value SimtTileEmitter::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

Values SimtTileEmitter::emitMainLoop() {
  Value scalarInit = tile.scalarStart(b, elementType);
  // The first slice alone starts from it.
  if (scalarInit && slice)
    scalarInit = arith::SelectOp::create(
        b, math.less(slice, math.constant(1)), scalarInit,
        arith::ConstantOp::create(b, elementType, b.getZeroAttr(elementType)));
  Values accumulators;
  for (int64_t row = 0; row < layout.rb * layout.rm; ++row)
    for (const LaneChunk &chunk : columnChunks) {
      VectorType type = vectorType(chunk.width);
      accumulators.push_back(
          scalarInit ? broadcast(scalarInit, chunk.width)
                     : arith::ConstantOp::create(b, type, b.getZeroAttr(type))
                           .getResult());
    }

  int64_t lhsBytes =
      kSharedElementBytes * layout.stages * layout.lhs.elements();
  for (unsigned factor : {0, 1}) {
    const SharedTile &shared = layout.factor(factor);
    int64_t firstByte = factor == 0 ? 0 : lhsBytes;
    Values &views = factor == 0 ? lhsShared : rhsShared;
    if (batchElements.empty())
      views.push_back(viewStages(b, tile.sharedMemory, shared, layout.stages,
                                 elementType, firstByte));
    for (Value element : batchElements)
      views.push_back(
          viewMatrix(b, tile.sharedMemory, shared, layout.stages, elementType,
                     firstByte, matrixOf(math, layout.batch, factor, element)));
  }
  auto copyOf = [&](unsigned factor, int64_t firstByte) {
    int64_t width = layout.copyWidths[factor];
    TileCopy copy(
        b, layout.factor(factor),
        factorSource(b, tile, factor, layout.factor(factor), layout.threads(),
                     width),
        cast<MemRefType>(tile.factor(factor).getType()).getElementType(),
        sharedPointer(b, tile.sharedMemory, firstByte), layout.threads(),
        width);
    // Elements of other types than the accumulator's are cast on the way.
    if (std::optional<CopyConversion> conversion = prologueOf(
            b, tile, factor, elementType, width, kSharedElementBytes * width))
      copy.convertBy(std::move(*conversion));
    return copy;
  };
  TileCopy lhsCopy = copyOf(0, 0), rhsCopy = copyOf(1, lhsBytes);
  isAsynchronous = tile.device.hasAsyncCopy() && !lhsCopy.isConverted() &&
                   !rhsCopy.isConverted();
  prepareCopies(tile, lhsCopy, rhsCopy, isAsynchronous);
  MainLoop loop{lhsCopy,
                rhsCopy,
                layout.stages,
                layout.bk,
                tile.extents[tile.axes.k],
                isAsynchronous};
  return loop.emit(b, accumulators, [&](Value stage, const Values &values) {
    return multiply(stage, values);
  });
}

Values SimtTileEmitter::loadReduceVectors(const SharedTile &shared,
                                          Value memory, Value stage,
                                          Value reduce,
                                          ArrayRef<LaneChunk> chunks,
                                          Value lane) {
  Values vectors;
  for (const LaneChunk &chunk : chunks) {
    Value first = firstOfChunk(math, chunk, lane);
    Value inner = reduceElementInRow(math, shared, first, reduce);
    for (int64_t element = 0; element < chunk.width; ++element)
      vectors.push_back(vector::LoadOp::create(
          b, vectorType(kQuad), memory,
          ValueRange{stage, math.add(first, element), inner},
          /*nontemporal=*/false,
          llvm::MaybeAlign(kSharedElementBytes * kQuad)));
  }
  return vectors;
}

Values SimtTileEmitter::loadSpaceVectors(Value memory, Value stage,
                                         Value reduce,
                                         ArrayRef<LaneChunk> chunks,
                                         Value lane) {
  Values vectors;
  for (const LaneChunk &chunk : chunks) {
    Value first = firstOfChunk(math, chunk, lane);
    vectors.push_back(vector::LoadOp::create(
        b, vectorType(chunk.width), memory, ValueRange{stage, reduce, first},
        /*nontemporal=*/false,
        llvm::MaybeAlign(kSharedElementBytes * chunk.width)));
  }
  return vectors;
}

/// Rows of a thread as scalars of step `element` within the fragments.
static Value scalarOf(ImplicitLocOpBuilder &b, ValueRange fragments,
                      bool reduceContiguous, ArrayRef<LaneChunk> chunks,
                      int64_t row, int64_t element) {
  if (reduceContiguous)
    return vector::ExtractOp::create(b, fragments[row], element);
  for (auto [chunk, fragment] : llvm::zip_equal(chunks, fragments)) {
    if (row < chunk.width)
      return vector::ExtractOp::create(b, fragment, row);
    row -= chunk.width;
  }
  llvm_unreachable("row outside of the chunks");
}

void SimtTileEmitter::multiplyChunk(ArrayRef<Value> rows, size_t chunk,
                                    Value columns,
                                    MutableArrayRef<Value> accumulators) {
  int64_t width = columnChunks[chunk].width;
  for (auto [row, scalar] : llvm::enumerate(rows)) {
    Value &accumulator = accumulators[row * columnChunks.size() + chunk];
    Value factor = broadcast(scalar, width);
    if (isa<FloatType>(elementType)) {
      accumulator = vector::FMAOp::create(b, factor, columns, accumulator);
      continue;
    }
    Value product = arith::MulIOp::create(b, factor, columns);
    accumulator = arith::AddIOp::create(b, product, accumulator);
  }
}

Values SimtTileEmitter::multiply(Value stage, ValueRange accumulators) {
  int64_t depth = layout.unrolledDepth(tile.device);
  if (depth == layout.sliceDepth())
    return multiplyUnrolled(stage, firstOfStep, accumulators);
  scf::ForOp loop =
      createLoop(b, Unrolling::Never, math.constant(layout.sliceDepth()), depth,
                 accumulators);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(
      b, multiplyUnrolled(stage, math.add(firstOfStep, loop.getInductionVar()),
                          loop.getRegionIterArgs()));
  return Values(loop.getResults());
}

Values SimtTileEmitter::multiplyUnrolled(Value stage, Value first,
                                         ValueRange accumulators) {
  int64_t depth = layout.unrolledDepth(tile.device);
  int64_t rest = depth % kQuad;
  Values sums(accumulators);
  if (depth > rest) {
    scf::ForOp loop = createLoop(b, Unrolling::Late,
                                 math.constant(depth - rest), kQuad, sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Values next(loop.getRegionIterArgs());
    multiplyQuad(stage, math.add(first, loop.getInductionVar()), kQuad, next);
    scf::YieldOp::create(b, next);
    sums = Values(loop.getResults());
  }
  if (rest != 0)
    multiplyQuad(stage, math.add(first, depth - rest), rest, sums);
  return sums;
}

void SimtTileEmitter::multiplyQuad(Value stage, Value reduce, int64_t count,
                                   Values &accumulators) {
  MutableArrayRef<Value> left = accumulators;
  for (auto [lhs, rhs] : llvm::zip_equal(lhsShared, rhsShared)) {
    multiplyQuad(lhs, rhs, stage, reduce, count, left.take_front(numVectors()));
    left = left.drop_front(numVectors());
  }
}

void SimtTileEmitter::multiplyQuad(Value lhsShared, Value rhsShared,
                                   Value stage, Value reduce, int64_t count,
                                   MutableArrayRef<Value> accumulators) {
  // rows[element][row]: what each row contributes at each reduce element.
  SmallVector<Values> rows(count);
  Values fragments;
  if (layout.lhs.reduceContiguous)
    fragments =
        loadReduceVectors(layout.lhs, lhsShared, stage, reduce, rowChunks, tm);
  for (int64_t element = 0; element < count; ++element) {
    if (!layout.lhs.reduceContiguous)
      fragments = loadSpaceVectors(lhsShared, stage, math.add(reduce, element),
                                   rowChunks, tm);
    for (int64_t row = 0; row < layout.rm; ++row)
      rows[element].push_back(scalarOf(
          b, fragments, layout.lhs.reduceContiguous, rowChunks, row, element));
    if (layout.rhs.reduceContiguous)
      continue;
    Values columns = loadSpaceVectors(
        rhsShared, stage, math.add(reduce, element), columnChunks, tn);
    for (auto [chunk, vector] : llvm::enumerate(columns))
      multiplyChunk(rows[element], chunk, vector, accumulators);
  }
  if (!layout.rhs.reduceContiguous)
    return;
  // One chunk after the other, so that few fragments are alive at once.
  for (auto [chunk, columns] : llvm::enumerate(columnChunks)) {
    Values vectors =
        loadReduceVectors(layout.rhs, rhsShared, stage, reduce, columns, tn);
    for (int64_t element = 0; element < count; ++element) {
      Values scalars;
      for (Value vector : vectors)
        scalars.push_back(vector::ExtractOp::create(b, vector, element));
      multiplyChunk(
          rows[element], chunk,
          vector::FromElementsOp::create(b, vectorType(columns.width), scalars),
          accumulators);
    }
  }
}
