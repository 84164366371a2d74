//===- RowFormation.cpp - Reductions of rows to ukernel.row_reduction -----===//
#include "RowFormation.h"

#include "OperatorSizes.h"
#include "Rows/RowAccumulation.h"
#include "Rows/RowDescription.h"
#include "Rows/RowPatterns.h"

#include "FTuner/Analysis/ConstantValues.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace ftuner;
using ukernel::RowReductionOp;

namespace {

/// Builds the operator that a description of rows describes.
class RowsBuilder {
public:
  RowsBuilder(RowDescription &rows, RewriterBase &rewriter)
      : rows(rows), group(rows.group), rewriter(rewriter) {}

  /// Replaces the group by the operator, except for values that nobody uses.
  RowReductionOp build();

private:
  Value createOperand(const RowDescription::Input &input);
  Value createTensor(const RowDescription::Output &output);
  RowReductionOp createOp();
  Value expandUnitDims(Value result, const RowDescription::Output &output);
  void replaceOutput(const RowDescription::Output &output, Value result);

  RowDescription &rows;
  const RowGroup &group;
  RewriterBase &rewriter;
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Collapses the dimensions of a tensor along which its position is constant:
/// those of extent 1.
static Value collapseUnitDims(OpBuilder &b, Value tensor, AffineMap access) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices group;
  for (auto [dim, position] : llvm::enumerate(access.getResults())) {
    group.push_back(dim);
    if (!isa<AffineConstantExpr>(position))
      groups.push_back(std::exchange(group, {}));
  }
  if (groups.size() == access.getNumResults())
    return tensor;
  if (!groups.empty())
    groups.back().append(group);
  return tensor::CollapseShapeOp::create(b, tensor.getLoc(), tensor, groups);
}

/// Returns the operand of an input: the value without dimensions of extent 1,
/// or an integer for an index.
Value RowsBuilder::createOperand(const RowDescription::Input &input) {
  Value value = input.value;
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(rewriter, value.getLoc(),
                                      rewriter.getI64Type(), value);
  if (isa<RankedTensorType>(value.getType()))
    return collapseUnitDims(rewriter, value, input.access);
  return value;
}

/// Returns the tensor that an output is written to.
Value RowsBuilder::createTensor(const RowDescription::Output &output) {
  auto type = cast<RankedTensorType>(output.value.getType());
  Location loc = output.value.getLoc();
  SmallVector<OpFoldResult> sizes;
  if (group.hasSingleRow())
    sizes.push_back(rewriter.getIndexAttr(1));
  for (auto [size, position] :
       llvm::zip_equal(tensor::getMixedSizes(rewriter, loc, output.shape),
                       group.getLayout(output.value).getResults()))
    if (!isa<AffineConstantExpr>(position))
      sizes.push_back(size);
  return tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

RowReductionOp RowsBuilder::createOp() {
  SmallVector<Value> values, tensors;
  SmallVector<AffineMap> maps;
  for (const RowDescription::Input &input : rows.inputs) {
    values.push_back(createOperand(input));
    maps.push_back(input.map);
  }
  for (const RowDescription::Output &output : rows.outputs) {
    tensors.push_back(createTensor(output));
    maps.push_back(output.map);
  }
  auto op = RowReductionOp::create(
      rewriter, group.getMembers().back()->getLoc(),
      ValueRange(tensors).getTypes(), values, tensors,
      rewriter.getAffineMapArrayAttr(maps),
      /*ranges=*/ArrayAttr(), /*plan=*/FlatSymbolRefAttr(),
      /*phase=*/IntegerAttr(), /*reductionsCount=*/rows.reductions.size());
  for (auto [region, reduction] :
       llvm::zip_equal(op.getReductions(), rows.reductions))
    region.takeBody(*reduction);
  op.getValues().takeBody(*rows.values);
  op.getMap().takeBody(*rows.map);
  return op;
}

/// Gives a result the dimensions of extent 1 that the output has.
Value RowsBuilder::expandUnitDims(Value result,
                                  const RowDescription::Output &output) {
  Location loc = output.value.getLoc();
  auto type = cast<RankedTensorType>(result.getType());
  // They lie before or after other dimensions.
  SmallVector<ReassociationIndices> groups(type.getRank());
  SmallVector<OpFoldResult> given =
      tensor::getMixedSizes(rewriter, loc, result);
  SmallVector<OpFoldResult> sizes;
  SmallVector<int64_t> shape;
  int64_t next = 0;
  for (auto [dim, position] :
       llvm::enumerate(group.getLayout(output.value).getResults())) {
    bool isUnit = isa<AffineConstantExpr>(position);
    if (!groups.empty())
      groups[isUnit ? std::max<int64_t>(next - 1, 0) : next].push_back(dim);
    sizes.push_back(isUnit ? rewriter.getIndexAttr(1) : given[next]);
    shape.push_back(isUnit ? 1 : type.getDimSize(next));
    next += !isUnit;
  }
  return tensor::ExpandShapeOp::create(
      rewriter, loc, RankedTensorType::get(shape, type.getElementType()),
      result, groups, sizes);
}

/// Replaces a member's value outside the group by the operator's result.
void RowsBuilder::replaceOutput(const RowDescription::Output &output,
                                Value result) {
  Value value = output.value;
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  if (group.hasSingleRow()) {
    SmallVector<ReassociationIndices> groups;
    if (output.isAlongRow)
      groups.push_back({0, 1});
    result = tensor::CollapseShapeOp::create(rewriter, loc, result, groups);
  }
  if (cast<RankedTensorType>(result.getType()).getRank() != type.getRank())
    result = expandUnitDims(result, output);
  if (result.getType() != type)
    result = tensor::CastOp::create(rewriter, loc, type, result);
  rewriter.replaceUsesWithIf(value, result, [&](OpOperand &use) {
    return !group.isMember(use.getOwner());
  });
}

RowReductionOp RowsBuilder::build() {
  rewriter.setInsertionPointAfter(group.getMembers().back());
  RowReductionOp op = createOp();
  ExtentAnalysis extents(op->getParentOfType<FunctionOpInterface>());
  settleSizes(op, extents, rewriter, "rows");
  rewriter.setInsertionPointAfter(op);
  for (auto [output, result] : llvm::zip_equal(rows.outputs, op.getResults()))
    replaceOutput(output, result);
  return op;
}

//===----------------------------------------------------------------------===//
// Formation
//===----------------------------------------------------------------------===//

/// Erases the members of a group and their reshapes, unless they are in use.
static void eraseUnused(const RowGroup &group, RewriterBase &rewriter) {
  SmallVector<Operation *> ops(group.getReshapes());
  ops.append(group.getMembers().begin(), group.getMembers().end());
  // Users come first.
  llvm::sort(ops, [](Operation *lhs, Operation *rhs) {
    return rhs->isBeforeInBlock(lhs);
  });
  for (Operation *op : ops)
    if (op->use_empty())
      rewriter.eraseOp(op);
}

/// Replaces a group by the operator that a path supports.
static void formRows(RowDescription &rows, RewriterBase &rewriter) {
  RowReductionOp op = RowsBuilder(rows, rewriter).build();
  // Other users of the group's values may stand before its last member.
  sortTopologically(op->getBlock());
  eraseUnused(rows.group, rewriter);
}

/// Returns true if an operation of a function reduces.
static bool hasReductions(FunctionOpInterface function) {
  return function
      ->walk([](Operation *op) {
        auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        bool isReduction = isa<linalg::SoftmaxOp>(op) ||
                           (linalgOp && linalgOp.getNumReductionLoops() != 0);
        return isReduction ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t ftuner::formRowReductions(FunctionOpInterface function,
                                  const PathSupport &support,
                                  const DenseSet<Value> &constants,
                                  RewriterBase &rewriter) {
  RowElements elements(support);
  auto areRows = [&](Type type) {
    return elements.areSupported(type, RowAccess::AlongRow);
  };
  if (!hasReductions(function) || !areRows(rewriter.getF32Type()))
    return 0;
  auto isSupported = [&](linalg::LinalgOp seed) {
    return isRowReduction(seed) && matchRows(seed, support, elements);
  };
  normalizeRows(function, areRows, isSupported, rewriter);
  SmallVector<linalg::LinalgOp> seeds;
  function->walk([&](linalg::LinalgOp op) {
    if (isRowReduction(op) && !hasConstantOperands(op, constants))
      seeds.push_back(op);
  });
  int64_t numFormed = 0;
  llvm::SmallPtrSet<Operation *, 16> taken;
  for (linalg::LinalgOp seed : seeds) {
    if (taken.contains(seed))
      continue;
    std::optional<RowDescription> rows = matchRows(seed, support, elements);
    if (!rows)
      continue;
    for (linalg::LinalgOp member : rows->group.getMembers())
      taken.insert(member);
    formRows(*rows, rewriter);
    ++numFormed;
  }
  return numFormed;
}
