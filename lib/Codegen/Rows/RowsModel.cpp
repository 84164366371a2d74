//===- RowsModel.cpp - What the rows path can emit ------------------------===//
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Schedule/Alignment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace ftuner;
using llvm::Twine;

/// Threads of a block: more rows in one serve nobody.
static constexpr int64_t kMaxThreads = 512;
/// Registers of a thread beside what it holds of its row: indices, addresses,
/// bounds.
static constexpr int64_t kBaseRegisters = 28;
/// Of a row, in registers of a thread. Twice as much was not tried.
static constexpr int64_t kMaxHeldRegisters = 64;
/// Rounds of shuffles that make one number of a warp's.
static constexpr int64_t kShuffleRounds = 5;

RowsLayout::RowsLayout(const Workload &workload, const BlockTile &tile,
                       const RowsSchedule &schedule)
    : RowsLayout(RowReductionView(workload), tile, schedule) {}

RowsLayout::RowsLayout(const RowReductionView &rows, const BlockTile &tile,
                       const RowsSchedule &schedule)
    : rowAxis(rows.row()), chunk(tile[rowAxis]),
      elements(chunk / schedule.lanes()),
      vector(std::clamp<int64_t>(schedule.access / rows.widestBytes(), 1,
                                 std::max<int64_t>(elements, 1))) {}

/// Registers of a thread that hold its elements of the row's inputs.
static int64_t heldRegisters(const Workload &workload, int64_t elements,
                             int64_t heldChunks) {
  int64_t bytes = 0;
  for (const Operand *operand : RowReductionView(workload).operandsAlong())
    if (isInput(operand->role))
      bytes += operand->elementBytes * elements;
  return ceilDiv(bytes, int64_t(4)) * heldChunks;
}

namespace {

class RowsSpace final : public ScheduleSpace {
public:
  RowsSpace(const Workload &workload, const DeviceSpec &device)
      : workload(workload), rows(workload) {
    reduceGranule = RowsSchedule::warpSize;
    workerGranule = RowsSchedule::warpSize;
    maxWorkers = std::min<int64_t>(device.maxThreadsPerBlock, kMaxThreads);
    combineAxes = {rows.firstSpace()};
  }

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override {
    int64_t widest = rows.widestBytes();
    for (int64_t elements : {1, 2, 4, 8}) {
      int64_t access =
          std::min({elements * widest, alignment, widestAccessBytes});
      // As wide as they can be, or single elements.
      if (access < 2 * widest)
        access = 1;
      for (int64_t warps : {1, 2, 4, 8, 16})
        for (int64_t blockRows : {1, 2, 4, 8}) {
          RowsSchedule schedule{blockRows, warps, /*heldChunks=*/0, access};
          if (schedule.threads() > maxWorkers)
            continue;
          KernelFamily family;
          family.combineAxis = combineAxes.front();
          family.reduceAxes = workload.reduceAxes().mask();
          family.tiles.emplace_back(workload.axes.size(), 1);
          BlockTile &tile = family.tiles.front();
          tile[combineAxes.front()] = blockRows;
          tile[rows.row()] = schedule.lanes() * elements;
          family.schedule = schedule.pack();
          visit(family, family.ukernel(0), BlockKind::Suited);
        }
    }
  }

  /// With as many chunks in registers as may matter, the most first.
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override {
    RowsSchedule schedule = RowsSchedule::of(block.schedule);
    RowsLayout layout(workload, block.tiles.front(), schedule);
    std::optional<int64_t> longest = workload.axes[rows.row()].range.max;
    for (int64_t held : {8, 6, 4, 3, 2, 1, 0}) {
      // Chunks behind the longest row hold nothing.
      if (heldRegisters(workload, layout.elements, held) > kMaxHeldRegisters ||
          (held > 1 && longest && (held - 1) * layout.chunk >= *longest))
        continue;
      KernelFamily family = block;
      schedule.heldChunks = held;
      family.schedule = schedule.pack();
      if (!visit(family))
        return;
    }
  }
  Preference preference(const KernelFamily &family) const override {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    return {-schedule.heldChunks, -schedule.access, family.threads()};
  }

private:
  const Workload &workload;
  RowReductionView rows;
};

class RowsModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "rows"; }
  const ScheduleTable &scheduleTable() const override {
    static const ScheduleTable table = {
        "warps that reduce rows",
        "the schedule's rows along the first space axis, and along the row "
        "elements for each of its lanes",
        fieldsOf<RowsSchedule>,
        {}};
    return table;
  }

  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override;
  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<RowsSpace>(workload, device);
  }

  int64_t threads(const KernelFamily &family) const override {
    return RowsSchedule::of(family.schedule).threads();
  }
  int64_t heightGranule(const KernelFamily &family) const override {
    return family.lowHeight();
  }
  int64_t alignment(const Schedule &schedule) const override {
    return RowsSchedule::of(schedule).access;
  }
  bool takesAnyAlignment(const Schedule &schedule) const override {
    return RowsSchedule::of(schedule).access == 1;
  }
  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    if (schedule.access <= alignment)
      return family;
    // Narrower accesses would be as wide as some elements, or wider.
    return unalignedVariants(family).front();
  }
  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    schedule.access = 1;
    KernelFamily variant = family;
    variant.schedule = schedule.pack();
    return {variant};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    KernelResources resources;
    resources.threads = schedule.threads();
    resources.registersPerThread = registers(workload, family);
    // A number of each warp for each reduction.
    if (schedule.warps > 1)
      resources.sharedMemoryBytes = 4 * schedule.blockRows * schedule.warps *
                                    RowReductionView(workload).numReductions();
    return resources;
  }
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    return registers(workload, family) + 16;
  }
  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override;
  double peakFlops(const Workload &, const DeviceSpec &device) const override {
    return device.fp32Tflops * 1e12;
  }
  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

private:
  int64_t registers(const Workload &workload,
                    const KernelFamily &family) const {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    RowsLayout layout(workload, family.tiles.front(), schedule);
    return kBaseRegisters +
           heldRegisters(workload, layout.elements, schedule.heldChunks) +
           2 * layout.vector * (RowReductionView(workload).numReductions() + 1);
  }
};

} // namespace

llvm::Error RowsModel::supports(const Workload &workload,
                                const DeviceSpec &) const {
  for (const Axis &axis : workload.axes)
    if (axis.isFused())
      return invalid("expected axes of one loop");
  if (llvm::Error error = workload.checkRowReduction())
    return invalid(llvm::toString(std::move(error)));
  for (const Computation &computation : workload.computations) {
    if (!computation.isReduction())
      continue;
    // Its result is what others read, and nothing is stored of it.
    if (const State &state = *computation.state;
        !computation.writes.empty() || state.accumulators.size() != 1 ||
        state.merge == Merge::Other || state.correctedBy)
      return invalid("expected reductions to one number, which others read");
    if (ElementType type = computation.state->accumulators.front().type;
        type != ElementType::F32 && type != ElementType::I32)
      return invalid("expected accumulators of f32 or i32, but got " +
                     nameOf(type));
  }
  RowReductionView rows(workload);
  for (auto [number, operand] : llvm::enumerate(workload.operands)) {
    if (operand.role != OperandRole::Input &&
        operand.role != OperandRole::Output)
      return invalid("expected inputs and outputs alone");
    if (rows.isAlong(operand) && operand.contiguousAxis() != rows.row())
      return invalid("expected operand " + Twine(number) +
                     " to be contiguous along rows");
    if (!llvm::is_contained({ElementType::F32, ElementType::F16,
                             ElementType::BF16, ElementType::I1,
                             ElementType::I8, ElementType::I16,
                             ElementType::I32},
                            operand.elementType) &&
        (rows.isAlong(operand) || operand.elementType != ElementType::I64))
      return invalid(
          "expected elements of f32, f16, bf16, booleans or integers of 8 to "
          "32 bits, or of 64 bits once a row, but got " +
          nameOf(operand.elementType));
  }
  return llvm::Error::success();
}

BlockWork RowsModel::work(const Workload &workload, const KernelFamily &family,
                          unsigned part, const DeviceSpec &) const {
  RowReductionView rows(workload);
  RowsSchedule schedule = RowsSchedule::of(family.schedule);
  RowsLayout layout(workload, family.tiles[part], schedule);
  BlockWork work;
  work.warps = schedule.blockRows * schedule.warps;
  auto warps = static_cast<double>(work.warps);
  work.kTile = layout.chunk;
  // Loads of all held chunks are under way at once.
  work.stepsAhead =
      static_cast<double>(std::max<int64_t>(schedule.heldChunks, 1));
  work.registersPerThread = static_cast<double>(registers(workload, family));
  double passes = schedule.heldChunks > 0
                      ? 1
                      : static_cast<double>(rows.numReductions()) + 1;
  auto accesses = static_cast<double>(layout.accesses());
  for (const Operand *operand : rows.operandsAlong()) {
    if (!isInput(operand->role)) {
      work.otherInstructions += 3 * warps * accesses;
      continue;
    }
    WarpAccess load;
    load.kind = WarpAccess::Kind::GlobalLoad;
    int64_t bytes = layout.vector * operand->elementBytes;
    load.width = std::max<int64_t>(bytes / 4, 1);
    for (int64_t lane = 0; lane < RowsSchedule::warpSize; ++lane)
      load.address[lane] = lane * bytes / 4;
    load.count = warps * accesses * passes;
    work.accesses.push_back(load);
    work.loadedRegisters += load.count * static_cast<double>(load.width);
    work.otherInstructions += 4 * load.count;
    work.globalBytes +=
        passes * static_cast<double>(operand->elementBytes *
                                     schedule.blockRows * layout.chunk);
  }
  // Special functions go to a unit of a quarter of the rate, and take some
  // instructions around them.
  constexpr double kSpecialInstructions = 8;
  for (const Computation &computation : workload.computations) {
    double instructions =
        flopsOf(computation.operations) +
        (kSpecialInstructions - 1) * specialsOf(computation.operations);
    if (computation.axes.contains(layout.rowAxis))
      work.otherInstructions +=
          warps * static_cast<double>(layout.elements) * (instructions + 1);
    else
      work.epilogueInstructions += warps * instructions;
  }
  work.epilogueInstructions +=
      warps * static_cast<double>(rows.numReductions()) *
      static_cast<double>(2 * kShuffleRounds +
                          (schedule.warps > 1 ? 4 + 2 * schedule.warps : 0));
  return work;
}

llvm::Error RowsModel::check(const Workload &workload,
                             const KernelFamily &family,
                             const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  if (llvm::Error error = checkSchedule(family.schedule))
    return error;
  RowsSchedule schedule = RowsSchedule::of(family.schedule);
  if (family.tiles.size() != 1)
    return invalid("expected one part");
  if (family.reduceSplit != 1)
    return invalid("expected no split of rows");
  const BlockTile &tile = family.tiles.front();
  RowReductionView rows(workload);
  unsigned row = rows.row(), first = rows.firstSpace();
  for (unsigned axis = 0; axis < tile.size(); ++axis)
    if (axis != row && tile[axis] != (axis == first ? schedule.blockRows : 1))
      return invalid("expected a tile of " + Twine(schedule.blockRows) +
                     " rows, but got " + tileText(tile));
  int64_t elements = tile[row] / schedule.lanes();
  if (elements == 0 || tile[row] % schedule.lanes() != 0 ||
      !llvm::isPowerOf2_64(elements) || elements > 16)
    return invalid("expected chunks of 1, 2, 4, 8 or 16 elements for each of " +
                   Twine(schedule.lanes()) + " lanes, but got " +
                   tileText(tile));
  int64_t widest = rows.widestBytes();
  if (schedule.access != 1 &&
      (!llvm::isPowerOf2_64(schedule.access) || schedule.access < 2 * widest ||
       schedule.access > elements * widest))
    return invalid("expected accesses of 1 byte, or of 2 to " +
                   Twine(elements) + " elements of " + Twine(widest) +
                   " bytes, but got " + Twine(schedule.access));
  if (schedule.threads() > device.maxThreadsPerBlock)
    return invalid("expected up to " + Twine(device.maxThreadsPerBlock) +
                   " threads, but got " + Twine(schedule.threads()));
  if (int64_t held = heldRegisters(workload, elements, schedule.heldChunks);
      held > kMaxHeldRegisters)
    return invalid("expected up to " + Twine(kMaxHeldRegisters) +
                   " registers that hold a row, but got " + Twine(held));
  return llvm::Error::success();
}

const CodegenModel &ftuner::rowsModel() {
  static const RowsModel model;
  return model;
}
