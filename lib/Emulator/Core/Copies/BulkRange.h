//===- BulkRange.h - Bytes of a bulk copy -----------------------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_COPIES_BULKRANGE_H
#define FTUNER_LIB_EMULATOR_CORE_COPIES_BULKRANGE_H

#include "FTuner/Runtime/EmulatedTensorMap.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace ftuner::emulator {

/// The source or target of a bulk copy (cp.async.bulk): a range of bytes, or a
/// box of a tensor. In shared memory it lies densely; in global memory, rows.
class BulkRange {
public:
  /// Addresses and sizes are multiples of so many bytes, and shared memory is
  /// written and read in chunks of so many.
  static constexpr uint32_t kChunk = 16;
  /// Alignment of a box in shared memory.
  static constexpr uint32_t kBoxAlignment = 128;

  BulkRange() = default;
  BulkRange(char *global, uint32_t bytes) : global(global), rowBytes(bytes) {}
  /// The box whose first element has these coordinates, innermost first.
  BulkRange(const EmulatedTensorMap &map, const int32_t *coordinates);

  bool isBox() const { return rank != 0; }
  /// Bytes in shared memory, whatever part of a box lies in the tensor.
  uint64_t bytes() const { return rowBytes * rows(); }
  /// Chunk `offset` / kChunk of the range's bytes, in shared memory at `base`.
  char *chunk(char *base, uint64_t offset) const;

  /// A run of global memory, and where its bytes are in the range.
  struct Row {
    char *address;
    uint64_t offset, bytes;
  };
  /// Calls `function` on each run of global memory that is copied.
  template <typename Function>
  void forEachRow(Function function) const;

  /// Reads what a copy to shared memory writes there, bytes() bytes.
  void load(char *bytes) const;
  /// Writes what a copy from shared memory found there.
  void store(const char *bytes) const;

  /// Rows of a box, of the elements along its innermost dimension.
  uint64_t rows() const {
    uint64_t count = 1;
    for (uint32_t i = 1; i < rank; ++i)
      count *= map.boxElements(i);
    return count;
  }

private:
  char *global = nullptr;
  uint64_t rowBytes = 0;
  uint32_t rank = 0; ///< 0 for a range of bytes.
  EmulatedTensorMap map = {};
  std::array<int32_t, kMaxTensorMapRank> coordinates = {};
};

template <typename Function>
void BulkRange::forEachRow(Function function) const {
  if (!isBox()) {
    function(Row{global, 0, rowBytes});
    return;
  }
  int64_t elementBytes = map.elementBytes();
  int64_t first = coordinates[0], size = static_cast<int64_t>(map.sizes[0]);
  int64_t begin = std::max<int64_t>(first, 0);
  int64_t end = std::min<int64_t>(first + map.box[0], size);
  if (begin >= end)
    return;
  uint64_t count = rows();
  for (uint64_t row = 0; row < count; ++row) {
    uint64_t rest = row;
    int64_t address = static_cast<int64_t>(map.address);
    bool isInside = true;
    for (uint32_t i = 1; i < rank; ++i) {
      int64_t at =
          coordinates[i] + static_cast<int64_t>(rest % map.boxElements(i) *
                                                map.elementStrides[i]);
      rest /= map.boxElements(i);
      isInside &= at >= 0 && at < static_cast<int64_t>(map.sizes[i]);
      address += at * static_cast<int64_t>(map.strides[i - 1]);
    }
    if (isInside)
      function(Row{reinterpret_cast<char *>(address + begin * elementBytes),
                   row * rowBytes +
                       static_cast<uint64_t>((begin - first) * elementBytes),
                   static_cast<uint64_t>((end - begin) * elementBytes)});
  }
}

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_COPIES_BULKRANGE_H
