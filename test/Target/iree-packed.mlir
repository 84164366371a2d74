// IREE keeps two numbers of 4 bits in a byte, so no kernel reads them: what
// widens them stays IREE's, which may refuse that on the CPU.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --paths=simt,mma --max-kernels=1 2>&1 | FileCheck %s --implicit-check-not=warning --implicit-check-not=ukernel
// RUN: ftuner-translate %s --ftuner-to-iree --iree-target=llvm-cpu --device=h200 --paths=simt,mma --max-kernels=1 2>&1 | FileCheck %s --check-prefix=CPU

// CPU: iree-packed.mlir:[[@LINE+12]]:{{[0-9]+}}: warning: IREE may refuse this operator for the CPU: it reads 'i4' of a dynamic size, and the product behind it is FTuner's
// CPU-NOT: warning

// CHECK-LABEL: func.func @widened
// CHECK: arith.extsi %{{.*}} : i4 to i32
// CHECK: "flow.dispatch"
func.func @widened(%a: tensor<?x64xi4>, %b: tensor<64x96xi8>) -> tensor<?x96xi32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %t = tensor.dim %a, %c0 : tensor<?x64xi4>
  %e = tensor.empty(%t) : tensor<?x96xi32>
  %f = linalg.fill ins(%z : i32) outs(%e : tensor<?x96xi32>) -> tensor<?x96xi32>
  %aw = arith.extsi %a : tensor<?x64xi4> to tensor<?x64xi32>
  %bw = arith.extsi %b : tensor<64x96xi8> to tensor<64x96xi32>
  %r = linalg.matmul ins(%aw, %bw : tensor<?x64xi32>, tensor<64x96xi32>) outs(%f : tensor<?x96xi32>) -> tensor<?x96xi32>
  return %r : tensor<?x96xi32>
}

// CHECK-LABEL: func.func @packed
// CHECK: linalg.generic
// CHECK-NOT: "flow.dispatch"
func.func @packed(%a: tensor<?x64xi4>, %b: tensor<64x96xi8>, %y: tensor<?x96xi32>) -> tensor<?x96xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x64xi4>, tensor<64x96xi8>) outs(%y : tensor<?x96xi32>) {
  ^bb0(%u: i4, %v: i8, %s: i32):
    %uw = arith.extsi %u : i4 to i32
    %vw = arith.extsi %v : i8 to i32
    %p = arith.muli %uw, %vw : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  } -> tensor<?x96xi32>
  return %r : tensor<?x96xi32>
}
