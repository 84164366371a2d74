// RUN: ftuner-opt %s --ukernel-dispatch-workloads --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Heights 7 and 8 of one thread along m, and a family for any operands.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [1, 32], stages = 3, vector = 4>, axis = 0, tiles = [[7, 128, 16], [8, 128, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 128>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>],
  general = 0, unaligned_general = 1>

// CHECK-LABEL: func.func @dense
// CHECK-SAME: (%[[A:.*]]: memref<?x768xf32>, %[[B:.*]]: memref<768x2304xf32>, %[[X:.*]]: memref<2304xf32>, %[[O:.*]]: memref<?x2304xf32>)
// The pointers decide between the families, as all rows are multiples of 16 bytes.
// CHECK-DAG: %[[M:.*]] = memref.dim %[[A]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[A]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[B]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK-DAG: memref.extract_aligned_pointer_as_index %[[O]]
// CHECK: %[[CLASS:.*]] = arith.select
// CHECK: scf.index_switch %[[CLASS]]
// CHECK-NEXT: case 0 {
// Blocks of height 7: 7 · M mod 8, as 7 is its own inverse modulo 8; the others
// have height 8.
// CHECK: %[[REST:.*]] = arith.remui %[[M]], %[[EIGHT:.*]] : index
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[REST]], %[[SEVEN:.*]] : index
// CHECK: %[[COUNT:.*]] = arith.remui %[[PRODUCT]], %[[EIGHT]] : index
// CHECK: %[[ROWS:.*]] = arith.muli %[[COUNT]], %[[SEVEN]] : index
// CHECK: arith.cmpi uge, %[[M]], %[[ROWS]] : index
// CHECK: ukernel.launch @dense_0_k0 blocks({{.*}}) args(%[[A]], %[[B]], {{.*}}, %[[X]], %[[O]] : {{.*}}) sizes(%[[M]], {{.*}}, {{.*}}) parts({{.*}})
// CHECK: default {
// CHECK: ukernel.launch @dense_0_k1

// The zero is part of the kernel; m may need padding, n and k are exact.
// CHECK-LABEL: ukernel.kernel @dense_0_k0
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: ukernel.combine axis 0 [%{{.*}} x 7, 8]
// CHECK: ukernel.tile [7, 128, 16]
// CHECK: %[[PAD:.*]] = ukernel.pad %{{.*}} to [7, 1] : memref<?x768xf32>
// CHECK-NOT: ukernel.pad
// CHECK: ukernel.workload ins(%[[PAD]], {{.*}}) init(%[[ZERO]] : f32)
// CHECK: ukernel.tile [8, 128, 16]
// CHECK-LABEL: ukernel.kernel @dense_0_k1
// CHECK: ukernel.combine axis 0 [64]
func.func @dense(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %x: memref<2304xf32>, %o: memref<?x2304xf32>) {
  %zero = arith.constant 0.0 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x768xf32>, memref<768x2304xf32>) init(%zero : f32)
    extras(%x : memref<2304xf32>) outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #bias, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  } epilogue {
  ^bb0(%acc: f32, %e: f32):
    %r = arith.addf %acc, %e : f32
    ukernel.yield %r : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 0>

// Two workloads of the same form share their kernel; a strided view is copied.
// CHECK-LABEL: func.func @twice
// CHECK: ukernel.launch @twice_0_k0
// CHECK: ukernel.launch @twice_0_k0
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?x37xf32>
// CHECK: linalg.copy ins(%{{.*}} : memref<?x37xf32, strided<[?, 2]>>) outs(%[[COPY]] : memref<?x37xf32>)
// CHECK: ukernel.launch @twice_0_k0 {{.*}} args(%[[COPY]],
// CHECK-NOT: ukernel.kernel @twice_1
func.func @twice(%a: memref<?x37xf32>, %s: memref<?x37xf32, strided<[?, 2]>>, %b: memref<37x67xf32>, %o: memref<?x67xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@plan_0) ins(%s, %b : memref<?x37xf32, strided<[?, 2]>>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Many intervals of few sizes: a switch over the size of m, which alone decides.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 64, 16]]>],
  choices = [
    #ukernel.choice<[#ukernel.range<1 to 2>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<3 to 4>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 1>,
    #ukernel.choice<[#ukernel.range<5 to 6>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<7 to 8>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 1>,
    #ukernel.choice<[#ukernel.range<9 to 10>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<11 to 12>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 1>,
    #ukernel.choice<[#ukernel.range<13 to 14>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<15 to 16>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 1>,
    #ukernel.choice<[#ukernel.range<17 to 18>, #ukernel.range<67 to 67>, #ukernel.range<37 to 37>] to 0>],
  general = 1, unaligned_general = 0>

// CHECK-LABEL: func.func @switched
// CHECK-SAME: (%[[A:.*]]: memref<?x37xf32>,
// CHECK-DAG: %[[M:.*]] = memref.dim %[[A]]
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[CLASS:.*]] = scf.index_switch %[[M]] -> index
// CHECK-NEXT: case 1 {
// CHECK-NEXT: scf.yield %[[ZERO]] : index
// CHECK: case 3 {
// CHECK-NEXT: scf.yield %[[ONE]] : index
// CHECK: case 18 {
// CHECK-NEXT: scf.yield %[[ZERO]] : index
// CHECK: default {
// CHECK-NEXT: scf.yield %[[ONE]] : index
// CHECK: scf.index_switch %[[CLASS]]
// CHECK-NEXT: case 1 {
// CHECK: ukernel.launch @switched_0_k1
// CHECK: default {
// CHECK: ukernel.launch @switched_0_k0
func.func @switched(%a: memref<?x37xf32>, %b: memref<37x67xf32>, %o: memref<?x67xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Two threads with 4 or 6 rows: units of 4 rows, heights of 2 and 3 units. The
// inverse of 2 modulo 3 is 2.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [2, 16], stages = 2, vector = 1>, axis = 0, tiles = [[8, 64, 16], [12, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 0>

// CHECK-LABEL: func.func @any_heights
// CHECK-SAME: (%[[A:.*]]: memref<?x37xf32>,
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[M:.*]] = memref.dim %[[A]]
// CHECK: %[[LAST:.*]] = arith.addi %[[M]], %[[THREE]] : index
// CHECK: %[[UNITS:.*]] = arith.divui %[[LAST]], %[[FOUR]] : index
// CHECK: %[[REST:.*]] = arith.remui %[[UNITS]], %[[THREE]] : index
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[REST]], %[[TWO]] : index
// CHECK: %[[COUNT:.*]] = arith.remui %[[PRODUCT]], %[[THREE]] : index
// CHECK: %[[LOW:.*]] = arith.muli %[[COUNT]], %[[TWO]] : index
// CHECK: %[[EXACT:.*]] = arith.cmpi uge, %[[UNITS]], %[[LOW]] : index
// CHECK: %[[HIGH:.*]] = arith.subi %[[UNITS]], %[[LOW]] : index
// CHECK: %[[OTHERS:.*]] = arith.divui %[[HIGH]], %[[THREE]] : index
// CHECK: %[[FIRST:.*]] = arith.select %[[EXACT]], %[[COUNT]], %[[ZERO]] : index
// CHECK: %[[SECOND:.*]] = arith.select %[[EXACT]], %[[OTHERS]], %{{.*}} : index
// CHECK: %[[ROWS:.*]] = arith.addi %[[FIRST]], %[[SECOND]] : index
// CHECK: %[[BLOCKS:.*]] = arith.muli %[[ROWS]], %[[TWO]] : index
// CHECK: ukernel.launch @any_heights_0_k0 blocks(%[[BLOCKS]]) {{.*}} parts(%[[FIRST]])
func.func @any_heights(%a: memref<?x37xf32>, %b: memref<37x67xf32>, %o: memref<?x67xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k, b0, b1) -> (b0, m, b1, k)>
#rhs = affine_map<(m, n, k, b0, b1) -> (b0, n, b1, k)>
#mask = affine_map<(m, n, k, b0, b1) -> (b0, n)>
#out = affine_map<(m, n, k, b0, b1) -> (b0, b1, m, n)>

// Queries times keys: as many blocks for each batch and head. Rows of all
// operands must be multiples of four elements for vectors.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 4>, axis = 0, tiles = [[16, 64, 16, 1, 1]]>,
    #ukernel.family<#ukernel.simt<threads = [4, 16], stages = 2, vector = 1>, axis = 0, tiles = [[16, 64, 16, 1, 1]]>],
  choices = [], general = 0, unaligned_general = 1>

// CHECK-LABEL: func.func @heads
// CHECK-SAME: (%[[Q:.*]]: memref<?x?x12x64xf32>, %[[K:.*]]: memref<?x?x12x64xf32>, %[[MASK:.*]]: memref<?x?xf32>, %[[O:.*]]: memref<?x12x?x?xf32>)
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWELVE:.*]] = arith.constant 12 : index
// CHECK-DAG: %[[SIXTY_FOUR:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[S:.*]] = memref.dim %[[Q]], %[[ONE]]
// CHECK-DAG: %[[T:.*]] = memref.dim %[[K]], %[[ONE]]
// CHECK-DAG: %[[B:.*]] = memref.dim %[[Q]], %{{.*}}
// CHECK-DAG: %{{.*}}, %{{.*}}, %{{.*}}:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[Q]]
// CHECK-DAG: arith.remui %[[STRIDES]]#0, %[[FOUR:.*]] : index
// CHECK-DAG: memref.extract_strided_metadata %[[K]]
// CHECK-DAG: memref.extract_strided_metadata %[[MASK]]
// CHECK-DAG: memref.extract_strided_metadata %[[O]]
// CHECK: scf.index_switch
// CHECK: %[[WIDE:.*]] = arith.addi %[[T]], %{{.*}} : index
// CHECK: %[[COLUMNS:.*]] = arith.divui %[[WIDE]], %{{.*}} : index
// CHECK: %[[OF_BATCH:.*]] = arith.muli %[[COLUMNS]], %[[B]] : index
// CHECK: %[[BESIDE:.*]] = arith.muli %[[OF_BATCH]], %[[TWELVE]] : index
// CHECK: %[[LAST:.*]] = arith.addi %[[S]], %{{.*}} : index
// CHECK: %[[ROWS:.*]] = arith.divui %[[LAST]], %{{.*}} : index
// CHECK: %[[ALL:.*]] = arith.muli %[[ROWS]], %[[BESIDE]] : index
// CHECK: ukernel.launch @heads_0_k0 blocks(%[[ALL]]) {{.*}} sizes(%[[S]], %[[T]], %[[SIXTY_FOUR]], %[[B]], %[[TWELVE]])

// CHECK-LABEL: ukernel.kernel @heads_0_k0
// CHECK-SAME: %{{.*}}: memref<?x12x?x?xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index)
// CHECK: ukernel.pad %{{.*}} to [1, 16, 1, 1] : memref<?x?x12x64xf32>
// CHECK: ukernel.pad %{{.*}} to [1, 64, 1, 1] : memref<?x?x12x64xf32>
func.func @heads(%q: memref<?x?x12x64xf32>, %k: memref<?x?x12x64xf32>, %mask: memref<?x?xf32>, %o: memref<?x12x?x?xf32>) {
  ukernel.workload plan(@plan_0) ins(%q, %k : memref<?x?x12x64xf32>, memref<?x?x12x64xf32>) extras(%mask : memref<?x?xf32>) outs(%o : memref<?x12x?x?xf32>) maps = [#lhs, #rhs, #mask, #out] contract {
  ^bb0(%p: f32, %r: f32, %c: f32):
    %product = arith.mulf %p, %r : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  } epilogue {
  ^bb0(%acc: f32, %x: f32):
    %r = arith.addf %acc, %x : f32
    ukernel.yield %r : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Boxes that are equal or apart on n: first the cell of n, then the interval of
// m. Sizes of m between the intervals and beyond them are general's.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 64, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[16, 64, 16]]>],
  choices = [
    #ukernel.choice<[#ukernel.range<1 to 5>, #ukernel.range<0 to 99>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<7 to 9>, #ukernel.range<100 to ?>, #ukernel.range<37 to 37>] to 0>,
    #ukernel.choice<[#ukernel.range<6 to ?>, #ukernel.range<0 to 99>, #ukernel.range<37 to 37>] to 1>],
  general = 2, unaligned_general = 0>

// CHECK-LABEL: func.func @cells
// CHECK-SAME: (%[[A:.*]]: memref<?x37xf32>, %[[B:.*]]: memref<37x?xf32>,
// CHECK-DAG: %[[M:.*]] = memref.dim %[[A]]
// CHECK-DAG: %[[N:.*]] = memref.dim %[[B]]
// CHECK-DAG: arith.cmpi sle, %[[N]], %c99
// CHECK-DAG: arith.cmpi sge, %[[N]], %c100
// CHECK: %[[CLASS:.*]] = scf.index_switch %{{.*}} -> index
// CHECK-NEXT: case 0 {
// CHECK: %[[LOW:.*]] = arith.cmpi sle, %[[M]], %c5
// CHECK: %[[FAMILY:.*]] = arith.select %[[LOW]], %c0, %c1
// CHECK: scf.yield %[[FAMILY]]
// CHECK: case 1 {
// CHECK-DAG: arith.cmpi sle, %[[M]], %c9
// CHECK-DAG: arith.cmpi sle, %[[M]], %c6
// CHECK: default {
// CHECK-NEXT: scf.yield %c2
// CHECK: scf.index_switch %[[CLASS]]
func.func @cells(%a: memref<?x37xf32>, %b: memref<37x?xf32>, %o: memref<?x?xf32>) {
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x?xf32>) outs(%o : memref<?x?xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#bias = affine_map<(m, n, k) -> (n)>
#out = affine_map<(m, n, k) -> (m, n)>

func.func @unplanned(%a: memref<?x37xf32>, %b: memref<37x67xf32>, %o: memref<?x67xf32>) {
  // expected-error @below {{expected a plan}}
  ukernel.workload ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// Operands that are not aligned have choices of their own.
ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [4, 32], stages = 3, vector = 4>, axis = 0, tiles = [[32, 128, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [8, 16], stages = 2, vector = 1>, axis = 0, tiles = [[32, 64, 16]]>,
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [#ukernel.choice<[#ukernel.range<1 to 128>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>],
  general = 0,
  unaligned = [#ukernel.choice<[#ukernel.range<1 to 32>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 1>],
  unaligned_general = 2>

// CHECK-LABEL: func.func @unaligned
// CHECK-SAME: (%[[A:.*]]: memref<?x768xf32>, %[[B:.*]]: memref<768x2304xf32>, %[[O:.*]]: memref<?x2304xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[MOST:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[M:.*]] = memref.dim %[[A]]
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[M]], %[[MOST]]
// CHECK: %[[SCALAR:.*]] = arith.select %{{.*}}, %[[ONE]], %[[TWO]]
// CHECK: %[[CLASS:.*]] = arith.select %{{.*}}, %[[ZERO]], %[[SCALAR]]
// CHECK: scf.index_switch %[[CLASS]]
// CHECK: ukernel.launch @unaligned_0_k0
// CHECK: ukernel.launch @unaligned_0_k1
// CHECK: default {
// CHECK: ukernel.launch @unaligned_0_k2
func.func @unaligned(%a: memref<?x768xf32>, %b: memref<768x2304xf32>, %o: memref<?x2304xf32>) {
  %zero = arith.constant 0.0 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x768xf32>, memref<768x2304xf32>) init(%zero : f32)
    outs(%o : memref<?x2304xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}

// -----

#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

ukernel.plan @plan_0 #ukernel.plan<families = [
    #ukernel.family<#ukernel.simt<threads = [16, 16], stages = 2, vector = 1>, axis = 0, tiles = [[64, 64, 16]]>],
  choices = [], general = 0, unaligned_general = 0>

// Constants are part of a kernel: workloads that differ in one have kernels of
// their own, whether the operands are one value or two.
// CHECK-LABEL: func.func @constants
// CHECK: ukernel.launch @constants_0_k0
// CHECK: ukernel.launch @constants_1_k0
// CHECK: ukernel.launch @constants_0_k0
// CHECK: ukernel.launch @constants_3_k0
// CHECK-LABEL: ukernel.kernel @constants_0_k0
// CHECK: arith.constant 0.000000e+00 : f32
// CHECK-LABEL: ukernel.kernel @constants_1_k0
// CHECK: arith.constant 1.000000e+00 : f32
// CHECK-LABEL: ukernel.kernel @constants_3_k0
// CHECK-NOT: arith.constant 0.000000e+00 : f32
// CHECK-NOT: arith.constant 1.000000e+00 : f32
// CHECK: ukernel.workload
func.func @constants(%a: memref<?x37xf32>, %b: memref<37x67xf32>, %o: memref<?x67xf32>, %s: f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) init(%zero : f32) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) init(%one : f32) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  %zero2 = arith.constant 0.0 : f32
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) init(%zero2 : f32) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x37xf32>, memref<37x67xf32>) init(%s : f32) outs(%o : memref<?x67xf32>) maps = [#lhs, #rhs, #out] contract {
  ^bb0(%p: f32, %q: f32, %c: f32):
    %product = arith.mulf %p, %q : f32
    %sum = arith.addf %c, %product : f32
    ukernel.yield %sum : f32
  }
  return
}
