//===- RuntimeLibrary.cpp - libftrt, opened at run time -------------------===//
#include "FTuner/RuntimeClient/RuntimeLibrary.h"

#include <dlfcn.h>

namespace ftuner {

llvm::Expected<RuntimeLibrary> RuntimeLibrary::open(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return llvm::createStringError("cannot open the runtime library: " +
                                   llvm::Twine(dlerror()));
  RuntimeLibrary library;
#define FTUNER_FIND(NAME)                                                      \
  library.NAME =                                                               \
      reinterpret_cast<decltype(&ftrt_##NAME)>(dlsym(handle, "ftrt_" #NAME));  \
  if (!library.NAME)                                                           \
    return llvm::createStringError("the runtime library '" + path +            \
                                   "' has no function 'ftrt_" #NAME "'");
  FTUNER_RUNTIME_FUNCTIONS(FTUNER_FIND)
#undef FTUNER_FIND
  return library;
}

llvm::Error RuntimeLibrary::check(int32_t code) const {
  if (code == FTRT_SUCCESS)
    return llvm::Error::success();
  return llvm::createStringError(llvm::Twine(last_error()));
}

} // namespace ftuner
