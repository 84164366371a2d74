//===- FragmentEpilogue.h - From fragments to the output --------*- C++ -*-===//
#ifndef FTUNER_CODEGEN_IR_FRAGMENTEPILOGUE_H
#define FTUNER_CODEGEN_IR_FRAGMENTEPILOGUE_H

#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "FTuner/Codegen/IR/ContractionEpilogue.h"
#include "FTuner/Codegen/IR/IndexMath.h"

namespace ftuner {

/// Takes sums of the tensor cores from the registers of a block's warps to the
/// output, through staging tiles of shared memory: one for each warp, in the
/// order of their numbers.
class FragmentEpilogue {
public:
  /// Where a warp's tile lies in the output, and who runs.
  struct Warp {
    /// Numbers of the warp in the block and of the lane in the warp.
    Value number, lane;
    /// Its first row and column in the block tile.
    Value row, column;
    /// Threads of these warps, where the block has others; 0 where not.
    int64_t threads = 0;
    /// Bytes of shared memory before the first staging tile, and from one to
    /// the next; 0 for a staging tile's own. Staging tiles at 0 take the place
    /// of stages that other warps may still read; others are the warps' own.
    int64_t stagingOffset = 0, stagingStride = 0;
    /// Whether the warp has anything to finish, the same for all its lanes;
    /// null where every warp has. Those that have nothing wait with the others.
    Value isActive = {};
  };

  /// `accessBytes`: of the factors' copies (TensorFactors.h).
  FragmentEpilogue(mlir::ImplicitLocOpBuilder &b, const ContractionTile &tile,
                   const FragmentTile &fragments, int64_t accessBytes,
                   const Warp &warp)
      : b(b), math(b), tile(tile), fragments(fragments),
        accessBytes(accessBytes), warp(warp),
        code(epilogueCode(*tile.described, fragments, accessBytes)) {}

  /// Emits it for the lane's accumulators: four for each fragment, row by row
  /// of the instructions. Asynchronous copies into shared memory may be
  /// pending, and other warps may still read its stages.
  void emit(ValueRange accumulators, bool hasAsynchronousCopies);

  /// Waits until the thread's bulk copies have read shared memory.
  static void awaitBulkCopies(mlir::ImplicitLocOpBuilder &b);

private:
  /// Waits for all warps that run, or for the lanes of the warp.
  void awaitWarps();
  void awaitLanes();
  /// Whether a condition holds for all lanes of the warp.
  Value allLanes(Value condition);
  /// Waits until the warp's staging tile may be written.
  void awaitStaging(bool hasAsynchronousCopies);
  /// The bytes of shared memory before the warp's staging tile.
  Value stagingOffset();
  /// Fills a staging tile with its rows number `step` of the warp tile, and
  /// with so many fragments of columns.
  void storeToStaging(Value staging, ValueRange accumulators, int64_t step,
                      int64_t firstFragment, int64_t numFragments);
  /// The same at a row of other memory.
  void storeRows(Value memory, int64_t firstRow, ValueRange accumulators,
                 int64_t step, int64_t firstFragment, int64_t numFragments);
  void storeTransposed(ValueRange accumulators, int64_t step);
  /// Returns true where bulk copies store the results.
  bool storesInBulk() const { return fragments.bulkElementBytes > 0; }
  /// The rows that bulk copies store, all of the warp's tile in the type of the
  /// output, and the bytes of shared memory before them.
  Value bulkRows();
  Value bulkOffset();
  /// Has the rows copied to the output. The lanes have written them.
  void storeInBulk();
  /// Whether runs of columns are moved as vectors.
  bool isInVectors() const;
  /// Columns that a lane finishes at once.
  int64_t runColumns() const;
  /// A column whose run of `width` lies inside: the given one, where its does.
  Value insideColumn(Value column, int64_t width);
  struct Columns;
  /// Fragments of columns of the warp tile, and of the staging tile.
  int64_t fragmentsAlongColumns() const;
  int64_t fragmentsOfStaging() const;
  /// Columns that the staging tile holds at once, from a number of fragments
  /// on.
  Columns columnsFrom(Value fragment, int64_t count);
  /// Reads what all runs of the lane use for their columns.
  void loadOfLane(ContractionEpilogue &epilogue, Columns &columns);
  /// Returns true, an i1, where the warp stores all elements of its tile; null
  /// if it always does.
  Value isInside(ContractionEpilogue &epilogue, const Columns &first);
  /// Finishes all columns. `first`: the first ones that the staging tile holds,
  /// with what the lane reads of them.
  void emitColumns(ContractionEpilogue &epilogue, Value staging,
                   ValueRange accumulators, const Columns &first);
  /// Fills the staging tile again and again, and finishes each filling: its
  /// columns, and its number among those with the same.
  using Finish =
      llvm::function_ref<void(const Columns &columns, Value filling)>;
  void emitFillings(ContractionEpilogue &epilogue, Value staging,
                    ValueRange accumulators, const Columns &first,
                    Finish finish);
  /// Emits a body for each number from 0 on, in a loop or one behind the other.
  void forEach(int64_t count, llvm::function_ref<void(Value number)> body);
  /// Emits a body for each number from `least` to `most`, and a switch to that
  /// of the value of `number`.
  void emitSwitch(Value number, int64_t least, int64_t most,
                  llvm::function_ref<void(int64_t constant)> body);
  /// The first row in the warp tile of a filling of some columns.
  Value firstRowOf(Value filling);
  /// Finishes the runs of a filling of the staging tile. `areInside`: all are
  /// known to lie inside.
  void emitTrips(ContractionEpilogue &epilogue, Value staging,
                 const Columns &columns, Value filling, bool areInside);
  /// The lane's run of a trip over the staging tile.
  ContractionEpilogue::Run readRun(Value staging, const Columns &columns,
                                   Value trip, Value filling);
  /// The lane's column in the staging tile, where all its runs have the same.
  Value columnOfLane(const StagingRuns &runs);
  /// The index in the tensor of a row, or of a column, in the staging tile.
  Value indexOfRow(Value inStaging, Value firstRow);
  Value indexOf(const Columns &columns, Value inStaging);
  /// Rows or columns of instructions behind the warp's first, for an element of
  /// its fragments.
  Value distanceAlongRows(Value row);

  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const ContractionTile &tile;
  const FragmentTile &fragments;
  int64_t accessBytes;
  Warp warp;
  EpilogueCode code;
  /// `bulkRows`, where bulk copies store.
  Value results;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_FRAGMENTEPILOGUE_H
