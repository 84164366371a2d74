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
  /// Linear in the share of busy SMs, with a slope k fitted to measurements.
  Linear,
  /// The form of the artifact.
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

  /// Returns f_occ of a grid, in (0, 1]; `blocks` ≥ 1.
  double valueFor(double blocks, int64_t sms) const;
};

/// blocks / ceil_by(blocks, SMs).
double busyShare(double blocks, int64_t sms);

/// A program whose last wave was ragged: its share of busy SMs, and the ratio
/// of its measured time to the time at the throughput of full waves.
struct RaggedRun {
  double share = 1, slowdown = 1;
};

/// The k that explains runs best, kept in [0, 1], and its standard error, by
/// least squares of 1 / slowdown − f_occ(k) in closed form. Least squares of
/// slowdown · f_occ(k) − 1 would have errors on both sides, and a bias of 0.02
/// for errors of 5 %.
struct FittedK {
  double k = 0.7, standardError = 0;
};
FittedK fitK(llvm::ArrayRef<RaggedRun> runs);

/// Useful FLOP/s of each micro-kernel (column) for each shape (row). A value of
/// 0 means that the micro-kernel must not serve the shape.
using VoteMatrix = std::vector<std::vector<double>>;

/// The micro-kernels that a shape votes for.
enum class Votes {
  /// The shape's n best micro-kernels, with the smallest n that gives a small
  /// enough cover.
  Best,
  /// All micro-kernels that lose at most a share of the throughput of the
  /// shape's best one, with the smallest share that gives a small enough cover.
  /// Members of the cover are then exchanged while that lowers the losses of
  /// shapes, by their mean square and by the number that is noticed.
  Near,
};

/// Chooses at most `maxKernels` micro-kernels, and returns the one that serves
/// each shape. A greedy cover takes, step by step, the micro-kernel with the
/// largest sum of throughput over the uncovered shapes that voted for it; by
/// `Near`, throughputs are shares of each shape's best. Each shape then has the
/// best member of the cover; it has no value if no member may serve it.
std::vector<std::optional<unsigned>> chooseByVotes(const VoteMatrix &scores,
                                                   size_t maxKernels,
                                                   Votes votes = Votes::Best);

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
