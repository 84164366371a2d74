//===- DeviceSpec.cpp - Description of a GPU ------------------------------===//
#include "FTuner/Device/DeviceSpec.h"
#include "BuiltinDevices.h"
#include "DeviceFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// A count: a positive integer up to `max`.
struct CountField {
  const char *key;
  int64_t DeviceSpec::*member;
  int64_t max;
  bool required;
};

/// A positive figure up to `max`.
struct FigureField {
  const char *key;
  double DeviceSpec::*member;
  double max;
};

/// A positive figure that a device may lack.
struct OptionalFigureField {
  const char *key;
  std::optional<double> DeviceSpec::*member;
  double max;
};
} // namespace

// The upper limits are far above any device there is; they catch wrong units.
static const CountField countFields[] = {
    {"sm_count", &DeviceSpec::smCount, 4096, true},
    {"shared_memory_per_sm_bytes", &DeviceSpec::sharedMemoryPerSmBytes, 1 << 24,
     true},
    {"shared_memory_per_block_bytes", &DeviceSpec::sharedMemoryPerBlockBytes,
     1 << 24, true},
    {"registers_per_sm", &DeviceSpec::registersPerSm, 1 << 22, true},
    {"registers_per_block", &DeviceSpec::registersPerBlock, 1 << 22, false},
    {"max_registers_per_thread", &DeviceSpec::maxRegistersPerThread, 1024,
     true},
    {"max_threads_per_sm", &DeviceSpec::maxThreadsPerSm, 1 << 16, true},
    {"max_threads_per_block", &DeviceSpec::maxThreadsPerBlock, 1 << 14, true},
    {"max_blocks_per_sm", &DeviceSpec::maxBlocksPerSm, 1024, true},
};

static const FigureField figureFields[] = {
    {"clock_mhz", &DeviceSpec::clockMhz, 20000},
    {"fp32_tflops", &DeviceSpec::fp32Tflops, 100000},
    {"dram_gbps", &DeviceSpec::dramGbps, 1e6},
    {"l2_mib", &DeviceSpec::l2Mib, 16384},
};

static const OptionalFigureField optionalFigureFields[] = {
    {"tf32_tflops", &DeviceSpec::tf32Tflops, 1e6},
    {"f16_tflops", &DeviceSpec::f16Tflops, 1e6},
};

/// Compute capabilities that LLVM's NVPTX target has a processor for.
static const int knownCapabilities[] = {30, 32,  35,  37,  50,  52,  53, 60, 61,
                                        62, 70,  72,  75,  80,  86,  87, 88, 89,
                                        90, 100, 101, 103, 110, 120, 121};

/// A value as a message shows it: short, on one line.
static std::string shown(const llvm::json::Value &value) {
  std::string text = llvm::formatv("{0}", value);
  if (text.size() > 40)
    text = text.substr(0, 37) + "...";
  return text;
}

static llvm::Error checkNumber(const DeviceFile &file, StringRef key,
                               bool required, StringRef what, double max,
                               const llvm::json::Value *&value) {
  value = file.fields.get(key);
  if (!value) {
    if (!required)
      return llvm::Error::success();
    return file.error(key, "expected " + what + ", but the field is missing");
  }
  std::optional<double> number = value->getAsNumber();
  if (!number || !std::isfinite(*number) || *number <= 0)
    return file.error(key, "expected " + what + ", but got " + shown(*value));
  if (*number > max)
    return file.error(key, "expected at most " + shown(llvm::json::Value(max)) +
                               ", but got " + shown(*value));
  return llvm::Error::success();
}

static llvm::Error readNumbers(const DeviceFile &file, DeviceSpec &device) {
  const llvm::json::Value *value = nullptr;
  for (const CountField &field : countFields) {
    if (llvm::Error error = checkNumber(file, field.key, field.required,
                                        "a positive integer", field.max, value))
      return error;
    if (!value)
      continue;
    std::optional<int64_t> integer = value->getAsInteger();
    if (!integer)
      return file.error(field.key, "expected a positive integer, but got " +
                                       shown(*value));
    device.*field.member = *integer;
  }
  for (const FigureField &field : figureFields) {
    if (llvm::Error error = checkNumber(file, field.key, /*required=*/true,
                                        "a positive number", field.max, value))
      return error;
    device.*field.member = *value->getAsNumber();
  }
  for (const OptionalFigureField &field : optionalFigureFields) {
    if (llvm::Error error = checkNumber(file, field.key, /*required=*/false,
                                        "a positive number", field.max, value))
      return error;
    if (value)
      device.*field.member = *value->getAsNumber();
  }
  return llvm::Error::success();
}

static llvm::Error readString(const DeviceFile &file, StringRef key,
                              std::string &result) {
  const llvm::json::Value *value = file.fields.get(key);
  if (!value)
    return file.error(key, "expected a string, but the field is missing");
  std::optional<StringRef> text = value->getAsString();
  bool printable = text && llvm::all_of(*text, llvm::isPrint);
  if (!printable || text->trim().empty() || text->size() > 128)
    return file.error(key, "expected a string of 1 to 128 printable "
                           "characters, but got " +
                               shown(*value));
  result = text->str();
  return llvm::Error::success();
}

static llvm::Error readCapability(const DeviceFile &file, DeviceSpec &device) {
  const char *key = "compute_capability";
  const char *expected =
      "expected a compute capability that the compiler knows, such as \"9.0\"";
  const llvm::json::Value *value = file.fields.get(key);
  if (!value)
    return file.error(key, expected + Twine(", but the field is missing"));
  auto [major, minor] = value->getAsString().value_or("").split('.');
  bool isNumber = llvm::all_of(major, llvm::isDigit) && minor.size() == 1 &&
                  !major.getAsInteger(10, device.computeCapabilityMajor) &&
                  !minor.getAsInteger(10, device.computeCapabilityMinor);
  if (!isNumber || device.computeCapabilityMajor > 99 ||
      !llvm::is_contained(knownCapabilities, device.smVersion()))
    return file.error(key, expected + Twine(", but got ") + shown(*value));
  return llvm::Error::success();
}

static bool isField(StringRef key) {
  auto hasKey = [&](const auto &field) { return key == field.key; };
  return key == "name" || key == "architecture" ||
         key == "compute_capability" || key == "source" ||
         llvm::any_of(countFields, hasKey) ||
         llvm::any_of(figureFields, hasKey) ||
         llvm::any_of(optionalFigureFields, hasKey);
}

/// Refuses unknown fields (in the order of the file) and malformed sources.
static llvm::Error checkFields(const DeviceFile &file) {
  std::vector<std::pair<unsigned, std::string>> unknown;
  for (const auto &line : file.lines)
    if (!isField(line.first()))
      unknown.emplace_back(line.second, line.first().str());
  if (!unknown.empty()) {
    const std::string &key = llvm::min_element(unknown)->second;
    return file.error(key, "expected a field of the device schema");
  }
  const llvm::json::Value *source = file.fields.get("source");
  if (!source || source->getAsString())
    return llvm::Error::success();
  const llvm::json::Object *sources = source->getAsObject();
  if (!sources)
    return file.error("source",
                      "expected a string, or an object with a string for each "
                      "field, but got " +
                          shown(*source));
  for (const auto &[key, text] : *sources) {
    if (key != "all" && !isField(key))
      return file.error("source", "expected the name of a field or 'all', but "
                                  "got '" +
                                      StringRef(key) + "'");
    if (!text.getAsString())
      return file.error("source", "expected a string for '" + StringRef(key) +
                                      "', but got " + shown(text));
  }
  return llvm::Error::success();
}

/// Refuses descriptions whose fields contradict each other.
static llvm::Error checkConsistency(const DeviceFile &file,
                                    const DeviceSpec &device) {
  struct Order {
    const char *key;
    int64_t value;
    const char *limitKey;
    int64_t limit;
  };
  const Order orders[] = {
      {"shared_memory_per_block_bytes", device.sharedMemoryPerBlockBytes,
       "shared_memory_per_sm_bytes", device.sharedMemoryPerSmBytes},
      {"registers_per_block", device.registersPerBlock, "registers_per_sm",
       device.registersPerSm},
      {"max_threads_per_block", device.maxThreadsPerBlock, "max_threads_per_sm",
       device.maxThreadsPerSm},
      {"max_registers_per_thread", device.maxRegistersPerThread,
       "registers_per_sm", device.registersPerSm},
  };
  for (const Order &order : orders)
    if (order.value > order.limit)
      return file.error(order.key, "expected at most " + Twine(order.limit) +
                                       " (field '" + order.limitKey +
                                       "'), but got " + Twine(order.value));
  if (device.maxThreadsPerBlock < 32)
    return file.error("max_threads_per_block",
                      "expected at least one warp of 32 threads, but got " +
                          Twine(device.maxThreadsPerBlock));
  // Vendors' GPUs do 128 to 384 operations per SM and cycle.
  double perCycle =
      device.fp32Tflops * 1e6 / (device.smCount * device.clockMhz);
  if (perCycle < 1 || perCycle > 4096)
    return file.error(
        "fp32_tflops",
        llvm::formatv("expected 1 to 4096 operations per SM and cycle "
                      "(fp32_tflops / (sm_count * clock_mhz)), but got {0:f1}",
                      perCycle)
            .str());
  return llvm::Error::success();
}

llvm::Expected<DeviceSpec> ftuner::parseDeviceSpec(StringRef json,
                                                   StringRef sourceName) {
  llvm::Expected<DeviceFile> file = parseDeviceFile(json, sourceName);
  if (!file)
    return file.takeError();
  DeviceSpec device;
  if (llvm::Error error = checkFields(*file))
    return error;
  if (llvm::Error error = readString(*file, "name", device.name))
    return error;
  if (llvm::Error error =
          readString(*file, "architecture", device.architecture))
    return error;
  if (llvm::Error error = readCapability(*file, device))
    return error;
  if (llvm::Error error = readNumbers(*file, device))
    return error;
  if (device.registersPerBlock == 0)
    device.registersPerBlock = device.registersPerSm;
  if (llvm::Error error = checkConsistency(*file, device))
    return error;
  return device;
}

llvm::json::Object ftuner::toJson(const DeviceSpec &device) {
  llvm::json::Object object;
  object["name"] = device.name;
  object["architecture"] = device.architecture;
  object["compute_capability"] =
      llvm::formatv("{0}.{1}", device.computeCapabilityMajor,
                    device.computeCapabilityMinor)
          .str();
  for (const CountField &field : countFields)
    object[field.key] = device.*field.member;
  for (const FigureField &field : figureFields)
    object[field.key] = device.*field.member;
  for (const OptionalFigureField &field : optionalFigureFields)
    if (device.*field.member)
      object[field.key] = *(device.*field.member);
  return object;
}

std::vector<std::string> ftuner::builtinDeviceNames() {
  std::vector<std::string> names;
  for (const BuiltinDevice &device : builtinDevices())
    names.push_back(device.name);
  llvm::sort(names);
  return names;
}

static llvm::Error cannotRead(StringRef path, const Twine &reason) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "cannot read device file '" + path +
                                     "': " + reason);
}

llvm::Expected<DeviceSpec> ftuner::loadDeviceSpec(StringRef nameOrPath) {
  for (const BuiltinDevice &device : builtinDevices())
    if (nameOrPath == device.name)
      return parseDeviceSpec(
          device.json, (Twine("<built-in>/") + device.name + ".json").str());

  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(nameOrPath, status)) {
    if (nameOrPath.contains('/') || nameOrPath.ends_with(".json"))
      return cannotRead(nameOrPath, code.message());
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "unknown device '" + nameOrPath +
            "': expected the path of a JSON file or one of " +
            llvm::join(builtinDeviceNames(), ", "));
  }
  if (!llvm::sys::fs::is_regular_file(status))
    return cannotRead(nameOrPath, "expected a regular file");
  if (status.getSize() > maxDeviceFileBytes)
    return cannotRead(nameOrPath,
                      "expected at most " + Twine(maxDeviceFileBytes) +
                          " bytes, but got " + Twine(status.getSize()));
  auto buffer = llvm::MemoryBuffer::getFile(nameOrPath);
  if (!buffer)
    return cannotRead(nameOrPath, buffer.getError().message());
  return parseDeviceSpec((*buffer)->getBuffer(), nameOrPath);
}
