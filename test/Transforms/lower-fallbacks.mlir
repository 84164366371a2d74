// RUN: ftuner-opt %s --ukernel-lower-fallbacks --canonicalize --cse -split-input-file -verify-diagnostics | FileCheck %s

// A warp for each row, whose elements are neighbours: the first lane begins with
// what is there, the others with nothing, and butterflies add up the lanes' sums.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME:    %[[X:.*]]: memref<?x?xf32>, %[[Y:.*]]: memref<?xf32>)
// CHECK-DAG:     %[[M:.*]] = memref.dim %[[X]], %c0
// CHECK-DAG:     %[[N:.*]] = memref.dim %[[X]], %c1
// CHECK-DAG:     %[[O:.*]] = memref.dim %[[Y]], %c0
// CHECK:         %[[EQ:.*]] = arith.cmpi eq, %[[O]], %[[M]]
// CHECK:         ukernel.assert %[[EQ]], "{{.*}}: sizes of the operands do not fit each other: dimension 0 of {{.*}} is {0}, but expected {1}"(%[[O]], %[[M]])
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivui %[[M]], %c8
// CHECK:         ukernel.launch @sum_fallback_0::@sum_fallback_0 blocks(%[[BLOCKS]])
// CHECK-SAME:      args(%[[X]], %[[Y]] : memref<?x?xf32>, memref<?xf32>) sizes(%[[M]], %[[N]], %[[O]])
// CHECK:       gpu.module @sum_fallback_0 attributes {ukernel.entry = #ukernel.entry<threads = 256, shared_memory_bytes = 0, alignment = 4,
// CHECK-SAME:    {access = "read", kind = "pointer", name = "in0", type = f32}
// CHECK-SAME:    {access = "readwrite", kind = "pointer", name = "out0", type = f32}
// CHECK-SAME:    {kind = "size", name = "in0_size0", type = i32}
// CHECK:       gpu.func @sum_fallback_0(%[[A:.*]]: memref<f32>, %[[B:.*]]: memref<f32>, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) kernel
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK-DAG:     %[[IN:.*]] = memref.reinterpret_cast %[[A]]
// CHECK-DAG:     %[[OUT:.*]] = memref.reinterpret_cast %[[B]]
// CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK:         %[[POINT:.*]] = arith.divui %{{.*}}, %c32
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %[[POINT]], %{{.*}}
// CHECK:         scf.if %[[INSIDE]]
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK:           %[[INIT:.*]] = scf.if %[[FIRST]] -> (f32)
// CHECK:             memref.load %[[OUT]][%[[POINT]]]
// CHECK:           else
// CHECK-NEXT:        scf.yield %{{.*}}cst
// CHECK:           %[[SUM:.*]] = scf.for %[[J:[a-z0-9]*]] = %[[LANE]] to %{{.*}} step %c32 iter_args(%[[ACC:.*]] = %[[INIT]]) -> (f32)
// CHECK:             memref.load %[[IN]][%[[POINT]], %[[J]]]
// CHECK:           %[[OTHER:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[SUM]], %c16_i32, %c31_i32
// CHECK:           arith.addf %[[SUM]], %[[OTHER]]
// CHECK-COUNT-4:   nvvm.shfl.sync bfly
// CHECK:           %[[TOTAL:.*]] = arith.addf
// CHECK:           scf.if %[[FIRST]]
// CHECK:             memref.store %[[TOTAL]], %[[OUT]][%[[POINT]]]
func.func @sum(%x: memref<?x?xf32>, %y: memref<?xf32>)
    attributes {ukernel.abi_type = (tensor<?x?xf32>, tensor<?xf32>) -> ()} {
  // expected-remark @below {{fallback: linalg.reduce runs as kernel 'sum_fallback_0', a warp for each point of its parallel loops}}
  linalg.reduce ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    }
  return
}

// -----

// The loop that the output is not indexed by is sequential, though it claims to
// be parallel, and the transposed output decides which threads are neighbours.
// CHECK-LABEL: gpu.func @last_fallback_0(
// CHECK:         %[[FAST:.*]] = arith.remui %[[POINT:.*]], %c8
// CHECK:         %[[SLOW:.*]] = arith.divui %[[POINT]], %c8
// CHECK:         %[[LAST:.*]] = scf.for %[[K:[a-z0-9]*]] =
// CHECK:           %[[V:.*]] = memref.load %{{.*}}[%[[FAST]], %[[SLOW]], %[[K]]]
// CHECK:           scf.yield %[[V]]
// CHECK:         memref.store %[[LAST]], %{{.*}}[%[[SLOW]], %[[FAST]]]
func.func @last(%x: memref<8x4x3xf32>, %y: memref<4x8xf32>)
    attributes {ukernel.abi_type = (tensor<8x4x3xf32>, tensor<4x8xf32>) -> ()} {
  // expected-remark @below {{fallback}}
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (j, i)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : memref<8x4x3xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Half precision sums in f32 and rounds once; scalars are parameters, a
// boolean as a byte; strides that are not those of a whole buffer, too. f16
// computes in f32, and rounds what it computes.
// CHECK-LABEL: func.func @half(
// CHECK:         ukernel.launch @half_fallback_0::@half_fallback_0 {{.*}} sizes({{.*}}) strides(%{{[^,]*}})
// CHECK:       gpu.func @half_fallback_0(%{{.*}}: memref<f16>, %{{.*}}: memref<f16>, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[S:.*]]: f16, %[[FLAG:.*]]: i8)
// CHECK-DAG:     arith.trunci %[[FLAG]] : i8 to i1
// CHECK-DAG:     arith.extf %[[S]] : f16 to f32
// CHECK:         %[[P:.*]] = arith.mulf {{.*}} : f32
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[P]] : f32 to f16
// CHECK:         %[[WIDE:.*]] = arith.extf %[[ROUNDED]] : f16 to f32
// CHECK:         %[[Q:.*]] = arith.select %{{.*}}, %[[WIDE]], %{{.*}} : f32
// CHECK:         %[[STORED:.*]] = arith.truncf %[[Q]] : f32 to f16
// CHECK-NEXT:    memref.store %[[STORED]]
func.func @half(%x: memref<?xf16, strided<[?], offset: ?>>, %y: memref<?xf16>, %s: f16, %flag: i1)
    attributes {ukernel.abi_type = (tensor<?xf16>, tensor<?xf16>, f16, i1) -> ()} {
  // expected-remark @below {{fallback}}
  linalg.map ins(%x : memref<?xf16, strided<[?], offset: ?>>) outs(%y : memref<?xf16>)
    (%in: f16, %out: f16) {
      %p = arith.mulf %in, %s : f16
      %q = arith.select %flag, %p, %in : f16
      linalg.yield %q : f16
    }
  return
}

// -----

// A scalar that the host stores; a copy; a constant that one kernel reads, and
// one that something else than a kernel reads, too.
// CHECK-LABEL: func.func @memory(
// CHECK:         %[[BUFFER:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         ukernel.launch @memory_fallback_0::@memory_fallback_0 {{.*}} args(%[[BUFFER]] : memref<4xf32>)
// CHECK:         %[[ELEMENT:.*]] = memref.subview
// CHECK:         ukernel.launch @memory_fallback_1::@memory_fallback_1 {{.*}} args(%[[ELEMENT]], %{{.*}}, f32)
// CHECK:         ukernel.launch @memory_fallback_2::@memory_fallback_2
// CHECK:         ukernel.launch @memory_fallback_3::@memory_fallback_3 {{.*}} args(%[[BUFFER]], %{{.*}})
// CHECK:         %[[HALF:.*]] = memref.subview %[[BUFFER]]
// CHECK:         ukernel.launch @memory_fallback_4::@memory_fallback_4 {{.*}} args(%[[HALF]], %{{.*}})
// CHECK-NOT:   memref.global
// CHECK:       gpu.module @memory_fallback_0
// CHECK:         memref.global "private" constant @data0 {{.*}} dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]>
// CHECK:       gpu.module @memory_fallback_2
// CHECK:         memref.global "private" constant @data0 {{.*}} dense<[5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]>
memref.global "private" constant @shared : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @single : memref<4xf32> = dense<[5.0, 6.0, 7.0, 8.0]>
func.func @memory(%x: memref<4xf32>, %y: memref<4xf32>, %i: index, %v: f32)
    attributes {ukernel.abi_type = (tensor<4xf32>, tensor<4xf32>, index, f32) -> ()} {
  // expected-remark @below {{fallback: linalg.fill}}
  memref.store %v, %x[%i] : memref<4xf32>
  %single = memref.get_global @single : memref<4xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %single, %x : memref<4xf32> to memref<4xf32>
  // expected-remark @below {{fallback}}
  %shared = memref.get_global @shared : memref<4xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %shared, %x : memref<4xf32> to memref<4xf32>
  %half = memref.subview %shared[0] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1]>>
  %of_y = memref.subview %y[0] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1]>>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %half, %of_y : memref<2xf32, strided<[1]>> to memref<2xf32, strided<[1]>>
  return
}

// -----

// A small constant lies in the module of each kernel that reads it.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     memref.alloc
// CHECK:       gpu.module @small_fallback_0
// CHECK:         memref.global "private" constant @data0 {{.*}} dense<[1.000000e+00, 2.000000e+00]>
// CHECK:       gpu.module @small_fallback_1
// CHECK:         memref.global "private" constant @data0 {{.*}} dense<[1.000000e+00, 2.000000e+00]>
memref.global "private" constant @two : memref<2xf32> = dense<[1.0, 2.0]>
func.func @small(%x: memref<2xf32>, %y: memref<2xf32>)
    attributes {ukernel.abi_type = (tensor<2xf32>, tensor<2xf32>) -> ()} {
  %two = memref.get_global @two : memref<2xf32>
  // expected-remark @below {{fallback}}
  linalg.add ins(%two, %two : memref<2xf32>, memref<2xf32>) outs(%x : memref<2xf32>)
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %two, %y : memref<2xf32> to memref<2xf32>
  return
}

// -----

// Two constants at the begin of the function that are copied: the buffer of the
// second is not made at the first, which is erased.
// CHECK-LABEL: func.func @large(
// CHECK-DAG:     %[[FOURS:.*]] = memref.alloc() : memref<1025xf32>
// CHECK-DAG:     %[[FIVES:.*]] = memref.alloc() : memref<1026xf32>
// CHECK-COUNT-6: ukernel.launch
// CHECK-NOT:     ukernel.launch
// CHECK:         return
memref.global "private" constant @fours : memref<1025xf32> = dense<4.0>
memref.global "private" constant @fives : memref<1026xf32> = dense<5.0>
func.func @large(%x: memref<1025xf32>, %y: memref<1026xf32>, %z: memref<1025xf32>, %w: memref<1026xf32>)
    attributes {ukernel.abi_type = (tensor<1025xf32>, tensor<1026xf32>, tensor<1025xf32>, tensor<1026xf32>) -> ()} {
  // expected-remark @below {{fallback}}
  %fours = memref.get_global @fours : memref<1025xf32>
  // expected-remark @below {{fallback}}
  %fives = memref.get_global @fives : memref<1026xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %fours, %x : memref<1025xf32> to memref<1025xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %fives, %y : memref<1026xf32> to memref<1026xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %fours, %z : memref<1025xf32> to memref<1025xf32>
  // expected-remark @below {{fallback}}
  // expected-remark @below {{copy: elements are copied, since no operator writes them into the function's result}}
  memref.copy %fives, %w : memref<1026xf32> to memref<1026xf32>
  return
}

// -----

// A gather reads what it is told to; its assertion cannot be checked.
// CHECK-LABEL: gpu.func @gather_fallback_0(
// CHECK-NOT:     cf.assert
// CHECK:         %[[I:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         %[[V:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK:         memref.store %[[V]]
func.func @gather(%x: memref<?xf32>, %i: memref<4xi64>, %y: memref<4xf32>)
    attributes {ukernel.abi_type = (tensor<?xf32>, tensor<4xi64>, tensor<4xf32>) -> ()} {
  // expected-remark @below {{fallback: linalg.map runs}}
  // expected-remark @below {{fallback: assertions on elements are not checked}}
  linalg.map ins(%i : memref<4xi64>) outs(%y : memref<4xf32>)
    (%in: i64, %out: f32) {
      %zero = arith.constant 0 : i64
      %ok = arith.cmpi sge, %in, %zero : i64
      cf.assert %ok, "index"
      %index = arith.index_cast %in : i64 to index
      %v = memref.load %x[%index] : memref<?xf32>
      linalg.yield %v : f32
    }
  return
}

// -----

// Casts go straight to the type that the program names, every value is rounded
// to its own, and accumulators are when they are stored.
// CHECK-LABEL: gpu.func @roundings_fallback_0
// CHECK:         arith.truncf %{{.*}} : f64 to bf16
// CHECK:         arith.sitofp %{{.*}} : i32 to bf16
// CHECK:         %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.truncf %[[S]] : f32 to bf16
// CHECK:         %[[D:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK:         %[[R:.*]] = arith.truncf %[[D]] : f32 to bf16
// CHECK:         memref.store %[[R]]
// CHECK-LABEL: gpu.func @roundings_fallback_1
// CHECK:         scf.for {{.*}} -> (f32)
// CHECK:           arith.mulf {{.*}} : f32
// CHECK-NOT:       arith.truncf
// CHECK:           scf.yield
// CHECK:         arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT:    memref.store
// CHECK-LABEL: gpu.func @roundings_fallback_2
// CHECK:         scf.for {{.*}} -> (f32)
// CHECK:           %[[E:.*]] = arith.mulf {{.*}} : f32
// CHECK:           arith.truncf %[[E]] : f32 to bf16
// CHECK:           %[[T:.*]] = arith.addf {{.*}} : f32
// CHECK:           scf.yield %[[T]] : f32
func.func @roundings(%x: memref<?xf64>, %i: memref<?xi32>, %b: memref<?xbf16>, %m: memref<?x?xbf16>)
    attributes {ukernel.abi_type = (tensor<?xf64>, tensor<?xi32>, tensor<?xbf16>, tensor<?x?xbf16>) -> ()} {
  // expected-remark @below {{fallback}}
  linalg.map ins(%x, %i : memref<?xf64>, memref<?xi32>) outs(%b : memref<?xbf16>)
    (%in: f64, %integer: i32, %out: bf16) {
      %p = arith.truncf %in : f64 to bf16
      %q = arith.sitofp %integer : i32 to bf16
      %s = arith.addf %p, %q : bf16
      %d = arith.divf %s, %q : bf16
      linalg.yield %d : bf16
    }
  // expected-remark @below {{fallback}}
  linalg.matvec ins(%m, %b : memref<?x?xbf16>, memref<?xbf16>) outs(%b : memref<?xbf16>)
  // expected-remark @below {{fallback}}
  linalg.reduce ins(%m : memref<?x?xbf16>) outs(%b : memref<?xbf16>) dimensions = [1]
    (%in: bf16, %sum: bf16) {
      %p = arith.mulf %in, %in : bf16
      %s = arith.addf %sum, %p : bf16
      linalg.yield %s : bf16
    }
  return
}

// -----

// Scalars of 64 bits are two parameters each, the low half first; the host
// passes them whole.
// CHECK-LABEL: func.func @wide(
// CHECK-SAME:    %{{[a-z0-9]*}}: memref<?xf64>, %[[I:[a-z0-9]*]]: i64, %[[F:[a-z0-9]*]]: f64, %[[X:[a-z0-9]*]]: index, %[[S:[a-z0-9]*]]: f32)
// CHECK:         ukernel.launch @wide_fallback_0::@wide_fallback_0 {{.*}} args(%{{[^,]*}}, %[[I]], %[[F]], %[[X]], %[[S]] : memref<?xf64>, i64, f64, index, f32)
// CHECK:       parameters = [{access = "write", kind = "pointer", name = "out0", type = f64}, {kind = "size", name = "out0_size0", type = i32},
// CHECK-SAME:    {kind = "scalar_low", name = "scalar0", type = i64}, {kind = "scalar_high", name = "scalar0", type = i64},
// CHECK-SAME:    {kind = "scalar_low", name = "scalar1", type = f64}, {kind = "scalar_high", name = "scalar1", type = f64},
// CHECK-SAME:    {kind = "scalar_low", name = "scalar2", type = index}, {kind = "scalar_high", name = "scalar2", type = index},
// CHECK-SAME:    {kind = "scalar", name = "scalar3", type = f32}]
// CHECK:       gpu.func @wide_fallback_0(%{{.*}}: memref<f64>, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[LOW:.*]]: i32, %[[HIGH:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: f32)
// CHECK-DAG:     %[[WIDE_LOW:.*]] = arith.extui %[[LOW]] : i32 to i64
// CHECK-DAG:     %[[WIDE_HIGH:.*]] = arith.extui %[[HIGH]] : i32 to i64
// CHECK-DAG:     %[[UP:.*]] = arith.shli %[[WIDE_HIGH]], %c32_i64 : i64
// CHECK-DAG:     %[[BITS:.*]] = arith.ori %[[UP]], %[[WIDE_LOW]] : i64
// CHECK-DAG:     arith.bitcast %[[BITS]] : i64 to f64
func.func @wide(%y: memref<?xf64>, %i: i64, %f: f64, %x: index, %s: f32)
    attributes {ukernel.abi_type = (tensor<?xf64>, i64, f64, index, f32) -> ()} {
  // expected-remark @below {{fallback}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%y : memref<?xf64>) {
  ^bb0(%out: f64):
    %a = arith.sitofp %i : i64 to f64
    %b = arith.addf %a, %f : f64
    %c = arith.index_cast %x : index to i64
    %d = arith.sitofp %c : i64 to f64
    %e = arith.addf %b, %d : f64
    %g = arith.extf %s : f32 to f64
    %h = arith.addf %e, %g : f64
    linalg.yield %h : f64
  }
  return
}

// -----

// What adds up the slices of a workload's family has the name, the site and the
// use that came with it, one pointer for all slices, and is no fallback.
// CHECK-LABEL: func.func @slices(
// CHECK: ukernel.launch @f_0_k0_sum::@f_0_k0_sum
// CHECK-SAME: ukernel.site = {name = "f_0", slices = "2", workload = "f_0"}
// CHECK: gpu.module @f_0_k0_sum attributes {ukernel.adds_slices
// CHECK-SAME: name = "in0"
// CHECK-NOT: name = "in1"
// CHECK-SAME: uses = [<family = {{.*}}split = 2>, workload = "f_0">]
func.func @slices(%s: memref<2x8x16xf32>, %o: memref<8x16xf32>) attributes {ukernel.abi_type = (tensor<2x8x16xf32>, tensor<8x16xf32>) -> ()} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (0, i, j)>, affine_map<(i, j) -> (1, i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%s, %s : memref<2x8x16xf32>, memref<2x8x16xf32>) outs(%o : memref<8x16xf32>)
      attrs = {ukernel.kernel = {name = "f_0_k0_sum", site = {name = "f_0", slices = "2", workload = "f_0"},
        use = #ukernel.use<family = <#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[28, 32, 8]], split = 2>, workload = "f_0">}} {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}
