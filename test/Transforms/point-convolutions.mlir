// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -split-input-file | FileCheck %s
// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads -split-input-file | FileCheck %s --check-prefix=FORM

// A convolution of 1 x 1 is a product of its channels; rows and columns of the
// image are one loop.
// CHECK-LABEL: func.func @image
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3]]
// CHECK-DAG: %[[W:.*]] = tensor.collapse_shape %arg1 {{\[\[}}0], [1, 2, 3]]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]] : tensor<?x8x?xf32>, tensor<16x8xf32>)
// CHECK-NOT: linalg.conv
// FORM-LABEL: func.func @image
// FORM: ukernel.workload
// FORM-NOT: linalg.generic
// FORM: return
func.func @image(%x: tensor<?x8x?x?xf32>, %w: tensor<16x8x1x1xf32>, %b: tensor<16xf32>, %o: tensor<?x16x?x?xf32>) -> tensor<?x16x?x?xf32> {
  %i = linalg.broadcast ins(%b : tensor<16xf32>) outs(%o : tensor<?x16x?x?xf32>) dimensions = [0, 2, 3]
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<?x8x?x?xf32>, tensor<16x8x1x1xf32>) outs(%i : tensor<?x16x?x?xf32>) -> tensor<?x16x?x?xf32>
  return %r : tensor<?x16x?x?xf32>
}

// -----

// Channels may be innermost: all points are rows of one product.
// CHECK-LABEL: func.func @channels_last
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<8x16xf32>)
// FORM-LABEL: func.func @channels_last
// FORM: ukernel.workload
// FORM-NOT: linalg.generic
// FORM: return
func.func @channels_last(%x: tensor<?x?x?x?x8xf32>, %w: tensor<1x1x1x8x16xf32>, %o: tensor<?x?x?x?x16xf32>) -> tensor<?x?x?x?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x?x16xf32>) -> tensor<?x?x?x?x16xf32>
  %r = linalg.conv_3d_ndhwc_dhwcf ins(%x, %w : tensor<?x?x?x?x8xf32>, tensor<1x1x1x8x16xf32>) outs(%i : tensor<?x?x?x?x16xf32>) -> tensor<?x?x?x?x16xf32>
  return %r : tensor<?x?x?x?x16xf32>
}

// -----

// Points that a stride leaves out are never read.
// CHECK-LABEL: func.func @stride
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<?x8x?xf32>, tensor<16x8xf32>)
// FORM: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d1 * 3)>
// FORM-LABEL: func.func @stride
// FORM: ukernel.workload {{.*}} maps = [#{{.*}}, #[[X]], #{{.*}}] ranges
func.func @stride(%x: tensor<?x8x?xf32>, %w: tensor<16x8x1xf32>, %o: tensor<?x16x?xf32>) -> tensor<?x16x?xf32> {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%o : tensor<?x16x?xf32>) -> tensor<?x16x?xf32>
  %r = linalg.conv_1d_ncw_fcw {strides = dense<3> : tensor<1xi64>} ins(%x, %w : tensor<?x8x?xf32>, tensor<16x8x1xf32>) outs(%i : tensor<?x16x?xf32>) -> tensor<?x16x?xf32>
  return %r : tensor<?x16x?xf32>
}

// -----

// Windows of more points, and groups, stay.
// CHECK-LABEL: func.func @windows
// CHECK: linalg.conv_1d_ncw_fcw
// CHECK: linalg.depthwise_conv_2d_nchw_chw
func.func @windows(%x: tensor<?x8x?xf32>, %w: tensor<16x8x2xf32>, %o: tensor<?x16x?xf32>, %y: tensor<?x8x?x?xf32>, %v: tensor<8x1x1xf32>, %p: tensor<?x8x?x?xf32>) -> (tensor<?x16x?xf32>, tensor<?x8x?x?xf32>) {
  %r = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<?x8x?xf32>, tensor<16x8x2xf32>) outs(%o : tensor<?x16x?xf32>) -> tensor<?x16x?xf32>
  %s = linalg.depthwise_conv_2d_nchw_chw ins(%y, %v : tensor<?x8x?x?xf32>, tensor<8x1x1xf32>) outs(%p : tensor<?x8x?x?xf32>) -> tensor<?x8x?x?xf32>
  return %r, %s : tensor<?x16x?xf32>, tensor<?x8x?x?xf32>
}
