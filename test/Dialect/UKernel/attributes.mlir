// RUN: ftuner-opt %s -split-input-file | FileCheck %s
// RUN: ftuner-opt %s -split-input-file | ftuner-opt -split-input-file | FileCheck %s
// RUN: ftuner-opt %s -split-input-file -mlir-print-op-generic | ftuner-opt -split-input-file | FileCheck %s

// Attributes of the dialect, and the attributes that it puts on others.

// CHECK: module attributes {ukernel.device = #ukernel.device<"small", {name = "small", sm_count = 4 : i64}>
// CHECK-SAME: ukernel.symbols = {K = #ukernel.range<16 to ? step 16>
// CHECK-SAME: S = #ukernel.range<0 to 0>
// CHECK-SAME: T = #ukernel.range<1 to 128 weights [7 : 2.500000e-01, 53 : 7.500000e-01]>
// CHECK-SAME: U = #ukernel.range<1 to ?>
module attributes {
  ukernel.device = #ukernel.device<"small", {name = "small", sm_count = 4 : i64}>,
  ukernel.symbols = {
    T = #ukernel.range<1 to 128 weights [7 : 0.25, 53 : 0.75]>,
    K = #ukernel.range<16 to ? step 16>,
    S = #ukernel.range<0 to 0>,
    U = #ukernel.range<1 to ?>}} {
  // CHECK: func.func @f(%{{.*}}: tensor<?x768xf32> {ukernel.shape = ["T", 768]}, %{{.*}}: tensor<f32> {ukernel.shape = []})
  // CHECK-SAME: ukernel.abi_type = (tensor<?x768xf32>) -> ()
  func.func @f(%a: tensor<?x768xf32> {ukernel.shape = ["T", 768]},
               %b: tensor<f32> {ukernel.shape = []})
      attributes {ukernel.abi_type = (tensor<?x768xf32>) -> ()} {
    return
  }
  // A symbol may stand for a static size too, the same one everywhere.
  // CHECK: func.func @g
  func.func @g(%a: tensor<53xf32> {ukernel.shape = ["T"]},
               %b: tensor<?x53xf32> {ukernel.shape = ["T", "T"]}) {
    return
  }
}

// -----

// CHECK: test.attributes =
// CHECK-SAME: #ukernel.simt<threads = [16, 16], stages = 3, vector = 4>
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}112, 64, 16], [128, 64, 16]]>
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}112, 64, 16], [128, 64, 16]], balanced = 132>
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}112, 64, 16], [128, 64, 16]], reduce = [1, 2], split = 4, balanced = 132>
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 1, tiles = {{\[\[}}112, 64, 16, 1]], reduce = [3]>
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0, tiles = {{\[\[}}112, 64, 16]], split = 4>
// An exact partition of no slices is the default and is not printed.
// CHECK-SAME: #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 4>, axis = 0, tiles = {{\[\[}}112, 64, 16], [128, 64, 16]]>
// Operands that are not swapped are the default, too.
// CHECK-SAME: #ukernel.mma<warps = [1, 4], stages = 4, access = 16, swap_operands = true>
// CHECK-SAME: #ukernel.mma<warps = [2, 2], stages = 3, access = 8>
// CHECK-SAME: #ukernel.mma<warps = [2, 2], stages = 3, access = 4>
// CHECK-SAME: #ukernel.mma<warps = [1, 2], stages = 3, access = 16, swap_operands = true, warps_batch = 4>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 2], stages = 4, access = 16, swap_operands = true>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 8>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 2], stages = 4, access = 16, swap_operands = true, producer_warpgroups = 1, tma = true>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [2, 1], persistent = 132>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [1, 2]>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, persistent = 132, ping_pong = true>
// CHECK-SAME: #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, persistent = 132>
// CHECK-SAME: #ukernel.choice<[<1 to 64>, <1 to ?>, <0 to 0>] to 3>
module attributes {test.attributes = [
  #ukernel.simt<threads = [16, 16], stages = 3, vector = 4>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0,
    tiles = [[112, 64, 16], [128, 64, 16]]>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0,
    tiles = [[112, 64, 16], [128, 64, 16]], balanced = 132>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0,
    tiles = [[112, 64, 16], [128, 64, 16]], reduce = [1, 2], split = 4, balanced = 132>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 1,
    tiles = [[112, 64, 16, 1]], reduce = [3]>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 3, vector = 4>, axis = 0,
    tiles = [[112, 64, 16]], split = 4>,
  #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 4>, axis = 0,
    tiles = [[112, 64, 16], [128, 64, 16]], split = 1, balanced = 0>,
  #ukernel.mma<warps = [1, 4], stages = 4, access = 16, swap_operands = true>,
  #ukernel.mma<warps = [2, 2], stages = 3, access = 8, swap_operands = false>,
  #ukernel.mma<warps = [2, 2], stages = 3, access = 4, warps_batch = 1>,
  #ukernel.mma<warps = [1, 2], stages = 3, access = 16, warps_batch = 4, swap_operands = true>,
  #ukernel.wgmma<warpgroups = [1, 2], stages = 4, access = 16, swap_operands = true>,
  #ukernel.wgmma<warpgroups = [2, 1], stages = 3, access = 8, swap_operands = false>,
  #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = false>,
  #ukernel.wgmma<warpgroups = [1, 2], stages = 4, access = 16, tma = true, producer_warpgroups = 1, swap_operands = true>,
  #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, persistent = 132, cluster = [2, 1], producer_warpgroups = 1, tma = true>,
  #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [1, 2], persistent = 0>,
  #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, ping_pong = true, persistent = 132, producer_warpgroups = 1, tma = true>,
  #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, persistent = 132>,
  #ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<0 to 0>] to 3>
]} {}

// -----

// CHECK: ukernel.plan @plan_0 <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>]
// CHECK-SAME: choices = [<[<1 to 64>, <1 to ?>, <1 to ?>] to 0>, <[<65 to ?>, <1 to ?>, <1 to ?>] to 0>]
// CHECK-SAME: general = 0, unaligned_general = 0, statistics = {candidates = 1.200000e+01 : f64}>
ukernel.plan @plan_0 #ukernel.plan<
  families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>,
             <[<65 to ?>, <1 to ?>, <1 to ?>] to 0>],
  general = 0, unaligned_general = 0, statistics = {candidates = 12.0 : f64}>
// CHECK: ukernel.plan @plan_1 <{{.*}}, choices = [], general = 0, unaligned_general = 0>
ukernel.plan @plan_1 <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0>
// CHECK: ukernel.plan @unaligned <{{.*}}, choices = [], general = 0, unaligned = [<[<1 to 64>, <1 to ?>, <1 to ?>] to 0>], unaligned_general = 0>
ukernel.plan @unaligned <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned = [<[<1 to 64>, <1 to ?>, <1 to ?>] to 0>],
  unaligned_general = 0>

// -----

// CHECK: gpu.module @k attributes {ukernel.entry = #ukernel.entry<threads = 256, shared_memory_bytes = 49152, alignment = 16, parameters = [{access = "read", kind = "pointer", name = "lhs", type = f32}, {kind = "size", name = "m", type = i32}]>}
gpu.module @k attributes {ukernel.entry = #ukernel.entry<
    threads = 256, shared_memory_bytes = 49152, alignment = 16,
    parameters = [{kind = "pointer", name = "lhs", type = f32, access = "read"},
                  {kind = "size", name = "m", type = i32}]>} {}
// CHECK: gpu.module @maps attributes {ukernel.entry = #ukernel.entry<{{.*}}, {kind = "tensor_map", map = #ukernel.tensor_map<pointer = "lhs", sizes = [4096, "m", "b0"], strides = ["s1", 65536], box = [64, 128, 1], swizzle_bytes = 128, l2_promotion_bytes = 256>, name = "lhs_map", type = f16}]>}
gpu.module @maps attributes {ukernel.entry = #ukernel.entry<
    threads = 256, shared_memory_bytes = 49152, alignment = 16,
    parameters = [{kind = "pointer", name = "lhs", type = f16, access = "read"},
                  {kind = "size", name = "m", type = i32}, {kind = "size", name = "b0", type = i32},
                  {kind = "stride", name = "s1", type = i32},
                  {kind = "tensor_map", name = "lhs_map", type = f16, map = #ukernel.tensor_map<
                     pointer = "lhs", sizes = [4096, "m", "b0"], strides = ["s1", 65536],
                     box = [64, 128, 1], swizzle_bytes = 128, l2_promotion_bytes = 256>}]>} {}
// CHECK: gpu.module @rounding attributes {ukernel.entry = #ukernel.entry<{{.*}}, name = "lhs_map", type = tf32}]>}
gpu.module @rounding attributes {ukernel.entry = #ukernel.entry<
    threads = 256, shared_memory_bytes = 49152, alignment = 16,
    parameters = [{kind = "pointer", name = "lhs", type = f32},
                  {kind = "tensor_map", name = "lhs_map", type = tf32, map = #ukernel.tensor_map<
                     pointer = "lhs", sizes = [4096, 16], strides = [4096],
                     box = [32, 16], swizzle_bytes = 128, l2_promotion_bytes = 256>}]>} {}
// CHECK: gpu.module @l attributes {ukernel.entry = #ukernel.entry<{{.*}}, uses = [<family = <#ukernel.simt<{{.*}}>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>, workload = "dense">, <family = <#ukernel.simt<{{.*}}>]>}
gpu.module @l attributes {ukernel.entry = #ukernel.entry<
    threads = 64, shared_memory_bytes = 0, alignment = 4, parameters = [],
    uses = [<family = #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>,
             workload = "dense">,
            <family = <#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>>]>} {}

// -----

// CHECK: ukernel.plan @ranked <{{.*}}, unaligned_general = 0, statistics = {candidates = 2.000000e+00 : f64}
// CHECK-SAME: rankings = [<[53, 2304, 768], families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}32, 32, 8]]>, <#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = {{\[\[}}8, 32, 8]]>]
// CHECK-SAME: scores = [2.250000e+00, -1.523456789012344{{[0-9]+}}]>, <[1, 2, 3],
ukernel.plan @ranked <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0, statistics = {candidates = 2.0 : f64},
  rankings = [<[53, 2304, 768],
                families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>,
                            <#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [2.25, -1.523456789012345]>,
              <[1, 2, 3],
                families = [<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [1.0]>]>
// Without statistics.
// CHECK: ukernel.plan @only_ranked <{{.*}}, unaligned_general = 0, rankings = [<[1, 2, 3],
ukernel.plan @only_ranked <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0,
  rankings = [<[1, 2, 3],
                families = [<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [1.0]>]>

// With predictions, which print as short as they can; each part may be absent.
// CHECK: ukernel.plan @predicted <{{.*}}, unaligned_general = 0, search = {calibration = "global", cost_model = "latency", strategy = "ftuner"}, statistics = {candidates = 2 : i64}, predictions = <shapes = {{\[\[}}1, 2304, 768], [53, 2304, 768]], families = [0, 0], microseconds = [1.0e-07, 18.1206], regrets = [0.0, 0.1], confidences = [0.5, 1.0]>, rankings = [<[1, 2, 3],
// CHECK-SAME: scores = [1.000000e+00], microseconds = [1.0e+300]>]>
ukernel.plan @predicted <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0,
  search = {strategy = "ftuner", cost_model = "latency", calibration = "global"},
  statistics = {candidates = 2 : i64},
  predictions = <shapes = [[1, 2304, 768], [53, 2304, 768]], families = [0, 0],
                 microseconds = [1.0e-7, 18.12060], regrets = [0.0, 0.1], confidences = [0.5, 1.0]>,
  rankings = [<[1, 2, 3],
                families = [<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [1.0], microseconds = [1.0e300]>]>
// CHECK: ukernel.plan @only_predicted <{{.*}}, unaligned_general = 0, predictions = <shapes = {{\[\[}}7, 8, 9]], families = [0], microseconds = [2.5], regrets = [0.0], confidences = [0.75]>>
ukernel.plan @only_predicted <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0,
  predictions = #ukernel.predictions<shapes = [[7, 8, 9]], families = [0], microseconds = [2.5], regrets = [0.0], confidences = [0.75]>>
// Measured times stand beside predicted ones; 0 is for what was not measured.
// CHECK: ukernel.plan @measured <{{.*}}, search = {measurer = "gpu"}, predictions = <shapes = {{\[\[}}7, 8, 9], [8, 8, 9]], families = [0, 0], microseconds = [2.5, 2.5], regrets = [0.0, 0.0], confidences = [0.75, 0.75], measured = [0.0, 3.25]>, rankings = [<[1, 2, 3],
// CHECK-SAME: scores = [1.000000e+00], microseconds = [1.5], measured = [2.0]>, <[1, 2, 4],
// CHECK-SAME: scores = [1.000000e+00], measured = [2.0]>]>
ukernel.plan @measured <
  families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>],
  choices = [], general = 0, unaligned_general = 0,
  search = {measurer = "gpu"},
  predictions = #ukernel.predictions<shapes = [[7, 8, 9], [8, 8, 9]], families = [0, 0], microseconds = [2.5, 2.5], regrets = [0.0, 0.0], confidences = [0.75, 0.75], measured = [0.0, 3.25]>,
  rankings = [<[1, 2, 3],
                families = [<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [1.0], measured = [2.0], microseconds = [1.5]>,
              <[1, 2, 4],
                families = [<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 32, 8]]>],
                scores = [1.0], measured = [2.0]>]>

// CHECK: func.func @extents
// CHECK: } {ukernel.extents = [{{\[}}16, "S", "T"], unit, unit]}
func.func @extents(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [[16, "S", "T"], unit, unit]} -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
