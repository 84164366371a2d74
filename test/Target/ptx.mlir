// Kernels are translated apart and joined: one header, one declaration of the
// dynamic shared memory, symbols that several kernels use renamed.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 -o %t.mlir
// RUN: ftuner-translate %t.mlir --ftuner-to-ptx -o %t.ptx
// RUN: FileCheck %s < %t.ptx
// RUN: FileCheck %s --check-prefix=ONCE < %t.ptx

// The number of threads that translate does not change the result.
// RUN: taskset -c 0 ftuner-translate %t.mlir --ftuner-to-ptx -o %t.one.ptx
// RUN: cmp %t.ptx %t.one.ptx

// CHECK: .version 8.0
// CHECK: .target sm_90
// CHECK: .extern .shared .align 16 .b8 [[SHARED:[a-z_]+]][];
// CHECK: .global .align 4 .b8 first_table[
// CHECK: .visible .entry first(
// CHECK: .maxntid 64
// CHECK: [[SHARED]]
// CHECK: .global .align 4 .b8 second_table[
// CHECK: .visible .entry second(
// CHECK: .maxntid 32
// CHECK: [[SHARED]]

// ONCE-COUNT-1: .version
// ONCE-NOT:     .version
// ONCE-NOT:     .extern .func

gpu.module @first attributes {ukernel.entry = #ukernel.entry<threads = 64, shared_memory_bytes = 256, alignment = 4, parameters = []>} {
  llvm.mlir.global internal @shared() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @table(dense<[1.0, 2.5, 3.0, 7.0]> : tensor<4xf32>) {addr_space = 1 : i32} : !llvm.array<4 x f32>
  llvm.func @first(%out: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %id = nvvm.read.ptx.sreg.tid.x : i32
    %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %table = llvm.mlir.addressof @table : !llvm.ptr<1>
    %from = llvm.getelementptr %table[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %from : !llvm.ptr<1> -> f32
    %slot = llvm.getelementptr %s[%id] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %slot : f32, !llvm.ptr<3>
    nvvm.barrier0
    %w = llvm.load %s : !llvm.ptr<3> -> f32
    llvm.store %w, %out : f32, !llvm.ptr<1>
    llvm.return
  }
}
// Without launch bounds of its own: the descriptor's become explicit.
gpu.module @second attributes {ukernel.entry = #ukernel.entry<threads = 32, shared_memory_bytes = 256, alignment = 4, parameters = []>} {
  llvm.mlir.global internal @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.mlir.global internal constant @table(dense<[4.0, 5.0]> : tensor<2xf32>) {addr_space = 1 : i32} : !llvm.array<2 x f32>
  llvm.func @second(%out: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %id = nvvm.read.ptx.sreg.tid.x : i32
    %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %table = llvm.mlir.addressof @table : !llvm.ptr<1>
    %from = llvm.getelementptr %table[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %from : !llvm.ptr<1> -> f32
    %slot = llvm.getelementptr %s[%id] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %slot : f32, !llvm.ptr<3>
    nvvm.barrier0
    %w = llvm.load %s : !llvm.ptr<3> -> f32
    llvm.store %w, %out : f32, !llvm.ptr<1>
    llvm.return
  }
}
