//===- ElementBytes.h - Bytes of an element in memory -----------*- C++ -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H
#define FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

namespace ftuner {

/// Bytes from one element to the next in memory, of a number or of the elements
/// of a tensor: those of the next wider type of 1, 2, 4 or 8 bytes, as LLVM
/// allocates arrays (i24 takes four bytes), and more only in whole such steps.
/// Booleans take one byte, an index eight.
inline int64_t elementBytesOf(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (!type.isIntOrFloat())
    return 8;
  return llvm::PowerOf2Ceil(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8u));
}

/// Whether vectors of the type lie in memory as its elements do: those of
/// integers that do not fill their bytes are packed bit by bit.
inline bool fillsBytes(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  return !type.isIntOrFloat() ||
         type.getIntOrFloatBitWidth() == 8 * elementBytesOf(type);
}

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H
