//===- Predictor.cpp - Reads files of predictors --------------------------===//
#include "FTuner/CostModel/Predictor.h"
#include "BuiltinPredictors.h"
#include "FTuner/CostModel/Calibration.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Support/JsonFile.h"
#include "PredictorForest.h"
#include "PredictorNetwork.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

using namespace ftuner;
using llvm::StringRef;
using llvm::Twine;

namespace ftuner {
/// Reads one file.
class PredictorReader {
public:
  PredictorReader(StringRef content, StringRef sourceName)
      : content(content), sourceName(sourceName) {}
  llvm::Expected<std::shared_ptr<const Predictor>> read();

private:
  struct Array {
    std::vector<size_t> shape;
    std::vector<float> values;
  };

  llvm::Error error(const Twine &message) const {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "'" + sourceName +
                                       "' is no predictor: " + message);
  }
  llvm::Error readHeader();
  llvm::Error readArrays(StringRef blob);
  llvm::Error readInputs();
  llvm::Error readLabels(Predictor &result);
  llvm::Error readProvenance(Predictor &result);
  llvm::Error readSizes();
  llvm::Error readNetwork(PredictorNetwork &network);
  llvm::Error readForest(PredictorForest &forest);
  llvm::Error checkGolden(Predictor &result);

  /// Reads a whole number of the architecture, at least `minimum`.
  llvm::Error size(StringRef key, size_t minimum, size_t &result);
  llvm::Error sizes(StringRef key, std::vector<size_t> &result);
  /// An array of that shape, as a row of floats.
  llvm::Expected<llvm::ArrayRef<float>> array(const Twine &name,
                                              llvm::ArrayRef<size_t> shape);
  llvm::Error row(const Twine &name, size_t size, std::vector<float> &result);
  llvm::Error linear(const Twine &name, size_t in, size_t out,
                     LinearLayer &layer);
  llvm::Error linear(const Twine &weights, const Twine &bias, size_t in,
                     size_t out, LinearLayer &layer);
  llvm::Error norm(const Twine &name, size_t width, NormLayer &layer);
  /// Layers "NAME.0", "NAME.1", ...: each linear one of the hidden sizes has a
  /// batch norm behind it, which is folded into it, and a rectifier.
  llvm::Error perceptron(const Twine &name, size_t in,
                         llvm::ArrayRef<size_t> hidden, size_t out,
                         Perceptron &result);

  StringRef content;
  std::string sourceName;
  llvm::json::Object header;
  std::map<std::string, Array> arrays;
  bool isForest = false;
  size_t width = 0, heads = 0, numLayers = 0, feedForward = 0, inputWidth = 0,
         latent = 0;
  std::vector<size_t> embedding, deviceSizes, decoderSizes, statements;
  LatentCombination combination = LatentCombination::Product;
};
} // namespace ftuner

static constexpr StringRef kNetworkFormat = "ftuner-predictor",
                           kForestFormat = "ftuner-boosted-trees",
                           kBaselineFormat = "ftuner-predictor-no-structure";
static constexpr int64_t kVersion = 2;
/// Maximum size of a file: a longer one would take too long to read.
static constexpr uint64_t kMaxBytes = 1ull << 30;
/// Maximum size of a layer: far beyond the paper's.
static constexpr size_t kMaxSize = 1 << 16;

namespace {
struct DeviceFigure {
  StringRef name;
  double LatencyDevice::*member;
};
} // namespace

static constexpr DeviceFigure deviceFigures[numDeviceFigures] = {
#define FTUNER_LATENCY_LEARNED_DEVICE(MEMBER, NAME, VALUE)                     \
  {NAME, &LatencyDevice::MEMBER},
#include "FTuner/CostModel/LatencyRecords.def"
};

static std::vector<float> figuresOf(const LatencyDevice &device) {
  std::vector<float> figures;
  for (const DeviceFigure &figure : deviceFigures)
    figures.push_back(static_cast<float>(std::log2(1 + device.*figure.member)));
  return figures;
}

static std::string hexOf(StringRef bytes) {
  std::array<uint8_t, 32> digest =
      llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

//===----------------------------------------------------------------------===//
// The header
//===----------------------------------------------------------------------===//

llvm::Error PredictorReader::readHeader() {
  StringRef line = content.take_until([](char c) { return c == '\n'; });
  if (line.size() == content.size() || !line.starts_with("{"))
    return error("expected a line of JSON at its begin");
  if (llvm::Error deep = checkJsonDepth(line, "its header"))
    return error(llvm::toString(std::move(deep)));
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(line);
  if (!parsed)
    return error(llvm::toString(parsed.takeError()));
  header = std::move(*parsed->getAsObject());
  std::optional<StringRef> format = header.getString("format");
  isForest = format == kForestFormat;
  if ((format != kNetworkFormat && !isForest) ||
      header.getInteger("version") != kVersion) {
    auto got = [&](StringRef key) {
      const llvm::json::Value *value = header.get(key);
      return value ? shown(*value) : "null";
    };
    return error("expected '" + kNetworkFormat + "' or '" + kForestFormat +
                 "' of version " + Twine(kVersion) + ", but got " +
                 (format ? "'" + *format + "'" : Twine(got("format"))) +
                 " of version " + got("version") +
                 (format == kBaselineFormat
                      ? ", a baseline of 'ftuner learn evaluate'"
                      : ""));
  }
  StringRef blob = content.drop_front(line.size() + 1);
  std::optional<StringRef> hash = header.getString("sha256");
  if (!hash)
    return error("expected the hash of its numbers");
  if (llvm::Error error = readArrays(blob))
    return error;
  if (hexOf(blob) != *hash)
    return error("its numbers are not those that its header has the hash of");
  return llvm::Error::success();
}

llvm::Error PredictorReader::readArrays(StringRef blob) {
  const llvm::json::Array *list = header.getArray("arrays");
  if (!list)
    return error("expected names and shapes of arrays");
  size_t first = 0, total = blob.size() / sizeof(float);
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Array *entry = value.getAsArray();
    std::optional<StringRef> name;
    const llvm::json::Array *shape = nullptr;
    if (entry && entry->size() == 2) {
      name = (*entry)[0].getAsString();
      shape = (*entry)[1].getAsArray();
    }
    if (!name || !shape)
      return error("expected a name and a shape for each array");
    auto [it, isNew] = arrays.try_emplace(name->str());
    if (!isNew)
      return error("array '" + *name + "' occurs twice");
    Array &array = it->second;
    size_t count = 1;
    for (const llvm::json::Value &size : *shape) {
      std::optional<int64_t> length = size.getAsInteger();
      if (!length || *length < 0 || static_cast<size_t>(*length) > total)
        return error("array '" + *name + "' has no shape");
      array.shape.push_back(*length);
      count *= *length;
      if (count > total)
        break;
    }
    if (count > total - first)
      return error("expected more numbers than " + Twine(total) +
                   ": it ends within array '" + *name + "'");
    const char *from = blob.data() + first * sizeof(float);
    for (size_t i = 0; i < count; ++i) {
      float number = llvm::bit_cast<float>(
          llvm::support::endian::read32le(from + i * sizeof(float)));
      if (!std::isfinite(number))
        return error("array '" + *name + "' holds what is no finite number");
      array.values.push_back(number);
    }
    first += count;
  }
  if (first * sizeof(float) != blob.size())
    return error("expected " + Twine(first * sizeof(float)) +
                 " bytes of numbers, but got " + Twine(blob.size()));
  return llvm::Error::success();
}

llvm::Error PredictorReader::size(StringRef key, size_t minimum,
                                  size_t &result) {
  std::optional<int64_t> value;
  if (const llvm::json::Object *sizes = header.getObject("architecture"))
    value = sizes->getInteger(key);
  if (!value || *value < static_cast<int64_t>(minimum) ||
      *value > static_cast<int64_t>(kMaxSize))
    return error("architecture: expected '" + key + "' from " + Twine(minimum) +
                 " to " + Twine(kMaxSize));
  result = *value;
  return llvm::Error::success();
}

/// Returns a whole number of at least 0; no value if the JSON is something
/// else.
static std::optional<int64_t> countIn(const llvm::json::Value *value) {
  std::optional<int64_t> count = value ? value->getAsInteger() : std::nullopt;
  return count && *count >= 0 ? count : std::nullopt;
}

/// Positive whole numbers; none where the value is something else.
static std::optional<std::vector<size_t>>
sizesIn(const llvm::json::Array *list) {
  if (!list)
    return std::nullopt;
  std::vector<size_t> result;
  for (const llvm::json::Value &value : *list) {
    std::optional<int64_t> size = value.getAsInteger();
    if (!size || *size < 1 || *size > static_cast<int64_t>(kMaxSize))
      return std::nullopt;
    result.push_back(*size);
  }
  return result;
}

llvm::Error PredictorReader::sizes(StringRef key, std::vector<size_t> &result) {
  const llvm::json::Object *sizes = header.getObject("architecture");
  std::optional<std::vector<size_t>> found =
      sizesIn(sizes ? sizes->getArray(key) : nullptr);
  if (!found)
    return error("architecture: expected '" + key + "' as sizes of layers");
  result = std::move(*found);
  return llvm::Error::success();
}

/// Reads the inputs that every form of predictor has: figures of a device, and
/// the numbers of statements that trees may have.
llvm::Error PredictorReader::readInputs() {
  const llvm::json::Array *names = header.getArray("device_figures");
  bool isKnown = names && names->size() == numDeviceFigures;
  for (size_t i = 0; isKnown && i < numDeviceFigures; ++i)
    isKnown = (*names)[i].getAsString() == deviceFigures[i].name;
  if (!isKnown)
    return error("expected the figures of a device that this version reads");
  std::optional<std::vector<size_t>> counts =
      sizesIn(header.getArray("statements"));
  if (!counts || counts->empty())
    return error("expected numbers of statements that it was trained on");
  statements = std::move(*counts);
  return llvm::Error::success();
}

llvm::Error PredictorReader::readSizes() {
  size_t features = 0, figures = 0;
  struct {
    StringRef key;
    size_t &to;
  } all[] = {{"features", features},
             {"device_figures", figures},
             {"width", width},
             {"heads", heads},
             {"layers", numLayers},
             {"feed_forward", feedForward},
             {"input_width", inputWidth},
             {"latent", latent}};
  for (auto &[key, to] : all)
    if (llvm::Error error = size(key, 1, to))
      return error;
  if (features != kNumProgramFeatures)
    return error("expected " + Twine(kNumProgramFeatures) +
                 " features of a statement, but got " + Twine(features));
  if (width % heads != 0)
    return error("expected a width that " + Twine(heads) +
                 " heads divide, but got " + Twine(width));
  if (figures != numDeviceFigures)
    return error("expected the figures of a device that this version reads");
  if (llvm::Error error = sizes("embedding", embedding))
    return error;
  if (llvm::Error error = sizes("device", deviceSizes))
    return error;
  if (llvm::Error error = sizes("decoder", decoderSizes))
    return error;
  std::optional<StringRef> name =
      header.getObject("architecture")->getString("combine");
  if (name == "product")
    combination = LatentCombination::Product;
  else if (name == "sum")
    combination = LatentCombination::Sum;
  else if (name == "concatenation")
    combination = LatentCombination::Concatenation;
  else
    return error("architecture: expected 'combine' as one of product, sum, "
                 "concatenation");
  return llvm::Error::success();
}

llvm::Error PredictorReader::readLabels(Predictor &result) {
  LabelTransform &labels = result.form->labels;
  const llvm::json::Object *json = header.getObject("labels");
  const llvm::json::Array *values = json ? json->getArray("values") : nullptr;
  std::optional<StringRef> kind = json ? json->getString("kind") : std::nullopt;
  if (!values || !kind)
    return error("expected the transform of its labels");
  size_t wanted = 1;
  if (kind == "box-cox")
    labels.kind = LabelTransform::Kind::BoxCox;
  else if (kind == "yeo-johnson")
    labels.kind = LabelTransform::Kind::YeoJohnson;
  else if (kind == "quantile")
    labels.kind = LabelTransform::Kind::Quantile;
  else if (kind == "none")
    wanted = 0;
  else
    return error("labels: expected one of box-cox, yeo-johnson, quantile, "
                 "none, but got '" +
                 *kind + "'");
  for (const llvm::json::Value &value : *values) {
    std::optional<double> number = value.getAsNumber();
    if (!number || !std::isfinite(*number))
      return error("labels: expected numbers");
    labels.values.push_back(*number);
  }
  bool isQuantile = labels.kind == LabelTransform::Kind::Quantile;
  if (isQuantile ? labels.values.empty() : labels.values.size() != wanted)
    return error("labels: expected the numbers of '" + *kind + "'");
  for (auto [key, to] : {std::pair(StringRef("mean"), &labels.mean),
                         std::pair(StringRef("deviation"), &labels.deviation),
                         std::pair(StringRef("shift"), &labels.shift),
                         std::pair(StringRef("least"), &labels.minimum),
                         std::pair(StringRef("greatest"), &labels.maximum)}) {
    std::optional<double> number = json->getNumber(key);
    if (!number || !std::isfinite(*number))
      return error("labels: expected '" + key + "'");
    *to = *number;
  }
  if (!(labels.minimum > 0 && labels.minimum <= labels.maximum))
    return error("labels: expected bounds above 0");
  std::optional<bool> corrects = header.getBoolean("corrects");
  if (!corrects)
    return error("expected 'corrects'");
  result.isCorrection = *corrects;
  return llvm::Error::success();
}

llvm::Error PredictorReader::readProvenance(Predictor &result) {
  const llvm::json::Object *devices = header.getObject("devices");
  const llvm::json::Object *deviations = header.getObject("deviations");
  const llvm::json::Array *range = header.getArray("label_range");
  std::optional<double> minimum, maximum;
  if (range && range->size() == 2) {
    minimum = (*range)[0].getAsNumber();
    maximum = (*range)[1].getAsNumber();
  }
  if (!devices || devices->empty() || !deviations || !minimum || !maximum ||
      !(*minimum > 0 && *minimum <= *maximum && std::isfinite(*maximum)))
    return error("expected devices, deviations and the range of labels");
  result.minLabel = *minimum;
  result.maxLabel = *maximum;
  for (const auto &[name, value] : *devices) {
    std::optional<int64_t> rows = countIn(&value);
    if (!rows)
      return error("devices: expected the rows of '" + StringRef(name) +
                   "' as a whole number from 0 on, but got " + shown(value));
    result.trainedOn[name.str()] = *rows;
  }
  for (const auto &[name, value] : *deviations) {
    const llvm::json::Object *object = value.getAsObject();
    std::optional<int64_t> rows =
        countIn(object ? object->get("rows") : nullptr);
    if (!rows)
      return error("deviations: expected 'rows' of device '" + StringRef(name) +
                   "' as a whole number from 0 on");
    PredictorDeviation &deviation = result.deviations[name.str()];
    deviation.rows = *rows;
    for (auto [key, to] :
         {std::pair(StringRef("overall"), &deviation.overall),
          std::pair(StringRef("between"), &deviation.withinShape)}) {
      std::optional<double> number = object->getNumber(key);
      if (!number || !(*number >= 0) || !std::isfinite(*number))
        return error("deviations: expected '" + key + "' of device '" +
                     StringRef(name) + "' as a number from 0 on");
      *to = *number;
    }
  }
  for (size_t count : statements) {
    llvm::Expected<llvm::ArrayRef<float>> ranges = array(
        "feature_ranges." + Twine(count), {2, count, kNumProgramFeatures});
    if (!ranges)
      return ranges.takeError();
    size_t half = ranges->size() / 2;
    for (size_t i = 0; i < half; ++i)
      if ((*ranges)[i] > (*ranges)[half + i])
        return error(
            "array 'feature_ranges." + Twine(count) +
            "': expected least features up to the greatest ones, but "
            "got " +
            llvm::formatv("{0} to {1}", (*ranges)[i], (*ranges)[half + i])
                .str());
    result.featureRanges[count] = ranges->vec();
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

llvm::Expected<llvm::ArrayRef<float>>
PredictorReader::array(const Twine &name, llvm::ArrayRef<size_t> shape) {
  auto it = arrays.find(name.str());
  if (it == arrays.end())
    return error("it has no array '" + name + "'");
  if (llvm::ArrayRef<size_t>(it->second.shape) != shape) {
    auto text = [](llvm::ArrayRef<size_t> shape) {
      return llvm::join(
          llvm::map_range(shape, [](size_t n) { return std::to_string(n); }),
          " x ");
    };
    return error("array '" + name + "': expected " + text(shape) +
                 " numbers, but got " + text(it->second.shape));
  }
  return llvm::ArrayRef<float>(it->second.values);
}

llvm::Error PredictorReader::row(const Twine &name, size_t size,
                                 std::vector<float> &result) {
  llvm::Expected<llvm::ArrayRef<float>> found = array(name, {size});
  if (!found)
    return found.takeError();
  result = found->vec();
  return llvm::Error::success();
}

llvm::Error PredictorReader::linear(const Twine &weights, const Twine &bias,
                                    size_t in, size_t out, LinearLayer &layer) {
  llvm::Expected<llvm::ArrayRef<float>> matrix = array(weights, {out, in});
  if (!matrix)
    return matrix.takeError();
  llvm::Expected<llvm::ArrayRef<float>> shift = array(bias, {out});
  if (!shift)
    return shift.takeError();
  layer.weights.resize(in, out);
  layer.bias.resize(1, out);
  for (size_t o = 0; o < out; ++o) {
    layer.bias[0][o] = (*shift)[o];
    for (size_t i = 0; i < in; ++i)
      layer.weights[i][o] = (*matrix)[o * in + i];
  }
  return llvm::Error::success();
}

llvm::Error PredictorReader::linear(const Twine &name, size_t in, size_t out,
                                    LinearLayer &layer) {
  std::string text = name.str();
  return linear(text + ".weight", text + ".bias", in, out, layer);
}

llvm::Error PredictorReader::norm(const Twine &name, size_t width,
                                  NormLayer &layer) {
  std::string text = name.str();
  if (llvm::Error error = row(text + ".weight", width, layer.scale))
    return error;
  return row(text + ".bias", width, layer.shift);
}

llvm::Error PredictorReader::perceptron(const Twine &name, size_t in,
                                        llvm::ArrayRef<size_t> hidden,
                                        size_t out, Perceptron &result) {
  std::string text = name.str() + ".";
  size_t number = 0;
  for (size_t size : hidden) {
    LinearLayer &layer = result.layers.emplace_back();
    if (llvm::Error error = linear(text + Twine(number), in, size, layer))
      return error;
    std::string batchNorm = (text + Twine(number + 1)).str();
    std::vector<float> weight, bias, mean, variance;
    for (auto [field, to] :
         {std::pair(".weight", &weight), std::pair(".bias", &bias),
          std::pair(".running_mean", &mean),
          std::pair(".running_var", &variance)})
      if (llvm::Error error = row(batchNorm + field, size, *to))
        return error;
    for (size_t o = 0; o < size; ++o) {
      double factor =
          weight[o] / std::sqrt(std::max<double>(variance[o], 0) + normEpsilon);
      for (size_t i = 0; i < in; ++i)
        layer.weights[i][o] = static_cast<float>(layer.weights[i][o] * factor);
      layer.bias[0][o] =
          static_cast<float>((layer.bias[0][o] - mean[o]) * factor + bias[o]);
    }
    in = size;
    number += 3;
  }
  return linear(text + Twine(number), in, out, result.layers.emplace_back());
}

llvm::Error PredictorReader::readNetwork(PredictorNetwork &network) {
  std::optional<bool> hasPositions = header.getBoolean("positions");
  if (!hasPositions)
    return error("expected 'positions'");
  network.hasPositions = *hasPositions;
  network.attentionHeads = heads;
  network.combination = combination;
  for (auto [name, size, to] :
       {std::tuple("feature_mean", kNumProgramFeatures, &network.featureMean),
        std::tuple("feature_deviation", kNumProgramFeatures,
                   &network.featureDeviation),
        std::tuple("device_mean", numDeviceFigures, &network.deviceMean),
        std::tuple("device_deviation", numDeviceFigures,
                   &network.deviceDeviation)})
    if (llvm::Error error = row(name, size, *to))
      return error;
  auto isPositive = [](float value) { return value > 0; };
  if (!llvm::all_of(network.featureDeviation, isPositive) ||
      !llvm::all_of(network.deviceDeviation, isPositive))
    return error("expected deviations above 0");
  if (width != kNumProgramFeatures)
    if (llvm::Error error = linear("project", kNumProgramFeatures, width,
                                   network.project.emplace()))
      return error;
  for (size_t number = 0; number < numLayers; ++number) {
    std::string name = "encoder.layers." + std::to_string(number) + ".";
    EncoderLayer &layer = network.encoder.emplace_back();
    if (llvm::Error error = linear(name + "self_attn.in_proj_weight",
                                   name + "self_attn.in_proj_bias", width,
                                   3 * width, layer.projections))
      return error;
    if (llvm::Error error =
            linear(name + "self_attn.out_proj", width, width, layer.attended))
      return error;
    if (llvm::Error error =
            linear(name + "linear1", width, feedForward, layer.forward))
      return error;
    if (llvm::Error error =
            linear(name + "linear2", feedForward, width, layer.back))
      return error;
    if (llvm::Error error = norm(name + "norm1", width, layer.first))
      return error;
    if (llvm::Error error = norm(name + "norm2", width, layer.second))
      return error;
  }
  for (size_t count : statements) {
    std::string name = "heads." + std::to_string(count) + ".";
    PredictorNetwork::Head &head = network.heads[count];
    if (llvm::Error error =
            linear(name + "1", count * width, inputWidth, head.flatten))
      return error;
    if (llvm::Error error = perceptron(name + "2", inputWidth, embedding,
                                       latent, head.embedding))
      return error;
  }
  if (llvm::Error error = perceptron("device", numDeviceFigures, deviceSizes,
                                     latent, network.device))
    return error;
  bool isWide = combination == LatentCombination::Concatenation;
  return perceptron("decoder", isWide ? 2 * latent : latent, decoderSizes, 1,
                    network.decoder);
}

//===----------------------------------------------------------------------===//
// Boosted trees
//===----------------------------------------------------------------------===//

llvm::Error PredictorReader::readForest(PredictorForest &forest) {
  /// Input, threshold, left and right node, value.
  static constexpr size_t fields = 5;
  std::optional<double> base = header.getNumber("base");
  if (!base || !std::isfinite(*base))
    return error("expected 'base'");
  forest.base = *base;
  auto it = arrays.find("nodes");
  if (it == arrays.end() || it->second.shape.size() != 3 ||
      it->second.shape[2] != fields || it->second.values.empty())
    return error("expected an array 'nodes' of trees x nodes x " +
                 Twine(fields));
  size_t numTrees = it->second.shape[0], numNodes = it->second.shape[1];
  if (numTrees * numNodes > std::numeric_limits<int32_t>::max())
    return error("expected fewer nodes");
  const float *from = it->second.values.data();
  for (size_t tree = 0; tree < numTrees; ++tree) {
    std::vector<DecisionForest::Node> nodes(numNodes);
    for (size_t place = 0; place < numNodes; ++place, from += fields) {
      DecisionForest::Node &node = nodes[place];
      if (from[0] < 0) {
        node.threshold = from[4];
        continue;
      }
      // Children behind their parents: every walk ends.
      auto isChild = [&](float child) {
        return child > static_cast<float>(place) &&
               child < static_cast<float>(numNodes) &&
               child == std::trunc(child);
      };
      if (from[0] != std::trunc(from[0]) ||
          from[0] >= kNumProgramFeatures + numDeviceFigures ||
          !isChild(from[2]) || !isChild(from[3]))
        return error("expected nodes whose children come behind them");
      node.input = static_cast<int32_t>(from[0]);
      node.threshold = DecisionForest::thresholdUpTo(from[1]);
      node.left = static_cast<uint32_t>(from[2]);
      node.right = static_cast<uint32_t>(from[3]);
    }
    forest.trees.add(nodes);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Golden rows
//===----------------------------------------------------------------------===//

llvm::Error PredictorReader::checkGolden(Predictor &result) {
  const llvm::json::Array *list = header.getArray("golden");
  if (!list || list->empty())
    return error("expected golden rows");
  size_t total = 0;
  std::vector<PredictorProgram> programs;
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Array *trees = value.getAsArray();
    PredictorProgram &program = programs.emplace_back();
    for (size_t i = 0; trees && i < trees->size(); ++i) {
      const llvm::json::Object *json = (*trees)[i].getAsObject();
      const llvm::json::Array *places =
          json ? json->getArray("ordering") : nullptr;
      std::optional<double> blocks =
          json ? json->getNumber("blocks") : std::nullopt;
      if (!places || places->empty() || !blocks || !(*blocks > 0))
        return error("golden rows: expected blocks and the order of each tree");
      PredictorTree &tree = program.emplace_back();
      tree.blocks = *blocks;
      for (const llvm::json::Value &value : *places) {
        std::optional<int64_t> place = countIn(&value);
        if (!place)
          return error("golden rows: expected 'ordering' as whole numbers from "
                       "0 on, but got " +
                       shown(value));
        tree.ordering.push_back(*place);
      }
      total += places->size();
    }
    if (program.empty())
      return error("golden rows: expected a tree of each program");
  }
  size_t figures = numDeviceFigures;
  llvm::Expected<llvm::ArrayRef<float>> features =
      array("golden_features", {total, kNumProgramFeatures});
  if (!features)
    return features.takeError();
  llvm::Expected<llvm::ArrayRef<float>> devices =
      array("golden_device", {programs.size(), figures});
  if (!devices)
    return devices.takeError();
  llvm::Expected<llvm::ArrayRef<float>> values =
      array("golden_values", {programs.size()});
  if (!values)
    return values.takeError();
  double maxDifference = Predictor::goldenError;
  if (header.get("golden_error")) {
    maxDifference = header.getNumber("golden_error").value_or(0);
    if (!(maxDifference >= Predictor::goldenError &&
          maxDifference <= Predictor::maxGoldenError))
      return error("golden rows: expected 'golden_error' from 1e-4 to 1e-2");
  }
  const float *from = features->data();
  for (auto [index, program] : llvm::enumerate(programs)) {
    for (PredictorTree &tree : program)
      for (size_t i = 0; i < tree.ordering.size(); ++i) {
        std::copy_n(from, kNumProgramFeatures,
                    tree.features.emplace_back().begin());
        from += kNumProgramFeatures;
      }
    if (std::string reason = result.unknownIn(program); !reason.empty())
      return error("golden row " + Twine(index) + " has " + reason);
    double value = 0;
    result.predict(
        {&program},
        result.form->encodeDevice(devices->slice(index * figures, figures)),
        value);
    double wanted = (*values)[index];
    double difference = std::abs(value - wanted) / std::abs(wanted);
    if (!(difference <= maxDifference))
      return error("golden row " + Twine(index) + ": expected " +
                   llvm::formatv("{0:e6}", wanted).str() + ", but got " +
                   llvm::formatv("{0:e6}", value).str());
    result.goldenDifference = std::max(result.goldenDifference, difference);
  }
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const Predictor>> PredictorReader::read() {
  if (llvm::Error error = readHeader())
    return error;
  if (llvm::Error error = readInputs())
    return error;
  std::shared_ptr<Predictor> result(new Predictor());
  if (isForest) {
    auto forest = std::make_unique<PredictorForest>();
    if (llvm::Error error = readForest(*forest))
      return error;
    result->form = std::move(forest);
  } else {
    auto network = std::make_unique<PredictorNetwork>();
    if (llvm::Error error = readSizes())
      return error;
    if (llvm::Error error = readNetwork(*network))
      return error;
    result->form = std::move(network);
  }
  if (llvm::Error error = readLabels(*result))
    return error;
  if (llvm::Error error = readProvenance(*result))
    return error;
  result->digest = hexOf(content);
  if (llvm::Error error = checkGolden(*result))
    return error;
  return result;
}

//===----------------------------------------------------------------------===//
// The predictor
//===----------------------------------------------------------------------===//

Predictor::Predictor() = default;
Predictor::~Predictor() = default;

llvm::Expected<std::shared_ptr<const Predictor>>
Predictor::parse(StringRef content, StringRef sourceName) {
  return PredictorReader(content, sourceName).read();
}

std::vector<float> Predictor::encodeDevice(const LatencyDevice &device) const {
  if (trainedOn.size() == 1)
    return form->encodeDevice({});
  return form->encodeDevice(figuresOf(device));
}

double Predictor::unfamiliarShare(const PredictorProgram &program) const {
  size_t numUnfamiliar = 0, numFeatures = 0;
  for (const PredictorTree &tree : program) {
    auto it = featureRanges.find(tree.ordering.size());
    if (it == featureRanges.end())
      return 1;
    const std::vector<float> &ranges = it->second;
    const float *minimum = ranges.data();
    const float *maximum = minimum + ranges.size() / 2;
    for (const ProgramFeatures &features : tree.features)
      for (float value : features) {
        bool isBelow = value < *minimum++ - featureMargin;
        bool isAbove = value > *maximum++ + featureMargin;
        numUnfamiliar += isBelow || isAbove;
        ++numFeatures;
      }
  }
  return static_cast<double>(numUnfamiliar) / static_cast<double>(numFeatures);
}

std::string Predictor::unknownIn(const PredictorProgram &program) const {
  for (const PredictorTree &tree : program)
    if (!featureRanges.count(tree.ordering.size()))
      return std::to_string(tree.ordering.size()) + " statements";
  double share = unfamiliarShare(program);
  if (share <= maxUnfamiliarShare)
    return "";
  return llvm::formatv("{0:P0} of its features far from all that it was "
                       "trained on",
                       share);
}

void Predictor::predict(llvm::ArrayRef<const PredictorProgram *> programs,
                        llvm::ArrayRef<float> device,
                        llvm::MutableArrayRef<double> values) const {
  if (!isCorrection) {
    form->predict(programs, device, values);
    return;
  }
  // The training says nothing about ratios outside its ranges, so features and
  // ratios are clamped to them.
  std::vector<PredictorProgram> clamped;
  std::vector<const PredictorProgram *> pointers;
  clamped.reserve(programs.size());
  for (const PredictorProgram *program : programs) {
    for (PredictorTree &tree : clamped.emplace_back(*program)) {
      const std::vector<float> &ranges =
          featureRanges.find(tree.ordering.size())->second;
      const float *minimum = ranges.data(),
                  *maximum = minimum + ranges.size() / 2;
      for (ProgramFeatures &features : tree.features)
        for (float &value : features)
          value = std::clamp(value, *minimum++, *maximum++);
    }
    pointers.push_back(&clamped.back());
  }
  form->predict(pointers, device, values);
  for (double &value : values)
    value = std::clamp(value, minLabel, maxLabel);
}

std::optional<PredictorDeviation> Predictor::deviation(StringRef device) const {
  auto it = deviations.find(std::string_view(device));
  if (it == deviations.end())
    return std::nullopt;
  return it->second;
}

PredictorProgram ftuner::predictorProgram(const Workload &workload,
                                          const Program &program,
                                          llvm::ArrayRef<int64_t> shape,
                                          const DeviceSpec &device) {
  PredictorProgram result;
  for (const PartAst &part :
       describeProgram(workload, program, shape, device)) {
    PredictorTree &tree = result.emplace_back();
    tree.features = programFeatures(part.ast);
    tree.ordering = part.ast.ordering();
    tree.blocks = part.blocks;
  }
  return result;
}

std::vector<std::string> ftuner::builtinPredictorNames() {
  std::vector<std::string> names;
  for (const BuiltinPredictor &file : builtinPredictors())
    names.push_back(file.name);
  llvm::sort(names);
  return names;
}

llvm::Expected<std::shared_ptr<const Predictor>>
ftuner::loadPredictor(StringRef nameOrPath) {
  std::string content, sourceName = nameOrPath.str();
  auto cannotRead = [&](const Twine &reason) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "cannot read predictor '" + nameOrPath +
                                       "': " + reason);
  };
  const BuiltinPredictor *builtin =
      llvm::find_if(builtinPredictors(), [&](const BuiltinPredictor &file) {
        return nameOrPath == file.name;
      });
  if (builtin != builtinPredictors().end()) {
    content.assign(reinterpret_cast<const char *>(builtin->bytes),
                   builtin->size);
    sourceName = (Twine("<built-in>/") + nameOrPath + ".predictor").str();
  } else {
    llvm::sys::fs::file_status status;
    if (std::error_code code = llvm::sys::fs::status(nameOrPath, status)) {
      if (!nameOrPath.contains('/') && !nameOrPath.contains('.'))
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            "unknown predictor '" + nameOrPath +
                "': expected the path of a file of 'ftuner learn train' or "
                "one of " +
                llvm::join(builtinPredictorNames(), ", "));
      return cannotRead(code.message());
    }
    if (!llvm::sys::fs::is_regular_file(status))
      return cannotRead("expected a regular file");
    if (status.getSize() > kMaxBytes)
      return cannotRead("expected at most " + Twine(kMaxBytes) +
                        " bytes, but got " + Twine(status.getSize()));
    auto buffer = llvm::MemoryBuffer::getFile(nameOrPath);
    if (!buffer)
      return cannotRead(buffer.getError().message());
    content = (*buffer)->getBuffer().str();
  }
  // The same content is read once.
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Predictor>> known;
  std::string hash = hexOf(content);
  std::lock_guard<std::mutex> lock(mutex);
  if (auto it = known.find(hash); it != known.end())
    return it->second;
  llvm::Expected<std::shared_ptr<const Predictor>> read =
      Predictor::parse(content, sourceName);
  if (read)
    known[hash] = *read;
  return read;
}
