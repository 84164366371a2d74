// RUN: ftuner-opt %s --ukernel-put-channels-last --canonicalize --cse -split-input-file | FileCheck %s
// RUN: ftuner-opt %s --ukernel-put-channels-last -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: layout: channels are put last for 1 convolution
// REMARK: remark: layout: channels are put last for 2 convolutions
// REMARK: remark: layout: channels are left before places for 1 convolution: transposes would take longer than they save

// Two convolutions with what is between them: one transpose before, one behind.
// The image of few channels is read where it lies.
// CHECK-LABEL: func.func @network
// CHECK-SAME: %[[X:.*]]: tensor<?x3x?x?xf16>
// CHECK-NOT: linalg.transpose ins(%[[X]]
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<?x3x?x?xf16>, tensor<16x3x3x3xf16>) outs(%{{.*}} : tensor<?x?x?x16xf32>)
// CHECK: %[[SQUARED:.*]] = linalg.generic {{.*}} ins(%[[FIRST]] : tensor<?x?x?x16xf32>) outs(%{{.*}} : tensor<?x?x?x16xf16>)
// CHECK: %[[PADDED:.*]] = tensor.pad %[[SQUARED]] low[0, 1, 1, 0] high[0, 1, 2, 0]
// CHECK: %[[POOLED:.*]] = linalg.generic {{.*}} ins(%[[PADDED]], %{{.*}} : tensor<?x?x?x16xf16>, tensor<2x2xf16>) outs(%{{.*}} : tensor<?x?x?x16xf16>)
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[POOLED]], %{{.*}} : tensor<?x?x?x16xf16>, tensor<24x16x3x3xf16>) outs(%{{.*}} : tensor<?x?x?x24xf32>)
// CHECK: %[[Y:.*]] = linalg.transpose ins(%[[SECOND]] : tensor<?x?x?x24xf32>) {{.*}} permutation = [0, 3, 1, 2]
// CHECK: return %[[Y]] : tensor<?x24x?x?xf32>
#image = affine_map<(n, c, p, q) -> (n, c, p, q)>
func.func @network(%x: tensor<?x3x?x?xf16>, %w: tensor<16x3x3x3xf16>, %v: tensor<24x16x3x3xf16>,
                   %o: tensor<?x16x?x?xf32>, %e: tensor<?x16x?x?xf16>, %m: tensor<?x16x?x?xf16>, %r: tensor<?x24x?x?xf32>) -> tensor<?x24x?x?xf32> {
  %zero = arith.constant 0.0 : f16
  %f = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<?x3x?x?xf16>, tensor<16x3x3x3xf16>) outs(%o : tensor<?x16x?x?xf32>) -> tensor<?x16x?x?xf32>
  %s = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%f : tensor<?x16x?x?xf32>) outs(%e : tensor<?x16x?x?xf16>) {
  ^bb0(%a: f32, %b: f16):
    %c = arith.mulf %a, %a : f32
    %d = arith.truncf %c : f32 to f16
    linalg.yield %d : f16
  } -> tensor<?x16x?x?xf16>
  %p = tensor.pad %s low[0, 0, 1, 1] high[0, 0, 1, 2] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f16
  } : tensor<?x16x?x?xf16> to tensor<?x16x?x?xf16>
  %window = tensor.empty() : tensor<2x2xf16>
  %q = linalg.pooling_nchw_max ins(%p, %window : tensor<?x16x?x?xf16>, tensor<2x2xf16>) outs(%m : tensor<?x16x?x?xf16>) -> tensor<?x16x?x?xf16>
  %y = linalg.conv_2d_nchw_fchw ins(%q, %v : tensor<?x16x?x?xf16>, tensor<24x16x3x3xf16>) outs(%r : tensor<?x24x?x?xf32>) -> tensor<?x24x?x?xf32>
  return %y : tensor<?x24x?x?xf32>
}

// -----

// A sum of two transposed tensors, one after the other, and a concatenation.
// CHECK-LABEL: func.func @joins
// CHECK-COUNT-1: linalg.transpose ins(%arg0
// CHECK-NOT: linalg.transpose ins(%arg0
// CHECK: %[[JOINED:.*]] = tensor.concat dim(2)
// CHECK: %[[Y:.*]] = linalg.transpose ins(%[[JOINED]]
// CHECK-NEXT: return %[[Y]]
#all = affine_map<(n, c, q) -> (n, c, q)>
func.func @joins(%x: tensor<4x128x30xf32>, %w: tensor<128x128x9xf32>, %v: tensor<128x128x9xf32>, %o: tensor<4x128x22xf32>) -> tensor<4x256x22xf32> {
  %a = linalg.conv_1d_ncw_fcw ins(%x, %w : tensor<4x128x30xf32>, tensor<128x128x9xf32>) outs(%o : tensor<4x128x22xf32>) -> tensor<4x128x22xf32>
  %b = linalg.conv_1d_ncw_fcw ins(%x, %v : tensor<4x128x30xf32>, tensor<128x128x9xf32>) outs(%o : tensor<4x128x22xf32>) -> tensor<4x128x22xf32>
  %e = tensor.empty() : tensor<4x128x22xf32>
  %s = linalg.add ins(%a, %b : tensor<4x128x22xf32>, tensor<4x128x22xf32>) outs(%e : tensor<4x128x22xf32>) -> tensor<4x128x22xf32>
  %y = tensor.concat dim(1) %s, %b : (tensor<4x128x22xf32>, tensor<4x128x22xf32>) -> tensor<4x256x22xf32>
  return %y : tensor<4x256x22xf32>
}

// -----

// Two small convolutions gain less than transposes take; channels may be last
// already.
// CHECK-LABEL: func.func @small
// CHECK: linalg.conv_2d_nchw_fchw
// CHECK: linalg.conv_2d_nhwc_hwcf
func.func @small(%x: tensor<1x16x9x9xf32>, %w: tensor<16x16x3x3xf32>, %o: tensor<1x16x7x7xf32>,
                 %y: tensor<1x9x9x256xf32>, %v: tensor<3x3x256x256xf32>, %p: tensor<1x7x7x256xf32>) -> (tensor<1x16x7x7xf32>, tensor<1x7x7x256xf32>) {
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x16x9x9xf32>, tensor<16x16x3x3xf32>) outs(%o : tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32>
  %b = linalg.conv_2d_nhwc_hwcf ins(%y, %v : tensor<1x9x9x256xf32>, tensor<3x3x256x256xf32>) outs(%p : tensor<1x7x7x256xf32>) -> tensor<1x7x7x256xf32>
  return %a, %b : tensor<1x16x7x7xf32>, tensor<1x7x7x256xf32>
}
