// RUN: ftuner-opt %s --ukernel-dispatch-workloads | FileCheck %s

// Symbols are for the search: workloads that differ by them alone share kernels,
// and these do not have them.
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
ukernel.plan @p <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0>
// CHECK-NOT: ukernel.extents
// CHECK: func.func @f
// CHECK: ukernel.launch @f_0_k0
// CHECK: ukernel.launch @f_0_k0
// CHECK-NOT: ukernel.launch
// CHECK: ukernel.kernel @f_0_k0
// CHECK-NOT: ukernel.extents
// CHECK-NOT: ukernel.kernel
func.func @f(%a: memref<?x64xf32>, %b: memref<64x40xf32>, %o: memref<?x40xf32>, %o2: memref<?x40xf32>) {
  ukernel.workload plan(@p) ins(%a, %b : memref<?x64xf32>, memref<64x40xf32>) outs(%o : memref<?x40xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [[1, "T"], unit, unit]}
  ukernel.workload plan(@p) ins(%a, %b : memref<?x64xf32>, memref<64x40xf32>) outs(%o2 : memref<?x40xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [[1, "S"], unit, unit]}
  return
}
