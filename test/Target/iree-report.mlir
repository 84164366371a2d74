// What FTuner does not know of is named; attention of IREE's is counted by its loops, sizes have the names of arguments.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 -o %t.mlir --report=%t.json
// RUN: FileCheck %s --input-file=%t.json


// Reductions of rows are dispatches and no contractions.
// RUN: ftuner-translate %examples/softmax.mlir --ftuner-to-iree --device=h200 --max-kernels=1 -o %t.rows.mlir --report=%t.rows.json
// RUN: FileCheck %s --check-prefix=ROWS --input-file=%t.rows.json
// ROWS: "operator": "ukernel.row_reduction
// ROWS: "share": 1,
// ROWS-NEXT: "contraction_flops": 0,
// ROWS-NEXT: "contraction_share": null

// CHECK: "name": "main"
// CHECK: "dispatches": []
// Both products and a softmax: 4 * (2 * 16 + 2 * 16 + 5).
// CHECK: "operator": "iree_linalg_ext.attention",
// CHECK: "contraction": true,
// CHECK-NEXT: "flops": "(arg0_dim1 * arg0_dim1) * 276"
// CHECK: "not_counted": [
// CHECK-NEXT: "iree_linalg_ext.sort"
// CHECK-NEXT: ]
// CHECK: "arg0_dim1": 2
// CHECK: "arg0_dim1": 64
// CHECK: "contraction_share": 0

#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
"builtin.module"() ({
  "util.func"() <{function_type = (!hal.buffer_view) -> !hal.buffer_view, sym_name = "main"}> ({
  ^bb0(%arg0: !hal.buffer_view):
    %scale = "arith.constant"() <{value = 0.25 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 1 : index}> : (!hal.buffer_view) -> index
    %t = "util.assume.int"(%dim) <{assumptions = [[#util.int.assumption<umin = 2, umax = 64>]]}> : (index) -> index
    %x = "hal.tensor.import"(%arg0, %t) <{name = "input0", operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<4x?x16xf32>}> : (!hal.buffer_view, index) -> tensor<4x?x16xf32>
    %e = tensor.empty(%t) : tensor<4x?x16xf32>
    %y = "iree_linalg_ext.attention"(%x, %x, %x, %scale, %e) <{indexing_maps = [#q, #k, #v, #s, #o], operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>}> ({
    ^bb0(%a: f32):
      "iree_linalg_ext.yield"(%a) : (f32) -> ()
    }) : (tensor<4x?x16xf32>, tensor<4x?x16xf32>, tensor<4x?x16xf32>, f32, tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
    %z = "iree_linalg_ext.sort"(%y) : (tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
    %o = "hal.tensor.export"(%z, %t) <{name = "output0", source_encoding = tensor<4x?x16xf32>}> : (tensor<4x?x16xf32>, index) -> !hal.buffer_view
    "util.return"(%o) : (!hal.buffer_view) -> ()
  }) {iree.abi.stub} : () -> ()
}) : () -> ()
