//===- WgmmaModel.cpp - What the wgmma path can emit ----------------------===//
//
// Matrix products on the tensor cores by instructions of four warps, whose
// factors lie in shared memory, one or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionPathModel.h"
#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Schedule/Alignment.h"
#include "WgmmaBoxes.h"
#include "WgmmaSpace.h"
#include "WgmmaTypes.h"
#include "WgmmaWork.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;

namespace {

/// Registers for addresses, predicates and loop state beside accumulators, at
/// least.
constexpr int64_t kAddressRegisters = 32;
/// Elements of a step that are words.
constexpr int64_t kWordsOfStep = kWgmmaStepBytes / 4;
/// Fewest of asynchronous copies: products read two while one is filled.
constexpr int64_t kLeastStages = 3;

constexpr ScheduleRule kRules[] = {
    {"at most 4 warpgroups",
     [](const Schedule &schedule) {
       return WgmmaSchedule::of(schedule).warpgroups() <= kWgmmaMaxWarpgroups;
     }},
    {"accesses of 16 bytes by producers and with tensor maps",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return !(wgmma.producerWarpgroups || wgmma.tma) ||
              wgmma.accessBytes == kWgmmaProducedBytes;
     }},
    {"at most 3 consumer warpgroups beside producers",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return !wgmma.producerWarpgroups ||
              wgmma.consumerWarpgroups() < kWgmmaMaxWarpgroups;
     }},
    {"clusters of at most 2 blocks",
     [](const Schedule &schedule) {
       return WgmmaSchedule::of(schedule).clusterBlocks() <= kWgmmaMaxCluster;
     }},
    {"producers in clusters of 2 blocks, and along n tensor maps",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return wgmma.clusterBlocks() == 1 ||
              (wgmma.producerWarpgroups && (wgmma.clusterN == 1 || wgmma.tma));
     }},
    {"persistent blocks in whole clusters, with producers and tensor maps",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return wgmma.persistentBlocks == 0 ||
              (wgmma.producerWarpgroups && wgmma.tma &&
               wgmma.persistentBlocks % wgmma.clusterBlocks() == 0);
     }},
    {"fitted boxes of tensor maps",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return !wgmma.fitBoxes || wgmma.tma;
     }},
    {"bulk stores of persistent blocks without swapped operands",
     [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return !wgmma.bulkStores ||
              (wgmma.persistentBlocks > 0 && !wgmma.swapOperands);
     }},
    {"ping-pong of persistent blocks alone", [](const Schedule &schedule) {
       auto wgmma = WgmmaSchedule::of(schedule);
       return !wgmma.pingPong || wgmma.persistentBlocks > 0;
     }}};

class WgmmaModel final : public TensorPathModel<WgmmaSchedule, WgmmaSpace> {
public:
  llvm::StringRef name() const override { return "wgmma"; }

  bool needsExactArchitecture() const override { return true; }

  const ScheduleTable &scheduleTable() const override {
    static constexpr ScheduleTable table = {
        "products on the tensor cores by wgmma.mma_async",
        "64 elements along m and 8 along n, with swapped operands 8 and 64, "
        "for each warpgroup of each block of a cluster",
        fieldsOf<WgmmaSchedule>, kRules};
    return table;
  }

  ClusterShape cluster(const Schedule &schedule) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(schedule);
    // A schedule does not say which axes m and n are.
    return {wgmma.clusterBlocks(),
            wgmma.clusterN > 1 ? matmulAxes.n : matmulAxes.m};
  }

  int64_t persistentBlocks(const Schedule &schedule) const override {
    return WgmmaSchedule::of(schedule).persistentBlocks;
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    KernelResources needs = TensorPathModel::resources(workload, family);
    if (WgmmaSchedule::of(family.schedule).producerWarpgroups)
      if (auto registers = wgmmaRegisters(workload, family))
        needs.registersPerThread = registersAtEntry(*registers);
    return needs;
  }

  llvm::SmallVector<TensorMap> tensorMaps(const Workload &workload,
                                          const KernelFamily &family,
                                          unsigned part) const override;

  BoxRows boxRows(const Workload &workload, const KernelFamily &family,
                  llvm::ArrayRef<int64_t> shape) const override {
    return wgmmaBoxRows(workload, family, shape);
  }

  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    // They are shared out by the same estimate.
    if (wgmma.producerWarpgroups)
      return resources(workload, family).registersPerThread;
    int64_t most = 0;
    for (const BlockTile &tile : family.tiles)
      most = std::max(most, wgmmaSharedRoleRegisters(workload, tile, wgmma));
    return most;
  }

  /// What a block with roles starts with follows from how many an SM is to
  /// hold.
  int64_t minBlocksPerSm(const Workload &workload, const KernelFamily &family,
                         const DeviceSpec &device) const override {
    if (!WgmmaSchedule::of(family.schedule).producerWarpgroups)
      return 1;
    auto registers = wgmmaRegisters(workload, family);
    return registers ? registers->blocks : 1;
  }

  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    const BlockTile &tile = family.tiles[part];
    WgmmaLayout layout = wgmmaLayout(workload, family, part);
    WgmmaCode code;
    code.instruction = *findWgmmaInstruction(multipliedType(workload), device);
    for (unsigned factor : {0, 1}) {
      code.copies[factor] = factorCopy(workload, wgmma.accessBytes, factor);
      if (roundsFactor(workload, factor))
        code.copies[factor].prologue.instructions += 1;
    }
    code.isAsynchronous = isAsynchronous(workload, wgmma, device);
    unsigned k = family.contractionAxes().k;
    const SizeRange &range = workload.axes[k].range;
    code.isReduceExact = range.isFixed() && range.min % tile[k] == 0;
    BlockWork work = wgmmaWork(layout, code);
    work.epilogueInstructions =
        double(layout.warpsOfSet()) *
        fragmentEpilogueInstructions(workload, layout.warpTile(),
                                     wgmma.accessBytes);
    int64_t registers = wgmma.producerWarpgroups
                            ? resources(workload, family).registersPerThread
                            : wgmmaSharedRoleRegisters(workload, tile, wgmma);
    work.registersPerThread = static_cast<double>(
        std::min(registers, device.registersPerThreadOf(layout.threads())));
    return work;
  }

protected:
  ContractionLoops contractionLoops(const Workload &workload,
                                    const KernelFamily &family, unsigned part,
                                    const DeviceSpec &device) const override;
  bool takesPackedFactors() const override { return true; }

  llvm::Error checkWorkload(const Workload &workload,
                            const DeviceSpec &device) const override;

  TensorPipe pipeOf(const Workload &workload,
                    const DeviceSpec &device) const override {
    return findWgmmaInstruction(multipliedType(workload), device)->pipe;
  }

  KernelFamily withAlignment(KernelFamily family,
                             int64_t alignment) const override;

  KernelResources partResources(const Workload &workload,
                                const KernelFamily &family,
                                unsigned part) const override {
    WgmmaLayout layout = wgmmaLayout(workload, family, part);
    return {layout.threads(),
            layout.warpTile().accumulators() + kAddressRegisters,
            layout.sharedMemoryBytes()};
  }

  llvm::Error checkCopies(const Workload &workload, const WgmmaSchedule &wgmma,
                          const DeviceSpec &device) const override;
  llvm::Error checkPart(const Workload &workload, const KernelFamily &family,
                        unsigned part,
                        const WgmmaSchedule &wgmma) const override;
  llvm::Error checkRegisters(const Workload &workload,
                             const KernelFamily &family,
                             const WgmmaSchedule &wgmma) const override;

private:
  static bool isAsynchronous(const Workload &workload,
                             const WgmmaSchedule &wgmma,
                             const DeviceSpec &device) {
    return copiesAsynchronously(device, wgmma.accessBytes,
                                convertsWgmmaFactors(workload, wgmma.tma));
  }

  /// What a block with producers takes for each thread when it starts.
  static int64_t registersAtEntry(const WgmmaRegisters &registers) {
    return registers.areMoved
               ? registers.entry
               : std::max(registers.producer, registers.consumer);
  }

  llvm::Error checkPackedFactor(const Workload &workload) const;
};

ContractionLoops WgmmaModel::contractionLoops(const Workload &workload,
                                              const KernelFamily &family,
                                              unsigned part,
                                              const DeviceSpec &) const {
  WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
  WgmmaLayout layout = wgmmaLayout(workload, family, part);
  ContractionAxes axes = family.contractionAxes();
  ContractionLoops loops;
  const BlockTile &tile = family.tiles[part];
  for (auto [axis, blocks] :
       {std::pair(axes.m, layout.clusterM), std::pair(axes.n, layout.clusterN)})
    if (blocks > 1)
      loops.threads.push_back(
          {"cluster", blocks, LoopBinding::Grid, axis, tile[axis] / blocks});
  unsigned rows = axes.space(layout.rows.factor),
           columns = axes.space(layout.columns.factor);
  loops.threads.push_back({"warpgroup", layout.rows.warpgroups,
                           LoopBinding::Thread, rows,
                           layout.rows.warpgroupExtent()});
  loops.threads.push_back({"warpgroup", layout.columns.warpgroups,
                           LoopBinding::Thread, columns,
                           layout.columns.warpgroupExtent()});
  loops.threads.push_back({"warp", kWgmmaWarps, LoopBinding::Thread, rows,
                           kWgmmaRows / kWgmmaWarps});
  loops.threads.push_back(
      {"lane", FragmentTile::kLaneRows, LoopBinding::Thread, rows, 1});
  loops.threads.push_back(
      {"lane", FragmentTile::kLaneColumns, LoopBinding::Thread, columns, 2});
  loops.points.push_back({"instruction", layout.instructions(),
                          LoopBinding::Unrolled, rows, kWgmmaRows});
  loops.instruction.push_back(
      {"element", 2, LoopBinding::Vectorized, rows, FragmentTile::kLaneRows});
  loops.instruction.push_back(
      {"element", layout.columns.warpgroupExtent() / FragmentTile::kColumns,
       LoopBinding::Vectorized, columns, FragmentTile::kColumns});
  loops.instruction.push_back(
      {"element", 2, LoopBinding::Vectorized, columns, 1});
  int64_t depth = kWgmmaDepthBytes / layout.elementBytes;
  loops.depth.push_back({"k", layout.depths(), LoopBinding::Unrolled, axes.k,
                         depth, /*isReduction=*/true});
  loops.instructionDepth.push_back(
      {"k", depth, LoopBinding::Vectorized, axes.k, 1, /*isReduction=*/true});
  for (unsigned factor : {0, 1})
    loops.copies[factor] = {
        layout.tileOf(factor),
        layout.elementBytes,
        layout.stages,
        layout.copyingThreads(),
        factorCopy(workload, wgmma.accessBytes, factor).vectorWidth,
        !layout.copiesByThreads(factor)};
  loops.isStaged = true;
  return loops;
}

} // namespace

KernelFamily WgmmaModel::withAlignment(KernelFamily family,
                                       int64_t alignment) const {
  WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
  auto [m, n, k] = family.contractionAxes();
  // Threads may have to round words that maps round, in two stages.
  bool areWords = family.tiles.front()[k] <= kWordsOfStep;
  wgmma.accessBytes = areWords && wgmma.tma ? 1 : widestAccess(alignment);
  // Boxes and warps of their own copy 16 bytes at once.
  wgmma.producerWarpgroups = 0;
  wgmma.tma = false;
  for (BlockTile &tile : family.tiles) {
    tile[m] /= wgmma.clusterM;
    tile[n] /= wgmma.clusterN;
  }
  wgmma.clusterM = wgmma.clusterN = 1;
  wgmma.persistentBlocks = 0;
  wgmma.pingPong = false;
  wgmma.fitBoxes = false;
  wgmma.bulkStores = false;
  // Single elements pass through registers, in two stages.
  if (wgmma.accessBytes == 1)
    wgmma.stages = 2;
  family.schedule = wgmma.pack();
  return family;
}

llvm::Error WgmmaModel::checkWorkload(const Workload &workload,
                                      const DeviceSpec &device) const {
  ElementType type = multipliedType(workload);
  std::optional<WgmmaInstruction> instruction =
      findWgmmaInstruction(type, device);
  if (!instruction)
    return invalid("expected a product of f16, bf16, tf32 or i8 on a device "
                   "of compute capability 9.0, but got one of " +
                   nameOf(type) + " on " + device.name);
  if (llvm::Error error = checkTensorFactors(*this, workload))
    return error;
  if (llvm::Error error = checkPackedFactor(workload))
    return error;
  // Only factors of 16 bits can be transposed on the way from shared memory.
  ContractionView view(workload);
  for (unsigned factor : {0, 1})
    if (bytesOf(type) != 2 && view.factor(factor).contiguousAxis() != view.k)
      return invalid("expected factors of " + nameOf(type) +
                     " that are contiguous along k");
  return checkTensorSum(*this, workload, instruction->accumulator);
}

/// Packed factors are multiplied as they lie in memory.
llvm::Error WgmmaModel::checkPackedFactor(const Workload &workload) const {
  const Operand &rhs = *workload.find(OperandRole::Rhs);
  ElementType type = multipliedType(workload);
  if (!rhs.isPacked)
    return llvm::Error::success();
  if (rhs.elementBytes != bytesOf(type) || hasPrologue(workload, /*factor=*/1))
    return invalid("expected a packed rhs of the multiplied type, " +
                   nameOf(type) + ", but got one of " +
                   nameOf(rhs.elementType) +
                   (hasPrologue(workload, 1) ? " with a prologue" : ""));
  if (roundsFactor(workload, /*factor=*/1))
    return invalid(
        "expected a packed rhs that does not have to be rounded to " +
        nameOf(type));
  return llvm::Error::success();
}

llvm::Error WgmmaModel::checkCopies(const Workload &workload,
                                    const WgmmaSchedule &wgmma,
                                    const DeviceSpec &device) const {
  bool isAsynchronous = this->isAsynchronous(workload, wgmma, device);
  if (isAsynchronous ? wgmma.stages < kLeastStages : wgmma.stages != 2)
    return invalid(llvm::Twine("expected ") +
                   (isAsynchronous ? "at least " + llvm::Twine(kLeastStages)
                                   : llvm::Twine("exactly 2")) +
                   " pipeline stages for accesses of " +
                   llvm::Twine(wgmma.accessBytes) + " bytes, but got " +
                   llvm::Twine(wgmma.stages));
  if ((wgmma.producerWarpgroups || wgmma.tma) && !isAsynchronous)
    return invalid("expected factors that can be copied as they are by "
                   "producers and tensor maps");
  // Maps have one axis along each dimension.
  if (wgmma.tma)
    for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs})
      if (!hasWgmmaMap(*workload.find(role)))
        return invalid("expected factors with one axis along each of at most " +
                       llvm::Twine(kMaxTensorMapRank) +
                       " dimensions, which tensor maps describe");
  if (wgmma.clusterBlocks() > 1 && !canShareCopies(workload, wgmma))
    return invalid("expected tensor maps in clusters, or along m a packed rhs");
  if (wgmma.bulkStores && !canStoreInBulk(workload, wgmma))
    return invalid("expected an output whose rows lie along n in vectors, for "
                   "bulk stores");
  return llvm::Error::success();
}

llvm::SmallVector<TensorMap> WgmmaModel::tensorMaps(const Workload &workload,
                                                    const KernelFamily &family,
                                                    unsigned part) const {
  WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
  llvm::SmallVector<TensorMap> maps;
  if (!wgmma.tma)
    return maps;
  ContractionView view(workload);
  WgmmaLayout layout = wgmmaLayout(workload, family, part);
  for (unsigned factor : {0, 1}) {
    if (!layout.hasTma(factor))
      continue;
    const SharedTile &tile = layout.tileOf(factor);
    TensorMap &map = maps.emplace_back();
    const Operand &operand = view.factor(factor);
    map.operand = &operand - workload.operands.data();
    // The rows of a box lie along m, n or k, whichever is not contiguous.
    for (unsigned dim = operand.rank(); dim-- > 0;) {
      unsigned axis = *operand.position(dim).asAxis();
      bool isRow = !view.isBatch(axis) && !map.dims.empty();
      map.dims.push_back(dim);
      map.box.sizes.push_back(dim + 1 == operand.rank() ? tile.pitch
                              : isRow ? layout.boxRowsOf(factor)
                                      : 1);
    }
    unsigned axis = view.space(factor);
    const SizeRange &range = workload.axes[axis].range;
    int64_t rows = layout.sideOf(factor).extent;
    if (layout.fitsRows(factor) &&
        !(range.isFixed() && range.min % rows == 0)) {
      map.box.fitBelow.assign(map.dims.size(), 0);
      for (auto [number, dim] : llvm::enumerate(map.dims))
        if (*operand.position(dim).asAxis() == axis)
          map.box.fitBelow[number] = rows;
    }
    map.box.swizzleBytes = kWgmmaRowBytes;
    map.roundsToTF32 = roundsFactor(workload, factor);
  }
  return maps;
}

llvm::Error WgmmaModel::checkPart(const Workload &workload,
                                  const KernelFamily &family, unsigned part,
                                  const WgmmaSchedule &wgmma) const {
  const BlockTile &tile = family.tiles[part];
  ContractionView view(workload);
  int64_t elementBytes = bytesOf(multipliedType(workload));
  int64_t depth = kWgmmaStepBytes / elementBytes;
  if (tile[view.k] != depth)
    return invalid("expected a reduce tile of " + llvm::Twine(depth) +
                   ", but got " + llvm::Twine(tile[view.k]));
  WgmmaLayout layout = wgmmaLayout(workload, tile, wgmma);
  int64_t columns = layout.columns.warpgroupExtent();
  if (!hasWgmmaColumns(columns, elementBytes))
    return invalid("expected instructions with columns of " +
                   nameOf(multipliedType(workload)) + ", but got " +
                   llvm::Twine(columns) + " in " + tileText(tile));
  // Matrices begin with panels.
  const SharedTile &shared = layout.columns.tile;
  if (!shared.reduceContiguous && layout.columns.warpgroups > 1 &&
      columns % shared.pitch != 0)
    return invalid("expected multiples of " + llvm::Twine(shared.pitch) +
                   " elements along axis " +
                   llvm::Twine(view.space(layout.columns.factor)) +
                   " for each of several warpgroups, but got " +
                   tileText(tile));
  // Boxes, and what bulk copies bring, begin with patterns.
  for (unsigned factor : {0, 1})
    if (int64_t rows = layout.boxRowsOf(factor), boxes = layout.boxesOf(factor);
        !layout.copiesByThreads(factor) &&
        (rows % kWgmmaPatternRows != 0 ||
         rows * boxes * layout.sharersOf(factor) !=
             layout.tileOf(factor).sharedRows()))
      return invalid(
          "expected boxes of tensor maps and bulk copies of multiples "
          "of " +
          llvm::Twine(kWgmmaPatternRows) + " rows, boxes of up to " +
          llvm::Twine(kMaxTensorMapBox) + ", but got " + tileText(tile));
  if (wgmma.bulkStores && family.reduceSplit > 1)
    return invalid("expected whole sums, for bulk stores");
  int64_t accumulators = layout.warpTile().accumulators(),
          most = pointsHeld(workload, kWgmmaAccumulatorRegisters);
  if (accumulators > most)
    return invalid("expected at most " + llvm::Twine(most) +
                   " accumulators in a thread, but got " +
                   llvm::Twine(accumulators) + " by " + tileText(tile));
  return llvm::Error::success();
}

llvm::Error WgmmaModel::checkRegisters(const Workload &workload,
                                       const KernelFamily &family,
                                       const WgmmaSchedule &wgmma) const {
  if (wgmma.producerWarpgroups && !wgmmaRegisters(workload, family))
    return invalid(
        "expected fewer registers of producers and of the warpgroups "
        "that multiply in " +
        family.str());
  return llvm::Error::success();
}

std::optional<WgmmaInstruction>
ftuner::findWgmmaInstruction(ElementType factor, const DeviceSpec &device) {
  if (device.smVersion() != 90)
    return std::nullopt;
  std::optional<WgmmaInstruction> instruction;
  if (factor == ElementType::F16 || factor == ElementType::BF16)
    instruction = {TensorPipe::F16, ElementType::F32};
  else if (factor == ElementType::I8)
    instruction = {TensorPipe::I8, ElementType::I32};
  else if (factor == ElementType::TF32)
    instruction = {TensorPipe::TF32, ElementType::F32};
  if (instruction && device.tensorOperationsPerCycle(instruction->pipe) == 0)
    return std::nullopt;
  return instruction;
}

bool ftuner::convertsWgmmaFactors(const Workload &workload, bool usesTma) {
  bool rounds = roundsFactor(workload, 0) || roundsFactor(workload, 1);
  return convertsFactors(workload) || (rounds && !usesTma);
}

bool ftuner::hasWgmmaColumns(int64_t columns, int64_t elementBytes) {
  if (columns < kWgmmaColumns || columns > kWgmmaMaxColumns ||
      columns % kWgmmaColumns != 0)
    return false;
  return elementBytes > 1 || columns <= 32 || columns % 16 == 0;
}

bool ftuner::canShareCopies(const Workload &workload,
                            const WgmmaSchedule &schedule) {
  bool isRhsAlone =
      schedule.clusterN == 1 && workload.find(OperandRole::Rhs)->isPacked;
  return schedule.producerWarpgroups > 0 && (schedule.tma || isRhsAlone);
}

bool ftuner::canStoreInBulk(const Workload &workload,
                            const WgmmaSchedule &schedule) {
  const Operand &output = *workload.find(OperandRole::Output);
  return !schedule.swapOperands &&
         output.contiguousAxis() == ContractionView(workload).n &&
         isVectorAccess(workload, output);
}

bool ftuner::hasWgmmaMap(const Operand &factor) {
  if (factor.isPacked)
    return true;
  if (factor.rank() > kMaxTensorMapRank)
    return false;
  llvm::SmallVector<unsigned> axes;
  for (unsigned dim = 0; dim < factor.rank(); ++dim) {
    std::optional<unsigned> axis = factor.position(dim).asAxis();
    if (!axis || llvm::is_contained(axes, *axis))
      return false;
    axes.push_back(*axis);
  }
  return true;
}

const CodegenModel &ftuner::wgmmaModel() {
  static const WgmmaModel model;
  return model;
}
