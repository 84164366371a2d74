//===- Tolerance.h - How far a right result may be off ----------*- C++ -*-===//
//
// The reference rounds where the program does. So what is computed in f16 or
// bf16 is equal in both but for flips: a value that was computed a little
// differently, in a product, by a sum in another order or by an approximation,
// lies on the other side of the middle between two narrow numbers, and is off
// by one unit of the last place. If the difference before was δ, relative, and
// the unit is u, about δ/u of the elements flip, and the Frobenius error of all
// is √(δ·u). A sum over such elements spreads their flips over all of its
// results, and the next rounding flips more: the tolerance follows the chain of
// roundings from the arguments to each result.
//
// Example: truncf to f16 of a product of f32. δ = 1e-6, u = 2^-10, so that
// √(δ·u) = 3.1e-5, and three times that is tolerated. Without the rounding the
// error would be about 2e-4.
//
// Products of f32 whose factors may be rounded to tf32 are off by a rounding of
// each factor: 2^-11 at most, 2^-11/√3 in the mean square of the last place,
// and since mantissas are spread, 0.29e-3 for both factors together.
//
// Where bits are cut off instead, the error e of a factor is between 0 and
// 2^-10, relative, and always makes it smaller: of a mantissa m and evenly
// spread bits behind the last place, E[e] = 2^-11 · E[1/m] and
// E[e²] = 2^-20/3 · E[1/m²]. Mantissas of density 1 / (m ln 2) have
// E[1/m] = 1 / (2 ln 2) and E[1/m²] = 3 / (8 ln 2). So a product of two factors
// is too small by 2 E[e] = 0.70e-3 in the mean, and spreads around that by
// √(2 (E[e²] − E[e]²)) = 0.31e-3. The mean is that of a sum, too, whatever the
// signs of its products, and in products of products means add up.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_EXECUTOR_TOLERANCE_H
#define FTUNER_EXECUTOR_TOLERANCE_H

#include "FTuner/Executor/Tensor.h"
#include "FTuner/Workload/Workload.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <vector>

namespace ftuner {

/// The relative Frobenius error that passes for a result.
struct Tolerance {
  /// For a result of many elements.
  double relative = 0;
  /// A unit of the last place, relative, of the coarsest type that is rounded
  /// to on the way; 0 where all are f32 or wider.
  double unit = 0;
  /// At most, also for a result of few elements.
  double limit = 0;

  /// The limit of this result, with what one flipped element makes of it.
  double limitFor(const Comparison &comparison) const;
};

/// The tolerance of each result of a function on tensors, from what is computed
/// on the way to it, also in functions that it calls: 1e-12 for f64, 1e-5 where
/// f32 is on the way, 0 for integers, more where a narrower type is.
/// `precision`: what compiled code may make of the factors of products of f32.
std::vector<Tolerance>
getTolerances(mlir::FunctionOpInterface function,
              FactorPrecision precision = FactorPrecision::F32);

} // namespace ftuner

#endif // FTUNER_EXECUTOR_TOLERANCE_H
