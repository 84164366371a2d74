// A thread of 4 × 2 elements multiplies 8 elements of k in a step of the main
// loop: 64 FMAs, as the loop within the step is unrolled in the end.

// RUN: ftuner-translate %s --ftuner-to-ptx --device=h200 | FileCheck %s
// RUN: ftuner-translate %s --ftuner-to-ptx --device=t4 | FileCheck %s

// CHECK-LABEL: .entry f_0_k0(
// CHECK-COUNT-64: fma.rn.f32
// CHECK-NOT:   fma.rn.f32
// CHECK-LABEL: .entry f_fallback_0(
#family = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>
ukernel.plan @plan <families = [#family], choices = [], general = 0, unaligned_general = 0>
func.func @f(%a: tensor<?x768xf32>, %b: tensor<768x2304xf32>, %o: tensor<?x2304xf32>) -> tensor<?x2304xf32> {
  %0 = ukernel.workload plan(@plan) ins(%a, %b : tensor<?x768xf32>, tensor<768x2304xf32>) outs(%o : tensor<?x2304xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x2304xf32>
  return %0 : tensor<?x2304xf32>
}
