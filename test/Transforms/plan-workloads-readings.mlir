// The readings of the paper: which axis is combined along, which filter, and
// which bandwidths (docs/paper.md).

// DEFINE: %{options} =
// DEFINE: %{plan} = ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads="%{options}" --remarks-filter=.* --remark-format=emitRemark 2>&1
// REDEFINE: %{options} = main-axis=largest
// RUN: %{plan} | FileCheck %s --check-prefix=LARGEST
// REDEFINE: %{options} = filter=artifact pool=single
// RUN: %{plan} | FileCheck %s --check-prefix=ARTIFACT --implicit-check-not=after_pareto
// REDEFINE: %{options} = filter=paper
// RUN: %{plan} | FileCheck %s --check-prefix=PAPER --implicit-check-not=after_warps --implicit-check-not=after_pareto

// RUN: not ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=bandwidths=measured 2>&1 | FileCheck %s --check-prefix=BANDWIDTHS
// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --ukernel-plan-workloads=bandwidths=measured -o /dev/null
// RUN: not ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=filter=none 2>&1 | FileCheck %s --check-prefix=FILTER
// RUN: not ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=main-axis=n 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not ftuner-opt %s --ukernel-attach-device=device=a100 --ukernel-plan-workloads=psi-count=0 2>&1 | FileCheck %s --check-prefix=COUNT

// The larger axis is static: pairs of widths serve every number of rows, where
// a path has them.
// LARGEST-NOT: cannot combine
// LARGEST: is mma [{{.*}}] + [{{.*}}] axis 1
// LARGEST-NOT: cannot combine
// LARGEST: ukernel.plan @plan_0

// ARTIFACT: family 0 is {{[^+]*}}"
// ARTIFACT: after_register_cmr =
// ARTIFACT: after_occupancy =

// PAPER: after_cross_pick =
// PAPER: after_reduce_axis =

// BANDWIDTHS: error: option --bandwidths: expected a device with the fields 'measured_dram_gbps' and 'measured_shared_memory_gbps' for 'measured', but device 'a100' has none
// FILTER: error: option --filter: expected one of pareto, paper, artifact, but got 'none'
// AXIS: error: option --main-axis: expected one of dynamic, largest, but got 'n'
// COUNT: error: option --psi-count: expected 1 to {{[0-9]+}}, but got 0
func.func @f(%a: tensor<?x256xf16>, %b: tensor<256x640xf16>, %o: tensor<?x640xf32>) -> tensor<?x640xf32> {
  %0 = ukernel.workload ins(%a, %b : tensor<?x256xf16>, tensor<256x640xf16>) outs(%o : tensor<?x640xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ranges = [#ukernel.range<1 to 128>, #ukernel.range<640 to 640>, #ukernel.range<256 to 256>]
    contract {
    ^bb0(%x: f16, %y: f16, %c: f32):
      %xe = arith.extf %x : f16 to f32
      %ye = arith.extf %y : f16 to f32
      %p = arith.mulf %xe, %ye : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<?x640xf32>
  return %0 : tensor<?x640xf32>
}
