//===- WarpMatrix.cpp - Matrix operations of a warp -----------------------===//
#include "Matrices/WarpMatrix.h"
#include <algorithm>
#include <cstring>

using namespace ftuner::emulator;

namespace {
constexpr unsigned kColumns = 8;
constexpr unsigned kMaxRows = 16;
/// Bytes to sum over.
constexpr unsigned kMaxDepthBytes = 32;
/// Elements to sum over: those of a byte.
constexpr unsigned kMaxDepth = kMaxDepthBytes;
} // namespace

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

template <typename To, typename From>
static To bitCast(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

// As __extendhfsf2 of FloatConversions.cpp: free of branches, so that loops of
// it become vector instructions.
static float fromF16(uint16_t value) {
  uint32_t magnitude = value & 0x7fffu, shifted = magnitude << 13;
  // 2^112; exact for all but infinities and NaN.
  float scaled = bitCast<float>(shifted) * bitCast<float>(0x77800000u);
  uint32_t finite = bitCast<uint32_t>(scaled), other = shifted | 0x7f800000u;
  uint32_t absolute = magnitude < 0x7c00u ? finite : other;
  return bitCast<float>(absolute | (value & 0x8000u) << 16);
}

// As __truncsfhf2 there: to the nearest, ties to even.
static uint16_t toF16(float value) {
  uint32_t bits = bitCast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00;
  } else if (magnitude >= 0x47800000u) {
    result = 0x7c00;
  } else if (magnitude >= 0x38800000u) {
    uint32_t rebased = magnitude - 0x38000000u;
    result = (rebased + 0xfff + (rebased >> 13 & 1)) >> 13;
  } else {
    // The unit of the last place of 0.5 is the smallest subnormal.
    result = bitCast<uint32_t>(bitCast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(result | (bits >> 16 & 0x8000u));
}

/// `bytes` bytes of elements in the f32 numbers that they stand for.
static void widen(MmaElement element, const unsigned char *from, unsigned bytes,
                  float *to) {
  switch (element) {
  case MmaElement::F16: {
    uint16_t words[kMaxRows * kMaxDepthBytes / 2];
    std::memcpy(words, from, bytes);
    for (unsigned i = 0; i < bytes / 2; ++i)
      to[i] = fromF16(words[i]);
    return;
  }
  case MmaElement::BF16: {
    uint16_t words[kMaxRows * kMaxDepthBytes / 2];
    std::memcpy(words, from, bytes);
    for (unsigned i = 0; i < bytes / 2; ++i)
      to[i] = bitCast<float>(uint32_t(words[i]) << 16);
    return;
  }
  case MmaElement::TF32: {
    uint32_t words[kMaxRows * kMaxDepthBytes / 4];
    std::memcpy(words, from, bytes);
    for (unsigned i = 0; i < bytes / 4; ++i)
      to[i] = bitCast<float>(words[i] & ~0x1fffu);
    return;
  }
  case MmaElement::S8:
    for (unsigned i = 0; i < bytes; ++i)
      to[i] = static_cast<float>(static_cast<int8_t>(from[i]));
    return;
  case MmaElement::U8:
    for (unsigned i = 0; i < bytes; ++i)
      to[i] = static_cast<float>(from[i]);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Adds a product to each row of `sums`. The sum of 32 products of 8 bits is
/// exact in f32, too. Compiled without contraction, so that the result does not
/// depend on the processor.
static void accumulate(const float *a, const float (*b)[kColumns],
                       unsigned rows, unsigned depth, float (*sums)[kColumns]) {
  constexpr unsigned kRowsAtOnce = 4;
  for (unsigned row = 0; row < rows; row += kRowsAtOnce) {
    float block[kRowsAtOnce][kColumns];
    std::memcpy(block, sums + row, sizeof(block));
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned r = 0; r < kRowsAtOnce; ++r)
        for (unsigned column = 0; column < kColumns; ++column)
          block[r][column] += a[(row + r) * depth + k] * b[k][column];
    std::memcpy(sums + row, block, sizeof(block));
  }
}

/// D of i32 from C and the sum of the products.
static uint32_t addInteger(uint32_t c, float sum, bool saturates) {
  auto products = static_cast<int32_t>(sum);
  if (!saturates)
    return c + static_cast<uint32_t>(products);
  int64_t exact = int64_t(static_cast<int32_t>(c)) + products;
  return static_cast<uint32_t>(
      std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX));
}

void ftuner::emulator::multiplyMatrices(const MmaVariant &variant,
                                        const WarpValues &values) {
  unsigned rows = 8 * variant.rowGroups, depth = variant.depth();
  unsigned depthBytes = 16 * variant.depthGroups;
  unsigned firstOfB = variant.registersOfA();
  unsigned firstOfC = firstOfB + variant.registersOfB();

  // Rows of A, and columns of B, of `depthBytes` bytes.
  alignas(16) unsigned char bytesOfA[kMaxRows * kMaxDepthBytes];
  alignas(16) unsigned char bytesOfB[kColumns * kMaxDepthBytes];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    unsigned group = lane / 4, byte = lane % 4 * 4;
    const uint32_t *registers = values[lane];
    for (unsigned i = 0; i < firstOfB; ++i) {
      unsigned row = group + 8 * (i % variant.rowGroups);
      std::memcpy(bytesOfA + row * depthBytes + 16 * (i / variant.rowGroups) +
                      byte,
                  registers + i, 4);
    }
    for (unsigned i = 0; i < variant.depthGroups; ++i)
      std::memcpy(bytesOfB + group * depthBytes + 16 * i + byte,
                  registers + firstOfB + i, 4);
  }
  alignas(32) float a[kMaxRows * kMaxDepth], columns[kColumns * kMaxDepth];
  alignas(32) float b[kMaxDepth][kColumns];
  widen(variant.a, bytesOfA, rows * depthBytes, a);
  widen(variant.b, bytesOfB, kColumns * depthBytes, columns);
  for (unsigned k = 0; k < depth; ++k)
    for (unsigned column = 0; column < kColumns; ++column)
      b[k][column] = columns[column * depth + k];

  alignas(32) float sums[kMaxRows][kColumns] = {};
  auto forEachOfC = [&](auto function) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned i = 0; i < variant.registersOfC(); ++i)
        function(values[lane][firstOfC + i], lane / 4, lane % 4 * 2, i);
  };
  switch (variant.accumulator) {
  case MmaAccumulator::F32:
    forEachOfC([&](uint32_t value, unsigned row, unsigned column, unsigned i) {
      sums[row + 8 * (i / 2)][column + i % 2] = bitCast<float>(value);
    });
    accumulate(a, b, rows, depth, sums);
    forEachOfC([&](uint32_t &value, unsigned row, unsigned column, unsigned i) {
      value = bitCast<uint32_t>(sums[row + 8 * (i / 2)][column + i % 2]);
    });
    return;
  case MmaAccumulator::F16:
    forEachOfC([&](uint32_t value, unsigned row, unsigned column, unsigned i) {
      float *to = &sums[row + 8 * i][column];
      to[0] = fromF16(static_cast<uint16_t>(value));
      to[1] = fromF16(static_cast<uint16_t>(value >> 16));
    });
    accumulate(a, b, rows, depth, sums);
    forEachOfC([&](uint32_t &value, unsigned row, unsigned column, unsigned i) {
      const float *from = &sums[row + 8 * i][column];
      value = toF16(from[0]) | uint32_t(toF16(from[1])) << 16;
    });
    return;
  case MmaAccumulator::I32:
  case MmaAccumulator::SaturatedI32:
    accumulate(a, b, rows, depth, sums);
    forEachOfC([&](uint32_t &value, unsigned row, unsigned column, unsigned i) {
      value = addInteger(value, sums[row + 8 * (i / 2)][column + i % 2],
                         variant.accumulator == MmaAccumulator::SaturatedI32);
    });
    return;
  }
}

//===----------------------------------------------------------------------===//
// Products of a warpgroup
//===----------------------------------------------------------------------===//

uint32_t MatrixDescriptor::chunk(unsigned outer, unsigned inner,
                                 bool isTransposed) const {
  uint32_t leading = field(16), stride = field(32);
  auto mode = static_cast<unsigned>(bits >> 62);
  unsigned width = mode == 0 ? 16 : 256 >> mode;
  uint32_t offset = field(0) + outer % 8 * width;
  if (!isTransposed)
    offset += outer / 8 * stride + inner * (mode == 0 ? leading : 16);
  else if (mode == 0)
    offset += outer / 8 * leading + inner * stride;
  else
    offset +=
        outer / 8 * stride + 16 * inner / width * leading + 16 * inner % width;
  // Swizzles exchange bits 4 to 6 by the address as a whole.
  unsigned mask = mode == 0 ? 0 : (8u >> (mode - 1)) - 1;
  offset ^= (offset >> 7 & mask) << 4;
  return offset & ((1u << kAddressBits) - 1);
}

void ftuner::emulator::multiplyGroup(
    const GroupVariant &variant, const GroupOperand &operandA,
    const GroupOperand &operandB,
    const std::array<uint32_t *, kGroupThreads> &registers) {
  constexpr unsigned kRows = GroupVariant::kRows;
  unsigned depth = 8 * MmaVariant::packing(variant.a);
  alignas(32) float a[kRows * kMaxDepth];
  for (unsigned row = 0; row < kRows; row += kMaxRows)
    widen(variant.a, operandA.bytes + row * kMaxDepthBytes,
          kMaxRows * kMaxDepthBytes, a + row * depth);
  if (variant.isNegative)
    for (unsigned i = 0; i < kRows * depth; ++i)
      a[i] = -a[i];
  bool isHalf = variant.accumulator == MmaAccumulator::F16;
  bool isInteger = variant.accumulator == MmaAccumulator::I32 ||
                   variant.accumulator == MmaAccumulator::SaturatedI32;
  unsigned perTile = isHalf ? 2 : 4;
  for (unsigned tile = 0; tile < variant.columns / kColumns; ++tile) {
    alignas(32) float columns[kColumns * kMaxDepth], b[kMaxDepth][kColumns];
    widen(variant.b, operandB.bytes + tile * kColumns * kMaxDepthBytes,
          kColumns * kMaxDepthBytes, columns);
    for (unsigned k = 0; k < depth; ++k)
      for (unsigned column = 0; column < kColumns; ++column)
        b[k][column] = columns[column * depth + k];
    alignas(32) float sums[kRows][kColumns] = {};
    // `function` takes a register, and where its first element lies in `sums`.
    auto forEachOfD = [&](auto function) {
      for (unsigned thread = 0; thread < kGroupThreads; ++thread) {
        if (!registers[thread])
          continue;
        unsigned row = thread / kWarpSize * 16 + thread % kWarpSize / 4;
        for (unsigned i = 0; i < perTile; ++i)
          function(registers[thread][tile * perTile + i],
                   sums[row + 8 * (isHalf ? i : i / 2)] + thread % 4 * 2 +
                       (isHalf ? 0 : i % 2));
      }
    };
    if (!isInteger && !variant.startsAtZero)
      forEachOfD([&](uint32_t value, float *sum) {
        if (isHalf) {
          sum[0] = fromF16(static_cast<uint16_t>(value));
          sum[1] = fromF16(static_cast<uint16_t>(value >> 16));
        } else {
          sum[0] = bitCast<float>(value);
        }
      });
    accumulate(a, b, kRows, depth, sums);
    forEachOfD([&](uint32_t &value, const float *sum) {
      if (isInteger)
        value = addInteger(variant.startsAtZero ? 0 : value, sum[0],
                           variant.accumulator == MmaAccumulator::SaturatedI32);
      else if (isHalf)
        value = toF16(sum[0]) | uint32_t(toF16(sum[1])) << 16;
      else
        value = bitCast<uint32_t>(sum[0]);
    });
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {
/// Places of the two elements of a lane's register in its matrix.
struct ElementPair {
  unsigned row[2], byte[2];

  ElementPair(unsigned lane, bool isTransposed) {
    unsigned group = lane / 4, pair = lane % 4 * 2;
    for (unsigned i = 0; i < 2; ++i) {
      row[i] = isTransposed ? pair + i : group;
      byte[i] = 2 * (isTransposed ? group : pair + i);
    }
  }
};
} // namespace

/// Calls `function` for each lane, register of it, half of that and address of
/// the half, which may be null.
template <typename Function>
static void forEachElement(const MatrixCopy &copy, const MatrixRows &rows,
                           Function function) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    ElementPair pair(lane, copy.isTransposed);
    for (unsigned matrix = 0; matrix < copy.count; ++matrix)
      for (unsigned half = 0; half < 2; ++half) {
        char *row = rows[8 * matrix + pair.row[half]];
        function(lane, matrix, half, row ? row + pair.byte[half] : nullptr);
      }
  }
}

void ftuner::emulator::loadMatrices(const MatrixCopy &copy,
                                    const MatrixRows &rows,
                                    const WarpValues &values) {
  forEachElement(
      copy, rows,
      [&](unsigned lane, unsigned matrix, unsigned half, const char *address) {
        uint16_t element = 0xffff;
        if (address)
          std::memcpy(&element, address, 2);
        uint32_t &value = values[lane][matrix];
        value = half == 0 ? element : value | uint32_t(element) << 16;
      });
}

void ftuner::emulator::storeMatrices(const MatrixCopy &copy,
                                     const MatrixRows &rows,
                                     const WarpValues &values) {
  forEachElement(
      copy, rows,
      [&](unsigned lane, unsigned matrix, unsigned half, char *address) {
        auto element = static_cast<uint16_t>(values[lane][matrix] >> 16 * half);
        if (address)
          std::memcpy(address, &element, 2);
      });
}
