// With NVIDIA's assembler: 21 × 8 accumulators beside fragments of both operands
// along k are more than 255 registers, whatever the estimate says. The other plan
// stays.

// REQUIRES: ptxas
// DEFINE: %{feedback} = --ukernel-ptxas-feedback="search=builtin.module(ukernel-plan-workloads{max-kernels=2})"
// RUN: ftuner-opt %s --ukernel-attach-device=device=orin-nano %{feedback} --remarks-filter=ukernel-ptxas-feedback --remark-format=emitRemark -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t.mlir

// REMARK: remark: [Missed] rejected | Category:ukernel-ptxas-feedback | Remark="@plan_0: family simt [105,256,16]/[21,8,1] axis 0 stages 3 vector 4 spills {{[0-9]+}} bytes at 25{{[45]}} registers"
// REMARK: remark: [Passed] measured | Category:ukernel-ptxas-feedback | Remark="@plan_0: {{.*}} families rejected"
// CHECK: ukernel.plan @plan_0 <families = [
// CHECK-NOT: threads = [5, 32], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}105, 256, 16]]
// CHECK-SAME: choices = [
// CHECK-SAME: ptxas_rejected = {{[1-9]}}
// CHECK-SAME: ukernel.measured = [{registers = {{[1-9][0-9]+}} : i64, spill_bytes = 0 : i64}
// CHECK-SAME: ukernel.rejected = [#ukernel.family<#ukernel.simt<threads = [5, 32], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}105, 256, 16]]>
// CHECK: ukernel.plan @plan_1 <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0{{ ?}}, statistics = {ptxas_rejected = 0 : i64
// CHECK-SAME: {ukernel.measured = [{registers = {{[1-9][0-9]+}} : i64, spill_bytes = 0 : i64}]}
#spilling = #ukernel.family<#ukernel.simt<threads = [5, 32], stages = 3, vector = 4>, axis = 0, tiles = [[105, 256, 16]]>
#small = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>
ukernel.plan @plan_0 <families = [#spilling, #small], choices = [], general = 0, unaligned_general = 1>
ukernel.plan @plan_1 <families = [#small], choices = [], general = 0, unaligned_general = 0>
func.func @f(%a: tensor<?x768xf32>, %b: tensor<2304x768xf32>, %o: tensor<?x2304xf32>) -> tensor<?x2304xf32> {
  %0 = ukernel.workload plan(@plan_0) ins(%a, %b : tensor<?x768xf32>, tensor<2304x768xf32>) outs(%o : tensor<?x2304xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x2304xf32>
  %1 = ukernel.workload plan(@plan_1) ins(%a, %b : tensor<?x768xf32>, tensor<2304x768xf32>) outs(%0 : tensor<?x2304xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x2304xf32>
  return %1 : tensor<?x2304xf32>
}
