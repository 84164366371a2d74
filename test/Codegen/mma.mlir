// Kernels of the path for tensor cores by single warps: fragments of a k block
// are loaded before the products of the one before it, across the end of an
// iteration too, whose one barrier stands before its last products; copies are
// sized, without a branch; sums that are rounded first are staged in 16 bits,
// and what columns share is read once.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=a100 -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: ftuner-translate %s --ftuner-to-ptx --device=t4 -o %t.t4.ptx
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
