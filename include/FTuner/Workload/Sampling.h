//===- Sampling.h - Sizes that a search looks at ----------------*- C++ -*-===//
//
// Small ranges are enumerated. Large and open ones are sampled at a constant
// ratio, which suits tiles: programs depend on an extent in units of a block
// tile. Sizes that are common in practice are samples, too.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_SAMPLING_H
#define FTUNER_WORKLOAD_SAMPLING_H

#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace ftuner {

/// Last sampled size of an open range; larger sizes are treated like it.
constexpr int64_t openRangeEnd = 65536;
/// Most sizes of a range that are enumerated rather than sampled.
constexpr int64_t maxEnumeratedSizes = 4096;

/// Stands for the sizes of a range from `size` to before the next sample.
struct SizeSample {
  int64_t size = 1;
  /// Share of the declared histogram, or 1 for every sample without one.
  double weight = 1;
};

/// The smallest size ≥ 1 of the axis; 1 if it has only size 0.
int64_t smallestSize(const Axis &axis);

/// The largest size of the axis that a search looks at, at least 1.
int64_t largestSize(const Axis &axis);

/// Ascending sizes ≥ 1 of the axis: all if there are at most `limit` (≥ 2),
/// else at most `limit`. The smallest and the largest are among these, and the
/// sizes of the declared histogram if it has at most `limit` - 2. Otherwise up
/// to a third of them are common sizes: powers of two, their neighbours, and
/// multiples of 128 with the sizes behind them, from 128 on.
std::vector<SizeSample> sampleSizes(const Axis &axis, int64_t limit);

/// Sizes of a constant ratio (as far as the step allows) from one end of an
/// axis's range to the other, at most `count` (≥ 2), ascending: by default the
/// ends and their geometric middle. The ends of an open one are taken to be 64
/// and 4096.
std::vector<int64_t> representativeSizes(const Axis &axis, unsigned count = 3);

/// Shapes of these axes: the least, a middle and the largest of their
/// representative sizes, or fewer.
std::vector<Shape> representativeShapes(llvm::ArrayRef<Axis> axes);

/// Sizes of all axes but the main one that are served alike, and a shape that
/// stands for them (1 on the main axis).
struct ShapeCell {
  Shape representative;
  /// A range for each axis; the main axis's range is open. Fixed axes keep
  /// their size; the cells of dynamic axes cover all sizes from 0 on.
  std::vector<SizeRange> box;
  /// Share of the shapes in the box; the shares of all cells add up to 1. They
  /// follow from the histograms of the axes; an axis without a histogram gives
  /// each of its cells the same share.
  double weight = 1;
};

/// Cells between the geometric middles of representative sizes, for every
/// combination of axes. The sizes of a short histogram, up to 12 of a single
/// axis or 3 of each of several, are representative, so an axis can be declared
/// to have a few sizes, such as 768, 2304 and 3072. An axis with the symbols of
/// another axis has no cells: its size follows.
std::vector<ShapeCell> shapeCells(const Workload &workload, unsigned mainAxis);

/// The shape of a cell at a size of the main axis.
Shape shapeAt(const Workload &workload, const ShapeCell &cell,
              unsigned mainAxis, int64_t size);

} // namespace ftuner

#endif // FTUNER_WORKLOAD_SAMPLING_H
