//===- FamilySelection.cpp - Few families for many shapes -----------------===//
#include "FamilySelection.h"
#include "FTuner/Search/Problem/SearchTuning.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;

namespace {
/// Exchanges chosen families for others while that lowers the loss.
class Exchange {
public:
  Exchange(const ScoreMatrix &scores, llvm::ArrayRef<double> weights,
           size_t numFixed, std::vector<unsigned> &chosen)
      : scores(scores), weights(weights), numFixed(numFixed), chosen(chosen) {}

  /// Makes the best exchange and returns true, if its gain exceeds `minGain`.
  bool step(double minGain);

private:
  const ScoreMatrix &scores;
  llvm::ArrayRef<double> weights;
  /// Number of families at the beginning of `chosen` that are never exchanged.
  size_t numFixed;
  std::vector<unsigned> &chosen;
};
} // namespace

bool Exchange::step(double minGain) {
  // For each shape the best chosen family, its score, and the best score
  // without it.
  struct Best {
    size_t owner;
    double score, next;
  };
  std::vector<Best> best(scores.numShapes());
  for (size_t shape = 0; shape < best.size(); ++shape) {
    const double none = -std::numeric_limits<double>::infinity();
    best[shape] = {0, none, none};
    for (size_t i = 0; i < chosen.size(); ++i) {
      double score = scores.at(chosen[i], shape);
      if (score > best[shape].score)
        best[shape] = {i, score, best[shape].score};
      else
        best[shape].next = std::max(best[shape].next, score);
    }
  }
  double bestGain = minGain;
  size_t leaves = chosen.size();
  unsigned joins = 0;
  std::vector<double> lost(chosen.size());
  for (unsigned family = 0; family < scores.numFamilies(); ++family) {
    // Gain of the family beside all chosen ones, and for each of these the loss
    // if it leaves.
    double gain = 0;
    std::fill(lost.begin(), lost.end(), 0.0);
    for (size_t shape = 0; shape < best.size(); ++shape) {
      double score = scores.at(family, shape);
      const Best &current = best[shape];
      gain += weights[shape] * std::max(0.0, score - current.score);
      lost[current.owner] += weights[shape] * (std::max(score, current.score) -
                                               std::max(score, current.next));
    }
    for (size_t i = numFixed; i < chosen.size(); ++i)
      if (gain - lost[i] > bestGain) {
        bestGain = gain - lost[i];
        leaves = i;
        joins = family;
      }
  }
  if (leaves == chosen.size())
    return false;
  chosen[leaves] = joins;
  return true;
}

/// Replaces each score by its distance from the best of its shape, as a share
/// of that: 0 for the best, and the negated regret if scores are negated times.
static void makeRelative(ScoreMatrix &scores) {
  for (size_t shape = 0; shape < scores.numShapes(); ++shape) {
    double best = scores.at(0, shape);
    for (size_t family = 1; family < scores.numFamilies(); ++family)
      best = std::max(best, scores.at(family, shape));
    double scale = best == 0 ? 1 : std::abs(best);
    for (size_t family = 0; family < scores.numFamilies(); ++family)
      scores.at(family, shape) = (scores.at(family, shape) - best) / scale;
  }
}

/// Ratio of loss to bound above which the price stays constant: if few families
/// may be chosen, most shapes lose so much, and their mean decides.
static constexpr double kMaxShare = 2;

/// Returns the scores with losses that are multiplied by the price of their
/// share of the bound: a loss below the bound hardly changes, one beyond it
/// grows steeply.
static ScoreMatrix pricedLosses(const ScoreMatrix &scores,
                                llvm::ArrayRef<double> lossBounds) {
  ScoreMatrix priced = scores;
  for (size_t shape = 0; shape < lossBounds.size(); ++shape)
    for (size_t family = 0; family < scores.numFamilies(); ++family) {
      double share = std::min(
          std::abs(scores.at(family, shape)) / lossBounds[shape], kMaxShare);
      priced.at(family, shape) *=
          1 + tuning::priceOfMaxLoss * std::pow(share, 3);
    }
  return priced;
}

void ftuner::chooseFamilies(ScoreMatrix &scores, llvm::ArrayRef<double> weights,
                            size_t limit, double minGain,
                            llvm::ArrayRef<double> lossBounds,
                            std::vector<unsigned> &chosen) {
  makeRelative(scores);
  ScoreMatrix priced = pricedLosses(scores, lossBounds);
  size_t numShapes = scores.numShapes(), numFamilies = scores.numFamilies();
  // Without any family, a shape loses as much as with the worst family.
  std::vector<double> current(numShapes);
  double totalWeight = 0;
  for (size_t shape = 0; shape < numShapes; ++shape) {
    double worst = priced.at(0, shape);
    for (size_t family = 1; family < numFamilies; ++family)
      worst = std::min(worst, priced.at(family, shape));
    current[shape] = worst;
    totalWeight += weights[shape];
  }
  auto take = [&](unsigned family) {
    for (size_t shape = 0; shape < numShapes; ++shape)
      current[shape] = std::max(current[shape], priced.at(family, shape));
  };
  for (unsigned family : chosen)
    take(family);
  size_t numFixed = chosen.size();

  for (size_t round = 0; round < limit; ++round) {
    double bestGain = -1;
    unsigned best = 0;
    for (size_t family = 0; family < numFamilies; ++family) {
      double gain = 0;
      for (size_t shape = 0; shape < numShapes; ++shape)
        gain += weights[shape] *
                std::max(0.0, priced.at(family, shape) - current[shape]);
      if (gain > bestGain * (1 + 1e-12)) {
        bestGain = gain;
        best = family;
      }
    }
    bool isNeeded = chosen.empty();
    if (!isNeeded && !(bestGain > minGain * totalWeight))
      break;
    chosen.push_back(best);
    take(best);
  }
  // If only one family is chosen, its shapes have no second score to fall back
  // to.
  Exchange exchange(priced, weights, numFixed, chosen);
  if (chosen.size() > 1)
    for (size_t round = 0; round < tuning::maxExchanges; ++round)
      if (!exchange.step(tuning::minExchangeGain * totalWeight))
        break;
}
