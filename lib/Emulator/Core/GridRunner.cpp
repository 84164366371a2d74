//===- GridRunner.cpp - Runs the blocks of a launch -----------------------===//
#include "GridRunner.h"
#include "Checks/Text.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <numeric>
#include <pthread.h>
#include <thread>

using namespace ftuner::emulator;

namespace {
// What every CUDA device of today accepts (CUDA programming guide, table of
// technical specifications).
constexpr uint64_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxBlockZ = 64;
constexpr uint32_t kMaxGridX = 0x7fffffff;
constexpr uint32_t kMaxGridYZ = 65535;
/// The largest shared memory of a block on any device, bytes.
constexpr uint64_t kMaxSharedBytes = 227 * 1024;
/// Blocks of a cluster that every device with clusters can run.
constexpr uint32_t kMaxClusterSize = 8;
} // namespace

std::string ftuner::emulator::checkLaunch(const std::string &kernel,
                                          const KernelLimits &limits,
                                          const Launch &launch) {
  auto fail = [&](const auto &...text) {
    return joinText("cannot launch kernel '", kernel, "': ", text...);
  };
  const uint32_t (&grid)[3] = launch.grid, (&block)[3] = launch.block;
  uint64_t threads = uint64_t(block[0]) * block[1];
  if (threads == 0 || threads > kMaxThreadsPerBlock || block[2] == 0 ||
      block[2] > kMaxBlockZ || threads * block[2] > kMaxThreadsPerBlock)
    return fail("expected a block of 1 to 1024 threads, but got ",
                formatIndex(block));
  if (grid[0] > kMaxGridX || grid[1] > kMaxGridYZ || grid[2] > kMaxGridYZ)
    return fail("expected a grid of at most (2147483647,65535,65535) blocks, "
                "but got ",
                formatIndex(grid));
  if (limits.clusterSize == 0 || limits.clusterSize > kMaxClusterSize)
    return fail("expected clusters of 1 to ", kMaxClusterSize,
                " blocks, but got ", limits.clusterSize);
  if (grid[0] % limits.clusterSize != 0)
    return fail("expected a grid of clusters of ", limits.clusterSize,
                " blocks along x, but got ", formatIndex(grid), " blocks");
  uint64_t sharedBytes =
      uint64_t(launch.dynamicSharedBytes) + limits.staticSharedBytes;
  if (sharedBytes > kMaxSharedBytes)
    return fail("expected at most ", kMaxSharedBytes,
                " bytes of shared memory, but got ", sharedBytes);
  if (limits.knownBlock &&
      !std::equal(block, block + 3, limits.knownBlock->begin())) {
    const std::array<uint32_t, 3> &known = *limits.knownBlock;
    return fail("expected a block of ",
                formatIndex({known[0], known[1], known[2]}),
                " threads, but got ", formatIndex(block));
  }
  if (limits.maxThreads && threads * block[2] > *limits.maxThreads)
    return fail("expected a block of at most ", *limits.maxThreads,
                " threads, but got ", threads * block[2]);
  return "";
}

/// Waits for a thread, and asks the caller meanwhile.
static void join(pthread_t thread, Interruption *interruption) {
  if (!interruption) {
    pthread_join(thread, nullptr);
    return;
  }
  constexpr long billion = 1000000000;
  timespec deadline;
  do {
    interruption->look();
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec +=
        std::chrono::nanoseconds(Interruption::kInterval).count();
    deadline.tv_sec += deadline.tv_nsec / billion;
    deadline.tv_nsec %= billion;
  } while (pthread_timedjoin_np(thread, nullptr, &deadline) == ETIMEDOUT);
}

std::string GridRunner::run(const Launch &launch, unsigned workerCount) {
  uint64_t clusters = uint64_t(launch.grid[0]) * launch.grid[1] *
                      launch.grid[2] / launch.clusterSize;
  if (clusters == 0)
    return "";
  uint64_t workers =
      workerCount ? workerCount : std::thread::hardware_concurrency();
  if (launch.checker || launch.counter)
    workers = 1;
  workers = std::clamp<uint64_t>(workers, 1, clusters);
  while (runners.size() < workers)
    runners.push_back(std::make_unique<ClusterRunner>());
  for (uint64_t i = 0; i < workers; ++i)
    if (!runners[i]->prepare(launch, /*runsOnCaller=*/i == 0)) {
      if (i == 0)
        return "cannot allocate the threads' stacks";
      workers = i; // There is memory for so many.
    }

  std::atomic<uint64_t> next{0};
  // A stride that has no factor in common with the number of clusters visits
  // each of them once.
  uint64_t stride = 1;
  if (launch.order == RunOrder::Shuffled)
    for (stride = clusters * 5 / 8 + 1 + launch.seed % 7;
         std::gcd(stride, clusters) != 1;)
      ++stride;
  auto work = [&](ClusterRunner &runner) {
    uint64_t turn;
    auto isInterrupted = [&] {
      return launch.interruption && launch.interruption->isRaised();
    };
    while ((turn = next++) < clusters && !launch.log->isFull() &&
           !isInterrupted()) {
      uint64_t cluster = turn * stride % clusters;
      if (launch.order == RunOrder::Reverse)
        cluster = clusters - 1 - turn;
      runner.run(cluster);
    }
  };
  struct Worker {
    decltype(work) *run;
    ClusterRunner *runner;
    pthread_t thread;
  };
  auto start = [](void *argument) -> void * {
    auto *worker = static_cast<Worker *>(argument);
    (*worker->run)(*worker->runner);
    return nullptr;
  };
  // Where the system gives no more threads, fewer do the work. std::thread
  // would end the process.
  std::vector<Worker> others(workers - 1);
  size_t started = 0;
  for (; started < others.size(); ++started) {
    Worker &worker = others[started];
    worker = {&work, runners[started + 1].get(), {}};
    if (pthread_create(&worker.thread, nullptr, start, &worker) != 0)
      break;
  }
  work(*runners[0]);
  for (size_t i = 0; i < started; ++i)
    join(others[i].thread, launch.interruption);
  return "";
}
