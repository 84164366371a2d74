//===- CodegenPath.h - Emits kernels ----------------------------*- C++ -*-===//
//
// The part of a codegen path that writes IR. Its facts (tiles, resources,
// checks) are in FTuner/Schedule/CodegenModel.h.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_CODEGENPATH_H
#define FTUNER_CODEGEN_IR_CODEGENPATH_H

#include "FTuner/Codegen/BatchTile.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// A tensor map in the kernel.
struct TensorMapOperand {
  /// Its address, an !llvm.ptr.
  mlir::Value map;
  /// The first element of the block's batch and split-K slice, as coordinates
  /// of the map, of type index, innermost first: 0 but along a batch axis and,
  /// with slices, along the split axis. The map knows the operand's end, not
  /// the slice's.
  llvm::SmallVector<mlir::Value, kMaxTensorMapRank> origin;
};

/// What a path needs to emit the tile of one thread block.
struct TileEmission {
  explicit TileEmission(const DeviceSpec &device) : device(device) {}

  /// The operator inside the `ukernel.tile`: maps, regions. And as the core
  /// knows it, which outlives the emission.
  ukernel::OperatorOpInterface op;
  const Workload *described = nullptr;
  /// The family of the kernel, and which of its tiles this is.
  KernelFamily family;
  unsigned part = 0;
  const DeviceSpec &device;

  const BlockTile &blockTile() const { return family.tiles[part]; }

  /// The operator's operands in global memory, in order: memrefs of one batch,
  /// the first of the tile, whose dimensions are those of the core's operands
  /// but for those that a batch axis indexes alone, or scalars. In other
  /// dimensions a batch axis counts as 0: the memref begins at its position. Of
  /// a packed rhs a step of k elements for each column, beginning with the
  /// slice's first step. See `startsAtSlice`.
  llvm::SmallVector<mlir::Value> operands;
  /// For each of the path's tensor maps of this part.
  llvm::SmallVector<TensorMapOperand, 2> tensorMaps;
  /// Extents of all axes, of type index; of the reduce axis that of the slice.
  llvm::SmallVector<mlir::Value, 3> extents;
  /// Extents of the loops of fused axes, in the operator's order; null where no
  /// operand has windows over them.
  llvm::SmallVector<mlir::Value, 6> loopExtents;
  /// The first element of the slice along the first reduce axis; null without
  /// slices.
  mlir::Value sliceStart;
  /// The number of the slice, of a path that shares them out itself
  /// (`CodegenModel::sharesOutSlices`): extents are those of the whole then.
  /// Null without slices.
  mlir::Value slice;
  /// Whether tiles never reach beyond the extent of an axis.
  llvm::SmallVector<bool, 3> exact;
  /// First row and column of the block, of type index.
  mlir::Value rowOffset, columnOffset;
  /// By axis, for batch axes along which the tile has more than one element:
  /// the first of these, of type index; null for other axes.
  llvm::SmallVector<mlir::Value, 5> batchOffsets;
  /// For each operand, by axis, for the same axes: elements of memory from one
  /// to the next; null where the operand lacks the axis.
  llvm::SmallVector<llvm::SmallVector<mlir::Value, 5>> batchStrides;
  /// Number of the block in its cluster, of type index; null without clusters.
  mlir::Value clusterRank;
  /// Number of the thread in the block, of type index.
  mlir::Value threadId;
  /// The block's dynamic shared memory: memref<?xi8, workgroup>.
  mlir::Value sharedMemory;
};

/// Whether the memref of an operand begins with the slice's first element along
/// the first reduce axis. Windows over loops of it, and those that are held
/// against the operand's ends, begin with the operand's.
bool startsAtSlice(const Operand &operand);

/// The tiles that a block computes: one, or, if blocks are persistent, one
/// after the other.
class BlockTiles {
public:
  explicit BlockTiles(const TileEmission &block) : block(block) {}
  virtual ~BlockTiles() = default;

  /// What tiles of both parts have that does not depend on their positions.
  const TileEmission block;
  /// The addresses of a part's tensor maps, as `TensorMapOperand::map`.
  virtual llvm::SmallVector<mlir::Value> tensorMaps(unsigned part) = 0;

  using Body =
      llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
          const TileEmission &tile, mlir::ValueRange state)>;
  /// Emits `body` for each of the tiles at the insertion point: for both parts
  /// of a family, and in a loop where blocks are persistent. What it returns is
  /// the state for the next tile, of the types of the first one.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  forEach(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange first,
          Body body) = 0;
};

/// A position along the sides of a BatchTile; nothing where it does not matter.
using BatchPosition = llvm::SmallVector<std::optional<mlir::Value>, 1>;

/// A memref that begins `elements` further.
mlir::Value advanced(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                     mlir::Value elements);

/// The same for a contraction, by an operator with one reduction whose combiner
/// is a sum of products.
struct ContractionTile : TileEmission {
  /// Requires that `check` has found nothing.
  explicit ContractionTile(const TileEmission &tile);
  /// Says what is wrong with an operator whose workload is a contraction, but
  /// whose regions do not say which.
  static mlir::LogicalResult check(ukernel::OperatorOpInterface op);

  ukernel::ReductionOpInterface reduction;
  ContractionAxes axes;
  /// Init is null where there is none.
  mlir::Value lhs, rhs, init, output;
  llvm::SmallVector<mlir::Value> inputs, extras;
  /// Maps from the axes to the dimensions that operands have here, batch axes
  /// included. Null of factors with windows.
  mlir::AffineMap lhsMap, rhsMap, initMap, outputMap;
  llvm::SmallVector<mlir::AffineMap> inputMaps, extraMaps;

  /// The views live as long as `described`.
  ContractionView view() const { return ContractionView(*described); }
  /// lhs (0) or rhs (1).
  mlir::Value factor(unsigned number) const { return number == 0 ? lhs : rhs; }
  /// Number of the operand.
  unsigned factorNumber(unsigned number) const {
    return number == 0 ? lhsNumber : rhsNumber;
  }
  unsigned lhsNumber = 0, rhsNumber = 0;
  llvm::SmallVector<unsigned> inputNumbers;

  /// By axis: the first element that the tile stores, of type index, where the
  /// tile may begin before it; null where it stores all from its beginning on.
  llvm::SmallVector<mlir::Value, 3> firstStored;

  BatchTile batchTile() const { return BatchTile::of(*described, blockTile()); }
  /// Of a tile with several elements along batch axes: operands of the element
  /// at a position along the sides of `batchTile`.
  ContractionTile atBatch(mlir::ImplicitLocOpBuilder &b,
                          const BatchPosition &position) const;
  /// The distance of an operand's element at a position, in elements; null for
  /// none.
  mlir::Value batchDistance(mlir::ImplicitLocOpBuilder &b, unsigned operand,
                            const BatchPosition &position) const;
  /// Whether the extents of batch axes reach to a position; null if they reach
  /// to all.
  mlir::Value isInsideBatch(mlir::ImplicitLocOpBuilder &b,
                            const BatchPosition &position) const;
  /// The same position, or the last ones along axes where it is outside.
  BatchPosition clampedBatch(mlir::ImplicitLocOpBuilder &b,
                             const BatchPosition &position) const;
  /// Whether a factor, lhs (0) or rhs (1), is contiguous along k.
  bool isReduceContiguous(unsigned factor) const;
  /// Whether what the epilogue reads and writes is moved in vectors, if factors
  /// are.
  bool hasVectorEpilogue() const;
  /// Returns whether a factor is contiguous along k, in padded rows.
  bool hasPaddedSteps(unsigned factor) const;
  /// Returns the extent of the axis n that runs of so many elements store:
  /// where the output has padded rows, with the run that begins inside and ends
  /// beyond.
  mlir::Value storedColumns(mlir::ImplicitLocOpBuilder &b,
                            int64_t elements) const;
  /// The scalar that sums start from, in their type; null where they start from
  /// a tensor's elements, which the epilogue adds.
  mlir::Value scalarStart(mlir::ImplicitLocOpBuilder &b,
                          mlir::Type accumulatorType) const;
};

class CodegenPath {
public:
  virtual ~CodegenPath() = default;
  virtual const CodegenModel &model() const = 0;
  /// Emits what a block computes at the insertion point: each of its tiles,
  /// from beginning to end, by `emitTile`. A path overrides it if its tiles
  /// share facts of the kernel, or go on with each other's state.
  virtual mlir::LogicalResult emitBlock(mlir::ImplicitLocOpBuilder &builder,
                                        BlockTiles &tiles) const;

protected:
  using TileEmitter =
      llvm::function_ref<mlir::LogicalResult(const TileEmission &tile)>;
  /// Emits each tile of a block, without a state from one tile to the next.
  static mlir::LogicalResult emitTiles(mlir::ImplicitLocOpBuilder &builder,
                                       BlockTiles &tiles, TileEmitter emit);
  /// Emits the computation of one tile at the insertion point. A path overrides
  /// it unless it overrides `emitBlock`.
  virtual mlir::LogicalResult emitTile(mlir::ImplicitLocOpBuilder &builder,
                                       const TileEmission &tile) const {
    llvm_unreachable("expected a path that emits blocks or tiles");
  }
};

/// The path of a model; null if it has no emitter.
const CodegenPath *findCodegenPath(const CodegenModel &model);

/// Registers the dialect with the attributes of all paths.
void registerUKernelDialect(mlir::DialectRegistry &registry);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_CODEGENPATH_H
