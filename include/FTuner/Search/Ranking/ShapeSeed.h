//===- ShapeSeed.h - Seeds of random choices --------------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_RANKING_SHAPESEED_H
#define FTUNER_SEARCH_RANKING_SHAPESEED_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace ftuner {

/// A seed of the shape's own, so that its draws do not depend on what was drawn
/// for others; the same on every machine.
inline uint64_t seedOf(llvm::ArrayRef<int64_t> shape, uint64_t seed) {
  // FNV-1a, by numbers.
  uint64_t hash = 14695981039346656037u ^ seed;
  for (int64_t size : shape)
    hash = (hash ^ static_cast<uint64_t>(size)) * 1099511628211u;
  return hash;
}

} // namespace ftuner

#endif // FTUNER_SEARCH_RANKING_SHAPESEED_H
