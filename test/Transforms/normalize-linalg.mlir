// RUN: ftuner-opt %s -ukernel-normalize-linalg -cse -split-input-file | FileCheck %s

#bsn = affine_map<(b, s, n) -> (b, s, n)>
#n = affine_map<(b, s, n) -> (n)>

// A batched linear layer as importers write it becomes one product of rank 2
// over reshaped views, bias and activation one operator behind it; the weight is
// read through a map.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[MN3:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[N:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @batched_linear
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x?x768xf32>, %[[W:[a-z0-9]*]]: tensor<2304x768xf32>, %[[BIAS:[a-z0-9]*]]: tensor<2304xf32>
// CHECK-NOT: linalg.transpose
// CHECK-NOT: linalg.broadcast
// CHECK: %[[X2:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0, 1], [2]] : tensor<?x?x768xf32> into tensor<?x768xf32>
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<?x2304xf32>
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[MK]], #[[NK]], #[[MN3]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X2]], %[[W]] : {{.*}}) outs(%[[F]] : tensor<?x2304xf32>)
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[MN]], #[[N]], #[[MN]]], iterator_types = ["parallel", "parallel"]} ins(%[[P]], %[[BIAS]] : {{.*}})
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: linalg.generic
// CHECK: %[[R3:.*]] = tensor.expand_shape %[[R]] {{\[}}[0, 1], [2]] output_shape [{{.*}}, 2304]
// CHECK: return %[[R3]]
func.func @batched_linear(%x: tensor<?x?x768xf32>, %w: tensor<2304x768xf32>, %bias: tensor<2304xf32>) -> tensor<?x?x2304xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x768xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x768xf32>
  %e0 = tensor.empty() : tensor<768x2304xf32>
  %wt = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<2304x768xf32>) outs(%e0 : tensor<768x2304xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<768x2304xf32>
  %e1 = tensor.empty(%b) : tensor<?x768x2304xf32>
  %wb = linalg.generic {indexing_maps = [affine_map<(b, k, n) -> (k, n)>, affine_map<(b, k, n) -> (b, k, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%wt : tensor<768x2304xf32>) outs(%e1 : tensor<?x768x2304xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<?x768x2304xf32>
  %e2 = tensor.empty(%b, %s) : tensor<?x?x2304xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x?x2304xf32>) -> tensor<?x?x2304xf32>
  %mm = linalg.batch_matmul ins(%x, %wb : tensor<?x?x768xf32>, tensor<?x768x2304xf32>) outs(%f : tensor<?x?x2304xf32>) -> tensor<?x?x2304xf32>
  %r = linalg.generic {indexing_maps = [#bsn, #n, #bsn], iterator_types = ["parallel", "parallel", "parallel"]} ins(%mm, %bias : tensor<?x?x2304xf32>, tensor<2304xf32>) outs(%e2 : tensor<?x?x2304xf32>) {
    ^bb0(%in: f32, %in_bias: f32, %out: f32):
      %1 = arith.addf %in, %in_bias : f32
      linalg.yield %1 : f32
  } -> tensor<?x?x2304xf32>
  %r2 = linalg.generic {indexing_maps = [#bsn, #bsn], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<?x?x2304xf32>) outs(%e2 : tensor<?x?x2304xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %zero : f32
      linalg.yield %1 : f32
  } -> tensor<?x?x2304xf32>
  return %r2 : tensor<?x?x2304xf32>
}

// -----

// Between two layers no reshape is left.
// CHECK-LABEL: func.func @two_layers
// CHECK: tensor.collapse_shape
// CHECK: linalg.generic {{.*}}"reduction"]
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]
// CHECK-NOT: shape
// CHECK: linalg.matmul
// CHECK: linalg.generic {{.*}}["parallel", "parallel"]
// CHECK: tensor.expand_shape
// CHECK-NOT: linalg
// CHECK: return
func.func @two_layers(%x: tensor<1x?x64xf32>, %w1: tensor<64x128xf32>, %w2: tensor<128x64xf32>) -> tensor<1x?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %s = tensor.dim %x, %c1 : tensor<1x?x64xf32>
  %e1 = tensor.empty() : tensor<1x64x128xf32>
  %wb = linalg.broadcast ins(%w1 : tensor<64x128xf32>) outs(%e1 : tensor<1x64x128xf32>) dimensions = [0]
  %e2 = tensor.empty(%s) : tensor<1x?x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x?x128xf32>) -> tensor<1x?x128xf32>
  %mm = linalg.batch_matmul ins(%x, %wb : tensor<1x?x64xf32>, tensor<1x64x128xf32>) outs(%f : tensor<1x?x128xf32>) -> tensor<1x?x128xf32>
  %h = linalg.tanh ins(%mm : tensor<1x?x128xf32>) outs(%e2 : tensor<1x?x128xf32>) -> tensor<1x?x128xf32>
  %c = tensor.cast %h : tensor<1x?x128xf32> to tensor<?x?x128xf32>
  %h2 = tensor.collapse_shape %c [[0, 1], [2]] : tensor<?x?x128xf32> into tensor<?x128xf32>
  %d = tensor.dim %h2, %c0 : tensor<?x128xf32>
  %e3 = tensor.empty(%d) : tensor<?x64xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %mm2 = linalg.matmul ins(%h2, %w2 : tensor<?x128xf32>, tensor<128x64xf32>) outs(%f2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = tensor.expand_shape %mm2 [[0, 1], [2]] output_shape [1, %s, 64] : tensor<?x64xf32> into tensor<1x?x64xf32>
  %e4 = tensor.empty(%s) : tensor<1x?x64xf32>
  %r = linalg.add ins(%y, %x : tensor<1x?x64xf32>, tensor<1x?x64xf32>) outs(%e4 : tensor<1x?x64xf32>) -> tensor<1x?x64xf32>
  return %r : tensor<1x?x64xf32>
}

// -----

// A broadcast that a batched product starts from gets the product's two
// dimensions: no reshape of it stays.
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @starts_from_broadcast
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x7x5xf32>, %{{.*}}: tensor<5x32xf32>, %[[V:[a-z0-9]*]]: tensor<32xf32>
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[ROW]], #{{.*}}], iterator_types = ["parallel", "parallel"]} ins(%[[V]] : tensor<32xf32>)
// CHECK: %[[X2:.*]] = tensor.collapse_shape %[[X]]
// CHECK-NOT: tensor.collapse_shape
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X2]], %{{.*}}) outs(%[[C]] : tensor<?x32xf32>)
func.func @starts_from_broadcast(%x: tensor<?x7x5xf32>, %w: tensor<5x32xf32>, %v: tensor<32xf32>) -> tensor<?x7x32xf32> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x7x5xf32>
  %e = tensor.empty(%b) : tensor<?x7x32xf32>
  %c = linalg.broadcast ins(%v : tensor<32xf32>) outs(%e : tensor<?x7x32xf32>) dimensions = [0, 1]
  %ew = tensor.empty(%b) : tensor<?x5x32xf32>
  %wb = linalg.broadcast ins(%w : tensor<5x32xf32>) outs(%ew : tensor<?x5x32xf32>) dimensions = [0]
  %r = linalg.batch_matmul ins(%x, %wb : tensor<?x7x5xf32>, tensor<?x5x32xf32>) outs(%c : tensor<?x7x32xf32>) -> tensor<?x7x32xf32>
  return %r : tensor<?x7x32xf32>
}

// -----

// A batch stays, also of one matrix, as an epilogue may read along it; where it
// is innermost, it is dropped.
// CHECK-LABEL: func.func @unit_batch
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-LABEL: func.func @batch
// CHECK-NOT: collapse_shape
// CHECK: linalg.batch_matmul
// CHECK-LABEL: func.func @batch_of_one
// CHECK-NOT: collapse_shape
// CHECK: linalg.batch_matmul
func.func @unit_batch(%a: tensor<?x16x1xf32>, %b: tensor<1x16x8xf32>, %o: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (m, k, b)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<?x16x1xf32>, tensor<1x16x8xf32>) outs(%o : tensor<1x?x8xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<1x?x8xf32>
  return %r : tensor<1x?x8xf32>
}
func.func @batch(%a: tensor<?x8x16xf32>, %b: tensor<?x16x4xf32>, %o: tensor<?x8x4xf32>) -> tensor<?x8x4xf32> {
  %r = linalg.batch_matmul ins(%a, %b : tensor<?x8x16xf32>, tensor<?x16x4xf32>) outs(%o : tensor<?x8x4xf32>) -> tensor<?x8x4xf32>
  return %r : tensor<?x8x4xf32>
}
func.func @batch_of_one(%a: tensor<1x?x16xf32>, %b: tensor<1x16x8xf32>, %o: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  %r = linalg.batch_matmul ins(%a, %b : tensor<1x?x16xf32>, tensor<1x16x8xf32>) outs(%o : tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  return %r : tensor<1x?x8xf32>
}

// -----

// Several n and several m loops join.
// CHECK-LABEL: func.func @heads
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<64x64xf32>)
// CHECK: tensor.expand_shape {{.*}} {{\[}}[0, 1], [2, 3]]
func.func @heads(%a: tensor<?x?x64xf32>, %w: tensor<64x4x16xf32>, %o: tensor<?x?x4x16xf32>) -> tensor<?x?x4x16xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(b, s, h, d, k) -> (b, s, k)>, affine_map<(b, s, h, d, k) -> (k, h, d)>, affine_map<(b, s, h, d, k) -> (b, s, h, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%a, %w : tensor<?x?x64xf32>, tensor<64x4x16xf32>) outs(%o : tensor<?x?x4x16xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %q = arith.addf %c, %p : f32
      linalg.yield %q : f32
  } -> tensor<?x?x4x16xf32>
  return %r : tensor<?x?x4x16xf32>
}

// -----

// Named, mapped and arith operators on tensors fuse alike; an operator in place
// too; a value that is used twice by one consumer.
// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x8xf32>, %[[Y:[a-z0-9]*]]: tensor<8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]] : tensor<?x8xf32>, tensor<8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[A:.*]] = arith.addf
// CHECK-NEXT: %[[E:.*]] = math.erf %[[A]]
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[E]], %[[A]]
// CHECK-NEXT: %[[S:.*]] = arith.subf %[[M]], %{{.*}}
// CHECK-NEXT: %[[G:.*]] = arith.negf %[[S]]
// CHECK-NEXT: linalg.yield %[[G]]
// CHECK-NOT: linalg
// CHECK: return
func.func @elementwise(%x: tensor<?x8xf32>, %y: tensor<8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %yb = linalg.broadcast ins(%y : tensor<8xf32>) outs(%e : tensor<?x8xf32>) dimensions = [0]
  %0 = linalg.add ins(%x, %yb : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m0 = tensor.dim %0, %c0 : tensor<?x8xf32>
  %e1 = tensor.empty(%m0) : tensor<?x8xf32>
  %1 = linalg.erf ins(%0 : tensor<?x8xf32>) outs(%e1 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = linalg.map { arith.mulf } ins(%1, %0 : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e1 : tensor<?x8xf32>)
  %3 = arith.subf %2, %x : tensor<?x8xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%3 : tensor<?x8xf32>) {
    ^bb0(%out: f32):
      %n = arith.negf %out : f32
      linalg.yield %n : f32
  } -> tensor<?x8xf32>
  return %4 : tensor<?x8xf32>
}

// -----

// Nothing is fused into a contraction.
// CHECK-LABEL: func.func @producer
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: linalg.matmul
func.func @producer(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %o: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %0 = math.exp %x : tensor<?x8xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<?x8xf32>, tensor<8x16xf32>) outs(%o : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}

// -----

// What fills a tensor is linalg.fill.
// CHECK-LABEL: func.func @fills
// CHECK-SAME: %[[X:[a-z0-9]*]]: f32
// CHECK: %[[A:.*]] = linalg.fill ins(%[[X]] : f32) outs(%{{.*}} : tensor<?x4xf32>)
// CHECK: %[[B:.*]] = linalg.fill ins(%[[X]] : f32) outs(%{{.*}} : tensor<f32>)
// CHECK: %[[C:.*]] = linalg.fill ins(%[[X]] : f32) outs(%{{.*}} : tensor<4x4xf32>)
// CHECK: %[[D:.*]] = tensor.from_elements
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @fills(%x: f32, %n: index, %o: tensor<4x4xf32>) -> (tensor<?x4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<2xf32>) {
  %a = tensor.splat %x[%n] : tensor<?x4xf32>
  %b = tensor.from_elements %x : tensor<f32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : f32) outs(%o : tensor<4x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<4x4xf32>
  %d = tensor.from_elements %x, %x : tensor<2xf32>
  return %a, %b, %c, %d : tensor<?x4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<2xf32>
}

// -----

// Dimensions of extent 1 that a map reads at 0 are dropped; another extent of 1
// stays.
// CHECK-DAG: #[[IJ:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[I:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[J:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[NONE:.*]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @unit_dims
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x1xf32>, %[[B:[a-z0-9]*]]: tensor<1x8xf32>, %[[C:[a-z0-9]*]]: tensor<1x1xf32>
// CHECK-DAG: %[[AC:.*]] = tensor.collapse_shape %[[A]] {{\[}}[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
// CHECK-DAG: %[[BC:.*]] = tensor.collapse_shape %[[B]] {{\[}}[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
// CHECK-DAG: %[[CC:.*]] = tensor.collapse_shape %[[C]] [] : tensor<1x1xf32> into tensor<f32>
// CHECK: linalg.generic {indexing_maps = [#[[I]], #[[J]], #[[NONE]], #[[IJ]]]
// CHECK-SAME: ins(%[[AC]], %[[BC]], %[[CC]] : tensor<?xf32>, tensor<8xf32>, tensor<f32>)
func.func @unit_dims(%a: tensor<?x1xf32>, %b: tensor<1x8xf32>, %c: tensor<1x1xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (0, j)>,
                       affine_map<(i, j) -> (0, 0)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c : tensor<?x1xf32>, tensor<1x8xf32>, tensor<1x1xf32>) outs(%o : tensor<?x8xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32, %out: f32):
      %s = arith.addf %x, %y : f32
      %t = arith.addf %s, %z : f32
      linalg.yield %t : f32
  } -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Scalars are computed outside, where that cannot trap.
// CHECK-LABEL: func.func @scalars
// CHECK-SAME: %[[N:[a-z0-9]*]]: index, %[[S:[a-z0-9]*]]: f64
// CHECK-DAG: %[[I:.*]] = arith.index_cast %[[N]]
// CHECK-DAG: %[[F:.*]] = arith.truncf %[[S]]
// CHECK: linalg.generic
// CHECK: arith.divsi %[[I]], %[[I]]
// CHECK: arith.mulf %{{.*}}, %[[F]]
func.func @scalars(%n: index, %s: f64, %x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x, %s : tensor<8xf32>, f64) outs(%o : tensor<8xf32>) {
    ^bb0(%in: f32, %scale: f64, %out: f32):
      %i = arith.index_cast %n : index to i64
      %q = arith.divsi %i, %i : i64
      %g = arith.sitofp %q : i64 to f32
      %f = arith.truncf %scale : f64 to f32
      %t = arith.mulf %in, %f : f32
      %u = arith.addf %t, %g : f32
      linalg.yield %u : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Three batch loops stay; of four, neighbours become one.
// CHECK-LABEL: func.func @three_batches
// CHECK-NOT: collapse_shape
// CHECK: return
func.func @three_batches(%a: tensor<2x3x2x8x16xf32>, %b: tensor<2x3x2x16x4xf32>, %o: tensor<2x3x2x8x4xf32>) -> tensor<2x3x2x8x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, m, n, k) -> (a, b, c, m, k)>, affine_map<(a, b, c, m, n, k) -> (a, b, c, k, n)>, affine_map<(a, b, c, m, n, k) -> (a, b, c, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<2x3x2x8x16xf32>, tensor<2x3x2x16x4xf32>) outs(%o : tensor<2x3x2x8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<2x3x2x8x4xf32>
  return %r : tensor<2x3x2x8x4xf32>
}
// CHECK-LABEL: func.func @four_batches
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<2x3x?x5x8x16xf32>, %[[B:[a-z0-9]*]]: tensor<5x2x3x?x16x4xf32>
// CHECK-DAG: tensor.collapse_shape %[[A]] {{\[\[}}0, 1, 2], [3], [4], [5]] : tensor<2x3x?x5x8x16xf32> into tensor<?x5x8x16xf32>
// CHECK-DAG: tensor.collapse_shape %[[B]] {{\[\[}}0], [1, 2, 3], [4], [5]] : tensor<5x2x3x?x16x4xf32> into tensor<5x?x16x4xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1, 2], [3], [4], [5]]
func.func @four_batches(%a: tensor<2x3x?x5x8x16xf32>, %b: tensor<5x2x3x?x16x4xf32>, %o: tensor<2x3x?x5x8x4xf32>) -> tensor<2x3x?x5x8x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, m, n, k) -> (a, b, c, d, m, k)>, affine_map<(a, b, c, d, m, n, k) -> (d, a, b, c, k, n)>, affine_map<(a, b, c, d, m, n, k) -> (a, b, c, d, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<2x3x?x5x8x16xf32>, tensor<5x2x3x?x16x4xf32>) outs(%o : tensor<2x3x?x5x8x4xf32>) {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<2x3x?x5x8x4xf32>
  return %r : tensor<2x3x?x5x8x4xf32>
}

// -----

// Rows join within a batch, and what cannot join stays apart.
// CHECK-LABEL: func.func @rows_of_groups
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<2x3x?x16xf32>, %[[B:[a-z0-9]*]]: tensor<2x4x16x5xf32>
// CHECK-DAG: %[[ROWS:.*]] = tensor.collapse_shape %[[A]] {{\[\[}}0], [1, 2], [3]] : tensor<2x3x?x16xf32> into tensor<2x?x16xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%[[ROWS]], %[[B]] : tensor<2x?x16xf32>, tensor<2x4x16x5xf32>)
func.func @rows_of_groups(%a: tensor<2x3x?x16xf32>, %b: tensor<2x4x16x5xf32>, %o: tensor<2x4x3x?x5xf32>) -> tensor<2x4x3x?x5xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(g, h, s, c, n, k) -> (g, h, s, k)>, affine_map<(g, h, s, c, n, k) -> (g, c, k, n)>, affine_map<(g, h, s, c, n, k) -> (g, c, h, s, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<2x3x?x16xf32>, tensor<2x4x16x5xf32>) outs(%o : tensor<2x4x3x?x5xf32>) {
    ^bb0(%x: f32, %y: f32, %c2: f32):
      %p = arith.mulf %x, %y : f32
      %s2 = arith.addf %c2, %p : f32
      linalg.yield %s2 : f32
  } -> tensor<2x4x3x?x5xf32>
  return %r : tensor<2x4x3x?x5xf32>
}

// -----

#lhs = affine_map<(b, m, n, k) -> (b, m, k)>
#rhs = affine_map<(b, m, n, k) -> (k, n)>
#out = affine_map<(b, m, n, k) -> (b, m, n)>

// Named ops with maps of their own, which batches share a weight by, become one
// product too.
// CHECK-LABEL: func.func @named_with_maps
// CHECK-COUNT-2: linalg.generic {{{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<16x8xf32>)
// CHECK-NOT: linalg.contract
// CHECK-NOT: linalg.batch_matmul
func.func @named_with_maps(%a: tensor<?x4x16xf32>, %w: tensor<16x8xf32>, %o: tensor<?x4x8xf32>, %p: tensor<?x4x8xf32>) -> (tensor<?x4x8xf32>, tensor<?x4x8xf32>) {
  %r = linalg.contract indexing_maps = [#lhs, #rhs, #out] ins(%a, %w : tensor<?x4x16xf32>, tensor<16x8xf32>) outs(%o : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %s = linalg.batch_matmul indexing_maps = [#lhs, #rhs, #out] ins(%a, %w : tensor<?x4x16xf32>, tensor<16x8xf32>) outs(%p : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  return %r, %s : tensor<?x4x8xf32>, tensor<?x4x8xf32>
}

// -----

// An assertion inside an operator guards what follows it; a second one is inside.

#tokens = affine_map<(d0, d1) -> (d0)>
#identity = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func @embedding(
// CHECK-SAME:    %[[TABLE:.*]]: tensor<50x32xf32>
// CHECK:         linalg.generic
// CHECK-NOT:       cf.assert
// CHECK:           %[[BELOW:.*]] = arith.cmpi slt
// CHECK:           %[[OUTER:.*]] = scf.if %[[BELOW]] -> (f32) {
// CHECK:             %[[ABOVE:.*]] = arith.cmpi sge
// CHECK:             %[[INNER:.*]] = scf.if %[[ABOVE]] -> (f32) {
// CHECK:               %[[ROW:.*]] = tensor.extract %[[TABLE]]
// CHECK:               scf.yield %[[ROW]]
// CHECK:             } else {
// CHECK:               scf.yield %{{.*}} : f32
// CHECK:             scf.yield %[[INNER]]
// CHECK:           } else {
// CHECK:             scf.yield %{{.*}} : f32
// CHECK:           linalg.yield %[[OUTER]]
func.func @embedding(%table: tensor<50x32xf32>, %tokens: tensor<?xi64>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %c50 = arith.constant 50 : index
  %zero = arith.constant 0 : i64
  %n = tensor.dim %tokens, %c0 : tensor<?xi64>
  %empty = tensor.empty(%n) : tensor<?x32xf32>
  %rows = linalg.generic {indexing_maps = [#tokens, #identity], iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<?xi64>) outs(%empty : tensor<?x32xf32>) {
    ^bb0(%token: i64, %out: f32):
      %row = arith.index_cast %token : i64 to index
      %column = linalg.index 1 : index
      %below = arith.cmpi slt, %row, %c50 : index
      cf.assert %below, "index must be smaller than dim size"
      %above = arith.cmpi sge, %token, %zero : i64
      cf.assert %above, "index must be larger or equal to 0"
      %value = tensor.extract %table[%row, %column] : tensor<50x32xf32>
      linalg.yield %value : f32
  } -> tensor<?x32xf32>
  return %rows : tensor<?x32xf32>
}

// -----

// A quotient of floats needs no guard: a divisor of 0 gives an infinity.

#element = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func @reciprocal(
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[QUOTIENT:.*]] = arith.divf %{{.*}}, %[[X]] : f32
// CHECK-NEXT:      linalg.yield %[[QUOTIENT]] : f32
func.func @reciprocal(%x: tensor<?xf32>, %empty: tensor<?xf32>) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %r = linalg.generic {indexing_maps = [#element, #element], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%empty : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %is_other = arith.cmpf one, %in, %zero : f32
      cf.assert %is_other, "unimplemented: tensor with zero element"
      %q = arith.divf %one, %in : f32
      linalg.yield %q : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A root of a constant of 16 bits is a constant, so that none is left for the
// host; one of a negative number stays.
// CHECK-LABEL: func.func @narrow_roots
// CHECK-DAG: arith.constant 1.414060e+00 : f16
// CHECK-DAG: arith.constant 1.414060e+00 : bf16
// CHECK: math.sqrt %{{.*}} : f16
// CHECK-NOT: math.sqrt
#v = affine_map<(d0) -> (d0)>
func.func @narrow_roots(%a: tensor<?xf16>, %b: tensor<?xbf16>) -> (tensor<?xf16>, tensor<?xbf16>) {
  %two = arith.constant 2.0 : f16
  %less = arith.constant -2.0 : f16
  %other = arith.constant 2.0 : bf16
  %x = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%a : tensor<?xf16>) {
    ^bb0(%e: f16):
      %r = math.sqrt %two : f16
      %n = math.sqrt %less : f16
      %q = arith.divf %e, %r : f16
      %p = arith.mulf %q, %n : f16
      linalg.yield %p : f16
  } -> tensor<?xf16>
  %y = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%b : tensor<?xbf16>) {
    ^bb0(%e: bf16):
      %r = math.sqrt %other : bf16
      %q = arith.divf %e, %r : bf16
      linalg.yield %q : bf16
  } -> tensor<?xbf16>
  return %x, %y : tensor<?xf16>, tensor<?xbf16>
}

// -----

// Powers with small constant exponents are products, of 16 bits in f32.
// CHECK-LABEL: func.func @powers
// CHECK-NOT: math.fpowi
// CHECK-NOT: math.powf
// CHECK: ^bb0(%[[WIDE:.*]]: f32, %[[NARROW:.*]]: f16
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]] : f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: %[[X:.*]] = arith.extf %[[NARROW]] : f16 to f32
// CHECK: arith.mulf %[[X]], %[[X]] : f32
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: arith.truncf
#w = affine_map<(d0) -> (d0)>
func.func @powers(%a: tensor<?xf32>, %b: tensor<?xf16>, %out: tensor<?xf32>) -> tensor<?xf32> {
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %f3 = arith.constant 3.0 : f32
  %x = linalg.generic {indexing_maps = [#w, #w, #w], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf16>) outs(%out : tensor<?xf32>) {
    ^bb0(%e: f32, %n: f16, %o: f32):
      %p = math.fpowi %e, %c2 : f32, i64
      %q = math.powf %p, %f3 : f32
      %r = math.fpowi %n, %c3 : f16, i64
      %s = arith.extf %r : f16 to f32
      %t = arith.addf %q, %s : f32
      linalg.yield %t : f32
  } -> tensor<?xf32>
  return %x : tensor<?xf32>
}

// -----

// Constants of no elements are tensor.empty, for upstream's analysis of ranges
// reads the first element of any.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: arith.constant
// CHECK: %[[X:.*]] = tensor.empty() : tensor<0xi64>
// CHECK: return %[[X]]
func.func @nothing() -> tensor<0xi64> {
  %x = arith.constant dense<> : tensor<0xi64>
  return %x : tensor<0xi64>
}

// -----

// A product with a vector is one with a row, whose epilogue has the row, too.
// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: func.func @matrix_vector
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?x768xf32>, %[[X:[a-z0-9]*]]: tensor<768xf32>, %[[B:[a-z0-9]*]]: tensor<?xf32>, %[[O:[a-z0-9]*]]: tensor<?xf32>
// CHECK-DAG: %[[ROW:.*]] = tensor.expand_shape %[[X]] {{\[}}[0, 1]] output_shape [1, 768]
// CHECK-DAG: %[[SUMS:.*]] = tensor.expand_shape %[[O]] {{\[}}[0, 1]] output_shape [1, {{.*}}]
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[NK]], #[[MK]], #[[MN]]], iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[A]], %[[ROW]] : {{.*}}) outs(%[[SUMS]] : tensor<1x?xf32>)
// CHECK: %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[P]], {{.*}} : tensor<1x?xf32>, tensor<1x?xf32>)
// CHECK: tensor.collapse_shape %[[R]] {{\[}}[0, 1]] : tensor<1x?xf32> into tensor<?xf32>
func.func @matrix_vector(%a: tensor<?x768xf32>, %x: tensor<768xf32>, %b: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %a, %c0 : tensor<?x768xf32>
  %e = tensor.empty(%t) : tensor<?xf32>
  %r = linalg.matvec ins(%a, %x : tensor<?x768xf32>, tensor<768xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.add ins(%r, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @vector_vector
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins({{.*}} : tensor<1x?xf32>, tensor<1x?xf32>) outs({{.*}} : tensor<1x1xf32>)
// CHECK: tensor.collapse_shape {{.*}} [] : tensor<1x1xf32> into tensor<f32>
func.func @vector_vector(%x: tensor<?xf32>, %y: tensor<?xf32>, %o: tensor<f32>) -> tensor<f32> {
  %r = linalg.dot ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// Products of pairs of rows are sums, and stay.
// CHECK-LABEL: func.func @rows
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
func.func @rows(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<?x64xf32>, tensor<?x64xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// Operands of the epilogue that other operators compute are expanded, and stay
// so.
// CHECK-LABEL: func.func @matrix_vector_and_others
// CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel"]}
// CHECK: %[[V:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK: %[[V2:.*]] = tensor.expand_shape %[[V]]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[P]], %[[V2]] : tensor<1x?xf32>, tensor<1x?xf32>)
func.func @matrix_vector_and_others(%a: tensor<?x768xf32>, %x: tensor<768xf32>, %b: tensor<?xf32>, %o: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %t = tensor.dim %a, %c0 : tensor<?x768xf32>
  %e = tensor.empty(%t) : tensor<?xf32>
  %r = linalg.matvec ins(%a, %x : tensor<?x768xf32>, tensor<768xf32>) outs(%o : tensor<?xf32>) -> tensor<?xf32>
  %v = linalg.exp ins(%b : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.add ins(%r, %v : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %s, %v : tensor<?xf32>, tensor<?xf32>
}

// -----

// Other operands without their dimensions of extent 1 are not expanded: the
// operator stays as the contraction has it.
// CHECK-LABEL: func.func @squeezed_addend
// CHECK: linalg.matmul
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins({{.*}} : tensor<1x24xf32>)
// CHECK: %[[T:.*]] = tensor.collapse_shape %[[S]] {{\[}}[0, 1]] : tensor<1x24xf32> into tensor<24xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins({{.*}}, %[[T]] : tensor<?x24xf32>, tensor<24xf32>)
func.func @squeezed_addend(%a: tensor<?x40xf32>, %b: tensor<40x24xf32>, %o: tensor<?x24xf32>, %z: tensor<1x24xf32>) -> tensor<?x24xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x40xf32>, tensor<40x24xf32>) outs(%o : tensor<?x24xf32>) -> tensor<?x24xf32>
  %e = tensor.empty() : tensor<1x24xf32>
  %s = linalg.exp ins(%z : tensor<1x24xf32>) outs(%e : tensor<1x24xf32>) -> tensor<1x24xf32>
  %t = tensor.collapse_shape %s [[0, 1]] : tensor<1x24xf32> into tensor<24xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%r, %t : tensor<?x24xf32>, tensor<24xf32>) outs(%o : tensor<?x24xf32>) {
  ^bb0(%p: f32, %q: f32, %u: f32):
    %m = arith.addf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<?x24xf32>
  return %y : tensor<?x24xf32>
}

// -----

// An operator takes the static size of its output.
// CHECK-LABEL: func.func @static_output
// CHECK: %[[E:.*]] = tensor.empty() : tensor<3xi32>
// CHECK: linalg.generic {{.*}} outs(%[[E]] : tensor<3xi32>)
func.func @static_output() -> tensor<?xi32> {
  %e = tensor.empty() : tensor<3xi32>
  %o = tensor.cast %e : tensor<3xi32> to tensor<?xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%o : tensor<?xi32>) {
  ^bb0(%u: i32):
    %i = linalg.index 0 : index
    %v = arith.index_cast %i : index to i32
    linalg.yield %v : i32
  } -> tensor<?xi32>
  return %y : tensor<?xi32>
}

// -----

#prob = affine_map<(b, g, r, t, d, l) -> (b, g, r, t, l)>
#value = affine_map<(b, g, r, t, d, l) -> (b, l, g, d)>
#out = affine_map<(b, g, r, t, d, l) -> (b, g, r, t, d)>

// Heads of a group and their queries stay two loops if the result is stored by
// query, then by head: the product stores it so.
// CHECK-DAG: #[[READ:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3, d1, d4)>
// CHECK-DAG: #[[PRODUCT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>
// CHECK-LABEL: func.func @heads_by_query
// CHECK: linalg.generic {indexing_maps = [{{.*}}, {{.*}}, #[[PRODUCT]]]
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[READ]], {{.*}}]
// CHECK: arith.truncf
// CHECK: tensor.collapse_shape %[[Y]]
func.func @heads_by_query(%p: tensor<?x8x4x?x?xf16>, %v: tensor<?x?x8x64xf16>, %o: tensor<?x8x4x?x64xf32>, %e: tensor<?x8x4x?x64xf16>, %f: tensor<?x?x8x4x64xf16>) -> tensor<?x?x32x64xf16> {
  %x = linalg.generic {indexing_maps = [#prob, #value, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<?x8x4x?x?xf16>, tensor<?x?x8x64xf16>) outs(%o : tensor<?x8x4x?x64xf32>) {
  ^bb0(%a: f16, %b: f16, %u: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %b : f16 to f32
    %m = arith.mulf %a32, %b32 : f32
    %s = arith.addf %u, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x8x4x?x64xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(b, g, r, t, d) -> (b, g, r, t, d)>, affine_map<(b, g, r, t, d) -> (b, g, r, t, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<?x8x4x?x64xf32>) outs(%e : tensor<?x8x4x?x64xf16>) {
  ^bb0(%a: f32, %u: f16):
    %a16 = arith.truncf %a : f32 to f16
    linalg.yield %a16 : f16
  } -> tensor<?x8x4x?x64xf16>
  %t = linalg.transpose ins(%h : tensor<?x8x4x?x64xf16>) outs(%f : tensor<?x?x8x4x64xf16>) permutation = [0, 3, 1, 2, 4]
  %y = tensor.collapse_shape %t [[0], [1], [2, 3], [4]] : tensor<?x?x8x4x64xf16> into tensor<?x?x32x64xf16>
  return %y : tensor<?x?x32x64xf16>
}

// -----

#batched = affine_map<(b, g, r, t, d, l) -> (b, g, r, t, l)>
#shared = affine_map<(b, g, r, t, d, l) -> (b, l, g, d)>
#rows = affine_map<(b, g, r, t, d, l) -> (b, g, r, t, d)>

// They are one loop if the result is stored by head.
// CHECK-LABEL: func.func @heads_first
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
func.func @heads_first(%p: tensor<?x8x4x?x?xf32>, %v: tensor<?x?x8x64xf32>, %o: tensor<?x8x4x?x64xf32>) -> tensor<?x8x4x?x64xf32> {
  %x = linalg.generic {indexing_maps = [#batched, #shared, #rows], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<?x8x4x?x?xf32>, tensor<?x?x8x64xf32>) outs(%o : tensor<?x8x4x?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %u: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %u, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x8x4x?x64xf32>
  return %x : tensor<?x8x4x?x64xf32>
}

// -----

#tokens = affine_map<(b, t, n, k) -> (b, t, k)>
#weight = affine_map<(b, t, n, k) -> (n, k)>
#linear = affine_map<(b, t, n, k) -> (b, t, n)>

// Rows of a single product are one loop however its result is stored: each batch
// would read the weights again.
// CHECK-LABEL: func.func @tokens
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]}
func.func @tokens(%x: tensor<?x?x64xf32>, %w: tensor<32x64xf32>, %o: tensor<?x?x32xf32>, %e: tensor<?x?x32xf32>) -> tensor<?x?x32xf32> {
  %p = linalg.generic {indexing_maps = [#tokens, #weight, #linear], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x?x64xf32>, tensor<32x64xf32>) outs(%o : tensor<?x?x32xf32>) {
  ^bb0(%a: f32, %b: f32, %u: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %u, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?x32xf32>
  %y = linalg.transpose ins(%p : tensor<?x?x32xf32>) outs(%e : tensor<?x?x32xf32>) permutation = [1, 0, 2]
  return %y : tensor<?x?x32xf32>
}

// -----

#queries = affine_map<(b, g, r, n, d) -> (b, g, r, d)>
#keys = affine_map<(b, g, r, n, d) -> (b, g, r, n, d)>
#scores = affine_map<(b, g, r, n, d) -> (b, g, r, n)>

// Keys that are repeated, then scaled, are scaled once: the repetition is how
// the product reads them.
// CHECK-LABEL: func.func @scaled_repeated_keys
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?x4x64xf16>) outs(%{{.*}} : tensor<?x?x4x64xf16>)
// CHECK: arith.mulf
// CHECK-NOT: tensor<?x4x7x?x64xf16>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[S]] : tensor<?x4x7x64xf16>, tensor<?x?x4x64xf16>)
func.func @scaled_repeated_keys(%q: tensor<?x4x7x64xf16>, %k: tensor<?x?x4x64xf16>, %e: tensor<?x4x7x?x64xf16>, %o: tensor<?x4x7x?xf32>) -> tensor<?x4x7x?xf32> {
  %c = arith.constant 0.35 : f16
  %r = linalg.generic {indexing_maps = [affine_map<(b, g, r, n, d) -> (b, n, g, d)>, #keys], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k : tensor<?x?x4x64xf16>) outs(%e : tensor<?x4x7x?x64xf16>) {
  ^bb0(%a: f16, %u: f16):
    linalg.yield %a : f16
  } -> tensor<?x4x7x?x64xf16>
  %s = linalg.generic {indexing_maps = [#keys, #keys], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%r : tensor<?x4x7x?x64xf16>) outs(%e : tensor<?x4x7x?x64xf16>) {
  ^bb0(%a: f16, %u: f16):
    %m = arith.mulf %a, %c : f16
    linalg.yield %m : f16
  } -> tensor<?x4x7x?x64xf16>
  %y = linalg.generic {indexing_maps = [#queries, #keys, #scores], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %s : tensor<?x4x7x64xf16>, tensor<?x4x7x?x64xf16>) outs(%o : tensor<?x4x7x?xf32>) {
  ^bb0(%a: f16, %b: f16, %u: f32):
    %a32 = arith.extf %a : f16 to f32
    %b32 = arith.extf %b : f16 to f32
    %m = arith.mulf %a32, %b32 : f32
    %t = arith.addf %u, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x4x7x?xf32>
  return %y : tensor<?x4x7x?xf32>
}

// -----

// Keys that an operator computes, repeated for each head of queries, then with
// joined dimensions: the operator stores them once, and the product reads them
// there.
// CHECK-LABEL: func.func @repeated_joined_keys
// CHECK: linalg.generic
// CHECK: arith.negf
// CHECK: -> tensor<?x2x16xf32>
// CHECK-NOT: linalg.generic
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<?x2x4x16xf32>, tensor<?x2x16xf32>)
func.func @repeated_joined_keys(%q: tensor<?x2x4x16xf32>, %k: tensor<?x2x2x8xf32>) -> tensor<2x4x?x?xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %q, %c0 : tensor<?x2x4x16xf32>
  %l = tensor.dim %k, %c0 : tensor<?x2x2x8xf32>
  %e = tensor.empty(%l) : tensor<?x2x2x8xf32>
  %n = linalg.negf ins(%k : tensor<?x2x2x8xf32>) outs(%e : tensor<?x2x2x8xf32>) -> tensor<?x2x2x8xf32>
  %e4 = tensor.empty(%l) : tensor<?x2x4x2x8xf32>
  %b = linalg.broadcast ins(%n : tensor<?x2x2x8xf32>) outs(%e4 : tensor<?x2x4x2x8xf32>) dimensions = [2]
  %j = tensor.collapse_shape %b [[0], [1], [2], [3, 4]] : tensor<?x2x4x2x8xf32> into tensor<?x2x4x16xf32>
  %es = tensor.empty(%t, %l) : tensor<2x4x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%es : tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, g, i, j, d) -> (i, h, g, d)>, affine_map<(h, g, i, j, d) -> (j, h, g, d)>, affine_map<(h, g, i, j, d) -> (h, g, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %j : tensor<?x2x4x16xf32>, tensor<?x2x4x16xf32>) outs(%f : tensor<2x4x?x?xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %w, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x4x?x?xf32>
  return %y : tensor<2x4x?x?xf32>
}
