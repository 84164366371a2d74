//===- TensorMapTest.cpp - Encoding of tensor maps ------------------------===//
//
// Arguments that the driver takes, and each that it refuses; and those who
// encode: the stand-in driver, and the emulator for libftrt.
//
//===----------------------------------------------------------------------===//
#include "EmulatorTest.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include <dlfcn.h>
#include <functional>

using namespace ftuner::emulator;

namespace {
/// Arguments for a tensor of three dimensions, to be changed by tests.
struct Encoding {
  alignas(64) char map[kTensorMapBytes] = {};
  alignas(16) char tensor[16] = {};
  uint64_t sizes[5] = {100, 30, 4, 3, 2};
  uint64_t strides[4] = {208, 6240, 24960, 74880};
  uint32_t box[5] = {64, 30, 1, 1, 1};
  uint32_t elementStrides[5] = {1, 1, 1, 1, 1};
  TensorMapArguments arguments{
      6, 3, tensor, sizes, strides, box, elementStrides, 0, 3, 2, 0};
  std::string run() { return encodeTensorMap(map, arguments); }
};

TEST(TensorMapTest, KeepsItsArguments) {
  Encoding encoding;
  ASSERT_EQ(encoding.run(), "");
  EmulatedTensorMap map;
  std::memcpy(&map, encoding.map, sizeof(map));
  EXPECT_EQ(map.mark, EmulatedTensorMap::kMark);
  EXPECT_EQ(map.address, reinterpret_cast<uintptr_t>(encoding.tensor));
  EXPECT_EQ(map.rank, 3);
  EXPECT_EQ(map.type, TensorMapType::Float16);
  EXPECT_EQ(map.swizzle, TensorMapSwizzle::Bytes128);
  EXPECT_EQ(map.sizes[2], 4u);
  EXPECT_EQ(map.strides[1], 6240u);
  EXPECT_EQ(map.boxBytes(), 64u * 30 * 2);
}

TEST(TensorMapTest, ElementStridesThinTheBox) {
  Encoding encoding;
  encoding.elementStrides[0] = 7; // Has no effect.
  encoding.elementStrides[1] = 4;
  ASSERT_EQ(encoding.run(), "");
  EmulatedTensorMap map;
  std::memcpy(&map, encoding.map, sizeof(map));
  EXPECT_EQ(map.boxBytes(), 64u * 8 * 2);
}

TEST(TensorMapTest, TakesAllRanksAndLimits) {
  for (uint32_t rank = 1; rank <= 5; ++rank) {
    Encoding encoding;
    encoding.arguments.rank = rank;
    encoding.sizes[0] = uint64_t(1) << 32;
    encoding.strides[0] = (uint64_t(1) << 40) - 16;
    if (rank > 1)
      encoding.box[1] = 256;
    EXPECT_EQ(encoding.run(), "");
  }
}

TEST(TensorMapTest, RefusesWhatTheDriverRefuses) {
  const std::pair<const char *, std::function<void(Encoding &)>> mistakes[] = {
      {"an element type", [](Encoding &e) { e.arguments.type = 13; }},
      {"1 to 5 dimensions", [](Encoding &e) { e.arguments.rank = 0; }},
      {"1 to 5 dimensions", [](Encoding &e) { e.arguments.rank = 6; }},
      {"got null", [](Encoding &e) { e.arguments.sizes = nullptr; }},
      {"got null", [](Encoding &e) { e.arguments.strides = nullptr; }},
      {"got null", [](Encoding &e) { e.arguments.box = nullptr; }},
      {"got null", [](Encoding &e) { e.arguments.elementStrides = nullptr; }},
      {"interleaving", [](Encoding &e) { e.arguments.interleave = 1; }},
      {"a swizzle", [](Encoding &e) { e.arguments.swizzle = 4; }},
      {"an L2 promotion", [](Encoding &e) { e.arguments.l2Promotion = 4; }},
      {"a fill", [](Encoding &e) { e.arguments.fill = 2; }},
      {"a fill",
       [](Encoding &e) {
         e.arguments.fill = 1;
         e.arguments.type = 1;
       }},
      {"a multiple of 16 bytes, but got",
       [](Encoding &e) { e.arguments.address = e.tensor + 8; }},
      {"a multiple of 16 bytes, but got",
       [](Encoding &e) { e.arguments.address = nullptr; }},
      {"a size of 1 to 4294967296 of dimension 1",
       [](Encoding &e) { e.sizes[1] = 0; }},
      {"a size of 1 to 4294967296 of dimension 2",
       [](Encoding &e) { e.sizes[2] = (uint64_t(1) << 32) + 1; }},
      {"a stride of a multiple of 16 bytes below 2^40 of dimension 1",
       [](Encoding &e) { e.strides[0] = 200; }},
      {"below 2^40 of dimension 2",
       [](Encoding &e) { e.strides[1] = uint64_t(1) << 40; }},
      {"a box of 1 to 256 elements of dimension 1",
       [](Encoding &e) { e.box[1] = 257; }},
      {"a box of 1 to 256 elements of dimension 2",
       [](Encoding &e) { e.box[2] = 0; }},
      {"an element stride of 1 to 8 of dimension 1",
       [](Encoding &e) { e.elementStrides[1] = 9; }},
      {"an element stride of 1 to 8 of dimension 0",
       [](Encoding &e) { e.elementStrides[0] = 0; }},
      {"rows of a multiple of 16 bytes", [](Encoding &e) { e.box[0] = 60; }},
      {"rows of at most 128 bytes", [](Encoding &e) { e.box[0] = 72; }},
      {"rows of at most 32 bytes",
       [](Encoding &e) { e.arguments.swizzle = 1; }}};
  for (const auto &[text, change] : mistakes) {
    Encoding encoding;
    change(encoding);
    std::string error = encoding.run();
    EXPECT_NE(error.find(text), std::string::npos) << text << " in: " << error;
    EXPECT_TRUE(std::all_of(encoding.map, encoding.map + kTensorMapBytes,
                            [](char byte) { return byte == 0; }));
  }
  Encoding encoding;
  EXPECT_NE(encodeTensorMap(encoding.map + 32, encoding.arguments), "");
  EXPECT_NE(encodeTensorMap(nullptr, encoding.arguments), "");
}

TEST(TensorMapTest, StandInDriverEncodes) {
  void *library = dlopen(CUDA_EMULATOR_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  using Find = int (*)(const char *, void **, int, uint64_t);
  auto find = reinterpret_cast<Find>(dlsym(library, "cuGetProcAddress"));
  ASSERT_TRUE(find);
  void *function = nullptr;
  ASSERT_EQ(find("cuTensorMapEncodeTiled", &function, 12000, 0), 0);
  using Encode =
      int (*)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
              const uint32_t *, const uint32_t *, int, int, int, int);
  auto encode = reinterpret_cast<Encode>(function);
  Encoding expected;
  ASSERT_EQ(expected.run(), "");
  Encoding e;
  auto run = [&](int rank) {
    return encode(e.map, 6, rank, expected.tensor, e.sizes, e.strides, e.box,
                  e.elementStrides, 0, 3, 2, 0);
  };
  EXPECT_EQ(run(3), 0);
  EXPECT_TRUE(std::equal(e.map, e.map + kTensorMapBytes, expected.map));
  constexpr int kInvalidValue = 1; // CUDA_ERROR_INVALID_VALUE
  EXPECT_EQ(run(6), kInvalidValue);
}

TEST(TensorMapTest, EmulatorEncodesForTheRuntime) {
  void *library = dlopen(FTRT_EMULATOR_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto get = reinterpret_cast<decltype(&ftrt_emulator_get_interface)>(
      dlsym(library, FTRT_EMULATOR_GET_INTERFACE));
  ASSERT_TRUE(get);
  Encoding expected;
  ASSERT_EQ(expected.run(), "");
  Encoding e;
  char message[16] = "none";
  auto run = [&](uint32_t rank) {
    return get()->encode_tensor_map(e.map, 6, rank, expected.tensor, e.sizes,
                                    e.strides, e.box, e.elementStrides, 0, 3, 2,
                                    0, message, sizeof(message));
  };
  EXPECT_EQ(run(3), FTRT_SUCCESS);
  EXPECT_TRUE(std::equal(e.map, e.map + kTensorMapBytes, expected.map));
  EXPECT_STREQ(message, "none");
  EXPECT_EQ(run(6), FTRT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "expected a tens"); // As far as there is room.
}
} // namespace
