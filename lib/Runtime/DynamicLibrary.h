//===- DynamicLibrary.h - Libraries opened at run time ----------*- C++ -*-===//
#ifndef FTUNER_LIB_RUNTIME_DYNAMICLIBRARY_H
#define FTUNER_LIB_RUNTIME_DYNAMICLIBRARY_H

#include <string>

namespace ftrt {

/// A library; closed at the end of its life unless it was kept.
class DynamicLibrary {
public:
  explicit DynamicLibrary(const char *path);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary &) = delete;
  DynamicLibrary &operator=(const DynamicLibrary &) = delete;

  explicit operator bool() const { return handle != nullptr; }
  /// Why it could not be opened, in the loader's words.
  const std::string &error() const { return words; }
  /// Null if it has no such symbol.
  void *find(const char *symbol) const;
  /// Leaves it open until the process ends.
  void keep() { handle = nullptr; }

private:
  void *handle;
  std::string words;
};

/// The folder of the file that holds `symbol`, with a slash at its end; empty
/// if it has none.
std::string getFolderOf(const void *symbol);

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_DYNAMICLIBRARY_H
