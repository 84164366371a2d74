//===- Images.h - Images that hold a kernel ---------------------*- C++ -*-===//
//
// If some kernels run only on the device's exact architecture, a compiled
// module has two images (docs/libraries.md): the exact one, and a portable one
// for devices of other architectures. Host code that launches from only one of
// them is in a branch on `ukernel.exact_image`; all other kernels are in both.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_IMAGES_H
#define FTUNER_DIALECT_UKERNEL_IR_IMAGES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace ftuner::ukernel {

/// Suffix after the name of a workload in the names of its portable kernels.
inline constexpr llvm::StringLiteral kPortableSuffix = "_portable";

/// A set of images.
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
