// Which operators become rows.

// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=rows 2>/dev/null | FileCheck %s
// By default they do; without the path, none.
// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads 2>/dev/null | FileCheck %s
// RUN: ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=simt,mma 2>/dev/null | FileCheck %s --check-prefix=OFF
// RUN: not ftuner-opt %s -split-input-file --ukernel-attach-device=device=h200 --ukernel-form-workloads=paths=row 2>&1 | FileCheck %s --check-prefix=NAME
// OFF-NOT: ukernel.row_reduction
// NAME: error: option --paths: {{.*}}row

#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>

// A sum, and what is divided by it: one operator. The product of the sums behind it
// is another's, of a single row, and comes behind it.
// CHECK-LABEL: func.func @share
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction ins(%arg0 : tensor<?x?xf32>)
// CHECK-NOT: linalg.generic
// CHECK: %[[P:.*]] = ukernel.row_reduction ins(%[[R]]#0 : tensor<?xf32>) outs({{.*}} : tensor<1xf32>)
// CHECK: %[[S:.*]] = tensor.collapse_shape %[[P]] [] : tensor<1xf32> into tensor<f32>
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
// CHECK: ukernel.row_reduction
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

// Reductions that are none of rows: of i64 that do not count, and those whose
// operator has no neutral element.
// CHECK-LABEL: func.func @others
// CHECK-NOT: ukernel.row_reduction
func.func @others(%x: tensor<?x?xi64>, %y: tensor<?x?xf32>) -> (tensor<?xi64>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero64 = arith.constant 0 : i64
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xi64>
  %k = tensor.dim %y, %c0 : tensor<?x?xf32>
  %e64 = tensor.empty(%m) : tensor<?xi64>
  %z64 = linalg.fill ins(%zero64 : i64) outs(%e64 : tensor<?xi64>) -> tensor<?xi64>
  %a = linalg.reduce { arith.addi } ins(%x : tensor<?x?xi64>) outs(%z64 : tensor<?xi64>) dimensions = [1]
  %ek = tensor.empty(%k) : tensor<?xf32>
  %zk = linalg.fill ins(%zero : f32) outs(%ek : tensor<?xf32>) -> tensor<?xf32>
  %c = linalg.reduce { arith.subf } ins(%y : tensor<?x?xf32>) outs(%zk : tensor<?xf32>) dimensions = [1]
  return %a, %c : tensor<?xi64>, tensor<?xf32>
}

// -----

// A variance in f64 of rows of f32, as torch-mlir writes it: one operator with
// accumulators of f64, which reads and writes f32.
#all = affine_map<(m, r) -> (m, r)>
#keep = affine_map<(m, r) -> (m, 0)>
// CHECK-LABEL: func.func @variance
// CHECK-NOT: linalg.generic
// CHECK: ukernel.row_reduction ins(%{{.*}} : tensor<?x72xf32>) outs(%{{.*}} : tensor<?x72xf32>)
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f64):
// CHECK: arith.addf %{{.*}} : f64
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NOT: linalg.generic
func.func @variance(%x: tensor<?x72xf32>) -> tensor<?x72xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %width = arith.constant 72.0 : f64
  %m = tensor.dim %x, %c0 : tensor<?x72xf32>
  %e = tensor.empty(%m) : tensor<?x72xf32>
  %e64 = tensor.empty(%m) : tensor<?x72xf64>
  %e1 = tensor.empty(%m) : tensor<?x1xf64>
  %start = linalg.fill ins(%zero : f64) outs(%e1 : tensor<?x1xf64>) -> tensor<?x1xf64>
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x72xf32>) outs(%e64 : tensor<?x72xf64>) {
  ^bb0(%v: f32, %o: f64):
    %w = arith.extf %v : f32 to f64
    linalg.yield %w : f64
  } -> tensor<?x72xf64>
  %sum = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "reduction"]}
      ins(%wide : tensor<?x72xf64>) outs(%start : tensor<?x1xf64>) {
  ^bb0(%v: f64, %acc: f64):
    %s = arith.addf %v, %acc : f64
    linalg.yield %s : f64
  } -> tensor<?x1xf64>
  %squares = linalg.generic {indexing_maps = [#all, #keep, #all], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %sum : tensor<?x72xf64>, tensor<?x1xf64>) outs(%e64 : tensor<?x72xf64>) {
  ^bb0(%v: f64, %s: f64, %o: f64):
    %mean = arith.divf %s, %width : f64
    %d = arith.subf %v, %mean : f64
    %q = arith.mulf %d, %d : f64
    linalg.yield %q : f64
  } -> tensor<?x72xf64>
  %variance = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "reduction"]}
      ins(%squares : tensor<?x72xf64>) outs(%start : tensor<?x1xf64>) {
  ^bb0(%v: f64, %acc: f64):
    %s = arith.addf %v, %acc : f64
    linalg.yield %s : f64
  } -> tensor<?x1xf64>
  %y = linalg.generic {indexing_maps = [#all, #keep, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %variance : tensor<?x72xf32>, tensor<?x1xf64>) outs(%e : tensor<?x72xf32>) {
  ^bb0(%v: f32, %q: f64, %o: f32):
    %t = arith.truncf %q : f64 to f32
    %r = math.rsqrt %t : f32
    %z = arith.mulf %v, %r : f32
    linalg.yield %z : f32
  } -> tensor<?x72xf32>
  return %y : tensor<?x72xf32>
}

// -----

// A later reduction of the same rows comes with what computes its elements,
// which reads nothing that the group computes.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
// CHECK-LABEL: func.func @two_reductions
// CHECK-NOT: linalg.generic
// CHECK: ukernel.row_reduction
// CHECK-NOT: linalg.generic
// CHECK-NOT: ukernel.row_reduction
func.func @two_reductions(%x: tensor<?x72xf32>) -> (tensor<?xf32>, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %zero64 = arith.constant 0.0 : f64
  %m = tensor.dim %x, %c0 : tensor<?x72xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %e64 = tensor.empty(%m) : tensor<?xf64>
  %o = tensor.empty(%m) : tensor<?x72xf64>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %z64 = linalg.fill ins(%zero64 : f64) outs(%e64 : tensor<?xf64>) -> tensor<?xf64>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x72xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x72xf32>) outs(%o : tensor<?x72xf64>) {
  ^bb0(%a: f32, %q: f64):
    %w = arith.extf %a : f32 to f64
    linalg.yield %w : f64
  } -> tensor<?x72xf64>
  %squares = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%wide : tensor<?x72xf64>) outs(%o : tensor<?x72xf64>) {
  ^bb0(%a: f64, %q: f64):
    %w = arith.mulf %a, %a : f64
    linalg.yield %w : f64
  } -> tensor<?x72xf64>
  %t = linalg.reduce { arith.addf } ins(%squares : tensor<?x72xf64>) outs(%z64 : tensor<?xf64>) dimensions = [1]
  return %s, %t : tensor<?xf32>, tensor<?xf64>
}

// -----

// Nothing of that joins where the later reduction is of other rows.
// CHECK-LABEL: func.func @other_rows
// CHECK: ukernel.row_reduction
// CHECK: ukernel.row_reduction
#all = affine_map<(m, r) -> (m, r)>
func.func @other_rows(%x: tensor<64x72xf32>) -> (tensor<64xf32>, tensor<72xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = tensor.empty() : tensor<72xf32>
  %o = tensor.empty() : tensor<64x72xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<72xf32>) -> tensor<72xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<64x72xf32>) outs(%z : tensor<64xf32>) dimensions = [1]
  %squares = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x72xf32>) outs(%o : tensor<64x72xf32>) {
  ^bb0(%a: f32, %q: f32):
    %w = arith.mulf %a, %a : f32
    linalg.yield %w : f32
  } -> tensor<64x72xf32>
  %t = linalg.reduce { arith.addf } ins(%squares : tensor<64x72xf32>) outs(%y : tensor<72xf32>) dimensions = [0]
  return %s, %t : tensor<64xf32>, tensor<72xf32>
}

// -----

// A norm of all elements is of a single row, with what lies around it.
#all = affine_map<(a, b) -> (a, b)>
#none = affine_map<(a, b) -> ()>
// CHECK-LABEL: func.func @all_elements
// CHECK-NOT: linalg.generic
// CHECK: ukernel.row_reduction ins(%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?xf32>) outs(%{{.*}} : tensor<1x?xf32>)
// CHECK-NOT: linalg.generic
func.func @all_elements(%x: tensor<?x8xf32>, %w: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %e1 = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%start : tensor<f32>) {
  ^bb0(%v: f32, %acc: f32):
    %q = arith.mulf %v, %v : f32
    %s = arith.addf %q, %acc : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %y = linalg.generic {indexing_maps = [#all, #none, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %w : tensor<?x8xf32>, tensor<f32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%v: f32, %s: f32, %g: f32, %o: f32):
    %r = math.rsqrt %s : f32
    %z = arith.mulf %v, %r : f32
    %f = arith.mulf %z, %g : f32
    linalg.yield %f : f32
  } -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// From another start, a constant, a number, or a tensor: the row's result is
// combined with it once.
#all = affine_map<(m, r) -> (m, r)>
#keep = affine_map<(m, r) -> (m, 0)>
// CHECK-LABEL: func.func @starts
// CHECK-SAME: (%[[X:[^:]*]]: {{.*}}, %[[N:[^:]*]]: f32, %[[T:[^:]*]]: tensor<?x1xf32>)
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[T]]
// CHECK: ukernel.row_reduction ins(%[[X]], %[[N]], %[[C]] : tensor<?x?xf32>, f32, tensor<?xf32>)
// CHECK: } values {
// CHECK: ^bb0(%[[NA:.*]]: f32, %[[TA:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[D:.*]]: f32):
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0
// CHECK-DAG: %[[R0:.*]] = arith.addf %[[ONE]], %[[A]]
// CHECK-DAG: %[[R1:.*]] = arith.maximumf %[[NA]], %[[B]]
// CHECK-DAG: %[[R2:.*]] = arith.addf %[[TA]], %[[D]]
// CHECK: ukernel.yield %[[R0]], %[[R1]], %[[R2]]
// CHECK: tensor.expand_shape
func.func @starts(%x: tensor<?x?xf32>, %n: f32, %t: tensor<?x1xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %w = linalg.fill ins(%n : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %a = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %b = linalg.reduce { arith.maximumf } ins(%x : tensor<?x?xf32>) outs(%w : tensor<?xf32>) dimensions = [1]
  %c = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%t : tensor<?x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %s = arith.addf %v, %o : f32
    linalg.yield %s : f32
  } -> tensor<?x1xf32>
  return %a, %b, %c : tensor<?xf32>, tensor<?xf32>, tensor<?x1xf32>
}

// -----

// Sums of f16 and bf16 are sums of f32, rounded once a row; of two factors the
// products are as wide, too. Extremes of narrow integers and of booleans are those
// of integers of 32 bits, combined with what they start from.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
// CHECK-LABEL: func.func @narrow
// CHECK: ukernel.row_reduction ins(%arg0, %arg1, %arg2 : tensor<?x?xf16>, tensor<?x?xf16>, tensor<?x?xi8>)
// CHECK: ^bb0(%[[A:.*]]: f16, %[[B:.*]]: f16, %{{.*}}: i8, %[[S:.*]]: f32):
// CHECK-DAG: %[[AW:.*]] = arith.extf %[[A]]
// CHECK-DAG: %[[BW:.*]] = arith.extf %[[B]]
// CHECK: %[[P:.*]] = arith.mulf %[[AW]], %[[BW]] : f32
// CHECK: arith.addf %[[S]], %[[P]] : f32
// CHECK: arith.maxsi {{.*}} : i32
// CHECK: arith.cmpi ne
// CHECK: arith.extui {{.*}} : i1 to i32
// CHECK: arith.maxui {{.*}} : i32
// CHECK: } values {
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: %[[LOW:.*]] = arith.constant -128 : i8
// CHECK: %[[LW:.*]] = arith.extsi %[[LOW]] : i8 to i32
// CHECK: arith.maxsi %[[LW]]
// CHECK: arith.trunci {{.*}} : i32 to i1
func.func @narrow(%x: tensor<?x?xf16>, %y: tensor<?x?xf16>, %v: tensor<?x?xi8>) -> (tensor<?xf16>, tensor<?xi8>, tensor<?xi1>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %low = arith.constant -128 : i8
  %none = arith.constant 0 : i8
  %false = arith.constant false
  %m = tensor.dim %x, %c0 : tensor<?x?xf16>
  %e = tensor.empty(%m) : tensor<?xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  %s = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<?x?xf16>, tensor<?x?xf16>) outs(%z : tensor<?xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %p = arith.mulf %a, %b : f16
    %q = arith.addf %o, %p : f16
    linalg.yield %q : f16
  } -> tensor<?xf16>
  %ei = tensor.empty(%m) : tensor<?xi8>
  %zi = linalg.fill ins(%low : i8) outs(%ei : tensor<?xi8>) -> tensor<?xi8>
  %t = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %v : tensor<?x?xf16>, tensor<?x?xi8>) outs(%zi : tensor<?xi8>) {
  ^bb0(%h: f16, %a: i8, %o: i8):
    %i = arith.fptosi %h : f16 to i8
    %b = arith.addi %i, %a : i8
    %q = arith.maxsi %o, %b : i8
    linalg.yield %q : i8
  } -> tensor<?xi8>
  %eb = tensor.empty(%m) : tensor<?xi1>
  %zb = linalg.fill ins(%false : i1) outs(%eb : tensor<?xi1>) -> tensor<?xi1>
  %u = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%v : tensor<?x?xi8>) outs(%zb : tensor<?xi1>) {
  ^bb0(%a: i8, %o: i1):
    %q = arith.cmpi ne, %a, %none : i8
    %r = arith.ori %o, %q : i1
    linalg.yield %r : i1
  } -> tensor<?xi1>
  return %s, %t, %u : tensor<?xf16>, tensor<?xi8>, tensor<?xi1>
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

// An operator of i64 behind the sum stays apart, and the others are rows.
// CHECK-LABEL: func.func @f
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction
// CHECK: linalg.generic {{.*}}ins({{.*}}%[[R]]#0
// CHECK: arith.fptosi
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#col = affine_map<(m, r) -> (r)>
#id1 = affine_map<(m) -> (m)>
func.func @f(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xi64>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %ob = tensor.empty(%m, %n) : tensor<?x?xi64>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %y0 = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %yb = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%ob : tensor<?x?xi64>) {
  ^bb0(%a: f32, %b: f32, %q: i64):
    %v = arith.divf %a, %b : f32
    %t = arith.fptosi %v : f32 to i64
    linalg.yield %t : i64
  } -> tensor<?x?xi64>
  return %y0, %yb, %s : tensor<?x?xf32>, tensor<?x?xi64>, tensor<?xf32>
}

// -----

// A mask by position: the positions are computed in the rows, not read, and the
// offset, an index, goes in as an integer.
#all = affine_map<(a, m, r) -> (a, m, r)>
#row = affine_map<(a, m, r) -> (m)>
#column = affine_map<(a, m, r) -> (r)>
#id = affine_map<(m) -> (m)>
// CHECK-LABEL: func.func @causal
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4x16x16xf32>, %[[OFFSET:[^:]*]]: index)
// CHECK: %[[I:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK: ukernel.row_reduction ins(%[[X]], %[[I]] : tensor<4x16x16xf32>, i64)
// CHECK: ^bb0(%{{.*}}: f32, %[[A:.*]]: i64, %{{.*}}: f32):
// CHECK-DAG: ukernel.index 2
// CHECK-DAG: ukernel.index 0
// CHECK-DAG: arith.index_cast %[[A]] : i64 to index
// CHECK: } values {
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @causal(%x: tensor<4x16x16xf32>, %offset: index) -> tensor<4x16x16xf32> {
  %hidden = arith.constant 0xFF800000 : f32
  %ei = tensor.empty() : tensor<16xi64>
  %places = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%ei : tensor<16xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    linalg.yield %j : i64
  } -> tensor<16xi64>
  %e = tensor.empty() : tensor<4x16x16xf32>
  %masked = linalg.generic {indexing_maps = [#all, #row, #column, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %places, %places : tensor<4x16x16xf32>, tensor<16xi64>, tensor<16xi64>) outs(%e : tensor<4x16x16xf32>) {
  ^bb0(%a: f32, %p: i64, %q: i64, %o: f32):
    %pi = arith.index_cast %p : i64 to index
    %last = arith.addi %pi, %offset : index
    %qi = arith.index_cast %q : i64 to index
    %c = arith.cmpi sle, %qi, %last : index
    %s = arith.select %c, %a, %hidden : f32
    linalg.yield %s : f32
  } -> tensor<4x16x16xf32>
  %y = linalg.softmax dimension(2) ins(%masked : tensor<4x16x16xf32>) outs(%e : tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  return %y : tensor<4x16x16xf32>
}

// -----

// A position along a batch axis has no place in a kernel of rows: that operator
// stays before them.
#all = affine_map<(a, b, m, r) -> (a, b, m, r)>
#rows = affine_map<(a, b, m, r) -> (a, b, m)>
// CHECK-LABEL: func.func @batch_position
// CHECK: linalg.index 0
// CHECK: ukernel.row_reduction
func.func @batch_position(%x: tensor<2x4x16x16xf32>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x16x16xf32>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x4x16x16xf32>) outs(%e : tensor<2x4x16x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %s = arith.mulf %a, %k : f32
    linalg.yield %s : f32
  } -> tensor<2x4x16x16xf32>
  %z0 = tensor.empty() : tensor<2x4x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z0 : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%h : tensor<2x4x16x16xf32>) outs(%z : tensor<2x4x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<2x4x16xf32>
  return %s : tensor<2x4x16xf32>
}

// -----

// The greatest element and its position, as torch-mlir writes them: the position of
// the first NaN, the greatest before it, the first position of that. If nobody asks
// for the position, a maximum alone.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
// CHECK-LABEL: func.func @argmax
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction {{.*}} reduce {
// CHECK: arith.cmpf uno
// CHECK: arith.minsi
// CHECK: }, {
// CHECK: arith.maximumf
// CHECK: }, {
// CHECK: arith.cmpf oeq
// CHECK: arith.minsi
// CHECK: } values {
// CHECK: arith.extsi {{.*}} : i32 to i64
// CHECK: -> tensor<?xi64>, tensor<?xf32>
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]#1, %[[R]]#0
// CHECK-LABEL: func.func @maximum
// CHECK: ukernel.row_reduction {{.*}} reduce {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: ukernel.yield
// CHECK-NEXT: } values {
func.func @argmax(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xi64>) {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i64
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %ep = tensor.empty(%m) : tensor<?xi64>
  %ev = tensor.empty(%m) : tensor<?xf32>
  %zp = linalg.fill ins(%none : i64) outs(%ep : tensor<?xi64>) -> tensor<?xi64>
  %zv = linalg.fill ins(%low : f32) outs(%ev : tensor<?xf32>) -> tensor<?xf32>
  %s:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%zv, %zp : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %best: f32, %place: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %v = arith.maximumf %a, %best : f32
    %c = arith.cmpf ogt, %a, %best : f32
    %p = arith.select %c, %j, %place : i64
    linalg.yield %v, %p : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  return %s#0, %s#1 : tensor<?xf32>, tensor<?xi64>
}
func.func @maximum(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i64
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %ep = tensor.empty(%m) : tensor<?xi64>
  %ev = tensor.empty(%m) : tensor<?xf32>
  %zp = linalg.fill ins(%none : i64) outs(%ep : tensor<?xi64>) -> tensor<?xi64>
  %zv = linalg.fill ins(%low : f32) outs(%ev : tensor<?xf32>) -> tensor<?xf32>
  %s:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%zv, %zp : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %best: f32, %place: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %v = arith.maximumf %a, %best : f32
    %c = arith.cmpf ogt, %a, %best : f32
    %p = arith.select %c, %j, %place : i64
    linalg.yield %v, %p : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  return %s#0 : tensor<?xf32>
}

// -----

// The last of equal elements is another reduction: it stays.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
// CHECK-LABEL: func.func @last
// CHECK-NOT: ukernel.row_reduction
// CHECK: linalg.generic
func.func @last(%x: tensor<?x?xf32>) -> tensor<?xi64> {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i64
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %ep = tensor.empty(%m) : tensor<?xi64>
  %ev = tensor.empty(%m) : tensor<?xf32>
  %zp = linalg.fill ins(%none : i64) outs(%ep : tensor<?xi64>) -> tensor<?xi64>
  %zv = linalg.fill ins(%low : f32) outs(%ev : tensor<?xf32>) -> tensor<?xf32>
  %s:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%zv, %zp : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %best: f32, %place: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %v = arith.maximumf %a, %best : f32
    %c = arith.cmpf oge, %a, %best : f32
    %p = arith.select %c, %j, %place : i64
    linalg.yield %v, %p : f32, i64
  } -> (tensor<?xf32>, tensor<?xi64>)
  return %s#1 : tensor<?xi64>
}

// -----

// A norm over the last dimensions, with weights for all of these: one loop along
// rows, also of what follows. Statistics keep dimensions of extent 1.
#all = affine_map<(n, c, h) -> (n, c, h)>
#keep = affine_map<(n, c, h) -> (n, 0, 0)>
#row = affine_map<(n, c, h) -> (n)>
#weight = affine_map<(n, c, h) -> (c, h)>
// CHECK-LABEL: func.func @two_loops
// CHECK-SAME: (%[[X:[^:]*]]: {{.*}}, %[[W:[^:]*]]: tensor<8x6xf32>)
// CHECK-DAG: %[[R:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1, 2]]
// CHECK-DAG: %[[V:.*]] = tensor.collapse_shape %[[W]] {{\[\[}}0, 1]]
// CHECK: %[[Y:.*]] = ukernel.row_reduction ins(%[[R]], %[[V]] : tensor<?x48xf32>, tensor<48xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[Y]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[E]]
func.func @two_loops(%x: tensor<?x8x6xf32>, %w: tensor<8x6xf32>) -> tensor<?x8x6xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8x6xf32>
  %k = tensor.empty(%n) : tensor<?x1x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%k : tensor<?x1x1xf32>) -> tensor<?x1x1xf32>
  %s = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<?x8x6xf32>) outs(%z : tensor<?x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x1x1xf32>
  %i = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<?x1x1xf32>) outs(%k : tensor<?x1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.rsqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<?x1x1xf32>
  %c = tensor.collapse_shape %i [[0, 1, 2]] : tensor<?x1x1xf32> into tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x8x6xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #weight, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %c, %w : tensor<?x8x6xf32>, tensor<?xf32>, tensor<8x6xf32>) outs(%e : tensor<?x8x6xf32>) {
  ^bb0(%a: f32, %b: f32, %g: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %g : f32
    linalg.yield %q : f32
  } -> tensor<?x8x6xf32>
  return %y : tensor<?x8x6xf32>
}

// -----

// Loops that are not neighbours are reduced one after the other.
#all = affine_map<(n, c, h) -> (n, c, h)>
#middle = affine_map<(n, c, h) -> (c)>
// CHECK-LABEL: func.func @apart
// CHECK: %[[P:.*]] = ukernel.row_reduction ins(%arg0 : tensor<?x8x6xf32>) outs({{.*}} : tensor<?x8xf32>)
// CHECK: ukernel.row_reduction ins(%[[P]] : tensor<?x8xf32>) outs({{.*}} : tensor<8xf32>)
// CHECK-NOT: linalg.generic
func.func @apart(%x: tensor<?x8x6xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %k = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%k : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#all, #middle], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<?x8x6xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// A reshape between an elementwise operator and a softmax, as between heads and the
// batch of a product: the operator is one of the rows' nevertheless.
#all = affine_map<(b, m, r) -> (b, m, r)>
#mask = affine_map<(b, m, r) -> (r)>
// CHECK-LABEL: func.func @heads
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0
// CHECK: ukernel.row_reduction ins(%[[X]], %arg1 : tensor<2x4x?x?xf32>, tensor<?xi1>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @heads(%x: tensor<8x?x?xf32>, %mask: tensor<?xi1>) -> tensor<2x4x?x?xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %hidden = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c1 : tensor<8x?x?xf32>
  %n = tensor.dim %x, %c2 : tensor<8x?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<8x?x?xf32>
  %h = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %mask : tensor<8x?x?xf32>, tensor<?xi1>) outs(%e : tensor<8x?x?xf32>) {
  ^bb0(%a: f32, %c: i1, %o: f32):
    %s = arith.select %c, %a, %hidden : f32
    linalg.yield %s : f32
  } -> tensor<8x?x?xf32>
  %w = tensor.expand_shape %h [[0, 1], [2], [3]] output_shape [2, 4, %m, %n] : tensor<8x?x?xf32> into tensor<2x4x?x?xf32>
  %o = tensor.empty(%m, %n) : tensor<2x4x?x?xf32>
  %y = linalg.softmax dimension(3) ins(%w : tensor<2x4x?x?xf32>) outs(%o : tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  return %y : tensor<2x4x?x?xf32>
}

// -----

// Quantisation: scale and zero point of a row from its extremes, and integers of 8
// bits, all by one operator.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#id = affine_map<(m) -> (m)>
// CHECK-LABEL: func.func @quantize
// CHECK: %[[R:.*]]:3 = ukernel.row_reduction {{.*}} reduce {
// CHECK: arith.minimumf
// CHECK: }, {
// CHECK: arith.maximumf
// CHECK: } values {
// CHECK: } map {
// CHECK: arith.fptosi
// CHECK: -> tensor<?xf32>, tensor<?xi8>, tensor<?x?xi8>
// CHECK-NOT: linalg.generic
// CHECK: return %[[R]]#2, %[[R]]#0, %[[R]]#1
func.func @quantize(%x: tensor<?x?xf32>) -> (tensor<?x?xi8>, tensor<?xf32>, tensor<?xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %low = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %levels = arith.constant 255.0 : f32
  %least = arith.constant -128.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %zl = linalg.fill ins(%high : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %zh = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %lo = linalg.reduce { arith.minimumf } ins(%x : tensor<?x?xf32>) outs(%zl : tensor<?xf32>) dimensions = [1]
  %hi = linalg.reduce { arith.maximumf } ins(%x : tensor<?x?xf32>) outs(%zh : tensor<?xf32>) dimensions = [1]
  %scale = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%lo, %hi : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %w = arith.subf %b, %a : f32
    %s = arith.divf %w, %levels : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %ez = tensor.empty(%m) : tensor<?xi8>
  %zero = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%lo, %scale : tensor<?xf32>, tensor<?xf32>) outs(%ez : tensor<?xi8>) {
  ^bb0(%a: f32, %b: f32, %o: i8):
    %w = arith.divf %a, %b : f32
    %s = arith.subf %least, %w : f32
    %r = math.roundeven %s : f32
    %i = arith.fptosi %r : f32 to i8
    linalg.yield %i : i8
  } -> tensor<?xi8>
  %eq = tensor.empty(%m, %n) : tensor<?x?xi8>
  %q = linalg.generic {indexing_maps = [#all, #row, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %scale, %zero : tensor<?x?xf32>, tensor<?xf32>, tensor<?xi8>) outs(%eq : tensor<?x?xi8>) {
  ^bb0(%a: f32, %s: f32, %z: i8, %o: i8):
    %w = arith.divf %a, %s : f32
    %r = math.roundeven %w : f32
    %f = arith.sitofp %z : i8 to f32
    %t = arith.addf %r, %f : f32
    %i = arith.fptosi %t : f32 to i8
    linalg.yield %i : i8
  } -> tensor<?x?xi8>
  return %q, %scale, %zero : tensor<?x?xi8>, tensor<?xf32>, tensor<?xi8>
}

// -----

// All elements, with dimensions of extent 1 for what was reduced, and what is
// computed of the sum.
#all = affine_map<(m, r) -> (m, r)>
#none = affine_map<(m, r) -> (0, 0)>
// CHECK-LABEL: func.func @one_number
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0
// CHECK: ukernel.row_reduction ins(%[[X]] : tensor<15xf32>) outs({{.*}} : tensor<1xf32>)
// CHECK: math.sqrt
// CHECK: tensor.expand_shape {{.*}} : tensor<f32> into tensor<1x1xf32>
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @one_number(%x: tensor<3x5xf32>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %s = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<3x5xf32>) outs(%z : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x1xf32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<1x1xf32>) outs(%e : tensor<1x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// -----

// Along a middle loop: rows lie across memory, and operands have their dimensions
// in the order of the program.
#all = affine_map<(a, r, c) -> (a, r, c)>
#rows = affine_map<(a, r, c) -> (a, c)>
// CHECK: #[[ALL:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func.func @middle
// CHECK: ukernel.row_reduction {{.*}} maps = [#[[ALL]], #[[ROWS]], #[[ALL]]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @middle(%x: tensor<5x7x8xf32>) -> (tensor<5x7x8xf32>, tensor<5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %k = tensor.empty() : tensor<5x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%k : tensor<5x8xf32>) -> tensor<5x8xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<5x7x8xf32>) outs(%z : tensor<5x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x8xf32>
  %e = tensor.empty() : tensor<5x7x8xf32>
  %y = linalg.generic {indexing_maps = [#all, #rows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<5x7x8xf32>, tensor<5x8xf32>) outs(%e : tensor<5x7x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<5x7x8xf32>
  return %y, %s : tensor<5x7x8xf32>, tensor<5x8xf32>
}

// -----

// A number of a type that rows do not take keeps its operator behind, and no
// other.
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
// CHECK-LABEL: func.func @wide_number
// CHECK: %[[R:.*]]:2 = ukernel.row_reduction ins(%arg0 : tensor<?x?xf32>)
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg0, %[[R]]#0
// CHECK: arith.mulf {{.*}}, %arg1 : f80
// CHECK: return %[[R]]#1, %[[W]]
func.func @wide_number(%x: tensor<?x?xf32>, %k: f80) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %o = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %t = arith.addf %acc, %a : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.extf %p : f32 to f80
    %u = arith.mulf %q, %k : f80
    %v = arith.truncf %u : f80 to f32
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %y, %w : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// An extreme with its position stays one operator where rows do not take it.
#all = affine_map<(a, b, c, d, e, r) -> (a, b, c, d, e, r)>
#row = affine_map<(a, b, c, d, e, r) -> (a, b, c, d, e)>
// CHECK-LABEL: func.func @many_dimensions
// CHECK-COUNT-2: linalg.fill
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @many_dimensions(%x: tensor<2x2x2x2x2x9xf32>) -> (tensor<2x2x2x2x2xf32>, tensor<2x2x2x2x2xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %e = tensor.empty() : tensor<2x2x2x2x2xf32>
  %p = tensor.empty() : tensor<2x2x2x2x2xi64>
  %zv = linalg.fill ins(%least : f32) outs(%e : tensor<2x2x2x2x2xf32>) -> tensor<2x2x2x2x2xf32>
  %zp = linalg.fill ins(%first : i64) outs(%p : tensor<2x2x2x2x2xi64>) -> tensor<2x2x2x2x2xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x2x2x2x2x9xf32>) outs(%zv, %zp : tensor<2x2x2x2x2xf32>, tensor<2x2x2x2x2xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %i = linalg.index 5 : index
    %j = arith.index_cast %i : index to i64
    %m = arith.maximumf %a, %best : f32
    %c = arith.cmpf ogt, %a, %best : f32
    %n = arith.select %c, %j, %at : i64
    linalg.yield %m, %n : f32, i64
  } -> (tensor<2x2x2x2x2xf32>, tensor<2x2x2x2x2xi64>)
  return %r#0, %r#1 : tensor<2x2x2x2x2xf32>, tensor<2x2x2x2x2xi64>
}

// -----

// The sizes of what was tried go, too, though they lie behind the operator, with
// the one that reads it.
#all = affine_map<(a, b, c, d, e, r) -> (a, b, c, d, e, r)>
#row = affine_map<(a, b, c, d, e, r) -> (a, b, c, d, e)>
#id = affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>
// CHECK-LABEL: func.func @dynamic_dimensions
// CHECK-COUNT-2: linalg.fill
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @dynamic_dimensions(%x: tensor<?x2x2x2x2x9xf32>) -> (tensor<?x2x2x2x2xf32>, tensor<?x2x2x2x2xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x2x2x2x2x9xf32>
  %e = tensor.empty(%n) : tensor<?x2x2x2x2xf32>
  %p = tensor.empty(%n) : tensor<?x2x2x2x2xi64>
  %zv = linalg.fill ins(%least : f32) outs(%e : tensor<?x2x2x2x2xf32>) -> tensor<?x2x2x2x2xf32>
  %zp = linalg.fill ins(%first : i64) outs(%p : tensor<?x2x2x2x2xi64>) -> tensor<?x2x2x2x2xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x2x2x2x2x9xf32>) outs(%zv, %zp : tensor<?x2x2x2x2xf32>, tensor<?x2x2x2x2xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %i = linalg.index 5 : index
    %j = arith.index_cast %i : index to i64
    %m = arith.maximumf %a, %best : f32
    %c = arith.cmpf ogt, %a, %best : f32
    %k = arith.select %c, %j, %at : i64
    linalg.yield %m, %k : f32, i64
  } -> (tensor<?x2x2x2x2xf32>, tensor<?x2x2x2x2xi64>)
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%r#0 : tensor<?x2x2x2x2xf32>) outs(%e : tensor<?x2x2x2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = math.exp %a : f32
    linalg.yield %q : f32
  } -> tensor<?x2x2x2x2xf32>
  return %y, %r#1 : tensor<?x2x2x2x2xf32>, tensor<?x2x2x2x2xi64>
}

// -----

// Loops that are no neighbours: the inner ones first, in f32 where sums are
// narrower, then the outer one, which rounds.
#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>
// CHECK-LABEL: func.func @by_channel
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3]]
// CHECK: %[[P:.*]] = ukernel.row_reduction ins(%[[X]] : tensor<?x8x35xf16>) outs({{.*}} : tensor<?x8xf32>)
// CHECK: %[[S:.*]] = ukernel.row_reduction ins(%[[P]] : tensor<?x8xf32>) outs({{.*}} : tensor<8xf16>)
// CHECK-NOT: linalg.generic
// CHECK: return %[[S]]
func.func @by_channel(%x: tensor<?x8x5x7xf16>) -> tensor<8xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<8xf16>) -> tensor<8xf16>
  %s = linalg.generic {indexing_maps = [#all, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]} ins(%x : tensor<?x8x5x7xf16>) outs(%z : tensor<8xf16>) {
  ^bb0(%a: f16, %acc: f16):
    %t = arith.addf %acc, %a : f16
    linalg.yield %t : f16
  } -> tensor<8xf16>
  return %s : tensor<8xf16>
}

// -----

// A window that is the whole image is the image's loops.
// CHECK-LABEL: func.func @global_pooling
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0
// CHECK: ukernel.row_reduction ins(%[[X]] : tensor<?x8x35xf32>)
// CHECK-NOT: linalg.pooling
// CHECK: return
func.func @global_pooling(%x: tensor<?x8x5x7xf32>) -> tensor<?x8x1x1xf32> {
  %c0 = arith.constant 0 : index
  %least = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?x8x5x7xf32>
  %e = tensor.empty(%n) : tensor<?x8x1x1xf32>
  %z = linalg.fill ins(%least : f32) outs(%e : tensor<?x8x1x1xf32>) -> tensor<?x8x1x1xf32>
  %w = tensor.empty() : tensor<5x7xf32>
  %y = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<[5, 7]> : vector<2xi64>} ins(%x, %w : tensor<?x8x5x7xf32>, tensor<5x7xf32>) outs(%z : tensor<?x8x1x1xf32>) -> tensor<?x8x1x1xf32>
  return %y : tensor<?x8x1x1xf32>
}
