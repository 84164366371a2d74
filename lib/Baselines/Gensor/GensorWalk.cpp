//===- GensorWalk.cpp - A Markov walk over tiles --------------------------===//
#include "GensorWalk.h"
#include "FTuner/Support/RandomDraws.h"
#include "FTuner/Workload/Axes.h"
#include "GensorTuning.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

using namespace ftuner;

/// Cycles until the first byte of a level arrives, and bytes that an SM takes
/// from it in a cycle. The device says how many bytes device memory gives.
static constexpr double dramLatency = 440;
static constexpr double sharedLatency = 30, sharedBytesPerCycle = 128;
/// Four schedulers of 32 lanes with three operands of four bytes.
static constexpr double registerLatency = 4,
                        registerBytesPerCycle = 4 * 32 * 3 * 4;
static constexpr double bytesOfRegister = 4;
static constexpr int64_t numBanks = 32;
/// Elements that a lane reads from shared memory at once, at most.
static constexpr int64_t widestVector = 4;
/// The minimum number of bytes that device memory moves.
static constexpr int64_t sectorBytes = 32;

static std::string text(const GensorState::Pair &pair) {
  return std::to_string(pair[0]) + " x " + std::to_string(pair[1]);
}

std::string GensorState::str() const {
  std::string tile =
      text(block) + (depth == 0 ? "" : " x " + std::to_string(depth));
  if (level == 2)
    return "shared memory: " + tile;
  std::string result = level == 1 ? "registers: " : "done: ";
  result += tile + " / " + text(reg);
  if (virtualThreads != Pair{1, 1})
    result += ", virtual threads " + text(virtualThreads);
  return result;
}

std::string GensorAction::str() const {
  std::string axisText = axis == 0 ? "(m)" : axis == 1 ? "(n)" : "(k)";
  switch (kind) {
  case Tile:
    return "tile" + axisText;
  case InverseTile:
    return "invTile" + axisText;
  case Cache:
    return "cache";
  case SetVirtualThreads:
    return "setVthread" + axisText;
  }
  return "";
}

GensorState GensorModel::start() const {
  GensorState state;
  state.depth = facts.walksReduce ? 1 : 0;
  return state;
}

llvm::ArrayRef<unsigned> GensorModel::axesOf(int64_t level) const {
  static constexpr unsigned axes[] = {0, 1, 2};
  return llvm::ArrayRef(axes).take_front(level == 2 && facts.walksReduce ? 3
                                                                         : 2);
}

double GensorModel::depthOf(const GensorState &state) const {
  return static_cast<double>(facts.walksReduce ? state.depth : facts.depth);
}

/// The tile of a state's level along an axis.
static int64_t &tileOf(GensorState &state, unsigned axis) {
  if (axis == 2)
    return state.depth;
  return (state.level == 2 ? state.block : state.reg)[axis];
}

/// Bytes of the sectors that `rows` rows of `extent` elements take, tile by
/// tile.
static double sectorsOf(double rows, int64_t extent, int64_t tile,
                        double bytes) {
  auto sectors = [&](int64_t elements) {
    return sectorBytes *
           std::ceil(static_cast<double>(elements) * bytes / sectorBytes);
  };
  int64_t whole = extent / tile;
  return rows *
         (static_cast<double>(whole) * sectors(tile) + sectors(extent % tile));
}

double GensorModel::traffic(const GensorState &state, int64_t level) const {
  auto m = static_cast<double>(facts.m), n = static_cast<double>(facts.n),
       k = static_cast<double>(facts.k);
  double gridM = ceilDiv(facts.m, state.block[0]);
  double gridN = ceilDiv(facts.n, state.block[1]);
  if (level == 2 && facts.walksReduce) {
    auto [bm, bn] = state.block;
    double lhs = facts.reduceContiguous[0]
                     ? sectorsOf(m, facts.k, state.depth, facts.lhsBytes)
                     : sectorsOf(k, facts.m, bm, facts.lhsBytes);
    double rhs = facts.reduceContiguous[1]
                     ? sectorsOf(n, facts.k, state.depth, facts.rhsBytes)
                     : sectorsOf(k, facts.n, bn, facts.rhsBytes);
    return facts.batch * (gridN * lhs + gridM * rhs +
                          sectorsOf(m, facts.n, bn, facts.outputBytes));
  }
  if (level == 2)
    return facts.batch *
           (facts.lhsBytes * gridN * m * k + facts.rhsBytes * gridM * n * k +
            facts.outputBytes * m * n);
  int64_t workersM = state.block[0] / state.reg[0];
  int64_t workersN = state.block[1] / state.reg[1];
  double workers =
      static_cast<double>(workersM) * static_cast<double>(workersN);
  return facts.batch * bytesOfRegister * gridM * gridN * k * workers *
         static_cast<double>(state.reg[0] + state.reg[1]);
}

double GensorModel::footprint(const GensorState &state, int64_t level) const {
  auto [bm, bn] = state.block;
  auto [rm, rn] = state.reg;
  if (level == 2)
    return (facts.lhsBytes * bm + facts.rhsBytes * bn) * depthOf(state);
  return bytesOfRegister * (rm * rn + rm + rn);
}

bool GensorModel::overflows(const GensorState &state) const {
  return footprint(state, 2) > facts.sharedMemoryBytes ||
         footprint(state, 1) > bytesOfRegister * facts.registers;
}

std::optional<GensorState> GensorModel::after(const GensorState &state,
                                              GensorAction action) const {
  GensorState to = state;
  unsigned axis = action.axis;
  int64_t &tile = tileOf(to, axis);
  switch (action.kind) {
  case GensorAction::Tile: {
    int64_t extent = std::array{facts.m, facts.n, facts.k}[axis];
    int64_t maxTile = state.level == 2
                          ? static_cast<int64_t>(llvm::PowerOf2Ceil(extent))
                          : to.block[axis];
    tile *= 2;
    if (tile > maxTile)
      return std::nullopt;
    return to;
  }
  case GensorAction::InverseTile:
    if (tile == 1)
      return std::nullopt;
    tile /= 2;
    for (unsigned other : {0u, 1u})
      to.virtualThreads[other] =
          std::min(to.virtualThreads[other], to.reg[other]);
    return to;
  case GensorAction::Cache:
    --to.level;
    return to;
  case GensorAction::SetVirtualThreads:
    if (state.level != 1 || !facts.hasVirtualThreads ||
        to.reg[axis] % (2 * to.virtualThreads[axis]) != 0)
      return std::nullopt;
    to.virtualThreads[axis] *= 2;
    return to;
  }
  return std::nullopt;
}

double GensorModel::tileBenefit(const GensorState &state, unsigned axis) const {
  GensorState to = state;
  tileOf(to, axis) *= 2;
  return (traffic(state, state.level) - traffic(to, state.level)) /
         (footprint(to, state.level) - footprint(state, state.level));
}

double GensorModel::inverseBenefit(const GensorState &state, unsigned axis,
                                   const std::array<double, 3> &forward) const {
  if (forward[axis] > 0)
    return options.back * forward[axis];
  double minBenefit = 0;
  for (double benefit : forward)
    if (benefit > 0 && (minBenefit == 0 || benefit < minBenefit))
      minBenefit = benefit;
  if (minBenefit > 0)
    return options.back * minBenefit;
  GensorState from = state;
  tileOf(from, axis) /= 2;
  return options.back * std::max(0.0, tileBenefit(from, axis));
}

double GensorModel::cacheBenefit(const GensorState &state) const {
  double bytes = footprint(state, 2);
  double shared = sharedLatency + bytes / sharedBytesPerCycle;
  if (state.level == 2)
    return (dramLatency + bytes / facts.dramBytesPerCycle) / shared;
  return shared / (registerLatency + bytes / registerBytesPerCycle);
}

double GensorModel::virtualThreadBenefit(int64_t points,
                                         int64_t virtualThreads) {
  return static_cast<double>(ceilDiv(points, numBanks * virtualThreads)) /
         static_cast<double>(ceilDiv(points, numBanks * 2 * virtualThreads));
}

double GensorModel::virtualThreadBenefit(const GensorState &state,
                                         unsigned axis) const {
  // Lanes along the axis read their vectors, the others the same ones.
  int64_t lanes =
      std::min(facts.warp[axis], state.block[axis] / state.reg[axis]);
  return virtualThreadBenefit(lanes * std::min(widestVector, state.reg[axis]) *
                                  facts.warp[1 - axis],
                              state.virtualThreads[axis]);
}

std::vector<GensorEdge> GensorModel::edges(const GensorState &state,
                                           int t) const {
  std::vector<GensorEdge> edges;
  auto add = [&](GensorAction action, auto benefit) {
    std::optional<GensorState> to = after(state, action);
    if (!to)
      return 0.0;
    GensorEdge edge{action, *to};
    edge.overflows = overflows(*to);
    if (!edge.overflows)
      edge.benefit = std::max(0.0, benefit());
    edges.push_back(edge);
    return edge.benefit;
  };
  std::array<double, 3> forward = {};
  for (unsigned axis : axesOf(state.level))
    forward[axis] = add({GensorAction::Tile, axis},
                        [&] { return tileBenefit(state, axis); });
  for (unsigned axis : axesOf(state.level))
    add({GensorAction::InverseTile, axis},
        [&] { return inverseBenefit(state, axis, forward); });
  for (unsigned axis : {0u, 1u})
    add({GensorAction::SetVirtualThreads, axis}, [&] {
      double benefit = virtualThreadBenefit(state, axis);
      // Strips that avoid no conflict have no benefit.
      return benefit > 1 ? benefit : 0.0;
    });
  add({GensorAction::Cache}, [&] { return cacheBenefit(state); });

  double annealing = std::exp2(t) - 1, sum = 0;
  for (GensorEdge &edge : edges) {
    bool isRatio = edge.action.kind == GensorAction::Cache ||
                   edge.action.kind == GensorAction::SetVirtualThreads;
    edge.probability = edge.benefit * (isRatio ? annealing : 1);
    sum += edge.probability;
  }
  for (GensorEdge &edge : edges)
    edge.probability = sum > 0 ? edge.probability / sum
                               : edge.action.kind == GensorAction::Cache;
  return edges;
}

GensorState GensorModel::complete(GensorState state) const {
  bool hasRegisters = state.level != 2;
  state.level = 1;
  while (!hasRegisters) {
    std::optional<GensorState> best;
    double bestBenefit = 0;
    for (unsigned axis : {0u, 1u}) {
      auto to = after(state, {GensorAction::Tile, axis});
      if (!to || overflows(*to) || tileBenefit(state, axis) <= bestBenefit)
        continue;
      bestBenefit = tileBenefit(state, axis);
      best = to;
    }
    if (!best)
      break;
    state = *best;
  }
  for (unsigned axis : {0u, 1u})
    while (virtualThreadBenefit(state, axis) > 1) {
      auto to = after(state, {GensorAction::SetVirtualThreads, axis});
      if (!to)
        break;
      state = *to;
    }
  return state;
}

GensorState GensorModel::scaledOut(GensorState state, double minBlocks) const {
  auto blocks = [&](const GensorState &tiled) {
    return facts.batch * static_cast<double>(ceilDiv(facts.m, tiled.block[0])) *
           static_cast<double>(ceilDiv(facts.n, tiled.block[1]));
  };
  while (blocks(state) < minBlocks) {
    std::optional<GensorState> best;
    for (unsigned axis : {0u, 1u}) {
      GensorState half = state;
      half.block[axis] /= 2;
      if (half.block[axis] == 0)
        continue;
      // Threads stay while the register tile may give way.
      half.reg[axis] = std::max<int64_t>(1, half.reg[axis] / 2);
      half.virtualThreads[axis] =
          std::min(half.virtualThreads[axis], half.reg[axis]);
      bool isPadding = half.block[axis] >= (axis == 0 ? facts.m : facts.n);
      if ((isPadding || blocks(half) > blocks(state)) &&
          (!best || traffic(half, 2) < traffic(*best, 2)))
        best = half;
    }
    if (!best)
      break;
    state = *best;
  }
  return state;
}

/// Returns the edge that the policy picks: the likeliest one, or one drawn by
/// the probabilities.
static const GensorEdge &choose(const std::vector<GensorEdge> &edges,
                                GensorPolicy policy, std::mt19937_64 &random) {
  if (policy == GensorPolicy::Greedy)
    return *std::max_element(edges.begin(), edges.end(),
                             [](const GensorEdge &a, const GensorEdge &b) {
                               return a.probability < b.probability;
                             });
  double drawn = drawUnit(random);
  const GensorEdge *last = nullptr;
  for (const GensorEdge &edge : edges) {
    if (edge.probability <= 0)
      continue;
    last = &edge;
    drawn -= edge.probability;
    if (drawn < 0)
      break;
  }
  return *last;
}

GensorWalk ftuner::walkGensor(const GensorModel &model, uint64_t seed) {
  std::mt19937_64 random(seed);
  GensorWalk walk;
  std::set<GensorState> recorded;
  GensorState state = model.start();
  auto recordResult = [&] {
    GensorState result = model.complete(state);
    result.level = 0;
    if (recorded.insert(result).second)
      walk.results.push_back({result, walk.steps.size()});
  };
  for (int t = 0; t < tuning::maxGensorSteps && state.level > 0; ++t) {
    std::vector<GensorEdge> edges = model.edges(state, t);
    walk.numRefused += llvm::count_if(
        edges, [](const GensorEdge &edge) { return edge.overflows; });
    const GensorEdge &edge = choose(edges, model.options.policy, random);
    walk.numBacktracks += edge.action.kind == GensorAction::InverseTile;
    walk.steps.push_back({edge.action, edge.probability, edge.to});
    state = edge.to;
    // A state is recorded with probability 1 - T for the temperature T = 2^-t:
    // never after the first step, nearly always after a few.
    double temperature = std::exp2(-t);
    if (drawUnit(random) < 1 - temperature)
      recordResult();
  }
  recordResult();
  return walk;
}
