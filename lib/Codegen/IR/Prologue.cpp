//===- Prologue.cpp - From memory to what is multiplied -------------------===//
//
// Vectors of a factor pass through registers, where the contraction's own
// operations up to the product make of them what is multiplied. Inputs are read
// beside them: those that do not depend on k once for all steps.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/IR/Prologue.h"

#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/PromotedFloats.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

namespace {

/// Reads and applies what the prologue of one factor needs.
class Prologue {
public:
  Prologue(ImplicitLocOpBuilder &b, const ContractionTile &tile,
           unsigned factor, Type sharedType, int64_t vectorWidth,
           int64_t alignment);

  bool isIdentity() const {
    auto type = cast<MemRefType>(tile.factor(factor).getType());
    return type.getElementType() == sharedType && !parts.isComputed(factor);
  }
  CopyConversion conversion() const;

private:
  AffineMap mapOf(unsigned input) const { return tile.inputMaps[input]; }
  Value argumentOf(unsigned input) const {
    return contract.getArgument(2 + input);
  }
  VectorType typeOf(unsigned input) const;
  Value load(unsigned input, Value space, Value reduce,
             const BatchPosition &batch) const;
  Value broadcast(Value value) const;
  Value compute(Value vector, ValueRange loaded) const;

  ImplicitLocOpBuilder &b;
  const ContractionTile &tile;
  Block &contract;
  unsigned factor;
  Type sharedType;
  int64_t vectorWidth, alignment;
  SumOfProducts parts;
  /// The axis along which vectors lie.
  unsigned vectorAxis;
  /// Inputs that the prologue reads: tensors, and scalars.
  SmallVector<unsigned> tensors, scalars;
};

} // namespace

Prologue::Prologue(ImplicitLocOpBuilder &b, const ContractionTile &tile,
                   unsigned factor, Type sharedType, int64_t vectorWidth,
                   int64_t alignment)
    : b(b), tile(tile),
      contract(
          ukernel::ReductionOpInterface(tile.reduction).getCombiner().front()),
      factor(factor), sharedType(sharedType), vectorWidth(vectorWidth),
      alignment(alignment), parts(*matchSumOfProducts(contract)) {
  vectorAxis =
      tile.isReduceContiguous(factor) ? tile.axes.k : tile.axes.space(factor);
  for (auto [input, memory] : llvm::enumerate(tile.inputs)) {
    bool isRead = llvm::any_of(
        parts.prologues[factor], [&, input = input](Operation *op) {
          return llvm::is_contained(op->getOperands(), argumentOf(input));
        });
    if (isRead)
      (isa<MemRefType>(memory.getType()) ? tensors : scalars).push_back(input);
  }
}

CopyConversion Prologue::conversion() const {
  CopyConversion result;
  result.sharedBytes = elementBytesOf(sharedType);
  // Casts of zero are zero.
  result.keepsZeros =
      llvm::all_of(parts.prologues[factor], llvm::IsaPred<CastOpInterface>);
  for (unsigned input : tensors)
    result.inputs.push_back(
        {typeOf(input), mapOf(input).isFunctionOfDim(tile.axes.k),
         [*this, input](Value space, Value reduce, const BatchPosition &batch) {
           return load(input, space, reduce, batch);
         }});
  result.compute = [*this](Value vector, ValueRange loaded) {
    return compute(vector, loaded);
  };
  return result;
}

/// What is kept of an input for a vector: one element where all have the same.
VectorType Prologue::typeOf(unsigned input) const {
  bool isSame = !mapOf(input).isFunctionOfDim(vectorAxis);
  return VectorType::get({isSame ? 1 : vectorWidth},
                         getElementTypeOrSelf(tile.inputs[input].getType()));
}

Value Prologue::load(unsigned input, Value space, Value reduce,
                     const BatchPosition &batch) const {
  IndexMath math(b);
  VectorType type = typeOf(input);
  Value memory = tile.inputs[input];
  if (!batch.empty())
    if (Value distance = tile.batchDistance(b, tile.inputNumbers[input], batch))
      memory = advanced(b, memory, distance);
  AffineMap map = mapOf(input);
  auto indices = [&](int64_t element) {
    Values result;
    for (AffineExpr position : map.getResults()) {
      unsigned axis = cast<AffineDimExpr>(position).getPosition();
      if (tile.axes.isBatch(axis))
        continue;
      Value index = axis == tile.axes.k ? reduce : space;
      result.push_back(axis == vectorAxis ? math.add(index, element) : index);
    }
    return result;
  };
  auto isInnermost = [&] {
    auto last = cast<AffineDimExpr>(map.getResults().back());
    return last.getPosition() == vectorAxis;
  };
  int64_t elements = type.getNumElements();
  if (elements > 1 && isInnermost()) {
    int64_t bytes = elements * elementBytesOf(type);
    return vector::LoadOp::create(b, type, memory, indices(0),
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(std::min(bytes, alignment)));
  }
  Values single;
  for (int64_t element = 0; element < elements; ++element)
    single.push_back(memref::LoadOp::create(b, memory, indices(element)));
  return vector::FromElementsOp::create(b, type, single);
}

/// A scalar, or the one element of a vector, for all elements of a vector.
Value Prologue::broadcast(Value value) const {
  if (auto type = dyn_cast<VectorType>(value.getType())) {
    if (type.getNumElements() == vectorWidth)
      return value;
    value = vector::ExtractOp::create(b, value, 0);
  }
  return vector::BroadcastOp::create(
      b, VectorType::get({vectorWidth}, value.getType()), value);
}

Value Prologue::compute(Value vector, ValueRange loaded) const {
  IRMapping mapping;
  mapping.map(contract.getArgument(factor), vector);
  for (auto [input, value] : llvm::zip_equal(tensors, loaded))
    mapping.map(argumentOf(input), broadcast(value));
  for (unsigned input : scalars)
    mapping.map(argumentOf(input), broadcast(tile.inputs[input]));
  for (Operation *op : parts.prologues[factor]) {
    clonePromoted(b, *op, mapping, vectorWidth);
    for (Value result : op->getResults())
      if (op->hasTrait<OpTrait::ConstantLike>())
        mapping.map(result, broadcast(mapping.lookup(result)));
  }
  Value product = parts.factors[factor];
  Value result =
      rounded(b, b.getLoc(), mapping.lookup(product), product.getType());
  auto type = cast<VectorType>(result.getType()).clone(sharedType);
  if (result.getType() == type)
    return result;
  // Exact: it undoes what the product's wider type added.
  if (isa<FloatType>(sharedType))
    return arith::TruncFOp::create(b, type, result);
  return arith::TruncIOp::create(b, type, result);
}

std::optional<CopyConversion>
ftuner::prologueOf(ImplicitLocOpBuilder &b, const ContractionTile &tile,
                   unsigned factor, Type sharedType, int64_t vectorWidth,
                   int64_t alignment) {
  Prologue prologue(b, tile, factor, sharedType, vectorWidth, alignment);
  if (prologue.isIdentity())
    return std::nullopt;
  return prologue.conversion();
}
