// A reduce axis of three steps. ptxas would unroll the main loop whole, and
// take several times the registers.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=rtx3090 --max-kernels=1 | FileCheck %s
// RUN: ftuner-translate %s --ftuner-to-ptx --device=v100 --max-kernels=1 | FileCheck %s

// Conditions of copies before the loop have labels, too.
// CHECK: {{^}}$L__{{[A-Za-z0-9_]+}}:{{[[:space:]]+}}.pragma "nounroll";
// CHECK: bar.sync
// CHECK: fma.rn.f32
func.func @f(%a: tensor<?x48xf32>, %b: tensor<48x64xf32>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x48xf32>, tensor<48x64xf32>) outs(%o : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
