//===- ScheduleSamples.h - Schedules made of a path's table -----*- C++ -*-===//
//
// What tests of every path's table have in common.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_SCHEDULE_SCHEDULESAMPLES_H
#define FTUNER_TEST_UNIT_SCHEDULE_SCHEDULESAMPLES_H

#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace ftuner {

using ScheduleNumbers = llvm::SmallVector<int64_t>;

inline ScheduleNumbers defaultNumbers(const CodegenModel &path) {
  ScheduleNumbers numbers;
  for (const ScheduleField &field : path.scheduleFields())
    numbers.push_back(field.otherwise);
  return numbers;
}

inline Schedule defaultSchedule(const CodegenModel &path) {
  return Schedule(path, defaultNumbers(path));
}

/// Few legal values of a field, the outermost among them.
inline ScheduleNumbers legalNumbers(const ScheduleField &field) {
  ScheduleNumbers numbers;
  for (int64_t number :
       {field.least, field.least + 1, field.otherwise, field.most})
    if (field.allows(number) && !llvm::is_contained(numbers, number))
      numbers.push_back(number);
  for (size_t i = 0; i < field.numFew; ++i)
    if (!llvm::is_contained(numbers, field.few[i]))
      numbers.push_back(field.few[i]);
  return numbers;
}

/// Visits the defaults with each of few legal values of each field.
inline void forEachLegalField(
    const CodegenModel &path,
    llvm::function_ref<void(const ScheduleField &, llvm::ArrayRef<int64_t>)>
        visit) {
  for (auto [index, field] : llvm::enumerate(path.scheduleFields()))
    for (int64_t number : legalNumbers(field)) {
      ScheduleNumbers numbers = defaultNumbers(path);
      numbers[index] = number;
      visit(field, numbers);
    }
}

/// The same with two fields at once.
inline void
forEachLegalPair(const CodegenModel &path,
                 llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit) {
  llvm::ArrayRef<ScheduleField> fields = path.scheduleFields();
  for (size_t one = 0; one < fields.size(); ++one)
    for (size_t other = 0; other < one; ++other)
      for (int64_t first : legalNumbers(fields[one]))
        for (int64_t second : legalNumbers(fields[other])) {
          ScheduleNumbers numbers = defaultNumbers(path);
          numbers[one] = first;
          numbers[other] = second;
          visit(numbers);
        }
}

/// Visits the defaults with each of few illegal values of each field, which is
/// given beside them.
inline void
forEachIllegalField(const CodegenModel &path,
                    llvm::function_ref<void(const ScheduleField &,
                                            llvm::ArrayRef<int64_t>, int64_t)>
                        visit) {
  constexpr int64_t beyond = int64_t(1) << 40;
  for (auto [index, field] : llvm::enumerate(path.scheduleFields()))
    for (int64_t number : {field.least - 1, field.most + 1, beyond, -beyond,
                           std::numeric_limits<int64_t>::min()}) {
      ScheduleNumbers numbers = defaultNumbers(path);
      numbers[index] = number;
      visit(field, numbers, number);
    }
}

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_SCHEDULE_SCHEDULESAMPLES_H
