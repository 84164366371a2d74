// Sine and cosine of one operation: behind the reduction of a row, in the row's kernel, and on tensors.
// RUN: ftuner-run %s --function=rows --device=h200 --args=53x65xf32 --check | FileCheck %s
// RUN: ftuner-run %s --function=tensors --device=h200 --args=1000xf16 --check | FileCheck %s --check-prefix=TENSORS

// CHECK: result 0: 53x65xf32
// CHECK: launches: 1 (
// TENSORS: result 0: 1000xf16
// TENSORS: result 1: 1000xf16
#element = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
func.func @rows(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %r = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %o = tensor.empty(%m, %r) : tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [#element, #row, #element], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: f32, %sum: f32, %out: f32):
    %angle = arith.subf %a, %sum : f32
    %sin, %cos = math.sincos %angle : f32
    %t = arith.mulf %a, %sin : f32
    %u = arith.addf %t, %cos : f32
    linalg.yield %u : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

func.func @tensors(%x: tensor<?xf16>) -> (tensor<?xf16>, tensor<?xf16>) {
  %sin, %cos = math.sincos %x : tensor<?xf16>
  return %sin, %cos : tensor<?xf16>, tensor<?xf16>
}
