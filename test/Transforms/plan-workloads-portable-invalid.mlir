// RUN: ftuner-opt %s --split-input-file --ukernel-attach-device=device=h100 --ukernel-plan-workloads --verify-diagnostics

// A portable plan that comes with the input must be legal, too, and portable.

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @p <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@q)
// expected-note @below {{the plan is here}}
ukernel.plan @q <families = [<#ukernel.simt<threads = [64, 32], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @illegal(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{expected a legal plan: family 0}}
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn] contract {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %q = arith.mulf %x, %y : f32
    %s = arith.addf %c, %q : f32
    ukernel.yield %s : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @p <families = [<#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>], choices = [], general = 0, unaligned_general = 0> portable(@q)
// expected-note @below {{the plan is here}}
ukernel.plan @q <families = [
  <#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>, axis = 0, tiles = [[128, 128, 64]]>,
  <#ukernel.mma<warps = [2, 2], stages = 2, access = 1>, axis = 0, tiles = [[64, 64, 32]]>], choices = [], general = 0, unaligned_general = 1>
func.func @exact(%a: tensor<?x64xf16>, %b: tensor<64x128xf16>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{expected a portable plan of families that run on other architectures}}
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf16>, tensor<64x128xf16>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn] contract {
  ^bb0(%x: f16, %y: f16, %c: f32):
    %xe = arith.extf %x : f16 to f32
    %ye = arith.extf %y : f16 to f32
    %q = arith.mulf %xe, %ye : f32
    %s = arith.addf %c, %q : f32
    ukernel.yield %s : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
