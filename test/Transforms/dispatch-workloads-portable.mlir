// RUN: ftuner-opt %s --ukernel-dispatch-workloads --canonicalize --cse --split-input-file | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// A plan for one architecture alone, and another one for the rest: the runtime
// tells once which image it has.
// CHECK: ukernel.plan @plan_0 <
// CHECK-SAME: portable(@plan_0_portable) {ukernel.workloads = ["f_0"]}
// CHECK: ukernel.plan @plan_0_portable
// CHECK-SAME: {ukernel.workloads = ["f_0_portable"]}
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>, axis = 0, tiles = [[128, 128, 64]], split = 2>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [], general = 0, unaligned_general = 1> portable(@plan_0_portable)
ukernel.plan @plan_0_portable #ukernel.plan<families = [
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[64, 64, 32]], split = 3>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [], general = 0, unaligned_general = 1>

// CHECK-LABEL: func.func @f
// One buffer for the slices of either lies before the branch: workspace is
// planned for the more.
// CHECK: memref.alloc(%{{.*}}) : memref<3x?x4096xf32>
// CHECK-NOT: memref.alloc
// CHECK: %[[EXACT:.*]] = ukernel.exact_image
// CHECK: scf.if %[[EXACT]] {
// CHECK: scf.index_switch
// CHECK: ukernel.launch @f_0_k0
// CHECK-SAME: ukernel.site = {kind = "contraction", location = "{{.*}}", name = "f_0", operator = "ukernel.workload (arith.mulf, arith.addf)", slices = "2", workload = "f_0"}
// CHECK: linalg.generic
// CHECK: ukernel.launch @f_0_k1
// CHECK: } else {
// CHECK: scf.index_switch
// CHECK: ukernel.launch @f_0_portable_k0
// CHECK-SAME: ukernel.site = {kind = "contraction", location = "{{.*}}", name = "f_0", operator = "ukernel.workload (arith.mulf, arith.addf)", slices = "3", workload = "f_0_portable"}
// CHECK: linalg.generic
// CHECK: ukernel.launch @f_0_portable_k1
// The other workload, likewise; the question is the same.
// CHECK: memref.alloc(%{{.*}}) : memref<3x?x4096xf32>
// CHECK-NOT: ukernel.exact_image
// CHECK: scf.if %[[EXACT]] {
// CHECK: ukernel.kernel @f_0_k0
// CHECK: ukernel.kernel @f_0_k1
// CHECK: ukernel.kernel @f_0_portable_k0
// CHECK: ukernel.kernel @f_0_portable_k1
func.func @f(%a: memref<?x8192xf16>, %b: memref<4096x8192xf16>, %o: memref<?x4096xf32>, %p: memref<?x4096xf32>) {
  %zero = arith.constant 0.0 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%zero : f32)
    outs(%o : memref<?x4096xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p0: f16, %q: f16, %c: f32):
    %pe = arith.extf %p0 : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %product = arith.mulf %pe, %qe : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%zero : f32)
    outs(%p : memref<?x4096xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p0: f16, %q: f16, %c: f32):
    %pe = arith.extf %p0 : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %product = arith.mulf %pe, %qe : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// Where one workload runs on one architecture alone, the module does: there is
// nothing to ask for.
ukernel.plan @with #ukernel.plan<families = [
    #ukernel.family<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>, axis = 0, tiles = [[128, 128, 64]]>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [], general = 0, unaligned_general = 1> portable(@portable)
ukernel.plan @portable #ukernel.plan<families = [
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [], general = 0, unaligned_general = 0>
ukernel.plan @without #ukernel.plan<families = [
    #ukernel.family<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>, axis = 0, tiles = [[128, 128, 64]]>,
    #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>],
  choices = [], general = 0, unaligned_general = 1>

// CHECK-LABEL: func.func @g
// CHECK-NOT: ukernel.exact_image
// CHECK-NOT: _portable
func.func @g(%a: memref<?x8192xf16>, %b: memref<4096x8192xf16>, %o: memref<?x4096xf32>, %p: memref<?x4096xf32>) {
  %zero = arith.constant 0.0 : f32
  ukernel.workload plan(@with) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%zero : f32)
    outs(%o : memref<?x4096xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p0: f16, %q: f16, %c: f32):
    %pe = arith.extf %p0 : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %product = arith.mulf %pe, %qe : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@without) ins(%a, %b : memref<?x8192xf16>, memref<4096x8192xf16>) init(%zero : f32)
    outs(%p : memref<?x4096xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p0: f16, %q: f16, %c: f32):
    %pe = arith.extf %p0 : f16 to f32
    %qe = arith.extf %q : f16 to f32
    %product = arith.mulf %pe, %qe : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}
