//===- AstTemplate.cpp - Trees of many programs of one structure ----------===//
#include "FTuner/Schedule/AstTemplate.h"
#include "FTuner/Support/JsonFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace ftuner;
using llvm::Twine;

/// Whole numbers that doubles tell apart.
static constexpr double kMostWhole = 1LL << 53;
/// Bound of numbers whose products and sums, of a few, stay finite.
static constexpr double kMostAny = 1e100;
static constexpr double kMostExtent = maxExtent;

static llvm::Error invalid(const Twine &path, const Twine &message) {
  return llvm::createStringError(path + ": " + message);
}

static std::string shown(double value) {
  return std::isfinite(value) ? ftuner::shown(llvm::json::Value(value))
                              : llvm::formatv("{0}", value).str();
}

/// Stores a number where it belongs, if it may stand there.
llvm::Error AstTemplate::store(double value, int64_t *whole, double *number,
                               Bounds bounds, llvm::StringRef path) {
  bool isTooLarge = value > bounds.most;
  bool isRight = value >= bounds.least && !isTooLarge &&
                 (!whole || value == std::floor(value));
  if (!isRight)
    return invalid(path, Twine("expected a ") + (whole ? "whole " : "") +
                             "number of at " +
                             (isTooLarge ? "most " + shown(bounds.most)
                                         : "least " + shown(bounds.least)) +
                             ", but got " + shown(value));
  if (whole)
    *whole = static_cast<int64_t>(value);
  else
    *number = value;
  return llvm::Error::success();
}

class AstTemplate::Reader {
public:
  Reader(AstTemplate &result, size_t numColumns)
      : result(result), tree(result.tree), numColumns(numColumns) {}

  llvm::Error read(const llvm::json::Object &object);

private:
  using Object = llvm::json::Object;
  using Value = llvm::json::Value;
  /// Reads one element of an array.
  using ReadElement =
      llvm::function_ref<llvm::Error(const Value &, const Twine &)>;

  llvm::Error number(const Value &value, int64_t *whole, double *any,
                     Bounds bounds, const std::string &path);
  /// A field that must be there, unless it is optional.
  llvm::Error number(const Object &object, llvm::StringRef field,
                     int64_t &whole, Bounds bounds, const Twine &path,
                     bool isOptional = false);
  llvm::Error numbers(const Object &object, llvm::StringRef field,
                      llvm::SmallVectorImpl<int64_t> &values, Bounds bounds,
                      const Twine &path);
  llvm::Error elements(const Object &object, llvm::StringRef field,
                       const Twine &path, ReadElement read);
  llvm::Error text(const Object &object, llvm::StringRef field,
                   std::string &value, const Twine &path);
  template <typename Enum>
  llvm::Error choice(const Object &object, llvm::StringRef field, Enum last,
                     Enum &value, const Twine &path);
  llvm::Error flag(const Object &object, llvm::StringRef field, bool &value,
                   const Twine &path, bool isOptional);
  llvm::Error keys(const Object &object, llvm::ArrayRef<llvm::StringRef> known,
                   const Twine &path);
  llvm::Error readLoop(const Value &value, const Twine &path);
  llvm::Error readBuffer(const Value &value, const Twine &path);
  llvm::Error readApart(const Value &value, AstAccess &access, size_t number,
                        const Twine &path);
  llvm::Error readStatement(const Value &value, const Twine &path);
  llvm::Error readAccess(const Value &value, AstStatement &statement,
                         size_t number, const Twine &path);
  llvm::Error place(const AstStatement &statement, const Twine &path);
  llvm::Error checkWritten(const Object &object);
  llvm::Error expectNoColumns(const Twine &path) {
    return result.slots.empty()
               ? llvm::Error::success()
               : invalid(path, "expected a tree without columns");
  }

  AstTemplate &result;
  ProgramAst &tree;
  size_t numColumns;
  size_t opened = 0;
};

static const llvm::json::Object *objectOf(const llvm::json::Value &value) {
  return value.getAsObject();
}

llvm::Error AstTemplate::Reader::keys(const Object &object,
                                      llvm::ArrayRef<llvm::StringRef> known,
                                      const Twine &path) {
  llvm::SmallVector<llvm::StringRef> unknown;
  for (const auto &field : object)
    if (!llvm::is_contained(known, llvm::StringRef(field.first)))
      unknown.push_back(field.first);
  llvm::sort(unknown);
  return unknown.empty()
             ? llvm::Error::success()
             : invalid(path, "unknown field '" + unknown.front() +
                                 "': expected " + llvm::join(known, ", "));
}

llvm::Error AstTemplate::Reader::number(const Value &value, int64_t *whole,
                                        double *any, Bounds bounds,
                                        const std::string &path) {
  if (const Object *object = objectOf(value)) {
    std::optional<int64_t> column = object->getInteger("column");
    if (object->size() != 1 || !column || *column < 0 ||
        static_cast<size_t>(*column) >= numColumns)
      return invalid(path,
                     "expected a number, or {\"column\": …} with one of " +
                         Twine(numColumns) + " columns, but got " +
                         ftuner::shown(value));
    result.slots.push_back(
        {whole, any, bounds, static_cast<size_t>(*column), path});
    return llvm::Error::success();
  }
  std::optional<double> found = value.getAsNumber();
  if (!found)
    return invalid(path, "expected a number, but got " + ftuner::shown(value));
  return store(*found, whole, any, bounds, path);
}

llvm::Error AstTemplate::Reader::number(const Object &object,
                                        llvm::StringRef field, int64_t &whole,
                                        Bounds bounds, const Twine &path,
                                        bool isOptional) {
  const Value *value = object.get(field);
  if (!value)
    return isOptional ? llvm::Error::success()
                      : invalid(path, "the field '" + field + "' is missing");
  return number(*value, &whole, nullptr, bounds, (path + "." + field).str());
}

llvm::Error AstTemplate::Reader::elements(const Object &object,
                                          llvm::StringRef field,
                                          const Twine &path, ReadElement read) {
  std::string name =
      (path + (path.isTriviallyEmpty() ? "" : ".") + field).str();
  const llvm::json::Array *array = object.getArray(field);
  if (!array)
    return invalid(name, object.get(field)
                             ? "expected an array, but got " +
                                   ftuner::shown(*object.get(field))
                             : "the field is missing");
  for (auto [index, value] : llvm::enumerate(*array))
    if (llvm::Error error = read(value, name + "[" + Twine(index) + "]"))
      return error;
  return llvm::Error::success();
}

llvm::Error AstTemplate::Reader::numbers(const Object &object,
                                         llvm::StringRef field,
                                         llvm::SmallVectorImpl<int64_t> &values,
                                         Bounds bounds, const Twine &path) {
  // Slots point into the vector, so it has its size before.
  if (const llvm::json::Array *array = object.getArray(field))
    values.assign(array->size(), 0);
  size_t next = 0;
  return elements(
      object, field, path, [&](const Value &value, const Twine &name) {
        return number(value, &values[next++], nullptr, bounds, name.str());
      });
}

llvm::Error AstTemplate::Reader::text(const Object &object,
                                      llvm::StringRef field, std::string &value,
                                      const Twine &path) {
  std::optional<llvm::StringRef> found = object.getString(field);
  if (!found)
    return invalid(path, "expected a text as '" + field + "'");
  value = found->str();
  return llvm::Error::success();
}

template <typename Enum>
llvm::Error AstTemplate::Reader::choice(const Object &object,
                                        llvm::StringRef field, Enum last,
                                        Enum &value, const Twine &path) {
  std::string name;
  if (llvm::Error error = text(object, field, name, path))
    return error;
  llvm::SmallVector<llvm::StringRef> known;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    value = static_cast<Enum>(i);
    if (nameOf(value) == name)
      return llvm::Error::success();
    known.push_back(nameOf(value));
  }
  return invalid(path + "." + field, "expected one of " +
                                         llvm::join(known, ", ") +
                                         ", but got '" + name + "'");
}

llvm::Error AstTemplate::Reader::flag(const Object &object,
                                      llvm::StringRef field, bool &value,
                                      const Twine &path, bool isOptional) {
  const Value *found = object.get(field);
  if (!found && isOptional)
    return llvm::Error::success();
  if (!found || !found->getAsBoolean())
    return invalid(path, "expected true or false as '" + field + "'");
  value = *found->getAsBoolean();
  return llvm::Error::success();
}

llvm::Error AstTemplate::Reader::readLoop(const Value &value,
                                          const Twine &path) {
  const Object *object = objectOf(value);
  if (!object)
    return invalid(path, "expected an object");
  if (llvm::Error error = keys(
          *object,
          {"name", "length", "binding", "axis", "step", "is_reduction"}, path))
    return error;
  AstLoop &loop = tree.allLoops[opened++];
  if (llvm::Error error = text(*object, "name", loop.name, path))
    return error;
  // An empty reduction has none.
  if (llvm::Error error =
          number(*object, "length", loop.length, {0, kMostExtent}, path))
    return error;
  if (llvm::Error error = choice(*object, "binding", LoopBinding::Vectorized,
                                 loop.binding, path))
    return error;
  if (const Value *axis = object->get("axis")) {
    std::optional<int64_t> number = axis->getAsInteger();
    if (!number || *number < 0 || *number > 255)
      return invalid(path, "expected an axis from 0 to 255, but got " +
                               ftuner::shown(*axis));
    loop.axis = static_cast<unsigned>(*number);
  } else if (object->get("step")) {
    return invalid(path, "expected no step of a loop without an axis");
  }
  if (llvm::Error error =
          number(*object, "step", loop.step, {1, kMostExtent}, path,
                 /*isOptional=*/true))
    return error;
  return flag(*object, "is_reduction", loop.isReduction, path,
              /*isOptional=*/true);
}

llvm::Error AstTemplate::Reader::readApart(const Value &value,
                                           AstAccess &access, size_t index,
                                           const Twine &path) {
  const Object *object = objectOf(value);
  std::optional<int64_t> loop =
      object ? object->getInteger("loop") : std::nullopt;
  if (!loop || *loop < 0 || static_cast<size_t>(*loop) >= tree.allLoops.size())
    return invalid(path, "expected an object with the number of a loop");
  if (llvm::Error error = keys(*object, {"loop", "distance"}, path))
    return error;
  access.apart[index].first = static_cast<unsigned>(*loop);
  return number(*object, "distance", access.apart[index].second,
                {-kMostWhole, kMostWhole}, path);
}

llvm::Error AstTemplate::Reader::readBuffer(const Value &value,
                                            const Twine &path) {
  const Object *object = objectOf(value);
  if (!object)
    return invalid(path, "expected an object");
  if (llvm::Error error = keys(
          *object,
          {"name", "memory", "element_bytes", "elements", "strides", "tile"},
          path))
    return error;
  AstBuffer &buffer = tree.allBuffers[opened++];
  if (llvm::Error error = text(*object, "name", buffer.name, path))
    return error;
  if (llvm::Error error =
          choice(*object, "memory", AstMemory::Registers, buffer.memory, path))
    return error;
  if (llvm::Error error = number(*object, "element_bytes", buffer.elementBytes,
                                 {1, kMostExtent}, path))
    return error;
  if (const Value *elements = object->get("elements")) {
    if (llvm::Error error = number(*elements, nullptr, &buffer.elements,
                                   {0, kMostAny}, (path + ".elements").str()))
      return error;
  }
  if (llvm::Error error = numbers(*object, "strides", buffer.strides,
                                  {-kMostWhole, kMostWhole}, path))
    return error;
  if (object->get("tile")) {
    if (llvm::Error error =
            numbers(*object, "tile", buffer.tile, {1, kMostExtent}, path))
      return error;
    if (buffer.tile.size() != buffer.strides.size())
      return invalid(path,
                     "expected a tile along " + Twine(buffer.strides.size()) +
                         " axes, but it has " + Twine(buffer.tile.size()));
  }
  return llvm::Error::success();
}

llvm::Error AstTemplate::Reader::readAccess(const Value &value,
                                            AstStatement &statement,
                                            size_t number, const Twine &path) {
  const Object *object = objectOf(value);
  std::optional<int64_t> buffer =
      object ? object->getInteger("buffer") : std::nullopt;
  if (!buffer || *buffer < 0 ||
      static_cast<size_t>(*buffer) >= tree.allBuffers.size())
    return invalid(path, "expected an object with the number of a buffer");
  if (llvm::Error error = keys(
          *object,
          {"buffer", "reads", "writes", "distances", "apart", "data_dependent"},
          path))
    return error;
  AstAccess &access = statement.accesses[number];
  access.buffer = static_cast<unsigned>(*buffer);
  if (llvm::Error error =
          flag(*object, "reads", access.reads, path, /*isOptional=*/false))
    return error;
  if (llvm::Error error =
          flag(*object, "writes", access.writes, path, /*isOptional=*/false))
    return error;
  if (llvm::Error error =
          flag(*object, "data_dependent", access.isDataDependent, path,
               /*isOptional=*/true))
    return error;
  if (!object->get("apart"))
    return llvm::Error::success();
  const llvm::json::Array *apart = object->getArray("apart");
  access.apart.resize(apart ? apart->size() : 0);
  size_t next = 0;
  return elements(*object, "apart", path,
                  [&](const Value &one, const Twine &name) {
                    return readApart(one, access, next++, name);
                  });
}

/// Closes loops that are open before it opens the statement's own.
llvm::Error AstTemplate::Reader::place(const AstStatement &statement,
                                       const Twine &path) {
  size_t kept = 0;
  while (kept < std::min(tree.open.size(), statement.loops.size()) &&
         tree.open[kept] == statement.loops[kept])
    ++kept;
  tree.open.truncate(kept);
  for (unsigned loop : llvm::drop_begin(statement.loops, kept)) {
    if (loop != opened || opened == tree.allLoops.size())
      return invalid(path + ".loops",
                     "expected loops in the order in which they open: " +
                         (opened == tree.allLoops.size() ? Twine("no other one")
                                                         : Twine(opened)) +
                         ", but got " + Twine(loop));
    tree.order.push_back(
        {true, loop,
         tree.open.empty() ? std::nullopt : std::optional(tree.open.back())});
    tree.open.push_back(loop);
    ++opened;
  }
  tree.order.push_back(
      {false, static_cast<unsigned>(&statement - tree.allStatements.data()),
       tree.open.empty() ? std::nullopt : std::optional(tree.open.back())});
  return llvm::Error::success();
}

llvm::Error AstTemplate::Reader::readStatement(const Value &value,
                                               const Twine &path) {
  const Object *object = objectOf(value);
  if (!object)
    return invalid(path, "expected an object");
  if (llvm::Error error =
          keys(*object, {"name", "loops", "operations", "accesses"}, path))
    return error;
  AstStatement &statement = tree.allStatements.emplace_back();
  if (llvm::Error error = text(*object, "name", statement.name, path))
    return error;
  if (llvm::Error error = elements(
          *object, "loops", path,
          [&](const Value &loop, const Twine &name) -> llvm::Error {
            std::optional<int64_t> number = loop.getAsInteger();
            if (!number || *number < 0 ||
                static_cast<size_t>(*number) >= tree.allLoops.size())
              return invalid(name, "expected the number of a loop, but got " +
                                       ftuner::shown(loop));
            statement.loops.push_back(static_cast<unsigned>(*number));
            return llvm::Error::success();
          }))
    return error;
  const Object *operations = object->getObject("operations");
  if (!operations)
    return invalid(path, "expected an object as 'operations'");
  llvm::SmallVector<llvm::StringRef> known;
  for (size_t i = 0; i < kNumAstOperations; ++i)
    known.push_back(nameOf(static_cast<AstOperation>(i)));
  if (llvm::Error error = keys(*operations, known, path + ".operations"))
    return error;
  for (size_t i = 0; i < kNumAstOperations; ++i)
    if (const Value *count = operations->get(known[i]))
      if (llvm::Error error =
              number(*count, nullptr, &statement.operations[i], {0, kMostAny},
                     (path + ".operations." + known[i]).str()))
        return error;
  if (const llvm::json::Array *accesses = object->getArray("accesses"))
    statement.accesses.resize(accesses->size());
  size_t next = 0;
  if (llvm::Error error = elements(*object, "accesses", path,
                                   [&](const Value &access, const Twine &name) {
                                     return readAccess(access, statement,
                                                       next++, name);
                                   }))
    return error;
  return place(statement, path);
}

/// Checks that the numbers written beside the tree follow from it.
llvm::Error AstTemplate::Reader::checkWritten(const Object &object) {
  auto expectEqual = [&](const llvm::json::Array *found,
                         llvm::ArrayRef<int64_t> numbers,
                         const Twine &path) -> llvm::Error {
    if (llvm::Error error = expectNoColumns(path))
      return error;
    bool isEqual = found && found->size() == numbers.size() &&
                   llvm::all_of_zip(*found, numbers,
                                    [](const Value &value, int64_t number) {
                                      return value.getAsInteger() == number;
                                    });
    if (isEqual)
      return llvm::Error::success();
    return invalid(path, "expected " +
                             llvm::join(llvm::map_range(numbers,
                                                        [](int64_t number) {
                                                          return std::to_string(
                                                              number);
                                                        }),
                                        ", ") +
                             ", as the tree says");
  };
  for (auto [index, value] : llvm::enumerate(*object.getArray("statements"))) {
    const AstStatement &statement = tree.allStatements[index];
    for (auto [number, one] :
         llvm::enumerate(*value.getAsObject()->getArray("accesses"))) {
      if (!one.getAsObject()->get("distances"))
        continue;
      llvm::SmallVector<int64_t> distances;
      for (unsigned loop : statement.loops)
        distances.push_back(tree.distance(statement.accesses[number], loop));
      if (llvm::Error error =
              expectEqual(one.getAsObject()->getArray("distances"), distances,
                          "statements[" + Twine(index) + "].accesses[" +
                              Twine(number) + "].distances"))
        return error;
    }
  }
  return object.get("ordering") ? expectEqual(object.getArray("ordering"),
                                              tree.ordering(), "ordering")
                                : llvm::Error::success();
}

llvm::Error AstTemplate::Reader::read(const Object &object) {
  if (llvm::Error error =
          keys(object, {"loops", "buffers", "statements", "ordering"}, "tree"))
    return error;
  // Slots point into these, so they have their sizes before; statements, which
  // have slots too, do not move either.
  auto sizeOf = [&](llvm::StringRef field) {
    const llvm::json::Array *array = object.getArray(field);
    return array ? array->size() : 0;
  };
  tree.allLoops.resize(sizeOf("loops"));
  tree.allBuffers.resize(sizeOf("buffers"));
  tree.allStatements.reserve(sizeOf("statements"));
  if (llvm::Error error = elements(object, "loops", "",
                                   [&](const Value &value, const Twine &path) {
                                     return readLoop(value, path);
                                   }))
    return error;
  opened = 0;
  if (llvm::Error error = elements(object, "buffers", "",
                                   [&](const Value &value, const Twine &path) {
                                     return readBuffer(value, path);
                                   }))
    return error;
  opened = 0;
  if (llvm::Error error = elements(object, "statements", "",
                                   [&](const Value &value, const Twine &path) {
                                     return readStatement(value, path);
                                   }))
    return error;
  tree.open.clear();
  if (tree.allStatements.empty())
    return invalid("statements", "expected one at least");
  if (opened != tree.allLoops.size())
    return invalid("loops[" + Twine(opened) + "]",
                   "expected a loop around a statement");
  if (llvm::Error error = result.checkDistances())
    return error;
  return checkWritten(object);
}

llvm::Error AstTemplate::checkDistances() const {
  for (auto [number, loop] : llvm::enumerate(tree.loops()))
    for (auto [index, buffer] : llvm::enumerate(tree.buffers()))
      if (loop.axis && *loop.axis < buffer.strides.size() &&
          std::abs(static_cast<double>(loop.step) *
                   static_cast<double>(buffer.strides[*loop.axis])) >
              kMostWhole)
        return invalid(
            "buffers[" + Twine(index) + "].strides[" + Twine(*loop.axis) + "]",
            "expected a distance of at most " + shown(kMostWhole) +
                " between iterations of loops[" + Twine(number) +
                "], but got a stride of " + Twine(buffer.strides[*loop.axis]) +
                " and a step of " + Twine(loop.step));
  return llvm::Error::success();
}

llvm::Expected<AstTemplate> AstTemplate::parse(llvm::StringRef json,
                                               size_t numColumns) {
  llvm::Expected<JsonFile> file = parseJsonFile(json, "tree", "a tree");
  if (!file)
    return file.takeError();
  AstTemplate result;
  if (llvm::Error error = Reader(result, numColumns).read(file->fields))
    return error;
  return result;
}

llvm::Error AstTemplate::bind(llvm::ArrayRef<double> row) {
  for (const Slot &slot : slots)
    if (llvm::Error error = store(row[slot.column], slot.whole, slot.number,
                                  slot.bounds, slot.path))
      return error;
  return checkDistances();
}

llvm::Expected<ProgramAst> ProgramAst::read(llvm::StringRef json) {
  llvm::Expected<AstTemplate> read = AstTemplate::parse(json);
  if (!read)
    return read.takeError();
  return read->ast();
}
