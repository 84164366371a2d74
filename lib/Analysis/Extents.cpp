//===- Extents.cpp - Sources of the sizes of tensors ----------------------===//
#include "FTuner/Analysis/Extents.h"
#include "FTuner/Analysis/SizeSources.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Workload/Axes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace ftuner;

static Extent number(int64_t value) { return {value, {}}; }

static Extent product(const Extent &lhs, const Extent &rhs) {
  Extent result{lhs.factor, lhs.unknowns};
  // Sizes are far below the limits; a bound keeps wrong programs harmless.
  if (llvm::MulOverflow(lhs.factor, rhs.factor, result.factor))
    result.factor = std::numeric_limits<int64_t>::max();
  result.unknowns.append(rhs.unknowns.begin(), rhs.unknowns.end());
  llvm::sort(result.unknowns);
  return result;
}

//===----------------------------------------------------------------------===//
// Unknowns
//===----------------------------------------------------------------------===//

ExtentAnalysis::ExtentAnalysis(FunctionOpInterface function)
    : function(function) {
  for (Operation *op = function; op && !symbolRanges; op = op->getParentOp())
    symbolRanges = op->getAttrOfType<DictionaryAttr>(
        ukernel::UKernelDialect::kSymbolsAttrName);
  Block &entry = function.getFunctionBody().front();
  assertions = llvm::to_vector(entry.getOps<cf::AssertOp>());
  std::reverse(assertions.begin(), assertions.end());
}

Extent
ExtentAnalysis::unknown(StringAttr symbol, Value value, int64_t dim,
                        std::optional<std::pair<unsigned, int64_t>> origin) {
  const void *key =
      symbol ? symbol.getAsOpaquePointer() : value.getAsOpaquePointer();
  auto [it, inserted] =
      numbers.try_emplace({key, symbol ? -2 : dim}, unknowns.size());
  if (inserted)
    unknowns.push_back({symbol, value, dim, origin, std::nullopt});
  return resolve({1, {it->second}});
}

Extent ExtentAnalysis::resolve(const Extent &extent) const {
  Extent result = number(extent.factor);
  for (unsigned index : extent.unknowns) {
    const std::optional<Extent> &equal = unknowns[index].equal;
    Extent unresolved{1, {index}};
    result = product(result, equal ? resolve(*equal) : unresolved);
  }
  return result;
}

void ExtentAnalysis::assumeEqual(Extent lhs, Extent rhs) {
  if (lhs == rhs)
    return;
  auto isUnknown = [](const Extent &extent) {
    return extent.factor == 1 && extent.unknowns.size() == 1;
  };
  auto hasSymbol = [&](const Extent &extent) {
    return isUnknown(extent) && unknowns[extent.unknowns.front()].symbol;
  };
  // Symbols know their range, numbers know everything: they stay.
  if (!isUnknown(lhs) || (hasSymbol(lhs) && isUnknown(rhs)))
    std::swap(lhs, rhs);
  if (!isUnknown(lhs))
    return;
  unsigned index = lhs.unknowns.front();
  if (!llvm::is_contained(rhs.unknowns, index))
    unknowns[index].equal = rhs;
}

/// Collects the equalities that a condition is the conjunction of.
static void collectEqualities(Value condition,
                              SmallVectorImpl<arith::CmpIOp> &equalities) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectEqualities(both.getLhs(), equalities);
    collectEqualities(both.getRhs(), equalities);
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (compare && compare.getPredicate() == arith::CmpIPredicate::eq)
    equalities.push_back(compare);
}

void ExtentAnalysis::assumeAssertionsBefore(Operation *op) {
  Operation *ancestor =
      function.getFunctionBody().front().findAncestorOpInBlock(*op);
  while (ancestor && !assertions.empty() &&
         assertions.back()->isBeforeInBlock(ancestor)) {
    SmallVector<arith::CmpIOp> equalities;
    collectEqualities(assertions.pop_back_val().getArg(), equalities);
    for (arith::CmpIOp compare : equalities)
      assumeEqual(valueOf(compare.getLhs()), valueOf(compare.getRhs()));
  }
}

std::optional<SmallVector<StringAttr>>
ExtentAnalysis::symbolsOf(const Extent &extent) const {
  SmallVector<StringAttr> symbols;
  for (unsigned index : extent.unknowns) {
    if (!unknowns[index].symbol)
      return std::nullopt;
    symbols.push_back(unknowns[index].symbol);
  }
  if (extent.isStatic())
    return std::nullopt;
  llvm::sort(symbols, [](StringAttr a, StringAttr b) {
    return a.getValue() < b.getValue();
  });
  return symbols;
}

std::string ExtentAnalysis::nameOf(unsigned unknown) const {
  auto [symbol, value, dim, origin, equal] = unknowns[unknown];
  if (symbol)
    return symbol.str();
  if (origin)
    return argumentWords(function)[origin->first] + "_dim" +
           std::to_string(origin->second);
  return "size" + std::to_string(unknown);
}

std::optional<std::string>
ExtentAnalysis::describe(const Extent &extent) const {
  if (extent.factor != 1 || extent.unknowns.size() != 1)
    return std::nullopt;
  const Unknown &unknown = unknowns[extent.unknowns.front()];
  if (!unknown.origin)
    return std::nullopt;
  return "dimension " + std::to_string(unknown.origin->second) + " of " +
         describeArgument(function, unknown.origin->first);
}

std::optional<std::string>
ExtentAnalysis::describeUnlessFits(const Extent &extent) const {
  std::optional<SmallVector<StringAttr>> symbols = symbolsOf(extent);
  if (!symbols || !symbolRanges || extent.factor < 1 ||
      (extent.factor == 1 && symbols->size() == 1))
    return std::nullopt;
  int64_t largest = extent.factor;
  std::string names;
  if (extent.factor != 1)
    names = std::to_string(extent.factor);
  bool isBeyond = false;
  for (StringAttr symbol : *symbols) {
    auto range = symbolRanges.getAs<ukernel::RangeAttr>(symbol);
    if (!range || range.isOpen())
      return std::nullopt;
    isBeyond |= llvm::MulOverflow(largest, range.getMax(), largest);
    names += (names.empty() ? "'" : " times '") + symbol.str() + "'";
  }
  if (!isBeyond && largest <= maxExtent)
    return std::nullopt;
  return names;
}

//===----------------------------------------------------------------------===//
// Tracing
//===----------------------------------------------------------------------===//

Extent ExtentAnalysis::argumentDim(BlockArgument argument, int64_t dim) {
  if (argument.getOwner() != &function.getFunctionBody().front())
    return unknown({}, argument, dim);
  std::pair<unsigned, int64_t> origin = {argument.getArgNumber(), dim};
  auto shape = function.getArgAttrOfType<ArrayAttr>(
      argument.getArgNumber(), ukernel::UKernelDialect::kShapeAttrName);
  if (shape)
    if (auto symbol = dyn_cast<StringAttr>(shape[dim]))
      return unknown(symbol, {}, -2, origin);
  return unknown({}, argument, dim, origin);
}

Extent ExtentAnalysis::groupOf(Value source, ArrayRef<int64_t> dims) {
  Extent result = number(1);
  for (int64_t dim : dims)
    result = product(result, dimOf(source, dim));
  return result;
}

Extent
ExtentAnalysis::productOf(ArrayRef<std::pair<Value, int64_t>> dimensions) {
  Extent result = number(1);
  for (auto [tensor, dim] : dimensions)
    result = product(result, dimOf(tensor, dim));
  return result;
}

Extent ExtentAnalysis::mixed(OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return number(*constant);
  return valueOf(cast<Value>(size));
}

/// Returns the operand that is a size of the result of an operation of another
/// dialect; null if no attribute names one.
static Value sizeOperandOf(Operation *op, RankedTensorType type, int64_t dim) {
  auto numbers = op->getAttrOfType<ArrayAttr>(kDimsAttrName);
  unsigned place = type.getDynamicDimIndex(dim);
  if (!numbers || place >= numbers.size())
    return {};
  auto number = dyn_cast<IntegerAttr>(numbers[place]);
  return number && number.getInt() >= 0 &&
                 number.getInt() < op->getNumOperands()
             ? op->getOperand(number.getInt())
             : Value();
}

/// The symbol that a value stands for, if an attribute says so.
static StringAttr symbolOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto symbols =
      result ? result.getOwner()->getAttrOfType<ArrayAttr>(kSizesAttrName)
             : nullptr;
  if (!symbols || result.getResultNumber() >= symbols.size())
    return {};
  return dyn_cast<StringAttr>(symbols[result.getResultNumber()]);
}

Extent ExtentAnalysis::dimOf(Value tensor, int64_t dim) {
  while (true) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (!type.isDynamicDim(dim))
      return number(type.getDimSize(dim));
    if (auto argument = dyn_cast<BlockArgument>(tensor))
      return argumentDim(argument, dim);
    Operation *op = tensor.getDefiningOp();
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return mixed(empty.getMixedSizes()[dim]);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return mixed(expand.getMixedOutputShape()[dim]);
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      return groupOf(collapse.getSrc(),
                     collapse.getReassociationIndices()[dim]);
    if (auto castOp = dyn_cast<tensor::CastOp>(op);
        castOp && isa<RankedTensorType>(castOp.getSource().getType())) {
      tensor = castOp.getSource();
      continue;
    }
    if (auto concat = dyn_cast<tensor::ConcatOp>(op);
        concat && dim != static_cast<int64_t>(concat.getDim())) {
      tensor = concat.getInputs().front();
      continue;
    }
    if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
      if (auto shape =
              reshape.getShape().getDefiningOp<tensor::FromElementsOp>())
        return valueOf(shape.getElements()[dim]);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
        slice && slice.getDroppedDims().none())
      return mixed(slice.getMixedSizes()[dim]);
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      tensor = insert.getDest();
      continue;
    }
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op)) {
      tensor = destination.getTiedOpOperand(cast<OpResult>(tensor))->get();
      continue;
    }
    if (Value size = sizeOperandOf(op, type, dim))
      return valueOf(size);
    return unknown({}, tensor, dim);
  }
}

std::optional<Extent> ExtentAnalysis::evaluate(AffineExpr expr, ValueRange dims,
                                               ValueRange symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return number(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return valueOf(dims[dim.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return valueOf(symbols[symbol.getPosition()]);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary || binary.getKind() != AffineExprKind::Mul)
    return std::nullopt;
  std::optional<Extent> lhs = evaluate(binary.getLHS(), dims, symbols);
  std::optional<Extent> rhs = evaluate(binary.getRHS(), dims, symbols);
  if (!lhs || !rhs)
    return std::nullopt;
  return product(*lhs, *rhs);
}

Extent ExtentAnalysis::valueOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return number(constant.getSExtValue());
  if (StringAttr symbol = symbolOf(value))
    return unknown(symbol, {}, -2);
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast_or_null<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    if (index && type && *index >= 0 && *index < type.getRank())
      return dimOf(dim.getSource(), *index);
  } else if (auto multiply = dyn_cast_or_null<arith::MulIOp>(op)) {
    return product(valueOf(multiply.getLhs()), valueOf(multiply.getRhs()));
  } else if (isa_and_nonnull<arith::DivSIOp, arith::DivUIOp,
                             arith::FloorDivSIOp, arith::CeilDivSIOp>(op)) {
    Extent dividend = valueOf(op->getOperand(0));
    Extent divisor = valueOf(op->getOperand(1));
    if (divisor.isStatic() && divisor.factor > 0 &&
        dividend.factor % divisor.factor == 0)
      return {dividend.factor / divisor.factor, dividend.unknowns};
  } else if (isa_and_nonnull<arith::MaxUIOp, arith::MaxSIOp, arith::MinUIOp,
                             arith::MinSIOp>(op)) {
    Extent lhs = valueOf(op->getOperand(0));
    if (lhs == valueOf(op->getOperand(1)))
      return lhs;
  } else if (auto indexCast = dyn_cast_or_null<arith::IndexCastOp>(op)) {
    auto isWide = [](Type type) {
      return type.isIndex() || type.isInteger(64);
    };
    if (isWide(indexCast.getIn().getType()) && isWide(indexCast.getType()))
      return valueOf(indexCast.getIn());
  } else if (auto apply = dyn_cast_or_null<affine::AffineApplyOp>(op)) {
    if (std::optional<Extent> result =
            evaluate(apply.getAffineMap().getResult(0), apply.getDimOperands(),
                     apply.getSymbolOperands()))
      return *result;
  }
  return unknown({}, value, -1);
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

namespace {
/// min, min + step, … up to max; a step of 0 for one size.
struct Sizes {
  int64_t min, step;
  std::optional<int64_t> max;
};
} // namespace

/// Ends a range of a product at the largest extent of an axis. One that begins
/// beyond stays as it is.
static Sizes upToLargest(Sizes sizes) {
  if (!sizes.max || *sizes.max <= maxExtent || sizes.min > maxExtent)
    return sizes;
  int64_t step = std::max<int64_t>(sizes.step, 1);
  sizes.max = sizes.min + (maxExtent - sizes.min) / step * step;
  if (*sizes.max == sizes.min)
    sizes.step = 0;
  return sizes;
}

/// Sizes of products; the step divides the distance of any two of them. Ends
/// that overflow are open.
static std::optional<Sizes> product(const Sizes &lhs, const Sizes &rhs) {
  Sizes result{0, 0, std::nullopt};
  int64_t a, b, c;
  if (llvm::MulOverflow(lhs.min, rhs.min, result.min) ||
      llvm::MulOverflow(lhs.min, rhs.step, a) ||
      llvm::MulOverflow(lhs.step, rhs.min, b) ||
      llvm::MulOverflow(lhs.step, rhs.step, c))
    return std::nullopt;
  result.step = std::gcd(a, std::gcd(b, c));
  int64_t max;
  if (lhs.max && rhs.max && !llvm::MulOverflow(*lhs.max, *rhs.max, max))
    result.max = max;
  return result;
}

ukernel::RangeAttr ExtentAnalysis::rangeOf(const Extent &extent) {
  MLIRContext *context = function->getContext();
  auto open = ukernel::RangeAttr::get(context, 0, ShapedType::kDynamic);
  if (extent.factor < 0)
    return open;
  if (extent.isStatic())
    return ukernel::RangeAttr::get(context, extent.factor, extent.factor);
  Sizes sizes{extent.factor, 0, extent.factor};
  ukernel::RangeAttr single;
  for (unsigned index : extent.unknowns) {
    StringAttr symbol = unknowns[index].symbol;
    auto range = symbol && symbolRanges
                     ? symbolRanges.getAs<ukernel::RangeAttr>(symbol)
                     : nullptr;
    Sizes factor{0, 1, std::nullopt};
    if (range) {
      single = range;
      factor = {range.getMin(), range.isFixed() ? 0 : range.getStep(),
                range.isOpen() ? std::nullopt
                               : std::optional<int64_t>(range.getMax())};
    }
    std::optional<Sizes> next = product(sizes, factor);
    if (!next)
      return open;
    sizes = *next;
  }
  // A range that is declared is checked as it is.
  if (extent.factor != 1 || extent.unknowns.size() != 1)
    sizes = upToLargest(sizes);
  SmallVector<int64_t> weighted;
  DenseF64ArrayAttr weights;
  if (single && extent.unknowns.size() == 1 && single.getWeights() &&
      sizes.max) {
    SmallVector<double> kept;
    for (auto [size, weight] : llvm::zip_equal(
             single.getWeightSizes(), single.getWeights().asArrayRef())) {
      int64_t product;
      if (llvm::MulOverflow(size, extent.factor, product) ||
          product > *sizes.max)
        continue;
      weighted.push_back(product);
      kept.push_back(weight);
    }
    if (llvm::any_of(kept, [](double weight) { return weight > 0; }))
      weights = DenseF64ArrayAttr::get(context, kept);
    else
      weighted.clear();
  }
  return ukernel::RangeAttr::get(
      context, sizes.min, sizes.max.value_or(ShapedType::kDynamic),
      std::max<int64_t>(sizes.step, 1), weighted, weights);
}
