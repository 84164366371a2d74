//===- PredictorForest.h - Boosted trees as a predictor ---------*- C++ -*-===//
//
// Trees of decisions on the mean features of a program's statements, those of
// several parts by their blocks, and the figures of its device: the sum of what
// they say is a label. They know nothing of the order of statements.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H
#define FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H

#include "PredictorForm.h"

namespace ftuner {

class PredictorForest final : public PredictorForm {
public:
  struct Node {
    /// Number of an input, features before figures; negative for a leaf.
    int32_t input = -1;
    /// Inputs up to it go left.
    float threshold = 0;
    /// Positions in `nodes`, behind that of this node.
    uint32_t left = 0, right = 0;
    /// Of a leaf.
    float value = 0;
  };
  /// Of all trees, and where each one begins.
  std::vector<Node> nodes;
  std::vector<uint32_t> roots;
  /// What the trees' sum is added to.
  double base = 0;

  std::vector<float> encodeDevice(llvm::ArrayRef<float> figures) const override;
  void predict(llvm::ArrayRef<const PredictorProgram *> programs,
               llvm::ArrayRef<float> device,
               llvm::MutableArrayRef<double> values) const override;
};

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_PREDICTORFOREST_H
