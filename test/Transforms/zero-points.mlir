// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -split-input-file | FileCheck %s
// RUN: ftuner-test-opt %s -ukernel-normalize-linalg -ukernel-form-workloads -split-input-file | FileCheck %s --check-prefix=FORM

// A product, sums over both factors, and what corrects it. The sums become
// products with ones.
// CHECK-LABEL: func.func @both
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<?x48xi8>, tensor<48x40xi8>)
// CHECK-NOT: arith.subi
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<48x40xi8>) outs(%{{.*}} : tensor<40xi32>)
// CHECK: %[[L:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?x48xi8>) outs(%{{.*}} : tensor<?xi32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[R]], %[[L]] :
// FORM-LABEL: func.func @both
// FORM: %[[R:.*]] = ukernel.workload ins(%{{.*}}, %arg1 : tensor<1x48xi8>, tensor<48x40xi8>)
// FORM: %[[L:.*]] = ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<{{.*}}xi8>, tensor<{{.*}}xi8>)
// FORM: ukernel.workload ins(%arg0, %arg1 : tensor<?x48xi8>, tensor<48x40xi8>) init(%{{.*}} : i32) extras(
// FORM: epilogue
// FORM: return
func.func @both(%a: tensor<?x48xi8>, %b: tensor<48x40xi8>, %za: i32, %zb: i32) -> tensor<?x40xi32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %m = tensor.dim %a, %c0 : tensor<?x48xi8>
  %e = tensor.empty(%m) : tensor<?x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<?x40xi32>) -> tensor<?x40xi32>
  %r = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<?x48xi8>, tensor<48x40xi8>, i32, i32) outs(%f : tensor<?x40xi32>) -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}

// -----

// Weights without a zero point: only they are summed up.
// CHECK-LABEL: func.func @symmetric_weights
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<48x40xi8>) outs(%{{.*}} : tensor<40xi32>)
// CHECK-NOT: ins(%arg0 :
// CHECK: return
func.func @symmetric_weights(%a: tensor<4x48xi8>, %b: tensor<48x40xi8>) -> tensor<4x40xi32> {
  %zero = arith.constant 0 : i32
  %za = arith.constant -7 : i32
  %e = tensor.empty() : tensor<4x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4x40xi32>) -> tensor<4x40xi32>
  %r = linalg.quantized_matmul ins(%a, %b, %za, %zero : tensor<4x48xi8>, tensor<48x40xi8>, i32, i32) outs(%f : tensor<4x40xi32>) -> tensor<4x40xi32>
  return %r : tensor<4x40xi32>
}

// -----

// Sums in i64 that are cast to i32 wrap around as those in i32 do.
// CHECK-LABEL: func.func @truncated
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<?x48xi8>, tensor<48x40xi8>) outs(%{{.*}} : tensor<?x40xi32>)
// CHECK: ^bb0(%[[X:.*]]: i8, %[[Y:.*]]: i8, %{{.*}}: i32):
// CHECK-DAG: arith.extui %[[X]] : i8 to i32
// CHECK-DAG: arith.extsi %[[Y]] : i8 to i32
// CHECK: arith.muli %{{.*}} : i32
// CHECK-NOT: i64
// CHECK: return
// FORM-LABEL: func.func @truncated
// FORM: ukernel.workload ins(%arg0, %arg1 : tensor<?x48xi8>, tensor<48x40xi8>) init(%{{.*}} : i32)
func.func @truncated(%a: tensor<?x48xi8>, %b: tensor<48x40xi8>, %ae: tensor<?x48xi32>, %be: tensor<48x40xi32>, %o: tensor<?x40xi64>, %e: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %five = arith.constant 5 : i64
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<?x48xi8>) outs(%ae : tensor<?x48xi32>) {
  ^bb0(%v: i8, %old: i32):
    %c = arith.extui %v : i8 to i32
    linalg.yield %c : i32
  } -> tensor<?x48xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<48x40xi8>) outs(%be : tensor<48x40xi32>) {
  ^bb0(%v: i8, %old: i32):
    %c = arith.extsi %v : i8 to i32
    linalg.yield %c : i32
  } -> tensor<48x40xi32>
  %f = linalg.fill ins(%five : i64) outs(%o : tensor<?x40xi64>) -> tensor<?x40xi64>
  %p = linalg.matmul ins(%x, %y : tensor<?x48xi32>, tensor<48x40xi32>) outs(%f : tensor<?x40xi64>) -> tensor<?x40xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<?x40xi64>) outs(%e : tensor<?x40xi32>) {
  ^bb0(%v: i64, %old: i32):
    %c = arith.trunci %v : i64 to i32
    linalg.yield %c : i32
  } -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}
