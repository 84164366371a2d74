//===- Combination.cpp - Programs of one and two uKernels -----------------===//
#include "FTuner/Search/Strategies/Combination.h"
#include <map>

using namespace ftuner;

std::vector<PooledProgram>
ftuner::combinSearch(llvm::ArrayRef<CombinableUKernel> ukernels, int64_t extent,
                     Pairing pairing) {
  std::vector<PooledProgram> pool;
  // Heights that may be part of a pair, ascending, for each layout.
  std::map<unsigned, std::map<int64_t, unsigned>> layouts;
  for (unsigned index = 0; index < ukernels.size(); ++index) {
    const CombinableUKernel &ukernel = ukernels[index];
    bool divides = extent % ukernel.height == 0;
    if (divides)
      pool.push_back({index, std::nullopt, {extent / ukernel.height, 0, 0}});
    if ((!divides || pairing == Pairing::Printed) && ukernel.height < extent)
      layouts[ukernel.layout].try_emplace(ukernel.height, index);
  }
  for (const auto &[layout, heights] : layouts)
    for (auto low = heights.begin(); low != heights.end(); ++low)
      for (auto high = std::next(low); high != heights.end(); ++high) {
        Partition partition = partitionWithPair(
            partitionConstants(low->first, high->first), extent);
        // If one of them has no blocks, this is a program of one uKernel.
        if (partition.padded == 0 && partition.first > 0 &&
            partition.second > 0)
          pool.push_back({low->second, high->second, partition});
      }
  return pool;
}
