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
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"

namespace ftuner::tool {

/// A context with everything registered, which prints diagnostics on standard
/// error; remarks only where they are wanted.
class ModuleTool {
public:
  explicit ModuleTool(bool showRemarks);

  /// Reads a module from a file, or from standard input for `-`.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
  readModule(llvm::StringRef path);

  /// Runs `ftuner-front-end`: forms and plans the workloads that have no plan
  /// yet. A compiled module, which has none left, is an error.
  llvm::Error plan(mlir::ModuleOp module, const FTunerOptions &options);

  /// A planned module after `buildLaunchPipeline`; null if it has no lowering.
  /// Tells nothing: compiling does.
  mlir::OwningOpRef<mlir::ModuleOp> lowerToLaunches(mlir::ModuleOp planned);

  /// Runs `ftuner-compile` with the options of the command line. A module that
  /// is compiled already stays as it is; then options that ask for something
  /// else are errors.
  llvm::Error compile(mlir::ModuleOp module,
                      const PipelineCommandLine &commandLine);

private:
  /// Whether the same error was printed before: kernels that are lowered in
  /// parallel share their source.
  bool isRepeated(mlir::Diagnostic &diagnostic);

  mlir::MLIRContext context;
  llvm::StringSet<> errors;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler printer;
  mlir::ScopedDiagnosticHandler filter;
};

} // namespace ftuner::tool

#endif // FTUNER_TOOLS_SUPPORT_MODULETOOL_H
