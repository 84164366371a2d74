//===- SizeSources.h - Sizes that other dialects compute --------*- C++ -*-===//
//
// Operations of dialects that nobody knows here may give sizes and tensors.
// Whoever knows the dialect says so by attributes of them, before workloads are
// formed, which then have the ranges of these sizes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_SIZESOURCES_H
#define FTUNER_ANALYSIS_SIZESOURCES_H

#include "llvm/ADT/StringRef.h"

namespace ftuner {

/// An array with an entry for each result: the name of the symbol that it is
/// the value of, or unit.
inline constexpr llvm::StringLiteral kSizesAttrName = "ukernel.sizes";
/// An array with an entry for each dynamic dimension of the only result, a
/// tensor: the number of the operand that is its size.
inline constexpr llvm::StringLiteral kDimsAttrName = "ukernel.dims";

} // namespace ftuner

#endif // FTUNER_ANALYSIS_SIZESOURCES_H
