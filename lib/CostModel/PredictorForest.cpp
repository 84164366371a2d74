//===- PredictorForest.cpp - Boosted trees as a predictor -----------------===//
#include "PredictorForest.h"
#include "llvm/ADT/STLExtras.h"

using namespace ftuner;

std::vector<float>
PredictorForest::encodeDevice(llvm::ArrayRef<float> figures) const {
  // If the devices of the training do not differ, no tree asks for a figure.
  return figures.empty() ? std::vector<float>(numDeviceFigures) : figures.vec();
}

/// Fills in mean features, computed in f64 and in this order. Rounded to f32
/// they equal, bit by bit, the features that the trees were grown on
/// (python/ftuner/learned/boosted.py).
static void fillMeans(const PredictorProgram &program,
                      llvm::MutableArrayRef<float> inputs) {
  std::array<double, kNumProgramFeatures> sums = {};
  double blocks = 0;
  for (const PredictorTree &tree : program) {
    blocks += tree.blocks;
    for (size_t i = 0; i < kNumProgramFeatures; ++i) {
      double sum = 0;
      for (const ProgramFeatures &features : tree.features)
        sum += features[i];
      sums[i] +=
          tree.blocks * (sum / static_cast<double>(tree.features.size()));
    }
  }
  for (size_t i = 0; i < kNumProgramFeatures; ++i)
    inputs[i] = static_cast<float>(sums[i] / blocks);
}

void PredictorForest::predict(llvm::ArrayRef<const PredictorProgram *> programs,
                              llvm::ArrayRef<float> device,
                              llvm::MutableArrayRef<double> values) const {
  std::vector<float> inputs(kNumProgramFeatures + device.size());
  llvm::copy(device, inputs.begin() + kNumProgramFeatures);
  for (auto [program, value] : llvm::zip_equal(programs, values)) {
    fillMeans(*program, inputs);
    value = labels.backward(trees.sum(inputs, base));
  }
}
