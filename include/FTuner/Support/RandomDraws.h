//===- RandomDraws.h - Draws that are the same everywhere -------*- C++ -*-===//
//
// The standard library's distributions differ between implementations; these do
// not.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SUPPORT_RANDOMDRAWS_H
#define FTUNER_SUPPORT_RANDOMDRAWS_H

#include <cmath>
#include <cstdint>
#include <random>

namespace ftuner {

/// From 0 to before 1, by 53 bits.
inline double drawUnit(std::mt19937_64 &random) {
  return std::ldexp(static_cast<double>(random() >> 11), -53);
}

/// From 0 to before `count` ≥ 1. The remainder's bias is below 2^-40 for any
/// count that a search has.
inline int64_t drawBelow(int64_t count, std::mt19937_64 &random) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}

} // namespace ftuner

#endif // FTUNER_SUPPORT_RANDOMDRAWS_H
