//===- Ptxas.cpp - The assembler ------------------------------------------===//
#include "FTuner/Target/Ptxas.h"

#include "llvm/ADT/ScopeExit.h"
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

/// What the log says is wrong, e.g. "ptxas fatal   : …" without its head.
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

static Error ptxasError(StringRef ptxas, const Twine &what,
                        const PtxTarget &target, const Twine &reason) {
  return createStringError(inconvertibleErrorCode(),
                           "'" + ptxas + "' cannot assemble " + what +
                               " for '" + target.chip + "': " + reason);
}

/// Runs ptxas on `text` and returns what it prints. `what` names the text.
static Expected<std::string> runPtxas(StringRef ptxas, StringRef text,
                                      const Twine &what,
                                      const PtxTarget &target,
                                      StringRef output) {
  int input = -1;
  SmallString<128> inputPath, logPath;
  if (std::error_code code =
          sys::fs::createTemporaryFile("ftuner", "ptx", input, inputPath))
    return ptxasError(ptxas, what, target, code.message());
  scope_exit removeInput([&] { sys::fs::remove(inputPath); });
  {
    raw_fd_ostream stream(input, /*shouldClose=*/true);
    stream << text;
    stream.flush();
    if (std::error_code code = stream.error()) {
      stream.clear_error();
      return ptxasError(ptxas, what, target, code.message());
    }
  }
  if (std::error_code code =
          sys::fs::createTemporaryFile("ftuner", "log", logPath))
    return ptxasError(ptxas, what, target, code.message());
  scope_exit removeLog([&] { sys::fs::remove(logPath); });

  std::string architecture = "-arch=" + target.chip, message;
  StringRef log = logPath;
  int status = sys::ExecuteAndWait(
      ptxas, {ptxas, architecture, "-v", inputPath, "-o", output},
      /*Env=*/std::nullopt,
      /*Redirects=*/{std::nullopt, log, log},
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  auto printed = MemoryBuffer::getFile(logPath);
  if (!printed)
    return ptxasError(ptxas, what, target, printed.getError().message());
  StringRef words = (*printed)->getBuffer();
  if (status != 0)
    return ptxasError(ptxas, what, target,
                      message.empty() ? complaintOf(words)
                                      : StringRef(message));
  return words.str();
}

Expected<PtxResources> measureResources(StringRef ptxas,
                                        const PtxKernel &kernel,
                                        const PtxTarget &target) {
  std::string what = "kernel '" + kernel.entry + "'";
  Expected<std::string> log =
      runPtxas(ptxas, kernel.text, what, target, "/dev/null");
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
    return ptxasError(ptxas, what, target,
                      "expected figures of registers and spills in its output");
  return resources;
}

Expected<std::string> assembleCubin(StringRef ptxas, const PtxModule &ptx) {
  constexpr StringLiteral what = "the kernels";
  SmallString<128> path;
  if (std::error_code code =
          sys::fs::createTemporaryFile("ftuner", "cubin", path))
    return ptxasError(ptxas, what, ptx.target, code.message());
  scope_exit removeCubin([&] { sys::fs::remove(path); });
  Expected<std::string> log = runPtxas(ptxas, ptx.text, what, ptx.target, path);
  if (!log)
    return log.takeError();
  auto cubin = MemoryBuffer::getFile(path, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
  if (!cubin)
    return ptxasError(ptxas, what, ptx.target, cubin.getError().message());
  if (!(*cubin)->getBuffer().starts_with("\x7f"
                                         "ELF"))
    return ptxasError(ptxas, what, ptx.target, "it wrote no cubin");
  return (*cubin)->getBuffer().str();
}

} // namespace ftuner
