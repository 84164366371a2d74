// IREE computes what constants determine while it compiles, where FTuner's
// kernels cannot run: such products stay. Globals that programs change are no
// constants.
// RUN: ftuner-translate %s --ftuner-to-iree --device=h200 | FileCheck %s --implicit-check-not=ukernel
// RUN: ftuner-translate %s --ftuner-to-iree-spec --device=h200 2>&1 | FileCheck %s --check-prefix=SPEC --implicit-check-not=warning '--implicit-check-not=tensor<64x16x'

// SPEC-COUNT-2: transform.named_sequence @match_
// SPEC-NOT: transform.named_sequence @match_

// CHECK: %[[A:.*]] = "util.global.load"() <{global = @a, is_immutable}> : () -> tensor<64x16xf32>
// CHECK: linalg.matmul ins(%[[A]],
// CHECK-NOT: linalg.matmul
// CHECK: "flow.dispatch"({{.*}} -> tensor<?x96xf32>
// CHECK: "flow.dispatch"({{.*}} -> tensor<80x96xf32>
// CHECK-NOT: linalg.matmul

"builtin.module"() ({
  "util.global"() <{initial_value = dense<1.0> : tensor<64x16xf32>, sym_name = "a", type = tensor<64x16xf32>}> : () -> ()
  "util.global"() <{initial_value = dense<2.0> : tensor<16x96xf32>, sym_name = "b", type = tensor<16x96xf32>}> : () -> ()
  "util.global"() <{initial_value = dense<3.0> : tensor<80x96xf32>, is_mutable, sym_name = "state", type = tensor<80x96xf32>}> : () -> ()
  "util.func"() <{function_type = (!hal.buffer_view) -> (!hal.buffer_view, tensor<80x96xf32>), sym_name = "main"}> ({
  ^bb0(%arg0: !hal.buffer_view):
    %zero = "arith.constant"() <{value = 0.000000e+00 : f32}> : () -> f32
    %dim = "hal.buffer_view.dim"(%arg0) <{index = 0 : index}> : (!hal.buffer_view) -> index
    %x = "hal.tensor.import"(%arg0, %dim) <{name = "input0", operandSegmentSizes = array<i32: 1, 1, 0, 0>, target_encoding = tensor<?x64xf32>}> : (!hal.buffer_view, index) -> tensor<?x64xf32>
    %a = "util.global.load"() <{global = @a, is_immutable}> : () -> tensor<64x16xf32>
    %b = "util.global.load"() <{global = @b}> : () -> tensor<16x96xf32>
    %state = "util.global.load"() <{global = @state}> : () -> tensor<80x96xf32>
    %we = tensor.empty() : tensor<64x96xf32>
    %wf = linalg.fill ins(%zero : f32) outs(%we : tensor<64x96xf32>) -> tensor<64x96xf32>
    %w = linalg.matmul ins(%a, %b : tensor<64x16xf32>, tensor<16x96xf32>) outs(%wf : tensor<64x96xf32>) -> tensor<64x96xf32>
    %e = tensor.empty(%dim) : tensor<?x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
    %y = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
    %c = arith.constant dense<2.0> : tensor<80x16xf32>
    %z = linalg.matmul ins(%c, %b : tensor<80x16xf32>, tensor<16x96xf32>) outs(%state : tensor<80x96xf32>) -> tensor<80x96xf32>
    %o = "hal.tensor.export"(%y, %dim) <{name = "output0", source_encoding = tensor<?x96xf32>}> : (tensor<?x96xf32>, index) -> !hal.buffer_view
    "util.return"(%o, %z) : (!hal.buffer_view, tensor<80x96xf32>) -> ()
  }) {iree.abi.stub} : () -> ()
}) : () -> ()
