// RUN: ftuner-run %s --function=f --device=h200 --executor=emulator --check --tolerance=0 --args=7xbf16,0.3 | FileCheck %s

// The host rounds a scalar to bf16, which not every processor can, nor every
// compiler's library.
// CHECK: relative error 0
func.func @f(%a: tensor<?xbf16>, %d: f64) -> tensor<?xbf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xbf16>
  %t = arith.truncf %d : f64 to bf16
  %e = tensor.empty(%n) : tensor<?xbf16>
  %r = linalg.fill ins(%t : bf16) outs(%e : tensor<?xbf16>) -> tensor<?xbf16>
  return %r : tensor<?xbf16>
}
