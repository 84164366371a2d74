//===- ResolveSizes.cpp - One value for sizes that are equal
//----------------===//
//
// Importers compute the same size in many ways: the maximum of two sizes that
// have the same symbol, a product that is divided by its factor, the dimension
// of an intermediate tensor. Whoever compares sizes afterwards compares values.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Extents.h"
#include "FTuner/Transforms/Passes.h"
#include "LinalgPatterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELRESOLVESIZESPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {
/// Replaces sizes by products of dimensions of arguments, which are computed at
/// the start of the function.
class SizeResolver {
public:
  explicit SizeResolver(FunctionOpInterface function)
      : extents(function), builder(function->getContext()),
        start(&function.getFunctionBody().front()) {
    builder.setInsertionPointToStart(start);
    for (BlockArgument argument : start->getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (type.isDynamicDim(dim))
            addSource(argument, dim);
  }

  void resolve(Operation *op) {
    extents.assumeAssertionsBefore(op);
    if (!isa<tensor::DimOp>(op) &&
        !isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      return;
    for (OpResult result : op->getResults()) {
      if (!result.getType().isIndex() || result.use_empty() ||
          matchPattern(result, m_Constant()) || created.contains(op))
        continue;
      if (Value size = valueFor(extents.valueOf(result), op->getLoc()))
        result.replaceAllUsesWith(size);
    }
  }

private:
  void addSource(BlockArgument argument, int64_t dim) {
    Extent extent = extents.dimOf(argument, dim);
    if (extent.factor == 1 && extent.unknowns.size() == 1)
      sources.try_emplace(extent.unknowns.front(), argument, dim);
  }

  Value valueFor(const Extent &extent, Location loc) {
    if (extent.isStatic())
      return constant(extent.factor, loc);
    if (!llvm::all_of(extent.unknowns, [&](unsigned unknown) {
          return sources.contains(unknown);
        }))
      return {};
    Value result;
    for (unsigned unknown : extent.unknowns)
      result = product(result, dimFor(unknown, loc), loc);
    if (extent.factor != 1)
      result = product(result, constant(extent.factor, loc), loc);
    return result;
  }

  Value dimFor(unsigned unknown, Location loc) {
    Value &dim = dims[unknown];
    if (!dim) {
      auto [argument, number] = sources.lookup(unknown);
      dim = keep(
          tensor::DimOp::create(builder, loc, argument, constant(number, loc)));
    }
    return dim;
  }

  Value constant(int64_t value, Location loc) {
    Value &result = constants[value];
    if (!result)
      result = arith::ConstantIndexOp::create(builder, loc, value);
    return result;
  }

  Value product(Value lhs, Value rhs, Location loc) {
    if (!lhs)
      return rhs;
    Value &result = products[{lhs, rhs}];
    if (!result)
      result = keep(arith::MulIOp::create(builder, loc, lhs, rhs));
    return result;
  }

  Value keep(Operation *op) {
    created.insert(op);
    return op->getResult(0);
  }

  ExtentAnalysis extents;
  OpBuilder builder;
  Block *start;
  /// Argument and dimension of each unknown that is one.
  DenseMap<unsigned, std::pair<BlockArgument, int64_t>> sources;
  DenseMap<unsigned, Value> dims;
  DenseMap<int64_t, Value> constants;
  DenseMap<std::pair<Value, Value>, Value> products;
  DenseSet<Operation *> created;
};

struct UKernelResolveSizesPass
    : public ftuner::impl::UKernelResolveSizesPassBase<
          UKernelResolveSizesPass> {
  void runOnOperation() override { resolveSizes(getOperation()); }
};
} // namespace

void ftuner::resolveSizes(FunctionOpInterface function) {
  if (function.isExternal())
    return;
  SizeResolver resolver(function);
  SmallVector<Operation *> ops;
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp>(op))
      return WalkResult::skip();
    ops.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : ops)
    resolver.resolve(op);
}
