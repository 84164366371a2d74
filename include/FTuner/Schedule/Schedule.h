//===- Schedule.h - How a codegen path computes a tile ----------*- C++ -*-===//
//
// A schedule is what a codegen path decides beside the block tile: how threads
// share the tile, how copies are pipelined, how wide accesses are. Only the
// path knows what its fields mean (its table describes them: ScheduleTable.h);
// all others copy, compare, hash and hand back. In IR it is an attribute of the
// path's own (`ScheduleAttrInterface`).
//
// Rejected: a class hierarchy behind pointers. A search compares and copies
// millions of schedules, and caches key on them: a few numbers are both.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_SCHEDULE_H
#define FTUNER_SCHEDULE_SCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace ftuner {

class CodegenModel;

class Schedule {
public:
  /// Fields that fit, in a cache line together with the path. A table of more
  /// does not compile.
  static constexpr size_t capacity = 14;

  /// Creates a schedule of no path, for a default family until a path sets it.
  Schedule() = default;
  /// Fields that are not given are 0, and numbers beyond 32 bits the nearest
  /// that fits. The path outlives the schedule.
  Schedule(const CodegenModel &path, llvm::ArrayRef<int64_t> values)
      : owner(&path) {
    assert(values.size() <= capacity && "a schedule has few fields");
    std::transform(values.begin(), values.end(), numbers.begin(), narrow);
  }

  bool isSet() const { return owner != nullptr; }
  /// The path that made the schedule; requires isSet().
  const CodegenModel &path() const {
    assert(owner && "expected the schedule of a path");
    return *owner;
  }
  const std::array<int32_t, capacity> &fields() const { return numbers; }
  /// Returns its text without the shape of blocks, e.g. "stages 3 vector 4";
  /// requires isSet().
  std::string str() const;

  friend bool operator==(const Schedule &lhs, const Schedule &rhs) {
    return lhs.owner == rhs.owner && lhs.numbers == rhs.numbers;
  }
  friend bool operator!=(const Schedule &lhs, const Schedule &rhs) {
    return !(lhs == rhs);
  }

private:
  static int32_t narrow(int64_t value) {
    using Limits = std::numeric_limits<int32_t>;
    return static_cast<int32_t>(
        std::clamp<int64_t>(value, Limits::min(), Limits::max()));
  }

  const CodegenModel *owner = nullptr;
  std::array<int32_t, capacity> numbers = {};
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_SCHEDULE_H
