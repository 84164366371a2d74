//===- ContractionPathModel.h - The base of contractions' models *- C++ -*-===//
//
// The model of a path whose blocks compute a tile of m and n of one product,
// which equal workers (threads, warps, warpgroups) share, and step along k. The
// base says in which order a family is checked, and derives from the schedule
// what tiles, workers and alignments are. A path adds types, layout, resources
// and work.
//
// `ScheduleT` is the path's struct (ScheduleTable.h), which also answers:
//
//   int64_t threads() const;                 of a block
//   int64_t alignment() const;               bytes, 1 for elements' own
//   int64_t workersAlong(unsigned) const;    along m (0) or n (1), of the block
//                                            or of its cluster
//   int64_t workersAlongBatch() const;       along batch axes; 1 for one
//   int64_t tileGranuleAlong(unsigned) const;  of what tiles are multiples
//
// and `SpaceT` the path's ScheduleSpace, made of a workload and a device.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CODEGEN_CONTRACTIONPATHMODEL_H
#define FTUNER_CODEGEN_CONTRACTIONPATHMODEL_H

#include "FTuner/Codegen/ContractionAst.h"
#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Schedule/CodegenModel.h"
#include <algorithm>

namespace ftuner {

template <typename ScheduleT, typename SpaceT>
class ContractionPathModel : public CodegenModel {
public:
  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const final {
    if (llvm::Error error = checkContractionLayout(*this, workload))
      return error;
    if (llvm::Error error = takesWindows() ? checkWindows(*this, workload)
                                           : checkNoWindows(*this, workload))
      return error;
    if (!takesPackedFactors())
      if (llvm::Error error = checkUnpacked(*this, workload))
        return error;
    if (llvm::Error error = checkPrologues(*this, workload))
      return error;
    return checkWorkload(workload, device);
  }

  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload, const DeviceSpec &device) const final {
    return std::make_unique<SpaceT>(workload, device);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const final {
    ScheduleT schedule = ScheduleT::of(family.schedule);
    return contractionUKernel(family, part, schedule.workersAlong(0),
                              schedule.workersAlong(1),
                              schedule.workersAlongBatch());
  }

  int64_t threads(const KernelFamily &family) const final {
    return ScheduleT::of(family.schedule).threads();
  }

  int64_t heightGranule(const KernelFamily &family) const final {
    ScheduleT schedule = ScheduleT::of(family.schedule);
    ContractionAxes axes = family.contractionAxes();
    if (axes.isBatch(family.combineAxis))
      return batchWorkers(family, /*part=*/0,
                          schedule.workersAlongBatch())[family.combineAxis];
    return schedule.tileGranuleAlong(family.combineAxis == axes.m ? 0 : 1);
  }

  int64_t alignment(const Schedule &schedule) const final {
    return ScheduleT::of(schedule).alignment();
  }

  bool takesAnyAlignment(const Schedule &schedule) const final {
    return alignment(schedule) == 1;
  }

  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const final {
    if (this->alignment(family.schedule) <= alignment)
      return family;
    return withAlignment(family, alignment);
  }

  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    return {withAlignment(family, 1)};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    KernelResources most;
    most.threads = threads(family);
    for (unsigned part = 0; part < family.tiles.size(); ++part) {
      KernelResources needs = partResources(workload, family, part);
      most.registersPerThread =
          std::max(most.registersPerThread, needs.registersPerThread);
      most.sharedMemoryBytes =
          std::max(most.sharedMemoryBytes, needs.sharedMemoryBytes);
    }
    return most;
  }

  llvm::Error checkTile(const Schedule &schedule,
                        llvm::ArrayRef<int64_t> tile) const final {
    // Whoever asks knows no operator.
    ContractionAxes axes = matmulAxes;
    if (tile.size() <= axes.k)
      return invalid("expected tiles along m, n and k, but got " +
                     llvm::Twine(tile.size()) +
                     (tile.size() == 1 ? " size" : " sizes"));
    return checkGranules(ScheduleT::of(schedule), axes, tile);
  }

  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const final {
    if (llvm::Error error = supports(workload, device))
      return error;
    if (llvm::Error error = checkTiles(workload, family))
      return error;
    ContractionAxes axes = family.contractionAxes();
    llvm::SmallVector<unsigned, 2> combineAxes = {axes.m, axes.n};
    if (takesBatchTiles())
      llvm::append_range(combineAxes,
                         ContractionView(workload).batchAxes().list());
    if (llvm::Error error =
            checkContractionFamily(*this, workload, family, combineAxes))
      return error;
    if (llvm::Error error = checkSchedule(family.schedule))
      return error;
    ScheduleT schedule = ScheduleT::of(family.schedule);
    if (llvm::Error error = checkCopies(workload, schedule, device))
      return error;
    for (unsigned part = 0; part < family.tiles.size(); ++part) {
      const BlockTile &tile = family.tiles[part];
      if (llvm::Error error = checkGranules(schedule, axes, tile))
        return error;
      if (llvm::Error error =
              takesBatchTiles() ? checkBatchTiles(*this, family, part,
                                                  schedule.workersAlongBatch())
                                : checkNoBatchTiles(*this, axes, tile))
        return error;
      if (llvm::Error error = checkPart(workload, family, part, schedule))
        return error;
    }
    if (llvm::Error error =
            checkBlockFits(*this, resources(workload, family), device))
      return error;
    return checkRegisters(workload, family, schedule);
  }

  void describeBlock(const Workload &workload, const KernelFamily &family,
                     unsigned part, llvm::ArrayRef<int64_t> shape,
                     const DeviceSpec &device, int64_t,
                     ProgramAst &ast) const final {
    ContractionLoops loops = contractionLoops(workload, family, part, device);
    addBatchLoops(workload, family, part,
                  ScheduleT::of(family.schedule).workersAlongBatch(), loops);
    describeContractionBlock(workload, family, part, shape, loops, ast);
  }

protected:
  /// The loops of a part's blocks but for those along batch axes.
  virtual ContractionLoops contractionLoops(const Workload &workload,
                                            const KernelFamily &family,
                                            unsigned part,
                                            const DeviceSpec &device) const = 0;
  /// Whether kernels read packed operands.
  virtual bool takesPackedFactors() const { return false; }
  /// Whether kernels read factors by windows over the loops of fused axes.
  virtual bool takesWindows() const { return false; }
  /// Whether blocks may have several elements of batch axes, and parts lie
  /// along these.
  virtual bool takesBatchTiles() const { return false; }
  /// What the path asks of a contraction beside the common layout: types,
  /// layouts, extents.
  virtual llvm::Error checkWorkload(const Workload &workload,
                                    const DeviceSpec &device) const = 0;
  /// The family with accesses of operands that are aligned to so few bytes.
  virtual KernelFamily withAlignment(KernelFamily family,
                                     int64_t alignment) const = 0;
  /// Registers and shared memory of one part.
  virtual KernelResources partResources(const Workload &workload,
                                        const KernelFamily &family,
                                        unsigned part) const = 0;
  /// Of a schedule that is legal by itself: that the workload's operands can be
  /// copied so on the device.
  virtual llvm::Error checkCopies(const Workload &workload,
                                  const ScheduleT &schedule,
                                  const DeviceSpec &device) const = 0;
  /// Of a part whose tile is a multiple of its granules.
  virtual llvm::Error checkPart(const Workload &workload,
                                const KernelFamily &family, unsigned part,
                                const ScheduleT &schedule) const = 0;
  /// Of a family that is else legal: that registers can be shared out.
  virtual llvm::Error checkRegisters(const Workload &workload,
                                     const KernelFamily &family,
                                     const ScheduleT &schedule) const {
    return llvm::Error::success();
  }

private:
  llvm::Error checkGranules(const ScheduleT &schedule,
                            const ContractionAxes &axes,
                            llvm::ArrayRef<int64_t> tile) const {
    for (unsigned factor : {0, 1}) {
      unsigned axis = axes.space(factor);
      int64_t granule = schedule.tileGranuleAlong(factor);
      if (tile[axis] % granule != 0)
        return invalid("expected tiles of multiples of " +
                       llvm::Twine(granule) + " elements along axis " +
                       llvm::Twine(axis) + ", but got " + tileText(tile));
    }
    return llvm::Error::success();
  }
};

/// The same on the tensor cores. The schedule has `accessBytes`
/// (TensorFactors.h).
template <typename ScheduleT, typename SpaceT>
class TensorPathModel : public ContractionPathModel<ScheduleT, SpaceT> {
public:
  int64_t swizzleRows(const KernelFamily &family) const final {
    return squareSwizzleRows(family);
  }

  double peakFlops(const Workload &workload,
                   const DeviceSpec &device) const final {
    return device.tensorOperationsPerCycle(pipeOf(workload, device)) *
           device.smCount * device.clockMhz * 1e6;
  }

protected:
  /// The pipe that multiplies a workload that the path supports.
  virtual TensorPipe pipeOf(const Workload &workload,
                            const DeviceSpec &device) const = 0;
};

} // namespace ftuner

#endif // FTUNER_CODEGEN_CONTRACTIONPATHMODEL_H
