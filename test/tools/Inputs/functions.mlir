// Several functions without a contraction.
#vector = affine_map<(i) -> (i)>
#matrix = affine_map<(i, j) -> (i, j)>

// Two results, one of them an argument; a symbol; a scalar.
func.func @scale(%a: tensor<?xf32> {ukernel.shape = ["N"]},
                 %b: tensor<?xf32> {ukernel.shape = ["N"]}, %s: f32)
    -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %result = linalg.generic {indexing_maps = [#vector, #vector, #vector], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %scaled = arith.mulf %x, %s : f32
    %sum = arith.addf %scaled, %y : f32
    linalg.yield %sum : f32
  } -> tensor<?xf32>
  return %result, %a : tensor<?xf32>, tensor<?xf32>
}

// A name that is no C identifier; integers.
func.func @"odd name!"(%a: tensor<4x?xi32>, %k: index, %f: i1) -> tensor<4x?xi32> {
  %factor = arith.index_cast %k : index to i32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c1 : tensor<4x?xi32>
  %empty = tensor.empty(%n) : tensor<4x?xi32>
  %result = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x?xi32>) outs(%empty : tensor<4x?xi32>) {
  ^bb0(%x: i32, %out: i32):
    %scaled = arith.muli %x, %factor : i32
    %selected = arith.select %f, %scaled, %x : i32
    linalg.yield %selected : i32
  } -> tensor<4x?xi32>
  return %result : tensor<4x?xi32>
}

func.func @bounded(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %ok = arith.cmpi ult, %n, %c4 : index
  cf.assert %ok, "expected fewer than four elements"
  %empty = tensor.empty(%n) : tensor<?xf32>
  %result = linalg.exp ins(%a : tensor<?xf32>) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %result : tensor<?xf32>
}

// Overflows bf16 where the sum is rounded at every step.
func.func @sum(%a: tensor<?x512xbf16>) -> tensor<?xbf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %n = tensor.dim %a, %c0 : tensor<?x512xbf16>
  %empty = tensor.empty(%n) : tensor<?xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<?xbf16>) -> tensor<?xbf16>
  %result = linalg.reduce ins(%a : tensor<?x512xbf16>) outs(%init : tensor<?xbf16>) dimensions = [1]
      (%x: bf16, %acc: bf16) {
        %next = arith.addf %acc, %x : bf16
        linalg.yield %next : bf16
      }
  return %result : tensor<?xbf16>
}

// Infinite and NaN where the argument is 0.
func.func @reciprocal(%a: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf64>
  %empty = tensor.empty(%n) : tensor<?xf64>
  %one = arith.constant 1.0 : f64
  %results:2 = linalg.generic {indexing_maps = [#vector, #vector, #vector], iterator_types = ["parallel"]}
      ins(%a : tensor<?xf64>) outs(%empty, %empty : tensor<?xf64>, tensor<?xf64>) {
  ^bb0(%x: f64, %out0: f64, %out1: f64):
    %zero = arith.subf %x, %x : f64
    %inf = arith.divf %one, %zero : f64
    %nan = arith.mulf %inf, %zero : f64
    linalg.yield %inf, %nan : f64, f64
  } -> (tensor<?xf64>, tensor<?xf64>)
  return %results#0, %results#1 : tensor<?xf64>, tensor<?xf64>
}
