//===- HostChecks.h - What would crash or hang the host ------*- C++ -*-===//
#ifndef FTUNER_TRANSFORMS_HOSTCHECKS_H
#define FTUNER_TRANSFORMS_HOSTCHECKS_H

#include "mlir/IR/Operation.h"

namespace ftuner {

/// Asserts before each division and remainder of integers below `root` that the
/// divisor is not zero, and that a signed quotient does not overflow: a CPU
/// traps otherwise, which would end the program.
void assertDivisions(mlir::Operation *root);

/// Asserts before each scf.for below `root`, but for bodies of linalg
/// operators, that its step is positive: it would never end otherwise.
void assertSteps(mlir::Operation *root);

} // namespace ftuner

#endif // FTUNER_TRANSFORMS_HOSTCHECKS_H
