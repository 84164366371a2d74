// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --convert-ukernel-to-gpu | FileCheck %s --check-prefixes=CHECK,ASYNC
// RUN: sed 's/stages = 3/stages = 2/' %s | ftuner-opt --ukernel-attach-device=device=t4 --convert-ukernel-to-gpu | FileCheck %s --check-prefixes=CHECK,STAGED

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Pointers, then the sizes and strides that are dynamic, then the part count.
// CHECK-LABEL: gpu.module @k attributes {ukernel.entry = #ukernel.entry<threads = 32, shared_memory_bytes = {{[0-9]+}}, alignment = 16,
// CHECK-SAME: name = "lhs"{{.*}}name = "rhs"{{.*}}name = "output"{{.*}}kind = "size", name = "m"{{.*}}name = "first_part_blocks"
// CHECK: gpu.func @k(%{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: memref<f32>, %{{.*}}: i32, %[[PART:.*]]: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>, nvvm.minctasm = 1 : i32}
// CHECK: gpu.dynamic_shared_memory
// CHECK: scf.if %{{.*}} {
// One barrier in each step, and the copies or loads of a later step before the multiplications.
// ASYNC: nvgpu.device_async_copy {{.*}} {bypassL1}
// ASYNC: scf.for
// ASYNC: nvgpu.device_async_wait %{{.*}} {numGroups = 1 : i32}
// ASYNC-NEXT: gpu.barrier
// ASYNC: nvgpu.device_async_copy
// STAGED-NOT: nvgpu
// STAGED: scf.for
// STAGED-NEXT: gpu.barrier
// STAGED: vector.load {{.*}} {alignment = 16 : i64} : memref<?x768xf32, strided<[768, 1]>>, vector<4xf32>
// CHECK: vector.fma
// CHECK-NOT: gpu.barrier
// CHECK: scf.yield
// Rows beyond m are not stored; columns are exact.
// CHECK: arith.cmpi slt
// CHECK: vector.store %{{.*}} {alignment = 16 : i64} : memref<?x2304xf32, strided<[2304, 1]>>, vector<4xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: gpu.return
// CHECK-LABEL: func.func @host
// CHECK: ukernel.launch @k::@k blocks(%{{.*}}) args(%{{.*}}, %{{.*}}, %{{.*}} : memref<?x768xf32>, memref<768x2304xf32>, memref<?x2304xf32>) sizes(%arg3) parts(%arg4)
ukernel.kernel @k(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>, %m: index, %n: index, %k: index, %n1: index)
    attributes {path = #ukernel.simt<stages = 3, vector = 4>, workload = "w"} {
  ukernel.combine axis 0 [%n1 x 7, 8] {
    ukernel.tile #ukernel.ukernel<smem = [7, 128, 16], reg = [7, 4, 1]> {
      %p = ukernel.pad %a to [7, 1] : memref<?x768xf32>
      ukernel.workload ins(%p, %b : memref<?x768xf32>, memref<768x2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
    }
    ukernel.tile #ukernel.ukernel<smem = [8, 128, 16], reg = [8, 4, 1]> {
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
