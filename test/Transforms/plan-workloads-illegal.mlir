// RUN: ftuner-opt %s --split-input-file --ukernel-attach-device=device=v100 --ukernel-plan-workloads --verify-diagnostics

// A plan that comes with the input must be legal for its workload and the
// device; the verifier knows neither.

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Twice as many threads as the device has in a block.
// expected-note @below {{the plan is here}}
ukernel.plan @p <families = [<#ukernel.simt<threads = [64, 32], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @threads(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{expected a legal plan: family 0 (simt [64,64,8]/[1,2,1] axis 0 stages 2 vector 1): simt: expected a multiple of 32 threads, at most 1024, but got 2048}}
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

// Stages that need asynchronous copies, in a family that no shape takes.
// expected-note @below {{the plan is here}}
ukernel.plan @p <families = [
  <#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>,
  <#ukernel.simt<threads = [8, 16], stages = 3, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @stages(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{expected a legal plan: family 1 (simt [32,32,8]/[4,2,1] axis 0 stages 3 vector 1): simt: expected exactly 2 pipeline stages on v100, but got 3}}
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn] contract {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %q = arith.mulf %x, %y : f32
    %s = arith.addf %c, %q : f32
    ukernel.yield %s : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// -----

#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Rows of an lhs that is contiguous along m, in vectors that end outside of the
// tile. The other families of the plan are fine.
// expected-note @below {{the plan is here}}
ukernel.plan @p <families = [
  <#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>,
  <#ukernel.simt<threads = [2, 16], stages = 2, vector = 4>, axis = 0, tiles = [[14, 64, 8]]>],
  choices = [<[<1 to ?>, <1 to ?>, <1 to ?>] to 1>], general = 1, unaligned_general = 0>
func.func @vectors(%a: tensor<64x?xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{simt: expected tiles of contiguous axes to be multiples of the vector width, but got [14,64,8]/[7,4,1]}}
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<64x?xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#km, #kn, #mn] contract {
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

// Accumulators alone take half of the registers of a thread, of which 1024
// threads have 64 each.
// expected-note @below {{the plan is here}}
ukernel.plan @p <families = [<#ukernel.simt<threads = [16, 64], stages = 2, vector = 1>, axis = 0, tiles = [[128, 256, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @registers(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{registers per thread}}
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

// More slices of k than a thread adds up.
// expected-note @below {{the plan is here}}
ukernel.plan @p <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]], split = 33>], choices = [], general = 0, unaligned_general = 0>
func.func @slices(%a: tensor<?x64xf32>, %b: tensor<64x128xf32>, %o: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // expected-error @below {{simt: expected a split-K factor of up to 32, but got 33}}
  %0 = ukernel.workload plan(@p) ins(%a, %b : tensor<?x64xf32>, tensor<64x128xf32>) outs(%o : tensor<?x128xf32>) maps = [#mk, #kn, #mn] contract {
  ^bb0(%x: f32, %y: f32, %c: f32):
    %q = arith.mulf %x, %y : f32
    %s = arith.addf %c, %q : f32
    ukernel.yield %s : f32
  } -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}
