//===- CodegenModel.h - What a codegen path can emit ------------*- C++ -*-===//
//
// The part of a codegen path that search and cost models ask, free of IR. The
// path's emitter (FTuner/Codegen/CodegenPath.h) takes its layout from the same
// functions, so the two never guess each other's numbers.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CODEGENMODEL_H
#define FTUNER_CODEGEN_CODEGENMODEL_H

#include "FTuner/Codegen/BlockWork.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Search/UKernel.h"
#include "FTuner/Workload/Workload.h"
#include <memory>

namespace ftuner {

/// What one block of a family needs of the device: the larger of its parts.
struct KernelResources {
  int64_t threads = 0;
  /// Estimate for one thread; ptxas decides.
  int64_t registersPerThread = 0;
  int64_t sharedMemoryBytes = 0;
};

/// Tile sizes from which a strategy may build candidates.
struct TileGranules {
  /// Legal register tile sizes for axes M and N, ascending. Batch axes have
  /// block and register tile 1.
  std::vector<llvm::SmallVector<int64_t>> registerTiles;
  /// Most elements of a thread's register tile that never spill.
  int64_t maxAccumulators = 112;
  /// The reduce axis goes in multiples of this (memory transaction).
  int64_t reduceGranule = 8;
  int64_t maxReduceTile = 32;
  /// Legal numbers of pipeline stages, ascending.
  llvm::SmallVector<int64_t> stages;
  /// Axes along which two heights may be combined in one kernel.
  llvm::SmallVector<unsigned> combineAxes;
  int64_t warpSize = 32;
};

class CodegenModel {
public:
  virtual ~CodegenModel() = default;
  /// Name in `KernelFamily::path` and in the IR.
  virtual llvm::StringRef name() const = 0;
  /// Whether the path can compute the workload on the device, and if not, why.
  virtual llvm::Error supports(const Workload &workload,
                               const DeviceSpec &device) const = 0;
  virtual TileGranules granules(const Workload &workload,
                                const DeviceSpec &device) const = 0;
  /// Registers that one thread needs beside its accumulators (paper: RestRegs).
  virtual int64_t restRegisters(const Workload &workload,
                                const UKernel &ukernel) const = 0;
  virtual KernelResources resources(const Workload &workload,
                                    const KernelFamily &family) const = 0;
  /// Registers per thread with which the family's kernel was not seen to spill:
  /// search asks that the device has as many. At least those of `resources`.
  virtual int64_t spillFreeRegisters(const Workload &workload,
                                     const KernelFamily &family) const = 0;
  /// What a block of `part`, one of the family's uKernels, executes. The family
  /// must pass `check` for the device.
  virtual BlockWork work(const Workload &workload, const UKernel &part,
                         const KernelFamily &family,
                         const DeviceSpec &device) const = 0;
  /// Says why the family cannot be emitted for the device, if it cannot.
  virtual llvm::Error check(const Workload &workload,
                            const KernelFamily &family,
                            const DeviceSpec &device) const = 0;
  /// Vector width (elements) that every extent of `shape` allows, given
  /// aligned pointers: 4 or 1.
  virtual int64_t vectorWidth(const Workload &workload,
                              llvm::ArrayRef<int64_t> shape) const = 0;
  /// Whether the width holds for every size of the declared ranges of the axes
  /// that are contiguous in memory (they are fixed, or step and min allow it).
  virtual int64_t guaranteedVectorWidth(const Workload &workload) const = 0;
};

/// The model of a path by name, or null.
const CodegenModel *findCodegenModel(llvm::StringRef name);
/// Every path's model, in the order of CodegenPaths.def.
llvm::ArrayRef<const CodegenModel *> codegenModels();

} // namespace ftuner

#endif // FTUNER_CODEGEN_CODEGENMODEL_H
