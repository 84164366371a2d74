//===- Passes.td - Conversions ------------------------------*- tablegen -*-===//
#ifndef FTUNER_CONVERSION_PASSES
#define FTUNER_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertUKernelToGPUPass : Pass<"convert-ukernel-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Emit each ukernel.kernel as a gpu.func through its codegen path";
  let description = [{
    The codegen path emits what one block computes; this pass adds the kernel
    ABI, the grid and the branch between two parts. Launches get what the ABI
    passes: sizes and strides that are dynamic, and the count of the first part
    where there are two. A family that the path cannot emit for the module's
    device is an error.

    ```mlir
    ukernel.launch @k0 blocks(%grid) args(%a, %b, %zero, %o : …) sizes(%m, %n, %k) parts(%n1)
    ukernel.kernel @k0(%A: memref<?x768xf32>, …) attributes {schedule = #schedule} {
      ukernel.combine axis 0 [%n1 x 112, 128] { … }
    }
    // becomes
    ukernel.launch @k0::@k0 blocks(%grid) args(%a, %b, %o : …) sizes(%m) parts(%n1)
    gpu.module @k0 attributes {ukernel.entry = #ukernel.entry<threads = 256, …>} {
      gpu.func @k0(%lhs: memref<f32>, %rhs: memref<f32>, %output: memref<f32>, %m: i32, %n1: i32) kernel { … }
    }
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def UKernelExpandMathPass : Pass<"ukernel-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand math functions, so that kernels need no device library";
  let description = [{
    Uses upstream's polynomial approximations and expansions, and for `erf` of
    at most 32 bits an approximation within 2 ulp of f32, computed in f32; what
    is left becomes LLVM intrinsics that are instructions of the GPU. A function
    that would need a device library is an error.

    ```mlir
    %y = math.sqrt %x : f32
    // becomes
    %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def UKernelExpandAccessesPass : Pass<"ukernel-expand-accesses", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand transfers of vectors, and views into offsets and strides";
  let description = [{
    What `convert-vector-to-scf` and `expand-strided-metadata` do, without a look
    at the other operations of a kernel, which are most of it.

    ```mlir
    %0 = memref.subview %view[%row, 0] [8, 4] [1, 1] : memref<?x64xf32> to memref<8x4xf32, …>
    // becomes
    %offset = affine.apply affine_map<()[s0] -> (s0 * 64)>()[%row]
    %0 = memref.reinterpret_cast %base to offset: [%offset], sizes: [8, 4], strides: [64, 1] : …
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def UKernelPassTensorMapsPass : Pass<"ukernel-pass-tensor-maps", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Pass the tensor maps of kernels by value";
  let description = [{
    `convert-gpu-to-nvvm` takes a pointer for a pointer. Those that
    `ukernel.entry` says are tensor maps become addresses of the 128 bytes that
    the host passes.

    ```mlir
    llvm.func @k(%lhs: !llvm.ptr, %lhs_map: !llvm.ptr) attributes {nvvm.kernel}
    // becomes
    llvm.func @k(%lhs: !llvm.ptr,
                 %lhs_map: !llvm.ptr {llvm.align = 64 : i64,
                                      llvm.byval = !llvm.array<128 x i8>,
                                      nvvm.grid_constant}) attributes {nvvm.kernel}
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def ConvertUKernelToLLVMPass : Pass<"convert-ukernel-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Give host functions the host ABI and turn launches into calls of the runtime";
  let description = [{
    Functions with `ukernel.abi_type` take pointers and sizes and return a code;
    the functions of their result sizes and workspace size become public.
    Launches check what must fit 32 bits, fill in the parameters and call
    `ftrt_launch`; `ukernel.exact_image` calls `ftrt_image_is_exact`; failed
    assertions and divisions that would trap call `ftrt_fail`. Nothing aborts.
    The gpu.modules are dropped; their `ukernel.entry` is all that is needed.

    Each kernel launched is an internal `ftrt_kernel`, named `ftrt_kernel_` and
    the entry's name. With `module-symbol` they point to the `ftrt_module` of
    that name, which whoever links the code defines, and functions that older
    runtimes lack are weak symbols: where one is missing, the call fails.

    Expects unstructured control flow and leaves memref, arith and cf to
    upstream's conversions. `docs/abi.md` states the ABI.

    ```mlir
    func.func @f(%a: memref<?xf32>, %out: memref<?xf32>, %workspace: memref<?xi8>)
        attributes {ukernel.abi_type = (tensor<?xf32>) -> tensor<?xf32>, …} {
      ukernel.launch @k::@k blocks(%blocks) args(%a, %out : …) sizes(%n)
      return
    }
    // becomes
    func.func @f(%a: !llvm.ptr, %out: !llvm.ptr, %n: i64, %workspace: !llvm.ptr, %stream: !llvm.ptr) -> i32 {
      …
      %code = llvm.call @ftrt_launch(%kernel, %grid, %threads, %shared, %stream, %parameters) : … -> i32
      …
      return %c0_i32 : i32
    }
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"];
  let options = [
    Option<"moduleSymbol", "module-symbol", "std::string", /*default=*/"\"\"",
           "Symbol of the ftrt_module that kernels belong to, an "
           "external global; empty: they belong to none">];
}

#endif
