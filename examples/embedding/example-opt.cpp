//===- example-opt.cpp - Somebody's compiler, with FTuner in it -----------===//
//
// mlir-opt with FTuner's dialect, passes and pipelines, and a pipeline of its
// own around them:
//
//   example-opt model.mlir --example-compile=device=h200
//
//===----------------------------------------------------------------------===//
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/InitAll.h"
#include "FTuner/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {

/// A pass between FTuner's front end and its back end: says how many products
/// of a function became workloads. `ukernel.workload` is an operation like any
/// other there, which other passes may read and move.
struct CountWorkloadsPass
    : public PassWrapper<CountWorkloadsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountWorkloadsPass)

  StringRef getArgument() const override { return "example-count-workloads"; }
  StringRef getDescription() const override {
    return "Says how many workloads a function has";
  }

  void runOnOperation() override {
    int64_t numWorkloads = 0;
    getOperation().walk([&](ftuner::ukernel::WorkloadOp) { ++numWorkloads; });
    getOperation().emitRemark() << numWorkloads << " workloads";
    markAllAnalysesPreserved();
  }
};

} // namespace

/// The options are those of ftuner-compile.
static void buildExamplePipeline(OpPassManager &pm,
                                 const ftuner::FTunerOptions &options) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  ftuner::buildFrontEndPipeline(pm, options);
  pm.addNestedPass<func::FuncOp>(std::make_unique<CountWorkloadsPass>());
  ftuner::buildBackEndPipeline(pm);
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  ftuner::registerAllDialects(registry);
  ftuner::registerAllPasses();
  registerTransformsPasses();
  PassRegistration<CountWorkloadsPass>();
  PassPipelineRegistration<ftuner::FTunerOptions>(
      "example-compile", "FTuner's pipeline, and what this program adds",
      buildExamplePipeline);
  return asMainReturnCode(
      MlirOptMain(argc, argv, "A compiler with FTuner in it\n", registry));
}
