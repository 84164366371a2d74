//===- Prologue.h - From memory to what is multiplied -----------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_PROLOGUE_H
#define FTUNER_CODEGEN_IR_PROLOGUE_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/TileCopy.h"

namespace ftuner {

/// What becomes of vectors of a factor, lhs (0) or rhs (1), of a sum of
/// products on the way to shared memory, where elements are of `sharedType`:
/// casts, and what the contraction computes of them. Addresses of vectors are
/// aligned to `alignment` bytes, or to all of theirs. None where elements stay
/// as they are.
std::optional<CopyConversion> prologueOf(mlir::ImplicitLocOpBuilder &b,
                                         const ContractionTile &tile,
                                         unsigned factor, mlir::Type sharedType,
                                         int64_t vectorWidth,
                                         int64_t alignment);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_PROLOGUE_H
