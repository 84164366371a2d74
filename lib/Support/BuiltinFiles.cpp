//===- BuiltinFiles.cpp - Texts embedded in the compiler ------------------===//
#include "FTuner/Support/BuiltinFiles.h"
#include "FTuner/Support/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

std::vector<std::string> ftuner::namesOf(llvm::ArrayRef<BuiltinFile> files) {
  std::vector<std::string> names;
  for (const BuiltinFile &file : files)
    names.push_back(file.name);
  llvm::sort(names);
  return names;
}

llvm::Expected<SourceText>
ftuner::findBuiltinOrFile(StringRef kind, llvm::ArrayRef<BuiltinFile> builtin,
                          StringRef nameOrPath) {
  for (const BuiltinFile &file : builtin)
    if (nameOrPath == file.name)
      return SourceText{file.text,
                        (Twine("<built-in>/") + file.name + ".json").str()};

  auto cannotRead = [&](const Twine &reason) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "cannot read " + kind + " file '" +
                                       nameOrPath + "': " + reason);
  };
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(nameOrPath, status)) {
    if (nameOrPath.contains('/') || nameOrPath.ends_with(".json"))
      return cannotRead(code.message());
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "unknown " + kind + " '" + nameOrPath +
            "': expected the path of a JSON file or one of " +
            llvm::join(namesOf(builtin), ", "));
  }
  if (!llvm::sys::fs::is_regular_file(status))
    return cannotRead("expected a regular file");
  if (status.getSize() > maxJsonFileBytes)
    return cannotRead("expected at most " + Twine(maxJsonFileBytes) +
                      " bytes, but got " + Twine(status.getSize()));
  auto buffer = llvm::MemoryBuffer::getFile(nameOrPath);
  if (!buffer)
    return cannotRead(buffer.getError().message());
  return SourceText{(*buffer)->getBuffer().str(), nameOrPath.str()};
}
