//===- CodegenModels.cpp - The models of the registered codegen paths -----===//
//
// What is registered is CodegenPaths.def, or the file that a program with paths
// of its own names instead.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/Twine.h"

#ifndef FTUNER_CODEGEN_PATHS
#define FTUNER_CODEGEN_PATHS "FTuner/Codegen/CodegenPaths.def"
#endif

namespace ftuner {
#define FTUNER_CODEGEN_PATH(PATH, GATE) const CodegenModel &PATH##Model();
#include FTUNER_CODEGEN_PATHS
} // namespace ftuner

using namespace ftuner;

llvm::ArrayRef<const CodegenModel *> ftuner::codegenModels() {
  static const CodegenModel *const models[] = {
#define FTUNER_CODEGEN_PATH(PATH, GATE) &PATH##Model(),
#include FTUNER_CODEGEN_PATHS
  };
  return models;
}

llvm::ArrayRef<const CodegenModel *> ftuner::gatedCodegenModels() {
  static const auto gated = [] {
    llvm::SmallVector<const CodegenModel *> models;
    enum Gate { Open, Gated };
    auto add = [&](const CodegenModel &model, Gate gate) {
      if (gate == Gated)
        models.push_back(&model);
    };
#define FTUNER_CODEGEN_PATH(PATH, GATE) add(PATH##Model(), GATE);
#include FTUNER_CODEGEN_PATHS
    return models;
  }();
  return gated;
}
