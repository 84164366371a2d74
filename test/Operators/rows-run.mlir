// Rows that warps reduce together, through the operator interface: a softmax and
// a norm with two statistics as outputs, on a path that computes any test.rows.
// States of several accumulators are merged jointly, by shuffles, through shared
// memory, and between slices by a second kernel. The reference is upstream's own
// lowering of linalg.

// RUN: rm -rf %t && split-file %s %t
// RUN: ftuner-test-opt %t/softmax.mlir --ukernel-attach-device=device=h200 --ukernel-plan-workloads | FileCheck %s --check-prefix=PLAN
// PLAN: ukernel.plan @plan_0 <families = [<#ukernel.cooperative<rows = {{[0-9]+}}, warps = {{[0-9]+}}>, axis = 0, tiles = {{\[\[}}{{[0-9]+}}, {{[0-9]+}}]], reduce = [1]>

// RUN: ftuner-test-run %t/softmax.mlir --device=h200 --args=53x65xf32 --check --reference=%t/softmax-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/softmax.mlir --device=v100 --args=7x1000xf32 --check --reference=%t/softmax-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/softmax.mlir --device=a100 --args=1x1xf32 --check --reference=%t/softmax-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/norm.mlir --device=h200 --args=53x65xf32,65xf32 --check --reference=%t/norm-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/norm.mlir --device=v100 --args=7x1000xf32,1000xf32 --check --reference=%t/norm-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/norm.mlir --device=a100 --args=1x1xf32,1xf32 --check --reference=%t/norm-linalg.mlir --check-bounds --check-races --thread-order=shuffled | FileCheck %s --check-prefix=ONE
// RUN: ftuner-test-run %t/softmax-split.mlir --device=h200 --args=7x1000xf32 --check --reference=%t/softmax-linalg.mlir --check-bounds --check-races | FileCheck %s --check-prefix=TWO
// RUN: ftuner-test-run %t/softmax-split.mlir --device=h200 --args=40x31xf32 --check --reference=%t/softmax-linalg.mlir --check-bounds --check-races | FileCheck %s --check-prefix=TWO
// RUN: ftuner-test-run %t/norm-split.mlir --device=h200 --args=7x1000xf32,1000xf32 --check --reference=%t/norm-linalg.mlir --check-bounds --check-races | FileCheck %s --check-prefix=THREE
// RUN: ftuner-test-run %t/norm-split.mlir --device=h200 --args=40x31xf32,31xf32 --check --reference=%t/norm-linalg.mlir --check-bounds --check-races | FileCheck %s --check-prefix=THREE

// No row, and rows without an element: statistics of these alone are written.
// RUN: ftuner-test-run %t/softmax.mlir --device=h200 --args=0x65xf32 | FileCheck %s --check-prefix=NONE
// RUN: ftuner-test-run %t/softmax.mlir --device=h200 --args=5x0xf32 --check-bounds | FileCheck %s --check-prefix=EMPTY

// Of slices, all accumulators lie in buffers of their own: three of 7 rows.
// RUN: ftuner-test-opt %t/norm-split.mlir --ukernel-attach-device=device=h200 --ukernel-prepare-host --ftuner-bufferize --ukernel-dispatch-workloads | FileCheck %s --check-prefix=SLICES
// SLICES-COUNT-3: memref.alloc(%{{.*}}, %{{.*}}) : memref<?x?xf32>
// SLICES: scf.index_switch
// SLICES: ukernel.launch @norm_0_k0
// SLICES: linalg.generic {{.*}}iterator_types = ["parallel"]
// SLICES: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]

// ONE: result 0: {{.*}}relative error
// ONE: launches: 1 (
// TWO: launches: 2 (softmax_0_k0: {{[0-9]+}} x 128, softmax_0_k0_sum: {{[0-9]+}} x 256)
// THREE: launches: 3 (norm_0_k0: {{[0-9]+}} x 128, norm_0_k0_sum: {{[0-9]+}} x 256, norm_0_k0_sum1: {{[0-9]+}} x 256)
// NONE: launches: 0
// EMPTY: launches: 1

//--- softmax.mlir
#all = affine_map<(m, r) -> (m, r)>
module {
  func.func @softmax(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %y = test.rows ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>)
      maps = [#all, #all] identities = [0xFF800000 : f32, 0.0 : f32]
      reduce {
      ^bb0(%a: f32, %max: f32, %sum: f32):
        %next = arith.maximumf %max, %a : f32
        %d = arith.subf %max, %next : f32
        %scale = math.exp %d : f32
        %e = arith.subf %a, %next : f32
        %term = math.exp %e : f32
        %scaled = arith.mulf %sum, %scale : f32
        %s = arith.addf %scaled, %term : f32
        ukernel.yield %next, %s : f32, f32
      } merge "scaled-sums" {
      ^bb0(%m0: f32, %s0: f32, %m1: f32, %s1: f32):
        %max = arith.maximumf %m0, %m1 : f32
        %zero = arith.constant 0.0 : f32
        %none = arith.constant 0xFF800000 : f32
        %empty = arith.cmpf oeq, %max, %none : f32
        %d0 = arith.subf %m0, %max : f32
        %d1 = arith.subf %m1, %max : f32
        %e0 = math.exp %d0 : f32
        %e1 = math.exp %d1 : f32
        %p0 = arith.mulf %s0, %e0 : f32
        %p1 = arith.mulf %s1, %e1 : f32
        %s = arith.addf %p0, %p1 : f32
        %sum = arith.select %empty, %zero, %s : f32
        ukernel.yield %max, %sum : f32, f32
      } finish {
      ^bb0(%max: f32, %sum: f32):
        %one = arith.constant 1.0 : f32
        %f = arith.divf %one, %sum : f32
        ukernel.yield %max, %f : f32, f32
      } map {
      ^bb0(%a: f32, %max: f32, %f: f32):
        %d = arith.subf %a, %max : f32
        %e = math.exp %d : f32
        %y = arith.mulf %e, %f : f32
        ukernel.yield %y : f32
      } -> tensor<?x?xf32>
    return %y : tensor<?x?xf32>
  }
}

//--- softmax-linalg.mlir
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

//--- softmax-split.mlir
#all = affine_map<(m, r) -> (m, r)>
module {
  ukernel.plan @by_hand <families = [<#ukernel.cooperative<rows = 2, warps = 2>, axis = 0, tiles = [[2, 64]], reduce = [1], split = 3>], choices = [], general = 0, unaligned_general = 0>
  func.func @softmax(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}) -> tensor<?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %y = test.rows plan(@by_hand) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>)
      maps = [#all, #all] identities = [0xFF800000 : f32, 0.0 : f32]
      reduce {
      ^bb0(%a: f32, %max: f32, %sum: f32):
        %next = arith.maximumf %max, %a : f32
        %d = arith.subf %max, %next : f32
        %scale = math.exp %d : f32
        %e = arith.subf %a, %next : f32
        %term = math.exp %e : f32
        %scaled = arith.mulf %sum, %scale : f32
        %s = arith.addf %scaled, %term : f32
        ukernel.yield %next, %s : f32, f32
      } merge "scaled-sums" {
      ^bb0(%m0: f32, %s0: f32, %m1: f32, %s1: f32):
        %max = arith.maximumf %m0, %m1 : f32
        %zero = arith.constant 0.0 : f32
        %none = arith.constant 0xFF800000 : f32
        %empty = arith.cmpf oeq, %max, %none : f32
        %d0 = arith.subf %m0, %max : f32
        %d1 = arith.subf %m1, %max : f32
        %e0 = math.exp %d0 : f32
        %e1 = math.exp %d1 : f32
        %p0 = arith.mulf %s0, %e0 : f32
        %p1 = arith.mulf %s1, %e1 : f32
        %s = arith.addf %p0, %p1 : f32
        %sum = arith.select %empty, %zero, %s : f32
        ukernel.yield %max, %sum : f32, f32
      } finish {
      ^bb0(%max: f32, %sum: f32):
        %one = arith.constant 1.0 : f32
        %f = arith.divf %one, %sum : f32
        ukernel.yield %max, %f : f32, f32
      } map {
      ^bb0(%a: f32, %max: f32, %f: f32):
        %d = arith.subf %a, %max : f32
        %e = math.exp %d : f32
        %y = arith.mulf %e, %f : f32
        ukernel.yield %y : f32
      } -> tensor<?x?xf32>
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
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %s = tensor.empty(%m) : tensor<?xf32>
    %y:3 = test.rows ins(%x, %gamma : tensor<?x?xf32>, tensor<?xf32>) outs(%o, %s, %s : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
      maps = [#all, #column, #all, #row, #row]
      identities = [0.0 : f32, 0.0 : f32, 0.0 : f32]
      reduce {
      ^bb0(%a: f32, %g: f32, %n0: f32, %mean: f32, %m2: f32):
        %one = arith.constant 1.0 : f32
        %n1 = arith.addf %n0, %one : f32
        %d = arith.subf %a, %mean : f32
        %q = arith.divf %d, %n1 : f32
        %mean1 = arith.addf %mean, %q : f32
        %e = arith.subf %a, %mean1 : f32
        %p = arith.mulf %d, %e : f32
        %m3 = arith.addf %m2, %p : f32
        ukernel.yield %n1, %mean1, %m3 : f32, f32, f32
      } merge "moments" {
      ^bb0(%n0: f32, %mean0: f32, %q0: f32, %n1: f32, %mean1: f32, %q1: f32):
        %one = arith.constant 1.0 : f32
        %n2 = arith.addf %n0, %n1 : f32
        %some = arith.maximumf %n2, %one : f32
        %share = arith.divf %n1, %some : f32
        %d = arith.subf %mean1, %mean0 : f32
        %step = arith.mulf %d, %share : f32
        %mean2 = arith.addf %mean0, %step : f32
        %dd = arith.mulf %d, %step : f32
        %between = arith.mulf %dd, %n0 : f32
        %q2 = arith.addf %q0, %q1 : f32
        %q3 = arith.addf %q2, %between : f32
        ukernel.yield %n2, %mean2, %q3 : f32, f32, f32
      } finish {
      ^bb0(%n0: f32, %mean: f32, %q: f32):
        %eps = arith.constant 1.0e-5 : f32
        %var = arith.divf %q, %n0 : f32
        %v = arith.addf %var, %eps : f32
        %rstd = math.rsqrt %v : f32
        ukernel.yield %mean, %rstd : f32, f32
      } map {
      ^bb0(%a: f32, %g: f32, %mean: f32, %rstd: f32):
        %d = arith.subf %a, %mean : f32
        %e = arith.mulf %d, %rstd : f32
        %f = arith.mulf %e, %g : f32
        ukernel.yield %f : f32
      } -> tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
    return %y#0, %y#1, %y#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  }
}

//--- norm-linalg.mlir
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

//--- norm-split.mlir
#all = affine_map<(m, r) -> (m, r)>
#row = affine_map<(m, r) -> (m)>
#column = affine_map<(m, r) -> (r)>
module {
  ukernel.plan @by_hand <families = [<#ukernel.cooperative<rows = 2, warps = 2>, axis = 0, tiles = [[2, 64]], reduce = [1], split = 3>], choices = [], general = 0, unaligned_general = 0>
  func.func @norm(%x: tensor<?x?xf32> {ukernel.shape = ["R", "C"]}, %gamma: tensor<?xf32> {ukernel.shape = ["C"]})
      -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = tensor.dim %x, %c0 : tensor<?x?xf32>
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %o = tensor.empty(%m, %n) : tensor<?x?xf32>
    %s = tensor.empty(%m) : tensor<?xf32>
    %y:3 = test.rows plan(@by_hand) ins(%x, %gamma : tensor<?x?xf32>, tensor<?xf32>) outs(%o, %s, %s : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
      maps = [#all, #column, #all, #row, #row]
      identities = [0.0 : f32, 0.0 : f32, 0.0 : f32]
      reduce {
      ^bb0(%a: f32, %g: f32, %n0: f32, %mean: f32, %m2: f32):
        %one = arith.constant 1.0 : f32
        %n1 = arith.addf %n0, %one : f32
        %d = arith.subf %a, %mean : f32
        %q = arith.divf %d, %n1 : f32
        %mean1 = arith.addf %mean, %q : f32
        %e = arith.subf %a, %mean1 : f32
        %p = arith.mulf %d, %e : f32
        %m3 = arith.addf %m2, %p : f32
        ukernel.yield %n1, %mean1, %m3 : f32, f32, f32
      } merge "moments" {
      ^bb0(%n0: f32, %mean0: f32, %q0: f32, %n1: f32, %mean1: f32, %q1: f32):
        %one = arith.constant 1.0 : f32
        %n2 = arith.addf %n0, %n1 : f32
        %some = arith.maximumf %n2, %one : f32
        %share = arith.divf %n1, %some : f32
        %d = arith.subf %mean1, %mean0 : f32
        %step = arith.mulf %d, %share : f32
        %mean2 = arith.addf %mean0, %step : f32
        %dd = arith.mulf %d, %step : f32
        %between = arith.mulf %dd, %n0 : f32
        %q2 = arith.addf %q0, %q1 : f32
        %q3 = arith.addf %q2, %between : f32
        ukernel.yield %n2, %mean2, %q3 : f32, f32, f32
      } finish {
      ^bb0(%n0: f32, %mean: f32, %q: f32):
        %eps = arith.constant 1.0e-5 : f32
        %var = arith.divf %q, %n0 : f32
        %v = arith.addf %var, %eps : f32
        %rstd = math.rsqrt %v : f32
        ukernel.yield %mean, %rstd : f32, f32
      } map {
      ^bb0(%a: f32, %g: f32, %mean: f32, %rstd: f32):
        %d = arith.subf %a, %mean : f32
        %e = arith.mulf %d, %rstd : f32
        %f = arith.mulf %e, %g : f32
        ukernel.yield %f : f32
      } -> tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
    return %y#0, %y#1, %y#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
  }
}
