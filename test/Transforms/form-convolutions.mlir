// RUN: ftuner-opt %s --ukernel-normalize-linalg --ukernel-form-workloads -split-input-file | FileCheck %s

// Padding of a grouped convolution is behind a reshape.
// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7, d8, d9) -> (d3, d4, d9, d5 + d7 - 1, d6 + d8)>
// CHECK-LABEL: func.func @groups
// CHECK-NOT: tensor.pad
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<2x6x3x2x4xf32>, tensor<?x2x4x?x9xf32>) {{.*}} maps = [#{{.*}}, #[[X]], {{.*}}] fused = [1, 1, 2, 2, 2] padded
func.func @groups(%x: tensor<?x8x?x9xf32>, %w: tensor<2x6x3x2x4xf32>, %o: tensor<?x2x6x?x8xf32>) -> tensor<?x2x6x?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x8x?x9xf32>
  %h = tensor.dim %x, %c2 : tensor<?x8x?x9xf32>
  %two = arith.constant 2 : index
  %ph = arith.addi %h, %two : index
  %p = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<?x8x?x9xf32> to tensor<?x8x?x9xf32>
  %g = tensor.expand_shape %p [[0], [1, 2], [3], [4]] output_shape [%n, 2, 4, %ph, 9] : tensor<?x8x?x9xf32> into tensor<?x2x4x?x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, g, f, p, q, r, s, c) -> (n, g, c, p + r, q + s)>,
      affine_map<(n, g, f, p, q, r, s, c) -> (g, f, r, s, c)>, affine_map<(n, g, f, p, q, r, s, c) -> (n, g, f, p, q)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%g, %w : tensor<?x2x4x?x9xf32>, tensor<2x6x3x2x4xf32>) outs(%o : tensor<?x2x6x?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x2x6x?x8xf32>
  return %r : tensor<?x2x6x?x8xf32>
}

// -----

// What computes an image stays before a convolution that reads it without
// padding, so that this stays one.
// CHECK-LABEL: func.func @producer
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: ukernel.workload {{.*}} fused = [0, 0, 0]
func.func @producer(%x: tensor<2x9x9x16xf32>, %w: tensor<1x1x16x24xf32>, %o: tensor<2x5x5x24xf32>) -> tensor<2x5x5x24xf32> {
  %e = tensor.empty() : tensor<2x9x9x16xf32>
  %y = linalg.exp ins(%x : tensor<2x9x9x16xf32>) outs(%e : tensor<2x9x9x16xf32>) -> tensor<2x9x9x16xf32>
  %r = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>} ins(%y, %w : tensor<2x9x9x16xf32>, tensor<1x1x16x24xf32>) outs(%o : tensor<2x5x5x24xf32>) -> tensor<2x5x5x24xf32>
  return %r : tensor<2x5x5x24xf32>
}

// -----

// A diagonal is read by no windows: a loop stands alone in two dimensions.
// CHECK-LABEL: func.func @diagonal
// CHECK-NOT: ukernel.workload
func.func @diagonal(%x: tensor<8x8x16xf32>, %w: tensor<16x24xf32>, %o: tensor<8x24xf32>) -> tensor<8x24xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, f, k) -> (i, i, k)>, affine_map<(i, f, k) -> (k, f)>, affine_map<(i, f, k) -> (i, f)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<8x8x16xf32>, tensor<16x24xf32>) outs(%o : tensor<8x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x24xf32>
  return %r : tensor<8x24xf32>
}

// -----

// Windows that are not known to end within an image are checked where there is
// something to read.
// CHECK-LABEL: func.func @ends
// CHECK: cf.assert %{{.*}}, "expected windows to end within dimension 1 of the lhs in a matrix product"
// CHECK-NOT: within dimension 2
// CHECK: ukernel.workload
func.func @ends(%x: tensor<2x?x9x16xf32>, %w: tensor<3x3x16x24xf32>, %o: tensor<2x?x7x24xf32>) -> tensor<2x?x7x24xf32> {
  %r = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x?x9x16xf32>, tensor<3x3x16x24xf32>) outs(%o : tensor<2x?x7x24xf32>) -> tensor<2x?x7x24xf32>
  return %r : tensor<2x?x7x24xf32>
}
