//===- DietCodeModel.h - Occupancy, padding and votes -----------*- C++ -*-===//
//
// Source: DietCode (DietCodeSpace.h).
//
//     Cost_M(P) = f_MK(M) · f_occ(P/M) · f_pad(P, M)         useful FLOP/s
//     f_occ(g)  = k · g / ceil_by(g, SMs) + (1 − k)          linear
//               = c·g / ((c − 1)·g + ceil_by(g, SMs))        hyperbolic
//     f_pad     = product over axes of extent / ceil_by(extent, tile)
//
// for a grid of g blocks. The digest of the paper prints the inverse of f_pad,
// which as a factor of throughput would reward padding; its artifact has the
// hyperbola, c = 1.433 below one wave and 2.14 above on a T4, 1 elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODEMODEL_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODEMODEL_H

#include "FTuner/Search/Problem/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace ftuner {

enum class OccupancyForm {
  /// With a k that measurements say.
  Linear,
  /// The artifact's.
  Hyperbolic,
  /// The share of busy SMs itself.
  Share,
  /// 1: an ablation.
  Off,
};

/// f_occ.
struct OccupancyFactor {
  OccupancyForm form = OccupancyForm::Linear;
  /// Slope of the linear form.
  double k = 0.7;
  /// Parameters of the hyperbolic form: below one wave, and above.
  double belowWave = 1.433, aboveWave = 2.14;

  /// In (0, 1] for `blocks` ≥ 1.
  double of(double blocks, int64_t sms) const;
};

/// blocks / ceil_by(blocks, SMs).
double busyShare(double blocks, int64_t sms);

/// A program whose last wave was ragged: its share of busy SMs, and its
/// measured time over that by the throughput of full waves.
struct RaggedRun {
  double share = 1, slowdown = 1;
};

/// The k that explains runs best: least squares of 1 / slowdown − f_occ(k), in
/// closed form, kept in [0, 1]; and its standard error. Least squares of
/// slowdown · f_occ(k) − 1 have errors on both sides, and a bias of 0.02 at 5
/// %.
struct FittedK {
  double k = 0.7, standardError = 0;
};
FittedK fitK(llvm::ArrayRef<RaggedRun> runs);

/// Useful FLOP/s of each micro-kernel (column) for each shape (row); 0: it must
/// not serve the shape.
using VoteMatrix = std::vector<std::vector<double>>;

/// For what a shape votes.
enum class Votes {
  /// Its n best micro-kernels; n is the least that gives a small enough cover.
  Best,
  /// All that lose at most a share of its best one's throughput; the share is
  /// the least that does. Members of the cover are then exchanged while that
  /// lowers what shapes lose, by mean square and by how many notice it.
  Near,
};

/// The micro-kernel of each shape, of at most `most` ones. A greedy cover takes
/// the micro-kernel with the most throughput, by `Near` as a share of the
/// shape's best, of uncovered shapes that voted for it. Each shape then has the
/// best of the cover. A shape without any has none.
std::vector<std::optional<unsigned>>
chooseByVotes(const VoteMatrix &scores, size_t most, Votes votes = Votes::Best);

/// A shape and its vote.
struct VotedShape {
  Shape shape;
  double weight = 1;
  unsigned vote = 0;
};

/// Boxes of a decision tree (CART) over the extents: splits between integers
/// by the least weighted Gini impurity, the lower axis and threshold among
/// equals, until a leaf's votes agree. They fill `space`, and are disjoint.
std::vector<DispatchEntry> boxesOfVotes(llvm::ArrayRef<VotedShape> votes,
                                        std::vector<SizeRange> space);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODEMODEL_H
