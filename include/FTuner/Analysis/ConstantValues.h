//===- ConstantValues.h - Values that constants determine -------*- C++ -*-===//
//
// A compiler that takes FTuner's kernels computes values that depend only on
// constants at compile time, when these kernels cannot run. So products among
// such values are left to that compiler.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_CONSTANTVALUES_H
#define FTUNER_ANALYSIS_CONSTANTVALUES_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace ftuner {

/// Unit attribute of operations of unregistered dialects whose results are
/// constant though they have no operands; code that knows the dialect sets it
/// before workloads are formed. The formation sets it on contractions that it
/// leaves since their operands are constant.
inline constexpr llvm::StringLiteral kConstantAttrName = "ukernel.constant";

/// Returns the values of a function that depend only on constants: results of
/// constants, and of operations that take and capture only such values. Results
/// of calls and of operations with side effects, and arguments of blocks, do
/// not count. Operations of unknown dialects with operands are assumed to have
/// no side effects.
llvm::DenseSet<mlir::Value>
findConstantValues(mlir::FunctionOpInterface function);

/// Returns whether all operands of an operation are among the values.
bool hasConstantOperands(mlir::Operation *op,
                         const llvm::DenseSet<mlir::Value> &constants);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_CONSTANTVALUES_H
