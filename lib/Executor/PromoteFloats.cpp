//===- PromoteFloats.cpp - All float arithmetic in f64 --------------------===//
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

LogicalResult promoteFloats(ModuleOp module) {
  if (failed(checkPromotable(module)))
    return failure();

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
