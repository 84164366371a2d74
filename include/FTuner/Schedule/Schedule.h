//===- Schedule.h - How a codegen path computes a tile ----------*- C++ -*-===//
//
// A schedule is what a codegen path decides beside the block tile: how threads
// share the tile, how copies are pipelined, how wide accesses are. Only the
// path knows what its fields mean (`CodegenModel::scheduleFields` names them);
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

namespace ftuner {

class CodegenModel;

class Schedule {
public:
  static constexpr size_t maxFields = 11;

  /// Of no path: what a default family has until a path makes it.
  Schedule() = default;
  /// Fields that are not given are 0. The path outlives the schedule.
  Schedule(const CodegenModel &path, llvm::ArrayRef<int64_t> values)
      : owner(&path) {
    assert(values.size() <= maxFields && "a schedule has few fields");
    std::copy(values.begin(), values.end(), numbers.begin());
  }

  bool isSet() const { return owner != nullptr; }
  /// The path that made the schedule; requires isSet().
  const CodegenModel &path() const {
    assert(owner && "expected the schedule of a path");
    return *owner;
  }
  const std::array<int64_t, maxFields> &fields() const { return numbers; }

  friend bool operator==(const Schedule &lhs, const Schedule &rhs) {
    return lhs.owner == rhs.owner && lhs.numbers == rhs.numbers;
  }
  friend bool operator!=(const Schedule &lhs, const Schedule &rhs) {
    return !(lhs == rhs);
  }

private:
  const CodegenModel *owner = nullptr;
  std::array<int64_t, maxFields> numbers = {};
};

} // namespace ftuner

#endif // FTUNER_SCHEDULE_SCHEDULE_H
