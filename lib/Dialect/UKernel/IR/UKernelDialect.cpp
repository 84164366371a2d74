//===- UKernelDialect.cpp - The ukernel dialect ---------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace ftuner::ukernel;

#include "FTuner/Dialect/UKernel/IR/UKernelDialect.cpp.inc"

void UKernelDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "FTuner/Dialect/UKernel/IR/UKernelOps.cpp.inc"
      >();
  declarePromisedInterfaces<bufferization::BufferizableOpInterface, PointwiseOp,
                            RowReductionOp, WorkloadOp>();
}

/// dialect_c1 to dialect_c3 for one argument.
static LogicalResult verifyShape(Operation *op, unsigned index, Type type,
                                 Attribute attribute) {
  auto emitError = [&] {
    return op->emitOpError() << "argument " << index << ": '"
                             << UKernelDialect::kShapeAttrName << "' ";
  };
  auto entries = dyn_cast<ArrayAttr>(attribute);
  if (!entries)
    return emitError() << "expected an array, but got " << attribute;
  for (Attribute entry : entries) {
    auto symbol = dyn_cast<StringAttr>(entry);
    auto size = dyn_cast<IntegerAttr>(entry);
    if (!(symbol && !symbol.empty()) &&
        !(size && !size.getValue().isNegative() &&
          size.getValue().getSignificantBits() <= 64))
      return emitError() << "expected names of symbols and non-negative sizes, "
                            "but got "
                         << entry;
  }
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return emitError() << "expected an argument with a ranked shape, but got "
                       << type;
  if (static_cast<int64_t>(entries.size()) != shaped.getRank())
    return emitError() << "expected one entry for each of " << shaped.getRank()
                       << " dimensions, but got " << entries.size();
  for (auto [dim, entry] : llvm::enumerate(entries)) {
    auto size = dyn_cast<IntegerAttr>(entry);
    if (!size)
      continue;
    if (shaped.isDynamicDim(dim))
      return emitError() << "expected the name of a symbol for dynamic "
                            "dimension "
                         << dim << ", but got "
                         << size.getValue().getSExtValue();
    if (shaped.getDimSize(dim) != size.getValue().getSExtValue())
      return emitError() << "expected " << shaped.getDimSize(dim)
                         << " for dimension " << dim << ", but got "
                         << size.getValue().getSExtValue();
  }
  return success();
}

/// dialect_c4: the argument against those before it (and itself).
static LogicalResult verifySymbolSizes(FunctionOpInterface function,
                                       unsigned index) {
  llvm::StringMap<int64_t> sizes;
  for (unsigned i = 0; i <= index; ++i) {
    auto entries =
        function.getArgAttrOfType<ArrayAttr>(i, UKernelDialect::kShapeAttrName);
    auto shaped = dyn_cast<ShapedType>(function.getArgumentTypes()[i]);
    if (!entries || !shaped || !shaped.hasRank() ||
        static_cast<int64_t>(entries.size()) != shaped.getRank())
      continue;
    for (auto [dim, entry] : llvm::enumerate(entries)) {
      auto symbol = dyn_cast<StringAttr>(entry);
      if (!symbol || shaped.isDynamicDim(dim))
        continue;
      int64_t size = shaped.getDimSize(dim);
      auto [known, inserted] = sizes.try_emplace(symbol.getValue(), size);
      if (!inserted && known->second != size && i == index)
        return function->emitOpError()
               << "argument " << i << ": '" << UKernelDialect::kShapeAttrName
               << "' expected symbol '" << symbol.getValue() << "' to be "
               << known->second << " everywhere, but got " << size
               << " for dimension " << dim;
    }
  }
  return success();
}

LogicalResult
UKernelDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                         unsigned argIndex,
                                         NamedAttribute attribute) {
  if (attribute.getName() != kShapeAttrName)
    return op->emitOpError()
           << "argument " << argIndex << ": unknown attribute '"
           << attribute.getName().getValue() << "'";
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError()
           << "expected '" << kShapeAttrName << "' on arguments of functions";
  Type type = function.getArgumentTypes()[argIndex];
  // A lowered function keeps the attribute, but no shapes to hold it against.
  if (!isa<BuiltinDialect>(type.getDialect()))
    return success();
  if (failed(verifyShape(op, argIndex, type, attribute.getValue())))
    return failure();
  return verifySymbolSizes(function, argIndex);
}

/// dialect_c5.
static LogicalResult verifySymbols(Operation *op, Attribute attribute) {
  auto symbols = dyn_cast<DictionaryAttr>(attribute);
  if (!symbols)
    return op->emitOpError()
           << "'" << UKernelDialect::kSymbolsAttrName
           << "' expected a dictionary of ranges, but got " << attribute;
  for (NamedAttribute symbol : symbols)
    if (!isa<RangeAttr>(symbol.getValue()))
      return op->emitOpError() << "'" << UKernelDialect::kSymbolsAttrName
                               << "' expected a #ukernel.range for symbol '"
                               << symbol.getName().getValue() << "', but got "
                               << symbol.getValue();
  return success();
}

/// Verifies dialect_c10, except for the number of entries.
static LogicalResult verifyExtents(Operation *op, Attribute attribute) {
  auto emitError = [&] {
    return op->emitOpError()
           << "'" << UKernelDialect::kExtentsAttrName << "' expected ";
  };
  auto extents = dyn_cast<ArrayAttr>(attribute);
  if (!extents)
    return emitError() << "an array, but got " << attribute;
  for (Attribute entry : extents) {
    if (isa<UnitAttr>(entry))
      continue;
    auto product = dyn_cast<ArrayAttr>(entry);
    auto factor = product && product.size() > 1
                      ? dyn_cast<IntegerAttr>(product[0])
                      : IntegerAttr();
    bool isPositive = factor && factor.getValue().isStrictlyPositive() &&
                      factor.getValue().getSignificantBits() <= 64;
    if (!isPositive ||
        !llvm::all_of(product.getValue().drop_front(), [](Attribute name) {
          auto symbol = dyn_cast<StringAttr>(name);
          return symbol && !symbol.empty();
        }))
      return emitError()
             << "'unit', or a positive factor and names of symbols, "
                "but got "
             << entry;
  }
  return success();
}

/// Returns whether an attribute has the numbers of operands with dimensions
/// (dialect_c11).
static bool areShapedOperands(Operation *op, Attribute attribute) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute);
  return numbers && llvm::all_of(numbers.asArrayRef(), [&](int64_t number) {
           if (number < 0 || number >= op->getNumOperands())
             return false;
           auto type = dyn_cast<ShapedType>(op->getOperand(number).getType());
           return type && type.getRank() > 0;
         });
}

LogicalResult UKernelDialect::verifyOperationAttribute(Operation *op,
                                                       NamedAttribute named) {
  StringRef name = named.getName();
  Attribute value = named.getValue();
  auto expect = [&](bool isRightValue, StringRef expected) -> LogicalResult {
    if (isRightValue)
      return success();
    return op->emitOpError()
           << "'" << name << "' expected " << expected << ", but got " << value;
  };
  auto onlyOn = [&](bool isRightOp, StringRef expected) -> LogicalResult {
    if (isRightOp)
      return success();
    return op->emitOpError() << "'" << name << "' expected on " << expected;
  };
  if (name == kSymbolsAttrName) {
    if (failed(onlyOn(isa<ModuleOp>(op), "a module")))
      return failure();
    return verifySymbols(op, value);
  }
  if (name == kDeviceAttrName) {
    if (failed(onlyOn(isa<ModuleOp>(op), "a module")))
      return failure();
    return expect(isa<DeviceAttr>(value), "a #ukernel.device");
  }
  if (name == kExtentsAttrName || name == kPaddedRowsAttrName) {
    if (failed(onlyOn(isa<OperatorOpInterface>(op),
                      "an operator such as 'ukernel.workload'")))
      return failure();
    if (name == kExtentsAttrName)
      return verifyExtents(op, value);
    return expect(areShapedOperands(op, value),
                  "an array<i64> of numbers of operands with dimensions");
  }
  if (name == kEntryAttrName)
    return expect(isa<EntryAttr>(value), "a #ukernel.entry");
  if (name == kAbiTypeAttrName) {
    if (failed(onlyOn(isa<FunctionOpInterface>(op), "a function")))
      return failure();
    auto type = dyn_cast<TypeAttr>(value);
    return expect(type && isa<FunctionType>(type.getValue()),
                  "a function type");
  }
  if (name == kShapeAttrName)
    return onlyOn(false, "arguments of functions");
  if (isa<ModuleOp>(op))
    return op->emitOpError()
           << "unknown attribute '" << name << "': expected '"
           << kSymbolsAttrName << "' or '" << kDeviceAttrName << "'";
  return success();
}
