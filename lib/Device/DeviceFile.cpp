//===- DeviceFile.cpp - Text of a device description ----------------------===//
#include "DeviceFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

/// Deepest nesting; the JSON parser is recursive.
static constexpr unsigned maxDepth = 16;

static llvm::Error makeError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Error DeviceFile::error(StringRef key, const Twine &message) const {
  auto it = lines.find(key);
  unsigned line = it == lines.end() ? lastLine : it->second;
  return makeError(sourceName + ":" + Twine(line) + ": field '" + key +
                   "': " + message);
}

namespace {
/// Walks over the tokens that matter: strings, braces and line ends.
class Scanner {
public:
  Scanner(StringRef text, StringRef sourceName)
      : text(text), sourceName(sourceName) {}

  /// Refuses nesting that the parser should not see.
  llvm::Error checkDepth();
  /// Notes the line of every field of the outermost object, and refuses
  /// fields of one object that occur twice. The text has parsed.
  llvm::Error findFields(DeviceFile &file);

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
      return makeError(sourceName + ":" + Twine(line) + ": expected at most " +
                       Twine(maxDepth) + " levels of nesting");
    ++position;
  }
  return llvm::Error::success();
}

llvm::Error Scanner::findFields(DeviceFile &file) {
  llvm::SmallVector<llvm::StringMap<unsigned>> open;
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
      return makeError(sourceName + ":" + Twine(line) + ": field '" + name +
                       "': expected one occurrence, but it already stands in "
                       "line " +
                       Twine(first->second));
    if (open.size() == 1)
      file.lines[name] = line;
  }
  return llvm::Error::success();
}

/// Rewrites "[3:5, byte=40]: Message" as "3:5: message".
static llvm::Error syntaxError(StringRef sourceName, llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  StringRef position = StringRef(text).split(", byte=").first;
  StringRef message = StringRef(text).split("]: ").second;
  if (!position.consume_front("[") || message.empty())
    return makeError(sourceName + ": " + text);
  return makeError(sourceName + ":" + position + ": " +
                   message.take_front(1).lower() + message.drop_front(1));
}

llvm::Expected<DeviceFile> ftuner::parseDeviceFile(StringRef json,
                                                   StringRef sourceName) {
  if (json.size() > maxDeviceFileBytes)
    return makeError(sourceName + ": expected at most " +
                     Twine(maxDeviceFileBytes) + " bytes, but got " +
                     Twine(json.size()));
  Scanner scanner(json, sourceName);
  if (llvm::Error error = scanner.checkDepth())
    return error;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return syntaxError(sourceName, value.takeError());
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return makeError(sourceName + ":1: expected an object with the fields of "
                                  "a device");
  DeviceFile file;
  file.sourceName = sourceName.str();
  file.fields = *object;
  if (llvm::Error error = scanner.findFields(file))
    return error;
  return file;
}
