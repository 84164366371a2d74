//===- HostChecks.h - Checks that host code runs --------------*- C++ -*-===//
#ifndef FTUNER_HOSTABI_HOSTCHECKS_H
#define FTUNER_HOSTABI_HOSTCHECKS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"
#include <string>

namespace ftuner {

/// Returns how messages call a size: "dimension 1 of argument 'x'"; empty for a
/// size that is computed.
std::string describeSize(mlir::Value size);

/// Returns how messages call a tensor or a buffer: "argument 'x'", "result 0",
/// "an intermediate".
std::string describeBuffer(mlir::Value buffer);

/// Emits a check at the builder's position, unless it is known to hold. The
/// place of the code is put before `message`, which has {0}, {1}, … for
/// `sizes`.
void assertSizes(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
                 llvm::StringRef message, mlir::ValueRange sizes);

/// Asserts before each division and remainder of integers below `root` that the
/// divisor is not zero, and that a signed quotient does not overflow: a CPU
/// traps otherwise, which would end the program.
void assertDivisions(mlir::Operation *root);

/// Asserts before each scf.for below `root`, except in bodies of linalg
/// operators, that its step is positive: it would never end otherwise.
void assertSteps(mlir::Operation *root);

/// Asserts that no sum, difference or product of indices below `root` leaves 64
/// bits, nor one of i64 that becomes an index, before something other than
/// arithmetic runs: sizes would wrap. A product with a factor 0 is 0, whatever
/// the others are.
void assertSizesFit(mlir::Operation *root);

} // namespace ftuner

#endif // FTUNER_HOSTABI_HOSTCHECKS_H
