//===- OperatorWork.cpp - Work of a function's operators ------------------===//
#include "FTuner/Target/OperatorWork.h"
#include "FTuner/Analysis/Extents.h"
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Analysis/OperatorKind.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ftuner;

/// Maximum, difference, exponential, sum and quotient of each element.
static constexpr int64_t kSoftmaxFlops = 5;

namespace {
class WorkCollector {
public:
  explicit WorkCollector(FunctionOpInterface function)
      : function(function), extents(function) {}

  FunctionOperators collect();

private:
  AffineExpr formulaOf(const Extent &extent);
  AffineExpr sizeOf(Value tensor, int64_t dim) {
    return formulaOf(extents.dimOf(tensor, dim));
  }
  AffineExpr elementsOf(Value tensor);
  AffineExpr flopsOf(ukernel::OperatorOpInterface op);
  AffineExpr flopsOf(linalg::LinalgOp op);
  /// Returns the FLOPs of IREE's iree_linalg_ext.attention; null if it has
  /// another form.
  AffineExpr flopsOfAttention(Operation *op);
  void add(Operation *op, AffineExpr flops, bool isContraction);
  void visit(Operation *op);
  /// Leaves out the sizes that no formula has.
  void dropUnusedSizes();

  FunctionOpInterface function;
  ExtentAnalysis extents;
  FunctionOperators work;
  DenseMap<unsigned, AffineExpr> symbols;
};
} // namespace

AffineExpr WorkCollector::formulaOf(const Extent &extent) {
  MLIRContext *context = function->getContext();
  AffineExpr result = getAffineConstantExpr(extent.factor, context);
  for (unsigned unknown : extent.unknowns) {
    auto [it, isNew] = symbols.try_emplace(unknown, AffineExpr());
    if (isNew) {
      it->second = getAffineSymbolExpr(work.sizes.size(), context);
      Axis axis{extents.nameOf(unknown), {}};
      ukernel::RangeAttr range = extents.rangeOf({1, {unknown}});
      axis.range = toSizeRange(range);
      axis.weights = toWeights(range);
      work.sizeNames.push_back(axis.name);
      work.sizes.push_back(std::move(axis));
    }
    result = result * it->second;
  }
  return result;
}

AffineExpr WorkCollector::elementsOf(Value tensor) {
  AffineExpr result = getAffineConstantExpr(1, function->getContext());
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    result = result * sizeOf(tensor, dim);
  return result;
}

AffineExpr WorkCollector::flopsOf(ukernel::OperatorOpInterface op) {
  SmallVector<AffineExpr> axes;
  for (auto [axis, extent] : llvm::enumerate(op.getStaticExtents())) {
    AffineExpr &size = axes.emplace_back(getAffineConstantExpr(
        ShapedType::isDynamic(extent) ? 1 : extent, op->getContext()));
    if (ShapedType::isDynamic(extent))
      for (auto [source, dim] : op.getExtentSources(axis))
        size = size * sizeOf(source, dim);
  }
  return ftuner::flopsOf(op, axes);
}

AffineExpr WorkCollector::flopsOf(linalg::LinalgOp op) {
  SmallVector<AffineExpr> dims;
  for (OpOperand &operand : op->getOpOperands())
    for (size_t dim = 0; dim < op.getShape(&operand).size(); ++dim)
      dims.push_back(sizeOf(operand.get(), dim));
  AffineExpr result =
      getAffineConstantExpr(ftuner::flopsOf(*op.getBlock()), op->getContext());
  for (AffineExpr loop : op.getShapesToLoopsMap().getResults())
    result = result * loop.replaceDims(dims);
  return result;
}

AffineExpr WorkCollector::flopsOfAttention(Operation *op) {
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto maps =
      properties ? properties.getAs<ArrayAttr>("indexing_maps") : ArrayAttr();
  if (!maps || maps.size() < 3 || op->getNumOperands() < 3)
    return {};
  // Loops of the query, of the key and of the value.
  llvm::MapVector<unsigned, AffineExpr> sizes;
  llvm::SmallDenseSet<unsigned> loops[3];
  for (unsigned number : llvm::seq(3)) {
    auto map = dyn_cast<AffineMapAttr>(maps[number]);
    auto type = dyn_cast<RankedTensorType>(op->getOperand(number).getType());
    if (!map || !type || type.getRank() != map.getValue().getNumResults())
      return {};
    for (auto [dim, result] : llvm::enumerate(map.getValue().getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(result);
      if (!loop)
        return {};
      loops[number].insert(loop.getPosition());
      sizes.try_emplace(loop.getPosition(),
                        sizeOf(op->getOperand(number), dim));
    }
  }
  AffineExpr one = getAffineConstantExpr(1, op->getContext());
  AffineExpr scores = one, firstReduce = one, columns = one;
  for (auto [loop, size] : sizes) {
    bool inQuery = loops[0].contains(loop), inKey = loops[1].contains(loop),
         inValue = loops[2].contains(loop);
    if (inQuery && inKey && !inValue)
      firstReduce = firstReduce * size;
    else if (inValue && !inQuery && !inKey)
      columns = columns * size;
    else
      scores = scores * size;
  }
  // Both products, and the softmax between them.
  return scores * (firstReduce * 2 + columns * 2 + kSoftmaxFlops);
}

void WorkCollector::add(Operation *op, AffineExpr flops, bool isContraction) {
  bool isWorkload = isa<ukernel::OperatorOpInterface>(op);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  work.operators.push_back(
      {linalgOp ? operatorNameOf(linalgOp) : op->getName().getStringRef().str(),
       sourcePosition(op->getLoc(), /*hasFolder=*/false), isWorkload,
       isContraction, flops});
}

void WorkCollector::visit(Operation *op) {
  extents.assumeAssertionsBefore(op);
  if (auto planned = dyn_cast<ukernel::OperatorOpInterface>(op)) {
    add(op, flopsOf(planned), sumsProducts(op));
  } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    // On buffers nothing is planned, which is reported elsewhere.
    if (!linalgOp.hasPureTensorSemantics())
      return;
    add(op, flopsOf(linalgOp), sumsProducts(op));
  } else if (isa<linalg::SoftmaxOp>(op) &&
             isa<RankedTensorType>(op->getOperand(0).getType())) {
    add(op, elementsOf(op->getOperand(0)) * kSoftmaxFlops, false);
  } else if (!op->getDialect() ||
             isa<linalg::LinalgDialect>(op->getDialect())) {
    // Operations that hold or move tensors do not compute numbers.
    StringRef name = op->getName().getStringRef();
    StringRef dialect = op->getName().getDialectNamespace();
    if (AffineExpr flops = name == "iree_linalg_ext.attention"
                               ? flopsOfAttention(op)
                               : AffineExpr())
      return add(op, flops, /*isContraction=*/true);
    if (!llvm::is_contained({"util", "hal", "flow"}, dialect) &&
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
      work.unknown.push_back(name.str());
  }
}

void WorkCollector::dropUnusedSizes() {
  llvm::SmallDenseSet<unsigned> used;
  for (const OperatorWork &op : work.operators)
    op.flops.walk([&](AffineExpr inner) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(inner))
        used.insert(symbol.getPosition());
    });
  SmallVector<AffineExpr> renumbered;
  FunctionOperators kept;
  for (unsigned position : llvm::seq<unsigned>(work.sizes.size())) {
    renumbered.push_back(
        getAffineSymbolExpr(kept.sizes.size(), function->getContext()));
    if (!used.contains(position))
      continue;
    kept.sizeNames.push_back(work.sizeNames[position]);
    kept.sizes.push_back(work.sizes[position]);
  }
  for (OperatorWork &op : work.operators)
    op.flops = op.flops.replaceSymbols(renumbered);
  work.sizeNames = std::move(kept.sizeNames);
  work.sizes = std::move(kept.sizes);
}

FunctionOperators WorkCollector::collect() {
  work.name = function.getName().str();
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    visit(op);
    return isa<linalg::LinalgOp, ukernel::OperatorOpInterface>(op)
               ? WalkResult::skip()
               : WalkResult::advance();
  });
  dropUnusedSizes();
  return std::move(work);
}

FunctionOperators ftuner::collectOperatorWork(FunctionOpInterface function) {
  return WorkCollector(function).collect();
}
