//===- Ptxas.cpp - The assembler ------------------------------------------===//
#include "FTuner/PTX/Ptxas.h"
#include "FTuner/Support/UniqueFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace ftuner {

std::optional<std::string> findPtxas() {
  if (ErrorOr<std::string> found = sys::findProgramByName("ptxas"))
    return *found;
  SmallString<128> path(
      sys::Process::GetEnv("CUDA_HOME").value_or("/usr/local/cuda"));
  sys::path::append(path, "bin", "ptxas");
  if (sys::fs::can_execute(path))
    return path.str().str();
  return std::nullopt;
}

/// The number before `unit`, e.g. 24 in "24 bytes spill stores".
static bool readNumber(StringRef text, StringRef unit, int64_t &value) {
  size_t position = text.find(unit);
  if (position == StringRef::npos)
    return false;
  StringRef digits = text.take_front(position).rtrim();
  digits = digits.substr(digits.find_last_not_of("0123456789") + 1);
  return !digits.getAsInteger(10, value);
}

/// Returns the complaint in the log, e.g. "ptxas fatal   : …" without its head.
static StringRef complaintOf(StringRef log) {
  StringRef first = log.split('\n').first;
  while (!log.empty()) {
    auto [line, rest] = log.split('\n');
    auto [head, complaint] = line.split(" : ");
    if (head.contains("fatal") || head.contains("error"))
      return complaint.trim();
    log = rest;
  }
  return first.trim();
}

static Error ptxasError(StringRef ptxas, const Twine &source,
                        const PtxTarget &target, const Twine &reason) {
  return createStringError(inconvertibleErrorCode(),
                           "'" + ptxas + "' cannot assemble " + source +
                               " for '" + target.chip() + "': " + reason);
}

/// Runs ptxas on `text` and returns what it prints. `source` names the text.
static Expected<std::string> runPtxas(StringRef ptxas, StringRef text,
                                      const Twine &source,
                                      const PtxTarget &target,
                                      StringRef output) {
  auto temporaryError = [&](std::error_code code) {
    return ptxasError(ptxas, source, target,
                      "cannot write a temporary file: " + code.message());
  };
  ErrorOr<UniqueFile> input = UniqueFile::createTemporary(".ptx");
  ErrorOr<UniqueFile> printed = UniqueFile::createTemporary(".log");
  for (ErrorOr<UniqueFile> *file : {&input, &printed})
    if (!*file)
      return temporaryError(file->getError());
  if (std::error_code code = input->write(text))
    return temporaryError(code);

  std::string architecture = "-arch=" + target.chip(), message;
  StringRef logPath = printed->getPath();
  int status = sys::ExecuteAndWait(
      ptxas, {ptxas, architecture, "-v", input->getPath(), "-o", output},
      /*Env=*/std::nullopt,
      /*Redirects=*/{std::nullopt, logPath, logPath},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  auto log = MemoryBuffer::getFile(logPath);
  if (!log)
    return ptxasError(ptxas, source, target, log.getError().message());
  StringRef words = (*log)->getBuffer();
  if (status != 0)
    return ptxasError(ptxas, source, target,
                      message.empty() ? complaintOf(words)
                                      : StringRef(message));
  return words.str();
}

Expected<PtxResources> measureResources(StringRef ptxas,
                                        const PtxKernel &kernel,
                                        const PtxTarget &target) {
  std::string source = "kernel '" + kernel.entry + "'";
  Expected<std::string> log =
      runPtxas(ptxas, kernel.text, source, target, "/dev/null");
  if (!log)
    return log.takeError();
  // One kernel in the file, so every figure is its own.
  StringRef text = *log;
  PtxResources resources;
  StringRef used = text.substr(text.find("Used "));
  if (!readNumber(used, " registers", resources.registersPerThread) ||
      !readNumber(text, " bytes stack frame", resources.stackBytes) ||
      !readNumber(text, " bytes spill stores", resources.spillStoreBytes) ||
      !readNumber(text, " bytes spill loads", resources.spillLoadBytes))
    return ptxasError(ptxas, source, target,
                      "expected figures of registers and spills in its output");
  return resources;
}

Expected<std::string> assembleCubin(StringRef ptxas, const PtxModule &ptx) {
  constexpr StringLiteral source = "the kernels";
  ErrorOr<UniqueFile> output = UniqueFile::createTemporary(".cubin");
  if (!output)
    return ptxasError(ptxas, source, ptx.target,
                      "cannot write a temporary file: " +
                          output.getError().message());
  Expected<std::string> log =
      runPtxas(ptxas, ptx.text, source, ptx.target, output->getPath());
  if (!log)
    return log.takeError();
  auto cubin = MemoryBuffer::getFile(output->getPath(), /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
  if (!cubin)
    return ptxasError(ptxas, source, ptx.target, cubin.getError().message());
  if (!(*cubin)->getBuffer().starts_with("\x7f"
                                         "ELF"))
    return ptxasError(ptxas, source, ptx.target, "it wrote no cubin");
  return (*cubin)->getBuffer().str();
}

} // namespace ftuner
