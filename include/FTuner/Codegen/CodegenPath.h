//===- CodegenPath.h - Emits kernels ----------------------------*- C++ -*-===//
//
// The part of a codegen path that writes IR. Its facts (granules, resources,
// legality) are in CodegenModel.h.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CODEGENPATH_H
#define FTUNER_CODEGEN_CODEGENPATH_H

#include "FTuner/Codegen/CodegenModel.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// What a path needs to emit the tile of one thread block.
struct TileEmission {
  explicit TileEmission(const DeviceSpec &device) : device(device) {}

  /// The operator inside the `ukernel.tile`: maps, regions.
  ukernel::OperatorOpInterface op;
  ukernel::UKernelAttr ukernel;
  mlir::Attribute path;
  const DeviceSpec &device;

  /// The operator's operands in global memory, in order: memrefs of one batch,
  /// whose dimensions are those of the operator's operands but for the batch
  /// axes, or scalars.
  llvm::SmallVector<mlir::Value> operands;
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

/// The same for a contraction.
struct ContractionTile : TileEmission {
  explicit ContractionTile(const TileEmission &tile);

  ukernel::WorkloadOp workload;
  /// Init is null where there is none.
  mlir::Value lhs, rhs, init, output;
  llvm::SmallVector<mlir::Value> extras;
};

class CodegenPath {
public:
  virtual ~CodegenPath() = default;
  virtual const CodegenModel &model() const = 0;
  /// Number of pipeline stages and vector width that the attribute states.
  virtual std::pair<int64_t, int64_t>
  stagesAndVectorWidth(mlir::Attribute path) const = 0;
  /// Threads and dynamic shared memory of a block that computes the tile.
  virtual KernelResources tileResources(ukernel::OperatorOpInterface op,
                                        ukernel::UKernelAttr ukernel,
                                        mlir::Attribute path) const = 0;
  /// Emits the computation of one tile at the insertion point.
  virtual mlir::LogicalResult emitTile(mlir::ImplicitLocOpBuilder &builder,
                                       const TileEmission &tile) const = 0;
};

/// The path that a `path` attribute names, or null.
const CodegenPath *findCodegenPath(mlir::Attribute path);

} // namespace ftuner

#endif // FTUNER_CODEGEN_CODEGENPATH_H
