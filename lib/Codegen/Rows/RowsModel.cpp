//===- RowsModel.cpp - What the rows path can emit ------------------------===//
#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Codegen/StreamWork.h"
#include "FTuner/Schedule/Alignment.h"
#include "RowsAst.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <utility>

using namespace ftuner;
using llvm::Twine;

/// Threads of a block: more rows in one serve nobody.
static constexpr int64_t kMaxThreads = 512;
/// Registers of a thread beside what it holds of its row: indices, addresses,
/// bounds.
static constexpr int64_t kBaseRegisters = 28;
/// And for quotients and roots in f64, which are computed once a row.
static constexpr int64_t kDoubleRegisters = 20;
/// Of a row, in registers of a thread, and with the next one and what both
/// share, or with its elements in f64. More would leave an SM less than 512
/// threads.
static constexpr int64_t kMaxHeldRegisters = 64, kMaxLoopRegisters = 96;
/// Neighbours that a lane has of a row: eight narrow elements are enough work
/// for an access.
static constexpr int64_t kMostNeighbours = 8;

int64_t RowsLayout::placeElements(const RowReductionView &rows) {
  return std::clamp<int64_t>(widestAccessBytes / rows.widestBytes(), 1,
                             kMostNeighbours);
}

RowsLayout::RowsLayout(const RowReductionView &rows,
                       const RowsSchedule &schedule, int64_t slices)
    : schedule(schedule), slices(slices), rowAxis(rows.row()),
      laneAxis(rows.laneAxis()),
      vector(std::clamp<int64_t>(schedule.access / rows.widestBytes(), 1,
                                 placeElements(rows))),
      unit(isAcross() ? 1 : placeElements(rows)),
      widestBytes(rows.widestBytes()),
      accumulatorBytes(rows.accumulatorBytes()) {}

int64_t RowsLayout::heldElements() const {
  int64_t units = roundUnits();
  if (schedule.heldUnits >= units)
    return schedule.heldUnits / units * round();
  return schedule.heldUnits *
         (isAcross() ? schedule.warps : schedule.lanes * unit);
}

namespace {
/// Registers of a thread for what one unit has of the inputs along a row.
struct UnitRegisters {
  /// Of elements that belong to the row, and of those that all rows share:
  /// what reductions read, and the others.
  int64_t own = 0, shared = 0, late = 0;

  int64_t all() const { return own + shared + late; }
};
} // namespace

/// `isSingle`: each element takes whole ones, as it does until elements are
/// joined, and lanes that exchange them have one more.
static UnitRegisters unitRegisters(const Workload &workload,
                                   const RowsLayout &layout,
                                   bool isSingle = false) {
  RowReductionView rows(workload);
  unsigned blockAxis = layout.blockAxis(rows);
  UnitRegisters registers;
  for (const Operand *operand : rows.operandsAlong()) {
    if (!isInput(operand->role))
      continue;
    int64_t elements = layout.unit * layout.schedule.laneRows;
    if (isSingle && layout.isExchanged())
      ++elements;
    // Of what is the same in all of a lane's rows, one.
    if (layout.isAcross() &&
        !llvm::is_contained(operand->axes, layout.laneAxis))
      elements = 1;
    int64_t &kind = llvm::is_contained(operand->axes, blockAxis) ? registers.own
                    : rows.isReadByReductions(*operand) ? registers.shared
                                                        : registers.late;
    kind += isSingle ? elements * ceilDiv(operand->elementBytes, int64_t(4))
                     : ceilDiv(operand->elementBytes * elements, int64_t(4));
  }
  return registers;
}

/// Registers of a thread for a unit's elements in f64: ptxas converts them once
/// and keeps them beside the elements. 0 with accumulators of 32 bits.
static int64_t doubleRegisters(const RowsLayout &layout) {
  return layout.accumulatorBytes > 4
             ? 2 * layout.unit * layout.schedule.laneRows
             : 0;
}

static int64_t mostHeldRegisters(const RowsLayout &layout) {
  return layout.schedule.rowLoop > 1 || doubleRegisters(layout) > 0
             ? kMaxLoopRegisters
             : kMaxHeldRegisters;
}

RowsLayout::RowsLayout(const Workload &workload, const RowsSchedule &schedule,
                       int64_t slices)
    : RowsLayout(RowReductionView(workload), schedule, slices) {
  UnitRegisters registers = unitRegisters(workload, *this);
  sharesLate = schedule.rowLoop == 1 &&
               schedule.heldUnits * (registers.all() + doubleRegisters(*this)) >
                   mostHeldRegisters(*this);
}

/// Registers of a thread that hold its elements of the row's inputs, in a loop
/// those of the next row, too.
static int64_t heldRegisters(const Workload &workload,
                             const RowsLayout &layout) {
  UnitRegisters unit = unitRegisters(workload, layout);
  int64_t rows = layout.schedule.rowLoop > 1 ? 2 : 1;
  return layout.schedule.heldUnits *
         (rows * unit.own + unit.shared + doubleRegisters(layout) +
          (layout.sharesLate ? 0 : unit.late));
}

/// Rounds of a tree that makes one number of as many as a row has slots.
static int64_t treeRounds(const RowsLayout &layout) {
  return llvm::Log2_64(layout.slots());
}

/// What holds whatever the workload is.
static constexpr ScheduleRule kRules[] = {
    {"expected blocks of whole lanes, and of whole warps of them",
     [](const Schedule &packed) {
       RowsSchedule schedule = RowsSchedule::of(packed);
       return schedule.blockRows % (schedule.rowLoop * schedule.laneRows) ==
                  0 &&
              schedule.rowLanes() % RowsSchedule::warpSize == 0;
     }}};

namespace {

class RowsSpace final : public ScheduleSpace {
public:
  RowsSpace(const Workload &workload, const DeviceSpec &device)
      : workload(workload), rows(workload) {
    reduceGranule = RowsLayout::numSlotsAcross;
    workerGranule = RowsSchedule::warpSize;
    maxWorkers = std::min<int64_t>(device.maxThreadsPerBlock, kMaxThreads);
    combineAxes = {RowsLayout(workload, {}).blockAxis(rows)};
  }

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override {
    int64_t widest = rows.widestBytes();
    int64_t access =
        std::min(RowsLayout::placeElements(rows) * widest, alignment);
    // As wide as they can be, or single elements.
    if (access < 2 * widest)
      access = 1;
    RowsSchedule schedule;
    schedule.access = access;
    bool isAcross = RowsLayout(workload, schedule).isAcross();
    for (int64_t warps : {1, 2, 4, 8, 16})
      for (int64_t lanes : {1, 4, 8, 16, 32}) {
        bool isWholeWarp = lanes == RowsSchedule::warpSize;
        bool sharesWarp = lanes > 1 && warps == 1 && !isWholeWarp;
        if (isAcross ? lanes > 1 || warps > RowsLayout::numSlotsAcross
                     : !isWholeWarp && (!sharesWarp || isLong(lanes)))
          continue;
        // Units that begin within a sector move one sector more.
        if (access == 1 && !isAcross && !isWholeWarp &&
            lanes * unitBytes() < kLeastSectors * RowsLayout::sectorBytes)
          continue;
        for (int64_t threads : {32, 64, 128, 256, 512}) {
          schedule.warps = warps;
          schedule.lanes = lanes;
          schedule.laneRows =
              isAcross ? RowsLayout(workload, schedule).vector : 1;
          int64_t groups = threads / (lanes * warps);
          if (groups == 0 || threads > maxWorkers)
            continue;
          bool isLooped =
              !isAcross && threads == std::max(kLoopThreads, lanes * warps);
          for (int64_t loop : {1, 2, 4, 8, 16}) {
            if (loop > 1 && !isLooped)
              break;
            schedule.rowLoop = loop;
            schedule.blockRows = groups * schedule.laneRows * loop;
            if (isLegal(schedule) && (loop == 1 || hasRows(schedule)))
              visitBlock(schedule, visit);
          }
        }
      }
  }

  /// With as many units in registers as may matter, the most first.
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override {
    RowsSchedule schedule = RowsSchedule::of(block.schedule);
    int64_t units = RowsLayout(workload, schedule).roundUnits();
    for (int64_t held : heldUnits(schedule)) {
      // A part of the first round, or whole ones.
      if (held > units && held % units != 0)
        continue;
      schedule.heldUnits = held;
      RowsLayout layout(workload, schedule);
      if (heldRegisters(workload, layout) > mostHeldRegisters(layout))
        continue;
      // A loop over rows serves those that are held.
      if (held == 0 && schedule.rowLoop > 1)
        return;
      KernelFamily family = block;
      family.schedule = schedule.pack();
      if (!visit(family))
        return;
    }
  }
  Preference preference(const KernelFamily &family) const override {
    RowsSchedule schedule = RowsSchedule::of(family.schedule);
    return {-schedule.heldUnits, -schedule.access, family.threads()};
  }

private:
  /// Numbers of units that a lane may hold, the most first: up to as many as
  /// the longest row has.
  llvm::SmallVector<int64_t> heldUnits(RowsSchedule schedule) const {
    llvm::SmallVector<int64_t> numbers = {32, 24, 16, 12, 8, 6, 4, 3, 2, 1, 0};
    std::optional<int64_t> longest = workload.axes[rows.row()].range.max;
    if (!longest)
      return numbers;
    int64_t most = 1;
    auto isWhole = [&] {
      schedule.heldUnits = most;
      return RowsLayout(workload, schedule).heldElements() >= *longest;
    };
    while (most < numbers.front() && !isWhole())
      ++most;
    llvm::erase_if(numbers, [&](int64_t number) { return number >= most; });
    numbers.insert(numbers.begin(), most);
    return numbers;
  }
  /// Whether so few lanes would have more of the longest row than they hold, or
  /// of a row of any length.
  bool isLong(int64_t lanes) const {
    std::optional<int64_t> longest = workload.axes[rows.row()].range.max;
    RowsSchedule schedule;
    schedule.lanes = lanes;
    RowsLayout layout(workload, schedule);
    return !longest ? layout.roundUnits() > kMostPlacesOfLane
                    : *longest > layout.round() * kMostShortChunks;
  }
  /// Bytes that a unit of a lane has of the narrowest operand along the row.
  int64_t unitBytes() const {
    int64_t bytes = rows.widestBytes();
    for (const Operand *operand : rows.operandsAlong())
      bytes = std::min(bytes, operand->elementBytes);
    return bytes * RowsLayout::placeElements(rows);
  }
  /// Whether there may be as many rows as a block has.
  bool hasRows(const RowsSchedule &schedule) const {
    std::optional<int64_t> most = workload.axes[combineAxes.front()].range.max;
    return !most || *most >= schedule.blockRows;
  }
  static bool isLegal(const RowsSchedule &schedule) {
    return !llvm::errorToBool(checkSchedule(schedule.pack()));
  }
  void visitBlock(const RowsSchedule &schedule, BlockVisitor visit) const {
    RowsLayout layout(workload, schedule);
    KernelFamily family;
    family.combineAxis = combineAxes.front();
    family.reduceAxes = workload.reduceAxes().mask();
    family.tiles.emplace_back(workload.axes.size(), 1);
    family.tiles.front()[combineAxes.front()] = schedule.blockRows;
    family.tiles.front()[rows.row()] = layout.round();
    family.schedule = schedule.pack();
    visit(family, family.ukernel(0), BlockKind::Suited);
  }

  /// Sectors of a unit of lanes that share a warp with those of other rows and
  /// load single elements.
  static constexpr int64_t kLeastSectors = 8;
  /// Places of a chunk that a lane has in rows of any length.
  static constexpr int64_t kMostPlacesOfLane = 4;
  /// Threads of a block that has rows one after the other, if they can be as
  /// few.
  static constexpr int64_t kLoopThreads = 128;
  /// Chunks of rows that share a warp.
  static constexpr int64_t kMostShortChunks = 2;

  const Workload &workload;
  RowReductionView rows;
};

class RowsModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "rows"; }
  const ScheduleTable &scheduleTable() const override {
    static const ScheduleTable table = {
        "warps that reduce rows",
        "the schedule's rows along the axis of neighbouring lanes or, where "
        "rows lie along memory, the first space axis; along the row what all "
        "its warps have of it in a round",
        fieldsOf<RowsSchedule>, kRules};
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
  bool sharesOutSlices() const override { return true; }
  int64_t numSliceStates(const KernelFamily &family) const override {
    return RowsLayout::numStates(family.reduceSplit,
                                 RowsSchedule::of(family.schedule).warps);
  }
  /// One for each phase behind the first, and one for what follows them.
  int64_t laterLaunches(const Workload &workload) const override {
    return RowReductionView(workload).numPhases();
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
    // A lane's rows need not end together.
    for (BlockTile &tile : variant.tiles)
      tile[variant.combineAxis] /= schedule.laneRows;
    schedule.blockRows /= std::exchange(schedule.laneRows, 1);
    variant.schedule = schedule.pack();
    return {variant};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    RowsLayout layout(workload, RowsSchedule::of(family.schedule));
    KernelResources resources;
    resources.threads = layout.schedule.threads();
    resources.registersPerThread = registers(workload, layout);
    resources.sharedMemoryBytes =
        layout.exchangeBytes() *
            layout.exchangeBuffers(RowReductionView(workload).numReductions()) +
        layout.stagingBytes();
    return resources;
  }
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    RowsLayout layout(workload, RowsSchedule::of(family.schedule));
    return registers(workload, layout);
  }
  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override;
  void describeBlock(const Workload &workload, const KernelFamily &family,
                     unsigned, llvm::ArrayRef<int64_t> shape,
                     const DeviceSpec &, int64_t launch,
                     ProgramAst &ast) const override {
    describeRowsBlock(workload,
                      RowsLayout(workload, RowsSchedule::of(family.schedule),
                                 family.reduceSplit),
                      shape, launch, ast);
  }
  double peakFlops(const Workload &, const DeviceSpec &device) const override {
    return device.fp32Tflops * 1e12;
  }
  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

  /// As many as the model expects to run.
  int64_t minBlocksPerSm(const Workload &workload, const KernelFamily &family,
                         const DeviceSpec &device) const override {
    KernelResources needed = resources(workload, family);
    return std::max<int64_t>(device.blocksPerSm(needed.threads,
                                                needed.registersPerThread,
                                                needed.sharedMemoryBytes),
                             1);
  }

private:
  static int64_t registers(const Workload &workload, const RowsLayout &layout);
};

/// Of rows that are held, or of the loop that reads others, whichever takes
/// more. ptxas keeps what several passes compute of an element, in 32 bits.
/// With as many it spilled none of 408 kernels on sm_75, sm_80 and sm_90, but
/// some with a lane a row, which search does not try.
int64_t RowsModel::registers(const Workload &workload,
                             const RowsLayout &layout) {
  RowReductionView rows(workload);
  const RowsSchedule &schedule = layout.schedule;
  UnitRegisters unit = unitRegisters(workload, layout);
  int64_t numberRegisters = layout.accumulatorBytes / 4;
  int64_t elements = layout.unit * schedule.laneRows;
  bool isLooped = schedule.rowLoop > 1, isSingle = schedule.access == 1;
  UnitRegisters loaded = unitRegisters(workload, layout, isSingle);
  int64_t held = schedule.heldUnits *
                 (std::max(unit.own, elements) + doubleRegisters(layout) +
                  (isLooped ? loaded.own : 0) + unit.shared +
                  (layout.sharesLate ? 0 : unit.late));
  if (layout.sharesLate)
    held += RowsLayout::unitsAtOnce * loaded.late;
  const SizeRange &length = workload.axes[rows.row()].range;
  int64_t streamed = 0;
  if (!length.isFixed() || length.min > layout.heldElements()) {
    streamed =
        std::max(layout.roundUnits(), layout.streamedUnits()) * loaded.all();
    // Single elements have bounds of their own.
    if (isSingle)
      streamed += streamed / 2;
    streamed += numberRegisters * schedule.laneRows *
                (layout.isAcross() ? layout.warpSlots() : layout.roundUnits());
  }
  int64_t registers = kBaseRegisters + (isSingle ? 8 : 0) +
                      (doubleRegisters(layout) > 0 ? kDoubleRegisters : 0);
  // What warps exchange across memory, of each of a lane's rows, and results.
  if (layout.isAcross()) {
    if (schedule.warps > 1)
      held += numberRegisters * schedule.warps * schedule.laneRows;
    registers += numberRegisters * schedule.laneRows * rows.numReductions();
  }
  // A loop over rows keeps addresses and bounds of all its accesses.
  if (isLooped)
    registers += 8 + 4 * static_cast<int64_t>(rows.operandsAlong().size()) +
                 (layout.isAcross() ? 4 * schedule.laneRows : 0);
  return registers + std::max(held, streamed);
}

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
        !llvm::is_contained(
            {ElementType::F32, ElementType::F64, ElementType::I32}, type))
      return invalid("expected accumulators of f32, f64 or i32, but got " +
                     nameOf(type));
  }
  RowReductionView rows(workload);
  // Grid.h numbers blocks by them.
  auto space = workload.spaceAxes().list();
  if (unsigned lanes = rows.laneAxis();
      lanes != rows.row() &&
      !llvm::is_contained(llvm::ArrayRef(space).take_front(2), lanes))
    return invalid("expected neighbours in memory along the row or one of the "
                   "first two other axes");
  for (auto [number, operand] : llvm::enumerate(workload.operands)) {
    if (operand.role != OperandRole::Input &&
        operand.role != OperandRole::Output)
      return invalid("expected inputs and outputs alone");
    if (!llvm::is_contained({ElementType::F64, ElementType::F32,
                             ElementType::F16, ElementType::BF16,
                             ElementType::I1, ElementType::I8, ElementType::I16,
                             ElementType::I32},
                            operand.elementType) &&
        (rows.isAlong(operand) || operand.elementType != ElementType::I64))
      return invalid(
          "expected elements of floats, booleans or integers of 8 to 32 bits, "
          "or of 64 bits once a row, but got " +
          nameOf(operand.elementType));
  }
  return llvm::Error::success();
}

/// Adds to a step's work that lanes hand each other single elements: so many
/// accesses of an element each on the side of global memory, and a vector for
/// each of so many units of warps on the other.
static void addExchange(const RowsLayout &layout, double singles, double units,
                        BlockWork &work) {
  WarpAccess single, place;
  single.kind = WarpAccess::Kind::SharedStore;
  place.kind = WarpAccess::Kind::SharedLoad;
  place.width = layout.unit * layout.widestBytes / 4;
  for (int64_t lane = 0; lane < RowsSchedule::warpSize; ++lane) {
    int64_t first = lane / layout.schedule.lanes * layout.stagedElements();
    int64_t ofRow = lane % layout.schedule.lanes;
    single.address[lane] = (first + ofRow) * layout.widestBytes / 4;
    place.address[lane] =
        (first + ofRow * layout.unit) * layout.widestBytes / 4;
  }
  single.count = singles;
  place.count = units;
  work.accesses.push_back(single);
  work.accesses.push_back(place);
  // Bounds and addresses of single elements, and two waits for all lanes.
  work.otherInstructions += 2 * singles + 2 * units;
  // What passes through shared memory takes two shuffles' time, one unit after
  // the other.
  work.shuffles += 2 * static_cast<double>(std::max(layout.schedule.heldUnits,
                                                    layout.roundUnits()));
}

/// One access of a warp to an operand. Lanes of a row lie side by side, and
/// each row's piece begins a line of its own, since rows may lie anywhere.
static WarpAccess rowAccess(const RowsLayout &layout, WarpAccess::Kind kind,
                            int64_t elementBytes) {
  // Words between two rows: enough lines for any access.
  constexpr int64_t kRowStride = 1 << 12;
  const RowsSchedule &schedule = layout.schedule;
  int64_t bytes = layout.vector * elementBytes;
  // Of a unit in several accesses a lane has every so many bytes.
  int64_t apart = schedule.access > 1 && !layout.isAcross()
                      ? layout.unit * elementBytes
                      : bytes;
  int64_t lanes = layout.isAcross() ? RowsSchedule::warpSize : schedule.lanes;
  WarpAccess access;
  access.kind = kind;
  access.width = std::max<int64_t>(bytes / 4, 1);
  for (int64_t lane = 0; lane < RowsSchedule::warpSize; ++lane)
    access.address[lane] = lane / lanes * kRowStride + lane % lanes * apart / 4;
  return access;
}

BlockWork RowsModel::work(const Workload &workload, const KernelFamily &family,
                          unsigned part, const DeviceSpec &device) const {
  RowReductionView rows(workload);
  RowsSchedule schedule = RowsSchedule::of(family.schedule);
  RowsLayout layout(workload, schedule);
  BlockWork work;
  work.warps = schedule.threads() / RowsSchedule::warpSize;
  auto warps = static_cast<double>(work.warps);
  work.kTile = layout.round();
  auto units = static_cast<double>(layout.roundUnits());
  // Loads of all held units are under way at once.
  work.stepsAhead =
      std::max(static_cast<double>(schedule.heldUnits) / units, 1.);
  work.registersPerThread = static_cast<double>(registers(workload, layout));
  // Of all rows that a lane has one after the other.
  auto loop = static_cast<double>(schedule.rowLoop);
  double accesses = loop * units * static_cast<double>(layout.accesses());
  double elements =
      loop * units * static_cast<double>(layout.unit * schedule.laneRows);
  auto roundElements = static_cast<double>(schedule.blockRows * layout.round());
  auto reductions = static_cast<double>(rows.numReductions());
  // A pass for each reduction, or in slices for each phase, and one for the
  // elements behind them, if any are stored.
  work.isStreaming = true;
  bool isSliced = family.reduceSplit > 1;
  bool hasElements =
      llvm::any_of(rows.operandsAlong(), [](const Operand *operand) {
        return !isInput(operand->role);
      });
  work.laterPasses =
      (isSliced ? static_cast<double>(rows.numPhases()) : reductions) +
      (hasElements ? 1 : 0) - 1;
  // A launch keeps nothing of those before.
  work.heldSteps =
      isSliced ? 0 : static_cast<double>(schedule.heldUnits) / units;
  work.rowLoop = loop;
  // Trees over the places of a chunk and over slots; of a row that one warp
  // holds, each lane has all slots.
  bool hasSlots = schedule.warps == 1 && schedule.heldUnits > 0 && !isSliced;
  work.shuffles =
      reductions * (hasSlots ? 1 : 2) * llvm::Log2_64(schedule.lanes);
  work.barriers = schedule.warps > 1 ? 2 * reductions : 0;
  for (const Operand *operand : rows.operandsAlong()) {
    bool isRead = isInput(operand->role);
    bool isCommon = !llvm::is_contained(operand->axes, layout.blockAxis(rows));
    // What all rows share stays in registers from one row to the next.
    double rowsOfAccess = isCommon ? loop : 1;
    WarpAccess access = rowAccess(layout,
                                  isRead ? WarpAccess::Kind::GlobalLoad
                                         : WarpAccess::Kind::GlobalStore,
                                  operand->elementBytes);
    access.count = warps * accesses / rowsOfAccess;
    // Lanes exchange one access more than a unit has elements.
    if (layout.isExchanged() && rows.isAlongLanes(*operand)) {
      access.count *= 1 + 1 / static_cast<double>(layout.unit);
      addExchange(layout, access.count, warps * loop * units / rowsOfAccess,
                  work);
    }
    work.accesses.push_back(access);
    work.otherInstructions += (isRead ? 4 : 3) * access.count;
    double bytes = static_cast<double>(operand->elementBytes) * roundElements;
    if (!isRead) {
      work.storedBytes += bytes;
      continue;
    }
    work.loadedRegisters += access.count * static_cast<double>(access.width);
    work.globalBytes += bytes;
    if (isCommon) {
      work.commonBytes += bytes;
      work.distinctCommonBytes +=
          bytes / static_cast<double>(schedule.blockRows);
    }
  }
  // Neighbouring lanes begin at multiples of an access; single elements at
  // those of a sector.
  if (!layout.isAcross() && schedule.access > 1)
    work.runBytes = static_cast<double>(schedule.lanes * schedule.access);
  SmFacts sm = device.smFacts();
  double known = 0;
  for (const Computation &computation : workload.computations) {
    bool isAlongRow = computation.axes.contains(layout.rowAxis);
    ElementInstructions ofElement =
        instructionsOf(computation, isAlongRow ? known : 0, sm);
    if (!isAlongRow) {
      work.epilogueInstructions += loop * warps * ofElement.all;
      continue;
    }
    // A row in registers keeps what passes compute of its elements.
    if (schedule.heldUnits > 0)
      known = std::max(known, functionsOf(computation));
    work.specialOperations += ofElement.specials * roundElements;
    work.fma += warps * elements * ofElement.fma;
    work.otherInstructions +=
        warps * elements * (ofElement.all - ofElement.fma + 1);
  }
  // A chunk's places become one number, and so do a row's slots.
  if (!layout.isAcross())
    work.otherInstructions +=
        loop * warps * reductions * 2 * static_cast<double>(treeRounds(layout));
  work.epilogueInstructions += loop * warps * reductions *
                               (2 * static_cast<double>(treeRounds(layout)) +
                                (schedule.warps > 1 ? 8 : 0));
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
  RowReductionView rows(workload);
  RowsLayout layout(workload, schedule);
  if (layout.isAcross()
          ? schedule.lanes != 1 || schedule.warps > RowsLayout::numSlotsAcross
          : schedule.laneRows != 1 ||
                (schedule.warps > 1 &&
                 schedule.lanes != RowsSchedule::warpSize))
    return invalid(
        layout.isAcross()
            ? "expected one lane for each row across memory, and up "
              "to 8 warps"
            : "expected lanes with one row each along memory, and 32 "
              "of each of several warps");
  // Each warp has whole slots, of the same segments.
  int64_t mostSlices = layout.slots() / schedule.warps *
                       (layout.isAcross() ? 1 : RowsLayout::numSegments);
  if (int64_t slices = family.reduceSplit;
      slices != 1 &&
      (!llvm::isPowerOf2_64(slices) || slices > mostSlices ||
       (!layout.isAcross() && schedule.lanes != RowsSchedule::warpSize)))
    return invalid("expected slices of whole slots, a power of two up to " +
                   Twine(mostSlices) +
                   ", and 32 lanes of a warp along memory, but got " +
                   Twine(slices));
  if (family.reduceSplit > 1 && schedule.rowLoop > 1)
    return invalid("expected whole rows in a loop, but got " +
                   Twine(family.reduceSplit) + " slices");
  const BlockTile &tile = family.tiles.front();
  unsigned blockAxis = layout.blockAxis(rows);
  if (family.combineAxis != blockAxis)
    return invalid("expected tiles to be combined along axis " +
                   Twine(blockAxis) + ", but got " + Twine(family.combineAxis));
  for (unsigned axis = 0; axis < tile.size(); ++axis) {
    int64_t expected = axis == layout.rowAxis ? layout.round()
                       : axis == blockAxis    ? schedule.blockRows
                                              : 1;
    if (tile[axis] != expected)
      return invalid("expected a tile of " + Twine(schedule.blockRows) +
                     " rows and " + Twine(layout.round()) +
                     " elements along them, but got " + tileText(tile));
  }
  int64_t widest = rows.widestBytes();
  int64_t most = (layout.isAcross() ? schedule.laneRows : layout.unit) * widest;
  if (schedule.access != 1 &&
      (!llvm::isPowerOf2_64(schedule.access) || schedule.access < 2 * widest ||
       schedule.access > most))
    return invalid("expected accesses of 1 byte, or of 2 to " +
                   Twine(most / widest) + " elements of " + Twine(widest) +
                   " bytes, but got " + Twine(schedule.access));
  if (layout.isAcross() && layout.vector != schedule.laneRows)
    return invalid("expected one access to a lane's " +
                   Twine(schedule.laneRows) + " rows, but got accesses to " +
                   Twine(layout.vector));
  if (schedule.threads() > device.maxThreadsPerBlock)
    return invalid("expected up to " + Twine(device.maxThreadsPerBlock) +
                   " threads, but got " + Twine(schedule.threads()));
  if (int64_t units = layout.roundUnits();
      schedule.heldUnits > units && schedule.heldUnits % units != 0)
    return invalid("expected a part of the " + Twine(units) +
                   " units of a round in registers, or those of whole rounds, "
                   "but got " +
                   Twine(schedule.heldUnits));
  int64_t mostHeld = mostHeldRegisters(layout);
  if (int64_t held = heldRegisters(workload, layout); held > mostHeld)
    return invalid("expected up to " + Twine(mostHeld) +
                   " registers that hold a row, but got " + Twine(held));
  return llvm::Error::success();
}

const CodegenModel &ftuner::rowsModel() {
  static const RowsModel model;
  return model;
}
