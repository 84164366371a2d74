// The kernel that adds slices up reads and writes 16 bytes at once where the rows
// of the output are multiples of these, and single elements where not. A block
// has as many points either way.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=v100 --sliced-k=false -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: ftuner-run %s --function=wide --device=v100 --sliced-k=false --check --check-bounds --check-races --args=16x4096xf32,4096x768xf32,768xf32 | FileCheck %s --check-prefix=WIDE
// RUN: ftuner-run %s --function=narrow --device=v100 --sliced-k=false --check --check-bounds --check-races --args=16x4096xf32,4096x766xf32 | FileCheck %s --check-prefix=NARROW

// CHECK-LABEL: .entry wide_0_k0_sum(
// CHECK: ld.global.v4.b32
// CHECK-NOT: ld.global.b32
// CHECK: st.global.v4.b32

// CHECK-LABEL: .entry narrow_0_k0_sum(
// CHECK-NOT: .v4.
// CHECK: st.global.b32

// WIDE: relative error
// WIDE: wide_0_k0_sum: 48 x 64
// NARROW: relative error
// NARROW: narrow_0_k0_sum: 48 x {{128|256}}

func.func @wide(%a: tensor<16x4096xf32>, %b: tensor<4096x768xf32>, %bias: tensor<768xf32>) -> tensor<16x768xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x768xf32>) -> tensor<16x768xf32>
  %p = linalg.matmul ins(%a, %b : tensor<16x4096xf32>, tensor<4096x768xf32>) outs(%f : tensor<16x768xf32>) -> tensor<16x768xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %bias : tensor<16x768xf32>, tensor<768xf32>) outs(%e : tensor<16x768xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %one = arith.constant 1.0 : f32
    %s = arith.addf %x, %y : f32
    %t = arith.addf %s, %one : f32
    linalg.yield %t : f32
  } -> tensor<16x768xf32>
  return %r : tensor<16x768xf32>
}

func.func @narrow(%a: tensor<16x4096xf32>, %b: tensor<4096x766xf32>) -> tensor<16x766xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x766xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x766xf32>) -> tensor<16x766xf32>
  %p = linalg.matmul ins(%a, %b : tensor<16x4096xf32>, tensor<4096x766xf32>) outs(%f : tensor<16x766xf32>) -> tensor<16x766xf32>
  return %p : tensor<16x766xf32>
}
