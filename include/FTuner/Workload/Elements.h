//===- Elements.h - Types of elements ---------------------------*- C++ -*-===//
#ifndef FTUNER_WORKLOAD_ELEMENTS_H
#define FTUNER_WORKLOAD_ELEMENTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace ftuner {

/// Types of elements; integers have no sign. Other is what no path computes
/// with.
enum class ElementType {
  F64,
  F32,
  TF32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  I1,
  Other
};

/// Bytes of an element in memory; 8 for other types.
int64_t bytesOf(ElementType type);
/// "f32".
llvm::StringRef nameOf(ElementType type);
bool isInteger(ElementType type);

/// Value of a sum, product or extreme of no elements.
enum class Identity { Zero, One, Lowest, Highest };
/// "zero", "one", "lowest", "highest".
llvm::StringRef nameOf(Identity identity);

/// Rounding that kernels may apply to the factors of products of f32 before
/// they multiply them.
enum class FactorPrecision {
  F32,          ///< nothing
  TF32,         ///< the nearest numbers of tf32
  TF32Truncate, ///< those, or factors without the bits that tf32 lacks
};

/// Names that users give, in the order of the numbers: "f32", "tf32" and
/// "tf32-truncate".
llvm::ArrayRef<llvm::StringLiteral> factorPrecisionNames();
std::optional<FactorPrecision> findFactorPrecision(llvm::StringRef name);

} // namespace ftuner

#endif // FTUNER_WORKLOAD_ELEMENTS_H
