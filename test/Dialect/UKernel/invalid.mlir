// RUN: ftuner-opt %s -split-input-file -verify-diagnostics

// One case for each numbered constraint of the dialect's descriptions.

// -----

// range_c1
// expected-error @below {{expected min of at least 0, but got -1}}
module attributes {test.attribute = #ukernel.range<-1 to 4>} {}

// -----

// range_c2
// expected-error @below {{expected min <= max, but got 5 > 4}}
module attributes {test.attribute = #ukernel.range<5 to 4>} {}

// -----

// range_c3
// expected-error @below {{expected step of at least 1, but got 0}}
module attributes {test.attribute = #ukernel.range<1 to 4 step 0>} {}

// -----

// range_c4
// expected-error @below {{expected a finite weight of at least 0 for size 2}}
module attributes {test.attribute = #ukernel.range<1 to 4 weights [2 : -0.5]>} {}

// -----

// range_c4: not a number
// expected-error @below {{expected a finite weight of at least 0 for size 2}}
module attributes {test.attribute = #ukernel.range<1 to 4 weights [2 : 0x7FF8000000000000]>} {}

// -----

// range_c4: no weight
// expected-error @below {{expected a positive weight}}
module attributes {test.attribute = #ukernel.range<1 to 4 weights [2 : 0.0]>} {}

// -----

// range_c5
// expected-error @below {{expected weights for sizes of the range, but got size 5}}
module attributes {test.attribute = #ukernel.range<1 to 4 weights [5 : 0.5]>} {}

// -----

// range_c5: not of the step
// expected-error @below {{expected weights for sizes of the range, but got size 4}}
module attributes {test.attribute = #ukernel.range<1 to 9 step 4 weights [4 : 0.5]>} {}

// -----

// range_c5: descending
// expected-error @below {{expected ascending sizes, but got 2 after 3}}
module attributes {test.attribute = #ukernel.range<1 to 4 weights [3 : 0.5, 2 : 0.5]>} {}

// -----

// device_c1
// expected-error @below {{expected a device with a name}}
module attributes {test.attribute = #ukernel.device<"", {name = ""}>} {}

// -----

// device_c1: another name
// expected-error @below {{expected field 'name' to be "a"}}
module attributes {test.attribute = #ukernel.device<"a", {name = "b"}>} {}

// -----

// schedule_c1: a list
// expected-error @below {{expected 2 numbers of 'threads', but got 1}}
module attributes {test.attribute = #ukernel.simt<threads = [16], stages = 2, vector = 1>} {}

// -----

// schedule_c1: a list
// expected-error @below {{expected 2 numbers of 'warps', but got 3}}
module attributes {test.attribute = #ukernel.mma<warps = [2, 2, 1], stages = 2, access = 16>} {}

// -----

// schedule_c1
// expected-error @below {{simt: expected threads_n of 1 to 1024, but got 0}}
module attributes {test.attribute = #ukernel.simt<threads = [16, 0], stages = 2, vector = 1>} {}

// -----

// schedule_c1
// expected-error @below {{simt: expected stages of 2 to 1024, but got 1}}
module attributes {test.attribute = #ukernel.simt<threads = [16, 16], stages = 1, vector = 1>} {}

// -----

// schedule_c1: few values
// expected-error @below {{simt: expected vector_width of 1 or 4, but got 3}}
module attributes {test.attribute = #ukernel.simt<threads = [16, 16], stages = 2, vector = 3>} {}

// -----

// schedule_c1: few values
// expected-error @below {{mma: expected access_bytes of 1, 4, 8 or 16, but got 2}}
module attributes {test.attribute = #ukernel.mma<warps = [2, 2], stages = 2, access = 2>} {}

// -----

// schedule_c1: more than 32 bits
// expected-error @below {{mma: expected stages of 2 to 1024, but got 4294967298}}
module attributes {test.attribute = #ukernel.mma<warps = [2, 2], stages = 4294967298, access = 16>} {}

// -----

// schedule_c1: optional
// expected-error @below {{wgmma: expected producer_warpgroups of 0 or 1, but got 2}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 2>} {}

// -----

// schedule_c1: an optional list
// expected-error @below {{expected 2 numbers of 'cluster', but got 1}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [2]>} {}

// -----

// schedule_c2: wgmma, groups
// expected-error @below {{wgmma: expected at most 4 warpgroups, but got warpgroups = [4, 2], stages = 4, access = 16}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [4, 2], stages = 4, access = 16>} {}

// -----

// schedule_c2: wgmma, accesses
// expected-error @below {{wgmma: expected accesses of 16 bytes by producers and with tensor maps}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 8, tma = true>} {}

// -----

// schedule_c2: wgmma, producers
// expected-error @below {{wgmma: expected at most 3 consumer warpgroups beside producers}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 2], stages = 4, access = 16, producer_warpgroups = 1>} {}

// -----

// schedule_c2: wgmma, clusters
// expected-error @below {{wgmma: expected clusters of at most 2 blocks}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [2, 2]>} {}

// -----

// schedule_c2: wgmma, none that copies for the other
// expected-error @below {{wgmma: expected producers in clusters of 2 blocks, and along n tensor maps}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, tma = true, cluster = [1, 2]>} {}

// -----

// schedule_c2: wgmma, half a cluster
// expected-error @below {{wgmma: expected persistent blocks in whole clusters, with producers and tensor maps}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [2, 1], persistent = 3>} {}

// -----

// schedule_c2: wgmma, copies by threads
// expected-error @below {{wgmma: expected persistent blocks in whole clusters, with producers and tensor maps}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, persistent = 132>} {}

// -----

// schedule_c2: wgmma, a tile for each block
// expected-error @below {{wgmma: expected ping-pong of persistent blocks alone}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [1, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, ping_pong = true>} {}

// -----

// schedule_c3: simt
// expected-error @below {{simt: expected tiles of multiples of 16 elements along axis 1, but got [28,24,8]}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 24, 8]]>} {}

// -----

// schedule_c3: simt, axes
// expected-error @below {{simt: expected tiles along m, n and k, but got 2 sizes}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32]]>} {}

// -----

// schedule_c3: mma
// expected-error @below {{mma: expected tiles of multiples of 32 elements along axis 0, but got [48,64,32]}}
module attributes {test.attribute = #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 16>, axis = 0, tiles = [[48, 64, 32]]>} {}

// -----

// schedule_c3: mma, swapped operands
// expected-error @below {{mma: expected tiles of multiples of 32 elements along axis 1, but got [24,48,32]}}
module attributes {test.attribute = #ukernel.family<#ukernel.mma<warps = [1, 2], stages = 2, access = 16, swap_operands = true>, axis = 0, tiles = [[24, 48, 32]]>} {}

// -----

// schedule_c3: mma, axes
// expected-error @below {{mma: expected tiles along m, n and k, but got 2 sizes}}
module attributes {test.attribute = #ukernel.family<#ukernel.mma<warps = [2, 2], stages = 2, access = 16>, axis = 0, tiles = [[64, 64]]>} {}

// -----

// schedule_c3: wgmma
// expected-error @below {{wgmma: expected tiles of multiples of 128 elements along axis 0, but got [192,64,64]}}
module attributes {test.attribute = #ukernel.family<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16>, axis = 0, tiles = [[192, 64, 64]]>} {}

// -----

// schedule_c3: wgmma, swapped operands
// expected-error @below {{wgmma: expected tiles of multiples of 128 elements along axis 1, but got [24,64,64]}}
module attributes {test.attribute = #ukernel.family<#ukernel.wgmma<warpgroups = [1, 2], stages = 4, access = 16, swap_operands = true>, axis = 0, tiles = [[24, 64, 64]]>} {}

// -----

// schedule_c3: wgmma, a cluster's tile
// expected-error @below {{wgmma: expected tiles of multiples of 256 elements along axis 0, but got [128,64,64]}}
module attributes {test.attribute = #ukernel.family<#ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, tma = true, cluster = [2, 1]>, axis = 0, tiles = [[128, 64, 64]]>} {}

// -----

// what is given beyond the rest
// expected-error @below {{expected 'swap_operands', 'producer_warpgroups', 'tma', 'cluster', 'persistent', 'ping_pong', 'fit_boxes' or 'bulk_stores', but got 'loaders'}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, loaders = 1>} {}

// -----

// given twice
// expected-error @below {{'producer_warpgroups' is given twice}}
module attributes {test.attribute = #ukernel.wgmma<warpgroups = [2, 1], stages = 4, access = 16, producer_warpgroups = 1, producer_warpgroups = 1>} {}

// -----

// the first ones are not optional
// expected-error @below {{expected 'stages'}}
module attributes {test.attribute = #ukernel.simt<threads = [16, 16], vector = 1, stages = 2>} {}

// -----

// family_c1
// expected-error @below {{expected one or two tiles, but got 3}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [32, 32, 8], [36, 32, 8]]>} {}

// -----

// family_c1: none
// expected-error @below {{expected one or two tiles, but got 0}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = []>} {}

// -----

// family_c1: axes
// expected-error @below {{expected tiles of 3 axes, but got one of 4}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [32, 32, 8, 1]]>} {}

// -----

// family_c1: sizes
// expected-error @below {{expected tile sizes of at least 1, but got 0}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 0]]>} {}

// -----

// family_c2
// expected-error @below {{expected axis below 3, but got 3}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 3, tiles = [[28, 32, 8]]>} {}

// -----

// family_c2: negative
// expected-error @below {{expected axis below 3, but got -1}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = -1, tiles = [[28, 32, 8]]>} {}

// -----

// family_c2: reduce
// expected-error @below {{expected reduce axes below 3 other than axis 0, but got 3}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], reduce = [2, 3]>} {}

// -----

// family_c2: reduce along the axis
// expected-error @below {{expected reduce axes below 3 other than axis 0, but got 0}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], reduce = [0]>} {}

// -----

// family_c3
// expected-error @below {{expected equal tiles on axis 1, but got 32 and 64}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [32, 64, 8]]>} {}

// -----

// family_c3: the higher tile first
// expected-error @below {{expected the lower tile first, but got heights 32 and 28}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8], [28, 32, 8]]>} {}

// -----

// family_c3: equal heights
// expected-error @below {{expected the lower tile first, but got heights 28 and 28}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [28, 32, 8]]>} {}

// -----

// family_c4
// expected-error @below {{simt: expected tiles of multiples of 4 elements along axis 0, but got [30,32,8]}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [30, 32, 8]]>} {}

// -----

// family_c4: no schedule
// expected-error @below {{expected the schedule of a codegen path, but got "simt"}}
module attributes {test.attribute = #ukernel.family<"simt", axis = 0, tiles = [[28, 32, 8]]>} {}

// -----

// family_c5
// expected-error @below {{expected a split-K factor of at least 1, but got 0}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], split = 0>} {}

// -----

// family_c5: a negative number of SMs
// expected-error @below {{expected 1 to 65536 SMs to balance blocks over, but got -132}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [32, 32, 8]], balanced = -132>} {}

// -----

// family_c5: more SMs than any device has
// expected-error @below {{expected 1 to 65536 SMs to balance blocks over, but got 65537}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8], [32, 32, 8]], balanced = 65537>} {}

// -----

// family_c5: one tile
// expected-error @below {{expected two tiles with balanced partitions}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], balanced = 132>} {}

// -----

// expected-error @below {{expected 'reduce', 'split' or 'balanced', but got 'stages'}}
module attributes {test.attribute = #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], stages = 2>} {}

// -----

// choice_c2
// expected-error @below {{expected ranges without step and weights}}
module attributes {test.attribute = #ukernel.choice<[#ukernel.range<0 to 4 step 2>] to 0>} {}

// -----

// choice_c3
// expected-error @below {{expected a family of at least 0, but got -1}}
module attributes {test.attribute = #ukernel.choice<[#ukernel.range<0 to 4>] to -1>} {}

// -----

// choice_c4
// expected-error @below {{expected ranges up to 2147483647, but got #ukernel.range<0 to 2147483648>}}
module attributes {test.attribute = #ukernel.choice<[#ukernel.range<0 to 2147483648>] to 0>} {}

// -----

// choice_c4: of an open range
// expected-error @below {{expected ranges up to 2147483647, but got #ukernel.range<2147483648 to ?>}}
module attributes {test.attribute = #ukernel.choice<[#ukernel.range<2147483648 to ?>] to 0>} {}

// -----

// plan_c1
// expected-error @below {{expected families of 3 axes, but got one of 4}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>, #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8, 1]]>], choices = [], general = 0, unaligned_general = 0>} {}

// -----

// plan_c2
// expected-error @below {{expected general below 1, but got 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 1, unaligned_general = 0>} {}

// -----

// plan_c2: unaligned_general
// expected-error @below {{expected unaligned_general below 1, but got -1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned_general = -1>} {}

// -----

// plan_c2: choice
// expected-error @below {{expected the family of a choice below 1, but got 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [<[<1 to 2>, <1 to 2>, <1 to 2>] to 1>], general = 0, unaligned_general = 0>} {}

// -----

// plan_c2: choice for operands that are not aligned
// expected-error @below {{expected the family of a choice below 1, but got 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned = [<[<1 to 2>, <1 to 2>, <1 to 2>] to 1>], unaligned_general = 0>} {}

// -----

// plan_c3: choice for operands that are not aligned
// expected-error @below {{expected boxes of 3 ranges, but got one of 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned = [<[<1 to 2>] to 0>], unaligned_general = 0>} {}

// -----

// expected-error @below {{expected ','}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned = [] unaligned_general = 0>} {}

// -----

// plan_c3
// expected-error @below {{expected boxes of 3 ranges, but got one of 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [<[<1 to 2>] to 0>], general = 0, unaligned_general = 0>} {}

// -----

// plan_c6
// expected-error @below {{expected an unaligned general family for operands of any alignment, but family 0 asks for 16 bytes}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 8], stages = 2, vector = 4>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned_general = 0>} {}

// -----

// plan_c6: choice for operands that are not aligned
// expected-error @below {{expected unaligned families for operands of any alignment, but family 1 asks for 16 bytes}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [4, 8], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>, #ukernel.family<#ukernel.simt<threads = [4, 8], stages = 2, vector = 4>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned = [<[<1 to 2>, <1 to 2>, <1 to 2>] to 1>], unaligned_general = 0>} {}

// -----

// entry_c1
// expected-error @below {{expected 1 to 1024 threads, but got 0}}
module attributes {test.attribute = #ukernel.entry<threads = 0, shared_memory_bytes = 0, alignment = 16, parameters = []>} {}

// -----

// entry_c1: too many
// expected-error @below {{expected 1 to 1024 threads, but got 1025}}
module attributes {test.attribute = #ukernel.entry<threads = 1025, shared_memory_bytes = 0, alignment = 16, parameters = []>} {}

// -----

// entry_c2
// expected-error @below {{expected shared memory of at least 0 bytes, but got -1}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = -1, alignment = 16, parameters = []>} {}

// -----

// entry_c3
// expected-error @below {{expected alignment to be a power of two, but got 12}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 12, parameters = []>} {}

// -----

// entry_c4
// expected-error @below {{expected parameters of kind pointer, size, stride, scalar, scalar_low, scalar_high, tensor_map or part}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "tensor"}]>} {}

// -----

// entry_c4: no dictionary
// expected-error @below {{expected parameters of kind pointer, size, stride, scalar, scalar_low, scalar_high, tensor_map or part}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = ["size"]>} {}

// -----

// entry_c4: a name that is no string
// expected-error @below {{expected a parameter with a string as name and a type, but got {kind = "size", name = 3 : i64}}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "size", name = 3}]>} {}

// -----

// entry_c4: another access
// expected-error @below {{expected an access of read, write or readwrite, but got}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", access = "all"}]>} {}

// -----

// entry_c5
// expected-error @below {{expected a scalar_high behind each scalar_low, and nowhere else, but got {kind = "part"}}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "scalar_low"}, {kind = "part"}]>} {}

// -----

// entry_c5: without the low half
// expected-error @below {{expected a scalar_high behind each scalar_low, and nowhere else}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "scalar_high"}]>} {}

// -----

// entry_c5: without the high half
// expected-error @below {{expected a scalar_high behind each scalar_low, but got none}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "scalar_low"}]>} {}

// -----

// tensor_map_c1
// expected-error @below {{expected sizes that are names of parameters or numbers of at least 0, but got -1}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", -1], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c1: neither a name nor a number
// expected-error @below {{expected strides that are names of parameters or numbers of at least 0, but got f32}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [f32], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c1: another number of strides
// expected-error @below {{expected one stride less than sizes, but got 2 and 2}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100, 200], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c2
// expected-error @below {{expected a box of 2 dimensions, but got one of 1}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c2: too many dimensions
// expected-error @below {{expected a box of 1 to 5 dimensions, but got 6}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = [1, 1, 1, 1, 1, 1], strides = [8, 8, 8, 8, 8], box = [8, 1, 1, 1, 1, 1], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c2: too many elements
// expected-error @below {{expected a box of 1 to 256 elements along a dimension, but got 257}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 257], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c2: no elements
// expected-error @below {{expected a box of 1 to 256 elements along a dimension, but got 0}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [0, 8], swizzle_bytes = 128, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c3
// expected-error @below {{expected a swizzle of 32, 64 or 128 bytes, or 0 for none, but got 16}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 16, l2_promotion_bytes = 128>} {}

// -----

// tensor_map_c3: the promotion
// expected-error @below {{expected a promotion in L2 of 64, 128 or 256 bytes, or 0 for none, but got 32}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 32>} {}

// -----

// tensor_map_c4: another number of dimensions
// expected-error @below {{expected a number of fit_below for each of 2 dimensions, but got 1}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128, fit_below = [128]>} {}

// -----

// tensor_map_c4: no multiple of 8
// expected-error @below {{expected numbers of fit_below that are multiples of 8 of at most 256, but got 100}}
module attributes {test.attribute = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128, fit_below = [0, 100]>} {}

// -----

// entry_c6
// expected-error @below {{expected a tensor_map with a #ukernel.tensor_map as map, but got {kind = "tensor_map", name = "a_map", type = f16}}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16}]>} {}

// -----

// entry_c6: a map of another kind
// expected-error @below {{expected a tensor_map with a #ukernel.tensor_map as map, but got {kind = "size", map = 1 : i32}}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "size", map = 1 : i32}]>} {}

// -----

// entry_c6: the elements
// expected-error @below {{expected a tensor map of elements of 8, 16, 32 or 64 bits, but got}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = i4, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: another pointer
// expected-error @below {{expected the name of a pointer to f16 in a tensor map, but got 'b'}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16, map = #ukernel.tensor_map<pointer = "b", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: a pointer to something else
// expected-error @below {{expected the name of a pointer to bf16 in a tensor map, but got 'a'}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = bf16, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: another size
// expected-error @below {{expected the name of a size in a tensor map, but got "n"}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "n"], strides = [100], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: a size for a stride
// expected-error @below {{expected the name of a stride in a tensor map, but got "m"}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = ["m"], box = [64, 128], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: rows of a box
// expected-error @below {{expected rows of a box of a multiple of 16 bytes, but got 24}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [12, 8], swizzle_bytes = 128, l2_promotion_bytes = 128>}]>} {}

// -----

// entry_c6: rows beyond the swizzle
// expected-error @below {{expected rows of a box of at most the 64 bytes of its swizzle, but got 128}}
module attributes {test.attribute = #ukernel.entry<threads = 32, shared_memory_bytes = 0, alignment = 16, parameters = [{kind = "pointer", name = "a", type = f16}, {kind = "size", name = "k"}, {kind = "size", name = "m"}, {kind = "stride", name = "s"}, {kind = "tensor_map", name = "a_map", type = f16, map = #ukernel.tensor_map<pointer = "a", sizes = ["k", "m"], strides = [100], box = [64, 128], swizzle_bytes = 64, l2_promotion_bytes = 128>}]>} {}

// -----

// dialect_c1
// expected-error @below {{argument 0: 'ukernel.shape' expected an array, but got "T"}}
func.func @f(%a: tensor<?xf32> {ukernel.shape = "T"}) { return }

// -----

// dialect_c1: entry
// expected-error @below {{expected names of symbols and non-negative sizes, but got 1.0}}
func.func @f(%a: tensor<?xf32> {ukernel.shape = [1.0]}) { return }

// -----

// dialect_c1: negative
// expected-error @below {{expected names of symbols and non-negative sizes, but got -1}}
func.func @f(%a: tensor<?xf32> {ukernel.shape = [-1]}) { return }

// -----

// dialect_c1: empty name
// expected-error @below {{expected names of symbols and non-negative sizes}}
func.func @f(%a: tensor<?xf32> {ukernel.shape = [""]}) { return }

// -----

// dialect_c2
// expected-error @below {{expected one entry for each of 2 dimensions, but got 1}}
func.func @f(%a: tensor<?x4xf32> {ukernel.shape = ["T"]}) { return }

// -----

// dialect_c2: no shape
// expected-error @below {{expected an argument with a ranked shape, but got 'f32'}}
func.func @f(%a: f32 {ukernel.shape = []}) { return }

// -----

// dialect_c2: no rank
// expected-error @below {{expected an argument with a ranked shape, but got 'tensor<*xf32>'}}
func.func @f(%a: tensor<*xf32> {ukernel.shape = []}) { return }

// -----

// dialect_c3
// expected-error @below {{expected 4 for dimension 1, but got 5}}
func.func @f(%a: tensor<?x4xf32> {ukernel.shape = ["T", 5]}) { return }

// -----

// dialect_c3: dynamic
// expected-error @below {{expected the name of a symbol for dynamic dimension 0, but got 3}}
func.func @f(%a: tensor<?x4xf32> {ukernel.shape = [3, 4]}) { return }

// -----

// dialect_c4
// expected-error @below {{argument 1: 'ukernel.shape' expected symbol 'T' to be 4 everywhere, but got 5 for dimension 1}}
func.func @f(%a: tensor<4xf32> {ukernel.shape = ["T"]},
             %b: tensor<?x5xf32> {ukernel.shape = ["T", "T"]}) { return }

// -----

// dialect_c4: in one argument
// expected-error @below {{argument 0: 'ukernel.shape' expected symbol 'T' to be 4 everywhere, but got 5 for dimension 1}}
func.func @f(%a: tensor<4x5xf32> {ukernel.shape = ["T", "T"]}) { return }

// -----

// dialect_c5
// expected-error @below {{'ukernel.symbols' expected a dictionary of ranges}}
module attributes {ukernel.symbols = ["T"]} {}

// -----

// dialect_c5: no range
// expected-error @below {{expected a #ukernel.range for symbol 'T', but got 4}}
module attributes {ukernel.symbols = {T = 4}} {}

// -----

// dialect_c5: not on a module
// expected-error @below {{unknown attribute 'ukernel.symbol': expected 'ukernel.symbols' or 'ukernel.device'}}
module attributes {ukernel.symbol = {T = #ukernel.range<1 to 4>}} {}

// -----

// expected-error @below {{'ukernel.symbols' expected on a module}}
func.func @f() attributes {ukernel.symbols = {}} { return }

// -----

// dialect_c6
// expected-error @below {{'ukernel.device' expected a #ukernel.device, but got "h200"}}
module attributes {ukernel.device = "h200"} {}

// -----

// dialect_c7
// expected-error @below {{'ukernel.entry' expected a #ukernel.entry}}
module attributes {ukernel.entry = 1} {}

// -----

// dialect_c8
// expected-error @below {{'ukernel.abi_type' expected a function type, but got i32}}
func.func @f() attributes {ukernel.abi_type = i32} { return }

// -----

// A shape that is not on an argument
// expected-error @below {{'ukernel.shape' expected on arguments of functions}}
module attributes {ukernel.shape = ["T"]} {}

// -----

// A misspelt attribute
// expected-error @below {{argument 0: unknown attribute 'ukernel.shapes'}}
func.func @f(%a: tensor<?xf32> {ukernel.shapes = ["T"]}) { return }

// -----

// workload_c1
func.func @f(%A: tensor<4x8xf32>, %B: memref<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected operand 1 to be a ranked tensor, but got 'memref<8x6xf32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, memref<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c1: vector
func.func @f(%A: vector<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected operand 0 to be a ranked tensor, but got 'vector<4x8xf32>'}}
  %r = ukernel.workload ins(%A, %B : vector<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c1: neither shape nor number
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: complex<f32>) {
  // expected-error @below {{expected operand 2 with a shape or a number, but got 'complex<f32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) init(%z : complex<f32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c2
func.func @f(%A: memref<4x8xf32>, %B: memref<8x6xf32>, %O: memref<4x6xf32>) {
  // expected-error @below {{expected 0 results, but got 1}}
  %r = ukernel.workload ins(%A, %B : memref<4x8xf32>, memref<8x6xf32>) outs(%O : memref<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c2: none
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected 1 results, but got 0}}
  ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    }
  return
}

// -----

// workload_c2: type
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected the result to be of type 'tensor<4x6xf32>' as the output, but got 'tensor<?x6xf32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<?x6xf32>
  return
}

// -----

// workload_c3
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected 3 maps, but got 2}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c3: scalar init
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f32) {
  // expected-error @below {{expected 3 maps, but got 4}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) init(%z : f32) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a projected permutation of (m, n, k) with 2 results for operand 0}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4: windows over an output
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a projected permutation of (m, n, k) with 2 results for operand 2}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n + 1)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4: loops
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected the axes of loops in their order, of 3 axes, but got [2, 0]}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k, k0, m0) -> (m0, k0)>, affine_map<(m, n, k, k0, m0) -> (k0, n)>, affine_map<(m, n, k, k0, m0) -> (m0, n)>]
    fused = [2, 0]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c14
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a factor with windows that is padded}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    padded
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4: rank
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a projected permutation of (m, n, k) with 2 results for operand 2}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4: axes
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a projected permutation of (m, n, k) with 2 results for operand 0}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected lhs indexed by m and k}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5: rhs
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected rhs indexed by k and n}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5: out
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected out indexed by m and n}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (k, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5: init
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: tensor<8xf32>) {
  // expected-error @below {{expected init and extras not indexed by k}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) init(%z : tensor<8xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5: an input of both factors
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: tensor<4x6xf32>) {
  // expected-error @below {{expected inputs not indexed by both m and n}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) inputs(%z : tensor<4x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %i: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c4: too many axes
func.func @f(%A: tensor<2x2x2x2x4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<2x2x2x2x4x6xf32>) {
  // expected-error @below {{expected maps of m, n, k and up to 3 batch axes}}
  %r = ukernel.workload ins(%A, %B : tensor<2x2x2x2x4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<2x2x2x2x4x6xf32>)
    maps = [affine_map<(m, n, k, a, b, c, d) -> (a, b, c, d, m, k)>, affine_map<(m, n, k, a, b, c, d) -> (k, n)>, affine_map<(m, n, k, a, b, c, d) -> (a, b, c, d, m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<2x2x2x2x4x6xf32>
  return
}

// -----

// workload_c4: other axes
func.func @f(%A: tensor<2x4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<2x4x6xf32>) {
  // expected-error @below {{expected a projected permutation of (m, n, k, b0) with 2 results for operand 1}}
  %r = ukernel.workload ins(%A, %B : tensor<2x4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<2x4x6xf32>)
    maps = [affine_map<(m, n, k, b) -> (b, m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k, b) -> (b, m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<2x4x6xf32>
  return
}

// -----

// workload_c5: a batch axis that out does not have
func.func @f(%A: tensor<2x4x8xf32>, %B: tensor<2x8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected out indexed by b0}}
  %r = ukernel.workload ins(%A, %B : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k, b) -> (b, m, k)>, affine_map<(m, n, k, b) -> (b, k, n)>, affine_map<(m, n, k, b) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c5: a batch axis that neither factor has
func.func @f(%A: tensor<2x4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<2x3x4x6xf32>) {
  // expected-error @below {{expected lhs or rhs indexed by b1}}
  %r = ukernel.workload ins(%A, %B : tensor<2x4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<2x3x4x6xf32>)
    maps = [affine_map<(m, n, k, b, c) -> (b, m, k)>, affine_map<(m, n, k, b, c) -> (k, n)>, affine_map<(m, n, k, b, c) -> (b, c, m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<2x3x4x6xf32>
  return
}

// -----

// workload_c5: three axes of the product in one factor
func.func @f(%A: tensor<4x6x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected lhs indexed by m and k}}
  %r = ukernel.workload ins(%A, %B : tensor<4x6x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, n, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c6: a batch axis
func.func @f(%A: tensor<2x4x8xf32>, %B: tensor<3x8x6xf32>, %O: tensor<?x4x6xf32>) {
  // expected-error @below {{expected b0 to be 2 in operand 1, but got 3}}
  %r = ukernel.workload ins(%A, %B : tensor<2x4x8xf32>, tensor<3x8x6xf32>) outs(%O : tensor<?x4x6xf32>)
    maps = [affine_map<(m, n, k, b) -> (b, m, k)>, affine_map<(m, n, k, b) -> (b, k, n)>, affine_map<(m, n, k, b) -> (b, m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<?x4x6xf32>
  return
}

// -----

// workload_c6
func.func @f(%A: tensor<4x8xf32>, %B: tensor<7x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected k to be 8 in operand 1, but got 7}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<7x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c7
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected contract to take ('f32', 'f32', 'f32'), but got ('f32', 'f32')}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c7: inputs
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: tensor<8xf16>) {
  // expected-error @below {{expected contract to take ('f32', 'f32', 'f16', 'f32'), but got ('f32', 'f32', 'f32')}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) inputs(%z : tensor<8xf16>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (k)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c7: accumulator
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected contract to take ('f32', 'f32', 'f64'), but got ('f32', 'f16', 'f64')}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f16, %c: f64):
      ukernel.yield %c : f64
    } -> tensor<4x6xf32>
  return
}

// -----

// reduction_c2: a wider start
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f64) {
  // expected-error @below {{expected init of 'f32', where the accumulator starts, or of a narrower float type, but got 'f64'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) init(%z : f64) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// reduction_c2: a start of another kind, from the output
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xi8>) {
  // expected-error @below {{expected output of 'f32', where the accumulator starts, or of a narrower float type, but got 'i8'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xi8>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } epilogue {
    ^bb0(%x: f32):
      %h = arith.fptosi %x : f32 to i8
      ukernel.yield %h : i8
    } -> tensor<4x6xi8>
  return
}

// -----

// workload_c7: result
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected contract to yield 'f32', but got 'f16'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %h = arith.truncf %c : f32 to f16
      ukernel.yield %h : f16
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c8
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f32) {
  // expected-error @below {{expected epilogue to take ('f32', 'f32'), but got ('f32')}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) extras(%z : f32) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> ()>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } epilogue {
    ^bb0(%x: f32):
      ukernel.yield %x : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c8: result
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected epilogue to yield 'f32', but got 'f16'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } epilogue {
    ^bb0(%x: f32):
      %h = arith.truncf %x : f32 to f16
      ukernel.yield %h : f16
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c8: extras without epilogue
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f32) {
  // expected-error @below {{expected an epilogue for the extras}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) extras(%z : f32) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> ()>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c8: another type without epilogue
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f64) {
  // expected-error @below {{expected an epilogue from 'f64' to 'f32'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) init(%z : f64) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f64):
      ukernel.yield %c : f64
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c8: two epilogues
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected at most one epilogue, but got 2}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } epilogue {
    ^bb0(%x: f32):
      ukernel.yield %x : f32
    }, {
    ^bb0(%x: f32):
      ukernel.yield %x : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// operator_c4
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected one range for each of (m, n, k)}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ranges = [#ukernel.range<1 to 4>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// operator_c4: no range
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected one range for each of (m, n, k)}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ranges = [#ukernel.range<1 to 4>, 4, 8]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c9
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected @p to be a 'ukernel.plan'}}
  %r = ukernel.workload plan(@p) ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c9: another rank
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8, 1]]>], choices = [], general = 0, unaligned_general = 0>
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a plan of 3 axes, but got 4}}
  %r = ukernel.workload plan(@p) ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// yield_c1
func.func @f(%x: f32) {
  // expected-error @below {{expected to be in a region of an operator, but got 'func.func'}}
  ukernel.yield %x : f32
}

// -----

// The regions capture nothing
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>, %z: f32) {
  // expected-note @below {{required by region isolation constraints}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      // expected-error @below {{using value defined outside the region}}
      ukernel.yield %z : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// kernel_c1
// expected-error @below {{expected the last 4 arguments of type index, but got 'i32'}}
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: i32) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// kernel_c1: too few
// expected-error @below {{expected operands and 4 arguments of type index, but got 4 arguments}}
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// kernel_c2
// expected-error @below {{expected a body that ends with a 'ukernel.combine'}}
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {

}

// -----

// kernel_c2: two
// expected-error @below {{expected only constants before 'ukernel.combine', but got 'ukernel.combine'}}
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// kernel_c3
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      // expected-error @below {{expected operand 0 to be argument 0 of the kernel}}
      ukernel.workload ins(%O, %B : memref<?x?xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// kernel_c3: number
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %X: f32, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      // expected-error @below {{expected 4 operands as the kernel has, but got 3}}
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// kernel_c4
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [8, 16], stages = 2, vector = 1>} {
  // expected-error @below {{simt: expected tiles of multiples of 8 elements along axis 0, but got [28,32,8]}}
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c1
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected one tile for each of 2 heights, but got 1}}
  ukernel.combine axis 0 [%n1 x 28, 32] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c1: a count for one height
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected a count for two heights only, but got 1 height with a count}}
  "ukernel.combine"(%n1) <{axis = 0 : i64, heights = array<i64: 28>}> ({
  ^bb0:
  }) : (index) -> ()
}

// -----

// combine_c1: three heights
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected one or two heights, but got 3}}
  "ukernel.combine"() <{axis = 0 : i64, heights = array<i64: 28, 32, 36>}> ({
  ^bb0:
  }) : () -> ()
}

// -----

// combine_c2
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected a body of 'ukernel.tile', but got 'arith.constant'}}
  ukernel.combine axis 0 [28] {
    %x = arith.constant 1 : index
  }
}

// -----

// combine_c3
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected height 28 of the tile, but got 32}}
  ukernel.combine axis 0 [32] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c3: axis
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected axis below 3, but got 3}}
  ukernel.combine axis 3 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c4
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected equal tiles on axis 2, but got 8 and 16}}
  ukernel.combine axis 0 [%n1 x 28, 32] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
    ukernel.tile [32, 32, 16] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c4: the higher tile first
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected the lower tile first, but got heights 32 and 28}}
  ukernel.combine axis 0 [%n1 x 32, 28] {
    ukernel.tile [32, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// combine_c5
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected a split-K factor of at least 1, but got 0}}
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  } {split = 0 : i64}
}

// -----

// combine_c5: slices would each start from the output
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected operators without epilogue that start from a scalar, as each of 4 slices is a sum by itself}}
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  } {split = 4 : i64}
}

// -----

// combine_c5: an epilogue of slices
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %zero: f32, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  // expected-error @below {{expected operators without epilogue that start from a scalar, as each of 4 slices is a sum by itself}}
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) init(%zero : f32) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        } epilogue {
        ^bb0(%acc: f32):
          ukernel.yield %acc : f32
        }
    }
  } {split = 4 : i64}
}

// -----

// tile_c1
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    // expected-error @below {{expected a body that ends with an operator such as 'ukernel.workload'}}
    ukernel.tile [28, 32, 8] {
      %p = ukernel.pad %A to [28, 8] : memref<?x8xf32>
    }
  }
}

// -----

// tile_c1: another operation
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    // expected-error @below {{expected only 'ukernel.pad' before the operator, but got 'arith.constant'}}
    ukernel.tile [28, 32, 8] {
      %x = arith.constant 1 : index
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// tile_c2: an axis too many
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    // expected-error @below {{expected sizes of 3 axes, but got 4}}
    ukernel.tile [28, 32, 8, 1] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// tile_c2
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 1], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    // expected-error @below {{expected sizes of 3 axes, but got 1}}
    ukernel.tile [28] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}

// -----

// pad_c1
func.func @f(%A: memref<4x8xf32>) {
  // expected-error @below {{expected one tile size for each of 2 dimensions, but got 1}}
  %p = ukernel.pad %A to [4] : memref<4x8xf32>
  return
}

// -----

// pad_c2
func.func @f(%A: memref<4x8xf32>) {
  // expected-error @below {{expected tile sizes of at least 1, but got 0}}
  %p = ukernel.pad %A to [4, 0] : memref<4x8xf32>
  return
}

// -----

// launch_c1
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected arguments that are memrefs or scalars, but got 'tensor<4xf32>'}}
  ukernel.launch @k blocks(%s) args(%t : tensor<4xf32>)
  return
}

// -----

// launch_c2
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected @l to be a 'ukernel.kernel' or a function}}
  ukernel.launch @l blocks(%s) args()
  return
}

// -----

// launch_c2: another symbol
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]]>], choices = [], general = 0, unaligned_general = 0>
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected @p to be a 'ukernel.kernel' or a function}}
  ukernel.launch @p blocks(%s) args()
  return
}

// -----

// launch_c3
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected 3 arguments, but got 2}}
  ukernel.launch @k blocks(%s) args(%A, %B : memref<?x8xf32>, memref<8x?xf32>) sizes(%s, %s, %s)
  return
}

// -----

// launch_c3: type
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected argument 1 of type 'memref<8x?xf32>', but got 'index'}}
  ukernel.launch @k blocks(%s) args(%A, %s, %O : memref<?x8xf32>, index, memref<?x?xf32>) sizes(%s, %s, %s)
  return
}

// -----

// launch_c3: sizes
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected 3 sizes, but got 2}}
  ukernel.launch @k blocks(%s) args(%A, %B, %O : memref<?x8xf32>, memref<8x?xf32>, memref<?x?xf32>) sizes(%s, %s)
  return
}

// -----

// launch_c3: parts
ukernel.kernel @k(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %m: index, %n: index, %k: index, %n1: index) attributes {schedule = #ukernel.simt<threads = [4, 16], stages = 2, vector = 1>} {
  ukernel.combine axis 0 [28] {
    ukernel.tile [28, 32, 8] {
      ukernel.workload ins(%A, %B : memref<?x8xf32>, memref<8x?xf32>) outs(%O : memref<?x?xf32>)
        maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        contract {
        ^bb0(%a: f32, %b: f32, %c: f32):
          ukernel.yield %c : f32
        }
    }
  }
}
func.func @f(%A: memref<?x8xf32>, %B: memref<8x?xf32>, %O: memref<?x?xf32>, %s: index, %t: tensor<4xf32>) {
  // expected-error @below {{expected at most one part, but got 2}}
  ukernel.launch @k blocks(%s) args(%A, %B, %O : memref<?x8xf32>, memref<8x?xf32>, memref<?x?xf32>) sizes(%s, %s, %s) parts(%s, %s)
  return
}

// -----

// ranking_c1: one score for each
// expected-error @below {{expected families with one score for each, but got 1 families and 2 scores}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [2.0, 1.0]>} {}

// -----

// ranking_c2
// expected-error @below {{expected scores that do not ascend, but got 2.000000e+00 after 1.000000e+00}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>, #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0, 2.0]>} {}

// -----

// ranking_c3: sizes
// expected-error @below {{expected sizes of at least 1, but got 0}}
module attributes {test.attribute = #ukernel.ranking<[0, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0]>} {}

// -----

// ranking_c3: axes
// expected-error @below {{expected families of 2 axes, but got one of 3}}
module attributes {test.attribute = #ukernel.ranking<[2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0]>} {}

// -----

// plan_c3: rankings
// expected-error @below {{expected rankings of 4 sizes, but got one of 3}}
ukernel.plan @p <families = [<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8, 1]]>], choices = [], general = 0, unaligned_general = 0, rankings = [<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0]>]>

// -----

// dialect_c10: an array
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected an array, but got "T"}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = "T"} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: one entry for each axis
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected one entry for each of (m, n, k), but got [unit, unit]}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [unit, unit]} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: a factor
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected 'unit', or a positive factor and names of symbols, but got ["T"]}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [["T"], unit, unit]} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: a positive factor
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected 'unit', or a positive factor and names of symbols, but got [0, "T"]}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [[0, "T"], unit, unit]} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: a symbol
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected 'unit', or a positive factor and names of symbols, but got [16]}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [unit, [16], unit]} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: names
func.func @f(%a: tensor<?x8xf32>, %b: tensor<8x?xf32>, %o: tensor<?x?xf32>) {
  // expected-error @below {{'ukernel.extents' expected 'unit', or a positive factor and names of symbols, but got [16, ""]}}
  %r = ukernel.workload ins(%a, %b : tensor<?x8xf32>, tensor<8x?xf32>) outs(%o : tensor<?x?xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: f32, %y: f32, %c: f32):
      ukernel.yield %c : f32
    } {ukernel.extents = [unit, unit, [16, ""]]} -> tensor<?x?xf32>
  return
}

// -----

// dialect_c10: on another operation
// expected-error @below {{'ukernel.extents' expected on an operator such as 'ukernel.workload'}}
func.func private @f() attributes {ukernel.extents = []}

// -----

// predictions_c1: shapes
// expected-error @below {{expected shapes with a family for each, but got 0 sizes and 0 families}}
module attributes {test.attribute = #ukernel.predictions<shapes = [], families = [], microseconds = [], regrets = [], confidences = []>} {}

// -----

// predictions_c1: families
// expected-error @below {{expected one family for each of 2 shapes, but got 1}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3], [4, 5, 6]], families = [0], microseconds = [1.0, 1.0], regrets = [0.0, 0.0], confidences = [1.0, 1.0]>} {}

// -----

// predictions_c1: microseconds
// expected-error @below {{expected microseconds for each of 1 shapes, but got 2}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0, 1.0], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c1: regrets
// expected-error @below {{expected regrets for each of 1 shapes, but got 0}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [], confidences = [1.0]>} {}

// -----

// predictions_c1: confidences
// expected-error @below {{expected confidences for each of 1 shapes, but got 2}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0, 1.0]>} {}

// -----

// predictions_c2: sizes agree
// expected-error @below {{expected shapes of 3 sizes, but got one of 2}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3], [4, 5]], families = [0, 0], microseconds = [1.0, 1.0], regrets = [0.0, 0.0], confidences = [1.0, 1.0]>} {}

// -----

// predictions_c2: no sizes
// expected-error @below {{expected shapes with a family for each, but got 0 sizes and 1 families}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c2: size 0
// expected-error @below {{expected sizes of at least 1, but got 0}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 0, 3]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c3
// expected-error @below {{expected families of at least 0, but got -1}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [-1], microseconds = [1.0], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c4: positive
// expected-error @below {{expected finite microseconds above 0, but got 0}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [0.0], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c4: finite
// expected-error @below {{expected finite microseconds above 0, but got INF}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0e999], regrets = [0.0], confidences = [1.0]>} {}

// -----

// predictions_c4: regrets
// expected-error @below {{expected finite regrets of at least 0, but got -5.000000e-01}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [-0.5], confidences = [1.0]>} {}

// -----

// predictions_c4: confidences
// expected-error @below {{expected confidences from 0.5 to 1, but got 2.500000e-01}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [0.25]>} {}

// -----

// predictions_c5: one for each
// expected-error @below {{expected 1 measured microseconds, but got 2}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0], measured = [1.0, 2.0]>} {}

// -----

// predictions_c5: at least 0
// expected-error @below {{expected finite measured microseconds of at least 0, but got -1.000000e+00}}
module attributes {test.attribute = #ukernel.predictions<shapes = [[1, 2, 3]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0], measured = [-1.0]>} {}

// -----

// ranking_c5
// expected-error @below {{expected 1 measured microseconds, but got 2}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0], measured = [1.0, 2.0]>} {}

// -----

// ranking_c5: finite
// expected-error @below {{expected finite measured microseconds of at least 0, but got INF}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0], microseconds = [1.0], measured = [1.0e999]>} {}

// -----

// Times of one kind twice.
// expected-error @below {{expected times of one kind once}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0], measured = [1.0], measured = [1.0]>} {}

// -----

// ranking_c4: one for each
// expected-error @below {{expected microseconds for each of 1 families, but got 2}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0], microseconds = [1.0, 2.0]>} {}

// -----

// ranking_c4: positive
// expected-error @below {{expected finite microseconds above 0, but got -1}}
module attributes {test.attribute = #ukernel.ranking<[1, 2, 3], families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], scores = [1.0], microseconds = [-1.0]>} {}

// -----

// plan_c3: predictions
// expected-error @below {{expected predictions of 3 sizes, but got some of 2}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0, predictions = <shapes = [[1, 2]], families = [0], microseconds = [1.0], regrets = [0.0], confidences = [1.0]>>} {}

// -----

// plan_c4
// expected-error @below {{expected the family of a prediction below 1, but got 1}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0, predictions = <shapes = [[1, 2, 3]], families = [1], microseconds = [1.0], regrets = [0.0], confidences = [1.0]>>} {}

// -----

// plan_c5
// expected-error @below {{expected strings in 'search', but got "strategy" = 3 : i64}}
module attributes {test.attribute = #ukernel.plan<families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0, search = {strategy = 3 : i64}>} {}

// -----

// plan_c7: a name of nothing
// expected-error @below {{expected @q to be another 'ukernel.plan'}}
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@q)

// -----

// plan_c7: its own
// expected-error @below {{expected @p to be another 'ukernel.plan'}}
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@p)

// -----

// plan_c7: a portable plan of a portable plan
// expected-error @below {{expected @q to be portable, but it names a portable plan itself}}
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@q)
ukernel.plan @q <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@r)
ukernel.plan @r <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0>

// -----

// plan_c7: other axes
// expected-error @below {{expected a portable plan of 3 axes, but got 4}}
ukernel.plan @p <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8]]>], choices = [], general = 0, unaligned_general = 0> portable(@q)
ukernel.plan @q <families = [#ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 32, 8, 1]]>], choices = [], general = 0, unaligned_general = 0>

// -----

// workload_c10
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a precision of tf32, but got 'f16'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    precision = f16
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c10: products of another type
func.func @f(%A: tensor<4x8xi8>, %B: tensor<8x6xi8>, %O: tensor<4x6xi32>) {
  // expected-error @below {{expected a sum of products of f32 with a precision of tf32}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xi8>, tensor<8x6xi8>) outs(%O : tensor<4x6xi32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    precision = tf32
    contract {
    ^bb0(%a: i8, %b: i8, %c: i32):
      %x = arith.extsi %a : i8 to i32
      %y = arith.extsi %b : i8 to i32
      %p = arith.muli %x, %y : i32
      %s = arith.addi %c, %p : i32
      ukernel.yield %s : i32
    } -> tensor<4x6xi32>
  return
}

// -----

// workload_c11
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a precision that factors are truncated to}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    truncated
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c12: parts of a step
func.func @f(%A: tensor<4x48xf32>, %B: tensor<48x8xf32>, %O: tensor<4x8xf32>) {
  // expected-error @below {{expected a packed rhs of whole steps of 128 bytes along k and whole groups of 8 along n, but got 'tensor<48x8xf32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x48xf32>, tensor<48x8xf32>) outs(%O : tensor<4x8xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    packed
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x8xf32>
  return
}

// -----

// workload_c12: parts of a group
func.func @f(%A: tensor<4x64xf32>, %B: tensor<64x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a packed rhs of whole steps of 128 bytes along k and whole groups of 8 along n, but got 'tensor<64x6xf32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x64xf32>, tensor<64x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    packed
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c12: a dynamic axis
func.func @f(%A: tensor<4x?xf32>, %B: tensor<?x8xf32>, %O: tensor<4x8xf32>) {
  // expected-error @below {{expected a packed rhs of static k and n alone, but got 'tensor<?x8xf32>'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x?xf32>, tensor<?x8xf32>) outs(%O : tensor<4x8xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    packed
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      ukernel.yield %s : f32
    } -> tensor<4x8xf32>
  return
}

// -----

// workload_c12: wide elements
func.func @f(%A: tensor<4x64xf64>, %B: tensor<64x8xf64>, %O: tensor<4x8xf64>) {
  // expected-error @below {{expected a packed rhs with elements of 1, 2 or 4 bytes, but got 'f64'}}
  %r = ukernel.workload ins(%A, %B : tensor<4x64xf64>, tensor<64x8xf64>) outs(%O : tensor<4x8xf64>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    packed
    contract {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %p = arith.mulf %a, %b : f64
      %s = arith.addf %c, %p : f64
      ukernel.yield %s : f64
    } -> tensor<4x8xf64>
  return
}

// -----

// workload_c10: no product
func.func @f(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>, %O: tensor<4x6xf32>) {
  // expected-error @below {{expected a sum of products of f32 with a precision of tf32}}
  %r = ukernel.workload ins(%A, %B : tensor<4x8xf32>, tensor<8x6xf32>) outs(%O : tensor<4x6xf32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    precision = tf32
    contract {
    ^bb0(%a: f32, %b: f32, %c: f32):
      ukernel.yield %c : f32
    } -> tensor<4x6xf32>
  return
}

// -----

// workload_c13
func.func @workload_c13(%a: tensor<4x16xi8>, %b: tensor<16x8xi4>, %o: tensor<4x8xi32>) {
  // expected-error@+1 {{expected operand 1 with floats, booleans or integers of 8, 16, 32 or 64 bits, but got 'tensor<16x8xi4>'}}
  %r = ukernel.workload ins(%a, %b : tensor<4x16xi8>, tensor<16x8xi4>) outs(%o : tensor<4x8xi32>)
    maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    contract {
    ^bb0(%x: i8, %y: i4, %c: i32):
      %p = arith.extsi %x : i8 to i32
      %q = arith.extsi %y : i4 to i32
      %t = arith.muli %p, %q : i32
      %s = arith.addi %c, %t : i32
      ukernel.yield %s : i32
    } -> tensor<4x8xi32>
  return
}

// -----

// row_reduction_c1: no axis of rows
func.func @rows0(%x: tensor<4xf32>, %y: tensor<f32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected maps of 1 to 4 axes of rows and one along them}}
  %r = ukernel.row_reduction ins(%x : tensor<4xf32>) outs(%y : tensor<f32>)
    maps = [affine_map<(r) -> (r)>, affine_map<(r) -> ()>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<f32>
  return
}

// -----

// row_reduction_c2: an output that all rows would write
func.func @rows1(%x: tensor<?x?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected outputs with a dimension that n indexes alone}}
  %r = ukernel.row_reduction ins(%x : tensor<?x?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, n, r) -> (m, n, r)>, affine_map<(m, n, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// row_reduction_c3: an accumulator of f16
func.func @rows2(%x: tensor<?x4xf16>, %y: tensor<?xf16>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected reduction 0 to have an accumulator of f32, f64 or i32, but got 'f16'}}
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf16>) outs(%y : tensor<?xf16>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f16, %acc: f16):
      %s = arith.addf %acc, %a : f16
      ukernel.yield %s : f16
    } values {
    ^bb0(%s: f16):
      ukernel.yield %s : f16
    } map {
    ^bb0(%a: f16, %s: f16):
      ukernel.yield
    } -> tensor<?xf16>
  return
}

// -----

// row_reduction_c3: two operations update the accumulator
func.func @rows3(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected reduction 0 to update its accumulator by one operation with a neutral element}}
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      %t = arith.mulf %s, %acc : f32
      ukernel.yield %t : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// row_reduction_c3: a reduction asks for one that comes later
func.func @rows4(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected reduction 0 to take ('f32', 'f32'), but got ('f32', 'f32', 'f32')}}
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// row_reduction_c4: values of another type
func.func @rows5(%x: tensor<?x4xf32>, %y: tensor<?xi32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected values to yield 'i32', but got 'f32'}}
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xi32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xi32>
  return
}

// -----

// row_reduction_c4: an element too many
func.func @rows6(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected map to yield , but got 'f32'}}
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// row_reduction_c5
func.func @rows7(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected @missing to be a 'ukernel.plan'}}
  %r = ukernel.row_reduction plan(@missing) ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// row_reduction_c6: a phase of tensors
func.func @rows_phase0(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %s: tensor<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected buffers, as it is of one phase}}
  %r:2 = ukernel.row_reduction phase(0) ins(%x : tensor<?x?xf32>) outs(%y, %s : tensor<?xf32>, tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s0 = arith.addf %acc, %a : f32
      ukernel.yield %s0 : f32
    } values {
    ^bb0(%s0: f32):
      ukernel.yield %s0 : f32
    } map {
    ^bb0(%a: f32, %s0: f32):
      ukernel.yield
    } -> tensor<?xf32>, tensor<?xf32>
  return
}

// -----

// row_reduction_c6: no state
func.func @rows_phase1(%x: memref<?x?xf32>, %y: memref<?xf32>, %s: memref<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected a state for each of 1 reductions behind the outputs}}
  ukernel.row_reduction phase(0) ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s0 = arith.addf %acc, %a : f32
      ukernel.yield %s0 : f32
    } values {
    ^bb0(%s0: f32):
      ukernel.yield %s0 : f32
    } map {
    ^bb0(%a: f32, %s0: f32):
      ukernel.yield
    }
  return
}

// -----

// row_reduction_c6: a phase behind the last
func.func @rows_phase2(%x: memref<?x?xf32>, %y: memref<?xf32>, %s: memref<?xf32>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected a phase up to 1}}
  ukernel.row_reduction phase(2) ins(%x : memref<?x?xf32>) outs(%y, %s : memref<?xf32>, memref<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s0 = arith.addf %acc, %a : f32
      ukernel.yield %s0 : f32
    } values {
    ^bb0(%s0: f32):
      ukernel.yield %s0 : f32
    } map {
    ^bb0(%a: f32, %s0: f32):
      ukernel.yield
    }
  return
}

// -----

// row_reduction_c6: a state of another type
func.func @rows_phase3(%x: memref<?x?xf32>, %y: memref<?xf32>, %s: memref<?xf16>) {
  // expected-error @+1 {{'ukernel.row_reduction' op expected a state of 'f32' with the map affine_map<(d0, d1) -> (d0)>, but got 'memref<?xf16>' with affine_map<(d0, d1) -> (d0)>}}
  ukernel.row_reduction phase(0) ins(%x : memref<?x?xf32>) outs(%y, %s : memref<?xf32>, memref<?xf16>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s0 = arith.addf %acc, %a : f32
      ukernel.yield %s0 : f32
    } values {
    ^bb0(%s0: f32):
      ukernel.yield %s0 : f32
    } map {
    ^bb0(%a: f32, %s0: f32):
      ukernel.yield
    }
  return
}

// -----

// index_c1: outside of rows
func.func @index0() -> index {
  // expected-error @+1 {{'ukernel.index' op expected to be in a region of a 'ukernel.row_reduction'}}
  %i = ukernel.index 0
  return %i : index
}

// -----

// index_c1: no axis of rows, and one of the batch
func.func @index1(%x: tensor<?x?x?x4xf32>, %y: tensor<?x?x?xf32>) {
  %r = ukernel.row_reduction ins(%x : tensor<?x?x?x4xf32>) outs(%y : tensor<?x?x?xf32>)
    maps = [affine_map<(m, n, b, r) -> (b, n, m, r)>, affine_map<(m, n, b, r) -> (b, n, m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      // expected-error @+1 {{'ukernel.index' op expected an axis m, n or r, but got 2}}
      %i = ukernel.index 2
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?x?x?xf32>
  return
}

// -----

// index_c2: once a row
func.func @index2(%x: tensor<?x4xf32>, %y: tensor<?xf32>) {
  %r = ukernel.row_reduction ins(%x : tensor<?x4xf32>) outs(%y : tensor<?xf32>)
    maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %s = arith.addf %acc, %a : f32
      ukernel.yield %s : f32
    } values {
    ^bb0(%s: f32):
      // expected-error @+1 {{'ukernel.index' op expected no position along a row in 'values'}}
      %i = ukernel.index 1
      ukernel.yield %s : f32
    } map {
    ^bb0(%a: f32, %s: f32):
      ukernel.yield
    } -> tensor<?xf32>
  return
}

// -----

// assert_c1
func.func @eleven_sizes(%c: i1, %n: index) {
  // expected-error @below {{'ukernel.assert' op expected at most 10 sizes, but got 11}}
  ukernel.assert %c, "sizes"(%n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n)
  return
}

// -----

// pointwise_c4: a reduction without taps
func.func @pointwise4(%x: tensor<?xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected taps for 'start' and 'reduce'}}
  %r = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p) -> (p)>, affine_map<(p) -> (p)>] reduce {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// pointwise_c4: taps without a reduction
func.func @pointwise4(%x: tensor<?xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected 'start' and 'reduce' for taps}}
  %r = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0) -> (p)>, affine_map<(p, t, t0) -> (p)>] taps = [3] map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// pointwise_c4: too many taps
func.func @pointwise4(%x: tensor<?xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected positive extents of up to 4096 taps in all}}
  %r = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0, t1) -> (p + t0 + t1)>, affine_map<(p, t, t0, t1) -> (p)>] taps = [2, 2049] start {
      %z = arith.constant 0.0 : f32
      ukernel.yield %z : f32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      ukernel.yield %a : f32
    } map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// pointwise_c4: an accumulator of another type
func.func @pointwise4(%x: tensor<?xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected reduce to take ('f32', 'i32'), but got ('f32', 'f32')}}
  %r = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0) -> (p + t0)>, affine_map<(p, t, t0) -> (p)>] taps = [2] start {
      %z = arith.constant 0 : i32
      ukernel.yield %z : i32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      ukernel.yield %a : f32
    } map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// pointwise_c5: padding of another type
func.func @pointwise5(%x: tensor<?xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected padding of 'f32', but got 0 : i32}}
  %r = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0) -> (p + t0 - 1)>, affine_map<(p, t, t0) -> (p)>] taps = [3] padded = [0 : i32] start {
      %z = arith.constant 0.0 : f32
      ukernel.yield %z : f32
    } reduce {
    ^bb0(%a: f32, %acc: f32):
      ukernel.yield %a : f32
    } map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}

// -----

// operator_c7: a filter of another extent than the taps
func.func @taps(%x: tensor<?xf32>, %w: tensor<4xf32>, %o: tensor<?xf32>) {
  // expected-error @below {{'ukernel.pointwise' op expected equal sizes of operands along dimension 2 of their maps, but got 3 and 4}}
  %r = ukernel.pointwise ins(%x, %w : tensor<?xf32>, tensor<4xf32>) outs(%o : tensor<?xf32>)
    maps = [affine_map<(p, t, t0) -> (p + t0)>, affine_map<(p, t, t0) -> (t0)>, affine_map<(p, t, t0) -> (p)>] taps = [3] start {
      %z = arith.constant 0.0 : f32
      ukernel.yield %z : f32
    } reduce {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      ukernel.yield %a : f32
    } map {
    ^bb0(%a: f32):
      ukernel.yield %a : f32
    } -> tensor<?xf32>
  return
}
