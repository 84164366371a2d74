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

llvm::ArrayRef<Gate> ftuner::codegenGates() {
  static const auto gates = [] {
    llvm::SmallVector<Gate> gates;
    enum State { Open, Gated };
    auto add = [&](const CodegenModel &model, State state) {
      if (state == Gated)
        gates.push_back({&model});
      for (const ScheduleField &field : model.scheduleFields())
        if (field.isGated)
          gates.push_back({&model, &field});
    };
#define FTUNER_CODEGEN_PATH(PATH, STATE) add(PATH##Model(), STATE);
#include FTUNER_CODEGEN_PATHS
    return gates;
  }();
  return gates;
}
