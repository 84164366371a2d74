// A product with slices of k, a factor of which is a result: the size of the
// workspace follows from that of the result, which the function computes.
// RUN: ftuner-run %s --function=f --device=v100 --executor=emulator --check --check-bounds \
// RUN:   --args=2x3x2048xf32,2048x64xf32 --args=2x1x2048xf32,2048x64xf32 --args=2x0x2048xf32,2048x64xf32 | FileCheck %s
// CHECK: f(2x3x2048xf32,2048x64xf32)
// CHECK: result 0: 2x3x2048xf32, relative error
// CHECK: result 1: 6x64xf32, relative error
// CHECK: launches: 3 ({{.*}}_sum
// CHECK: result 1: 2x64xf32, relative error
// CHECK: result 1: 0x64xf32, relative error

#map = affine_map<(b, t, k) -> (b, t, k)>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 16>}} {
  func.func @f(%x: tensor<2x?x2048xf32> {ukernel.shape = [2, "T", 2048]}, %w: tensor<2048x64xf32>) -> (tensor<2x?x2048xf32>, tensor<?x64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c1 : tensor<2x?x2048xf32>
    %e = tensor.empty(%t) : tensor<2x?x2048xf32>
    %h = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x : tensor<2x?x2048xf32>) outs(%e : tensor<2x?x2048xf32>) {
    ^bb0(%a: f32, %o: f32):
      %r = math.tanh %a : f32
      linalg.yield %r : f32
    } -> tensor<2x?x2048xf32>
    %rows = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x?x2048xf32> into tensor<?x2048xf32>
    %m = tensor.dim %rows, %c0 : tensor<?x2048xf32>
    %pe = tensor.empty(%m) : tensor<?x64xf32>
    %pz = linalg.fill ins(%zero : f32) outs(%pe : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%rows, %w : tensor<?x2048xf32>, tensor<2048x64xf32>) outs(%pz : tensor<?x64xf32>) -> tensor<?x64xf32>
    return %h, %p : tensor<2x?x2048xf32>, tensor<?x64xf32>
  }
}
