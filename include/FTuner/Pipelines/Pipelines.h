//===- Pipelines.h - FTuner's pipelines -------------------------*- C++ -*-===//
#ifndef FTUNER_PIPELINES_PIPELINES_H
#define FTUNER_PIPELINES_PIPELINES_H

#include "FTuner/Support/Options.h"
#include "FTuner/Transforms/PassOptionList.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace ftuner {

/// The options that the pipeline itself reads.
struct PipelineSettings {
  /// Name of a preset (`optionPresets`); its values count where nobody gave
  /// another one.
  std::string preset = "none";
  /// Name of a built-in device, or path of a description; empty where the
  /// module has one.
  std::string device;
  /// Off by default, so that the output does not depend on installed tools.
  bool ptxasFeedback = false;
  /// What products of f32 may round their factors to: a name of
  /// `FactorPrecision`. The pass that forms workloads refuses others.
  std::string precision = "f32";
  /// Constant weights are put into the order in which blocks read them, where
  /// one of the codegen paths takes them so.
  bool packWeights = false;
};

/// preset, device, ptxas-feedback, precision and pack-weights.
const OptionTable<PipelineSettings> &pipelineOptions();
/// These and all of `searchOptionList`.
const OptionList &pipelineOptionList();
/// Values of several options under one name, which the option `preset` sets.
struct OptionPreset {
  llvm::StringLiteral name;
  OptionValues values;
};
/// The presets, without "none". docs/paper.md names the values of each.
llvm::ArrayRef<OptionPreset> optionPresets();
/// Writes that list as JSON, for other programs (docs/extending/options.md).
void writeOptionList(llvm::raw_ostream &os);

/// Options of `--ftuner-compile`; the tools take each as `--NAME=VALUE`. There
/// is one for each declaration in `pipelineOptionList`.
struct FTunerOptions : public mlir::PassPipelineOptions<FTunerOptions> {
  FTunerOptions();

  PipelineSettings settings() const { return pipelineOptions().read(values()); }
  /// Values for `makeSearchSetup`.
  OptionValues search() const;
  /// Returns an error for values that the pipeline's own options do not take.
  /// The search checks its own.
  llvm::Error check() const;
  /// Sets an option; its name must be in the list, and the value of its type.
  void set(llvm::StringRef name, OptionValue value) {
    list.set({{name.str(), std::move(value)}});
  }

private:
  /// All values: those that were given, else those of the preset, else
  /// defaults.
  OptionValues values() const;

  PassOptionList list;
};

/// Registers a pipeline that takes these options. Help texts show the basic
/// ones.
void registerOptionPipeline(
    llvm::StringRef name, llvm::StringRef text,
    std::function<void(mlir::OpPassManager &, const FTunerOptions &)> build);

/// The whole pipeline: linalg on tensors in; out comes a module with host
/// functions on memrefs that dispatch over `ukernel.launch`, and a `gpu.module`
/// on the NVVM level for every kernel.
void buildFTunerPipeline(mlir::OpPassManager &pm, const FTunerOptions &options);

/// The parts of the pipeline, for tools that stop or start in between.
void buildFrontEndPipeline(mlir::OpPassManager &pm,
                           const FTunerOptions &options);
/// The front end in two parts: as far as workloads are formed, and their plans.
void buildFrontEndFormationPipeline(mlir::OpPassManager &pm,
                                    const FTunerOptions &options);
void buildPlanningPipeline(mlir::OpPassManager &pm,
                           const FTunerOptions &options,
                           bool isPartial = false);
/// The front end for modules with operations that are unknown here: functions
/// are neither inlined nor removed. To whoever knows those operations products
/// of constants are left, which may be computed before the program runs, and
/// those on integers of less than a byte, which may be packed.
void buildPartialFrontEndPipeline(mlir::OpPassManager &pm,
                                  const FTunerOptions &options);
/// The first part of the front end alone: from linalg to workloads that have no
/// plan yet. Needs no device. `isPartial`: as for the partial front end.
void buildFormationPipeline(mlir::OpPassManager &pm,
                            const FTunerOptions &options,
                            bool isPartial = false);
/// From planned workloads on tensors to host functions that launch kernels,
/// none of which is emitted yet.
void buildLaunchPipeline(mlir::OpPassManager &pm);
/// From planned workloads on tensors to the host functions and a `gpu.func` for
/// every kernel that they launch, each kernel once.
void buildEmissionPipeline(mlir::OpPassManager &pm);
/// From planned workloads on tensors to the end.
void buildBackEndPipeline(mlir::OpPassManager &pm);
/// ukernel.workload on tensors to memrefs, destinations passed by the caller.
void buildBufferizationPipeline(mlir::OpPassManager &pm);
/// gpu.func to llvm.func with NVVM ops, for every gpu.module.
void buildKernelLoweringPipeline(mlir::OpPassManager &pm);
/// Host functions of a compiled module to LLVM with the host ABI
/// (docs/abi.md); drops the gpu.modules. `moduleSymbol` names the ftrt_module
/// that the kernels belong to, an external symbol of the result; without one
/// they belong to none, which suits a runtime that knows them by name.
void buildHostLoweringPipeline(mlir::OpPassManager &pm,
                               llvm::StringRef moduleSymbol = {});

/// Registers `ftuner-compile` and the pipelines above as pass pipelines.
void registerFTunerPipelines();
/// What they are registered as, the whole one first.
llvm::ArrayRef<llvm::StringLiteral> getFTunerPipelineNames();

} // namespace ftuner

#endif // FTUNER_PIPELINES_PIPELINES_H
