//===- Passes.td - Transformations --------------------------*- tablegen -*-===//
#ifndef FTUNER_TRANSFORMS_PASSES
#define FTUNER_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def UKernelAttachDevicePass : Pass<"ukernel-attach-device", "::mlir::ModuleOp"> {
  let summary = "Attach the description of the target device to the module";
  let description = [{
    Reads a built-in device by name or a JSON file by path and stores its fields
    as `ukernel.device`. Later passes read only the attribute.
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "Name of a built-in device, or path of a device description">];
  let dependentDialects = ["::ftuner::ukernel::UKernelDialect"];
}

def UKernelNormalizeLinalgPass : Pass<"ukernel-normalize-linalg", "::mlir::ModuleOp"> {
  let summary = "Bring contractions and elementwise chains into the form that workloads start from";
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def UKernelFormWorkloadsPass : Pass<"ukernel-form-workloads", "::mlir::ModuleOp"> {
  let summary = "Turn each contraction with its fused epilogue into a ukernel.workload";
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numWorkloads", "workloads", "Number of workloads formed">,
    Statistic<"numLeftovers", "leftovers", "Number of structured operators left over">];
}

def UKernelPlanWorkloadsPass : Pass<"ukernel-plan-workloads", "::mlir::ModuleOp"> {
  let summary = "Search the kernel families of each workload and choose which serves which shape";
  let options = [
    Option<"strategy", "strategy", "std::string", /*default=*/"\"ftuner\"", "Search strategy">,
    Option<"costModel", "cost-model", "std::string", /*default=*/"\"sia-program\"", "Cost model that ranks programs">,
    Option<"topK", "top-k", "int64_t", /*default=*/"1", "Programs kept for each shape">,
    Option<"maxKernels", "max-kernels", "int64_t", /*default=*/"16", "Most kernel families of one workload">,
    Option<"maxCandidates", "max-candidates", "int64_t", /*default=*/"256", "Most candidates for each shape after the filter">,
    Option<"epsilonMin", "epsilon-min", "double", /*default=*/"0.50", "Least padding threshold">,
    Option<"epsilonMax", "epsilon-max", "double", /*default=*/"0.95", "Largest padding threshold">,
    Option<"epsilonStep", "epsilon-step", "double", /*default=*/"0.01", "Stride of the padding threshold">,
    Option<"lambdaMin", "lambda-min", "double", /*default=*/"0.90", "Least occupancy threshold">,
    Option<"lambdaMax", "lambda-max", "double", /*default=*/"0.95", "Largest occupancy threshold">,
    Option<"lambdaStep", "lambda-step", "double", /*default=*/"0.001", "Stride of the occupancy threshold">,
    Option<"zeta", "zeta", "int64_t", /*default=*/"2", "Active blocks for each SM in SetBound">,
    Option<"psi", "psi", "double", /*default=*/"0.5", "Least share of a shape's best compute-to-memory ratio">,
    Option<"activeBlocks", "active-blocks-per-sm", "int64_t", /*default=*/"2", "Blocks for each SM that saturate the device">,
    Option<"c0", "c0", "double", /*default=*/"1.0", "SIA's coefficient of the compute-to-memory ratio">,
    Option<"c1", "c1", "double", /*default=*/"1.0", "SIA's coefficient of the padding">,
    Option<"c2", "c2", "double", /*default=*/"1.0", "SIA's coefficient of the occupancy">];
  let dependentDialects = ["::ftuner::ukernel::UKernelDialect"];
}

def UKernelPrepareHostPass : Pass<"ukernel-prepare-host", "::mlir::ModuleOp"> {
  let summary = "Record the host ABI and add functions that compute result sizes";
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::tensor::TensorDialect"];
}

def UKernelDispatchWorkloadsPass : Pass<"ukernel-dispatch-workloads", "::mlir::ModuleOp"> {
  let summary = "Turn each planned workload into a dispatch over launches of its kernels";
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def UKernelLowerLeftoversPass : Pass<"ukernel-lower-leftovers", "::mlir::ModuleOp"> {
  let summary = "Turn operators that are no workload into simple kernels, a thread for each element";
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def UKernelPlanWorkspacePass : Pass<"ukernel-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "Place intermediates in one workspace that the caller provides";
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::memref::MemRefDialect"];
}

#endif
