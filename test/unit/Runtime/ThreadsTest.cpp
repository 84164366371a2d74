//===- ThreadsTest.cpp - Many threads at once -----------------------------===//
#include "RuntimeTest.h"
#include <thread>

using namespace fake;

namespace {
constexpr int kThreads = 16, kLaunches = 200;

/// Runs `body(i)` in thread i, all starting at once.
template <typename Body>
void inThreads(Body body) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads)
        std::this_thread::yield();
      body(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

std::atomic<int> wrong, accepted;

TEST_F(RuntimeTest, FirstLaunchesOfManyThreadsLoadOnce) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    fake_driver_reset();
    TestModule model;
    model.addPTX(80);
    model.addCubin(90);
    accepted = wrong = 0;
    // Parameter 0 says what the thread asked for.
    driver.onLaunch = [](const fake::Launch &launch) {
      ++accepted;
      auto *asked = static_cast<int *>(launch.parameters[0]);
      wrong += launch.device != asked[0] ||
               launch.dynamicSharedBytes != unsigned(asked[1]) ||
               std::strcmp(launch.kernel, asked[2] ? "second" : "first") != 0;
    };
    std::atomic<int> failed{0};
    inThreads([&](int thread) {
      int device = thread % 3;
      failed += ftrt_device_select(device) != FTRT_SUCCESS;
      for (int i = 0; i < kLaunches; ++i) {
        int asked[] = {device, i % 2 ? 0 : 500 * thread + 40000,
                       (i + thread) % 2};
        void *parameters[] = {asked};
        failed += ftrt_launch(model[asked[2]], 1, 32, asked[1], nullptr,
                              parameters) != FTRT_SUCCESS;
      }
    });
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(accepted, kThreads * kLaunches);
    EXPECT_EQ(driver.calls[cuLibraryLoadData], 2);
    EXPECT_EQ(driver.calls[cuLibraryGetKernel], 6);
  }
}

TEST_F(RuntimeTest, ErrorsBelongToTheirThread) {
  std::atomic<int> failed{0};
  inThreads([&](int thread) {
    std::string words = "failure of thread " + std::to_string(thread);
    failed += *ftrt_last_error() != '\0';
    for (int i = 0; i < kLaunches; ++i) {
      ftrt_fail(words.c_str());
      failed += ftrt_last_error() != words;
    }
  });
  EXPECT_EQ(failed, 0);
}

void increment(void **parameters) {
  static_cast<std::atomic<int> *>(parameters[0])->fetch_add(1);
}

TEST_F(RuntimeTest, PreparesAndLaunchesInBothWorldsAtOnce) {
  TestModule model;
  model.addPTX(80);
  model.addHost({increment, increment}, 3);
  driver.onLaunch = nullptr;
  std::atomic<int> failed{0}, runs{0};
  inThreads([&](int thread) {
    void *parameters[] = {&runs};
    bool emulated = thread % 2;
    void *stream = emulated ? ftrt_emulator_stream() : nullptr;
    if (!emulated)
      failed += ftrt_device_select(thread % 3) != FTRT_SUCCESS;
    failed += ftrt_prepare(&model.module, stream) != FTRT_SUCCESS;
    for (int i = 0; i < kLaunches; ++i)
      failed += ftrt_launch(model[i % 2], 1, 32, 0, stream, parameters) !=
                FTRT_SUCCESS;
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(runs, kThreads / 2 * kLaunches);
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
}
} // namespace
