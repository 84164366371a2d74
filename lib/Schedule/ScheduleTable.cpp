//===- ScheduleTable.cpp - The fields of a path's schedules ---------------===//
#include "FTuner/Schedule/ScheduleTable.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;

std::string ScheduleField::legalValues() const {
  if (numFew > 0) {
    std::string text = std::to_string(few[0]);
    for (size_t i = 1; i < numFew; ++i)
      text += (i + 1 < numFew ? ", " : " or ") + std::to_string(few[i]);
    return text;
  }
  std::string first = std::to_string(least);
  if (most == std::numeric_limits<int32_t>::max())
    return "at least " + first;
  return first + (most - least == 1 ? " or " : " to ") + std::to_string(most);
}

Schedule ftuner::withDefaults(const Schedule &schedule,
                              llvm::ArrayRef<const ScheduleField *> chosen) {
  llvm::SmallVector<int64_t> values(schedule.fields().begin(),
                                    schedule.fields().end());
  for (auto [value, field] :
       llvm::zip_equal(values, schedule.path().scheduleFields()))
    if (llvm::is_contained(chosen, &field))
      value = field.otherwise;
  return Schedule(schedule.path(), values);
}

llvm::ArrayRef<ScheduleField>
ftuner::parameterAt(llvm::ArrayRef<ScheduleField> fields, size_t first) {
  return fields.drop_front(first).take_while([&](const ScheduleField &field) {
    return field.key == fields[first].key;
  });
}

namespace {
/// A parameter of a schedule's attribute, and its numbers.
struct Parameter {
  llvm::ArrayRef<ScheduleField> fields;
  llvm::ArrayRef<int32_t> numbers;

  /// Returns whether attribute and text leave it out.
  bool isLeftOut() const {
    return llvm::all_of(llvm::zip(fields, numbers), [](const auto &pair) {
      const auto &[field, number] = pair;
      return field.isOptional && number == field.otherwise;
    });
  }
  /// The numbers, those of lists in brackets.
  std::string value(llvm::StringRef separator) const {
    std::string text = llvm::join(
        llvm::map_range(numbers,
                        [](int32_t number) { return std::to_string(number); }),
        separator);
    return numbers.size() == 1 ? text : "[" + text + "]";
  }
};
} // namespace

static void
forEachParameter(const Schedule &schedule,
                 llvm::function_ref<void(const Parameter &)> visit) {
  llvm::ArrayRef<ScheduleField> fields = schedule.path().scheduleFields();
  for (size_t first = 0; first < fields.size();) {
    llvm::ArrayRef<ScheduleField> together = parameterAt(fields, first);
    visit({together,
           llvm::ArrayRef(schedule.fields()).slice(first, together.size())});
    first += together.size();
  }
}

std::string Schedule::str() const {
  std::string text;
  forEachParameter(*this, [&](const Parameter &parameter) {
    const ScheduleField &field = parameter.fields.front();
    if (field.label.empty() || parameter.isLeftOut())
      return;
    text += (text.empty() ? "" : " ") + field.label.str();
    // A flag is its label.
    if (!field.isFlag)
      text += " " + parameter.value(",");
  });
  return text;
}

std::string ftuner::attributeText(const Schedule &schedule) {
  std::string text;
  forEachParameter(schedule, [&](const Parameter &parameter) {
    if (parameter.isLeftOut())
      return;
    const ScheduleField &field = parameter.fields.front();
    text += (text.empty() ? "" : ", ") + field.key.str() + " = ";
    text += !field.isFlag               ? parameter.value(", ")
            : parameter.numbers.front() ? "true"
                                        : "false";
  });
  return text;
}

// Here and not beside the list of paths, which programs without paths lack.
llvm::Error CodegenModel::invalid(const llvm::Twine &text) const {
  return llvm::createStringError(
      std::make_error_code(std::errc::invalid_argument), name() + ": " + text);
}

llvm::Error ftuner::checkFields(const CodegenModel &path,
                                llvm::ArrayRef<int64_t> values) {
  for (auto [field, value] : llvm::zip_equal(path.scheduleFields(), values))
    if (!field.allows(value))
      return path.invalid("expected " + field.name + " of " +
                          field.legalValues() + ", but got " +
                          llvm::Twine(value));
  return llvm::Error::success();
}

llvm::Error ftuner::checkSchedule(const Schedule &schedule) {
  const CodegenModel &path = schedule.path();
  const ScheduleTable &table = path.scheduleTable();
  bool areLegal = llvm::all_of(llvm::zip(table.fields, schedule.fields()),
                               [](const auto &pair) {
                                 const auto &[field, number] = pair;
                                 return field.allows(number);
                               });
  if (!areLegal) {
    llvm::SmallVector<int64_t> values(
        llvm::ArrayRef(schedule.fields()).take_front(table.fields.size()));
    return checkFields(path, values);
  }
  for (const ScheduleRule &rule : table.rules)
    if (!rule.holds(schedule))
      return path.invalid("expected " + rule.expected + ", but got " +
                          attributeText(schedule));
  return llvm::Error::success();
}
