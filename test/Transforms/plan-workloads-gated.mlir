// Families behind a gate take part where they were proven, or where their path
// is named; else a remark says what they would gain.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3 proven-paths=wgmma.fit_boxes" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2> %t.proven | FileCheck %s --check-prefix=PROVEN
// RUN: FileCheck %s --check-prefix=QUIET --allow-empty --input-file=%t.proven
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3 failed-paths=wgmma" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=FAILED
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3 paths=mma proven-paths=wgmma.fit_boxes failed-paths=mma" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=QUIET
// RUN: not ftuner-opt %s --ukernel-plan-workloads=proven-paths=simt 2>&1 | FileCheck %s --check-prefix=OPEN

// CHECK: ukernel.plan @plan_0 <
// CHECK-SAME: #ukernel.wgmma
// CHECK-NOT: fit_boxes
// CHECK: paths = "simt,mma,wgmma,rows,chains", strategy = "ftuner"
// CHECK: ukernel.plan @plan_0_portable <
// CHECK: paths = "simt,mma,rows,chains", strategy = "ftuner"
// REMARK: remark: [Missed] gated | Category:ukernel-plan-workloads | Remark="@plan_0: without wgmma.fit_boxes, which 'ftuner check-gpu' has not proven on the card: 40 x 4096 x 4096 are predicted to take {{[0-9.]+}} us, with it {{[0-9.]+}} us; --paths=simt,mma,wgmma,rows,chains takes it unproven"

// PROVEN: ukernel.plan @plan_0 <
// PROVEN-SAME: fit_boxes = true
// PROVEN: paths = "simt,mma,wgmma,rows,chains", proven_paths = "wgmma.fit_boxes", strategy = "ftuner"
// QUIET-NOT: check-gpu

// FAILED-NOT: #ukernel.wgmma
// FAILED: paths = "simt,mma,rows,chains", strategy = "ftuner"

// NAMED-DAG: option --proven-paths=wgmma.fit_boxes has no effect: 'paths' names paths
// NAMED-DAG: option --failed-paths=mma has no effect: 'paths' names paths
// NAMED: paths = "mma", strategy = "ftuner"

// OPEN: option --proven-paths: expected names of gates ({{.*}}wgmma.fit_boxes{{.*}}), separated by commas, but got 'simt'

module attributes {ukernel.symbols = {M = #ukernel.range<1 to 40>}} {
  func.func @f(%a: tensor<?x4096xbf16> {ukernel.shape = ["M", 4096]}, %b: tensor<4096x4096xbf16>, %e: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %r = linalg.matmul ins(%a, %b : tensor<?x4096xbf16>, tensor<4096x4096xbf16>) outs(%f : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    return %r : tensor<?x4096xf32>
  }
}
