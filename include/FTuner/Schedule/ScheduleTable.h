//===- ScheduleTable.h - The fields of a path's schedules -------*- C++ -*-===//
//
// A path describes its schedules once, by a table with a row for each field:
// the member of its struct, the names, the legal values, and what the field
// says. All else follows from the table:
//
// * packing into a `Schedule` and unpacking (`packSchedule`, `unpackSchedule`),
// * the text for users (`Schedule::str`),
// * the attribute in IR, its syntax and its verification
//   (FTuner/Codegen/IR/ScheduleAttr.h),
// * JSON (FamilyJson.h) and rows of the C API,
// * what is refused whatever the workload is (`checkSchedule`),
// * the reference (docs/reference/schedules.md).
//
// A struct with a table:
//
//   struct MineSchedule {
//     int64_t threads = 32;
//     bool swapOperands = false;
//     static constexpr auto rows() {
//       using S = MineSchedule;
//       return std::array{
//           ScheduleRow("threads", &S::threads, "threads of a block")
//               .range(1, 1024),
//           ScheduleRow("swap_operands", &S::swapOperands, "…").optional()};
//     }
//     static MineSchedule of(const Schedule &schedule) {
//       return unpackSchedule<MineSchedule>(schedule);
//     }
//     Schedule pack() const { return packSchedule(mineModel(), *this); }
//   };
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_SCHEDULETABLE_H
#define FTUNER_SCHEDULE_SCHEDULETABLE_H

#include "FTuner/Schedule/Schedule.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace ftuner {

/// A field of a path's schedules, whatever its member's type.
struct ScheduleField {
  /// In JSON, rows of the C API and messages: lower case with underscores, of
  /// no other field of the path.
  llvm::StringLiteral name = "";
  /// Its meaning, as a part of a sentence.
  llvm::StringLiteral text = "";
  /// In the attribute; neighbours with one key are a list there.
  llvm::StringLiteral key = "";
  /// In the text for users, of a list that of its first field; empty where the
  /// tiles say it already.
  llvm::StringLiteral label = "";
  /// The legal values, ascending, where they are few; else those from `least`
  /// to `most`.
  static constexpr size_t maxFew = 6;
  std::array<int64_t, maxFew> few = {};
  size_t numFew = 0;
  int64_t least = 0, most = std::numeric_limits<int32_t>::max();
  /// Unless given.
  int64_t otherwise = 0;
  /// False or true, 0 or 1 in numbers.
  bool isFlag = false;
  /// Attribute and text leave it out where it is as `otherwise` says.
  bool isOptional = false;
  /// Families with another value than `otherwise` wait behind a gate
  /// (`Gate`, CodegenModel.h). Optional fields alone may be gated.
  bool isGated = false;

  constexpr bool allows(int64_t value) const {
    for (size_t i = 0; i < numFew; ++i)
      if (value == few[i])
        return true;
    return numFew == 0 && value >= least && value <= most;
  }
  /// The legal values in words: "1 to 1024", "1, 4, 8 or 16", "at least 0".
  std::string legalValues() const;
};

/// A rule for several fields, whatever the workload and the device are.
struct ScheduleRule {
  /// The property of a schedule that follows the rule: "expected …".
  llvm::StringLiteral expected;
  bool (*holds)(const Schedule &schedule);
};

/// Facts of a path's schedules that do not need the path.
struct ScheduleTable {
  /// The hardware that computes a tile, in a few words.
  llvm::StringLiteral summary;
  /// The numbers that block tiles are multiples of, in words.
  llvm::StringLiteral tiles;
  llvm::ArrayRef<ScheduleField> fields;
  llvm::ArrayRef<ScheduleRule> rules;
};

//===----------------------------------------------------------------------===//
// The table of a struct
//===----------------------------------------------------------------------===//

/// A field, and the member of a path's struct that holds it.
template <typename ScheduleT>
struct ScheduleRow {
  ScheduleField field;
  /// One of them.
  int64_t ScheduleT::*number = nullptr;
  bool ScheduleT::*flag = nullptr;

  constexpr ScheduleRow(llvm::StringLiteral name, int64_t ScheduleT::*member,
                        llvm::StringLiteral text)
      : number(member) {
    field.name = field.key = name;
    field.text = text;
  }
  constexpr ScheduleRow(llvm::StringLiteral name, bool ScheduleT::*member,
                        llvm::StringLiteral text)
      : flag(member) {
    field.name = field.key = name;
    field.text = text;
    field.isFlag = true;
    field.most = 1;
  }

  /// In the attribute, if that has another name.
  constexpr ScheduleRow key(llvm::StringLiteral key) const {
    ScheduleRow row = *this;
    row.field.key = key;
    return row;
  }
  constexpr ScheduleRow label(llvm::StringLiteral label) const {
    ScheduleRow row = *this;
    row.field.label = label;
    return row;
  }
  constexpr ScheduleRow range(int64_t least, int64_t most) const {
    ScheduleRow row = *this;
    row.field.least = least;
    row.field.most = most;
    return row;
  }
  /// These values alone, ascending.
  template <size_t N>
  constexpr ScheduleRow among(const int64_t (&values)[N]) const {
    static_assert(N <= ScheduleField::maxFew, "expected few values");
    ScheduleRow row = *this;
    for (int64_t value : values)
      row.field.few[row.field.numFew++] = value;
    row.field.least = values[0];
    row.field.most = values[N - 1];
    return row;
  }
  constexpr ScheduleRow optional() const {
    ScheduleRow row = *this;
    row.field.isOptional = true;
    return row;
  }
  constexpr ScheduleRow gated() const {
    ScheduleRow row = *this;
    row.field.isGated = true;
    return row;
  }
};

namespace detail {
template <typename ScheduleT>
inline constexpr auto scheduleRows = ScheduleT::rows();

template <typename ScheduleT, size_t I>
constexpr int64_t read(const ScheduleT &values) {
  constexpr ScheduleRow<ScheduleT> row = scheduleRows<ScheduleT>[I];
  if constexpr (row.flag != nullptr)
    return values.*row.flag;
  else
    return values.*row.number;
}

template <typename ScheduleT, size_t I>
constexpr void write(ScheduleT &values, int64_t number) {
  constexpr ScheduleRow<ScheduleT> row = scheduleRows<ScheduleT>[I];
  if constexpr (row.flag != nullptr)
    values.*row.flag = number != 0;
  else
    values.*row.number = number;
}

template <typename ScheduleT, size_t... I>
constexpr auto makeFields(std::index_sequence<I...>) {
  std::array<ScheduleField, sizeof...(I)> fields = {
      scheduleRows<ScheduleT>[I].field...};
  ((fields[I].otherwise = read<ScheduleT, I>(ScheduleT())), ...);
  return fields;
}

/// Returns true where numbers of 32 bits hold all values, defaults are legal,
/// optional fields stand behind the others, and gated ones are optional.
template <size_t N>
constexpr bool areFields(const std::array<ScheduleField, N> &fields) {
  bool isBehindOptional = false;
  for (const ScheduleField &field : fields) {
    if (field.least < 0 || field.least > field.most ||
        field.most > std::numeric_limits<int32_t>::max() ||
        !field.allows(field.otherwise) ||
        (field.isGated && !field.isOptional) ||
        (isBehindOptional && !field.isOptional))
      return false;
    isBehindOptional = field.isOptional;
  }
  return true;
}

template <typename ScheduleT, size_t... I>
Schedule pack(const CodegenModel &path, const ScheduleT &values,
              std::index_sequence<I...>) {
  return Schedule(path, {read<ScheduleT, I>(values)...});
}

template <typename ScheduleT, size_t... I>
ScheduleT unpack(const Schedule &schedule, std::index_sequence<I...>) {
  ScheduleT values;
  (write<ScheduleT, I>(values, schedule.fields()[I]), ...);
  return values;
}

template <typename ScheduleT>
using RowIndices = std::make_index_sequence<scheduleRows<ScheduleT>.size()>;
} // namespace detail

/// The fields of a struct, in the order of its rows.
template <typename ScheduleT>
inline constexpr auto fieldsOf =
    detail::makeFields<ScheduleT>(detail::RowIndices<ScheduleT>());

/// The struct's members as a schedule of the path. Those beyond 32 bits become
/// the nearest number that fits, which is as illegal.
template <typename ScheduleT>
Schedule packSchedule(const CodegenModel &path, const ScheduleT &values) {
  static_assert(fieldsOf<ScheduleT>.size() <= Schedule::capacity,
                "more fields than a schedule holds: raise Schedule::capacity");
  static_assert(detail::areFields(fieldsOf<ScheduleT>),
                "expected legal defaults, values from 0 on that fit in 32 "
                "bits, and optional fields last");
  return detail::pack(path, values, detail::RowIndices<ScheduleT>());
}

/// The members of a schedule that `packSchedule` made.
template <typename ScheduleT>
ScheduleT unpackSchedule(const Schedule &schedule) {
  return detail::unpack<ScheduleT>(schedule, detail::RowIndices<ScheduleT>());
}

//===----------------------------------------------------------------------===//
// What follows from it
//===----------------------------------------------------------------------===//

/// Fields that are one parameter of the attribute: a number, a flag, or a list.
llvm::ArrayRef<ScheduleField> parameterAt(llvm::ArrayRef<ScheduleField> fields,
                                          size_t first);

/// Returns the text between the brackets of the schedule's attribute, e.g.
/// "threads = [4, 16], stages = 2, vector = 1".
std::string attributeText(const Schedule &schedule);

/// The schedule with some fields of its path at their defaults.
Schedule withDefaults(const Schedule &schedule,
                      llvm::ArrayRef<const ScheduleField *> fields);

/// Says which of a path's fields has no legal value. There is a value for each.
llvm::Error checkFields(const CodegenModel &path,
                        llvm::ArrayRef<int64_t> values);
/// Says what is wrong with a schedule whatever the workload and the device are:
/// a field, or a rule that it breaks.
llvm::Error checkSchedule(const Schedule &schedule);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_SCHEDULETABLE_H
