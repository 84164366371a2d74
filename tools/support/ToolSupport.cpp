//===- ToolSupport.cpp - Support code of FTuner's programs ----------------===//
#include "ToolSupport.h"

#include "FTuner/Support/UniqueFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace llvm;

namespace ftuner::tool {

int fail(const Twine &message) {
  errs() << "error: " << message << '\n';
  return EXIT_FAILURE;
}

int fail(Error error) { return fail(toString(std::move(error))); }

void installErrorHandler() {
  install_fatal_error_handler(
      [](void *, const char *reason, bool) { std::_Exit(fail(reason)); });
}

/// Prints FTuner's version, then LLVM's.
static void printVersion(raw_ostream &stream) {
  stream << "FTuner " << FTUNER_VERSION << '\n';
  cl::PrintVersionMessage();
}

bool parseCommandLine(int argc, char **argv, StringRef overview) {
  cl::SetVersionPrinter(printVersion);
  std::string complaints;
  raw_string_ostream stream(complaints);
  if (cl::ParseCommandLineOptions(argc, argv, overview, &stream))
    return true;
  // Some complaints go to standard error directly and leave nothing here.
  StringRef text = StringRef(complaints).trim();
  fail(text.empty() ? "the command line is not valid" : text);
  return false;
}

static Error fileError(const Twine &problem, StringRef path,
                       std::error_code code) {
  return createStringError(code,
                           problem + " '" + path + "': " + code.message());
}

Expected<std::unique_ptr<MemoryBuffer>> readInput(StringRef path) {
  if (path != "-" && sys::fs::is_directory(path))
    return fileError("cannot open", path,
                     std::make_error_code(std::errc::is_a_directory));
  auto buffer = MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer)
    return fileError("cannot open", path, buffer.getError());
  return std::move(*buffer);
}

/// Writes through an open stream, which does not give up on errors by itself.
static Error writeStream(raw_fd_ostream &stream, StringRef path,
                         StringRef content) {
  stream << content;
  stream.flush();
  if (!stream.has_error())
    return Error::success();
  std::error_code code = stream.error();
  stream.clear_error();
  return fileError("cannot write", path, code);
}

/// Returns the path to write for `path`: a link is followed to its file.
/// Reports errors that can be found before writing the file.
static Expected<std::string> checkRegularFile(StringRef path) {
  sys::fs::file_status status;
  std::error_code code = sys::fs::status(path, status);
  if (code || !sys::fs::exists(status))
    return path.str();
  if (sys::fs::is_directory(status))
    return fileError("cannot write", path,
                     std::make_error_code(std::errc::is_a_directory));
  if (!sys::fs::is_regular_file(status))
    return createStringError(inconvertibleErrorCode(),
                             "cannot write '" + path +
                                 "': expected a regular file");
  SmallString<128> real;
  if ((code = sys::fs::access(path, sys::fs::AccessMode::Write)) ||
      (code = sys::fs::real_path(path, real)))
    return fileError("cannot write", path, code);
  return real.str().str();
}

Error writeOutputs(ArrayRef<OutputFile> files) {
  std::vector<std::string> places;
  for (const OutputFile &file : files) {
    Expected<std::string> place = checkRegularFile(file.path);
    if (!place)
      return place.takeError();
    if (is_contained(places, *place))
      return createStringError(inconvertibleErrorCode(),
                               "expected a file for each output, but got '" +
                                   file.path + "' twice");
    places.push_back(std::move(*place));
  }
  std::vector<UniqueFile> written;
  for (auto [file, place] : zip_equal(files, places)) {
    ErrorOr<UniqueFile> output = UniqueFile::createBeside(place);
    std::error_code code =
        output ? output->write(file.content) : output.getError();
    if (code)
      return fileError("cannot write", file.path, code);
    written.push_back(std::move(*output));
  }
  // Renaming within a folder that was just written to: nothing is left that
  // could fail.
  for (auto [file, place, output] : zip_equal(files, places, written))
    if (std::error_code code = output.keepAs(place))
      return fileError("cannot write", file.path, code);
  return Error::success();
}

Error writeOutput(StringRef path, StringRef content) {
  if (path == "-")
    return writeStream(outs(), "<standard output>", content);
  sys::fs::file_status status;
  if (sys::fs::status(path, status) || sys::fs::is_directory(status) ||
      sys::fs::is_regular_file(status))
    return writeOutputs({{path.str(), content.str()}});
  // A device or a pipe.
  std::error_code code = sys::fs::access(path, sys::fs::AccessMode::Write);
  if (code)
    return fileError("cannot write", path, code);
  raw_fd_ostream stream(path, code);
  if (code)
    return fileError("cannot write", path, code);
  return writeStream(stream, path, content);
}

} // namespace ftuner::tool
