//===- LinalgStructure.h - Structure of linalg operators --------*- C++ -*-===//
//
// The computation of an operator is read from its indexing maps and its body,
// never from its name.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_LINALGSTRUCTURE_H
#define FTUNER_ANALYSIS_LINALGSTRUCTURE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <optional>

namespace ftuner {

/// Loops of out += lhs · rhs, by role. Every loop has one role.
struct Contraction {
  llvm::SmallVector<unsigned> batch; ///< in lhs, rhs and out
  llvm::SmallVector<unsigned> m;     ///< in lhs and out
  llvm::SmallVector<unsigned> n;     ///< in rhs and out
  llvm::SmallVector<unsigned> k;     ///< in lhs and rhs
};

/// The roles of the loops if the operator, on tensors, is a sum of products of
/// its two inputs, in any order of loops and of factors and of any type. lhs is
/// the first input. A role may be empty (matvec, dot).
std::optional<Contraction> matchContraction(mlir::linalg::LinalgOp op);

/// Matches the roles of the loops only by the maps of two inputs and an output.
std::optional<Contraction> matchLoops(mlir::linalg::LinalgOp op);

/// The loops of a convolution by role, out += image · filter, where positions
/// in the image are sums of multiples of loops. Every loop has one role.
struct Convolution {
  /// The number of the input that is read by windows.
  unsigned image;
  llvm::SmallVector<unsigned> groups;  ///< in image, filter and out
  llvm::SmallVector<unsigned> pixels;  ///< in image and out
  llvm::SmallVector<unsigned> filters; ///< in filter and out
  llvm::SmallVector<unsigned> sums; ///< in image and filter: taps and channels
};

/// Matches a sum of products of its two inputs, on tensors, one of which is
/// read by windows, with loops of pixels, filters and sums. A depthwise
/// convolution has no loops of filters and does not match. No loop is two
/// dimensions of the image.
std::optional<Convolution> matchConvolution(mlir::linalg::LinalgOp op);

/// Returns whether an operator is a contraction or a convolution.
bool isProduct(mlir::linalg::LinalgOp op);

/// Returns whether a position is a constant plus multiples of loops, falls
/// along none of these, and rises along one.
bool isWindow(mlir::AffineExpr position, unsigned numLoops);

/// Returns the padding, with one value everywhere, whose result a tensor is;
/// null for other tensors.
mlir::tensor::PadOp paddingOf(mlir::Value tensor);
/// Returns whether the value of such padding is computed outside of the
/// operation, so that another one can take it.
bool hasOuterValue(mlir::tensor::PadOp pad);
/// Returns whether an operator that reads a padded tensor by `map` can read the
/// source of the padding instead: the amounts before the source are known, and
/// positions along padded dimensions are no loop and no constant alone, since
/// the extent of that loop would be that of the padded tensor.
bool canReadSource(mlir::tensor::PadOp pad, mlir::AffineMap map);
/// Returns the positions in the source of a padded tensor that `map` reads.
/// Requires `canReadSource`.
mlir::AffineMap mapOfSource(mlir::tensor::PadOp pad, mlir::AffineMap map);

/// Input of an operator that only moves elements.
struct ProjectedCopy {
  mlir::Value source;
  /// Map from the dimensions of the operator's result to the dimensions of the
  /// source: a projected permutation.
  mlir::AffineMap map;
  /// Cast of the source's elements; null if they keep their type.
  mlir::Operation *cast = nullptr;
};

/// Matches transposes, broadcasts and copies of one tensor that keep the
/// element type.
std::optional<ProjectedCopy> matchProjectedCopy(mlir::Operation *op);
/// Matches a projected copy that may also cast elements if the cast keeps every
/// value.
std::optional<ProjectedCopy> matchExactCopy(mlir::Operation *op);

/// Returns the scalar that every element of the tensor equals, if the tensor is
/// defined by a fill. Looks only at the tensor's definition.
mlir::Value matchFill(mlir::Value tensor);

} // namespace ftuner

#endif // FTUNER_ANALYSIS_LINALGSTRUCTURE_H
