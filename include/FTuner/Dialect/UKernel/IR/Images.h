//===- Images.h - Which images hold which kernels ---------------*- C++ -*-===//
//
// Where some kernels run on the device's exact architecture alone, a compiled
// module has two images (docs/libraries.md): the exact one, and a portable one
// for the devices of other architectures. Host code that launches from one of
// them lies in a branch on `ukernel.exact_image`; all other kernels are in
// both.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_IMAGES_H
#define FTUNER_DIALECT_UKERNEL_IR_IMAGES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ftuner::ukernel {

/// What is behind the names of workloads in those of their portable kernels.
inline constexpr llvm::StringLiteral kPortableSuffix = "_portable";

/// Some of the two images.
struct ImageSet {
  bool exact = false;
  bool portable = false;

  ImageSet &operator|=(const ImageSet &other) {
    exact |= other.exact;
    portable |= other.portable;
    return *this;
  }
};

/// The images that host code at `op` runs with: one within a branch on
/// `ukernel.exact_image` by `scf.if`, else both.
ImageSet imagesAt(mlir::Operation *op);

/// The images that launches of each kernel need, by the name of its symbol at
/// the top of the module. Kernels without launches are not there.
llvm::DenseMap<mlir::StringAttr, ImageSet>
collectLaunchedImages(mlir::ModuleOp module);

} // namespace ftuner::ukernel

#endif // FTUNER_DIALECT_UKERNEL_IR_IMAGES_H
