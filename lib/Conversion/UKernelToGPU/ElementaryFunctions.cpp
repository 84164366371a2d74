//===- ElementaryFunctions.cpp - Functions of f32 as operations -*- C++ -*-===//
#include "ElementaryFunctions.h"
#include "RangeReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace ftuner;

Value ftuner::createFloat(OpBuilder &b, Location loc, Type type,
                          const llvm::APFloat &value) {
  TypedAttr attribute = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, value);
  return arith::ConstantOp::create(b, loc, attribute);
}

/// Applies an instruction that knows no vectors to each element of one.
static Value forEachElement(ImplicitLocOpBuilder &b, Value x,
                            llvm::function_ref<Value(Value)> scalar) {
  auto type = dyn_cast<VectorType>(x.getType());
  if (!type)
    return scalar(x);
  auto elements = vector::ToElementsOp::create(b, x);
  return vector::FromElementsOp::create(
      b, type, llvm::map_to_vector(elements.getResults(), scalar));
}

Value ftuner::createApproximateExp2(ImplicitLocOpBuilder &b, Value x) {
  return forEachElement(b, x, [&](Value element) -> Value {
    return LLVM::CallIntrinsicOp::create(
               b, b.getF32Type(), b.getStringAttr("llvm.nvvm.ex2.approx.ftz"),
               element)
        .getResult(0);
  });
}

Value ftuner::createApproximateReciprocal(ImplicitLocOpBuilder &b, Value x) {
  return forEachElement(b, x, [&](Value element) -> Value {
    return NVVM::RcpApproxFtzF32Op::create(b, b.getF32Type(), element);
  });
}

//===----------------------------------------------------------------------===//
// Operations on f32 and vectors of it
//===----------------------------------------------------------------------===//

Value FloatMath::number(float value) const {
  return createFloat(b, b.getLoc(), type, llvm::APFloat(value));
}

Type FloatMath::integers() const {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(b.getI32Type());
  return b.getI32Type();
}

Value FloatMath::integer(uint32_t value) const {
  APInt bits(32, value);
  if (auto vector = dyn_cast<VectorType>(integers()))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, bits));
  return arith::ConstantOp::create(b, b.getIntegerAttr(b.getI32Type(), bits));
}

Value FloatMath::bits(Value x) const {
  return arith::BitcastOp::create(b, integers(), x);
}

Value FloatMath::fromBits(Value x) const {
  return arith::BitcastOp::create(b, type, x);
}

Value FloatMath::add(Value x, Value y) const {
  return arith::AddFOp::create(b, x, y);
}

Value FloatMath::sub(Value x, Value y) const {
  return arith::SubFOp::create(b, x, y);
}

Value FloatMath::mul(Value x, Value y) const {
  return arith::MulFOp::create(b, x, y);
}

Value FloatMath::div(Value x, Value y) const {
  return arith::DivFOp::create(b, x, y);
}

Value FloatMath::fma(Value x, Value y, Value z) const {
  return math::FmaOp::create(b, x, y, z);
}

Value FloatMath::neg(Value x) const { return arith::NegFOp::create(b, x); }

Value FloatMath::abs(Value x) const { return math::AbsFOp::create(b, x); }

Value FloatMath::sqrt(Value x) const { return math::SqrtOp::create(b, x); }

Value FloatMath::signedAs(Value x, Value sign) const {
  return math::CopySignOp::create(b, x, sign);
}

Value FloatMath::select(Value condition, Value x, Value y) const {
  return arith::SelectOp::create(b, condition, x, y);
}

Value FloatMath::compare(arith::CmpFPredicate predicate, Value x,
                         Value y) const {
  return arith::CmpFOp::create(b, predicate, x, y);
}

Value FloatMath::polynomial(Value x, ArrayRef<float> coefficients) const {
  Value sum = number(coefficients.back());
  for (float coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, number(coefficient));
  return sum;
}

Value FloatMath::isPositiveAndFinite(Value x) const {
  return arith::AndIOp::create(
      b, compare(arith::CmpFPredicate::OGT, x, number(0)),
      compare(arith::CmpFPredicate::OLT, x, infinity()));
}

Value FloatMath::infinity() const {
  return createFloat(b, b.getLoc(), type,
                     llvm::APFloat::getInf(llvm::APFloat::IEEEsingle()));
}

Value FloatMath::nan() const {
  return createFloat(b, b.getLoc(), type,
                     llvm::APFloat::getQNaN(llvm::APFloat::IEEEsingle()));
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

namespace {
/// Exponentials differ by the base, by what is added to the argument, and by
/// half of the result, which is finite for larger arguments.
struct ExpOptions {
  bool isBaseTwo = false;
  bool isHalved = false;
  /// Added to the argument, which it is too small to change.
  Value low;
};
} // namespace

/// exp(x) = 2^r · 2^j of f32, where j + 1 is the whole number next to
/// x · log2(e) and r = x · log2(e) - j, between 0.5 and 1.5, is exact to 2^-24.
/// The error is at most 2 ulp where the GPU's power is off by 2^-22 of itself;
/// results below 1.7e-38 are 0. Beyond the range of floats j stays where it is,
/// and the power of r tells: it becomes infinite, or 0, or NaN.
static Value createExp(const FloatMath &f, Value x, ExpOptions options = {}) {
  ImplicitLocOpBuilder &b = f.b;
  Value log2e = f.number(options.isBaseTwo ? 1.0f : 1.44269502f);
  float least = options.isBaseTwo ? -126.0f : -87.5f;
  float largest = options.isBaseTwo  ? 127.5f
                  : options.isHalved ? 89.25f
                                     : 88.5f;
  Value clamped = arith::MinNumFOp::create(
      b, arith::MaxNumFOp::create(b, x, f.number(least)), f.number(largest));
  // The lowest bits of a sum of this size are a whole number: j + 127, which
  // is the exponent's field of 2^j.
  float whole = options.isHalved ? 12582911.0f : 12582912.0f;
  Value biased = f.fma(clamped, log2e, f.number(whole + 126));
  Value j = f.sub(biased, f.number(whole + 127));
  Value r = options.isBaseTwo ? f.sub(x, j) : f.fma(x, log2e, f.neg(j));
  if (!options.isBaseTwo)
    r = f.fma(x, f.number(1.925963033e-8f), r);
  if (options.low)
    r = f.fma(options.low, log2e, r);
  Value scale =
      f.fromBits(arith::ShLIOp::create(b, f.bits(biased), f.integer(23)));
  return f.mul(createApproximateExp2(b, r), scale);
}

static Value expandExp(const FloatMath &f, ValueRange x) {
  return createExp(f, x[0]);
}

static Value expandExp2(const FloatMath &f, ValueRange x) {
  ExpOptions options;
  options.isBaseTwo = true;
  return createExp(f, x[0], options);
}

/// Half of exp(|x|).
static Value createHalfExp(const FloatMath &f, Value magnitude) {
  ExpOptions options;
  options.isHalved = true;
  return createExp(f, magnitude, options);
}

/// (exp(|x|) - exp(-|x|)) / 2, and a series below 1.
static Value expandSinh(const FloatMath &f, ValueRange x) {
  Value magnitude = f.abs(x[0]);
  Value half = createHalfExp(f, magnitude);
  Value large = f.sub(half, f.div(f.number(0.25f), half));
  Value square = f.mul(x[0], x[0]);
  Value series =
      f.mul(square, f.polynomial(square, {1.66666667e-1f, 8.33333333e-3f,
                                          1.98412698e-4f, 2.75573192e-6f,
                                          2.50521084e-8f}));
  Value small = f.fma(x[0], series, x[0]);
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, magnitude, f.number(1));
  return f.select(isLarge, f.signedAs(large, x[0]), small);
}

/// x + x³ · S(x²) up to |x| = 3/4, and 1 - 2e / (1 + e) beyond, where
/// e = exp(-2|x|). Both are computed and one is chosen, without a division,
/// which would be a branch. The error is at most 1.5 ulp, and 3.4 if the power
/// is off by 2^-22 of itself and the reciprocal by 1 ulp. NaN counts as small.
/// tools/fits/fit_tanh.py derives the coefficients and measures the error.
static Value expandTanh(const FloatMath &f, ValueRange x) {
  static constexpr float coefficients[] = {-0.333330691f, 0.133265302f,
                                           -0.0533906445f, 0.0196655951f,
                                           -0.00476991618f};
  constexpr float minusTwoLog2E = -2.88539004f;
  Value magnitude = f.abs(x[0]);
  Value square = f.mul(magnitude, magnitude);
  Value series = f.mul(f.polynomial(square, coefficients), square);
  Value small = f.fma(series, magnitude, magnitude);
  Value power =
      createApproximateExp2(f.b, f.mul(magnitude, f.number(minusTwoLog2E)));
  Value one = f.number(1);
  Value reciprocal = createApproximateReciprocal(f.b, f.add(power, one));
  Value large = f.fma(f.mul(power, f.number(-2)), reciprocal, one);
  Value isLarge =
      f.compare(arith::CmpFPredicate::OGT, magnitude, f.number(0.75f));
  return f.signedAs(f.select(isLarge, large, small), x[0]);
}

static Value expandCosh(const FloatMath &f, ValueRange x) {
  Value half = createHalfExp(f, f.abs(x[0]));
  return f.add(half, f.div(f.number(0.25f), half));
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

namespace {
/// A positive float as fraction · 2^exponent.
struct Split {
  Value fraction, exponent;
};
} // namespace

/// Splits a float, also one below the normal ones, so that its fraction lies
/// between `least` and twice that.
static Split splitFloat(const FloatMath &f, Value x, float least) {
  ImplicitLocOpBuilder &b = f.b;
  Value isSmall =
      f.compare(arith::CmpFPredicate::OLT, x, f.number(1.17549435e-38f));
  x = f.select(isSmall, f.mul(x, f.number(16777216.0f)), x);
  Value shift = f.select(isSmall, f.number(-24), f.number(0));
  Value bits = f.bits(x);
  Value exponent = arith::AndIOp::create(
      b, arith::SubIOp::create(b, bits, f.bits(f.number(least))),
      f.integer(0xff800000));
  Value fraction = f.fromBits(arith::SubIOp::create(b, bits, exponent));
  return {fraction, f.fma(arith::SIToFPOp::create(b, f.type, exponent),
                          f.number(1.1920929e-7f), shift)};
}

/// log(1 + m) for m from -1/3 to 1/3.
static Value createLogOfFraction(const FloatMath &f, Value m) {
  Value s = f.mul(m, m);
  Value r = f.polynomial(
      s, {-0.249996200f, -0.166846126f, -0.121483512f, -0.130310059f});
  Value t = f.polynomial(s, {0.200120345f, 0.139814854f, 0.140869141f});
  r = f.fma(t, m, r);
  r = f.fma(r, m, f.number(0.333331972f));
  r = f.fma(r, m, f.number(-0.5f));
  return f.fma(r, s, m);
}

/// The logarithm of a base of which `scale` is the reciprocal natural logarithm
/// and `two` the logarithm of 2, each as two floats.
static Value createLog(const FloatMath &f, Value x, ArrayRef<float> scale,
                       ArrayRef<float> two) {
  Split split = splitFloat(f, x, 0.666666667f);
  Value fraction = createLogOfFraction(f, f.sub(split.fraction, f.number(1)));
  Value low = f.mul(split.exponent, f.number(two[1]));
  if (scale.size() == 1) {
    low = f.add(low, fraction);
  } else {
    low = f.fma(fraction, f.number(scale[1]), low);
    low = f.fma(fraction, f.number(scale[0]), low);
  }
  Value log = f.fma(split.exponent, f.number(two[0]), low);
  // Infinity and NaN are their own logarithms.
  Value zero = f.number(0);
  Value other =
      f.select(f.compare(arith::CmpFPredicate::OLT, x, zero), f.nan(), x);
  other = f.select(f.compare(arith::CmpFPredicate::OEQ, x, zero),
                   f.neg(f.infinity()), other);
  return f.select(f.isPositiveAndFinite(x), log, other);
}

static Value expandLog(const FloatMath &f, ValueRange x) {
  return createLog(f, x[0], {1}, {0.693147182f, -1.90465421e-9f});
}

static Value expandLog2(const FloatMath &f, ValueRange x) {
  return createLog(f, x[0], {1.44269502f, 1.925963033e-8f}, {1, 0});
}

static Value expandLog10(const FloatMath &f, ValueRange x) {
  return createLog(f, x[0], {0.434294492f, -1.010305e-8f},
                   {0.301030010f, -1.43209888e-8f});
}

/// The logarithm of a magnitude as the sum of two floats.
static std::pair<Value, Value> createLongLog(const FloatMath &f, Value a) {
  Split split = splitFloat(f, a, 0.70710678f);
  Value i = split.exponent, two = f.number(2);
  // q = (m - 1) / (m + 1), as a sum of two.
  Value m = f.sub(split.fraction, f.number(1));
  Value reciprocal = f.div(f.number(1), f.add(split.fraction, f.number(1)));
  Value high = f.mul(reciprocal, m);
  Value rest = f.fma(high, f.number(-2), m);
  Value low = f.mul(reciprocal, f.fma(high, f.neg(m), rest));
  // log(m) = 2 · atanh(q), of which q^3 also is a sum of two.
  Value s = f.mul(high, high);
  Value r = f.polynomial(
      s, {0.3333332539f, 0.2000148296f, 0.1419928074f, 0.1293334961f});
  Value t = f.fma(high, f.add(low, low), f.fma(high, high, f.neg(s)));
  Value p = f.mul(s, high);
  t = f.fma(s, low, f.fma(t, high, f.fma(s, high, f.neg(p))));
  s = f.fma(r, p, f.fma(r, t, low));
  Value log2 = f.number(0.693147182f);
  r = f.add(high, high);
  t = f.fma(log2, i, r);
  p = f.fma(f.neg(log2), i, t);
  s = f.fma(f.number(-1.90465421e-9f), i, f.fma(two, s, f.sub(r, p)));
  Value sum = f.add(t, s);
  return {sum, f.add(f.sub(t, sum), s)};
}

Value ftuner::createPowerOfMagnitude(ImplicitLocOpBuilder &b, Value x,
                                     Value y) {
  FloatMath f{b, x.getType()};
  Value a = f.abs(x);
  auto [logHigh, logLow] = createLongLog(f, a);
  // Infinity and NaN are their own logarithms.
  Value isZero = f.compare(arith::CmpFPredicate::OEQ, a, f.number(0));
  logHigh = f.select(f.isPositiveAndFinite(a), logHigh,
                     f.select(isZero, f.neg(f.infinity()), a));
  Value high = f.mul(logHigh, y);
  Value low = f.fma(logHigh, y, f.neg(high));
  low = f.fma(logLow, y, low);
  // Beyond, the power is 0 or infinite, and the rest would be NaN.
  Value isInRange =
      f.compare(arith::CmpFPredicate::OLT, f.abs(high), f.number(200));
  ExpOptions options;
  options.low = f.select(isInRange, low, f.number(0));
  return createExp(f, high, options);
}

/// log(|x| + sqrt(x² + 1)), as log1p where x is small.
static Value expandAsinh(const FloatMath &f, ValueRange x) {
  Value a = f.abs(x[0]), one = f.number(1);
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, a, f.number(9.2e18f));
  Value square = f.mul(a, a);
  Value sum = f.add(a, f.div(square, f.add(one, f.sqrt(f.add(square, one)))));
  Value small = math::Log1pOp::create(f.b, sum);
  Value large = f.add(math::LogOp::create(f.b, a), f.number(0.693147182f));
  return f.signedAs(f.select(isLarge, large, small), x[0]);
}

/// log(x + sqrt(x² - 1)), as log1p of what is above 1.
static Value expandAcosh(const FloatMath &f, ValueRange x) {
  Value one = f.number(1);
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, x[0], f.number(9.2e18f));
  Value t = f.sub(x[0], one);
  Value root = f.sqrt(f.mul(t, f.add(t, f.number(2))));
  Value small = math::Log1pOp::create(f.b, f.add(t, root));
  Value large = f.add(math::LogOp::create(f.b, x[0]), f.number(0.693147182f));
  Value isBelow = f.compare(arith::CmpFPredicate::OLT, x[0], one);
  return f.select(isBelow, f.nan(), f.select(isLarge, large, small));
}

/// log((1 + |x|) / (1 - |x|)) / 2, as log1p.
static Value expandAtanh(const FloatMath &f, ValueRange x) {
  Value a = f.abs(x[0]);
  Value quotient = f.div(f.add(a, a), f.sub(f.number(1), a));
  Value log = math::Log1pOp::create(f.b, quotient);
  return f.signedAs(f.mul(f.number(0.5f), log), x[0]);
}

//===----------------------------------------------------------------------===//
// Trigonometry
//===----------------------------------------------------------------------===//

/// sin(r) for |r| of at most pi/4; keeps the sign of 0.
static Value createSinOfRemainder(const FloatMath &f, Value r, Value square) {
  Value sum = f.polynomial(square, {-1.66666672e-1f, 8.33338592e-3f,
                                    -1.98559923e-4f, 2.86567956e-6f});
  return f.fma(sum, f.fma(r, square, f.number(0)), r);
}

static Value createCosOfRemainder(const FloatMath &f, Value square) {
  return f.polynomial(
      square, {1.0f, -0.5f, 4.16666567e-2f, -1.38877297e-3f, 2.44677067e-5f});
}

/// Returns true in elements whose quadrant has the bit.
static Value hasBit(const FloatMath &f, Value quadrant, uint32_t bit) {
  Value masked = arith::AndIOp::create(f.b, quadrant, f.integer(bit));
  return arith::CmpIOp::create(f.b, arith::CmpIPredicate::ne, masked,
                               f.integer(0));
}

/// Sine, and cosine as the sine of the next quadrant.
static Value createSine(const FloatMath &f, Value x, uint32_t quadrants) {
  Reduced reduced = reduceByHalfPi(f, x);
  Value quadrant = reduced.quadrant;
  if (quadrants != 0)
    quadrant = arith::AddIOp::create(f.b, quadrant, f.integer(quadrants));
  Value square = f.mul(reduced.remainder, reduced.remainder);
  Value value =
      f.select(hasBit(f, quadrant, 1), createCosOfRemainder(f, square),
               createSinOfRemainder(f, reduced.remainder, square));
  return f.select(hasBit(f, quadrant, 2), f.neg(value), value);
}

static Value expandSin(const FloatMath &f, ValueRange x) {
  return createSine(f, x[0], 0);
}

static Value expandCos(const FloatMath &f, ValueRange x) {
  return createSine(f, x[0], 1);
}

static Value expandTan(const FloatMath &f, ValueRange x) {
  Reduced reduced = reduceByHalfPi(f, x[0]);
  Value square = f.mul(reduced.remainder, reduced.remainder);
  Value sin = createSinOfRemainder(f, reduced.remainder, square);
  Value cos = createCosOfRemainder(f, square);
  Value isOdd = hasBit(f, reduced.quadrant, 1);
  return f.div(f.select(isOdd, f.neg(cos), sin), f.select(isOdd, sin, cos));
}

/// asin(x) up to 1/2, and pi/2 - 2 · asin(sqrt((1 - x) / 2)) beyond.
static Value expandAsin(const FloatMath &f, ValueRange x) {
  Value a = f.abs(x[0]);
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, a, f.number(0.5f));
  Value half = f.mul(f.number(0.5f), f.sub(f.number(1), a));
  Value square = f.select(isLarge, half, f.mul(a, a));
  Value root = f.select(isLarge, f.sqrt(half), a);
  Value sum =
      f.mul(square, f.polynomial(square, {1.6666752422e-1f, 7.4953002686e-2f,
                                          4.5470025998e-2f, 2.4181311049e-2f,
                                          4.2163199048e-2f}));
  Value angle = f.fma(root, sum, root);
  // pi/2, more exactly than one float.
  Value large =
      f.fma(f.number(0.93282184640716537f), f.number(1.68391888852618399f),
            f.neg(f.add(angle, angle)));
  return f.signedAs(f.select(isLarge, large, angle), x[0]);
}

/// atan(a) for a from 0 to 1.
static Value createAtanOfRatio(const FloatMath &f, Value a) {
  Value square = f.mul(a, a);
  Value sum =
      f.polynomial(square, {-0x1.5554dcp-2f, 0x1.9978ecp-3f, -0x1.230ad2p-3f,
                            0x1.b4e128p-4f, -0x1.3556b2p-4f, 0x1.61fdd0p-5f,
                            -0x1.0c2c08p-6f, 0x1.7ed1ccp-9f});
  return f.fma(f.mul(sum, square), a, a);
}

/// Value, or pi/2 minus it.
static Value complement(const FloatMath &f, Value condition, Value angle) {
  Value other = f.fma(f.number(0.93282184640716537f),
                      f.number(1.68391888852618399f), f.neg(angle));
  return f.select(condition, other, angle);
}

static Value expandAtan(const FloatMath &f, ValueRange x) {
  Value a = f.abs(x[0]), one = f.number(1);
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, a, one);
  Value ratio = f.select(isLarge, f.div(one, a), a);
  return f.signedAs(complement(f, isLarge, createAtanOfRatio(f, ratio)), x[0]);
}

static Value expandAtan2(const FloatMath &f, ValueRange operands) {
  Value y = operands[0], x = operands[1];
  Value ay = f.abs(y), ax = f.abs(x);
  Value isSteep = f.compare(arith::CmpFPredicate::OGT, ay, ax);
  Value numerator = f.select(isSteep, ax, ay);
  Value denominator = f.select(isSteep, ay, ax);
  // Equal infinities have the ratio of equal numbers, and zeros have 0.
  Value isEqual = f.compare(arith::CmpFPredicate::OEQ, numerator, denominator);
  Value isZero = f.compare(arith::CmpFPredicate::OEQ, denominator, f.number(0));
  Value ratio = f.select(isEqual, f.number(1), f.div(numerator, denominator));
  ratio = f.select(isZero, f.number(0), ratio);
  Value angle = complement(f, isSteep, createAtanOfRatio(f, ratio));
  // Also for -0, by its sign.
  Value isLeft = arith::CmpIOp::create(f.b, arith::CmpIPredicate::slt,
                                       f.bits(x), f.integer(0));
  Value left = f.fma(f.number(0.93282184640716537f),
                     f.number(3.36783777705236798f), f.neg(angle));
  angle = f.signedAs(f.select(isLeft, left, angle), y);
  Value isNumber = f.compare(arith::CmpFPredicate::ORD, x, y);
  return f.select(isNumber, angle, f.nan());
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

/// Two steps of Halley's method from a guess by the bits, whose error they
/// cube. Very large and very small magnitudes are scaled by powers of 2^24.
static Value expandCbrt(const FloatMath &f, ValueRange x) {
  Value a = f.abs(x[0]);
  Value isSmall = f.compare(arith::CmpFPredicate::OLT, a, f.number(0x1p-100f));
  Value isLarge = f.compare(arith::CmpFPredicate::OGT, a, f.number(0x1p100f));
  auto choose = [&](float small, float large) {
    return f.select(isSmall, f.number(small),
                    f.select(isLarge, f.number(large), f.number(1)));
  };
  Value scaled = f.mul(a, choose(0x1p24f, 0x1p-24f));
  Value third = arith::DivUIOp::create(f.b, f.bits(scaled), f.integer(3));
  Value root =
      f.fromBits(arith::AddIOp::create(f.b, third, f.integer(0x2a5119f2)));
  for (int step = 0; step < 2; ++step) {
    Value square = f.mul(root, root), cube = f.mul(square, root);
    Value off = f.fma(square, root, f.neg(scaled));
    Value slope = f.add(f.add(cube, cube), scaled);
    root = f.fma(f.neg(root), f.div(off, slope), root);
  }
  root = f.signedAs(f.mul(root, choose(0x1p-8f, 0x1p8f)), x[0]);
  return f.select(f.isPositiveAndFinite(a), root, x[0]);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
using Expansion = Value (*)(const FloatMath &, ValueRange);

/// Replaces an operation on f32, or on a narrower float through f32.
struct ExpandElementary : public RewritePattern {
  ExpandElementary(MLIRContext *context, StringRef name, Expansion expansion)
      : RewritePattern(name, /*benefit=*/2, context), expansion(expansion) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType();
    auto vector = dyn_cast<VectorType>(type);
    Type element = getElementTypeOrSelf(type);
    if (vector && vector.isScalable())
      return failure();
    ImplicitLocOpBuilder b(op->getLoc(), rewriter);
    Type wide = b.getF32Type();
    if (vector)
      wide = vector.clone(wide);
    if (element.isF32()) {
      rewriter.replaceOp(op, expansion(FloatMath{b, wide}, op->getOperands()));
      return success();
    }
    if (!element.isF16() && !element.isBF16())
      return failure();
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(arith::ExtFOp::create(b, wide, operand));
    Value result = expansion(FloatMath{b, wide}, operands);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, result);
    return success();
  }

private:
  Expansion expansion;
};

struct NamedExpansion {
  StringRef name;
  Expansion expansion;
};
} // namespace

static ArrayRef<NamedExpansion> namedExpansions() {
  static const NamedExpansion expansions[] = {
      {math::AcoshOp::getOperationName(), expandAcosh},
      {math::AsinOp::getOperationName(), expandAsin},
      {math::AsinhOp::getOperationName(), expandAsinh},
      {math::AtanOp::getOperationName(), expandAtan},
      {math::Atan2Op::getOperationName(), expandAtan2},
      {math::AtanhOp::getOperationName(), expandAtanh},
      {math::CbrtOp::getOperationName(), expandCbrt},
      {math::CosOp::getOperationName(), expandCos},
      {math::CoshOp::getOperationName(), expandCosh},
      {math::ExpOp::getOperationName(), expandExp},
      {math::Exp2Op::getOperationName(), expandExp2},
      {math::LogOp::getOperationName(), expandLog},
      {math::Log2Op::getOperationName(), expandLog2},
      {math::Log10Op::getOperationName(), expandLog10},
      {math::SinOp::getOperationName(), expandSin},
      {math::SinhOp::getOperationName(), expandSinh},
      {math::TanhOp::getOperationName(), expandTanh},
      {math::TanOp::getOperationName(), expandTan}};
  return expansions;
}

bool ftuner::isElementaryFunction(StringRef name) {
  return llvm::any_of(namedExpansions(), [&](const NamedExpansion &known) {
    return known.name == name;
  });
}

void ftuner::populateElementaryPatterns(RewritePatternSet &patterns) {
  for (const NamedExpansion &known : namedExpansions())
    patterns.add(std::make_unique<ExpandElementary>(
        patterns.getContext(), known.name, known.expansion));
}
