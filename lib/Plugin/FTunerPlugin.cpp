//===- FTunerPlugin.cpp - FTuner in other programs over MLIR --------------===//
//
// One plugin for `--load-dialect-plugin` and `--load-pass-plugin` of mlir-opt,
// and for programs that load plugins through upstream's DialectPlugin and
// PassPlugin.
//
//===----------------------------------------------------------------------===//
#include "FTuner/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/Compiler.h"

namespace {
constexpr const char *kName = "FTuner";
} // namespace

/// The dialect, and what the pipelines need beyond it: upstream's dialects,
/// external models of interfaces, and translations to LLVM IR. What the program
/// has registered already stays as it is.
extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, FTUNER_VERSION,
          [](mlir::DialectRegistry *registry) {
            ftuner::registerAllDialects(*registry);
          }};
}

/// Passes and pipelines.
extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, kName, FTUNER_VERSION,
          [] { ftuner::registerAllPasses(); }};
}
