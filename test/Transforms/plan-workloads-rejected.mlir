// RUN: ftuner-opt %s --split-input-file --ukernel-attach-device=device=h200 --ukernel-plan-workloads=max-kernels=3 --verify-diagnostics | FileCheck %s

#family = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>
#other = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 32, 8]]>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// A plan that holds a family that it rejects is replaced, under its name; old
// figures go. Another plan stays, whatever it rejects.
// CHECK: ukernel.plan @replaced <families = [
// CHECK-NOT: tiles = {{\[\[}}32, 32, 8]]
// CHECK-SAME: choices = [<[<
// CHECK-SAME: statistics =
// CHECK-NOT: ukernel.measured
// CHECK-SAME: {ukernel.rejected = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>]}
ukernel.plan @replaced <families = [#family], choices = [], general = 0, unaligned_general = 0>
  {ukernel.rejected = [#family], ukernel.measured = [{registers = 40 : i64, spill_bytes = 8 : i64}]}
// CHECK: ukernel.plan @kept <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0
// CHECK-SAME: ukernel.measured
ukernel.plan @kept <families = [#family], choices = [], general = 0, unaligned_general = 0>
  {ukernel.rejected = [#other], ukernel.measured = [{registers = 40 : i64, spill_bytes = 0 : i64}]}
// CHECK-NOT: ukernel.plan

// CHECK: func.func @f
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>) {
  // CHECK: ukernel.workload plan(@replaced)
  %0 = ukernel.workload plan(@replaced) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  // CHECK: ukernel.workload plan(@replaced)
  %1 = ukernel.workload plan(@replaced) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%0 : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %p, %c : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  // CHECK: ukernel.workload plan(@kept)
  %2 = ukernel.workload plan(@kept) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%1 : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  return %0, %1, %2 : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
}

// -----

#family = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>
// expected-error@+1 {{'ukernel.rejected' expected an array of #ukernel.family, but got [3]}}
ukernel.plan @plan_0 <families = [#family], choices = [], general = 0, unaligned_general = 0> {ukernel.rejected = [3]}
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = ukernel.workload plan(@plan_0) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
