//===- Text.h - Messages from strings and numbers ---------------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CHECKS_TEXT_H
#define FTUNER_LIB_EMULATOR_CORE_CHECKS_TEXT_H

#include <cstdint>
#include <string>
#include <type_traits>

namespace ftuner::emulator {

/// Joins strings and integers, which are written in decimal.
template <typename... Parts>
std::string joinText(const Parts &...parts) {
  std::string text;
  auto append = [&](const auto &part) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>)
      text += std::to_string(part);
    else
      text += part;
  };
  (append(parts), ...);
  return text;
}

/// An address in hexadecimal digits, with 0x in front.
std::string formatAddress(const void *address);

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CHECKS_TEXT_H
