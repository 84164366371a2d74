//===- ChainsModel.cpp - What the chains path can emit --------------===//
#include "FTuner/Codegen/Chains/ChainsSchedule.h"
#include "FTuner/Codegen/StreamWork.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace ftuner;
using llvm::Twine;

/// Registers of a thread beside what it loads and computes: addresses, bounds.
static constexpr int64_t kBaseRegisters = 24;
/// Registers of a thread for the elements that it has loaded. More would leave
/// an SM less than 512 threads.
static constexpr int64_t kMaxLoadedRegisters = 64;
/// Points of a thread: their bodies are so many copies in the code.
static constexpr int64_t kMaxPoints = 32;
/// Maximum number of bodies of `reduce` in the code of a vector: one for each
/// point and unrolled tap.
static constexpr int64_t kMaxBodies = 512;
/// Registers of a thread for elements of a window before they are reduced.
static constexpr int64_t kMaxWindowRegisters = 32;
/// Points along a dynamic loop that the traffic of windows is priced for.
static constexpr int64_t kLoopExtent = 64;
/// Instructions of a chain of divisions, for each loop after the first: a
/// quotient and a remainder of 32 bits.
static constexpr double kDivisionInstructions = 20;

ChainsLayout::ChainsLayout(const Workload &workload,
                           const ChainsSchedule &schedule)
    : schedule(schedule) {
  int64_t widest = PointwiseView(workload).widestBytes();
  vector = std::max<int64_t>(schedule.access / widest, 1);
  vectors =
      schedule.vectors * std::max<int64_t>(widestVector(widest) / vector, 1);
}

BlockTile ChainsLayout::tiles(const Workload &workload) const {
  BlockTile tiles(1, tile());
  if (workload.axes.size() > 1)
    tiles.push_back(PointwiseView(workload).numTaps());
  return tiles;
}

bool ChainsLayout::hasUnrolledTaps(llvm::ArrayRef<int64_t> taps,
                                   unsigned loop) {
  int64_t count = 1;
  for (int64_t extent : taps.drop_front(loop))
    count *= extent;
  return count <= kMaxUnrolledTaps;
}

/// Taps of which every point has a body of its own in the code.
static int64_t numUnrolledTaps(llvm::ArrayRef<int64_t> taps) {
  int64_t count = 1;
  for (unsigned loop = 0; loop < taps.size(); ++loop)
    if (ChainsLayout::hasUnrolledTaps(taps, loop))
      count *= taps[loop];
  return count;
}

/// Registers of a thread for the inputs of all its points, and for what these
/// accumulate.
static int64_t loadedRegisters(const Workload &workload,
                               const ChainsLayout &layout) {
  PointwiseView points(workload);
  int64_t registers = 0;
  for (const Computation &computation : workload.computations)
    if (computation.isReduction())
      for (const Accumulator &accumulator : computation.state->accumulators)
        registers +=
            layout.points() * ceilDiv(bytesOf(accumulator.type), int64_t(4));
  for (const Operand &operand : workload.operands) {
    if (!isInput(operand.role) || operand.rank() == 0 ||
        points.hasTaps(operand))
      continue;
    bool isPacked = points.isVector(operand) && layout.vector > 1;
    int64_t elements = points.accessOf(operand) == PointAccess::Constant
                           ? layout.vectors
                           : layout.points();
    registers += isPacked
                     ? ceilDiv(operand.elementBytes * elements, int64_t(4))
                     : elements * ceilDiv(operand.elementBytes, int64_t(4));
  }
  return registers;
}

/// Registers of a thread: what it loads, and what it computes of a vector.
static int64_t registersOf(const Workload &workload,
                           const ChainsLayout &layout) {
  PointwiseView points(workload);
  int64_t computed = layout.vector * 2, ofWindows = 0;
  for (const Operand &operand : workload.operands) {
    int64_t elements = layout.vector;
    if (points.hasTaps(operand) && !points.isVector(operand))
      elements = points.numReads(operand, layout.vector);
    int64_t registers = ceilDiv(operand.elementBytes * elements, int64_t(4));
    if (!isInput(operand.role))
      computed += layout.vector * ceilDiv(operand.elementBytes, int64_t(4));
    else if (points.hasTaps(operand))
      ofWindows += registers;
  }
  computed += std::min(ofWindows, kMaxWindowRegisters);
  return kBaseRegisters + 2 * static_cast<int64_t>(workload.operands.size()) +
         loadedRegisters(workload, layout) + computed;
}

namespace {

class ChainsSpace final : public ScheduleSpace {
public:
  explicit ChainsSpace(const Workload &workload)
      : workload(workload), widestBytes(PointwiseView(workload).widestBytes()) {
    reduceGranule = 1;
    workerGranule = ChainsSchedule::warpSize;
    combineAxes = {0};
    taps = PointwiseView(workload).taps();
  }

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override {
    ChainsSchedule schedule;
    schedule.access = std::min<int64_t>(16, alignment);
    if (schedule.access < 2 * widestBytes)
      schedule.access = 1;
    for (int64_t threads : {128, 256})
      for (int64_t vectors : {1, 2, 4, 8}) {
        schedule.threads = threads;
        schedule.vectors = vectors;
        ChainsLayout layout(workload, schedule);
        // One vector always is possible.
        if (vectors > 1 &&
            (layout.points() > kMaxPoints ||
             layout.points() * numUnrolledTaps(taps) > kMaxBodies ||
             loadedRegisters(workload, layout) > kMaxLoadedRegisters))
          break;
        KernelFamily family;
        family.combineAxis = 0;
        family.reduceAxes = workload.reduceAxes().mask();
        family.tiles.push_back(layout.tiles(workload));
        family.schedule = schedule.pack();
        visit(family, family.ukernel(0), BlockKind::Suited);
      }
  }
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override {
    visit(block);
  }
  Preference preference(const KernelFamily &family) const override {
    ChainsSchedule schedule = ChainsSchedule::of(family.schedule);
    return {-schedule.access, schedule.vectors, schedule.threads};
  }

private:
  const Workload &workload;
  int64_t widestBytes;
  llvm::SmallVector<int64_t, 3> taps;
};

class ChainsModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "chains"; }
  const ScheduleTable &scheduleTable() const override {
    static const ScheduleTable table = {
        "threads with vectors of points",
        "the points of all threads: vectors of 16 bytes of the widest element",
        fieldsOf<ChainsSchedule>,
        {}};
    return table;
  }

  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override;
  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload, const DeviceSpec &) const override {
    return std::make_unique<ChainsSpace>(workload);
  }

  int64_t threads(const KernelFamily &family) const override {
    return ChainsSchedule::of(family.schedule).threads;
  }
  int64_t heightGranule(const KernelFamily &family) const override {
    return family.lowHeight();
  }
  int64_t alignment(const Schedule &schedule) const override {
    return ChainsSchedule::of(schedule).access;
  }
  bool takesAnyAlignment(const Schedule &schedule) const override {
    return ChainsSchedule::of(schedule).access == 1;
  }
  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    if (ChainsSchedule::of(family.schedule).access <= alignment)
      return family;
    return unalignedVariants(family).front();
  }
  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    ChainsSchedule schedule = ChainsSchedule::of(family.schedule);
    schedule.access = 1;
    KernelFamily variant = family;
    variant.schedule = schedule.pack();
    return {variant};
  }

  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    ChainsLayout layout(workload, ChainsSchedule::of(family.schedule));
    KernelResources resources;
    resources.threads = layout.schedule.threads;
    resources.registersPerThread = registersOf(workload, layout);
    return resources;
  }
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    return resources(workload, family).registersPerThread;
  }
  BlockWork work(const Workload &workload, const KernelFamily &family,
                 unsigned part, const DeviceSpec &device) const override;
  double peakFlops(const Workload &, const DeviceSpec &device) const override {
    return device.fp32Tflops * 1e12;
  }
  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;
};

} // namespace

llvm::Error ChainsModel::supports(const Workload &workload,
                                  const DeviceSpec &device) const {
  if (llvm::Error error = workload.checkPointwise())
    return invalid(llvm::toString(std::move(error)));
  if (!workload.domain.empty())
    return invalid("expected points without conditions");
  // The family for any alignment, which every plan needs, has most registers.
  ChainsLayout layout(workload, ChainsSchedule());
  if (int64_t registers = registersOf(workload, layout);
      registers > device.maxRegistersPerThread)
    return invalid("expected operands that take at most " +
                   Twine(device.maxRegistersPerThread) +
                   " registers of a thread, but got " + Twine(registers));
  for (const Operand &operand : workload.operands) {
    if (operand.isPacked || !operand.indirections.empty())
      return invalid("expected operands whose positions follow from the loops");
    for (unsigned dim = 0; dim < operand.rank(); ++dim) {
      AffineForm position = operand.position(dim);
      if ((position.constant < 0 && !operand.outside) ||
          llvm::any_of(position.terms, [](const AffineForm::Term &term) {
            return term.coefficient < 0;
          }))
        return invalid(
            "expected positions that grow with the positions of points");
    }
    if (operand.elementType == ElementType::Other && operand.rank() > 0)
      return invalid("expected elements of floats, booleans or integers of 8 "
                     "to 64 bits");
  }
  return llvm::Error::success();
}

/// Returns the elements in memory from a point to the next along the last loop,
/// if the innermost dimension of an operand has windows along it.
static std::optional<int64_t> windowStride(const PointwiseView &points,
                                           const Operand &operand) {
  if (!points.hasTaps(operand))
    return std::nullopt;
  unsigned last = points.numLoops() - 1;
  for (const AffineForm::Term &term :
       operand.position(operand.rank() - 1).terms)
    if (term.axis == 0 &&
        (term.loop == last || term.loop == AffineForm::Term::wholeAxis))
      return term.coefficient;
  return std::nullopt;
}

/// One access of a warp to an operand.
static WarpAccess pointAccess(const ChainsLayout &layout,
                              const PointwiseView &points,
                              const Operand &operand, PointAccess kind,
                              bool isVector) {
  /// Words between two elements that may lie anywhere: each has a line.
  constexpr int64_t kFar = 1 << 12;
  WarpAccess access;
  access.kind = isInput(operand.role) ? WarpAccess::Kind::GlobalLoad
                                      : WarpAccess::Kind::GlobalStore;
  int64_t bytes = operand.elementBytes * (isVector ? layout.vector : 1);
  access.width = std::max<int64_t>(bytes / 4, 1);
  int64_t pitch = layout.vector * operand.elementBytes;
  if (std::optional<int64_t> stride = windowStride(points, operand);
      stride && kind == PointAccess::Scattered) {
    kind = PointAccess::Row;
    pitch *= *stride;
  }
  for (int64_t lane = 0; lane < ChainsSchedule::warpSize; ++lane)
    access.address[lane] = kind == PointAccess::Constant    ? 0
                           : kind == PointAccess::Scattered ? lane * kFar
                                                            : lane * pitch / 4;
  return access;
}

/// Adds the reads of an operand's windows: `access` is one of them.
static void addWindow(const Workload &workload, const ChainsLayout &layout,
                      const Operand &operand, WarpAccess access,
                      BlockWork &work) {
  PointwiseView points(workload);
  auto vectors = static_cast<double>(work.warps * layout.vectors);
  int64_t width = points.isVector(operand) ? 1 : layout.vector;
  access.count =
      vectors * static_cast<double>(points.numReads(operand, layout.vector));
  work.accesses.push_back(access);
  work.otherInstructions += 3 * access.count;
  if (operand.outside) {
    // Bounds of each position, then a choice for each register that is read.
    int64_t positions = 0;
    for (unsigned dim = 0; dim < operand.rank(); ++dim)
      if (!operand.position(dim).asTerm())
        positions += points.numPositions(operand, dim, width);
    work.otherInstructions +=
        4 * vectors * static_cast<double>(positions) +
        static_cast<double>(1 + access.width) * access.count;
  }
  work.loadedRegisters +=
      vectors * static_cast<double>(std::min(
                    points.numReads(operand, layout.vector) * access.width,
                    kMaxWindowRegisters));
  double bytes = static_cast<double>(operand.elementBytes) *
                 points.numElementsOfBlock(operand, layout.tile(), kLoopExtent);
  work.globalBytes += bytes;
  // All blocks read the same filters, unless those follow outer loops.
  if (llvm::none_of(llvm::seq<unsigned>(0, operand.rank()), [&](unsigned dim) {
        return points.numPositions(operand, dim, 1) > 1 &&
               llvm::any_of(
                   operand.position(dim).terms,
                   [](const AffineForm::Term &term) { return term.axis == 0; });
      })) {
    work.commonBytes += bytes;
    work.distinctCommonBytes += bytes;
  }
}

BlockWork ChainsModel::work(const Workload &workload,
                            const KernelFamily &family, unsigned,
                            const DeviceSpec &device) const {
  PointwiseView points(workload);
  ChainsLayout layout(workload, ChainsSchedule::of(family.schedule));
  BlockWork work;
  work.isStreaming = true;
  work.warps = layout.schedule.threads / ChainsSchedule::warpSize;
  work.kTile = points.numTaps();
  work.heldSteps = 1;
  work.registersPerThread = static_cast<double>(registersOf(workload, layout));
  auto vectors = static_cast<double>(work.warps * layout.vectors);
  auto elements = static_cast<double>(work.warps * layout.points());
  auto tile = static_cast<double>(layout.tile());
  auto numTaps = static_cast<double>(points.numTaps());
  std::optional<int64_t> rowLength = points.rowLength();
  for (const Operand &operand : workload.operands) {
    PointAccess kind = points.accessOf(operand);
    if (kind == PointAccess::Scalar)
      continue;
    bool isVector = points.isVector(operand);
    bool isRead = isInput(operand.role);
    WarpAccess access = pointAccess(layout, points, operand, kind, isVector);
    access.count =
        isVector || kind == PointAccess::Constant ? vectors : elements;
    if (points.hasTaps(operand)) {
      addWindow(workload, layout, operand, access, work);
      continue;
    }
    work.accesses.push_back(access);
    work.otherInstructions += (isRead ? 3 : 4) * access.count;
    double bytes = static_cast<double>(operand.elementBytes) * tile;
    if (!isRead) {
      work.storedBytes += bytes;
      continue;
    }
    work.loadedRegisters += access.count * static_cast<double>(access.width);
    if (kind == PointAccess::Constant)
      bytes = rowLength ? bytes / static_cast<double>(*rowLength)
                        : bytes / static_cast<double>(layout.vector);
    work.globalBytes += bytes;
    // Blocks of an SM read the same elements of an operand that only the last
    // loop indexes.
    if (operand.rank() == 1 && kind == PointAccess::Row && rowLength &&
        *rowLength < layout.tile()) {
      work.commonBytes += bytes;
      work.distinctCommonBytes +=
          static_cast<double>(operand.elementBytes * *rowLength);
    }
  }
  if (points.hasTrips())
    work.otherInstructions +=
        vectors * kDivisionInstructions *
        static_cast<double>(std::min<int64_t>(points.numLoops() - 1, 2));
  SmFacts sm = device.smFacts();
  for (const Computation &computation : workload.computations) {
    ElementInstructions ofElement = instructionsOf(computation, 0, sm);
    double times = computation.isReduction() ? numTaps : 1;
    work.specialOperations += times * ofElement.specials * tile;
    work.fma += times * elements * ofElement.fma;
    work.otherInstructions +=
        elements * (times * (ofElement.all - ofElement.fma) + 1);
  }
  return work;
}

llvm::Error ChainsModel::check(const Workload &workload,
                               const KernelFamily &family,
                               const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  if (llvm::Error error = checkSchedule(family.schedule))
    return error;
  if (family.tiles.size() != 1 || family.reduceSplit != 1)
    return invalid("expected one part");
  ChainsSchedule schedule = ChainsSchedule::of(family.schedule);
  ChainsLayout layout(workload, schedule);
  if (family.tiles.front() != layout.tiles(workload))
    return invalid("expected a tile of " + Twine(layout.tile()) +
                   " points and all taps, but got " +
                   tileText(family.tiles.front()));
  if (int64_t widest = PointwiseView(workload).widestBytes();
      schedule.access != 1 && schedule.access < 2 * widest)
    return invalid(
        "expected accesses of 1 byte, or of at least 2 elements of " +
        Twine(widest) + " bytes, but got " + Twine(schedule.access));
  if (schedule.vectors > 1 && layout.points() > kMaxPoints)
    return invalid("expected up to " + Twine(kMaxPoints) +
                   " points of a thread, but got " + Twine(layout.points()));
  if (schedule.threads > device.maxThreadsPerBlock)
    return invalid("expected up to " + Twine(device.maxThreadsPerBlock) +
                   " threads, but got " + Twine(schedule.threads));
  return llvm::Error::success();
}

const CodegenModel &ftuner::chainsModel() {
  static const ChainsModel model;
  return model;
}
