// RUN: ftuner-opt %s --ukernel-dispatch-workloads --canonicalize --cse --split-input-file | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Up to 64 rows in three slices, more in one.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[64, 64, 32]], split = 3>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[128, 64, 32]]>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>],
  general = 1, unaligned_general = 2>

// CHECK-LABEL: func.func @projection
// CHECK-SAME: (%[[A:.*]]: memref<?x8192xf16>, %[[B:.*]]: memref<4096x8192xf16>, %[[X:.*]]: memref<4096xf16>, %[[O:.*]]: memref<?x4096xf16>)
// CHECK-DAG: %[[M:.*]] = memref.dim %[[A]]
// The buffer has no slices for sizes that are served without.
// CHECK-DAG: %[[SMALL:.*]] = arith.cmpi sle, %[[M]], %{{.*}} : index
// CHECK-DAG: %[[COUNT:.*]] = arith.select %[[SMALL]], %[[THREE:.*]], %[[NONE:.*]] : index
// CHECK-DAG: %[[SLICES:.*]] = memref.alloc(%[[COUNT]], %[[M]]) : memref<?x?x4096xf32>
// CHECK: scf.index_switch
// CHECK-NEXT: case 0 {
// CHECK: %[[OUTPUTS:.*]] = memref.collapse_shape %[[SLICES]] {{\[}}[0, 1], [2]] : memref<?x?x4096xf32> into memref<?x4096xf32>
// CHECK: ukernel.launch @projection_0_k0 blocks(%{{.*}}) args(%[[A]], %[[B]], %{{.*}}, %[[OUTPUTS]] : {{.*}}, f32, memref<?x4096xf32>)
// CHECK-SAME: slices = "3"
// In the order of the slices; the sum starts from 0.5.
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[SLICES]], %[[SLICES]], %[[SLICES]], %{{.*}}, %[[X]] :
// CHECK-SAME: outs(%[[O]] : memref<?x4096xf16>)
// CHECK-SAME: name = "projection_0_k0_sum"
// CHECK-NEXT: ^bb0(%[[S0:.*]]: f32, %[[S1:.*]]: f32, %[[S2:.*]]: f32, %[[START:.*]]: f32, %[[E:.*]]: f16, %{{.*}}: f16):
// CHECK-NEXT: %[[T0:.*]] = arith.addf %[[S0]], %[[S1]] : f32
// CHECK-NEXT: %[[T1:.*]] = arith.addf %[[T0]], %[[S2]] : f32
// CHECK-NEXT: %[[T2:.*]] = arith.addf %[[T1]], %{{.*}} : f32
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[T2]] : f32 to f16
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[R]], %[[E]] : f16
// CHECK-NEXT: linalg.yield %[[S]] : f16
// CHECK: case 1 {
// CHECK-NOT: linalg.generic
// CHECK: default {

// The kernel computes one slice: a product from zero, and nothing of the epilogue.
// CHECK-LABEL: ukernel.kernel @projection_0_k0
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: ukernel.combine axis 0 [64]
// CHECK: ukernel.workload
// CHECK-SAME: init(%[[ZERO]] : f32) outs(%{{.*}} : memref<?x4096xf32>)
// CHECK-NOT: epilogue
// CHECK: } {split = 3 : i64}

func.func @projection(%a: memref<?x8192xf16>, %b: memref<4096x8192xf16>, %x: memref<4096xf16>, %o: memref<?x4096xf16>) {
  %half = arith.constant 0.5 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%half : f32)
    extras(%x : memref<4096xf16>) outs(%o : memref<?x4096xf16>) maps = [#lhs, #rhs, #bias, #out] contract {
  ^bb0(%p: f16, %q: f16, %c: f32):
    %pe = arith.extf %p : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %product = arith.mulf %pe, %qe : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  } epilogue {
  ^bb0(%acc: f32, %e: f16):
    %r = arith.truncf %acc : f32 to f16
    %s = arith.addf %r, %e : f16
    ukernel.yield %s : f16
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[64, 64, 32]], split = 3>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[128, 64, 32]]>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>],
  general = 1, unaligned_general = 2>

// A buffer of slices in a loop would be no part of the workspace: there the
// family runs whole, and its kernel stands for it nevertheless.
// CHECK-LABEL: func.func @repeated
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK: ukernel.launch @repeated_0_k0_whole
// CHECK-NOT: slices
// CHECK: ukernel.launch @repeated_0_k1
// CHECK-LABEL: ukernel.kernel @repeated_0_k0_whole
// CHECK-SAME: ukernel.planned_family = #ukernel.family<{{.*}}split = 3>
// CHECK-NOT: split
// CHECK-LABEL: ukernel.kernel @repeated_0_k1
// CHECK-NOT: planned_family
func.func @repeated(%a: memref<?x8192xf16>, %b: memref<4096x8192xf16>, %o: memref<?x4096xf32>, %times: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %times step %c1 {
    ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%zero : f32)
      outs(%o : memref<?x4096xf32>) maps = [#lhs, #rhs, #out] contract {
    ^bb0(%p: f16, %q: f16, %c: f32):
      %pe = arith.extf %p : f16 to f32
      %qe = arith.extf %q : f16 to f32
      %product = arith.mulf %pe, %qe : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    }
  }
  return
}
