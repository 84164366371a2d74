//===- IntegerArithmetic.h - Operations on known indices --------*- C++ -*-===//
#ifndef FTUNER_ANALYSIS_INTEGERARITHMETIC_H
#define FTUNER_ANALYSIS_INTEGERARITHMETIC_H

#include "mlir/IR/Operation.h"
#include <cstdint>
#include <optional>

namespace ftuner {

/// The result of an operation of arith on two integers of 64 bits, of a
/// comparison 0 or 1; none for other operations, and for a division by zero.
std::optional<int64_t> foldInteger(mlir::Operation *op, int64_t lhs,
                                   int64_t rhs);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_INTEGERARITHMETIC_H
