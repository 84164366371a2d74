//===- ReferenceLowering.cpp - Linalg to loops by upstream's passes -------===//
#include "FTuner/Dialect/UKernel/Utils/Roundings.h"
#include "FTuner/HostAbi/HostChecks.h"
#include "Reference.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/TensorToLinalg/TensorToLinalgPass.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ftuner {

LogicalResult decomposeAggregates(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<linalg::AggregatedOpInterface> ops;
  module.walk([&](linalg::AggregatedOpInterface op) { ops.push_back(op); });
  for (linalg::AggregatedOpInterface op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return op.emitError("upstream cannot decompose the operation");
    rewriter.replaceOp(op, *values);
  }
  return success();
}

/// tensor.expand_shape to tensor.reshape, which upstream lowers with several
/// dynamic dimensions in one group too.
static void expandByReshape(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<tensor::ExpandShapeOp> ops;
  module.walk([&](tensor::ExpandShapeOp op) { ops.push_back(op); });
  for (tensor::ExpandShapeOp op : ops) {
    rewriter.setInsertionPoint(op);
    Location loc = op.getLoc();
    if (op.getResultType().hasStaticShape())
      continue;
    SmallVector<Value> sizes;
    for (OpFoldResult size : op.getMixedOutputShape())
      sizes.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, size));
    Value shape = tensor::FromElementsOp::create(rewriter, loc, sizes);
    rewriter.replaceOpWithNewOp<tensor::ReshapeOp>(op, op.getResultType(),
                                                   op.getSrc(), shape);
  }
}

//===----------------------------------------------------------------------===//
// Structured operations on memrefs
//===----------------------------------------------------------------------===//

/// Asserts that the operands of a structured operation agree on the extent of
/// each loop, so that the reference never reads out of bounds.
static void assertExtents(linalg::LinalgOp op, OpBuilder &builder) {
  builder.setInsertionPoint(op);
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> extents(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [dim, expression] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expression);
      if (!loop)
        continue;
      OpFoldResult size =
          memref::getMixedSize(builder, loc, operand.get(), dim);
      OpFoldResult &extent = extents[loop.getPosition()];
      if (!extent) {
        extent = size;
        continue;
      }
      if (isEqualConstantIntOrValue(extent, size))
        continue;
      Value equal = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::eq,
          getValueOrCreateConstantIndexOp(builder, loc, extent),
          getValueOrCreateConstantIndexOp(builder, loc, size));
      cf::AssertOp::create(builder, loc, equal,
                           "sizes of the operands of '" +
                               op->getName().getStringRef().str() +
                               "' do not fit each other");
    }
  }
}

/// The loop along which most operands are contiguous or do not move: innermost,
/// it is fast on a CPU. The order in which an element is computed may change
/// for accumulators alone, which are of f64.
static unsigned chooseInnermostLoop(linalg::LinalgOp op) {
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  bool keepsOrder = false;
  for (int64_t number = 0; number < op.getNumDpsInits(); ++number)
    keepsOrder |= !accumulates(op, number);
  unsigned best = op.getNumLoops() - 1;
  int bestScore = -1;
  for (unsigned loop = op.getNumLoops(); loop-- > 0;) {
    if (keepsOrder && llvm::is_contained(reductions, loop) &&
        loop != reductions.back())
      continue;
    int score = 0;
    for (AffineMap map : op.getIndexingMapsArray()) {
      bool moves = map.isFunctionOfDim(loop);
      bool jumps =
          moves && llvm::any_of(map.getResults().drop_back(),
                                [&](AffineExpr expression) {
                                  return expression.isFunctionOfDim(loop);
                                });
      score += !jumps;
    }
    // Where some operand jumps anyway, a sum keeps the result in a register.
    bool reduction =
        op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
    score = 2 * score + reduction;
    if (score > bestScore) {
      best = loop;
      bestScore = score;
    }
  }
  return best;
}

static LogicalResult lowerStructuredOps(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp op : copies) {
    if (!isa<MemRefType>(op.getSource().getType()) ||
        !isa<MemRefType>(op.getTarget().getType()))
      continue;
    rewriter.setInsertionPoint(op);
    linalg::makeMemRefCopyOp(rewriter, op.getLoc(), op.getSource(),
                             op.getTarget());
    rewriter.eraseOp(op);
  }

  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops) {
    assertExtents(op, rewriter);
    if (op.getNumReductionLoops() > 0) {
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::GenericOp> generic =
          isa<linalg::GenericOp>(op)
              ? FailureOr<linalg::GenericOp>(cast<linalg::GenericOp>(op))
              : linalg::generalizeNamedOp(rewriter, op);
      if (failed(generic))
        return op.emitError("upstream cannot generalize the operation");
      unsigned innermost = chooseInnermostLoop(*generic);
      SmallVector<unsigned> order;
      for (unsigned loop = 0; loop < generic->getNumLoops(); ++loop)
        if (loop != innermost)
          order.push_back(loop);
      order.push_back(innermost);
      rewriter.setInsertionPoint(*generic);
      FailureOr<linalg::GenericOp> ordered =
          linalg::interchangeGenericOp(rewriter, *generic, order);
      op = succeeded(ordered) ? *ordered : *generic;
    }
    rewriter.setInsertionPoint(op);
    if (failed(linalg::linalgOpToLoops(rewriter, op)))
      return op.emitError("upstream cannot lower the operation to loops");
    rewriter.eraseOp(op);
  }
  return success();
}

/// Assertions call back instead of ending the program.
static void lowerAssertions(ModuleOp module,
                            std::vector<std::string> &messages) {
  SmallVector<cf::AssertOp> asserts;
  module.walk([&](cf::AssertOp op) { asserts.push_back(op); });
  if (asserts.empty())
    return;
  OpBuilder builder(module.getBodyRegion());
  Type i64 = builder.getI64Type();
  auto callee =
      func::FuncOp::create(builder, module.getLoc(), kAssertionFunction,
                           builder.getFunctionType({i64}, {}));
  callee.setPrivate();
  for (cf::AssertOp op : asserts) {
    builder.setInsertionPoint(op);
    Location loc = op.getLoc();
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value fails = arith::XOrIOp::create(builder, loc, op.getArg(), yes);
    auto guard = scf::IfOp::create(builder, loc, fails, false);
    builder.setInsertionPointToStart(guard.thenBlock());
    Value index =
        arith::ConstantIntOp::create(builder, loc, messages.size(), 64);
    func::CallOp::create(builder, loc, callee, ValueRange{index});
    messages.push_back(op.getMsg().str());
    op.erase();
  }
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

static LogicalResult bufferize(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.addPass(createConvertElementwiseToLinalgPass());
  pm.addPass(createConvertTensorToLinalgPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.allowReturnAllocsFromLoops = true;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  return pm.run(module);
}

static LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager pm(module.getContext());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createForallToForLoopPass());
  functions.addPass(memref::createExpandReallocPass());
  functions.addPass(createConvertVectorToSCFPass());
  pm.addPass(memref::createExpandOpsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(arith::createArithExpandOpsPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

/// Fails at a pad that takes elements away: upstream inserts the whole source
/// into the result, past its end.
static LogicalResult checkPads(ModuleOp module) {
  auto isNegative = [](OpFoldResult size) {
    return getConstantIntValue(size).value_or(0) < 0;
  };
  WalkResult result = module.walk([&](tensor::PadOp pad) -> WalkResult {
    if (llvm::none_of(pad.getMixedLowPad(), isNegative) &&
        llvm::none_of(pad.getMixedHighPad(), isNegative))
      return WalkResult::advance();
    return pad.emitError("a pad that takes elements away has no reference");
  });
  return failure(result.wasInterrupted());
}

LogicalResult lowerReference(ModuleOp module,
                             std::vector<std::string> &messages) {
  if (failed(checkPads(module)))
    return failure();
  expandByReshape(module);
  if (failed(bufferize(module)) || failed(lowerStructuredOps(module)))
    return failure();
  assertSteps(module);
  assertDivisions(module);
  lowerAssertions(module, messages);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                        UnitAttr::get(module.getContext()));
  return lowerToLLVM(module);
}

} // namespace ftuner
