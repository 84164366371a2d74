//===- FormWorkloads.cpp - Contractions to ukernel.workload ---------------===//
#include "FTuner/Analysis/ConstantValues.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Transforms/Passes.h"
#include "FTuner/Workload/Contraction.h"
#include "Linalg/LinalgPatterns.h"
#include "OperatorSizes.h"
#include "PointwiseFormation.h"
#include "RowFormation.h"
#include "WorkloadFormation.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELFORMWORKLOADSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Asserts at the function's entry that each symbol has one size.
void assertSymbols(FunctionOpInterface function, RewriterBase &rewriter) {
  Block &entry = function.getFunctionBody().front();
  rewriter.setInsertionPointToStart(&entry);
  struct Occurrence {
    BlockArgument argument;
    int64_t dim;
  };
  llvm::MapVector<StringAttr, SmallVector<Occurrence>> occurrences;
  for (BlockArgument argument : entry.getArguments()) {
    auto shape = function.getArgAttrOfType<ArrayAttr>(
        argument.getArgNumber(), ukernel::UKernelDialect::kShapeAttrName);
    if (!shape || !isa<RankedTensorType>(argument.getType()))
      continue;
    for (auto [dim, entry] : llvm::enumerate(shape))
      if (auto symbol = dyn_cast<StringAttr>(entry))
        occurrences[symbol].push_back({argument, static_cast<int64_t>(dim)});
  }
  auto isDynamic = [](const Occurrence &occurrence) {
    return cast<RankedTensorType>(occurrence.argument.getType())
        .isDynamicDim(occurrence.dim);
  };
  auto sizeOf = [&](const Occurrence &occurrence) -> Value {
    return rewriter.createOrFold<tensor::DimOp>(
        function.getLoc(), occurrence.argument, occurrence.dim);
  };
  auto nameOf = [&](const Occurrence &occurrence) {
    return describeArgument(function, occurrence.argument.getArgNumber());
  };
  for (auto &[symbol, places] : occurrences) {
    // Sizes are compared with a static one, if there is one.
    auto reference = llvm::find_if_not(places, isDynamic);
    if (reference == places.end())
      reference = places.begin();
    for (const Occurrence &place : places) {
      if (!isDynamic(place) || &place == &*reference)
        continue;
      Value size = sizeOf(place);
      Value expected = sizeOf(*reference);
      Value equal =
          arith::CmpIOp::create(rewriter, function.getLoc(),
                                arith::CmpIPredicate::eq, size, expected);
      std::string message =
          "symbol '" + symbol.str() + "': expected dimension " +
          std::to_string(place.dim) + " of " + nameOf(place) +
          " to equal dimension " + std::to_string(reference->dim) + " of " +
          nameOf(*reference);
      cf::AssertOp::create(rewriter, function.getLoc(), equal, message);
    }
  }
}

/// Erases the operations that the formation left without uses.
void eraseDeadOps(FunctionOpInterface function, RewriterBase &rewriter) {
  SmallVector<Operation *> ops;
  function.getFunctionBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp>(op) ||
        isa_and_nonnull<tensor::TensorDialect>(op->getDialect()) ||
        isa<affine::AffineApplyOp, arith::ConstantOp>(op))
      ops.push_back(op);
    return isa<linalg::LinalgOp, ukernel::OperatorOpInterface>(op)
               ? WalkResult::skip()
               : WalkResult::advance();
  });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

/// Returns the tensor.empty whose elements `tensor` has; null if there is none.
tensor::EmptyOp findEmpty(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  while (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                         tensor::ExpandShapeOp, tensor::ExtractSliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return dyn_cast_or_null<tensor::EmptyOp>(op);
}

/// Remarks on an operator that computes with elements that are not set.
void remarkOnUninitialized(linalg::LinalgOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand))
      continue;
    tensor::EmptyOp empty = findEmpty(operand.get());
    if (!empty)
      continue;
    InFlightDiagnostic remark = emitRemark(op->getLoc(), "undefined: ");
    remark << op->getName()
           << (op.isDpsInit(&operand) ? " accumulates into" : " reads")
           << " a tensor.empty, whose elements nobody has set";
    remark.attachNote(empty.getLoc()) << "the tensor; linalg.fill would set it";
  }
}

/// Returns true if an operator reads or writes integers of less than a byte,
/// which other compilers pack.
bool hasPackedNumbers(linalg::LinalgOp op) {
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    return integer && integer.getWidth() > 1 && integer.getWidth() < 8;
  });
}

/// Returns true if an operator convolves each channel by itself, with some
/// filters: as a product it would have only the window's taps along k, and only
/// a channel's filters along n.
bool isOfEachChannel(linalg::LinalgOp op) {
  std::optional<Convolution> convolution = matchConvolution(op);
  if (!convolution || convolution->groups.empty())
    return false;
  AffineMap image =
      op.getMatchingIndexingMap(op.getDpsInputOperand(convolution->image));
  return llvm::none_of(convolution->sums, [&](unsigned loop) {
    return llvm::is_contained(image.getResults(),
                              getAffineDimExpr(loop, op.getContext()));
  });
}

struct UKernelFormWorkloadsPass
    : public ftuner::impl::UKernelFormWorkloadsPassBase<
          UKernelFormWorkloadsPass> {
  using UKernelFormWorkloadsPassBase::UKernelFormWorkloadsPassBase;

  void runOnOperation() override {
    std::optional<FactorPrecision> allowed = findFactorPrecision(precision);
    if (!allowed) {
      getOperation().emitError("option --precision: expected one of ")
          << llvm::join(factorPrecisionNames(), ", ") << ", but got '"
          << precision << "'";
      return signalPassFailure();
    }
    factorPrecision = *allowed;
    FailureOr<PathSupport> support = PathSupport::forModule(getOperation());
    if (failed(support))
      return signalPassFailure();
    // Rows may be left without loss: fallback kernels compute them.
    PathSupport rowSupport = *support;
    if (!paths.empty()) {
      llvm::Expected<SmallVector<const CodegenModel *>> others =
          parseCodegenModels(paths);
      if (!others) {
        getOperation().emitError("option --paths: ")
            << llvm::toString(others.takeError());
        return signalPassFailure();
      }
      support->add(*others);
      rowSupport = support->restrictedTo(*others);
    }
    warnOfUnreadSymbols(getOperation());
    getOperation().walk([&](FunctionOpInterface function) {
      if (function.isExternal())
        return;
      runOnFunction(function, *support, rowSupport);
    });
  }

private:
  /// Returns the values whose products are left; none unless options say so.
  DenseSet<Value> findLeftConstants(FunctionOpInterface function) {
    return leaveConstantProducts ? findConstantValues(function)
                                 : DenseSet<Value>();
  }

  /// Matches an operator that becomes a workload. Marks packed products that
  /// are left.
  std::optional<WorkloadSource> match(linalg::LinalgOp op,
                                      const PathSupport &support,
                                      ExtentAnalysis &extents) {
    std::optional<WorkloadSource> source = matchWorkload(op, support, &extents);
    if (!source && leavePackedProducts && hasPackedNumbers(op))
      op->setAttr(kLeftAttrName, UnitAttr::get(&getContext()));
    return source;
  }

  /// Forms the contractions that match now. Returns true if it formed one.
  bool formWorkloads(FunctionOpInterface function, const PathSupport &support,
                     const PathSupport &rowSupport, RewriterBase &rewriter) {
    // Each round has an analysis of its own: it assumes assertions in the order
    // of the program, and has values that are erased between rounds.
    ExtentAnalysis extents(function);
    DenseSet<Value> constants = findLeftConstants(function);
    SmallVector<linalg::LinalgOp> candidates;
    function->walk([&](linalg::LinalgOp op) {
      if ((leaveWindows && matchConvolution(op)) ||
          (leavePointwise && isOfEachChannel(op) &&
           isWindowWorkload(op, rowSupport)))
        return;
      if (isProduct(op) && !hasConstantOperands(op, constants))
        candidates.push_back(op);
    });
    bool isAnyFormed = false;
    for (linalg::LinalgOp op : candidates)
      if (std::optional<WorkloadSource> source = match(op, support, extents)) {
        allowPrecision(formWorkload(*source, extents, rewriter));
        ++numWorkloads;
        isAnyFormed = true;
      }
    return isAnyFormed;
  }

  /// Lets a product of f32 round its factors, if the option allows that.
  void allowPrecision(ukernel::WorkloadOp op) {
    if (factorPrecision == FactorPrecision::F32)
      return;
    // Factors may be cast from narrower types. The operator is described anew:
    // its region has the prologues, whose casts say in which type it
    // multiplies. The workload that was matched does not have them.
    Workload workload = toWorkload(op);
    std::optional<ContractionView> product = workload.asContraction();
    if (product && product->multipliedType() == ElementType::F32 &&
        workload.accumulatorType() == ElementType::F32) {
      op.setPrecision(FloatTF32Type::get(op.getContext()));
      op.setTruncated(factorPrecision == FactorPrecision::TF32Truncate);
    }
  }

  void runOnFunction(FunctionOpInterface function, const PathSupport &support,
                     const PathSupport &rowSupport) {
    IRRewriter rewriter(&getContext());
    eraseDeadOps(function, rewriter);
    function->walk([](linalg::LinalgOp op) { remarkOnUninitialized(op); });
    assertSymbols(function, rewriter);
    SmallVector<linalg::GenericOp> generics;
    DenseSet<Value> constants = findLeftConstants(function);
    function->walk([&](linalg::GenericOp op) {
      if (!hasConstantOperands(op, constants))
        generics.push_back(op);
    });
    for (linalg::GenericOp op : generics)
      (void)sumToProduct(op, rewriter);
    // A contraction may match only after another one has taken its operators.
    while (formWorkloads(function, support, rowSupport, rewriter))
      eraseDeadOps(function, rewriter);
    if (int64_t rows = formRowReductions(
            function, rowSupport, findLeftConstants(function), rewriter)) {
      numWorkloads += rows;
      eraseDeadOps(function, rewriter);
    }
    constants = findLeftConstants(function);
    function->walk([&](linalg::LinalgOp op) {
      if (!op.hasPureTensorSemantics() ||
          (leavePointwise && (isPointwiseWorkload(op, rowSupport) ||
                              isWindowWorkload(op, rowSupport))))
        return;
      ++numFallbacks;
      InFlightDiagnostic remark = emitRemark(op->getLoc(), "fallback: ");
      if (leaveWindows && matchConvolution(op)) {
        op->setAttr(kLeftAttrName, UnitAttr::get(&getContext()));
        remark << "'" << op->getName() << "' is a convolution with windows";
        return;
      }
      if (op->hasAttr(kLeftAttrName)) {
        remark << "'" << op->getName()
               << "' is a contraction on integers of less than a byte";
        return;
      }
      if (!isProduct(op) || !hasConstantOperands(op, constants)) {
        remark << explainFallback(op, support);
        return;
      }
      remark << "'" << op->getName() << "' is a contraction of constants";
      op->setAttr(kConstantAttrName, UnitAttr::get(&getContext()));
    });
  }

  /// The precision that the option names.
  FactorPrecision factorPrecision = FactorPrecision::F32;
};
} // namespace
