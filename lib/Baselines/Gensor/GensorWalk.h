//===- GensorWalk.h - A Markov walk over tiles ------------------*- C++ -*-===//
//
// Source: "Gensor: A Graph-based Construction Tensor Compilation Method for
// Deep Learning", arXiv 2502.11407. The numbers of formulas are the paper's.
//
// A state is what is decided of a schedule: block tile, register tile and
// virtual threads along m and n, and the memory level at which the walk is.
// Its actions lead to other states:
//
//     tile(a)        the tile of the level grows to the next power of two; k
//                    tiles where they are walked (`walksReduce`)
//     invTile(a)     the same backwards
//     cache          the next level, from registers to the end
//     setVthread(a)  twice as many strips of a thread; at registers alone
//
// Each has a benefit, of which odds are made (`GensorModel::edges`), and one
// action is drawn by them. An annealing temperature T = 2^-t, t the steps so
// far, ends the walk: cache and setVthread, whose benefits are ratios of
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
// with Q₁, F₁ for block tiles and Q₀, F₀ for register tiles. Where the k tile
// is an axis of the walk, tile(k) doubles it while the walk is at block tiles,
// bk is the state's, and Q₁ is counted in sectors of 32 bytes: a row of a tile
// along which an operand is contiguous takes whole ones, so that
//
//     L·M·K becomes M·⌈K/bk⌉·⌈bk⌉ for lhs rows along k, K·gridM·⌈bm⌉ for lhs
//     columns, and R·N·K, O·M·N likewise; ⌈x⌉ bytes of the sectors of x
//     neighbours.
//
//  invTile(a) is
// worth a share ρ of tile(a) in the same state, so that it is never likelier
// than what it undoes; where tile(a) is impossible or worth nothing, ρ of the
// least positive tile of the state, or else ρ of formula (1) of the undone
// edge.
//
// docs/gensor.md says what of this is ours, and why.
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
  /// Extents, and the product of those of batch axes.
  int64_t m = 1, n = 1, k = 1;
  double batch = 1;
  /// Bytes of an element of lhs, rhs and output.
  double lhsBytes = 4, rhsBytes = 4, outputBytes = 4;
  /// Elements of a step along the reduce axis, if that is no axis of the walk.
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
  /// The likeliest.
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
  /// The k tile, or 0 where it is no axis of the walk.
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
  /// The benefit as the formulas have it; 0 where it is not positive.
  double benefit = 0;
  double probability = 0;
  /// The state that it leads to does not fit in the memory of its level.
  bool overflows = false;
};

class GensorModel {
public:
  GensorModel(const GensorFacts &facts, const GensorOptions &options)
      : facts(facts), options(options) {}

  /// Q and F of the level at which a state is; level 1 or 2.
  double traffic(const GensorState &state, int64_t level) const;
  double footprint(const GensorState &state, int64_t level) const;
  bool overflows(const GensorState &state) const;
  /// Formula (1) of tile(axis), whether it is possible or not.
  double tileBenefit(const GensorState &state, unsigned axis) const;
  /// Formula (2).
  double cacheBenefit(const GensorState &state) const;
  /// Formula (3).
  double virtualThreadBenefit(const GensorState &state, unsigned axis) const;
  static double virtualThreadBenefit(int64_t points, int64_t virtualThreads);

  /// Returns the edges from a state (level 1 or 2) at step t. Their
  /// probabilities sum to 1.
  std::vector<GensorEdge> edges(const GensorState &state, int t) const;
  /// The empty schedule.
  GensorState start() const;
  /// The state with what is not scheduled yet filled greedily: at level 2
  /// register tiles by formula (1); then, at every level, virtual threads by
  /// formula (3).
  GensorState complete(GensorState state) const;
  /// The state with block tiles halved until there are as many blocks as
  /// asked for, each time along the axis where that adds least traffic; the
  /// state itself if there are enough, or no more to be had.
  GensorState scaledOut(GensorState state, double leastBlocks) const;

  const GensorFacts facts;
  const GensorOptions options;

private:
  /// The state after an action, or nothing where it is impossible; whether it
  /// overflows does not matter.
  std::optional<GensorState> after(const GensorState &state,
                                   GensorAction action) const;
  double inverseBenefit(const GensorState &state, unsigned axis,
                        const std::array<double, 3> &forward) const;
  /// Along which tiles of a level grow.
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
  /// A state that was taken as a result, completed, each once, and after how
  /// many steps for the first time.
  struct Result {
    GensorState state;
    size_t numSteps = 0;
  };
  std::vector<Result> results;
  /// Steps that were invTile, and actions that would have overflowed.
  int64_t numBacktracks = 0, numRefused = 0;
};

/// Algorithm 1: a walk from the empty schedule, of at most 100 steps. Follows
/// from its arguments alone; several threads may walk at once.
GensorWalk walkGensor(const GensorModel &model, uint64_t seed);

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_GENSOR_GENSORWALK_H
