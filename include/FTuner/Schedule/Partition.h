//===- Partition.h - Blocks of one or two heights cover an axis -----*- C++
//-*-===//
//
// Blocks lie one after the other along an axis, from element 0 on: first those
// of one height, then those of another, higher one. Heights g·a and g·b with
// coprime a < b cover H exactly whenever g divides H and H/g ≥ (a − 1)·(b − 1);
// e.g. g = 1, a = 7, b = 8: 53 = 3·7 + 4·8. So two heights serve almost every
// size in closed form, also in open ranges. Where no exact partition exists the
// last block pads locally.
//
// An exact partition takes as few low blocks as it can, so the last wave may
// leave most SMs idle. A balanced partition takes as many blocks as give each
// of S SMs the same number, and as few high ones as cover the extent: with
// heights 96 and 112, 18 blocks in a block row and 132 SMs, 640 rows are
// exactly 2 · 96 + 4 · 112, 108 blocks; balanced they are 7 · 96, 126 blocks,
// each less work, in the same single wave of one block per SM. What is padded
// is less than the difference of the heights where there are high blocks, else
// less than the low height.
//
// The formulas are templates over a Math (Arithmetic.h). What they promise
// holds for each extent ≥ 1 and heights 1 ≤ low < high; an extent of 0 has no
// blocks. Extents and blocks are elements and numbers, not bytes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_PARTITION_H
#define FTUNER_SCHEDULE_PARTITION_H

#include "FTuner/Schedule/Arithmetic.h"

namespace ftuner {

/// More SMs than any device has (`PartitionRule::balancedSms`): the host
/// multiplies by them.
constexpr int64_t maxBalancedSms = 1 << 16;

/// The heights that cover an axis, and how.
struct PartitionRule {
  /// Elements of a block of the first part, the only one if `second` is 0.
  int64_t first = 1;
  /// Elements of a block of the second part, more than `first`; 0 with one
  /// part.
  int64_t second = 0;
  /// SMs over which two parts balance the blocks; 0 for an exact partition.
  int64_t balancedSms = 0;

  bool isPair() const { return second != 0; }
};

/// How many blocks of each part cover an extent.
struct Partition {
  int64_t first = 0;
  int64_t second = 0;
  /// Elements beyond the extent that the last block pads locally.
  int64_t padded = 0;
  int64_t blocks() const { return first + second; }
};

/// A partition in any arithmetic: blocks of the first part, and of both.
template <typename Math>
struct PartitionOf {
  typename Math::Index first, blocks;
};

/// Constants of an exact partition into two heights.
struct PartitionConstants {
  int64_t unit = 1;    ///< gcd of the heights
  int64_t low = 1;     ///< smaller height in units (a)
  int64_t high = 1;    ///< larger height in units (b)
  int64_t inverse = 1; ///< a⁻¹ modulo b, in [0, b)
};
/// Heights are positive, `low` < `high`.
PartitionConstants partitionConstants(int64_t low, int64_t high);

/// The exact partition with the fewest blocks of the first part, or else blocks
/// of the second part alone with local padding.
///
/// Closed form, in units of gcd(heights): with u = ceil(extent / unit) and the
/// heights a < b in units, first = u · a⁻¹ mod b, where a⁻¹ is the inverse of a
/// modulo b (Diophantine u = first · a + second · b).
///
/// Each element below the extent is in one block if the heights sum up to
/// `extent` + `padded` with padded ≥ 0, and only the last block pads if padded
/// is less than its height.
///   Exact: every partition of u units has first · a ≡ u (mod b), so its
///   `first` is u · a⁻¹ mod b or a multiple of b more, and there is none if
///   already the least of these needs more than u units. Else (u − first · a) /
///   b is whole and at least 0, and padded = u · unit − extent < unit ≤ low.
///   Not exact: ceil(u / b) high blocks hold at least u units, and one less
///   would not, so padded < high.
template <typename Math>
PartitionOf<Math> exactPartition(Math &math,
                                 const PartitionConstants &constants,
                                 typename Math::Index extent) {
  auto units = ceilDiv(math, extent, constants.unit);
  auto residue = math.rem(units, constants.high);
  auto first = math.rem(math.mul(residue, constants.inverse), constants.high);
  auto inFirst = math.mul(first, constants.low);
  auto isExact = math.atLeast(units, inFirst);
  auto second = math.div(math.sub(units, inFirst), constants.high);
  first = math.select(isExact, first, math.constant(0));
  auto alone = ceilDiv(math, units, constants.high);
  second = math.select(isExact, second, alone);
  return {first, math.add(first, second)};
}

/// The partition by heights low < high that gives each of `sms` SMs the same
/// number of blocks: from the fewest blocks that can cover, u = ceil(extent /
/// high), with q = ceil(u · blocksBeside / sms) of them on an SM, to
///
///   n = clamp(floor(q · sms / blocksBeside), u, ceil(extent / low))
///
/// blocks along the axis, of which s = max(0, ceil((extent − n · low) / (high −
/// low))) are high ones.
///
/// Holds for any n from u to t = ceil(extent / low), so whatever the SMs and
/// the blocks beside are (as for `exactPartition`, each element once and
/// padding in the last block alone):
///   0 ≤ s ≤ n, since n ≥ u gives n · high ≥ extent, that is extent − n · low ≤
///   n · (high − low).
///   All elements: n · low + s · (high − low) ≥ extent by the choice of s.
///   With s > 0: one high block less would not reach, n · low + (s − 1) · (high
///   − low) < extent, so padded < high − low < high, the last block's height.
///   With s = 0: n · low ≥ extent, so n = t, and padded = t · low − extent <
///   low, the last block's height.
template <typename Math>
PartitionOf<Math> balancedPartition(Math &math, const PartitionRule &rule,
                                    typename Math::Index extent,
                                    typename Math::Index blocksBeside) {
  // Another extent may be 0.
  auto beside = maximum(math, blocksBeside, math.constant(1));
  auto fewest = ceilDiv(math, extent, rule.second);
  auto rounds = ceilDiv(math, math.mul(fewest, beside), rule.balancedSms);
  auto filling = math.div(math.mul(rounds, rule.balancedSms), beside);
  auto most = ceilDiv(math, extent, rule.first);
  auto blocks = minimum(math, maximum(math, filling, fewest), most);
  auto inLow = minimum(math, math.mul(blocks, rule.first), extent);
  auto second =
      ceilDiv(math, math.sub(extent, inLow), rule.second - rule.first);
  return {math.sub(blocks, second), blocks};
}

/// Partitions `extent` by the rule. `blocksBeside`, the blocks of a block row,
/// matters only to balanced partitions. One part has all its
/// blocks in `first`.
template <typename Math>
PartitionOf<Math> partitionOf(Math &math, const PartitionRule &rule,
                              typename Math::Index extent,
                              typename Math::Index blocksBeside) {
  if (!rule.isPair()) {
    auto blocks = ceilDiv(math, extent, rule.first);
    return {blocks, blocks};
  }
  if (rule.balancedSms != 0)
    return balancedPartition(math, rule, extent, blocksBeside);
  return exactPartition(math, partitionConstants(rule.first, rule.second),
                        extent);
}

/// Returns true if no block of the second of two parts reaches beyond the
/// extent, which is positive, however many blocks the first part has. A block
/// of the first part can do so only if its height does not divide the extent.
/// The second part has no such rule, since it does not begin at a multiple of
/// its height.
bool isSecondNeverPadded(const PartitionRule &rule, int64_t extent);

/// `partitionOf` in numbers; no blocks for an extent below 1.
Partition partitionExtent(const PartitionRule &rule, int64_t extent,
                          int64_t blocksBeside);
/// `exactPartition` in numbers; `extent` is positive.
Partition partitionWithPair(const PartitionConstants &constants,
                            int64_t extent);
/// `balancedPartition` in numbers.
Partition balancedPartition(int64_t low, int64_t high, int64_t sms,
                            int64_t blocksBeside, int64_t extent);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_PARTITION_H
