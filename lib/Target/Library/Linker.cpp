//===- Linker.cpp - Object files to libraries -----------------------------===//
#include "FTuner/Target/Linker.h"
#include "FTuner/Support/UniqueFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <cmath>
#include <cstdio>
#include <dlfcn.h>

using namespace llvm;

namespace ftuner {

/// The file of the shared library, or program, that holds `address`.
static std::string fileOf(const void *address) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname)
    return {};
  SmallString<128> real;
  if (sys::fs::real_path(info.dli_fname, real))
    return {};
  return real.str().str();
}

Expected<std::string> findLinker() {
  if (std::optional<std::string> given =
          sys::Process::GetEnv("FTUNER_LINKER")) {
    // Takes paths as they are.
    if (ErrorOr<std::string> found = sys::findProgramByName(*given);
        found && sys::fs::can_execute(*found))
      return *found;
    return createStringError("cannot run the linker '" + *given +
                             "' that FTUNER_LINKER names");
  }
  SmallString<128> besideLLVM(
      fileOf(reinterpret_cast<const void *>(&sys::ExecuteAndWait)));
  sys::path::remove_filename(besideLLVM);
  sys::path::append(besideLLVM, "..", "bin", "ld.lld");
  if (sys::fs::can_execute(besideLLVM))
    return besideLLVM.str().str();
  for (StringRef name : {"ld.lld-22", "ld.lld", "ld"})
    if (ErrorOr<std::string> found = sys::findProgramByName(name))
      return *found;
  return createStringError(
      "expected a linker, ld.lld or ld, on PATH or named by "
      "FTUNER_LINKER, but found none");
}

/// A new temporary file, which no signal leaves behind.
static Expected<UniqueFile> makeTemporary(StringRef suffix) {
  ErrorOr<UniqueFile> file = UniqueFile::createTemporary(suffix);
  if (!file)
    return createStringError("cannot make a temporary file: " +
                             file.getError().message());
  return std::move(*file);
}

/// Runs the linker and returns what it writes.
static Expected<std::string> runLinker(StringRef linker,
                                       ArrayRef<std::string> objects,
                                       ArrayRef<StringRef> before,
                                       ArrayRef<StringRef> after) {
  Expected<UniqueFile> output = makeTemporary(".out");
  if (!output)
    return output.takeError();
  Expected<UniqueFile> log = makeTemporary(".log");
  if (!log)
    return log.takeError();
  std::vector<UniqueFile> files;
  std::vector<StringRef> inputs;
  for (const std::string &object : objects) {
    Expected<UniqueFile> file = makeTemporary(".o");
    if (!file)
      return file.takeError();
    if (std::error_code code = file->write(object))
      return createStringError("cannot write '" + file->getPath() +
                               "': " + code.message());
    files.push_back(std::move(*file));
  }
  for (const UniqueFile &file : files)
    inputs.push_back(file.getPath());
  // LLD writes outputs other than standard output under temporary names, by a
  // pattern that replaces every '%', and renames them even if nothing reads
  // them.
  bool isPrinted = sys::path::filename(linker).contains("lld");
  SmallVector<StringRef> arguments = {linker, "-o",
                                      isPrinted ? "-" : output->getPath()};
  append_range(arguments, before);
  append_range(arguments, inputs);
  append_range(arguments, after);
  std::string message;
  StringRef logPath = log->getPath(),
            printedPath = isPrinted ? output->getPath() : logPath;
  int status =
      sys::ExecuteAndWait(linker, arguments, /*Env=*/std::nullopt,
                          /*Redirects=*/{std::nullopt, printedPath, logPath},
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status != 0) {
    auto printed = MemoryBuffer::getFile(logPath);
    std::string words = message;
    if (words.empty() && printed)
      words = (*printed)->getBuffer().trim().str();
    if (words.empty())
      words = "it ended with code " + std::to_string(status);
    return createStringError("the linker '" + linker + "' failed: " + words);
  }
  auto result = MemoryBuffer::getFile(output->getPath(), /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false);
  if (!result)
    return createStringError("cannot read the output of the linker '" + linker +
                             "': " + result.getError().message());
  return (*result)->getBuffer().str();
}

Expected<std::string> linkSharedLibrary(StringRef linker,
                                        ArrayRef<std::string> objects,
                                        const LinkOptions &options) {
  // The C library and its mathematics, as this program has them.
  std::string libc = fileOf(reinterpret_cast<const void *>(&std::fopen));
  std::string libm = fileOf(reinterpret_cast<const void *>(
      static_cast<double (*)(double)>(&std::atan)));
  SmallVector<StringRef> after = {options.runtime, "--as-needed"};
  for (StringRef library : {StringRef(libm), StringRef(libc)})
    if (!library.empty())
      after.push_back(library);
  // A copy of libftrt beside the library is found.
  std::string rpath = "$ORIGIN";
  if (!options.rpath.empty())
    rpath += ":" + options.rpath;
  return runLinker(linker, objects,
                   {"-shared", "-soname", options.soname, "-rpath", rpath,
                    "--enable-new-dtags", "--hash-style=gnu", "--build-id=none",
                    "--no-undefined", "-z", "noexecstack", "-z", "relro"},
                   after);
}

Expected<std::string> joinObjects(StringRef linker,
                                  ArrayRef<std::string> objects) {
  if (objects.size() == 1)
    return objects.front();
  return runLinker(linker, objects, {"-r"}, {});
}

} // namespace ftuner
