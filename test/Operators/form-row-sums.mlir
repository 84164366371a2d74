// RUN: ftuner-test-opt %s --test-form-row-sums --split-input-file | FileCheck %s

// A fill is what the sums start from.
// CHECK-LABEL: func.func @reduce
// CHECK-SAME: %[[X:.*]]: tensor<?x?xf32>
// CHECK: %[[ZERO:.*]] = arith.constant 0
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: %[[R:.*]] = test.row_sum ins(%[[X]] : tensor<?x?xf32>) init(%[[ZERO]] : f32) outs(%[[E]] : tensor<?xf32>) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[C:.*]]: f32):
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[C]], %[[A]]
// CHECK-NEXT: ukernel.yield %[[S]] : f32
// CHECK-NEXT: } -> tensor<?xf32>
// CHECK: return %[[R]]
func.func @reduce(%x: tensor<?x?xf32>, %rows: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  return %r : tensor<?xf32>
}

// -----

// Without a fill the sums continue the output's elements.
// CHECK-LABEL: func.func @accumulate
// CHECK: test.row_sum ins(%{{.*}} : tensor<8x16xi32>) outs(%{{.*}} : tensor<8xi32>) {
func.func @accumulate(%x: tensor<8x16xi32>, %o: tensor<8xi32>) -> tensor<8xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x16xi32>) outs(%o : tensor<8xi32>) {
  ^bb0(%a: i32, %c: i32):
    %s = arith.addi %c, %a : i32
    linalg.yield %s : i32
  } -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// -----

// Sums over columns, and other reductions, are none.
// CHECK-LABEL: func.func @others
// CHECK-NOT: test.row_sum
func.func @others(%x: tensor<8x8xf32>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %columns = linalg.reduce { arith.addf } ins(%x : tensor<8x8xf32>) outs(%o : tensor<8xf32>) dimensions = [0]
  %most = linalg.reduce { arith.maximumf } ins(%x : tensor<8x8xf32>) outs(%o : tensor<8xf32>) dimensions = [1]
  return %columns, %most : tensor<8xf32>, tensor<8xf32>
}
