// Ranges that are legal one by one, and whose product is more than an axis can
// have: the kernels are for what it can have, and a call with more is refused in
// the names of the program; here one without elements, which needs no memory.

// RUN: rm -rf %t && split-file %s %t
// RUN: ftuner-run %t/product.mlir --device=h200 --max-kernels=1 --check --args=3x8x20xf32,20x24xf32 | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/sums.mlir --device=h200 --max-kernels=1 --check --args=2x7x9xf32 | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/sums.mlir --device=h200 --max-kernels=1 --args=0x65536x32767xf32 | FileCheck %s --check-prefix=MOST
// RUN: not ftuner-run %t/sums.mlir --device=h200 --max-kernels=1 --args=0x65536x32768xf32 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: sed 's/65536/65537/g; s/<1 to/<65536 to/g' %t/sums.mlir | not ftuner-opt --ukernel-attach-device=device=h200 --ukernel-form-workloads --ukernel-plan-workloads 2>&1 | FileCheck %s --check-prefix=NONE
// ONE: result 0: {{.*}} relative error {{[0-9.e-]+}} (tolerance
// MOST: result 0: 0xf32
// MORE: error: {{.*}}: expected 'H' times 'W' to be at most 2147483647 in rows, but got 2147483648
// NONE: error: {{.*}}axis 'R = H * W': expected a least size from 0 to 2147483647, but got 4294967296

//--- product.mlir
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 65536>, T = #ukernel.range<1 to 65536>}} {
  func.func @f(%x: tensor<?x?x20xf32> {ukernel.shape = ["B", "T", 20]}, %w: tensor<20x24xf32>) -> tensor<?x?x24xf32> {
    %z = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %d0 = tensor.dim %x, %c0 : tensor<?x?x20xf32>
    %d1 = tensor.dim %x, %c1 : tensor<?x?x20xf32>
    %e = tensor.empty(%d0, %d1) : tensor<?x?x24xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x?x24xf32>) -> tensor<?x?x24xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(b, t, n, k) -> (b, t, k)>, affine_map<(b, t, n, k) -> (k, n)>, affine_map<(b, t, n, k) -> (b, t, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x?x20xf32>, tensor<20x24xf32>) outs(%i : tensor<?x?x24xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %y = arith.addf %o, %m : f32
      linalg.yield %y : f32
    } -> tensor<?x?x24xf32>
    return %s : tensor<?x?x24xf32>
  }
}
//--- sums.mlir
module attributes {ukernel.symbols = {H = #ukernel.range<1 to 65536>, W = #ukernel.range<1 to 65536>}} {
  func.func @f(%x: tensor<?x?x?xf32> {ukernel.shape = ["N", "H", "W"]}) -> tensor<?xf32> {
    %z = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x?x?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.reduce ins(%x : tensor<?x?x?xf32>) outs(%i : tensor<?xf32>) dimensions = [1, 2] (%a: f32, %b: f32) {
      %c = arith.addf %a, %b : f32
      linalg.yield %c : f32
    }
    return %s : tensor<?xf32>
  }
}
