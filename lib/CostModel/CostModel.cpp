//===- CostModel.cpp - The registered cost models -------------------------===//
#include "FTuner/CostModel/CostModel.h"

namespace ftuner {
#define FTUNER_COST_MODEL(FUNCTION) const CostModel &FUNCTION();
#include "FTuner/CostModel/CostModels.def"
} // namespace ftuner

using namespace ftuner;

llvm::ArrayRef<const CostModel *> ftuner::costModels() {
  static const CostModel *const models[] = {
#define FTUNER_COST_MODEL(FUNCTION) &FUNCTION(),
#include "FTuner/CostModel/CostModels.def"
  };
  return models;
}

const CostModel *ftuner::findCostModel(llvm::StringRef name) {
  for (const CostModel *model : costModels())
    if (model->name() == name)
      return model;
  return nullptr;
}
