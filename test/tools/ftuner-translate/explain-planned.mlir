// A plan written by hand is explained too, against what the search would have
// chosen; a family that cannot be emitted is an error.

// RUN: ftuner-translate %s --ftuner-explain --device=h200 --size M=13,N=40 --all | FileCheck %s
// RUN: sed -e 's/threads = .8, 16./threads = [8, 2]/' %s > %t.mlir
// RUN: not ftuner-translate %t.mlir --ftuner-explain --device=h200 --size M=13,N=40 2>&1 | FileCheck %s --check-prefix=WARPS

// CHECK: Workload f_0 ({{.*}}explain-planned.mlir:{{.*}}), plan @p
// CHECK-NEXT: The same holds for f_1
// CHECK: 0: simt [32,32,8]/[4,2,1] axis 0 stages 2 vector 1, general, general for operands that are not aligned
// CHECK: Chosen: family 0, the general one: no entry of the plan holds the shape
// CHECK: M: 13 = 1 × 32 − 19 (19 padded)
// CHECK: is lost, since the plan was made for other shapes.
// CHECK: Best programs of the shape
// CHECK: Workload g_0
// WARPS: error: 'ukernel.workload' op expected a legal plan: family 0 (simt [32,32,8]/[4,16,1] axis 0 stages 2 vector 1): simt: expected a multiple of 32 threads, at most 1024, but got 16
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
ukernel.plan @p <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0>
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%o : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?xf32>
  %1 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%0 : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
// Without a plan one is made.
func.func @g(%a: tensor<16x64xf32>, %b: tensor<64x40xf32>, %o: tensor<16x40xf32>) -> tensor<16x40xf32> {
  %0 = ukernel.workload ins(%a, %b : tensor<16x64xf32>, tensor<64x40xf32>) outs(%o : tensor<16x40xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<16x40xf32>
  return %0 : tensor<16x40xf32>
}
