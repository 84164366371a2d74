//===- FactorCasts.h - Factors in the type that is multiplied ---*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_FACTORCASTS_H
#define FTUNER_CODEGEN_IR_FACTORCASTS_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

namespace ftuner {

/// Elements of a factor, lhs (0) or rhs (1), as the contraction, a sum of
/// products, multiplies them: its own casts, on a vector.
mlir::Value castFactor(mlir::OpBuilder &b, ukernel::WorkloadOp workload,
                       unsigned factor, mlir::Value vector);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_FACTORCASTS_H
