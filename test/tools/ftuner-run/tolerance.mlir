// RUN: ftuner-run %s --device=h200 --function=through_half --args=4096xf32 --check | FileCheck %s --check-prefix=HALF
// RUN: ftuner-run %s --device=h200 --function=through_half --args=1xf32 --check | FileCheck %s --check-prefix=SINGLE
// RUN: ftuner-run %s --device=h200 --function=to_double --args=64xf32 --check | FileCheck %s --check-prefix=WIDE
// RUN: ftuner-run %s --device=h200 --function=from_half --args=64xf16 --check | FileCheck %s --check-prefix=WIDE
// RUN: ftuner-run %s --device=h200 --function=softmax --args=64x64xf16 --check | FileCheck %s --check-prefix=SOFTMAX
// RUN: ftuner-run %s --device=h200 --function=apart --args=64xf32 --check | FileCheck %s --check-prefix=BOTH
// RUN: ftuner-run %s --device=h200 --function=together --args=64xf32 --check | FileCheck %s --check-prefix=BOTH
// RUN: ftuner-run %s --device=h200 --function=called --args=64xf32 --check | FileCheck %s --check-prefix=BOTH
// RUN: ftuner-run %s --device=h200 --function=chosen --args=64xf32,1 --check | FileCheck %s --check-prefix=BOTH
// RUN: ftuner-run %s --device=h200 --function=repeated --args=64xf32 --check | FileCheck %s --check-prefix=BOTH
// RUN: ftuner-run %s --device=h200 --function=through_half --args=64xf32 --check --tolerance=0
// RUN: ftuner-run %s --device=h200 --function=product --args=64x64xf32,64x32xf32 --paths=mma --check --precision=tf32 | FileCheck %s --check-prefix=TF32
// RUN: not ftuner-run %s --device=h200 --function=product --args=64x64xf32,64x32xf32 --paths=mma --check --precision=tf32 --tolerance=1e-5 2>&1 | FileCheck %s --check-prefix=ROUNDED
// RUN: ftuner-run %s --device=h200 --function=product --args=64x64xf32,64x32xf32 --paths=mma --check --precision=tf32-truncate | FileCheck %s --check-prefix=TRUNCATED
// RUN: ftuner-run %s --device=h200 --function=products --args=256x64xf32,64x64xf32,64x64xf32 --paths=mma --check --precision=tf32-truncate | FileCheck %s --check-prefix=CHAIN
// RUN: ftuner-run %s --device=h200 --function=product --args=64x64xf32,64x32xf32 --check | FileCheck %s --check-prefix=EXACT

// The reference rounds to f16, too: what remains is less than the rounding
// itself, 2e-4. A single element may be off by a unit of its last place.
// HALF: relative error 0 (tolerance 0.000{{1[0-9]+}})
// SINGLE: relative error 0 (tolerance 0.00138)
// Widening is exact.
// WIDE: (tolerance 1e-05)
// Sums in f16 that many elements share.
// SOFTMAX: (tolerance 0.002)

// The tolerance is that of what is on the way to a result, not of what another
// result goes through.
// BOTH: result 0: 64xf32, relative error {{.*}} (tolerance 1e-05)
// BOTH: result 1: 64xf32, relative error {{.*}} (tolerance 0.00{{[0-9]+}})

// Factors of f32 are rounded only where that is asked for.
// TF32: relative error 0.000{{[1-9].*}} (tolerance 0.00087)
// ROUNDED: relative error 0.000{{.*}} above the tolerance 1e-05
// EXACT: (tolerance 1e-05)
// Factors that are cut off make all products smaller, and those of products
// more so.
// TRUNCATED: relative error 0.000{{[5-9].*}} (tolerance 0.0023)
// CHAIN: relative error 0.001{{.*}} (tolerance 0.0044)

#id = affine_map<(i) -> (i)>

func.func @through_half(%x: tensor<?xf32>) -> tensor<?xf32> {
  %h = arith.truncf %x : tensor<?xf32> to tensor<?xf16>
  %f = arith.extf %h : tensor<?xf16> to tensor<?xf32>
  return %f : tensor<?xf32>
}

func.func @to_double(%x: tensor<?xf32>) -> tensor<?xf64> {
  %s = arith.mulf %x, %x : tensor<?xf32>
  %d = arith.extf %s : tensor<?xf32> to tensor<?xf64>
  return %d : tensor<?xf64>
}

func.func @from_half(%x: tensor<?xf16>) -> tensor<?xf32> {
  %f = arith.extf %x : tensor<?xf16> to tensor<?xf32>
  %s = arith.mulf %f, %f : tensor<?xf32>
  return %s : tensor<?xf32>
}

func.func @softmax(%x: tensor<?x64xf16>) -> tensor<?x64xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf16>
  %e = tensor.empty(%n) : tensor<?x64xf16>
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x64xf16>) outs(%e : tensor<?x64xf16>) -> tensor<?x64xf16>
  return %r : tensor<?x64xf16>
}

func.func @apart(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %s = arith.mulf %x, %x : tensor<?xf32>
  %b = arith.truncf %s : tensor<?xf32> to tensor<?xbf16>
  %f = arith.extf %b : tensor<?xbf16> to tensor<?xf32>
  return %s, %f : tensor<?xf32>, tensor<?xf32>
}

func.func @together(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e, %e : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%v: f32, %o0: f32, %o1: f32):
    %s = arith.mulf %v, %v : f32
    %b = arith.truncf %v : f32 to bf16
    %f = arith.extf %b : bf16 to f32
    linalg.yield %s, %f : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}

func.func private @callee(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r:2 = func.call @apart(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}

func.func @called(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r:2 = func.call @callee(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}

func.func @chosen(%x: tensor<?xf32>, %flag: i1) -> (tensor<?xf32>, tensor<?xf32>) {
  %s = arith.mulf %x, %x : tensor<?xf32>
  %r:2 = scf.if %flag -> (tensor<?xf32>, tensor<?xf32>) {
    %b = arith.truncf %x : tensor<?xf32> to tensor<?xbf16>
    %f = arith.extf %b : tensor<?xbf16> to tensor<?xf32>
    scf.yield %s, %f : tensor<?xf32>, tensor<?xf32>
  } else {
    scf.yield %x, %x : tensor<?xf32>, tensor<?xf32>
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}

func.func @repeated(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<64xf32>, tensor<64xf32>) {
    %s = arith.addf %a, %x : tensor<64xf32>
    %h = arith.truncf %b : tensor<64xf32> to tensor<64xf16>
    %w = arith.extf %h : tensor<64xf16> to tensor<64xf32>
    %t = arith.addf %w, %x : tensor<64xf32>
    scf.yield %s, %t : tensor<64xf32>, tensor<64xf32>
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

func.func @product(%a: tensor<?x64xf32>, %b: tensor<64x32xf32>) -> tensor<?x32xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}

func.func @products(%a: tensor<?x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = linalg.matmul ins(%p, %c : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}
