//===- RowGroup.h - Operators that one row reduction computes ---*- C++ -*-===//
//
// A softmax or a norm is several operators of linalg: reductions along rows,
// operators that compute with their results once a row, and elementwise
// operators over all elements. A group is those of them that become one
// `ukernel.row_reduction`.
//
// A group begins with a reduction along one loop, the seed. Elementwise
// operators before it join, and so do all operators after it, in the order of
// the program, that read the group's values along the same rows: reductions,
// elementwise operators of rows or elements, and reshapes that add or remove
// dimensions of extent 1. Operators in between that need the group's values and
// do not belong to it move behind it, with all that depends on them.
//
// The loops of a group are those of the seed, after one of a single row if the
// seed has no loop of rows. The *layout* of a value is the map from these loops
// to its dimensions, where those of extent 1 may be the constant 0. A value has
// an element for each element of a row if its layout has the reduced loop. For
//
//   sum[i] = sum over j of x[i, j];  y[i, j] = x[i, j] / sum[i]
//
// the loops are (i, j), the layout of `sum` is (i, j) -> (i), and that of `y`,
// which lies along the row, is (i, j) -> (i, j).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWGROUP_H
#define FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWGROUP_H

#include "FTuner/Dialect/UKernel/Bridge/OperatorWorkload.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ftuner {

/// Dimensions along which an operand lies: it has one element for each row,
/// rows that are contiguous, or rows across memory.
enum class RowAccess { OncePerRow, AlongRow, AcrossRow };

/// Caches the element types that the row codegen paths support.
class RowElements {
public:
  explicit RowElements(const PathSupport &support) : support(support) {}

  /// Returns true if rows may read and write elements of a type in this way.
  bool areSupported(mlir::Type type, RowAccess access);

private:
  const PathSupport &support;
  llvm::DenseMap<std::pair<mlir::Type, unsigned>, bool> known;
};

/// Operators that may belong to a group beside its seed and the operators that
/// follow from it.
struct RowGroupOptions {
  /// Elementwise operators before the seed.
  bool hasProducers;
  /// Elementwise operators before the seed that it reads transposed, and
  /// operands that have the row in another place than the seed has.
  bool hasTransposed;
};

/// Operators that one row reduction computes.
class RowGroup {
public:
  /// Groups the operators around a seed, a row reduction.
  RowGroup(mlir::linalg::LinalgOp seed, RowGroupOptions options,
           RowElements &elements);

  /// Returns true if the seed is a member and all accesses of members fit the
  /// layouts: a value may have joined after an operator that reads it along
  /// other loops.
  bool isConsistent() const;
  /// Members in the order of the program, without reshapes.
  llvm::ArrayRef<mlir::linalg::LinalgOp> getMembers() const { return members; }
  bool isMember(mlir::Operation *op) const { return loops.contains(op); }
  llvm::SmallVector<mlir::Operation *> getReshapes() const {
    return {reshapes.begin(), reshapes.end()};
  }
  /// Returns true for a reshape of a group's value.
  bool isReshape(mlir::Operation *op) const { return reshapes.contains(op); }
  /// Returns the member's value behind the reshapes of a value.
  mlir::Value skipReshapes(mlir::Value value) const;

  unsigned getNumLoops() const { return numLoops; }
  /// Returns true if the first loop is that of a single row, which no member
  /// has.
  bool hasSingleRow() const { return isSingleRow; }
  /// Returns true for the value of a member or a reshape of one.
  bool isValue(mlir::Value value) const { return layouts.contains(value); }
  mlir::AffineMap getLayout(mlir::Value value) const {
    return layouts.lookup(value);
  }
  bool isAlongRow(mlir::AffineMap layout) const {
    return layout.isFunctionOfDim(row);
  }
  /// Returns the map from the group's loops to the dimensions of an operand.
  mlir::AffineMap getAccess(mlir::linalg::LinalgOp op,
                            mlir::OpOperand *operand) const {
    return toGroup(op.getMatchingIndexingMap(operand), loops.at(op));
  }
  /// Returns the loop of the group that a member's loop is: a dimension, or the
  /// constant 0 for a loop of extent 1.
  mlir::AffineExpr getLoop(mlir::linalg::LinalgOp op, unsigned loop) const {
    return loops.at(op)[loop];
  }
  /// Returns the axis of a loop: axes of rows begin with the innermost loop,
  /// and the last axis lies along the row.
  unsigned toAxis(unsigned loop) const {
    return loop == row  ? numLoops - 1
           : loop < row ? numLoops - 2 - loop
                        : numLoops - 1 - loop;
  }

private:
  /// For each loop of an operator, the loop of the group, or 0 if its extent
  /// is 1.
  using Loops = llvm::SmallVector<mlir::AffineExpr, 5>;
  /// Operators after the group: they need its values, but are not members.
  using LaterOps = llvm::SmallPtrSet<mlir::Operation *, 16>;
  /// Elementwise operators before a later reduction: those that were added for
  /// it, and those that do not belong to the group.
  struct Producers {
    const LaterOps &later;
    llvm::SmallVector<mlir::linalg::LinalgOp> added;
    llvm::SmallPtrSet<mlir::Operation *, 16> rejected;
  };

  /// Turns a map over an operator's loops into a map over the group's.
  mlir::AffineMap toGroup(mlir::AffineMap map,
                          llvm::ArrayRef<mlir::AffineExpr> loops) const {
    return map.replaceDimsAndSymbols(loops, {}, numLoops, 0);
  }
  /// Returns true if a layout has every loop of rows.
  bool isComplete(mlir::AffineMap layout) const;
  void add(mlir::linalg::LinalgOp op, Loops opLoops);
  void remove(mlir::linalg::LinalgOp op);

  // Matching of loops.
  /// Returns the group's loops of an operator that reads values of the group,
  /// or reads along all loops what members read; nothing for other operators.
  std::optional<Loops> matchLoops(mlir::linalg::LinalgOp op) const;
  /// Returns the loops of an operator that may be a member; else nothing.
  std::optional<Loops> matchMember(mlir::linalg::LinalgOp op) const;
  /// Returns true if the paths support all that an operator with such loops
  /// reads and writes.
  bool areOperandsSupported(mlir::linalg::LinalgOp op,
                            llvm::ArrayRef<mlir::AffineExpr> loops) const;
  bool areScalarsSupported(mlir::linalg::LinalgOp op) const;
  bool isSupported(mlir::Type type, mlir::AffineMap layout) const;
  /// Returns the layout of a reshaped value where only dimensions of extent 1
  /// come or go; else null.
  mlir::AffineMap getReshapedLayout(mlir::Operation *op) const;

  // Growth of the group.
  /// Adds elementwise operators whose results the seed reads along all loops.
  void addProducers();
  void addConsumers();
  /// Records the operands from outside that a member reads along all loops.
  void recordOutsideOperands(mlir::linalg::LinalgOp op);
  /// Adds the operators that compute inputs of `op` from what members read.
  void addProducersOf(mlir::linalg::LinalgOp op, Producers &producers);
  /// Removes the operators that were added, except the first `count`.
  void removeAdded(Producers &producers, size_t count);
  /// Adds a later reduction and the operators that compute its elements;
  /// returns false if it does not reduce the same rows.
  bool addReduction(mlir::linalg::LinalgOp op, const LaterOps &later);

  mlir::Block *block;
  mlir::linalg::LinalgOp seed;
  RowGroupOptions options;
  RowElements &elements;
  bool isSingleRow;
  unsigned numLoops, row;
  llvm::SmallVector<mlir::linalg::LinalgOp> members;
  llvm::SmallPtrSet<mlir::Operation *, 16> reshapes;
  llvm::DenseMap<mlir::Operation *, Loops> loops;
  /// Layouts of members' values and their reshapes.
  llvm::MapVector<mlir::Value, mlir::AffineMap> layouts;
  /// Layouts of operands from outside that members read along all loops.
  llvm::DenseMap<mlir::Value, mlir::AffineMap> outside;
};

} // namespace ftuner

#endif // FTUNER_LIB_TRANSFORMS_WORKLOADS_ROWS_ROWGROUP_H
