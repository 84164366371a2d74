//===- StreamFormulas.h - Memory-bound kernels ------------------*- C++ -*-===//
//
// docs/latency-memory.md derives the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_LATENCY_STREAMFORMULAS_H
#define FTUNER_LIB_COSTMODEL_LATENCY_STREAMFORMULAS_H

#include "LatencyTimes.h"

namespace ftuner::latency {

/// A part of a launch (LatencyPart).
struct StreamPart {
  const LatencyStreamTable *table = nullptr;
  double count = 0;
  double steps = 1;
};

/// A launch of an elementwise kernel or of a reduction of rows. If there are
/// two parts, the last one sets the pace.
class StreamLaunch {
public:
  StreamLaunch(const LatencyDevice &device, const LatencyPart *all,
               unsigned numParts, const LatencyGrid &grid,
               const LatencyConstants &constants);

  Times times() const;
  /// pJ of all blocks, at 16 nm.
  double energy() const;
  bool isTensor() const { return false; }
  const LatencyBlock &tallBlock() const { return last().table->block; }
  /// Adds the cycles of the SMs to the terms that they go to. Returns their
  /// sum, without the tail.
  double addTerms(LatencyPrediction &terms, const Times &times) const;

private:
  const StreamPart &last() const { return parts[numParts - 1]; }

  const LatencyDevice &device;
  const LatencyGrid &grid;
  const LatencyConstants &constants;
  unsigned numParts;
  StreamPart parts[2];
};

} // namespace ftuner::latency

#endif // FTUNER_LIB_COSTMODEL_LATENCY_STREAMFORMULAS_H
