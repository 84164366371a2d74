//===- JsonFile.cpp - JSON that still knows its lines ---------------------===//
#include "FTuner/Support/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

/// Deepest nesting; the JSON parser is recursive.
static constexpr unsigned maxDepth = 16;

std::string ftuner::shown(const llvm::json::Value &value) {
  std::string text = llvm::formatv("{0}", value);
  if (text.size() > 40)
    text = text.substr(0, 37) + "...";
  return text;
}

static llvm::Error fieldError(StringRef sourceName, unsigned line,
                              const Twine &field, const Twine &message) {
  return llvm::createStringError(sourceName + ":" + Twine(line) + ": field '" +
                                 field + "': " + message);
}

llvm::Error JsonFile::error(StringRef key, const Twine &message) const {
  auto it = lines.find(key);
  return fieldError(sourceName, it == lines.end() ? lastLine : it->second, key,
                    message);
}

llvm::Error JsonFile::error(StringRef outer, StringRef key,
                            const Twine &message) const {
  auto object = lines.find(outer);
  unsigned line = object == lines.end() ? lastLine : object->second;
  auto inner = innerLines.find(outer);
  if (inner != innerLines.end())
    if (auto it = inner->second.find(key); it != inner->second.end())
      line = it->second;
  return fieldError(sourceName, line, outer + "." + key, message);
}

/// The first key, by its line, that is not known.
static std::optional<std::string>
findUnknown(const llvm::StringMap<unsigned> &lines,
            llvm::function_ref<bool(StringRef)> isKnown) {
  std::vector<std::pair<unsigned, std::string>> unknown;
  for (const auto &line : lines)
    if (!isKnown(line.first()))
      unknown.emplace_back(line.second, line.first().str());
  if (unknown.empty())
    return std::nullopt;
  return llvm::min_element(unknown)->second;
}

llvm::Error JsonFile::checkKeys(llvm::function_ref<bool(StringRef)> isKnown,
                                const Twine &expected) const {
  if (std::optional<std::string> key = findUnknown(lines, isKnown))
    return error(*key, "expected " + expected);
  return llvm::Error::success();
}

llvm::Error JsonFile::checkKeys(StringRef outer,
                                llvm::function_ref<bool(StringRef)> isKnown,
                                const Twine &expected) const {
  auto inner = innerLines.find(outer);
  if (inner != innerLines.end())
    if (std::optional<std::string> key = findUnknown(inner->second, isKnown))
      return error(outer, *key, "expected " + expected);
  return llvm::Error::success();
}

llvm::Expected<std::string> JsonFile::text(StringRef key,
                                           size_t maxLength) const {
  const llvm::json::Value *value = fields.get(key);
  if (!value)
    return error(key, "expected a string, but the field is missing");
  std::optional<StringRef> text = value->getAsString();
  bool printable = text && llvm::all_of(*text, llvm::isPrint);
  if (!printable || text->trim().empty() || text->size() > maxLength)
    return error(key, "expected a string of 1 to " + Twine(maxLength) +
                          " printable characters, but got " + shown(*value));
  return text->str();
}

namespace {
/// Walks over the tokens that matter: strings, braces and line ends.
class Scanner {
public:
  Scanner(StringRef text, StringRef sourceName)
      : text(text), sourceName(sourceName) {}

  llvm::Error checkDepth();
  /// Notes the line of every field of the outermost object and of objects in
  /// it, and refuses fields of one object that occur twice. The text has
  /// parsed.
  llvm::Error findFields(JsonFile &file);

private:
  /// The string literal at `position`, with its quotes.
  StringRef literal() const {
    size_t end = position + 1;
    while (end < text.size() && text[end] != '"')
      end += text[end] == '\\' ? 2 : 1;
    return text.slice(position, std::min(end + 1, text.size()));
  }

  StringRef text, sourceName;
  size_t position = 0;
  unsigned line = 1;
};
} // namespace

llvm::Error Scanner::checkDepth() {
  unsigned depth = 0;
  for (position = 0, line = 1; position < text.size();) {
    char c = text[position];
    if (c == '"') {
      StringRef string = literal();
      line += string.count('\n');
      position += string.size();
      continue;
    }
    if (c == '\n')
      ++line;
    else if (c == '{' || c == '[')
      ++depth;
    else if ((c == '}' || c == ']') && depth > 0)
      --depth;
    if (depth > maxDepth)
      return llvm::createStringError(sourceName + ":" + Twine(line) +
                                     ": expected at most " + Twine(maxDepth) +
                                     " levels of nesting");
    ++position;
  }
  return llvm::Error::success();
}

llvm::Error Scanner::findFields(JsonFile &file) {
  llvm::SmallVector<llvm::StringMap<unsigned>> open;
  std::string outer; // the field of the outermost object that we are in
  for (position = 0, line = 1; position < text.size();) {
    char c = text[position];
    if (c != '"') {
      if (c == '\n')
        ++line;
      else if (c == '{' || c == '[')
        open.emplace_back();
      else if (c == '}' || c == ']')
        open.pop_back();
      if (c == '}')
        file.lastLine = line;
      ++position;
      continue;
    }
    StringRef string = literal();
    position += string.size();
    if (!text.drop_front(position).ltrim().starts_with(":") || open.empty())
      continue;
    llvm::Expected<llvm::json::Value> key = llvm::json::parse(string);
    if (!key)
      return key.takeError();
    std::string name = key->getAsString().value_or("").str();
    auto [first, inserted] = open.back().try_emplace(name, line);
    if (!inserted)
      return llvm::createStringError(
          sourceName + ":" + Twine(line) + ": field '" + name +
          "': expected one occurrence, but it already stands in "
          "line " +
          Twine(first->second));
    if (open.size() == 1) {
      file.lines[name] = line;
      outer = name;
    } else if (open.size() == 2) {
      file.innerLines[outer][name] = line;
    }
  }
  return llvm::Error::success();
}

llvm::Error ftuner::checkJsonDepth(StringRef json, StringRef sourceName) {
  return Scanner(json, sourceName).checkDepth();
}

/// Rewrites "[3:5, byte=40]: Message" as "3:5: message".
static llvm::Error syntaxError(StringRef sourceName, llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  StringRef position = StringRef(text).split(", byte=").first;
  StringRef message = StringRef(text).split("]: ").second;
  if (!position.consume_front("[") || message.empty())
    return llvm::createStringError(sourceName + ": " + text);
  return llvm::createStringError(sourceName + ":" + position + ": " +
                                 message.take_front(1).lower() +
                                 message.drop_front(1));
}

llvm::Expected<JsonFile> ftuner::parseJsonFile(StringRef json,
                                               StringRef sourceName,
                                               StringRef expected) {
  if (json.size() > maxJsonFileBytes)
    return llvm::createStringError(sourceName + ": expected at most " +
                                   Twine(maxJsonFileBytes) +
                                   " bytes, but got " + Twine(json.size()));
  if (llvm::Error error = checkJsonDepth(json, sourceName))
    return error;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return syntaxError(sourceName, value.takeError());
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError(
        sourceName + ":1: expected an object with the fields of " + expected);
  JsonFile file;
  file.sourceName = sourceName.str();
  file.fields = *object;
  if (llvm::Error error = Scanner(json, sourceName).findFields(file))
    return error;
  return file;
}
