//===- IreePatterns.cpp - Products that IREE can find again ---------------===//
#include "IreePatterns.h"
#include "FTuner/Analysis/ConstantValues.h"
#include "FTuner/Analysis/SizeRanges.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace ftuner;

namespace {
/// Operators in their order; the last one gives the result.
using Slice = SmallVector<Operation *, 0>;

/// A product and what may be fused into it.
struct Product {
  linalg::LinalgOp contraction;
  /// Operators that make the contraction's initial result and move its inputs.
  llvm::SetVector<Operation *> before;
  /// Elementwise operators, each of which takes the result of the last.
  Slice after;
};
} // namespace

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Returns whether IREE can tell that the body of an operator equals another
/// one.
static bool isComparable(linalg::LinalgOp op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  WalkResult walk = op->getRegion(0).walk([](Operation *inner) {
    return inner->hasTrait<OpTrait::ConstantLike>() ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  });
  return captured.empty() && !walk.wasInterrupted();
}

static bool isElementwise(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops() &&
         op->getNumResults() == 1 && op.hasPureTensorSemantics();
}

/// Returns whether an operator gives elements of its only input, by another
/// order or repeated.
static bool movesData(linalg::LinalgOp op) {
  if (!isElementwise(op) || op.getNumDpsInputs() != 1)
    return false;
  Block *body = op.getBlock();
  auto yield = dyn_cast<linalg::YieldOp>(body->front());
  return yield && yield.getOperand(0) == body->getArgument(0);
}

/// Adds the operators of the block that move the data of a value, last one
/// first.
static void addMoves(Value value, Block *block,
                     llvm::SetVector<Operation *> &ops) {
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || op->getBlock() != block || !movesData(op) || !isComparable(op))
    return;
  ops.insert(op);
  addMoves(op.getDpsInputs().front(), block, ops);
}

/// The elementwise operator that alone takes a result, as an input, in the same
/// block.
static linalg::LinalgOp consumerOf(Value result) {
  if (!result.hasOneUse())
    return {};
  OpOperand &use = *result.use_begin();
  auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!op || !isElementwise(op) || !op.isDpsInput(&use) ||
      op->getBlock() != result.getParentBlock())
    return {};
  return op;
}

static Product productOf(linalg::LinalgOp contraction) {
  Product product{contraction, {}, {}};
  Value initial = contraction.getDpsInits().front();
  Block *block = contraction->getBlock();
  // IREE goes from operators to what gives their operands, in whatever block:
  // a fill may stand before a loop around the product.
  if (auto fill = initial.getDefiningOp<linalg::FillOp>())
    if (Operation *value = fill.getInputs().front().getDefiningOp();
        value && value->hasTrait<OpTrait::ConstantLike>()) {
      product.before.insert(value);
      product.before.insert(fill);
    }
  for (Value input : contraction.getDpsInputs())
    addMoves(input, block, product.before);
  Operation *last = contraction;
  while (linalg::LinalgOp next = consumerOf(last->getResult(0))) {
    if (!isComparable(next)) {
      next->emitWarning("IREE cannot find an operator that captures a value or "
                        "holds a constant: the product before it is replaced "
                        "alone");
      break;
    }
    product.after.push_back(next);
    last = next;
  }
  return product;
}

/// Appends an operator of `ops` after the operators whose values it takes.
static void appendInOrder(Operation *op, const DenseSet<Operation *> &ops,
                          llvm::SetVector<Operation *> &order) {
  for (Value operand : op->getOperands())
    if (ops.contains(operand.getDefiningOp()))
      appendInOrder(operand.getDefiningOp(), ops, order);
  order.insert(op);
}

/// The product with its first `after` elementwise operators, and with or
/// without what moves its inputs. Equal products have one order.
static Slice sliceOf(const Product &product, size_t after, bool hasMoves) {
  DenseSet<Operation *> ops{product.contraction};
  for (Operation *op : product.before)
    if (hasMoves || isa<linalg::FillOp>(op) || !isa<linalg::LinalgOp>(op))
      ops.insert(op);
  ops.insert(product.after.begin(), product.after.begin() + after);
  llvm::SetVector<Operation *> order;
  appendInOrder(after ? product.after[after - 1] : product.contraction, ops,
                order);
  return order.takeVector();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Copies a slice into a function. `symbols` gets a symbol for each dynamic
/// size of the arguments that has a range.
static func::FuncOp copyToFunction(const Slice &slice, StringRef name,
                                   SizeRanges &ranges, OpBuilder &b,
                                   SmallVectorImpl<NamedAttribute> &symbols) {
  SetVector<Value> inputs;
  DenseSet<Operation *> own(slice.begin(), slice.end());
  for (Operation *op : slice)
    for (Value operand : op->getOperands())
      if (!own.contains(operand.getDefiningOp()))
        inputs.insert(operand);
  auto type = b.getFunctionType(ValueRange(inputs.getArrayRef()).getTypes(),
                                slice.back()->getResultTypes());
  auto function = func::FuncOp::create(b, slice.back()->getLoc(), name, type);
  OpBuilder::InsertionGuard guard(b);
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [number, input, argument] :
       llvm::enumerate(inputs, body->getArguments())) {
    mapping.map(input, argument);
    auto tensor = dyn_cast<RankedTensorType>(input.getType());
    if (!tensor || tensor.hasStaticShape())
      continue;
    SmallVector<Attribute> shape;
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
      if (!tensor.isDynamicDim(dim)) {
        shape.push_back(b.getI64IntegerAttr(tensor.getDimSize(dim)));
        continue;
      }
      // The symbol is a new one: sizes that are equal here may differ at
      // another place where the pattern matches.
      auto symbol =
          b.getStringAttr(name + "_" + Twine(number) + "_" + Twine(dim));
      symbols.emplace_back(symbol, ranges.rangeOf(input, dim));
      shape.push_back(symbol);
    }
    function.setArgAttr(number, ukernel::UKernelDialect::kShapeAttrName,
                        b.getArrayAttr(shape));
  }
  for (Operation *op : slice)
    b.clone(*op, mapping);
  func::ReturnOp::create(
      b, function.getLoc(),
      ValueRange(mapping.lookup(slice.back()->getResult(0))));
  return function;
}

static void setSymbols(ModuleOp module, ArrayRef<NamedAttribute> symbols) {
  module->setAttr(ukernel::UKernelDialect::kSymbolsAttrName,
                  DictionaryAttr::get(module.getContext(), symbols));
}

/// Returns whether a slice becomes one workload, of which nothing is left over.
static bool isOneWorkload(const Slice &slice, SizeRanges &ranges,
                          const FTunerOptions &options) {
  Operation *root = slice.back();
  OwningOpRef<ModuleOp> module = ModuleOp::create(root->getLoc());
  auto b = OpBuilder::atBlockEnd(module->getBody());
  SmallVector<NamedAttribute> symbols;
  func::FuncOp function = copyToFunction(slice, "product", ranges, b, symbols);
  setSymbols(*module, symbols);
  // What is wrong with it, its own run tells.
  ScopedDiagnosticHandler silence(root->getContext(),
                                  [](Diagnostic &) { return success(); });
  PassManager pm(root->getContext());
  buildFormationPipeline(pm, options, /*isPartial=*/true);
  if (failed(pm.run(*module)))
    return false;
  size_t workloads = 0, others = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ukernel::OperatorOpInterface>(op)) {
      // A spec finds products alone.
      workloads += isa<ukernel::ReductionOpInterface>(op);
      others += !isa<ukernel::ReductionOpInterface>(op);
      return WalkResult::skip();
    }
    others += isa<linalg::LinalgOp>(op);
    return WalkResult::advance();
  });
  return workloads == 1 && others == 0;
}

/// The largest part of a product that becomes one workload; empty if none does.
static Slice largestWorkload(const Product &product, SizeRanges &ranges,
                             const FTunerOptions &options) {
  for (bool hasMoves : {true, false})
    for (size_t after = product.after.size() + 1; after-- > 0;) {
      Slice slice = sliceOf(product, after, hasMoves);
      if (isOneWorkload(slice, ranges, options))
        return slice;
    }
  return {};
}

/// Returns whether two functions are equal except for their names and ranges.
static bool areAlike(func::FuncOp lhs, func::FuncOp rhs) {
  if (lhs.getFunctionType() != rhs.getFunctionType())
    return false;
  return OperationEquivalence::isRegionEquivalentTo(
      &lhs.getBody(), &rhs.getBody(), OperationEquivalence::IgnoreLocations);
}

/// The least range that holds both. Weights are kept where both are equal.
static ukernel::RangeAttr hullOf(ukernel::RangeAttr a, ukernel::RangeAttr b) {
  if (a == b)
    return a;
  // A single size has no step.
  auto stepOf = [](ukernel::RangeAttr range) {
    return range.getMin() == range.getMax() ? 0 : range.getStep();
  };
  int64_t max =
      a.getMax() == ShapedType::kDynamic || b.getMax() == ShapedType::kDynamic
          ? ShapedType::kDynamic
          : std::max(a.getMax(), b.getMax());
  int64_t step = std::gcd(std::gcd(stepOf(a), stepOf(b)),
                          std::abs(a.getMin() - b.getMin()));
  return ukernel::RangeAttr::get(a.getContext(),
                                 std::min(a.getMin(), b.getMin()), max,
                                 std::max<int64_t>(step, 1));
}

namespace {
/// A function of the result.
struct FoundProduct {
  func::FuncOp function;
  size_t operators;
  /// In the order of the function's dynamic sizes.
  SmallVector<NamedAttribute> symbols;
};
} // namespace

/// Adds a product; if there is an equal one, only adds the ranges.
static void addProduct(FoundProduct product,
                       SmallVectorImpl<FoundProduct> &products) {
  auto equal = llvm::find_if(products, [&](const FoundProduct &other) {
    return areAlike(product.function, other.function);
  });
  if (equal == products.end()) {
    products.push_back(std::move(product));
    return;
  }
  for (auto [known, found] : llvm::zip_equal(equal->symbols, product.symbols))
    known.setValue(hullOf(cast<ukernel::RangeAttr>(known.getValue()),
                          cast<ukernel::RangeAttr>(found.getValue())));
  product.function.erase();
}

FailureOr<iree::ProductPatterns>
iree::findProductPatterns(ModuleOp module, const FTunerOptions &options,
                          StringRef prefix) {
  ProductPatterns result;
  result.module = ModuleOp::create(module.getLoc());
  auto b = OpBuilder::atBlockEnd(result.module->getBody());
  SmallVector<FoundProduct> products;
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    SizeRanges ranges(function);
    DenseSet<Value> constants = findConstantValues(function);
    function.walk([&](linalg::LinalgOp op) {
      // IREE computes products of constants while it compiles.
      if (!linalg::isaContractionOpInterface(op) ||
          !op.hasPureTensorSemantics() || hasConstantOperands(op, constants))
        return;
      Slice slice;
      if (isComparable(op))
        slice = largestWorkload(productOf(op), ranges, options);
      if (slice.empty()) {
        op->emitWarning("no transform spec finds this product: by itself it is "
                        "no workload");
        return;
      }
      FoundProduct product;
      std::string name = (prefix + Twine(products.size())).str();
      product.function =
          copyToFunction(slice, name, ranges, b, product.symbols);
      product.operators = slice.size();
      addProduct(std::move(product), products);
    });
  });
  if (products.empty())
    return emitError(module.getLoc(), "expected a product that a transform "
                                      "spec of IREE can find, but got none");
  llvm::stable_sort(products, [](const FoundProduct &a, const FoundProduct &b) {
    return a.operators > b.operators;
  });
  SmallVector<NamedAttribute> symbols;
  for (const FoundProduct &product : products) {
    result.functions.push_back(product.function);
    llvm::append_range(symbols, product.symbols);
  }
  setSymbols(*result.module, symbols);
  return result;
}
