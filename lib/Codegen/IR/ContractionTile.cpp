//===- ContractionTile.cpp - The tile of a contraction --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/Schedule/Alignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
      axes(family.contractionAxes()) {
  for (auto [number, operand] : llvm::enumerate(operands)) {
    AffineMap map = ukernel::axisMapOf(op, number);
    switch (op.getOperandRole(number)) {
    case OperandRole::Lhs:
      lhs = operand;
      lhsMap = map;
      break;
    case OperandRole::Rhs:
      rhs = operand;
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

bool ContractionTile::hasVectorEpilogue() const {
  if (!ftuner::hasVectorEpilogue(op))
    return false;
  // The alignment of factors says what that of the program's output is, not of
  // the sums of slices, which may be wider.
  int64_t columns = ukernel::OperatorOpInterface(op).getStaticExtents()[axes.n];
  int64_t sumBytes = elementBytesOf(output.getType());
  return family.reduceSplit == 1 || ShapedType::isDynamic(columns) ||
         columns * sumBytes % widestAccessBytes == 0;
}

Value ContractionTile::scalarStart(ImplicitLocOpBuilder &b,
                                   Type accumulatorType) const {
  if (!init || isa<MemRefType>(init.getType()))
    return {};
  if (init.getType() == accumulatorType)
    return init;
  return arith::ExtFOp::create(b, accumulatorType, init);
}
