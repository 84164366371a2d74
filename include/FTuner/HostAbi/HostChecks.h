//===- HostChecks.h - What would mislead or stop the host -----*- C++ -*-===//
#ifndef FTUNER_HOSTABI_HOSTCHECKS_H
#define FTUNER_HOSTABI_HOSTCHECKS_H

#include "mlir/IR/Operation.h"

namespace ftuner {

/// Asserts before each division and remainder of integers below `root` that the
/// divisor is not zero, and that a signed quotient does not overflow: a CPU
/// traps otherwise, which would end the program.
void assertDivisions(mlir::Operation *root);

/// Asserts before each scf.for below `root`, but for bodies of linalg
/// operators, that its step is positive: it would never end otherwise.
void assertSteps(mlir::Operation *root);

/// Asserts that no sum, difference or product of indices below `root` leaves 64
/// bits, nor one of i64 that becomes an index, before something other than
/// arithmetic runs: sizes would wrap. A product with a factor 0 is 0, whatever
/// the others are.
void assertSizesFit(mlir::Operation *root);

} // namespace ftuner

#endif // FTUNER_HOSTABI_HOSTCHECKS_H
