//===- DietCodeTransfer.cpp - Learned models that are kept ----------------===//
#include "DietCodeTransfer.h"
#include "DietCodeTuning.h"
#include "FTuner/Support/UniqueFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;
using llvm::Twine;

static constexpr int64_t formatVersion = 1;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

llvm::ArrayRef<llvm::StringLiteral> ftuner::deviceFeatureNames() {
  static constexpr llvm::StringLiteral names[] = {
      "device_clock_mhz",
      "device_sms",
      "device_bytes_per_flop_shared",
      "device_bytes_per_flop_dram",
      "device_registers",
      "device_l2_mib",
  };
  return names;
}

std::vector<float> ftuner::deviceFeatures(const DeviceSpec &device) {
  double gflops = device.fp32Tflops * 1e3;
  return {static_cast<float>(device.clockMhz),
          static_cast<float>(device.smCount),
          static_cast<float>(device.sharedMemoryGbps() / gflops),
          static_cast<float>(device.dramGbps / gflops),
          static_cast<float>(device.registersPerSm),
          static_cast<float>(device.l2Mib)};
}

float LearnedModel::predict(llvm::ArrayRef<float> row) const {
  float sum = 0;
  for (const BoostedTrees &trees : ensembles)
    sum += trees.predict(row);
  return sum;
}

void ftuner::appendRows(const LearnedModel &model, const LearnedModel *base,
                        double weight, TrainingRows &rows) {
  double best = 0;
  for (double throughput : model.throughputs)
    best = std::max(best, throughput);
  for (auto [index, throughput] : llvm::enumerate(model.throughputs)) {
    auto row = llvm::ArrayRef(model.features)
                   .slice(index * rows.numFeatures, rows.numFeatures);
    double normalised = throughput / best;
    double known = base ? base->predict(row) : 0;
    llvm::append_range(rows.features, row);
    rows.labels.push_back(static_cast<float>(std::log(normalised) - known));
    rows.weights.push_back(static_cast<float>(weight * normalised));
  }
}

double ftuner::sourceWeight(size_t targetRows, size_t sourceRows) {
  return tuning::dietCodeSourceWeight * static_cast<double>(targetRows) /
         static_cast<double>(sourceRows);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {
class ModelReader {
public:
  ModelReader(llvm::StringRef path,
              llvm::ArrayRef<llvm::StringLiteral> featureNames)
      : path(path), featureNames(featureNames) {}

  llvm::Expected<LearnedModel> read();

private:
  llvm::Error error(const Twine &message) const {
    return llvm::createStringError("learned model '" + path + "': " + message);
  }
  llvm::Error checkFeatures(const llvm::json::Object &object) const;
  llvm::Error readRow(const llvm::json::Value &value, size_t index,
                      LearnedModel &model) const;

  llvm::StringRef path;
  llvm::ArrayRef<llvm::StringLiteral> featureNames;
};
} // namespace

llvm::Error ModelReader::checkFeatures(const llvm::json::Object &object) const {
  const llvm::json::Array *names = object.getArray("features");
  if (!names)
    return error("expected a list of names as 'features'");
  for (size_t i = 0; i < std::max(names->size(), featureNames.size()); ++i) {
    std::string found = i < names->size()
                            ? (*names)[i].getAsString().value_or("?").str()
                            : "nothing";
    llvm::StringRef wanted =
        i < featureNames.size() ? featureNames[i] : "no further one";
    if (found != wanted)
      return error("feature " + Twine(i) + ": expected " + wanted +
                   ", but got " + found +
                   ": the file is of another version of FTuner");
  }
  return llvm::Error::success();
}

llvm::Error ModelReader::readRow(const llvm::json::Value &value, size_t index,
                                 LearnedModel &model) const {
  const llvm::json::Object *row = value.getAsObject();
  const llvm::json::Array *features = row ? row->getArray("features") : nullptr;
  std::optional<double> throughput =
      row ? row->getNumber("throughput") : std::nullopt;
  if (!features || features->size() != featureNames.size() || !throughput)
    return error("row " + Twine(index) + ": expected 'features', " +
                 Twine(featureNames.size()) + " numbers, and 'throughput'");
  if (!(*throughput > 0) || !std::isfinite(*throughput))
    return error("row " + Twine(index) + ": expected a throughput above 0");
  for (const llvm::json::Value &feature : *features) {
    std::optional<double> number = feature.getAsNumber();
    if (!number || !std::isfinite(static_cast<float>(*number)))
      return error("row " + Twine(index) + ": expected numbers as 'features'");
    model.features.push_back(static_cast<float>(*number));
  }
  model.throughputs.push_back(*throughput);
  return llvm::Error::success();
}

llvm::Expected<LearnedModel> ModelReader::read() {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return error("cannot be read: " + buffer.getError().message());
  llvm::Expected<llvm::json::Value> value =
      llvm::json::parse((*buffer)->getBuffer());
  if (!value)
    return error("expected JSON: " + llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  if (!object || object->getString("format") != "ftuner-learned-model")
    return error("expected an object with \"format\": "
                 "\"ftuner-learned-model\"");
  if (object->getInteger("format_version") != formatVersion)
    return error("field 'format_version': expected " + Twine(formatVersion));
  if (llvm::Error wrong = checkFeatures(*object))
    return std::move(wrong);
  LearnedModel model;
  for (auto [name, member] : {std::pair("device", &LearnedModel::device),
                              std::pair("workload", &LearnedModel::workload),
                              std::pair("measurer", &LearnedModel::measurer)}) {
    std::optional<llvm::StringRef> text = object->getString(name);
    if (!text)
      return error("expected a text as '" + Twine(name) + "'");
    model.*member = text->str();
  }
  const llvm::json::Array *rows = object->getArray("rows");
  if (!rows || rows->empty())
    return error("expected a list of rows as 'rows'");
  for (auto [index, row] : llvm::enumerate(*rows))
    if (llvm::Error wrong = readRow(row, index, model))
      return std::move(wrong);
  const llvm::json::Array *ensembles = object->getArray("ensembles");
  if (!ensembles || ensembles->empty())
    return error("expected a list of models of XGBoost as 'ensembles'");
  for (const llvm::json::Value &entry : *ensembles) {
    std::string text;
    llvm::raw_string_ostream(text) << entry;
    llvm::Expected<BoostedTrees> trees = BoostedTrees::parse(text);
    if (!trees)
      return error(llvm::toString(trees.takeError()));
    if (trees->numFeatures() != featureNames.size())
      return error("expected ensembles of " + Twine(featureNames.size()) +
                   " features, but got " + Twine(trees->numFeatures()));
    model.texts.push_back(std::move(text));
    model.ensembles.push_back(std::move(*trees));
  }
  return model;
}

llvm::Expected<LearnedModel>
ftuner::readLearnedModel(llvm::StringRef path,
                         llvm::ArrayRef<llvm::StringLiteral> featureNames) {
  return ModelReader(path, featureNames).read();
}

static llvm::Error cannotWrite(llvm::StringRef path, std::error_code code) {
  return llvm::createStringError(code,
                                 "learned model '" + path +
                                     "': cannot be written: " + code.message());
}

llvm::Error ftuner::checkWritable(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
  if (llvm::ErrorOr<UniqueFile> file = UniqueFile::createBeside(path); !file)
    return cannotWrite(path, file.getError());
  return llvm::Error::success();
}

llvm::Error
ftuner::writeLearnedModel(llvm::StringRef path, const LearnedModel &model,
                          llvm::ArrayRef<llvm::StringLiteral> featureNames) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("format", "ftuner-learned-model");
    json.attribute("format_version", formatVersion);
    json.attribute("device", model.device);
    json.attribute("workload", model.workload);
    json.attribute("measurer", model.measurer);
    json.attributeArray("features", [&] {
      for (llvm::StringLiteral name : featureNames)
        json.value(name);
    });
    json.attributeArray("rows", [&] {
      for (size_t i = 0; i < model.size(); ++i)
        json.object([&] {
          json.attributeArray("features", [&] {
            for (float feature :
                 llvm::ArrayRef(model.features)
                     .slice(i * featureNames.size(), featureNames.size()))
              json.value(feature);
          });
          json.attribute("throughput", model.throughputs[i]);
        });
    });
    json.attributeArray("ensembles", [&] {
      for (const std::string &ensemble : model.texts)
        json.rawValue(ensemble);
    });
  });
  os << '\n';
  llvm::ErrorOr<UniqueFile> file = UniqueFile::createBeside(path);
  if (!file)
    return cannotWrite(path, file.getError());
  if (std::error_code code = file->write(text))
    return cannotWrite(path, code);
  if (std::error_code code = file->keepAs(path))
    return cannotWrite(path, code);
  return llvm::Error::success();
}
