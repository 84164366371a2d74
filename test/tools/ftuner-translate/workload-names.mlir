// A workload has one name, in the manifest and in explanations: the function's C
// name and its number in the function. Equal ones count, and share kernels under
// the name of the first.

// RUN: ftuner-translate %s --ftuner-to-manifest --device=h200 --max-kernels=2 -o %t.json
// RUN: FileCheck %s --check-prefix=MANIFEST < %t.json
// RUN: ftuner-translate %s --ftuner-explain --device=h200 --max-kernels=2 --size T=5 --all | FileCheck %s --check-prefix=EXPLAIN

// MANIFEST: "workloads": [
// MANIFEST: "name": "two_widths_0",
// MANIFEST-NEXT: "plan": "plan_0"
// MANIFEST-NOT: "name": "two_widths_1"
// MANIFEST: "name": "two_widths_2",
// MANIFEST-NEXT: "plan": "plan_1"

// EXPLAIN: Workload two_widths_0 ({{.*}}), plan @plan_0
// EXPLAIN-NEXT: The same holds for two_widths_1
// EXPLAIN: Workload two_widths_2 ({{.*}}), plan @plan_1

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 64>}} {
  func.func @"two widths"(%x: tensor<?x48xf32> {ukernel.shape = ["T", 48]},
                          %w: tensor<48x48xf32>, %v: tensor<48x40xf32>) -> tensor<?x40xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x48xf32>
    %wide = tensor.empty(%t) : tensor<?x48xf32>
    %wide_zero = linalg.fill ins(%zero : f32) outs(%wide : tensor<?x48xf32>) -> tensor<?x48xf32>
    %first = linalg.matmul ins(%x, %w : tensor<?x48xf32>, tensor<48x48xf32>)
                           outs(%wide_zero : tensor<?x48xf32>) -> tensor<?x48xf32>
    %second = linalg.matmul ins(%first, %w : tensor<?x48xf32>, tensor<48x48xf32>)
                            outs(%wide_zero : tensor<?x48xf32>) -> tensor<?x48xf32>
    %narrow = tensor.empty(%t) : tensor<?x40xf32>
    %narrow_zero = linalg.fill ins(%zero : f32) outs(%narrow : tensor<?x40xf32>) -> tensor<?x40xf32>
    %third = linalg.matmul ins(%second, %v : tensor<?x48xf32>, tensor<48x40xf32>)
                           outs(%narrow_zero : tensor<?x40xf32>) -> tensor<?x40xf32>
    return %third : tensor<?x40xf32>
  }
}
