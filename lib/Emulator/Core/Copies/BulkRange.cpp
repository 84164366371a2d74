//===- BulkRange.cpp - Bytes of a bulk copy -------------------------------===//
#include "Copies/BulkRange.h"
#include <cstring>

using namespace ftuner::emulator;

static constexpr char kNaN =
    static_cast<char>(0xff); ///< A byte of NaN of any type.

/// To the nearest, of two that are as near the even one; infinity and NaN stay.
static void roundToTF32(char *number) {
  constexpr uint32_t kExponent = 0x7f800000, kUnit = 1 << 13;
  uint32_t bits;
  std::memcpy(&bits, number, sizeof(bits));
  if ((bits & kExponent) == kExponent)
    return;
  bits += kUnit / 2 - 1 + (bits / kUnit & 1);
  bits &= ~(kUnit - 1);
  std::memcpy(number, &bits, sizeof(bits));
}

BulkRange::BulkRange(const EmulatedTensorMap &map, const int32_t *first)
    : rowBytes(uint64_t(map.box[0]) * map.elementBytes()), rank(map.rank),
      map(map) {
  std::copy_n(first, rank, coordinates.begin());
}

char *BulkRange::chunk(char *base, uint64_t offset) const {
  auto address = reinterpret_cast<uintptr_t>(base + offset);
  if (!isBox())
    return reinterpret_cast<char *>(address);
  // Bits of the address above the pattern choose the chunk in a row of it.
  constexpr unsigned kChunkBit = 4, kRowBit = 7;
  uintptr_t mask = (uintptr_t(1) << static_cast<unsigned>(map.swizzle)) - 1;
  return reinterpret_cast<char *>(address ^ (address >> kRowBit & mask)
                                                << kChunkBit);
}

void BulkRange::load(char *target) const {
  std::memset(target, isBox() && map.fillsWithNaN ? kNaN : 0, bytes());
  forEachRow([&](const Row &row) {
    std::memcpy(target + row.offset, row.address, row.bytes);
  });
  if (isBox() && map.type == TensorMapType::TFloat32)
    for (uint64_t i = 0; i < bytes(); i += sizeof(uint32_t))
      roundToTF32(target + i);
}

void BulkRange::store(const char *source) const {
  forEachRow([&](const Row &row) {
    std::memcpy(row.address, source + row.offset, row.bytes);
  });
}
