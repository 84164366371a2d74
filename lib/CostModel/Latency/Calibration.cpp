//===- Calibration.cpp - Constants that measurements give -----------------===//
#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Support/BuiltinFiles.h"
#include "FTuner/Support/JsonFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

namespace ftuner {
/// The files of lib/CostModel/calibrations.
llvm::ArrayRef<BuiltinFile> builtinCalibrations();
} // namespace ftuner

namespace {
/// A constant and its key.
struct ConstantField {
  const char *key;
  double LatencyConstants::*member;
  double low, high;
};
} // namespace

static const ConstantField constantFields[] = {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  {NAME, &LatencyConstants::MEMBER, LOW, HIGH},
#include "FTuner/CostModel/LatencyConstants.def"
};

/// Longest origin and command in bytes.
static constexpr size_t maxTextLength = 4096;

static std::string shownNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

/// Reads a finite number within [low, high]; `fieldError` makes its error.
static llvm::Error
readFigure(const llvm::json::Value &value, double low, double high,
           llvm::function_ref<llvm::Error(const Twine &)> fieldError,
           double &result) {
  std::optional<double> number = value.getAsNumber();
  if (!number || !std::isfinite(*number))
    return fieldError("expected a number, but got " + shown(value));
  if (*number < low || *number > high)
    return fieldError("expected a number from " + shownNumber(low) + " to " +
                      shownNumber(high) + ", but got " + shown(value));
  result = *number;
  return llvm::Error::success();
}

/// The object that is field `key`; null if the file leaves it out.
static llvm::Expected<const llvm::json::Object *>
findObject(const JsonFile &file, StringRef key) {
  const llvm::json::Value *value = file.fields.get(key);
  if (!value)
    return nullptr;
  if (const llvm::json::Object *object = value->getAsObject())
    return object;
  return file.error(key, "expected an object, but got " + shown(*value));
}

static llvm::Error readConstants(const JsonFile &file,
                                 LatencyConstants &constants) {
  llvm::Expected<const llvm::json::Object *> object =
      findObject(file, "constants");
  if (!object)
    return object.takeError();
  if (!*object)
    return file.error("constants", "expected an object with the constants, but "
                                   "the field is missing");
  auto isConstant = [](StringRef key) {
    return llvm::any_of(constantFields, [&](const ConstantField &field) {
      return key == field.key;
    });
  };
  if (llvm::Error error = file.checkKeys("constants", isConstant,
                                         "a constant of the latency model"))
    return error;
  for (const ConstantField &field : constantFields) {
    const llvm::json::Value *value = (*object)->get(field.key);
    if (!value)
      continue;
    auto fieldError = [&](const Twine &message) {
      return file.error("constants", field.key, message);
    };
    if (llvm::Error error = readFigure(*value, field.low, field.high,
                                       fieldError, constants.*field.member))
      return error;
  }
  return llvm::Error::success();
}

namespace {
/// A figure of an object that must be there if the object is.
struct Figure {
  const char *key;
  double *result;
  double high;
};
} // namespace

/// Reads all figures of the object `outer`. Returns whether the file has it.
static llvm::Expected<bool> readFigures(const JsonFile &file, StringRef outer,
                                        llvm::ArrayRef<Figure> figures) {
  llvm::Expected<const llvm::json::Object *> object = findObject(file, outer);
  if (!object)
    return object.takeError();
  if (!*object)
    return false;
  auto isFigure = [&](StringRef key) {
    return llvm::any_of(
        figures, [&](const Figure &figure) { return key == figure.key; });
  };
  if (llvm::Error error =
          file.checkKeys(outer, isFigure, "a field of '" + outer + "'"))
    return error;
  for (const Figure &figure : figures) {
    auto fieldError = [&](const Twine &message) {
      return file.error(outer, figure.key, message);
    };
    const llvm::json::Value *value = (*object)->get(figure.key);
    if (!value)
      return fieldError("expected a number, but the field is missing");
    if (llvm::Error error =
            readFigure(*value, 0, figure.high, fieldError, *figure.result))
      return error;
  }
  return true;
}

static llvm::Error readFit(const JsonFile &file, Calibration &calibration) {
  CalibrationFit fit;
  double rows = 0, unseen = 0;
  llvm::SmallVector<Figure> figures = {{"rows", &rows, 1e12},
                                       {"error_before", &fit.errorBefore, 1e6},
                                       {"error_after", &fit.errorAfter, 1e6}};
  const llvm::json::Object *object = file.fields.getObject("fit");
  if (object && object->get("error_unseen"))
    figures.push_back({"error_unseen", &unseen, 1e6});
  llvm::Expected<bool> isThere = readFigures(file, "fit", figures);
  if (!isThere)
    return isThere.takeError();
  if (!*isThere)
    return llvm::Error::success();
  if (rows != std::floor(rows))
    return file.error("fit", "rows",
                      "expected a whole number, but got " + shownNumber(rows));
  fit.rows = static_cast<int64_t>(rows);
  if (figures.size() > 3)
    fit.errorUnseen = unseen;
  calibration.fit = fit;
  return llvm::Error::success();
}

static llvm::Error readTiming(const JsonFile &file, Calibration &calibration) {
  CalibrationTiming timing;
  llvm::Expected<bool> isThere =
      readFigures(file, "timing",
                  {{"offset_us", &timing.offsetMicroseconds, 1e6},
                   {"floor_us", &timing.floorMicroseconds, 1e6}});
  if (!isThere)
    return isThere.takeError();
  if (*isThere)
    calibration.timing = timing;
  return llvm::Error::success();
}

/// Reads a field that the file may leave out: a string of any characters.
static llvm::Error readLongText(const JsonFile &file, StringRef key,
                                std::string &result) {
  const llvm::json::Value *value = file.fields.get(key);
  if (!value)
    return llvm::Error::success();
  std::optional<StringRef> text = value->getAsString();
  if (!text || text->size() > maxTextLength)
    return file.error(key, "expected a string of at most " +
                               Twine(maxTextLength) + " bytes, but got " +
                               shown(*value));
  result = text->str();
  return llvm::Error::success();
}

static llvm::Error readData(const JsonFile &file, Calibration &calibration) {
  llvm::Expected<const llvm::json::Object *> object = findObject(file, "data");
  if (!object)
    return object.takeError();
  if (!*object)
    return llvm::Error::success();
  for (const auto &[name, value] : **object) {
    std::optional<StringRef> hash = value.getAsString();
    if (!hash || hash->size() != 64 || !llvm::all_of(*hash, [](char digit) {
          return llvm::isHexDigit(digit);
        }))
      return file.error("data", name,
                        "expected the 64 hexadecimal digits of a SHA-256, but "
                        "got " +
                            shown(value));
    calibration.data.emplace_back(name.str(), hash->str());
  }
  // A JSON object has no order.
  llvm::sort(calibration.data);
  return llvm::Error::success();
}

/// Reads a calibration on top of `base`, whose constants and deviation stay
/// where the text is silent.
static llvm::Expected<Calibration> parse(StringRef json, StringRef sourceName,
                                         const Calibration &base) {
  llvm::Expected<JsonFile> file =
      parseJsonFile(json, sourceName, "a calibration");
  if (!file)
    return file.takeError();
  auto isField = [](StringRef key) {
    return llvm::is_contained({"name", "die", "kernels", "constants",
                               "deviation", "origin", "command", "data", "fit",
                               "timing"},
                              key);
  };
  if (llvm::Error error =
          file->checkKeys(isField, "a field of the calibration schema"))
    return error;
  Calibration result;
  result.constants = base.constants;
  result.deviation = base.deviation;
  llvm::Expected<std::string> name = file->text("name", 128);
  if (!name)
    return name.takeError();
  result.name = *name;
  if (file->fields.get("die")) {
    llvm::Expected<std::string> die = file->text("die", 128);
    if (!die)
      return die.takeError();
    result.die = *die;
  }
  if (file->fields.get("kernels")) {
    llvm::Expected<std::string> kernels = file->text("kernels", 128);
    if (!kernels)
      return kernels.takeError();
    if (*kernels != "own" && *kernels != "vendor")
      return file->error("kernels",
                         "expected own or vendor, but got '" + *kernels + "'");
    result.isOfOwnKernels = *kernels == "own";
  }
  if (llvm::Error error = readConstants(*file, result.constants))
    return error;
  if (const llvm::json::Value *value = file->fields.get("deviation")) {
    auto fieldError = [&](const Twine &message) {
      return file->error("deviation", message);
    };
    if (llvm::Error error =
            readFigure(*value, 1e-3, 2, fieldError, result.deviation))
      return error;
  }
  if (llvm::Error error = readLongText(*file, "origin", result.origin))
    return error;
  if (llvm::Error error = readLongText(*file, "command", result.command))
    return error;
  if (llvm::Error error = readData(*file, result))
    return error;
  if (llvm::Error error = readFit(*file, result))
    return error;
  if (llvm::Error error = readTiming(*file, result))
    return error;
  return result;
}

static const BuiltinFile *findBuiltin(StringRef name) {
  auto it = llvm::find_if(builtinCalibrations(), [&](const BuiltinFile &file) {
    return name == file.name;
  });
  return it == builtinCalibrations().end() ? nullptr : it;
}

/// Parses a built-in file; those are checked by a test.
static Calibration parseBuiltin(const BuiltinFile &file,
                                const Calibration &base) {
  llvm::Expected<Calibration> calibration = parse(file.text, file.name, base);
  if (!calibration)
    llvm::report_fatal_error(calibration.takeError());
  return *calibration;
}

const Calibration &ftuner::globalCalibration() {
  static const Calibration calibration = [] {
    const BuiltinFile *file = findBuiltin("global");
    return file ? parseBuiltin(*file, Calibration()) : Calibration();
  }();
  return calibration;
}

llvm::Expected<Calibration> ftuner::parseCalibration(StringRef json,
                                                     StringRef sourceName) {
  return parse(json, sourceName, globalCalibration());
}

llvm::json::Object ftuner::toJson(const Calibration &calibration) {
  llvm::json::Object constants;
  for (const ConstantField &field : constantFields)
    constants[field.key] = calibration.constants.*field.member;
  llvm::json::Object object;
  object["name"] = calibration.name;
  if (!calibration.die.empty())
    object["die"] = calibration.die;
  if (calibration.isOfOwnKernels)
    object["kernels"] = "own";
  object["constants"] = std::move(constants);
  object["deviation"] = calibration.deviation;
  if (!calibration.origin.empty())
    object["origin"] = calibration.origin;
  if (!calibration.command.empty())
    object["command"] = calibration.command;
  if (!calibration.data.empty()) {
    llvm::json::Object data;
    for (const auto &[name, hash] : calibration.data)
      data[name] = hash;
    object["data"] = std::move(data);
  }
  if (const std::optional<CalibrationFit> &fit = calibration.fit) {
    llvm::json::Object figures{{"rows", fit->rows},
                               {"error_before", fit->errorBefore},
                               {"error_after", fit->errorAfter}};
    if (fit->errorUnseen)
      figures["error_unseen"] = *fit->errorUnseen;
    object["fit"] = std::move(figures);
  }
  if (const std::optional<CalibrationTiming> &timing = calibration.timing)
    object["timing"] =
        llvm::json::Object{{"offset_us", timing->offsetMicroseconds},
                           {"floor_us", timing->floorMicroseconds}};
  return object;
}

llvm::Expected<Calibration> ftuner::loadCalibration(StringRef nameOrPath) {
  llvm::Expected<SourceText> source =
      findBuiltinOrFile("calibration", builtinCalibrations(), nameOrPath);
  if (!source)
    return source.takeError();
  return parseCalibration(source->text, source->sourceName);
}

/// The first, by name, that states the device's die, or the first of these that
/// came from FTuner's own kernels.
static std::optional<Calibration> findOfDie(const DeviceSpec &device,
                                            bool isOfOwnKernels) {
  if (device.die.empty())
    return std::nullopt;
  for (const BuiltinFile &file : builtinCalibrations()) {
    Calibration calibration = parseBuiltin(file, globalCalibration());
    if (calibration.die == device.die &&
        (calibration.isOfOwnKernels || !isOfOwnKernels))
      return calibration;
  }
  return std::nullopt;
}

Calibration ftuner::defaultCalibration(const DeviceSpec &device) {
  if (const BuiltinFile *file = findBuiltin(device.name))
    return parseBuiltin(*file, globalCalibration());
  return findOfDie(device, /*isOfOwnKernels=*/false)
      .value_or(globalCalibration());
}

Calibration ftuner::kernelCalibration(const DeviceSpec &device) {
  if (auto own = findOfDie(device, /*isOfOwnKernels=*/true))
    return *own;
  return defaultCalibration(device);
}

std::optional<double> ftuner::transferError(const Calibration &calibration) {
  if (calibration.name != globalCalibration().name || !calibration.fit)
    return std::nullopt;
  return calibration.fit->errorUnseen;
}

std::vector<std::string> ftuner::builtinCalibrationNames() {
  return namesOf(builtinCalibrations());
}

double ftuner::nodeEfficiency(double processNm) {
  struct Node {
    double nm, efficiency;
  };
  static const Node nodes[] = {{3, 4.37}, {4, 3.06},  {5, 3.06},  {7, 2.15},
                               {8, 1.75}, {12, 1.00}, {16, 1.00}, {28, 0.60}};
  if (processNm <= nodes[0].nm)
    return nodes[0].efficiency;
  for (size_t i = 1; i < std::size(nodes); ++i) {
    const Node &low = nodes[i - 1], &high = nodes[i];
    if (processNm > high.nm)
      continue;
    double share = std::log(processNm / low.nm) / std::log(high.nm / low.nm);
    return low.efficiency * std::pow(high.efficiency / low.efficiency, share);
  }
  return std::end(nodes)[-1].efficiency;
}

LatencyDevice ftuner::latencyDevice(const DeviceSpec &device) {
  SmFacts facts = device.smFacts();
  LatencyDevice result;
  result.smCount = static_cast<double>(device.smCount);
  result.clockMhz = device.loadClockMhz.value_or(device.clockMhz);
  result.fp32Lanes = device.fp32LanesPerSm();
  result.warpSchedulers = static_cast<double>(facts.warpSchedulers);
  result.issueSlots = static_cast<double>(facts.issueSlots);
  result.halfBlockRun = static_cast<double>(facts.halfBlockRun);
  result.loadStoreLanes = static_cast<double>(facts.loadStoreUnits);
  result.tf32Rate = device.tensorOperationsPerCycle(TensorPipe::TF32);
  result.f16Rate = device.tensorOperationsPerCycle(TensorPipe::F16);
  result.i8Rate = device.tensorOperationsPerCycle(TensorPipe::I8);
  result.warpTensorShare = facts.warpTensorShare;
  result.dramGbps = device.dramGbps;
  result.l2Bytes = device.l2Mib * 1048576;
  result.sharedMemoryPerSmBytes =
      static_cast<double>(device.sharedMemoryPerSmBytes);
  // From Volta on L1 shares its memory with shared memory, and holds what loads
  // bring; before, loads of most chips went past it (CUDA C++ Programming
  // Guide, compute capability 5.x to 7.x).
  if (device.smVersion() >= 70)
    result.l1Bytes = result.sharedMemoryPerSmBytes;
  result.maxThreadsPerSm = static_cast<double>(device.maxThreadsPerSm);
  result.maxBlocksPerSm = static_cast<double>(device.maxBlocksPerSm);
  result.registersPerSm = static_cast<double>(device.registersPerSm);
  result.boardPowerWatts =
      device.boardPowerWatts.value_or(std::numeric_limits<double>::infinity());
  result.nodeEfficiency = nodeEfficiency(facts.processNm);
  return result;
}

/// ln(second / first), at least 0.
static double leadOf(double first, double second) {
  return std::log(std::max(1.0, second / first));
}

double ftuner::choiceConfidence(const Calibration &calibration, double first,
                                double second) {
  // The normal distribution at x is erfc(-x / √2) / 2.
  return std::erfc(-leadOf(first, second) / (2 * calibration.deviation)) / 2;
}

double ftuner::measurementGain(const Calibration &calibration, double first,
                               double second) {
  double lead = leadOf(first, second);
  if (!std::isfinite(lead))
    return 0;
  double spread = calibration.deviation * std::sqrt(2);
  double density = std::exp(-lead * lead / (2 * spread * spread)) /
                   std::sqrt(2 * std::acos(-1.0));
  double tail = std::erfc(lead / (2 * calibration.deviation)) / 2;
  return std::max(0.0, spread * density - lead * tail);
}
