//===- PredictorNetwork.h - Layers of a predictor ---------------*- C++ -*-===//
//
// Products of matrices with bias, by rows: 4 rows and 8 columns at a time in
// registers, which compilers turn into vector instructions. Sums go from the
// first term to the last, so results do not depend on the batch.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_PREDICTORNETWORK_H
#define FTUNER_LIB_COSTMODEL_PREDICTORNETWORK_H

#include "PredictorForm.h"
#include <map>
#include <optional>

namespace ftuner {

/// Constant that PyTorch adds to variances.
inline constexpr double normEpsilon = 1e-5;

/// Rows of floats, padded with zeros to whole vectors.
class FloatRows {
public:
  static constexpr size_t lanes = 8;

  /// Forgets what was there.
  void resize(size_t rows, size_t width) {
    numRows = rows;
    this->width = width;
    stride = (width + lanes - 1) / lanes * lanes;
    values.assign(rows * stride, 0);
  }
  size_t rows() const { return numRows; }
  size_t columns() const { return width; }
  size_t step() const { return stride; }
  float *operator[](size_t row) { return values.data() + row * stride; }
  const float *operator[](size_t row) const {
    return values.data() + row * stride;
  }

private:
  size_t numRows = 0, width = 0, stride = 0;
  std::vector<float> values;
};

/// y = x · W + b.
struct LinearLayer {
  /// inputs × outputs.
  FloatRows weights;
  /// 1 × outputs.
  FloatRows bias;
  void apply(const FloatRows &in, FloatRows &out, bool isRectified) const;
};

struct NormLayer {
  std::vector<float> scale, shift;
  void apply(FloatRows &rows) const;
};

struct EncoderLayer {
  LinearLayer projections, attended, forward, back;
  NormLayer first, second;
};

/// Linear layers, each but the last with a rectifier behind it.
struct Perceptron {
  std::vector<LinearLayer> layers;
  void apply(const FloatRows &in, FloatRows &out) const;
};

enum class LatentCombination { Product, Sum, Concatenation };

/// The network of CDMPP.
class PredictorNetwork final : public PredictorForm {
public:
  std::vector<float> featureMean, featureDeviation;
  std::vector<float> deviceMean, deviceDeviation;
  bool hasPositions = true;
  unsigned attentionHeads = 4;
  std::optional<LinearLayer> project;
  std::vector<EncoderLayer> encoder;
  struct Head {
    LinearLayer flatten;
    Perceptron embedding;
  };
  std::map<size_t, Head> heads;
  Perceptron device, decoder;
  LatentCombination combination = LatentCombination::Product;

  /// z_v of the figures of a device.
  std::vector<float> encodeDevice(llvm::ArrayRef<float> figures) const override;
  void predict(llvm::ArrayRef<const PredictorProgram *> programs,
               llvm::ArrayRef<float> device,
               llvm::MutableArrayRef<double> values) const override;

private:
  /// Trees of one number of statements, programs and shares beside them.
  struct Group {
    std::vector<const PredictorTree *> trees;
    std::vector<size_t> program;
    std::vector<float> share;
  };
  void addLatents(size_t statements, const Group &group,
                  llvm::ArrayRef<float> device, FloatRows &latents) const;
  void encode(FloatRows &rows, size_t statements) const;
};

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_PREDICTORNETWORK_H
