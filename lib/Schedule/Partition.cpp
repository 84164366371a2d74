//===- Partition.cpp - Partitions of an axis in numbers
//---------------------------===//
#include "FTuner/Schedule/Partition.h"
#include "FTuner/Workload/Workload.h"
#include <numeric>

using namespace ftuner;

PartitionConstants ftuner::partitionConstants(int64_t low, int64_t high) {
  PartitionConstants constants;
  constants.unit = std::gcd(low, high);
  constants.low = low / constants.unit;
  constants.high = high / constants.unit;
  constants.inverse = modularInverse(constants.low, constants.high);
  return constants;
}

static Partition inNumbers(const PartitionOf<NumberArithmetic> &blocks,
                           int64_t first, int64_t second, int64_t extent) {
  Partition partition;
  partition.first = blocks.first;
  partition.second = blocks.blocks - blocks.first;
  partition.padded =
      partition.first * first + partition.second * second - extent;
  return partition;
}

Partition ftuner::partitionExtent(const PartitionRule &rule, int64_t extent,
                                  int64_t blocksBeside) {
  if (extent <= 0)
    return {};
  NumberArithmetic math;
  return inNumbers(partitionOf(math, rule, extent, blocksBeside), rule.first,
                   rule.second, extent);
}

bool ftuner::isSecondNeverPadded(const PartitionRule &rule, int64_t extent) {
  if (rule.balancedSms == 0) {
    Partition partition = partitionExtent(rule, extent, /*blocksBeside=*/1);
    return partition.padded == 0 || partition.second == 0;
  }
  // Less than the difference of heights is padded behind second blocks.
  int64_t difference = rule.second - rule.first;
  return extent % difference == 0 && rule.first % difference == 0;
}

Partition ftuner::partitionWithPair(const PartitionConstants &constants,
                                    int64_t extent) {
  NumberArithmetic math;
  return inNumbers(exactPartition(math, constants, extent),
                   constants.unit * constants.low,
                   constants.unit * constants.high, extent);
}

Partition ftuner::balancedPartition(int64_t low, int64_t high, int64_t sms,
                                    int64_t blocksBeside, int64_t extent) {
  NumberArithmetic math;
  return inNumbers(balancedPartition(math, PartitionRule{low, high, sms},
                                     extent, blocksBeside),
                   low, high, extent);
}
