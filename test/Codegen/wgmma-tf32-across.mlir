// Words are not transposed on the way from shared memory.

// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=wgmma --precision=tf32-truncate 2>&1 | FileCheck %s
// RUN: ftuner-translate %s --ftuner-to-ptx --device=h100 --paths=mma,wgmma --precision=tf32-truncate | FileCheck %s --check-prefix=OTHER

// CHECK: wgmma: expected factors of tf32 that are contiguous along k

// OTHER-NOT: wgmma
// OTHER: mma.sync
// OTHER-NOT: wgmma

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 2048>}} {
  func.func @f(%a: tensor<?x128xf32> {ukernel.shape = ["T", 128]}, %b: tensor<128x192xf32>) -> tensor<?x192xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x128xf32>
    %e = tensor.empty(%m) : tensor<?x192xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x192xf32>) -> tensor<?x192xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x128xf32>, tensor<128x192xf32>) outs(%f : tensor<?x192xf32>) -> tensor<?x192xf32>
    return %p : tensor<?x192xf32>
  }
}
