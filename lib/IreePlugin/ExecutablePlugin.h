//===- ExecutablePlugin.h - What IREE asks of plugins -----------*- C++ -*-===//
//
// IREE's local devices find functions that an executable imports in plugins:
// shared libraries with a function `iree_hal_executable_plugin_query`. These
// are the structures of version 0.1 of that interface, as far as a plugin sees
// them. IREE's wheels have no header.
//
// Source of their layout: iree/hal/local/executable_plugin.h of IREE 3.13.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_IREEPLUGIN_EXECUTABLEPLUGIN_H
#define FTUNER_LIB_IREEPLUGIN_EXECUTABLEPLUGIN_H

#include <cstddef>
#include <cstdint>

namespace ftuner::iree {

/// The version of the interface that is described here: 0.1.
constexpr uint32_t kPluginVersion = 1;

/// A status without words.
enum class Status : uintptr_t { Ok = 0, NotFound = 5 };

/// The first of what a plugin shows, in every version.
struct PluginHeader {
  uint32_t version;
  const char *name;
  const char *description;
  /// Of IREE's features: none, so a plugin that uses the system's libraries.
  uint32_t features;
  /// Which sanitizer the plugin is compiled for; 0 for none.
  uint32_t sanitizer;
  uint64_t reserved[8];
};

/// Imports to find. Those that have a function already are others'.
struct ResolveParameters {
  size_t count;
  /// Zero-terminated; with `?` before the name where null will do.
  const char *const *names;
  void **functions;
  /// What each function gets beside its arguments.
  void **contexts;
};

/// A bit of what `resolve` tells: some that null will do for have none.
constexpr uint32_t kMissingOptional = 1;

struct Plugin {
  const PluginHeader *header;
  Status (*load)(const void *environment, size_t parameterCount,
                 const void *parameters, void **self);
  void (*unload)(void *self);
  Status (*resolve)(void *self, const ResolveParameters *parameters,
                    uint32_t *resolution);
};

/// An import: `values` is a structure of its results and arguments, in their
/// order. Returns 0 on success.
using ImportedFunction = int (*)(void *values, void *context, void *reserved);

} // namespace ftuner::iree

#endif // FTUNER_LIB_IREEPLUGIN_EXECUTABLEPLUGIN_H
