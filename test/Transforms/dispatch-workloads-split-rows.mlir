// RUN: ftuner-opt %s --ukernel-dispatch-workloads --canonicalize --cse | FileCheck %s

#x = affine_map<(m, r) -> (m, r)>

// One row in eight slices, more in one.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.rows<rows = 1, lane_rows = 1, lanes = 32, warps = 4, held_units = 8, access = 1>, axis = 0, tiles = [[1, 512]], reduce = [1], split = 8>,
    #ukernel.family<#ukernel.rows<rows = 1, lane_rows = 1, lanes = 32, warps = 16, held_units = 8, access = 1>, axis = 0, tiles = [[1, 2048]], reduce = [1]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 1>, #ukernel.range<1 to ?>] to 0>],
  general = 1, unaligned_general = 1>

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: memref<?x?xf32>, %[[Y:.*]]: memref<?x?xf32>)
// CHECK-DAG: %[[M:.*]] = memref.dim %[[X]]
// Numbers of both reductions, of all slices.
// CHECK-DAG: %[[MAXIMA:.*]] = memref.alloc(%[[COUNT:.*]], %[[M]]) : memref<?x?xf32>
// CHECK-DAG: %[[SUMS:.*]] = memref.alloc(%[[COUNT]], %[[M]]) : memref<?x?xf32>
// CHECK: scf.index_switch
// CHECK-NEXT: case 0 {
// CHECK-DAG: %[[MAX:.*]] = memref.collapse_shape %[[MAXIMA]] {{\[}}[0, 1]] : memref<?x?xf32> into memref<?xf32>
// CHECK-DAG: %[[SUM:.*]] = memref.collapse_shape %[[SUMS]] {{\[}}[0, 1]] : memref<?x?xf32> into memref<?xf32>
// CHECK: ukernel.launch @softmax_0_k0 blocks(%[[BLOCKS:.*]]) args(%[[X]], %[[Y]], %[[MAX]], %[[SUM]] :
// CHECK-SAME: slices = "8"
// CHECK: ukernel.launch @softmax_0_k0_1 blocks(%[[BLOCKS]]) args(%[[X]], %[[Y]], %[[MAX]], %[[SUM]] :
// CHECK: ukernel.launch @softmax_0_k0_2 blocks(%[[BLOCKS]]) args(%[[X]], %[[Y]], %[[MAX]], %[[SUM]] :
// CHECK: default {
// CHECK: ukernel.launch @softmax_0_k1 blocks(%{{.*}}) args(%[[X]], %[[Y]] :

// CHECK-LABEL: ukernel.kernel @softmax_0_k0(
// CHECK: ukernel.row_reduction phase(0)
// CHECK: } {split = 8 : i64}
// CHECK-LABEL: ukernel.kernel @softmax_0_k0_1(
// CHECK: ukernel.row_reduction phase(1)
// CHECK-LABEL: ukernel.kernel @softmax_0_k0_2(
// CHECK: ukernel.row_reduction phase(2)
// CHECK-LABEL: ukernel.kernel @softmax_0_k1(
// CHECK: ukernel.row_reduction ins(

func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  ukernel.row_reduction plan(@plan_0) ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) maps = [#x, #x] reduce {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %acc, %a : f32
    ukernel.yield %s : f32
  }, {
  ^bb0(%a: f32, %max: f32, %acc: f32):
    %d = arith.subf %a, %max : f32
    %e = math.exp %d : f32
    %s = arith.addf %acc, %e : f32
    ukernel.yield %s : f32
  } values {
  ^bb0(%max: f32, %sum: f32):
    ukernel.yield
  } map {
  ^bb0(%a: f32, %max: f32, %sum: f32):
    %d = arith.subf %a, %max : f32
    %e = math.exp %d : f32
    %q = arith.divf %e, %sum : f32
    ukernel.yield %q : f32
  }
  return
}
