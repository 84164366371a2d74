// Which operators become rows.

// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=rows 2>/dev/null | FileCheck %s
// By default they do; without the path, none.
// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads 2>/dev/null | FileCheck %s
// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=simt,mma 2>/dev/null | FileCheck %s --check-prefix=OFF
// RUN: not ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=row 2>&1 | FileCheck %s --check-prefix=NAME
// OFF-NOT: ukernel.row_reduction
// NAME: error: option 'paths': {{.*}}row

#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>

// A sum, and what is divided by it: one operator. The product of the sums behind it
// is another's, and comes behind it.
// CHECK-LABEL: func.func @share
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction ins(%arg0 : tensor<?x?xf32>)
// CHECK-NOT: linalg.generic
// CHECK: %[[S:.*]] = linalg.reduce {{.*}}ins(%[[R]]#0 : tensor<?xf32>)
// CHECK: return %[[R]]#1, %[[S]]
func.func @share(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %p = tensor.empty() : tensor<f32>
  %u = linalg.fill ins(%one : f32) outs(%p : tensor<f32>) -> tensor<f32>
  %all = linalg.reduce { arith.mulf } ins(%s : tensor<?xf32>) outs(%u : tensor<f32>) dimensions = [0]
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<?x?xf32>
  return %y, %all : tensor<?x?xf32>, tensor<f32>
}

// -----

// What comes between and needs the sum keeps what needs it, too, out: the division
// is no part of the operator, or the sum of sums would be needed before it.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#none = affine_map<(m, r) -> ()>
// CHECK-LABEL: func.func @between
// CHECK: %[[R:.*]] = ukernel.row_reduction
// CHECK: } -> tensor<?xf32>
// CHECK: linalg.reduce
// CHECK: linalg.generic
func.func @between(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %p = tensor.empty() : tensor<f32>
  %u = linalg.fill ins(%zero : f32) outs(%p : tensor<f32>) -> tensor<f32>
  %all = linalg.reduce { arith.addf } ins(%s : tensor<?xf32>) outs(%u : tensor<f32>) dimensions = [0]
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #none, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %all : tensor<?x?xf32>, tensor<?xf32>, tensor<f32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %t: f32, %c: f32):
    %d = arith.divf %a, %b : f32
    %f = arith.mulf %d, %t : f32
    linalg.yield %f : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Reductions that are none of rows: of f64, along the first loop, from another
// start, of one row alone; and one whose operator has no neutral element.
// CHECK-LABEL: func.func @others
// CHECK-NOT: ukernel.row_reduction
func.func @others(%x: tensor<?x?xf64>, %y: tensor<?x?xf32>, %v: tensor<?xf32>) -> (tensor<?xf64>, tensor<?xf32>, tensor<?xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero64 = arith.constant 0.0 : f64
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf64>
  %n = tensor.dim %y, %c1 : tensor<?x?xf32>
  %k = tensor.dim %y, %c0 : tensor<?x?xf32>
  %e64 = tensor.empty(%m) : tensor<?xf64>
  %z64 = linalg.fill ins(%zero64 : f64) outs(%e64 : tensor<?xf64>) -> tensor<?xf64>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf64>) outs(%z64 : tensor<?xf64>) dimensions = [1]
  %en = tensor.empty(%n) : tensor<?xf32>
  %zn = linalg.fill ins(%zero : f32) outs(%en : tensor<?xf32>) -> tensor<?xf32>
  %b = linalg.reduce { arith.addf } ins(%y : tensor<?x?xf32>) outs(%zn : tensor<?xf32>) dimensions = [0]
  %ek = tensor.empty(%k) : tensor<?xf32>
  %zk = linalg.fill ins(%one : f32) outs(%ek : tensor<?xf32>) -> tensor<?xf32>
  %c = linalg.reduce { arith.addf } ins(%y : tensor<?x?xf32>) outs(%zk : tensor<?xf32>) dimensions = [1]
  %e = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %d = linalg.reduce { arith.addf } ins(%v : tensor<?xf32>) outs(%z : tensor<f32>) dimensions = [0]
  return %a, %b, %c, %d : tensor<?xf64>, tensor<?xf32>, tensor<?xf32>, tensor<f32>
}

// -----

// An axis of the result of a product is n; rows that follow a product stay apart
// from its epilogue.
// CHECK-LABEL: func.func @behind_product
// CHECK: ukernel.workload
// CHECK: epilogue
// CHECK: ukernel.row_reduction
// CHECK-SAME: ranges = [#ukernel.range<1 to 128>, #ukernel.range<64 to 64>]
// CHECK-NOT: linalg.generic
module attributes {ukernel.symbols = {M = #ukernel.range<1 to 128>}} {
  func.func @behind_product(%a: tensor<?x32xf32> {ukernel.shape = ["M", 32]}, %b: tensor<32x64xf32>, %bias: tensor<64xf32>) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x32xf32>
    %e = tensor.empty(%m) : tensor<?x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x32xf32>, tensor<32x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    %q = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%p, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    } -> tensor<?x64xf32>
    %r = tensor.empty(%m) : tensor<?xf32>
    %z = linalg.fill ins(%zero : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.reduce { arith.addf } ins(%q : tensor<?x64xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
    return %s : tensor<?xf32>
  }
}

// -----

// A call that needs the sum keeps its place before the next one: what comes behind
// it does not join.
// CHECK-LABEL: func.func @f
// CHECK: ukernel.row_reduction
// CHECK: call @a
// CHECK-NEXT: call @b
// CHECK: linalg.generic
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#col = affine_map<(m, r) -> (r)>
#id1 = affine_map<(m) -> (m)>
func.func private @a(tensor<?xf32>)
func.func private @b()
func.func @f(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  call @a(%s) : (tensor<?xf32>) -> ()
  call @b() : () -> ()
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// The length of rows comes from an operand that is read along them: a count has none.
// CHECK-LABEL: func.func @f
// CHECK-NOT: ukernel.row_reduction
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#col = affine_map<(m, r) -> (r)>
#id1 = affine_map<(m) -> (m)>
func.func @f(%x: tensor<?x?xf32>) -> (tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%a: f32, %q: f32):
    %k = arith.constant 1.0 : f32
    %t = arith.addf %q, %k : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// -----

// An operator of f64 behind the sum stays apart, and the others are rows.
// CHECK-LABEL: func.func @f
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction
// CHECK: linalg.generic {{.*}}ins({{.*}}%[[R]]#0
// CHECK: arith.extf
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#col = affine_map<(m, r) -> (r)>
#id1 = affine_map<(m) -> (m)>
func.func @f(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf64>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %ob = tensor.empty(%m, %n) : tensor<?x?xf64>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %y0 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %yb = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%ob : tensor<?x?xf64>) {
  ^bb0(%a: f32, %b: f32, %q: f64):
    %v = arith.divf %a, %b : f32
    %t = arith.extf %v : f32 to f64
    linalg.yield %t : f64
  } -> tensor<?x?xf64>
  return %y0, %yb, %s : tensor<?x?xf32>, tensor<?x?xf64>, tensor<?xf32>
}
