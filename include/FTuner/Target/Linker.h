//===- Linker.h - Object files to libraries ---------------------*- C++ -*-===//
//
// Runs a linker for ELF: LLVM's or GNU's.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_LINKER_H
#define FTUNER_TARGET_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace ftuner {

/// Finds a linker: FTUNER_LINKER where it is set; ld.lld beside LLVM's shared
/// library; ld.lld-22, ld.lld or ld on PATH. The error says where it looked.
llvm::Expected<std::string> findLinker();

struct LinkOptions {
  /// The library's name for the dynamic linker.
  std::string soname;
  /// Path of libftrt, the only library that it needs besides C's libraries.
  std::string runtime;
  /// Folder in which the dynamic linker looks for libftrt after the library's
  /// own; may be empty.
  std::string rpath;
};

/// Links object files to a shared library. The error holds the linker's words.
llvm::Expected<std::string>
linkSharedLibrary(llvm::StringRef linker, llvm::ArrayRef<std::string> objects,
                  const LinkOptions &options);

/// Joins object files to one. One file stays as it is, without a linker.
llvm::Expected<std::string> joinObjects(llvm::StringRef linker,
                                        llvm::ArrayRef<std::string> objects);

} // namespace ftuner

#endif // FTUNER_TARGET_LINKER_H
