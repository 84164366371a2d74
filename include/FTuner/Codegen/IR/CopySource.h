//===- CopySource.h - Where copied operands lie -----------------*- C++ -*-===//
//
// A copy knows its vectors by positions: the first element along the space
// axis, and along the reduce axis. A source says where in global memory they
// lie, and whether there is anything to read. What does not depend on the step
// is computed once a tile, when slots are added.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_COPYSOURCE_H
#define FTUNER_CODEGEN_IR_COPYSOURCE_H

#include "FTuner/Codegen/IR/IndexMath.h"
#include "FTuner/Codegen/SharedTile.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace ftuner {

struct TileEmission;

class CopySource {
public:
  virtual ~CopySource() = default;
  /// Adds the next slot, of the vectors at `space` and, in the step at 0, at
  /// `reduce`. `isClamped`: positions beyond the space extent are its last one.
  /// `distance`: elements of memory to the slot's matrix; null for none.
  virtual void addSlot(Value space, Value reduce, bool isClamped,
                       Value distance) = 0;

  /// A vector of a step.
  struct Place {
    Value pointer;
    /// Whether the operand has it, of those within the extents of the axes;
    /// null where it has all. Elsewhere the pointer leads to nothing.
    Value isInside = {};
  };
  /// Those of all slots in the step at `reduceOffset`.
  virtual llvm::SmallVector<Place> placesOf(Value reduceOffset) = 0;
};

/// A matrix: a memref of two dimensions whose inner stride is 1.
///
/// Each slot has a pointer, at step 0. A step adds the same number of bytes to
/// all of them, so an address costs one addition in the loop, or none where
/// slots are a constant apart. Of many slots along the rows of a factor that
/// lies across k, few pointers are kept: from one slot to the next it is as
/// many rows.
class MatrixSource final : public CopySource {
public:
  MatrixSource(mlir::ImplicitLocOpBuilder &b, const SharedTile &tile,
               Value memory, int64_t threads, int64_t vectorWidth);
  /// The operand is packed (PackedOrder.h): a row of it has the elements of a
  /// step, and as many rows follow for the next step as it has.
  void setPackedRows(int64_t rows) { packedRows = rows; }
  void addSlot(Value space, Value reduce, bool isClamped,
               Value distance) override;
  llvm::SmallVector<Place> placesOf(Value reduceOffset) override;

private:
  /// A constant distance from the pointer of an earlier slot.
  struct Distance {
    size_t from;
    int64_t bytes;
  };
  struct Slot {
    /// Null where the distance says what it is.
    Value pointer;
    std::optional<Distance> distance;
  };
  std::optional<Distance> nextDistance(bool isClamped) const;
  /// What a step adds to pointers.
  Value bytesOfStep(Value reduceOffset);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const SharedTile &tile;
  int64_t threads, vectorWidth, elementBytes;
  /// A pointer to the operand.
  Value global;
  /// Elements from one to the next row of the operand.
  Value rowStride;
  /// Of a packed operand: rows of a step.
  std::optional<int64_t> packedRows;
  llvm::SmallVector<Slot> slots;
};

/// An axis, and what it takes to find the point of its loops at a position.
struct SplitAxis {
  unsigned axis;
  /// Extents of the loops; empty of an axis that is one loop.
  llvm::SmallVector<Value, 3> loopExtents;

  static SplitAxis of(const TileEmission &tile, unsigned axis);
};

/// What windows over the loops of fused axes are over, as the image of a
/// convolution: dimensions lie at sums of multiples of loops. Where something
/// is to be read beyond the operand, padding, positions are held against the
/// sizes of dimensions.
///
/// Quotients and remainders of the position along the space axis, in 32 bits,
/// are worked out once a tile, those along the reduce axis in each step: once
/// where a step does not leave a trip of the last loop, such as the channels of
/// one tap, otherwise for each vector. A vector lies in one run of the
/// innermost dimension.
class WindowSource final : public CopySource {
public:
  /// `memory`: a memref with the dimensions of `operand`, which outlives the
  /// source, but for those that are batch axes. `sliceStart`: null for 0.
  /// `stepElements`: elements of a step along the reduce axis. `slotRows`:
  /// elements along it from one slot to the next, which have one position along
  /// the space axis; none where slots differ in that.
  WindowSource(mlir::ImplicitLocOpBuilder &b, Value memory,
               const Operand &operand, SplitAxis space, SplitAxis reduce,
               Value sliceStart, int64_t stepElements,
               std::optional<int64_t> slotRows);
  void addSlot(Value space, Value reduce, bool isClamped,
               Value distance) override;
  llvm::SmallVector<Place> placesOf(Value reduceOffset) override;

private:
  struct Slot {
    /// At the first element of the reduce axis, or at that of the slot in the
    /// first step (`staysInLoop`); before the operand's beginning where that is
    /// outside.
    Value pointer;
    Value reduce;
    /// What the space axis contributes to the positions along dimensions that
    /// are checked.
    Values positions;
  };
  /// The point of the loops at a position along the axis; the position itself
  /// of an axis that is one loop.
  Values pointAt(const SplitAxis &axis, Value position);
  /// The part of a position along the reduce axis that a slot adds to that of
  /// its step: trips of the last loop.
  Values pointOfSlot(Value ofStep);
  /// The pointer so many elements along the reduce axis further, which are
  /// trips of the last loop.
  Value furtherInLoop(Value pointer, Value elements);
  /// The terms of one axis in the position along a dimension, and, with it, the
  /// constant; null for 0.
  Value termsOf(const SplitAxis &axis, ValueRange point, size_t dim);
  /// Adds what dimensions contribute to a pointer, null ones nothing.
  Value advance(Value pointer, ValueRange positions);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  SplitAxis space, reduce;
  /// The positions along the dimensions of the memref.
  llvm::SmallVector<const AffineForm *> forms;
  Value sliceStart;
  /// True if a step does not leave the last loop of the reduce axis: the other
  /// loops make one trip.
  bool staysInLoop;
  /// Elements along the reduce axis from a slot to the next where all slots lie
  /// inside or outside together, at constant distances from the first one.
  std::optional<int64_t> slotRows;
  int64_t elementBytes;
  Value global;
  /// Of each dimension: elements from one index to the next, and its size.
  Values strides, sizes;
  /// Dimensions in which positions may be outside.
  llvm::SmallVector<size_t> checked;
  llvm::SmallVector<Slot> slots;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_COPYSOURCE_H
