// RUN: ftuner-run %s --device=h200 --function=through_half --args=64xf32 --check | FileCheck %s --check-prefix=HALF
// RUN: ftuner-run %s --device=h200 --function=to_double --args=64xf32 --check | FileCheck %s --check-prefix=SINGLE
// RUN: ftuner-run %s --device=h200 --function=from_half --args=64xf16 --check | FileCheck %s --check-prefix=SINGLE
// RUN: not ftuner-run %s --device=h200 --function=through_half --args=64xf32 --check --tolerance=1e-5

// The default tolerance is that of the coarsest type that the function rounds
// to; widening is exact.
// HALF: (tolerance 0.002)
// SINGLE: (tolerance 1e-05)

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
