//===- ContractionEpilogue.h - From accumulators to the output --*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_CONTRACTIONEPILOGUE_H
#define FTUNER_CODEGEN_IR_CONTRACTIONEPILOGUE_H

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/IndexMath.h"

namespace ftuner {

/// Finishes accumulators that lie in registers as runs of columns: adds what
/// the sum starts from, applies the epilogue, stores the output.
class ContractionEpilogue {
public:
  /// Runs of `wholeWidth` columns, and parts of these, lie inside or outside of
  /// the tensors as a whole and are accessed as vectors, of operands that are
  /// contiguous along n; their addresses are aligned to their bytes or to the
  /// family's alignment. 0: there are no such runs.
  ContractionEpilogue(mlir::ImplicitLocOpBuilder &b,
                      const ContractionTile &tile, int64_t wholeWidth)
      : b(b), math(b), tile(tile), wholeWidth(wholeWidth) {}

  struct Row {
    /// Index in the tensor.
    Value index;
    /// Vector of the run's columns.
    Value accumulator;
  };
  /// Emits `numRows` rows of the run of `width` columns from `column` on, those
  /// that lie inside. `row` makes one.
  void emitRun(Value column, int64_t width, int64_t numRows,
               llvm::function_ref<Row(int64_t row)> row);

  /// The indices of an element in the tensor, or in other memory.
  struct Place {
    Value row, column;
  };
  /// A run of one row, what `loadRowInvariant` says of its columns, and where
  /// results lie before they are stored: in the output where `results` is null.
  struct Run : Row {
    Value column;
    Values rowInvariant;
    Value results = {};
    Place inResults = {};
  };
  /// The operands of a run beside its accumulator: where the sum starts, null
  /// if that is not in memory, and the epilogue's operands.
  struct Inputs {
    Value start;
    Values extras;
  };
  /// Load the inputs of a run of whole width or of one column, and compute and
  /// store the run. `areInside`: it is known to lie inside.
  Inputs loadRun(const Run &run, bool areInside);
  void storeRun(const Run &run, const Inputs &inputs, bool areInside);
  /// The inputs of the run whose number is the value of `number`.
  Inputs select(llvm::ArrayRef<Inputs> inputs, Value number);
  /// Whether they read memory for their rows.
  bool readsRows() const;
  /// Returns true where the tile stores all elements from one place to another,
  /// an i1; null if it stores every element that it computes.
  Value areInside(Place first, Place last);
  /// Operands of the epilogue that are the same for all rows, of such a run of
  /// columns; null in place of others. Outside, what is read is not specified.
  Values loadRowInvariant(Value column, int64_t width);
  /// The type of fewer bytes to which the program rounds sums before it does
  /// anything else with them: they may be kept in it. Null if there is none.
  mlir::FloatType roundedSum() const;

private:
  /// Returns true where it stores all indices of an axis from one to another.
  Value areInside(Value first, Value last, unsigned axis);
  /// Returns true where it stores the run; null where runs are inside.
  Value isInside(const Run &run, bool areInside);
  void ifInside(Value index, unsigned axis, bool exact,
                llvm::function_ref<void()> body);
  bool isWhole(int64_t width) const {
    return width > 1 && wholeWidth % width == 0 && width <= wholeWidth;
  }
  /// Whether an operand of the epilogue differs from row to row.
  bool dependsOnRow(mlir::AffineMap map) const;
  /// The tensor whose elements sums start from; null if they start from a
  /// scalar.
  Value startOfSum() const;
  /// Inputs that are not among `rowInvariant` are read.
  Inputs loadInputs(Value row, Value column, int64_t width,
                    ValueRange rowInvariant);
  /// The same of a run that may lie outside, where zeros stand for what is not
  /// read. `inside`: null where none does.
  Inputs loadInputsIf(Value inside, const Run &run);
  /// What is stored of a run.
  Value compute(Value accumulator, const Inputs &inputs);
  /// Whether that may be computed of any numbers.
  bool isSpeculatable() const;
  Value loadElementwise(Value operand, mlir::AffineMap map, Value row,
                        Value column, int64_t width);
  Value applyRegion(Value accumulator, ValueRange extras);
  /// Stores a run from a column on, at a place of the memory that holds it.
  void storeRun(Value target, Place place, Value column, Value vector);
  Value broadcast(Value scalar, int64_t width);
  /// Of vectors of the type in memory.
  llvm::MaybeAlign alignmentOf(mlir::VectorType type) const;

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  int64_t wholeWidth;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_CONTRACTIONEPILOGUE_H
