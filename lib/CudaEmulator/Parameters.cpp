//===- Parameters.cpp - The parameters of a kernel ------------------------===//
#include "Parameters.h"

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

namespace ftuner {

namespace {

bool isNamed(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '.';
}

/// The parenthesis behind the name of an entry; null if there is none.
const char *findList(const char *ptx, const std::string &name) {
  for (const char *at = ptx; (at = std::strstr(at, ".entry"));) {
    at += std::strlen(".entry");
    at += std::strspn(at, " \t\r\n");
    if (std::strncmp(at, name.c_str(), name.size()) != 0 ||
        isNamed(at[name.size()]))
      continue;
    at += name.size();
    at += std::strspn(at, " \t\r\n");
    return *at == '(' ? at + 1 : nullptr;
  }
  return nullptr;
}

/// Bytes of a parameter such as ".param .align 64 .b8 name[128]"; 0 if it is
/// not understood.
size_t readParameter(const std::string &text) {
  static const std::map<std::string, size_t> bytes = {
      {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},
      {".s16", 2}, {".f16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4},
      {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
  size_t size = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isNamed(text[end]))
      ++end;
    auto found = bytes.find(text.substr(at, end - at));
    if (size == 0 && found != bytes.end())
      size = found->second;
    at = end + 1;
  }
  size_t bracket = text.find('[');
  if (bracket == std::string::npos)
    return size;
  return size * std::strtoul(text.c_str() + bracket + 1, nullptr, 10);
}

} // namespace

std::optional<std::vector<size_t>> readParameters(const char *ptx,
                                                  const std::string &name) {
  const char *at = findList(ptx, name);
  if (!at)
    return std::nullopt;
  std::vector<size_t> sizes;
  for (; *at != ')'; at += *at == ',') {
    at += std::strspn(at, " \t\r\n");
    size_t length = std::strcspn(at, ",)");
    if (!at[length])
      return std::nullopt;
    if (length == 0)
      continue;
    sizes.push_back(readParameter(std::string(at, length)));
    if (sizes.back() == 0)
      return std::nullopt;
    at += length;
  }
  return sizes;
}

/// More than any parameter asks for; a tensor map is at a multiple of 64.
static constexpr std::align_val_t kAlignment{64};

ParameterValues::ParameterValues(const std::vector<size_t> &sizes,
                                 void **values) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    copies.push_back(::operator new(sizes[i], kAlignment));
    std::memcpy(copies.back(), values[i], sizes[i]);
  }
}

ParameterValues::~ParameterValues() {
  for (void *copy : copies)
    ::operator delete(copy, kAlignment);
}

} // namespace ftuner
