//===- Combination.h - Programs of one and two uKernels ---------*- C++ -*-===//
//
// CombinSearch (paper, algorithm 2). For every uKernel K of the set: if its
// height divides the extent H of the main axis, the program of K alone joins
// the pool uProg; otherwise every second uKernel with which it covers H
// exactly, n1 · K1 + n2 · K2 = H, e.g. 53 = 3·7 + 4·8. The second one may be a
// divisor of H: 51 = 1·17 + 1·34. Both have one layout: the same threads, tiles
// on the other axes, reduce tile and stages.
//
// Among the solutions for two uKernels, the one with the smallest number of the
// lower one wins, as in the dispatch of a family (Partition.h). If the higher
// one divides H, that number is 0, and the program has only the higher one: 128
// = 4·24 + 1·32 is 4·32.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_STRATEGIES_COMBINATION_H
#define FTUNER_SEARCH_STRATEGIES_COMBINATION_H

#include "FTuner/Schedule/KernelFamily.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <vector>

namespace ftuner {

/// The properties of a uKernel that its combinations depend on: its block tile
/// along the main axis, and a number that is equal for uKernels that can be
/// combined.
struct CombinableUKernel {
  int64_t height = 1;
  unsigned layout = 0;
};

/// A program that covers the main axis exactly.
struct PooledProgram {
  /// Indices of the uKernels; `second` is the higher one, if there are two.
  unsigned first = 0;
  std::optional<unsigned> second;
  /// `partition.second` is 0 for one uKernel.
  Partition partition;

  bool operator==(const PooledProgram &other) const {
    return first == other.first && second == other.second &&
           partition.first == other.partition.first &&
           partition.second == other.partition.second;
  }
};

/// The uKernels that CombinSearch pairs.
enum class Pairing {
  /// As printed: a uKernel that does not divide the extent, with any second
  /// one.
  Printed,
  /// Two uKernels that do not divide the extent; a divisor needs no partner.
  NoDivisors,
};

/// Returns the pool uProg of an extent ≥ 1: programs of one uKernel by index,
/// then pairs by layout and heights. Among equal heights of one layout only the
/// first counts.
std::vector<PooledProgram>
combinSearch(llvm::ArrayRef<CombinableUKernel> ukernels, int64_t extent,
             Pairing pairing);

} // namespace ftuner

#endif // FTUNER_SEARCH_STRATEGIES_COMBINATION_H
