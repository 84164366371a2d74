// RUN: ftuner-run %s --function=f --device=h100 --executor=emulator --check \
// RUN:   --args=0x5x16xf32,16x8xf32 --args=0x0x16xf32,16x8xf32 | FileCheck %s

// A static batch of nothing beside rows of any number has a result without
// elements and launches nothing.
func.func @f(%a: tensor<0x?x16xf32>, %w: tensor<16x8xf32>) -> tensor<0x?x8xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c1 : tensor<0x?x16xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%m) : tensor<0x?x8xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<0x?x8xf32>) -> tensor<0x?x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%a, %w : tensor<0x?x16xf32>, tensor<16x8xf32>) outs(%i : tensor<0x?x8xf32>) -> tensor<0x?x8xf32>
  return %r : tensor<0x?x8xf32>
}

// CHECK: result 0: 0x5x8xf32, relative error 0
// CHECK: launches: 0
// CHECK: result 0: 0x0x8xf32, relative error 0
// CHECK: launches: 0
