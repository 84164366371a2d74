// RUN: ftuner-run %s --device=h200 --function=host --args=3xf32,-7,2 --check
// RUN: not ftuner-run %s --device=h200 --function=host --args=3xf32,7,0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not ftuner-run %s --device=h200 --function=host --args=3xf32,7,0 --executor=reference 2>&1 | FileCheck %s --check-prefix=REFERENCE
// RUN: not ftuner-run %s --device=h200 --function=host --args=3xf32,-9223372036854775808,-1 2>&1 | FileCheck %s --check-prefix=OVERFLOW
// RUN: ftuner-run %s --device=h200 --function=kernel --args=5xi32,3 --check
// RUN: ftuner-run %s --device=h200 --function=kernel --args=5xi32,0 | FileCheck %s --check-prefix=KERNEL
// RUN: not ftuner-run %s --device=h200 --function=kernel --args=5xi32,0 --check 2>&1 | FileCheck %s --check-prefix=REFERENCE

// Divisions that trap on a CPU are errors on the host and in the reference. On
// a GPU their value is undefined, and the kernel runs on.
// ZERO: error: {{.*}}integer division by zero
// OVERFLOW: error: {{.*}}integer division overflows
// REFERENCE: error: assertion failed in the reference: integer division by zero
// KERNEL: result 0: 5xi32

func.func @host(%x: tensor<?xf32>, %a: i64, %b: i64) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %q = arith.divsi %a, %b : i64
  %f = arith.sitofp %q : i64 to f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.fill ins(%f : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

func.func @kernel(%x: tensor<5xi32>, %s: i32) -> tensor<5xi32> {
  %e = tensor.empty() : tensor<5xi32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
    ^bb0(%in: i32, %out: i32):
      %q = arith.divsi %in, %s : i32
      %u = arith.remui %in, %s : i32
      %v = arith.addi %q, %u : i32
      linalg.yield %v : i32
  } -> tensor<5xi32>
  return %r : tensor<5xi32>
}
