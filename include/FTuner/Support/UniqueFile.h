//===- UniqueFile.h - New files under names of their own --------*- C++ -*-===//
//
// Files that nobody else has: outputs before they are complete, and what other
// programs read and write. LLVM's functions for them take a model of the whole
// path, and replace every '%' in it, those of its folders too; here a path is
// taken as it is.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SUPPORT_UNIQUEFILE_H
#define FTUNER_SUPPORT_UNIQUEFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorOr.h"
#include <string>

namespace ftuner {

/// A new file, which is removed with its object, and where a signal ends the
/// program, unless it is kept.
class UniqueFile {
public:
  /// A file in the folder of `path`, whose name begins with that of `path`.
  static llvm::ErrorOr<UniqueFile> createBeside(llvm::StringRef path);
  /// A file in the system's folder for temporary files, which only this user
  /// may read. `suffix` ends its name, such as ".ptx".
  static llvm::ErrorOr<UniqueFile> createTemporary(llvm::StringRef suffix);

  UniqueFile(UniqueFile &&other);
  UniqueFile &operator=(UniqueFile &&) = delete;
  ~UniqueFile();

  llvm::StringRef getPath() const { return path; }
  /// Writes the whole content and closes the file; call it at most once.
  std::error_code write(llvm::StringRef content);
  /// Closes the file and renames it, which replaces a file of that name in one
  /// step. After an error it is still there, to be removed.
  std::error_code keepAs(llvm::StringRef newPath);

private:
  UniqueFile(std::string path, int descriptor);
  static llvm::ErrorOr<UniqueFile>
  create(const llvm::Twine &prefix, const llvm::Twine &suffix, unsigned mode);
  std::error_code close();

  /// Empty once the file is kept or moved from.
  std::string path;
  /// -1 once it is closed.
  int descriptor;
};

} // namespace ftuner

#endif // FTUNER_SUPPORT_UNIQUEFILE_H
