// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 | FileCheck %s --check-prefix=H200
// RUN: ftuner-opt %s --ukernel-attach-device=device=%S/Inputs/device.json | FileCheck %s --check-prefix=FILE
// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 | ftuner-opt --ukernel-attach-device | FileCheck %s --check-prefix=H200
// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 | ftuner-opt --ukernel-attach-device=device=a100 | FileCheck %s --check-prefix=A100
// RUN: not ftuner-opt %s --ukernel-attach-device 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not ftuner-opt %s --ukernel-attach-device=device=h2000 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ftuner-opt %s --ukernel-attach-device=device=%S/Inputs/bad-device.json 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not ftuner-opt %s --ukernel-plan-workloads 2>&1 | FileCheck %s --check-prefix=MISSING

// H200: module attributes {ukernel.device = #ukernel.device<"h200", {
// H200-SAME: clock_mhz = 1980 : i64
// H200-SAME: compute_capability = "9.0"
// H200-SAME: sm_count = 132 : i64

// FILE: #ukernel.device<"mygpu", {
// FILE-SAME: l2_mib = 1.250000e+01 : f64
// FILE-SAME: sm_count = 130 : i64

// A100: #ukernel.device<"a100", {

// NONE: error: expected a device: the name of a built-in one (a100, {{.*}}h200{{.*}}) or the path of a description

// UNKNOWN: error: {{.*}}h2000{{.*}}h200

// BAD: error: {{.*}}bad-device.json:{{[0-9]+}}: field 'sm_count': expected

// MISSING: error: {{.*}}expected a device: run 'ukernel-attach-device' first
module {
  func.func @f(%a: tensor<4x4xf32>, %o: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %r = ukernel.workload ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%o : tensor<4x4xf32>)
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      contract {
      ^bb0(%x: f32, %y: f32, %c: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }
}
