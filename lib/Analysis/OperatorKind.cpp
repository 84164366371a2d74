//===- OperatorKind.cpp - Kinds of operators ------------------------------===//
#include "FTuner/Analysis/OperatorKind.h"
#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace ftuner;

static constexpr std::pair<OperatorKind, llvm::StringLiteral> kWords[] = {
    {OperatorKind::Contraction, "contraction"},
    {OperatorKind::Window, "window"},
    {OperatorKind::Reduction, "reduction"},
    {OperatorKind::Copy, "copy"},
    {OperatorKind::Elementwise, "elementwise"},
};

StringRef ftuner::wordFor(OperatorKind kind) {
  for (const auto &[known, word] : kWords)
    if (known == kind)
      return word;
  llvm_unreachable("expected a kind with a word");
}

std::optional<OperatorKind> ftuner::operatorKindFor(StringRef word) {
  for (const auto &[kind, known] : kWords)
    if (known == word)
      return kind;
  return std::nullopt;
}

/// Returns whether a value is an element as it was read, or a constant: no
/// operation computes it from elements. Positions may decide among several.
static bool isMoved(Value value, Block &body) {
  Operation *op = value.getDefiningOp();
  if (!op || !body.getParentOp()->isAncestor(op))
    return true;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isMoved(select.getTrueValue(), body) &&
           isMoved(select.getFalseValue(), body) &&
           isMoved(select.getCondition(), body);
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    return llvm::all_of(choice->getRegions(), [&](Region &region) {
      return isMoved(region.front().getTerminator()->getOperand(number), body);
    });
  }
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      (isa<MemoryEffectOpInterface>(op) && !isMemoryEffectFree(op)) ||
      op->getName().getStringRef() == "tensor.extract")
    return true;
  // Arithmetic of positions reads no element.
  auto isPosition = [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    bool isElement = argument && argument.getOwner() == &body;
    return !isElement && operand.getType().isIntOrIndex() &&
           isMoved(operand, body);
  };
  return value.getType().isIntOrIndex() &&
         llvm::all_of(op->getOperands(), isPosition);
}

static bool movesElements(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  return llvm::all_of(body.getTerminator()->getOperands(),
                      [&](Value value) { return isMoved(value, body); });
}

/// Returns whether an input is read along a sum of loops.
static bool readsWindows(ukernel::OperatorOpInterface op) {
  for (OpOperand &operand : op->getOpOperands())
    if (op.isInput(operand.getOperandNumber()))
      for (AffineExpr position :
           op.getMatchingIndexingMap(&operand).getResults())
        if (!isa<AffineDimExpr, AffineConstantExpr>(position))
          return true;
  return false;
}

static OperatorKind kindOfPlanned(ukernel::OperatorOpInterface op) {
  if (readsWindows(op))
    return OperatorKind::Window;
  if (auto points = dyn_cast<ukernel::PointwiseOp>(op.getOperation()))
    return llvm::hasSingleElement(points.getMap().front())
               ? OperatorKind::Copy
               : OperatorKind::Elementwise;
  return toUnrangedWorkload(op).isContraction() ? OperatorKind::Contraction
                                                : OperatorKind::Reduction;
}

static OperatorKind kindOfLinalg(linalg::LinalgOp op) {
  if (op->hasAttr(kWindowAttrName) || linalg::isaConvolutionOpInterface(op))
    return OperatorKind::Window;
  if (linalg::isaContractionOpInterface(op) || isSumOfProducts(op))
    return OperatorKind::Contraction;
  if (op.getNumReductionLoops() > 0)
    return OperatorKind::Reduction;
  return movesElements(op) ? OperatorKind::Copy : OperatorKind::Elementwise;
}

OperatorKind ftuner::kindOf(Operation *op) {
  if (auto planned = dyn_cast<ukernel::OperatorOpInterface>(op))
    return kindOfPlanned(planned);
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return kindOfLinalg(structured);
  return isa<linalg::SoftmaxOp>(op) ? OperatorKind::Reduction
                                    : OperatorKind::Copy;
}

bool ftuner::sumsProducts(Operation *op) {
  if (auto planned = dyn_cast<ukernel::OperatorOpInterface>(op))
    return toUnrangedWorkload(planned).isContraction();
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && (linalg::isaContractionOpInterface(structured) ||
                        (linalg::isaConvolutionOpInterface(structured) &&
                         matchSumOfProducts(*structured.getBlock())));
}
