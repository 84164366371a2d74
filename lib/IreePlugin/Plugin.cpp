//===- Plugin.cpp - FTuner's kernels on IREE's local devices --------------===//
//
// A plugin for executables of IREE's `llvm-cpu` that were made by
// `ftuner-translate --ftuner-to-iree --iree-target=llvm-cpu`. Each kernel is a
// function that these import; what it computes is in the libraries of
// EmulatedLibraries.h. So a whole model runs without a GPU: FTuner's kernels in
// the emulator, all others as IREE compiles them for the CPU.
//
//===----------------------------------------------------------------------===//
#include "ExecutablePlugin.h"
#include "FTuner/Runtime/EmulatedLibraries.h"
#include "FTuner/Runtime/IreeImports.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

using namespace ftuner;
using namespace ftuner::iree;

static void report(const std::string &words) {
  std::fprintf(stderr, "FTuner's plugin for IREE: %s\n", words.c_str());
}

/// An ImportedFunction: launches the kernel of the context.
static int launch(void *values, void *context, void *) {
  auto *kernel = static_cast<ftrt_kernel *>(context);
  const auto &head = *static_cast<const ImportedLaunch *>(values);
  auto *tensors = reinterpret_cast<const ImportedTensor *>(&head + 1);
  auto *constants = reinterpret_cast<const uint32_t *>(tensors + head.tensors);

  std::vector<char *> pointers;
  for (uint64_t number = 0; number < head.tensors; ++number) {
    pointers.push_back(static_cast<char *>(tensors[number].base) +
                       tensors[number].offset);
    if (reinterpret_cast<uintptr_t>(pointers.back()) % head.alignment == 0)
      continue;
    report(std::string(kernel->name) + ": expected tensors at multiples of " +
           std::to_string(head.alignment) + " bytes");
    return 1;
  }
  std::vector<void *> parameters;
  for (char *&pointer : pointers)
    parameters.push_back(&pointer);
  for (uint64_t number = 0; number < head.constants; ++number)
    parameters.push_back(const_cast<uint32_t *>(&constants[number]));
  if (launchEmulatedKernel(kernel, head.blocks, head.threads, head.sharedBytes,
                           parameters.data()) == FTRT_SUCCESS)
    return 0;
  report(ftrt_last_error());
  return 1;
}

static Status load(const void *, size_t, const void *, void **self) {
  *self = nullptr;
  const std::string &error = loadEmulatedLibraries();
  if (error.empty())
    return Status::Ok;
  report(error);
  return Status::NotFound;
}

static void unload(void *) {}

static Status resolve(void *, const ResolveParameters *parameters,
                      uint32_t *resolution) {
  *resolution = 0;
  Status status = Status::Ok;
  for (size_t number = 0; number < parameters->count; ++number) {
    if (parameters->functions[number])
      continue;
    std::string_view name = parameters->names[number];
    bool isOptional = name.substr(0, 1) == "?";
    name.remove_prefix(isOptional);
    constexpr std::string_view prefix = kImportPrefix;
    if (name.substr(0, prefix.size()) == prefix) {
      std::string kernelName(name.substr(prefix.size()));
      if (ftrt_kernel *kernel = findEmulatedKernel(kernelName)) {
        constexpr ImportedFunction function = launch;
        parameters->functions[number] = reinterpret_cast<void *>(function);
        parameters->contexts[number] = kernel;
        continue;
      }
      report(missingEmulatedKernel(kernelName));
    }
    if (isOptional)
      *resolution |= kMissingOptional;
    else
      status = Status::NotFound;
  }
  return status;
}

/// Null for a runtime that knows older versions only.
extern "C" __attribute__((visibility("default"))) const PluginHeader **
iree_hal_executable_plugin_query(uint32_t maxVersion, void *) {
  static const PluginHeader header = {
      kPluginVersion,  "ftuner", "FTuner's kernels in the emulator",
      /*features=*/0,
      /*sanitizer=*/0,
      /*reserved=*/{}};
  static Plugin plugin = {&header, load, unload, resolve};
  return maxVersion >= kPluginVersion ? &plugin.header : nullptr;
}
