// IREE's own phases: functions and operations that nobody knows here, and
// ranges by what they assume.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 --remarks=all -o %t.mlir 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=ukernel --implicit-check-not=iree.properties

// Sizes from 16 to 256 in steps of 16: no family is for others.
// RANGE: remark: plan: @plan_0

// CHECK: "hal.executable.source"
// CHECK: "util.global"() <{sym_name = "device", type = i32}> : () -> ()
// CHECK: "util.func"() <{function_type = (!hal.buffer_view, !hal.buffer_view) -> !hal.buffer_view, sym_name = "main"}> ({
// CHECK: %[[X:.*]] = "hal.tensor.import"
// CHECK-NOT: linalg.matmul
// CHECK: %[[Y:.*]] = "flow.dispatch"({{.*}}%[[X]]
// CHECK: "hal.tensor.export"(%[[Y]]
// CHECK: "util.return"
// CHECK: }) {iree.abi.stub} : () -> ()
// CHECK: "util.func"() <{{.*}}sym_name = "outside", sym_visibility = "private"}> ({
// CHECK-NEXT: }) : () -> ()

"builtin.module"() ({
  "util.global"() <{sym_name = "device", type = i32}> : () -> ()
  "util.func"() <{function_type = (!hal.buffer_view, !hal.buffer_view) -> !hal.buffer_view, sym_name = "main"}> ({
  ^bb0(%arg0: !hal.buffer_view, %arg1: !hal.buffer_view):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 0 : index}> : (!hal.buffer_view) -> index
    %x = "hal.tensor.import"(%arg0, %dim) <{name = "input0", operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<?x64xf32>}> : (!hal.buffer_view, index) -> tensor<?x64xf32>
    %w = "hal.tensor.import"(%arg1) <{name = "input1", operandSegmentSizes = array<i32: 1, 0, 0, 0>, target_encoding = tensor<64x96xf32>}> : (!hal.buffer_view) -> tensor<64x96xf32>
    %m = "util.assume.int"(%dim) <{assumptions = [[#util.int.assumption<umin = 16, umax = 128, udiv = 16>, #util.int.assumption<umin = 160, umax = 256, udiv = 32>]]}> : (index) -> index
    %e = tensor.empty(%m) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %o = "hal.tensor.export"(%y, %m) <{name = "output0", source_encoding = tensor<?x96xf32>}> : (tensor<?x96xf32>, index) -> !hal.buffer_view
    "util.return"(%o) : (!hal.buffer_view) -> ()
  }) {iree.abi.stub} : () -> ()
  "util.func"() <{function_type = (tensor<?xf32>) -> tensor<?xf32>, sym_name = "outside", sym_visibility = "private"}> ({
  }) : () -> ()
}) : () -> ()
