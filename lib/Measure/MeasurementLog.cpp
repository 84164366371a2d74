//===- MeasurementLog.cpp - Measurements that are kept --------------------===//
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace ftuner;
using llvm::Twine;

static constexpr int formatVersion = 3;

static std::string jsonOf(const KernelFamily &family) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] { writeFamily(json, family); });
  return text;
}

std::string MeasurementLog::keyOf(const MeasurementRequest &request) {
  return request.workload->fingerprint(FingerprintOf::Kernels) +
         jsonOf(request.family) + tileText(request.shape);
}

const MeasurementLog::Entry *
MeasurementLog::find(const MeasurementRequest &request) const {
  auto it = entries.find(keyOf(request));
  return it == entries.end() ? nullptr : &it->second;
}

void MeasurementLog::add(const MeasurementRequest &request,
                         const Entry &entry) {
  entries[keyOf(request)] = entry;
}

void ftuner::writeRequest(llvm::json::OStream &json, llvm::StringRef device,
                          const MeasurementRequest &request) {
  json.attribute("device", device);
  json.attribute("workload",
                 request.workload->fingerprint(FingerprintOf::Kernels));
  json.attributeObject("family", [&] { writeFamily(json, request.family); });
  writeSizes(json, "shape", request.shape);
}

std::string MeasurementLog::measurers() const { return llvm::join(named, ","); }

std::string MeasurementLog::line(const MeasurementRequest &request,
                                 const Entry &entry) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("format_version", formatVersion);
    if (!measurer.empty())
      json.attribute("measurer", measurer);
    writeRequest(json, device, request);
    const Measurement &found = entry.measurement;
    if (found.microseconds)
      json.attribute("microseconds", *found.microseconds);
    if (found.registersPerThread)
      json.attribute("registers", *found.registersPerThread);
    if (found.spillBytes)
      json.attribute("spill_bytes", *found.spillBytes);
    if (!entry.failure.empty())
      json.attribute("failure", entry.failure);
  });
  return text;
}

llvm::Error MeasurementLog::readLine(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return llvm::createStringError("expected an object");
  std::optional<int64_t> version = object->getInteger("format_version");
  if (version != formatVersion)
    return llvm::createStringError("field 'format_version': expected " +
                                   Twine(formatVersion));
  std::optional<llvm::StringRef> name = object->getString("device");
  std::optional<llvm::StringRef> workload = object->getString("workload");
  const llvm::json::Object *familyJson = object->getObject("family");
  const llvm::json::Array *sizes = object->getArray("shape");
  if (!name || !workload || !familyJson || !sizes)
    return llvm::createStringError(
        "expected the fields 'device', 'workload', 'family' and "
        "'shape'");
  if (*name != device)
    return llvm::Error::success();
  std::optional<llvm::StringRef> measuredBy = object->getString("measurer");
  if (measuredBy && !measurer.empty() && *measuredBy != measurer)
    return llvm::Error::success();
  llvm::Expected<KernelFamily> family = parseFamily(*familyJson);
  if (!family)
    return family.takeError();
  Shape shape;
  for (const llvm::json::Value &size : *sizes) {
    std::optional<int64_t> number = size.getAsInteger();
    if (!number || *number < 1)
      return llvm::createStringError(
          "field 'shape': expected sizes of at least 1");
    shape.push_back(*number);
  }
  Entry entry;
  if (const llvm::json::Value *time = object->get("microseconds")) {
    entry.measurement.microseconds = time->getAsNumber();
    if (!entry.measurement.microseconds ||
        !(*entry.measurement.microseconds > 0))
      return llvm::createStringError(
          "field 'microseconds': expected a number above 0");
  }
  entry.measurement.registersPerThread = object->getInteger("registers");
  entry.measurement.spillBytes = object->getInteger("spill_bytes");
  if (std::optional<llvm::StringRef> failure = object->getString("failure"))
    entry.failure = failure->str();
  if (measuredBy)
    named.insert(measuredBy->str());
  entries[(*workload + jsonOf(*family) + tileText(shape)).str()] =
      std::move(entry);
  return llvm::Error::success();
}

/// Returns whether a text is JSON at all: a line that was cut off is not.
static bool isJson(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  return !llvm::errorToBool(value.takeError());
}

llvm::Expected<MeasurementLog> MeasurementLog::read(llvm::StringRef path,
                                                    llvm::StringRef device,
                                                    llvm::StringRef measurer) {
  MeasurementLog log(device, measurer);
  if (!llvm::sys::fs::exists(path))
    return log;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("cannot read '" + path +
                                   "': " + buffer.getError().message());
  llvm::SmallVector<llvm::StringRef> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (auto [index, text] : llvm::enumerate(lines)) {
    bool wasCutOff = index + 1 == lines.size() && !isJson(text);
    if (text.trim().empty() || wasCutOff)
      continue;
    if (llvm::Error error = log.readLine(text))
      return llvm::createStringError(path + ":" + Twine(index + 1) + ": " +
                                     llvm::toString(std::move(error)));
  }
  return log;
}

static bool isTime(double microseconds) {
  return microseconds > 0 && std::isfinite(microseconds);
}

/// An answer from a log.
static llvm::Expected<Measurement>
answerOf(const MeasurementLog::Entry &entry) {
  if (!entry.failure.empty())
    return llvm::createStringError(entry.failure);
  return entry.measurement;
}

RecordedMeasurer::RecordedMeasurer(MeasurementLog given)
    : log(std::move(given)), title("recorded") {
  if (std::string measuredBy = log.measurers(); !measuredBy.empty())
    title += " (" + measuredBy + ")";
}

static llvm::Error notMeasured(const Twine &reason) {
  return llvm::make_error<NotMeasured>(reason.str());
}

std::vector<llvm::Expected<Measurement>>
RecordedMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  std::vector<llvm::Expected<Measurement>> answers;
  for (const MeasurementRequest &request : requests) {
    if (const MeasurementLog::Entry *entry = log.find(request))
      answers.push_back(answerOf(*entry));
    else
      answers.push_back(notMeasured("expected a recorded measurement of " +
                                    request.family.str() + " for " +
                                    tileText(request.shape)));
  }
  return answers;
}

/// Makes a file ready for new lines: drops a last line that was cut off, and
/// returns what a last line lacks that was not.
static llvm::Expected<llvm::StringRef> prepareEnd(llvm::StringRef path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return llvm::StringRef();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(buffer.getError().message());
  llvm::StringRef text = (*buffer)->getBuffer();
  llvm::StringRef last = text.drop_front(text.rfind('\n') + 1);
  if (last.empty())
    return llvm::StringRef();
  if (isJson(last))
    return "\n";
  int descriptor = -1;
  std::error_code code = llvm::sys::fs::openFileForWrite(
      path, descriptor, llvm::sys::fs::CD_OpenExisting);
  if (!code) {
    code = llvm::sys::fs::resize_file(descriptor, text.size() - last.size());
    llvm::sys::fs::closeFile(descriptor);
  }
  if (code)
    return llvm::createStringError(code.message());
  return llvm::StringRef();
}

llvm::Error LoggingMeasurer::append(llvm::StringRef lines) {
  auto fail = [&](const Twine &reason) {
    return llvm::createStringError("cannot write '" + path + "': " + reason);
  };
  llvm::StringRef before;
  if (!hasAppended) {
    llvm::Expected<llvm::StringRef> end = prepareEnd(path);
    if (!end)
      return fail(llvm::toString(end.takeError()));
    before = *end;
    hasAppended = true;
  }
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::OF_Append);
  os << before << lines;
  os.close();
  if (!code && !os.has_error())
    return llvm::Error::success();
  if (!code)
    code = os.error();
  os.clear_error();
  return fail(code.message());
}

llvm::Error LoggingMeasurer::ask(llvm::ArrayRef<MeasurementRequest> requests) {
  std::vector<llvm::Expected<Measurement>> found = inner.measure(requests);
  std::string lines;
  for (auto [request, answer] : llvm::zip_equal(requests, found)) {
    MeasurementLog::Entry entry;
    if (!answer) {
      llvm::Error error = answer.takeError();
      if (error.isA<MeasurerFailed>() || error.isA<NotMeasured>()) {
        bool isOver = error.isA<MeasurerFailed>();
        std::string reason = llvm::toString(std::move(error));
        (isOver ? failure : unanswered[MeasurementLog::keyOf(request)]) =
            std::move(reason);
        ++budget;
        continue;
      }
      entry.failure = llvm::toString(std::move(error));
    } else if (answer->microseconds && !isTime(*answer->microseconds)) {
      entry.failure =
          ("expected a time above 0, but '" + inner.name() + "' measured " +
           std::to_string(*answer->microseconds) + " µs")
              .str();
    } else {
      entry.measurement = *answer;
    }
    lines += log.line(request, entry) + "\n";
    log.add(request, entry);
  }
  return lines.empty() || path.empty() ? llvm::Error::success() : append(lines);
}

std::vector<llvm::Expected<Measurement>>
LoggingMeasurer::measure(llvm::ArrayRef<MeasurementRequest> requests) {
  // What is new, each once, as far as the budget goes.
  std::vector<MeasurementRequest> asked;
  std::set<std::string> keys;
  for (const MeasurementRequest &request : requests)
    if (!log.find(request) &&
        keys.insert(MeasurementLog::keyOf(request)).second)
      asked.push_back(request);
  unanswered.clear();
  size_t batch = std::max<size_t>(inner.batchSize(), 1);
  llvm::ArrayRef<MeasurementRequest> rest = asked;
  while (!rest.empty() && budget > 0 && failure.empty()) {
    size_t count = std::min({batch, rest.size(), static_cast<size_t>(budget)});
    budget -= count;
    if (llvm::Error error = ask(rest.take_front(count)))
      failure = llvm::toString(std::move(error));
    rest = rest.drop_front(count);
  }
  std::vector<llvm::Expected<Measurement>> answers;
  for (const MeasurementRequest &request : requests) {
    const MeasurementLog::Entry *entry = log.find(request);
    auto reason = unanswered.find(MeasurementLog::keyOf(request));
    if (!failure.empty())
      answers.push_back(llvm::make_error<MeasurerFailed>(failure));
    else if (entry)
      answers.push_back(answerOf(*entry));
    else if (reason != unanswered.end())
      answers.push_back(notMeasured(reason->second));
    else
      answers.push_back(notMeasured("the budget of measurements is spent"));
  }
  return answers;
}
