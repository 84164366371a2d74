//===- PlanWorkspace.cpp - Intermediates in one workspace -------*- C++ -*-===//
//
// Every memref.alloc becomes a view of a workspace argument, each behind the
// other, so offsets follow from the sizes of the function's arguments alone;
// the same arithmetic becomes a function that computes the workspace's size.
//
// An allocation inside a loop is one buffer for all iterations: bufferization
// lets none outlive its iteration.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Support/MathExtras.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELPLANWORKSPACEPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Recomputes sizes somewhere else, from a function's arguments only.
class SizeCloner {
public:
  /// `sizeOf(argument, dim)` gives a dynamic size of an argument; arguments
  /// that are scalars must be in `mapping`.
  SizeCloner(ImplicitLocOpBuilder &b, IRMapping mapping,
             llvm::function_ref<Value(BlockArgument, int64_t)> sizeOf)
      : b(b), mapping(std::move(mapping)), sizeOf(sizeOf) {}

  /// `value`, recomputed at the builder's place; fails if it depends on
  /// elements of buffers or on the position in a loop.
  FailureOr<Value> clone(Value value);

private:
  LogicalResult cloneOp(Operation *op);
  void guardDivision(Operation *op);

  ImplicitLocOpBuilder &b;
  IRMapping mapping;
  llvm::function_ref<Value(BlockArgument, int64_t)> sizeOf;
};

/// The buffers of a function and where they go.
class WorkspacePlanner {
public:
  WorkspacePlanner(func::FuncOp func) : func(func) {}
  LogicalResult plan();

private:
  LogicalResult collect();
  LogicalResult emitViews();
  FailureOr<func::FuncOp> emitSizeFunction();
  SmallVector<Value> emitResultSizes(ImplicitLocOpBuilder &b,
                                     ValueRange arguments);
  /// Emits the offset behind each buffer; calls `place` for each with its
  /// offset and dynamic sizes. Returns the end of the last.
  FailureOr<Value> emitOffsets(
      ImplicitLocOpBuilder &b, SizeCloner &cloner,
      llvm::function_ref<void(memref::AllocOp, Value, ValueRange)> place);

  func::FuncOp func;
  SmallVector<memref::AllocOp> allocs;
};
} // namespace

/// The size is computed also where the program would not get to a division:
/// divides by 1 instead of 0.
void SizeCloner::guardDivision(Operation *op) {
  if (!isa<arith::DivUIOp, arith::DivSIOp, arith::RemUIOp, arith::RemSIOp,
           arith::CeilDivUIOp, arith::CeilDivSIOp, arith::FloorDivSIOp>(op))
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Value divisor = op->getOperand(1);
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(divisor.getType(), value));
  };
  Value isZero = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                               divisor, constant(0));
  op->setOperand(1,
                 b.createOrFold<arith::SelectOp>(isZero, constant(1), divisor));
}

LogicalResult SizeCloner::cloneOp(Operation *op) {
  if (!isMemoryEffectFree(op))
    return failure();
  WalkResult result = op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      bool isInside = op->isAncestor(operand.getParentRegion()->getParentOp());
      if (!isInside && failed(clone(operand)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  b.clone(*op, mapping)->walk([&](Operation *nested) {
    guardDivision(nested);
  });
  return success();
}

FailureOr<Value> SizeCloner::clone(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return failure();
  if (auto dim = dyn_cast<memref::DimOp>(result.getOwner())) {
    auto argument = dyn_cast<BlockArgument>(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!argument || !index || !argument.getOwner()->isEntryBlock() ||
        !isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return failure();
    Value size = sizeOf(argument, *index);
    if (!size)
      return failure();
    mapping.map(value, size);
    return size;
  }
  if (isa<BaseMemRefType>(value.getType()) ||
      failed(cloneOp(result.getOwner())))
    return failure();
  return mapping.lookup(value);
}

namespace {
/// The size of a joined dimension as the product of what it joins, for which
/// upstream has no pattern.
struct DimOfCollapsedShape : OpRewritePattern<memref::DimOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(memref::DimOp dim,
                                PatternRewriter &rewriter) const override {
    auto collapse = dim.getSource().getDefiningOp<memref::CollapseShapeOp>();
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!collapse || !index || *index < 0 ||
        *index >= collapse.getResultType().getRank())
      return failure();
    ReassociationIndices group = collapse.getReassociationIndices()[*index];
    Location loc = dim.getLoc();
    Value size = arith::ConstantIndexOp::create(rewriter, loc, 1);
    for (int64_t joined : group)
      size = rewriter.createOrFold<arith::MulIOp>(
          loc, size,
          rewriter.createOrFold<memref::DimOp>(loc, collapse.getSrc(), joined));
    rewriter.replaceOp(dim, size);
    return success();
  }
};
} // namespace

/// Whether control may come back to `block` from itself.
static bool isInCycle(Block *block) {
  SmallVector<Block *> worklist(block->getSuccessors());
  llvm::SmallPtrSet<Block *, 8> seen;
  while (!worklist.empty()) {
    Block *next = worklist.pop_back_val();
    if (next == block)
      return true;
    if (seen.insert(next).second)
      llvm::append_range(worklist, next->getSuccessors());
  }
  return false;
}

static FailureOr<int64_t> elementBytes(memref::AllocOp alloc) {
  Type type = alloc.getType().getElementType();
  if (!type.isIntOrIndexOrFloat())
    return alloc.emitError("no lowering: ")
           << alloc->getName() << " of elements of type " << type;
  return elementBytesOf(type);
}

LogicalResult WorkspacePlanner::collect() {
  RewritePatternSet patterns(func.getContext());
  memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
  memref::populateResolveShapedTypeResultDimsPatterns(patterns);
  memref::DimOp::getCanonicalizationPatterns(patterns, func.getContext());
  patterns.add<DimOfCollapsedShape>(func.getContext());
  // Nothing else of the function can change: what dispatches calls is large.
  SmallVector<Operation *> buffers;
  func.walk([&](Operation *op) {
    if (isa<memref::MemRefDialect>(op->getDialect()))
      buffers.push_back(op);
  });
  auto config = GreedyRewriteConfig().setStrictness(
      GreedyRewriteStrictness::ExistingAndNewOps);
  if (failed(applyOpPatternsGreedily(buffers, std::move(patterns), config)))
    return func.emitError("could not resolve the sizes of buffers");
  bool isRefused = false;
  func.walk([&](memref::AllocOp alloc) {
    if (!alloc.getType().getLayout().isIdentity()) {
      alloc.emitError("no lowering: expected an allocation in row-major order, "
                      "but got ")
          << alloc.getType();
      isRefused = true;
      return;
    }
    Operation *top = func.getBody().findAncestorOpInRegion(*alloc);
    if (isInCycle(top->getBlock())) {
      alloc.emitError("no lowering: ")
          << alloc->getName() << " in a cycle of unstructured control flow";
      isRefused = true;
      return;
    }
    allocs.push_back(alloc);
  });
  return failure(isRefused);
}

FailureOr<Value> WorkspacePlanner::emitOffsets(
    ImplicitLocOpBuilder &b, SizeCloner &cloner,
    llvm::function_ref<void(memref::AllocOp, Value, ValueRange)> place) {
  Value end = arith::ConstantIndexOp::create(b, 0);
  for (memref::AllocOp alloc : allocs) {
    b.setLoc(alloc.getLoc());
    SmallVector<Value> sizes;
    for (Value size : alloc.getDynamicSizes()) {
      FailureOr<Value> cloned = cloner.clone(size);
      if (failed(cloned))
        return alloc.emitError("no lowering: the size of ")
               << alloc->getName()
               << " is not known before the computation runs";
      sizes.push_back(*cloned);
    }
    FailureOr<int64_t> bytes = elementBytes(alloc);
    if (failed(bytes))
      return failure();
    place(alloc, end, sizes);
    int64_t known = *bytes;
    bool overflows = false;
    for (int64_t size : alloc.getType().getShape())
      if (!ShapedType::isDynamic(size))
        overflows |= llvm::MulOverflow(known, size, known);
    if (overflows)
      return alloc.emitError("no lowering: ")
             << alloc->getName() << " of more bytes than 64 bits can count";
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(b, value).getResult();
    };
    Value total = constant(known);
    for (Value size : sizes)
      total = b.createOrFold<arith::MulIOp>(total, size);
    total = b.createOrFold<arith::CeilDivUIOp>(total,
                                               constant(kWorkspaceAlignment));
    total = b.createOrFold<arith::MulIOp>(total, constant(kWorkspaceAlignment));
    end = b.createOrFold<arith::AddIOp>(end, total);
  }
  return end;
}

LogicalResult WorkspacePlanner::emitViews() {
  Block &entry = func.getBody().front();
  IRMapping mapping;
  for (BlockArgument argument : entry.getArguments())
    mapping.map(argument, argument);
  auto b = ImplicitLocOpBuilder::atBlockBegin(func.getLoc(), &entry);
  Type bytesType = MemRefType::get({ShapedType::kDynamic}, b.getIntegerType(8));
  auto sizeOf = [&](BlockArgument argument, int64_t dim) -> Value {
    return b.createOrFold<memref::DimOp>(argument, dim);
  };
  SizeCloner cloner(b, mapping, sizeOf);
  if (failed(func.insertArgument(func.getNumArguments(), bytesType, {},
                                 func.getLoc())))
    return failure();
  Value workspace = entry.getArguments().back();
  SmallVector<Value> views;
  FailureOr<Value> end = emitOffsets(
      b, cloner, [&](memref::AllocOp alloc, Value offset, ValueRange sizes) {
        views.push_back(memref::ViewOp::create(b, alloc.getType(), workspace,
                                               offset, sizes));
      });
  if (failed(end))
    return failure();
  for (auto [alloc, view] : llvm::zip_equal(allocs, views)) {
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }
  return success();
}

/// Computes what the function of result sizes does, which takes the same;
/// nothing where it branches.
SmallVector<Value> WorkspacePlanner::emitResultSizes(ImplicitLocOpBuilder &b,
                                                     ValueRange arguments) {
  auto name = func->getAttrOfType<FlatSymbolRefAttr>(kResultSizesAttrName);
  auto computed =
      SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(func, name);
  if (!llvm::hasSingleElement(computed.getBody()))
    return {};
  Block &body = computed.getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value size) { return mapping.lookup(size); });
}

FailureOr<func::FuncOp> WorkspacePlanner::emitSizeFunction() {
  FunctionType abiType = getAbiType(func);
  SmallVector<Type> inputs = getSizeFunctionInputs(abiType);
  ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
  b.setInsertionPointAfter(func);
  auto sizeFunc =
      func::FuncOp::create(b, (func.getName() + "_workspace_size").str(),
                           b.getFunctionType(inputs, {b.getIndexType()}));
  sizeFunc.setPrivate();
  Block *entry = sizeFunc.addEntryBlock();
  b.setInsertionPointToStart(entry);

  DenseMap<std::pair<unsigned, int64_t>, Value> sizes;
  IRMapping mapping;
  unsigned next = 0;
  for (auto [index, type] : llvm::enumerate(abiType.getInputs()))
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        if (tensor.isDynamicDim(dim))
          sizes[{index, dim}] = entry->getArgument(next++);
  for (auto [index, type] : llvm::enumerate(abiType.getInputs()))
    if (!isa<RankedTensorType>(type))
      mapping.map(func.getArgument(index), entry->getArgument(next++));
  // Intermediates may be as large as a result, or lie in its buffer.
  SmallVector<Value> resultSizes;
  auto sizeOf = [&](BlockArgument argument, int64_t dim) -> Value {
    unsigned number = argument.getArgNumber();
    if (number < abiType.getNumInputs())
      return sizes.lookup({number, dim});
    if (resultSizes.empty())
      resultSizes = emitResultSizes(b, entry->getArguments());
    for (Type type :
         abiType.getResults().take_front(number - abiType.getNumInputs()))
      dim += cast<RankedTensorType>(type).getRank();
    return resultSizes.empty() ? Value() : resultSizes[dim];
  };
  SizeCloner cloner(b, mapping, sizeOf);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value isBad;
  FailureOr<Value> end = emitOffsets(
      b, cloner, [&](memref::AllocOp, Value, ValueRange dynamicSizes) {
        for (Value size : dynamicSizes) {
          Value isNegative = b.createOrFold<arith::CmpIOp>(
              arith::CmpIPredicate::slt, size, zero);
          isBad = isBad ? b.createOrFold<arith::OrIOp>(isBad, isNegative)
                        : isNegative;
        }
      });
  if (failed(end)) {
    sizeFunc.erase();
    return failure();
  }
  b.setLoc(func.getLoc());
  Value size = *end;
  if (isBad)
    size = b.createOrFold<arith::SelectOp>(
        isBad, arith::ConstantIndexOp::create(b, -1), size);
  func::ReturnOp::create(b, size);
  return sizeFunc;
}

LogicalResult WorkspacePlanner::plan() {
  if (failed(collect()))
    return failure();
  if (func->hasAttr(kWorkspaceSizeAttrName)) {
    if (allocs.empty())
      return success();
    return allocs.front().emitError("expected no allocation in '")
           << func.getName() << "', whose workspace is planned already";
  }
  FailureOr<func::FuncOp> sizeFunc = emitSizeFunction();
  if (failed(sizeFunc))
    return failure();
  func->setAttr(kWorkspaceSizeAttrName, FlatSymbolRefAttr::get(*sizeFunc));
  return emitViews();
}

namespace {
struct PlanWorkspacePass
    : public ftuner::impl::UKernelPlanWorkspacePassBase<PlanWorkspacePass> {
  void runOnOperation() override {
    if (failed(expectStages(getOperation(), getArgument(),
                            {Stage::Formed, Stage::Planned, Stage::Prepared,
                             Stage::Bufferized, Stage::Dispatched})))
      return signalPassFailure();
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (getAbiType(func) && failed(WorkspacePlanner(func).plan()))
        return signalPassFailure();
  }
};
} // namespace
