// Kernels of the path for tensor cores by single warps: fragments of a k block
// are loaded before the products of the one before it, across the end of an
// iteration too, whose one barrier stands before its last products; copies are
// sized, without a branch; sums that are rounded first are staged in 16 bits,
// and what columns share is read once.

// RUN: split-file %s %t
// RUN: ftuner-translate %t/machine.mlir --ftuner-to-ptx --device=a100 -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: ftuner-translate %t/machine.mlir --ftuner-to-ptx --device=t4 -o %t.t4.ptx
// RUN: FileCheck %s --input-file=%t.t4.ptx --check-prefix=STAGED

// Before the loop: the first step is copied, and its first fragments loaded.
// CHECK-LABEL: .entry f_0_k0(
// CHECK: cp.async.commit_group
// CHECK: cp.async.wait_group 0
// CHECK-NEXT: bar.sync 0
// CHECK: ldmatrix
// CHECK: [[LOOP:\$L__BB[0-9_]+]]:
// CHECK-NEXT: .pragma "nounroll"
// Two k blocks: one half of the products on either side of the barrier.
// CHECK: ldmatrix
// CHECK-NOT: bra
// CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16, %r
// CHECK-NOT: bra
// CHECK: cp.async.commit_group
// CHECK-NOT: bra
// CHECK-COUNT-8: mma.sync.aligned.m16n8k16
// CHECK: cp.async.wait_group 0
// CHECK-NEXT: bar.sync 0
// CHECK-NOT: bra
// CHECK: ldmatrix
// CHECK-COUNT-8: mma.sync.aligned.m16n8k16
// CHECK: bra {{.*}}[[LOOP]]
// The epilogue: the bias first.
// CHECK: ld.global
// CHECK: bar.sync 0
// CHECK-NOT: ld.global
// CHECK: st.shared.b32
// CHECK: ld.shared.v4.b32
// CHECK: st.global.v4.b32

// Through registers: stores before the barrier, products behind it.
// STAGED-LABEL: .entry f_0_k0(
// STAGED: bar.sync 0
// STAGED: ldmatrix
// STAGED: mma.sync.aligned.m16n8k8
// STAGED: st.shared.v4.b32
// STAGED: bar.sync 0
// STAGED: ldmatrix
// STAGED: mma.sync.aligned.m16n8k8

// The same as they are emitted, before anything is lowered.

// RUN: ftuner-opt %t/emitted.mlir --ukernel-attach-device=device=a100 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefixes=IR,ASYNC
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=CAST
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=SLICE
// RUN: sed 's/stages = 3/stages = 2/' %t/emitted.mlir | ftuner-opt --ukernel-attach-device=device=t4 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads --ukernel-lower-fallbacks --ukernel-plan-workspace --convert-ukernel-to-gpu --canonicalize --cse -o %t.t4.mlir
// RUN: FileCheck %s --input-file=%t.t4.mlir --check-prefixes=IR,REGISTERS

// A tile of 32 × 32 × 32 by 2 × 2 warps of 16 × 16 each: two fragments of n.
// IR-LABEL: gpu.func @bias_0_k0(
// IR-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>
// ASYNC-DAG: %[[C0:.*]] = arith.constant 0 : index
// ASYNC-DAG: %[[C1:.*]] = arith.constant 1 : index
// IR-DAG: %[[C2:.*]] = arith.constant 2 : index
// IR-DAG: %[[C4:.*]] = arith.constant 4 : index
// IR-DAG: %[[C8:.*]] = arith.constant 8 : index
// IR-DAG: %[[C16:.*]] = arith.constant 16 : index
// IR-DAG: %[[C32:.*]] = arith.constant 32 : index
// IR-DAG: %[[C64:.*]] = arith.constant 64 : index
// IR-DAG: %[[C256:.*]] = arith.constant 256 : index
// IR-DAG: %[[STAGE:.*]] = arith.constant 2048 : index
// IR-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// IR-DAG: %[[FIRST:.*]] = arith.constant 0 : i32
// IR-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// IR-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// IR-DAG: %[[DEPTH:.*]] = arith.constant 32 : i32
// IR-DAG: %[[END:.*]] = arith.constant 256 : i32
// ASYNC-DAG: %[[THREE:.*]] = arith.constant 3 : i32
// ASYNC-DAG: %[[BYTES:.*]] = arith.constant 16 : i32
// IR: %[[SHARED:.*]] = gpu.dynamic_shared_memory
// IR: %[[THREAD:.*]] = gpu.thread_id x upper_bound 128
// IR: %[[COLUMNS:.*]] = memref.reinterpret_cast %{{.*}} to memref<128xf16, strided<[1]>>
// IR: %[[OUTPUT:.*]] = memref.reinterpret_cast %{{.*}} to memref<?x128xf16, strided<[128, 1]>>
// IR: %[[COLUMN0:.*]] = arith.muli %{{.*}}, %[[C32]]
// IR: %[[ROW0:.*]] = arith.muli %{{.*}}, %[[C32]]
// IR: %[[WARP:.*]] = arith.divui %[[THREAD]], %[[C32]]
// IR: %[[LANE:.*]] = arith.remui %[[THREAD]], %[[C32]]
// IR: %[[WARP_M:.*]] = arith.divui %[[WARP]], %[[C2]]
// IR: %[[WARP_ROW:.*]] = arith.muli %[[WARP_M]], %[[C16]]
// IR: %[[WARP_N:.*]] = arith.remui %[[WARP]], %[[C2]]
// IR: %[[WARP_COLUMN:.*]] = arith.muli %[[WARP_N]], %[[C16]]

// Stages of the rhs stand behind those of the lhs: 32 rows of 64 bytes each.
// IR: %[[LHS_SHARED:.*]] = llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<3>
// ASYNC: %[[RHS_SHARED:.*]] = llvm.getelementptr %[[LHS_SHARED]][6144]
// REGISTERS: %[[RHS_SHARED:.*]] = llvm.getelementptr %[[LHS_SHARED]][4096]

// Both ends of copies: 16 bytes of a row, whose place in the row is swizzled by
// the row's number. Rows beyond m are clamped to the last one on the way through
// registers; asynchronous copies read nothing there.
// IR: %[[ROW:.*]] = arith.divui %[[THREAD]], %[[C4]]
// IR: %[[PART:.*]] = arith.remui %[[THREAD]], %[[C4]]
// IR: %[[K:.*]] = arith.muli %[[PART]], %[[C8]]
// IR: %[[PAIR:.*]] = arith.divui %[[ROW]], %[[C2]]
// IR: %[[MASK:.*]] = arith.remui %[[PAIR]], %[[C4]]
// IR: %[[SWIZZLED:.*]] = arith.xori %[[PART]], %[[MASK]]
// IR: %[[PLACE:.*]] = arith.muli %[[SWIZZLED]], %[[C8]]
// IR: %[[IN_ROW:.*]] = arith.addi %[[PLACE]], %{{.*}}
// REGISTERS: %[[LHS_ROW:.*]] = arith.minsi
// ASYNC: %[[LHS_ROW:.*]] = arith.addi %[[ROW0]], %[[ROW]]
// ASYNC: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[LHS_ROW]]
// ASYNC: %[[IS_ROW:.*]] = arith.cmpi sgt, %[[LEFT]], %[[C0]]
// IR: arith.muli %[[LHS_ROW]], %[[C256]]
// IR: %[[LHS_GLOBAL:.*]] = llvm.getelementptr %{{.*}} -> !llvm.ptr<1>, i8
// IR: %[[SHARED_ROW:.*]] = arith.muli %[[ROW]], %[[C32]]
// IR: arith.addi %[[SHARED_ROW]], %[[IN_ROW]]
// IR: %[[LHS_TARGET:.*]] = llvm.getelementptr %[[LHS_SHARED]]
// IR-NOT: arith.minsi
// IR: %[[RHS_GLOBAL:.*]] = llvm.getelementptr %{{.*}} -> !llvm.ptr<1>, i8
// IR: %[[RHS_TARGET:.*]] = llvm.getelementptr %[[RHS_SHARED]]

// Both k blocks of fragments: the second one's 16-byte parts are 2 further, before
// the swizzle.
// IR: %[[ROW:.*]] = arith.remui %[[LANE]], %[[C16]]
// IR: %[[HALF:.*]] = arith.divui %[[LANE]], %[[C16]]
// IR: arith.addi %[[WARP_ROW]], %[[ROW]]
// IR: %[[SWIZZLED:.*]] = arith.xori %[[HALF]], %{{.*}}
// IR: %[[OF_ROW:.*]] = arith.muli %{{.*}}, %[[C64]]
// IR: %[[BYTE:.*]] = arith.muli %[[SWIZZLED]], %[[C16]]
// IR: arith.addi %[[OF_ROW]], %[[BYTE]]
// IR: %[[LHS0:.*]] = llvm.getelementptr %[[LHS_SHARED]]
// IR: %[[SWIZZLED1:.*]] = arith.xori %[[SWIZZLED]], %[[C2]]
// IR: %[[BYTE:.*]] = arith.muli %[[SWIZZLED1]], %[[C16]]
// IR: arith.addi %[[OF_ROW]], %[[BYTE]]
// IR: %[[LHS1:.*]] = llvm.getelementptr %[[LHS_SHARED]]
// IR: arith.addi %[[WARP_COLUMN]],
// IR: %[[SWIZZLED:.*]] = arith.xori
// IR: %[[RHS0:.*]] = llvm.getelementptr %[[RHS_SHARED]]
// IR: arith.xori %[[SWIZZLED]], %[[C2]]
// IR: %[[RHS1:.*]] = llvm.getelementptr %[[RHS_SHARED]]

// The first two of three stages are copied ahead. A copy beyond k reads no byte,
// without a branch.
// ASYNC: scf.for %[[NUMBER:.*]] = %[[C0]] to %[[C2]] step %[[C1]] {
// ASYNC: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %[[C32]]
// ASYNC: %[[INSIDE:.*]] = arith.cmpi slt, %[[OFFSET]], %[[C256]]
// ASYNC-NOT: scf.if
// ASYNC: llvm.getelementptr %[[LHS_GLOBAL]]
// ASYNC: arith.muli %[[NUMBER]], %[[STAGE]]
// ASYNC: %[[TARGET:.*]] = llvm.getelementptr %[[LHS_TARGET]]
// ASYNC: %[[IS_READ:.*]] = arith.andi %[[INSIDE]], %[[IS_ROW]] : i1
// ASYNC-NEXT: %[[SIZE:.*]] = arith.select %[[IS_READ]], %[[BYTES]], %[[FIRST]] : i32
// ASYNC-NEXT: nvvm.cp.async.shared.global %[[TARGET]], %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]]
// ASYNC: llvm.getelementptr %[[RHS_GLOBAL]]
// ASYNC-NEXT: %[[TARGET:.*]] = llvm.getelementptr %[[RHS_TARGET]]
// ASYNC-NEXT: %[[SIZE:.*]] = arith.select %[[INSIDE]], %[[BYTES]], %[[FIRST]] : i32
// ASYNC-NEXT: nvvm.cp.async.shared.global %[[TARGET]], %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]]
// ASYNC-NEXT: nvvm.cp.async.commit.group
// ASYNC-NEXT: }
// ASYNC-NEXT: nvvm.cp.async.wait.group 1
// ASYNC-NEXT: gpu.barrier

// By registers: the first step is stored, and everybody waits for it.
// REGISTERS: %[[VECTOR:.*]] = llvm.load %[[LHS_GLOBAL]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
// REGISTERS-NEXT: llvm.store %[[VECTOR]], %[[LHS_TARGET]] {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// REGISTERS-NEXT: %[[VECTOR:.*]] = llvm.load %[[RHS_GLOBAL]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
// REGISTERS-NEXT: llvm.store %[[VECTOR]], %[[RHS_TARGET]] {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// REGISTERS-NEXT: gpu.barrier

// Fragments of the first k block, before the loop, which carries them.
// IR-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[LHS0]] {{{.*}}<b16>{{.*}}<row>, num = 4
// IR-NEXT: %[[A0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// IR-NEXT: %[[A1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// IR-NEXT: %[[A2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// IR-NEXT: %[[A3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// IR-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[RHS0]] {{{.*}}<b16>{{.*}}<row>, num = 4
// IR-NEXT: %[[B0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// IR-NEXT: %[[B1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// IR-NEXT: %[[B2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// IR-NEXT: %[[B3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// ASYNC-NEXT: %[[SUMS:.*]]:18 = scf.for unsigned %[[STEP:.*]] = %[[FIRST]] to %[[END]] step %[[DEPTH]]
// ASYNC-SAME: iter_args(%[[S0:[^ ]+]] = %[[ZERO]], %[[S1:[^ ]+]] = %[[ZERO]], %[[S2:[^ ]+]] = %[[ZERO]], %[[S3:[^ ]+]] = %[[ZERO]], %[[S4:[^ ]+]] = %[[ZERO]], %[[S5:[^ ]+]] = %[[ZERO]], %[[S6:[^ ]+]] = %[[ZERO]], %[[S7:[^ ]+]] = %[[ZERO]],
// ASYNC-SAME: %[[L0:[^ ]+]] = %[[A0]], %[[L1:[^ ]+]] = %[[A1]], %[[L2:[^ ]+]] = %[[A2]], %[[L3:[^ ]+]] = %[[A3]], %[[R0:[^ ]+]] = %[[B0]], %[[R1:[^ ]+]] = %[[B1]], %[[R2:[^ ]+]] = %[[B2]], %[[R3:[^ ]+]] = %[[B3]],
// ASYNC-SAME: %[[READ:[^ ]+]] = %[[FIRST]], %[[WRITE:[^ ]+]] = %[[TWO]])
// REGISTERS-NEXT: %[[SUMS:.*]]:17 = scf.for unsigned %[[STEP:.*]] = %[[FIRST]] to %[[END]] step %[[DEPTH]]
// REGISTERS-SAME: iter_args(%[[S0:[^ ]+]] = %[[ZERO]], %[[S1:[^ ]+]] = %[[ZERO]], %[[S2:[^ ]+]] = %[[ZERO]], %[[S3:[^ ]+]] = %[[ZERO]], %[[S4:[^ ]+]] = %[[ZERO]], %[[S5:[^ ]+]] = %[[ZERO]], %[[S6:[^ ]+]] = %[[ZERO]], %[[S7:[^ ]+]] = %[[ZERO]],
// REGISTERS-SAME: %[[L0:[^ ]+]] = %[[A0]], %[[L1:[^ ]+]] = %[[A1]], %[[L2:[^ ]+]] = %[[A2]], %[[L3:[^ ]+]] = %[[A3]], %[[R0:[^ ]+]] = %[[B0]], %[[R1:[^ ]+]] = %[[B1]], %[[R2:[^ ]+]] = %[[B2]], %[[R3:[^ ]+]] = %[[B3]],
// REGISTERS-SAME: %[[READ:[^ ]+]] = %[[FIRST]])
// IR-NEXT: %[[AFTER:.*]] = arith.addi %[[READ]], %[[ONE]]
// ASYNC-NEXT: %[[WRAPS:.*]] = arith.cmpi eq, %[[AFTER]], %[[THREE]]
// REGISTERS-NEXT: %[[WRAPS:.*]] = arith.cmpi eq, %[[AFTER]], %[[TWO]]
// IR-NEXT: %[[NEXT:.*]] = arith.select %[[WRAPS]], %[[FIRST]], %[[AFTER]]

// By registers: the next step is loaded first.
// REGISTERS: %[[LOADED:.*]]:2 = scf.if %{{.*}} -> (vector<8xf16>, vector<8xf16>) {
// REGISTERS: llvm.getelementptr %[[LHS_GLOBAL]]
// REGISTERS: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
// REGISTERS: llvm.getelementptr %[[RHS_GLOBAL]]
// REGISTERS: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
// REGISTERS-NOT: llvm.store
// REGISTERS-NOT: gpu.barrier

// Fragments of the second k block, of the stage that is read.
// IR: %[[OFFSET:.*]] = arith.muli %{{.*}}, %[[STAGE]]
// IR: %[[FROM:.*]] = llvm.getelementptr %[[LHS1]]
// IR-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// IR-NEXT: %[[C0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// IR-NEXT: %[[C1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// IR-NEXT: %[[C2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// IR-NEXT: %[[C3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// IR-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[RHS1]]
// IR-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// IR-NEXT: %[[D0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// IR-NEXT: %[[D1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// IR-NEXT: %[[D2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// IR-NEXT: %[[D3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]

// Then the copies of two steps ahead, and the products of the first k block.
// ASYNC: %[[TARGET_STAGE:.*]] = arith.index_castui %[[WRITE]]
// ASYNC: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[C256]]
// ASYNC: arith.muli %[[TARGET_STAGE]], %[[STAGE]]
// ASYNC: %[[TARGET:.*]] = llvm.getelementptr %[[LHS_TARGET]]
// ASYNC: %[[IS_READ:.*]] = arith.andi %[[INSIDE]], %[[IS_ROW]] : i1
// ASYNC-NEXT: %[[SIZE:.*]] = arith.select %[[IS_READ]], %[[BYTES]], %[[FIRST]] : i32
// ASYNC-NEXT: nvvm.cp.async.shared.global %[[TARGET]], %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]]
// ASYNC: %[[TARGET:.*]] = llvm.getelementptr %[[RHS_TARGET]]
// ASYNC-NEXT: %[[SIZE:.*]] = arith.select %[[INSIDE]], %[[BYTES]], %[[FIRST]] : i32
// ASYNC-NEXT: nvvm.cp.async.shared.global %[[TARGET]], %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]]
// ASYNC-NEXT: nvvm.cp.async.commit.group
// ASYNC-NEXT: %[[L0_:.*]] = llvm.bitcast %[[L0]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[L1_:.*]] = llvm.bitcast %[[L1]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[L2_:.*]] = llvm.bitcast %[[L2]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[L3_:.*]] = llvm.bitcast %[[L3]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[R0_:.*]] = llvm.bitcast %[[R0]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[R1_:.*]] = llvm.bitcast %[[R1]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[P0:.*]] = nvvm.mma.sync A[%[[L0_]], %[[L1_]], %[[L2_]], %[[L3_]]] B[%[[R0_]], %[[R1_]]] C[%[[S0]], %[[S1]], %[[S2]], %[[S3]]] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
// ASYNC-NEXT: %[[T0:.*]] = llvm.extractvalue %[[P0]][0]
// ASYNC-NEXT: %[[T1:.*]] = llvm.extractvalue %[[P0]][1]
// ASYNC-NEXT: %[[T2:.*]] = llvm.extractvalue %[[P0]][2]
// ASYNC-NEXT: %[[T3:.*]] = llvm.extractvalue %[[P0]][3]
// ASYNC-NEXT: %[[R2_:.*]] = llvm.bitcast %[[R2]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[R3_:.*]] = llvm.bitcast %[[R3]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[P1:.*]] = nvvm.mma.sync A[%[[L0_]], %[[L1_]], %[[L2_]], %[[L3_]]] B[%[[R2_]], %[[R3_]]] C[%[[S4]], %[[S5]], %[[S6]], %[[S7]]] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}

// The one barrier of a step stands before its last products: behind it, the first
// fragments of the next step are loaded, from the stage that follows.
// ASYNC-NOT: nvvm.mma.sync
// ASYNC: nvvm.cp.async.wait.group 1
// ASYNC-NEXT: gpu.barrier
// ASYNC-NEXT: %[[NEXT_STAGE:.*]] = arith.index_castui %[[NEXT]]
// ASYNC-NEXT: arith.muli %[[NEXT_STAGE]], %[[STAGE]]
// ASYNC: %[[FROM:.*]] = llvm.getelementptr %[[LHS0]]
// ASYNC-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// ASYNC-NEXT: %[[E0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// ASYNC-NEXT: %[[E1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// ASYNC-NEXT: %[[E2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// ASYNC-NEXT: %[[E3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// ASYNC-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[RHS0]]
// ASYNC-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// ASYNC-NEXT: %[[F0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// ASYNC-NEXT: %[[F1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// ASYNC-NEXT: %[[F2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// ASYNC-NEXT: %[[F3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// ASYNC-NEXT: %[[C0_:.*]] = llvm.bitcast %[[C0]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[C1_:.*]] = llvm.bitcast %[[C1]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[C2_:.*]] = llvm.bitcast %[[C2]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[C3_:.*]] = llvm.bitcast %[[C3]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[D0_:.*]] = llvm.bitcast %[[D0]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[D1_:.*]] = llvm.bitcast %[[D1]] : i32 to vector<2xf16>
// ASYNC-NEXT: %[[P2:.*]] = nvvm.mma.sync A[%[[C0_]], %[[C1_]], %[[C2_]], %[[C3_]]] B[%[[D0_]], %[[D1_]]] C[%[[T0]], %[[T1]], %[[T2]], %[[T3]]] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
// ASYNC: nvvm.mma.sync A[%[[C0_]], %[[C1_]], %[[C2_]], %[[C3_]]]
// ASYNC-NOT: nvvm.mma.sync
// ASYNC: scf.yield {{.*}}, %[[E0]], %[[E1]], %[[E2]], %[[E3]], %[[F0]], %[[F1]], %[[F2]], %[[F3]], %[[NEXT]], %{{.*}} : f32

// By registers: products of 8 elements of k, two for a fragment; then the next step
// is stored, and the barrier.
// REGISTERS-COUNT-4: nvvm.mma.sync A[%{{.*}}, %{{.*}}] B[%{{.*}}] C[%{{.*}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 8>}
// REGISTERS-NOT: nvvm.mma.sync
// REGISTERS: %[[TARGET:.*]] = llvm.getelementptr %[[LHS_TARGET]]
// REGISTERS-NEXT: llvm.store %[[LOADED]]#0, %[[TARGET]] {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// REGISTERS-NEXT: %[[TARGET:.*]] = llvm.getelementptr %[[RHS_TARGET]]
// REGISTERS-NEXT: llvm.store %[[LOADED]]#1, %[[TARGET]] {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// REGISTERS-NEXT: gpu.barrier
// REGISTERS-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[LHS0]]
// REGISTERS-NEXT: %[[FRAGMENT:.*]] = nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// REGISTERS-NEXT: %[[E0:.*]] = llvm.extractvalue %[[FRAGMENT]][0]
// REGISTERS-NEXT: %[[E1:.*]] = llvm.extractvalue %[[FRAGMENT]][1]
// REGISTERS-NEXT: %[[E2:.*]] = llvm.extractvalue %[[FRAGMENT]][2]
// REGISTERS-NEXT: %[[E3:.*]] = llvm.extractvalue %[[FRAGMENT]][3]
// REGISTERS-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[RHS0]]
// REGISTERS-NEXT: nvvm.ldmatrix %[[FROM]] {{{.*}}<b16>{{.*}}<row>, num = 4
// REGISTERS-COUNT-4: nvvm.mma.sync
// REGISTERS-NOT: nvvm.mma.sync
// REGISTERS: scf.yield {{.*}}, %[[E0]], %[[E1]], %[[E2]], %[[E3]], {{.*}}, %[[NEXT]] : f32

// The epilogue: each warp stages 16 rows of 16 columns and 8 elements more, in the
// memory of the main loop, so no copy may be under way. The bias is loaded before.
// IR: %[[OF_WARP:.*]] = arith.muli %[[WARP]], %{{.*}}
// IR-NEXT: %[[SCRATCH:.*]] = memref.view %[[SHARED]][%[[OF_WARP]]][] : {{.*}} to memref<16x24xf16, #gpu.address_space<workgroup>>
// IR: %[[BIAS:.*]] = vector.load %[[COLUMNS]][%[[COLUMN:.*]]] {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// ASYNC-NEXT: nvvm.cp.async.wait.group 0
// IR-NEXT: gpu.barrier

// Warps whose rows are all inside ask no further. Sums are rounded before they are
// staged, two at once; then vectors of 8 get their bias.
// IR: %[[ALL:.*]] = nvvm.vote.sync all
// IR-NEXT: scf.if %[[ALL]] {
// IR: %[[PAIR:.*]] = vector.from_elements %[[SUMS]]#0, %[[SUMS]]#1 : vector<2xf32>
// IR-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[PAIR]] : vector<2xf32> to vector<2xf16>
// IR-NEXT: vector.store %[[ROUNDED]], %[[SCRATCH]][%[[ROW:.*]], %[[PLACE:.*]]] {alignment = 4 : i64} : {{.*}}, vector<2xf16>
// IR-NEXT: vector.from_elements %[[SUMS]]#2, %[[SUMS]]#3 : vector<2xf32>
// IR-NEXT: arith.truncf
// IR-NEXT: %[[ROW8:.*]] = arith.addi %[[ROW]], %[[C8]]
// IR-NEXT: vector.store %{{.*}}, %[[SCRATCH]][%[[ROW8]], %[[PLACE]]] {alignment = 4 : i64} : {{.*}}, vector<2xf16>
// IR-NEXT: vector.from_elements %[[SUMS]]#4, %[[SUMS]]#5 : vector<2xf32>
// IR-NEXT: arith.truncf
// IR-NEXT: %[[PLACE8:.*]] = arith.addi %[[PLACE]], %[[C8]]
// IR-NEXT: vector.store %{{.*}}, %[[SCRATCH]][%[[ROW]], %[[PLACE8]]] {alignment = 4 : i64} : {{.*}}, vector<2xf16>
// IR-NEXT: vector.from_elements %[[SUMS]]#6, %[[SUMS]]#7 : vector<2xf32>
// IR: vector.store %{{.*}}, %[[SCRATCH]][%[[ROW8]], %[[PLACE8]]] {alignment = 4 : i64} : {{.*}}, vector<2xf16>
// IR-NEXT: nvvm.bar.warp.sync
// IR: %[[VECTOR:.*]] = vector.load %[[SCRATCH]][%{{.*}}, %{{.*}}] {alignment = 16 : i64} : {{.*}}, vector<8xf16>
// IR: %[[WIDE:.*]] = arith.extf %[[VECTOR]]
// IR-NEXT: %[[WIDE_BIAS:.*]] = arith.extf %[[BIAS]]
// IR-NEXT: %[[SUM:.*]] = arith.addf %[[WIDE]], %[[WIDE_BIAS]] : vector<8xf32>
// IR-NEXT: %[[RESULT:.*]] = arith.truncf %[[SUM]] : vector<8xf32> to vector<8xf16>
// IR-NEXT: vector.store %[[RESULT]], %[[OUTPUT]][%{{.*}}, %[[COLUMN]]] {alignment = 16 : i64, tile_height = 32 : i64} : {{.*}}, vector<8xf16>
// IR-NEXT: } else {
// IR: nvvm.bar.warp.sync
// IR: %[[INSIDE:.*]] = arith.cmpi slt
// IR: scf.if %[[INSIDE]] {
// IR-NEXT: vector.store %{{.*}}, %[[OUTPUT]][%{{.*}}, %[[COLUMN]]] {alignment = 16 : i64, tile_height = 32 : i64} : {{.*}}, vector<8xf16>
// IR: gpu.return

// A prologue: 8 bytes of a row of weights have its one scale, which is loaded once.
// They pass the products as bytes, and are multiplied in f32, rounded and stored
// behind them; nothing is copied asynchronously.
// CAST-LABEL: gpu.func @dequantize_0_k0(
// CAST-NOT: nvvm.cp.async
// CAST: memref.load %{{.*}} : memref<128xf16, strided<[1]>>
// CAST-NOT: memref<128xf16
// CAST: %[[VECTOR:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
// CAST-NEXT: llvm.store %[[VECTOR]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CAST-NEXT: %[[BYTES:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<8xi8>
// CAST-NEXT: %[[SCALES:.*]] = vector.broadcast %{{.*}} : f16 to vector<8xf16>
// CAST-NEXT: %[[FLOATS:.*]] = arith.sitofp %[[BYTES]] : vector<8xi8> to vector<8xf32>
// CAST-NEXT: %[[WIDE:.*]] = arith.extf %[[SCALES]] : vector<8xf16> to vector<8xf32>
// CAST-NEXT: %[[SCALED:.*]] = arith.mulf %[[FLOATS]], %[[WIDE]] : vector<8xf32>
// CAST-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[SCALED]] : vector<8xf32> to vector<8xf16>
// CAST-NEXT: llvm.store %[[ROUNDED]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CAST-NEXT: gpu.barrier
// CAST-COUNT-2: nvvm.ldmatrix
// CAST: scf.for unsigned
// CAST: %[[LOADED:.*]]:2 = scf.if %{{.*}} -> (vector<8xf16>, vector<8xi8>)
// CAST-NOT: arith.sitofp
// CAST-COUNT-2: nvvm.mma.sync
// CAST: llvm.store %[[LOADED]]#0, %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CAST: %[[FLOATS:.*]] = arith.sitofp %[[LOADED]]#1 : vector<8xi8> to vector<8xf32>
// CAST-NEXT: %[[SCALED:.*]] = arith.mulf %[[FLOATS]], %[[WIDE]] : vector<8xf32>
// CAST-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[SCALED]] : vector<8xf32> to vector<8xf16>
// CAST-NEXT: llvm.store %[[ROUNDED]], %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CAST-NEXT: gpu.barrier
// CAST-COUNT-2: nvvm.ldmatrix
// CAST-COUNT-2: nvvm.mma.sync
// CAST: gpu.return

// One slice of three: 96, 96 and 64 elements of k, whole steps, whose extent bounds
// copies and steps. Sums are staged and stored as they are, behind the rows of the
// slices before.
// SLICE-LABEL: gpu.func @slice_0_k0(
// SLICE-SAME: %[[A:[^:]*]]: memref<f16>, %[[B:[^:]*]]: memref<f16>, %[[O:[^:]*]]: memref<f32>, %[[SIZE:[^:]*]]: i32)
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
// SLICE-NEXT: memref.reinterpret_cast %[[B]] to offset: [%[[OFFSET]]], sizes: [128, %[[EXTENT]]], strides: [256, 1]
// SLICE-NEXT: %[[ROWS:.*]] = arith.muli %[[NUMBER]], %[[M]]
// SLICE-NEXT: %[[BEHIND:.*]] = arith.muli %[[ROWS]], %[[C128]]
// SLICE-NEXT: %[[SLICES:.*]] = memref.reinterpret_cast %[[O]] to offset: [%[[BEHIND]]], sizes: [%[[M]], 128], strides: [128, 1]
// SLICE: arith.cmpi slt, %{{.*}}, %[[EXTENT]]
// SLICE: nvvm.cp.async.shared.global
// SLICE: %[[END:.*]] = arith.index_castui %[[EXTENT]] : index to i32
// SLICE: %[[SUMS:.*]]:18 = scf.for unsigned %{{.*}} to %[[END]] step
// SLICE: arith.cmpi slt, %{{.*}}, %[[EXTENT]]
// SLICE: nvvm.cp.async.shared.global
// SLICE: memref.view {{.*}} to memref<16x24xf32, #gpu.address_space<workgroup>>
// SLICE: nvvm.cp.async.wait.group 0
// SLICE-NEXT: gpu.barrier
// SLICE: %[[PAIR:.*]] = vector.from_elements %[[SUMS]]#0, %[[SUMS]]#1 : vector<2xf32>
// SLICE-NEXT: vector.store %[[PAIR]], %{{.*}} {alignment = 8 : i64} : {{.*}}, vector<2xf32>
// SLICE: nvvm.bar.warp.sync
// SLICE: vector.store %{{.*}}, %[[SLICES]][%{{.*}}] {alignment = 16 : i64, tile_height = 32 : i64} : {{.*}}, vector<4xf32>
// SLICE: gpu.return

//--- machine.mlir
#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
#column = affine_map<(d0, d1, d2) -> (d1)>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
  ukernel.plan @plan <families = [<#ukernel.mma<warps = [2, 2], stages = 2, access = 16>, axis = 0, tiles = [[64, 64, 32]]>, <#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[16, 16, 32]]>], choices = [], general = 0, unaligned_general = 1>
  func.func @f(%a: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %b: tensor<128x256xf16>, %bias: tensor<128xf16>) -> tensor<?x128xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%m) : tensor<?x128xf16>
    %p = ukernel.workload plan(@plan) ins(%a, %b : tensor<?x256xf16>, tensor<128x256xf16>) init(%zero : f32) extras(%bias : tensor<128xf16>) outs(%e : tensor<?x128xf16>) maps = [#lhs, #rhs, #column, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f16, %y: f16, %s: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } epilogue {
    ^bb0(%s: f32, %v: f16):
      %h = arith.truncf %s : f32 to f16
      %r = arith.addf %h, %v : f16
      ukernel.yield %r : f16
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf16>
    return %p : tensor<?x128xf16>
  }
}

//--- emitted.mlir
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
#column = affine_map<(m, n, k) -> (n)>
#general = #ukernel.family<#ukernel.mma<warps = [1, 1], stages = 2, access = 1>, axis = 0, tiles = [[16, 16, 32]]>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
  ukernel.plan @pipelined <families = [<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[32, 32, 32]]>, #general], choices = [], general = 0, unaligned_general = 1>
  ukernel.plan @staged <families = [<#ukernel.mma<warps = [2, 2], stages = 2, access = 16>, axis = 0, tiles = [[32, 32, 32]]>, #general], choices = [], general = 0, unaligned_general = 1>
  ukernel.plan @sliced <families = [<#ukernel.mma<warps = [2, 2], stages = 3, access = 16>, axis = 0, tiles = [[32, 32, 32]], split = 3>, #general], choices = [], general = 0, unaligned_general = 1>

  func.func @bias(%a: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %b: tensor<128x256xf16>, %bias: tensor<128xf16>) -> tensor<?x128xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%m) : tensor<?x128xf16>
    %p = ukernel.workload plan(@pipelined) ins(%a, %b : tensor<?x256xf16>, tensor<128x256xf16>) init(%zero : f32) extras(%bias : tensor<128xf16>) outs(%e : tensor<?x128xf16>) maps = [#lhs, #rhs, #column, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f16, %y: f16, %s: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } epilogue {
    ^bb0(%s: f32, %v: f16):
      %h = arith.truncf %s : f32 to f16
      %r = arith.addf %h, %v : f16
      ukernel.yield %r : f16
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf16>
    return %p : tensor<?x128xf16>
  }

  func.func @dequantize(%a: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %b: tensor<128x256xi8>, %scale: tensor<128xf16>) -> tensor<?x128xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%m) : tensor<?x128xf32>
    %p = ukernel.workload plan(@staged) ins(%a, %b : tensor<?x256xf16>, tensor<128x256xi8>) inputs(%scale : tensor<128xf16>) init(%zero : f32) outs(%e : tensor<?x128xf32>) maps = [#lhs, #rhs, #column, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f16, %y: i8, %v: f16, %s: f32):
      %f = arith.sitofp %y : i8 to f16
      %g = arith.mulf %f, %v : f16
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %g : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf32>
    return %p : tensor<?x128xf32>
  }

  func.func @slice(%a: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %b: tensor<128x256xf16>) -> tensor<?x128xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%m) : tensor<?x128xf32>
    %p = ukernel.workload plan(@sliced) ins(%a, %b : tensor<?x256xf16>, tensor<128x256xf16>) init(%zero : f32) outs(%e : tensor<?x128xf32>) maps = [#lhs, #rhs, #out] ranges = [#ukernel.range<1 to 512>, #ukernel.range<128 to 128>, #ukernel.range<256 to 256>] contract {
    ^bb0(%x: f16, %y: f16, %s: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %q = arith.mulf %xe, %ye : f32
      %t = arith.addf %s, %q : f32
      ukernel.yield %t : f32
    } {ukernel.extents = [[1, "T"], unit, unit]} -> tensor<?x128xf32>
    return %p : tensor<?x128xf32>
  }
}
