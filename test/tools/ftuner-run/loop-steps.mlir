// RUN: ftuner-run %s --device=h200 --args=13x24xf32,24x20xf32,5 --check
// RUN: not ftuner-run %s --device=h200 --args=13x24xf32,24x20xf32,0 2>&1 | FileCheck %s
// RUN: not ftuner-run %s --device=h200 --args=13x24xf32,24x20xf32,0 --executor=reference 2>&1 | FileCheck %s

// A loop that does not advance is an error.
// CHECK: error: {{.*}}expected a loop with a positive step
func.func @f(%a: tensor<?x24xf32>, %b: tensor<24x20xf32>, %step: index) -> tensor<?x20xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x24xf32>
  %e = tensor.empty(%m) : tensor<?x20xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x20xf32>) -> tensor<?x20xf32>
  %r = scf.for %k = %c0 to %m step %step iter_args(%sum = %i) -> (tensor<?x20xf32>) {
    %rows = affine.min affine_map<(d)[s, t] -> (s, t - d)>(%k)[%step, %m]
    %x = tensor.extract_slice %a[%k, 0] [%rows, 24] [1, 1] : tensor<?x24xf32> to tensor<?x24xf32>
    %o = tensor.extract_slice %sum[%k, 0] [%rows, 20] [1, 1] : tensor<?x20xf32> to tensor<?x20xf32>
    %p = linalg.matmul ins(%x, %b : tensor<?x24xf32>, tensor<24x20xf32>) outs(%o : tensor<?x20xf32>) -> tensor<?x20xf32>
    %n = tensor.insert_slice %p into %sum[%k, 0] [%rows, 20] [1, 1] : tensor<?x20xf32> into tensor<?x20xf32>
    scf.yield %n : tensor<?x20xf32>
  }
  return %r : tensor<?x20xf32>
}
