//===- RowDescription.h - Row reductions before they are built --*- C++ -*-===//
//
// A row reduction is formed in the three steps in which a matrix product is
// (FTuner/Analysis/WorkloadMatching.h): `matchRows` describes what would be
// formed, a codegen path says whether it supports that, and `formRows`
// (RowFormation.h) builds the operator. Only the last step changes the program:
// a description that no path supports is dropped.
//
// The scalar regions of a row reduction follow from the bodies of many
// operators, so a description has them already, in regions that belong to no
// operation yet. The operator takes them over.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWDESCRIPTION_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWDESCRIPTION_H

#include "RowGroup.h"

namespace ftuner {

/// The row reduction that a group becomes.
struct RowDescription {
  /// A value from outside the group, which is an argument of regions.
  struct Input {
    mlir::Value value;
    /// Map from the group's loops to the dimensions of the value.
    mlir::AffineMap access;
    bool isAlongRow;
    /// Map from the axes to the dimensions of the operand: the value without
    /// dimensions of extent 1.
    mlir::AffineMap map;
  };
  /// A member's value that operators outside the group use.
  struct Output {
    mlir::Value value;
    bool isAlongRow;
    /// Tensor from which the output takes its sizes.
    mlir::Value shape;
    /// Map from the axes to the dimensions of the operand: the value without
    /// dimensions of extent 1, with one for a single row.
    mlir::AffineMap map;
  };

  RowGroup group;
  llvm::SmallVector<Input> inputs;
  /// Outputs of rows come before outputs of elements.
  llvm::SmallVector<Output> outputs;
  /// Regions of `ukernel.row_reduction`, with the inputs as arguments.
  std::vector<std::unique_ptr<mlir::Region>> reductions;
  std::unique_ptr<mlir::Region> values, map;
  /// Workload of the operator, with axes of static extents or open ranges.
  Workload workload;
};

/// Describes the row reduction of the largest group around a seed that a
/// codegen path supports; nothing if there is none. The seed is a row
/// reduction (RowAccumulation.h).
std::optional<RowDescription> matchRows(mlir::linalg::LinalgOp seed,
                                        const PathSupport &support,
                                        RowElements &elements);

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWDESCRIPTION_H
