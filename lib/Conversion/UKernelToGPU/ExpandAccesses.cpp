//===- ExpandAccesses.cpp - Transfers and views -----------------*- C++ -*-===//
//
// Upstream's patterns, applied to the operations that they are made for. The
// passes that upstream has for them rewrite all of a kernel, several times.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Conversion/Passes.h"

#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELEXPANDACCESSESPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;

namespace {
struct UKernelExpandAccessesPass
    : public ftuner::impl::UKernelExpandAccessesPassBase<
          UKernelExpandAccessesPass> {
  void runOnOperation() override {
    Operation *kernel = getOperation();
    bool hasTransfers = kernel
                            ->walk([](VectorTransferOpInterface) {
                              return WalkResult::interrupt();
                            })
                            .wasInterrupted();
    if (hasTransfers) {
      OpPassManager transfers(gpu::GPUModuleOp::getOperationName());
      transfers.addPass(createConvertVectorToSCFPass());
      if (failed(runPipeline(transfers, kernel)))
        return signalPassFailure();
    }

    SmallVector<Operation *> views;
    kernel->walk([&](Operation *op) {
      if (isa_and_nonnull<memref::MemRefDialect>(op->getDialect()))
        views.push_back(op);
    });
    RewritePatternSet patterns(&getContext());
    memref::populateExpandStridedMetadataPatterns(patterns);
    auto config = GreedyRewriteConfig().setStrictness(
        GreedyRewriteStrictness::ExistingAndNewOps);
    if (failed(applyOpPatternsGreedily(views, std::move(patterns), config)))
      return signalPassFailure();
  }
};
} // namespace
