//===- dispatch_time.cpp - Nanoseconds of a call of compiled host code ----===//
//
// Built and run by dispatch_time.py, which writes `peers.h` from the manifest
// of the library: the families of the kernels with their tiles, and a table
// from each size to its family and blocks. The runtime is one whose ftrt_launch
// does nothing, so what is measured is everything else of a call.
//
// Peers choose the same kernels for the same sizes:
//   table     an array over the sizes, as somebody would write it by hand for
//             this one operator and range; no checks
//   hash map  std::unordered_map from the size, as caches of compiled shapes do
//   launch    the launch alone: what every call pays
//
//===----------------------------------------------------------------------===//
#include "peers.h"
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <unordered_map>
#include <vector>

namespace {
ftrt_kernel kernels[kKernelCount];
void *buffers[4];
void *const stream = nullptr;

/// A launch as compiled host code makes it, pointers, the size and the number
/// of the first uKernel's blocks being the parameters.
int32_t launchChoice(const Choice &choice, int64_t size) {
  int32_t rows = static_cast<int32_t>(size), part = choice.firstBlocks;
  void *parameters[] = {&buffers[0], &buffers[1], &buffers[2],
                        &buffers[3], &rows,       &part};
  return ftrt_launch(&kernels[choice.kernel], choice.blocks, choice.threads,
                     choice.sharedBytes, stream, parameters);
}

std::unordered_map<int64_t, Choice> makeMap() {
  std::unordered_map<int64_t, Choice> map;
  for (int64_t size = kFirstSize; size <= kLastSize; ++size)
    map[size] = kChoices[size - kFirstSize];
  return map;
}
const std::unordered_map<int64_t, Choice> map = makeMap();

int32_t callLibrary(int64_t size) {
  return dense(buffers[0], buffers[1], buffers[2], buffers[3], size, nullptr,
               stream);
}
int32_t callTable(int64_t size) {
  return launchChoice(kChoices[size - kFirstSize], size);
}
int32_t callMap(int64_t size) {
  return launchChoice(map.find(size)->second, size);
}
int32_t callLaunch(int64_t size) { return launchChoice(kChoices[0], size); }

/// Nanoseconds of a call over `sizes`: median of the rounds.
template <typename Call>
double measure(Call call, const std::vector<int64_t> &sizes, int rounds) {
  std::vector<double> nanoseconds;
  int32_t codes = 0;
  for (int round = 0; round < rounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int64_t size : sizes)
      codes |= call(size);
    std::chrono::duration<double, std::nano> time =
        std::chrono::steady_clock::now() - start;
    nanoseconds.push_back(time.count() / static_cast<double>(sizes.size()));
  }
  if (codes != 0)
    std::fprintf(stderr, "error: a call failed with code %d\n", codes);
  std::nth_element(nanoseconds.begin(), nanoseconds.begin() + rounds / 2,
                   nanoseconds.end());
  return codes == 0 ? nanoseconds[rounds / 2] : -1;
}
} // namespace

int main() {
  alignas(256) static char memory[4][256];
  for (int i = 0; i < 4; ++i)
    buffers[i] = memory[i];
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> draw(kFirstSize, kLastSize);
  std::vector<int64_t> mixed(100000),
      equal(100000, (kFirstSize + kLastSize) / 2);
  for (int64_t &size : mixed)
    size = draw(random);
  bool failed = false;
  auto report = [&](const char *name, auto call) {
    double fixed = measure(call, equal, 51), random = measure(call, mixed, 51);
    failed |= fixed < 0 || random < 0;
    std::printf("%s,%.2f,%.2f\n", name, fixed, random);
  };
  std::printf("call,ns_equal_sizes,ns_random_sizes\n");
  report("launch", callLaunch);
  report("table", callTable);
  report("hash map", callMap);
  report("ftuner", callLibrary);
  return failed;
}
