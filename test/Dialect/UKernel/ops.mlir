// RUN: ftuner-opt %s | FileCheck %s
// RUN: ftuner-opt %s | ftuner-opt | FileCheck %s
// RUN: ftuner-opt %s -mlir-print-op-generic | ftuner-opt | FileCheck %s

// CHECK-DAG: #[[MK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG: #[[NM:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[N:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-DAG: #[[S:.*]] = affine_map<(d0, d1, d2) -> ()>
// CHECK-DAG: #[[BMHK:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d4, d2)>
// CHECK-DAG: #[[NHK:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d2)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3)>
// CHECK-DAG: #[[BHMN:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d0, d1)>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#nm = affine_map<(m, n, k) -> (n, m)>
#n = affine_map<(m, n, k) -> (n)>
#s = affine_map<(m, n, k) -> ()>

// CHECK: ukernel.plan @plan_0
ukernel.plan @plan_0 <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0>

// CHECK-LABEL: func.func @with_epilogue
func.func @with_epilogue(%A: tensor<?x768xf32>, %B: tensor<768x2304xf32>,
                         %bias: tensor<2304xf32>, %O: tensor<?x2304xf32>,
                         %zero: f32) -> tensor<?x2304xf32> {
  // CHECK: %[[R:.*]] = ukernel.workload plan(@plan_0) ins(%{{.*}}, %{{.*}} : tensor<?x768xf32>, tensor<768x2304xf32>) init(%{{.*}} : f32) extras(%{{.*}} : tensor<2304xf32>) outs(%{{.*}} : tensor<?x2304xf32>)
  // CHECK-SAME: maps = [#[[MK]], #[[KN]], #[[N]], #[[MN]]]
  // CHECK-SAME: ranges = [#ukernel.range<1 to 128>, #ukernel.range<2304 to 2304>, #ukernel.range<768 to 768>]
  // CHECK-SAME: contract {
  // CHECK: ukernel.yield %{{.*}} : f32
  // CHECK: } epilogue {
  // CHECK: ukernel.yield %{{.*}} : f32
  // CHECK: } -> tensor<?x2304xf32>
  %r = ukernel.workload plan(@plan_0)
    ins(%A, %B : tensor<?x768xf32>, tensor<768x2304xf32>) init(%zero : f32)
    extras(%bias : tensor<2304xf32>) outs(%O : tensor<?x2304xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
            affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>]
    ranges = [#ukernel.range<1 to 128>, #ukernel.range<2304 to 2304>,
              #ukernel.range<768 to 768>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } epilogue {
    ^bb0(%acc: f32, %x: f32):
      %y = arith.addf %acc, %x : f32
      ukernel.yield %y : f32
    } -> tensor<?x2304xf32>
  return %r : tensor<?x2304xf32>
}

// What becomes of a factor before it is multiplied reads inputs: a tensor and a
// scalar.
// CHECK-LABEL: func.func @inputs
func.func @inputs(%A: tensor<4x16xf16>, %B: tensor<16x8xi8>, %S: tensor<8xf16>, %s: f16, %O: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<4x16xf16>, tensor<16x8xi8>) inputs(%{{.*}}, %{{.*}} : tensor<8xf16>, f16) outs(%{{.*}} : tensor<4x8xf32>)
  %r = ukernel.workload ins(%A, %B : tensor<4x16xf16>, tensor<16x8xi8>) inputs(%S, %s : tensor<8xf16>, f16) outs(%O : tensor<4x8xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> ()>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    // CHECK: ^bb0(%{{.*}}: f16, %{{.*}}: i8, %{{.*}}: f16, %{{.*}}: f16, %{{.*}}: f32):
    ^bb0(%a: f16, %b: i8, %x: f16, %y: f16, %c: f32):
      %f = arith.sitofp %b : i8 to f16
      %g = arith.mulf %f, %x : f16
      %h = arith.mulf %g, %y : f16
      %u = arith.extf %a : f16 to f32
      %v = arith.extf %h : f16 to f32
      %p = arith.mulf %u, %v : f32
      %t = arith.addf %c, %p : f32
      ukernel.yield %t : f32
    } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Accumulates from the output; transposed operands.
// CHECK-LABEL: func.func @on_memrefs
func.func @on_memrefs(%A: memref<8x?xf32>, %B: memref<16x8xf32>, %O: memref<16x?xf32>) {
  // CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : memref<8x?xf32>, memref<16x8xf32>) outs(%{{.*}} : memref<16x?xf32>) maps = [{{.*}}, {{.*}}, #[[NM]]] contract {
  // CHECK-NOT: epilogue
  // CHECK: return
  ukernel.workload ins(%A, %B : memref<8x?xf32>, memref<16x8xf32>)
    outs(%O : memref<16x?xf32>)
    maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, #nm]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    }
  return
}

// A shaped init, and scalar, row and full-size extras.
// CHECK-LABEL: func.func @extras
func.func @extras(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>, %i: tensor<?xf32>,
                  %O: tensor<?x?xf32>, %s: f32, %z: tensor<f32>) -> tensor<?x?xf32> {
  // CHECK: init(%{{.*}} : tensor<?xf32>) extras(%{{.*}}, %{{.*}}, %{{.*}} : f32, tensor<f32>, tensor<?x?xf32>)
  // CHECK-SAME: maps = [#[[MK]], #[[KN]], #[[N]], #[[S]], #[[S]], #[[NM]], #[[MN]]]
  %r = ukernel.workload ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>)
    init(%i : tensor<?xf32>) extras(%s, %z, %O : f32, tensor<f32>, tensor<?x?xf32>)
    outs(%O : tensor<?x?xf32>) maps = [#mk, #kn, #n, #s, #s, #nm, #mn]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %q = arith.addf %c, %p : f32
      ukernel.yield %q : f32
    } epilogue {
    ^bb0(%acc: f32, %x: f32, %y: f32, %w: f32):
      %0 = arith.mulf %acc, %x : f32
      %1 = arith.addf %0, %y : f32
      %2 = arith.subf %1, %w : f32
      ukernel.yield %2 : f32
    } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Batch axes; the rhs lacks one, an extra has only one.
// CHECK-LABEL: func.func @batches
func.func @batches(%A: tensor<?x?x12x64xf32>, %B: tensor<?x12x64xf32>, %x: tensor<?xf32>,
                   %O: tensor<?x12x?x?xf32>) -> tensor<?x12x?x?xf32> {
  // CHECK: ukernel.workload ins
  // CHECK-SAME: maps = [#[[BMHK]], #[[NHK]], #[[B]], #[[BHMN]]]
  // CHECK-SAME: ranges = [#ukernel.range<1 to 9>, #ukernel.range<1 to 9>, #ukernel.range<64 to 64>, #ukernel.range<0 to ?>, #ukernel.range<12 to 12>]
  %r = ukernel.workload ins(%A, %B : tensor<?x?x12x64xf32>, tensor<?x12x64xf32>)
    extras(%x : tensor<?xf32>) outs(%O : tensor<?x12x?x?xf32>)
    maps = [affine_map<(m, n, k, b, h) -> (b, m, h, k)>, affine_map<(m, n, k, b, h) -> (n, h, k)>,
            affine_map<(m, n, k, b, h) -> (b)>, affine_map<(m, n, k, b, h) -> (b, h, m, n)>]
    ranges = [#ukernel.range<1 to 9>, #ukernel.range<1 to 9>, #ukernel.range<64 to 64>,
              #ukernel.range<0 to ?>, #ukernel.range<12 to 12>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %q = arith.addf %c, %p : f32
      ukernel.yield %q : f32
    } epilogue {
    ^bb0(%acc: f32, %y: f32):
      %z = arith.addf %acc, %y : f32
      ukernel.yield %z : f32
    } -> tensor<?x12x?x?xf32>
  return %r : tensor<?x12x?x?xf32>
}

// CHECK-LABEL: ukernel.kernel @k0
// CHECK-SAME: (%{{.*}}: memref<?x768xf32>, %{{.*}}: memref<768x64xf32>, %{{.*}}: f32, %{{.*}}: memref<?x64xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[N1:.*]]: index)
// CHECK-SAME: attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, workload = "dense"} {
ukernel.kernel @k0(%A: memref<?x768xf32>, %B: memref<768x64xf32>, %zero: f32,
                   %O: memref<?x64xf32>, %m: index, %n: index, %k: index,
                   %n1: index)
    attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, workload = "dense"} {
  // How the host counts is printed after the body.
  // CHECK: ukernel.combine axis 0 [%[[N1]] x 28, 32] {
  ukernel.combine axis 0 [%n1 x 28, 32] {
    // CHECK: ukernel.tile [28, 32, 8] {
    ukernel.tile [28, 32, 8] {
      // CHECK: %[[P:.*]] = ukernel.pad %{{.*}} to [28, 8] : memref<?x768xf32>
      %a = ukernel.pad %A to [28, 8] : memref<?x768xf32>
      %o = ukernel.pad %O to [28, 1] : memref<?x64xf32>
      // CHECK: ukernel.workload ins(%[[P]], %{{.*}} : memref<?x768xf32>, memref<768x64xf32>) init(%{{.*}} : f32)
      ukernel.workload ins(%a, %B : memref<?x768xf32>, memref<768x64xf32>)
        init(%zero : f32) outs(%o : memref<?x64xf32>) maps = [#mk, #kn, #mn]
        contract {
        ^bb0(%x: f32, %y: f32, %c: f32):
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %c, %p : f32
          ukernel.yield %s : f32
        }
    }
    ukernel.tile [32, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x768xf32>, memref<768x64xf32>)
        init(%zero : f32) outs(%O : memref<?x64xf32>) maps = [#mk, #kn, #mn]
        contract {
        ^bb0(%x: f32, %y: f32, %c: f32):
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %c, %p : f32
          ukernel.yield %s : f32
        }
    }
  // CHECK: } {balanced = 132 : i64}
  } {balanced = 132 : i64}
}

// A constant in the place of a scalar operand.
// CHECK-LABEL: ukernel.kernel @one_part
ukernel.kernel @one_part(%A: memref<?x768xf32>, %B: memref<768x64xf32>, %z: f32,
                         %O: memref<?x64xf32>, %m: index, %n: index, %k: index,
                         %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 4>} {
  // CHECK: %[[ZERO:.*]] = arith.constant
  %zero = arith.constant 0.0 : f32
  // CHECK: ukernel.combine axis 1 [32] {
  ukernel.combine axis 1 [32] {
    ukernel.tile [28, 32, 8] {
      // CHECK: init(%[[ZERO]] : f32)
      ukernel.workload ins(%A, %B : memref<?x768xf32>, memref<768x64xf32>)
        init(%zero : f32) outs(%O : memref<?x64xf32>) maps = [#mk, #kn, #mn]
        contract {
        ^bb0(%x: f32, %y: f32, %c: f32):
          %p = arith.mulf %x, %y : f32
          %s = arith.addf %c, %p : f32
          ukernel.yield %s : f32
        }
    }
  }
}

gpu.module @k1 {
  gpu.func @k1() kernel { gpu.return }
}

// CHECK-LABEL: func.func @launches
func.func @launches(%A: memref<?x768xf32>, %B: memref<768x64xf32>, %zero: f32,
                    %O: memref<?x64xf32>, %m: index, %n1: index) {
  // CHECK: ukernel.launch @k0 blocks(%[[G:.*]]) args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<?x768xf32>, memref<768x64xf32>, f32, memref<?x64xf32>) sizes(%{{.*}}, %{{.*}}, %{{.*}}) parts(%{{.*}})
  ukernel.launch @k0 blocks(%m)
    args(%A, %B, %zero, %O : memref<?x768xf32>, memref<768x64xf32>, f32, memref<?x64xf32>)
    sizes(%m, %m, %m) parts(%n1)
  // CHECK: ukernel.launch @k1::@k1 blocks(%{{.*}}) args() strides(%{{.*}}, %{{.*}})
  ukernel.launch @k1::@k1 blocks(%m) args() strides(%m, %n1)
  return
}

// CHECK-LABEL: func.func @packed
// CHECK: ukernel.workload ins(%{{.*}}, %{{.*}} : tensor<?x128xi8>, tensor<8x128xi8>)
// CHECK-SAME: packed contract
func.func @packed(%A: tensor<?x128xi8>, %B: tensor<8x128xi8>, %O: tensor<?x8xi32>) -> tensor<?x8xi32> {
  %r = ukernel.workload ins(%A, %B : tensor<?x128xi8>, tensor<8x128xi8>) outs(%O : tensor<?x8xi32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    packed
    contract {
    ^bb0(%a: i8, %b: i8, %c: i32):
      %x = arith.extsi %a : i8 to i32
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %s = arith.addi %c, %p : i32
      ukernel.yield %s : i32
    } -> tensor<?x8xi32>
  return %r : tensor<?x8xi32>
}

// CHECK-LABEL: func.func @rows
// CHECK: ukernel.row_reduction ins(%{{.*}}, %{{.*}} : tensor<?x?xf16>, tensor<?xf32>) outs(%{{.*}}, %{{.*}} : tensor<?x?xf16>, tensor<?xf32>)
// CHECK-SAME: reduce {
// CHECK: }, {
// CHECK: } values {
// CHECK: } map {
// CHECK: } -> tensor<?x?xf16>, tensor<?xf32>
func.func @rows(%x: tensor<?x?xf16>, %s: tensor<?xf32>, %o: tensor<?x?xf16>, %v: tensor<?xf32>) -> (tensor<?x?xf16>, tensor<?xf32>) {
  %r:2 = ukernel.row_reduction ins(%x, %s : tensor<?x?xf16>, tensor<?xf32>) outs(%o, %v : tensor<?x?xf16>, tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>]
    ranges = [#ukernel.range<1 to 64>, #ukernel.range<1 to 4096>]
    reduce {
    ^bb0(%a: f16, %b: f32, %acc: f32):
      %w = arith.extf %a : f16 to f32
      %n = arith.maximumf %acc, %w : f32
      ukernel.yield %n : f32
    }, {
    ^bb0(%a: f16, %b: f32, %max: f32, %acc: f32):
      %w = arith.extf %a : f16 to f32
      %d = arith.subf %w, %max : f32
      %n = arith.addf %acc, %d : f32
      ukernel.yield %n : f32
    } values {
    ^bb0(%b: f32, %max: f32, %sum: f32):
      %p = arith.mulf %b, %sum : f32
      ukernel.yield %p : f32
    } map {
    ^bb0(%a: f16, %b: f32, %max: f32, %sum: f32):
      ukernel.yield %a : f16
    } -> tensor<?x?xf16>, tensor<?xf32>
  return %r#0, %r#1 : tensor<?x?xf16>, tensor<?xf32>
}

// A phase of slices, whose numbers are in the last outputs.
// CHECK-LABEL: func.func @rows_of_slices
// CHECK: ukernel.row_reduction phase(1) ins(%{{.*}} : memref<?x?xf32>) outs(%{{.*}}, %{{.*}}, %{{.*}} : memref<?x?xf32>, memref<?xf32>, memref<?xf32>)
func.func @rows_of_slices(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %s: memref<?xf32>, %t: memref<?xf32>) {
  ukernel.row_reduction phase(1) ins(%x : memref<?x?xf32>) outs(%y, %s, %t : memref<?x?xf32>, memref<?xf32>, memref<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (m)>]
    reduce {
    ^bb0(%a: f32, %acc: f32):
      %n = arith.maximumf %acc, %a : f32
      ukernel.yield %n : f32
    }, {
    ^bb0(%a: f32, %max: f32, %acc: f32):
      %d = arith.subf %a, %max : f32
      %n = arith.addf %acc, %d : f32
      ukernel.yield %n : f32
    } values {
    ^bb0(%max: f32, %sum: f32):
      ukernel.yield
    } map {
    ^bb0(%a: f32, %max: f32, %sum: f32):
      %d = arith.divf %a, %sum : f32
      ukernel.yield %d : f32
    }
  return
}

// CHECK-LABEL: func.func @asserts
// CHECK: ukernel.assert %{{.*}}, "expected {0}, but got {1}"(%{{.*}}, %{{.*}})
// CHECK: ukernel.assert %{{.*}}, "never"
func.func @asserts(%condition: i1, %a: index, %b: index) {
  ukernel.assert %condition, "expected {0}, but got {1}"(%a, %b)
  ukernel.assert %condition, "never"
  return
}

// A pool: the maximum of each window of three, whose ends are padded.
// CHECK-LABEL: func.func @windows
// CHECK: ukernel.pointwise ins(%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<3xf32>) outs(%{{.*}} : tensor<?xf32>)
// CHECK-SAME: taps = [3] padded = [0xFF800000 : f32, unit] start {
// CHECK: ukernel.yield %{{.*}} : f32
// CHECK: } reduce {
// CHECK: arith.maximumf
// CHECK: } map {
// CHECK: } -> tensor<?xf32>
func.func @windows(%x: tensor<?xf32>, %w: tensor<3xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = ukernel.pointwise ins(%x, %w : tensor<?xf32>, tensor<3xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0) -> (2 * p + t0 - 1)>, affine_map<(p, t, t0) -> (t0)>, affine_map<(p, t, t0) -> (p)>]
    taps = [3] padded = [0xFF800000 : f32, unit] start {
      %lowest = arith.constant 0xFF800000 : f32
      ukernel.yield %lowest : f32
    } reduce {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %s = arith.addf %a, %b : f32
      %m = arith.maximumf %acc, %s : f32
      ukernel.yield %m : f32
    } map {
    ^bb0(%m: f32):
      ukernel.yield %m : f32
    } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
