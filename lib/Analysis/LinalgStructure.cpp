//===- LinalgStructure.cpp - Structure of linalg operators ----------------===//
#include "FTuner/Analysis/LinalgStructure.h"

#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"

using namespace mlir;
using namespace ftuner;

std::optional<Contraction> ftuner::matchContraction(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
    return std::nullopt;
  return matchLoops(op);
}

std::optional<Contraction> ftuner::matchLoops(linalg::LinalgOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!llvm::all_of(maps,
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  Contraction result;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    bool inLhs = maps[0].isFunctionOfDim(loop);
    bool inRhs = maps[1].isFunctionOfDim(loop);
    bool inOut = maps[2].isFunctionOfDim(loop);
    bool isReduction = linalg::isReductionIterator(iterators[loop]);
    if (inOut == isReduction)
      return std::nullopt;
    if (inLhs && inRhs)
      (inOut ? result.batch : result.k).push_back(loop);
    else if (inLhs && inOut)
      result.m.push_back(loop);
    else if (inRhs && inOut)
      result.n.push_back(loop);
    else
      return std::nullopt;
  }
  return result;
}

bool ftuner::isWindow(AffineExpr position, unsigned numLoops) {
  if (isa<AffineDimExpr>(position))
    return true;
  SmallVector<int64_t> coefficients;
  if (failed(getFlattenedAffineExpr(position, numLoops, /*numSymbols=*/0,
                                    &coefficients)) ||
      coefficients.size() != numLoops + 1)
    return false;
  auto ofLoops = ArrayRef(coefficients).drop_back();
  return llvm::all_of(ofLoops, [](int64_t one) { return one >= 0; }) &&
         llvm::any_of(ofLoops, [](int64_t one) { return one > 0; });
}

std::optional<Convolution> ftuner::matchConvolution(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !isSumOfProducts(op))
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!maps[2].isProjectedPermutation() ||
      maps[0].isProjectedPermutation() == maps[1].isProjectedPermutation())
    return std::nullopt;
  Convolution result;
  result.image = maps[0].isProjectedPermutation();
  AffineMap image = maps[result.image], filter = maps[1 - result.image];
  if (!llvm::all_of(image.getResults(), [&](AffineExpr position) {
        return isWindow(position, op.getNumLoops());
      }))
    return std::nullopt;
  // In a diagonal one loop is two dimensions.
  llvm::SmallDenseSet<AffineExpr> plain;
  for (AffineExpr position : image.getResults())
    if (isa<AffineDimExpr>(position) && !plain.insert(position).second)
      return std::nullopt;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    bool inImage = image.isFunctionOfDim(loop),
         inFilter = filter.isFunctionOfDim(loop),
         inOut = maps[2].isFunctionOfDim(loop);
    if (inOut == linalg::isReductionIterator(iterators[loop]))
      return std::nullopt;
    if (inImage && inFilter)
      (inOut ? result.groups : result.sums).push_back(loop);
    else if (inImage && inOut)
      result.pixels.push_back(loop);
    else if (inFilter && inOut)
      result.filters.push_back(loop);
    else
      return std::nullopt;
  }
  if (result.pixels.empty() || result.filters.empty() || result.sums.empty())
    return std::nullopt;
  return result;
}

bool ftuner::isProduct(linalg::LinalgOp op) {
  return matchContraction(op) || matchConvolution(op);
}

tensor::PadOp ftuner::paddingOf(Value tensor) {
  auto pad = tensor.getDefiningOp<tensor::PadOp>();
  return pad && pad.getConstantPaddingValue() ? pad : tensor::PadOp();
}

bool ftuner::hasOuterValue(tensor::PadOp pad) {
  return pad.getConstantPaddingValue().getParentRegion() != &pad.getRegion();
}

bool ftuner::canReadSource(tensor::PadOp pad, AffineMap map) {
  return llvm::all_of(llvm::zip_equal(pad.getMixedLowPad(),
                                      pad.getMixedHighPad(), map.getResults()),
                      [](auto dimension) {
                        auto [low, high, position] = dimension;
                        bool isPadded =
                            !isZeroInteger(low) || !isZeroInteger(high);
                        bool isPlain =
                            isa<AffineDimExpr, AffineConstantExpr>(position);
                        return getConstantIntValue(low).value_or(-1) >= 0 &&
                               !(isPadded && isPlain);
                      });
}

AffineMap ftuner::mapOfSource(tensor::PadOp pad, AffineMap map) {
  SmallVector<AffineExpr> positions;
  for (auto [position, low] :
       llvm::zip_equal(map.getResults(), pad.getMixedLowPad()))
    positions.push_back(position - *getConstantIntValue(low));
  return AffineMap::get(map.getNumDims(), 0, positions, map.getContext());
}

std::optional<ProjectedCopy> ftuner::matchExactCopy(Operation *operation) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(operation);
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumParallelLoops() != op.getNumLoops())
    return std::nullopt;
  Block &body = *op.getBlock();
  Operation *cast = nullptr;
  Value result = body.back().getOperand(0);
  if (Operation *computed = result.getDefiningOp();
      computed && computed->getBlock() == &body && isExactCast(computed)) {
    cast = computed;
    result = cast->getOperand(0);
  }
  if (result != body.getArgument(0) ||
      body.getOperations().size() != (cast ? 2 : 1))
    return std::nullopt;
  OpOperand *input = op.getDpsInputOperand(0);
  if (!isa<RankedTensorType>(input->get().getType()))
    return std::nullopt;
  AffineMap inputMap = op.getMatchingIndexingMap(input);
  AffineMap outputMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (!inputMap.isProjectedPermutation() || !outputMap.isPermutation())
    return std::nullopt;
  return ProjectedCopy{input->get(),
                       inputMap.compose(inversePermutation(outputMap)), cast};
}

std::optional<ProjectedCopy> ftuner::matchProjectedCopy(Operation *operation) {
  std::optional<ProjectedCopy> copy = matchExactCopy(operation);
  if (copy && copy->cast)
    return std::nullopt;
  return copy;
}

Value ftuner::matchFill(Value tensor) {
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return fill.value();
  return {};
}
