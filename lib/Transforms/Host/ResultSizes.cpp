//===- ResultSizes.cpp - Sizes of results without their values --*- C++ -*-===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "HostPreparation.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {
/// Gives a result the shape of its destination, which is nearer to the
/// function's arguments than the other operands: often a tensor.empty.
struct DimOfDestination : public OpRewritePattern<tensor::DimOp> {
  DimOfDestination(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/10) {}
  LogicalResult matchAndRewrite(tensor::DimOp dim,
                                PatternRewriter &rewriter) const override {
    auto op = dim.getSource().getDefiningOp<DestinationStyleOpInterface>();
    if (!op)
      return failure();
    OpOperand *init = op.getTiedOpOperand(cast<OpResult>(dim.getSource()));
    rewriter.modifyOpInPlace(
        dim, [&] { dim.getSourceMutable().assign(init->get()); });
    return success();
  }
};

/// Chooses between dimensions instead of dimensions of a chosen tensor.
struct DimOfIfResult : public OpRewritePattern<tensor::DimOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::DimOp dim,
                                PatternRewriter &rewriter) const override {
    auto ifOp = dim.getSource().getDefiningOp<scf::IfOp>();
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!ifOp || !index)
      return failure();
    unsigned number = cast<OpResult>(dim.getSource()).getResultNumber();
    SmallVector<Value> sizes;
    for (scf::YieldOp yield : {ifOp.thenYield(), ifOp.elseYield()}) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(yield);
      sizes.push_back(tensor::DimOp::create(rewriter, dim.getLoc(),
                                            yield.getOperand(number), *index));
    }
    SmallVector<Type> types(ifOp.getResultTypes());
    types.push_back(dim.getType());
    rewriter.setInsertionPoint(ifOp);
    auto wider = scf::IfOp::create(rewriter, ifOp.getLoc(), types,
                                   ifOp.getCondition(), /*addElse=*/false);
    wider.getThenRegion().takeBody(ifOp.getThenRegion());
    wider.getElseRegion().takeBody(ifOp.getElseRegion());
    scf::YieldOp yields[] = {wider.thenYield(), wider.elseYield()};
    for (auto [yield, size] : llvm::zip_equal(yields, sizes)) {
      rewriter.startOpModification(yield);
      yield->insertOperands(yield->getNumOperands(), size);
      rewriter.finalizeOpModification(yield);
    }
    rewriter.replaceOp(dim, wider.getResults().back());
    rewriter.replaceOp(ifOp, wider.getResults().drop_back());
    return success();
  }
};
} // namespace

LogicalResult ftuner::simplifySizes(func::FuncOp func) {
  MLIRContext *context = func.getContext();
  RewritePatternSet patterns(context);
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  scf::populateSCFForLoopCanonicalizationPatterns(patterns);
  patterns.add<DimOfDestination, DimOfIfResult>(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  if (failed(applyPatternsGreedily(func, std::move(patterns))))
    return failure();
  IRRewriter rewriter(context);
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, func);
  return success();
}

static bool isDimOfArgument(Operation *op) {
  auto dim = dyn_cast<tensor::DimOp>(op);
  if (!dim || !dim.getConstantIndex())
    return false;
  auto argument = dyn_cast<BlockArgument>(dim.getSource());
  return argument && argument.getOwner()->isEntryBlock() &&
         isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

static bool touchesTensors(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return !isDimOfArgument(op) &&
         (llvm::any_of(op->getOperandTypes(), isTensor) ||
          llvm::any_of(op->getResultTypes(), isTensor));
}

/// Returns the first operation that `value` needs and that works on elements of
/// tensors; null if `value` needs only sizes.
static Operation *findTensorOp(Value value) {
  SmallVector<Value> worklist = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    Operation *found = nullptr;
    op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
      if (!found && touchesTensors(nested))
        found = nested;
      worklist.append(nested->operand_begin(), nested->operand_end());
    });
    if (found)
      return found;
  }
  return nullptr;
}

/// Drops assertions that need the elements of tensors.
static void eraseAssertionsOnElements(func::FuncOp func) {
  func.walk([](Operation *op) {
    if (!isa<cf::AssertOp, ftuner::ukernel::AssertOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (findTensorOp(operand)) {
        op->erase();
        return;
      }
  });
}

/// Emits an error if anything but sizes remains in `sizes`.
static LogicalResult checkOnlySizes(func::FuncOp func, func::FuncOp sizes) {
  func::ReturnOp exit;
  sizes.walk([&](func::ReturnOp op) { exit = op; });
  unsigned operand = 0;
  for (auto [number, type] : llvm::enumerate(func.getResultTypes()))
    for (int64_t dim = 0; dim < cast<RankedTensorType>(type).getRank(); ++dim)
      if (Operation *op = findTensorOp(exit.getOperand(operand++))) {
        InFlightDiagnostic diag =
            func.emitError("no lowering: dimension ")
            << dim << " of result " << number << " of '" << func.getName()
            << "' is not known before the computation runs";
        diag.attachNote(op->getLoc())
            << "it depends on " << op->getName() << " here";
        return diag;
      }
  Operation *found = nullptr;
  sizes.walk([&](Operation *op) {
    if (op != sizes && !found && touchesTensors(op))
      found = op;
  });
  if (!found)
    return success();
  // The caller has a better message for operations of unknown dialects.
  if (found->isRegistered())
    found->emitError("no lowering: the sizes of the results of '")
        << func.getName() << "' depend on it";
  return failure();
}

/// Replaces the tensor arguments, of which only sizes are used, by the sizes.
static void replaceArguments(func::FuncOp sizes) {
  Block &entry = sizes.getBody().front();
  FunctionType type = sizes.getFunctionType();
  SmallVector<Type> inputs = ftuner::getSizeFunctionInputs(type);
  unsigned count = entry.getNumArguments();
  for (Type input : inputs)
    entry.addArgument(input, sizes.getLoc());
  unsigned next = count;
  for (unsigned i = 0; i < count; ++i) {
    auto tensor = dyn_cast<RankedTensorType>(entry.getArgument(i).getType());
    if (!tensor)
      continue;
    DenseMap<int64_t, Value> dims;
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
      if (tensor.isDynamicDim(dim))
        dims[dim] = entry.getArgument(next++);
    for (Operation *user :
         llvm::make_early_inc_range(entry.getArgument(i).getUsers())) {
      auto op = cast<tensor::DimOp>(user);
      op.replaceAllUsesWith(dims.lookup(*op.getConstantIndex()));
      op.erase();
    }
  }
  for (unsigned i = 0; i < count; ++i)
    if (!isa<RankedTensorType>(entry.getArgument(i).getType()))
      entry.getArgument(i).replaceAllUsesWith(entry.getArgument(next++));
  entry.eraseArguments(0, count);
  sizes.setFunctionType(
      FunctionType::get(sizes.getContext(), inputs, type.getResults()));
}

FailureOr<func::FuncOp> ftuner::buildResultSizes(func::FuncOp func,
                                                 StringRef name) {
  auto sizes = cast<func::FuncOp>(func->clone());
  sizes->setDiscardableAttrs(DictionaryAttr::get(func.getContext()));
  sizes.setArgAttrsAttr(nullptr);
  sizes.setResAttrsAttr(nullptr);
  sizes.setName(name);
  sizes.setPrivate();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfter(func);
  builder.insert(sizes);

  stateLoopSizes(sizes);
  SmallVector<Type> results;
  sizes.walk([&](func::ReturnOp exit) {
    builder.setInsertionPoint(exit);
    SmallVector<Value> dims;
    for (Value value : exit.getOperands())
      for (OpFoldResult size :
           tensor::getMixedSizes(builder, exit.getLoc(), value))
        dims.push_back(
            getValueOrCreateConstantIndexOp(builder, exit.getLoc(), size));
    exit.getOperandsMutable().assign(dims);
    results.assign(dims.size(), builder.getIndexType());
  });
  sizes.setFunctionType(FunctionType::get(
      func.getContext(), func.getFunctionType().getInputs(), results));

  if (failed(simplifySizes(sizes)))
    return func.emitError("could not simplify the sizes of the results");
  eraseAssertionsOnElements(sizes);
  if (failed(simplifySizes(sizes)))
    return func.emitError("could not simplify the sizes of the results");
  if (failed(checkOnlySizes(func, sizes)))
    return failure();
  replaceArguments(sizes);
  return sizes;
}
