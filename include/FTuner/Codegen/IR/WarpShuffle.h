//===- WarpShuffle.h - Values of other lanes --------------------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_WARPSHUFFLE_H
#define FTUNER_CODEGEN_IR_WARPSHUFFLE_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// Returns `value`, of 32 or 64 bits, of the lane whose number differs in one
/// bit, `distance`. All lanes of the warp take part. A shuffle moves 32 bits,
/// so 64 take two.
mlir::Value shuffleXor(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                       int64_t distance);

/// Returns the words of 32 bits of a value of 32 or 64 bits: the value itself,
/// or its lower and its upper half as integers.
llvm::SmallVector<mlir::Value, 2> wordsOf(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value value);
/// Returns the value of `type` that has these words.
mlir::Value joinWords(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange words,
                      mlir::Type type);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_WARPSHUFFLE_H
