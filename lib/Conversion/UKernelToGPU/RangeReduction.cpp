//===- RangeReduction.cpp - Remainders of pi/2 ------------------*- C++ -*-===//
#include "RangeReduction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace ftuner;

/// Bits of 2/pi after 32 zeros; its first two bits are 0.
static constexpr uint32_t kTwoOverPi[] = {0x00000000, 0x28be60db, 0x9391054a,
                                          0x7f09d5f4, 0x7d4d3770, 0x36d8a566,
                                          0x4f10e410, 0x7f9458ea};

/// Floats up to which three parts of pi/2 are enough.
static constexpr float kLargestFast = 117435.992f;

/// Reduces one finite float beyond `kLargestFast` by integers: its 24 bits
/// times 96 bits of 2/pi, of which only the quadrant and the fraction are kept.
static Reduced reduceLarge(ImplicitLocOpBuilder &b, Value x) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto constant = [&](Type type, uint64_t value) -> Value {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), value)));
  };
  auto widened = [&](Value value) -> Value {
    return arith::ExtUIOp::create(b, i64, value);
  };
  Value bits = arith::BitcastOp::create(b, i32, x);
  Value fraction =
      arith::OrIOp::create(b, arith::ShLIOp::create(b, bits, constant(i32, 8)),
                           constant(i32, 0x80000000));
  Value field = arith::AndIOp::create(
      b, arith::ShRUIOp::create(b, bits, constant(i32, 23)),
      constant(i32, 0xff));
  // |x| = fraction · 2^(exponent - 32).
  Value exponent = arith::SubIOp::create(b, field, constant(i32, 126));
  Value word = arith::ShRUIOp::create(b, exponent, constant(i32, 5));
  Value shift = arith::AndIOp::create(b, exponent, constant(i32, 31));
  constexpr int64_t kNumParts = 4;
  constexpr int64_t kNumWords = std::size(kTwoOverPi) - kNumParts + 1;
  SmallVector<Value> isWord, parts;
  for (int64_t number = 0; number + 1 < kNumWords; ++number)
    isWord.push_back(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, word,
                                           constant(i32, number)));
  for (int64_t part = 0; part < kNumParts; ++part) {
    Value value = constant(i32, kTwoOverPi[part + kNumWords - 1]);
    for (auto [number, condition] : llvm::enumerate(isWord))
      value = arith::SelectOp::create(
          b, condition, constant(i32, kTwoOverPi[part + number]), value);
    parts.push_back(widened(value));
  }
  // Two words, shifted to the left by what is left of the exponent.
  Value wideShift = widened(shift);
  auto shifted = [&](Value high, Value low) -> Value {
    Value both = arith::OrIOp::create(
        b, arith::ShLIOp::create(b, high, constant(i64, 32)), low);
    Value moved = arith::ShLIOp::create(b, both, wideShift);
    return arith::ShRUIOp::create(b, moved, constant(i64, 32));
  };
  Value high = shifted(parts[0], parts[1]),
        middle = shifted(parts[1], parts[2]), low = shifted(parts[2], parts[3]);
  Value wide = widened(fraction);
  auto times = [&](Value value) -> Value {
    return arith::MulIOp::create(b, wide, value);
  };
  Value product = arith::ShRUIOp::create(b, times(low), constant(i64, 32));
  product = arith::AddIOp::create(b, times(middle), product);
  product = arith::AddIOp::create(
      b, arith::ShLIOp::create(b, times(high), constant(i64, 32)), product);
  // Two bits of quadrant and 62 of its fraction, which is rounded to the next.
  Value rounded =
      arith::AddIOp::create(b, product, constant(i64, uint64_t(1) << 61));
  Value quadrant = arith::ShRUIOp::create(b, rounded, constant(i64, 62));
  Value rest = arith::SubIOp::create(
      b, product, arith::ShLIOp::create(b, quadrant, constant(i64, 62)));
  Value angle = arith::MulFOp::create(
      b, arith::SIToFPOp::create(b, b.getF64Type(), rest),
      arith::ConstantOp::create(b, b.getF64FloatAttr(0x1.921fb54442d18p-62)));
  Value remainder = arith::TruncFOp::create(b, b.getF32Type(), angle);
  quadrant = arith::TruncIOp::create(b, i32, quadrant);
  Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bits,
                                           constant(i32, 0));
  auto negatedIf = [&](Value negated, Value value) {
    return arith::SelectOp::create(b, isNegative, negated, value);
  };
  return {negatedIf(arith::NegFOp::create(b, remainder), remainder),
          negatedIf(arith::SubIOp::create(b, constant(i32, 0), quadrant),
                    quadrant)};
}

Reduced ftuner::reduceByHalfPi(const FloatMath &f, Value x) {
  ImplicitLocOpBuilder &b = f.b;
  Value isLarge =
      f.compare(arith::CmpFPredicate::OGT, f.abs(x), f.number(kLargestFast));
  // The lowest bits of a sum of this size are a whole number.
  constexpr float whole = 12582912.0f;
  Value sum = f.fma(x, f.number(0.636619747f), f.number(whole));
  Value j = f.sub(sum, f.number(whole));
  Value remainder = f.fma(j, f.number(-0x1.921fb0p+00f), x);
  remainder = f.fma(j, f.number(-0x1.5110b4p-22f), remainder);
  remainder = f.fma(j, f.number(-0x1.846988p-48f), remainder);
  Reduced fast{remainder, f.bits(sum)};

  auto elementsOf = [&](ImplicitLocOpBuilder &b, Value value) {
    if (!isa<VectorType>(value.getType()))
      return SmallVector<Value>{value};
    return SmallVector<Value>(
        vector::ToElementsOp::create(b, value).getResults());
  };
  Value isAnyLarge;
  for (Value element : elementsOf(b, isLarge))
    isAnyLarge = isAnyLarge
                     ? arith::OrIOp::create(b, isAnyLarge, element).getResult()
                     : element;
  auto slow = [&](OpBuilder &builder, Location loc) {
    ImplicitLocOpBuilder inner(loc, builder);
    SmallVector<Value> remainders, quadrants;
    for (auto [value, large, remainder, quadrant] :
         llvm::zip_equal(elementsOf(inner, x), elementsOf(inner, isLarge),
                         elementsOf(inner, fast.remainder),
                         elementsOf(inner, fast.quadrant))) {
      Reduced reduced = reduceLarge(inner, value);
      // Infinity minus itself.
      Value infinite = arith::SubFOp::create(inner, value, value);
      reduced.remainder =
          arith::AddFOp::create(inner, reduced.remainder, infinite);
      remainders.push_back(
          arith::SelectOp::create(inner, large, reduced.remainder, remainder));
      quadrants.push_back(
          arith::SelectOp::create(inner, large, reduced.quadrant, quadrant));
    }
    auto join = [&](ArrayRef<Value> elements, Type type) -> Value {
      if (!isa<VectorType>(type))
        return elements.front();
      return vector::FromElementsOp::create(inner, cast<VectorType>(type),
                                            elements);
    };
    scf::YieldOp::create(inner, ValueRange{join(remainders, f.type),
                                           join(quadrants, f.integers())});
  };
  auto branch = scf::IfOp::create(
      b, isAnyLarge, slow, [&](OpBuilder &builder, Location loc) {
        scf::YieldOp::create(builder, loc,
                             ValueRange{fast.remainder, fast.quadrant});
      });
  return {branch.getResult(0), branch.getResult(1)};
}
