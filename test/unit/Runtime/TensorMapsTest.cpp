//===- TensorMapsTest.cpp - Encoding of tensor maps -----------------------===//
//
// The fake driver and the fake emulator encode maps as the emulator does, so
// that tests can read what a kernel would get.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "RuntimeTest.h"
#include <random>
#include <thread>

using namespace fake;
using ftuner::emulator::EmulatedTensorMap;

namespace {

/// Numbers of the driver: f32 and bf16, and bytes of both.
constexpr uint32_t kFloat32 = 7, kBFloat16 = 9;

/// A call of ftrt_tensor_map_encode.
struct Call {
  std::vector<uint32_t> box;
  uint32_t type = kFloat32, swizzle = 0, l2Promotion = 0;
  uintptr_t address = 0;
  std::vector<int64_t> sizes, strides;

  int32_t encode(void *map, void *stream = nullptr) const {
    ftrt_tensor_map kind = {
        "f_0_k1", "lhs_map", type,       uint32_t(box.size()),
        {},       swizzle,   l2Promotion};
    std::copy(box.begin(), box.end(), kind.box);
    return ftrt_tensor_map_encode(&kind, reinterpret_cast<void *>(address),
                                  sizes.data(), strides.data(), stream, map);
  }
};

uint64_t bytesOf(uint32_t type) { return type == kFloat32 ? 4 : 2; }

/// A legal one.
Call randomCall(std::mt19937_64 &random) {
  auto number = [&](uint64_t low, uint64_t high) {
    return low + random() % (high - low + 1);
  };
  Call call;
  call.type = number(0, 1) ? kFloat32 : kBFloat16;
  call.swizzle = number(0, 3);
  call.l2Promotion = number(0, 3);
  call.address = 16 * number(1, uint64_t(1) << 40);
  uint64_t rank = number(1, 5);
  uint64_t chunks = call.swizzle ? uint64_t(1) << call.swizzle : 8;
  call.box.push_back(number(1, chunks) * 16 / bytesOf(call.type));
  for (uint64_t i = 0; i < rank; ++i) {
    call.sizes.push_back(number(1, INT32_MAX));
    if (i == 0)
      continue;
    call.box.push_back(number(1, 256));
    call.strides.push_back(16 / bytesOf(call.type) * number(0, 1 << 27));
  }
  return call;
}

class TensorMapsTest : public RuntimeTest {
protected:
  /// What a map says, against the call; the device's number in front.
  static void expectMap(const char *map, const Call &call, int device) {
    EmulatedTensorMap got;
    std::memcpy(&got, map, sizeof(got));
    EXPECT_EQ(map[127], device);
    EXPECT_EQ(got.mark, EmulatedTensorMap::kMark);
    EXPECT_EQ(got.address, call.address);
    EXPECT_EQ(got.rank, call.box.size());
    EXPECT_EQ(uint32_t(got.type), call.type);
    EXPECT_EQ(uint32_t(got.swizzle), call.swizzle);
    EXPECT_EQ(got.fillsWithNaN, 0);
    for (size_t i = 0; i < call.box.size(); ++i) {
      EXPECT_EQ(got.sizes[i], uint64_t(call.sizes[i]));
      EXPECT_EQ(got.box[i], call.box[i]);
      EXPECT_EQ(got.elementStrides[i], 1);
      if (i > 0) {
        EXPECT_EQ(got.strides[i - 1],
                  uint64_t(call.strides[i - 1]) * bytesOf(call.type));
      }
    }
  }

  /// Of 128 bytes, with nothing around that it may write to.
  struct Place {
    char before[8], map[128], behind[8];
    Place() { std::memset(this, 0x5a, sizeof(*this)); }
    bool isIntact() const {
      Place fresh;
      return !std::memcmp(before, fresh.before, 8) &&
             !std::memcmp(behind, fresh.behind, 8);
    }
  };

  RandomSeed seed;
  /// Of its own in each test: maps that one encoded are kept for the next.
  std::mt19937_64 random{
      seed +
      std::hash<std::string>()(
          testing::UnitTest::GetInstance()->current_test_info()->name())};
  std::atomic<int> &calls = driver.calls[cuTensorMapEncodeTiled];
};

TEST_F(TensorMapsTest, HoldWhatWasAsked) {
  for (int i = 0; i < 2000; ++i) {
    Call call = randomCall(random);
    Place onDevice, emulated;
    ASSERT_SUCCESS(call.encode(onDevice.map));
    expectMap(onDevice.map, call, 0);
    ASSERT_SUCCESS(call.encode(emulated.map, ftrt_emulator_stream()));
    expectMap(emulated.map, call, 0);
    EXPECT_TRUE(onDevice.isIntact() && emulated.isIntact());
  }
}

TEST_F(TensorMapsTest, AreKeptAsLongAsNothingChanges) {
  Call call = randomCall(random);
  while (call.box.size() < 3)
    call = randomCall(random);
  Place place;
  ASSERT_SUCCESS(call.encode(place.map));
  calls = 0;
  for (int i = 0; i < 100; ++i)
    ASSERT_SUCCESS(call.encode(place.map));
  EXPECT_EQ(calls, 0);

  // Whatever else is asked is another map.
  std::vector<Call> others(9, call);
  others[0].address += 16;
  others[1].sizes[0] ^= 1;
  others[2].sizes[2] ^= 1;
  others[3].strides[0] ^= 16;
  others[4].strides[1] ^= 16;
  others[5].l2Promotion ^= 1;
  others[6].box[2] = call.box[2] % 256 + 1;
  others[7].type = call.type == kFloat32 ? kBFloat16 : kFloat32;
  others[7].strides.assign(call.strides.size(), 0);
  others[7].box[0] = 8, others[7].swizzle = 0;
  others[8].sizes.resize(2), others[8].strides.resize(1);
  others[8].box.resize(2);
  for (size_t i = 0; i < others.size(); ++i) {
    // Sizes and box stay above 0.
    for (int64_t &size : others[i].sizes)
      size = std::max<int64_t>(size, 1);
    calls = 0;
    ASSERT_SUCCESS(others[i].encode(place.map));
    EXPECT_EQ(calls, 1) << i;
    expectMap(place.map, others[i], 0);
  }
}

TEST_F(TensorMapsTest, BelongToADevice) {
  Call call = randomCall(random);
  Place place;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (int device : {0, 2, 1}) {
      ASSERT_SUCCESS(ftrt_device_select(device));
      ASSERT_SUCCESS(call.encode(place.map));
      expectMap(place.map, call, device);
    }
  EXPECT_EQ(calls, 3);
  ASSERT_SUCCESS(call.encode(place.map, ftrt_emulator_stream()));
  expectMap(place.map, call, 0);
  EXPECT_EQ(calls, 3);
}

TEST_F(TensorMapsTest, ManyTakeThePlacesOfOthers) {
  std::vector<Call> all;
  for (int i = 0; i < 4000; ++i)
    all.push_back(randomCall(random));
  Place place;
  for (const Call &call : all) {
    ASSERT_SUCCESS(call.encode(place.map));
    expectMap(place.map, call, 0);
  }
  // As many as a model has weights stay, once they are all there.
  all.resize(200);
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const Call &call : all)
      ASSERT_SUCCESS(call.encode(place.map));
  calls = 0;
  for (const Call &call : all) {
    ASSERT_SUCCESS(call.encode(place.map));
    expectMap(place.map, call, 0);
  }
  EXPECT_LT(calls, 50);
}

TEST_F(TensorMapsTest, OfNothingAreZeros) {
  Call call = randomCall(random);
  call.sizes[random() % call.sizes.size()] = 0;
  call.address = 1; // There is no tensor.
  Place place;
  ASSERT_SUCCESS(call.encode(place.map));
  EXPECT_EQ(std::string(place.map, 128), std::string(128, '\0'));
  EXPECT_TRUE(place.isIntact());
  EXPECT_EQ(calls, 0);
}

TEST_F(TensorMapsTest, SayWhyTheyAreRefused) {
  Call good;
  good.box = {32, 4};
  good.swizzle = 3;
  good.address = 0x1000;
  good.sizes = {100, 7};
  good.strides = {100};
  Place place;
  ASSERT_SUCCESS(good.encode(place.map));
  auto expect = [&](const Call &call, const std::string &why) {
    std::string what = "kernel 'f_0_k1': tensor map 'lhs_map' of ";
    EXPECT_FAILURE(call.encode(place.map), FTRT_ERROR_DRIVER, what);
    EXPECT_FAILURE(call.encode(place.map), FTRT_ERROR_DRIVER,
                   "cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE (words of "
                   "the fake driver): " +
                       why);
    EXPECT_FAILURE(call.encode(place.map, ftrt_emulator_stream()),
                   FTRT_ERROR_INVALID_ARGUMENT, what);
    EXPECT_FAILURE(call.encode(place.map, ftrt_emulator_stream()),
                   FTRT_ERROR_INVALID_ARGUMENT, "in the emulator: " + why);
  };
  Call bad = good;
  bad.address += 8;
  expect(bad,
         "expected a tensor of a tensor map at a multiple of 16 bytes, but "
         "got 4104");
  EXPECT_FAILURE(bad.encode(place.map), FTRT_ERROR_DRIVER,
                 "of 100 x 7 elements at 0x1008, strides of 400 bytes: ");
  bad = good;
  bad.strides = {101};
  expect(bad, "expected a stride of a multiple of 16 bytes below 2^40 of "
              "dimension 1 of a tensor map, but got 404");
  bad = good;
  bad.strides = {-4};
  expect(bad, "expected a stride of a multiple of 16 bytes below 2^40");
  bad = good;
  bad.sizes = {100, -7};
  expect(bad, "expected a size of 1 to 4294967296 of dimension 1");
  bad = good;
  bad.box = {36, 4};
  expect(bad, "expected rows of at most 128 bytes");
  bad = good;
  bad.box = {32, 257};
  expect(bad, "expected a box of 1 to 256 elements of dimension 1");
  // What failed is not kept.
  ASSERT_SUCCESS(good.encode(place.map));
  expectMap(place.map, good, 0);

  driver.failures[cuTensorMapEncodeTiled] = 801;
  good.address += 16;
  EXPECT_FAILURE(good.encode(place.map), FTRT_ERROR_DRIVER,
                 "strides of 400 bytes: cuTensorMapEncodeTiled: error 801");
}

TEST_F(TensorMapsTest, RefuseWhatIsNoCall) {
  Call call = randomCall(random);
  const std::string why = "expected a tensor map of 1 to 5 dimensions";
  EXPECT_FAILURE(call.encode(nullptr), FTRT_ERROR_INVALID_ARGUMENT, why);
  EXPECT_FAILURE(ftrt_tensor_map_encode(nullptr, nullptr, nullptr, nullptr,
                                        nullptr, nullptr),
                 FTRT_ERROR_INVALID_ARGUMENT, why);
  ftrt_tensor_map kind = {nullptr, nullptr, kFloat32, 6, {4}, 0, 0};
  int64_t sizes[6] = {1, 1, 1, 1, 1, 1};
  Place place;
  for (uint32_t rank : {0u, 6u}) {
    kind.rank = rank;
    EXPECT_FAILURE(
        ftrt_tensor_map_encode(&kind, &place, sizes, sizes, nullptr, place.map),
        FTRT_ERROR_INVALID_ARGUMENT, why);
  }
  fake_driver_clear_context();
  EXPECT_FAILURE(call.encode(place.map), FTRT_ERROR_DRIVER,
                 "expected a CUDA context that is current to this thread");
}

TEST_F(TensorMapsTest, WhileAStreamIsCaptured) {
  fake_driver_begin_capture();
  Place place;
  for (int i = 0; i < 100; ++i) {
    Call call = randomCall(random);
    EXPECT_SUCCESS(call.encode(place.map));
    expectMap(place.map, call, 0);
  }
  fake_driver_end_capture();
  EXPECT_FALSE(driver.captureInvalidated);
}

TEST_F(TensorMapsTest, FromManyThreads) {
  // More than there are places, so that they are written all the time.
  std::vector<Call> all;
  for (int i = 0; i < 1500; ++i)
    all.push_back(randomCall(random));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937_64 order(seed + thread);
      wrong += ftrt_device_select(thread % 2) != FTRT_SUCCESS;
      for (int i = 0; i < 5000; ++i) {
        // Some of them more often.
        const Call &call = all[order() % (order() % 2 ? all.size() : 20)];
        char map[128];
        wrong += call.encode(map) != FTRT_SUCCESS;
        EmulatedTensorMap got;
        std::memcpy(&got, map, sizeof(got));
        wrong +=
            map[127] != thread % 2 || got.address != call.address ||
            got.rank != call.box.size() ||
            got.sizes[0] != uint64_t(call.sizes[0]) ||
            got.sizes[call.box.size() - 1] != uint64_t(call.sizes.back()) ||
            got.box[0] != call.box[0];
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
