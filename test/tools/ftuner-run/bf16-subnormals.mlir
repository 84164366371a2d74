// Subnormal numbers of bf16 stay what they are, as on a GPU: multiples of the
// least one, 2^-133.
// RUN: ftuner-run %s --function=f --device=h200 --executor=emulator --args=4xf32,9.18354962e-41 --save-dir=%t
// RUN: od -An -v -t x2 -j 128 %t/result0.npy | FileCheck %s
// RUN: ftuner-run %s --function=f --device=h200 --executor=reference --args=4xf32,9.18354962e-41 --save-dir=%t
// RUN: od -An -v -t x2 -j 128 %t/result0.npy | FileCheck %s
// CHECK: 0000 0001 0002 0003

#map = affine_map<(i) -> (i)>
func.func @f(%x: tensor<4xf32>, %s: f32) -> tensor<4xbf16> {
  %e = tensor.empty() : tensor<4xbf16>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %n = arith.sitofp %j : i32 to f32
    %p = arith.mulf %n, %s : f32
    %c = arith.truncf %p : f32 to bf16
    linalg.yield %c : bf16
  } -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}
