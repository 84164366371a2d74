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

/// The remarks that are printed. A last line counts the remarks of each kind,
/// printed or not, unless remarks are off.
struct Remarks {
  bool isOn = false;
  /// Prints remarks of every kind, or of `kinds`.
  bool printsAll = false;
  llvm::StringSet<> kinds = {};

  bool prints(llvm::StringRef kind) const {
    return printsAll || kinds.contains(kind);
  }
};

/// Reads a value of `--remarks`: "all" or nothing, "summary", or kinds with
/// commas between. Fails for unknown kinds.
class RemarksParser : public llvm::cl::parser<std::string> {
public:
  using parser::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef name,
             llvm::StringRef text, std::string &value);
};

/// The option `--remarks`.
struct RemarksOption : llvm::cl::opt<std::string, false, RemarksParser> {
  explicit RemarksOption(llvm::cl::OptionCategory &category);
  operator Remarks() const;
};

/// A context with everything registered, which prints diagnostics on standard
/// error; remarks only where they are wanted.
///
/// Every remark has the same form, from every source: "KIND: text" after the
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
  /// Prints it for a stage that is not a pass.
  void beginStage(llvm::StringRef stage) const;

  /// Reads a module from a file, or from standard input for `-`.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  readModule(llvm::StringRef path);

  /// Runs passes, and shows progress if asked for.
  llvm::LogicalResult run(mlir::PassManager &pm, mlir::ModuleOp module);

  /// Runs `ftuner-front-end`: forms and plans the workloads that have no plan
  /// yet. A compiled module, without workloads, is an error. `check` sees the
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
  /// Counts a remark, and returns whether it is printed.
  bool addRemark(const mlir::Diagnostic &diagnostic);
  /// Prints, counts or drops a diagnostic. Fails for those that are to be
  /// printed with their place.
  llvm::LogicalResult handle(mlir::Diagnostic &diagnostic);
  /// Returns true if the same error was printed before: kernels that are
  /// lowered in parallel share their source.
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
