// RUN: ftuner-opt %s --convert-ukernel-to-llvm --canonicalize -split-input-file -verify-diagnostics | FileCheck %s
// RUN: ftuner-opt %s --ftuner-lower-host -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LLVM
// RUN: ftuner-opt %s --convert-ukernel-to-llvm=module-symbol=model_module --canonicalize -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=MODULE

// Kernels point to their module where it has a symbol.
// MODULE-DAG:   llvm.mlir.global external @model_module() {{.*}} : !llvm.array<0 x i8>
// MODULE-LABEL: llvm.mlir.global internal @ftrt_kernel_k()
// MODULE-DAG:     %[[NAME:.*]] = llvm.mlir.addressof @ftrt_string
// MODULE-DAG:     %[[MODULE:.*]] = llvm.mlir.addressof @model_module
// MODULE:         llvm.insertvalue %[[NAME]], %{{.*}}[0]
// MODULE:         llvm.insertvalue %[[MODULE]], %{{.*}}[1]

// CHECK-DAG:   llvm.mlir.global internal @ftrt_kernel_k() {{.*}} : !llvm.struct<(ptr, ptr, ptr)>
// CHECK-DAG:   llvm.mlir.global internal constant @{{.*}}("rows differ\00")
// CHECK-DAG:   llvm.func @ftrt_launch(!llvm.ptr, i32, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
// CHECK-DAG:   llvm.func @ftrt_fail(!llvm.ptr) -> i32

// Pointers of arguments and results, sizes, scalars, workspace, stream.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[M:.*]]: i64, %[[N:.*]]: i64, %[[FLAG:.*]]: i8, %[[S:.*]]: f32, %{{.*}}: !llvm.ptr, %[[STREAM:[^:]*]]: !llvm.ptr) -> i32
// CHECK-SAME:    ukernel.name = "f"
// CHECK:         %[[KERNEL:.*]] = llvm.mlir.addressof @ftrt_kernel_k
// A negative size fails.
// CHECK:         arith.cmpi slt, %[[M]], %c0_i64
// CHECK:         arith.cmpi slt, %[[N]], %c0_i64
// The sizes of the result.
// CHECK:         %[[CODE:.*]] = call @f_result_sizes(%[[M]], %[[N]], %[[FLAG]], %[[S]], %{{.*}}) : (i64, i64, i8, f32, !llvm.ptr) -> i32
// CHECK:         arith.cmpi ne, %[[CODE]], %c0_i32
// The assertion fails the call.
// CHECK:         cf.cond_br
// What must fit 32 bits, and no launch without blocks.
// CHECK:         arith.cmpi ugt, %{{.*}}, %c4294967295_i64
// CHECK:         arith.cmpi ugt, %{{.*}}, %c2147483647_i64
// CHECK:         cf.cond_br
// CHECK:         %[[LAUNCH:.*]] = llvm.call @ftrt_launch(%[[KERNEL]], %{{.*}}, %c128_i32, %c4096_i32, %[[STREAM]], %{{.*}})
// CHECK:         arith.cmpi ne, %[[LAUNCH]], %c0_i32
// CHECK:         llvm.call @ftrt_fail
// CHECK-LABEL: func.func @f_result_sizes(
// CHECK-SAME:    %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i8, %{{.*}}: f32, %[[OUT:.*]]: !llvm.ptr) -> i32
// CHECK:         llvm.store %{{.*}}, %[[OUT]] : i64, !llvm.ptr
// CHECK-LABEL: func.func @f_workspace_size(
// CHECK-SAME:    %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i8, %{{.*}}: f32) -> i64
// CHECK-NOT:   gpu.module
// CHECK-NOT:   ukernel.launch

// LLVM-LABEL: llvm.func @f(
// LLVM-SAME:    !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i8, %{{.*}}: f32, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// LLVM-NOT:   unrealized_conversion_cast
// LLVM-NOT:   abort
// LLVM:       llvm.func @f_result_sizes(
// LLVM:       llvm.func @f_workspace_size(
// LLVM-NOT:   unrealized_conversion_cast
func.func @f(%x: memref<?x?xf32>, %flag: i1, %s: f32, %out: memref<?x?xf32>, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = (tensor<?x?xf32>, i1, f32) -> tensor<?x?xf32>,
                ukernel.name = "f", ukernel.result_sizes = @f_result_sizes,
                ukernel.workspace_size = @f_workspace_size} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.assert %flag, "rows differ"
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %row = memref.subview %x[%c1, 0] [1, %n] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
  ukernel.launch @k::@k blocks(%m) args(%row, %out, %s : memref<1x?xf32, strided<[?, 1], offset: ?>>, memref<?x?xf32>, f32) sizes(%n) strides(%n) parts(%m)
  return
}
func.func private @f_result_sizes(%m: index, %n: index, %flag: i1, %s: f32) -> (index, index) {
  return %m, %n : index, index
}
func.func private @f_workspace_size(%m: index, %n: index, %flag: i1, %s: f32) -> index {
  return %m : index
}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 128, shared_memory_bytes = 4096, alignment = 4,
    parameters = [{kind = "pointer"}, {kind = "pointer"}, {kind = "size"},
                  {kind = "stride"}, {kind = "part"}, {kind = "scalar"}]>} {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

// Two dynamic sizes in one group, which must keep the number of elements.
// CHECK-LABEL: func.func @expand(
// CHECK:         %[[BS:[0-9]+]] = arith.muli %{{[0-9]+}}, %{{[0-9]+}} : index
// CHECK-NEXT:    %[[WHOLE:.*]] = memref.dim
// CHECK-NEXT:    arith.cmpi ne, %[[BS]], %[[WHOLE]] : index
// CHECK:         memref.reinterpret_cast
// CHECK:         llvm.call @ftrt_fail
// LLVM-LABEL:  llvm.func @expand(
func.func @expand(%x: memref<?x8xf32>, %b: index, %s: index, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = (tensor<?x8xf32>, index, index) -> (),
                ukernel.result_sizes = @expand_result_sizes,
                ukernel.workspace_size = @expand_workspace_size} {
  %e = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 8] : memref<?x8xf32> into memref<?x?x8xf32>
  ukernel.launch @k::@k blocks(%b) args(%e : memref<?x?x8xf32>)
  return
}
func.func private @expand_result_sizes(%m: index, %b: index, %s: index) {
  return
}
func.func private @expand_workspace_size(%m: index, %b: index, %s: index) -> index {
  return %m : index
}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 128, shared_memory_bytes = 0, alignment = 4,
    parameters = [{kind = "pointer"}]>} {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

// The runtime encodes a tensor map from what goes to the kernel, and its error is
// the function's.
// bf16, three dimensions, a box of 64 x 8 x 1, 128 bytes, 256 bytes.
// CHECK-LABEL: llvm.mlir.global internal constant @ftrt_tensor_map_k_in0_map() {addr_space = 0 : i32} : !llvm.struct<(ptr, ptr, i32, i32, i32, i32, i32, i32, i32, i32, i32)>
// CHECK-DAG:     %[[TYPE:.*]] = llvm.mlir.constant(9 : i32)
// CHECK-DAG:     %[[C3:.*]] = llvm.mlir.constant(3 : i32)
// CHECK-DAG:     %[[C64:.*]] = llvm.mlir.constant(64 : i32)
// CHECK-DAG:     %[[C8:.*]] = llvm.mlir.constant(8 : i32)
// CHECK-DAG:     %[[C1:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         llvm.insertvalue %[[TYPE]], %{{.*}}[2]
// CHECK-NEXT:    llvm.insertvalue %[[C3]], %{{.*}}[3]
// CHECK-NEXT:    llvm.insertvalue %[[C64]], %{{.*}}[4]
// CHECK-NEXT:    llvm.insertvalue %[[C8]], %{{.*}}[5]
// CHECK-NEXT:    llvm.insertvalue %[[C1]], %{{.*}}[6]
// CHECK:         llvm.insertvalue %[[C3]], %{{.*}}[9]
// CHECK-NEXT:    llvm.insertvalue %[[C3]], %{{.*}}[10]
// CHECK-LABEL: func.func @map(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %[[STREAM:[^:]*]]: !llvm.ptr) -> i32
// CHECK:         %[[KIND:.*]] = llvm.mlir.addressof @ftrt_tensor_map_k_in0_map
// CHECK:         %[[PARAMETERS:.*]] = llvm.alloca %c5_i64 x !llvm.ptr
// CHECK:         %[[MAP:.*]] = llvm.alloca %c128_i64 x i8 {alignment = 64 : i64}
// CHECK-NEXT:    %[[STRIDES:.*]] = llvm.alloca %c2_i64 x i64
// CHECK-NEXT:    %[[SIZES:.*]] = llvm.alloca %c3_i64 x i64
// CHECK:         %[[BASE:.*]] = llvm.inttoptr
// CHECK:         llvm.store %c64_i64, %[[SIZES]]
// CHECK:         %[[CODE:.*]] = llvm.call @ftrt_tensor_map_encode(%[[KIND]], %[[BASE]], %[[SIZES]], %[[STRIDES]], %[[STREAM]], %[[MAP]])
// CHECK-NEXT:    %[[FAILED:.*]] = arith.cmpi ne, %[[CODE]], %c0_i32
// CHECK-NEXT:    cf.cond_br %[[FAILED]], ^[[FAIL:[a-z0-9]+]], ^
// CHECK:         %[[FOURTH:.*]] = llvm.getelementptr %[[PARAMETERS]][3]
// CHECK-NEXT:    llvm.store %[[MAP]], %[[FOURTH]]
// CHECK:         llvm.call @ftrt_launch(
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    return %[[CODE]] : i32
// LLVM-LABEL:  llvm.func @map(
func.func @map(%x: memref<?x?x64xbf16>, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = (tensor<?x?x64xbf16>) -> (),
                ukernel.result_sizes = @map_result_sizes,
                ukernel.workspace_size = @map_workspace_size} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = memref.dim %x, %c0 : memref<?x?x64xbf16>
  %m = memref.dim %x, %c1 : memref<?x?x64xbf16>
  %stride = arith.muli %m, %c8 : index
  ukernel.launch @k::@k blocks(%m) args(%x : memref<?x?x64xbf16>) sizes(%m) strides(%stride) parts(%b)
  return
}
func.func private @map_result_sizes(%b: index, %m: index) {
  return
}
func.func private @map_workspace_size(%b: index, %m: index) -> index {
  return %m : index
}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 128, shared_memory_bytes = 0, alignment = 16,
    parameters = [{kind = "pointer", name = "in0", type = bf16}, {kind = "size", name = "m"},
                  {kind = "stride", name = "in0_stride0"},
                  {kind = "tensor_map", name = "in0_map", type = bf16, map = #ukernel.tensor_map<
                     pointer = "in0", sizes = [64, "m", 3], strides = [64, "in0_stride0"],
                     box = [64, 8, 1], swizzle_bytes = 128, l2_promotion_bytes = 256>},
                  {kind = "part"}]>} {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

func.func @unknown(%n: index, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = (index) -> (),
                ukernel.result_sizes = @unknown_result_sizes,
                ukernel.workspace_size = @unknown_workspace_size} {
  // expected-error @below {{expected the kernel of a gpu.module with 'ukernel.entry', but got @k::@k}}
  ukernel.launch @k::@k blocks(%n) args()
  return
}
func.func private @unknown_result_sizes(%n: index) {
  return
}
func.func private @unknown_workspace_size(%n: index) -> index {
  return %n : index
}
gpu.module @k {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

func.func @count(%n: index, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = (index) -> (),
                ukernel.result_sizes = @count_result_sizes,
                ukernel.workspace_size = @count_workspace_size} {
  // expected-error @below {{expected 1 sizes for the kernel's parameters, but got 2}}
  ukernel.launch @k::@k blocks(%n) args() sizes(%n, %n)
  return
}
func.func private @count_result_sizes(%n: index) {
  return
}
func.func private @count_workspace_size(%n: index) -> index {
  return %n : index
}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 128, shared_memory_bytes = 0, alignment = 4,
    parameters = [{kind = "size"}]>} {
  gpu.func @k() kernel {
    gpu.return
  }
}

// -----

// expected-error @below {{expected 'ukernel.result_sizes' to name a function of the argument's sizes and scalars}}
func.func @alone(%n: index, %ws: memref<?xi8>) attributes {ukernel.abi_type = (index) -> ()} {
  return
}

// -----

// What others define stays as it is.
// CHECK: func.func private @external(i32) -> i32
// LLVM: llvm.func @external(i32) -> i32
func.func private @external(i32) -> i32
