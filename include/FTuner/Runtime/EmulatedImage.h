//===- EmulatedImage.h - The kernels that the emulator takes ----*- C++ -*-===//
#ifndef FTUNER_RUNTIME_EMULATEDIMAGE_H
#define FTUNER_RUNTIME_EMULATEDIMAGE_H

#include <cstdint>
#include <cstdlib>
#include <string>

namespace ftuner {

/// Names the kernels that the emulator, which has no architecture, takes of a
/// module with two images.
inline constexpr const char kEmulatedImageVariable[] = "FTRT_EMULATOR_IMAGE";

/// Sets `exact` to whether the environment asks for the image of the exact
/// architecture, which is the default. Returns the fault of the variable in
/// words, or an empty string.
inline std::string emulatedImageIsExact(int32_t &exact) {
  const char *given = std::getenv(kEmulatedImageVariable);
  std::string name = given ? given : "";
  exact = name != "portable";
  if (name.empty() || name == "exact" || name == "portable")
    return "";
  return std::string(kEmulatedImageVariable) +
         ": expected 'exact' or 'portable', but got '" + name + "'";
}

} // namespace ftuner

#endif // FTUNER_RUNTIME_EMULATEDIMAGE_H
