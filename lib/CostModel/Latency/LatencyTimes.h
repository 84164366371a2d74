//===- LatencyTimes.h - Terms that all formulas share -----------*- C++ -*-===//
//
// LoopLaunch (LoopFormulas.h) and StreamLaunch (StreamFormulas.h) are launches
// of the two kinds of kernels; LatencyFormulas.cpp adds what does not depend on
// the kind: the launch itself, the power limit, second kernels, TMA boxes. Both
// classes have
//
//   Times times() const                  // without a power limit
//   double energy() const                // pJ of all blocks at 16 nm
//   bool isTensor() const
//   const LatencyBlock &tallBlock() const
//   double addTerms(LatencyPrediction &, const Times &) const
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_LATENCY_LATENCYTIMES_H
#define FTUNER_LIB_COSTMODEL_LATENCY_LATENCYTIMES_H

#include "FTuner/CostModel/LatencyFormulas.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace ftuner::latency {

//===----------------------------------------------------------------------===//
// Mathematics
//===----------------------------------------------------------------------===//

inline double square(double x) { return x * x; }

/// x^p for x in 0 … 1. The usual p, 4, needs no logarithm.
inline double power(double x, double p) {
  return p == 4 ? square(square(x)) : std::pow(x, p);
}

inline double root(double x, double p) {
  return p == 4 ? std::sqrt(std::sqrt(x)) : std::pow(x, 1 / p);
}

/// (Σ x^p)^(1/p): p = 1 adds, a large p takes the maximum. Terms are not
/// negative.
template <size_t N>
double norm(double p, const std::array<double, N> &terms) {
  double greatest = 1e-30;
  for (double term : terms)
    greatest = std::max(greatest, term);
  double sum = 0;
  for (double term : terms)
    sum += power(term / greatest, p);
  return greatest * root(sum, p);
}

/// The share x^p / Σ x^p of each term in their norm.
template <size_t N>
std::array<double, N> shares(double p, std::array<double, N> terms) {
  double greatest = 1e-30, sum = 0;
  for (double term : terms)
    greatest = std::max(greatest, term);
  for (double &term : terms)
    sum += term = power(term / greatest, p);
  for (double &term : terms)
    term /= sum;
  return terms;
}

/// 0 far below 1, 1 far above.
inline double knee(double x) { return x * x / (1 + x * x); }

//===----------------------------------------------------------------------===//
// Blocks on SMs
//===----------------------------------------------------------------------===//

/// Bytes per cycle that an SM takes from L2 at most: as many as each of 64
/// blocks of 64 x 128 elements got that had an H200 for themselves
/// (benchmarks/results/h200-2026-11-26, clusters.md, T = 128 with 8 stages).
inline constexpr double kPortBytesPerCycle = 80;

/// Returns the blocks that an SM holds at once, 1 to
/// LatencyLoopTable::maxResident.
unsigned residentBlocks(const LatencyDevice &device, const LatencyBlock &block);

/// Warps that the busiest scheduler issues for over the mean, at least 1: warps
/// are dealt to schedulers whole. `more`: warps' worth of time that it takes
/// beside.
inline double imbalance(const LatencyDevice &device, const LatencyBlock &block,
                        double resident, double more = 0) {
  return (busiestScheduler(device, block.warps, resident) + more) *
         device.warpSchedulers / (resident * block.warps);
}

/// Blocks of the busiest SM.
struct Waves {
  /// Blocks of the launch.
  double blocks = 0;
  /// Blocks that an SM holds at once.
  double resident = 1;
  double perSm = 0;
  /// Number of `perSm` that belong to the last, taller part.
  double tall = 0;
};

/// Counts the blocks of parts whose member `table` has a member `resident`.
template <typename Part>
Waves countWaves(const LatencyDevice &device, const Part *parts,
                 unsigned numParts) {
  Waves waves;
  waves.resident = parts[0].table->resident;
  for (unsigned i = 0; i < numParts; ++i) {
    waves.blocks += parts[i].count;
    waves.resident = std::min<double>(waves.resident, parts[i].table->resident);
  }
  waves.perSm = std::ceil(waves.blocks / device.smCount);
  waves.tall = std::ceil(parts[numParts - 1].count / device.smCount);
  return waves;
}

/// Returns the cycles of a round that is not full, after `before` others:
/// `restCycles` if its blocks were dealt evenly, `roundCycles` if it were full.
///
/// Blocks of the first round are dealt evenly. Blocks of the last round go to
/// the slots that become free first: blocks that began together end together,
/// so some SMs get as many as they hold, and others none. The more rounds there
/// were, the more blocks have drifted apart. How much of that a card shows is
/// the constant `last_round`, from 0 (an even deal, as on an A100) to 1 (one
/// kernel on an H200: 396 blocks, two at once on each of 132 SMs, take two full
/// rounds; benchmarks/results/h200-2026-11-26).
inline double lastRound(const LatencyConstants &constants, double restCycles,
                        double roundCycles, double before) {
  if (before == 0)
    return restCycles;
  return restCycles +
         constants.lastRound * std::max(roundCycles - restCycles, 0.0) / before;
}

//===----------------------------------------------------------------------===//
// L2 and DRAM
//===----------------------------------------------------------------------===//

/// Bytes that an SM gets from L2 per cycle.
inline double l2BytesPerCycle(bool isTensor,
                              const LatencyConstants &constants) {
  return isTensor ? constants.tensorL2BytesPerCycle : constants.l2BytesPerCycle;
}

/// Bytes that L2 holds for reuse.
inline double heldBytes(const LatencyDevice &device, bool isTensor,
                        const LatencyConstants &constants) {
  return (isTensor ? constants.tensorL2Share : constants.l2Share) *
         device.l2Bytes;
}

inline double dramBytesPerMicrosecond(const LatencyDevice &device,
                                      bool isTensor,
                                      const LatencyConstants &constants) {
  return device.dramGbps * 1e3 *
         (isTensor ? constants.tensorDramShare : constants.dramShare);
}

/// Parts of a prediction, before they are shared out.
struct Times {
  Waves waves;
  double dramBytes = 0;
  /// Microseconds that SMs and DRAM take by themselves.
  double sm = 0, dram = 0;
  /// Microseconds of the SMs before DRAM has something to do, and after its
  /// last byte has arrived.
  double bare = 0;
  /// p of the norm of SMs and DRAM.
  double overlap = 1;
  /// Microseconds of SMs and DRAM together.
  double unlimited = 0;
};

} // namespace ftuner::latency

#endif // FTUNER_LIB_COSTMODEL_LATENCY_LATENCYTIMES_H
