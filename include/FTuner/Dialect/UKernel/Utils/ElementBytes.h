//===- ElementBytes.h - Bytes of an element in memory -----------*- C++ -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H
#define FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

namespace ftuner {

/// Returns the bytes from one element to the next in memory, for a number or
/// the elements of a tensor: a power of two, as LLVM allocates arrays (i24
/// takes four bytes). Booleans take one byte, an index eight.
inline int64_t elementBytesOf(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (!type.isIntOrFloat())
    return 8;
  return llvm::PowerOf2Ceil(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8u));
}

/// Returns whether vectors of the type have the same layout in memory as arrays
/// of its elements. Vectors of integers that do not fill their bytes are packed
/// bit by bit.
inline bool fillsBytes(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  return !type.isIntOrFloat() ||
         type.getIntOrFloatBitWidth() == 8 * elementBytesOf(type);
}

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_ELEMENTBYTES_H
