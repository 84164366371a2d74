//===- SimtModel.cpp - What the SIMT path can emit --------------*- C++ -*-===//
//
// f32 matrix products on the CUDA cores, one or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "SimtAddresses.h"
#include "SimtSpace.h"
#include "SimtWork.h"

#include <algorithm>

using namespace ftuner;

namespace {

/// Registers for addresses, predicates and loop state beside fragments and
/// staged copies; ptxas reports 18 to 30 for the emitted kernels.
constexpr int64_t kAddressRegisters = 28;

/// Quads of operands in registers that are all alive at once.
constexpr int64_t kMostQuadsAtOnce = 16;

/// Registers that ptxas takes beyond what a kernel needs.
constexpr int64_t kSpareRegisters = 24;

/// Most pipeline stages: more than shared memory holds, so that sums of their
/// bytes do not overflow.
constexpr int64_t kMaxStages = 1024;

/// Most batch axes behind m, n and k.
constexpr unsigned kMaxBatchAxes = 3;

/// Steps of families without vectors beside those of the family that they come
/// from: less to copy in a step.
constexpr int64_t kScalarSteps[] = {16, 8};

template <typename... Args>
llvm::Error invalid(const char *format, Args... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}

/// Bytes of an element; supports() refuses others.
constexpr int64_t kElementBytes = 4;
/// f32 but for scalars of the epilogue, which come in registers, and what it
/// makes of them: these may be integers, too.
llvm::Error checkTypes(const Workload &workload) {
  auto unexpected = [](const char *what, ElementType type) {
    return invalid("simt: expected %s, but got %s", what, nameOf(type).data());
  };
  for (const Operand &operand : workload.operands) {
    ElementType type = operand.elementType;
    bool isScalar = operand.role == OperandRole::Extra && operand.axes.empty();
    if (isScalar && type != ElementType::F32 && !isInteger(type))
      return unexpected("scalars of f32 or integers", type);
    if (!isScalar && type != ElementType::F32)
      return unexpected("elements of f32", type);
  }
  if (workload.accumulatorType != ElementType::F32)
    return unexpected("an accumulator of f32", workload.accumulatorType);
  for (const Operations &operations : workload.epilogue)
    for (ElementType type : {operations.operandType, operations.resultType})
      if (type != ElementType::F32 && !isInteger(type))
        return unexpected("an epilogue of f32 and integers", type);
  return llvm::Error::success();
}

class SimtModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "simt"; }

  llvm::ArrayRef<llvm::StringLiteral> scheduleFields() const override {
    static constexpr llvm::StringLiteral names[] = {"threads_m", "threads_n",
                                                    "stages", "vector_width"};
    return names;
  }

  std::string str(const Schedule &schedule) const override {
    SimtSchedule simt = SimtSchedule::of(schedule);
    return "stages " + std::to_string(simt.stages) + " vector " +
           std::to_string(simt.vectorWidth);
  }

  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override {
    if (llvm::Error error = workload.checkContraction())
      return invalid("simt: %s", llvm::toString(std::move(error)).c_str());
    if (workload.axes.size() > Workload::kFirstBatch + kMaxBatchAxes)
      return invalid("simt: expected up to %u batch axes", kMaxBatchAxes);
    auto isContiguous = [&](OperandRole role, unsigned axis, unsigned other) {
      const Operand *operand = workload.find(role);
      return operand && (operand->contiguousAxis() == axis ||
                         operand->contiguousAxis() == other);
    };
    if (!isContiguous(OperandRole::Lhs, Workload::kM, Workload::kK) ||
        !isContiguous(OperandRole::Rhs, Workload::kN, Workload::kK) ||
        !isContiguous(OperandRole::Output, Workload::kN, Workload::kN))
      return invalid(
          "simt: expected an lhs that is contiguous along m or k, an "
          "rhs along n or k, and an output that is contiguous along "
          "n");
    return checkTypes(workload);
  }

  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<SimtSpace>(workload, device);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    // Messages show families that cannot be emitted, too.
    simt.threadsM = std::max<int64_t>(simt.threadsM, 1);
    simt.threadsN = std::max<int64_t>(simt.threadsN, 1);
    UKernel ukernel;
    ukernel.blockTile = family.tiles[part];
    ukernel.registerTile.assign(ukernel.blockTile.size(), 1);
    ukernel.registerTile[Workload::kM] = simt.rowsOf(ukernel.blockTile);
    ukernel.registerTile[Workload::kN] = simt.columnsOf(ukernel.blockTile);
    ukernel.workers = simt.threads();
    ukernel.reduceSplit = family.reduceSplit;
    return ukernel;
  }

  int64_t threads(const KernelFamily &family) const override {
    return SimtSchedule::of(family.schedule).threads();
  }

  int64_t heightGranule(const KernelFamily &family) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    return family.combineAxis == Workload::kM ? simt.threadsM : simt.threadsN;
  }

  int64_t alignment(const Schedule &schedule) const override {
    return kElementBytes * SimtSchedule::of(schedule).vectorWidth;
  }

  bool takesAnyAlignment(const Schedule &schedule) const override {
    return SimtSchedule::of(schedule).vectorWidth == 1;
  }

  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    if (this->alignment(family.schedule) <= alignment)
      return family;
    return withoutVectors(family);
  }

  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    llvm::SmallVector<KernelFamily> variants = {withoutVectors(family)};
    for (int64_t step : kScalarSteps)
      if (step < variants.back().tiles.front()[Workload::kK]) {
        KernelFamily variant = variants.back();
        for (BlockTile &tile : variant.tiles)
          tile[Workload::kK] = step;
        variants.push_back(std::move(variant));
      }
    return variants;
  }

  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    int64_t most = 0;
    for (const BlockTile &tile : family.tiles) {
      SimtLayout layout = simtLayout(workload, tile, simt);
      most = std::max(
          most, partRegisters(layout) +
                    spillMargin(workload, tile, layout, simt.vectorWidth));
    }
    return most;
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    KernelResources resources;
    resources.threads = simt.threads();
    for (const BlockTile &tile : family.tiles) {
      SimtLayout layout = simtLayout(workload, tile, simt);
      resources.registersPerThread =
          std::max(resources.registersPerThread, partRegisters(layout));
      resources.sharedMemoryBytes =
          std::max(resources.sharedMemoryBytes, layout.sharedMemoryBytes());
    }
    return resources;
  }

  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    const BlockTile &tile = family.tiles[part];
    bool isExact = isWhole(workload, tile, Workload::kK);
    SimtLayout layout = simtLayout(workload, tile, simt);
    BlockWork work =
        simtWork(layout, simt.vectorWidth, device.hasAsyncCopy(), isExact);
    // Where nothing asks for few, ptxas takes more than the kernel needs: it
    // moves loads ahead and keeps addresses, of each slot where they are many.
    // Of random kernels it tells the blocks of an SM right for two in three
    // (benchmarks/register_model/results.md).
    int64_t taken =
        layout.rm * layout.rn + restRegisters(layout) + kSpareRegisters;
    if (simt.vectorWidth == 1 || !isExact)
      taken += layout.copySlots(simt.vectorWidth) / 2;
    work.registersPerThread = static_cast<double>(
        std::min(taken, device.registersPerThreadOf(layout.threads())));
    return work;
  }

  double peakFlops(const Workload &workload,
                   const DeviceSpec &device) const override {
    return device.fp32Tflops * 1e12;
  }

  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

private:
  /// The family with accesses of single elements.
  static KernelFamily withoutVectors(KernelFamily family) {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    simt.vectorWidth = 1;
    family.schedule = simt.pack();
    return family;
  }

  /// Whether an axis has nothing but whole tiles.
  static bool isWhole(const Workload &workload, const BlockTile &tile,
                      unsigned axis) {
    const SizeRange &range = workload.axes[axis].range;
    return range.isFixed() && range.min % tile[axis] == 0;
  }

  /// Rows and columns of a thread that are read by quads along the reduce axis.
  static int64_t fragmentQuads(const SimtLayout &layout) {
    return (layout.lhs.reduceContiguous ? layout.rm : 0) +
           (layout.rhs.reduceContiguous ? layout.rn : 0);
  }

  static int64_t restRegisters(const SimtLayout &layout) {
    int64_t quads = fragmentQuads(layout);
    int64_t scalars = layout.rm + layout.rn - quads;
    // Of many quads about half are alive at once: those of n come chunk by
    // chunk, and ptxas reads them late.
    return kAddressRegisters + scalars +
           quads * (quads <= kMostQuadsAtOnce ? kQuad : kQuad / 2);
  }

  /// Estimate of the registers of a thread of one part.
  static int64_t partRegisters(const SimtLayout &layout) {
    // Two stages may also be staged through registers below sm_80.
    int64_t staged = layout.stages == 2
                         ? ceilDiv(layout.stageElements(), layout.threads())
                         : 0;
    return layout.rm * layout.rn + staged + restRegisters(layout);
  }

  static int64_t spillMargin(const Workload &workload, const BlockTile &tile,
                             const SimtLayout &layout, int64_t vectorWidth);

  static llvm::Error checkPart(const Workload &workload,
                               const KernelFamily &family, unsigned part);
};

/// By how many registers ptxas may exceed the estimate for a part without
/// spilling. What ptxas keeps and the estimate leaves out are addresses of
/// copies, of each slot that lies at no constant distance from the one before:
/// where rows are clamped to an extent that has no whole tiles, where slots are
/// no whole rows (in shared memory too, where it is swizzled), and those that a
/// condition on the reduce axis belongs to. Of scalars it keeps others too.
/// Fitted to random kernels for sm_75 to sm_100 with ptxas 13.0
/// (benchmarks/register_model, which prints what it refuses).
int64_t SimtModel::spillMargin(const Workload &workload, const BlockTile &tile,
                               const SimtLayout &layout, int64_t vectorWidth) {
  int64_t margin = 20;
  int64_t quads = fragmentQuads(layout);
  if (quads > kMostQuadsAtOnce)
    margin += quads * kQuad / 2;
  bool isScalar = vectorWidth == 1;
  auto addCopies = [&](const SharedTile &shared, unsigned axis) {
    int64_t ofSlot = isScalar ? 3 : 0;
    if (!isScalar && !isWhole(workload, tile, Workload::kK))
      ofSlot += 2;
    if (!isWhole(workload, tile, axis))
      ofSlot += isScalar ? 1 : 2;
    if (!copiesWholeRows(shared, layout.threads(), vectorWidth))
      ofSlot += shared.swizzle > 1 ? 4 : 3;
    margin += ofSlot * shared.copySlots(layout.threads(), vectorWidth);
  };
  addCopies(layout.lhs, Workload::kM);
  addCopies(layout.rhs, Workload::kN);
  return margin;
}

llvm::Error SimtModel::checkPart(const Workload &workload,
                                 const KernelFamily &family, unsigned part) {
  SimtSchedule simt = SimtSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles[part];
  if (tile[Workload::kM] % simt.threadsM != 0 ||
      tile[Workload::kN] % simt.threadsN != 0)
    return invalid("simt: expected block tiles that are multiples of the "
                   "threads along m and n, %lld and %lld, but got %s",
                   static_cast<long long>(simt.threadsM),
                   static_cast<long long>(simt.threadsN),
                   tileText(tile).c_str());
  for (unsigned axis = Workload::kFirstBatch; axis < tile.size(); ++axis)
    if (tile[axis] != 1)
      return invalid("simt: expected tiles of 1 on batch axes, but got %s",
                     tileText(tile).c_str());
  int64_t bk = tile[Workload::kK];
  if (bk % 4 != 0)
    return invalid("simt: expected a reduce tile that is a multiple of 4, but "
                   "got %d",
                   static_cast<int>(bk));
  if (simt.vectorWidth == 1)
    return llvm::Error::success();
  for (const Operand &operand : workload.operands)
    if (isVectorAccess(workload, operand) &&
        tile[*operand.contiguousAxis()] % 4 != 0)
      return invalid("simt: expected tiles of contiguous axes to be multiples "
                     "of the vector width, but got %s",
                     family.ukernel(part).str().c_str());
  if (simt.columnsOf(tile) % 4 != 0)
    return invalid("simt: expected register tiles along n to be multiples of "
                   "the vector width, but got %s",
                   family.ukernel(part).str().c_str());
  return llvm::Error::success();
}

llvm::Error SimtModel::check(const Workload &workload,
                             const KernelFamily &family,
                             const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  if (family.combineAxis != Workload::kM)
    return invalid("simt: expected parts along axis 0, but got %u",
                   family.combineAxis);
  if (family.reduceSplit != 1)
    return invalid("simt: expected no split-K, but got a split-K factor of "
                   "%lld",
                   static_cast<long long>(family.reduceSplit));
  SimtSchedule simt = SimtSchedule::of(family.schedule);
  if (simt.vectorWidth != 1 && simt.vectorWidth != 4)
    return invalid("simt: expected a vector width of 1 or 4, but got %lld",
                   static_cast<long long>(simt.vectorWidth));
  if (simt.stages < 2 || (simt.stages > 2 && !device.hasAsyncCopy()))
    return invalid("simt: expected %s pipeline stages on %s, but got %lld",
                   device.hasAsyncCopy() ? "at least 2" : "exactly 2",
                   device.name.c_str(), static_cast<long long>(simt.stages));
  if (simt.stages > kMaxStages)
    return invalid("simt: expected at most %d pipeline stages, but got %lld",
                   static_cast<int>(kMaxStages),
                   static_cast<long long>(simt.stages));
  if (simt.threadsM < 1 || simt.threadsN < 1 ||
      simt.threadsM > device.maxThreadsPerBlock ||
      simt.threadsN > device.maxThreadsPerBlock)
    return invalid("simt: expected 1 to %d threads along m and n, but got "
                   "%lld and %lld",
                   static_cast<int>(device.maxThreadsPerBlock),
                   static_cast<long long>(simt.threadsM),
                   static_cast<long long>(simt.threadsN));
  for (unsigned part = 0; part < family.tiles.size(); ++part)
    if (llvm::Error error = checkPart(workload, family, part))
      return error;
  KernelResources needs = resources(workload, family);
  if (needs.threads % 32 != 0 || needs.threads > device.maxThreadsPerBlock)
    return invalid("simt: expected a multiple of 32 threads, at most %d, but "
                   "got %d",
                   static_cast<int>(device.maxThreadsPerBlock),
                   static_cast<int>(needs.threads));
  if (needs.sharedMemoryBytes > device.sharedMemoryPerBlockBytes)
    return invalid("simt: expected at most %d bytes of shared memory, but got "
                   "%d",
                   static_cast<int>(device.sharedMemoryPerBlockBytes),
                   static_cast<int>(needs.sharedMemoryBytes));
  int64_t registerLimit = std::min(device.maxRegistersPerThread,
                                   device.registersPerSm / needs.threads);
  if (needs.registersPerThread > registerLimit)
    return invalid("simt: expected at most %d registers per thread, but got %d",
                   static_cast<int>(registerLimit),
                   static_cast<int>(needs.registersPerThread));
  return llvm::Error::success();
}

} // namespace

SimtSchedule SimtSchedule::of(const Schedule &schedule) {
  const auto &fields = schedule.fields();
  return {fields[0], fields[1], fields[2], fields[3]};
}

Schedule SimtSchedule::pack() const {
  return Schedule(simtModel(), {threadsM, threadsN, stages, vectorWidth});
}

KernelFamily ftuner::simtFamily(const SimtSchedule &schedule,
                                llvm::ArrayRef<int64_t> rows, int64_t columns,
                                int64_t depth, unsigned numAxes) {
  KernelFamily family;
  family.schedule = schedule.pack();
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[Workload::kM] = schedule.threadsM * height;
    tile[Workload::kN] = schedule.threadsN * columns;
    tile[Workload::kK] = depth;
  }
  return family;
}

const CodegenModel &ftuner::simtModel() {
  static const SimtModel model;
  return model;
}
