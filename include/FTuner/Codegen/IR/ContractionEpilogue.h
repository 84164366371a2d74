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
  /// Runs of `wholeWidth` columns lie inside or outside of the tensors as a
  /// whole and are accessed as vectors, of operands that are contiguous along
  /// n; their addresses are aligned to the family's alignment. 0: there are no
  /// such runs.
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

private:
  void ifInside(Value index, unsigned axis, bool exact,
                llvm::function_ref<void()> body);
  void emitRow(Value row, Value column, Value accumulator,
               llvm::ArrayRef<Value> rowInvariant);
  Value loadElementwise(Value operand, mlir::AffineMap map, Value row,
                        Value column, int64_t width);
  Value applyRegion(Value accumulator, ValueRange extras);
  void storeOutput(Value row, Value column, Value vector);
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
