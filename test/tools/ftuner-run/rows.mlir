// Reductions of rows, formed and planned, and by plans that reach every way to lay
// a row out: rows of several warps, several rows of a block, chunks in registers or
// read again, wide accesses and single elements, rows that end within a chunk.
// The reference is upstream's own lowering of linalg.

// RUN: rm -rf %t && split-file %s %t

// RUN: ftuner-run %t/softmax.mlir --device=h200 --paths=simt,rows --args=53x65xf32 --args=1x1xf32 --args=7x1000xf32 --args=40x32xf32 --args=5x0xf32 --check --check-bounds --check-races | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/norm.mlir --device=v100 --paths=simt,rows --args=53x65xf32,65xf32 --args=2x3001xf32,3001xf32 --args=9x256xf32,256xf32 --check --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/rms.mlir --device=a100 --paths=simt,rows --args=3x7x96xf16,3x7x96xf16,96xf16 --args=1x1x96xf16,1x1x96xf16,96xf16 --check --check-bounds --check-races | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/rms.mlir --device=a100 --paths=simt,rows --args=2x5x96xf16,2x5x96xf16,96xf16 --check --check-bounds --misalign=2 | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/softmax.mlir --device=h200 --paths=simt,rows --args=0x65xf32 | FileCheck %s --check-prefix=NONE

// By hand, a norm with five numbers of which some are statistics: formed, then
// planned. 32 × 4 elements in a round of a warp; 300 is two rounds and a part.
// RUN: ftuner-opt %t/norm.mlir --ukernel-attach-device=device=a100 --ukernel-normalize-linalg --canonicalize --cse --ukernel-form-workloads=paths=rows | sed -e 's/ukernel.row_reduction ins/ukernel.row_reduction plan(@by_hand) ins/' -e '/^module/r %t/plan.mlir' > %t/formed.mlir

// RUN: sed -e 's/SCHEDULE/rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 16/' -e 's/ELEMENTS/rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 1/' -e 's/TILE/1, 128/g' %t/formed.mlir > %t/streamed.mlir
// RUN: ftuner-run %t/streamed.mlir --device=a100 --args=5x300xf32,300xf32 --args=3x301xf32,301xf32 --args=4x128xf32,128xf32 --check --reference=%t/norm.mlir --check-bounds --check-races | FileCheck %s --check-prefix=ONE
// RUN: sed -e 's/SCHEDULE/rows = 3, lane_rows = 1, lanes = 32, warps = 1, held_units = 3, access = 8/' -e 's/ELEMENTS/rows = 3, lane_rows = 1, lanes = 32, warps = 1, held_units = 3, access = 1/' -e 's/TILE/3, 128/g' %t/formed.mlir > %t/held.mlir
// RUN: ftuner-run %t/held.mlir --device=a100 --args=5x300xf32,300xf32 --args=3x301xf32,301xf32 --args=7x1300xf32,1300xf32 --check --reference=%t/norm.mlir --check-bounds --check-races | FileCheck %s --check-prefix=ONE
// RUN: sed -e 's/SCHEDULE/rows = 2, lane_rows = 1, lanes = 32, warps = 4, held_units = 1, access = 16/' -e 's/ELEMENTS/rows = 2, lane_rows = 1, lanes = 32, warps = 4, held_units = 1, access = 1/' -e 's/TILE/2, 512/g' %t/formed.mlir > %t/warps.mlir
// RUN: ftuner-run %t/warps.mlir --device=a100 --args=5x300xf32,300xf32 --args=3x2111xf32,2111xf32 --args=2x4096xf32,4096xf32 --check --reference=%t/norm.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE

// In slices: a launch for each phase, and one for what follows them.
// RUN: sed -e 's/reduce = \[1\]/reduce = [1], split = 8/g' %t/warps.mlir > %t/slices.mlir
// RUN: ftuner-run %t/slices.mlir --device=a100 --args=5x300xf32,300xf32 --args=1x9001xf32,9001xf32 --args=2x0xf32,0xf32 --args=2x4096xf32,4096xf32 --check --reference=%t/norm.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=SLICES
// SLICES: result 0: {{.*}}relative error
// SLICES: launches: 3 ({{.*}}_k0: {{.*}}_k0_1: {{.*}}_k0_2: {{.*}})
// RUN: ftuner-run %t/softmax.mlir --device=h100 --args=1x300001xf32 --check --check-bounds | FileCheck %s --check-prefix=LONG
// LONG: result 0: {{.*}}relative error
// LONG: launches: 3 (

// A producer that is read along other loops, too, stays outside.
// RUN: ftuner-run %t/transposed.mlir --device=a100 --paths=simt,rows --args=5x5x33xf32 --check --check-bounds | FileCheck %s --check-prefix=APART
// APART: relative error
// APART: launches: 2 (f_fallback_0

// Rows of a static length that end before a chunk that is held: none, and one of three.
// RUN: ftuner-run %t/none.mlir --device=a100 --paths=simt,rows --args=5x0xf32 --check --check-bounds | FileCheck %s --check-prefix=ONE
// RUN: ftuner-run %t/short.mlir --device=a100 --args=5x128xf32 --check --reference=%t/sum.mlir --check-bounds | FileCheck %s --check-prefix=ONE

// What a plan by hand may not say.
// RUN: sed -e 's/SCHEDULE/rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 4/' -e 's/ELEMENTS/rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 1/' -e 's/TILE/1, 128/g' %t/formed.mlir > %t/narrow.mlir
// RUN: not ftuner-run %t/narrow.mlir --device=a100 --args=5x300xf32,300xf32 2>&1 | FileCheck %s --check-prefix=ACCESS
// ACCESS: rows: expected accesses of 1 byte, or of 2 to 4 elements of 4 bytes, but got 4
// RUN: sed -e 's/SCHEDULE/rows = 1, lane_rows = 1, lanes = 32, warps = 2, held_units = 0, access = 1/' -e 's/ELEMENTS/rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 1/' -e 's/TILE/1, 96/g' %t/formed.mlir > %t/chunk.mlir
// RUN: not ftuner-run %t/chunk.mlir --device=a100 --args=5x300xf32,300xf32 2>&1 | FileCheck %s --check-prefix=CHUNK
// CHUNK: rows: expected a tile of 1 rows and 256 elements along them, but got [1,96]

// RUN: sed -e 's/split = 8/split = 512/g' %t/slices.mlir > %t/many.mlir
// RUN: not ftuner-run %t/many.mlir --device=a100 --args=5x300xf32,300xf32 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: rows: expected slices of whole slots, a power of two up to 256, and 32 lanes of a warp along memory, but got 512

// Counts in 64 bits that start from more than 32 bits hold.
// RUN: ftuner-run %t/count.mlir --device=a100 --args=3x37xi1 --args=3x0xi1 --check | FileCheck %s --check-prefix=COUNT
// COUNT: result 0: {{.*}}relative error 0 (
// COUNT: result 1: {{.*}}relative error 0 (

// ONE: result 0: {{.*}}relative error
// ONE: launches: 1 (
// NONE: launches: 0

//--- plan.mlir
  ukernel.plan @by_hand <families = [<#ukernel.rows<SCHEDULE>, axis = 0, tiles = [[TILE]], reduce = [1]>, <#ukernel.rows<ELEMENTS>, axis = 0, tiles = [[TILE]], reduce = [1]>], choices = [], general = 0, unaligned_general = 1>

//--- softmax.mlir
module {
  func.func @softmax(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %y = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %y : tensor<?x?xf32>
  }
}

//--- norm.mlir
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#column = affine_map<(m, r) -> (r)>
module {
  func.func @norm(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}, %gamma: tensor<?xf32> {ukernel.shape = ["C"]})
      -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %int = arith.index_cast %n : index to i64
    %count = arith.sitofp %int : i64 to f32
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %s = tensor.empty(%m) : tensor<?xf32>
    %z = linalg.fill ins(%zero : f32) outs(%s : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
    %mean = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]}
        ins(%sum : tensor<?xf32>) outs(%s : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.divf %a, %count : f32
      linalg.yield %c : f32
    } -> tensor<?xf32>
    %squares = linalg.generic {indexing_maps = [#all, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x, %mean : tensor<?x?xf32>, tensor<?xf32>) outs(%z : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %d = arith.subf %a, %b : f32
      %e = arith.mulf %d, %d : f32
      %f = arith.addf %c, %e : f32
      linalg.yield %f : f32
    } -> tensor<?xf32>
    %rstd = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]}
        ins(%squares : tensor<?xf32>) outs(%s : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.divf %a, %count : f32
      %d = arith.addf %c, %eps : f32
      %e = math.rsqrt %d : f32
      linalg.yield %e : f32
    } -> tensor<?xf32>
    %y = linalg.generic {indexing_maps = [#all, #column, #row, #row, #all], iterator_types = ["parallel", "parallel"]}
        ins(%x, %gamma, %mean, %rstd : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
    ^bb0(%a: f32, %g: f32, %b: f32, %c: f32, %d: f32):
      %e = arith.subf %a, %b : f32
      %f = arith.mulf %e, %c : f32
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
    } -> tensor<?x?xf32>
    return %y, %mean, %rstd : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  }
}

//--- rms.mlir
// residual add, RMS norm with keepdim, f16 in and out, batch axis; sum with the residual is a result, too
#all = affine_map<(b, s, h) -> (b, s, h)>
#keep = affine_map<(b, s, h) -> (b, s, 0)>
#col = affine_map<(b, s, h) -> (h)>
module {
  func.func @rms(%x: tensor<?x?x96xf16>, %r: tensor<?x?x96xf16>, %g: tensor<96xf16>) -> (tensor<?x?x96xf16>, tensor<?x?x96xf16>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = arith.constant 96.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %b = tensor.dim %x, %c0 : tensor<?x?x96xf16>
    %s = tensor.dim %x, %c1 : tensor<?x?x96xf16>
    %e = tensor.empty(%b, %s) : tensor<?x?x96xf16>
    %h = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%x, %r : tensor<?x?x96xf16>, tensor<?x?x96xf16>) outs(%e : tensor<?x?x96xf16>) {
    ^bb0(%a: f16, %c: f16, %o: f16):
      %d = arith.addf %a, %c : f16
      linalg.yield %d : f16
    } -> tensor<?x?x96xf16>
    %k = tensor.empty(%b, %s) : tensor<?x?x1xf32>
    %z = linalg.fill ins(%zero : f32) outs(%k : tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
    %q = linalg.generic {indexing_maps = [#all, #keep], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%h : tensor<?x?x96xf16>) outs(%z : tensor<?x?x1xf32>) {
    ^bb0(%a: f16, %o: f32):
      %w = arith.extf %a : f16 to f32
      %p = arith.mulf %w, %w : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<?x?x1xf32>
    %v = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%q : tensor<?x?x1xf32>) outs(%k : tensor<?x?x1xf32>) {
    ^bb0(%a: f32, %o: f32):
      %d = arith.divf %a, %n : f32
      %f = arith.addf %d, %eps : f32
      %i = math.rsqrt %f : f32
      linalg.yield %i : f32
    } -> tensor<?x?x1xf32>
    %y = linalg.generic {indexing_maps = [#all, #keep, #col, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%h, %v, %g : tensor<?x?x96xf16>, tensor<?x?x1xf32>, tensor<96xf16>) outs(%e : tensor<?x?x96xf16>) {
    ^bb0(%a: f16, %i: f32, %c: f16, %o: f16):
      %w = arith.extf %a : f16 to f32
      %p = arith.mulf %w, %i : f32
      %t = arith.truncf %p : f32 to f16
      %u = arith.mulf %t, %c : f16
      linalg.yield %u : f16
    } -> tensor<?x?x96xf16>
    return %h, %y : tensor<?x?x96xf16>, tensor<?x?x96xf16>
  }
}

//--- transposed.mlir
#a3 = affine_map<(a, b, r) -> (a, b, r)>
#t3 = affine_map<(a, b, r) -> (b, a, r)>
#r3 = affine_map<(a, b, r) -> (a, b)>
func.func @f(%x: tensor<?x?x?xf32>) -> (tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %d0 = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %d1 = tensor.dim %x, %c1 : tensor<?x?x?xf32>
  %d2 = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %o = tensor.empty(%d0, %d1, %d2) : tensor<?x?x?xf32>
  %e = tensor.empty(%d0, %d1) : tensor<?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = linalg.generic {indexing_maps = [#a3, #a3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?x?xf32>) outs(%o : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %q: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  %h = linalg.generic {indexing_maps = [#a3, #t3, #a3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %p : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%o : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %q: f32):
    %s = arith.mulf %a, %b : f32
    %s2 = arith.subf %s, %a : f32
    linalg.yield %s2 : f32
  } -> tensor<?x?x?xf32>
  %s = linalg.generic {indexing_maps = [#a3, #r3], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h : tensor<?x?x?xf32>) outs(%z : tensor<?x?xf32>) {
  ^bb0(%a: f32, %q: f32):
    %s1 = arith.addf %q, %a : f32
    linalg.yield %s1 : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}

//--- none.mlir
func.func @f(%x: tensor<5x0xf32>) -> (tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x0xf32>) outs(%z : tensor<5xf32>) dimensions = [1]
  return %s : tensor<5xf32>
}

//--- short.mlir
module {
  ukernel.plan @by_hand <families = [<#ukernel.rows<rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 3, access = 1>, axis = 0, tiles = [[1, 128]], reduce = [1]>], choices = [], general = 0, unaligned_general = 0>
  func.func @f(%x: tensor<5x128xf32>) -> tensor<5xf32> {
    %e = tensor.empty() : tensor<5xf32>
    %s = ukernel.row_reduction plan(@by_hand) ins(%x : tensor<5x128xf32>) outs(%e : tensor<5xf32>) maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m)>] reduce {
    ^bb0(%a: f32, %acc: f32):
      %t = arith.addf %acc, %a : f32
      ukernel.yield %t : f32
    } values {
    ^bb0(%acc: f32):
      ukernel.yield %acc : f32
    } map {
    ^bb0(%a: f32, %acc: f32):
      ukernel.yield
    } -> tensor<5xf32>
    return %s : tensor<5xf32>
  }
}

//--- sum.mlir
func.func @f(%x: tensor<5x128xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<5x128xf32>) outs(%z : tensor<5xf32>) dimensions = [1]
  return %s : tensor<5xf32>
}

//--- count.mlir
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
module {
  func.func @count(%x: tensor<?x?xi1>) -> (tensor<?xi64>, tensor<?xi64>) {
    %c0 = arith.constant 0 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xi1>
    %negative = arith.constant -100 : i64
    %large = arith.constant 4294967296 : i64
    %o = tensor.empty(%m) : tensor<?xi64>
    %n = linalg.fill ins(%negative : i64) outs(%o : tensor<?xi64>) -> tensor<?xi64>
    %l = linalg.fill ins(%large : i64) outs(%o : tensor<?xi64>) -> tensor<?xi64>
    %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x?xi1>) outs(%n : tensor<?xi64>) {
    ^bb0(%a: i1, %acc: i64):
      %one = arith.extui %a : i1 to i64
      %next = arith.addi %acc, %one : i64
      linalg.yield %next : i64
    } -> tensor<?xi64>
    %t = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<?x?xi1>) outs(%l : tensor<?xi64>) {
    ^bb0(%a: i1, %acc: i64):
      %one = arith.extui %a : i1 to i64
      %next = arith.addi %acc, %one : i64
      linalg.yield %next : i64
    } -> tensor<?xi64>
    return %s, %t : tensor<?xi64>, tensor<?xi64>
  }
}
