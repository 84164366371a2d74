//===- LoopFormulas.h - Kernels with main loops of products -----*- C++ -*-===//
//
// docs/latency.md derives the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_LATENCY_LOOPFORMULAS_H
#define FTUNER_LIB_COSTMODEL_LATENCY_LOOPFORMULAS_H

#include "LatencyTimes.h"

namespace ftuner::latency {

/// A part of a launch (LatencyPart).
struct LoopPart {
  const LatencyLoopTable *table = nullptr;
  double count = 0;
  double steps = 1;
  /// Bytes that a block of the tensor cores stores after its main loop: the
  /// mean over the launch. 0 for other blocks.
  double outputBytes = 0;
  /// Cycles of a step on L2, and of a step of a block that is alone on its SM:
  /// the table's, or fewer if some SMs are idle.
  double l2 = 0, singleStep = 0;

  /// Returns the cycles of an SM per step and block when `resident` blocks are.
  double step(double resident) const {
    return resident < 2 ? singleStep
                        : table->step[static_cast<size_t>(resident) - 1];
  }
};

/// A launch with what follows from its grid: the bytes that a block stores,
/// and, if some SMs are idle, what L2 delivers to the others, as far as their
/// ports allow. The constants are of all SMs at work.
class LoopLaunch {
public:
  LoopLaunch(const LatencyDevice &device, const LatencyPart *all,
             unsigned numParts, const LatencyGrid &grid,
             const LatencyConstants &constants);
  LoopLaunch(const LoopLaunch &) = delete;
  LoopLaunch &operator=(const LoopLaunch &) = delete;

  Times times() const;
  /// pJ of all blocks, at 16 nm.
  double energy() const;
  bool isTensor() const { return parts[0].table->block.isTensor(); }
  /// The block of the taller part.
  const LatencyBlock &tallBlock() const {
    return parts[numParts - 1].table->block;
  }
  /// Adds the cycles of the SMs to the terms that they go to. Returns their
  /// sum, without the tail.
  double addTerms(LatencyPrediction &terms, const Times &times) const;

private:
  const LatencyDevice &device;
  const LatencyGrid &grid;
  const LatencyConstants &constants;
  unsigned numParts;
  LoopPart parts[2];
};

} // namespace ftuner::latency

#endif // FTUNER_LIB_COSTMODEL_LATENCY_LOOPFORMULAS_H
