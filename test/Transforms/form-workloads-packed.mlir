// Products on integers of less than a byte become no workloads; what widens them
// stays before a product. They are marked, if asked for, for a compiler that
// keeps several of them in a byte.
// RUN: ftuner-opt %s "--ukernel-form-workloads=leave-packed-products paths=simt,mma" 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: ftuner-opt %s --ukernel-form-workloads=paths=simt,mma 2>/dev/null | FileCheck %s --check-prefix=ALL

// ALL-LABEL: @packed
// ALL-NOT: ukernel.left
// ALL-NOT: ukernel.workload
// ALL-LABEL: @widened
// ALL: arith.extsi {{.*}} : i4 to i8
// ALL: ukernel.workload
// REMARK: remark: fallback: 'linalg.generic' is a contraction on integers of less than a byte

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @packed
// CHECK: linalg.generic
// CHECK-SAME: ukernel.left
// CHECK-NOT: ukernel.workload
func.func @packed(%a: tensor<?x64xi4>, %b: tensor<64x96xi8>, %y: tensor<?x96xi32>) -> tensor<?x96xi32> {
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x64xi4>, tensor<64x96xi8>) outs(%y : tensor<?x96xi32>) {
  ^bb0(%u: i4, %v: i8, %s: i32):
    %uw = arith.extsi %u : i4 to i32
    %vw = arith.extsi %v : i8 to i32
    %p = arith.muli %uw, %vw : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<?x96xi32>
  return %r : tensor<?x96xi32>
}

// CHECK-LABEL: @widened
// CHECK: linalg.generic
// CHECK: arith.extsi {{.*}} : i4 to i8
// CHECK: ukernel.workload
func.func @widened(%a: tensor<16x64xi4>, %b: tensor<64x16xi8>, %y: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %e = tensor.empty() : tensor<16x64xi8>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<16x64xi4>) outs(%e : tensor<16x64xi8>) {
  ^bb0(%u: i4, %o: i8):
    %uw = arith.extsi %u : i4 to i8
    linalg.yield %uw : i8
  } -> tensor<16x64xi8>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %b : tensor<16x64xi8>, tensor<64x16xi8>) outs(%y : tensor<16x16xi32>) {
  ^bb0(%u: i8, %v: i8, %s: i32):
    %uw = arith.extsi %u : i8 to i32
    %vw = arith.extsi %v : i8 to i32
    %p = arith.muli %uw, %vw : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<16x16xi32>
  return %r : tensor<16x16xi32>
}
