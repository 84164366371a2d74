//===- ConvolutionOp.cpp - A convolution of images as a product -----------===//
#include "TestOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::test;

//===----------------------------------------------------------------------===//
// The iteration space
//===----------------------------------------------------------------------===//

/// Axes, and the loops of m and k, as dimensions of the maps.
enum Dim : unsigned { M, N, K, Image, P, Q, R, S, C, kNumDims };

SmallVector<utils::IteratorType> ConvolutionOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          utils::IteratorType::reduction};
}

StringRef ConvolutionOp::getAxisName(unsigned axis) {
  static constexpr StringLiteral names[] = {"m", "n", "k"};
  return names[axis];
}

SmallVector<ukernel::FusedLoop> ConvolutionOp::getFusedLoops() {
  return {{M, "image"}, {M, "p"}, {M, "q"}, {K, "r"}, {K, "s"}, {K, "c"}};
}

OperandRole ConvolutionOp::getOperandRole(unsigned number) {
  if (number < 2)
    return number == 0 ? OperandRole::Lhs : OperandRole::Rhs;
  if (number + 1 == (*this)->getNumOperands())
    return OperandRole::Output;
  return number == 2 && getInit() ? OperandRole::Init : OperandRole::Extra;
}

std::optional<Identity> ConvolutionOp::getOutside(unsigned number) {
  return number == 0 ? std::optional(Identity::Zero) : std::nullopt;
}

ArrayAttr ConvolutionOp::getIndexingMaps() {
  auto dim = [&](unsigned number) {
    return getAffineDimExpr(number, getContext());
  };
  auto map = [&](ArrayRef<AffineExpr> positions) {
    return AffineMap::get(kNumDims, 0, positions, getContext());
  };
  auto window = [&](Dim out, Dim tap, unsigned number) {
    return dim(out) * getStrides()[number] + dim(tap) * getDilations()[number] -
           getPadding()[number];
  };
  SmallVector<AffineMap> maps = {
      map({dim(Image), window(P, R, 0), window(Q, S, 1), dim(C)}),
      getHwcf() ? map({dim(R), dim(S), dim(C), dim(N)})
                : map({dim(N), dim(R), dim(S), dim(C)})};
  if (getInit())
    maps.push_back(map({}));
  if (getBias())
    maps.push_back(map({dim(N)}));
  maps.push_back(map({dim(Image), dim(P), dim(Q), dim(N)}));
  return Builder(getContext()).getAffineMapArrayAttr(maps);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult ConvolutionOp::verify() {
  for (auto [what, values, least] : {std::tuple("strides", getStrides(), 1),
                                     {"dilations", getDilations(), 1},
                                     {"padding", getPadding(), 0}})
    if (values.size() != 2 ||
        !llvm::all_of(
            values, [least = least](int64_t value) { return value >= least; }))
      return emitOpError("expected two ") << what << " of at least " << least
                                          << ", but got [" << values << "]";
  auto image = cast<ShapedType>(getImage().getType()),
       filter = cast<ShapedType>(getFilter().getType()),
       output = cast<ShapedType>(getOutput().getType());
  for (ShapedType type : {image, filter, output})
    if (!type.hasRank() || type.getRank() != 4)
      return emitOpError("expected images, filters and outputs of 4 "
                         "dimensions, but got ")
             << type;
  auto expectEqual = [&](const Twine &what, int64_t a, int64_t b) {
    if (ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b)
      return success();
    emitOpError("expected as many ")
        << what << ", but got " << a << " and " << b;
    return failure();
  };
  unsigned firstTap = getHwcf() ? 0 : 1;
  if (failed(
          expectEqual("images", image.getDimSize(0), output.getDimSize(0))) ||
      failed(expectEqual("channels", image.getDimSize(3),
                         filter.getDimSize(firstTap + 2))) ||
      failed(expectEqual("filters", filter.getDimSize(getHwcf() ? 3 : 0),
                         output.getDimSize(3))))
    return failure();
  for (unsigned number : {0, 1}) {
    int64_t size = image.getDimSize(1 + number),
            taps = filter.getDimSize(firstTap + number);
    if (ShapedType::isDynamic(size) || ShapedType::isDynamic(taps))
      continue;
    int64_t room = size + 2 * getPadding()[number] -
                   getDilations()[number] * (taps - 1) - 1;
    int64_t positions = room < 0 ? 0 : room / getStrides()[number] + 1;
    if (failed(expectEqual("positions of windows along dimension " +
                               Twine(1 + number),
                           positions, output.getDimSize(1 + number))))
      return failure();
  }
  if (getBias() && cast<ShapedType>(getBias().getType()).getRank() != 1)
    return emitOpError("expected a bias of one dimension, but got ")
           << getBias().getType();
  return success();
}

LogicalResult ConvolutionOp::verifyRegions() {
  auto elementOf = [](Value value) {
    return getElementTypeOrSelf(value.getType());
  };
  Type accumulator = getAccumulatorType(), element = elementOf(getOutput());
  if (failed(ukernel::verifyScalarRegion(
          *this, getCombiner(), "combiner",
          {elementOf(getImage()), elementOf(getFilter()), accumulator},
          accumulator)))
    return failure();
  if (!hasEpilogue()) {
    if (getBias() || accumulator != element)
      return emitOpError("expected an epilogue for a bias, and from ")
             << accumulator << " to " << element;
    return success();
  }
  SmallVector<Type> arguments = {accumulator};
  if (getBias())
    arguments.push_back(elementOf(getBias()));
  return ukernel::verifyScalarRegion(*this, getEpilogue(), "epilogue",
                                     arguments, element);
}

LogicalResult ConvolutionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return ukernel::verifyPlanUse(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void ConvolutionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  ukernel::getOperatorEffects(*this, effects);
}

LogicalResult
ConvolutionOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return ukernel::reifyOutputShapes(*this, builder, shapes);
}

Operation *ConvolutionOp::buildSlice(OpBuilder &builder, ValueRange states) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Type type = getAccumulatorType();
  Value zero = arith::ConstantOp::create(b, type, b.getZeroAttr(type));
  auto slice = ConvolutionOp::create(
      b, TypeRange(), getImage(), getFilter(), zero, /*bias=*/Value(),
      states.front(), getStridesAttr(), getDilationsAttr(), getPaddingAttr(),
      getHwcfAttr(), /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr(),
      /*epiloguesCount=*/0);
  IRMapping mapping;
  getCombiner().cloneInto(&slice.getCombiner(), mapping);
  return slice;
}
