//===- ScalarModel.cpp - What the scalar path can emit --------------------===//
#include "ScalarSchedule.h"

using namespace ftuner;

namespace {

constexpr int64_t kWarpSize = 32;
/// Reduce elements of a step, for the figures alone: the loop has no steps.
constexpr int64_t kDepth = 1;
/// Loads of so many elements are under way at once.
constexpr double kLoadsAhead = 8;

/// The space axes that threads lie along: the second one where there are two.
std::pair<unsigned, std::optional<unsigned>>
threadAxes(const Workload &workload) {
  llvm::SmallVector<unsigned, 4> axes = workload.spaceAxes().list();
  if (axes.size() < 2)
    return {axes.front(), std::nullopt};
  return {axes[0], axes[1]};
}

class ScalarSpace final : public ScheduleSpace {
public:
  ScalarSpace(const CodegenModel &path, const Workload &workload,
              const DeviceSpec &device)
      : path(path), workload(workload) {
    reduceGranule = kDepth;
    workerGranule = kWarpSize;
    maxWorkers = std::min<int64_t>(device.maxThreadsPerBlock, 256);
  }

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override {
    if (path.needsExactArchitecture())
      return;
    auto [rows, columns] = threadAxes(workload);
    for (int64_t threads = kWarpSize; threads <= maxWorkers; threads *= 2)
      for (int64_t n = columns ? kWarpSize : 1; n <= threads; n *= 2) {
        KernelFamily family;
        ScalarSchedule schedule{threads / n, n};
        family.tiles.emplace_back(workload.axes.size(), 1);
        BlockTile &tile = family.tiles.front();
        for (unsigned axis = 0; axis < tile.size(); ++axis)
          if (workload.isReduceAxis(axis))
            tile[axis] = kDepth;
        tile[rows] = schedule.threadsM;
        if (columns)
          tile[*columns] = schedule.threadsN;
        for (bool hasMaps : {true, false}) {
          if (hasMaps &&
              (&path != &mappedModel() || alignment < kTensorMapAlignment))
            continue;
          schedule.hasMaps = hasMaps;
          family.schedule = schedule.pack(path);
          visit(family, family.ukernel(0), BlockKind::Suited);
        }
        if (!columns)
          break;
      }
  }
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override {
    visit(block);
  }
  Preference preference(const KernelFamily &family) const override {
    return {-family.threads(), -ScalarSchedule::of(family.schedule).hasMaps};
  }

private:
  const CodegenModel &path;
  const Workload &workload;
};

enum class Variant { Scalar, Exact, Mapped };

class ScalarModel final : public CodegenModel {
public:
  explicit ScalarModel(Variant variant) : variant(variant) {}

  llvm::StringRef name() const override {
    return variant == Variant::Exact    ? "exact"
           : variant == Variant::Mapped ? "mapped"
                                        : "scalar";
  }
  bool needsExactArchitecture() const override {
    return variant == Variant::Exact;
  }
  const ScheduleTable &scheduleTable() const override {
    static constexpr auto &fields = fieldsOf<ScalarSchedule>;
    static const ScheduleTable mapped = {
        "one element for each thread, from tensor maps", "", fields, {}};
    static const ScheduleTable others = {"one element for each thread",
                                         "",
                                         llvm::ArrayRef(fields).drop_back(),
                                         {}};
    return variant == Variant::Mapped ? mapped : others;
  }
  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &device) const override {
    if (needsExactArchitecture() && device.smVersion() != 90)
      return invalid("expected compute capability 9.0, but got " +
                     llvm::Twine(device.computeCapabilityMajor) + "." +
                     llvm::Twine(device.computeCapabilityMinor));
    if (workload.spaceAxes().empty() || workload.reduceAxes().empty())
      return invalid("expected a space and a reduce axis");
    for (const Axis &axis : workload.axes)
      if (axis.isFused())
        return invalid("expected axes of one loop");
    if (!workload.domain.empty())
      return invalid("expected points without conditions");
    const Computation &last = workload.computations.back();
    if (workload.computations.size() > 2 || last.writes.size() != 1 ||
        last.space() != workload.spaceAxes())
      return invalid("expected one reduction and one output of its space axes");
    const Computation *reduction = workload.reduction();
    if (!reduction || reduction->state->accumulators.size() != 1)
      return invalid("expected a reduction of one accumulator");
    for (const Operand &operand : workload.operands)
      if (operand.elementType == ElementType::F64 ||
          operand.elementType == ElementType::Other)
        return invalid("expected elements of up to 32 bits, but got " +
                       nameOf(operand.elementType));
    if (variant == Variant::Mapped)
      for (const Operand &operand : workload.operands)
        for (unsigned dim = 0; dim < operand.rank(); ++dim)
          if (isInput(operand.role) && !operand.position(dim).asAxis())
            return invalid("expected inputs that follow axes alone");
    return llvm::Error::success();
  }
  llvm::SmallVector<TensorMap> tensorMaps(const Workload &workload,
                                          const KernelFamily &family,
                                          unsigned) const override {
    llvm::SmallVector<TensorMap> maps;
    if (!ScalarSchedule::of(family.schedule).hasMaps)
      return maps;
    for (auto [number, operand] : llvm::enumerate(workload.operands)) {
      if (!isInput(operand.role) || operand.rank() == 0)
        continue;
      TensorMap &map = maps.emplace_back();
      map.operand = number;
      for (unsigned dim = operand.rank(); dim-- > 0;)
        map.dims.push_back(dim);
      // Any that differ.
      map.box.sizes.assign(map.dims.size(), 2);
      map.box.sizes.front() = 64 / operand.elementBytes;
      map.box.swizzleBytes = number == 0 ? 64 : 128;
      map.box.l2PromotionBytes = number == 0 ? 0 : 256;
    }
    return maps;
  }
  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload,
              const DeviceSpec &device) const override {
    return std::make_unique<ScalarSpace>(*this, workload, device);
  }
  int64_t threads(const KernelFamily &family) const override {
    return ScalarSchedule::of(family.schedule).threads();
  }
  int64_t heightGranule(const KernelFamily &family) const override {
    return family.lowHeight();
  }
  int64_t alignment(const Schedule &schedule) const override {
    return ScalarSchedule::of(schedule).hasMaps ? kTensorMapAlignment : 4;
  }
  bool takesAnyAlignment(const Schedule &schedule) const override {
    return !ScalarSchedule::of(schedule).hasMaps;
  }
  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    return alignment >= kTensorMapAlignment ? family : withoutMaps(family);
  }
  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    return {withoutMaps(family)};
  }
  KernelResources resources(const Workload &,
                            const KernelFamily &family) const override {
    KernelResources resources;
    resources.threads = threads(family);
    resources.registersPerThread = 32;
    return resources;
  }
  int64_t spillFreeRegisters(const Workload &,
                             const KernelFamily &) const override {
    return 40;
  }
  BlockWork work(const Workload &workload, const KernelFamily &family, unsigned,
                 const DeviceSpec &) const override {
    BlockWork work;
    ScalarSchedule scalar = ScalarSchedule::of(family.schedule);
    work.warps = ceilDiv(scalar.threads(), kWarpSize);
    work.kTile = kDepth;
    work.stepsAhead = kLoadsAhead;
    work.fma = static_cast<double>(work.warps * kDepth);
    work.otherInstructions = 3 * work.fma;
    work.registersPerThread = 32;
    // A row of the rhs for the lanes, one element of the lhs for all.
    WarpAccess row, element;
    row.kind = element.kind = WarpAccess::Kind::GlobalLoad;
    for (int64_t lane = 0; lane < kWarpSize; ++lane)
      row.address[lane] = lane;
    row.count = element.count = work.fma;
    work.accesses = {row, element};
    work.loadedRegisters = 2 * work.fma;
    work.globalBytes =
        static_cast<double>(4 * kDepth * (scalar.threadsM + scalar.threadsN));
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
    if (llvm::Error error = checkSchedule(family.schedule))
      return error;
    if (family.tiles.size() != 1)
      return invalid("expected one part");
    if (family.reduceSplit != 1)
      return invalid("expected no split of the reduce axis");
    ScalarSchedule scalar = ScalarSchedule::of(family.schedule);
    auto [rows, columns] = threadAxes(workload);
    const BlockTile &tile = family.tiles.front();
    if (tile[rows] != scalar.threadsM ||
        (columns ? tile[*columns] : 1) != scalar.threadsN)
      return invalid(
          "expected a tile of one element for each thread, but got " +
          tileText(tile));
    for (unsigned axis : workload.spaceAxes().list())
      if (axis != rows && axis != columns && tile[axis] != 1)
        return invalid("expected tiles of 1 on further axes, but got " +
                       tileText(tile));
    int64_t threads = scalar.threads();
    if (threads % kWarpSize != 0 || threads > device.maxThreadsPerBlock)
      return invalid("expected whole warps, but got " + llvm::Twine(threads) +
                     " threads");
    return llvm::Error::success();
  }

private:
  KernelFamily withoutMaps(KernelFamily family) const {
    ScalarSchedule schedule = ScalarSchedule::of(family.schedule);
    schedule.hasMaps = false;
    family.schedule = schedule.pack(*this);
    return family;
  }

  Variant variant;
};

} // namespace

const CodegenModel &ftuner::scalarModel() {
  static const ScalarModel model(Variant::Scalar);
  return model;
}

const CodegenModel &ftuner::exactModel() {
  static const ScalarModel model(Variant::Exact);
  return model;
}

const CodegenModel &ftuner::mappedModel() {
  static const ScalarModel model(Variant::Mapped);
  return model;
}
