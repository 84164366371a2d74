// RUN: ftuner-opt %s --ukernel-attach-device=device=h200 --ukernel-plan-workloads --remarks-filter=.* --remark-format=emitRemark 2>&1 | FileCheck %s

// A kernel that may spill is right, so a plan that comes with the input may
// hold it; a remark tells. One warp copies 128 columns, element by element.
// CHECK: remark: [Missed] spill | Category:ukernel-plan-workloads | Remark="@p: family 0 (simt [8,128,8]/[8,4,1] axis 0 stages 2 vector 1): expected at most 255 registers per thread in blocks of 32 threads, but got an estimate of {{[0-9]+}} to be free of spills"
// CHECK-NOT: spill
// CHECK: ukernel.workload plan(@p)
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
ukernel.plan @p <families = [
  <#ukernel.simt<threads = [1, 32], stages = 2, vector = 1>, axis = 0, tiles = [[8, 128, 8]]>,
  <#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 1>
func.func @f(%a: tensor<?x48xf32>, %b: tensor<48x64xf32>, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x48xf32>, tensor<48x64xf32>) outs(%o : tensor<?x64xf32>) maps = [#mk, #kn, #mn] contract {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %q = arith.mulf %x, %y : f32
    %s = arith.addf %c, %q : f32
    ukernel.yield %s : f32
  } -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
