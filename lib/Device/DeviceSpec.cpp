//===- DeviceSpec.cpp - Description of a GPU ------------------------------===//
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Support/BuiltinFiles.h"
#include "FTuner/Support/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

namespace ftuner {
/// The files of lib/Device/devices.
llvm::ArrayRef<BuiltinFile> builtinDevices();
} // namespace ftuner

namespace {
/// A count: a positive integer up to `max`.
struct CountField {
  const char *key;
  int64_t DeviceSpec::*member;
  int64_t max;
  bool required;
};

/// A count that a file may leave out.
struct OptionalCountField {
  const char *key;
  std::optional<int64_t> DeviceSpec::*member;
  int64_t max;
};

/// A positive figure up to `max`.
struct FigureField {
  const char *key;
  double DeviceSpec::*member;
  double max;
};

/// A positive figure that a file may leave out.
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

static const OptionalCountField optionalCountFields[] = {
    {"warp_schedulers_per_sm", &DeviceSpec::warpSchedulersPerSm, 64},
    {"issue_slots_per_sm", &DeviceSpec::issueSlotsPerSm, 128},
    {"load_store_units_per_sm", &DeviceSpec::loadStoreUnitsPerSm, 1024},
};

static const FigureField figureFields[] = {
    {"clock_mhz", &DeviceSpec::clockMhz, 20000},
    {"fp32_tflops", &DeviceSpec::fp32Tflops, 100000},
    {"dram_gbps", &DeviceSpec::dramGbps, 1e6},
    {"l2_mib", &DeviceSpec::l2Mib, 16384},
};

/// Peaks of the tensor cores.
static const OptionalFigureField tensorPeakFields[] = {
    {"tf32_tflops", &DeviceSpec::tf32Tflops, 1e6},
    {"f16_tflops", &DeviceSpec::f16Tflops, 1e6},
    {"bf16_tflops", &DeviceSpec::bf16Tflops, 1e6},
    {"i8_tops", &DeviceSpec::i8Tops, 1e6},
};

static const OptionalFigureField otherFigureFields[] = {
    {"process_nm", &DeviceSpec::processNm, 1000},
    {"board_power_watts", &DeviceSpec::boardPowerWatts, 100000},
    {"load_clock_mhz", &DeviceSpec::loadClockMhz, 20000},
};

/// Bandwidths that micro-benchmarks reach.
static const OptionalFigureField measuredFields[] = {
    {"measured_dram_gbps", &DeviceSpec::measuredDramGbps, 1e6},
    {"measured_shared_memory_gbps", &DeviceSpec::measuredSharedMemoryGbps, 1e7},
    {"measured_fp32_tflops", &DeviceSpec::measuredFp32Tflops, 100000},
};

static auto optionalFigureFields() {
  return llvm::concat<const OptionalFigureField>(
      tensorPeakFields, otherFigureFields, measuredFields);
}

/// Compute capabilities that LLVM's NVPTX target has a processor for.
static const int knownCapabilities[] = {30, 32,  35,  37,  50,  52,  53, 60, 61,
                                        62, 70,  72,  75,  80,  86,  87, 88, 89,
                                        90, 100, 101, 103, 110, 120, 121};

static llvm::Error checkNumber(const JsonFile &file, StringRef key,
                               bool required, StringRef expected, double max,
                               const llvm::json::Value *&value) {
  value = file.fields.get(key);
  if (!value) {
    if (!required)
      return llvm::Error::success();
    return file.error(key,
                      "expected " + expected + ", but the field is missing");
  }
  std::optional<double> number = value->getAsNumber();
  if (!number || !std::isfinite(*number) || *number <= 0)
    return file.error(key,
                      "expected " + expected + ", but got " + shown(*value));
  if (*number > max)
    return file.error(key, "expected at most " + shown(llvm::json::Value(max)) +
                               ", but got " + shown(*value));
  return llvm::Error::success();
}

/// Reads a count if the file has it; `read` keeps it.
static llvm::Error readCount(const JsonFile &file, StringRef key, bool required,
                             int64_t max,
                             llvm::function_ref<void(int64_t)> read) {
  const llvm::json::Value *value = nullptr;
  if (llvm::Error error = checkNumber(file, key, required, "a positive integer",
                                      static_cast<double>(max), value))
    return error;
  if (!value)
    return llvm::Error::success();
  std::optional<int64_t> integer = value->getAsInteger();
  if (!integer)
    return file.error(key,
                      "expected a positive integer, but got " + shown(*value));
  read(*integer);
  return llvm::Error::success();
}

static llvm::Error readNumbers(const JsonFile &file, DeviceSpec &device) {
  for (const CountField &field : countFields)
    if (llvm::Error error =
            readCount(file, field.key, field.required, field.max,
                      [&](int64_t count) { device.*field.member = count; }))
      return error;
  for (const OptionalCountField &field : optionalCountFields)
    if (llvm::Error error =
            readCount(file, field.key, /*required=*/false, field.max,
                      [&](int64_t count) { device.*field.member = count; }))
      return error;
  const llvm::json::Value *value = nullptr;
  for (const FigureField &field : figureFields) {
    if (llvm::Error error = checkNumber(file, field.key, /*required=*/true,
                                        "a positive number", field.max, value))
      return error;
    device.*field.member = *value->getAsNumber();
  }
  for (const OptionalFigureField &field : optionalFigureFields()) {
    if (llvm::Error error = checkNumber(file, field.key, /*required=*/false,
                                        "a positive number", field.max, value))
      return error;
    if (value)
      device.*field.member = *value->getAsNumber();
  }
  return llvm::Error::success();
}

static llvm::Error readCapability(const JsonFile &file, DeviceSpec &device) {
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
  return key == "name" || key == "architecture" || key == "die" ||
         key == "compute_capability" || key == "source" ||
         llvm::any_of(countFields, hasKey) ||
         llvm::any_of(optionalCountFields, hasKey) ||
         llvm::any_of(figureFields, hasKey) ||
         llvm::any_of(optionalFigureFields(), hasKey);
}

/// Refuses unknown fields (in the order of the file) and malformed sources.
static llvm::Error checkFields(const JsonFile &file) {
  if (llvm::Error error =
          file.checkKeys(isField, "a field of the device schema"))
    return error;
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

/// Refuses peaks of the tensor cores that the clock and the number of SMs rule
/// out, and bf16 at another rate than f16.
static llvm::Error checkTensorPeaks(const JsonFile &file,
                                    const DeviceSpec &device) {
  for (const OptionalFigureField &field : tensorPeakFields) {
    const std::optional<double> &peak = device.*field.member;
    if (!peak)
      continue;
    // GPUs do 256 (tf32) to 16384 (i8) operations per SM and cycle.
    double perCycle = *peak * 1e6 / (device.smCount * device.clockMhz);
    if (perCycle < 16 || perCycle > 131072)
      return file.error(
          field.key,
          llvm::formatv("expected 16 to 131072 operations per SM and cycle "
                        "({0} / (sm_count * clock_mhz)), but got {1:f1}",
                        field.key, perCycle)
              .str());
  }
  if (device.bf16Tflops && device.bf16Tflops != device.f16Tflops)
    return file.error("bf16_tflops",
                      "expected the peak of f16 (field 'f16_tflops'), whose "
                      "units multiply bf16, but got " +
                          shown(llvm::json::Value(*device.bf16Tflops)));
  return llvm::Error::success();
}

/// Refuses measured rates far beyond the peaks, which are in another unit, and
/// one bandwidth without the other.
static llvm::Error checkMeasured(const JsonFile &file,
                                 const DeviceSpec &device) {
  const double peaks[] = {device.dramGbps, device.sharedMemoryGbps(),
                          device.fp32Tflops};
  for (auto [field, peak] : llvm::zip_equal(measuredFields, peaks)) {
    const std::optional<double> &rate = device.*field.member;
    // Boards run above the boost clock that peaks are stated for, and banks of
    // Kepler have 8 bytes.
    if (rate && (*rate > 4 * peak || *rate < 0.05 * peak))
      return file.error(
          field.key,
          llvm::formatv("expected 0.05 to 4 times the peak {0:f1}, but got {1}",
                        peak, shown(llvm::json::Value(*rate)))
              .str());
  }
  for (auto [given, other] :
       {std::pair(&measuredFields[0], &measuredFields[1]),
        std::pair(&measuredFields[1], &measuredFields[0])})
    if (device.*given->member && !(device.*other->member))
      return file.error(other->key,
                        Twine("expected a positive number beside '") +
                            given->key + "', but the field is missing");
  return llvm::Error::success();
}

/// Refuses descriptions whose fields contradict each other.
static llvm::Error checkConsistency(const JsonFile &file,
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
  SmFacts facts = device.smFacts();
  if (facts.issueSlots < facts.warpSchedulers)
    return file.error("issue_slots_per_sm",
                      "expected at least one for each of " +
                          Twine(facts.warpSchedulers) +
                          " warp schedulers (field 'warp_schedulers_per_sm'), "
                          "but got " +
                          Twine(facts.issueSlots));
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
  if (llvm::Error error = checkTensorPeaks(file, device))
    return error;
  return checkMeasured(file, device);
}

llvm::Expected<DeviceSpec> ftuner::parseDeviceSpec(StringRef json,
                                                   StringRef sourceName) {
  llvm::Expected<JsonFile> file = parseJsonFile(json, sourceName, "a device");
  if (!file)
    return file.takeError();
  DeviceSpec device;
  if (file->fields.get("figures"))
    return file->error("figures",
                       "expected the description of a CUDA device, but this "
                       "one has the figures that learned predictors read, and "
                       "no kernels are made for it (docs/learned-data.md)");
  if (llvm::Error error = checkFields(*file))
    return error;
  for (auto [key, member] : {std::pair("name", &DeviceSpec::name),
                             {"architecture", &DeviceSpec::architecture}}) {
    llvm::Expected<std::string> text = file->text(key, 128);
    if (!text)
      return text.takeError();
    device.*member = *text;
  }
  if (file->fields.get("die")) {
    llvm::Expected<std::string> die = file->text("die", 128);
    if (!die)
      return die.takeError();
    device.die = *die;
  }
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

SmFacts ftuner::smFactsOf(int major, int minor) {
  // The table of docs/devices.md, which has its sources. A row holds from its
  // compute capability up to that of the row above.
  struct Row {
    int capability;
    SmFacts facts;
  };
  static const Row rows[] = {
      {120, {4, 4, 16, 2, 4}},
      {103, {4, 4, 32, 2, 4, 1, 0.25}},
      {100, {4, 4, 32, 64, 4, 1, 0.25}},
      {90, {4, 4, 32, 64, 4, 1, 0.63}},
      {89, {4, 4, 16, 2, 4}},
      {86, {4, 4, 16, 2, 8}},
      {80, {4, 4, 32, 32, 7}},
      {75, {4, 4, 16, 2, 12, 2}},
      {70, {4, 4, 32, 32, 12, 2}},
      {61, {4, 8, 32, 4, 16}},
      {60, {2, 4, 16, 32, 16}},
      {53, {4, 8, 32, 4, 20}},
      {50, {4, 8, 32, 4, 28}},
      {35, {4, 8, 32, 64, 28}},
      {30, {4, 8, 32, 8, 28}},
  };
  int capability = 10 * major + minor;
  for (const Row &row : llvm::ArrayRef(rows).drop_back())
    if (capability >= row.capability)
      return row.facts;
  return std::end(rows)[-1].facts;
}

SmFacts DeviceSpec::smFacts() const {
  SmFacts rule = smFactsOf(computeCapabilityMajor, computeCapabilityMinor);
  SmFacts facts;
  facts.warpSchedulers = warpSchedulersPerSm.value_or(rule.warpSchedulers);
  facts.issueSlots = issueSlotsPerSm.value_or(
      facts.warpSchedulers * (rule.issueSlots / rule.warpSchedulers));
  facts.loadStoreUnits = loadStoreUnitsPerSm.value_or(rule.loadStoreUnits);
  facts.doubleLanes = rule.doubleLanes;
  facts.processNm = processNm.value_or(rule.processNm);
  facts.halfBlockRun = rule.halfBlockRun;
  facts.warpTensorShare = rule.warpTensorShare;
  return facts;
}

double DeviceSpec::fp32LanesPerSm() const {
  double lanes = fp32Tflops * 1e6 / (2 * smCount * clockMhz);
  double whole = 32 * std::round(lanes / 32);
  return std::abs(lanes - whole) <= 0.02 * whole ? whole : lanes;
}

double DeviceSpec::tensorOperationsPerCycle(TensorPipe pipe) const {
  // Of 16-bit types a device has f16 alone or both, at one rate.
  double peak = pipe == TensorPipe::TF32  ? tf32Tflops.value_or(0)
                : pipe == TensorPipe::F16 ? f16Tflops.value_or(0)
                                          : i8Tops.value_or(0);
  double rate = peak * 1e6 / (smCount * clockMhz);
  double whole = rate > 0 ? std::exp2(std::round(std::log2(rate))) : 0;
  return std::abs(rate - whole) <= 0.08 * whole ? whole : rate;
}

llvm::json::Object ftuner::toJson(const DeviceSpec &device) {
  llvm::json::Object object;
  object["name"] = device.name;
  object["architecture"] = device.architecture;
  if (!device.die.empty())
    object["die"] = device.die;
  object["compute_capability"] =
      llvm::formatv("{0}.{1}", device.computeCapabilityMajor,
                    device.computeCapabilityMinor)
          .str();
  for (const CountField &field : countFields)
    object[field.key] = device.*field.member;
  for (const OptionalCountField &field : optionalCountFields)
    if (device.*field.member)
      object[field.key] = *(device.*field.member);
  for (const FigureField &field : figureFields)
    object[field.key] = device.*field.member;
  for (const OptionalFigureField &field : optionalFigureFields())
    if (device.*field.member)
      object[field.key] = *(device.*field.member);
  return object;
}

int64_t DeviceSpec::registersPerThreadOf(int64_t threads,
                                         int64_t blocks) const {
  int64_t schedulers = smFacts().warpSchedulers;
  int64_t warps = (threads + 31) / 32 * blocks;
  warps = (warps + schedulers - 1) / schedulers * schedulers;
  int64_t registers = blocks == 1 ? registersPerBlock : registersPerSm;
  return std::min(maxRegistersPerThread, registers / (32 * warps) / 8 * 8);
}

int64_t DeviceSpec::blocksPerSm(int64_t threads, int64_t registersPerThread,
                                int64_t sharedMemoryBytes) const {
  int64_t warps = (threads + 31) / 32;
  int64_t max =
      std::min({maxBlocksPerSm, maxThreadsPerSm / (32 * warps),
                sharedMemoryPerSmBytes /
                    std::max<int64_t>(
                        sharedMemoryBytes + reservedSharedMemoryBytes(), 1)});
  int64_t blocks = 1;
  while (blocks < max &&
         registersPerThread <= registersPerThreadOf(threads, blocks + 1))
    ++blocks;
  return blocks;
}

std::vector<std::string> ftuner::builtinDeviceNames() {
  return namesOf(builtinDevices());
}

llvm::Expected<DeviceSpec> ftuner::loadDeviceSpec(StringRef nameOrPath) {
  llvm::Expected<SourceText> source =
      findBuiltinOrFile("device", builtinDevices(), nameOrPath);
  if (!source)
    return source.takeError();
  return parseDeviceSpec(source->text, source->sourceName);
}
