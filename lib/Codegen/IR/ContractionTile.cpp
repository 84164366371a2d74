//===- ContractionTile.cpp - The tile of a contraction --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/Arithmetic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner;

bool ftuner::startsAtSlice(const Operand &operand) {
  return !operand.outside &&
         llvm::none_of(operand.windows, [](const AffineForm &form) {
           return llvm::any_of(form.terms, [](const AffineForm::Term &term) {
             return term.loop != AffineForm::Term::wholeAxis;
           });
         });
}

LogicalResult ContractionTile::check(ukernel::OperatorOpInterface op) {
  auto reduction = dyn_cast<ukernel::ReductionOpInterface>(op.getOperation());
  if (reduction && matchSumOfProducts(reduction.getCombiner().front()))
    return success();
  return op->emitOpError("expected a combiner that adds the product of two "
                         "factors to its accumulator");
}

ContractionTile::ContractionTile(const TileEmission &tile)
    : TileEmission(tile),
      reduction(cast<ukernel::ReductionOpInterface>(op.getOperation())),
      axes(family.contractionAxes()), firstStored(extents.size()) {
  for (auto [number, operand] : llvm::enumerate(operands)) {
    AffineMap map = ukernel::axisMapOf(op, number);
    switch (op.getOperandRole(number)) {
    case OperandRole::Lhs:
      lhs = operand;
      lhsNumber = number;
      lhsMap = map;
      break;
    case OperandRole::Rhs:
      rhs = operand;
      rhsNumber = number;
      rhsMap = map;
      break;
    case OperandRole::Init:
      init = operand;
      initMap = map;
      break;
    case OperandRole::Extra:
      extras.push_back(operand);
      extraMaps.push_back(map);
      break;
    case OperandRole::Output:
      output = operand;
      outputMap = map;
      break;
    case OperandRole::Input:
      inputs.push_back(operand);
      inputNumbers.push_back(number);
      inputMaps.push_back(map);
      break;
    }
  }
}

bool ContractionTile::isReduceContiguous(unsigned factor) const {
  AffineMap map = factor == 0 ? lhsMap : rhsMap;
  if (!map)
    return view().factor(factor).contiguousAxis() == axes.k;
  return cast<AffineDimExpr>(map.getResults().back()).getPosition() == axes.k;
}

//===----------------------------------------------------------------------===//
// Elements of batch axes
//===----------------------------------------------------------------------===//

Value ftuner::advanced(ImplicitLocOpBuilder &b, Value memref, Value elements) {
  auto type = cast<MemRefType>(memref.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  auto [strides, offset] = type.getStridesAndOffset();
  Value start = IndexMath(b).add(metadata.getOffset(), elements);
  auto moved = MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides),
      type.getMemorySpace());
  return memref::ReinterpretCastOp::create(
      b, moved, metadata.getBaseBuffer(), OpFoldResult(start),
      metadata.getConstifiedMixedSizes(), metadata.getConstifiedMixedStrides());
}

Value ContractionTile::batchDistance(ImplicitLocOpBuilder &b, unsigned operand,
                                     const BatchPosition &position) const {
  IndexMath math(b);
  Value distance;
  for (auto [side, along] : llvm::zip_equal(batchTile().sides, position)) {
    Value stride = batchStrides[operand][side.axis];
    if (!along || !stride)
      continue;
    Value more = math.mul(*along, stride);
    distance = distance ? math.add(distance, more) : more;
  }
  return distance;
}

Value ContractionTile::isInsideBatch(ImplicitLocOpBuilder &b,
                                     const BatchPosition &position) const {
  IndexMath math(b);
  Value inside;
  for (auto [side, along] : llvm::zip_equal(batchTile().sides, position)) {
    if (!along || exact[side.axis])
      continue;
    Value reached = math.less(math.add(batchOffsets[side.axis], *along),
                              extents[side.axis]);
    inside = inside ? arith::AndIOp::create(b, inside, reached).getResult()
                    : reached;
  }
  return inside;
}

BatchPosition
ContractionTile::clampedBatch(ImplicitLocOpBuilder &b,
                              const BatchPosition &position) const {
  IndexMath math(b);
  BatchPosition clamped = position;
  for (auto [side, along] : llvm::zip_equal(batchTile().sides, clamped)) {
    if (!along || exact[side.axis])
      continue;
    Value left =
        arith::SubIOp::create(b, extents[side.axis], batchOffsets[side.axis]);
    along = math.minimum(*along, math.sub(left, 1));
  }
  return clamped;
}

ContractionTile ContractionTile::atBatch(ImplicitLocOpBuilder &b,
                                         const BatchPosition &position) const {
  TileEmission moved = *this;
  for (auto [number, operand] : llvm::enumerate(moved.operands))
    if (Value distance = batchDistance(b, number, position))
      operand = advanced(b, operand, distance);
  return ContractionTile(moved);
}

bool ContractionTile::hasVectorEpilogue() const {
  if (!ftuner::hasVectorEpilogue(*described))
    return false;
  // The alignment of factors says what that of the program's output is, not of
  // the sums of slices, which may be wider.
  int64_t columns = ukernel::OperatorOpInterface(op).getStaticExtents()[axes.n];
  int64_t sumBytes = elementBytesOf(output.getType());
  return family.reduceSplit == 1 || ShapedType::isDynamic(columns) ||
         columns * sumBytes % widestAccessBytes == 0;
}

bool ContractionTile::hasPaddedSteps(unsigned factor) const {
  return described->operands[factorNumber(factor)].isPitched &&
         isReduceContiguous(factor);
}

Value ContractionTile::storedColumns(ImplicitLocOpBuilder &b,
                                     int64_t elements) const {
  Value columns = extents[axes.n];
  if (elements <= 1 || !described->find(OperandRole::Output)->isPitched)
    return columns;
  IndexMath math(b);
  return math.mul(ceilDiv(math, columns, elements), elements);
}

Value ContractionTile::scalarStart(ImplicitLocOpBuilder &b,
                                   Type accumulatorType) const {
  if (!init || isa<MemRefType>(init.getType()))
    return {};
  if (init.getType() == accumulatorType)
    return init;
  return arith::ExtFOp::create(b, accumulatorType, init);
}
