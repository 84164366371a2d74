//===- PointwiseFormation.h - Chains to ukernel.pointwise -------*- C++ -*-===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H

#include "FTuner/Analysis/Extents.h"
#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace ftuner {

/// An elementwise operator as the operator that it becomes.
struct PointwiseDescription {
  mlir::linalg::LinalgOp op;
  /// Numbers of the loops in the order of the first output's dimensions. There
  /// are none if the tensors have no dimensions: then the axis has one point,
  /// and each output is viewed as a tensor of one element.
  llvm::SmallVector<unsigned> loops;
  /// The operands that the body reads, with maps from the axis and the loops in
  /// the new order; positions along dimensions of extent 1 are constant.
  struct Input {
    mlir::Value value;
    mlir::AffineMap map;
    mlir::BlockArgument argument;
  };
  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<mlir::AffineMap> outputMaps;
  /// Scalars that the body takes from outside, without constants.
  llvm::SmallVector<mlir::Value> scalars;

  /// Returns true if maps have the loops as dimensions after the axis.
  bool isFused() const { return loops.size() > 1; }
  unsigned numDims() const { return isFused() ? loops.size() + 1 : 1; }
};

/// Returns no value if the operator is not an elementwise one that
/// `ukernel.pointwise` can have.
std::optional<PointwiseDescription> describePoints(mlir::linalg::LinalgOp op);

/// Returns whether kernels have elements of the type in vectors, or one by one
/// as bytes.
bool isPointElement(mlir::Type type);
/// Returns whether the operations of the body are scalar ones, which a point
/// computes by itself.
bool hasScalarBody(mlir::linalg::LinalgOp op);
/// Returns true if the declared ranges allow more points than an axis may have.
bool mayExceedPoints(mlir::linalg::LinalgOp op, ExtentAnalysis &extents);

/// Returns a map without the results that are constant.
mlir::AffineMap dropConstants(mlir::AffineMap map);
/// Collapses the dimensions of a tensor along which its position is constant:
/// those of extent 1.
mlir::Value collapseUnitDims(mlir::OpBuilder &b, mlir::Value tensor,
                             mlir::AffineMap map);
/// Clones the body of an operator, and constants that it takes from outside,
/// into a region of a `ukernel.pointwise`; returns what it yields. `mapping`
/// has its other values from outside. `loops` has the number of each loop of
/// the operator by its position in the new order. With `promote` f16 and bf16
/// are computed, and yielded, in f32.
llvm::SmallVector<mlir::Value> cloneScalarBody(mlir::linalg::LinalgOp op,
                                               llvm::ArrayRef<unsigned> loops,
                                               mlir::IRMapping &mapping,
                                               mlir::RewriterBase &rewriter,
                                               bool promote = false);

/// Returns the paths that compute operators for the module's device, among
/// those of a list, separated by commas, if it is not empty.
llvm::FailureOr<PathSupport> supportOfPaths(mlir::ModuleOp module,
                                            llvm::StringRef paths);
/// Fuses the elementwise operators that are left. The normalization leaves some
/// apart for products and reductions of rows, which have their operators now.
llvm::LogicalResult fuseElementwise(mlir::FunctionOpInterface function);

/// Returns true if a codegen path computes an elementwise operator on tensors
/// as a `ukernel.pointwise`.
bool isPointwiseWorkload(mlir::linalg::LinalgOp op, const PathSupport &support);

/// Returns true if an operator reduces windows that a codegen path takes as
/// taps of points, or only makes what such operators start from. Elements of a
/// type that kernels lack are not excluded.
bool isWindowWorkload(mlir::linalg::LinalgOp op, const PathSupport &support);

/// Replaces an operator for which `isPointwiseWorkload` holds. Calls must
/// follow the order of the program.
void formPointwise(mlir::linalg::LinalgOp op, ExtentAnalysis &extents,
                   mlir::RewriterBase &rewriter);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_POINTWISEFORMATION_H
