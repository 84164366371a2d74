//===- ScheduleAttr.cpp - The schedule of a path in IR --------------------===//
#include "FTuner/Codegen/IR/ScheduleAttr.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ftuner;

using Fields = ArrayRef<ScheduleField>;

llvm::hash_code ftuner::detail::ScheduleStorage::hashKey(const KeyTy &key) {
  return llvm::hash_combine(&key.path(),
                            llvm::hash_combine_range(key.fields()));
}

LogicalResult
ftuner::detail::emitIfError(function_ref<InFlightDiagnostic()> emitError,
                            llvm::Error error) {
  if (!error)
    return success();
  return emitError() << llvm::toString(std::move(error));
}

/// Reads a flag, a number or a list of numbers into the fields of a parameter.
static ParseResult parseValue(AsmParser &parser, Fields fields,
                              MutableArrayRef<int64_t> values) {
  if (fields.front().isFlag) {
    FailureOr<bool> flag = FieldParser<bool>::parse(parser);
    if (failed(flag))
      return failure();
    values.front() = *flag;
    return success();
  }
  if (fields.size() == 1)
    return parser.parseInteger(values.front());
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> list;
  if (parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&]() -> ParseResult {
            return parser.parseInteger(list.emplace_back());
          }))
    return failure();
  if (list.size() != fields.size())
    return parser.emitError(place)
           << "expected " << fields.size() << " numbers of '"
           << fields.front().key << "', but got " << list.size();
  llvm::copy(list, values.begin());
  return success();
}

/// "'a', 'b' or 'c'": parameters that are optional.
static std::string optionalKeys(Fields fields) {
  SmallVector<std::string> keys;
  for (const ScheduleField &field : fields)
    if (field.isOptional &&
        (keys.empty() || keys.back() != "'" + field.key.str() + "'"))
      keys.push_back("'" + field.key.str() + "'");
  std::string last = keys.pop_back_val();
  return keys.empty() ? last : llvm::join(keys, ", ") + " or " + last;
}

/// Reads parameters that may be left out, in any order.
static ParseResult parseOptional(AsmParser &parser, Fields fields,
                                 MutableArrayRef<int64_t> values) {
  llvm::StringSet<> given;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc place = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    const ScheduleField *field = llvm::find_if(
        fields, [&](const ScheduleField &field) { return field.key == key; });
    if (field == fields.end())
      return parser.emitError(place) << "expected " << optionalKeys(fields)
                                     << ", but got '" << key << "'";
    if (!given.insert(key).second)
      return parser.emitError(place) << "'" << key << "' is given twice";
    size_t first = field - fields.begin();
    Fields together = parameterAt(fields, first);
    if (parseValue(parser, together, values.slice(first, together.size())))
      return failure();
  }
  return success();
}

FailureOr<Schedule> ftuner::detail::parseSchedule(AsmParser &parser,
                                                  const CodegenModel &path) {
  SMLoc place = parser.getCurrentLocation();
  Fields fields = path.scheduleFields();
  SmallVector<int64_t> values;
  for (const ScheduleField &field : fields)
    values.push_back(field.otherwise);
  MutableArrayRef<int64_t> rest = values;
  if (parser.parseLess())
    return failure();
  size_t next = 0;
  while (next < fields.size() && !fields[next].isOptional) {
    Fields together = parameterAt(fields, next);
    if (next > 0 && parser.parseComma())
      return failure();
    if (parser.parseKeyword(together.front().key) || parser.parseEqual() ||
        parseValue(parser, together, rest.slice(next, together.size())))
      return failure();
    next += together.size();
  }
  if (next < fields.size() &&
      parseOptional(parser, fields.drop_front(next), rest.drop_front(next)))
    return failure();
  if (parser.parseGreater())
    return failure();
  auto emitError = [&] { return parser.emitError(place); };
  // Before they become numbers of 32 bits.
  if (failed(ftuner::detail::emitIfError(emitError, checkFields(path, values))))
    return failure();
  Schedule schedule(path, values);
  if (failed(ftuner::detail::emitIfError(emitError, checkSchedule(schedule))))
    return failure();
  return schedule;
}
