//===- WarpShuffle.h - Values of other lanes --------------------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_WARPSHUFFLE_H
#define FTUNER_CODEGEN_IR_WARPSHUFFLE_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// What `value`, of 32 bits, is in the lane whose number differs in one bit,
/// `distance`. All lanes of the warp take part.
mlir::Value shuffleXor(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                       int64_t distance);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_WARPSHUFFLE_H
