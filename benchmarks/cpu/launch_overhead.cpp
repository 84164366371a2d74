//===- launch_overhead.cpp - Time that ftrt_launch() adds to a launch -----===//
//
// Times ftrt_launch() and, in the same loop, a bare call of cuLaunchKernel(),
// both over a driver that only counts its calls and checks its arguments (the
// fake driver of the tests). So the difference is what libftrt adds, with no
// noise from a GPU; the driver's own microseconds are not in it. A launch also
// asks the driver for the device of the current context, which is listed alone.
// Beside it, what ftrt_tensor_map_encode() takes for a map that it has kept, as
// most launches of kernels with tensor maps ask for, and for one that it has
// not, without the time of a driver that encodes it.
//
//   ninja -C build/release launch_overhead && build/release/bin/launch_overhead
//
//===----------------------------------------------------------------------===//
#include "../../test/unit/Runtime/FakeDriver.h"
#include "FTuner/Runtime/ftrt.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace {
constexpr int kBatches = 501, kCallsPerBatch = 10000;

const char kPTX[] = ".visible .entry kernel()";
ftrt_kernel theKernel = {"kernel", nullptr, nullptr};
ftrt_kernel *const kernels[] = {&theKernel};
const ftrt_image image = {FTRT_IMAGE_PTX, 80, kPTX, sizeof(kPTX)};
ftrt_module theModule = {FTRT_ABI_VERSION, 1, "model", &image,
                         kernels,          1, "{}",    nullptr};

[[noreturn]] void quit(const char *action) {
  std::fprintf(stderr, "error: %s: %s\n", action, ftrt_last_error());
  std::exit(1);
}

/// Nanoseconds of one call, the average of a batch.
template <typename Call>
double timeBatch(Call call) {
  using Clock = std::chrono::steady_clock;
  int failed = 0;
  Clock::time_point start = Clock::now();
  for (int i = 0; i < kCallsPerBatch; ++i)
    failed |= call();
  std::chrono::duration<double, std::nano> time = Clock::now() - start;
  if (failed)
    quit("a call failed");
  return time.count() / kCallsPerBatch;
}

void print(const char *label, std::vector<double> &times) {
  std::sort(times.begin(), times.end());
  std::printf("%-28s %6.1f ns (10%% %.1f, 90%% %.1f)\n", label,
              times[times.size() / 2], times[times.size() / 10],
              times[times.size() * 9 / 10]);
}
} // namespace

int main() {
  setenv("FTRT_CUDA_DRIVER", FTUNER_FAKE_DRIVER, 1);
  theKernel.module = &theModule;
  if (ftrt_device_select(0) || ftrt_prepare(&theModule, nullptr))
    quit("preparing");
  void *library = dlopen(FTUNER_FAKE_DRIVER, RTLD_NOW);
  using ftrt::cuda::Driver;
  Driver driver;
  driver.cuLaunchKernel = reinterpret_cast<decltype(driver.cuLaunchKernel)>(
      dlsym(library, "cuLaunchKernel"));
  driver.cuCtxGetDevice = reinterpret_cast<decltype(driver.cuCtxGetDevice)>(
      dlsym(library, "cuCtxGetDevice"));

  // The fake driver hands the kernel over, for the bare launches.
  static ftrt::cuda::CUfunction function;
  fake::fake_driver_control()->onLaunch = [](const fake::Launch &launch) {
    function = static_cast<ftrt::cuda::CUfunction>(launch.function);
  };
  int value = 0;
  void *parameters[] = {&value};
  if (ftrt_launch(&theKernel, 1, 32, 0, nullptr, parameters))
    quit("launching");
  fake::fake_driver_control()->onLaunch = nullptr;

  // A weight of 4096 rows of f16 in boxes of 64 x 128 elements.
  const ftrt_tensor_map kind = {"kernel", "rhs_map", 6, 2, {64, 128}, 3, 3};
  static std::vector<uint16_t> weight(1 << 20);
  const int64_t sizes[] = {4096, 4096}, strides[] = {4096};
  alignas(64) unsigned char map[128];
  auto encode = [&](int64_t rows) {
    const int64_t some[] = {sizes[0], rows};
    return ftrt_tensor_map_encode(&kind, weight.data(), some, strides, nullptr,
                                  map);
  };
  int64_t rows = 0;

  std::vector<double> bare, device, whole, kept, encoded;
  for (int i = 0; i < kBatches; ++i) {
    bare.push_back(timeBatch([&] {
      return driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr,
                                   parameters, nullptr);
    }));
    device.push_back(timeBatch([&] {
      int current = 0;
      return driver.cuCtxGetDevice(&current);
    }));
    whole.push_back(timeBatch([&] {
      return ftrt_launch(&theKernel, 1, 32, 0, nullptr, parameters);
    }));
    kept.push_back(timeBatch([&] { return encode(4096); }));
    // More sizes in turn than there are places.
    encoded.push_back(timeBatch([&] { return encode(1 + rows++ % 10000); }));
  }
  print("cuLaunchKernel (fake)", bare);
  print("cuCtxGetDevice (fake)", device);
  print("ftrt_launch over both", whole);
  print("a tensor map that is kept", kept);
  print("a tensor map that is new", encoded);
  std::printf("ftrt_launch itself adds %.1f ns\n",
              whole[kBatches / 2] - bare[kBatches / 2] - device[kBatches / 2]);
  return 0;
}
