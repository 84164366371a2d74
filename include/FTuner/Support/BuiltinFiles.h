//===- BuiltinFiles.h - Texts embedded in the compiler ----------*- C++ -*-===//
//
// Descriptions that are built in (ftuner_embed in cmake/FTunerTargets.cmake),
// and those that a user gives by path instead.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SUPPORT_BUILTINFILES_H
#define FTUNER_SUPPORT_BUILTINFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ftuner {

/// A JSON file that is part of the compiler; `name` is without its extension.
struct BuiltinFile {
  const char *name;
  const char *text;
};

/// A text and what errors call it.
struct SourceText {
  std::string text;
  std::string sourceName;
};

/// The names, sorted.
std::vector<std::string> namesOf(llvm::ArrayRef<BuiltinFile> files);

/// The built-in text of that name, or else that of the file at that path.
/// `kind` is what messages call it ("device"). The error for an unknown name
/// lists the built-in ones.
llvm::Expected<SourceText>
findBuiltinOrFile(llvm::StringRef kind, llvm::ArrayRef<BuiltinFile> builtin,
                  llvm::StringRef nameOrPath);

} // namespace ftuner

#endif // FTUNER_SUPPORT_BUILTINFILES_H
