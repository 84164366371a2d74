// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --convert-ukernel-to-gpu | FileCheck %s --check-prefixes=CHECK,ASYNC
// RUN: sed 's/stages = 3/stages = 2/' %s | ftuner-opt --ukernel-attach-device=device=t4 --convert-ukernel-to-gpu | FileCheck %s --check-prefixes=CHECK,STAGED

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>
#q = affine_map<(m, n, k, b0, b1) -> (b0, m, b1, k)>
#keys = affine_map<(m, n, k, b0, b1) -> (b0, n, b1, k)>
#head = affine_map<(m, n, k, b0, b1) -> (b1)>
#scores = affine_map<(m, n, k, b0, b1) -> (b0, b1, m, n)>

// Pointers, then the sizes and strides that are dynamic, then the part count.
// CHECK-LABEL: gpu.module @k attributes {ukernel.entry = #ukernel.entry<threads = 32, shared_memory_bytes = {{[0-9]+}}, alignment = 16,
// CHECK-SAME: name = "lhs"{{.*}}name = "rhs"{{.*}}name = "output"{{.*}}kind = "size", name = "m"{{.*}}name = "first_part_blocks"
// CHECK: gpu.func @k(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: i32, %[[PART:.*]]: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>, nvvm.minctasm =
// ASYNC-SAME: 8 : i32}
// STAGED-SAME: 3 : i32}
// CHECK: gpu.dynamic_shared_memory
// CHECK: scf.if %{{.*}} {
// One barrier in each step, and the copies or loads of a later step before the multiplications.
// ASYNC: scf.for
// ASYNC: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// ASYNC: scf.for
// ASYNC-NEXT: nvvm.cp.async.wait.group 1
// ASYNC-NEXT: gpu.barrier
// ASYNC: nvvm.cp.async.shared.global
// STAGED-NOT: nvgpu
// STAGED: scf.for
// STAGED-NEXT: gpu.barrier
// STAGED: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: vector.fma
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
// Rows beyond m are not stored; columns are exact.
// CHECK: arith.cmpi slt
// CHECK: vector.store %{{.*}} {alignment = 16 : i64, tile_height = 7 : i64} : memref<?x2304xf32, strided<[2304, 1]>>, vector<4xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: gpu.return
// CHECK-LABEL: func.func @host
// CHECK: ukernel.launch @k::@k blocks(%{{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}} : memref<?x768xf32>, memref<768x2304xf32>, memref<?x2304xf32>) sizes(%arg3) parts(%arg4)
ukernel.kernel @k(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, workload = "w"} {
  ukernel.combine axis 0 [%n1 x 7, 8] {
    ukernel.tile [7, 128, 16] {
      %p = ukernel.pad %a to [7, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}
func.func @host(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n1: index, %blocks: index) {
  %n = arith.constant 2304 : index
  %k = arith.constant 768 : index
  ukernel.launch @k blocks(%blocks) args(%a, %b, %o : memref<?x768xf32>, memref<768x2304xf32>, memref<?x2304xf32>) sizes(%m, %n, %k) parts(%n1)
  return
}

// A batch for each run of blocks: views of one batch, at an offset.
// CHECK-LABEL: gpu.module @heads attributes
// CHECK-SAME: kind = "size", name = "m"{{.*}}kind = "size", name = "n"{{.*}}kind = "size", name = "b0"
// CHECK-NOT: name = "b1"
// CHECK: gpu.func @heads(%[[Q:.*]]: memref<f32>, %[[K:.*]]: memref<f32>, %[[X:.*]]: memref<f32>, %[[O:.*]]: memref<f32>, %[[M:.*]]: i32, %[[N:.*]]: i32, %[[B:.*]]: i32, %[[QS:.*]]: i32, %[[KS:.*]]: i32, %[[O0:.*]]: i32, %[[O1:.*]]: i32, %[[O2:.*]]: i32)
// CHECK: %[[BATCH_SIZE:.*]] = arith.index_cast %[[B]] : i32 to index
// CHECK: %[[HEADS:.*]] = arith.constant 12 : index
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[BATCHES:.*]] = arith.muli %[[BATCH_SIZE]], %[[HEADS]] : index
// CHECK: %[[GRID:.*]] = gpu.grid_dim x
// CHECK: %[[EACH:.*]] = arith.divui %[[GRID]], %[[BATCHES]] : index
// CHECK: %[[WHICH:.*]] = arith.divui %[[BLOCK]], %[[EACH]] : index
// CHECK: arith.remui %[[BLOCK]], %[[EACH]] : index
// CHECK: %[[HEAD:.*]] = arith.remui %[[WHICH]], %[[HEADS]] : index
// CHECK: %[[BATCH:.*]] = arith.divui %[[WHICH]], %[[HEADS]] : index
// CHECK: %[[STRIDE:.*]] = arith.index_cast %[[QS]] : i32 to index
// CHECK: %[[OF_BATCH:.*]] = arith.muli %[[BATCH]], %[[STRIDE]] : index
// CHECK: %[[OF_HEAD:.*]] = arith.muli %[[HEAD]], %{{.*}} : index
// CHECK: %[[OFFSET:.*]] = arith.addi %[[OF_BATCH]], %[[OF_HEAD]] : index
// CHECK: memref.reinterpret_cast %[[Q]] to offset: [%[[OFFSET]]], sizes: [%{{.*}}, 64], strides: [768, 1] : memref<f32> to memref<?x64xf32, strided<[768, 1], offset: ?>>
// CHECK: memref.reinterpret_cast %[[X]] to offset: [%{{.*}}], sizes: [], strides: [] : memref<f32> to memref<f32, strided<[], offset: ?>>
// CHECK: memref.reinterpret_cast %[[O]] to offset: [%{{.*}}], sizes: [%{{.*}}, %{{.*}}], strides: [%{{.*}}, 1] : memref<f32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
// CHECK: gpu.return
ukernel.kernel @heads(%a: memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>, %b: memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>, %x: memref<12xf32>, %o: memref<?x12x?x?xf32>, %m: index, %n: index, %k: index, %b0: index, %b1: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 4>, workload = "w"} {
  ukernel.combine axis 0 [16] {
    ukernel.tile [16, 64, 16, 1, 1] {
      %p = ukernel.pad %a to [1, 16, 1, 1] : memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>
      %q = ukernel.pad %b to [1, 64, 1, 1] : memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>
      ukernel.workload ins(%p, %q : memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>, memref<?x?x12x64xf32, strided<[?, 768, 64, 1]>>) extras(%x : memref<12xf32>) outs(%o : memref<?x12x?x?xf32>) maps = [#q, #keys, #head, #scores] contract {
      ^bb0(%u: f32, %v: f32, %c: f32):
        %product = arith.mulf %u, %v : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      } epilogue {
      ^bb0(%acc: f32, %e: f32):
        %r = arith.addf %acc, %e : f32
        ukernel.yield %r : f32
      }
    }
  }
}

// A scalar stands before the part.
// CHECK-LABEL: gpu.module @scaled attributes
// CHECK-SAME: {kind = "size", name = "m", type = i32}, {kind = "scalar", name = "init", type = f32}, {kind = "part", name = "first_part_blocks", type = i32}]
// CHECK: gpu.func @scaled(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: i32, %[[SCALAR:.*]]: f32, %[[COUNT:.*]]: i32) kernel
// CHECK: arith.index_cast %[[COUNT]] : i32 to index
// CHECK: %[[SCALAR]]
// CHECK-LABEL: func.func @scale
// CHECK: ukernel.launch @scaled::@scaled blocks(%{{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<?x768xf32>, memref<768x2304xf32>, f32, memref<?x2304xf32>) sizes(%{{[^,]*}}) parts(%{{[^,]*}})
ukernel.kernel @scaled(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %s: f32, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 2, vector = 4>} {
  ukernel.combine axis 0 [%n1 x 7, 8] {
    ukernel.tile [7, 128, 16] {
      %p = ukernel.pad %a to [7, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) init(%s : f32) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) init(%s : f32) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}
func.func @scale(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %s: f32, %o: memref<?x2304xf32>, %m: index, %n1: index, %blocks: index) {
  %n = arith.constant 2304 : index
  %k = arith.constant 768 : index
  ukernel.launch @scaled blocks(%blocks) args(%a, %b, %s, %o : memref<?x768xf32>, memref<768x2304xf32>, f32, memref<?x2304xf32>) sizes(%m, %n, %k) parts(%n1)
  return
}

// Tiles that divide every extent neither clamp rows and columns nor skip copies
// beyond k, whether or not the pads were folded.
// CHECK-LABEL: gpu.func @exact
// CHECK-NOT: arith.minsi
// ASYNC: nvvm.cp.async.shared.global
// ASYNC-NOT: cache = {{ *}}cg, %
// CHECK-NOT: arith.minsi
// Others do either: asynchronous copies read nothing beyond an extent, others clamp.
// CHECK-LABEL: gpu.func @inexact
// STAGED: arith.minsi
// ASYNC-NOT: arith.minsi
// ASYNC: nvvm.cp.async.shared.global {{.*}}, 16, cache = {{ *}}cg, %
ukernel.kernel @exact(%a: memref<64x96xf32>, %b: memref<96x256xf32>, %o: memref<64x256xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, workload = "w"} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 16] : memref<64x96xf32>
      %q = ukernel.pad %b to [16, 128] : memref<96x256xf32>
      ukernel.workload ins(%p, %q : memref<64x96xf32>, memref<96x256xf32>) outs(%o : memref<64x256xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}
ukernel.kernel @inexact(%a: memref<64x100xf32>, %b: memref<100x260xf32>, %o: memref<64x260xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {schedule = #ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, workload = "w"} {
  ukernel.combine axis 0 [8] {
    ukernel.tile [8, 128, 16] {
      %p = ukernel.pad %a to [8, 16] : memref<64x100xf32>
      %q = ukernel.pad %b to [16, 128] : memref<100x260xf32>
      ukernel.workload ins(%p, %q : memref<64x100xf32>, memref<100x260xf32>) outs(%o : memref<64x260xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
  }
}
