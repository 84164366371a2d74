//===- DynamicLibrary.cpp - Libraries opened at run time ------------------===//
#include "DynamicLibrary.h"
#include <dlfcn.h>

// glibc 2.34 moved these from libdl to libc under a new version. The old one is
// in every glibc since, so that libftrt also loads where glibc is older than
// where it was built.
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlclose,dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror,dlerror@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
#endif

using namespace ftrt;

DynamicLibrary::DynamicLibrary(const char *path)
    : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
  if (handle)
    return;
  const char *message = dlerror();
  words = message ? message : "it cannot be opened";
}

DynamicLibrary::~DynamicLibrary() {
  if (handle)
    dlclose(handle);
}

void *DynamicLibrary::find(const char *symbol) const {
  return dlsym(handle, symbol);
}

std::string ftrt::getFolderOf(const void *symbol) {
  Dl_info info;
  if (!dladdr(symbol, &info) || !info.dli_fname)
    return "";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}
