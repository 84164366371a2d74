//===- LaunchPathTest.cpp - What a launch does not do ---------------------===//
//
// A program of its own: it stands in for the functions of libc that allocate
// memory and take locks, and counts the calls of the whole process.
//
//===----------------------------------------------------------------------===//
#include "RuntimeTest.h"
#include <dlfcn.h>
#include <pthread.h>

std::vector<fake::Launch> RuntimeTest::launches;

// Sanitizers stand in for the same functions.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
TEST_F(RuntimeTest, LaunchesNeitherAllocateNorLock) { GTEST_SKIP(); }
TEST_F(RuntimeTest, TensorMapsNeitherAllocateNorLock) { GTEST_SKIP(); }
#else

static std::atomic<int> allocations, locks;

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;
}
int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept {
  ++locks;
  using Lock = int (*)(pthread_mutex_t *);
  static const auto real =
      reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}
}

namespace {
void nothing(void **) {}

TEST_F(RuntimeTest, LaunchesNeitherAllocateNorLock) {
  TestModule model;
  model.addPTX(80);
  model.addHost({nothing, nothing}, 3);
  driver.onLaunch = nullptr;
  allocations = locks = 0;
  ASSERT_SUCCESS(launch(model[0], 100000));
  EXPECT_GT(allocations, 0) << "allocations are not counted";
  EXPECT_GT(locks, 0) << "locks are not counted";
  void *emulator = ftrt_emulator_stream();
  ASSERT_SUCCESS(ftrt_prepare(&model.module, emulator));

  int failed = 0, calls = driver.callCount();
  int32_t isExact = 0;
  allocations = locks = 0;
  for (int i = 0; i < 1000; ++i) {
    failed += ftrt_image_is_exact(&model.module, nullptr, &isExact);
    failed += launch(model[0], 100000);
  }
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_EQ(driver.callCount() - calls, 3000);
  for (int i = 0; i < 1000; ++i)
    failed += ftrt_launch(model[1], 3, 32, 0, emulator, nullptr);
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_EQ(failed, 0);
}

TEST_F(RuntimeTest, TensorMapsNeitherAllocateNorLock) {
  // Of float, 8 x 2 elements.
  const ftrt_tensor_map kind = {"k", "lhs_map", 7, 2, {8, 2}, 1, 0};
  alignas(16) static float elements[16];
  alignas(64) char map[128];
  void *streams[] = {nullptr, ftrt_emulator_stream()};
  auto encode = [&](int64_t rows, void *stream) {
    int64_t sizes[] = {8, rows}, stride = 8;
    return ftrt_tensor_map_encode(&kind, elements, sizes, &stride, stream,
                                  map) != FTRT_SUCCESS;
  };
  int failed = encode(1, streams[0]) + encode(1, streams[1]);
  // Some of them of before, some new.
  allocations = locks = 0;
  for (int i = 0; i < 2000; ++i)
    failed += encode(i % 700 + 2, streams[i % 2]);
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_EQ(failed, 0);
}
} // namespace
#endif
