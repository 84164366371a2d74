// DEFINE: %{plan} = not ftuner-opt %s --ukernel-attach-device=device=h200
// RUN: %{plan} --ukernel-plan-workloads=strategy=guess 2>&1 | FileCheck %s --check-prefix=STRATEGY
// RUN: %{plan} --ukernel-plan-workloads=cost-model=dice 2>&1 | FileCheck %s --check-prefix=MODEL
// RUN: %{plan} --ukernel-plan-workloads=calibration=none.json 2>&1 | FileCheck %s --check-prefix=CALIBRATION
// RUN: %{plan} --ukernel-plan-workloads=max-kernels=0 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: %{plan} --ukernel-plan-workloads=top-k=-1 2>&1 | FileCheck %s --check-prefix=TOPK
// RUN: %{plan} --ukernel-plan-workloads="epsilon-min=0.9 epsilon-max=0.8" 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: %{plan} --ukernel-plan-workloads=psi=nan 2>&1 | FileCheck %s --check-prefix=PSI
// RUN: %{plan} --ukernel-plan-workloads=lambda-step=1e-300 2>&1 | FileCheck %s --check-prefix=LAMBDA
// RUN: %{plan} --ukernel-plan-workloads=c1=nan 2>&1 | FileCheck %s --check-prefix=C1
// RUN: echo "module {}" > %t.empty.mlir
// RUN: not ftuner-opt %t.empty.mlir --ukernel-plan-workloads=max-kernels=0 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: %{plan} --ukernel-plan-workloads=zeta=many 2>&1 | FileCheck %s --check-prefix=ZETA

// STRATEGY: error: option --strategy: expected one of {{.*}}ftuner{{.*}}, but got 'guess'
// MODEL: error: option --cost-model: expected one of {{.*}}sia-program{{.*}}, but got 'dice'
// CALIBRATION: error: option --calibration: cannot read calibration file 'none.json'
// KERNELS: error: option --max-kernels: expected 1 to {{[0-9]+}}, but got 0
// TOPK: error: option --top-k: expected 1 to {{[0-9]+}}, but got -1
// EPSILON: error: option --epsilon-max: expected 0.9{{0*}} to 1
// PSI: error: {{.*}}psi
// LAMBDA: error: option --lambda-step: expected 1e-06 to 1, but got 1e-300
// C1: error: option --c1: expected -1e+09 to 1e+09, but got nan
// ZETA: {{error|for the}}{{.*}}zeta
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
