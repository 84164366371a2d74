//===- PromoteFloats.cpp - All float arithmetic in f64 --------------------===//
//
// A value that the program types narrower is computed in f64 and rounded to its
// type. For one addition, product, quotient or root of f32 and narrower types
// that is what the operation itself gives: f64 has more than twice their bits.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "Reference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;

namespace ftuner {

static bool isPromoted(Type type) {
  return type.isF16() || type.isBF16() || type.isF32();
}

static llvm::APFloat promote(llvm::APFloat value) {
  bool losesInfo = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value;
}

static DenseElementsAttr promote(DenseElementsAttr elements) {
  return cast<DenseFPElementsAttr>(elements).mapValues(
      Float64Type::get(elements.getContext()),
      llvm::function_ref<APInt(const llvm::APFloat &)>(
          [](const llvm::APFloat &value) {
            return promote(value).bitcastToAPInt();
          }));
}

/// Rejects what would change its meaning.
static LogicalResult checkPromotable(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) {
    if (isa<arith::BitcastOp, tensor::BitcastOp>(op) &&
        (isPromoted(getElementTypeOrSelf(op->getOperand(0).getType())) ||
         isPromoted(getElementTypeOrSelf(op->getResult(0).getType())))) {
      op->emitError("the reference promotes floats to f64, which changes the "
                    "meaning of a bitcast");
      return WalkResult::interrupt();
    }
    for (NamedAttribute attribute : op->getAttrs()) {
      auto resource = dyn_cast<DenseResourceElementsAttr>(attribute.getValue());
      if (resource && !resource.getRawHandle().getBlob()) {
        op->emitError("expected data for the resource '")
            << resource.getRawHandle().getKey() << "', but got none";
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
/// A value and the type that the program rounds it to.
struct Rounding {
  Value value;
  Type element;
};
} // namespace

/// The values that the program rounds to types that are promoted: those of
/// scalar operations, and what an operator accumulated when it is done.
static SmallVector<Rounding> collectRoundings(ModuleOp module) {
  SmallVector<Rounding> roundings;
  auto add = [&](Value value) {
    if (Type element = getElementTypeOrSelf(value.getType());
        isPromoted(element))
      roundings.push_back({value, element});
  };
  module.walk([&](Operation *op) {
    if (roundsResults(op))
      llvm::for_each(op->getResults(), add);
    if (auto structured = dyn_cast<linalg::LinalgOp>(op))
      for (OpResult result : op->getResults())
        if (accumulates(structured, result.getResultNumber()))
          add(result);
  });
  return roundings;
}

/// Rounds a promoted value for all its users.
static void round(const Rounding &rounding) {
  Value value = rounding.value;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Type type = value.getType(), narrow = rounding.element;
  if (auto shaped = dyn_cast<ShapedType>(type))
    narrow = shaped.clone(narrow);
  Location loc = value.getLoc();
  auto rounded = arith::TruncFOp::create(builder, loc, narrow, value);
  Value widened = arith::ExtFOp::create(builder, loc, type, rounded.getOut());
  value.replaceAllUsesExcept(widened, rounded);
}

LogicalResult promoteFloats(ModuleOp module) {
  if (failed(checkPromotable(module)))
    return failure();
  SmallVector<Rounding> roundings = collectRoundings(module);

  Type f64 = Float64Type::get(module.getContext());
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FloatType type) -> Type {
    return isPromoted(type) ? f64 : Type(type);
  });
  replacer.addReplacement(
      [&](FloatAttr value) -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!isPromoted(value.getType()))
          return std::nullopt;
        return {{FloatAttr::get(f64, promote(value.getValue())),
                 WalkResult::skip()}};
      });
  replacer.addReplacement(
      [&](DenseElementsAttr elements)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!isPromoted(elements.getElementType()))
          return std::nullopt;
        return {{promote(elements), WalkResult::skip()}};
      });
  replacer.addReplacement(
      [&](DenseResourceElementsAttr resource)
          -> std::optional<std::pair<Attribute, WalkResult>> {
        if (!isPromoted(resource.getType().getElementType()))
          return std::nullopt;
        DenseElementsAttr elements = DenseElementsAttr::getFromRawBuffer(
            resource.getType(), resource.getRawHandle().getBlob()->getData());
        return {{promote(elements), WalkResult::skip()}};
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);

  llvm::for_each(roundings, round);
  module.walk([](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  });
  return verify(module);
}

} // namespace ftuner
