//===- Passes.td - Conversions ------------------------------*- tablegen -*-===//
#ifndef FTUNER_CONVERSION_PASSES
#define FTUNER_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertUKernelToGPUPass : Pass<"convert-ukernel-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Emit each ukernel.kernel as a gpu.func through its codegen path";
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
    "::mlir::NVVM::NVVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def UKernelExpandMathPass : Pass<"ukernel-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand math functions, so that kernels need no device library";
  let description = [{
    Uses upstream's polynomial approximations and expansions; what is left become
    LLVM intrinsics that are instructions of the GPU. A function that would need
    a device library is an error.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertUKernelToLLVMPass : Pass<"convert-ukernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Give host functions the host ABI and turn launches into calls of the runtime";
  let description = [{
    Functions with `ukernel.abi_type` take pointers and sizes and return a code;
    the functions of their result sizes and workspace size become public.
    Launches check what must fit 32 bits, fill in the parameters and call
    `ftrt_launch`; failed assertions and divisions that would trap call
    `ftrt_fail`. Nothing aborts. The
    gpu.modules are dropped; their `ukernel.entry` is all that is needed.

    Expects unstructured control flow and leaves memref, arith and cf to
    upstream's conversions. `docs/abi.md` states the ABI.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"];
}

#endif
