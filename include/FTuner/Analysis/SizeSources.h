//===- SizeSources.h - Sizes that other dialects compute --------*- C++ -*-===//
//
// Operations of unregistered dialects may give sizes and tensors. Code that
// knows such a dialect sets these attributes before workloads are formed;
// workloads then have the ranges of these sizes.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_SIZESOURCES_H
#define FTUNER_ANALYSIS_SIZESOURCES_H

#include "llvm/ADT/StringRef.h"

namespace ftuner {

/// Array with an entry for each result: the name of the symbol whose value it
/// is, or unit.
inline constexpr llvm::StringLiteral kSizesAttrName = "ukernel.sizes";
/// Array with an entry for each dynamic dimension of the only result, a
/// tensor: the number of the operand that is its size.
inline constexpr llvm::StringLiteral kDimsAttrName = "ukernel.dims";

} // namespace ftuner

#endif // FTUNER_ANALYSIS_SIZESOURCES_H
