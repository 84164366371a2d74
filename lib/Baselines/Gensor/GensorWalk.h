//===- GensorWalk.h - A Markov walk over tiles ------------------*- C++ -*-===//
//
// Source: "Gensor: A Graph-based Construction Tensor Compilation Method for
// Deep Learning", arXiv 2502.11407. The numbers of formulas are the paper's.
//
// A state holds the decisions about a schedule so far: block tile, register
// tile and virtual threads along m and n, and the memory level at which the
// walk is. Its actions lead to other states:
//
//     tile(a)        the tile of the level grows to the next power of two; k
//                    tiles where they are walked (`walksReduce`)
//     invTile(a)     the same backwards
//     cache          the next level, from registers to the end
//     setVthread(a)  twice as many strips of a thread; at registers alone
//
// Each action has a benefit, from which `GensorModel::edges` computes the odds
// by which one action is drawn. An annealing temperature T = 2^-t, t the steps
// so far, ends the walk: cache and setVthread, whose benefits are ratios of
// times, count 1/T − 1 times.
//
//     Q₁ = L·gridN·M·K + R·gridM·N·K + O·M·N     L, R, O bytes of elements
//     F₁ = (L·bm + R·bn)·bk                      bk the k tile, as described
//     Q₀ = 4·gridM·gridN·K·(bm/rm)·(bn/rn)·(rm + rn)
//     F₀ = 4·(rm·rn + rm + rn)                   of a worker
//     (1) tile    = (Q(s) − Q(s')) / (F(s') − F(s))
//     (2) cache   = (lat_low + F₁/bw_low) / (lat_high + F₁/bw_high)
//     (3) vthread = ⌈x·y/(W·V)⌉ / ⌈x·y/(W·2V)⌉   W = 32 banks; x, y the tile
//                                                that a warp reads at once:
//                                                lanes times a vector of four
//                                                along a, lanes across it
//
// with Q₁, F₁ for block tiles and Q₀, F₀ for register tiles. If k is an axis of
// the walk, tile(k) doubles the k tile while the walk is at block tiles, bk is
// the state's k tile, and Q₁ is counted in sectors of 32 bytes: a row of a tile
// along which an operand is contiguous takes whole sectors, so that
//
//     L·M·K becomes M·⌈K/bk⌉·⌈bk⌉ for lhs rows along k, K·gridM·⌈bm⌉ for lhs
//     columns, and R·N·K, O·M·N likewise; ⌈x⌉ bytes of the sectors of x
//     neighbours.
//
// invTile(a) has ρ times the benefit of tile(a) in the same state, so that it
// is never likelier than the action that it undoes. If tile(a) is impossible or
// has no benefit, it has ρ times the smallest positive benefit of a tile action
// of the state, or else ρ times formula (1) of the edge that it undoes.
//
// docs/gensor.md says which parts differ from the paper, and why.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_GENSOR_GENSORWALK_H
#define FTUNER_LIB_BASELINES_GENSOR_GENSORWALK_H

#include "llvm/ADT/ArrayRef.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace ftuner {

/// The facts about a shape, a device and a codegen path that a walk reads.
struct GensorFacts {
  /// Extents of m, n and k, and the product of the extents of batch axes.
  int64_t m = 1, n = 1, k = 1;
  double batch = 1;
  /// Bytes of an element of lhs, rhs and output.
  double lhsBytes = 4, rhsBytes = 4, outputBytes = 4;
  /// Elements of a step along the reduce axis, if the walk does not tile it.
  int64_t depth = 8;
  /// True if the reduce axis is an axis of the walk, and if lhs and rhs are
  /// contiguous along it; otherwise lhs is contiguous along m, rhs along n.
  bool walksReduce = false;
  std::array<bool, 2> reduceContiguous = {true, false};
  double sharedMemoryBytes = 48 << 10;
  /// Registers of a worker, whose accumulators and factors they hold.
  double registers = 255;
  /// Threads of a block, of a warp along m and n.
  std::array<int64_t, 2> warp = {4, 8};
  /// Bandwidth of device memory for one SM.
  double dramBytesPerCycle = 1;
  bool hasVirtualThreads = true;
};

/// The choice of an action.
enum class GensorPolicy {
  /// The action is drawn by the probabilities.
  Roulette,
  /// The likeliest action is taken.
  Greedy,
};

struct GensorOptions {
  /// ρ.
  double back = 0.25;
  GensorPolicy policy = GensorPolicy::Roulette;
};

struct GensorState {
  using Pair = std::array<int64_t, 2>;
  /// 2: block tiles, 1: register tiles, 0: done.
  int64_t level = 2;
  /// Along m and n.
  Pair block = {1, 1}, reg = {1, 1}, virtualThreads = {1, 1};
  /// The k tile, or 0 if k is not an axis of the walk.
  int64_t depth = 0;

  bool operator==(const GensorState &other) const {
    return key() == other.key();
  }
  bool operator<(const GensorState &other) const { return key() < other.key(); }
  /// "shared memory: 32 x 64", "registers: 32 x 64 / 4 x 8, virtual threads 1 x
  /// 2"; with the k tile "shared memory: 32 x 64 x 8".
  std::string str() const;

private:
  std::tuple<int64_t, Pair, Pair, Pair, int64_t> key() const {
    return {level, block, reg, virtualThreads, depth};
  }
};

struct GensorAction {
  enum Kind { Tile, InverseTile, Cache, SetVirtualThreads };
  Kind kind = Cache;
  /// 0: m, 1: n, 2: k.
  unsigned axis = 0;
  /// "tile(m)".
  std::string str() const;
};

/// An action in a state.
struct GensorEdge {
  GensorAction action;
  GensorState to;
  /// The benefit by the formulas; 0 if that is not positive.
  double benefit = 0;
  double probability = 0;
  /// True if the state `to` does not fit in the memory of its level.
  bool overflows = false;
};

class GensorModel {
public:
  GensorModel(const GensorFacts &facts, const GensorOptions &options)
      : facts(facts), options(options) {}

  /// Return Q and F of a level (1 or 2) of a state.
  double traffic(const GensorState &state, int64_t level) const;
  double footprint(const GensorState &state, int64_t level) const;
  bool overflows(const GensorState &state) const;
  /// Returns formula (1) of tile(axis), even if that is impossible.
  double tileBenefit(const GensorState &state, unsigned axis) const;
  /// Returns formula (2).
  double cacheBenefit(const GensorState &state) const;
  /// Returns formula (3).
  double virtualThreadBenefit(const GensorState &state, unsigned axis) const;
  static double virtualThreadBenefit(int64_t points, int64_t virtualThreads);

  /// Returns the edges from a state (level 1 or 2) at step t. Their
  /// probabilities sum to 1.
  std::vector<GensorEdge> edges(const GensorState &state, int t) const;
  /// Returns the empty schedule.
  GensorState start() const;
  /// Returns the state with its undecided parts chosen greedily: at level 2
  /// register tiles by formula (1); then, at every level, virtual threads by
  /// formula (3).
  GensorState complete(GensorState state) const;
  /// Returns the state with block tiles halved until there are at least
  /// `minBlocks` blocks, each time along the axis where that adds the least
  /// traffic. Stops earlier if no halving adds blocks.
  GensorState scaledOut(GensorState state, double minBlocks) const;

  const GensorFacts facts;
  const GensorOptions options;

private:
  /// Returns the state after an action, or no value if the action is
  /// impossible. The state may overflow.
  std::optional<GensorState> after(const GensorState &state,
                                   GensorAction action) const;
  double inverseBenefit(const GensorState &state, unsigned axis,
                        const std::array<double, 3> &forward) const;
  /// Returns the axes along which tiles of a level grow.
  llvm::ArrayRef<unsigned> axesOf(int64_t level) const;
  double depthOf(const GensorState &state) const;
};

/// A step that a walk took.
struct GensorStep {
  GensorAction action;
  double probability = 0;
  GensorState to;
};

struct GensorWalk {
  std::vector<GensorStep> steps;
  /// A completed state (`GensorModel::complete`) that the walk recorded, with
  /// the number of steps before it was first recorded. States are distinct.
  struct Result {
    GensorState state;
    size_t numSteps = 0;
  };
  std::vector<Result> results;
  /// Number of invTile steps, and of actions that would have overflowed.
  int64_t numBacktracks = 0, numRefused = 0;
};

/// Runs algorithm 1: walks from the empty schedule until the level is 0, for at
/// most `maxGensorSteps` steps, and records some of the states on the way as
/// results. Equal arguments give equal walks; several threads may walk at once.
GensorWalk walkGensor(const GensorModel &model, uint64_t seed);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_GENSOR_GENSORWALK_H
