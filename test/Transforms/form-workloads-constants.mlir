// Products that constants alone determine are left if asked for.
// RUN: ftuner-opt %s --allow-unregistered-dialect --ukernel-form-workloads=leave-constant-products 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks --implicit-check-not='is a contraction'
// RUN: ftuner-opt %s --allow-unregistered-dialect --ukernel-form-workloads 2>&1 | FileCheck %s --check-prefix=ALL

// ALL-NOT: linalg.matmul

// x · (w + a · b): the product of weights and what is computed from it.
// CHECK-LABEL: @adapter
// CHECK: linalg.matmul {ukernel.constant}
// CHECK: linalg.matmul {ukernel.constant}
// CHECK-NOT: linalg.matmul
// CHECK: ukernel.workload
// CHECK-NOT: linalg.matmul
// CHECK: return
// REMARK: remark: fallback: 'linalg.matmul' is a contraction of constants
// REMARK: remark: fallback: 'linalg.matmul' is a contraction of constants
func.func @adapter(%x: tensor<?x32xf32>, %y: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = arith.constant dense<2.0> : tensor<32x32xf32>
  %b = "other.load"() {ukernel.constant} : () -> tensor<32x32xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<32x32xf32>, tensor<32x32xf32>) outs(%f : tensor<32x32xf32>) -> tensor<32x32xf32>
  %moved = "other.move"(%ab) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = arith.constant dense<3.0> : tensor<32x16xf32>
  %e2 = tensor.empty() : tensor<32x16xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<32x16xf32>) -> tensor<32x16xf32>
  %w = linalg.matmul ins(%moved, %c : tensor<32x32xf32>, tensor<32x16xf32>) outs(%f2 : tensor<32x16xf32>) -> tensor<32x16xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x32xf32>, tensor<32x16xf32>) outs(%y : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}

// What may differ from run to run: what is added to, loads, calls, results of
// assembly, what hides a constant, and what a region captures.
// CHECK-LABEL: @runtime
// CHECK-COUNT-6: ukernel.workload
// CHECK-NOT: linalg.matmul
func.func private @called(tensor<8x8xf32>) -> tensor<8x8xf32>
func.func @runtime(%y: tensor<8x8xf32>, %flag: i1) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %true = arith.constant true
  %a = arith.constant dense<2.0> : tensor<8x8xf32>
  %load = "other.load"() : () -> tensor<8x8xf32>
  %call = func.call @called(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %barrier = "other.optimization_barrier"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %unknown = "other.call"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %captured = scf.if %true -> tensor<8x8xf32> {
    scf.yield %y : tensor<8x8xf32>
  } else {
    scf.yield %a : tensor<8x8xf32>
  }
  %0 = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.matmul ins(%a, %load : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%a, %call : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = linalg.matmul ins(%a, %barrier : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = linalg.matmul ins(%a, %unknown : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = linalg.matmul ins(%captured, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// A sum over a constant does not become a product either.
// CHECK-LABEL: @sum
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-NOT: ukernel.workload
// REMARK: remark: fallback: 'linalg.generic' is no contraction
// ALL-LABEL: @sum
// ALL: ukernel.workload
func.func @sum() -> tensor<8xi32> {
  %zero = arith.constant 0 : i32
  %a = arith.constant dense<"0x00010203040506070001020304050607000102030405060700010203040506070001020304050607000102030405060700010203040506070001020304050607"> : tensor<8x8xi8>
  %e = tensor.empty() : tensor<8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8xi32>) -> tensor<8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<8x8xi8>) outs(%f : tensor<8xi32>) {
  ^bb0(%i: i8, %sum: i32):
    %wide = arith.extsi %i : i8 to i32
    %next = arith.addi %sum, %wide : i32
    linalg.yield %next : i32
  } -> tensor<8xi32>
  return %r : tensor<8xi32>
}
