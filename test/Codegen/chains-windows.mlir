// Kernels of chains with taps, as they are emitted: before anything is lowered.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=STATIC
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=DYNAMIC --strict-whitespace
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=LAST
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=LONG

ukernel.plan @pool_plan <
  families = [<#ukernel.chains<threads = 128, vectors = 1, access = 16>, axis = 0, tiles = [[512, 9]], reduce = [1]>,
              <#ukernel.chains<threads = 128, vectors = 1, access = 1>, axis = 0, tiles = [[512, 9]], reduce = [1]>],
  choices = [], general = 0, unaligned_general = 1>

// Four points share the elements of their windows: six in each row of taps. Two
// of the six columns and two of the three rows may lie outside, since all sizes
// are known; only these are bounded. Nothing branches.
// STATIC-LABEL: gpu.func @fixed_0_k0
// STATIC: scf.if
// STATIC-NOT: scf.
// STATIC: arith.cmpi ult
// STATIC-COUNT-18: memref.load
// STATIC-NOT: {{scf|memref.load}}
// STATIC: vector.store
func.func @fixed(%x: tensor<?x8x8xf32>, %o: tensor<?x8x8xf32>) -> tensor<?x8x8xf32> {
  %r = ukernel.pointwise plan(@pool_plan) ins(%x : tensor<?x8x8xf32>) outs(%o : tensor<?x8x8xf32>)
    maps = [affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1 + t0 - 1, d2 + t1 - 1)>,
            affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1, d2)>]
    taps = [3, 3] padded = [0xFF800000 : f32] start {
      %lowest = arith.constant 0xFF800000 : f32
      ukernel.yield %lowest : f32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %acc, %a : f32
      ukernel.yield %m : f32
    } map {
    ^bb0(%m: f32):
      ukernel.yield %m : f32
    } -> tensor<?x8x8xf32>
  return %r : tensor<?x8x8xf32>
}

// The points of an image that may be empty have a loop of their own if it is:
// they read nothing.
// DYNAMIC-LABEL: gpu.func @dynamic_0_k0
// DYNAMIC: %[[ROWS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// DYNAMIC: %[[COLUMNS:.*]] = arith.cmpi ne, %{{.*}}, %c0
// DYNAMIC: %[[SOME:.*]] = arith.andi %[[ROWS]], %[[COLUMNS]]
// DYNAMIC: {{^      }}scf.if %[[SOME]] {
// DYNAMIC: vector.store
// DYNAMIC: {{^      [}]}} else {
// DYNAMIC: scf.for
// DYNAMIC-NOT: memref.load
// DYNAMIC: memref.store
// DYNAMIC-NOT: memref.load
// DYNAMIC: gpu.return
func.func @dynamic(%x: tensor<?x?x?xf32>, %o: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %r = ukernel.pointwise plan(@pool_plan) ins(%x : tensor<?x?x?xf32>) outs(%o : tensor<?x?x?xf32>)
    maps = [affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1 + t0 - 1, d2 + t1 - 1)>,
            affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1, d2)>]
    taps = [3, 3] padded = [0xFF800000 : f32] start {
      %lowest = arith.constant 0xFF800000 : f32
      ukernel.yield %lowest : f32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.maximumf %acc, %a : f32
      ukernel.yield %m : f32
    } map {
    ^bb0(%m: f32):
      ukernel.yield %m : f32
    } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

ukernel.plan @last_plan <
  families = [<#ukernel.chains<threads = 128, vectors = 1, access = 16>, axis = 0, tiles = [[512, 3]], reduce = [1]>,
              <#ukernel.chains<threads = 128, vectors = 1, access = 1>, axis = 0, tiles = [[512, 3]], reduce = [1]>],
  choices = [], general = 0, unaligned_general = 1>

// Channels last: vectors of the image and of the filter, and one selection for a
// vector.
// LAST-LABEL: gpu.func @last_0_k0
// LAST: scf.if
// LAST-DAG: vector.load {{.*}} vector<4xf32>
// LAST-DAG: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf32>
// LAST: math.fma
// LAST: vector.store
func.func @last(%x: tensor<?x?x16xf32>, %w: tensor<3x16xf32>, %o: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %r = ukernel.pointwise plan(@last_plan) ins(%x, %w : tensor<?x?x16xf32>, tensor<3x16xf32>) outs(%o : tensor<?x?x16xf32>)
    maps = [affine_map<(p, t, d0, d1, d2, t0) -> (d0, d1 * 2 + t0 - 1, d2)>,
            affine_map<(p, t, d0, d1, d2, t0) -> (t0, d2)>,
            affine_map<(p, t, d0, d1, d2, t0) -> (d0, d1, d2)>]
    taps = [3] padded = [0.0 : f32, unit] start {
      %zero = arith.constant 0.0 : f32
      ukernel.yield %zero : f32
    } reduce {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %m = math.fma %a, %b, %acc : f32
      ukernel.yield %m : f32
    } map {
    ^bb0(%m: f32):
      ukernel.yield %m : f32
    } -> tensor<?x?x16xf32>
  return %r : tensor<?x?x16xf32>
}

ukernel.plan @long_plan <
  families = [<#ukernel.chains<threads = 128, vectors = 1, access = 16>, axis = 0, tiles = [[512, 300]], reduce = [1]>,
              <#ukernel.chains<threads = 128, vectors = 1, access = 1>, axis = 0, tiles = [[512, 300]], reduce = [1]>],
  choices = [], general = 0, unaligned_general = 1>

// Of a window of 100 × 3 the outer loop is a loop, and has the accumulators of
// four points.
// LONG-LABEL: gpu.func @large_0_k0
// LONG: scf.for %{{.*}} = %c0 to %c100 step %c1 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32, f32) {
// LONG-COUNT-6: memref.load
// LONG-NOT: memref.load
// LONG: scf.yield
// LONG: vector.store
func.func @large(%x: tensor<?x107x10xf32>, %o: tensor<?x8x8xf32>) -> tensor<?x8x8xf32> {
  %r = ukernel.pointwise plan(@long_plan) ins(%x : tensor<?x107x10xf32>) outs(%o : tensor<?x8x8xf32>)
    maps = [affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1 + t0, d2 + t1)>,
            affine_map<(p, t, d0, d1, d2, t0, t1) -> (d0, d1, d2)>]
    taps = [100, 3] start {
      %zero = arith.constant 0.0 : f32
      ukernel.yield %zero : f32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      %m = arith.addf %acc, %a : f32
      ukernel.yield %m : f32
    } map {
    ^bb0(%m: f32):
      ukernel.yield %m : f32
    } -> tensor<?x8x8xf32>
  return %r : tensor<?x8x8xf32>
}
