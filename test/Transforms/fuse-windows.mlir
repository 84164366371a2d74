// RUN: ftuner-test-opt %s -ukernel-fuse-windows -split-input-file | FileCheck %s

// A window starts from a number, reads the image itself, and what lies around
// it is a condition; the padded image, the fill and the window's shape go.
// CHECK-LABEL: func.func @maximum
// CHECK-SAME: %[[X:.*]]: tensor<?x4x8x8xf32>
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NOT: tensor.pad
// CHECK-NOT: linalg.fill
// CHECK-NOT: cf.assert
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%{{.*}} : tensor<?x4x4x4xf32>) attrs = {ukernel.window = "linalg.pooling_nchw_max"}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[LEAST]]) -> (f32)
// CHECK: scf.for
// CHECK: %[[INSIDE:.*]] = arith.select
// CHECK: scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT: tensor.extract %[[X]][
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[LEAST]]
// CHECK: arith.maximumf
// CHECK-NOT: linalg.pooling
// CHECK: return
func.func @maximum(%x: tensor<?x4x8x8xf32>) -> tensor<?x4x4x4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4x8x8xf32>
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %least : f32
  } : tensor<?x4x8x8xf32> to tensor<?x4x9x9xf32>
  %e = tensor.empty(%n) : tensor<?x4x4x4xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<?x4x4x4xf32>) -> tensor<?x4x4x4xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %r = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%p, %w : tensor<?x4x9x9xf32>, tensor<3x3xf32>) outs(%f : tensor<?x4x4x4xf32>) -> tensor<?x4x4x4xf32>
  return %r : tensor<?x4x4x4xf32>
}

// -----

// Sums in f16 are sums in f32, rounded once; the quotient behind them is in the
// same body, in the type that the program gives it.
// CHECK-LABEL: func.func @average
// CHECK: linalg.generic {{.*}}ukernel.window = "linalg.pooling_nhwc_sum"
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: %[[SUM:.*]] = arith.truncf
// CHECK: arith.divf %[[SUM]], %{{.*}} : f16
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @average(%x: tensor<2x8x8x4xf16>) -> tensor<2x4x4x4xf16> {
  %zero = arith.constant 0.0 : f16
  %four = arith.constant 4.0 : f16
  %e = tensor.empty() : tensor<2x4x4x4xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<2x4x4x4xf16>) -> tensor<2x4x4x4xf16>
  %w = tensor.empty() : tensor<2x2xf16>
  %s = linalg.pooling_nhwc_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<2x8x8x4xf16>, tensor<2x2xf16>) outs(%f : tensor<2x4x4x4xf16>) -> tensor<2x4x4x4xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(n, p, q, c) -> (n, p, q, c)>, affine_map<(n, p, q, c) -> (n, p, q, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x4x4x4xf16>) outs(%e : tensor<2x4x4x4xf16>) {
  ^bb0(%a: f16, %o: f16):
    %q = arith.divf %a, %four : f16
    linalg.yield %q : f16
  } -> tensor<2x4x4x4xf16>
  return %r : tensor<2x4x4x4xf16>
}

// -----

// Sizes that only the run knows are held against each other before it; what a
// tensor holds is where the sum starts, and others that read it are left.
// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert %{{.*}}, "sizes of the operands do not fit each other"
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%arg2 : tensor<?x?xf32>) outs({{.*}}) attrs = {ukernel.window = "linalg.generic (arith.mulf, arith.addf)"}
// CHECK: ^bb0(%[[START:.*]]: f32, %{{.*}}: f32):
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]]) -> (f32)
// CHECK: math.exp %[[SUM]]
// CHECK: return %[[SUM]]
func.func @dynamic(%x: tensor<?x?xf32>, %k: tensor<3x?xf32>, %start: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(p, c, k) -> (p * 2 + k, c)>, affine_map<(p, c, k) -> (k, c)>, affine_map<(p, c, k) -> (p, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %k : tensor<?x?xf32>, tensor<3x?xf32>) outs(%start : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  %e = math.exp %r : tensor<?x?xf32>
  return %r, %e : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// Padding of no one value is a tensor.
// CHECK-LABEL: func.func @positions
// CHECK: %[[P:.*]] = tensor.pad
// CHECK: linalg.generic {{.*}}ukernel.window
// CHECK: tensor.extract %[[P]]
func.func @positions(%x: tensor<8xi64>, %e: tensor<8xi64>) -> tensor<8xi64> {
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%a: index):
    %i = arith.index_cast %a : index to i64
    tensor.yield %i : i64
  } : tensor<8xi64> to tensor<10xi64>
  %w = tensor.empty() : tensor<3xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(p, k) -> (p + k)>, affine_map<(p, k) -> (k)>, affine_map<(p, k) -> (p)>], iterator_types = ["parallel", "reduction"]} ins(%p, %w : tensor<10xi64>, tensor<3xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%a: i64, %b: i64, %o: i64):
    %s = arith.addi %o, %a : i64
    linalg.yield %s : i64
  } -> tensor<8xi64>
  return %r : tensor<8xi64>
}

// -----

// Windows of an extent that only the run knows stay, and so do those that a
// warp computes for each point, along channels here.
// CHECK-LABEL: func.func @others
// CHECK: linalg.pooling_nwc_sum
// CHECK: linalg.conv_1d_nwc_wcf
// CHECK-NOT: ukernel.window
func.func @others(%x: tensor<2x16x32xf32>, %w: tensor<?xf32>, %k: tensor<3x32x4xf32>, %e: tensor<2x?x32xf32>, %o: tensor<2x14x4xf32>) -> (tensor<2x?x32xf32>, tensor<2x14x4xf32>) {
  %r = linalg.pooling_nwc_sum {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %w : tensor<2x16x32xf32>, tensor<?xf32>) outs(%e : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  %c = linalg.conv_1d_nwc_wcf {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%x, %k : tensor<2x16x32xf32>, tensor<3x32x4xf32>) outs(%o : tensor<2x14x4xf32>) -> tensor<2x14x4xf32>
  return %r, %c : tensor<2x?x32xf32>, tensor<2x14x4xf32>
}

// -----

// A window of windows: each is an operator of its own, since the second one is
// no elementwise operator when the first one looks for one.
// CHECK-LABEL: func.func @windows_of_windows
// CHECK: %[[INNER:.*]] = linalg.generic {{.*}}ukernel.window
// CHECK: linalg.generic {{.*}}ukernel.window
// CHECK: tensor.extract %[[INNER]]
func.func @windows_of_windows(%x: tensor<?x7xf32>, %w: tensor<?xf32>, %v: tensor<3xf32>, %k: tensor<3xf32>, %e: tensor<?x3xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(b, j, k) -> (b, 2 * j + k)>, affine_map<(b, j, k) -> (k)>, affine_map<(b, j, k) -> (b, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %k : tensor<?x7xf32>, tensor<3xf32>) outs(%e : tensor<?x3xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %m = arith.maximumf %a, %old : f32
    linalg.yield %m : f32
  } -> tensor<?x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%y, %w, %v : tensor<?x3xf32>, tensor<?xf32>, tensor<3xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %old: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %c : f32
    %s = arith.addf %q, %old : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
