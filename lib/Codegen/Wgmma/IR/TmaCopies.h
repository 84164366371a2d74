//===- TmaCopies.h - Copies by the TMA unit ---------------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_TMACOPIES_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_TMACOPIES_H

#include "FTuner/Codegen/IR/StageBarriers.h"
#include "WgmmaTile.h"

namespace ftuner {

/// What a thread does that has factors copied: boxes by tensor maps, and what
/// is packed by bulk copies.
class TmaCopies {
public:
  /// Finds where the copies of the tile begin.
  explicit TmaCopies(const WgmmaTile &wgmma);

  /// Starts the copies of a step into a stage, both i32, whose barrier they
  /// tell how many bytes to expect. By one thread, all of it.
  void start(StageBarriers &barriers, Value stage, Value step);

private:
  void prepareMaps();
  void preparePackedRows();
  /// Bytes of a factor's boxes that arrive at a block in a step, an i32.
  Value bytesOfBoxes(unsigned factor);
  void startBoxes(unsigned factor, Value full, Value stage, Value step);
  /// The condition on which the block copies a box, an i1; null where it copies
  /// it always.
  Value isBoxCopied(unsigned factor, int64_t box, Value firstRow);
  void startPackedRows(Value full, Value stage, Value step);
  /// A pointer to a row of a factor's tile in a stage, of any block of a
  /// cluster that shares the factor, and a bit for each of its blocks, an i16,
  /// or null.
  struct Target {
    Value memory, blocks;
  };
  Target targetOf(unsigned factor, Value stage, Value firstRow);
  /// The first row of the block's part of what a cluster shares, an i32; null
  /// where it shares nothing of the factor.
  Value firstSharedRow(unsigned factor);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const WgmmaTile &wgmma;
  ContractionTile tile;
  const WgmmaLayout &layout;
  /// A tensor map, and the first coordinates of the block's tile in step 0, i32
  /// each, innermost first.
  struct Boxes {
    Value map;
    Values origin;
    /// Numbers of the coordinates along the reduce axis and the other one.
    unsigned reduce, space;
    /// Elements of the operand along the space axis, an i32; null where boxes
    /// are not fitted to it.
    Value extent;
    /// True where the operand has fewer of these than the tile, an i1.
    Value isSmall;
  };
  /// Of lhs and rhs, where maps copy.
  Boxes boxes[2];
  /// Of a packed rhs: the address of the block's part in step 0, bytes from a
  /// step to the next, the part's first row as `firstSharedRow`, and rows of
  /// the cluster's and the block's part that there are, i32 each.
  struct PackedRows {
    Value first;
    int64_t stepBytes;
    Value firstShared, ofCluster, ofBlock;
  };
  PackedRows packedRows;
};

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_TMACOPIES_H
