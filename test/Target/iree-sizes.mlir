// Sizes have names of their own: an argument's, behind the function's where
// another function has another range, and numbers where nothing else differs.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --max-kernels=1 -o %t.mlir --report=%t.json
// RUN: FileCheck %s --input-file=%t.json '--implicit-check-not="iree{{[0-9]}}'

// CHECK: "name": "first"
// CHECK: "arg0_dim0": 8
// CHECK: "name": "second$async"
// CHECK: "second_arg0_dim0": 64
// CHECK: "name": "third"
// CHECK: "arg0_dim0": 8
// CHECK: "name": "fourth"
// CHECK: "fourth_size": 16
// CHECK-NEXT: "fourth_size_2": 16

"builtin.module"() ({
  "util.func"() <{function_type = (!hal.buffer_view, tensor<64x96xf32>) -> tensor<?x96xf32>, sym_name = "first"}> ({
  ^bb0(%arg0: !hal.buffer_view, %w: tensor<64x96xf32>):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 0 : index}> : (!hal.buffer_view) -> index
    %m = "util.assume.int"(%dim) <{assumptions = [[#util.int.assumption<umin = 1, umax = 8>]]}> : (index) -> index
    %x = "hal.tensor.import"(%arg0, %m) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<?x64xf32>}> : (!hal.buffer_view, index) -> tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    "util.return"(%y) : (tensor<?x96xf32>) -> ()
  }) : () -> ()
  "util.func"() <{function_type = (!hal.buffer_view, tensor<64x96xf32>) -> tensor<?x96xf32>, sym_name = "second$async"}> ({
  ^bb0(%arg0: !hal.buffer_view, %w: tensor<64x96xf32>):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 0 : index}> : (!hal.buffer_view) -> index
    %m = "util.assume.int"(%dim) <{assumptions = [[#util.int.assumption<umin = 1, umax = 64>]]}> : (index) -> index
    %x = "hal.tensor.import"(%arg0, %m) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<?x64xf32>}> : (!hal.buffer_view, index) -> tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    "util.return"(%y) : (tensor<?x96xf32>) -> ()
  }) : () -> ()
  "util.func"() <{function_type = (!hal.buffer_view, tensor<64x96xf32>) -> tensor<?x96xf32>, sym_name = "third"}> ({
  ^bb0(%arg0: !hal.buffer_view, %w: tensor<64x96xf32>):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 0 : index}> : (!hal.buffer_view) -> index
    %m = "util.assume.int"(%dim) <{assumptions = [[#util.int.assumption<umin = 1, umax = 8>]]}> : (index) -> index
    %x = "hal.tensor.import"(%arg0, %m) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<?x64xf32>}> : (!hal.buffer_view, index) -> tensor<?x64xf32>
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    "util.return"(%y) : (tensor<?x96xf32>) -> ()
  }) : () -> ()
  "util.func"() <{function_type = (index, index, tensor<64x96xf32>) -> tensor<?x96xf32>, sym_name = "fourth"}> ({
  ^bb0(%rows: index, %columns: index, %w: tensor<64x96xf32>):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %n = "other.size"(%rows) : (index) -> index
    %k = "other.size"(%columns) : (index) -> index
    %sizes:2 = "util.assume.int"(%n, %k) <{assumptions = [[#util.int.assumption<umin = 1, umax = 16>], [#util.int.assumption<umin = 1, umax = 16>]]}> : (index, index) -> (index, index)
    %x = "flow.tensor.empty"(%sizes#0, %sizes#1) : (index, index) -> tensor<?x?xf32>
    %a = "flow.tensor.tie_shape"(%x, %sizes#0, %sizes#1) : (tensor<?x?xf32>, index, index) -> tensor<?x?xf32>
    %v = "flow.tensor.empty"(%sizes#1) : (index) -> tensor<?x96xf32>
    %b = "flow.tensor.tie_shape"(%v, %sizes#1) : (tensor<?x96xf32>, index) -> tensor<?x96xf32>
    %e = tensor.empty(%sizes#0) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    "util.return"(%y) : (tensor<?x96xf32>) -> ()
  }) : () -> ()
}) : () -> ()
