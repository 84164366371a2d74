//===- DietCodeModel.cpp - Occupancy, padding and votes -------------------===//
#include "DietCodeModel.h"
#include "DietCodeTuning.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace ftuner;

double ftuner::busyShare(double blocks, int64_t sms) {
  auto count = static_cast<double>(sms);
  return blocks / (std::ceil(blocks / count) * count);
}

double OccupancyFactor::valueFor(double blocks, int64_t sms) const {
  double share = busyShare(blocks, sms);
  switch (form) {
  case OccupancyForm::Linear:
    return k * share + 1 - k;
  case OccupancyForm::Hyperbolic: {
    double c = blocks < static_cast<double>(sms) ? belowWave : aboveWave;
    return c * share / ((c - 1) * share + 1);
  }
  case OccupancyForm::Share:
    return share;
  case OccupancyForm::Off:
    return 1;
  }
  return 1;
}

FittedK ftuner::fitK(llvm::ArrayRef<RaggedRun> runs) {
  // 1 / slowdown = 1 − k · idle.
  double product = 0, square = 0;
  for (const RaggedRun &run : runs) {
    double idle = 1 - run.share;
    product += idle * (1 - 1 / run.slowdown);
    square += idle * idle;
  }
  if (square == 0)
    return {};
  FittedK fitted;
  fitted.k = std::clamp(product / square, 0.0, 1.0);
  double residuals = 0;
  for (const RaggedRun &run : runs) {
    double error = 1 / run.slowdown - (1 - fitted.k * (1 - run.share));
    residuals += error * error;
  }
  if (runs.size() > 1)
    fitted.standardError =
        std::sqrt(residuals / static_cast<double>(runs.size() - 1) / square);
  return fitted;
}

/// The shapes that vote for each micro-kernel.
using Voters = std::map<unsigned, std::vector<size_t>>;

/// The voters if each shape names its `count` best.
static Voters votersOfBest(const VoteMatrix &scores, size_t count) {
  Voters voters;
  for (size_t shape = 0; shape < scores.size(); ++shape) {
    const std::vector<double> &row = scores[shape];
    std::vector<unsigned> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order,
                      [&](unsigned a, unsigned b) { return row[a] > row[b]; });
    for (unsigned kernel :
         llvm::ArrayRef(order).take_front(std::min(count, order.size())))
      if (row[kernel] > 0)
        voters[kernel].push_back(shape);
  }
  return voters;
}

/// Returns the voters if each shape names all columns that lose at most a share
/// of its best score.
static Voters votersWithin(const VoteMatrix &scores, double loss) {
  Voters voters;
  for (size_t shape = 0; shape < scores.size(); ++shape) {
    const std::vector<double> &row = scores[shape];
    double minScore = (1 - loss) * *llvm::max_element(row);
    for (unsigned kernel = 0; kernel < row.size(); ++kernel)
      if (row[kernel] > 0 && row[kernel] >= minScore)
        voters[kernel].push_back(shape);
  }
  return voters;
}

static std::vector<unsigned> coverOf(const VoteMatrix &scores,
                                     const Voters &voters) {
  std::vector<bool> isCovered(scores.size());
  std::vector<unsigned> cover;
  while (true) {
    double maxSum = 0;
    std::optional<unsigned> best;
    for (const auto &[kernel, shapes] : voters) {
      double sum = 0;
      for (size_t shape : shapes)
        if (!isCovered[shape])
          sum += scores[shape][kernel];
      if (sum > maxSum) {
        maxSum = sum;
        best = kernel;
      }
    }
    if (!best)
      return cover;
    cover.push_back(*best);
    for (size_t shape : voters.at(*best))
      isCovered[shape] = true;
  }
}

/// Steps of the share that votes may lose.
static constexpr int numLossSteps = 200;

/// Exchanges members of a cover for others while the loss of the shapes falls:
/// the sum of squared losses, plus a cost for each loss that is noticed.
static void exchangeMembers(const VoteMatrix &shares,
                            std::vector<unsigned> &cover) {
  // Micro-kernels that are among the best of some shape.
  std::set<unsigned> others;
  for (const auto &[kernel, shapes] : votersOfBest(shares, cover.size()))
    others.insert(kernel);
  std::vector<double> rest(shares.size());
  auto shareWithout = [&](size_t place) {
    for (auto [shape, row] : llvm::enumerate(shares)) {
      rest[shape] = 0;
      for (auto [other, kernel] : llvm::enumerate(cover))
        if (other != place)
          rest[shape] = std::max(rest[shape], row[kernel]);
    }
  };
  bool hasChanged = true;
  for (int pass = 0; hasChanged && pass < tuning::dietCodeExchanges; ++pass) {
    hasChanged = false;
    for (size_t place = 0; place < cover.size(); ++place) {
      shareWithout(place);
      auto sumWith = [&](unsigned kernel) {
        double total = 0;
        for (auto [shape, row] : llvm::enumerate(shares)) {
          double loss = 1 - std::max(rest[shape], row[kernel]);
          total -= loss * loss;
          if (loss > tuning::dietCodeNoticed)
            total -= tuning::dietCodeNoticedCost;
        }
        return total;
      };
      double sum = sumWith(cover[place]);
      for (unsigned kernel : others)
        if (double found = sumWith(kernel); found > sum + 1e-12) {
          sum = found;
          cover[place] = kernel;
          hasChanged = true;
        }
    }
  }
}

/// Returns the first cover of at most `maxKernels` members, or the last one.
static std::vector<unsigned> smallCover(const VoteMatrix &scores,
                                        size_t maxKernels, Votes votes) {
  std::vector<unsigned> cover;
  if (votes == Votes::Best) {
    size_t numKernels = scores.empty() ? 0 : scores.front().size();
    for (size_t count = 1; count <= numKernels; ++count) {
      cover = coverOf(scores, votersOfBest(scores, count));
      if (cover.size() <= maxKernels)
        break;
    }
    return cover;
  }
  VoteMatrix shares = scores;
  for (std::vector<double> &row : shares)
    if (double best = *llvm::max_element(row); best > 0)
      for (double &score : row)
        score /= best;
  for (int step = 0; step <= numLossSteps; ++step) {
    double loss = double(step) / numLossSteps;
    cover = coverOf(shares, votersWithin(shares, loss));
    if (cover.size() > maxKernels)
      continue;
    exchangeMembers(shares, cover);
    break;
  }
  return cover;
}

std::vector<std::optional<unsigned>>
ftuner::chooseByVotes(const VoteMatrix &scores, size_t maxKernels,
                      Votes votes) {
  std::vector<unsigned> cover = smallCover(scores, maxKernels, votes);
  // If no number of votes gives a small enough cover, the members that cover
  // most are kept.
  if (cover.size() > maxKernels)
    cover.resize(maxKernels);
  std::vector<std::optional<unsigned>> chosen;
  for (const std::vector<double> &row : scores) {
    std::optional<unsigned> best;
    for (unsigned kernel : cover)
      if (row[kernel] > 0 && (!best || row[kernel] > row[*best]))
        best = kernel;
    chosen.push_back(best);
  }
  return chosen;
}

//===----------------------------------------------------------------------===//
// Decision tree
//===----------------------------------------------------------------------===//

namespace {
class TreeBuilder {
public:
  explicit TreeBuilder(llvm::ArrayRef<VotedShape> votes) : votes(votes) {}

  void split(std::vector<unsigned> members, std::vector<SizeRange> box) {
    auto isPure = [&] {
      return llvm::all_of(members, [&](unsigned i) {
        return votes[i].vote == votes[members.front()].vote;
      });
    };
    if (members.size() < 2 || isPure()) {
      leaves.push_back({std::move(box), votes[members.front()].vote});
      return;
    }
    std::optional<Split> best;
    for (unsigned axis = 0; axis < box.size(); ++axis)
      consider(members, axis, best);
    if (!best) {
      // Equal shapes that differ in their votes: the first.
      leaves.push_back({std::move(box), votes[members.front()].vote});
      return;
    }
    std::vector<unsigned> below, above;
    for (unsigned i : members)
      (votes[i].shape[best->axis] <= best->last ? below : above).push_back(i);
    std::vector<SizeRange> left = box, right = std::move(box);
    left[best->axis].max = best->last;
    right[best->axis].min = best->last + 1;
    split(std::move(below), std::move(left));
    split(std::move(above), std::move(right));
  }

  std::vector<DispatchEntry> leaves;

private:
  struct Split {
    unsigned axis;
    /// The last size of the lower side.
    int64_t last;
    double impurity;
  };

  /// Sum of weights times the Gini impurity.
  static double impurityOf(const std::map<unsigned, double> &weights) {
    double total = 0, squares = 0;
    for (const auto &[vote, weight] : weights) {
      total += weight;
      squares += weight * weight;
    }
    return total > 0 ? total - squares / total : 0;
  }

  void consider(llvm::ArrayRef<unsigned> members, unsigned axis,
                std::optional<Split> &best) {
    std::map<int64_t, std::vector<unsigned>> bySize;
    std::map<unsigned, double> below, above;
    for (unsigned i : members) {
      bySize[votes[i].shape[axis]].push_back(i);
      above[votes[i].vote] += votes[i].weight;
    }
    for (auto it = bySize.begin(); std::next(it) != bySize.end(); ++it) {
      for (unsigned i : it->second) {
        below[votes[i].vote] += votes[i].weight;
        above[votes[i].vote] -= votes[i].weight;
      }
      int64_t last = it->first + (std::next(it)->first - it->first) / 2;
      double impurity = impurityOf(below) + impurityOf(above);
      // Sums of weights differ in their last bits by the order of addition.
      if (!best || impurity < best->impurity - 1e-12 * std::abs(impurity))
        best = {axis, last, impurity};
    }
  }

  llvm::ArrayRef<VotedShape> votes;
};
} // namespace

std::vector<DispatchEntry>
ftuner::boxesOfVotes(llvm::ArrayRef<VotedShape> votes,
                     std::vector<SizeRange> space) {
  TreeBuilder builder(votes);
  std::vector<unsigned> all(votes.size());
  std::iota(all.begin(), all.end(), 0);
  builder.split(std::move(all), std::move(space));
  return std::move(builder.leaves);
}
