//===- UKernel.h - uKernels, kernel families and covers ---------*- C++ -*-===//
//
// A uKernel is what one thread block computes (paper, section III). Along the
// main axis its height is g·h: g threads with h rows each. Two uKernels with
// the same g and equal tiles on the other axes make a kernel family: one kernel
// with the number of blocks of the first part as a parameter, which covers
// almost every size exactly (FTuner/Schedule/Cover.h).
//
// Rejected: a kernel for each size (80 to 116 kernels for 128 sizes); parts of
// different thread layouts (the paper asks for equal threads and equal tiles on
// the other axes, so g is equal too).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SEARCH_UKERNEL_H
#define FTUNER_SEARCH_UKERNEL_H

#include "FTuner/Schedule/Cover.h"
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace ftuner {

struct Grid;

/// Tile sizes at two memory levels, in elements along each axis of the workload
/// (paper, table I). Reduce axes have register tile 1.
struct UKernel {
  llvm::SmallVector<int64_t, 4> smemTile;
  llvm::SmallVector<int64_t, 4> regTile;
  /// Slices of the reduce axis that different blocks sum; 1 means unsplit.
  int64_t reduceSplit = 1;

  /// Threads of the block along one space axis.
  int64_t threadsAlong(unsigned axis) const {
    return smemTile[axis] / regTile[axis];
  }
  /// Threads of the block.
  int64_t threads() const {
    int64_t product = 1;
    for (unsigned axis = 0; axis < smemTile.size(); ++axis)
      if (regTile[axis] > 0 && axis != Workload::kK)
        product *= threadsAlong(axis);
    return product;
  }

  bool operator==(const UKernel &other) const {
    return smemTile == other.smemTile && regTile == other.regTile &&
           reduceSplit == other.reduceSplit;
  }
  /// e.g. "[112,64,16]/[7,4,1]".
  std::string str() const;
};

/// The unit of code: one uKernel, or two whose heights on `combineAxis` are g·a
/// and g·b, a < b, in one kernel with one thread layout.
struct KernelFamily {
  llvm::SmallVector<UKernel, 2> parts;
  /// Axis along which the two parts lie; meaningful also with one part.
  unsigned combineAxis = Workload::kM;
  /// Pipeline stages of the copies into shared memory.
  int64_t stages = 2;
  /// Elements that global accesses along contiguous axes move at once. All
  /// pointers and rows must be aligned to vectorWidth · element size.
  int64_t vectorWidth = 4;
  /// Name of the codegen path.
  std::string path = "simt";
  /// SMs over which covers by two parts balance the blocks; 0 for exact covers.
  int64_t balancedSms = 0;

  int64_t threads() const { return parts.front().threads(); }
  bool operator==(const KernelFamily &other) const {
    return parts == other.parts && combineAxis == other.combineAxis &&
           stages == other.stages && vectorWidth == other.vectorWidth &&
           path == other.path && balancedSms == other.balancedSms;
  }
  std::string str() const;
};

/// What the mapping of blocks to tiles (FTuner/Schedule/Grid.h) asks of the
/// family.
Grid gridOf(const KernelFamily &family);

/// Covers `extent` of the combine axis with the family, which has
/// `blocksBeside` ≥ 1 blocks for each one along it. A family with one part has
/// all its blocks in `first`.
Cover coverExtent(const KernelFamily &family, int64_t extent,
                  int64_t blocksBeside);
/// The same for a shape: the extents of all axes.
Cover coverShape(const KernelFamily &family, llvm::ArrayRef<int64_t> shape);
/// Blocks of the family for each one along the combine axis, at least 1.
int64_t blocksBeside(const KernelFamily &family, llvm::ArrayRef<int64_t> shape);

/// The family without the part that has no blocks in the cover: families with
/// equal running parts run the same program.
KernelFamily runningParts(const KernelFamily &family, const Cover &cover);

/// A family together with its cover of one shape.
struct Program {
  const KernelFamily *family = nullptr;
  Cover cover;
};

} // namespace ftuner

#endif // FTUNER_SEARCH_UKERNEL_H
