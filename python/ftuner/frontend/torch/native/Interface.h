//===- Interface.h - The text that describes a function ---------*- C++ -*-===//
#ifndef FTUNER_TORCH_INTERFACE_H
#define FTUNER_TORCH_INTERFACE_H

#include "PyTorch.h"

#include <charconv>
#include <map>

#if defined(__x86_64__)
#define FTUNER_MACHINE "x86_64"
#elif defined(__aarch64__)
#define FTUNER_MACHINE "aarch64"
#else
#error "expected a processor of x86-64 or AArch64"
#endif

namespace ftuner_torch {

/// The version of the text that describes a function.
constexpr int64_t kFormat = 1;

/// A type of elements, by its name in MLIR.
struct ElementType {
  std::string name;
  int32_t dtype;

  static ElementType named(std::string_view name) {
    if (name == "f32")
      return {"f32", aoti_torch_dtype_float32()};
    if (name == "f16")
      return {"f16", aoti_torch_dtype_float16()};
    if (name == "bf16")
      return {"bf16", aoti_torch_dtype_bfloat16()};
    fail("expected an interface with types f32, f16 and bf16, but got '" +
         std::string(name) + "'");
  }
  int64_t bytes() const {
    return static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
  }
};

/// A dimension of an argument: a number, or one that calls decide, which may
/// have the name of a symbol. Sizes with the same symbol are equal.
struct Dimension {
  int64_t size = -1;
  int symbol = -1;
};

struct Argument {
  ElementType type;
  std::vector<Dimension> dimensions;
};

inline std::vector<std::string_view> split(std::string_view text,
                                           char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename Number>
bool readNumber(std::string_view text, Number &number, int base = 10) {
  const char *end = text.data() + text.size();
  Number read = 0;
  auto [stop, error] = std::from_chars(text.data(), end, read, base);
  if (error != std::errc() || stop != end)
    return false;
  number = read;
  return true;
}

class Interface {
public:
  explicit Interface(std::string_view text);

  std::string name, machine, run, resultSizes, workspaceSize;
  std::vector<Argument> arguments;
  /// The dimensions of a result are known only as to their number.
  Argument result;
  int64_t scalars = 0;
  std::vector<std::string> symbols;
  /// Bytes of the library, and the checksum of the text before it and of them.
  int64_t bytes = 0;
  uint32_t checksum = 0;
  size_t checkedCharacters = 0;

private:
  using Fields = std::map<std::string_view, std::string_view>;

  static std::string_view field(const Fields &fields, std::string_view key) {
    auto found = fields.find(key);
    if (found == fields.end() || found->second.empty())
      fail("expected an interface with '" + std::string(key) +
           "', but got one without");
    return found->second;
  }
  static int64_t number(const Fields &fields, std::string_view key) {
    int64_t value = 0;
    std::string_view text = field(fields, key);
    if (!readNumber(text, value) || value < 0)
      fail("expected an interface with a number as '" + std::string(key) +
           "', but got '" + std::string(text) + "'");
    return value;
  }
  /// Reads `f32[T,768]`.
  Argument readArgument(std::string_view text);
};

inline Interface::Interface(std::string_view text) {
  Fields fields;
  for (std::string_view token : split(text, ' ')) {
    size_t equals = token.find('=');
    if (equals == std::string_view::npos)
      fail("expected an interface of a packaged function, but got '" +
           std::string(text.substr(0, 80)) + "'");
    fields[token.substr(0, equals)] = token.substr(equals + 1);
  }
  int64_t format = number(fields, "ftuner-interface");
  if (format != kFormat)
    fail("expected a package with functions of format " +
         std::to_string(kFormat) + ", but got one of format " +
         std::to_string(format) +
         ", which another version of FTuner has written");
  name = field(fields, "name");
  machine = field(fields, "machine");
  if (machine != FTUNER_MACHINE)
    fail(name +
         ": expected a package for " FTUNER_MACHINE ", but got one for " +
         machine);
  run = field(fields, "run");
  resultSizes = field(fields, "result_sizes");
  workspaceSize = field(fields, "workspace_size");
  for (std::string_view argument : split(field(fields, "arguments"), ';'))
    arguments.push_back(readArgument(argument));
  result = readArgument(field(fields, "result"));
  scalars = number(fields, "scalars");
  bytes = number(fields, "bytes");
  std::string_view sum = field(fields, "crc32");
  if (!readNumber(sum, checksum, 16))
    fail(name + ": expected a checksum, but got '" + std::string(sum) + "'");
  checkedCharacters = text.rfind(" crc32=");
}

inline Argument Interface::readArgument(std::string_view text) {
  size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']')
    fail(name + ": expected a type such as f32[T,768], but got '" +
         std::string(text) + "'");
  Argument argument{ElementType::named(text.substr(0, open)), {}};
  std::string_view inner = text.substr(open + 1, text.size() - open - 2);
  if (inner.empty())
    return argument;
  for (std::string_view word : split(inner, ',')) {
    Dimension dimension;
    if (!readNumber(word, dimension.size) && word != "?") {
      auto found = std::find(symbols.begin(), symbols.end(), word);
      dimension.symbol = static_cast<int>(found - symbols.begin());
      if (found == symbols.end())
        symbols.emplace_back(word);
    }
    argument.dimensions.push_back(dimension);
  }
  return argument;
}

/// CRC-32 as in zlib, of what came before and some bytes.
inline uint32_t extendChecksum(uint32_t sum, const void *data, size_t size) {
  static const std::vector<uint32_t> table = [] {
    std::vector<uint32_t> entries(256);
    for (uint32_t i = 0; i < 256; ++i) {
      entries[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        entries[i] = (entries[i] >> 1) ^ (entries[i] & 1 ? 0xEDB88320U : 0);
    }
    return entries;
  }();
  auto bytes = static_cast<const uint8_t *>(data);
  sum = ~sum;
  for (size_t i = 0; i < size; ++i)
    sum = table[(sum ^ bytes[i]) & 255] ^ (sum >> 8);
  return ~sum;
}

} // namespace ftuner_torch

#endif // FTUNER_TORCH_INTERFACE_H
