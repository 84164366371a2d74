//===- StubModel.h - A codegen path for tests -------------------*- C++ -*-===//
//
// A path with few and unusual blocks and a schedule unlike any real path's, so
// that tests of the search do not depend on what a real path can emit today.
// Tests set its members to make it quicker, slower or larger than others.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_SEARCH_STUBMODEL_H
#define FTUNER_TEST_UNIT_SEARCH_STUBMODEL_H

#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"

namespace ftuner {

class StubModel;

/// Schedule of the stub. A worker computes bm / workersM rows and bn / workersN
/// columns of a block tile.
struct StubSchedule {
  int64_t stages = 2;
  int64_t accessBytes = 16;
  int64_t workersN = 32, workersM = 1;

  static constexpr auto rows() {
    using S = StubSchedule;
    return std::array{
        ScheduleRow("stages", &S::stages, "pipeline stages")
            .label("depth")
            .range(2, 3),
        ScheduleRow("access_bytes", &S::accessBytes,
                    "bytes of an access: elements of four are accessed one or "
                    "four at once")
            .label("bytes")
            .among({4, 16}),
        ScheduleRow("workers_n", &S::workersN, "workers of a block along n")
            .range(1, 1024),
        ScheduleRow("workers_m", &S::workersM, "workers of a block along m")
            .range(1, 1024)};
  }
  static StubSchedule unpack(const Schedule &schedule) {
    return unpackSchedule<StubSchedule>(schedule);
  }
  Schedule pack(const CodegenModel &path) const {
    return packSchedule(path, *this);
  }
};

class StubSpace final : public ScheduleSpace {
public:
  StubSpace(const StubModel &path, const Workload &workload);

  void forEachBlock(int64_t alignment, BlockVisitor visit) const override;
  void forEachSchedule(const KernelFamily &block,
                       FamilyVisitor visit) const override;
  Preference preference(const KernelFamily &family) const override;

private:
  const StubModel &path;
  const Workload &workload;
};

class StubModel : public CodegenModel {
public:
  /// Combines heights along `axes`.
  explicit StubModel(llvm::SmallVector<unsigned> axes = {matmulAxes.m})
      : axes(std::move(axes)) {}

  /// Axes along which it combines heights.
  llvm::SmallVector<unsigned> axes;
  /// Most rows and columns of a worker, most workers along m.
  int64_t maxRows = 8, maxColumns = 4, maxWorkersM = 1024;
  /// 32 where each worker is a warp.
  int64_t threadsPerWorker = 1;
  /// Peak of the path's pipes, and operations of its code, as shares of the
  /// peak and the operations of f32 on CUDA cores.
  double peakShare = 1, workShare = 1;

  llvm::StringRef name() const override { return "stub"; }
  const ScheduleTable &scheduleTable() const override {
    static constexpr ScheduleTable table = {
        "products for tests", "", fieldsOf<StubSchedule>, {}};
    return table;
  }
  llvm::Error supports(const Workload &workload,
                       const DeviceSpec &) const override {
    if (llvm::Error error = workload.checkContraction())
      return error;
    if (workload.axes.size() <= 6)
      return llvm::Error::success();
    return invalid("expected at most six axes");
  }
  std::unique_ptr<ScheduleSpace>
  createSpace(const Workload &workload, const DeviceSpec &) const override {
    return std::make_unique<StubSpace>(*this, workload);
  }

  UKernel ukernel(const KernelFamily &family, unsigned part) const override {
    StubSchedule stub = StubSchedule::unpack(family.schedule);
    UKernel result;
    result.blockTile = family.tiles[part];
    result.registerTile.assign(result.blockTile.size(), 1);
    // Messages show families that cannot be emitted, too.
    result.registerTile[matmulAxes.m] =
        result.blockTile[matmulAxes.m] / std::max<int64_t>(stub.workersM, 1);
    result.registerTile[matmulAxes.n] =
        result.blockTile[matmulAxes.n] / std::max<int64_t>(stub.workersN, 1);
    result.workers = stub.workersM * stub.workersN;
    result.reduceSplit = family.reduceSplit;
    return result;
  }
  int64_t threads(const KernelFamily &family) const override {
    StubSchedule stub = StubSchedule::unpack(family.schedule);
    return stub.workersM * stub.workersN * threadsPerWorker;
  }
  int64_t heightGranule(const KernelFamily &family) const override {
    StubSchedule stub = StubSchedule::unpack(family.schedule);
    return family.combineAxis == matmulAxes.m ? stub.workersM : stub.workersN;
  }
  int64_t alignment(const Schedule &schedule) const override {
    return StubSchedule::unpack(schedule).accessBytes;
  }
  bool takesAnyAlignment(const Schedule &schedule) const override {
    return StubSchedule::unpack(schedule).accessBytes == 4;
  }
  KernelFamily relaxed(const KernelFamily &family,
                       int64_t alignment) const override {
    return this->alignment(family.schedule) <= alignment
               ? family
               : unalignedVariants(family).front();
  }
  llvm::SmallVector<KernelFamily>
  unalignedVariants(const KernelFamily &family) const override {
    KernelFamily variant = family;
    StubSchedule stub = StubSchedule::unpack(family.schedule);
    stub.accessBytes = 4;
    variant.schedule = stub.pack(*this);
    return {variant};
  }

  KernelResources resources(const Workload &,
                            const KernelFamily &family) const override {
    KernelResources result;
    result.threads = threads(family);
    StubSchedule stub = StubSchedule::unpack(family.schedule);
    for (unsigned part = 0; part < family.tiles.size(); ++part) {
      const BlockTile &tile = family.tiles[part];
      int64_t bytes = 4 * stub.stages * tile[matmulAxes.k] *
                      (tile[matmulAxes.m] + tile[matmulAxes.n]);
      result.sharedMemoryBytes = std::max(result.sharedMemoryBytes, bytes);
      result.registersPerThread =
          std::max(result.registersPerThread, registersOf(family, part));
    }
    return result;
  }
  int64_t spillFreeRegisters(const Workload &workload,
                             const KernelFamily &family) const override {
    return resources(workload, family).registersPerThread + 32;
  }
  BlockWork work(const Workload &, const KernelFamily &family, unsigned part,
                 const DeviceSpec &) const override {
    const BlockTile &tile = family.tiles[part];
    double points = static_cast<double>(tile[matmulAxes.m]) *
                    tile[matmulAxes.n] * tile[matmulAxes.k];
    BlockWork work;
    work.warps = ceilDiv(threads(family), 32);
    work.kTile = tile[matmulAxes.k];
    work.fma = workShare * points / 32;
    work.globalBytes =
        4.0 * tile[matmulAxes.k] * (tile[matmulAxes.m] + tile[matmulAxes.n]);
    work.registersPerThread = static_cast<double>(registersOf(family, part));
    work.stepsAhead = StubSchedule::unpack(family.schedule).stages - 1;
    return work;
  }
  double peakFlops(const Workload &, const DeviceSpec &device) const override {
    return peakShare * device.fp32Tflops * 1e12;
  }
  llvm::Error check(const Workload &workload, const KernelFamily &family,
                    const DeviceSpec &device) const override;

private:
  /// Registers of a thread: its share of the worker's tile, and 40 more.
  int64_t registersOf(const KernelFamily &family, unsigned part) const {
    UKernel u = ukernel(family, part);
    return ceilDiv(u.registerTile[matmulAxes.m] * u.registerTile[matmulAxes.n],
                   threadsPerWorker) +
           40;
  }
};

inline llvm::Error StubModel::check(const Workload &workload,
                                    const KernelFamily &family,
                                    const DeviceSpec &device) const {
  if (llvm::Error error = supports(workload, device))
    return error;
  if (llvm::Error error = checkTiles(workload, family))
    return error;
  if (family.tiles.size() == 2 && !llvm::is_contained(axes, family.combineAxis))
    return invalid("expected parts along an axis that it combines");
  if (llvm::Error error = checkSchedule(family.schedule))
    return error;
  StubSchedule stub = StubSchedule::unpack(family.schedule);
  if (threads(family) % 32 != 0)
    return invalid("expected whole warps of 32 threads, but got " +
                   llvm::Twine(stub.workersM) + " by " +
                   llvm::Twine(stub.workersN) + " workers");
  for (const BlockTile &tile : family.tiles) {
    if (tile[matmulAxes.m] % stub.workersM != 0 ||
        tile[matmulAxes.n] % stub.workersN != 0)
      return invalid(
          "expected block tiles that are multiples of the workers, but got " +
          tileText(tile));
    for (int64_t size : llvm::drop_begin(tile, 3))
      if (size != 1)
        return invalid("expected tiles of 1 on batch axes, but got " +
                       tileText(tile));
  }
  return llvm::Error::success();
}

/// A family of the stub with one or two tiles: `rows` and `columns` are the
/// elements of a worker, one number of rows for each part.
inline KernelFamily stubFamily(const StubModel &path,
                               const StubSchedule &schedule,
                               llvm::ArrayRef<int64_t> rows, int64_t columns,
                               int64_t depth = 16, unsigned numAxes = 3) {
  KernelFamily family;
  family.schedule = schedule.pack(path);
  for (int64_t height : rows) {
    BlockTile &tile = family.tiles.emplace_back(numAxes, 1);
    tile[matmulAxes.m] = schedule.workersM * height;
    tile[matmulAxes.n] = schedule.workersN * columns;
    tile[matmulAxes.k] = depth;
  }
  return family;
}

inline StubSpace::StubSpace(const StubModel &path, const Workload &workload)
    : path(path), workload(workload) {
  combineAxes = path.axes;
  workerGranule = ceilDiv(32, path.threadsPerWorker);
  maxWorkers = 1024 / path.threadsPerWorker;
  minRowBytes = 4 * reduceGranule * 2;
}

inline void StubSpace::forEachBlock(int64_t alignment,
                                    BlockVisitor visit) const {
  StubSchedule schedule;
  schedule.accessBytes = alignment >= 16 ? 16 : 4;
  int64_t extentM = largestSize(workload.axes[matmulAxes.m]);
  int64_t extentN = largestSize(workload.axes[matmulAxes.n]);
  auto isOversized = [](int64_t workers, int64_t elements, int64_t extent) {
    return (workers - 1) * elements >= extent || elements - 1 >= extent;
  };
  for (int64_t m = 1; m <= std::min(maxWorkers, path.maxWorkersM); ++m)
    for (int64_t n = 1; m * n <= maxWorkers; ++n) {
      if (m * n % workerGranule != 0)
        continue;
      schedule.workersM = m;
      schedule.workersN = n;
      bool isSuited = (m & (m - 1)) == 0 && (n & (n - 1)) == 0;
      for (int64_t rows = 1; rows <= path.maxRows; ++rows)
        for (int64_t columns = 1; columns <= path.maxColumns; ++columns) {
          bool isTooLarge =
              m * n > workerGranule && (isOversized(m, rows, extentM) ||
                                        isOversized(n, columns, extentN));
          // Rows of the output are whole transactions.
          int64_t width = n * columns;
          if (isTooLarge || (extentN >= 8 && width % 8 != 0) ||
              width < std::min<int64_t>(extentN, 16))
            continue;
          KernelFamily family =
              stubFamily(path, schedule, rows, columns, reduceGranule,
                         static_cast<unsigned>(workload.axes.size()));
          visit(family, path.ukernel(family, 0),
                isSuited ? BlockKind::Suited : BlockKind::Plain);
        }
    }
}

inline void StubSpace::forEachSchedule(const KernelFamily &block,
                                       FamilyVisitor visit) const {
  KernelFamily family = block;
  StubSchedule schedule = StubSchedule::unpack(block.schedule);
  for (int64_t depth : {16, 24, 8, 32})
    for (int64_t stages : {3, 2}) {
      for (BlockTile &tile : family.tiles)
        tile[matmulAxes.k] = depth;
      schedule.stages = stages;
      family.schedule = schedule.pack(path);
      if (!visit(family))
        return;
    }
}

inline ScheduleSpace::Preference
StubSpace::preference(const KernelFamily &family) const {
  const BlockTile &tile = family.tiles.back();
  UKernel ukernel = path.ukernel(family, 0);
  int64_t elements =
      ukernel.registerTile[matmulAxes.m] * ukernel.registerTile[matmulAxes.n];
  return {-elements,
          tile[matmulAxes.m] + tile[matmulAxes.n],
          tile[matmulAxes.m],
          tile[matmulAxes.n],
          ukernel.registerTile[matmulAxes.m],
          tile[matmulAxes.k]};
}

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_SEARCH_STUBMODEL_H
