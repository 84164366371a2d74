// Kernels of the path for Hopper's tensor cores: by default and by an option
// alone, for sm_90a, with one fence, barrier and group of products in a step.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 | FileCheck %s --check-prefix=DEFAULT
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --failed-paths=wgmma | FileCheck %s --check-prefix=FAILED
// RUN: not ftuner-translate %s --ftuner-to-ptx --device=a100 --paths=wgmma 2>&1 | FileCheck %s --check-prefix=OLDER
// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=mma,hgmma 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: .target sm_90a
// CHECK: .extern .shared .align 1024
// CHECK: wgmma.fence.sync.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k16.f32.bf16.bf16
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0

// DEFAULT: .target sm_90a
// DEFAULT: wgmma.mma_async
// FAILED: .target sm_90{{$}}
// FAILED-NOT: wgmma

// OLDER: wgmma: expected a product of f16, bf16, tf32 or i8 on a device of compute capability 9.0, but got one of bf16 on a100
// UNKNOWN: error: option --paths: expected names of codegen paths ({{.*}}wgmma{{.*}}), separated by commas, but got 'hgmma'

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 2048>}} {
  func.func @f(%a: tensor<?x1024xbf16> {ukernel.shape = ["T", 1024]}, %b: tensor<1024x4096xbf16>) -> tensor<?x4096xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x1024xbf16>
    %e = tensor.empty(%m) : tensor<?x4096xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x1024xbf16>, tensor<1024x4096xbf16>) outs(%f : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    return %p : tensor<?x4096xf32>
  }
}
