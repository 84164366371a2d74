//===- MmaModel.cpp - What the mma path can emit --------------------------===//
//
// Matrix products on the tensor cores by warp-wide instructions (mma.sync), one
// or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionPathModel.h"
#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "MmaSpace.h"
#include "MmaTypes.h"
#include "MmaWork.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>

using namespace ftuner;

namespace {

/// Registers for addresses, predicates and loop state beside accumulators and
/// fragments. The estimate is above what is needed: of 280 random kernels for
/// sm_75 to sm_100, 62 of which spill, ptxas 13.0 spilled none that lacked up
/// to 10 registers of it (benchmarks/register_model/results.md).
constexpr int64_t kAddressRegisters = 32;
/// Where a step may lie beyond the end of k. With dynamic sizes and both
/// factors across k, warp tiles of 64 x 64 lack at least 5 registers without
/// these.
constexpr int64_t kReduceEndRegisters = 12;
/// Where a slice of k begins and ends, of 64 bits each.
constexpr int64_t kSliceRegisters = 4;
/// Registers that ptxas takes beyond what a kernel needs, and the fragments of
/// the next k block.
constexpr int64_t kSpareRegisters = 24;

int64_t elementBytesOf(const Workload &workload) {
  return bytesOf(multipliedType(workload));
}

class MmaModel final : public TensorPathModel<MmaSchedule, MmaSpace> {
public:
  llvm::StringRef name() const override { return "mma"; }

  const ScheduleTable &scheduleTable() const override {
    static constexpr ScheduleTable table = {
        "products on the tensor cores by mma.sync",
        "16 elements along m and 8 along n, with swapped operands 8 and 16, "
        "for each warp",
        fieldsOf<MmaSchedule>,
        {}};
    return table;
  }

  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    unsigned k = family.contractionAxes().k;
    int64_t most = 0;
    for (auto [part, tile] : llvm::enumerate(family.tiles)) {
      MmaLayout layout = mmaLayout(workload, tile, mma);
      // The device, which is not known here, may have two stages pass through
      // registers.
      FactorCopies copies{layout.threads(), layout.elementBytes,
                          /*isAsynchronous=*/layout.stages > 2,
                          isExact(workload, family, part, k)};
      // Fragments of two k blocks at once.
      int64_t registers =
          partRegisters(layout) + fragmentRegisters(layout) + kAddressRegisters;
      if (!copies.isReduceExact)
        registers += kReduceEndRegisters;
      if (family.reduceSplit > 1)
        registers += kSliceRegisters;
      for (unsigned factor : {0, 1})
        registers += copies.registers(layout.tileOf(factor),
                                      copyOf(workload, family, part, factor));
      most = std::max(most, registers);
    }
    return most;
  }

  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    const BlockTile &tile = family.tiles[part];
    MmaLayout layout = mmaLayout(workload, tile, mma);
    MmaCode code;
    code.instruction = *findMmaInstruction(multipliedType(workload), device);
    code.copies = {copyOf(workload, family, part, 0),
                   copyOf(workload, family, part, 1)};
    code.isAsynchronous = isAsynchronous(workload, mma, device);
    code.isReduceExact =
        isExact(workload, family, part, family.contractionAxes().k);
    code.cyclesOfProduct = cyclesOfProduct(code.instruction, device);
    BlockWork work = mmaWork(layout, code);
    work.epilogueInstructions =
        double(layout.warps()) * fragmentEpilogueInstructions(workload,
                                                              layout.warpTile(),
                                                              mma.accessBytes);
    work.registersPerThread = static_cast<double>(
        std::min(partRegisters(layout) + fragmentRegisters(layout) +
                     kAddressRegisters + kSpareRegisters,
                 device.registersPerThreadOf(layout.threads())));
    return work;
  }

protected:
  ContractionLoops contractionLoops(const Workload &workload,
                                    const KernelFamily &family, unsigned part,
                                    const DeviceSpec &device) const override;
  bool takesWindows() const override { return true; }
  bool takesBatchTiles() const override { return true; }

  llvm::Error checkWorkload(const Workload &workload,
                            const DeviceSpec &device) const override;

  TensorPipe pipeOf(const Workload &workload,
                    const DeviceSpec &device) const override {
    return findMmaInstruction(multipliedType(workload), device)->pipe;
  }

  KernelFamily withAlignment(KernelFamily family,
                             int64_t alignment) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    mma.accessBytes = widestAccess(alignment);
    // Single elements may have to pass through registers, in two stages.
    if (mma.accessBytes == 1)
      mma.stages = 2;
    family.schedule = mma.pack();
    return family;
  }

  KernelResources partResources(const Workload &workload,
                                const KernelFamily &family,
                                unsigned part) const override {
    MmaLayout layout = mmaLayout(workload, family.tiles[part],
                                 MmaSchedule::of(family.schedule));
    return {layout.threads(), partRegisters(layout) + kAddressRegisters,
            layout.sharedMemoryBytes()};
  }

  llvm::Error checkCopies(const Workload &workload, const MmaSchedule &mma,
                          const DeviceSpec &device) const override;
  llvm::Error checkPart(const Workload &workload, const KernelFamily &family,
                        unsigned part, const MmaSchedule &mma) const override;

private:
  /// Cycles that the tensor cores of a scheduler take for an instruction.
  static double cyclesOfProduct(const MmaInstruction &instruction,
                                const DeviceSpec &device) {
    SmFacts sm = device.smFacts();
    double operations =
        2.0 * double(instruction.rows * kMmaColumns * instruction.depth);
    return operations * double(sm.warpSchedulers) /
           (device.tensorOperationsPerCycle(instruction.pipe) *
            sm.warpTensorShare);
  }

  static bool isAsynchronous(const Workload &workload, const MmaSchedule &mma,
                             const DeviceSpec &device) {
    return copiesAsynchronously(device, workload, mma.accessBytes);
  }

  /// How a factor, lhs (0) or rhs (1), is copied.
  static MmaCode::Copy copyOf(const Workload &workload,
                              const KernelFamily &family, size_t part,
                              unsigned factor) {
    MmaCode::Copy copy{factorCopy(workload,
                                  MmaSchedule::of(family.schedule).accessBytes,
                                  factor),
                       roundsFactor(workload, factor)};
    copy.isSpaceExact =
        isExact(workload, family, part, family.contractionAxes().space(factor));
    for (const BatchTile::Side &side :
         BatchTile::of(workload, family.tiles[part]).sides)
      if (side.isOf[factor])
        copy.isSpaceExact &= isExact(workload, family, part, side.axis);
    return copy;
  }

  /// Whether tiles of a part never reach beyond the extent of an axis: of a
  /// second part those of the axis that it shares with the first may.
  static bool isExact(const Workload &workload, const KernelFamily &family,
                      size_t part, unsigned axis) {
    const SizeRange &range = workload.axes[axis].range;
    return range.isFixed() && range.min % family.tiles[part][axis] == 0 &&
           (part == 0 || axis != family.combineAxis);
  }

  /// Registers of the fragments of a k block.
  static int64_t fragmentRegisters(const MmaLayout &layout) {
    return 4 * layout.rows.fragments() + 2 * layout.columns.fragments();
  }
  /// Registers of accumulators and of the fragments that are multiplied.
  static int64_t partRegisters(const MmaLayout &layout) {
    return layout.accumulators() + fragmentRegisters(layout);
  }
};

llvm::Error MmaModel::checkWorkload(const Workload &workload,
                                    const DeviceSpec &device) const {
  ElementType type = multipliedType(workload);
  std::optional<MmaInstruction> instruction = findMmaInstruction(type, device);
  if (!instruction)
    return invalid("expected a product of " + device.name +
                   "'s tensor cores, but got one of " + nameOf(type));
  if (llvm::Error error = checkTensorFactors(*this, workload))
    return error;
  return checkTensorSum(*this, workload, instruction->accumulator);
}

llvm::Error MmaModel::checkPart(const Workload &workload,
                                const KernelFamily &family, unsigned part,
                                const MmaSchedule &mma) const {
  const BlockTile &tile = family.tiles[part];
  ContractionAxes axes = family.contractionAxes();
  unsigned columnFactor = mma.columnFactor(),
           columnAxis = axes.space(columnFactor);
  if (tile[columnAxis] / mma.warpsAlong(columnFactor) / kMmaColumns %
          mmaColumnStep(workload, mma) !=
      0)
    return invalid("expected an even number of fragments of 8 elements along "
                   "axis " +
                   llvm::Twine(columnAxis) +
                   ", whose bytes are transposed, for each warp, but got " +
                   tileText(tile));
  int64_t depth = kMmaFragmentBytes / elementBytesOf(workload);
  if (tile[axes.k] % depth != 0)
    return invalid("expected a reduce tile that is a multiple of " +
                   llvm::Twine(depth) + ", but got " +
                   llvm::Twine(tile[axes.k]));
  int64_t elements = BatchTile::of(workload, tile).elements();
  if (elements != mma.warpsBatch)
    return invalid("expected one element of batch axes for each of " +
                   llvm::Twine(mma.warpsBatch) + " groups of warps, but got " +
                   llvm::Twine(elements));
  return llvm::Error::success();
}

llvm::Error MmaModel::checkCopies(const Workload &workload,
                                  const MmaSchedule &mma,
                                  const DeviceSpec &device) const {
  if (mma.stages > 2 && !isAsynchronous(workload, mma, device))
    return invalid("expected exactly 2 pipeline stages for accesses of " +
                   llvm::Twine(mma.accessBytes) + " bytes on " + device.name +
                   ", but got " + llvm::Twine(mma.stages));
  if (mma.threads() > device.maxThreadsPerBlock)
    return invalid("expected 1 to " +
                   llvm::Twine(device.maxThreadsPerBlock / 32) +
                   " warps, but got " + llvm::Twine(mma.warpsM) + " by " +
                   llvm::Twine(mma.warpsN) +
                   (mma.warpsBatch > 1
                        ? " in " + std::to_string(mma.warpsBatch) + " groups"
                        : ""));
  return llvm::Error::success();
}

ContractionLoops MmaModel::contractionLoops(const Workload &workload,
                                            const KernelFamily &family,
                                            unsigned part,
                                            const DeviceSpec &device) const {
  MmaSchedule mma = MmaSchedule::of(family.schedule);
  MmaLayout layout = mmaLayout(workload, family.tiles[part], mma);
  MmaInstruction instruction =
      *findMmaInstruction(multipliedType(workload), device);
  ContractionAxes axes = family.contractionAxes();
  ContractionLoops loops;
  auto addAlong = [&](const MmaSide &side, int64_t length, int64_t lanes,
                      int64_t neighbours) {
    unsigned axis = axes.space(side.factor);
    loops.threads.push_back(
        {"warp", side.warps, LoopBinding::Thread, axis, side.warpExtent()});
    loops.threads.push_back(
        {"lane", lanes, LoopBinding::Thread, axis, neighbours});
    loops.points.push_back({"instruction", side.warpExtent() / length,
                            LoopBinding::Unrolled, axis, length});
    loops.instruction.push_back({"element", length / lanes,
                                 LoopBinding::Vectorized, axis,
                                 neighbours == 1 ? lanes : 1});
  };
  addAlong(layout.rows, instruction.rows, FragmentTile::kLaneRows,
           /*neighbours=*/1);
  addAlong(layout.columns, FragmentTile::kColumns, FragmentTile::kLaneColumns,
           /*neighbours=*/2);
  loops.depth.push_back({"k", layout.bk / instruction.depth,
                         LoopBinding::Unrolled, axes.k, instruction.depth,
                         /*isReduction=*/true});
  loops.instructionDepth.push_back({"k", instruction.depth,
                                    LoopBinding::Vectorized, axes.k, 1,
                                    /*isReduction=*/true});
  for (unsigned factor : {0, 1})
    loops.copies[factor] = {layout.tileOf(factor), layout.elementBytes,
                            layout.stages, layout.threads(),
                            copyOf(workload, family, part, factor).vectorWidth};
  loops.isStaged = true;
  return loops;
}

} // namespace

std::optional<MmaInstruction>
ftuner::findMmaInstruction(ElementType factor, const DeviceSpec &device) {
  int version = device.smVersion();
  if (version < 75)
    return std::nullopt;
  bool isOld = version < 80;
  std::optional<MmaInstruction> instruction;
  if (factor == ElementType::F16)
    instruction = {TensorPipe::F16, 16, isOld ? 8 : 16, ElementType::F32};
  else if (factor == ElementType::I8)
    instruction = {TensorPipe::I8, isOld ? 8 : 16, isOld ? 16 : 32,
                   ElementType::I32};
  else if (factor == ElementType::BF16 && !isOld)
    instruction = {TensorPipe::F16, 16, 16, ElementType::F32};
  else if (factor == ElementType::TF32 && !isOld)
    instruction = {TensorPipe::TF32, 16, 8, ElementType::F32};
  if (instruction && device.tensorOperationsPerCycle(instruction->pipe) == 0)
    return std::nullopt;
  return instruction;
}

const CodegenModel &ftuner::mmaModel() {
  static const MmaModel model;
  return model;
}
