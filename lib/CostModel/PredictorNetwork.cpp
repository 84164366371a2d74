//===- PredictorNetwork.cpp - Layers of a predictor -----------------------===//
#include "PredictorNetwork.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

namespace {
/// So many floats in vector registers.
typedef float Lanes
    __attribute__((vector_size(FloatRows::lanes * 4), aligned(4), may_alias));
} // namespace

/// Columns `first` to `first` + 8 of `count` rows from `row` on.
template <size_t count>
static void multiplyTile(const FloatRows &in, const LinearLayer &layer,
                         FloatRows &out, bool isRectified, size_t row,
                         size_t first) {
  Lanes sums[count];
  const auto &bias = *reinterpret_cast<const Lanes *>(layer.bias[0] + first);
  for (Lanes &sum : sums)
    sum = bias;
  const float *rows[count];
  for (size_t i = 0; i < count; ++i)
    rows[i] = in[row + i];
  const float *weights = layer.weights[0] + first;
  size_t inputs = layer.weights.rows(), stride = layer.weights.step();
  for (size_t k = 0; k < inputs; ++k, weights += stride) {
    const auto &weight = *reinterpret_cast<const Lanes *>(weights);
    for (size_t i = 0; i < count; ++i)
      sums[i] += rows[i][k] * weight;
  }
  for (size_t i = 0; i < count; ++i) {
    float *to = out[row + i] + first;
    for (size_t lane = 0; lane < FloatRows::lanes; ++lane)
      to[lane] = isRectified ? std::max(sums[i][lane], 0.0f) : sums[i][lane];
  }
}

void LinearLayer::apply(const FloatRows &in, FloatRows &out,
                        bool isRectified) const {
  constexpr size_t tile = 4;
  out.resize(in.rows(), weights.columns());
  for (size_t first = 0; first < out.step(); first += FloatRows::lanes) {
    size_t row = 0;
    for (; row + tile <= in.rows(); row += tile)
      multiplyTile<tile>(in, *this, out, isRectified, row, first);
    for (; row < in.rows(); ++row)
      multiplyTile<1>(in, *this, out, isRectified, row, first);
  }
}

void NormLayer::apply(FloatRows &rows) const {
  size_t width = scale.size();
  for (size_t row = 0; row < rows.rows(); ++row) {
    float *values = rows[row];
    float mean = 0, variance = 0;
    for (size_t i = 0; i < width; ++i)
      mean += values[i];
    mean /= static_cast<float>(width);
    for (size_t i = 0; i < width; ++i)
      variance += (values[i] - mean) * (values[i] - mean);
    variance /= static_cast<float>(width);
    float factor = 1 / std::sqrt(variance + static_cast<float>(normEpsilon));
    for (size_t i = 0; i < width; ++i)
      values[i] = (values[i] - mean) * factor * scale[i] + shift[i];
  }
}

void Perceptron::apply(const FloatRows &in, FloatRows &out) const {
  FloatRows rows = in, next;
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].apply(rows, next, /*isRectified=*/i + 1 < layers.size());
    std::swap(rows, next);
  }
  out = std::move(rows);
}

//===----------------------------------------------------------------------===//
// The network
//===----------------------------------------------------------------------===//

/// Adds the position of a statement (CDMPP, section 4.2): sines and cosines of
/// wave lengths up to 2π · 10000.
static void addPosition(int64_t place, float *values, size_t width) {
  static constexpr double theta = 10000;
  for (size_t i = 0; i < width; ++i) {
    double pair = 2.0 * static_cast<double>(i / 2);
    double angle = static_cast<double>(place) /
                   std::pow(theta, pair / static_cast<double>(width));
    values[i] +=
        static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

/// Places that trees of usual sizes have: their waves are kept.
static constexpr int64_t keptPlaces = 256;

static const std::vector<float> &positions() {
  static const std::vector<float> table = [] {
    std::vector<float> table(keptPlaces * kNumProgramFeatures);
    for (int64_t place = 0; place < keptPlaces; ++place)
      addPosition(place, table.data() + place * kNumProgramFeatures,
                  kNumProgramFeatures);
    return table;
  }();
  return table;
}

std::vector<float>
PredictorNetwork::encodeDevice(llvm::ArrayRef<float> figures) const {
  if (figures.empty())
    figures = deviceMean;
  FloatRows in, out;
  in.resize(1, figures.size());
  for (size_t i = 0; i < figures.size(); ++i)
    in[0][i] = (figures[i] - deviceMean[i]) / deviceDeviation[i];
  device.apply(in, out);
  return std::vector<float>(out[0], out[0] + out.columns());
}

/// Attention within each tree: rows have queries, keys and values of `width`
/// each one behind the other.
static void attend(const FloatRows &projected, size_t statements, size_t width,
                   unsigned heads, FloatRows &out) {
  out.resize(projected.rows(), width);
  size_t size = width / heads;
  float scale = 1 / std::sqrt(static_cast<float>(size));
  std::vector<float> weights(statements);
  for (size_t tree = 0; tree < projected.rows(); tree += statements)
    for (unsigned head = 0; head < heads; ++head)
      for (size_t query = 0; query < statements; ++query) {
        const float *q = projected[tree + query] + head * size;
        float maxWeight = -std::numeric_limits<float>::infinity();
        for (size_t key = 0; key < statements; ++key) {
          const float *k = projected[tree + key] + width + head * size;
          float sum = 0;
          for (size_t i = 0; i < size; ++i)
            sum += q[i] * k[i];
          weights[key] = sum * scale;
          maxWeight = std::max(maxWeight, weights[key]);
        }
        float total = 0;
        for (float &weight : weights)
          total += weight = std::exp(weight - maxWeight);
        float *to = out[tree + query] + head * size;
        for (size_t key = 0; key < statements; ++key) {
          const float *v = projected[tree + key] + 2 * width + head * size;
          float share = weights[key] / total;
          for (size_t i = 0; i < size; ++i)
            to[i] += share * v[i];
        }
      }
}

static void add(FloatRows &to, const FloatRows &other) {
  for (size_t row = 0; row < to.rows(); ++row)
    for (size_t i = 0; i < to.columns(); ++i)
      to[row][i] += other[row][i];
}

void PredictorNetwork::encode(FloatRows &rows, size_t statements) const {
  FloatRows projected, attention, change;
  for (const EncoderLayer &layer : encoder) {
    layer.projections.apply(rows, projected, false);
    attend(projected, statements, rows.columns(), attentionHeads, attention);
    layer.attended.apply(attention, change, false);
    add(rows, change);
    layer.first.apply(rows);
    layer.forward.apply(rows, projected, true);
    layer.back.apply(projected, change, false);
    add(rows, change);
    layer.second.apply(rows);
  }
}

void PredictorNetwork::addLatents(size_t statements, const Group &group,
                                  llvm::ArrayRef<float> device,
                                  FloatRows &latents) const {
  const Head &head = heads.find(statements)->second;
  FloatRows rows, narrow, flat, hidden, z;
  // So many that a layer's rows stay in a core's own cache.
  static constexpr size_t chunk = 64;
  for (size_t first = 0; first < group.trees.size(); first += chunk) {
    size_t count = std::min(chunk, group.trees.size() - first);
    rows.resize(count * statements, kNumProgramFeatures);
    for (size_t i = 0; i < count; ++i) {
      const PredictorTree &tree = *group.trees[first + i];
      for (size_t j = 0; j < statements; ++j) {
        float *to = rows[i * statements + j];
        for (size_t k = 0; k < kNumProgramFeatures; ++k)
          to[k] = (tree.features[j][k] - featureMean[k]) / featureDeviation[k];
        if (!hasPositions)
          continue;
        int64_t place = tree.ordering[j];
        if (place < 0 || place >= keptPlaces) {
          addPosition(place, to, kNumProgramFeatures);
          continue;
        }
        const float *wave = positions().data() + place * kNumProgramFeatures;
        for (size_t k = 0; k < kNumProgramFeatures; ++k)
          to[k] += wave[k];
      }
    }
    if (project) {
      project->apply(rows, narrow, false);
      std::swap(rows, narrow);
    }
    encode(rows, statements);
    size_t width = rows.columns();
    flat.resize(count, statements * width);
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < statements; ++j)
        std::copy_n(rows[i * statements + j], width, flat[i] + j * width);
    head.flatten.apply(flat, hidden, false);
    head.embedding.apply(hidden, z);
    for (size_t i = 0; i < count; ++i) {
      float *to = latents[group.program[first + i]];
      float share = group.share[first + i];
      size_t size = z.columns();
      for (size_t k = 0; k < size; ++k)
        switch (combination) {
        case LatentCombination::Product:
          to[k] += share * (z[i][k] * device[k]);
          break;
        case LatentCombination::Sum:
          to[k] += share * (z[i][k] + device[k]);
          break;
        case LatentCombination::Concatenation:
          to[k] += share * z[i][k];
          to[size + k] += share * device[k];
          break;
        }
    }
  }
}

void PredictorNetwork::predict(
    llvm::ArrayRef<const PredictorProgram *> programs,
    llvm::ArrayRef<float> device, llvm::MutableArrayRef<double> values) const {
  std::map<size_t, Group> groups;
  for (size_t i = 0; i < programs.size(); ++i) {
    double blocks = 0;
    for (const PredictorTree &tree : *programs[i])
      blocks += tree.blocks;
    for (const PredictorTree &tree : *programs[i]) {
      Group &group = groups[tree.ordering.size()];
      group.trees.push_back(&tree);
      group.program.push_back(i);
      group.share.push_back(static_cast<float>(tree.blocks / blocks));
    }
  }
  FloatRows latents, labels;
  bool isWide = combination == LatentCombination::Concatenation;
  latents.resize(programs.size(), device.size() * (isWide ? 2 : 1));
  for (const auto &[statements, group] : groups)
    addLatents(statements, group, device, latents);
  decoder.apply(latents, labels);
  for (size_t i = 0; i < programs.size(); ++i)
    values[i] = this->labels.backward(labels[i][0]);
}
