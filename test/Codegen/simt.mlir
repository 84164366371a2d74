// Kernels of the path for the CUDA cores, as they are emitted: before anything is
// unrolled or lowered.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefixes=CHECK,ASYNC
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=CAST
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=SLICE
// RUN: sed 's/stages = 3/stages = 2/' %s | ftuner-opt --ukernel-attach-device=device=t4 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --canonicalize --cse -o %t.t4.mlir
// RUN: FileCheck %s --input-file=%t.t4.mlir --check-prefixes=CHECK,STAGED

// A tile of 16 × 64 × 16 by 4 × 16 threads of 4 rows and 4 columns each, whose
// warps have 4 × 8 of them.
// CHECK-LABEL: gpu.func @bias_0_k0(
// CHECK-SAME: %{{[^:]*}}: memref<f32>, %{{[^:]*}}: memref<f32>, %{{[^:]*}}: memref<f32>, %{{[^:]*}}: memref<f32>, %[[SIZE:.*]]: i32) kernel attributes {known_block_size = array<i32: 64, 1, 1>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C12:.*]] = arith.constant 12 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK-DAG: %[[C20:.*]] = arith.constant 20 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-DAG: %[[LHS_STAGE:.*]] = arith.constant 1280 : index
// CHECK-DAG: %[[RHS_STAGE:.*]] = arith.constant 4096 : index
// ASYNC-DAG: %[[C3:.*]] = arith.constant 3 : index
// ASYNC-DAG: %[[RHS:.*]] = arith.constant 3840 : index
// STAGED-DAG: %[[RHS:.*]] = arith.constant 2560 : index
// CHECK: %[[M:.*]] = arith.index_cast %[[SIZE]] : i32 to index
// CHECK: %[[SHARED:.*]] = gpu.dynamic_shared_memory
// CHECK: %[[THREAD:.*]] = gpu.thread_id x upper_bound 64
// CHECK: %[[BLOCK:.*]] = gpu.block_id x
// CHECK: %[[BLOCK_M:.*]] = arith.divui %[[BLOCK]], %[[C2]]
// CHECK: %[[BLOCK_N:.*]] = arith.remui %[[BLOCK]], %[[C2]]
// CHECK: %[[COLUMNS:.*]] = memref.reinterpret_cast %{{.*}} to memref<128xf32, strided<[1]>>
// CHECK: %[[OUTPUT:.*]] = memref.reinterpret_cast %{{.*}} to memref<?x128xf32, strided<[128, 1]>>
// CHECK: %[[COLUMN0:.*]] = arith.muli %[[BLOCK_N]], %[[C64]]
// CHECK: %[[ROW0:.*]] = arith.muli %[[BLOCK_M]], %[[C16]]

// Stages of both operands, the rhs behind the lhs: rows of the lhs have 4 elements
// more than the 16 of k, those of the rhs are whole.
// ASYNC: %[[A:.*]] = memref.view %[[SHARED]][%[[C0]]][] : {{.*}} to memref<3x16x20xf32, #gpu.address_space<workgroup>>
// ASYNC: %[[B:.*]] = memref.view %[[SHARED]][%[[RHS]]][] : {{.*}} to memref<3x16x64xf32, #gpu.address_space<workgroup>>
// STAGED: %[[A:.*]] = memref.view %[[SHARED]][%[[C0]]][] : {{.*}} to memref<2x16x20xf32, #gpu.address_space<workgroup>>
// STAGED: %[[B:.*]] = memref.view %[[SHARED]][%[[RHS]]][] : {{.*}} to memref<2x16x64xf32, #gpu.address_space<workgroup>>
// ASYNC: %[[RHS_SHARED:.*]] = llvm.getelementptr %{{.*}}[3840] : (!llvm.ptr<3>)
// STAGED: %[[RHS_SHARED:.*]] = llvm.getelementptr %{{.*}}[2560] : (!llvm.ptr<3>)

// What a thread copies: 4 elements of a row of the lhs and of four rows of the
// rhs. Rows beyond the last one are clamped to it on the way through registers;
// asynchronous copies read nothing there.
// STAGED: %[[LAST:.*]] = arith.subi %[[M]], %[[C1]]
// CHECK: %[[ROW:.*]] = arith.divui %[[THREAD]], %[[C4]]
// CHECK: %[[LANE:.*]] = arith.remui %[[THREAD]], %[[C4]]
// CHECK: %[[K:.*]] = arith.muli %[[LANE]], %[[C4]]
// CHECK: %[[GLOBAL_ROW:.*]] = arith.addi %[[ROW0]], %[[ROW]]
// STAGED: %[[CLAMPED:.*]] = arith.minsi %[[GLOBAL_ROW]], %[[LAST]]
// STAGED: %[[LHS_ROW:.*]] = arith.muli %[[CLAMPED]], %[[C256]]
// ASYNC: %[[LEFT:.*]] = arith.subi %[[M]], %[[GLOBAL_ROW]]
// ASYNC: %[[IS_ROW:.*]] = arith.cmpi sgt, %[[LEFT]], %[[C0]]
// ASYNC: %[[LHS_ROW:.*]] = arith.muli %[[GLOBAL_ROW]], %[[C256]]
// CHECK: arith.addi %[[LHS_ROW]], %[[K]]
// CHECK: %[[LHS_GLOBAL:.*]] = llvm.getelementptr %{{.*}} -> !llvm.ptr<1>, i8
// CHECK: %[[SHARED_ROW:.*]] = arith.muli %[[ROW]], %[[C20]]
// CHECK: arith.addi %[[SHARED_ROW]], %[[K]]
// CHECK: %[[LHS_TARGET:.*]] = llvm.getelementptr %{{.*}} -> !llvm.ptr<3>, i8
// CHECK-NOT: arith.minsi
// CHECK: %[[RHS_TARGET:.*]] = llvm.getelementptr %[[RHS_SHARED]]

// The first two of three stages are copied ahead, each a group of its own; a
// step beyond k is an empty one.
// ASYNC: scf.for %[[STAGE:.*]] = %[[C0]] to %[[C2]] step %[[C1]] {
// ASYNC: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %[[C16]]
// ASYNC: %[[INSIDE:.*]] = arith.cmpi slt, %[[OFFSET]], %[[C256]]
// ASYNC-NEXT: scf.if %[[INSIDE]] {
// ASYNC: arith.muli %[[STAGE]], %[[LHS_STAGE]]
// ASYNC: %[[TARGET:.*]] = llvm.getelementptr %[[LHS_TARGET]]
// ASYNC: %[[BYTES:.*]] = arith.select %[[IS_ROW]], %{{.*}}, %{{.*}} : i32
// ASYNC-NEXT: nvvm.cp.async.shared.global %[[TARGET]], %{{.*}}, 16, cache = {{ *}}cg, %[[BYTES]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// ASYNC: arith.muli %[[STAGE]], %[[RHS_STAGE]]
// ASYNC: %[[TARGET:.*]] = llvm.getelementptr %[[RHS_TARGET]]
// ASYNC: llvm.getelementptr %[[TARGET]][1024]
// ASYNC: llvm.getelementptr %[[TARGET]][2048]
// ASYNC: llvm.getelementptr %[[TARGET]][3072]
// ASYNC-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, 16, cache = {{ *}}cg : !llvm.ptr<3>, !llvm.ptr<1>
// ASYNC-NEXT: }
// ASYNC-NEXT: nvvm.cp.async.commit.group
// ASYNC-NEXT: }

// A step: its copies have arrived, everybody is done with the stage that is
// written next, the copies of two steps ahead begin, then the products.
// ASYNC: %[[SUMS:.*]]:6 = scf.for %[[STEP:.*]] = %[[C0]] to %[[C256]] step %[[C16]] iter_args(%[[S0:.*]] = %[[ZEROS]], %[[S1:.*]] = %[[ZEROS]], %[[S2:.*]] = %[[ZEROS]], %[[S3:.*]] = %[[ZEROS]], %[[READ:.*]] = %[[C0]], %[[WRITE:.*]] = %[[C2]])
// ASYNC-NEXT: nvvm.cp.async.wait.group 1
// ASYNC-NEXT: gpu.barrier
// ASYNC: scf.if
// ASYNC: arith.muli %[[WRITE]], %[[LHS_STAGE]]
// ASYNC: nvvm.cp.async.shared.global %{{.*}}, 16, cache = {{ *}}cg, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// ASYNC: arith.muli %[[WRITE]], %[[RHS_STAGE]]
// ASYNC-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, 16, cache = {{ *}}cg : !llvm.ptr<3>, !llvm.ptr<1>
// ASYNC-NEXT: }
// ASYNC-NEXT: nvvm.cp.async.commit.group

// By registers: the first step is stored before the loop. A step's barrier stands
// first, the next step is loaded before the products and stored behind them.
// STAGED-COUNT-5: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED-NEXT: %[[SUMS:.*]]:5 = scf.for %[[STEP:.*]] = %[[C0]] to %[[C256]] step %[[C16]] iter_args(%[[S0:.*]] = %[[ZEROS]], %[[S1:.*]] = %[[ZEROS]], %[[S2:.*]] = %[[ZEROS]], %[[S3:.*]] = %[[ZEROS]], %[[READ:.*]] = %[[C0]])
// STAGED-NEXT: gpu.barrier
// STAGED-NEXT: %[[NEXT:.*]] = arith.addi %[[STEP]], %[[C16]]
// STAGED-NEXT: %[[INSIDE:.*]] = arith.cmpi slt, %[[NEXT]], %[[C256]]
// STAGED-NEXT: %[[LOADED:.*]]:5 = scf.if %[[INSIDE]]
// STAGED-COUNT-5: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// STAGED: else
// STAGED-NOT: llvm.store

// Four elements of k at once: a vector along k of each row, 4 rows apart, and one
// along n for each element, by which all rows are multiplied.
// CHECK: %[[PRODUCTS:.*]]:4 = scf.for %[[QUAD:.*]] = %[[C0]] to %[[C16]] step %[[C4]] iter_args(%[[P0:.*]] = %[[S0]], %[[P1:.*]] = %[[S1]], %[[P2:.*]] = %[[S2]], %[[P3:.*]] = %[[S3]])
// CHECK-NEXT: %[[R0:.*]] = vector.load %[[A]][%[[READ]], %[[TM:.*]], %[[QUAD]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[ROW1:.*]] = arith.addi %[[TM]], %[[C4]]
// CHECK-NEXT: %[[R1:.*]] = vector.load %[[A]][%[[READ]], %[[ROW1]], %[[QUAD]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[ROW2:.*]] = arith.addi %[[TM]], %[[C8]]
// CHECK-NEXT: %[[R2:.*]] = vector.load %[[A]][%[[READ]], %[[ROW2]], %[[QUAD]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[ROW3:.*]] = arith.addi %[[TM]], %[[C12]]
// CHECK-NEXT: %[[R3:.*]] = vector.load %[[A]][%[[READ]], %[[ROW3]], %[[QUAD]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[X0:.*]] = vector.extract %[[R0]][0]
// CHECK-NEXT: %[[X1:.*]] = vector.extract %[[R1]][0]
// CHECK-NEXT: %[[X2:.*]] = vector.extract %[[R2]][0]
// CHECK-NEXT: %[[X3:.*]] = vector.extract %[[R3]][0]
// CHECK-NEXT: %[[COLUMN:.*]] = arith.muli %[[TN:.*]], %[[C4]]
// CHECK-NEXT: %[[Y:.*]] = vector.load %[[B]][%[[READ]], %[[QUAD]], %[[COLUMN]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[F0:.*]] = vector.broadcast %[[X0]]
// CHECK-NEXT: vector.fma %[[F0]], %[[Y]], %[[P0]] : vector<4xf32>
// CHECK-NEXT: %[[F1:.*]] = vector.broadcast %[[X1]]
// CHECK-NEXT: vector.fma %[[F1]], %[[Y]], %[[P1]] : vector<4xf32>
// CHECK-NEXT: %[[F2:.*]] = vector.broadcast %[[X2]]
// CHECK-NEXT: vector.fma %[[F2]], %[[Y]], %[[P2]] : vector<4xf32>
// CHECK-NEXT: %[[F3:.*]] = vector.broadcast %[[X3]]
// CHECK-NEXT: vector.fma %[[F3]], %[[Y]], %[[P3]] : vector<4xf32>
// CHECK: vector.extract %[[R0]][1]
// CHECK: %[[K1:.*]] = arith.addi %[[QUAD]], %[[C1]]
// CHECK-NEXT: vector.load %[[B]][%[[READ]], %[[K1]], %[[COLUMN]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-COUNT-12: vector.fma
// CHECK-NOT: vector.fma
// CHECK: scf.yield %{{.*}} : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
// CHECK-NEXT: }
// CHECK-NOT: gpu.barrier

// Stages follow each other in a circle.
// CHECK: %[[AFTER:.*]] = arith.addi %[[READ]], %[[C1]]
// ASYNC-NEXT: %[[WRAPS:.*]] = arith.cmpi eq, %[[AFTER]], %[[C3]]
// STAGED-NEXT: %[[WRAPS:.*]] = arith.cmpi eq, %[[AFTER]], %[[C2]]
// CHECK-NEXT: %[[NEXT_READ:.*]] = arith.select %[[WRAPS]], %[[C0]], %[[AFTER]]
// ASYNC: %[[AFTER:.*]] = arith.addi %[[WRITE]], %[[C1]]
// ASYNC-NEXT: %[[WRAPS:.*]] = arith.cmpi eq, %[[AFTER]], %[[C3]]
// ASYNC-NEXT: %[[NEXT_WRITE:.*]] = arith.select %[[WRAPS]], %[[C0]], %[[AFTER]]
// ASYNC-NEXT: scf.yield %[[PRODUCTS]]#0, %[[PRODUCTS]]#1, %[[PRODUCTS]]#2, %[[PRODUCTS]]#3, %[[NEXT_READ]], %[[NEXT_WRITE]]
// STAGED-NEXT: scf.if %[[INSIDE]] {
// STAGED: llvm.store %[[LOADED]]#0, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED: llvm.store %[[LOADED]]#1, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED-NEXT: llvm.store %[[LOADED]]#2, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED-NEXT: llvm.store %[[LOADED]]#3, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED-NEXT: llvm.store %[[LOADED]]#4, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// STAGED-NEXT: }
// STAGED-NEXT: scf.yield %[[PRODUCTS]]#0, %[[PRODUCTS]]#1, %[[PRODUCTS]]#2, %[[PRODUCTS]]#3, %[[NEXT_READ]]

// The epilogue: columns' bias once, then each row that is inside.
// CHECK-NOT: gpu.barrier
// CHECK: %[[OF_THREAD:.*]] = arith.muli %[[TN]], %[[C4]]
// CHECK-NEXT: %[[COLUMN:.*]] = arith.addi %[[COLUMN0]], %[[OF_THREAD]]
// CHECK-NEXT: %[[BIAS:.*]] = vector.load %[[COLUMNS]][%[[COLUMN]]] {alignment = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[ROW0]], %[[TM]]
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi slt, %[[ROW]], %[[M]]
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[SUMS]]#0, %[[BIAS]] : vector<4xf32>
// CHECK-NEXT: vector.store %[[SUM]], %[[OUTPUT]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64, tile_height = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: }
// CHECK-NOT: vector.load
// CHECK: %[[OF_TILE:.*]] = arith.addi %[[TM]], %[[C12]]
// CHECK-NEXT: %[[ROW:.*]] = arith.addi %[[ROW0]], %[[OF_TILE]]
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi slt, %[[ROW]], %[[M]]
// CHECK-NEXT: scf.if %[[INSIDE]] {
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[SUMS]]#3, %[[BIAS]] : vector<4xf32>
// CHECK-NEXT: vector.store %[[SUM]], %[[OUTPUT]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64, tile_height = 16 : i64} : {{.*}}, vector<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: gpu.return

// A prologue: bytes are loaded and pass the products as they are, are cast and
// scaled on the way to shared memory, and nothing is copied asynchronously.
// A column's scale is loaded once.
// CAST-LABEL: gpu.func @dequantize_0_k0(
// CAST-NOT: nvvm.cp.async
// CAST-DAG: memref.view {{.*}} to memref<2x16x20xf32, #gpu.address_space<workgroup>>
// CAST-DAG: memref.view {{.*}} to memref<2x16x64xf32, #gpu.address_space<workgroup>>
// CAST: %[[SCALE:.*]] = vector.load %{{.*}} {alignment = 16 : i64} : memref<128xf32, strided<[1]>>, vector<4xf32>
// CAST-NOT: memref<128xf32
// CAST: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CAST: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CAST: %[[BYTES:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xi8>
// CAST-COUNT-3: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xi8>
// CAST: %[[FLOATS:.*]] = arith.sitofp %[[BYTES]] : vector<4xi8> to vector<4xf32>
// CAST-NEXT: %[[SCALED:.*]] = arith.mulf %[[FLOATS]], %[[SCALE]] : vector<4xf32>
// CAST-NEXT: llvm.store %[[SCALED]], %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CAST-COUNT-3: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CAST: scf.for
// CAST-NEXT: gpu.barrier
// CAST: %[[LOADED:.*]]:5 = scf.if %{{.*}} -> (vector<4xf32>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>)
// CAST-NOT: arith.sitofp
// CAST: vector.fma
// CAST: llvm.store %[[LOADED]]#0
// CAST: %[[FLOATS:.*]] = arith.sitofp %[[LOADED]]#1 : vector<4xi8> to vector<4xf32>
// CAST-NEXT: %[[SCALED:.*]] = arith.mulf %[[FLOATS]], %[[SCALE]] : vector<4xf32>
// CAST-NEXT: llvm.store %[[SCALED]], %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<3>
// CAST-COUNT-3: arith.sitofp
// CAST: gpu.return

// One slice of three: a third of the blocks each. 256 elements of k are 96, 96 and
// 64, whole steps; the extent of a slice bounds copies and steps. Sums are stored
// as they are, behind the rows of the slices before.
// SLICE-LABEL: gpu.func @slice_0_k0(
// SLICE-SAME: %[[A:[^:]*]]: memref<f32>, %[[B:[^:]*]]: memref<f32>, %[[O:[^:]*]]: memref<f32>, %[[SIZE:[^:]*]]: i32)
// SLICE-DAG: %[[C3:.*]] = arith.constant 3 : index
// SLICE-DAG: %[[C96:.*]] = arith.constant 96 : index
// SLICE-DAG: %[[C128:.*]] = arith.constant 128 : index
// SLICE-DAG: %[[C256:.*]] = arith.constant 256 : index
// SLICE: %[[M:.*]] = arith.index_cast %[[SIZE]]
// SLICE: %[[GRID:.*]] = gpu.grid_dim x
// SLICE: %[[EACH:.*]] = arith.divui %[[GRID]], %[[C3]]
// SLICE: %[[NUMBER:.*]] = arith.divui %{{.*}}, %[[EACH]]
// SLICE: arith.remui %{{.*}}, %[[EACH]]
// SLICE: %[[FIRST:.*]] = arith.muli %[[NUMBER]], %[[C96]]
// SLICE-NEXT: %[[IS_LESS:.*]] = arith.cmpi ule, %[[FIRST]], %[[C256]]
// SLICE-NEXT: %[[OFFSET:.*]] = arith.select %[[IS_LESS]], %[[FIRST]], %[[C256]]
// SLICE-NEXT: %[[REST:.*]] = arith.subi %[[C256]], %[[OFFSET]]
// SLICE-NEXT: %[[IS_LESS:.*]] = arith.cmpi ule, %[[REST]], %[[C96]]
// SLICE-NEXT: %[[EXTENT:.*]] = arith.select %[[IS_LESS]], %[[REST]], %[[C96]]
// SLICE-NEXT: memref.reinterpret_cast %[[A]] to offset: [%[[OFFSET]]], sizes: [%[[M]], %[[EXTENT]]], strides: [256, 1]
// SLICE-NEXT: %[[RHS:.*]] = arith.muli %[[OFFSET]], %[[C128]]
// SLICE-NEXT: memref.reinterpret_cast %[[B]] to offset: [%[[RHS]]], sizes: [%[[EXTENT]], 128], strides: [128, 1]
// SLICE-NEXT: %[[ROWS:.*]] = arith.muli %[[NUMBER]], %[[M]]
// SLICE: %[[SLICES:.*]] = memref.reinterpret_cast %[[O]] to offset: [%{{.*}}], sizes: [%[[M]], 128], strides: [128, 1]
// SLICE: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[EXTENT]]
// SLICE-NEXT: scf.if %[[INSIDE]]
// SLICE: nvvm.cp.async.shared.global
// SLICE: %[[SUMS:.*]]:6 = scf.for %{{.*}} to %[[EXTENT]] step
// SLICE: arith.cmpi slt, %{{.*}}, %[[EXTENT]]
// SLICE: nvvm.cp.async.shared.global
// SLICE: vector.store %[[SUMS]]#0, %[[SLICES]]
// SLICE: vector.store %[[SUMS]]#3, %[[SLICES]]
// SLICE: gpu.return

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#column = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>
#general = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[16, 64, 16]]>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
  ukernel.plan @pipelined <families = [<#ukernel.simt<threads = [4, 16], stages = 3, vector = 4>, axis = 0, tiles = [[16, 64, 16]]>, #general], choices = [], general = 0, unaligned_general = 1>
  ukernel.plan @staged <families = [<#ukernel.simt<threads = [4, 16], stages = 2, vector = 4>, axis = 0, tiles = [[16, 64, 16]]>, #general], choices = [], general = 0, unaligned_general = 1>
  ukernel.plan @sliced <families = [<#ukernel.simt<threads = [4, 16], stages = 3, vector = 4>, axis = 0, tiles = [[16, 64, 16]], split = 3>, #general], choices = [], general = 0, unaligned_general = 1>

  func.func @bias(%a: tensor<?x256xf32> {ukernel.shape = ["T", 256]}, %b: tensor<256x128xf32>, %v: tensor<128xf32>) -> tensor<?x128xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf32>
    %e = tensor.empty(%m) : tensor<?x128xf32>
    %p = ukernel.workload plan(@pipelined) ins(%a, %b : tensor<?x256xf32>, tensor<256x128xf32>) init(%zero : f32) extras(%v : tensor<128xf32>) outs(%e : tensor<?x128xf32>) maps = [#lhs, #rhs, #column, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %q = arith.mulf %x, %y : f32
      %s = arith.addf %c, %q : f32
      ukernel.yield %s : f32
    } epilogue {
    ^bb0(%s: f32, %bias: f32):
      %r = arith.addf %s, %bias : f32
      ukernel.yield %r : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf32>
    return %p : tensor<?x128xf32>
  }

  func.func @dequantize(%a: tensor<?x256xf32> {ukernel.shape = ["T", 256]}, %b: tensor<256x128xi8>, %scale: tensor<128xf32>) -> tensor<?x128xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf32>
    %e = tensor.empty(%m) : tensor<?x128xf32>
    %p = ukernel.workload plan(@staged) ins(%a, %b : tensor<?x256xf32>, tensor<256x128xi8>) inputs(%scale : tensor<128xf32>) init(%zero : f32) outs(%e : tensor<?x128xf32>) maps = [#lhs, #rhs, #column, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f32, %y: i8, %s: f32, %c: f32):
      %f = arith.sitofp %y : i8 to f32
      %g = arith.mulf %f, %s : f32
      %q = arith.mulf %x, %g : f32
      %t = arith.addf %c, %q : f32
      ukernel.yield %t : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf32>
    return %p : tensor<?x128xf32>
  }

  func.func @slice(%a: tensor<?x256xf32> {ukernel.shape = ["T", 256]}, %b: tensor<256x128xf32>) -> tensor<?x128xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf32>
    %e = tensor.empty(%m) : tensor<?x128xf32>
    %p = ukernel.workload plan(@sliced) ins(%a, %b : tensor<?x256xf32>, tensor<256x128xf32>) init(%zero : f32) outs(%e : tensor<?x128xf32>) maps = [#lhs, #rhs, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %q = arith.mulf %x, %y : f32
      %s = arith.addf %c, %q : f32
      ukernel.yield %s : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf32>
    return %p : tensor<?x128xf32>
  }
}
