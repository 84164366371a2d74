// A convolution through the operator interface, with windows over space, batch
// and reduce axes: planned, dispatched and run. The reference is upstream's own
// lowering of the same sums as a linalg operator.

// RUN: split-file %s %t
// RUN: ftuner-test-opt %t/conv.mlir --ftuner-compile="device=h200" | FileCheck %s
// RUN: ftuner-test-run %t/conv.mlir --device=h200 --args=11x70x67xf32,3x2xf32,5x68x67xf32 --seed=3 --check-bounds --check-races --save-dir=%t/one > /dev/null
// RUN: ftuner-run %t/sums.mlir --device=h200 --args=11x70x67xf32,3x2xf32,5x68x67xf32 --seed=3 --executor=reference --save-dir=%t/expected > /dev/null
// RUN: %python %S/compare_npy.py %t/one/result0.npy %t/expected/result0.npy 1e-5
// RUN: ftuner-test-run %t/conv.mlir --device=v100 --args=3x3x1xf32,3x2xf32,1x1x1xf32 --seed=4 --check-bounds --save-dir=%t/two > /dev/null
// RUN: ftuner-run %t/sums.mlir --device=v100 --args=3x3x1xf32,3x2xf32,1x1x1xf32 --seed=4 --executor=reference --save-dir=%t/expected2 > /dev/null
// RUN: %python %S/compare_npy.py %t/two/result0.npy %t/expected2/result0.npy 1e-5

// A dimension without a batch axis alone stays: the view begins at the batch's
// position, and ends where the last point of the window does.
// CHECK: gpu.module @conv_0_k0
// CHECK-SAME: {kind = "size", name = "m", type = i32}, {kind = "size", name = "n", type = i32}, {kind = "size", name = "b0", type = i32}, {kind = "stride", name = "input0_stride0", type = i32}

//--- conv.mlir
func.func @conv(%x: tensor<?x?x?xf32>, %w: tensor<3x2xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %r = test.conv ins(%x, %w : tensor<?x?x?xf32>, tensor<3x2xf32>) outs(%o : tensor<?x?x?xf32>)
    maps = [affine_map<(m, n, b, k, l) -> (2 * b + k, m + 2 * l, n)>,
            affine_map<(m, n, b, k, l) -> (k, l)>,
            affine_map<(m, n, b, k, l) -> (b, m, n)>] {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    ukernel.yield %s : f32
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

//--- sums.mlir
func.func @conv(%x: tensor<?x?x?xf32>, %w: tensor<3x2xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %r = linalg.generic {indexing_maps = [
      affine_map<(b, m, n, k, l) -> (2 * b + k, m + 2 * l, n)>,
      affine_map<(b, m, n, k, l) -> (k, l)>,
      affine_map<(b, m, n, k, l) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x?x?xf32>, tensor<3x2xf32>) outs(%o : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}
