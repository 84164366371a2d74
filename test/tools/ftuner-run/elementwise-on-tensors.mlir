// RUN: ftuner-run %s --device=h200 --check --args=53x37xf32,37x64xf32,53x64xf32 | FileCheck %s

// Arithmetic on whole tensors is an elementwise operator: part of the epilogue.
// CHECK: result 0: 53x64xf32, relative error
// CHECK: launches: 1
func.func @f(%a: tensor<?x37xf32>, %b: tensor<37x64xf32>, %r: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %m = tensor.dim %a, %c0 : tensor<?x37xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x37xf32>, tensor<37x64xf32>) outs(%i : tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = arith.addf %p, %r : tensor<?x64xf32>
  %t = math.tanh %q : tensor<?x64xf32>
  return %t : tensor<?x64xf32>
}
