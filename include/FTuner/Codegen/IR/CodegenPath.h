//===- CodegenPath.h - Emits kernels ----------------------------*- C++ -*-===//
//
// The part of a codegen path that writes IR. Its facts (tiles, resources,
// legality) are in FTuner/Schedule/CodegenModel.h.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_IR_CODEGENPATH_H
#define FTUNER_CODEGEN_IR_CODEGENPATH_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// What a path needs to emit the tile of one thread block.
struct TileEmission {
  explicit TileEmission(const DeviceSpec &device) : device(device) {}

  /// The workload inside the `ukernel.tile`: maps, regions.
  ukernel::WorkloadOp workload;
  /// The family of the kernel, and which of its tiles this is.
  KernelFamily family;
  unsigned part = 0;
  const DeviceSpec &device;

  const BlockTile &blockTile() const { return family.tiles[part]; }

  /// Operands in global memory: memrefs of one batch, whose dimensions are
  /// those of the workload's operands but for the batch axes, or scalars.
  mlir::Value lhs, rhs, init, output;
  llvm::SmallVector<mlir::Value> extras;
  /// Extents of m, n and k, of type index.
  llvm::SmallVector<mlir::Value, 3> extents;
  /// Whether tiles never reach beyond the extent of an axis.
  llvm::SmallVector<bool, 3> exact;
  /// First row and column of the block, of type index.
  mlir::Value rowOffset, columnOffset;
  /// Number of the thread in the block, of type index.
  mlir::Value threadId;
  /// The block's dynamic shared memory: memref<?xi8, workgroup>.
  mlir::Value sharedMemory;
};

class CodegenPath {
public:
  virtual ~CodegenPath() = default;
  virtual const CodegenModel &model() const = 0;
  /// Emits the computation of one tile at the insertion point.
  virtual mlir::LogicalResult emitTile(mlir::ImplicitLocOpBuilder &builder,
                                       const TileEmission &tile) const = 0;
};

/// The path of a model; null if it has no emitter.
const CodegenPath *findCodegenPath(const CodegenModel &model);

/// Registers the dialect with the attributes of all paths.
void registerUKernelDialect(mlir::DialectRegistry &registry);

} // namespace ftuner

#endif // FTUNER_CODEGEN_IR_CODEGENPATH_H
