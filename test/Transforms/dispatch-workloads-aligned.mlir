// With `assume-aligned` sizes, strides and offsets of views decide which families
// may run, and no address is asked for.

// RUN: ftuner-opt %s --ukernel-dispatch-workloads=assume-aligned --canonicalize --split-input-file | FileCheck %s
// RUN: ftuner-opt %s --ukernel-dispatch-workloads --canonicalize --split-input-file | FileCheck %s --check-prefix=ASKED

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, axis = 0, tiles = [[7, 128, 16], [8, 128, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 1>

// Sizes and strides that fit are all there is to ask: one family for all.
// CHECK-LABEL: func.func @fits
// CHECK-NOT: extract_aligned_pointer
// CHECK-NOT: ukernel.launch @fits_0_k1
// CHECK: ukernel.launch @fits_0_k0
// CHECK-NOT: ukernel.launch
// CHECK: return
// ASKED-LABEL: func.func @fits
// ASKED: memref.extract_aligned_pointer_as_index
// ASKED: ukernel.launch @fits_0_k0
// ASKED: ukernel.launch @fits_0_k1
func.func @fits(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, axis = 0, tiles = [[7, 128, 16], [8, 128, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 1>

// A stride and an offset that are not known: of 4 bytes each, so of multiples of
// 4 elements; 16 bytes.
// CHECK-LABEL: func.func @views
// CHECK-NOT: extract_aligned_pointer
// CHECK-DAG: %{{.*}}, %[[OFFSET:.*]], %{{.*}}:2, %[[STRIDES:.*]]:2 = memref.extract_strided_metadata
// CHECK-DAG: arith.remui %[[STRIDES]]#0, %c4
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[OFFSET]], %c4
// CHECK-DAG: arith.remui %[[BYTES]], %c16
// CHECK: scf.index_switch
// CHECK: ukernel.launch @views_0_k0
// CHECK: ukernel.launch @views_0_k1
func.func @views(%a: memref<?x768xf32, strided<[?, 1], offset: ?>>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x768xf32, strided<[?, 1], offset: ?>>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, axis = 0, tiles = [[7, 128, 16], [8, 128, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 1>

// Rows of 38 floats are never aligned.
// CHECK-LABEL: func.func @odd
// CHECK-NOT: ukernel.launch @odd_0_k0
// CHECK: ukernel.launch @odd_0_k1
// CHECK: return
func.func @odd(%a: memref<?x38xf32>, %b: memref<38x2304xf32>, %o: memref<?x2304xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x38xf32>, memref<38x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}
