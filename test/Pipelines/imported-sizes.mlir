// Sizes as torch-mlir writes them are those of the arguments: a test whether a
// size is negative, the larger of two equal sizes, a product that is divided
// again, and a reshape to sizes that lie in a tensor.

// RUN: ftuner-translate %s --device=h200 --max-kernels=1 --ftuner-explain --size=B=3,T=17 --all | FileCheck %s --check-prefix=EXPLAIN
// EXPLAIN: Workload f_main_0
// EXPLAIN: Axes: M = T from 2 to 64; N = T from 2 to 64; K = 8; B0 = B from 1 to 16
// EXPLAIN: Workload f_main_1
// EXPLAIN: Axes: M = B · T from 2 to 1024; N = 16; K = 8
// EXPLAIN: Shape M = 51, N = 16, K = 8

// RUN: ftuner-translate %s --device=h200 --max-kernels=1 --ftuner-to-manifest | FileCheck %s --check-prefix=MANIFEST
// MANIFEST-NOT: "flops": null
// MANIFEST: "unknown_kernels": 0

module attributes {ukernel.symbols = {B = #ukernel.range<1 to 16>, T = #ukernel.range<2 to 64>}} {
  func.func @main(%q: tensor<?x?x8xf32> {ukernel.shape = ["B", "T", 8]},
                  %k: tensor<?x8x?xf32> {ukernel.shape = ["B", 8, "T"]},
                  %x: tensor<?x?x8xf32> {ukernel.shape = ["B", "T", 8]},
                  %w: tensor<8x16xf32>) -> (tensor<?x?x?xf32>, tensor<?x16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : i64
    %zero = arith.constant 0.0 : f32
    %b = tensor.dim %q, %c0 : tensor<?x?x8xf32>
    %t = tensor.dim %q, %c1 : tensor<?x?x8xf32>
    %is_negative = arith.cmpi slt, %b, %c0 : index
    %selected = arith.select %is_negative, %c1, %b : index
    %four = arith.muli %b, %c4 : index
    %divided = arith.divsi %four, %c4 : index
    %larger = arith.maxui %divided, %selected : index
    %e = tensor.empty(%larger, %t, %t) : tensor<?x?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %y = linalg.batch_matmul ins(%q, %k : tensor<?x?x8xf32>, tensor<?x8x?xf32>)
                             outs(%f : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %rows = arith.muli %larger, %t : index
    %count = arith.index_cast %rows : index to i64
    %shape = tensor.from_elements %count, %c8 : tensor<2xi64>
    %flat = tensor.reshape %x(%shape) : (tensor<?x?x8xf32>, tensor<2xi64>) -> tensor<?x8xf32>
    %d = tensor.dim %flat, %c0 : tensor<?x8xf32>
    %e2 = tensor.empty(%d) : tensor<?x16xf32>
    %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x16xf32>) -> tensor<?x16xf32>
    %z = linalg.matmul ins(%flat, %w : tensor<?x8xf32>, tensor<8x16xf32>)
                       outs(%f2 : tensor<?x16xf32>) -> tensor<?x16xf32>
    return %y, %z : tensor<?x?x?xf32>, tensor<?x16xf32>
  }
}
