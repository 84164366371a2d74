//===- RangeReduction.h - Remainders of pi/2 --------------------*- C++ -*-===//
#ifndef FTUNER_LIB_CONVERSION_UKERNELTOGPU_RANGEREDUCTION_H
#define FTUNER_LIB_CONVERSION_UKERNELTOGPU_RANGEREDUCTION_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// Creates operations on f32, or on vectors of it.
struct FloatMath {
  mlir::ImplicitLocOpBuilder &b;
  mlir::Type type;

  mlir::Value number(float value) const;
  mlir::Value infinity() const;
  mlir::Value nan() const;
  mlir::Value add(mlir::Value x, mlir::Value y) const;
  mlir::Value sub(mlir::Value x, mlir::Value y) const;
  mlir::Value mul(mlir::Value x, mlir::Value y) const;
  mlir::Value div(mlir::Value x, mlir::Value y) const;
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) const;
  mlir::Value neg(mlir::Value x) const;
  mlir::Value abs(mlir::Value x) const;
  mlir::Value sqrt(mlir::Value x) const;
  /// |x| with the sign of another value.
  mlir::Value signedAs(mlir::Value x, mlir::Value sign) const;
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) const;
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                      mlir::Value y) const;
  mlir::Value isPositiveAndFinite(mlir::Value x) const;
  /// The polynomial with the coefficients, of the lowest power first.
  mlir::Value polynomial(mlir::Value x,
                         llvm::ArrayRef<float> coefficients) const;

  /// The type of the bits, and constants and values of it.
  mlir::Type integers() const;
  mlir::Value integer(uint32_t value) const;
  mlir::Value bits(mlir::Value x) const;
  mlir::Value fromBits(mlir::Value x) const;
};

/// A float as remainder + quadrant · pi/2, where the remainder is at most pi/4
/// and the quadrant counts modulo 4.
struct Reduced {
  mlir::Value remainder, quadrant;
};

/// Reduces floats of any size to quadrants. Infinity and NaN give NaN. Up to
/// 117435.992 three products with the parts of pi/2 are exact enough; beyond, a
/// branch multiplies by 96 bits of 2/pi, those that the exponent asks for
/// (Payne and Hanek).
Reduced reduceByHalfPi(const FloatMath &f, mlir::Value x);

} // namespace ftuner

#endif // FTUNER_LIB_CONVERSION_UKERNELTOGPU_RANGEREDUCTION_H
