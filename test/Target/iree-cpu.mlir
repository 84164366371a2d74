// For IREE's CPU: a function for each workload, which calls that of a kernel.
// RUN: ftuner-translate %s --ftuner-to-iree --iree-target=llvm-cpu --device=h200 --paths=simt,mma -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=ukernel --implicit-check-not=ptx
// RUN: ftuner-opt %t.mlir --allow-unregistered-dialect -o %t.again.mlir
// RUN: cmp %t.mlir %t.again.mlir

// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h200 --iree-target=llvm-cpu 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: option --iree-target has no effect without --ftuner-to-iree

// RUN: not ftuner-translate %s --ftuner-to-ptx --device=h200 --paths=simt,mma --iree-any-address 2>&1 | FileCheck %s --check-prefix=ADDRESS
// ADDRESS: error: option --iree-any-address has no effect without --ftuner-to-iree

// Kernels for tensors at any address: one for each workload here.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --paths=simt,mma --iree-any-address | FileCheck %s --check-prefix=ANYWHERE
// ANYWHERE: "hal.executable.export"(){{.*}}sym_name = "product_0_{{[0-9a-f]+}}_k
// ANYWHERE: "hal.executable.export"(){{.*}}sym_name = "weights_0_{{[0-9a-f]+}}_k
// ANYWHERE-NOT: "hal.executable.export"

// CHECK: "stream.executable"() <{sym_name = "ftuner_kernels", sym_visibility = "private"}> ({
// CHECK-NEXT: "stream.executable.export"() <{function_ref = @[[PNAME:product_0_[0-9a-f]+]], sym_name = "[[PNAME]]", sym_visibility = "public"}> ({
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[BLOCKS:.*]]: index):
// CHECK: %[[ANY:.*]] = arith.minui %[[BLOCKS]], %{{.*}} : index
// CHECK-NEXT: "stream.return"(%[[ANY]], %[[ANY]], %[[ANY]]) : (index, index, index) -> ()
// CHECK: "stream.executable.export"() <{function_ref = @[[WNAME:weights_0_[0-9a-f]+]]
// CHECK-NOT: "stream.executable.export"

// Blocks, threads, shared memory, alignment, tensors and constants; the tensors
// with their offsets; the constants.
// CHECK: func.func private @ftuner_launch_[[PNAME]]_k[[K:[0-9]+]](i64, i64, i64, i64, i64, i64, memref<i8>, i64, memref<i8>, i64, memref<i8>, i64, memref<i8>, i64, i32, i32{{(, i32)?}}) attributes {llvm.bareptr = true}
// CHECK: func.func @[[PNAME]](%[[A:.*]]: !stream.binding, %{{.*}}: !stream.binding, %{{.*}}: !stream.binding, %{{.*}}: !stream.binding, %{{.*}}: i32,
// CHECK: %[[MEMORY:.*]] = "stream.binding.subspan"(%[[A]], %{{.*}}) : (!stream.binding, index) -> memref<i8>
// CHECK-NEXT: %[[BASE:.*]], %[[OFFSET:.*]] = memref.extract_strided_metadata %[[MEMORY]]
// CHECK-NEXT: %[[BYTES:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK: %[[COUNT:.*]] = arith.extui %{{.*}} : i32 to i64
// CHECK: scf.index_switch
// CHECK-NEXT: case [[K]] {
// CHECK: func.call @ftuner_launch_[[PNAME]]_k[[K]](%[[COUNT]], %{{.*}}, %[[BASE]], %[[BYTES]],
// CHECK-NEXT: scf.yield
// CHECK: default {
// CHECK: func.func @[[WNAME]](
// CHECK: call @ftuner_launch_[[WNAME]]_k
// CHECK: "stream.executable.end"

// The number and the blocks are the workload, and the last arguments.
// CHECK-LABEL: func.func @product(
// CHECK: %[[COUNTS:.*]]:2 = scf.index_switch %[[NUMBER:.*]] -> index, index
// CHECK: %[[NUMBER32:.*]] = arith.index_castui %[[NUMBER]] : index to i32
// CHECK-NEXT: %[[BLOCKS32:.*]] = arith.index_castui %[[COUNTS]]#0 : index to i32
// CHECK: %[[PRODUCT:.*]] = "flow.dispatch"(%[[NUMBER]], %[[COUNTS]]#0, {{.*}}, %[[NUMBER32]], %[[BLOCKS32]]
// CHECK-SAME: entry_points = [@ftuner_kernels::@[[PNAME]]]
// CHECK: linalg.softmax {{.*}} ins(%[[PRODUCT]]

// Constant weights are no part of kernels: both products have the same.
// CHECK-LABEL: func.func @weights(
// CHECK: "flow.dispatch"{{.*}}@ftuner_kernels::@[[WNAME]]]
// CHECK: "flow.dispatch"{{.*}}@ftuner_kernels::@[[WNAME]]]

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}} {
  func.func @product(%a: tensor<?x64xf32> {ukernel.shape = ["T", 64]}, %b: tensor<64x96xf32>, %bias: tensor<96xf32>, %scale: f32) -> tensor<?x96xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x96xf32>) outs(%init : tensor<?x96xf32>) -> tensor<?x96xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %bias : tensor<?x96xf32>, tensor<96xf32>) outs(%e : tensor<?x96xf32>) {
    ^bb0(%x: f32, %y: f32, %old: f32):
      %scaled = arith.mulf %x, %scale : f32
      %sum = arith.addf %scaled, %y : f32
      linalg.yield %sum : f32
    } -> tensor<?x96xf32>
    %r = linalg.softmax dimension(1) ins(%s : tensor<?x96xf32>) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    return %r : tensor<?x96xf32>
  }

  func.func @weights(%a: tensor<8x64xf32>) -> tensor<8x64xf32> {
    %zero = arith.constant 0.0 : f32
    %v = arith.constant dense<0.5> : tensor<64x64xf32>
    %w = arith.constant dense<0.25> : tensor<64x64xf32>
    %e = tensor.empty() : tensor<8x64xf32>
    %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %p = linalg.matmul ins(%a, %v : tensor<8x64xf32>, tensor<64x64xf32>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
    %q = linalg.matmul ins(%p, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%init : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %q : tensor<8x64xf32>
  }
}
