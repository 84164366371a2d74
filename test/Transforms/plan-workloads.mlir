// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads | FileCheck %s
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads --remarks-filter=.* --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=max-kernels=3 | FileCheck %s --check-prefix=FEW
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads | ftuner-opt --ukernel-plan-workloads | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Equal workloads share a plan; another layout or another range is another
// workload.
// CHECK: ukernel.plan @plan_0 <families = [<#ukernel.simt<threads = [{{[0-9]+, [0-9]+}}], stages = {{[0-9]+}}, vector = 4{{(, threads_k = [0-9]+)?}}>, axis = {{[01]}}, tiles = {{\[\[}}
// CHECK-SAME: choices = [<[<
// CHECK-SAME: general = {{[0-9]+}}, unaligned_general = {{[0-9]+}}, search = {calibration = "a100-pcie", cost_model = "latency", paths = "simt,mma,wgmma,rows,chains", strategy = "ftuner"}, statistics = {
// CHECK: ukernel.plan @plan_1
// CHECK: ukernel.plan @plan_2
// CHECK-NOT: ukernel.plan
// CHECK: func.func @f
// CHECK: ukernel.workload plan(@plan_0)
// CHECK: ukernel.workload plan(@plan_0)
// CHECK: ukernel.workload plan(@plan_1)
// CHECK: ukernel.workload plan(@plan_2)

// REMARK: remark: [Passed] plan | Category:ukernel-plan-workloads | Function=f | Remark="@plan_0: {{[0-9]+}} kernel families, general {{[0-9]+}}, unaligned general {{[0-9]+}}"
// REMARK: remark: [Passed] family | Category:ukernel-plan-workloads | Function=f | Remark="@plan_0: family 0 is simt [
// REMARK: remark: [Analysis] prediction | Category:ukernel-plan-workloads | Function=f | Remark="@plan_0: {{[0-9]+}} shapes are predicted to take {{[0-9.]+}} to {{[0-9.]+}} us by calibration a100-pcie, at worst {{[0-9.]+}} % over the fastest program ({{[0-9]+ x [0-9]+ x [0-9]+}}{{.*}}); {{[0-9]+}} choices are closer than

// FEW: ukernel.plan @plan_0
// FEW: general = {{[0-2]}}, unaligned_general = {{[0-2]}}, search = {{.*}}, statistics
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %bt: tensor<128x64xf32>, %o: tensor<?x128xf32>) -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>) {
  %0 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    ranges = [#ukernel.range<0 to 32>, #ukernel.range<128 to 128>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  %1 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%0 : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    ranges = [#ukernel.range<1 to 32>, #ukernel.range<128 to 128>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  %2 = ukernel.workload ins(%a, %bt : tensor<?x64xf32>, tensor<128x64xf32>) outs(%1 : tensor<?x128xf32>) maps = [#mk, #nk, #mn]
    ranges = [#ukernel.range<1 to 32>, #ukernel.range<128 to 128>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  %3 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%2 : tensor<?x128xf32>) maps = [#mk, #kn, #mn]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x128xf32>
  return %0, %1, %2, %3 : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
}
