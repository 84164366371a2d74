//===- PTXText.cpp - PTX as text ------------------------------------------===//
#include "PTXText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace llvm;

namespace ftuner {

StringRef findExternalFunction(StringRef ptx) {
  size_t position = ptx.find(".extern .func");
  if (position == StringRef::npos)
    return {};
  // .extern .func (.param .b32 func_retval0) NAME
  StringRef rest =
      ptx.substr(position + StringRef(".extern .func").size()).ltrim();
  if (rest.consume_front("("))
    rest = rest.substr(rest.find(')') + 1).ltrim();
  return rest.take_while(
      [](char c) { return isAlnum(c) || c == '_' || c == '$'; });
}

/// Parses `.extern .shared .align N .b8 ftuner_dynamic_shared_memory[];`.
static bool parseDynamicShared(StringRef line, unsigned &alignment) {
  line = line.trim();
  return line.consume_front(".extern .shared .align ") &&
         !line.consumeInteger(10, alignment) && line.consume_front(" .b8 ") &&
         line.consume_front(kDynamicSharedName) && line.starts_with("[");
}

std::string joinPtx(ArrayRef<StringRef> modules) {
  constexpr StringLiteral lastOfHeader = ".address_size 64\n";
  std::string header, body;
  size_t size = 0;
  for (StringRef text : modules)
    size += text.size();
  body.reserve(size);
  unsigned largest = 0;
  for (StringRef text : modules) {
    size_t end = text.find(lastOfHeader);
    if (header.empty())
      header = text.take_front(end + lastOfHeader.size()).str();
    StringRef rest = text.drop_front(end + lastOfHeader.size());
    while (!rest.empty()) {
      auto [line, next] = rest.split('\n');
      unsigned alignment = 0;
      if (parseDynamicShared(line, alignment)) {
        largest = std::max(largest, alignment);
      } else {
        body += line.rtrim();
        body += '\n';
      }
      rest = next;
    }
  }
  std::string result = std::move(header);
  if (largest)
    result += (".extern .shared .align " + Twine(largest) + " .b8 " +
               kDynamicSharedName + "[];\n")
                  .str();
  result += body;
  return result;
}

} // namespace ftuner
