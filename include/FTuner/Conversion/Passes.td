//===- Passes.td - Conversions ------------------------------*- tablegen -*-===//
#ifndef FTUNER_CONVERSION_PASSES
#define FTUNER_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertUKernelToGPUPass : Pass<"convert-ukernel-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Emit each ukernel.kernel as a gpu.func through its codegen path";
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def UKernelExpandMathPass : Pass<"ukernel-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand math functions, so that kernels need no device library";
  let description = [{
    Uses upstream's polynomial approximations and expansions. A function that
    would still become a call of a device library is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ConvertUKernelToLLVMPass : Pass<"convert-ukernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower host functions to LLVM with the host ABI and calls of the runtime";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif
