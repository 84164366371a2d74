//===- CooperativeModel.cpp - What the cooperative path can emit ----------===//
#include "CooperativeSchedule.h"
#include "llvm/ADT/Twine.h"

using namespace ftuner;
using llvm::Twine;

namespace {

constexpr int64_t kMaxThreads = 256;

/// The one axis along which rows lie.
unsigned rowOf(const Workload &workload) {
  return workload.reduceAxes().list().front();
}

/// Bytes of the state of one part of a row.
int64_t stateBytes(const Workload &workload) {
  int64_t bytes = 0;
  for (const Accumulator &accumulator :
       workload.reduction()->state->accumulators)
    bytes += bytesOf(accumulator.type);
  return bytes;
}

class CooperativeSpace final : public ScheduleSpace {
public:
  CooperativeSpace(const Workload &workload, const DeviceSpec &device)
      : workload(workload) {
    reduceGranule = CooperativeSchedule::warpSize;
    workerGranule = CooperativeSchedule::warpSize;
    maxWorkers = std::min<int64_t>(device.maxThreadsPerBlock, kMaxThreads);
    combineAxes = {workload.spaceAxes().list().front()};
  }

  void forEachBlock(int64_t, BlockVisitor visit) const override {
    for (int64_t warps : {1, 2, 4, 8})
      for (int64_t rows : {1, 2, 4, 8}) {
        CooperativeSchedule schedule{rows, warps};
        if (schedule.threads() > maxWorkers)
          continue;
        KernelFamily family;
        family.tiles.emplace_back(workload.axes.size(), 1);
        family.tiles.front()[combineAxes.front()] = rows;
        family.tiles.front()[rowOf(workload)] = schedule.lanes();
        family.schedule = schedule.pack();
        visit(family, family.ukernel(0), BlockKind::Suited);
      }
  }
  void forEachSchedule(
      const KernelFamily &block,
      llvm::function_ref<bool(const KernelFamily &)> visit) const override {
    visit(block);
  }
  Preference preference(const KernelFamily &family) const override {
    return {-family.threads(), 0};
  }

private:
  const Workload &workload;
};

class CooperativeModel final : public CodegenModel {
public:
  llvm::StringRef name() const override { return "cooperative"; }
  const ScheduleTable &scheduleTable() const override {
    static const ScheduleTable table = {
        "warps that reduce rows together",
        "the schedule's rows, and the lanes of a row",
        fieldsOf<CooperativeSchedule>,
        {}};
    return table;
  }
  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &) const override {
    const Computation *reduction = workload.reduction();
    // The values of a row, which others know as no more than an epilogue.
    if (!reduction || workload.computations.size() < 2 ||
        workload.find(OperandRole::Lhs) || workload.find(OperandRole::Init) ||
        reduction->name != "state")
      return invalid("expected states of rows and what follows from them");
    if (workload.reduceAxes().size() != 1 || workload.spaceAxes().empty())
      return invalid("expected one axis of rows beside that along them");
    for (const Accumulator &accumulator : reduction->state->accumulators)
      if (bytesOf(accumulator.type) != 4)
        return invalid("expected accumulators of 32 bits");
    return llvm::Error::success();
  }
  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<CooperativeSpace>(workload, device);
  }
  int64_t threads(const KernelFamily &family) const override {
    return CooperativeSchedule::of(family.schedule).threads();
  }
  int64_t heightGranule(const KernelFamily &family) const override {
    return family.lowHeight();
  }
  int64_t alignment(const Schedule &) const override { return 1; }
  bool takesAnyAlignment(const Schedule &) const override { return true; }
  KernelFamily relaxed(const KernelFamily &family, int64_t) const override {
    return family;
  }
  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    return {family};
  }
  KernelResources resources(const Workload &workload,
                            const KernelFamily &family) const override {
    CooperativeSchedule schedule = CooperativeSchedule::of(family.schedule);
    KernelResources resources;
    resources.threads = schedule.threads();
    resources.registersPerThread = 32;
    if (schedule.warps > 1)
      resources.sharedMemoryBytes =
          schedule.blockRows * schedule.warps * stateBytes(workload);
    return resources;
  }
  int64_t spillFreeRegisters(const Workload &,
                             const KernelFamily &) const override {
    return 64;
  }
  BlockWork work(const Workload &workload, const KernelFamily &family, unsigned,
                 const DeviceSpec &) const override {
    BlockWork work;
    CooperativeSchedule schedule = CooperativeSchedule::of(family.schedule);
    work.warps = schedule.blockRows * schedule.warps;
    work.kTile = schedule.lanes();
    work.stepsAhead = 1;
    work.registersPerThread = 40;
    // Both passes over the row.
    double operations = 0, elements = 0;
    for (const Computation &computation : workload.computations)
      if (computation.axes.contains(rowOf(workload)))
        operations += flopsOf(computation.operations);
    for (const Operand &operand : workload.operands)
      if (operand.contiguousAxis() == rowOf(workload)) {
        ++elements;
        work.globalBytes += static_cast<double>(
            operand.elementBytes * schedule.blockRows * schedule.lanes());
      }
    work.otherInstructions =
        static_cast<double>(work.warps) * (operations + 4 * elements);
    WarpAccess load;
    load.kind = WarpAccess::Kind::GlobalLoad;
    for (int64_t lane = 0; lane < CooperativeSchedule::warpSize; ++lane)
      load.address[lane] = lane;
    load.count = static_cast<double>(work.warps) * elements;
    work.accesses = {load};
    work.loadedRegisters = load.count;
    // Five rounds of shuffles, and one state of each warp.
    work.epilogueInstructions = static_cast<double>(work.warps) * 20;
    return work;
  }
  double peakFlops(const Workload &, const DeviceSpec &device) const override {
    return device.fp32Tflops * 1e12;
  }
  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override {
    if (llvm::Error error = supports(workload, device))
      return error;
    if (llvm::Error error = checkTiles(workload, family))
      return error;
    CooperativeSchedule schedule = CooperativeSchedule::of(family.schedule);
    BlockTile expected(workload.axes.size(), 1);
    expected[workload.spaceAxes().list().front()] = schedule.blockRows;
    expected[rowOf(workload)] = schedule.lanes();
    if (family.tiles.size() != 1 || family.tiles.front() != expected)
      return invalid("expected one tile " + tileText(expected) + ", but got " +
                     tileText(family.tiles.front()));
    if (schedule.threads() > device.maxThreadsPerBlock)
      return invalid("expected up to " + Twine(device.maxThreadsPerBlock) +
                     " threads, but got " + Twine(schedule.threads()));
    return llvm::Error::success();
  }
};

} // namespace

const CodegenModel &ftuner::cooperativeModel() {
  static const CooperativeModel model;
  return model;
}
