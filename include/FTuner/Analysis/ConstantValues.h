//===- ConstantValues.h - Values that constants determine -------*- C++ -*-===//
//
// Compilers that take kernels of others compute what depends on constants alone
// while they compile, where those kernels cannot run. Products among these
// values are theirs.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_CONSTANTVALUES_H
#define FTUNER_ANALYSIS_CONSTANTVALUES_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace ftuner {

/// A unit attribute of operations of dialects that nobody knows here, whose
/// results are constant though they have no operands: whoever knows the dialect
/// sets it before workloads are formed. Also of contractions that are left for
/// their constant operands, which the formation sets.
inline constexpr llvm::StringLiteral kConstantAttrName = "ukernel.constant";

/// The values of a function that constants alone determine: results of
/// constants, and of operations that take nothing but such values, captured
/// ones included. Not those of calls and of operations with side effects, nor
/// arguments of blocks. Operations of unknown dialects that take something are
/// believed to have no side effects.
llvm::DenseSet<mlir::Value>
findConstantValues(mlir::FunctionOpInterface function);

/// Whether all operands of an operation are among the values.
bool hasConstantOperands(mlir::Operation *op,
                         const llvm::DenseSet<mlir::Value> &constants);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_CONSTANTVALUES_H
