//===- PTXText.h - PTX as text ----------------------------------*- C++ -*-===//
#ifndef FTUNER_LIB_PTX_PTXTEXT_H
#define FTUNER_LIB_PTX_PTXTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace ftuner {

/// The one array that stands for dynamic shared memory in all kernels.
inline constexpr llvm::StringLiteral kDynamicSharedName =
    "ftuner_dynamic_shared_memory";

/// The name of the first `.extern .func`; empty where there is none.
llvm::StringRef findExternalFunction(llvm::StringRef ptx);

/// Joins PTX modules for the same target: one header, one declaration of the
/// dynamic shared memory with the largest alignment, then the kernels in order.
/// Other symbols must not clash.
std::string joinPtx(llvm::ArrayRef<llvm::StringRef> modules);

} // namespace ftuner

#endif // FTUNER_LIB_PTX_PTXTEXT_H
