// Gated paths take part where they were proven, or where they are named; else a
// remark says what they would gain.

// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3 proven-paths=wgmma" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2> %t.proven | FileCheck %s --check-prefix=PROVEN
// RUN: FileCheck %s --check-prefix=QUIET --allow-empty --input-file=%t.proven
// RUN: ftuner-opt %s --ukernel-attach-device=device=h100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3 paths=mma proven-paths=wgmma" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-form-workloads "--ukernel-plan-workloads=max-kernels=3" --remarks-filter=ukernel-plan-workloads --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=QUIET
// RUN: not ftuner-opt %s --ukernel-plan-workloads=proven-paths=simt 2>&1 | FileCheck %s --check-prefix=OPEN

// CHECK-NOT: #ukernel.wgmma
// CHECK: search = {calibration = {{.*}}, cost_model = "latency", paths = "simt,mma,rows", strategy = "ftuner"}
// REMARK: remark: [Missed] gated | Category:ukernel-plan-workloads | Remark="@plan_0: without wgmma, which 'ftuner check-gpu' has not proven on the card: 2048 x 4096 x 1024 are predicted to take {{[0-9.]+}} us, with it {{[0-9.]+}} us; --paths=simt,mma,rows,wgmma takes it unproven"

// PROVEN: ukernel.plan @plan_0 <
// PROVEN-SAME: #ukernel.wgmma
// PROVEN-SAME: paths = "simt,mma,wgmma,rows", proven_paths = "wgmma", strategy = "ftuner"
// PROVEN: ukernel.plan @plan_0_portable <
// PROVEN-SAME: paths = "simt,mma,rows", strategy = "ftuner"
// QUIET-NOT: check-gpu

// NAMED: option 'proven-paths' = wgmma has no effect: 'paths' names paths
// NAMED: paths = "mma", strategy = "ftuner"

// OPEN: option 'proven-paths': expected names of gated codegen paths ({{.*}}wgmma{{.*}}), separated by commas, but got 'simt'

func.func @f(%a: tensor<2048x1024xbf16>, %b: tensor<1024x4096xbf16>, %e: tensor<2048x4096xf32>) -> tensor<2048x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2048x1024xbf16>, tensor<1024x4096xbf16>) outs(%f : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  return %r : tensor<2048x4096xf32>
}
