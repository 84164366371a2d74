//===- WgmmaModel.cpp - What the wgmma path can emit ----------------------===//
//
// Matrix products on the tensor cores by instructions of four warps, whose
// factors lie in shared memory, one or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Schedule/CodegenModel.h"
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
/// Most pipeline stages: more than shared memory holds, so that sums of their
/// bytes do not overflow.
constexpr int64_t kMaxStages = 1024;
/// Most persistent blocks: of twice as many SMs as plans are made for.
constexpr int64_t kMaxPersistent = 2 * maxBalancedSms;
/// Fewest of asynchronous copies: products read two while one is filled.
constexpr int64_t kLeastStages = 3;

class WgmmaModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "wgmma"; }

  bool needsExactArchitecture() const override { return true; }

  llvm::ArrayRef<llvm::StringLiteral> scheduleFields() const override {
    static constexpr llvm::StringLiteral names[] = {
        "groups_m",      "groups_n",          "stages",      "access_bytes",
        "swap_operands", "producers",         "tensor_maps", "cluster_m",
        "cluster_n",     "persistent_blocks", "turns"};
    return names;
  }

  std::string str(const Schedule &schedule) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(schedule);
    return "stages " + std::to_string(wgmma.stages) + " access " +
           std::to_string(wgmma.accessBytes) +
           (wgmma.swapOperands ? " swapped" : "") +
           (wgmma.producers ? " producers " + std::to_string(wgmma.producers)
                            : "") +
           (wgmma.tensorMaps ? " maps" : "") +
           (wgmma.clusterBlocks() > 1
                ? " cluster [" + std::to_string(wgmma.clusterM) + "," +
                      std::to_string(wgmma.clusterN) + "]"
                : "") +
           (wgmma.persistentBlocks
                ? " persistent " + std::to_string(wgmma.persistentBlocks)
                : "") +
           (wgmma.turns > 1 ? " turns " + std::to_string(wgmma.turns) : "");
  }

  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override;

  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<WgmmaSpace>(workload, device);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    return contractionUKernel(family, part, wgmma.clusterM * wgmma.groupsM,
                              wgmma.clusterN * wgmma.groupsN);
  }

  int64_t threads(const KernelFamily &family) const override {
    return WgmmaSchedule::of(family.schedule).threads();
  }

  int64_t heightGranule(const KernelFamily &family) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    return wgmma.tileGranuleAlong(
        family.combineAxis == family.contractionAxes().m ? 0 : 1);
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

  int64_t groupRows(const KernelFamily &family) const override {
    return squareGroupRows(family);
  }

  int64_t alignment(const Schedule &schedule) const override {
    return WgmmaSchedule::of(schedule).accessBytes;
  }

  bool takesAnyAlignment(const Schedule &schedule) const override {
    return WgmmaSchedule::of(schedule).accessBytes == 1;
  }

  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    if (this->alignment(family.schedule) <= alignment)
      return family;
    // Threads may have to round words that maps round, in two stages.
    unsigned k = family.contractionAxes().k;
    bool areWords = family.tiles.front()[k] <= kWordsOfStep;
    if (areWords && WgmmaSchedule::of(family.schedule).tensorMaps)
      return withAccess(family, 1);
    return withAccess(family, widestAccess(alignment));
  }

  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    return {withAccess(family, 1)};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    KernelResources resources;
    resources.threads = wgmma.threads();
    for (unsigned part = 0; part < family.tiles.size(); ++part) {
      WgmmaLayout layout = wgmmaLayout(workload, family, part);
      resources.registersPerThread =
          std::max(resources.registersPerThread,
                   layout.warpTile().accumulators() + kAddressRegisters);
      resources.sharedMemoryBytes =
          std::max(resources.sharedMemoryBytes, layout.sharedMemoryBytes());
    }
    if (wgmma.producers == 0)
      return resources;
    if (auto registers = wgmmaRegisters(workload, family))
      resources.registersPerThread = registersAtEntry(*registers);
    return resources;
  }

  llvm::SmallVector<TensorMap> tensorMaps(const Workload &workload,
                                          const KernelFamily &family,
                                          unsigned part) const override;

  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    // They are shared out by the same estimate.
    if (wgmma.producers)
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
    if (!WgmmaSchedule::of(family.schedule).producers)
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
    int64_t registers = wgmma.producers
                            ? resources(workload, family).registersPerThread
                            : wgmmaSharedRoleRegisters(workload, tile, wgmma);
    work.registersPerThread = static_cast<double>(
        std::min(registers, device.registersPerThreadOf(layout.threads())));
    return work;
  }

  double peakFlops(const Workload &workload,
                   const DeviceSpec &device) const override {
    TensorPipe pipe =
        findWgmmaInstruction(multipliedType(workload), device)->pipe;
    return device.tensorOperationsPerCycle(pipe) * device.smCount *
           device.clockMhz * 1e6;
  }

  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

private:
  llvm::Error invalid(const llvm::Twine &text) const {
    return llvm::createStringError(
        ("wgmma: " + text).str(),
        std::make_error_code(std::errc::invalid_argument));
  }

  static bool isAsynchronous(const Workload &workload,
                             const WgmmaSchedule &wgmma,
                             const DeviceSpec &device) {
    return copiesAsynchronously(
        device, wgmma.accessBytes,
        convertsWgmmaFactors(workload, wgmma.tensorMaps));
  }

  static KernelFamily withAccess(KernelFamily family, int64_t bytes) {
    WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
    wgmma.accessBytes = bytes;
    // Boxes and warps of their own copy 16 bytes at once.
    wgmma.producers = 0;
    wgmma.tensorMaps = false;
    auto [m, n, k] = family.contractionAxes();
    for (BlockTile &tile : family.tiles) {
      tile[m] /= wgmma.clusterM;
      tile[n] /= wgmma.clusterN;
    }
    wgmma.clusterM = wgmma.clusterN = 1;
    wgmma.persistentBlocks = 0;
    wgmma.turns = 1;
    // Single elements pass through registers, in two stages.
    if (bytes == 1)
      wgmma.stages = 2;
    family.schedule = wgmma.pack();
    return family;
  }

  /// What a block with producers takes for each thread when it starts.
  static int64_t registersAtEntry(const WgmmaRegisters &registers) {
    return registers.areMoved
               ? registers.entry
               : std::max(registers.producer, registers.consumer);
  }

  llvm::Error checkPackedFactor(const Workload &workload) const;
  llvm::Error checkSchedule(const Workload &workload,
                            const WgmmaSchedule &wgmma,
                            const DeviceSpec &device) const;
  llvm::Error checkMaps(const Workload &workload, const WgmmaSchedule &wgmma,
                        bool isAsynchronous) const;
  llvm::Error checkPart(const Workload &workload, const BlockTile &tile,
                        const WgmmaSchedule &wgmma) const;
};

} // namespace

llvm::Error WgmmaModel::supports(const Workload &workload,
                                 const DeviceSpec &device) const {
  if (llvm::Error error = checkContractionLayout(*this, workload))
    return error;
  if (llvm::Error error = checkPrologues(*this, workload))
    return error;
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

llvm::Error WgmmaModel::checkSchedule(const Workload &workload,
                                      const WgmmaSchedule &wgmma,
                                      const DeviceSpec &device) const {
  if (llvm::Error error = checkAccess(*this, wgmma.accessBytes))
    return error;
  bool isAsynchronous = this->isAsynchronous(workload, wgmma, device);
  bool hasStages =
      isAsynchronous ? wgmma.stages >= kLeastStages : wgmma.stages == 2;
  if (!hasStages || wgmma.stages > kMaxStages)
    return invalid(
        llvm::Twine("expected ") +
        (isAsynchronous
             ? llvm::Twine(kLeastStages) + " to " + llvm::Twine(kMaxStages)
             : llvm::Twine("exactly 2")) +
        " pipeline stages for accesses of " + llvm::Twine(wgmma.accessBytes) +
        " bytes, but got " + llvm::Twine(wgmma.stages));
  for (unsigned factor : {0, 1})
    if (wgmma.groupsAlong(factor) < 1 ||
        wgmma.groupsAlong(factor) > kWgmmaMaxGroups ||
        wgmma.groups() > kWgmmaMaxGroups)
      return invalid("expected 1 to " + llvm::Twine(kWgmmaMaxGroups) +
                     " groups, but got " + llvm::Twine(wgmma.groupsM) + " by " +
                     llvm::Twine(wgmma.groupsN));
  if (wgmma.tensorMaps)
    if (llvm::Error error = checkMaps(workload, wgmma, isAsynchronous))
      return error;
  if (wgmma.clusterM < 1 || wgmma.clusterN < 1 ||
      wgmma.clusterBlocks() > kWgmmaMaxCluster ||
      (wgmma.clusterBlocks() > 1 && !canShareCopies(workload, wgmma)))
    return invalid(
        "expected clusters of 1 block, or of " + llvm::Twine(kWgmmaMaxCluster) +
        " with producers, and with tensor maps or, along m, a packed rhs, but "
        "got " +
        llvm::Twine(wgmma.clusterM) + " by " + llvm::Twine(wgmma.clusterN));
  if (wgmma.persistentBlocks < 0 || wgmma.persistentBlocks > kMaxPersistent ||
      wgmma.persistentBlocks % wgmma.clusterBlocks() != 0 ||
      (wgmma.persistentBlocks > 0 && !(wgmma.producers && wgmma.tensorMaps)))
    return invalid("expected no persistent blocks, or up to " +
                   llvm::Twine(kMaxPersistent) +
                   " in whole clusters with producers and tensor maps, but "
                   "got " +
                   llvm::Twine(wgmma.persistentBlocks));
  if (wgmma.turns < 1 || wgmma.turns > kWgmmaMaxTurns ||
      (wgmma.turns > 1 && wgmma.persistentBlocks == 0))
    return invalid("expected 1 turn, or " + llvm::Twine(kWgmmaMaxTurns) +
                   " of persistent blocks, but got " +
                   llvm::Twine(wgmma.turns));
  if (wgmma.producers == 0)
    return llvm::Error::success();
  if (wgmma.producers != 1 || wgmma.multiplyingGroups() >= kWgmmaMaxGroups)
    return invalid("expected no producers, or 1 beside at most " +
                   llvm::Twine(kWgmmaMaxGroups - 1) + " groups, but got " +
                   llvm::Twine(wgmma.producers) + " beside " +
                   llvm::Twine(wgmma.multiplyingGroups()));
  if (!isAsynchronous || wgmma.accessBytes != kWgmmaProducedBytes)
    return invalid("expected asynchronous copies of " +
                   llvm::Twine(kWgmmaProducedBytes) +
                   " bytes by producers, but got accesses of " +
                   llvm::Twine(wgmma.accessBytes));
  return llvm::Error::success();
}

/// Maps describe operands as they are, with one axis along each dimension.
llvm::Error WgmmaModel::checkMaps(const Workload &workload,
                                  const WgmmaSchedule &wgmma,
                                  bool isAsynchronous) const {
  if (!isAsynchronous || wgmma.accessBytes != kWgmmaProducedBytes)
    return invalid("expected factors that tensor maps copy as they are, in "
                   "rows aligned to " +
                   llvm::Twine(kWgmmaProducedBytes) +
                   " bytes, but got accesses of " +
                   llvm::Twine(wgmma.accessBytes));
  for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs})
    if (!hasWgmmaMap(*workload.find(role)))
      return invalid("expected factors with one axis along each of at most " +
                     llvm::Twine(kMaxTensorMapRank) +
                     " dimensions, which tensor maps describe");
  return llvm::Error::success();
}

llvm::SmallVector<TensorMap> WgmmaModel::tensorMaps(const Workload &workload,
                                                    const KernelFamily &family,
                                                    unsigned part) const {
  WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
  llvm::SmallVector<TensorMap> maps;
  if (!wgmma.tensorMaps)
    return maps;
  ContractionView view(workload);
  WgmmaLayout layout = wgmmaLayout(workload, family, part);
  for (unsigned factor : {0, 1}) {
    if (!layout.hasMap(factor))
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
    map.box.swizzleBytes = kWgmmaRowBytes;
    map.roundsToTF32 = roundsFactor(workload, factor);
  }
  return maps;
}

llvm::Error WgmmaModel::checkPart(const Workload &workload,
                                  const BlockTile &tile,
                                  const WgmmaSchedule &wgmma) const {
  ContractionView view(workload);
  for (unsigned factor : {0, 1}) {
    unsigned axis = view.space(factor);
    int64_t granule = wgmma.tileGranuleAlong(factor);
    if (tile[axis] % granule != 0)
      return invalid("expected block tiles of multiples of " +
                     llvm::Twine(granule) + " elements along axis " +
                     llvm::Twine(axis) + ", but got " + tileText(tile));
  }
  if (llvm::Error error = checkBatchTiles(*this, view, tile))
    return error;
  int64_t elementBytes = bytesOf(multipliedType(workload));
  int64_t depth = kWgmmaStepBytes / elementBytes;
  if (tile[view.k] != depth)
    return invalid("expected a reduce tile of " + llvm::Twine(depth) +
                   ", but got " + llvm::Twine(tile[view.k]));
  WgmmaLayout layout = wgmmaLayout(workload, tile, wgmma);
  int64_t columns = layout.columns.groupExtent();
  if (!hasWgmmaColumns(columns, elementBytes))
    return invalid("expected instructions with columns of " +
                   nameOf(multipliedType(workload)) + ", but got " +
                   llvm::Twine(columns) + " in " + tileText(tile));
  // Matrices begin with panels.
  const SharedTile &shared = layout.columns.tile;
  if (!shared.reduceContiguous && layout.columns.groups > 1 &&
      columns % shared.pitch != 0)
    return invalid("expected multiples of " + llvm::Twine(shared.pitch) +
                   " elements along axis " +
                   llvm::Twine(view.space(layout.columns.factor)) +
                   " for each of several groups, but got " + tileText(tile));
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
  int64_t accumulators = layout.warpTile().accumulators();
  if (accumulators > kWgmmaMaxAccumulators)
    return invalid("expected at most " + llvm::Twine(kWgmmaMaxAccumulators) +
                   " accumulators in a thread, but got " +
                   llvm::Twine(accumulators) + " by " + tileText(tile));
  return llvm::Error::success();
}

llvm::Error WgmmaModel::check(const Workload &workload,
                              const KernelFamily &family,
                              const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  ContractionAxes axes = family.contractionAxes();
  if (llvm::Error error =
          checkContractionFamily(*this, family, {axes.m, axes.n}))
    return error;
  WgmmaSchedule wgmma = WgmmaSchedule::of(family.schedule);
  if (llvm::Error error = checkSchedule(workload, wgmma, device))
    return error;
  for (const BlockTile &tile : family.tiles)
    if (llvm::Error error = checkPart(workload, tile, wgmma))
      return error;
  if (llvm::Error error =
          checkBlockFits(*this, resources(workload, family), device))
    return error;
  if (wgmma.producers && !wgmmaRegisters(workload, family))
    return invalid("expected fewer registers of producers and of the groups "
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

bool ftuner::convertsWgmmaFactors(const Workload &workload, bool hasMaps) {
  bool rounds = roundsFactor(workload, 0) || roundsFactor(workload, 1);
  return convertsFactors(workload) || (rounds && !hasMaps);
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
  return schedule.producers > 0 && (schedule.tensorMaps || isRhsAlone);
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

WgmmaSchedule WgmmaSchedule::of(const Schedule &schedule) {
  const auto &fields = schedule.fields();
  return {fields[0],      fields[1], fields[2],      fields[3],
          fields[4] != 0, fields[5], fields[6] != 0, fields[7],
          fields[8],      fields[9], fields[10]};
}

Schedule WgmmaSchedule::pack() const {
  return Schedule(wgmmaModel(), {groupsM, groupsN, stages, accessBytes,
                                 swapOperands, producers, tensorMaps, clusterM,
                                 clusterN, persistentBlocks, turns});
}

KernelFamily ftuner::wgmmaFamily(const WgmmaSchedule &schedule,
                                 llvm::ArrayRef<int64_t> rows, int64_t columns,
                                 int64_t depth, unsigned numAxes) {
  KernelFamily family;
  family.schedule = schedule.pack();
  auto [m, n, k] = family.contractionAxes();
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[m] = schedule.clusterM * schedule.groupsM * height;
    tile[n] = schedule.clusterN * schedule.groupsN * columns;
    tile[k] = depth;
  }
  return family;
}

const CodegenModel &ftuner::wgmmaModel() {
  static const WgmmaModel model;
  return model;
}
