//===- SimtModel.cpp - What the SIMT path can emit --------------*- C++ -*-===//
//
// f32 matrix products on the CUDA cores, one or a batch of them.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/CodegenModel.h"
#include "FTuner/Codegen/SimtLayout.h"
#include "SimtAddresses.h"
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

template <typename... Args>
llvm::Error invalid(const char *format, Args... args) {
  return llvm::createStringError(std::errc::invalid_argument, format, args...);
}

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

  TileGranules granules(const Workload &workload,
                        const DeviceSpec &device) const override {
    TileGranules granules;
    granules.registerTiles.resize(2);
    for (int64_t rows = 1; rows <= 16; ++rows)
      granules.registerTiles[Workload::kM].push_back(rows);
    granules.registerTiles[Workload::kN] = {1, 2, 4, 8};
    // Measured with ptxas 13.0 on sm_75 to sm_90, alone and in pairs: 14 × 8
    // never spills, but where the right operand is contiguous along the reduce
    // axis, though 255 registers should hold it. There 13 × 8 spills in steps
    // of 32, 12 × 8 may (8 bytes on sm_86), and 11 × 8 was not seen to.
    bool isRhsReduceContiguous =
        workload.find(OperandRole::Rhs)->contiguousAxis() == Workload::kK;
    granules.maxAccumulators = isRhsReduceContiguous ? 88 : 112;
    granules.reduceGranule = 8;
    granules.maxReduceTile = 32;
    granules.stages = device.hasAsyncCopy()
                          ? llvm::SmallVector<int64_t>{2, 3, 4}
                          : llvm::SmallVector<int64_t>{2};
    granules.combineAxes = {Workload::kM};
    return granules;
  }

  int64_t restRegisters(const Workload &workload,
                        const UKernel &ukernel) const override {
    return restRegisters(simtLayout(workload, ukernel, 2));
  }

  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    int64_t most = 0;
    for (const UKernel &part : family.parts) {
      SimtLayout layout = simtLayout(workload, part, family.stages);
      most = std::max(
          most, partRegisters(layout) +
                    spillMargin(workload, part, layout, family.vectorWidth));
    }
    return most;
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    KernelResources resources;
    resources.threads = family.threads();
    for (const UKernel &part : family.parts) {
      SimtLayout layout = simtLayout(workload, part, family.stages);
      resources.registersPerThread =
          std::max(resources.registersPerThread, partRegisters(layout));
      resources.sharedMemoryBytes =
          std::max(resources.sharedMemoryBytes, layout.sharedMemoryBytes());
    }
    return resources;
  }

  BlockWork work(const Workload &workload, const UKernel &part,
                 const KernelFamily &family,
                 const DeviceSpec &device) const override {
    bool isExact = isWhole(workload, part, Workload::kK);
    SimtLayout layout = simtLayout(workload, part, family.stages);
    BlockWork work =
        simtWork(layout, family.vectorWidth, device.hasAsyncCopy(), isExact);
    // Where nothing asks for few, ptxas takes more than the kernel needs: it
    // moves loads ahead and keeps addresses, of each slot where they are many.
    // Of random kernels it tells the blocks of an SM right for two in three
    // (benchmarks/register_model/results.md).
    int64_t taken =
        layout.rm * layout.rn + restRegisters(layout) + kSpareRegisters;
    if (family.vectorWidth == 1 || !isExact)
      taken += layout.copySlots(family.vectorWidth) / 2;
    work.registersPerThread = static_cast<double>(
        std::min(taken, device.registersPerThreadOf(layout.threads())));
    return work;
  }

  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

  int64_t vectorWidth(const Workload &workload,
                      llvm::ArrayRef<int64_t> shape) const override {
    for (const Operand &operand : workload.operands)
      if (auto axis = operand.contiguousAxis();
          axis && isVectorAccess(operand) && shape[*axis] % 4 != 0)
        return 1;
    return 4;
  }

  int64_t guaranteedVectorWidth(const Workload &workload) const override {
    for (const Operand &operand : workload.operands)
      if (auto axis = operand.contiguousAxis();
          axis && isVectorAccess(operand)) {
        const SizeRange &range = workload.axes[*axis].range;
        if (range.min % 4 != 0 || (!range.isFixed() && range.step % 4 != 0))
          return 1;
      }
    return 4;
  }

private:
  /// Whether an axis has nothing but whole tiles.
  static bool isWhole(const Workload &workload, const UKernel &part,
                      unsigned axis) {
    const SizeRange &range = workload.axes[axis].range;
    return range.isFixed() && range.min % part.smemTile[axis] == 0;
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

  static int64_t spillMargin(const Workload &workload, const UKernel &part,
                             const SimtLayout &layout, int64_t vectorWidth);

  /// Operands of the epilogue move in vectors only along n.
  static bool isVectorAccess(const Operand &operand) {
    return operand.role == OperandRole::Lhs ||
           operand.role == OperandRole::Rhs ||
           operand.contiguousAxis() == Workload::kN;
  }

  static llvm::Error checkPart(const Workload &workload, const UKernel &part,
                               const KernelFamily &family);
};

/// By how many registers ptxas may exceed the estimate for a part without
/// spilling. What ptxas keeps and the estimate leaves out are addresses of
/// copies, of each slot that lies at no constant distance from the one before:
/// where rows are clamped to an extent that has no whole tiles, where slots are
/// no whole rows (in shared memory too, where it is swizzled), and those that a
/// condition on the reduce axis belongs to. Of scalars it keeps others too.
/// Fitted to random kernels for sm_75 to sm_100 with ptxas 13.0
/// (benchmarks/register_model, which prints what it refuses).
int64_t SimtModel::spillMargin(const Workload &workload, const UKernel &part,
                               const SimtLayout &layout, int64_t vectorWidth) {
  int64_t margin = 20;
  int64_t quads = fragmentQuads(layout);
  if (quads > kMostQuadsAtOnce)
    margin += quads * kQuad / 2;
  bool isScalar = vectorWidth == 1;
  auto addCopies = [&](const SharedTile &tile, unsigned axis) {
    int64_t ofSlot = isScalar ? 3 : 0;
    if (!isScalar && !isWhole(workload, part, Workload::kK))
      ofSlot += 2;
    if (!isWhole(workload, part, axis))
      ofSlot += isScalar ? 1 : 2;
    if (!copiesWholeRows(tile, layout.threads(), vectorWidth))
      ofSlot += tile.swizzle > 1 ? 4 : 3;
    margin += ofSlot * layout.copySlots(tile, vectorWidth);
  };
  addCopies(layout.lhs, Workload::kM);
  addCopies(layout.rhs, Workload::kN);
  return margin;
}

llvm::Error SimtModel::checkPart(const Workload &workload, const UKernel &part,
                                 const KernelFamily &family) {
  size_t numAxes = workload.axes.size();
  if (part.smemTile.size() != numAxes || part.regTile.size() != numAxes)
    return invalid("simt: expected tiles of %u axes, but got %s",
                   static_cast<unsigned>(numAxes), part.str().c_str());
  for (unsigned axis = Workload::kFirstBatch; axis < numAxes; ++axis)
    if (part.smemTile[axis] != 1)
      return invalid("simt: expected tiles of 1 on batch axes, but got %s",
                     part.str().c_str());
  for (unsigned axis = 0; axis < numAxes; ++axis)
    if (part.smemTile[axis] < 1 || part.regTile[axis] < 1 ||
        part.smemTile[axis] % part.regTile[axis] != 0)
      return invalid("simt: expected block tiles that are multiples of "
                     "positive register tiles, but got %s",
                     part.str().c_str());
  if (part.regTile[Workload::kK] != 1 || part.reduceSplit != 1)
    return invalid("simt: expected a register tile of 1 on the reduce axis and "
                   "no split, but got %s",
                   part.str().c_str());
  int64_t bk = part.smemTile[Workload::kK];
  if (bk % 4 != 0)
    return invalid("simt: expected a reduce tile that is a multiple of 4, but "
                   "got %d",
                   static_cast<int>(bk));
  if (family.vectorWidth == 1)
    return llvm::Error::success();
  for (const Operand &operand : workload.operands)
    if (auto axis = operand.contiguousAxis();
        axis && isVectorAccess(operand) && part.smemTile[*axis] % 4 != 0)
      return invalid("simt: expected tiles of contiguous axes to be multiples "
                     "of the vector width, but got %s",
                     part.str().c_str());
  if (part.regTile[Workload::kN] % 4 != 0)
    return invalid("simt: expected register tiles along n to be multiples of "
                   "the vector width, but got %s",
                   part.str().c_str());
  return llvm::Error::success();
}

llvm::Error SimtModel::check(const Workload &workload,
                             const KernelFamily &family,
                             const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (family.parts.empty() || family.parts.size() > 2)
    return invalid("simt: expected one or two parts, but got %d",
                   static_cast<int>(family.parts.size()));
  if (family.combineAxis != Workload::kM)
    return invalid("simt: expected parts along axis 0, but got %u",
                   family.combineAxis);
  if (family.vectorWidth != 1 && family.vectorWidth != 4)
    return invalid("simt: expected a vector width of 1 or 4, but got %d",
                   static_cast<int>(family.vectorWidth));
  if (family.stages < 2 || (family.stages > 2 && !device.hasAsyncCopy()))
    return invalid("simt: expected %s pipeline stages on %s, but got %d",
                   device.hasAsyncCopy() ? "at least 2" : "exactly 2",
                   device.name.c_str(), static_cast<int>(family.stages));
  if (family.stages > kMaxStages)
    return invalid("simt: expected at most %d pipeline stages, but got %lld",
                   static_cast<int>(kMaxStages),
                   static_cast<long long>(family.stages));
  for (const UKernel &part : family.parts)
    if (llvm::Error error = checkPart(workload, part, family))
      return error;
  if (family.parts.size() == 2) {
    const UKernel &a = family.parts[0], &b = family.parts[1];
    bool sameLayout =
        a.threadsAlong(Workload::kM) == b.threadsAlong(Workload::kM) &&
        a.regTile[Workload::kM] < b.regTile[Workload::kM] &&
        a.smemTile[Workload::kN] == b.smemTile[Workload::kN] &&
        a.regTile[Workload::kN] == b.regTile[Workload::kN] &&
        a.smemTile[Workload::kK] == b.smemTile[Workload::kK];
    if (!sameLayout)
      return invalid("simt: expected heights g·a and g·b, a < b, of one thread "
                     "layout, but got %s",
                     family.str().c_str());
  }
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

namespace ftuner {
const CodegenModel &simtModel() {
  static const SimtModel model;
  return model;
}
} // namespace ftuner
