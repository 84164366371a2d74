//===- ModuleTool.h - Programs over one module ------------------*- C++ -*-===//
//
// What ftuner-translate and ftuner-run share: reading a module, and compiling
// it unless it went through `ftuner-compile` already.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TOOLS_SUPPORT_MODULETOOL_H
#define FTUNER_TOOLS_SUPPORT_MODULETOOL_H

#include "ToolSupport.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include <map>

namespace ftuner::tool {

/// Which remarks are printed: none, how many there are of each kind, or all of
/// them and their numbers.
enum class Remarks { None, Summary, All };

/// The option `--remarks`.
struct RemarksOption : llvm::cl::opt<Remarks> {
  explicit RemarksOption(llvm::cl::OptionCategory &category);
};

/// A context with everything registered, which prints diagnostics on standard
/// error; remarks only where they are wanted.
///
/// Every remark has the same form, whoever makes it: "KIND: text" after the
/// place. Diagnostics without a place, those about options above all, are
/// printed without one.
class ModuleTool {
public:
  explicit ModuleTool(Remarks remarks);
  /// Prints the numbers of remarks.
  ~ModuleTool();

  /// Reads operations of dialects that nobody knows here.
  void allowUnregisteredDialects() { context.allowUnregisteredDialects(); }

  /// Ends the process as a success, once everything is written. Modules and the
  /// context are not freed, which takes time for nothing.
  [[noreturn]] void endProcess();

  /// From now on, prints a line `progress: STAGE` on standard error as each
  /// stage begins, and `progress: STAGE, N of M` as its kernels are through.
  void showProgress() { hasProgress = true; }
  /// Prints it for a stage that is no pass.
  void beginStage(llvm::StringRef stage) const;

  /// Reads a module from a file, or from standard input for `-`.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  readModule(llvm::StringRef path);

  /// Runs passes, and shows progress if asked for.
  llvm::LogicalResult run(mlir::PassManager &pm, mlir::ModuleOp module);

  /// Runs `ftuner-front-end`: forms and plans the workloads that have no plan
  /// yet. A compiled module, which has none left, is an error. `check` sees the
  /// module before the workloads are planned, and may end it with an error.
  llvm::Error plan(mlir::ModuleOp module, const FTunerOptions &options,
                   llvm::function_ref<llvm::Error(mlir::ModuleOp)> check = {});

  /// A planned module after `buildLaunchPipeline`; null if it has no lowering.
  /// Tells nothing: compiling does.
  mlir::OwningOpRef<mlir::ModuleOp> lowerToLaunches(mlir::ModuleOp planned);

  /// Runs `ftuner-compile` with the options of the command line. A module that
  /// is compiled already stays as it is; then options that ask for something
  /// else are errors.
  llvm::Error compile(mlir::ModuleOp module,
                      const PipelineCommandLine &commandLine);

private:
  void printNumRemarks() const;
  /// Prints, counts or drops a diagnostic. Fails for those that are to be
  /// printed with their place.
  llvm::LogicalResult handle(mlir::Diagnostic &diagnostic);
  /// Whether the same error was printed before: kernels that are lowered in
  /// parallel share their source.
  bool isRepeated(mlir::Diagnostic &diagnostic);

  Remarks remarks;
  bool hasProgress = false;
  /// The remarks so far, by kind.
  std::map<std::string, unsigned> numRemarks;
  mlir::MLIRContext context;
  llvm::StringSet<> errors;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler printer;
  mlir::ScopedDiagnosticHandler filter;
};

} // namespace ftuner::tool

#endif // FTUNER_TOOLS_SUPPORT_MODULETOOL_H
