//===- MmaModel.cpp - What the mma path can emit --------------------------===//
//
// Matrix products on the tensor cores by warp-wide instructions (mma.sync), one
// or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Codegen/FragmentEpilogueWork.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"
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
/// Most pipeline stages: more than shared memory holds, so that sums of their
/// bytes do not overflow.
constexpr int64_t kMaxStages = 1024;
constexpr int64_t kMaxWarps = 32;

template <typename... Args>
llvm::Error invalid(const char *format, Args... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}

int64_t elementBytesOf(const Workload &workload) {
  return bytesOf(multipliedType(workload));
}

class MmaModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "mma"; }

  llvm::ArrayRef<llvm::StringLiteral> scheduleFields() const override {
    static constexpr llvm::StringLiteral names[] = {
        "warps_m", "warps_n", "stages", "access_bytes", "swap_operands"};
    return names;
  }

  std::string str(const Schedule &schedule) const override {
    MmaSchedule mma = MmaSchedule::of(schedule);
    return "stages " + std::to_string(mma.stages) + " access " +
           std::to_string(mma.accessBytes) +
           (mma.swapOperands ? " swapped" : "");
  }

  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override;

  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<MmaSpace>(workload, device);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    return contractionUKernel(family, part, mma.warpsM, mma.warpsN);
  }

  int64_t threads(const KernelFamily &family) const override {
    return MmaSchedule::of(family.schedule).threads();
  }

  int64_t heightGranule(const KernelFamily &family) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    unsigned factor = family.combineAxis == family.contractionAxes().m ? 0 : 1;
    return mma.warpsAlong(factor) * mma.fragmentAlong(factor);
  }

  int64_t groupRows(const KernelFamily &family) const override {
    return squareGroupRows(family);
  }

  int64_t alignment(const Schedule &schedule) const override {
    return MmaSchedule::of(schedule).accessBytes;
  }

  bool takesAnyAlignment(const Schedule &schedule) const override {
    return MmaSchedule::of(schedule).accessBytes == 1;
  }

  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    if (this->alignment(family.schedule) <= alignment)
      return family;
    return withAccess(family, widestAccess(alignment));
  }

  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    return {withAccess(family, 1)};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    KernelResources resources;
    resources.threads = mma.threads();
    for (const BlockTile &tile : family.tiles) {
      MmaLayout layout = mmaLayout(workload, tile, mma);
      resources.registersPerThread =
          std::max(resources.registersPerThread,
                   partRegisters(layout) + kAddressRegisters);
      resources.sharedMemoryBytes =
          std::max(resources.sharedMemoryBytes, layout.sharedMemoryBytes());
    }
    return resources;
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

  double peakFlops(const Workload &workload,
                   const DeviceSpec &device) const override {
    TensorPipe pipe =
        findMmaInstruction(multipliedType(workload), device)->pipe;
    return device.tensorOperationsPerCycle(pipe) * device.smCount *
           device.clockMhz * 1e6;
  }

  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

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
    int64_t bytes = elementBytesOf(workload);
    return copiesAsynchronously(device, mma.vectorWidth(bytes) * bytes,
                                convertsFactors(workload));
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
    return copy;
  }

  static KernelFamily withAccess(KernelFamily family, int64_t bytes) {
    MmaSchedule mma = MmaSchedule::of(family.schedule);
    mma.accessBytes = bytes;
    // Single elements may have to pass through registers, in two stages.
    if (bytes == 1)
      mma.stages = 2;
    family.schedule = mma.pack();
    return family;
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

  llvm::Error checkPart(const Workload &workload, const KernelFamily &family,
                        unsigned part) const;
};

llvm::Error MmaModel::supports(const Workload &workload,
                               const DeviceSpec &device) const {
  if (llvm::Error error = checkContractionLayout(*this, workload))
    return error;
  if (llvm::Error error = checkUnpacked(*this, workload))
    return error;
  if (llvm::Error error = checkPrologues(*this, workload))
    return error;
  ElementType type = multipliedType(workload);
  std::optional<MmaInstruction> instruction = findMmaInstruction(type, device);
  if (!instruction)
    return invalid("mma: expected a product of %s's tensor cores, but got one "
                   "of %s",
                   device.name.c_str(), nameOf(type).data());
  if (llvm::Error error = checkTensorFactors(*this, workload))
    return error;
  return checkTensorSum(*this, workload, instruction->accumulator);
}

llvm::Error MmaModel::checkPart(const Workload &workload,
                                const KernelFamily &family,
                                unsigned part) const {
  MmaSchedule mma = MmaSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles[part];
  ContractionAxes axes = family.contractionAxes();
  for (unsigned factor : {0, 1})
    if (tile[axes.space(factor)] %
            (mma.warpsAlong(factor) * mma.fragmentAlong(factor)) !=
        0)
      return invalid("mma: expected block tiles of whole fragments of %d rows "
                     "and %d columns for each of %lld and %lld warps along m "
                     "and n, but got %s",
                     int(mma.fragmentAlong(0)), int(mma.fragmentAlong(1)),
                     static_cast<long long>(mma.warpsM),
                     static_cast<long long>(mma.warpsN),
                     tileText(tile).c_str());
  unsigned columnFactor = mma.columnFactor(),
           columnAxis = axes.space(columnFactor);
  if (tile[columnAxis] / mma.warpsAlong(columnFactor) / kMmaColumns %
          mmaColumnStep(workload, mma) !=
      0)
    return invalid("mma: expected an even number of fragments of 8 elements "
                   "along axis %u, whose bytes are transposed, for each warp, "
                   "but got %s",
                   columnAxis, tileText(tile).c_str());
  if (llvm::Error error = checkBatchTiles(*this, axes, tile))
    return error;
  int64_t depth = kMmaFragmentBytes / elementBytesOf(workload);
  if (tile[axes.k] % depth != 0)
    return invalid("mma: expected a reduce tile that is a multiple of %lld, "
                   "but got %lld",
                   static_cast<long long>(depth),
                   static_cast<long long>(tile[axes.k]));
  return llvm::Error::success();
}

llvm::Error MmaModel::check(const Workload &workload,
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
  MmaSchedule mma = MmaSchedule::of(family.schedule);
  if (llvm::Error error = checkAccess(*this, mma.accessBytes))
    return error;
  bool isAsynchronous = this->isAsynchronous(workload, mma, device);
  if (mma.stages < 2 || (mma.stages > 2 && !isAsynchronous))
    return invalid("mma: expected %s pipeline stages for accesses of %lld "
                   "bytes on %s, but got %lld",
                   isAsynchronous ? "at least 2" : "exactly 2",
                   static_cast<long long>(mma.accessBytes), device.name.c_str(),
                   static_cast<long long>(mma.stages));
  if (mma.stages > kMaxStages)
    return invalid("mma: expected at most %d pipeline stages, but got %lld",
                   int(kMaxStages), static_cast<long long>(mma.stages));
  if (mma.warpsM < 1 || mma.warpsN < 1 || mma.warpsM > kMaxWarps ||
      mma.warpsN > kMaxWarps || mma.threads() > device.maxThreadsPerBlock)
    return invalid("mma: expected 1 to %d warps, but got %lld by %lld",
                   int(device.maxThreadsPerBlock / 32),
                   static_cast<long long>(mma.warpsM),
                   static_cast<long long>(mma.warpsN));
  for (unsigned part = 0; part < family.tiles.size(); ++part)
    if (llvm::Error error = checkPart(workload, family, part))
      return error;
  KernelResources needs = resources(workload, family);
  return checkBlockFits(*this, needs, device);
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

MmaSchedule MmaSchedule::of(const Schedule &schedule) {
  const auto &fields = schedule.fields();
  return {fields[0], fields[1], fields[2], fields[3], fields[4] != 0};
}

Schedule MmaSchedule::pack() const {
  return Schedule(mmaModel(),
                  {warpsM, warpsN, stages, accessBytes, swapOperands});
}

KernelFamily ftuner::mmaFamily(const MmaSchedule &schedule,
                               llvm::ArrayRef<int64_t> rows, int64_t columns,
                               int64_t depth, unsigned numAxes) {
  KernelFamily family;
  family.schedule = schedule.pack();
  auto [m, n, k] = family.contractionAxes();
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[m] = schedule.warpsM * height;
    tile[n] = schedule.warpsN * columns;
    tile[k] = depth;
  }
  return family;
}

const CodegenModel &ftuner::mmaModel() {
  static const MmaModel model;
  return model;
}
