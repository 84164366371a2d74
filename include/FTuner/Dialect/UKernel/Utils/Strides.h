//===- Strides.h - Strides of joined dimensions -----------------*- C++ -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_UTILS_STRIDES_H
#define FTUNER_DIALECT_UKERNEL_UTILS_STRIDES_H

#include "mlir/IR/BuiltinTypes.h"

namespace ftuner {

/// Returns whether `count` neighboring dimensions of a buffer, from `first` on,
/// can be accessed as one dimension with the stride of the last of them. Two
/// dimensions that can be collapsed need not do so: those of
/// memref<8x1xf32, strided<[5, 1]>> become one with a stride of 5.
bool haveOneStride(mlir::MemRefType type, int64_t first, int64_t count);

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_UTILS_STRIDES_H
