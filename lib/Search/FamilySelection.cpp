//===- FamilySelection.cpp - Few families for many shapes -----------------===//
#include "FamilySelection.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

/// Share of the mean score below which a further kernel is not worth its code.
static constexpr double leastGain = 1e-4;

void ftuner::chooseFamilies(const ScoreMatrix &scores,
                            llvm::ArrayRef<double> weights, size_t limit,
                            std::vector<unsigned> &chosen) {
  size_t numShapes = scores.numShapes(), numFamilies = scores.numFamilies();
  // Without any family a shape loses as if it had the worst one of all.
  std::vector<double> current(numShapes);
  double totalScore = 0;
  for (size_t shape = 0; shape < numShapes; ++shape) {
    double best = scores.at(0, shape), worst = best;
    for (size_t family = 1; family < numFamilies; ++family) {
      best = std::max(best, scores.at(family, shape));
      worst = std::min(worst, scores.at(family, shape));
    }
    current[shape] = worst;
    totalScore += weights[shape] * std::abs(best);
  }
  auto take = [&](unsigned family) {
    for (size_t shape = 0; shape < numShapes; ++shape)
      current[shape] = std::max(current[shape], scores.at(family, shape));
  };
  for (unsigned family : chosen)
    take(family);

  for (size_t round = 0; round < limit; ++round) {
    double bestGain = -1;
    unsigned best = 0;
    for (size_t family = 0; family < numFamilies; ++family) {
      double gain = 0;
      for (size_t shape = 0; shape < numShapes; ++shape)
        gain += weights[shape] *
                std::max(0.0, scores.at(family, shape) - current[shape]);
      if (gain > bestGain * (1 + 1e-12)) {
        bestGain = gain;
        best = family;
      }
    }
    bool isNeeded = chosen.empty();
    if (!isNeeded && !(bestGain > leastGain * totalScore))
      break;
    chosen.push_back(best);
    take(best);
  }
}
