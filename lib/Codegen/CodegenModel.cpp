//===- CodegenModel.cpp - The registered codegen paths --------------------===//
#include "FTuner/Codegen/CodegenModel.h"

namespace ftuner {
#define FTUNER_CODEGEN_PATH(FUNCTION) const CodegenModel &FUNCTION();
#include "FTuner/Codegen/CodegenPaths.def"
} // namespace ftuner

using namespace ftuner;

llvm::ArrayRef<const CodegenModel *> ftuner::codegenModels() {
  static const CodegenModel *const models[] = {
#define FTUNER_CODEGEN_PATH(FUNCTION) &FUNCTION(),
#include "FTuner/Codegen/CodegenPaths.def"
  };
  return models;
}

const CodegenModel *ftuner::findCodegenModel(llvm::StringRef name) {
  for (const CodegenModel *model : codegenModels())
    if (model->name() == name)
      return model;
  return nullptr;
}
