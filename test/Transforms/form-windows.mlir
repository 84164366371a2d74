// RUN: ftuner-opt %s --ukernel-form-windows -split-input-file | FileCheck %s
// RUN: ftuner-opt %s --ukernel-form-windows=paths=rows -split-input-file | FileCheck %s --check-prefix=NONE

// NONE-NOT: ukernel.pointwise

// The padded image, the fill and the window's shape go; the accumulator starts
// from the number of the fill, and the padding is a value of the input.
// CHECK-DAG: #[[IMAGE:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d2, d3, d4 * 2 + d6 - 1, d5 * 2 + d7 - 1)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d2, d3, d4, d5)>
// CHECK-LABEL: func.func @maximum
// CHECK-SAME: %[[X:.*]]: tensor<?x4x8x8xf32>
// CHECK-NOT: tensor.pad
// CHECK-NOT: linalg
// CHECK: ukernel.pointwise ins(%[[X]] : tensor<?x4x8x8xf32>) outs(%{{.*}} : tensor<?x4x4x4xf32>) maps = [#[[IMAGE]], #[[OUT]]] taps = [3, 3] padded = [0xFF800000 : f32] ranges = [#ukernel.range<0 to ? step 64>, #ukernel.range<9 to 9>] start {
// CHECK-NEXT: %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT: ukernel.yield %[[LEAST]]
// CHECK: reduce {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK-NEXT: %[[MAX:.*]] = arith.maximumf %[[ACC]], %[[A]] : f32
// CHECK-NEXT: ukernel.yield %[[MAX]]
// CHECK: map {
// CHECK-NEXT: ^bb0(%[[RESULT:.*]]: f32):
// CHECK-NEXT: ukernel.yield %[[RESULT]]
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

// A convolution of each channel in bf16 sums products in f32. Its bias is where
// the sum starts, and the ReLU behind it is in the same operator.
// CHECK-LABEL: func.func @channel
// CHECK: ukernel.pointwise ins(%arg0, %arg1, %arg2 : tensor<?x?x?x64xbf16>, tensor<3x3x64xbf16>, tensor<64xbf16>)
// CHECK-SAME: taps = [3, 3] padded = [0.000000e+00 : bf16, unit, unit]
// CHECK: ^bb0(%[[BIAS:.*]]: bf16):
// CHECK: %[[START:.*]] = arith.extf %[[BIAS]] : bf16 to f32
// CHECK: ukernel.yield %[[START]] : f32
// CHECK: ^bb0(%[[X:.*]]: bf16, %[[W:.*]]: bf16, %{{.*}}: bf16, %[[ACC:.*]]: f32):
// CHECK-DAG: %[[X32:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-DAG: %[[W32:.*]] = arith.extf %[[W]] : bf16 to f32
// CHECK: %[[NEXT:.*]] = math.fma %[[X32]], %[[W32]], %[[ACC]] : f32
// CHECK: ukernel.yield %[[NEXT]] : f32
// CHECK: ^bb0(%{{.*}}: bf16, %[[SUM:.*]]: f32):
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
// CHECK: arith.maximumf %[[ROUNDED]]
// CHECK-NOT: linalg
// CHECK: return
func.func @channel(%x: tensor<?x?x?x64xbf16>, %k: tensor<3x3x64xbf16>, %bias: tensor<64xbf16>) -> tensor<?x?x?x64xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x?x64xbf16>
  %h = tensor.dim %x, %c1 : tensor<?x?x?x64xbf16>
  %w = tensor.dim %x, %c2 : tensor<?x?x?x64xbf16>
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : bf16
  } : tensor<?x?x?x64xbf16> to tensor<?x?x?x64xbf16>
  %e = tensor.empty(%n, %h, %w) : tensor<?x?x?x64xbf16>
  %f = linalg.generic {indexing_maps = [affine_map<(n, p, q, c) -> (c)>, affine_map<(n, p, q, c) -> (n, p, q, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%bias : tensor<64xbf16>) outs(%e : tensor<?x?x?x64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  } -> tensor<?x?x?x64xbf16>
  %s = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %k : tensor<?x?x?x64xbf16>, tensor<3x3x64xbf16>) outs(%f : tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(n, p, q, c) -> (n, p, q, c)>, affine_map<(n, p, q, c) -> (n, p, q, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<?x?x?x64xbf16>) outs(%e : tensor<?x?x?x64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %m = arith.maximumf %a, %zero : bf16
    linalg.yield %m : bf16
  } -> tensor<?x?x?x64xbf16>
  return %r : tensor<?x?x?x64xbf16>
}

// -----

// Windows that are not padded must end within the image; others may read the
// result as well.
// CHECK-LABEL: func.func @dynamic
// CHECK: cf.assert %{{.*}}, "expected windows to end within dimension 0 of the input 0 in an operator with windows"
// CHECK: %[[SUM:.*]] = ukernel.pointwise ins(%arg0, %arg1, %arg2 : tensor<?x?xf32>, tensor<3x?xf32>, tensor<?x?xf32>)
// CHECK-SAME: taps = [3]
// CHECK-NOT: padded
// CHECK: math.exp %{{.*}}
// CHECK: return %[[SUM]]
func.func @dynamic(%x: tensor<?x?xf32>, %k: tensor<3x?xf32>, %start: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(p, c, k) -> (p * 2 + k, c)>, affine_map<(p, c, k) -> (k, c)>, affine_map<(p, c, k) -> (p, c)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %k : tensor<?x?xf32>, tensor<3x?xf32>) outs(%start : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  %e = linalg.generic {indexing_maps = [affine_map<(p, c) -> (p, c)>, affine_map<(p, c) -> (p, c)>], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<?x?xf32>) outs(%start : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = math.exp %a : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  return %r, %e : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// What lies around the image is known only when the program runs, or the
// extent of the window is.
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: ukernel.pointwise
func.func @unknown(%x: tensor<4x8xi8>, %zp: i8, %k: tensor<?xi8>) -> (tensor<4x8xi8>, tensor<4x?xi8>) {
  %zero = arith.constant 0 : i8
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %p = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%a: index, %b: index):
    tensor.yield %zp : i8
  } : tensor<4x8xi8> to tensor<4x10xi8>
  %e = tensor.empty() : tensor<4x8xi8>
  %w = tensor.empty() : tensor<3xi8>
  %f = linalg.fill ins(%zero : i8) outs(%e : tensor<4x8xi8>) -> tensor<4x8xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(c, p, k) -> (c, p + k)>, affine_map<(c, p, k) -> (k)>, affine_map<(c, p, k) -> (c, p)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %w : tensor<4x10xi8>, tensor<3xi8>) outs(%f : tensor<4x8xi8>) {
  ^bb0(%a: i8, %b: i8, %o: i8):
    %s = arith.maxsi %o, %a : i8
    linalg.yield %s : i8
  } -> tensor<4x8xi8>
  %n = tensor.dim %k, %c0 : tensor<?xi8>
  %places = arith.subi %c9, %n : index
  %e2 = tensor.empty(%places) : tensor<4x?xi8>
  %f2 = linalg.fill ins(%zero : i8) outs(%e2 : tensor<4x?xi8>) -> tensor<4x?xi8>
  %r2 = linalg.generic {indexing_maps = [affine_map<(c, p, k) -> (c, p + k)>, affine_map<(c, p, k) -> (k)>, affine_map<(c, p, k) -> (c, p)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %k : tensor<4x8xi8>, tensor<?xi8>) outs(%f2 : tensor<4x?xi8>) {
  ^bb0(%a: i8, %b: i8, %o: i8):
    %s = arith.maxsi %o, %a : i8
    linalg.yield %s : i8
  } -> tensor<4x?xi8>
  return %r, %r2 : tensor<4x8xi8>, tensor<4x?xi8>
}
