//===- UKernelToLLVM.cpp - The host ABI -------------------------*- C++ -*-===//
#include "FTuner/Conversion/Passes.h"
#include "HostFunction.h"

#include "FTuner/Analysis/Stages.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/HostAbi/HostChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace ftuner {
#define GEN_PASS_DEF_CONVERTUKERNELTOLLVMPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {
struct ConvertUKernelToLLVM
    : public ftuner::impl::ConvertUKernelToLLVMPassBase<ConvertUKernelToLLVM> {
  using ConvertUKernelToLLVMPassBase::ConvertUKernelToLLVMPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectStages(module, getArgument(),
                            {Stage::Formed, Stage::Planned, Stage::Prepared,
                             Stage::Bufferized, Stage::Dispatched,
                             Stage::Outlined, Stage::Emitted})))
      return signalPassFailure();
    llvm::StringMap<Attribute> entries;
    takeKernels(module, entries);
    HostRuntime runtime(module, moduleSymbol);
    SmallVector<func::FuncOp> funcs;
    for (auto func : module.getOps<func::FuncOp>())
      if (getAbiType(func) && !func.isExternal())
        funcs.push_back(func);
    // While buffers are still arguments, which messages name.
    for (auto func : module.getOps<func::FuncOp>())
      lowerViews(func);
    for (func::FuncOp func : funcs)
      if (failed(lowerHostFunction(func, runtime)))
        return signalPassFailure();
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal())
        continue;
      assertDivisions(func);
      assertSizesFit(func);
      if (failed(lowerRuntimeOps(func, runtime, entries)))
        return signalPassFailure();
    }
  }

private:
  /// Drops what only kernels and their search need; keeps the descriptors.
  void takeKernels(ModuleOp module, llvm::StringMap<Attribute> &entries) {
    for (Operation &op :
         llvm::make_early_inc_range(module.getBody()->getOperations())) {
      if (auto kernels = dyn_cast<gpu::GPUModuleOp>(op))
        if (auto entry = op.getAttrOfType<ukernel::EntryAttr>(
                ukernel::UKernelDialect::kEntryAttrName))
          entries[kernels.getName()] = entry;
      if (isa<gpu::GPUModuleOp, ukernel::PlanOp>(op))
        op.erase();
    }
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());
  }
};
} // namespace
