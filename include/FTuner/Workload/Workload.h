//===- Workload.h - One operator with its iteration space -------*- C++ -*-===//
//
// The problem that a search strategy solves, free of IR: axes with ranges,
// operands with their types and accesses, and what a point of the iteration
// space computes (paper, section IV). Contractions are the operators that there
// are most of; `Workload::checkContraction` says what holds for them alone.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_WORKLOAD_WORKLOAD_H
#define FTUNER_WORKLOAD_WORKLOAD_H

#include "FTuner/Workload/PackedOrder.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ftuner {

/// The largest extent of an axis: extents are passed to kernels as i32.
constexpr int64_t maxExtent = std::numeric_limits<int32_t>::max();

/// Sizes that an axis takes: min, min + step, … up to max; open without a max.
struct SizeRange {
  int64_t min = 1;
  std::optional<int64_t> max = std::nullopt;
  int64_t step = 1;

  static SizeRange fixed(int64_t size) { return {size, size, 1}; }
  bool isFixed() const { return max && *max == min; }
  bool isOpen() const { return !max; }
  bool contains(int64_t size) const {
    return size >= min && (!max || size <= *max) && (size - min) % step == 0;
  }
  /// Number of sizes, if the range is closed.
  std::optional<int64_t> count() const {
    if (!max)
      return std::nullopt;
    return (*max - min) / step + 1;
  }
};

/// How often a size occurs, from the user's histogram.
struct SizeWeight {
  int64_t size;
  double weight;
};

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Types of elements; integers have no sign. Other is what no path computes
/// with.
enum class ElementType {
  F64,
  F32,
  TF32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  I1,
  Other
};

/// Bytes of an element in memory; 8 for other types.
int64_t bytesOf(ElementType type);
/// "f32".
llvm::StringRef nameOf(ElementType type);
bool isInteger(ElementType type);

/// What kernels may make of the factors of products of f32 before they multiply
/// them.
enum class FactorPrecision {
  F32,          ///< nothing
  TF32,         ///< the nearest numbers of tf32
  TF32Truncate, ///< those, or factors without the bits that tf32 lacks
};

/// Names that users give, in the order of the numbers: "f32", "tf32" and
/// "tf32-truncate".
llvm::ArrayRef<llvm::StringLiteral> factorPrecisionNames();
std::optional<FactorPrecision> findFactorPrecision(llvm::StringRef name);

//===----------------------------------------------------------------------===//
// Axes and operands
//===----------------------------------------------------------------------===//

enum class AxisKind { Space, Reduce };

/// One loop of the iteration space.
struct Axis {
  std::string name;
  AxisKind kind = AxisKind::Space;
  SizeRange range;
  /// Declared distribution of sizes; empty means uniform.
  std::vector<SizeWeight> weights;
  /// The extent is `factor` times the product of these symbols, which are equal
  /// wherever they have one name; none if the extent is not known so.
  int64_t factor = 1;
  std::vector<std::string> symbols = {};

  bool isDynamic() const { return !range.isFixed(); }
};

/// What an operator does with an operand: inputs are read at every point of the
/// iteration space (those of a contraction are `Lhs` and `Rhs`, and what their
/// prologues read), the others once for every point of the space axes.
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
    unsigned axis;
    /// Not 0.
    int64_t coefficient = 1;

    bool operator==(const Term &other) const {
      return axis == other.axis && coefficient == other.coefficient;
    }
  };
  /// At most one for each axis.
  llvm::SmallVector<Term, 2> terms;
  int64_t constant = 0;

  static AffineForm ofAxis(unsigned axis) { return {{{axis, 1}}, 0}; }
  /// The axis, if the form is that alone.
  std::optional<unsigned> asAxis() const;
  /// The number of elements from the first to the last that a box with `sizes`
  /// points, at least one along each axis, reaches.
  int64_t reach(llvm::ArrayRef<int64_t> sizes) const;
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
  /// for a scalar. Of a position of several axes, one that it has.
  llvm::SmallVector<unsigned> axes;
  /// The position along each dimension; empty where every dimension is its axis
  /// alone.
  llvm::SmallVector<AffineForm, 0> windows;
  ElementType elementType;
  /// `bytesOf(elementType)`.
  int64_t elementBytes;
  /// Elements lie in the order of PackedOrder.h; of an rhs of k and n alone.
  bool isPacked = false;

  unsigned rank() const { return axes.size(); }
  AffineForm position(unsigned dim) const {
    return windows.empty() ? AffineForm::ofAxis(axes[dim]) : windows[dim];
  }
  /// The axis with unit stride, if the innermost dimension is one alone; k of
  /// packed operands.
  std::optional<unsigned> contiguousAxis() const;
};

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// Operations, apart by the units of a device that execute them.
enum class OperationKind {
  MultiplyAdd, ///< a · b + c: two floating-point operations
  Arithmetic,  ///< sums, products, extremes
  Special,     ///< quotients, roots, transcendental functions
  Other        ///< casts, comparisons, choices: they count for nothing
};

/// Operations of one kind for each point.
struct Operations {
  OperationKind kind = OperationKind::MultiplyAdd;
  ElementType operandType = ElementType::F32;
  ElementType resultType = ElementType::F32;
  double count = 1;

  double flops() const;
  bool operator==(const Operations &other) const {
    return kind == other.kind && operandType == other.operandType &&
           resultType == other.resultType && count == other.count;
  }
};

/// How the inputs of a point enter its accumulator.
enum class Combiner {
  SumOfProducts, ///< accumulator + lhs · rhs
  Sum,           ///< accumulator + input
  Other
};

/// One binding of every axis to an extent, in the order of `Workload::axes`.
using Shape = llvm::SmallVector<int64_t, 4>;

/// One operator with its fused epilogue, as `OperatorOpInterface` describes it
/// in the IR.
///
/// Of a contraction the axes are M, N (space) and K (reduce), in this order
/// (`kM`, `kN`, `kK`), then batch axes (space), along which every block has one
/// element. A row sum has the axes M (space) and K (reduce), and one input.
struct Workload {
  static constexpr unsigned kM = 0, kN = 1, kK = 2, kFirstBatch = 3;

  std::string name;
  std::vector<Axis> axes;
  std::vector<Operand> operands;

  Combiner combiner = Combiner::SumOfProducts;
  ElementType accumulatorType = ElementType::F32;
  /// Factors of f32 that are multiplied in tf32 may lose the bits that it lacks
  /// in place of being rounded.
  bool truncatesFactors = false;
  /// Of each point of the iteration space.
  std::vector<Operations> operations = {Operations()};
  /// Of a contraction: what becomes of each element of lhs and of rhs before it
  /// is multiplied; empty where that is nothing but casts that keep every
  /// value.
  std::array<std::vector<Operations>, 2> prologues = {};
  /// Of each point of the space axes.
  std::vector<Operations> epilogue = {};
  /// Floating-point operations for each point of the iteration space: the sum
  /// of `operations`.
  double flopsPerPoint = 2;

  /// Axis along which programs combine two uKernels: the dynamic space axis
  /// with the largest extent, of a contraction M or N; with none, the larger
  /// one (paper V-A). An open axis counts as larger than a closed one; ties go
  /// to the first. Without space axes, the first axis.
  unsigned mainAxis() const;
  std::vector<unsigned> spaceAxes() const;
  /// A bit for each reduce axis.
  uint32_t reduceAxes() const;
  const Operand *find(OperandRole role) const;
  /// The order of a contraction's rhs if it is packed, as `check` has found it.
  PackedOrder packedOrder() const;

  /// Iteration points of one shape times `flopsPerPoint`.
  double flops(llvm::ArrayRef<int64_t> shape) const;

  /// Says what is wrong with the description, if anything: no axes; sizes,
  /// steps and factors beyond `maxExtent`; weights; operands; operations.
  llvm::Error check() const;
  /// Says why this is no contraction, if it is none: a sum of products of an
  /// lhs and an rhs over the axes M, N, K and batch axes, without windows.
  llvm::Error checkContraction() const;
  bool isContraction() const;

  /// M × N × K matrix product in f32, all row-major unless transposed.
  static Workload matmul(SizeRange m, SizeRange n, SizeRange k,
                         bool transposeLhs = false, bool transposeRhs = false);
  /// The same for every element of a batch axis; axes M, N, K, B.
  static Workload batchMatmul(SizeRange batch, SizeRange m, SizeRange n,
                              SizeRange k, bool transposeLhs = false,
                              bool transposeRhs = false);
};

/// ceil(value / divisor).
constexpr int64_t ceilDiv(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
/// The least multiple of `granule` that is at least `value` (paper: ceil_by).
constexpr int64_t ceilBy(int64_t value, int64_t granule) {
  return ceilDiv(value, granule) * granule;
}
/// The x in [0, modulus) with value · x ≡ 1 modulo `modulus`, for coprime
/// positive arguments; 0 for modulus 1.
int64_t modularInverse(int64_t value, int64_t modulus);

} // namespace ftuner

#endif // FTUNER_WORKLOAD_WORKLOAD_H
