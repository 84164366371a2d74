//===- register_model.cpp - Random kernels and what the model says of them ===//
//
// Built and run by register_model.py. Draws random kernels of the SIMT path,
// writes the PTX of each to FOLDER/NUMBER.ptx, unless FOLDER is empty, and
// prints a line of JSON with what the path's model expects of it. Usage:
//
//   register_model SEED COUNT FOLDER DEVICE...
//
// One in four kernels is any that the path can emit; the others are near the
// limit of registers, where the estimate has to tell those that spill. Which
// are drawn does not depend on that estimate.
//
//===----------------------------------------------------------------------===//
#include "EmittedKernel.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"
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

class Sampler {
public:
  Sampler(unsigned seed, llvm::ArrayRef<DeviceSpec> devices)
      : random(seed), devices(devices) {}

  /// A kernel that the path can emit; near the limit if told.
  EmittedCase draw(bool isNear);
  const DeviceSpec &deviceOf(const EmittedCase &emitted) const {
    return *llvm::find_if(devices, [&](const DeviceSpec &device) {
      return device.name == emitted.device;
    });
  }

  const CodegenModel &model = *findCodegenModel("simt");

private:
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  }
  EmittedCase drawAny();

  std::mt19937 random;
  llvm::ArrayRef<DeviceSpec> devices;
};

EmittedCase Sampler::drawAny() {
  const DeviceSpec &device = devices[random() % devices.size()];
  EmittedCase emitted;
  emitted.device = device.name;
  emitted.transposeLhs = random() % 2;
  emitted.transposeRhs = random() % 2;
  emitted.isDynamic = random() % 4 == 0;
  int64_t gm = pick({1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32});
  int64_t gn = pick({2, 4, 6, 7, 8, 10, 12, 16, 24, 32});
  int64_t rm = 1 + random() % 14, rn = pick({1, 2, 4, 8, 8});
  int64_t bk = pick({8, 16, 24, 32});
  auto tile = [&](int64_t rows) {
    return UKernel{{gm * rows, gn * rn, bk}, {rows, rn, 1}};
  };
  emitted.family.parts = {tile(rm)};
  if (rm > 1 && random() % 2 == 0)
    emitted.family.parts.insert(emitted.family.parts.begin(),
                                tile(1 + random() % (rm - 1)));
  emitted.family.vectorWidth = pick({1, 4});
  emitted.family.stages = device.hasAsyncCopy() ? pick({2, 3, 4}) : 2;
  // Few steps or many, all whole or with a rest.
  emitted.k = bk * pick({2, 3, 4, 6, 48, 48, 48}) + pick({0, 0, 4});
  emitted.n = pick({2304, 4 * gn * rn, 2308});
  if (emitted.family.vectorWidth == 1 && random() % 2 == 0) {
    emitted.n += 1;
    emitted.k += 2;
  }
  return emitted;
}

EmittedCase Sampler::draw(bool isNear) {
  while (true) {
    EmittedCase emitted = drawAny();
    const DeviceSpec &device = deviceOf(emitted);
    if (llvm::Error error =
            model.check(emitted.workload(), emitted.family, device)) {
      llvm::consumeError(std::move(error));
      continue;
    }
    double limit = device.registersPerThreadOf(emitted.family.threads());
    SimtLayout layout = simtLayout(
        emitted.workload(), emitted.family.parts.back(), emitted.family.stages);
    double share = (model.resources(emitted.workload(), emitted.family)
                        .registersPerThread +
                    2 * layout.copySlots(emitted.family.vectorWidth)) /
                   limit;
    if (!isNear || (share > leastNear && share < mostNear))
      return emitted;
  }
}

llvm::json::Object describe(const Sampler &sampler,
                            const EmittedCase &emitted) {
  const DeviceSpec &device = sampler.deviceOf(emitted);
  const UKernel &last = emitted.family.parts.back();
  Workload workload = emitted.workload();
  BlockWork work = sampler.model.work(workload, last, emitted.family, device);
  double accesses = 0;
  for (const WarpAccess &access : work.accesses)
    accesses += access.count;
  return llvm::json::Object{
      {"kernel", emitted.str()},
      {"arch", "sm_" + std::to_string(device.smVersion())},
      {"threads", emitted.family.threads()},
      {"parts", int64_t(emitted.family.parts.size())},
      {"limit", device.registersPerThreadOf(emitted.family.threads())},
      {"spill_free",
       sampler.model.spillFreeRegisters(workload, emitted.family)},
      {"taken", work.registersPerThread},
      {"registers_per_sm", device.registersPerSm},
      {"max_warps", device.maxThreadsPerSm / 32},
      // Of the last part's step, for each warp.
      {"fma", work.fma / work.warps},
      {"other", work.otherInstructions / work.warps},
      {"steps", emitted.isDynamic ? 0 : ceilDiv(emitted.k, last.smemTile[2])}};
}

int fail(const llvm::Twine &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  unsigned seed = 0, count = 0;
  if (argc < 5 || llvm::StringRef(argv[1]).getAsInteger(10, seed) ||
      llvm::StringRef(argv[2]).getAsInteger(10, count))
    return fail("expected SEED COUNT FOLDER DEVICE...");
  std::vector<DeviceSpec> devices;
  for (const char *name : llvm::ArrayRef(argv + 4, argc - 4)) {
    llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
    if (!device)
      return fail(llvm::toString(device.takeError()));
    devices.push_back(std::move(*device));
  }
  llvm::StringRef folder = argv[3];
  Sampler sampler(seed, devices);
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  for (unsigned number = 0; number < count; ++number) {
    EmittedCase emitted = sampler.draw(number % 4 != 0);
    llvm::outs() << llvm::json::Value(describe(sampler, emitted)) << "\n";
    if (folder.empty())
      continue;
    llvm::Expected<EmittedKernel> kernel = emit(*context, emitted);
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
