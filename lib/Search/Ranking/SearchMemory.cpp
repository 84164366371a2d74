//===- SearchMemory.cpp - Memory of searches for one problem --------------===//
#include "FTuner/Search/Ranking/SearchMemory.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace ftuner;

unsigned SearchMemory::numberOf(const KernelFamily &family) {
  llvm::SmallVector<int64_t, 40> key = {
      static_cast<int64_t>(reinterpret_cast<intptr_t>(&family.path())),
      family.combineAxis, family.reduceAxes, family.reduceSplit,
      family.balancedSms};
  // The number of tiles follows from that of the numbers.
  for (const BlockTile &tile : family.tiles)
    key.append(tile.begin(), tile.end());
  llvm::append_range(key, family.schedule.fields());
  return numbers.try_emplace(std::move(key), numbers.size()).first->second;
}

const double *ShapeScores::find(unsigned family) const {
  size_t begin = family * numShapes;
  if (begin >= scores.size() || std::isnan(scores[begin]))
    return nullptr;
  return scores.data() + begin;
}

void ShapeScores::keep(unsigned family, llvm::ArrayRef<double> familyScores) {
  size_t begin = family * numShapes;
  if (begin >= scores.size())
    scores.resize(begin + numShapes, std::numeric_limits<double>::quiet_NaN());
  llvm::copy(familyScores, scores.begin() + begin);
}
