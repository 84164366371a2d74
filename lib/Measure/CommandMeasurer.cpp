//===- CommandMeasurer.cpp - A command that measures ----------------------===//
#include "FTuner/Measure/CommandMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

using namespace ftuner;

/// The shell's place by POSIX.
static constexpr llvm::StringLiteral shell = "/bin/sh";
/// How often a running command is looked at: short ones lose little, long ones
/// cost nothing.
static constexpr std::chrono::microseconds firstPause(500), longestPause(50000);

llvm::Error CommandMeasurer::failed(const llvm::Twine &reason) const {
  return llvm::make_error<MeasurerFailed>(
      ("measurer '" + title + "': " + reason).str());
}

/// The line that a command reads.
static std::string requestLine(const DeviceSpec &device,
                               const MeasurementRequest &request) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] { writeRequest(json, device.name, request); });
  return text + "\n";
}

/// The status of a process, or none where the limit ended it. Waits by looking:
/// an alarm would be one for all threads.
static std::optional<int> statusWithin(llvm::sys::ProcessInfo process,
                                       std::chrono::seconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  for (auto pause = firstPause;; pause = std::min(2 * pause, longestPause)) {
    llvm::sys::ProcessInfo ended =
        llvm::sys::Wait(process, /*SecondsToWait=*/0);
    if (ended.Pid != 0)
      return ended.ReturnCode;
    if (std::chrono::steady_clock::now() >= end)
      break;
    std::this_thread::sleep_for(pause);
  }
  // The command leads a group of its own: what it started ends with it.
  ::kill(-process.Pid, SIGKILL);
  llvm::sys::Wait(process, /*SecondsToWait=*/std::nullopt);
  return std::nullopt;
}

/// Parses the output of a command; errors do not begin with "measurer".
static llvm::Expected<Measurement> parseAnswer(llvm::StringRef text,
                                               std::string &failure) {
  llvm::StringRef line = text.trim();
  if (line.empty())
    return llvm::createStringError("expected a line of JSON on its standard "
                                   "output, but got nothing");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(line);
  if (!value) {
    llvm::consumeError(value.takeError());
    return llvm::createStringError("expected one line of JSON, but got '" +
                                   line.take_front(200) + "'");
  }
  const llvm::json::Object *object = value->getAsObject();
  std::optional<llvm::StringRef> error;
  std::optional<double> time;
  if (object) {
    error = object->getString("error");
    time = object->getNumber("microseconds");
  }
  if (error) {
    failure = error->empty() ? "the command gave no reason" : error->str();
    return Measurement();
  }
  if (!time || !(*time > 0))
    return llvm::createStringError(
        "expected a field 'microseconds' above 0 or a text 'error', but got '" +
        line.take_front(200) + "'");
  Measurement measurement;
  measurement.microseconds = *time;
  measurement.registersPerThread = object->getInteger("registers");
  measurement.spillBytes = object->getInteger("spill_bytes");
  return measurement;
}

llvm::Expected<Measurement>
CommandMeasurer::run(const MeasurementRequest &request) const {
  llvm::SmallString<64> input, output;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("ftuner", "request", input))
    return failed("cannot write its request: " + code.message());
  auto removeInput =
      llvm::make_scope_exit([&] { llvm::sys::fs::remove(input); });
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("ftuner", "answer", output))
    return failed("cannot keep its answer: " + code.message());
  auto removeOutput =
      llvm::make_scope_exit([&] { llvm::sys::fs::remove(output); });
  {
    std::error_code code;
    llvm::raw_fd_ostream os(input, code);
    os << requestLine(device, request);
    os.close();
    if (code || os.has_error()) {
      os.clear_error();
      return failed("cannot write its request");
    }
  }
  std::string message;
  bool hasFailed = false;
  llvm::sys::ProcessInfo process = llvm::sys::ExecuteNoWait(
      shell, {shell, "-c", command}, /*Env=*/std::nullopt,
      {llvm::StringRef(input), llvm::StringRef(output), std::nullopt},
      /*MemoryLimit=*/0, &message, &hasFailed, /*AffinityMask=*/nullptr,
      /*DetachProcess=*/true);
  if (hasFailed || process.Pid == 0)
    return failed("cannot run it: " + message);
  std::optional<int> status =
      statusWithin(process, std::chrono::seconds(secondsLimit));
  if (!status)
    return llvm::createStringError("the command took longer than " +
                                   llvm::Twine(secondsLimit) + " s");
  if (*status != 0)
    return failed("expected exit status 0, but got " + llvm::Twine(*status));
  auto buffer = llvm::MemoryBuffer::getFile(output);
  if (!buffer)
    return failed("cannot read its answer: " + buffer.getError().message());
  std::string failure;
  llvm::Expected<Measurement> answer =
      parseAnswer((*buffer)->getBuffer(), failure);
  if (!answer)
    return failed(llvm::toString(answer.takeError()));
  if (!failure.empty())
    return llvm::createStringError(failure);
  return answer;
}

std::vector<llvm::Expected<Measurement>>
CommandMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  std::vector<llvm::Expected<Measurement>> answers;
  for (const MeasurementRequest &request : requests)
    answers.push_back(run(request));
  return answers;
}
