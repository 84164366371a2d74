//===- UKernelToGPU.cpp - Kernels and their launches to GPU -----*- C++ -*-===//
#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Analysis/Stages.h"
#include "FTuner/Conversion/Passes.h"
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Kernel/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Threading.h"

namespace ftuner {
#define GEN_PASS_DEF_CONVERTUKERNELTOGPUPASS
#include "FTuner/Conversion/Passes.h.inc"
} // namespace ftuner

using namespace mlir;
using namespace ftuner;

namespace {

/// Points a launch to the emitted function and appends what the ABI adds.
void updateLaunch(ukernel::LaunchOp launch, const KernelSignature &signature) {
  ImplicitLocOpBuilder b(launch.getLoc(), launch);
  StringAttr name = launch.getKernel().getRootReference();
  SmallVector<Value> extents(launch.getSizes());
  SmallVector<Value> args(launch.getArgs());
  KernelSignature::LaunchOperands operands = signature.launchOperands(
      b, args, [&](const KernelParameter &parameter) -> Value {
        if (parameter.operand)
          return b.createOrFold<memref::DimOp>(args[*parameter.operand],
                                               parameter.index);
        return extents[parameter.index];
      });
  launch.setKernelAttr(
      SymbolRefAttr::get(name, {FlatSymbolRefAttr::get(name)}));
  launch.getArgsMutable().assign(operands.args);
  launch.getSizesMutable().assign(operands.sizes);
  launch.getStridesMutable().assign(operands.strides);
  if (!signature.hasPart())
    launch.getPartsMutable().clear();
}

struct ConvertUKernelToGPUPass
    : public ftuner::impl::ConvertUKernelToGPUPassBase<
          ConvertUKernelToGPUPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectStages(module, getArgument(),
                            {Stage::Formed, Stage::Planned, Stage::Bufferized,
                             Stage::Dispatched, Stage::Outlined})))
      return signalPassFailure();
    auto kernels = llvm::to_vector(module.getOps<ukernel::KernelOp>());
    if (kernels.empty())
      return;
    FailureOr<DeviceSpec> device = deviceOf(module);
    if (failed(device))
      return signalPassFailure();
    // In a module of its own each, so that threads do not meet.
    std::vector<ModuleOp> places;
    for (ukernel::KernelOp kernel : kernels) {
      OpBuilder b(kernel);
      places.push_back(ModuleOp::create(b, kernel.getLoc()));
      kernel->moveBefore(places.back().getBody(),
                         places.back().getBody()->end());
    }
    std::vector<FailureOr<EmittedKernel>> emitted(kernels.size(), failure());
    {
      // Errors in the order of the kernels.
      ParallelDiagnosticHandler diagnostics(&getContext());
      parallelFor(&getContext(), 0, kernels.size(), [&](size_t index) {
        diagnostics.setOrderIDForThread(index);
        emitted[index] = emit(kernels[index], *device);
        diagnostics.eraseOrderIDForThread();
      });
    }
    auto hasFailed = [](const auto &kernel) { return failed(kernel); };
    if (llvm::any_of(emitted, hasFailed))
      return signalPassFailure();
    llvm::StringMap<KernelSignature> signatures;
    for (auto [place, kernel] : llvm::zip_equal(places, emitted)) {
      kernel->module->moveBefore(place);
      place.erase();
      signatures[kernel->module.getName()] = std::move(kernel->signature);
    }
    module.walk([&](ukernel::LaunchOp launch) {
      auto it = signatures.find(launch.getKernel().getRootReference());
      if (it != signatures.end() &&
          launch.getKernel().getNestedReferences().empty())
        updateLaunch(launch, it->second);
    });
  }

private:
  static FailureOr<EmittedKernel> emit(ukernel::KernelOp kernel,
                                       const DeviceSpec &device) {
    FailureOr<EmittedKernel> emitted = emitKernel(kernel, device);
    if (failed(emitted))
      return failure();
    auto isPassed = llvm::map_to_vector(
        llvm::seq<unsigned>(0, kernel.getNumAxes()),
        [&](unsigned axis) { return emitted->signature.hasAxisSize(axis); });
    emitted->module->setAttr(kWorkAttrName,
                             dropFixedSizes(workOf(kernel), isPassed));
    return emitted;
  }
};

} // namespace
