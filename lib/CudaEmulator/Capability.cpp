//===- Capability.cpp - The device that the driver shows ------------------===//
#include "Capability.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>

namespace ftuner {

static Capability readCapability() {
  Capability capability;
  const char *text = std::getenv("FTRT_EMULATED_CAPABILITY");
  if (!text || !*text)
    return capability;
  int end = 0;
  if (std::sscanf(text, "%2d.%1d%n", &capability.major, &capability.minor,
                  &end) != 2 ||
      text[end] || capability.major < 1 || capability.minor < 0)
    capability.error = std::string("FTRT_EMULATED_CAPABILITY: expected a "
                                   "compute capability such as 10.0, but "
                                   "got '") +
                       text + "'";
  return capability;
}

const Capability &givenCapability() {
  static const Capability capability = readCapability();
  return capability;
}

namespace {
/// What an image is for.
struct Target {
  /// Compute capability times 10.
  int number = 0;
  /// 'a' for it alone, 'f' for its major version; 0 for neither.
  char suffix = 0;
};
} // namespace

/// The target that PTX names; number 0 where it names none.
static Target targetOfPtx(const char *text) {
  Target target;
  const char *line = std::strstr(text, ".target sm_");
  int end = 0;
  if (!line || std::sscanf(line, ".target sm_%d%n", &target.number, &end) != 1)
    return {};
  if (line[end] == 'a' || line[end] == 'f')
    target.suffix = line[end];
  return target;
}

/// The number of a cubin's architecture; 0 where it has none.
static int numberOfCubin(const void *image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  // Since version 8 of the ABI flags take the lowest byte.
  constexpr unsigned char kFirstWithFlags = 8;
  bool hasFlags = header.e_ident[EI_ABIVERSION] >= kFirstWithFlags;
  return static_cast<int>((hasFlags ? header.e_flags >> 8 : header.e_flags) &
                          0xff);
}

std::string objectionTo(const void *image, const Capability &device) {
  const int number = 10 * device.major + device.minor;
  bool isCubin = std::memcmp(image, ELFMAG, SELFMAG) == 0;
  Target target = isCubin ? Target{numberOfCubin(image)}
                          : targetOfPtx(static_cast<const char *>(image));
  if (target.number == 0)
    return "";
  bool isSameMajor = target.number / 10 == device.major;
  bool fits =
      target.suffix == 'a' ? target.number == number : target.number <= number;
  if (isCubin || target.suffix == 'f')
    fits = fits && isSameMajor;
  if (fits)
    return "";
  std::string name = "sm_" + std::to_string(target.number);
  if (target.suffix)
    name += target.suffix;
  return (isCubin ? "a cubin for " : "PTX for ") + name +
         " does not run on a device of compute capability " +
         std::to_string(device.major) + "." + std::to_string(device.minor);
}

} // namespace ftuner
