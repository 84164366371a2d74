//===- DietCodeSpace.h - Micro-kernels without a shape ----------*- C++ -*-===//
//
// Source: Zheng et al., "DietCode: Automatic Optimization for Dynamic Tensor
// Programs", MLSys 2022, and its artifact.
//
// A micro-kernel is what one block computes: threads and tiles of every axis,
// none of which depends on an extent but through the largest one. One space
// serves all shapes. All factors are drawn at once, threads first:
//
//     warps   from 1 to the device's most; threads = 32 · warps
//     threads along each space axis: a factorisation of `threads`, each at most
//             1.1 times the largest extent
//     strips  of the last space axis, n, from 1 to `mostStrips`; 1 of others
//     inner   of the other space axes and of the reduce axis, from 1 to
//             `mostInner`; 1 of n, so that lanes have neighbouring columns
//
// Strips and inner tiles are divisors of the largest extent where that has four
// usable ones or is small (`isPerfect`), so that no shape of it is padded.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_BASELINES_DIETCODE_DIETCODESPACE_H
#define FTUNER_LIB_BASELINES_DIETCODE_DIETCODESPACE_H

#include "FTuner/Search/Problem/SearchStrategy.h"
#include <random>

namespace ftuner {

/// The thread tiles of all axes of a workload.
using MicroKernel = std::vector<ThreadTile>;

struct DietCodeSpaceOptions {
  /// True if strips and inner tiles are divisors of the largest extents.
  bool perfectTiles = true;
  /// True if threads may change when a micro-kernel is mutated.
  bool mutateThreads = false;
  /// True if block tiles of all axes divide the largest extents, as in searches
  /// for one shape: threads divide them, and tiles divide the quotients.
  bool onlyDivisors = false;
};

class DietCodeSpace {
public:
  /// A contraction on a device, which outlive the space, with the largest
  /// extents of its shapes.
  DietCodeSpace(const Workload &workload, const DeviceSpec &device,
                Shape largest, const DietCodeSpaceOptions &options);

  /// Draws a micro-kernel; returns no value if threads cannot be shared out.
  std::optional<MicroKernel> sample(std::mt19937_64 &random) const;
  /// Changes a micro-kernel a little: a prime factor of one level of an axis
  /// (blocks, strips, inner; threads if `mutateThreads`) moves to another, or,
  /// one time in five, a tile is drawn anew. `bounds` are the extents of a
  /// shape: tiles along an axis do not grow beyond the next multiple of it.
  MicroKernel mutate(const MicroKernel &kernel, llvm::ArrayRef<int64_t> bounds,
                     std::mt19937_64 &random) const;
  /// Returns whether the device can hold a micro-kernel by DietCode's counts of
  /// threads and sizes of the levels. The path decides about registers and
  /// shared memory.
  bool isLegal(const MicroKernel &kernel) const;

  const Shape largest;

private:
  /// Return whether an axis has inner tiles, or strips.
  bool hasInner(unsigned axis) const;
  bool hasStrips(unsigned axis) const { return axis == axes.n; }
  /// Draws a number of strips or an inner tile, from 1 to `maxSize`, for an
  /// axis with so many threads.
  int64_t drawInner(unsigned axis, int64_t threads, int64_t maxSize,
                    std::mt19937_64 &random) const;
  /// Returns whether the axis may have so many threads.
  bool mayHave(unsigned axis, int64_t threads) const;

  const ContractionAxes axes;
  const DietCodeSpaceOptions options;
  unsigned numAxes;
  int64_t maxThreads;
  /// Space axes, n last.
  std::vector<unsigned> spaceAxes;
};

} // namespace ftuner

#endif // FTUNER_LIB_BASELINES_DIETCODE_DIETCODESPACE_H
