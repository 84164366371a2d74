// RUN: ftuner-opt %s --pass-pipeline="builtin.module(gpu.module(ukernel-pass-tensor-maps))" | FileCheck %s

#map = #ukernel.tensor_map<pointer = "lhs", sizes = ["k"], strides = [], box = [64], swizzle_bytes = 0, l2_promotion_bytes = 0>

// CHECK-LABEL: gpu.module @k
// CHECK: llvm.func @k(%{{.*}}: !llvm.ptr, %{{.*}}: i32, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// A helper of the kernel takes what it is given.
// CHECK: llvm.func internal @helper(%{{.*}}: !llvm.ptr, %{{.*}}: i32, %{{.*}}: !llvm.ptr)
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 128, shared_memory_bytes = 0, alignment = 16,
    parameters = [{kind = "pointer", name = "lhs", type = f16}, {kind = "size", name = "k"},
                  {kind = "tensor_map", name = "lhs_map", type = f16, map = #map}]>} {
  llvm.func @k(%lhs: !llvm.ptr, %k: i32, %map: !llvm.ptr) attributes {nvvm.kernel} {
    llvm.return
  }
  llvm.func internal @helper(%lhs: !llvm.ptr, %k: i32, %map: !llvm.ptr) {
    llvm.return
  }
}

// CHECK-LABEL: gpu.module @without
// CHECK: llvm.func @without(%{{.*}}: !llvm.ptr)
gpu.module @without {
  llvm.func @without(%map: !llvm.ptr) attributes {nvvm.kernel} {
    llvm.return
  }
}
