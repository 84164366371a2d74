//===- ModuleTrees.h - The trees of all launches of a module ----*- C++ -*-===//
//
// Input of a learned cost model for a compiled model (ProgramAst.h): the tree
// of each launch of its functions at certain sizes, for uKernels and fallback
// kernels alike, as text for people or as JSON (docs/program-trees.md).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_MODULETREES_H
#define FTUNER_TARGET_MODULETREES_H

#include "FTuner/Analysis/FunctionWork.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Schedule/ProgramAst.h"
#include "FTuner/Search/Planning/Explanation.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace ftuner {

/// The version of the JSON format; docs/program-trees.md says what changed.
inline constexpr int kTreesFormatVersion = 1;

struct LaunchTrees {
  /// Number in `FunctionWork::launches`.
  size_t launch = 0;
  /// How often a call launches the kernel; no value if that is not known.
  std::optional<double> times;
  /// Sizes of a workload and the family that serves them.
  Shape shape;
  std::optional<KernelFamily> family;
  std::vector<PartAst> parts;
  /// The reason why there are no trees; empty if there are trees.
  std::string reason;
};

/// The launches of a function that is called with certain sizes.
struct CallTrees {
  /// In the order of `FunctionWork::sizeNames`.
  std::vector<double> sizes;
  std::vector<LaunchTrees> launches;
};

struct FunctionTrees {
  FunctionWork work;
  /// For each of the sizes that were asked for.
  std::vector<CallTrees> calls;
};

struct ModuleTrees {
  DeviceSpec device;
  std::vector<FunctionTrees> functions;
};

/// The trees of a module at each of the given sizes, which must tell all sizes
/// of its functions. `planned` has the workloads with their plans, `launching`
/// is the same module after `buildLaunchPipeline`.
llvm::Expected<ModuleTrees> describeModule(mlir::ModuleOp planned,
                                           mlir::ModuleOp launching,
                                           llvm::ArrayRef<NamedSizes> sizes);

void writeTreesText(const ModuleTrees &trees, llvm::raw_ostream &os);
/// `withFeatures`: the numbers of each statement (ProgramFeatures.h), too.
void writeTreesJson(const ModuleTrees &trees, bool withFeatures,
                    llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_MODULETREES_H
