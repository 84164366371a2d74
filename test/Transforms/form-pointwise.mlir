// Elementwise operators that stay alone become ukernel.pointwise where a path that
// computes them is chosen, and stay fallback kernels otherwise.
// RUN: ftuner-opt %s --ukernel-form-pointwise | FileCheck %s
// RUN: ftuner-opt %s --ukernel-form-pointwise=paths=rows | FileCheck %s --check-prefix=NONE
// RUN: ftuner-run %s --function=bias --device=h100 --args=33x1000xf16,1000xf16 --check | FileCheck %s --check-prefix=WIDE
// RUN: ftuner-run %s --function=bias --device=h100 --paths=rows --args=33x1000xf16,1000xf16 --check | FileCheck %s --check-prefix=FALLBACK
// RUN: ftuner-run %s --function=bias --device=h100 --args=7x197xf16,197xf16 --check | FileCheck %s --check-prefix=ODD

// WIDE: launches: 1 (bias_0_k{{[0-4]}}
// ODD: launches: 1 (bias_0_k{{[0-9]}}
// FALLBACK: launches: 1 (bias_fallback_0

// NONE-NOT: ukernel.pointwise

// The loops follow the first output.
// CHECK-LABEL: func.func @bias
// CHECK: ukernel.pointwise ins(%{{.*}}, %{{.*}} : tensor<?x?xf16>, tensor<?xf16>) outs(%{{.*}} : tensor<?x?xf32>)
// CHECK-SAME: ranges = [#ukernel.range<0 to ?>] map
func.func @bias(%a: tensor<?x?xf16>, %b: tensor<?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %a, %c1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<?x?xf16>, tensor<?xf16>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %s = arith.addf %x, %y : f16
    %w = arith.extf %s : f16 to f32
    linalg.yield %w : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// What accumulates into its output stays.
// CHECK-LABEL: func.func @accumulates
// CHECK-NOT: ukernel.pointwise
func.func @accumulates(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%b : tensor<8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
