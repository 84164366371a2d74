//===- EntryAttributeVerifiers.cpp - Rules of launch descriptors ----------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/TensorMap.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ftuner;
using namespace ftuner::ukernel;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Verifies tensor_map_c1, except for the number of strides.
static LogicalResult verifyExtents(EmitError emitError, StringRef subject,
                                   ArrayAttr extents) {
  for (Attribute extent : extents) {
    if (isa<StringAttr>(extent))
      continue;
    auto number = dyn_cast<IntegerAttr>(extent);
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return emitError() << "expected " << subject
                         << " that are names of parameters or numbers of at "
                            "least 0, but got "
                         << extent;
  }
  return success();
}

static TensorMapBox toBox(ArrayRef<int64_t> sizes, int64_t swizzleBytes,
                          int64_t l2PromotionBytes,
                          ArrayRef<int64_t> fitBelow) {
  TensorMapBox box;
  box.sizes.assign(sizes.begin(), sizes.end());
  box.swizzleBytes = swizzleBytes;
  box.l2PromotionBytes = l2PromotionBytes;
  box.fitBelow.assign(fitBelow.begin(), fitBelow.end());
  return box;
}

LogicalResult TensorMapAttr::verify(EmitError emitError, StringRef,
                                    ArrayAttr sizes, ArrayAttr strides,
                                    ArrayRef<int64_t> box, int64_t swizzleBytes,
                                    int64_t l2PromotionBytes,
                                    ArrayRef<int64_t> fitBelow) {
  if (failed(verifyExtents(emitError, "sizes", sizes)) ||
      failed(verifyExtents(emitError, "strides", strides)))
    return failure();
  if (sizes.size() != strides.size() + 1)
    return emitError() << "expected one stride less than sizes, but got "
                       << strides.size() << " and " << sizes.size();
  if (box.size() != sizes.size())
    return emitError() << "expected a box of " << sizes.size()
                       << " dimensions, but got one of " << box.size();
  if (llvm::Error error = checkTensorMapBox(
          ::toBox(box, swizzleBytes, l2PromotionBytes, fitBelow)))
    return emitError() << llvm::toString(std::move(error));
  return success();
}

TensorMapBox TensorMapAttr::toBox() const {
  return ::toBox(getBox(), getSwizzleBytes(), getL2PromotionBytes(),
                 getFitBelow());
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// entry_c4: one parameter; returns its kind.
static FailureOr<ParameterKind> verifyParameter(EmitError emitError,
                                                Attribute parameter) {
  auto fields = dyn_cast<DictionaryAttr>(parameter);
  auto name = fields ? fields.getAs<StringAttr>("kind") : nullptr;
  std::optional<ParameterKind> kind =
      name ? symbolizeParameterKind(name.getValue()) : std::nullopt;
  if (!kind)
    return emitError()
           << "expected parameters of kind pointer, size, stride, "
              "scalar, scalar_low, scalar_high, tensor_map or part, "
              "but got "
           << parameter;
  Attribute called = fields.get("name"), type = fields.get("type"),
            access = fields.get("access");
  if ((called && !isa<StringAttr>(called)) || (type && !isa<TypeAttr>(type)))
    return emitError() << "expected a parameter with a string as name and a "
                          "type, but got "
                       << parameter;
  if (access && !(isa<StringAttr>(access) &&
                  symbolizeParameterAccess(cast<StringAttr>(access))))
    return emitError() << "expected an access of read, write or readwrite, but "
                          "got "
                       << parameter;
  return *kind;
}

/// Returns the parameter of that kind and name; null if there is no such one.
static DictionaryAttr findParameter(ArrayAttr parameters, ParameterKind kind,
                                    StringRef name) {
  for (auto fields : parameters.getAsRange<DictionaryAttr>()) {
    auto called = fields.getAs<StringAttr>("name");
    if (called && called.getValue() == name &&
        fields.getAs<StringAttr>("kind").getValue() ==
            stringifyParameterKind(kind))
      return fields;
  }
  return {};
}

/// entry_c6: the names of a map.
static LogicalResult verifyNames(EmitError emitError, ArrayAttr parameters,
                                 ArrayAttr extents, ParameterKind kind) {
  for (Attribute extent : extents)
    if (auto name = dyn_cast<StringAttr>(extent))
      if (!findParameter(parameters, kind, name))
        return emitError() << "expected the name of a "
                           << stringifyParameterKind(kind)
                           << " in a tensor map, but got " << name;
  return success();
}

/// entry_c6: one parameter, of which entry_c4 holds, as it does of all.
static LogicalResult verifyTensorMap(EmitError emitError, ArrayAttr parameters,
                                     DictionaryAttr fields) {
  bool isMap = fields.getAs<StringAttr>("kind").getValue() ==
               stringifyParameterKind(ParameterKind::TensorMap);
  auto map = fields.getAs<TensorMapAttr>("map");
  if (!isMap && !fields.contains("map"))
    return success();
  if (!isMap || !map)
    return emitError() << "expected a tensor_map with a #ukernel.tensor_map as "
                          "map, but got "
                       << fields;
  auto type = fields.getAs<TypeAttr>("type");
  // Copies that round read f32.
  if (type && isa<FloatTF32Type>(type.getValue()))
    type = TypeAttr::get(Float32Type::get(fields.getContext()));
  unsigned bits = type && type.getValue().isIntOrFloat()
                      ? type.getValue().getIntOrFloatBitWidth()
                      : 0;
  if (bits < 8 || bits > 64 || !llvm::isPowerOf2_32(bits))
    return emitError() << "expected a tensor map of elements of 8, 16, 32 or "
                          "64 bits, but got "
                       << fields;
  DictionaryAttr pointer =
      findParameter(parameters, ParameterKind::Pointer, map.getPointer());
  if (!pointer || pointer.get("type") != type)
    return emitError() << "expected the name of a pointer to " << type
                       << " in a tensor map, but got '" << map.getPointer()
                       << "'";
  if (failed(verifyNames(emitError, parameters, map.getSizes(),
                         ParameterKind::Size)) ||
      failed(verifyNames(emitError, parameters, map.getStrides(),
                         ParameterKind::Stride)))
    return failure();
  if (llvm::Error error = checkTensorMapRows(map.toBox(), bits / 8))
    return emitError() << llvm::toString(std::move(error));
  return success();
}

LogicalResult EntryAttr::verify(EmitError emitError, int64_t threads,
                                int64_t sharedMemoryBytes, int64_t alignment,
                                ArrayAttr parameters, ArrayRef<UseAttr>) {
  if (threads < 1 || threads > 1024)
    return emitError() << "expected 1 to 1024 threads, but got " << threads;
  if (sharedMemoryBytes < 0)
    return emitError() << "expected shared memory of at least 0 bytes, but got "
                       << sharedMemoryBytes;
  if (alignment < 1 || !llvm::isPowerOf2_64(alignment))
    return emitError() << "expected alignment to be a power of two, but got "
                       << alignment;
  std::optional<ParameterKind> last;
  for (Attribute parameter : parameters) {
    FailureOr<ParameterKind> kind = verifyParameter(emitError, parameter);
    if (failed(kind))
      return failure();
    if ((last == ParameterKind::ScalarLow) !=
        (*kind == ParameterKind::ScalarHigh))
      return emitError()
             << "expected a scalar_high behind each scalar_low, and "
                "nowhere else, but got "
             << parameter;
    last = *kind;
  }
  if (last == ParameterKind::ScalarLow)
    return emitError() << "expected a scalar_high behind each scalar_low, but "
                          "got none";
  for (auto fields : parameters.getAsRange<DictionaryAttr>())
    if (failed(verifyTensorMap(emitError, parameters, fields)))
      return failure();
  return success();
}
