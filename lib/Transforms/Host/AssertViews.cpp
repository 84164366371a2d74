//===- AssertViews.cpp - Assertions for casts -------------------*- C++ -*-===//
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELASSERTVIEWSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;

/// Returns true if the host runs `op`, outside of all bodies of operators.
static bool runsOnHost(Operation *op) {
  Operation *parent = op->getParentOp();
  while (isa<scf::SCFDialect>(parent->getDialect()))
    parent = parent->getParentOp();
  return isa<func::FuncOp>(parent);
}

static void assertClaims(tensor::CastOp cast) {
  auto source = dyn_cast<RankedTensorType>(cast.getSource().getType());
  auto target = dyn_cast<RankedTensorType>(cast.getType());
  if (!source || !target)
    return;
  ImplicitLocOpBuilder b(cast.getLoc(), cast);
  for (int64_t dim = 0; dim < target.getRank(); ++dim) {
    if (!source.isDynamicDim(dim) || target.isDynamicDim(dim))
      continue;
    int64_t claimed = target.getDimSize(dim);
    Value size = tensor::DimOp::create(b, cast.getSource(), dim);
    Value same =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, size,
                              arith::ConstantIndexOp::create(b, claimed));
    cf::AssertOp::create(b, same,
                         "expected size " + std::to_string(claimed) +
                             " of dimension " + std::to_string(dim));
  }
}

/// Keeps a pad that takes away as many elements as it adds: upstream folds a
/// pad whose result has the static type of its source.
static void keepPad(tensor::PadOp pad) {
  auto isZero = [](OpFoldResult size) {
    return getConstantIntValue(size) == 0;
  };
  if (pad.getResultType() == pad.getSourceType() &&
      !llvm::all_of(pad.getMixedLowPad(), isZero))
    pad.setNofold(true);
}

namespace {
struct AssertViewsPass
    : public ftuner::impl::UKernelAssertViewsPassBase<AssertViewsPass> {
  void runOnOperation() override {
    SmallVector<tensor::CastOp> casts;
    getOperation().walk([&](tensor::CastOp cast) {
      if (runsOnHost(cast))
        casts.push_back(cast);
    });
    llvm::for_each(casts, assertClaims);
    getOperation().walk(keepPad);
  }
};
} // namespace
