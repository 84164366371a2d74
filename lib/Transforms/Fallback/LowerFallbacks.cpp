//===- LowerFallbacks.cpp - Simple kernels for the rest ---------*- C++ -*-===//
//
// Everything in a host function that reads or writes elements of buffers and is
// no workload becomes a kernel: linalg ops, copies, stores of scalars. A
// constant lies in the modules of the kernels that read it; a large one that
// several read, and one that a workload reads, is copied to the workspace.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Kernel/Fallback/FallbackKernels.h"
#include "FTuner/Kernel/Fallback/FallbackLoops.h"

#include "FTuner/Analysis/KernelWork.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Dialect/UKernel/Utils/ElementBytes.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace ftuner {
#define GEN_PASS_DEF_UKERNELLOWERFALLBACKSPASS
#include "FTuner/Transforms/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

/// Bytes up to which every fallback kernel that reads a constant has a copy of
/// its own, which costs less than a launch that copies it in each call.
static constexpr int64_t kMaxOwnConstantBytes = 4096;

/// Returns true if `user` becomes a fallback kernel, or lies in the body of
/// one.
static bool isInKernel(Operation *user) {
  return isa<linalg::LinalgOp, memref::CopyOp>(user) ||
         (isa<memref::LoadOp>(user) &&
          user->getParentOfType<linalg::LinalgOp>());
}

/// Returns true if the kernels that read the constant hold it in their modules.
static bool isHeldByKernels(MutableArrayRef<memref::GetGlobalOp> ops) {
  int64_t numUses = 0;
  for (memref::GetGlobalOp op : ops) {
    numUses += std::distance(op->user_begin(), op->user_end());
    if (!llvm::all_of(op->getUsers(), isInKernel))
      return false;
  }
  MemRefType type = ops.front().getType();
  return numUses <= 1 ||
         type.getNumElements() * elementBytesOf(type.getElementType()) <=
             kMaxOwnConstantBytes;
}

/// Copies the other constants that `func` uses to buffers at its start.
static void bufferConstants(func::FuncOp func) {
  llvm::MapVector<StringAttr, SmallVector<memref::GetGlobalOp>> uses;
  func.walk([&](memref::GetGlobalOp op) {
    uses[op.getNameAttr().getAttr()].push_back(op);
  });
  for (auto &[name, ops] : uses) {
    if (isHeldByKernels(ops))
      continue;
    // Stands at the block's first operation, which may be one that is erased
    // below: each constant has its own builder.
    auto b = ImplicitLocOpBuilder::atBlockBegin(ops.front().getLoc(),
                                                &func.getBody().front());
    MemRefType type = ops.front().getType();
    Value constant = memref::GetGlobalOp::create(b, type, name.getValue());
    Value buffer = memref::AllocOp::create(
        b, MemRefType::get(type.getShape(), type.getElementType()));
    linalg::makeMemRefCopyOp(b, b.getLoc(), constant, buffer);
    for (memref::GetGlobalOp op : ops) {
      op.replaceAllUsesWith(buffer);
      op.erase();
    }
  }
}

/// Emits a remark on a copy of a buffer: why bufferization has left it.
static void remarkOnCopy(linalg::GenericOp copy) {
  Value target = copy.getDpsInits().front();
  while (auto view = target.getDefiningOp<ViewLikeOpInterface>())
    target = view.getViewSource();
  auto argument = dyn_cast<BlockArgument>(target);
  bool isResult =
      argument && isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  StringRef text = isResult
                       ? "elements are copied, since no operator writes them "
                         "into the function's result"
                       : "elements are copied, since an operator or a loop "
                         "overwrites the copy";
  copy->setAttr(kCopyAttrName, StringAttr::get(copy.getContext(), text));
  InFlightDiagnostic remark = emitRemark(copy.getLoc(), "copy: ");
  remark << text;
  auto type = cast<MemRefType>(copy.getDpsInits().front().getType());
  if (type.hasStaticShape())
    remark << " (" << type.getNumElements() * elementBytesOf(type) << " bytes)";
}

/// Turns copies and stores of scalars into linalg ops, parallel loops into
/// loops over launches, and drops deallocations.
static LogicalResult normalize(func::FuncOp func) {
  IRRewriter rewriter(func.getContext());
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isa<memref::CopyOp, memref::StoreOp, memref::DeallocOp, scf::ForallOp>(
            op) &&
        !op->getParentOfType<linalg::LinalgOp>())
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    ImplicitLocOpBuilder b(op->getLoc(), op);
    if (auto loop = dyn_cast<scf::ForallOp>(op)) {
      rewriter.setInsertionPoint(loop);
      if (failed(scf::forallToForLoop(rewriter, loop)))
        return loop.emitError("no lowering: scf.forall");
      continue;
    }
    if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      // A tensor that was written in place is copied onto itself: no kernel.
      if (copy.getSource() != copy.getTarget())
        remarkOnCopy(linalg::makeMemRefCopyOp(b, b.getLoc(), copy.getSource(),
                                              copy.getTarget()));
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      MemRefType type = store.getMemRefType();
      SmallVector<OpFoldResult> ones(type.getRank(), b.getIndexAttr(1));
      Value element = store.getMemRef();
      if (type.getRank() > 0)
        element = memref::SubViewOp::create(
            b,
            memref::SubViewOp::inferRankReducedResultType(
                {}, type, getAsOpFoldResult(store.getIndices()), ones, ones),
            element, getAsOpFoldResult(store.getIndices()), ones, ones);
      linalg::FillOp::create(b, store.getValueToStore(), element);
    }
    op->erase();
  }
  return success();
}

/// Whether the host itself can run `op`.
static bool runsOnHost(Operation *op) {
  if (isa<memref::AllocOp, memref::DimOp, memref::CastOp, memref::SubViewOp,
          memref::ExpandShapeOp, memref::CollapseShapeOp,
          memref::ReinterpretCastOp, memref::ExtractStridedMetadataOp,
          memref::ExtractAlignedPointerAsIndexOp, memref::ViewOp,
          memref::TransposeOp, memref::MemorySpaceCastOp,
          memref::AssumeAlignmentOp, func::FuncOp, func::ReturnOp,
          ukernel::AssertOp, ukernel::ExactImageOp, ukernel::LaunchOp>(op))
    return true;
  if (isa<scf::ParallelOp, scf::ForallOp>(op))
    return false;
  return isa<affine::AffineDialect, arith::ArithDialect, cf::ControlFlowDialect,
             index::IndexDialect, math::MathDialect, scf::SCFDialect,
             ub::UBDialect>(op->getDialect());
}

namespace {
struct LowerFallbacksPass
    : public ftuner::impl::UKernelLowerFallbacksPassBase<LowerFallbacksPass> {
  void runOnOperation() override {
    if (failed(expectStages(getOperation(), getArgument(),
                            {Stage::Formed, Stage::Planned, Stage::Prepared,
                             Stage::Bufferized, Stage::Dispatched})))
      return signalPassFailure();
    llvm::StringSet<> symbols = collectSymbols(getOperation());
    // Reports every refusal of the module, not only the first one.
    bool isRefused = false;
    for (auto func : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!getAbiType(func))
        continue;
      bufferConstants(func);
      if (failed(normalize(func))) {
        isRefused = true;
        continue;
      }
      isRefused |= failed(outlineAll(func, symbols));
      isRefused |= failed(checkRest(func));
    }
    if (isRefused)
      return signalPassFailure();
    for (auto global :
         llvm::make_early_inc_range(getOperation().getOps<memref::GlobalOp>()))
      if (SymbolTable::symbolKnownUseEmpty(global, getOperation()))
        global.erase();
  }

private:
  LogicalResult outlineAll(func::FuncOp func, llvm::StringSet<> &symbols) {
    SmallVector<linalg::LinalgOp> ops;
    func.walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    unsigned number = 0;
    bool isRefused = false;
    for (linalg::LinalgOp op : ops) {
      if (auto known = op->getAttrOfType<DictionaryAttr>(kKernelAttrName)) {
        // Part of a workload, and no fallback.
        StringRef base = known.getAs<StringAttr>("name").getValue();
        isRefused |= failed(
            outlineFallback(op, uniqueName(base, symbols), getOperation()));
        continue;
      }
      std::string name = uniqueName(
          (func.getName() + "_fallback_" + Twine(number++)).str(), symbols);
      emitRemark(op->getLoc(), "fallback: ")
          << op->getName() << " runs as kernel '" << name << "', a "
          << (splitLoops(op).isAcrossLanes ? "warp" : "thread")
          << " for each point of its parallel loops";
      if (op.getBlock()
              ->walk([](cf::AssertOp) { return WalkResult::interrupt(); })
              .wasInterrupted())
        emitRemark(op->getLoc(),
                   "fallback: assertions on elements are not checked");
      isRefused |= failed(outlineFallback(op, name, getOperation()));
    }
    return failure(isRefused);
  }

  LogicalResult checkRest(func::FuncOp func) {
    bool isRefused = false;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      // An operator that was refused stays, with what its body reads.
      if (isa<linalg::LinalgOp>(op))
        return WalkResult::skip();
      if (runsOnHost(op))
        return WalkResult::advance();
      isRefused = true;
      if (isa<memref::LoadOp>(op))
        op->emitError("no lowering: ")
            << op->getName() << " would read device memory on the host";
      else
        op->emitError("no lowering: ") << op->getName();
      return WalkResult::skip();
    });
    return failure(isRefused);
  }
};
} // namespace
