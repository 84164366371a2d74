//===- WarpMatrix.h - Matrix operations of a warp ---------------*- C++ -*-===//
//
// Products and copies of matrices whose elements are spread over the lanes of a
// warp, as the PTX ISA lays them out (mma, ldmatrix, stmatrix). For lane l,
// g = l / 4, t = l % 4 and P elements in a register of 32 bits, the lowest bits
// first:
//
//  * A, register i: row g + 8 (i % rowGroups),
//    columns 4 P (i / rowGroups) + P t ... + P - 1;
//  * B, register i: column g, rows 4 P i + P t ... + P - 1;
//  * C and D, register i: row g + 8 (i / 2), column 2 t + i % 2; of 16 bits,
//    register i: row g + 8 i, columns 2 t and 2 t + 1;
//  * a matrix of 8 x 8 elements of 16 bits that is loaded or stored: row g,
//    columns 2 t and 2 t + 1; transposed: rows 2 t and 2 t + 1, column g.
//
// What a GPU leaves open is fixed here, and is the same on every machine:
//  * f16, bf16 and tf32: products are exact (beyond the range of f32 they
//    overflow, or are rounded to its subnormal numbers). They are added to C
//    one after another, columns of A ascending, each sum rounded to the nearest
//    f32, ties to even. C and D of f16 are converted before and after.
//  * tf32 ignores the lowest 13 bits of its operands.
//  * s8 and u8: exact. D wraps around or, if it saturates, is clamped once.
//
// A product of a warpgroup (wgmma) is m64nN: A and B lie in shared memory where
// their descriptors say. Warp w of the four has rows 16 w ... 16 w + 15 of D,
// as above for each 8 columns: register 4 j + i belongs to columns 8 j ... 8 j
// + 7; of 16 bits, register 2 j + i. Sums are as above.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_EMULATOR_CORE_MATRICES_WARPMATRIX_H
#define FTUNER_LIB_EMULATOR_CORE_MATRICES_WARPMATRIX_H

#include "Fibers/Fiber.h"
#include <array>
#include <cstdint>

namespace ftuner::emulator {

/// Elements of A and B. The values are part of the interface to compiled code,
/// as are those below.
enum class MmaElement : uint32_t { F16, BF16, TF32, S8, U8 };

/// Elements of C and D.
enum class MmaAccumulator : uint32_t { F32, F16, I32, SaturatedI32 };

/// One variant of D = A B + C. A has 8 `rowGroups` rows and, as B, an extent of
/// 16 `depthGroups` bytes to sum over; B has 8 columns.
struct MmaVariant {
  MmaElement a, b;
  MmaAccumulator accumulator;
  unsigned rowGroups;   ///< 1 or 2.
  unsigned depthGroups; ///< 1 or 2.

  static constexpr unsigned kMaxRegisters = 10;

  constexpr unsigned registersOfA() const { return rowGroups * depthGroups; }
  constexpr unsigned registersOfB() const { return depthGroups; }
  constexpr unsigned registersOfC() const {
    return accumulator == MmaAccumulator::F16 ? rowGroups : 2 * rowGroups;
  }
  /// Elements of A and B in a register.
  static constexpr unsigned packing(MmaElement element) {
    switch (element) {
    case MmaElement::F16:
    case MmaElement::BF16:
      return 2;
    case MmaElement::TF32:
      return 1;
    case MmaElement::S8:
    case MmaElement::U8:
      break;
    }
    return 4;
  }
  /// The extent to sum over, in elements.
  constexpr unsigned depth() const { return 4 * packing(a) * depthGroups; }

  constexpr uint32_t encode() const {
    return static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 4 |
           static_cast<uint32_t>(accumulator) << 8 | rowGroups << 12 |
           depthGroups << 16;
  }
  static constexpr MmaVariant decode(uint32_t code) {
    return {static_cast<MmaElement>(code & 15),
            static_cast<MmaElement>(code >> 4 & 15),
            static_cast<MmaAccumulator>(code >> 8 & 15), code >> 12 & 15,
            code >> 16 & 15};
  }
};

/// 1, 2 or 4 matrices of 8 rows of 16 bytes, 8 x 8 elements of 16 bits.
struct MatrixCopy {
  unsigned count;
  bool isTransposed;

  constexpr uint32_t encode() const {
    return count | static_cast<uint32_t>(isTransposed) << 8;
  }
  static constexpr MatrixCopy decode(uint32_t code) {
    return {code & 15, (code >> 8 & 1) != 0};
  }
  /// Lanes whose addresses count: lane 8 i + r has that of row r of matrix i.
  constexpr unsigned lanes() const { return 8 * count; }
};

constexpr unsigned kMatrixRowBytes = 16;

/// The registers of each lane; none is null.
using WarpValues = std::array<uint32_t *, kWarpSize>;
/// The row that each lane names; null for what must not be accessed.
using MatrixRows = std::array<char *, kWarpSize>;

/// A lane's registers are A's, then B's, then C's, which D replaces.
void multiplyMatrices(const MmaVariant &variant, const WarpValues &values);

/// Threads of a warpgroup.
constexpr unsigned kGroupThreads = 4 * kWarpSize;

/// One variant of D = A B + D of a warpgroup: 64 rows, 32 bytes to sum over.
struct GroupVariant {
  MmaElement a, b;
  MmaAccumulator accumulator;
  unsigned columns;     ///< A multiple of 8, at most 256.
  bool startsAtZero;    ///< D = A B.
  bool isNegative;      ///< D = -A B + D.
  bool hasRowsInner;    ///< Rows of A are contiguous, not its columns.
  bool hasColumnsInner; ///< Columns of B are contiguous, not its rows.

  static constexpr unsigned kRows = 64, kMaxColumns = 256, kDepthBytes = 32;

  constexpr unsigned registersOfD() const {
    return columns / (accumulator == MmaAccumulator::F16 ? 4 : 2);
  }
  constexpr uint32_t encode() const {
    return static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 4 |
           static_cast<uint32_t>(accumulator) << 8 | columns / 8 << 12 |
           uint32_t(startsAtZero) << 20 | uint32_t(isNegative) << 21 |
           uint32_t(hasRowsInner) << 22 | uint32_t(hasColumnsInner) << 23;
  }
  static constexpr GroupVariant decode(uint32_t code) {
    return {static_cast<MmaElement>(code & 15),
            static_cast<MmaElement>(code >> 4 & 15),
            static_cast<MmaAccumulator>(code >> 8 & 15),
            8 * (code >> 12 & 255),
            (code >> 20 & 1) != 0,
            (code >> 21 & 1) != 0,
            (code >> 22 & 1) != 0,
            (code >> 23 & 1) != 0};
  }
};

/// The place in shared memory of an operand of a warpgroup's product: the
/// matrix descriptor of the PTX ISA.
class MatrixDescriptor {
public:
  /// Addresses in shared memory have so many bits.
  static constexpr unsigned kAddressBits = 18;

  explicit constexpr MatrixDescriptor(uint64_t bits) : bits(bits) {}
  /// Returns whether the emulator supports it: it has no base offset.
  constexpr bool isSupported() const { return (bits >> 49 & 7) == 0; }
  /// Offset in shared memory of 16 bytes of the operand. `outer` is a row of A
  /// or column of B and `inner` which 16 bytes of its depth; if `isTransposed`,
  /// `outer` is an element along the depth, and `inner` which 8 rows or
  /// columns.
  uint32_t chunk(unsigned outer, unsigned inner, bool isTransposed) const;

private:
  constexpr uint32_t field(unsigned bit) const {
    return static_cast<uint32_t>(bits >> bit & 0x3fff) << 4;
  }
  uint64_t bits;
};

/// The bytes of an operand, 32 for each row of A or column of B.
struct GroupOperand {
  alignas(32) unsigned char bytes[GroupVariant::kMaxColumns *
                                  GroupVariant::kDepthBytes];
};

/// `registers` are those of D of each thread, or null where it is lost.
void multiplyGroup(const GroupVariant &variant, const GroupOperand &a,
                   const GroupOperand &b,
                   const std::array<uint32_t *, kGroupThreads> &registers);

/// Reads ones in the place of rows that are null.
void loadMatrices(const MatrixCopy &copy, const MatrixRows &rows,
                  const WarpValues &values);
/// Leaves rows that are null out.
void storeMatrices(const MatrixCopy &copy, const MatrixRows &rows,
                   const WarpValues &values);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_MATRICES_WARPMATRIX_H
