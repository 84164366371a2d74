// RUN: ftuner-opt %s --ftuner-form --ukernel-pad-rows | FileCheck %s
// RUN: ftuner-opt %s --ftuner-front-end="device=a100 cost-model=sia max-kernels=2" --ukernel-prepare-host --ftuner-bufferize --ukernel-allocate-padded-rows | FileCheck %s --check-prefix=MEMORY
// RUN: ftuner-translate %s --ftuner-explain --device=h100 --max-kernels=2 --size=T=33 --size=L=47 | FileCheck %s --check-prefix=EXPLAIN

// Rows of odd lengths, in kernels for aligned operands alone, on buffers whose
// padding is NaN at first.
// RUN: ftuner-run %s --function=attention --executor=emulator --check --check-bounds --check-races --device=h100 --max-kernels=2 --args=33x64xf16,47x64xf16,47x64xf16 | FileCheck %s --check-prefix=RESULT
// RUN: ftuner-run %s --function=attention --executor=emulator --check --check-bounds --check-races --device=a100 --max-kernels=2 --args=3x64xf16,121x64xf16,121x64xf16 | FileCheck %s --check-prefix=RESULT
// RUN: ftuner-run %s --function=attention --executor=emulator --check --check-bounds --check-races --device=v100 --max-kernels=2 --args=17x64xf16,9x64xf16,9x64xf16 | FileCheck %s --check-prefix=RESULT
// RUN: ftuner-run %s --function=attention --executor=emulator --check --check-bounds --device=a100 --max-kernels=2 --misalign=2 --args=17x64xf16,9x64xf16,9x64xf16 | FileCheck %s --check-prefix=RESULT

// RESULT: result 0: {{.*}} relative error
// EXPLAIN-NOT: may break the alignment

#row = affine_map<(t, l) -> (t, l)>
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 64>, L = #ukernel.range<1 to 256>}} {

// Scores and probabilities are read by operators alone.
// CHECK-LABEL: func.func @attention
// CHECK: ukernel.workload
// CHECK: ukernel.padded_rows = array<i64: 3>
// CHECK: ukernel.row_reduction
// CHECK: ukernel.padded_rows = array<i64: 0, 1>
// CHECK: ukernel.workload
// CHECK: ukernel.padded_rows = array<i64: 0>
// MEMORY-LABEL: func.func @attention
// MEMORY: arith.ceildivui %{{.*}}, %c16
// MEMORY: %[[ALL:.*]] = memref.alloc(%{{.*}}, %{{.*}}) {{.*}}: memref<?x?xf16>
// MEMORY: %[[ROWS:.*]] = memref.subview %[[ALL]][0, 0] [%{{.*}}, %{{.*}}] [1, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1]>>
// MEMORY: ukernel.workload {{.*}} outs(%[[ROWS]] :
func.func @attention(%q: tensor<?x64xf16> {ukernel.shape = ["T", 64]}, %k: tensor<?x64xf16> {ukernel.shape = ["L", 64]}, %v: tensor<?x64xf16> {ukernel.shape = ["L", 64]}) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %q, %c0 : tensor<?x64xf16>
  %l = tensor.dim %k, %c0 : tensor<?x64xf16>
  %e0 = tensor.empty(%t, %l) : tensor<?x?xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%q, %k : tensor<?x64xf16>, tensor<?x64xf16>) outs(%f0 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %e1 = tensor.empty(%t, %l) : tensor<?x?xf16>
  %scores = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%m0 : tensor<?x?xf32>) outs(%e1 : tensor<?x?xf16>) {
  ^bb0(%a: f32, %o: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  %p = linalg.softmax dimension(1) ins(%scores : tensor<?x?xf16>) outs(%e1 : tensor<?x?xf16>) -> tensor<?x?xf16>
  %e2 = tensor.empty(%t) : tensor<?x64xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<?x?xf16>, tensor<?x64xf16>) outs(%f2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// The scores are a result, too, whose rows lie one behind the other.
// CHECK-LABEL: func.func @returned
// CHECK-NOT: padded_rows
func.func @returned(%q: tensor<?x64xf16> {ukernel.shape = ["T", 64]}, %k: tensor<?x64xf16> {ukernel.shape = ["L", 64]}) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %q, %c0 : tensor<?x64xf16>
  %l = tensor.dim %k, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%t, %l) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%q, %k : tensor<?x64xf16>, tensor<?x64xf16>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %m, %p : tensor<?x?xf32>, tensor<?x?xf32>
}

}
