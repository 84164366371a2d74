//===- Signature.cpp - Functions as their callers see them ----------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Executor/Arguments.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace ftuner {

/// The element type that crosses the host ABI for an MLIR type.
static std::optional<DataType> getElementType(Type type) {
  if (type.isIndex())
    return DataType::I64;
  if (auto integer = dyn_cast<IntegerType>(type);
      integer && !integer.isSignless())
    return std::nullopt;
  std::string name;
  llvm::raw_string_ostream stream(name);
  type.print(stream);
  return parseDataType(name);
}

static FailureOr<SignatureType> convertType(FunctionOpInterface function,
                                            Type type, const Twine &what) {
  SignatureType result;
  Type element = type;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    result.isTensor = true;
    result.shape = llvm::to_vector(tensor.getShape());
    element = tensor.getElementType();
  }
  std::optional<DataType> elementType = getElementType(element);
  if (!elementType || (result.isTensor && element.isIndex()))
    return function.emitError("expected a ranked tensor or a scalar of a "
                              "supported type as ")
           << what << ", but got " << type;
  result.type = *elementType;
  return result;
}

/// Symbols of an argument's dimensions, from its attribute `ukernel.shape`.
static void readSymbols(FunctionOpInterface function, unsigned index,
                        SignatureType &type) {
  auto shape = function.getArgAttrOfType<ArrayAttr>(
      index, ukernel::UKernelDialect::kShapeAttrName);
  if (!shape || !type.isTensor || shape.size() != type.shape.size())
    return;
  for (Attribute size : shape) {
    auto symbol = dyn_cast<StringAttr>(size);
    type.symbols.push_back(symbol ? symbol.str() : std::string());
  }
}

FailureOr<Signature> getSignature(FunctionOpInterface function) {
  Signature signature;
  signature.name = function.getName().str();
  auto type = dyn_cast<FunctionType>(function.getFunctionType());
  if (auto original = function->getAttrOfType<TypeAttr>(
          ukernel::UKernelDialect::kAbiTypeAttrName))
    type = dyn_cast<FunctionType>(original.getValue());
  if (!type)
    return function.emitError("expected a function on tensors");
  for (auto [index, input] : llvm::enumerate(type.getInputs())) {
    FailureOr<SignatureType> argument =
        convertType(function, input, "argument " + Twine(index));
    if (failed(argument))
      return failure();
    readSymbols(function, index, *argument);
    signature.arguments.push_back(std::move(*argument));
  }
  for (auto [index, output] : llvm::enumerate(type.getResults())) {
    FailureOr<SignatureType> result =
        convertType(function, output, "result " + Twine(index));
    if (failed(result))
      return failure();
    if (!result->isTensor)
      return function.emitError("expected tensors as results, but got ")
             << output << " as result " << index;
    signature.results.push_back(std::move(*result));
  }
  return signature;
}

} // namespace ftuner
