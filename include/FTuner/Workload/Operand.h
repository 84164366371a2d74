//===- Operand.h - Operands that an operator reads and writes ---*- C++ -*-===//
#ifndef FTUNER_WORKLOAD_OPERAND_H
#define FTUNER_WORKLOAD_OPERAND_H

#include "FTuner/Workload/Axes.h"
#include "FTuner/Workload/Elements.h"

namespace ftuner {

/// Bytes at multiples of which padded rows begin: sectors of DRAM, which stores
/// should fill.
constexpr int64_t paddedRowBytes = 32;
/// Returns the bytes from a row of that length to the next.
constexpr int64_t rowPitch(int64_t bytes, bool isPadded) {
  return isPadded
             ? (bytes + paddedRowBytes - 1) / paddedRowBytes * paddedRowBytes
             : bytes;
}

/// Role of an operand: inputs are read at every point of the
/// iteration space (a contraction's inputs are `Lhs`, `Rhs`, and the operands
/// that their prologues read), the others once for every point of the space
/// axes.
enum class OperandRole { Lhs, Rhs, Input, Init, Extra, Output };

constexpr bool isInput(OperandRole role) {
  return role == OperandRole::Lhs || role == OperandRole::Rhs ||
         role == OperandRole::Input;
}

/// A position along one dimension of a tensor: constant + the sum of
/// coefficient · position along the axis. One axis alone in the simple case;
/// 2 · oh + kh for a window of stride 2.
struct AffineForm {
  struct Term {
    static constexpr unsigned wholeAxis = ~0u;

    unsigned axis;
    /// Not 0.
    int64_t coefficient = 1;
    /// Number of a fused axis's loop, or `wholeAxis` for the axis itself.
    unsigned loop = wholeAxis;

    bool operator==(const Term &other) const {
      return axis == other.axis && coefficient == other.coefficient &&
             loop == other.loop;
    }
  };
  /// At most one for each axis, or loop of one.
  llvm::SmallVector<Term, 2> terms;
  int64_t constant = 0;

  static AffineForm ofAxis(unsigned axis) { return {{{axis, 1}}, 0}; }
  /// The axis, if the form is that alone.
  std::optional<unsigned> asAxis() const;
  /// The term, if the form is one axis or one loop alone.
  std::optional<Term> asTerm() const;
  bool operator==(const AffineForm &other) const {
    return terms == other.terms && constant == other.constant;
  }
};

/// A tensor or scalar that the operator reads or writes.
struct Operand {
  Operand(OperandRole role, llvm::SmallVector<unsigned> axes,
          ElementType elementType = ElementType::F32)
      : role(role), axes(std::move(axes)), elementType(elementType),
        elementBytes(bytesOf(elementType)) {}

  OperandRole role;
  /// The axis that each dimension runs along, outermost dimension first; empty
  /// for a scalar. If a position has several axes, it is one of them.
  llvm::SmallVector<unsigned> axes;
  /// The position along each dimension; empty where every dimension is its axis
  /// alone.
  llvm::SmallVector<AffineForm, 0> windows;
  ElementType elementType;
  /// `bytesOf(elementType)`.
  int64_t elementBytes;
  /// Elements lie in the order of PackedOrder.h; of an rhs of k and n alone.
  bool isPacked = false;
  /// Rows along the innermost dimension begin at multiples of `paddedRowBytes`,
  /// whatever their length is. The bytes behind a row, up to the next such
  /// multiple, belong to the operand: kernels may read and write them, and
  /// nobody reads what they hold as an element.
  bool isPitched = false;
  /// Value of a read beyond the operand, such as the zeros around an image;
  /// none if every position lies inside.
  std::optional<Identity> outside = std::nullopt;
  /// Operands whose elements are added to positions, such as the pages of a
  /// cache.
  struct Indirection {
    unsigned dim;
    /// Its number, and the axes along which it lies are among the operand's.
    unsigned indexOperand;

    bool operator==(const Indirection &other) const {
      return dim == other.dim && indexOperand == other.indexOperand;
    }
  };
  llvm::SmallVector<Indirection, 0> indirections = {};

  unsigned rank() const { return axes.size(); }
  AffineForm position(unsigned dim) const {
    return windows.empty() ? AffineForm::ofAxis(axes[dim]) : windows[dim];
  }
  /// Returns whether a dimension is a window or a loop of a fused axis rather
  /// than an axis.
  bool hasWindows() const { return !windows.empty(); }
  /// The axis along which positions in the innermost dimension move, k of
  /// packed operands; none for scalars. Where that dimension is a sum, it is
  /// the first axis of the sum. `Workload::contiguousRun` says how many
  /// neighbours along the axis are next to each other in memory.
  std::optional<unsigned> contiguousAxis() const;
};

} // namespace ftuner

#endif // FTUNER_WORKLOAD_OPERAND_H
