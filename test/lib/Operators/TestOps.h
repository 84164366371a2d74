//===- TestOps.h - Operators for tests --------------------------*- C++ -*-===//
//
// Operators beside `ukernel.workload`, to prove that passes ask
// `OperatorOpInterface` alone: they are formed, planned, bufferized, dispatched
// and emitted without a line outside
// of test/lib.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_LIB_OPERATORS_TESTOPS_H
#define FTUNER_TEST_LIB_OPERATORS_TESTOPS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "TestDialect.h.inc"

#define GET_OP_CLASSES
#include "TestOps.h.inc"

namespace ftuner::test {
/// Registers the dialect with the bufferization of its operators.
void registerTestDialect(mlir::DialectRegistry &registry);
/// Registers `test-form-row-sums`.
void registerTestPasses();

/// Clones a region of one block for these arguments: what it yields.
llvm::SmallVector<mlir::Value> inlineRegion(mlir::OpBuilder &b,
                                            mlir::Region &region,
                                            mlir::ValueRange arguments);
/// Where a point is in an operand of a kernel: `position` has the index along
/// each axis, null along batch axes, at whose positions operands begin.
llvm::SmallVector<mlir::Value> indicesAt(mlir::ImplicitLocOpBuilder &b,
                                         ukernel::OperatorOpInterface op,
                                         unsigned number,
                                         llvm::ArrayRef<mlir::Value> position);
} // namespace ftuner::test

#endif // FTUNER_TEST_LIB_OPERATORS_TESTOPS_H
