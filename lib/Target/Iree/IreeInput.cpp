//===- IreeInput.cpp - Functions of IREE as functions ---------------------===//
#include "FTuner/Analysis/ConstantValues.h"
#include "FTuner/Analysis/SizeSources.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Target/Iree.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Regex.h"
#include <limits>

using namespace mlir;
using namespace ftuner;

/// Attributes of a util.func, on the func.func that stands for it.
static constexpr llvm::StringLiteral kFunctionName = "util.func",
                                     kReturnName = "util.return",
                                     kPropertiesName = "iree.properties";

static DictionaryAttr propertiesOf(Operation *op) {
  return dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
}

/// Replaces the terminators of a function's blocks.
template <typename Create>
static void replaceReturns(Region &body, StringRef name, Create create) {
  for (Block &block : body) {
    if (block.empty() || block.back().getName().getStringRef() != name)
      continue;
    Operation *old = &block.back();
    OpBuilder b(old);
    create(b, old);
    old->erase();
  }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The number behind "NAME = " in an assumption.
static std::optional<int64_t> fieldOf(StringRef text, StringRef name) {
  SmallVector<StringRef> matches;
  int64_t value;
  if (!llvm::Regex((name + " = ([0-9]+)").str()).match(text, &matches) ||
      matches[1].getAsInteger(10, value))
    return std::nullopt;
  return value;
}

/// The sizes that one of several assumptions holds for: all between the
/// smallest and the largest. Null if there is nothing to say.
static ukernel::RangeAttr rangeOf(ArrayAttr assumptions) {
  std::optional<int64_t> smallest, largest = 0;
  int64_t step = 0;
  for (Attribute assumption : assumptions) {
    std::string text;
    llvm::raw_string_ostream(text) << assumption;
    int64_t min = fieldOf(text, "umin").value_or(0);
    std::optional<int64_t> max = fieldOf(text, "umax");
    // Importers write a number that no size reaches if there is no bound.
    if (max && *max > std::numeric_limits<int32_t>::max())
      max = std::nullopt;
    smallest = std::min(smallest.value_or(min), min);
    largest =
        largest && max ? std::optional(std::max(*largest, *max)) : std::nullopt;
    step = std::gcd(step, fieldOf(text, "udiv").value_or(1));
  }
  if (!smallest || (*smallest == 0 && !largest))
    return {};
  step = std::max<int64_t>(step, 1);
  int64_t min = llvm::alignTo(*smallest, step);
  if (largest)
    largest = *largest / step * step;
  if (largest && *largest < min)
    return {};
  if (largest && *largest == min)
    step = 1;
  return ukernel::RangeAttr::get(assumptions.getContext(), min,
                                 largest.value_or(ShapedType::kDynamic), step);
}

/// Says of a value that a symbol stands for it.
static void setSymbol(Value value, StringAttr symbol) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return;
  Operation *op = result.getOwner();
  SmallVector<Attribute> symbols(op->getNumResults(),
                                 UnitAttr::get(op->getContext()));
  if (auto known = op->getAttrOfType<ArrayAttr>(kSizesAttrName))
    llvm::copy(known, symbols.begin());
  symbols[result.getResultNumber()] = symbol;
  op->setAttr(kSizesAttrName, ArrayAttr::get(op->getContext(), symbols));
}

/// "arg0_dim1" of a size that a function asks one of its arguments for; empty
/// for any other value.
static std::string argumentSizeName(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getName().getStringRef() != "hal.buffer_view.dim" ||
      op->getNumOperands() != 1)
    return "";
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  DictionaryAttr properties = propertiesOf(op);
  auto dim = properties ? properties.getAs<IntegerAttr>("index") : nullptr;
  if (!argument || !argument.getOwner()->isEntryBlock() || !dim)
    return "";
  return "arg" + std::to_string(argument.getArgNumber()) + "_dim" +
         std::to_string(dim.getInt());
}

/// The name of the function that computes a value, without what IREE adds.
static std::string functionNameOf(Value value) {
  Operation *op = value.getParentBlock()->getParentOp();
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    function = op->getParentOfType<func::FuncOp>();
  StringRef name = function ? function.getSymName() : "unknown";
  name.consume_back("$async");
  return toIdentifier(name);
}

/// The symbol of a size with a range: one name has one range in a module. It is
/// the argument's, behind the function's where another function has a range of
/// its own; a number tells apart what would have one name for two sizes.
static StringAttr symbolFor(Value value, ukernel::RangeAttr range,
                            NamedAttrList &ranges) {
  std::string ofArgument = argumentSizeName(value);
  auto isFree = [&](StringRef name) {
    Attribute known = ranges.get(name);
    return !known || (known == range && !ofArgument.empty());
  };
  std::string name = ofArgument;
  if (name.empty() || !isFree(name)) {
    std::string base =
        functionNameOf(value) + "_" + (name.empty() ? "size" : name);
    name = base;
    for (unsigned number = 2; !isFree(name); ++number)
      name = base + "_" + std::to_string(number);
  }
  ranges.set(name, range);
  return StringAttr::get(value.getContext(), name);
}

static void adoptAssumptions(Operation *op, NamedAttrList &ranges) {
  DictionaryAttr properties = propertiesOf(op);
  auto assumptions =
      properties ? properties.getAs<ArrayAttr>("assumptions") : nullptr;
  if (!assumptions || assumptions.size() != op->getNumResults() ||
      op->getNumOperands() != op->getNumResults())
    return;
  for (auto [operand, result, alternatives] :
       llvm::zip_equal(op->getOperands(), op->getResults(), assumptions)) {
    auto list = dyn_cast<ArrayAttr>(alternatives);
    ukernel::RangeAttr range = list ? rangeOf(list) : nullptr;
    if (!range || !result.getType().isIndex())
      continue;
    StringAttr symbol = symbolFor(operand, range, ranges);
    setSymbol(operand, symbol);
    setSymbol(result, symbol);
  }
}

/// Tensors whose last operands are their dynamic sizes.
static void adoptTensor(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || type.hasStaticShape())
    return;
  SmallVector<int64_t> numbers;
  for (unsigned number = 1; number < op->getNumOperands(); ++number)
    if (op->getOperand(number).getType().isIndex())
      numbers.push_back(number);
  if (numbers.size() == static_cast<size_t>(type.getNumDynamicDims()))
    op->setAttr(kDimsAttrName, Builder(op).getI64ArrayAttr(numbers));
}

//===----------------------------------------------------------------------===//
// Globals
//===----------------------------------------------------------------------===//

/// Marks loads of immutable globals as constant.
static void adoptGlobals(ModuleOp module) {
  DenseSet<StringAttr> immutable;
  for (Operation &op : *module.getBody())
    if (DictionaryAttr properties = propertiesOf(&op);
        properties && op.getName().getStringRef() == "util.global" &&
        !properties.contains("is_mutable"))
      if (auto name = properties.getAs<StringAttr>("sym_name"))
        immutable.insert(name);
  module.walk([&](Operation *op) {
    if (op->getName().getStringRef() != "util.global.load")
      return;
    DictionaryAttr properties = propertiesOf(op);
    auto global = properties ? properties.getAs<FlatSymbolRefAttr>("global")
                             : FlatSymbolRefAttr();
    if (global && immutable.contains(global.getAttr()))
      op->setAttr(kConstantAttrName, UnitAttr::get(op->getContext()));
  });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static void adoptFunction(Operation *op) {
  DictionaryAttr properties = propertiesOf(op);
  if (!properties || op->getNumRegions() != 1)
    return;
  auto name = properties.getAs<StringAttr>("sym_name");
  auto type = properties.getAs<TypeAttr>("function_type");
  auto signature = type ? dyn_cast<FunctionType>(type.getValue()) : nullptr;
  if (!name || !signature)
    return;
  OpBuilder b(op);
  auto function = func::FuncOp::create(b, op->getLoc(), name, signature);
  function->setDiscardableAttrs(op->getAttrDictionary());
  function->setAttr(kPropertiesName, properties);
  if (op->getRegion(0).empty())
    function.setPrivate();
  function.getBody().takeBody(op->getRegion(0));
  replaceReturns(function.getBody(), kReturnName,
                 [](OpBuilder &b, Operation *old) {
                   func::ReturnOp::create(b, old->getLoc(), old->getOperands());
                 });
  op->erase();
}

LogicalResult ftuner::expectUnregisteredDialects(ModuleOp module) {
  if (module->getContext()->allowsUnregisteredDialects())
    return success();
  return module.emitError("expected --allow-unregistered-dialect, since "
                          "operations of IREE are unknown here");
}

void ftuner::makePrivateIreeFunction(func::FuncOp function) {
  Builder b(function.getContext());
  function->setAttr(
      kPropertiesName,
      b.getDictionaryAttr(
          {b.getNamedAttr("function_type", function.getFunctionTypeAttr()),
           b.getNamedAttr("sym_name", function.getSymNameAttr()),
           b.getNamedAttr("sym_visibility", b.getStringAttr("private"))}));
}

void ftuner::adoptIreeFunctions(ModuleOp module) {
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (op.getName().getStringRef() == kFunctionName)
      adoptFunction(&op);
  adoptGlobals(module);
  NamedAttrList ranges;
  module.walk([&](Operation *op) {
    StringRef name = op->getName().getStringRef();
    if (name == "util.assume.int")
      adoptAssumptions(op, ranges);
    else if (name == "hal.tensor.import" || name == "flow.tensor.tie_shape")
      adoptTensor(op);
  });
  if (ranges.empty())
    return;
  if (auto known = module->getAttrOfType<DictionaryAttr>(
          ukernel::UKernelDialect::kSymbolsAttrName))
    for (NamedAttribute range : known)
      ranges.set(range.getName(), range.getValue());
  module->setAttr(ukernel::UKernelDialect::kSymbolsAttrName,
                  ranges.getDictionary(module.getContext()));
}

void ftuner::restoreIreeFunctions(ModuleOp module) {
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    auto properties = function->getAttrOfType<DictionaryAttr>(kPropertiesName);
    if (!properties)
      continue;
    function->removeAttr(kPropertiesName);
    OpBuilder b(function);
    OperationState state(function.getLoc(), kFunctionName);
    state.propertiesAttr = properties;
    state.addAttributes(llvm::to_vector(function->getDiscardableAttrs()));
    state.addRegion()->takeBody(function.getBody());
    Operation *restored = b.create(state);
    replaceReturns(restored->getRegion(0), func::ReturnOp::getOperationName(),
                   [](OpBuilder &b, Operation *old) {
                     OperationState state(old->getLoc(), kReturnName,
                                          old->getOperands(), {}, {});
                     b.create(state);
                   });
    function.erase();
  }
}
