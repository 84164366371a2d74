//===- ArgumentNames.h - Names that a module's text gives -------*- C++ -*-===//
//
// Parsing drops the names of values. Callers see names of arguments of public
// functions, so this parser keeps them in the attribute `ukernel.names`
// (FTuner/HostAbi/HostAbi.h).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TOOLS_SUPPORT_ARGUMENTNAMES_H
#define FTUNER_TOOLS_SUPPORT_ARGUMENTNAMES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace ftuner::tool {

/// Parses a module of text or bytecode; null after an error.
///
/// Public functions without `ukernel.names` get it from the text: the name of
/// an argument %x is x. Numbers (%0) and names such as %arg0, as printers write
/// them, say nothing; then a location "x" of the argument is its name. Modules
/// of a context with unregistered dialects are for others, and stay as they
/// are.
mlir::OwningOpRef<mlir::ModuleOp> parseNamed(llvm::SourceMgr &sources,
                                             mlir::MLIRContext &context);

} // namespace ftuner::tool

#endif // FTUNER_TOOLS_SUPPORT_ARGUMENTNAMES_H
