//===- EmulatorLibrary.cpp - libftrt_emulator, opened at run time ---------===//
#include "EmulatorLibrary.h"
#include "DynamicLibrary.h"
#include "Errors.h"
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

using namespace ftrt;

static const char *const kFileName = "libftrt_emulator.so.1";

std::atomic<const ftrt_emulator_interface *> ftrt::emulator{nullptr};
static std::mutex openMutex;

/// The paths to try, in order.
static std::vector<std::string> getPaths() {
  const char *given = std::getenv("FTRT_EMULATOR");
  if (given && *given)
    return {given};
  std::vector<std::string> paths;
  std::string folder = getFolderOf(&emulator);
  if (!folder.empty())
    paths.push_back(folder + kFileName);
  paths.push_back(kFileName);
  return paths;
}

/// Null, and why, if the library is no emulator of this version.
static const ftrt_emulator_interface *
getInterface(const DynamicLibrary &library, std::string &why) {
  auto get = reinterpret_cast<decltype(&ftrt_emulator_get_interface)>(
      library.find(FTRT_EMULATOR_GET_INTERFACE));
  if (!get) {
    why = format("it has no function '%s'", FTRT_EMULATOR_GET_INTERFACE);
    return nullptr;
  }
  const ftrt_emulator_interface *found = get();
  if (!found || found->version != FTRT_EMULATOR_VERSION) {
    why = format("expected version %d of the emulator, but got version %u",
                 FTRT_EMULATOR_VERSION, found ? found->version : 0);
    return nullptr;
  }
  return found;
}

int32_t ftrt::openEmulator() {
  if (emulator.load(std::memory_order_acquire))
    return FTRT_SUCCESS;
  std::lock_guard<std::mutex> lock(openMutex);
  if (emulator.load(std::memory_order_relaxed))
    return FTRT_SUCCESS;
  std::string tried;
  for (const std::string &path : getPaths()) {
    DynamicLibrary library(path.c_str());
    std::string why = library.error();
    if (library) {
      if (const ftrt_emulator_interface *found = getInterface(library, why)) {
        library.keep();
        emulator.store(found, std::memory_order_release);
        return FTRT_SUCCESS;
      }
    }
    tried += format("%s'%s': %s", tried.empty() ? "" : "; ", path.c_str(),
                    why.c_str());
  }
  return fail(FTRT_ERROR_NO_EMULATOR, "no emulator: " + tried);
}
