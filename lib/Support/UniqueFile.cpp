//===- UniqueFile.cpp - New files under names of their own ----------------===//
#include "FTuner/Support/UniqueFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

using namespace ftuner;
using llvm::ErrorOr;
using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

/// Names are taken by chance alone; more tries than this mean something else.
static constexpr unsigned kMaxTries = 128;

/// Calls `make` with `prefix`, random digits and `suffix` until the name is a
/// new one. Returns the name.
template <typename Make>
static ErrorOr<std::string> makeUnique(const Twine &prefix, const Twine &suffix,
                                       Make make) {
  std::error_code code;
  for (unsigned i = 0; i < kMaxTries; ++i) {
    std::string path;
    llvm::raw_string_ostream(path)
        << prefix
        << llvm::format_hex_no_prefix(llvm::sys::Process::GetRandomNumber(), 8)
        << suffix;
    code = make(path);
    if (!code)
      return path;
    if (code != std::errc::file_exists)
      return code;
  }
  return code;
}

/// Returns the prefix of the names of temporary files.
static std::string getTemporaryPrefix() {
  llvm::SmallString<128> folder;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  llvm::sys::path::append(folder, "ftuner-");
  return folder.str().str();
}

ErrorOr<UniqueFile> UniqueFile::create(const Twine &prefix, const Twine &suffix,
                                       unsigned mode) {
  int descriptor = -1;
  ErrorOr<std::string> path =
      makeUnique(prefix, suffix, [&](const std::string &path) {
        return fs::openFileForWrite(path, descriptor, fs::CD_CreateNew,
                                    fs::OF_None, mode);
      });
  if (!path)
    return path.getError();
  return UniqueFile(std::move(*path), descriptor);
}

ErrorOr<UniqueFile> UniqueFile::createBeside(StringRef path) {
  return create(path + ".", ".tmp", fs::all_read | fs::all_write);
}

ErrorOr<UniqueFile> UniqueFile::createTemporary(StringRef suffix) {
  return create(getTemporaryPrefix(), suffix, fs::owner_read | fs::owner_write);
}

UniqueFile::UniqueFile(std::string path, int descriptor)
    : path(std::move(path)), descriptor(descriptor) {
  llvm::sys::RemoveFileOnSignal(this->path);
}

UniqueFile::UniqueFile(UniqueFile &&other)
    : path(std::move(other.path)), descriptor(other.descriptor) {
  other.path.clear();
  other.descriptor = -1;
}

UniqueFile::~UniqueFile() {
  (void)close();
  if (path.empty())
    return;
  fs::remove(path);
  llvm::sys::DontRemoveFileOnSignal(path);
}

std::error_code UniqueFile::close() {
  if (descriptor == -1)
    return {};
  int open = descriptor;
  descriptor = -1;
  return llvm::sys::Process::SafelyCloseFileDescriptor(open);
}

std::error_code UniqueFile::write(StringRef content) {
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream << content;
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  std::error_code closing = close();
  return code ? code : closing;
}

std::error_code UniqueFile::keepAs(StringRef newPath) {
  if (std::error_code code = close())
    return code;
  if (std::error_code code = fs::rename(path, newPath))
    return code;
  llvm::sys::DontRemoveFileOnSignal(path);
  path.clear();
  return {};
}
