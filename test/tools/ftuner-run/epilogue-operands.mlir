// RUN: ftuner-run %s --device=h200 --function=scalars --args=9x24xf32,24x20xf32,1,-3,-7,2.5 --check --check-bounds | FileCheck %s
// RUN: ftuner-run %s --device=h200 --function=broadcasts --args=9x24xf32,24x20xf32,9x1xf32,1x20xf32,1x1xf32 --check --check-bounds | FileCheck %s
// RUN: not ftuner-run %s --device=h200 --function=broadcasts --args=9x24xf32,24x20xf32,8x1xf32,1x20xf32,1x1xf32 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: ftuner-run %s --device=h200 --function=remainders --args=1000xf32,1000xf32 --check --check-bounds

// Scalars of any type and operands with dimensions of extent 1 are part of the
// epilogue: one launch.
// CHECK: launches: 1
// SIZE: error: {{.*}}expected dimension 0 of argument 'rows' to equal dimension 0 of argument 'a'{{.*}}, but got 8 {{.*}}and 9

func.func @scalars(%a: tensor<?x24xf32>, %b: tensor<24x20xf32>, %keep: i1, %byte: i8, %n: index, %d: f64) -> tensor<?x20xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x24xf32>
  %e = tensor.empty(%m) : tensor<?x20xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x20xf32>) -> tensor<?x20xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x24xf32>, tensor<24x20xf32>) outs(%i : tensor<?x20xf32>) -> tensor<?x20xf32>
  %wide = arith.index_cast %n : index to i64
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %d : tensor<?x20xf32>, f64) outs(%e : tensor<?x20xf32>) {
    ^bb0(%x: f32, %scale: f64, %out: f32):
      %s = arith.truncf %scale : f64 to f32
      %w = arith.sitofp %wide : i64 to f32
      %v = arith.sitofp %byte : i8 to f32
      %t = arith.mulf %x, %s : f32
      %u = arith.addf %t, %w : f32
      %q = arith.select %keep, %u, %v : f32
      linalg.yield %q : f32
  } -> tensor<?x20xf32>
  return %r : tensor<?x20xf32>
}

func.func @broadcasts(%a: tensor<?x24xf32>, %b: tensor<24x20xf32>, %rows: tensor<?x1xf32>, %columns: tensor<1x20xf32>, %one: tensor<1x1xf32>) -> tensor<?x20xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x24xf32>
  %e = tensor.empty(%m) : tensor<?x20xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x20xf32>) -> tensor<?x20xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x24xf32>, tensor<24x20xf32>) outs(%i : tensor<?x20xf32>) -> tensor<?x20xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>, affine_map<(m, n) -> (0, n)>,
                       affine_map<(m, n) -> (0, 0)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p, %rows, %columns, %one : tensor<?x20xf32>, tensor<?x1xf32>, tensor<1x20xf32>, tensor<1x1xf32>)
      outs(%e : tensor<?x20xf32>) {
    ^bb0(%x: f32, %row: f32, %column: f32, %s: f32, %out: f32):
      %t = arith.addf %x, %row : f32
      %u = arith.mulf %t, %column : f32
      %q = arith.subf %u, %s : f32
      linalg.yield %q : f32
  } -> tensor<?x20xf32>
  return %r : tensor<?x20xf32>
}

// Quotients of about 100 bits, and an infinite divisor.
func.func @remainders(%x: tensor<?xf32>, %y: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %large = arith.constant 1.0e30 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %r:3 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
                       affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e, %e, %e : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32, %o0: f32, %o1: f32, %o2: f32):
      %q0 = arith.remf %a, %b : f32
      %q1 = arith.remf %a, %infinity : f32
      %q2 = arith.remf %large, %b : f32
      linalg.yield %q0, %q1, %q2 : f32, f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
