//===- SimtModel.cpp - What the SIMT path can emit --------------*- C++ -*-===//
//
// Matrix products on the CUDA cores, one or a batch of them: accumulators of
// f32 or i32, factors of these or of narrower types.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionModel.h"
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

/// Steps of families without vectors beside those of the family that they come
/// from: less to copy in a step.
constexpr int64_t kScalarSteps[] = {16, 8};

/// Bytes of the widest elements.
constexpr int64_t kWidestElementBytes = 4;

template <typename... Args>
llvm::Error invalid(const char *format, Args... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}

/// Whether factors of the type are multiplied in the accumulator's type.
bool isFactorType(ElementType type, ElementType accumulator) {
  switch (type) {
  case ElementType::F32:
  case ElementType::F16:
  case ElementType::BF16:
    return accumulator == ElementType::F32;
  case ElementType::I32:
    return accumulator == ElementType::I32;
  case ElementType::I16:
  case ElementType::I8:
    return true;
  default:
    return false;
  }
}

/// Whether the epilogue reads and writes tensors of the type.
bool isTensorType(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F16 ||
         type == ElementType::BF16 || type == ElementType::I32 ||
         type == ElementType::I16 || type == ElementType::I8;
}

/// Whether the epilogue computes with the type: any integer, too.
bool isEpilogueType(ElementType type) {
  return isTensorType(type) || isInteger(type);
}

/// Accumulators of f32 or i32; everything else of types up to 32 bits, but for
/// scalars and what the epilogue makes of them.
llvm::Error checkTypes(const Workload &workload) {
  auto unexpected = [](const char *what, ElementType type) {
    return invalid("simt: expected %s, but got %s", what, nameOf(type).data());
  };
  ElementType accumulator = workload.accumulatorType();
  if (accumulator != ElementType::F32 && accumulator != ElementType::I32)
    return unexpected("an accumulator of f32 or i32", accumulator);
  for (const Operand &operand : workload.operands) {
    ElementType type = operand.elementType;
    bool isScalar = operand.axes.empty();
    if (operand.role == OperandRole::Lhs || operand.role == OperandRole::Rhs) {
      // Prologues end in what is multiplied, wherever they begin.
      if (hasPrologue(workload, operand.role == OperandRole::Rhs) &&
          isTensorType(type))
        continue;
      if (!isFactorType(type, accumulator))
        return unexpected(accumulator == ElementType::F32
                              ? "factors of f32, f16, bf16, i16 or i8"
                              : "factors of i32, i16 or i8",
                          type);
    } else if (isScalar ? !isEpilogueType(type) : !isTensorType(type)) {
      return unexpected(isScalar ? "scalars of f32, f16, bf16 or integers"
                                 : "elements of f32, f16, bf16, i32, i16 or i8",
                        type);
    }
  }
  for (const Operations &operations : epilogueOperations(workload))
    for (ElementType type : {operations.operandType, operations.resultType})
      if (!isEpilogueType(type))
        return unexpected("an epilogue of f32, f16, bf16 and integers", type);
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
    if (llvm::Error error = checkContractionLayout(*this, workload))
      return error;
    if (llvm::Error error = checkUnpacked(*this, workload))
      return error;
    if (llvm::Error error = checkPrologues(*this, workload))
      return error;
    return checkTypes(workload);
  }

  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<SimtSpace>(workload, device);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    return contractionUKernel(family, part, simt.threadsM, simt.threadsN);
  }

  int64_t threads(const KernelFamily &family) const override {
    return SimtSchedule::of(family.schedule).threads();
  }

  int64_t heightGranule(const KernelFamily &family) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    return family.combineAxis == family.contractionAxes().m ? simt.threadsM
                                                            : simt.threadsN;
  }

  int64_t alignment(const Schedule &schedule) const override {
    // Whatever the elements, for vectors of the widest.
    int64_t width = SimtSchedule::of(schedule).vectorWidth;
    return width == 1 ? 1 : kWidestElementBytes * width;
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
    unsigned k = family.contractionAxes().k;
    llvm::SmallVector<KernelFamily> variants = {withoutVectors(family)};
    for (int64_t step : kScalarSteps)
      if (step < variants.back().tiles.front()[k]) {
        KernelFamily variant = variants.back();
        for (BlockTile &tile : variant.tiles)
          tile[k] = step;
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
      most = std::max(most, partRegisters(layout) +
                                spillMargin(workload, family, tile, layout,
                                            simt.vectorWidth));
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
    bool isExact = isWhole(workload, tile, family.contractionAxes().k);
    SimtLayout layout = simtLayout(workload, tile, simt);
    SimtCode code;
    code.vectorWidth = simt.vectorWidth;
    code.isAsynchronous = simtCopiesAsynchronously(workload, device);
    code.isReduceExact = isExact;
    for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs}) {
      const Operand &factor = *workload.find(role);
      unsigned number = role == OperandRole::Rhs;
      code.elementBytes[number] = factor.elementBytes;
      code.isConverted[number] =
          factor.elementType != workload.accumulatorType();
      code.prologues[number] = prologueWork(workload, number, simt.vectorWidth);
    }
    BlockWork work = simtWork(layout, code);
    work.registersPerThread = static_cast<double>(
        std::min(expectedRegisters(workload, family, tile, layout),
                 device.registersPerThreadOf(layout.threads())));
    return work;
  }

  /// As many as leave a kernel with wide accesses the registers with which it
  /// does not spill. Of those with accesses of single elements the estimate is
  /// too far off.
  int64_t minBlocksPerSm(const Workload &workload, const KernelFamily &family,
                         const DeviceSpec &device) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    if (simt.vectorWidth == 1)
      return 1;
    int64_t registers = 0;
    for (const BlockTile &tile : family.tiles)
      registers = std::max(registers,
                           expectedRegisters(workload, family, tile,
                                             simtLayout(workload, tile, simt)));
    KernelResources needed = resources(workload, family);
    return device.blocksPerSm(needed.threads, registers,
                              needed.sharedMemoryBytes);
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

  /// Registers of a part as the model expects them: more than the kernel needs,
  /// since ptxas moves loads ahead and keeps addresses, of each slot where they
  /// are many. Of random kernels that ask for no blocks it tells the blocks of
  /// an SM right for two in three (benchmarks/register_model/results.md).
  static int64_t expectedRegisters(const Workload &workload,
                                   const KernelFamily &family,
                                   const BlockTile &tile,
                                   const SimtLayout &layout) {
    int64_t vectorWidth = SimtSchedule::of(family.schedule).vectorWidth;
    int64_t expected =
        layout.rm * layout.rn + restRegisters(layout) + kSpareRegisters;
    if (vectorWidth == 1 ||
        !isWhole(workload, tile, family.contractionAxes().k))
      expected += layout.copySlots(vectorWidth) / 2;
    if (vectorWidth == 1)
      return expected;
    // What the kernel asks for (minBlocksPerSm). With 96 to 168 registers ptxas
    // spills sooner than near the limit of a thread, the more quads the sooner.
    return std::max(
        expected, partRegisters(layout) +
                      spillMargin(workload, family, tile, layout, vectorWidth) +
                      fragmentQuads(layout));
  }

  /// Estimate of the registers of a thread of one part.
  static int64_t partRegisters(const SimtLayout &layout) {
    // Two stages may also be staged through registers below sm_80.
    int64_t staged = layout.stages == 2
                         ? ceilDiv(layout.stageElements(), layout.threads())
                         : 0;
    return layout.rm * layout.rn + staged + restRegisters(layout);
  }

  static int64_t spillMargin(const Workload &workload,
                             const KernelFamily &family, const BlockTile &tile,
                             const SimtLayout &layout, int64_t vectorWidth);

  llvm::Error checkPart(const Workload &workload, const KernelFamily &family,
                        unsigned part) const;
};

/// By how many registers ptxas may exceed the estimate for a part without
/// spilling. What ptxas keeps and the estimate leaves out are addresses of
/// copies, of each slot that lies at no constant distance from the one before:
/// where rows are clamped to an extent that has no whole tiles, where slots are
/// no whole rows (in shared memory too, where it is swizzled), and those that a
/// condition on the reduce axis belongs to. Of scalars it keeps others too.
/// Fitted to random kernels for sm_75 to sm_100 with ptxas 13.0
/// (benchmarks/register_model, which prints what it refuses).
int64_t SimtModel::spillMargin(const Workload &workload,
                               const KernelFamily &family,
                               const BlockTile &tile, const SimtLayout &layout,
                               int64_t vectorWidth) {
  ContractionView view(workload);
  int64_t margin = 20;
  int64_t quads = fragmentQuads(layout);
  if (quads > kMostQuadsAtOnce)
    margin += quads * kQuad / 2;
  // Of slices of k and of batches, whose places each tile works out, ptxas
  // reads all quads ahead where neither k nor n has a rest: it spilled 4 bytes
  // of kernels with 18 and 19 of them that had room for 35 and 21 registers
  // more.
  bool isOneOfMany = (family.reduceSplit > 1 || !view.batchAxes().empty()) &&
                     isWhole(workload, tile, view.k) &&
                     isWhole(workload, tile, view.n);
  if (quads > kMostQuadsAtOnce && isOneOfMany)
    margin += quads * kQuad / 2;
  bool isScalar = vectorWidth == 1;
  auto addCopies = [&](const SharedTile &shared, unsigned axis) {
    int64_t ofSlot = isScalar ? 3 : 0;
    if (!isScalar && !isWhole(workload, tile, view.k))
      ofSlot += 2;
    if (!isWhole(workload, tile, axis))
      ofSlot += isScalar ? 1 : 2;
    if (!copiesWholeRows(shared, layout.threads(), vectorWidth))
      ofSlot += shared.swizzle > 1 ? 4 : 3;
    margin += ofSlot * shared.copySlots(layout.threads(), vectorWidth);
  };
  addCopies(layout.lhs, view.m);
  addCopies(layout.rhs, view.n);
  for (unsigned factor : {0, 1})
    margin += prologueWork(workload, factor, vectorWidth).registers *
              (factor == 0 ? layout.lhs : layout.rhs)
                  .copySlots(layout.threads(), vectorWidth);
  return margin;
}

llvm::Error SimtModel::checkPart(const Workload &workload,
                                 const KernelFamily &family,
                                 unsigned part) const {
  SimtSchedule simt = SimtSchedule::of(family.schedule);
  const BlockTile &tile = family.tiles[part];
  ContractionAxes axes = family.contractionAxes();
  if (tile[axes.m] % simt.threadsM != 0 || tile[axes.n] % simt.threadsN != 0)
    return invalid("simt: expected block tiles that are multiples of the "
                   "threads along m and n, %lld and %lld, but got %s",
                   static_cast<long long>(simt.threadsM),
                   static_cast<long long>(simt.threadsN),
                   tileText(tile).c_str());
  if (llvm::Error error = checkBatchTiles(*this, axes, tile))
    return error;
  int64_t bk = tile[axes.k];
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
  if (tile[axes.n] / simt.threadsN % 4 != 0)
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
  if (llvm::Error error =
          checkContractionFamily(*this, family, family.contractionAxes().m))
    return error;
  SimtSchedule simt = SimtSchedule::of(family.schedule);
  if (simt.vectorWidth != 1 && simt.vectorWidth != 4)
    return invalid("simt: expected a vector width of 1 or 4, but got %lld",
                   static_cast<long long>(simt.vectorWidth));
  bool isAsynchronous = simtCopiesAsynchronously(workload, device);
  if (simt.stages < 2 || (simt.stages > 2 && !isAsynchronous))
    return invalid("simt: expected %s pipeline stages%s on %s, but got %lld",
                   isAsynchronous ? "at least 2" : "exactly 2",
                   isAsynchronous || !device.hasAsyncCopy()
                       ? ""
                       : " for factors that are cast",
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
  return checkBlockFits(*this, needs, device);
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
  auto [m, n, k] = family.contractionAxes();
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[m] = schedule.threadsM * height;
    tile[n] = schedule.threadsN * columns;
    tile[k] = depth;
  }
  return family;
}

const CodegenModel &ftuner::simtModel() {
  static const SimtModel model;
  return model;
}
