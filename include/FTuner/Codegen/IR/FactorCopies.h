//===- FactorCopies.h - Copies of factors of the tensor cores ---*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_FACTORCOPIES_H
#define FTUNER_CODEGEN_IR_FACTORCOPIES_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/TileCopy.h"

namespace ftuner {

/// The type that factors of a multiplied type have in shared memory.
mlir::Type factorType(mlir::Builder &b, ElementType multiplied);

/// Returns where a factor, lhs (0) or rhs (1), lies that `threads` threads copy
/// in vectors of `width` elements: a matrix, or a tensor read by windows.
std::unique_ptr<CopySource> factorSource(mlir::ImplicitLocOpBuilder &b,
                                         const ContractionTile &tile,
                                         unsigned factor,
                                         const SharedTile &shared,
                                         int64_t threads, int64_t width);

/// The copy of a factor, lhs (0) or rhs (1), by `threads` threads into the
/// stages at `memory`, where it is of `sharedType`, with its prologue.
/// `accessBytes`: TensorFactors.h. `roundsToTF32`: numbers of f32 become the
/// nearest ones of tf32, of two that are as near the even one.
TileCopy createFactorCopy(mlir::ImplicitLocOpBuilder &b,
                          const ContractionTile &tile, unsigned factor,
                          const SharedTile &shared, Value memory,
                          mlir::Type sharedType, int64_t threads,
                          int64_t accessBytes, bool roundsToTF32 = false);

/// Whether a factor, lhs (0) or rhs (1), of a product in tf32 has to be
/// rounded: not all numbers of its type before exact casts are of tf32, and
/// bits may not be cut off.
bool isRoundedFactor(const ContractionTile &tile, unsigned factor);

/// Whether the contraction extends a factor, lhs (0) or rhs (1), by zeros.
bool isUnsignedFactor(const ContractionTile &tile, unsigned factor);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_FACTORCOPIES_H
