//===- Explain.h - Why each workload is served as it is ---------*- C++ -*-===//
//
// Explains the planned workloads of a module (Explanation.h), as text for
// people or as JSON (docs/explain.md).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_EXPLAIN_H
#define FTUNER_TARGET_EXPLAIN_H

#include "FTuner/Search/Planning/Explanation.h"
#include "FTuner/Search/Setup/SearchSetup.h"
#include "FTuner/Target/WorkReport.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace ftuner {

/// The version of the JSON format; docs/explain.md says what changed with each.
inline constexpr int kExplanationFormatVersion = 5;

/// Explanation of a workload; it has at least one shape.
struct WorkloadExplanation {
  /// The function's C name, and the number of the workload in it: "dense_0".
  std::string name;
  /// Workloads with the same explanation, e.g. of equal layers.
  std::vector<std::string> equalWorkloads;
  /// Location in the source; empty if it is not known.
  std::string location;
  /// Symbol of the ukernel.plan.
  std::string planName;
  Workload workload;
  Plan plan;
  /// The plan for other architectures than the device's exact one, where `plan`
  /// is for that one alone, and its symbol.
  std::optional<Plan> portable;
  std::string portableName;
  /// Families that the plan must not have.
  std::vector<KernelFamily> rejected;
  std::vector<ShapeExplanation> shapes;
  /// How often each shape occurs; they add up to 1.
  std::vector<double> weights;
  /// Over all shapes.
  ExplanationSummary summary;

  /// One shape is explained in full, several are compared.
  bool isDetailed() const { return shapes.size() == 1; }
};

struct ModuleExplanation {
  DeviceSpec device;
  SearchSetup setup;
  /// Name of the calibration that predicted times are of.
  std::string calibration;
  /// How far predicted times may be off where its constants come from other
  /// devices (`transferError`).
  std::optional<double> transferError;
  /// Sizes that were asked for, for each shape; none for shapes along the main
  /// axis.
  std::vector<NamedSizes> sizes;
  std::vector<WorkloadExplanation> workloads;
  /// How much of each function uKernels carry, if its launches are known.
  std::vector<FunctionReport> functions;
  bool knowsLaunches = false;
};

/// Most sizes of the main axis that are explained without `sizes`.
inline constexpr int64_t kMaxExplainedSizes = 256;

/// The planned workloads of a module on tensors, those that are explained alike
/// as one, without shapes.
llvm::Expected<std::vector<WorkloadExplanation>>
collectWorkloads(mlir::ModuleOp module);

/// The end of a message about an unknown name: "; did you mean dense_0?", empty
/// where no known name is like it.
std::string didYouMean(llvm::StringRef name, llvm::ArrayRef<std::string> known);

/// Returns an error if a name is not a size of the module's workloads, planned
/// or not, nor, if `withFunctions`, of its functions. The error suggests a
/// similar name.
llvm::Error checkSizeNames(mlir::ModuleOp module,
                           llvm::ArrayRef<NamedSizes> sizes,
                           bool withFunctions);

/// Explains every workload of the module, on tensors and with a plan, at each
/// of the given sizes; without any, along its main axis. `setup` gives the
/// scores. `launching` is the same module after `buildLaunchPipeline`, and
/// tells of the functions as a whole; null where that is not known. A module
/// without such workloads has its functions explained. An error for modules
/// with neither, and for workloads that a size is missing for. `context` is for
/// what the setup measures. With the C name of a function, that one and its
/// workloads alone; an error where `launching` is null or has none of that
/// name.
llvm::Expected<ModuleExplanation>
explainModule(mlir::ModuleOp module, mlir::ModuleOp launching,
              const SearchSetup &setup, llvm::ArrayRef<NamedSizes> sizes,
              const SearchContext &context = {}, llvm::StringRef onlyOf = {});

/// The part of an explanation that is written as text.
struct ExplanationView {
  /// Everything; else a summary of at most `kMaxSummaryLines` lines.
  bool isFull = false;
  /// The workload that is written in full, and nothing else; empty for none.
  std::string workload = {};
};

/// The maximum number of lines of a summary. `ftuner explain` adds a timeline,
/// for up to 40 in all.
inline constexpr int kMaxSummaryLines = 30;

/// Writes the explanation for people: the functions first, then the workloads.
/// An error for a workload that does not exist.
llvm::Error writeExplanationText(const ModuleExplanation &explanation,
                                 const ExplanationView &view,
                                 llvm::raw_ostream &os);
void writeExplanationJson(const ModuleExplanation &explanation,
                          llvm::raw_ostream &os);

} // namespace ftuner

#endif // FTUNER_TARGET_EXPLAIN_H
