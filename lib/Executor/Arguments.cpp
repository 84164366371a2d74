//===- Arguments.cpp - Arguments of a run ---------------------------------===//
#include "FTuner/Executor/Arguments.h"
#include "FTuner/Executor/Npy.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace llvm;

namespace ftuner {

namespace {
/// One item of the text.
struct Item {
  StringRef text;
  bool isTensor = false;
  DataType type = DataType::F32;
  SmallVector<int64_t> shape;
  StringRef file;
};
} // namespace

static Error argumentError(unsigned index, const Twine &what) {
  return createStringError(inconvertibleErrorCode(),
                           "argument " + Twine(index) + ": " + what);
}

/// Whether the text is a tensor type; sizes must be numbers.
static bool parseTensorType(StringRef text, Item &item) {
  SmallVector<StringRef> parts;
  text.split(parts, 'x');
  std::optional<DataType> type = parseDataType(parts.pop_back_val());
  if (!type)
    return false;
  item.type = *type;
  for (StringRef part : parts) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 0)
      return false;
    item.shape.push_back(size);
  }
  return true;
}

static Expected<Item> parseItem(unsigned index, StringRef text) {
  Item item;
  item.text = text;
  auto [type, file] = text.split('@');
  item.isTensor = parseTensorType(type.trim(), item);
  item.file = file;
  double number = 0;
  bool hasFile = text.contains('@');
  if (!item.isTensor && (hasFile || text.getAsDouble(number)))
    return argumentError(index,
                         "expected a tensor type such as '53x768xf32', a "
                         "number, or 'TYPE@FILE.npy', but got '" +
                             text + "'");
  if (hasFile && file.empty())
    return argumentError(index, "expected a file after '@' in '" + text + "'");
  return item;
}

/// E.g. "?x768xf32".
static std::string toString(const SignatureType &type) {
  std::string text;
  if (type.isTensor)
    for (int64_t size : type.shape)
      text += (mlir::ShapedType::isDynamic(size) ? "?" : std::to_string(size)) +
              "x";
  return text + getName(type.type).str();
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Reads an integer that fits the type, signed or unsigned.
static bool parseInteger(StringRef text, unsigned width, uint64_t &bits) {
  text.consume_front("+");
  bool negative = text.consume_front("-");
  APInt value;
  if (text.empty() || text.getAsInteger(10, value))
    return false;
  value = value.zextOrTrunc(std::max(value.getBitWidth(), width) + 1);
  if (negative)
    value.negate();
  // i1 is 0 or 1.
  bool fits = value.isIntN(width) || (width > 1 && value.isSignedIntN(width));
  bits = fits ? value.trunc(width).getZExtValue() : 0;
  return fits;
}

static const fltSemantics &getFloatSemantics(DataType type) {
  switch (type) {
  case DataType::F16:
    return APFloat::IEEEhalf();
  case DataType::BF16:
    return APFloat::BFloat();
  case DataType::F32:
    return APFloat::IEEEsingle();
  default:
    return APFloat::IEEEdouble();
  }
}

/// Reads a number, rounded to the type; one beyond its range does not fit.
static bool parseFloat(StringRef text, DataType type, uint64_t &bits) {
  text.consume_front("+");
  APFloat value(getFloatSemantics(type));
  Expected<APFloat::opStatus> status =
      value.convertFromString(text, APFloat::rmNearestTiesToEven);
  if (!status) {
    consumeError(status.takeError());
    return false;
  }
  bits = value.bitcastToAPInt().getZExtValue();
  return !(*status & APFloat::opOverflow);
}

static Expected<ArgumentValue> bindScalar(unsigned index, const Item &item,
                                          const SignatureType &type) {
  if (item.isTensor)
    return argumentError(index, "expected a number for a scalar of type " +
                                    toString(type) + ", but got '" + item.text +
                                    "'");
  ArgumentValue value;
  value.scalarType = type.type;
  unsigned width =
      type.type == DataType::I1 ? 1 : 8 * getByteSize(type.type);
  bool fits = isFloat(type.type)
                  ? parseFloat(item.text, type.type, value.scalarBits)
                  : parseInteger(item.text, width, value.scalarBits);
  if (!fits)
    return argumentError(index, "expected a number that fits " +
                                    toString(type) + ", but got '" + item.text +
                                    "'");
  return value;
}

double ArgumentValue::getScalarDouble() const {
  APFloat value(getFloatSemantics(scalarType),
                APInt(8 * getByteSize(scalarType), scalarBits));
  bool losesInfo = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                &losesInfo);
  return value.convertToDouble();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Where a symbol got its size.
struct SymbolSize {
  int64_t size = 0;
  unsigned argument = 0;
};

static Error checkTensor(unsigned index, const Item &item,
                         const SignatureType &type,
                         StringMap<SymbolSize> &symbols) {
  auto mismatch = [&] {
    return argumentError(index, "expected a tensor of type " + toString(type) +
                                    ", but got '" + item.text + "'");
  };
  if (!item.isTensor || item.type != type.type ||
      item.shape.size() != type.shape.size())
    return mismatch();
  for (auto [dim, size] : enumerate(item.shape)) {
    if (!mlir::ShapedType::isDynamic(type.shape[dim]) &&
        type.shape[dim] != size)
      return mismatch();
    if (type.symbols.empty() || type.symbols[dim].empty())
      continue;
    auto [known, isNew] =
        symbols.try_emplace(type.symbols[dim], SymbolSize{size, index});
    if (!isNew && known->second.size != size)
      return argumentError(index, "expected size " + Twine(known->second.size) +
                                      " of dimension " + Twine(dim) +
                                      " (symbol '" + type.symbols[dim] +
                                      "', as in argument " +
                                      Twine(known->second.argument) +
                                      "), but got " + Twine(size));
  }
  return Error::success();
}

static Expected<ArgumentValue> bindTensor(unsigned index, const Item &item,
                                          const ArgumentOptions &options) {
  ArgumentValue value;
  value.isTensor = true;
  int64_t offset = alignTo(options.offset, getByteSize(item.type));
  Expected<Tensor> tensor =
      item.file.empty() ? Tensor::create(item.type, item.shape, offset)
                        : readNpy(item.file, item.type, item.shape, offset);
  if (!tensor)
    return argumentError(index, toString(tensor.takeError()));
  value.tensor = std::move(*tensor);
  if (item.file.empty())
    fillRandom(value.tensor, options.seed, index);
  return value;
}

static Expected<SmallVector<Item>> parseItems(StringRef text,
                                              const Signature &signature) {
  SmallVector<StringRef> parts;
  if (!text.trim().empty())
    text.split(parts, ',');
  if (parts.size() != signature.arguments.size())
    return createStringError(inconvertibleErrorCode(),
                             "expected " + Twine(signature.arguments.size()) +
                                 " arguments for function '" + signature.name +
                                 "', but got " + Twine(parts.size()));
  SmallVector<Item> items;
  StringMap<SymbolSize> symbols;
  for (auto [index, part] : enumerate(parts)) {
    Expected<Item> item = parseItem(index, part.trim());
    if (!item)
      return item.takeError();
    const SignatureType &type = signature.arguments[index];
    if (type.isTensor) {
      if (Error error = checkTensor(index, *item, type, symbols))
        return error;
    } else {
      Expected<ArgumentValue> value = bindScalar(index, *item, type);
      if (!value)
        return value.takeError();
    }
    items.push_back(std::move(*item));
  }
  return items;
}

Error checkArguments(StringRef text, const Signature &signature) {
  return parseItems(text, signature).takeError();
}

Expected<std::vector<ArgumentValue>>
parseArguments(StringRef text, const Signature &signature,
               const ArgumentOptions &options) {
  Expected<SmallVector<Item>> items = parseItems(text, signature);
  if (!items)
    return items.takeError();
  std::vector<ArgumentValue> values;
  for (auto [index, item] : enumerate(*items)) {
    const SignatureType &type = signature.arguments[index];
    Expected<ArgumentValue> value = type.isTensor
                                        ? bindTensor(index, item, options)
                                        : bindScalar(index, item, type);
    if (!value)
      return value.takeError();
    values.push_back(std::move(*value));
  }
  return values;
}

AbiValues getAbiValues(const Signature &signature,
                       ArrayRef<ArgumentValue> arguments) {
  AbiValues values;
  for (auto [type, argument] : zip_equal(signature.arguments, arguments)) {
    if (!type.isTensor) {
      values.scalars.push_back(argument.scalarBits);
      continue;
    }
    for (auto [declared, size] :
         zip_equal(type.shape, argument.tensor.getShape()))
      if (mlir::ShapedType::isDynamic(declared))
        values.sizes.push_back(size);
  }
  return values;
}

} // namespace ftuner
