// RUN: ftuner-run %s --device=h200 --args=5x0xf32 --args=5x3xf32 --check | FileCheck %s

// A reduction that overwrites its result in each step leaves what it started
// from where it has no steps.
// CHECK-COUNT-2: relative error 0 (
func.func @last(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %start = arith.constant 3.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%start : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
