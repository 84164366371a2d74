//===- LibraryModule.h - The module object of a library ---------*- C++ -*-===//
#ifndef FTUNER_LIB_TARGET_LIBRARY_LIBRARYMODULE_H
#define FTUNER_LIB_TARGET_LIBRARY_LIBRARYMODULE_H

#include "FTuner/Target/Library.h"

#include "llvm/ADT/StringSet.h"

namespace llvm {
class Module;
} // namespace llvm

namespace ftuner {

/// The name that the module object has in every shared library.
inline constexpr llvm::StringLiteral kSharedModuleSymbol = "ftuner_module";

struct LibraryContents {
  std::string moduleSymbol;
  /// Symbol of the image for the emulator, in another object file of the
  /// library; empty if there is no such image.
  std::string hostImageSymbol;
  llvm::StringRef manifest;
};

/// Defines the `ftrt_module` that the kernels in `code`, lowered host code,
/// refer to.
void addModuleObject(llvm::Module &code, const PtxImages &ptx,
                     const LibraryContents &contents,
                     const LibraryOptions &options);

/// Makes every definition but `exports` and the module object internal.
void limitExports(llvm::Module &code, const llvm::StringSet<> &exports,
                  llvm::StringRef moduleSymbol);

} // namespace ftuner

#endif // FTUNER_LIB_TARGET_LIBRARY_LIBRARYMODULE_H
