//===- CodegenModel.h - Model of a codegen path -----------------*- C++ -*-===//
//
// The part of a codegen path that search and cost models ask, free of IR. The
// path's emitter (FTuner/Codegen/IR/CodegenPath.h) takes its layout from the
// same functions, so the two never guess each other's numbers.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_SCHEDULE_CODEGENMODEL_H
#define FTUNER_SCHEDULE_CODEGENMODEL_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/BlockWork.h"
#include "FTuner/Schedule/KernelFamily.h"
#include "FTuner/Schedule/ScheduleTable.h"
#include "FTuner/Schedule/TensorMap.h"
#include "FTuner/Workload/Workload.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>
#include <memory>
#include <optional>

namespace ftuner {

class ProgramAst;

/// Resources of one block of a family: the maximum over its parts.
struct KernelResources {
  int64_t threads = 0;
  /// Estimate for one thread; ptxas decides.
  int64_t registersPerThread = 0;
  int64_t sharedMemoryBytes = 0;
};

/// Rows of shared memory that boxes of tensor maps fill in a launch, and those
/// among them that lie outside of the operand.
struct BoxRows {
  int64_t copied = 0, outside = 0;
};

/// Neighbouring blocks that run at the same time and share a tile in equal
/// parts along a space axis.
struct ClusterShape {
  int64_t blocks = 1;
  unsigned axis = 0;
};

/// Elements that threads of a block compute along one axis: each has `strips`
/// strips of `inner` neighbours, a row of threads apart. A reduce axis has only
/// `inner`.
struct ThreadTile {
  int64_t threads = 1, strips = 1, inner = 1;

  int64_t elements() const { return threads * strips * inner; }
  bool operator==(const ThreadTile &other) const {
    return threads == other.threads && strips == other.strips &&
           inner == other.inner;
  }
};

/// Judgement of a path on a block.
enum class BlockKind {
  /// Its shape suits the hardware: the path suggests it by itself.
  Suited,
  /// One of a rule's.
  Plain,
  /// Its rows begin within memory transactions, or its threads access memory in
  /// narrow pieces: one of a rule's, where rules alone decide.
  Odd
};

/// The block tiles and schedules that a path offers for one workload on one
/// device, which outlive the object. The path has said that it supports them.
class ScheduleSpace {
public:
  virtual ~ScheduleSpace() = default;

  /// Axes along which two heights may be combined in one kernel.
  llvm::SmallVector<unsigned> combineAxes;
  /// The reduce axis goes in multiples of this (memory transaction).
  int64_t reduceGranule = 8;
  /// Workers that a block may have: multiples of the granule up to the most.
  /// Of a path whose workers are warps, 1 and its most warps.
  int64_t workerGranule = 32;
  int64_t maxWorkers = 1024;
  /// Elements of batch axes that a block may compute, at most.
  int64_t mostBatchElements = 1;
  /// Shared memory for each row or column of a block tile, at least, in bytes.
  int64_t minRowBytes = 0;

  /// Called with a family of one tile and its uKernel.
  using BlockVisitor = llvm::function_ref<void(
      const KernelFamily &block, const UKernel &ukernel, BlockKind kind)>;
  /// Visits a family for every block tile of the space axes and every division
  /// of it among workers, with the least step along the reduce axis. Operands
  /// are aligned to `alignment` bytes. Blocks that could serve no size of the
  /// range better than a smaller one are left out. Whether a block is feasible,
  /// `check` decides.
  virtual void forEachBlock(int64_t alignment, BlockVisitor visit) const = 0;
  using FamilyVisitor = llvm::function_ref<bool(const KernelFamily &)>;
  /// Visits what else the path may decide of a block that `forEachBlock`
  /// visited, preferred ones first, until `visit` returns false: families of
  /// one tile that differ in schedule and tile.
  ///
  /// * Each block of a launch computes what `block` does: a family's tile along
  ///   a space axis is that of `block`, or, where blocks share a tile
  ///   (`CodegenModel::cluster`), as many of them as the cluster has blocks
  ///   along the axis. Rules of tiles saw `block`, and filters that go by tiles
  ///   see the whole tile.
  /// * Workers have the register tiles of `block`. Tiles of reduce axes are
  /// any.
  /// * The alignment that operands need is that of `block`.
  /// * Combine axis, reduce axes and split are those of `block`.
  ///
  /// Whether a family can be emitted, `check` decides. A cost model that
  /// predicts times sees all of them and takes the best for each shape; others
  /// take the first that leaves an SM room for enough blocks.
  virtual void forEachSchedule(const KernelFamily &block,
                               FamilyVisitor visit) const = 0;
  /// Orders families that a cost model cannot tell apart: the lesser, the
  /// better.
  using Preference = std::array<int64_t, 8>;
  virtual Preference preference(const KernelFamily &family) const = 0;
};

class CodegenModel {
public:
  virtual ~CodegenModel() = default;
  /// Name of the path, and of its attribute in IR.
  virtual llvm::StringRef name() const = 0;
  /// Returns the fields of its schedules: their text and their legal values.
  virtual const ScheduleTable &scheduleTable() const = 0;
  llvm::ArrayRef<ScheduleField> scheduleFields() const {
    return scheduleTable().fields;
  }
  /// An error of the path: "NAME: TEXT".
  llvm::Error invalid(const llvm::Twine &text) const;
  /// Returns an error with the reason if the path cannot compute the workload
  /// on the device.
  virtual llvm::Error supports(const Workload &workload,
                               const DeviceSpec &device) const = 0;
  /// Returns whether the path's kernels have instructions of the device's own
  /// architecture that neither older nor newer ones have: their PTX is for
  /// "sm_90a" rather than "sm_90". Then `supports` refuses devices without such
  /// an architecture.
  virtual bool needsExactArchitecture() const { return false; }
  /// Creates the space of families for a workload that the path supports.
  virtual std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload, const DeviceSpec &device) const = 0;

  //===--- Of a family, whose schedule is the path's --------------------===//

  /// Returns the tiles of a block of a part at two memory levels.
  /// By default its workers are the block's threads, each with one element
  /// along each axis at a time.
  virtual UKernel ukernel(const KernelFamily &family, unsigned part) const;
  /// Threads of a block.
  virtual int64_t threads(const KernelFamily &family) const = 0;
  /// Heights along the combine axis are multiples of this under one
  /// schedule: a row for each of the threads, or warps, that lie along the
  /// axis.
  virtual int64_t heightGranule(const KernelFamily &family) const = 0;
  /// Rows of tiles whose blocks are neighbours (Grid.h); 1: blocks go row by
  /// row.
  virtual int64_t swizzleRows(const KernelFamily &family) const { return 1; }
  /// Blocks that share a tile, and along which axis (Grid.h).
  virtual ClusterShape cluster(const Schedule &schedule) const { return {}; }
  /// Blocks of a launch at most, which take one tile after the other (Grid.h);
  /// 0: each block has one.
  virtual int64_t persistentBlocks(const Schedule &schedule) const { return 0; }
  /// The schedule with so many strips of neighbours that a worker has along m
  /// and n, a row of workers apart (TVM: virtual threads); none where the path
  /// lays workers out in one way.
  virtual std::optional<Schedule>
  withVirtualThreads(const Schedule &schedule,
                     std::array<int64_t, 2> strips) const {
    return std::nullopt;
  }
  /// The family with several times its threads, which share the elements of a
  /// step along the reduce axis and add up their sums; none where the path has
  /// no such blocks. Whether they can be emitted, `check` says.
  virtual llvm::SmallVector<KernelFamily>
  slicedVariants(const KernelFamily &family) const {
    return {};
  }
  /// The family of a block whose threads have these tiles, one for each axis of
  /// the workload; none where the path's workers are no threads. Accesses are
  /// as wide as operands aligned to `alignment` bytes allow. Whether it can be
  /// emitted, `check` decides.
  virtual std::optional<KernelFamily>
  threadFamily(const Workload &workload, llvm::ArrayRef<ThreadTile> tiles,
               int64_t alignment) const {
    return std::nullopt;
  }
  /// Returns whether the path itself decides which part of the reduce axis a
  /// split-K slice has, and where the slice leaves its numbers; else slices
  /// have equal lengths (Grid.h).
  virtual bool sharesOutSlices() const { return false; }
  /// Numbers, or tensors of them, that the slices of a family leave.
  virtual int64_t numSliceStates(const KernelFamily &family) const;
  /// Launches behind the first one of a family with slices, such as the one
  /// that adds them up.
  virtual int64_t laterLaunches(const Workload &workload) const { return 1; }
  /// Bytes to which every pointer and row of operands that vectors access
  /// (Alignment.h) must be aligned; 1 where elements' own alignment will do.
  virtual int64_t alignment(const Schedule &schedule) const = 0;
  /// Returns whether the schedule needs only the alignment of elements.
  virtual bool takesAnyAlignment(const Schedule &schedule) const = 0;
  /// The family with accesses that need no more alignment than that: itself
  /// where it needs no more.
  virtual KernelFamily relaxed(const KernelFamily &family,
                               int64_t alignment) const = 0;
  /// Families that take operands of any alignment and are close to this one,
  /// the closest first; at least one.
  virtual llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const = 0;

  virtual KernelResources resources(const Workload &workload,
                                    const KernelFamily &family) const = 0;
  /// The tensor maps that the kernel takes for a part, in the order in which
  /// its emitter finds them. Pointers and rows of their operands must be
  /// aligned to `kTensorMapAlignment` bytes: `alignment` says so.
  virtual llvm::SmallVector<TensorMap> tensorMaps(const Workload &workload,
                                                  const KernelFamily &family,
                                                  unsigned part) const {
    return {};
  }
  /// Registers per thread with which the family's kernel was not seen to spill:
  /// search asks that the device has as many. At least those of `resources`.
  virtual int64_t spillFreeRegisters(const Workload &workload,
                                     const KernelFamily &family) const = 0;
  /// Blocks for which an SM has registers at least, as ptxas is told
  /// (`.minnctapersm`): without a word it takes what makes one block fastest,
  /// and kernels of which an SM was to hold two are left with one.
  virtual int64_t minBlocksPerSm(const Workload &workload,
                                 const KernelFamily &family,
                                 const DeviceSpec &device) const {
    return 1;
  }
  /// Returns the work of a block of a part. The family must pass `check` for
  /// the device.
  virtual BlockWork work(const Workload &workload, const KernelFamily &family,
                         unsigned part, const DeviceSpec &device) const = 0;
  /// Adds the loops and statements of a block of a part to a tree whose open
  /// loops are the grid (ProgramAst.h). The family must pass `check` for the
  /// device. Where the path shares out slices (`sharesOutSlices`), `launch` is
  /// the number of the launch; else it is 0. By default each worker computes
  /// its tile from global memory, point by point.
  virtual void describeBlock(const Workload &workload,
                             const KernelFamily &family, unsigned part,
                             llvm::ArrayRef<int64_t> shape,
                             const DeviceSpec &device, int64_t launch,
                             ProgramAst &ast) const;
  /// The rows that tensor maps copy for a shape, each once, whichever blocks of
  /// a cluster get it.
  virtual BoxRows boxRows(const Workload &workload, const KernelFamily &family,
                          llvm::ArrayRef<int64_t> shape) const {
    return {};
  }
  /// Peak rate of the pipes that compute the workload, in FLOP/s.
  virtual double peakFlops(const Workload &workload,
                           const DeviceSpec &device) const = 0;
  /// Says why a schedule cannot compute a block tile of these sizes, whatever
  /// the workload and the device are; at least where `ukernel` would read sizes
  /// that the tile lacks.
  virtual llvm::Error checkTile(const Schedule &schedule,
                                llvm::ArrayRef<int64_t> tile) const {
    return llvm::Error::success();
  }
  /// Says why the family cannot be emitted for the device, if it cannot.
  virtual llvm::Error check(const Workload &workload,
                            const KernelFamily &family,
                            const DeviceSpec &device) const = 0;
};

/// The model of a path by name, or null.
const CodegenModel *findCodegenModel(llvm::StringRef name);
/// Every path's model, in the order of CodegenPaths.def.
llvm::ArrayRef<const CodegenModel *> codegenModels();
/// The models of paths that compete unless a user names paths.
llvm::SmallVector<const CodegenModel *> defaultCodegenModels();

/// Families that compete only where they were proven on the card, or where a
/// user names their path: all of a path, or those with a field of the schedule
/// that is not at its default (docs/check-gpu.md).
struct Gate {
  const CodegenModel *path = nullptr;
  /// Null of a whole path.
  const ScheduleField *field = nullptr;

  /// "PATH" or "PATH.FIELD".
  std::string name() const;
  bool operator==(const Gate &other) const {
    return path == other.path && field == other.field;
  }
};
/// Every gate, in the order of CodegenPaths.def and of the fields.
llvm::ArrayRef<Gate> codegenGates();
/// Reads names of some of the known gates, separated by commas, or of none; the
/// gates in their order. An error says which name is of none of them, and which
/// there are; `what` they are, in the plural.
llvm::Expected<llvm::SmallVector<Gate>>
parseGates(llvm::StringRef names, llvm::ArrayRef<Gate> known = codegenGates(),
           llvm::StringRef what = "gates");
std::string namesOf(llvm::ArrayRef<Gate> gates, llvm::StringRef separator);
/// Reads names separated by commas: the models, in the order of
/// CodegenPaths.def. An error says which name is of no path, and which there
/// are.
llvm::Expected<llvm::SmallVector<const CodegenModel *>>
parseCodegenModels(llvm::StringRef names);
/// Names of models, joined by a separator.
std::string namesOf(llvm::ArrayRef<const CodegenModel *> models,
                    llvm::StringRef separator);
/// Returns the names of all paths, separated by commas, for messages.
std::string codegenModelNames();
/// Returns the models that support the workload on the device. An error gives
/// every path's reason if there is none.
llvm::Expected<llvm::SmallVector<const CodegenModel *>>
supportingModels(llvm::ArrayRef<const CodegenModel *> models,
                 const Workload &workload, const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_SCHEDULE_CODEGENMODEL_H
