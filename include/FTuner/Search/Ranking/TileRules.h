//===- TileRules.h - Tile sizes from the extents of a range -----*- C++ -*-===//
//
// RegTileRule and SmemTileRule (paper, algorithm 1 line 1 and section IV-A).
//
//   F          the divisors of every extent of an axis; a prime p contributes
//              the divisors of p − 1 and p + 1, too (53: also of 52 and 54)
//   register   sizes of F along space axes, 1 along the reduce axis
//   block      multiples of the register tile in F along space axes; multiples
//              of the memory transaction along the reduce axis
//
// until a block's operands fill shared memory. Membership in F is computed by
// arithmetic, so open ranges cost no more than short ones: d divides some min +
// i·step ≤ max exactly if gcd(d, step) divides min and the first such size is
// in the range.
//
// The paper reports about 2 million uKernels for 128 shapes on V100, and does
// not say how a tile "grows". This implementation visits every block tile for
// every register tile. Batch axes are space axes like others (the published
// plans have blocks of 2 to 8 elements along them), with tiles of at most a few
// elements.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_RANKING_TILERULES_H
#define FTUNER_SEARCH_RANKING_TILERULES_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Workload.h"
#include <cstdint>
#include <vector>

namespace ftuner {

/// The tile sizes of one space axis.
class TileFactors {
public:
  /// Makes F up to `limit`; at least {1} if `limit` is not 0.
  TileFactors(const SizeRange &range, int64_t limit);

  bool contains(int64_t size) const {
    return size >= 1 && size < static_cast<int64_t>(member.size()) &&
           member[size];
  }
  /// Returns the sizes, ascending.
  const std::vector<int64_t> &sizes() const { return list; }

private:
  void addDivisors(int64_t size);

  std::vector<bool> member;
  std::vector<int64_t> list;
};

/// F of the space axes of a contraction, and the tiles that the rules make with
/// the granules of a codegen path.
struct TileRules {
  TileRules(const Workload &workload, const DeviceSpec &device,
            const ScheduleSpace &space);

  /// Returns whether the rules build the tiles along the space axes.
  bool allows(const UKernel &ukernel) const {
    auto areIn = [&](const TileFactors &sizes, unsigned axis) {
      return sizes.contains(ukernel.blockTile[axis]) &&
             sizes.contains(ukernel.registerTile[axis]);
    };
    for (unsigned factor : {0, 1})
      if (!areIn(factors[factor], axes.space(factor)))
        return false;
    for (const auto &[axis, sizes] : batchFactors)
      if (!areIn(sizes, axis))
        return false;
    return true;
  }

  ContractionAxes axes;
  /// Tile sizes along m and n.
  TileFactors factors[2];
  /// Tile sizes along batch axes, if blocks of the path have several elements
  /// along them.
  std::vector<std::pair<unsigned, TileFactors>> batchFactors;
  /// Number of candidates of the two rules: tiles of all axes.
  int64_t numCandidates = 0;
  /// Number of candidates with whole warps and no more workers than a block may
  /// have. (The paper does not ask for whole warps; without them SIA favours
  /// blocks of 1 to 6 threads.)
  int64_t numWholeWarps = 0;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_TILERULES_H
