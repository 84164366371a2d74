//===- TensorFactors.h - Factors of the tensor cores ------------*- C++ -*-===//
//
// What models share whose blocks multiply on the tensor cores: types of
// factors, and how these come to shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_TENSORFACTORS_H
#define FTUNER_CODEGEN_TENSORFACTORS_H

#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Codegen/SharedTile.h"
#include "FTuner/Device/DeviceSpec.h"
#include <algorithm>

namespace ftuner {

/// The type in which a sum of products multiplies: operands may be of narrower
/// ones, and are cast on the way to shared memory.
inline ElementType multipliedType(const Workload &workload) {
  return workload.reduction()->operations.front().operandType;
}

/// That the workload is a contraction of the layouts, factors and prologues
/// that can come to shared memory as the multiplied type.
llvm::Error checkTensorFactors(const CodegenModel &path,
                               const Workload &workload);
/// That sums are of the type in which the tensor cores add.
llvm::Error checkTensorSum(const CodegenModel &path, const Workload &workload,
                           ElementType sum);

//===--- Copies. `accessBytes`: bytes of shared memory that a copy along a
// contiguous axis fills at once: 4, 8 or 16, of aligned operands; 1: a single
// element. ---------------------------------------------------------------===//

/// The widest access of aligned operands, or 1.
inline int64_t widestAccess(int64_t alignment) {
  return alignment >= 16 ? 16 : alignment >= 8 ? 8 : alignment >= 4 ? 4 : 1;
}
inline constexpr int64_t kAccessBytes[] = {1, 4, 8, 16};
/// The row of a schedule's table that says them.
template <typename ScheduleT>
constexpr ScheduleRow<ScheduleT> accessRow(int64_t ScheduleT::*member) {
  return ScheduleRow<ScheduleT>(
             "access_bytes", member,
             "bytes of shared memory that a copy along a contiguous axis fills "
             "at once, to which operands are aligned; 1: a single element of "
             "any alignment")
      .key("access")
      .label("access")
      .among(kAccessBytes);
}

/// Elements of a copy, of `elementBytes` bytes in shared memory.
inline int64_t elementsOfAccess(int64_t accessBytes, int64_t elementBytes) {
  return accessBytes > elementBytes ? accessBytes / elementBytes : 1;
}
/// The same of elements that have `globalBytes` bytes where they come from.
inline int64_t elementsOfCopy(int64_t accessBytes, int64_t globalBytes,
                              int64_t sharedBytes) {
  return elementsOfAccess(accessBytes, std::max(globalBytes, sharedBytes));
}

/// Whether copies bypass registers, of so many bytes and factors that are (not)
/// cast on the way.
inline bool copiesAsynchronously(const DeviceSpec &device, int64_t bytes,
                                 bool isCast) {
  return device.hasAsyncCopy() && bytes >= 4 && !isCast;
}
/// Whether a factor is cast, or something computed of it, on the way to shared
/// memory.
bool convertsFactors(const Workload &workload);
/// Whether numbers of a factor, lhs (0) or rhs (1), have to be rounded to tf32
/// before they are multiplied: narrower types are exact in it, and prologues
/// are taken to end in f32.
bool roundsFactor(const Workload &workload, unsigned factor);

/// Returns the elements of a copy of a factor, lhs (0) or rhs (1).
int64_t copiedElements(const Workload &workload, int64_t accessBytes,
                       unsigned factor);
/// Returns whether copies of both factors bypass registers.
bool copiesAsynchronously(const DeviceSpec &device, const Workload &workload,
                          int64_t accessBytes);

/// Cost of the positions of a factor's windows: registers that a thread keeps,
/// and instructions that it executes in a step.
struct WindowWork {
  int64_t registers = 0;
  double instructions = 0;
};
/// Returns the cost for a factor that so many threads copy into `tile` in
/// vectors of `width` elements; none for a factor without windows.
WindowWork windowWork(const Workload &workload, unsigned factor,
                      const SharedTile &tile, int64_t threads, int64_t width);

/// Facts about a factor that is read by windows, which its copies depend on.
struct WindowFacts {
  /// Dimensions in which a position may lie outside.
  int64_t checkedDimensions = 0;
  /// Extent of the last loop of k; 0 if it is not known, or k has one loop.
  int64_t lastExtent = 0;
  /// True if a position that may lie outside depends on the last loop of k.
  bool checksLastLoop = false;
};

/// How a factor is copied.
struct FactorCopy {
  /// Elements of a copy, and bytes of each in global memory.
  int64_t vectorWidth = 8, globalBytes = 2;
  PrologueWork prologue = {};
  /// The distance of its rows in memory is a constant.
  bool isPitchKnown = true;
  /// True if the factor is read by windows: every vector has an address of its
  /// own, which `windows` tells more of.
  bool hasWindows = false;
  WindowFacts windows = {};
  /// Tiles never reach beyond the factor's extent of m or n.
  bool isSpaceExact = false;
};
/// Of a factor, lhs (0) or rhs (1).
FactorCopy factorCopy(const Workload &workload, int64_t accessBytes,
                      unsigned factor);

/// What the copies of a block's factors have in common.
struct FactorCopies {
  int64_t threads = 32;
  /// Of an element in shared memory.
  int64_t elementBytes = 2;
  /// Copies do not pass through registers.
  bool isAsynchronous = true;
  /// The extent of the reduce axis is known to be a multiple of its tile.
  bool isReduceExact = true;

  /// Adds what copies of a factor's tile execute in a step.
  void addTo(BlockWork &work, const SharedTile &tile,
             const FactorCopy &copy) const;
  /// Registers that a thread keeps of the copies of a factor's tile.
  int64_t registers(const SharedTile &tile, const FactorCopy &copy) const;

private:
  /// Addresses of a thread's copies, but for those at a constant distance from
  /// another: pointers of 64 bits, and places in shared memory.
  struct Addresses {
    int64_t pointers, places;
  };
  Addresses addresses(const SharedTile &tile, const FactorCopy &copy,
                      bool isClamped) const;
};

/// Rows of tiles whose blocks are neighbours: groups of blocks that run at
/// once, some hundred on today's devices, are about square, so that they read
/// the fewest bytes for each of their elements.
int64_t squareSwizzleRows(const KernelFamily &family);

} // namespace ftuner

#endif // FTUNER_CODEGEN_TENSORFACTORS_H
