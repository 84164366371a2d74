// RUN: ftuner-opt %s --convert-ukernel-to-llvm --canonicalize | FileCheck %s
// RUN: ftuner-opt %s --convert-ukernel-to-llvm=module-symbol=model_module --canonicalize | FileCheck %s --check-prefix=MODULE
// RUN: ftuner-opt %s --ftuner-lower-host | FileCheck %s --check-prefix=LLVM

// The runtime tells which image is taken; its failures are the function's.
// CHECK-NOT:   extern_weak
// CHECK-DAG:   llvm.func @ftrt_image_is_exact(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[STREAM:[^:]*]]: !llvm.ptr) -> i32
// CHECK-DAG:     %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK-DAG:     %[[PLACE:.*]] = llvm.alloca %{{.*}} x i32
// CHECK:         %[[CODE:.*]] = llvm.call @ftrt_image_is_exact(%[[NONE]], %[[STREAM]], %[[PLACE]])
// CHECK:         %[[BAD:.*]] = arith.cmpi ne, %[[CODE]], %c0_i32
// CHECK:         cf.cond_br %[[BAD]], ^[[AWAY:.*]], ^
// CHECK:         %[[ANSWER:.*]] = llvm.load %[[PLACE]]
// CHECK:         arith.cmpi {{ne|eq}}, %[[ANSWER]], %c0_i32
// CHECK:       ^[[AWAY]]:
// CHECK:         return %[[CODE]] : i32

// Of a library, the module; runtimes without the function are told from others.
// MODULE-DAG:   llvm.func extern_weak @ftrt_image_is_exact(
// MODULE-DAG:   "expected a libftrt.so.1 with the function 'ftrt_image_is_exact', but got an older one: use that of the FTuner that compiled the library, or a newer one\00"
// MODULE-LABEL: func.func @f(
// MODULE-DAG:     %[[FUNCTION:.*]] = llvm.mlir.addressof @ftrt_image_is_exact
// MODULE-DAG:     %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// MODULE-DAG:     %[[MODULE:.*]] = llvm.mlir.addressof @model_module
// MODULE:         %[[MISSING:.*]] = llvm.icmp "eq" %[[FUNCTION]], %[[NULL]]
// MODULE:         cf.cond_br %[[MISSING]]
// MODULE:         llvm.call @ftrt_image_is_exact(%[[MODULE]],

// LLVM-LABEL: llvm.func @f(
// LLVM:         llvm.call @ftrt_image_is_exact(
// LLVM-NOT:   ukernel.exact_image
func.func @f(%out: memref<4xf32>, %ws: memref<?xi8>)
    attributes {ukernel.abi_type = () -> tensor<4xf32>, ukernel.name = "f",
                ukernel.result_sizes = @f_result_sizes, ukernel.workspace_size = @f_workspace_size} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %exact = ukernel.exact_image
  %blocks = arith.select %exact, %c1, %c2 : index
  ukernel.launch @k::@k blocks(%blocks) args(%out : memref<4xf32>)
  return
}
func.func private @f_result_sizes() -> index {
  %c4 = arith.constant 4 : index
  return %c4 : index
}
func.func private @f_workspace_size() -> index {
  %c0 = arith.constant 0 : index
  return %c0 : index
}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<threads = 128, shared_memory_bytes = 4096, alignment = 4, parameters = [
    {access = "write", kind = "pointer", name = "out", type = f32}]>} {
  llvm.func @k(%out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    llvm.return
  }
}
