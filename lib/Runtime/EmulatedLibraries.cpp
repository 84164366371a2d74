//===- EmulatedLibraries.cpp - Emulated kernels by their names ------------===//
#include "FTuner/Runtime/EmulatedLibraries.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>

namespace {
/// Read only once it is made.
struct Libraries {
  Libraries();
  void load(const std::string &path);

  std::map<std::string, ftrt_kernel *> kernels;
  /// Error of the first library that cannot be used.
  std::string error;
};
} // namespace

Libraries::Libraries() {
  const char *given = std::getenv("FTRT_EMULATED_LIBRARIES");
  std::string paths = given ? given : "";
  for (size_t begin = 0; begin < paths.size() && error.empty();) {
    size_t end = std::min(paths.find(':', begin), paths.size());
    if (end > begin)
      load(paths.substr(begin, end - begin));
    begin = end + 1;
  }
}

void Libraries::load(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = std::string("FTRT_EMULATED_LIBRARIES: ") + dlerror();
    return;
  }
  auto *module = static_cast<ftrt_module *>(dlsym(library, "ftuner_module"));
  if (!module) {
    error = "FTRT_EMULATED_LIBRARIES: expected a library of FTuner's, but got "
            "'" +
            path + "'";
    return;
  }
  for (uint64_t index = 0; index < module->kernel_count; ++index)
    kernels[module->kernels[index]->name] = module->kernels[index];
}

static const Libraries &libraries() {
  static const Libraries all;
  return all;
}

const std::string &ftuner::loadEmulatedLibraries() { return libraries().error; }

ftrt_kernel *ftuner::findEmulatedKernel(const std::string &name) {
  auto found = libraries().kernels.find(name);
  return found == libraries().kernels.end() ? nullptr : found->second;
}

std::string ftuner::missingEmulatedKernel(const std::string &name) {
  return "no library of FTRT_EMULATED_LIBRARIES has the kernel " + name;
}

uint32_t ftuner::emulatedClusterSize(const ftrt_kernel &kernel) {
  for (uint32_t i = 0; i < kernel.module->image_count; ++i) {
    if (kernel.module->images[i].kind != FTRT_IMAGE_HOST)
      continue;
    auto *image =
        static_cast<const ftrt_host_image *>(kernel.module->images[i].data);
    for (uint32_t j = 0; j < image->kernel_count; ++j)
      if (std::strcmp(image->kernels[j].name, kernel.name) == 0)
        return std::max<uint32_t>(image->kernels[j].cluster_x, 1);
  }
  return 1;
}

int32_t ftuner::launchEmulatedKernel(ftrt_kernel *kernel, uint32_t blocks,
                                     uint32_t threads, uint32_t sharedBytes,
                                     void **parameters) {
  if (std::getenv("FTRT_TRACE"))
    std::fprintf(stderr, "launch %s: %u x %u, %u bytes\n", kernel->name, blocks,
                 threads, sharedBytes);
  return ftrt_launch(kernel, blocks, threads, sharedBytes,
                     ftrt_emulator_stream(), parameters);
}
