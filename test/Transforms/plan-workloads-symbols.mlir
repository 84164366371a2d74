// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=max-kernels=4 | FileCheck %s
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads="top-k=3 max-kernels=4" | FileCheck %s --check-prefix=TOP
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads="top-k=3 max-kernels=4" | ftuner-opt | FileCheck %s --check-prefix=TOP
// RUN: ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=max-kernels=4 --remarks-filter=.* --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Workloads whose axes are tied alike share a plan, whatever the symbols are
// called; the tie itself makes another workload. A tied axis has no cells of
// its own: the plan depends on one size.
// CHECK: ukernel.plan @plan_0
// CHECK: ukernel.plan @plan_1
// CHECK-NOT: ukernel.plan
// CHECK: ukernel.workload plan(@plan_0)
// CHECK: ukernel.workload plan(@plan_0)
// CHECK: ukernel.workload plan(@plan_1)

// Rankings hold as many programs of each shape as were asked for.
// TOP: ukernel.plan @plan_0 <families = {{.*}} statistics = {{.*}}, predictions = <shapes = {{.*}}, rankings = [<[1, 1, 64], families = [<#ukernel.simt<
// TOP-SAME: scores = [{{[^],]+, [^],]+, [^],]+}}], microseconds = [{{[^],]+, [^],]+, [^],]+}}]>, <[2, 2, 64], families =
// CHECK-NOT: rankings

// Figures of the search, every one of a stage among them.
// REMARK: remark: [Analysis] statistic | Category:ukernel-plan-workloads | Function=f | Remark="@plan_0: candidates_by_rules = {{[0-9]+}}"
// REMARK: Remark="@plan_0: candidates = {{[0-9]+}}"
// REMARK: Remark="@plan_0: shapes = 32"
// REMARK: Remark="@plan_0: after_cross_pick = {{[0-9]+}}"
// REMARK: Remark="@plan_0: after_pareto = {{[0-9]+}}"
// REMARK: Remark="@plan_0: families = {{[1-4]}}"
// REMARK: Remark="@plan_0: score_loss = {{[0-9.e-]+}}"
func.func @f(%a: tensor<?x64xf32>, %b: tensor<64x?xf32>, %o: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%o : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    ranges = [#ukernel.range<1 to 32>, #ukernel.range<1 to 32>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %product = arith.mulf %x, %y : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    } {ukernel.extents = [[1, "T"], [1, "T"], unit]} -> tensor<?x?xf32>
  %1 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%0 : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    ranges = [#ukernel.range<1 to 32>, #ukernel.range<1 to 32>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %product = arith.mulf %x, %y : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    } {ukernel.extents = [[1, "S"], [1, "S"], unit]} -> tensor<?x?xf32>
  %2 = ukernel.workload ins(%a, %b : tensor<?x64xf32>, tensor<64x?xf32>) outs(%1 : tensor<?x?xf32>) maps = [#mk, #kn, #mn]
    ranges = [#ukernel.range<1 to 32>, #ukernel.range<1 to 32>, #ukernel.range<64 to 64>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %product = arith.mulf %x, %y : f32
      %sum = arith.addf %c, %product : f32
      ukernel.yield %sum : f32
    } {ukernel.extents = [[1, "T"], [1, "S"], unit]} -> tensor<?x?xf32>
  return %0, %1, %2 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}
