//===- register_model.cpp - Random kernels and what the model says of them ===//
//
// Built and run by register_model.py. Draws random kernels of a codegen path,
// `simt` or `mma`, writes the PTX of each to FOLDER/NUMBER.ptx, unless FOLDER
// is empty, and prints a line of JSON with what the path's model expects of it.
// Usage:
//
//   register_model PATH KIND SEED COUNT FOLDER DEVICE...
//
// KIND is `plain`, or `staged`: most copies pass through registers then, since
// accesses are single elements or factors have prologues; more extents are
// dynamic, more factors lie across k, and some blocks compute a slice of k. Or,
// of mma, `batches`: the same, or half of them plain, with several elements of
// a batch in a block.
//
// One in four kernels is any that the path can emit; the others are near the
// limit of registers, where the estimate has to tell those that spill. Which
// are drawn does not depend on that estimate.
//
//===----------------------------------------------------------------------===//
#include "EmittedKernel.h"
#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Codegen/TensorFactors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <random>

using namespace ftuner;

namespace {

/// Shares of the device's limit between which kernels are near it, by a count
/// of accumulators, fragments and two registers for each copied vector.
constexpr double leastNear = 0.5, mostNear = 1.1;
/// The same of staged copies, which hold their vectors, too.
constexpr int64_t kPlainSlotRegisters = 2, kStagedSlotRegisters = 4;

class Sampler {
public:
  Sampler(bool isMma, bool isStaged, bool hasBatches, unsigned seed,
          llvm::ArrayRef<DeviceSpec> devices)
      : isMma(isMma), isStaged(isStaged), hasBatches(hasBatches), random(seed),
        devices(devices) {}

  /// A kernel that the path can emit; near the limit if told.
  EmittedCase draw(bool isNear);
  const DeviceSpec &deviceOf(const EmittedCase &emitted) const {
    return *llvm::find_if(devices, [&](const DeviceSpec &device) {
      return device.name == emitted.device;
    });
  }

private:
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  }
  EmittedCase drawSimt();
  EmittedCase drawMma();
  /// Makes copies of a kernel pass through registers, or most of them.
  void stage(EmittedCase &emitted);
  /// Gives blocks several elements of a batch, which tiles divide or not.
  void addBatch(EmittedCase &emitted);
  EmittedPrologue drawPrologue(ElementType multiplied);
  /// Vectors that a thread copies in a step of the last part.
  int64_t copySlots(const EmittedCase &emitted) const;

  bool isMma, isStaged, hasBatches;
  std::mt19937 random;
  llvm::ArrayRef<DeviceSpec> devices;
};

EmittedCase Sampler::drawSimt() {
  const DeviceSpec &device = devices[random() % devices.size()];
  EmittedCase emitted;
  emitted.device = device.name;
  emitted.transposeLhs = random() % 2;
  emitted.transposeRhs = random() % 2;
  emitted.isDynamic = random() % 4 == 0;
  int64_t gm = pick<int64_t>({1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32});
  int64_t gn = pick<int64_t>({2, 4, 6, 7, 8, 10, 12, 16, 24, 32});
  int64_t rm = 1 + random() % 14, rn = pick<int64_t>({1, 2, 4, 8, 8});
  int64_t bk = pick<int64_t>({8, 16, 24, 32});
  llvm::SmallVector<int64_t, 2> rows = {rm};
  if (rm > 1 && random() % 2 == 0)
    rows.insert(rows.begin(), 1 + random() % (rm - 1));
  int64_t vectorWidth = pick<int64_t>({1, 4});
  int64_t stages = device.hasAsyncCopy() ? pick<int64_t>({2, 3, 4}) : 2;
  emitted.family = simtFamily({gm, gn, stages, vectorWidth}, rows, rn, bk);
  // Few steps or many, all whole or with a rest.
  emitted.k =
      bk * pick<int64_t>({2, 3, 4, 6, 48, 48, 48}) + pick<int64_t>({0, 0, 4});
  emitted.n = pick<int64_t>({2304, 4 * gn * rn, 2308});
  if (vectorWidth == 1 && random() % 2 == 0) {
    emitted.n += 1;
    emitted.k += 2;
  }
  return emitted;
}

EmittedCase Sampler::drawMma() {
  const DeviceSpec &device = devices[random() % devices.size()];
  EmittedCase emitted;
  emitted.device = device.name;
  emitted.multiplied =
      pick({ElementType::F16, ElementType::F16, ElementType::BF16,
            ElementType::I8, ElementType::TF32});
  emitted.isDynamic = random() % 4 == 0;
  // Bytes must be contiguous along k.
  bool areBytes = emitted.multiplied == ElementType::I8;
  emitted.transposeLhs = !areBytes && random() % 2;
  emitted.transposeRhs = areBytes || random() % 2;
  int64_t bytes = bytesOf(emitted.multiplied);
  MmaSchedule schedule;
  schedule.warpsM = pick<int64_t>({1, 1, 2, 2, 3, 4});
  schedule.warpsN = pick<int64_t>({1, 1, 2, 2, 3, 4});
  schedule.accessBytes = pick<int64_t>({16, 16, 16, 8, 4, 1});
  schedule.swapOperands = random() % 3 == 0;
  schedule.stages = device.hasAsyncCopy() ? pick<int64_t>({2, 3, 4, 5}) : 2;
  int64_t ofRow = schedule.fragmentAlong(matmulAxes.m),
          ofColumn = schedule.fragmentAlong(matmulAxes.n);
  int64_t rows = ofRow * int64_t(1 + random() % 8);
  int64_t columns = ofColumn * int64_t(1 + random() % 12);
  int64_t depth = pick<int64_t>({32, 64, 128}) / bytes;
  emitted.family = mmaFamily(schedule, {rows}, columns, depth);
  if (random() % 2 == 0) {
    unsigned axis = pick<unsigned>({matmulAxes.m, matmulAxes.n});
    emitted.family.combineAxis = axis;
    emitted.family.tiles.push_back(emitted.family.tiles.front());
    emitted.family.tiles.front()[axis] =
        schedule.warpsAlong(axis) * schedule.fragmentAlong(axis);
  }
  // Few steps or many, all whole or with a rest.
  emitted.k = depth * pick<int64_t>({2, 3, 4, 6, 48, 48, 48}) +
              pick<int64_t>({0, 0, 16});
  emitted.n = pick<int64_t>({2304, 4096, 2320});
  return emitted;
}

EmittedPrologue Sampler::drawPrologue(ElementType multiplied) {
  EmittedPrologue prologue;
  if (random() % 2 == 0)
    return prologue;
  using T = ElementType;
  switch (multiplied) {
  case T::F32:
    prologue.type = pick<std::optional<T>>({{}, T::F16, T::I8});
    break;
  case T::TF32:
    prologue.type = pick<std::optional<T>>({{}, {}, T::F16});
    break;
  case T::I8:
    prologue.type = pick<std::optional<T>>({{}, {}, T::I32});
    break;
  default:
    prologue.type = pick<std::optional<T>>({{}, {}, T::F32, T::I8});
  }
  prologue.addsScalar = random() % 3 == 0;
  prologue.addsAlongSpace = random() % 3 == 0;
  prologue.addsAlongReduce = random() % 4 == 0;
  return prologue;
}

void Sampler::stage(EmittedCase &emitted) {
  emitted.isDynamic = random() % 3 != 0;
  emitted.transposeLhs = random() % 2;
  emitted.transposeRhs = random() % 2;
  if (random() % 2 == 0)
    for (EmittedPrologue &prologue : emitted.prologues)
      prologue = drawPrologue(emitted.multiplied);
  emitted.family.reduceSplit = pick<int64_t>({1, 1, 1, 1, 8});
  const DeviceSpec &device = deviceOf(emitted);
  Workload workload = emitted.workload();
  int64_t access = pick<int64_t>({1, 1, 4, 8, 16});
  if (isMma) {
    MmaSchedule schedule = MmaSchedule::of(emitted.family.schedule);
    schedule.accessBytes = access;
    int64_t bytes = bytesOf(emitted.multiplied);
    if (!copiesAsynchronously(device, schedule.vectorWidth(bytes) * bytes,
                              convertsFactors(workload)))
      schedule.stages = 2;
    emitted.family.schedule = schedule.pack();
  } else {
    SimtSchedule schedule = SimtSchedule::of(emitted.family.schedule);
    schedule.vectorWidth = access < 8 ? 1 : 4;
    if (!simtCopiesAsynchronously(workload, device))
      schedule.stages = 2;
    emitted.family.schedule = schedule.pack();
  }
}

void Sampler::addBatch(EmittedCase &emitted) {
  MmaSchedule schedule = MmaSchedule::of(emitted.family.schedule);
  schedule.warpsBatch = pick<int64_t>({2, 3, 4, 4, 8});
  emitted.family.schedule = schedule.pack();
  for (BlockTile &tile : emitted.family.tiles)
    tile.push_back(schedule.warpsBatch);
  emitted.batch = schedule.warpsBatch * 6 + int64_t(random() % 2);
  emitted.sharesRhs = random() % 4 == 0;
}

int64_t Sampler::copySlots(const EmittedCase &emitted) const {
  const BlockTile &tile = emitted.family.tiles.back();
  if (!isMma) {
    SimtSchedule schedule = SimtSchedule::of(emitted.family.schedule);
    return simtLayout(emitted.workload(), tile, schedule)
        .copySlots(schedule.vectorWidth);
  }
  MmaSchedule schedule = MmaSchedule::of(emitted.family.schedule);
  MmaLayout layout = mmaLayout(emitted.workload(), tile, schedule);
  int64_t width = schedule.vectorWidth(layout.elementBytes);
  return layout.copySlots(0, width) + layout.copySlots(1, width);
}

EmittedCase Sampler::draw(bool isNear) {
  while (true) {
    EmittedCase emitted = isMma ? drawMma() : drawSimt();
    if (isStaged || (hasBatches && random() % 2 == 0))
      stage(emitted);
    if (hasBatches)
      addBatch(emitted);
    const DeviceSpec &device = deviceOf(emitted);
    const CodegenModel &path = emitted.family.path();
    Workload workload = emitted.workload();
    if (llvm::Error error = path.check(workload, emitted.family, device)) {
      llvm::consumeError(std::move(error));
      continue;
    }
    KernelResources needs = path.resources(workload, emitted.family);
    int64_t ofSlot = isStaged ? kStagedSlotRegisters : kPlainSlotRegisters;
    double share =
        double(needs.registersPerThread + ofSlot * copySlots(emitted)) /
        double(device.registersPerThreadOf(needs.threads));
    if (!isNear || (share > leastNear && share < mostNear))
      return emitted;
  }
}

llvm::json::Object describe(const Sampler &sampler,
                            const EmittedCase &emitted) {
  const DeviceSpec &device = sampler.deviceOf(emitted);
  const CodegenModel &path = emitted.family.path();
  Workload workload = emitted.workload();
  unsigned last = emitted.family.tiles.size() - 1;
  BlockWork work = path.work(workload, emitted.family, last, device);
  double multiplications = work.fma;
  for (const TensorWork &tensor : work.tensor)
    multiplications += tensor.instructions;
  int64_t threads = path.threads(emitted.family);
  return llvm::json::Object{
      {"kernel", emitted.str()},
      {"arch", "sm_" + std::to_string(device.smVersion())},
      {"threads", threads},
      {"parts", int64_t(emitted.family.tiles.size())},
      {"limit", device.registersPerThreadOf(threads)},
      {"spill_free", path.spillFreeRegisters(workload, emitted.family)},
      {"taken", work.registersPerThread},
      {"registers_per_sm", device.registersPerSm},
      {"max_warps", device.maxThreadsPerSm / 32},
      // Of the last part's step, for each warp.
      {"multiplications", multiplications / double(work.warps)},
      {"other", work.otherInstructions / double(work.warps)}};
}

int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  unsigned seed = 0, count = 0;
  llvm::StringRef path = argc > 1 ? argv[1] : "";
  llvm::StringRef kind = argc > 2 ? argv[2] : "";
  if (argc < 7 || (path != "simt" && path != "mma") ||
      (kind != "plain" && kind != "staged" && kind != "batches") ||
      (kind == "batches" && path != "mma") ||
      llvm::StringRef(argv[3]).getAsInteger(10, seed) ||
      llvm::StringRef(argv[4]).getAsInteger(10, count))
    return fail("expected simt or mma, plain, staged or, of mma, batches, SEED "
                "COUNT FOLDER DEVICE...");
  std::vector<DeviceSpec> devices;
  for (const char *name : llvm::ArrayRef(argv + 6, argc - 6)) {
    llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
    if (!device)
      return fail(llvm::toString(device.takeError()));
    devices.push_back(std::move(*device));
  }
  llvm::StringRef folder = argv[5];
  Sampler sampler(path == "mma", kind == "staged", kind == "batches", seed,
                  devices);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  for (unsigned number = 0; number < count; ++number) {
    EmittedCase emitted = sampler.draw(number % 4 != 0);
    llvm::outs() << llvm::json::Value(describe(sampler, emitted)) << "\n";
    if (folder.empty())
      continue;
    llvm::Expected<EmittedPtx> kernel = emit(*context, emitted);
    if (!kernel)
      return fail(llvm::toString(kernel.takeError()));
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, std::to_string(number) + ".ptx");
    std::error_code code;
    llvm::raw_fd_ostream file(path, code);
    if (code)
      return fail("cannot write '" + path + "': " + code.message());
    file << kernel->ptx;
  }
  return 0;
}
