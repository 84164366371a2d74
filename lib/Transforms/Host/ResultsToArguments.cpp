//===- ResultsToArguments.cpp - Results in the caller's buffers -*- C++ -*-===//
//
// A buffer that is allocated, computed and returned becomes the caller's
// buffer, also where the function returns a reshaped view of it: both hold the
// same elements in row-major order. Everything else that is returned
// (arguments, slices, a buffer that another result took) is copied.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Analysis/Stages.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELRESULTSTOARGUMENTSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;

/// The allocation of which `value` is a view of all elements in order; null if
/// it is none.
static memref::AllocOp findWholeAllocation(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return alloc.getType().getLayout().isIdentity() ? alloc : nullptr;
    if (!isa<memref::CastOp, memref::ExpandShapeOp, memref::CollapseShapeOp>(
            op))
      return nullptr;
    value = op->getOperand(0);
  }
  return nullptr;
}

/// Views `buffer`, which holds the elements of the result `value`, with the
/// shape of `alloc`, whose view `value` is, at the place of `alloc`.
static Value viewAs(Value buffer, Value value, memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  ImplicitLocOpBuilder b(alloc.getLoc(), alloc);
  // Between two reshapes, equal types may have different sizes.
  bool sameSizes = type.hasStaticShape() || value == alloc.getResult();
  if (buffer.getType() == type && sameSizes)
    return buffer;
  SmallVector<OpFoldResult> sizes = alloc.getMixedSizes();
  SmallVector<OpFoldResult> strides(sizes.size());
  auto [staticStrides, offset] = type.getStridesAndOffset();
  Value stride;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (!ShapedType::isDynamic(staticStrides[dim])) {
      strides[dim] = b.getIndexAttr(staticStrides[dim]);
      stride = arith::ConstantIndexOp::create(b, staticStrides[dim]);
    } else {
      strides[dim] = stride;
    }
    Value size = getValueOrCreateConstantIndexOp(b, b.getLoc(), sizes[dim]);
    stride = b.createOrFold<arith::MulIOp>(stride, size);
  }
  return memref::ReinterpretCastOp::create(b, type, buffer, b.getIndexAttr(0),
                                           sizes, strides);
}

/// Sizes of the allocation are what it was allocated with, whoever asks.
static void replaceDims(memref::AllocOp alloc) {
  SmallVector<OpFoldResult> sizes = alloc.getMixedSizes();
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers())) {
    auto dim = dyn_cast<memref::DimOp>(user);
    if (!dim || !dim.getConstantIndex())
      continue;
    OpBuilder builder(dim);
    dim.replaceAllUsesWith(getValueOrCreateConstantIndexOp(
        builder, dim.getLoc(), sizes[*dim.getConstantIndex()]));
    dim.erase();
  }
}

static void moveResults(func::FuncOp func) {
  FunctionType type = func.getFunctionType();
  SmallVector<func::ReturnOp> exits;
  func.walk([&](func::ReturnOp exit) { exits.push_back(exit); });
  SmallVector<Value> outputs;
  for (Type result : type.getResults())
    outputs.push_back(
        func.getBody().front().addArgument(result, func.getLoc()));
  for (func::ReturnOp exit : exits) {
    OpBuilder builder(exit);
    for (auto [value, output] : llvm::zip_equal(exit.getOperands(), outputs)) {
      memref::AllocOp alloc = findWholeAllocation(value);
      if (exits.size() == 1 && alloc) {
        replaceDims(alloc);
        alloc.replaceAllUsesWith(viewAs(output, value, alloc));
        alloc.erase();
        continue;
      }
      memref::CopyOp::create(builder, exit.getLoc(), value, output);
    }
    exit.getOperandsMutable().clear();
  }
  SmallVector<Type> inputs(type.getInputs());
  llvm::append_range(inputs, type.getResults());
  func.setFunctionType(FunctionType::get(func.getContext(), inputs, {}));
  func.setResAttrsAttr(nullptr);
  if (ArrayAttr attributes = func.getArgAttrsAttr()) {
    SmallVector<Attribute> all(attributes.begin(), attributes.end());
    all.resize(inputs.size(), DictionaryAttr::get(func.getContext()));
    func.setArgAttrsAttr(ArrayAttr::get(func.getContext(), all));
  }
}

namespace {
struct ResultsToArgumentsPass
    : public ftuner::impl::UKernelResultsToArgumentsPassBase<
          ResultsToArgumentsPass> {
  void runOnOperation() override {
    if (failed(ftuner::expectStages(getOperation(), getArgument(),
                                    {ftuner::Stage::Prepared})))
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!ftuner::getAbiType(func))
        continue;
      for (Type type : func.getResultTypes())
        if (!isa<MemRefType>(type)) {
          func.emitError("expected results on ranked memrefs, but got ")
              << type;
          return signalPassFailure();
        }
      if (failed(resolveDims(func)))
        return signalPassFailure();
      moveResults(func);
    }
  }

private:
  /// Lets views ask the allocations for their sizes.
  LogicalResult resolveDims(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    memref::populateResolveShapedTypeResultDimsPatterns(patterns);
    memref::DimOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(func, std::move(patterns))))
      return func.emitError("could not resolve the sizes of buffers");
    return success();
  }
};
} // namespace
