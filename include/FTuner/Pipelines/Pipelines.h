//===- Pipelines.h - FTuner's pipelines -------------------------*- C++ -*-===//
#ifndef FTUNER_PIPELINES_PIPELINES_H
#define FTUNER_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace ftuner {

/// Options of `--ftuner-compile`; the tools take each as `--NAME=VALUE`.
struct FTunerOptions : public mlir::PassPipelineOptions<FTunerOptions> {
  Option<std::string> device{
      *this, "device",
      llvm::cl::desc("Name of a built-in device, or path of a description")};
  Option<std::string> strategy{*this, "strategy",
                               llvm::cl::desc("Search strategy"),
                               llvm::cl::init("ftuner")};
  Option<std::string> costModel{
      *this, "cost-model", llvm::cl::desc("Cost model that ranks programs"),
      llvm::cl::init("latency")};
  Option<std::string> calibration{
      *this, "calibration",
      llvm::cl::desc("Constants of the cost model 'latency': a built-in name "
                     "such as 'global', or a path; '': the device's own, "
                     "that of its die, or the global ones"),
      llvm::cl::init("")};
  Option<int64_t> topK{*this, "top-k",
                       llvm::cl::desc("Programs kept for each shape"),
                       llvm::cl::init(1)};
  Option<int64_t> maxKernels{
      *this, "max-kernels",
      llvm::cl::desc("Most kernel families of one workload"),
      llvm::cl::init(16)};
  Option<int64_t> maxCandidates{
      *this, "max-candidates",
      llvm::cl::desc("Most candidates for each shape after the filter"),
      llvm::cl::init(256)};
  Option<std::string> tileRule{
      *this, "tile-rule",
      llvm::cl::desc("Tiles: 'divisors' of the range's extents, or 'aligned', "
                     "with more that suit the device"),
      llvm::cl::init("aligned")};
  Option<std::string> pool{
      *this, "pool",
      llvm::cl::desc("Programs of a shape: 'exact' covers ranked by score "
                     "alone, or 'tight', with covers that pad less than a row "
                     "of threads"),
      llvm::cl::init("tight")};
  Option<double> epsilonMin{*this, "epsilon-min",
                            llvm::cl::desc("Least padding threshold"),
                            llvm::cl::init(0.50)};
  Option<double> epsilonMax{*this, "epsilon-max",
                            llvm::cl::desc("Largest padding threshold"),
                            llvm::cl::init(0.95)};
  Option<double> epsilonStep{*this, "epsilon-step",
                             llvm::cl::desc("Stride of the padding threshold"),
                             llvm::cl::init(0.01)};
  Option<double> lambdaMin{*this, "lambda-min",
                           llvm::cl::desc("Least occupancy threshold"),
                           llvm::cl::init(0.90)};
  Option<double> lambdaMax{*this, "lambda-max",
                           llvm::cl::desc("Largest occupancy threshold"),
                           llvm::cl::init(0.95)};
  Option<double> lambdaStep{*this, "lambda-step",
                            llvm::cl::desc("Stride of the occupancy threshold"),
                            llvm::cl::init(0.001)};
  Option<int64_t> zeta{
      *this, "zeta",
      llvm::cl::desc("Active blocks for each SM in SetBound; 0: the device's"),
      llvm::cl::init(0)};
  Option<double> psi{
      *this, "psi",
      llvm::cl::desc("Least share of a shape's best compute-to-memory ratio"),
      llvm::cl::init(0.5)};
  Option<int64_t> activeBlocks{
      *this, "active-blocks-per-sm",
      llvm::cl::desc("Blocks for each SM that saturate the device"),
      llvm::cl::init(2)};
  Option<double> c0{
      *this, "c0",
      llvm::cl::desc("SIA's coefficient of the compute-to-memory ratio"),
      llvm::cl::init(1.0)};
  Option<double> c1{*this, "c1",
                    llvm::cl::desc("SIA's coefficient of the padding"),
                    llvm::cl::init(1.0)};
  Option<double> c2{*this, "c2",
                    llvm::cl::desc("SIA's coefficient of the occupancy"),
                    llvm::cl::init(1.0)};
  /// Off by default, so that the output does not depend on installed tools.
  Option<bool> ptxasFeedback{
      *this, "ptxas-feedback",
      llvm::cl::desc("Assemble the kernels of the plans, reject families that "
                     "spill, and search again"),
      llvm::cl::init(false)};
};

/// The whole pipeline: linalg on tensors in; out comes a module with host
/// functions on memrefs that dispatch over `ukernel.launch`, and a `gpu.module`
/// on the NVVM level for every kernel.
void buildFTunerPipeline(mlir::OpPassManager &pm, const FTunerOptions &options);

/// The parts of the pipeline, for tools that stop or start in between.
void buildFrontEndPipeline(mlir::OpPassManager &pm,
                           const FTunerOptions &options);
/// From planned workloads on tensors to host functions that launch kernels,
/// none of which is emitted yet.
void buildLaunchPipeline(mlir::OpPassManager &pm);
/// From planned workloads on tensors to the end.
void buildBackEndPipeline(mlir::OpPassManager &pm);
/// ukernel.workload on tensors to memrefs, destinations passed by the caller.
void buildBufferizationPipeline(mlir::OpPassManager &pm);
/// gpu.func to llvm.func with NVVM ops, for every gpu.module.
void buildKernelLoweringPipeline(mlir::OpPassManager &pm);
/// Host functions of a compiled module to LLVM with the host ABI
/// (docs/abi.md); drops the gpu.modules. `moduleSymbol` names the ftrt_module
/// that the kernels belong to, an external symbol of the result; without one
/// they belong to none, which suits a runtime that knows them by name.
void buildHostLoweringPipeline(mlir::OpPassManager &pm,
                               llvm::StringRef moduleSymbol = {});

/// Registers `ftuner-compile` and the pipelines above as pass pipelines.
void registerFTunerPipelines();
/// What they are registered as, the whole one first.
llvm::ArrayRef<llvm::StringLiteral> getFTunerPipelineNames();

} // namespace ftuner

#endif // FTUNER_PIPELINES_PIPELINES_H
