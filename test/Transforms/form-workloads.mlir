// RUN: ftuner-opt %s -ukernel-form-workloads -cse -split-input-file | FileCheck %s

// Fill, bias and activation become init and epilogue. Constants are cloned into
// the region, the range comes from the symbol.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[N:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @bias_relu
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x768xf32> {ukernel.shape = ["T", 768]}, %[[B:[a-z0-9]*]]: tensor<768x64xf32>, %[[BIAS:[a-z0-9]*]]: tensor<64xf32>, %[[S:[a-z0-9]*]]: f32)
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[O:.*]] = tensor.empty
// CHECK-NOT: cf.assert
// CHECK-NOT: linalg
// CHECK: %[[R:.*]] = ukernel.workload ins(%[[A]], %[[B]] : {{.*}}) init(%[[ZERO]] : f32) extras(%[[BIAS]], %[[S]] : tensor<64xf32>, f32) outs(%[[O]] : tensor<?x64xf32>)
// CHECK-SAME: maps = [#[[MK]], #[[KN]], #[[N]], #{{.*}}, #[[MN]]]
// CHECK-SAME: ranges = [#ukernel.range<1 to 128 weights [53 : 1.000000e+00]>, #ukernel.range<64 to 64>, #ukernel.range<768 to 768>]
// CHECK: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[C:.*]]: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[Y]]
// CHECK: arith.addf %[[C]], %[[P]]
// CHECK: } epilogue {
// CHECK: ^bb0(%[[ACC:.*]]: f32, %[[E0:.*]]: f32, %[[E1:.*]]: f32):
// CHECK-DAG: %[[Z:.*]] = arith.constant 0.0
// CHECK-DAG: %[[T0:.*]] = arith.addf %[[ACC]], %[[E0]]
// CHECK-DAG: %[[T1:.*]] = arith.maximumf %[[T0]], %[[Z]]
// CHECK: arith.mulf %[[T1]], %[[E1]]
// CHECK: return %[[R]]
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128 weights [53 : 1.0]>}} {
  func.func @bias_relu(%a: tensor<?x768xf32> {ukernel.shape = ["T", 768]}, %b: tensor<768x64xf32>, %bias: tensor<64xf32>, %s: f32) -> tensor<?x64xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x768xf32>
    %e = tensor.empty(%m) : tensor<?x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %mm = linalg.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%mm, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) {
      ^bb0(%x: f32, %y: f32, %out: f32):
        %0 = arith.addf %x, %y : f32
        %1 = arith.maximumf %0, %zero : f32
        %2 = arith.mulf %1, %s : f32
        linalg.yield %2 : f32
    } -> tensor<?x64xf32>
    return %r : tensor<?x64xf32>
  }
}

// -----

// Any order of loops and factors. Rows of the result are m: with a transposed
// result the roles of the inputs change.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @transposed_result
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<16x32xf32>, %[[B:[a-z0-9]*]]: tensor<64x16xf32>, %[[O:[a-z0-9]*]]: tensor<64x32xf32>
// CHECK: ukernel.workload ins(%[[B]], %[[A]] : {{.*}}) init(%[[O]] : tensor<64x32xf32>) outs(%{{.*}} : tensor<64x32xf32>) maps = [#[[MK]], #[[KN]], #[[MN]], #[[MN]]]
// CHECK-SAME: ranges = [#ukernel.range<64 to 64>, #ukernel.range<32 to 32>, #ukernel.range<16 to 16>]
// CHECK: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[C:.*]]: f32):
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[Y]]
// CHECK: arith.addf %[[P]], %[[C]]
func.func @transposed_result(%a: tensor<16x32xf32>, %b: tensor<64x16xf32>, %o: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(k, n, m) -> (k, m)>, affine_map<(k, n, m) -> (n, k)>, affine_map<(k, n, m) -> (n, m)>], iterator_types = ["reduction", "parallel", "parallel"]}
    ins(%a, %b : tensor<16x32xf32>, tensor<64x16xf32>) outs(%o : tensor<64x32xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %y, %x : f32
      %s = arith.addf %p, %c : f32
      linalg.yield %s : f32
  } -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}

// -----

// An epilogue that transposes.
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[NM:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @transposing_epilogue
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<16x32xf32>, %[[B:[a-z0-9]*]]: tensor<32x64xf32>, %[[C:[a-z0-9]*]]: tensor<16x64xf32>
// CHECK: ukernel.workload ins(%[[B]], %[[A]] : {{.*}}) init(%[[C]] : tensor<16x64xf32>) extras(%[[C]] : tensor<16x64xf32>) outs(%{{.*}} : tensor<64x16xf32>) maps = [#[[KM]], #[[NK]], #[[NM]], #[[NM]], #[[MN]]]
// CHECK: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: f32):
// CHECK: arith.mulf %[[Y]], %[[X]]
func.func @transposing_epilogue(%a: tensor<16x32xf32>, %b: tensor<32x64xf32>, %c: tensor<16x64xf32>) -> tensor<64x16xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x64xf32>) outs(%c : tensor<16x64xf32>) -> tensor<16x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%mm, %c : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<64x16xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %p = arith.addf %x, %y : f32
      linalg.yield %p : f32
  } -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}

// -----

// Where the accumulator starts: a constant, a row that is broadcast, a tensor in
// place; what the epilogue reads of its own output is an extra.
// CHECK-LABEL: func.func @constant_init
// CHECK: %[[C:.*]] = arith.constant 1.5{{0*}}e+00 : f32
// CHECK: init(%[[C]] : f32)
func.func @constant_init(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %c = arith.constant dense<1.5> : tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @row_init
// CHECK-SAME: %[[BIAS:[a-z0-9]*]]: tensor<4xf32>)
// CHECK-NOT: linalg
// CHECK: ukernel.workload {{.*}} init(%[[BIAS]] : tensor<4xf32>) outs(%{{.*}} : tensor<4x4xf32>) maps = [#{{.*}}, #{{.*}}, #[[N:.*]], #{{.*}}]
func.func @row_init(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %bias: tensor<4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.broadcast ins(%bias : tensor<4xf32>) outs(%e : tensor<4x4xf32>) dimensions = [0]
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// An argument is not written: the product goes elsewhere.
// CHECK-LABEL: func.func @argument_init
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<4x4xf32>)
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: ukernel.workload {{.*}} init(%[[C]] : tensor<4x4xf32>) outs(%[[E]] : tensor<4x4xf32>)
// CHECK-NOT: epilogue
// CHECK: return
func.func @argument_init(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @reshaped_argument_init
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<2x2x4xf32>)
// CHECK: %[[C2:.*]] = tensor.collapse_shape %[[C]]
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: ukernel.workload {{.*}} init(%[[C2]] : tensor<4x4xf32>) outs(%[[E]] : tensor<4x4xf32>)
func.func @reshaped_argument_init(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<2x2x4xf32>) -> tensor<4x4xf32> {
  %c2 = tensor.collapse_shape %c [[0, 1], [2]] : tensor<2x2x4xf32> into tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @in_place
// CHECK: %[[P:.*]] = ukernel.workload {{.*}} init
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : {{.*}}) outs(%[[P]] : tensor<4x4xf32>)
// CHECK-NOT: epilogue
// CHECK: return
func.func @in_place(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %p = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%p : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// CHECK-LABEL: func.func @reads_output
// CHECK-SAME: %[[C:[a-z0-9]*]]: tensor<4x4xf32>, %[[D:[a-z0-9]*]]: tensor<4x4xf32>)
// CHECK: ukernel.workload {{.*}} init(%[[C]] : tensor<4x4xf32>) extras(%[[D]] : tensor<4x4xf32>) outs(%[[D]] : tensor<4x4xf32>)
func.func @reads_output(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>, %d: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %mm = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%mm : tensor<4x4xf32>) outs(%d : tensor<4x4xf32>) {
    ^bb0(%x: f32, %out: f32):
      %p = arith.addf %x, %out : f32
      linalg.yield %p : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
// The accumulator used twice, once as the output.
// CHECK-LABEL: func.func @accumulator_twice
// CHECK: ukernel.workload
// CHECK-NOT: extras
// CHECK: epilogue {
// CHECK: ^bb0(%[[ACC:.*]]: f32):
// CHECK: arith.mulf %[[ACC]], %[[ACC]]
func.func @accumulator_twice(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %mm = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%mm : tensor<4x4xf32>) outs(%mm : tensor<4x4xf32>) {
    ^bb0(%x: f32, %out: f32):
      %p = arith.mulf %x, %out : f32
      linalg.yield %p : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// What is not proven about sizes is asserted: by types and by the user's own
// assertion it is, for k of the first product; not for n of the extra.
// CHECK-LABEL: func.func @assertions
// CHECK: cf.assert %{{.*}}, "mine"
// CHECK-NOT: cf.assert
// CHECK: %[[EQ:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: cf.assert %[[EQ]], "expected dimension 0 of argument 2 to equal dimension 1 of argument 1 in a matrix product"
// CHECK-NOT: cf.assert
// CHECK: ukernel.workload
// CHECK-SAME: ranges = [#ukernel.range<8 to 8>, #ukernel.range<0 to ?>, #ukernel.range<0 to ?>]
func.func @assertions(%a: tensor<8x?xf32>, %b: tensor<?x?xf32>, %bias: tensor<?xf32>) -> tensor<8x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %k0 = tensor.dim %a, %c1 : tensor<8x?xf32>
  %k1 = tensor.dim %b, %c0 : tensor<?x?xf32>
  %i0 = arith.index_cast %k0 : index to i64
  %i1 = arith.index_cast %k1 : index to i64
  %same = arith.cmpi eq, %i0, %i1 : i64
  cf.assert %same, "mine"
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n) : tensor<8x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x?xf32>) -> tensor<8x?xf32>
  %mm = linalg.matmul ins(%a, %b : tensor<8x?xf32>, tensor<?x?xf32>) outs(%f : tensor<8x?xf32>) -> tensor<8x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%mm, %bias : tensor<8x?xf32>, tensor<?xf32>) outs(%e : tensor<8x?xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %0 = arith.addf %x, %y : f32
      linalg.yield %0 : f32
  } -> tensor<8x?xf32>
  return %r : tensor<8x?xf32>
}

// An assertion behind the product proves nothing about it.
// CHECK-LABEL: func.func @late_assertion
// CHECK: cf.assert %{{.*}}, "expected dimension 0 of argument 1 to equal dimension 1 of argument 0 in a matrix product"
// CHECK: ukernel.workload
// CHECK: cf.assert %{{.*}}, "mine"
func.func @late_assertion(%a: tensor<8x?xf32>, %b: tensor<?x4xf32>, %c: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k0 = tensor.dim %a, %c1 : tensor<8x?xf32>
  %k1 = tensor.dim %b, %c0 : tensor<?x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x?xf32>, tensor<?x4xf32>) outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  %same = arith.cmpi eq, %k0, %k1 : index
  cf.assert %same, "mine"
  return %r : tensor<8x4xf32>
}

// -----

// One name is one size: asserted at the entry, then known.
// CHECK-LABEL: func.func @symbols
// CHECK: %[[EQM:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: cf.assert %[[EQM]], "symbol 'M': expected dimension 0 of argument 2 to equal dimension 0 of argument 0"
// CHECK: %[[K1:.*]] = tensor.dim %arg1, %c0
// CHECK: %[[K0:.*]] = tensor.dim %arg0, %c1
// CHECK: %[[EQ:.*]] = arith.cmpi eq, %[[K1]], %[[K0]]
// CHECK: cf.assert %[[EQ]], "symbol 'K': expected dimension 0 of argument 1 to equal dimension 1 of argument 0"
// CHECK: %[[N:.*]] = tensor.dim %arg1, %c1
// CHECK: %[[EQ4:.*]] = arith.cmpi eq, %[[N]], %c4
// CHECK: cf.assert %[[EQ4]], "symbol 'N': expected dimension 1 of argument 1 to equal dimension 1 of argument 2"
// CHECK-NOT: cf.assert
// CHECK: ukernel.workload
// CHECK-SAME: ranges = [#ukernel.range<1 to 128>, #ukernel.range<4 to 4>, #ukernel.range<16 to ? step 16>]
module attributes {ukernel.symbols = {M = #ukernel.range<1 to 128>, K = #ukernel.range<16 to ? step 16>}} {
  func.func @symbols(%a: tensor<?x?xf32> {ukernel.shape = ["M", "K"]}, %b: tensor<?x?xf32> {ukernel.shape = ["K", "N"]}, %c: tensor<?x4xf32> {ukernel.shape = ["M", "N"]}) -> tensor<?x4xf32> {
    %b4 = tensor.cast %b : tensor<?x?xf32> to tensor<?x4xf32>
    %r = linalg.matmul ins(%a, %b4 : tensor<?x?xf32>, tensor<?x4xf32>) outs(%c : tensor<?x4xf32>) -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}

// -----

// Ranges of products of sizes.
// CHECK-LABEL: func.func @products
// CHECK: cf.assert %{{.*}}, "symbol 'K'
// CHECK-NOT: cf.assert
// CHECK: ukernel.workload
// CHECK-SAME: ranges = [#ukernel.range<16 to 2048 step 16 weights [32 : 1.000000e+00]>, #ukernel.range<2 to 80 step 2>, #ukernel.range<0 to ?>]
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128 weights [2 : 1.0]>, P = #ukernel.range<2 to 8 step 2>, Q = #ukernel.range<1 to 10>}} {
  func.func @products(%a: tensor<?x16x?xf32> {ukernel.shape = ["T", 16, "K"]}, %b: tensor<?x?x?xf32> {ukernel.shape = ["P", "Q", "K"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %a2 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<?x16x?xf32> into tensor<?x?xf32>
    %b2 = tensor.collapse_shape %b [[0, 1], [2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
    %m = tensor.dim %a2, %c0 : tensor<?x?xf32>
    %n = tensor.dim %b2, %c0 : tensor<?x?xf32>
    %e = tensor.empty(%m, %n) : tensor<?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a2, %b2 : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>
  }
}

// -----

// Inside loops, too.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: ukernel.workload
// CHECK: epilogue
func.func @loop(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> tensor<8x8xf32> {
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    %mm = linalg.matmul ins(%x, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
    %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%mm : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
      ^bb0(%y: f32, %out: f32):
        %p = math.exp %y : f32
        linalg.yield %p : f32
    } -> tensor<8x8xf32>
    scf.yield %q : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// Batches, and an epilogue with batch dimensions.
// CHECK-DAG: #[[BMK:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>
// CHECK-DAG: #[[BKN:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d1)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[BMN:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1)>
// CHECK-LABEL: func.func @batch
// CHECK: ukernel.workload ins({{.*}}) init(%{{.*}} : tensor<?x8x4xf32>) extras(%{{.*}} : tensor<?xf32>) outs({{.*}}) maps = [#[[BMK]], #[[BKN]], #[[BMN]], #[[B]], #[[BMN]]]
// CHECK-SAME: ranges = [#ukernel.range<8 to 8>, #ukernel.range<4 to 4>, #ukernel.range<16 to 16>, #ukernel.range<1 to 9>]
// CHECK-NOT: linalg
// CHECK: return
module attributes {ukernel.symbols = {B = #ukernel.range<1 to 9>}} {
  func.func @batch(%a: tensor<?x8x16xf32> {ukernel.shape = ["B", 8, 16]}, %b: tensor<?x16x4xf32> {ukernel.shape = ["B", 16, 4]}, %o: tensor<?x8x4xf32> {ukernel.shape = ["B", 8, 4]}, %x: tensor<?xf32> {ukernel.shape = ["B"]}) -> tensor<?x8x4xf32> {
    %p = linalg.batch_matmul ins(%a, %b : tensor<?x8x16xf32>, tensor<?x16x4xf32>) outs(%o : tensor<?x8x4xf32>) -> tensor<?x8x4xf32>
    %c0 = arith.constant 0 : index
    %size = tensor.dim %a, %c0 : tensor<?x8x16xf32>
    %e = tensor.empty(%size) : tensor<?x8x4xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p, %x : tensor<?x8x4xf32>, tensor<?xf32>) outs(%e : tensor<?x8x4xf32>) {
      ^bb0(%y: f32, %z: f32, %out: f32):
        %q = arith.addf %y, %z : f32
        linalg.yield %q : f32
    } -> tensor<?x8x4xf32>
    return %r : tensor<?x8x4xf32>
  }
}

// -----

// Queries times keys, heads inside, in loops of any order.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d4, d2)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d1, d4, d2)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d0, d1)>
// CHECK-LABEL: func.func @heads
// CHECK-SAME: %[[KEYS:[a-z0-9]*]]: tensor<2x?x12x64xf32>, %[[QUERIES:[a-z0-9]*]]: tensor<2x?x12x64xf32>
// CHECK: ukernel.workload ins(%[[QUERIES]], %[[KEYS]] : {{.*}}) init(%{{.*}} : tensor<2x12x?x?xf32>) outs({{.*}}) maps = [#[[Q]], #[[K]], #[[O]], #[[O]]]
func.func @heads(%k: tensor<2x?x12x64xf32>, %q: tensor<2x?x12x64xf32>, %o: tensor<2x12x?x?xf32>) -> tensor<2x12x?x?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d, s, h, t, b) -> (b, t, h, d)>, affine_map<(d, s, h, t, b) -> (b, s, h, d)>, affine_map<(d, s, h, t, b) -> (b, h, s, t)>], iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel"]}
    ins(%k, %q : tensor<2x?x12x64xf32>, tensor<2x?x12x64xf32>) outs(%o : tensor<2x12x?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<2x12x?x?xf32>
  return %r : tensor<2x12x?x?xf32>
}

// -----

// Of several dimensions that only one factor has, the dynamic one has the rows;
// the weight lacks the other.
// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d1)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>
// CHECK-LABEL: func.func @several_m
// CHECK: ukernel.workload {{.*}} maps = [#[[LHS]], #[[RHS]], #[[OUT]], #[[OUT]]]
func.func @several_m(%a: tensor<4x?x16xf32>, %b: tensor<16x8xf32>, %o: tensor<?x4x8xf32>) -> tensor<?x4x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(s, b, n, k) -> (b, s, k)>, affine_map<(s, b, n, k) -> (k, n)>, affine_map<(s, b, n, k) -> (s, b, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%a, %b : tensor<4x?x16xf32>, tensor<16x8xf32>) outs(%o : tensor<?x4x8xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<?x4x8xf32>
  return %r : tensor<?x4x8xf32>
}

// -----

// An epilogue whose result has the batch innermost is not fused.
// CHECK-LABEL: func.func @batch_inside_result
// CHECK: ukernel.workload
// CHECK-NOT: epilogue
// CHECK: linalg.generic
func.func @batch_inside_result(%a: tensor<2x8x16xf32>, %b: tensor<2x16x4xf32>, %o: tensor<2x8x4xf32>) -> tensor<8x4x2xf32> {
  %p = linalg.batch_matmul ins(%a, %b : tensor<2x8x16xf32>, tensor<2x16x4xf32>) outs(%o : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %e = tensor.empty() : tensor<8x4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (i, j, b)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : tensor<2x8x4xf32>) outs(%e : tensor<8x4x2xf32>) {
    ^bb0(%y: f32, %out: f32):
      %q = math.exp %y : f32
      linalg.yield %q : f32
  } -> tensor<8x4x2xf32>
  return %r : tensor<8x4x2xf32>
}
