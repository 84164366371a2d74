//===- Reference.h - Lowering of the reference ------------------*- C++ -*-===//
#ifndef FTUNER_LIB_EXECUTOR_REFERENCE_H
#define FTUNER_LIB_EXECUTOR_REFERENCE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>
#include <vector>

namespace ftuner {

/// Turns every f16, bf16 and f32 of the module, types and constants, into f64,
/// and rounds each value to the type that the program computes it in, but for
/// what reductions accumulate. Reports operations that depend on the bits of a
/// float.
mlir::LogicalResult promoteFloats(mlir::ModuleOp module);

/// Decomposes what has no loops of its own (softmax, winograd, …).
mlir::LogicalResult decomposeAggregates(mlir::ModuleOp module);

/// Name of the function that lowered code calls, with the index of a message,
/// where an assertion fails; it does not return.
inline constexpr llvm::StringLiteral kAssertionFunction =
    "ftuner_reference_assertion_failed";

/// Lowers a module on tensors, where all operations have loops, to LLVM through
/// upstream's passes. Functions keep their names and get C interfaces;
/// `messages` gets the texts of assertions.
mlir::LogicalResult lowerReference(mlir::ModuleOp module,
                                   std::vector<std::string> &messages);

} // namespace ftuner

#endif // FTUNER_LIB_EXECUTOR_REFERENCE_H
