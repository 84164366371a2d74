//===- SimtModel.cpp - What the SIMT path can emit --------------*- C++ -*-===//
//
// Matrix products on the CUDA cores, one or a batch of them: accumulators of
// f32 or i32, factors of these or of narrower types.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/ContractionPathModel.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Schedule/Alignment.h"
#include "SimtAddresses.h"
#include "SimtSpace.h"
#include "SimtWork.h"

#include <algorithm>

using namespace ftuner;

namespace {

/// Registers for addresses, predicates and loop state beside fragments and
/// staged copies; ptxas reports 18 to 30 for the emitted kernels.
constexpr int64_t kAddressRegisters = 28;

/// Most registers that a thread has.
constexpr int64_t kMostRegisters = 255;

/// Quads of operands in registers that are all alive at once.
constexpr int64_t kMostQuadsAtOnce = 16;

/// Registers that ptxas takes beyond what a kernel needs.
constexpr int64_t kSpareRegisters = 24;

/// Elements of the widest vector.
constexpr int64_t kWidestVector = 4;

/// Steps of families without vectors beside those of the family that they come
/// from: less to copy in a step.
constexpr int64_t kScalarSteps[] = {16, 8};

/// Bounds of the blocks with slices of k that the path suggests: the most
/// threads, the most elements of a step along k, and the least of a slice.
/// Threads have columns that whole vectors hold.
constexpr int64_t kMostSlicedThreads = 512, kMostSlicedDepth = 256,
                  kLeastSliceDepth = 8;

/// Registers for addresses of a slice of k.
constexpr int64_t kSliceRegisters = 12;

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

class SimtModel final : public ContractionPathModel<SimtSchedule, SimtSpace> {
public:
  llvm::StringRef name() const override { return "simt"; }

  const ScheduleTable &scheduleTable() const override {
    static constexpr ScheduleTable table = {"products on the CUDA cores",
                                            "the threads along m and n",
                                            fieldsOf<SimtSchedule>,
                                            {}};
    return table;
  }

  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    unsigned k = family.contractionAxes().k;
    llvm::SmallVector<KernelFamily> variants = {withAlignment(family, 1)};
    int64_t slices = SimtSchedule::of(family.schedule).threadsK;
    for (int64_t step : kScalarSteps)
      if (step * slices < variants.back().tiles.front()[k]) {
        KernelFamily variant = variants.back();
        for (BlockTile &tile : variant.tiles)
          tile[k] = step * slices;
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
          {most,
           partRegisters(layout) +
               spillMargin(workload, family, tile, layout, simt.vectorWidth),
           straightRegisters(workload, family, tile, layout)});
    }
    return most;
  }

  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    const BlockTile &tile = family.tiles[part];
    bool isExact = isWhole(workload, tile, family.contractionAxes().k);
    SimtLayout layout = simtLayout(workload, tile, simt);
    SimtCode code;
    code.isAsynchronous = simtCopiesAsynchronously(workload, device);
    code.isReduceExact = isExact;
    for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs}) {
      const Operand &factor = *workload.find(role);
      unsigned number = role == OperandRole::Rhs;
      code.elementBytes[number] = factor.elementBytes;
      code.isConverted[number] =
          factor.elementType != workload.accumulatorType();
      code.prologues[number] =
          prologueWork(workload, number, layout.copyWidths[number]);
      code.windowInstructions[number] =
          windowWork(workload, number, layout.factor(number), layout.threads(),
                     layout.copyWidths[number])
              .instructions;
    }
    BlockWork work = simtWork(layout, code);
    work.registersPerThread = static_cast<double>(
        std::min(expectedRegisters(workload, family, tile, layout),
                 device.registersPerThreadOf(layout.threads())));
    return work;
  }

  ContractionLoops contractionLoops(const Workload &workload,
                                    const KernelFamily &family, unsigned part,
                                    const DeviceSpec &device) const override;

  std::optional<Schedule>
  withVirtualThreads(const Schedule &schedule,
                     std::array<int64_t, 2> strips) const override {
    auto simt = SimtSchedule::of(schedule);
    simt.virtualThreadsM = strips[0];
    simt.virtualThreadsN = strips[1];
    return simt.pack();
  }

  llvm::SmallVector<KernelFamily>
  slicedVariants(const KernelFamily &family) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    unsigned k = family.contractionAxes().k;
    llvm::SmallVector<KernelFamily> variants;
    int64_t columns =
        family.ukernel(0).registerTile[family.contractionAxes().n];
    if (simt.threadsK > 1 || simt.threadsBatch > 1 ||
        !llvm::isPowerOf2_64(columns))
      return variants;
    int64_t threads = simt.threads(), depth = family.tiles.front()[k];
    for (int64_t slices = 2; slices * threads <= kMostSlicedThreads;
         slices *= 2) {
      simt.threadsK = slices;
      for (int64_t ofSlice : {depth / slices, depth / 2, depth}) {
        if (ofSlice % kQuad != 0 || ofSlice * slices > kMostSlicedDepth ||
            ofSlice < kLeastSliceDepth)
          continue;
        KernelFamily &variant = variants.emplace_back(family);
        variant.schedule = simt.pack();
        for (BlockTile &tile : variant.tiles)
          tile[k] = ofSlice * slices;
      }
    }
    return variants;
  }

  std::optional<KernelFamily> threadFamily(const Workload &workload,
                                           llvm::ArrayRef<ThreadTile> tiles,
                                           int64_t alignment) const override {
    ContractionView product(workload);
    SimtSchedule simt;
    simt.stages = kMinStages;
    simt.vectorWidth = alignment >= widestAccessBytes ? kWidestVector : 1;
    simt.threadsM = tiles[product.m].threads;
    simt.threadsN = tiles[product.n].threads;
    simt.virtualThreadsM = tiles[product.m].strips;
    simt.virtualThreadsN = tiles[product.n].strips;
    for (unsigned axis : product.batchAxes().list())
      simt.threadsBatch *= tiles[axis].threads;
    KernelFamily family;
    family.schedule = simt.pack();
    family.reduceAxes = workload.reduceAxes().mask();
    BlockTile &tile = family.tiles.emplace_back();
    for (const ThreadTile &along : tiles)
      tile.push_back(along.elements());
    return family;
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

protected:
  bool takesWindows() const override { return true; }
  bool takesBatchTiles() const override { return true; }

  llvm::Error checkWorkload(const Workload &workload,
                            const DeviceSpec &device) const override;

  /// Vectors are as wide as they can be, or single elements.
  KernelFamily withAlignment(KernelFamily family,
                             int64_t alignment) const override {
    SimtSchedule simt = SimtSchedule::of(family.schedule);
    simt.vectorWidth = 1;
    family.schedule = simt.pack();
    return family;
  }

  KernelResources partResources(const Workload &workload,
                                const KernelFamily &family,
                                unsigned part) const override {
    SimtLayout layout = simtLayout(workload, family.tiles[part],
                                   SimtSchedule::of(family.schedule));
    return {layout.threads(), partRegisters(layout),
            layout.sharedMemoryBytes()};
  }

  llvm::Error checkCopies(const Workload &workload, const SimtSchedule &simt,
                          const DeviceSpec &device) const override;
  llvm::Error checkPart(const Workload &workload, const KernelFamily &family,
                        unsigned part, const SimtSchedule &simt) const override;

private:
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
    // chunk, and ptxas reads them late. Elements of a batch come one after the
    // other.
    return kAddressRegisters + scalars +
           quads * (quads <= kMostQuadsAtOnce ? kQuad : kQuad / 2);
  }

  /// Registers of a part whose loop has one step, 0 of others. Without a loop
  /// ptxas moves all loads from shared memory ahead: [32, 32, 40]/[4, 2, 1]
  /// takes 210 registers on an sm_80 where K is 40 and 90 where it is 80, and
  /// with no more than 128 it spills 1176 bytes. With what a thread may have at
  /// most it does not.
  static int64_t straightRegisters(const Workload &workload,
                                   const KernelFamily &family,
                                   const BlockTile &tile,
                                   const SimtLayout &layout) {
    const SizeRange &range = workload.axes[family.contractionAxes().k].range;
    if (!range.isFixed() || range.min > layout.bk)
      return 0;
    return std::min(kMostRegisters,
                    kAddressRegisters + layout.points() +
                        layout.sliceDepth() * (layout.rm + layout.rn));
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
        layout.points() + restRegisters(layout) + kSpareRegisters;
    if (vectorWidth == 1 ||
        !isWhole(workload, tile, family.contractionAxes().k))
      expected += layout.copySlots() / 2;
    if (vectorWidth == 1)
      return expected;
    expected =
        std::max(expected, straightRegisters(workload, family, tile, layout));
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
    return layout.points() + staged + restRegisters(layout);
  }

  static int64_t spillMargin(const Workload &workload,
                             const KernelFamily &family, const BlockTile &tile,
                             const SimtLayout &layout, int64_t vectorWidth);
};

/// Accumulators of f32 or i32; everything else of types up to 32 bits, but for
/// scalars and what the epilogue makes of them.
llvm::Error SimtModel::checkWorkload(const Workload &workload,
                                     const DeviceSpec &device) const {
  auto unexpected = [&](llvm::StringRef what, ElementType type) {
    return invalid("expected " + what + ", but got " + nameOf(type));
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
  // The first element of a slice is no constant, so its addresses take
  // registers.
  if (layout.gk > 1)
    margin += kSliceRegisters;
  // Of slices of k and of batches, whose places each tile works out, ptxas
  // reads all quads ahead where neither k nor n has a rest: it spilled 4 bytes
  // of kernels with 18 and 19 of them that had room for 35 and 21 registers
  // more.
  bool isOneOfMany = (family.reduceSplit > 1 || !view.batchAxes().empty()) &&
                     isWhole(workload, tile, view.k) &&
                     isWhole(workload, tile, view.n);
  if (quads > kMostQuadsAtOnce && isOneOfMany)
    margin += quads * kQuad / 2;
  // Strips of one column each, which no vector holds: 16 × 4 took 255 registers
  // and spilled 20 bytes where chunks of two and four took 155 and 168.
  if (layout.rhs.reduceContiguous && layout.rn > 2 &&
      layout.columnChunks().front().width == 1)
    margin += 2 * layout.rm * layout.rn;
  for (unsigned factor : {0, 1}) {
    const SharedTile &shared = layout.factor(factor);
    int64_t width = layout.copyWidths[factor];
    bool isScalar = width == 1;
    int64_t ofSlot = isScalar ? 3 : 0;
    if (!isScalar && !isWhole(workload, tile, view.k))
      ofSlot += 2;
    if (!isWhole(workload, tile, view.space(factor)))
      ofSlot += isScalar ? 1 : 2;
    if (!copiesWholeRows(shared, layout.threads(), width))
      ofSlot += shared.swizzle > 1 ? 4 : 3;
    ofSlot += prologueWork(workload, factor, width).registers;
    margin +=
        ofSlot * layout.copySlots(factor) +
        windowWork(workload, factor, shared, layout.threads(), width).registers;
  }
  return margin;
}

llvm::Error SimtModel::checkPart(const Workload &workload,
                                 const KernelFamily &family, unsigned part,
                                 const SimtSchedule &simt) const {
  const BlockTile &tile = family.tiles[part];
  ContractionAxes axes = family.contractionAxes();
  if (simt.threadsK > 1) {
    int64_t depth = tile[axes.k];
    if (depth % (kQuad * simt.threadsK) != 0)
      return invalid("expected steps of multiples of " +
                     llvm::Twine(kQuad * simt.threadsK) +
                     " elements along k for " + llvm::Twine(simt.threadsK) +
                     " slices, but got " + llvm::Twine(depth));
    if (!BatchTile::of(workload, tile).sides.empty())
      return invalid("expected one element along batch axes for blocks with "
                     "slices of k, but got " +
                     family.ukernel(part).str());
  }
  for (unsigned factor : {0, 1}) {
    unsigned axis = axes.space(factor);
    int64_t ofThread = tile[axis] / simt.workersAlong(factor);
    int64_t strips = simt.virtualThreadsAlong(factor);
    if (strips != 0 && ofThread % strips != 0)
      return invalid("expected virtual threads that divide the " +
                     llvm::Twine(ofThread) + " elements of a thread along " +
                     (factor == 0 ? "m" : "n") + ", but got " +
                     llvm::Twine(strips));
  }
  if (simt.vectorWidth == 1)
    return llvm::Error::success();
  for (const Operand &operand : workload.operands)
    if (isVectorAccess(workload, operand) &&
        tile[*operand.contiguousAxis()] % simt.vectorWidth != 0)
      return invalid("expected tiles of contiguous axes to be multiples of the "
                     "vector width, but got " +
                     family.ukernel(part).str());
  return llvm::Error::success();
}

llvm::Error SimtModel::checkCopies(const Workload &workload,
                                   const SimtSchedule &simt,
                                   const DeviceSpec &device) const {
  if (simt.stages > 2 && !simtCopiesAsynchronously(workload, device))
    return invalid(llvm::Twine("expected exactly 2 pipeline stages") +
                   (device.hasAsyncCopy() ? " for factors that are cast" : "") +
                   " on " + device.name + ", but got " +
                   llvm::Twine(simt.stages));
  if (simt.threads() % 32 != 0 || simt.threads() > device.maxThreadsPerBlock)
    return invalid("expected a multiple of 32 threads, at most " +
                   llvm::Twine(device.maxThreadsPerBlock) + ", but got " +
                   llvm::Twine(simt.threads()));
  return llvm::Error::success();
}

ContractionLoops SimtModel::contractionLoops(const Workload &workload,
                                             const KernelFamily &family,
                                             unsigned part,
                                             const DeviceSpec &device) const {
  SimtSchedule simt = SimtSchedule::of(family.schedule);
  SimtLayout layout = simtLayout(workload, family.tiles[part], simt);
  ContractionAxes axes = family.contractionAxes();
  ContractionLoops loops;
  auto addAlong = [&](unsigned axis, int64_t threads, int64_t elements,
                      llvm::ArrayRef<LaneChunk> chunks) {
    // Strips that are not all alike count as single elements.
    int64_t width = chunks.front().stride;
    if (elements % width != 0)
      width = 1;
    loops.threads.push_back(
        {"thread", threads, LoopBinding::Thread, axis, width});
    loops.points.push_back({"strip", elements / width,
                            LoopBinding::VirtualThread, axis, threads * width});
    loops.points.push_back({"point", width, LoopBinding::Unrolled, axis, 1});
  };
  addAlong(axes.m, layout.gm, layout.rm, layout.rowChunks());
  addAlong(axes.n, layout.gn, layout.rn, layout.columnChunks());
  int64_t depth = layout.sliceDepth(), run = layout.unrolledDepth(device);
  if (layout.gk > 1)
    loops.depth.push_back({"slice", layout.gk, LoopBinding::Thread, axes.k,
                           depth, /*isReduction=*/true});
  if (run < depth)
    loops.depth.push_back({"run", depth / run, LoopBinding::Serial, axes.k, run,
                           /*isReduction=*/true});
  loops.depth.push_back(
      {"k", run, LoopBinding::Unrolled, axes.k, 1, /*isReduction=*/true});
  for (unsigned factor : {0, 1})
    loops.copies[factor] = {layout.factor(factor), kSharedElementBytes,
                            layout.stages, layout.threads(),
                            layout.copyWidths[factor]};
  return loops;
}

} // namespace

const CodegenModel &ftuner::simtModel() {
  static const SimtModel model;
  return model;
}
