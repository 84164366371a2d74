// An operand whose known stride no tensor map can have: the kernel with maps is
// there, and the host takes another.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=h200 --paths=wgmma | FileCheck %s --check-prefix=PTX
// RUN: ftuner-run %s --function=f --device=h200 --paths=wgmma --args=200x100xf16,128x64xf16 --check --check-bounds --json | FileCheck %s

// PTX: cp.async.bulk.tensor
// CHECK: "ok":true
// CHECK-SAME: "kernel":"f_0_k{{[1-9]}}"

module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
func.func @f(%x: tensor<?x100xf16> {ukernel.shape = ["T", 100]}, %w: tensor<128x64xf16>) -> tensor<?x128xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = tensor.dim %x, %c0 : tensor<?x100xf16>
  %s = tensor.extract_slice %x[0, 0] [%t, 64] [1, 1] : tensor<?x100xf16> to tensor<?x64xf16>
  %e = tensor.empty(%t) : tensor<?x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s, %w : tensor<?x64xf16>, tensor<128x64xf16>) outs(%i : tensor<?x128xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %ae = arith.extf %a : f16 to f32
    %be = arith.extf %b : f16 to f32
    %p = arith.mulf %ae, %be : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<?x128xf32>
  return %r : tensor<?x128xf32>
}
}
