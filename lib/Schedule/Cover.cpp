//===- Cover.cpp - Covers of an axis in numbers ---------------------------===//
#include "FTuner/Schedule/Cover.h"
#include "FTuner/Workload/Workload.h"
#include <numeric>

using namespace ftuner;

CoverConstants ftuner::coverConstants(int64_t low, int64_t high) {
  CoverConstants constants;
  constants.unit = std::gcd(low, high);
  constants.low = low / constants.unit;
  constants.high = high / constants.unit;
  constants.inverse = modularInverse(constants.low, constants.high);
  return constants;
}

static Cover inNumbers(const CoverOf<NumberArithmetic> &blocks, int64_t first,
                       int64_t second, int64_t extent) {
  Cover cover;
  cover.first = blocks.first;
  cover.second = blocks.blocks - blocks.first;
  cover.padded = cover.first * first + cover.second * second - extent;
  return cover;
}

Cover ftuner::coverExtent(const CoverRule &rule, int64_t extent,
                          int64_t blocksBeside) {
  if (extent <= 0)
    return {};
  NumberArithmetic math;
  return inNumbers(coverOf(math, rule, extent, blocksBeside), rule.first,
                   rule.second, extent);
}

Cover ftuner::coverWithPair(const CoverConstants &constants, int64_t extent) {
  NumberArithmetic math;
  return inNumbers(exactCover(math, constants, extent),
                   constants.unit * constants.low,
                   constants.unit * constants.high, extent);
}

Cover ftuner::balancedCover(int64_t low, int64_t high, int64_t sms,
                            int64_t blocksBeside, int64_t extent) {
  NumberArithmetic math;
  return inNumbers(
      balancedCover(math, CoverRule{low, high, sms}, extent, blocksBeside), low,
      high, extent);
}
