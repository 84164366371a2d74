//===- PackedOrder.h - The order of packed weights --------------*- C++ -*-===//
//
// Weights that are known before a program runs may lie in memory in the order
// in which blocks read them. An rhs of k × n elements is cut into steps of 128
// bytes along k; a step has groups of eight columns, a group has runs of 16
// bytes along k, and a run has one after the other of the columns:
//
//   [k / step][n / 8][step / run][8][run]
//
// What a block takes of a step, eights of neighbouring columns, is one piece of
// memory, and lies there as instructions of four warps read it without a
// swizzle (PTX ISA, "Strides"): eight rows of 16 bytes are a core matrix.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_PACKEDORDER_H
#define FTUNER_WORKLOAD_PACKEDORDER_H

#include <cstdint>

namespace ftuner {

struct PackedOrder {
  /// Bytes of a step and of a run along k; columns of a group.
  static constexpr int64_t kStepBytes = 128, kRunBytes = 16, kGroup = 8;

  /// Sizes of the weights: n columns of k elements, `elementBytes` bytes each.
  int64_t k, n, elementBytes;

  int64_t step() const { return kStepBytes / elementBytes; }
  int64_t run() const { return kRunBytes / elementBytes; }
  /// Returns whether the order exists: steps and groups are whole.
  bool isWhole() const {
    return k > 0 && n > 0 && k % step() == 0 && n % kGroup == 0;
  }
  /// Elements from a step to the next.
  int64_t stepStride() const { return n * step(); }
  /// Returns the position of an element among all.
  int64_t positionOf(int64_t atK, int64_t atN) const {
    int64_t inStep = atK % step();
    return atK / step() * stepStride() + atN / kGroup * kGroup * step() +
           inStep / run() * kGroup * run() + atN % kGroup * run() +
           inStep % run();
  }
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_PACKEDORDER_H
