//===- RuntimeLibrary.h - libftrt, opened at run time -----------*- C++ -*-===//
#ifndef FTUNER_RUNTIMECLIENT_RUNTIMELIBRARY_H
#define FTUNER_RUNTIMECLIENT_RUNTIMELIBRARY_H

#include "FTuner/Runtime/ftrt.h"

#include "llvm/Support/Error.h"
#include <string>

namespace ftuner {

// The functions of ftrt.h that programs of FTuner call.
#define FTUNER_RUNTIME_FUNCTIONS(FUNCTION)                                     \
  FUNCTION(launch)                                                             \
  FUNCTION(tensor_map_encode)                                                  \
  FUNCTION(image_is_exact)                                                     \
  FUNCTION(fail)                                                               \
  FUNCTION(fail_sizes)                                                         \
  FUNCTION(last_error)                                                         \
  FUNCTION(prepare)                                                            \
  FUNCTION(release)                                                            \
  FUNCTION(device_select)                                                      \
  FUNCTION(device_name)                                                        \
  FUNCTION(device_attribute)                                                   \
  FUNCTION(stream_create)                                                      \
  FUNCTION(stream_destroy)                                                     \
  FUNCTION(stream_synchronize)                                                 \
  FUNCTION(event_create)                                                       \
  FUNCTION(event_destroy)                                                      \
  FUNCTION(event_record)                                                       \
  FUNCTION(event_elapsed)                                                      \
  FUNCTION(memory_allocate)                                                    \
  FUNCTION(memory_free)                                                        \
  FUNCTION(memory_copy)

/// Its functions, named as in ftrt.h without the prefix.
struct RuntimeLibrary {
#define FTUNER_DECLARE(NAME) decltype(&ftrt_##NAME) NAME;
  FTUNER_RUNTIME_FUNCTIONS(FTUNER_DECLARE)
#undef FTUNER_DECLARE

  /// Opens the library, which stays open until the process ends.
  static llvm::Expected<RuntimeLibrary> open(const std::string &path);

  /// An error in the runtime's words for a code that is not FTRT_SUCCESS.
  llvm::Error check(int32_t code) const;
};

} // namespace ftuner

#endif // FTUNER_RUNTIMECLIENT_RUNTIMELIBRARY_H
