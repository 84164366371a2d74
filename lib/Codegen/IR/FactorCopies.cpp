//===- FactorCopies.cpp - Copies of factors of the tensor cores -----------===//
#include "FTuner/Codegen/IR/FactorCopies.h"
#include "FTuner/Codegen/IR/CopySource.h"
#include "FTuner/Codegen/IR/Prologue.h"
#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

Type ftuner::factorType(Builder &b, ElementType multiplied) {
  switch (multiplied) {
  case ElementType::F16:
    return b.getF16Type();
  case ElementType::BF16:
    return b.getBF16Type();
  case ElementType::I8:
    return b.getI8Type();
  default:
    return b.getF32Type();
  }
}

/// Each element of a vector of f32 as tf32.
static Value roundToTF32(ImplicitLocOpBuilder &b, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Values elements;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value rounded = NVVM::ConvertFloatToTF32Op::create(
        b, b.getI32Type(), vector::ExtractOp::create(b, vector, i),
        NVVM::FPRoundingMode::RN);
    elements.push_back(
        arith::BitcastOp::create(b, type.getElementType(), rounded));
  }
  return vector::FromElementsOp::create(b, type, elements);
}

/// What a conversion, if any, makes of vectors, and then tf32.
static CopyConversion thenRounded(ImplicitLocOpBuilder &b,
                                  std::optional<CopyConversion> conversion) {
  CopyConversion result;
  result.sharedBytes = bytesOf(ElementType::TF32);
  if (conversion)
    result = std::move(*conversion);
  result.compute = [&b, before = std::move(result.compute)](Value vector,
                                                            ValueRange inputs) {
    return roundToTF32(b, before ? before(vector, inputs) : vector);
  };
  return result;
}

std::unique_ptr<CopySource>
ftuner::factorSource(ImplicitLocOpBuilder &b, const ContractionTile &tile,
                     unsigned factor, const SharedTile &shared, int64_t threads,
                     int64_t width) {
  ContractionView view = tile.view();
  const Operand &operand = view.factor(factor);
  Value global = tile.factor(factor);
  if (operand.hasWindows())
    return std::make_unique<WindowSource>(
        b, global, operand, SplitAxis::of(tile, tile.axes.space(factor)),
        SplitAxis::of(tile, tile.axes.k),
        startsAtSlice(operand) ? Value() : tile.sliceStart,
        shared.reduceContiguous ? shared.inner : shared.outer,
        shared.matrices == 1 ? rowsOfSlot(shared, threads, width)
                             : std::nullopt);
  auto matrix =
      std::make_unique<MatrixSource>(b, shared, global, threads, width);
  if (operand.isPacked)
    matrix->setPackedRows(tile.described->packedOrder().n);
  return matrix;
}

TileCopy ftuner::createFactorCopy(ImplicitLocOpBuilder &b,
                                  const ContractionTile &tile, unsigned factor,
                                  const SharedTile &shared, Value memory,
                                  Type sharedType, int64_t threads,
                                  int64_t accessBytes, bool roundsToTF32) {
  auto type = cast<MemRefType>(tile.factor(factor).getType());
  int64_t width = copiedElements(*tile.described, accessBytes, factor);
  TileCopy copy(b, shared,
                factorSource(b, tile, factor, shared, threads, width),
                type.getElementType(), memory, threads, width);
  std::optional<CopyConversion> conversion =
      prologueOf(b, tile, factor, sharedType, width, accessBytes);
  if (roundsToTF32)
    conversion = thenRounded(b, std::move(conversion));
  if (conversion)
    copy.convertBy(std::move(*conversion));
  return copy;
}

/// The parts of the combiner, which `ContractionTile::check` has asked for.
static SumOfProducts productOf(const ContractionTile &tile) {
  ukernel::ReductionOpInterface reduction = tile.reduction;
  return *matchSumOfProducts(reduction.getCombiner().front());
}

bool ftuner::isRoundedFactor(const ContractionTile &tile, unsigned factor) {
  ContractionView view = tile.view();
  if (view.multipliedType() != ElementType::TF32 || view.truncatesFactors())
    return false;
  Type type = productOf(tile).narrowFactor(factor).getType();
  // Of integers, tf32 has those of 8 bits.
  return type.getIntOrFloatBitWidth() > (isa<FloatType>(type) ? 16 : 8);
}

bool ftuner::isUnsignedFactor(const ContractionTile &tile, unsigned factor) {
  return llvm::any_of(
      productOf(tile).narrowFactor(factor).getUsers(),
      [](Operation *user) { return isa<arith::ExtUIOp>(user); });
}
