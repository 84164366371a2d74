//===- TileRules.h - Tile sizes from the extents of a range -----*- C++ -*-===//
//
// RegTileRule and SmemTileRule (paper, algorithm 1 line 1 and section IV-A).
//
//   F          the divisors of every extent of an axis; a prime p contributes
//              those of p − 1 and p + 1 too (53: those of 52 and 54)
//   register   sizes of F along space axes, 1 along the reduce axis
//   block      multiples of the register tile in F along space axes; multiples
//              of the memory transaction along the reduce axis
//
// until a block's operands fill shared memory. Membership in F is arithmetic,
// so open ranges cost no more than short ones: d divides some min + i·step ≤
// max exactly if gcd(d, step) divides min and the first such size is in the
// range.
//
// The paper reports about 2 million uKernels for 128 shapes on V100; how a tile
// "grows" it leaves open. This reading visits every block tile for every
// register tile. A batch axis has block and register tile 1.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_TILERULES_H
#define FTUNER_SEARCH_TILERULES_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Workload.h"
#include <cstdint>
#include <vector>

namespace ftuner {

/// The tile sizes of one space axis.
class TileFactors {
public:
  /// F up to `limit`; at least {1} where that is not 0.
  TileFactors(const SizeRange &range, int64_t limit);

  bool contains(int64_t size) const {
    return size >= 1 && size < static_cast<int64_t>(member.size()) &&
           member[size];
  }
  /// Ascending.
  const std::vector<int64_t> &sizes() const { return list; }

private:
  void addDivisors(int64_t size);

  std::vector<bool> member;
  std::vector<int64_t> list;
};

/// F of axes M and N of a contraction, and what the rules make of them with the
/// granules of a codegen path.
struct TileRules {
  TileRules(const Workload &workload, const DeviceSpec &device,
            const ScheduleSpace &space);

  /// Whether the rules build the tiles along axes M and N.
  bool allows(const UKernel &ukernel) const {
    for (unsigned factor : {0, 1})
      if (unsigned axis = axes.space(factor);
          !factors[factor].contains(ukernel.blockTile[axis]) ||
          !factors[factor].contains(ukernel.registerTile[axis]))
        return false;
    return true;
  }

  ContractionAxes axes;
  /// Along m and n.
  TileFactors factors[2];
  /// Candidates of the two rules: tiles of M, N and K.
  int64_t numCandidates = 0;
  /// Those with whole warps and no more workers than a block may have. (The
  /// paper does not ask for whole warps; without them SIA favours blocks of 1
  /// to 6 threads.)
  int64_t numWholeWarps = 0;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_TILERULES_H
