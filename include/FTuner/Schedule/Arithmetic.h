//===- Arithmetic.h - What formulas of the grid are written over -*- C++
//-*-===//
//
// The mapping of blocks to tiles is needed three times: in numbers by the
// search, by the cost models and by tests; as IR on the host, which counts
// blocks; as IR on the device, where a block finds its tile. Its formulas
// (Partition.h, Grid.h) are therefore templates over a class `Math`, and each
// use is an instantiation of one text.
//
// A Math has
//
//   Index       an unsigned integer: a size, a position, a number of blocks
//   Condition   what a comparison gives
//
//   Index constant(int64_t)
//   Index add(Index, Index), sub(Index, Index)
//   Index mul(Index, Index), div(Index, Index), rem(Index, Index)
//       each of these three also with a number, an int64_t, on the right
//   Condition less(Index, Index), atMost(Index, Index), atLeast(Index, Index)
//   Index select(Condition, Index, Index)
//   std::optional<int64_t> known(Index)   its number, where that is known
//
// Both values of a `select` are computed, so a difference in the one that is
// not taken may wrap around; otherwise no formula leaves the numbers from 0 to
// 2⁶³ − 1, and none divides by 0.
//
// A Math that builds IR adds operations in the order of its calls. Formulas
// therefore have no two calls as arguments of one: the order of those would be
// the compiler's.
//
// Rejected: one generic class over a symbolic expression that is evaluated or
// lowered (a fourth representation, and IR in an order that nobody wrote).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_ARITHMETIC_H
#define FTUNER_SCHEDULE_ARITHMETIC_H

#include <cstdint>
#include <optional>

namespace ftuner {

/// The Math of numbers.
struct NumberArithmetic {
  using Index = int64_t;
  using Condition = bool;

  static constexpr Index constant(int64_t value) { return value; }
  static constexpr Index add(Index lhs, Index rhs) { return lhs + rhs; }
  static constexpr Index sub(Index lhs, Index rhs) { return lhs - rhs; }
  static constexpr Index mul(Index lhs, Index rhs) { return lhs * rhs; }
  static constexpr Index div(Index lhs, Index rhs) { return lhs / rhs; }
  static constexpr Index rem(Index lhs, Index rhs) { return lhs % rhs; }
  static constexpr Condition less(Index lhs, Index rhs) { return lhs < rhs; }
  static constexpr Condition atMost(Index lhs, Index rhs) { return lhs <= rhs; }
  static constexpr Condition atLeast(Index lhs, Index rhs) {
    return lhs >= rhs;
  }
  static constexpr Index select(Condition condition, Index lhs, Index rhs) {
    return condition ? lhs : rhs;
  }
  static constexpr std::optional<int64_t> known(Index value) { return value; }
};

/// ⌈value / divisor⌉ of a positive number `divisor`.
template <typename Math>
typename Math::Index ceilDiv(Math &math, typename Math::Index value,
                             int64_t divisor) {
  auto last = math.add(value, math.constant(divisor - 1));
  return math.div(last, divisor);
}

template <typename Math>
typename Math::Index minimum(Math &math, typename Math::Index lhs,
                             typename Math::Index rhs) {
  return math.select(math.atMost(lhs, rhs), lhs, rhs);
}

template <typename Math>
typename Math::Index maximum(Math &math, typename Math::Index lhs,
                             typename Math::Index rhs) {
  return math.select(math.atLeast(lhs, rhs), lhs, rhs);
}

} // namespace ftuner

#endif // FTUNER_SCHEDULE_ARITHMETIC_H
