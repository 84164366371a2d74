//===- WgmmaProducts.h - Products of a warpgroup ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAPRODUCTS_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAPRODUCTS_H

#include "WgmmaTile.h"

namespace ftuner {

/// What a thread does that multiplies: products of its warpgroup's share of a
/// tile, from matrices in shared memory to sums in registers, and their way to
/// the output.
class WgmmaProducts {
public:
  /// Finds the thread's warpgroup, and what it multiplies in the first stage.
  explicit WgmmaProducts(const WgmmaTile &wgmma);

  /// What instructions hold in registers, a struct for each of a warpgroup.
  Values initialSums();
  /// Multiplies a step that lies in a stage. Products go on behind it.
  Values multiply(Value stage, Values sums);
  /// Waits for the products of all steps but the newest ones, so many.
  void wait(int64_t newer);
  /// The accumulators behind all products, those of one instruction after those
  /// of another, in a place that no arithmetic on them moves across.
  Values pinned(ValueRange sums);
  /// Takes the sums, whose products are done, to the output. The threads may
  /// have copies under way.
  void store(ValueRange sums, bool hasAsynchronousCopies);

private:
  int64_t accumulatorsOfInstruction() const;
  Value inRegisters(const Values &accumulators);
  Value multiplyOnce(Value rows, Value columns, Value sums);
  /// Where instructions read a factor: a descriptor of its first matrix in the
  /// first stage, for the thread's warpgroup.
  Value descriptorOf(const WgmmaSide &side, Value memory, Value warpgroup);
  /// The descriptor `bytes` further, or `count` times as many, an index or i32.
  Value advanced(Value descriptor, Value count, int64_t bytes);
  Value advanced(Value descriptor, int64_t bytes);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const WgmmaTile &wgmma;
  const WgmmaLayout &layout;
  /// Of a sum, and of those of an instruction.
  mlir::Type accumulatorType, sumsType;
  /// Numbers of the thread's warpgroup along the rows and columns of
  /// instructions.
  Value rowWarpgroup, columnWarpgroup;
  /// Descriptors in the first stage.
  Value rowsMatrix, columnsMatrix;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAPRODUCTS_H
