//===- BulkCopyTest.cpp - Copies of ranges and boxes (cp.async.bulk) ------===//
//
// Boxes of random tensors in every swizzle, to shared memory and back, against
// a reference that goes element by element.
//
//===----------------------------------------------------------------------===//
#include "EmulatorTest.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "FTuner/Runtime/EmulatorInterface.h"
#include "llvm/ADT/APFloat.h"
#include <array>

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 64, kPlace = 1024;

/// A map as kernels take it.
struct alignas(64) Map {
  char bytes[kTensorMapBytes];
};

/// A box of a tensor of bytes.
struct Box {
  unsigned elementBytes, swizzle; ///< The latter as in the map.
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> box;
  std::vector<int32_t> first;
  std::vector<uint32_t> steps = {};
  bool hasNaN = false;
  bool rounds = false; ///< f32 to tf32.

  unsigned rank() const { return static_cast<unsigned>(sizes.size()); }
  uint32_t step(unsigned i) const { return i && !steps.empty() ? steps[i] : 1; }
  uint32_t count(unsigned i) const { return (box[i] + step(i) - 1) / step(i); }
  uint64_t boxBytes() const {
    uint64_t bytes = elementBytes;
    for (unsigned i = 0; i < rank(); ++i)
      bytes *= count(i);
    return bytes;
  }
  /// Bytes between elements along a dimension; rows are padded.
  uint64_t stride(unsigned i) const {
    uint64_t bytes = elementBytes;
    for (unsigned j = 0; j < i; ++j)
      bytes = j == 0 ? (sizes[0] * elementBytes + 31) / 16 * 16
                     : bytes * sizes[j] + 16;
    return bytes;
  }
  uint64_t tensorBytes() const { return stride(rank()) + 16; }
  /// Calls `function` with the place of each element of the box in shared
  /// memory, and its byte in the tensor, or -1.
  template <typename Function>
  void forEachElement(Function function) const {
    uint64_t elements = boxBytes() / elementBytes;
    for (uint64_t i = 0; i < elements; ++i) {
      uint64_t rest = i;
      int64_t from = 0;
      bool isInside = true;
      for (unsigned d = 0; d < rank(); ++d) {
        int64_t at = first[d] + int64_t(rest % count(d) * step(d));
        rest /= count(d);
        isInside = isInside && at >= 0 && at < int64_t(sizes[d]);
        from += at * int64_t(stride(d));
      }
      uint64_t at = kPlace + i * elementBytes;
      uint64_t mask = swizzle == 3 ? 7 : swizzle == 2 ? 3 : swizzle;
      function((at ^ (at / 128 & mask) * 16) - kPlace, isInside ? from : -1);
    }
  }
  Map encode(void *tensor, unsigned type) const {
    Map map;
    std::vector<uint64_t> strides;
    for (unsigned i = 1; i < rank(); ++i)
      strides.push_back(stride(i));
    std::vector<uint32_t> all(rank(), 1);
    for (unsigned i = 0; i < rank() && !steps.empty(); ++i)
      all[i] = steps[i];
    EXPECT_EQ(encodeTensorMap(map.bytes, {type, rank(), tensor, sizes.data(),
                                          strides.data(), box.data(),
                                          all.data(), 0, swizzle, 0, hasNaN}),
              "");
    return map;
  }
};

unsigned typeOf(const Box &box) {
  return box.rounds              ? 11
         : box.elementBytes == 1 ? 0
         : box.elementBytes == 2 ? 6
         : box.elementBytes == 4 ? 7
                                 : 8;
}

/// A number of f32 to the nearest of tf32; NaN stays.
void roundToTF32(char *number) {
  uint32_t bits;
  std::memcpy(&bits, number, sizeof(bits));
  llvm::APFloat value(llvm::APFloat::IEEEsingle(), llvm::APInt(32, bits));
  if (value.isNaN())
    return;
  bool losesInfo;
  for (const llvm::fltSemantics *type :
       {&llvm::APFloat::FloatTF32(), &llvm::APFloat::IEEEsingle()})
    value.convert(*type, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  bits = static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue());
  std::memcpy(number, &bits, sizeof(bits));
}

enum class Bug {
  None,
  Wait,         ///< Nobody waits for the copy.
  InitFence,    ///< None behind the initialisation of the mbarrier.
  FewBytes,     ///< The mbarrier expects less than the box.
  ManyBytes,    ///< It expects more.
  Arrival,      ///< A second thread arrives.
  Rank,         ///< A coordinate too few.
  NoMap,        ///< Something else in the place of the map.
  Misaligned,   ///< A place that is no multiple of 128 bytes.
  SharedMemory, ///< The box ends behind shared memory.
  ReadBefore,   ///< Another thread reads the place meanwhile.
  Overwrite,    ///< Another thread wrote the place, and nobody fenced it.
};

/// Copies the box with the coordinates that are parameters to shared memory,
/// and `words` words of it to `out`.
std::string makeLoad(unsigned rank, uint64_t boxBytes, Bug bug,
                     bool isPredicated) {
  auto constant = [](const std::string &name, uint64_t value) {
    return "%" + name + " = llvm.mlir.constant(" + std::to_string(value) +
           " : i32) : i32\n";
  };
  std::string coordinates;
  for (unsigned i = 0; i < rank - (bug == Bug::Rank); ++i)
    coordinates += (i ? ", %c" : "%c") + std::to_string(i);
  uint64_t expected = boxBytes + (bug == Bug::ManyBytes ? 16 : 0) -
                      (bug == Bug::FewBytes ? 16 : 0);
  std::string text =
      R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @load(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %out: !llvm.ptr<1>, %c0: i32, %c1: i32, %c2: i32, %c3: i32, %c4: i32) attributes {gpu.kernel, nvvm.kernel} {
)" + constant("zero", 0) +
      constant("one", 1) + constant("threads", kThreads) +
      constant("words", boxBytes / 4) + constant("bytes", expected) +
      R"(
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %place = llvm.getelementptr %smem[)" +
      std::to_string(kPlace + (bug == Bug::Misaligned ? 64 : 0)) +
      R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %far = llvm.addrspacecast %place : !llvm.ptr<3> to !llvm.ptr<7>
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      %isLast = llvm.icmp "eq" %tid, %one : i32
      nvvm.prefetch tensormap, %map : !llvm.ptr
      llvm.cond_br %isFirst, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %smem, %one : !llvm.ptr<3>, i32
)";
  if (bug != Bug::InitFence)
    text += "nvvm.fence.mbarrier.init\n";
  text += "llvm.br ^inited\n^inited:\n";
  if (bug == Bug::Overwrite)
    text += "%slot0 = llvm.getelementptr %place[%tid] : (!llvm.ptr<3>, i32) "
            "-> !llvm.ptr<3>, i32\nllvm.store %zero, %slot0 : i32, "
            "!llvm.ptr<3>\n";
  text += "nvvm.barrier0\n";
  if (!isPredicated)
    text += "llvm.cond_br %isFirst, ^issue, ^issued\n^issue:\n";
  std::string predicate = isPredicated ? ", predicate = %isFirst" : "";
  text += "nvvm.mbarrier.arrive.expect_tx %smem, %bytes" + predicate +
          " : !llvm.ptr<3>, i32" + (isPredicated ? ", i1" : "") +
          "\nnvvm.cp.async.bulk.tensor.shared.cluster.global %far, " +
          (bug == Bug::NoMap ? "%generic" : "%map") + ", %smem, box[" +
          coordinates + "]" + (isPredicated ? " predicate = %isFirst" : "") +
          " : !llvm.ptr<7>, !llvm.ptr\n";
  if (bug == Bug::NoMap)
    text.replace(text.find("nvvm.prefetch"), 0,
                 "%generic = llvm.addrspacecast %out : !llvm.ptr<1> to "
                 "!llvm.ptr\n");
  if (!isPredicated)
    text += "llvm.br ^issued\n^issued:\n";
  if (bug == Bug::Arrival)
    text += "llvm.cond_br %isLast, ^second, ^arrived\n^second:\n"
            "%s2 = nvvm.mbarrier.arrive %smem : !llvm.ptr<3> -> i64\n"
            "llvm.br ^arrived\n^arrived:\n";
  if (bug == Bug::ReadBefore)
    text += "%early = llvm.load %place : !llvm.ptr<3> -> i32\n"
            "llvm.store %early, %out : i32, !llvm.ptr<1>\n";
  if (bug != Bug::Wait)
    text += "llvm.br ^wait\n^wait:\n%over = nvvm.mbarrier.try_wait %smem, "
            "%zero : !llvm.ptr<3>, i32 -> i1\nllvm.cond_br %over, ^done, "
            "^wait\n^done:\n";
  return text + R"(
      llvm.br ^copy(%tid : i32)
    ^copy(%w: i32):
      %more = llvm.icmp "ult" %w, %words : i32
      llvm.cond_br %more, ^word, ^end
    ^word:
      %from = llvm.getelementptr %place[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %from : !llvm.ptr<3> -> i32
      %to = llvm.getelementptr %out[%w] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %to : i32, !llvm.ptr<1>
      %next = llvm.add %w, %threads : i32
      llvm.br ^copy(%next : i32)
    ^end:
      llvm.return
    }
)";
}

class BulkCopyTest : public EmulatorTest {
protected:
  std::vector<char> randomBytes(uint64_t count) {
    std::vector<char> bytes(count);
    for (char &byte : bytes)
      byte = static_cast<char>(random() % 255); // Never 0xff, which is poison.
    return bytes;
  }
  /// Aligned to 16 bytes.
  static char *align(std::vector<char> &bytes) {
    return reinterpret_cast<char *>(
        (reinterpret_cast<uintptr_t>(bytes.data()) + 15) / 16 * 16);
  }
  std::string load(const Box &box, const EmulatorOptions &options, char *tensor,
                   std::vector<char> &out, Bug bug = Bug::None,
                   bool isPredicated = false) {
    auto emulator = create(
        makeLoad(box.rank(), box.boxBytes(), bug, isPredicated), options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    emulator->addBuffer(tensor, box.tensorBytes(), "tensor", false);
    emulator->addBuffer(out.data(), out.size(), "out", true);
    std::array<int32_t, 5> c = {};
    std::copy(box.first.begin(), box.first.end(), c.begin());
    return launch(*emulator, "load", {1}, {kThreads},
                  kPlace + static_cast<uint32_t>(box.boxBytes()) -
                      (bug == Bug::SharedMemory ? 16 : 0) +
                      (bug == Bug::Misaligned ? 64 : 0),
                  box.encode(tensor, typeOf(box)), out.data(), c[0], c[1], c[2],
                  c[3], c[4]);
  }
  void checkLoad(const Box &box, bool isPredicated = false) {
    std::vector<char> bytes = randomBytes(box.tensorBytes() + 16);
    char *tensor = align(bytes);
    for (const EmulatorOptions &options : allCheckedOptions()) {
      std::vector<char> out(box.boxBytes());
      ASSERT_EQ(load(box, options, tensor, out, Bug::None, isPredicated), "");
      std::vector<char> expected(out.size(), box.hasNaN ? char(0xff) : 0);
      box.forEachElement([&](uint64_t to, int64_t from) {
        if (from < 0)
          return;
        std::memcpy(&expected[to], tensor + from, box.elementBytes);
        if (box.rounds)
          roundToTF32(&expected[to]);
      });
      ASSERT_EQ(out, expected);
    }
  }
};

TEST_F(BulkCopyTest, BoxesOfEverySwizzle) {
  checkLoad({2, 3, {100, 30}, {64, 16}, {0, 0}});
  checkLoad({2, 3, {100, 30}, {64, 16}, {64, 20}}); // Leaves it twice.
  checkLoad({2, 2, {100, 30}, {32, 24}, {80, 8}});
  checkLoad({2, 1, {100, 30}, {16, 24}, {16, 8}});
  checkLoad({2, 0, {100, 30}, {80, 7}, {10, 8}});
  checkLoad({2, 3, {100, 30}, {32, 16}, {0, 0}}); // Rows of half a pattern.
}

TEST_F(BulkCopyTest, RoundsToTF32) {
  Box box{4, 3, {100, 30}, {32, 16}, {80, 20}};
  box.rounds = true;
  checkLoad(box);
  // Ties, which random numbers are rarely, and numbers that are not finite.
  std::vector<char> bytes(box.tensorBytes() + 16);
  char *tensor = align(bytes);
  const uint32_t numbers[] = {0x3f801000, 0x3f803000, 0x3f801001, 0xbf803000,
                              0x7f7fffff, 0x7f800000, 0x7f800001, 0xffc00123,
                              0x00001000, 0x00003000, 0x80000fff, 0x7f7fefff};
  const uint32_t rounded[] = {0x3f800000, 0x3f804000, 0x3f802000, 0xbf804000,
                              0x7f800000, 0x7f800000, 0x7f800001, 0xffc00123,
                              0x00000000, 0x00004000, 0x80000000, 0x7f7fe000};
  std::memcpy(tensor, numbers, sizeof(numbers));
  box.swizzle = 0;
  box.first = {0, 0};
  std::vector<char> out(box.boxBytes());
  ASSERT_EQ(load(box, EmulatorOptions(), tensor, out), "");
  EXPECT_EQ(std::memcmp(out.data(), rounded, sizeof(rounded)), 0);
}

TEST_F(BulkCopyTest, AllRanksAndElements) {
  checkLoad({4, 0, {1000}, {200}, {-3}});
  checkLoad({1, 3, {200, 9, 5}, {128, 4, 3}, {100, -2, 1}});
  checkLoad({8, 2, {9, 5, 4, 3}, {8, 3, 2, 2}, {4, 3, -1, 2}});
  checkLoad({4, 3, {33, 4, 3, 3, 2}, {32, 2, 2, 2, 2}, {1, 1, 1, 1, 1}});
  checkLoad({4, 3, {33, 4, 3, 3, 2}, {32, 2, 2, 2, 2}, {40, 1, 1, 1, 1}});
}

TEST_F(BulkCopyTest, StepsFillsAndPredicates) {
  checkLoad({2, 3, {100, 30}, {64, 15}, {0, 3}, {3, 4}});
  Box box{2, 3, {100, 30}, {64, 16}, {70, 20}};
  box.hasNaN = true;
  checkLoad(box, /*isPredicated=*/true);
}

TEST_F(BulkCopyTest, MistakesAreFound) {
  Box box{2, 3, {100, 30}, {64, 16}, {0, 0}};
  std::vector<char> bytes = randomBytes(box.tensorBytes() + 16);
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::InitFence, "which was initialised without fence.mbarrier_init"},
      {Bug::ManyBytes, "more arrivals of 1 and 16 bytes"},
      {Bug::FewBytes, "16 bytes more than its phase 0 expects"},
      {Bug::Rank, "a copy with 1 coordinates by a tensor map of 2 dimensions"},
      {Bug::NoMap, "there is no tensor map of the emulator at address"},
      {Bug::Misaligned, "expected an alignment of 128 bytes in shared memory"},
      {Bug::SharedMemory, "out-of-bounds bulk copy of 2048 bytes to offset "},
      {Bug::Overwrite, "wrote without fence.proxy.async behind it"},
      {Bug::ReadBefore, ""},
      {Bug::Arrival, "arrivals in its phase 0, which expects 0 more of 1"}};
  for (auto [bug, text] : mistakes)
    for (bool lazy : {false, true}) {
      if (bug == Bug::Arrival && !lazy)
        continue; // Then the arrival is that of the next phase.
      EmulatorOptions options;
      options.checkRaces = true;
      options.lazyAsyncCopies = lazy;
      std::vector<char> out(box.boxBytes());
      std::string found = load(box, options, align(bytes), out, bug);
      EXPECT_NE(found, "") << static_cast<int>(bug);
      EXPECT_CONTAINS(found, text);
    }
}

TEST_F(BulkCopyTest, MissingWait) {
  Box box{2, 3, {100, 30}, {64, 16}, {0, 0}};
  std::vector<char> bytes = randomBytes(box.tensorBytes() + 16);
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    std::vector<char> out(box.boxBytes());
    EXPECT_CONTAINS(load(box, options, align(bytes), out, Bug::Wait),
                    "are still pending at the kernel's end");
    EXPECT_EQ(out, std::vector<char>(out.size(), char(0xff)));
    options.checkRaces = true;
    EXPECT_NE(load(box, options, align(bytes), out, Bug::Wait), "");
    options.lazyAsyncCopies = false;
    EXPECT_CONTAINS(load(box, options, align(bytes), out, Bug::Wait), "race: ");
  }
}

TEST_F(BulkCopyTest, BoundsOfTheTensor) {
  Box box{2, 3, {100, 30}, {64, 16}, {0, 20}};
  std::vector<char> bytes = randomBytes(box.tensorBytes() + 16);
  EmulatorOptions options;
  options.checkBounds = true;
  auto emulator =
      create(makeLoad(2, box.boxBytes(), Bug::None, false), options);
  ASSERT_TRUE(emulator) << error;
  std::vector<char> out(box.boxBytes());
  char *tensor = align(bytes);
  emulator->addBuffer(tensor, box.stride(1) * 25, "tensor", false);
  emulator->addBuffer(out.data(), out.size(), "out", true);
  EXPECT_CONTAINS(launch(*emulator, "load", {1}, {kThreads},
                         kPlace + static_cast<uint32_t>(box.boxBytes()),
                         box.encode(tensor, 6), out.data(), 0, 20, 0, 0, 0),
                  "out-of-bounds read");
}

//===----------------------------------------------------------------------===//
// Ranges, and copies from shared memory
//===----------------------------------------------------------------------===//

enum class StoreBug { None, Fence, Wait, ReadWait, Overwrite, Barrier, Commit };

/// The threads fill 64 words of a box with `seed`, words of `in`, and one has
/// them copied to a tensor: by a map, or as a range. The words come by a bulk
/// copy if `isLoaded`.
std::string makeStore(bool isBox, bool isLoaded, StoreBug bug) {
  std::string text = R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @store(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %c0: i32, %c1: i32) attributes {gpu.kernel, nvvm.kernel} {
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %bytes = llvm.mlir.constant(256 : i32) : i32
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %place = llvm.getelementptr %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %slot = llvm.getelementptr %place[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
)";
  if (isLoaded) {
    text += R"(
      llvm.cond_br %isFirst, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %smem, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %smem, %bytes : !llvm.ptr<3>, i32
      nvvm.cp.async.bulk.shared.cluster.global %place, %in, %smem, %bytes : !llvm.ptr<3>, !llvm.ptr<1>
      llvm.br ^inited
    ^inited:
      nvvm.barrier0
      nvvm.mbarrier.try_wait.parity %smem, %zero, %bytes : !llvm.ptr<3>, i32, i32
)";
  } else {
    text += R"(
      %from = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %x = llvm.load %from : !llvm.ptr<1> -> i32
      llvm.store %x, %slot : i32, !llvm.ptr<3>
)";
    if (bug != StoreBug::Fence)
      text += "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space "
              "= #nvvm.shared_space<cta>}\n";
  }
  if (bug != StoreBug::Barrier)
    text += "nvvm.barrier0\n";
  text += "llvm.cond_br %isFirst, ^issue, ^issued\n^issue:\n";
  text += isBox ? "nvvm.cp.async.bulk.tensor.global.shared.cta %map, %place, "
                  "box[%c0, %c1] : !llvm.ptr, !llvm.ptr<3>\n"
                : "nvvm.cp.async.bulk.global.shared.cta %out, %place, %bytes : "
                  "!llvm.ptr<1>, !llvm.ptr<3>\n";
  if (bug != StoreBug::Commit)
    text += "nvvm.cp.async.bulk.commit.group\n";
  if (bug == StoreBug::ReadWait)
    text += "nvvm.cp.async.bulk.wait_group 0 {read}\n";
  else if (bug != StoreBug::Wait)
    text += "nvvm.cp.async.bulk.wait_group 0\n";
  text += "llvm.br ^issued\n^issued:\n";
  if (bug == StoreBug::Overwrite)
    text.replace(text.find("nvvm.cp.async.bulk.commit.group"), 0,
                 "llvm.store %zero, %place : i32, !llvm.ptr<3>\n");
  return text + "llvm.return\n}\n";
}

class BulkStoreTest : public BulkCopyTest {
protected:
  /// 2 rows of 32 words at the end of a tensor of 5 rows of 40.
  Box box{4, 3, {40, 5}, {32, 2}, {16, 4}};

  std::string store(bool isBox, bool isLoaded, StoreBug bug,
                    const EmulatorOptions &options, char *in, char *out) {
    auto emulator = create(makeStore(isBox, isLoaded, bug), options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    emulator->addBuffer(in, 256, "in", false);
    emulator->addBuffer(out, box.tensorBytes(), "out", true);
    return launch(*emulator, "store", {1}, {kThreads}, kPlace + 256,
                  box.encode(out, 7), in, out, box.first[0], box.first[1]);
  }
};

TEST_F(BulkStoreTest, RangesAndBoxes) {
  std::vector<char> inBytes = randomBytes(256 + 16);
  char *in = align(inBytes);
  for (bool isBox : {false, true})
    for (bool isLoaded : {false, true})
      for (StoreBug bug : {StoreBug::None, StoreBug::ReadWait})
        for (const EmulatorOptions &options : allCheckedOptions()) {
          std::vector<char> outBytes(box.tensorBytes() + 16, 1);
          char *out = align(outBytes);
          ASSERT_EQ(store(isBox, isLoaded, bug, options, in, out), "");
          std::vector<char> expected(box.tensorBytes(), 1);
          if (!isBox)
            std::copy_n(in, 256, expected.begin());
          else
            box.forEachElement([&](uint64_t from, int64_t to) {
              if (to >= 0)
                std::memcpy(&expected[to], in + from, box.elementBytes);
            });
          ASSERT_EQ(std::vector<char>(out, out + expected.size()), expected);
        }
}

TEST_F(BulkStoreTest, MistakesAreFound) {
  std::vector<char> inBytes = randomBytes(256 + 16);
  std::vector<char> outBytes(box.tensorBytes() + 16, 1);
  const std::pair<StoreBug, const char *> mistakes[] = {
      {StoreBug::Fence, "wrote without fence.proxy.async behind it"},
      {StoreBug::Wait, "still pending at the kernel's end"},
      {StoreBug::Commit, "still pending at the kernel's end"},
      {StoreBug::Overwrite, "while a bulk copy that reads it is in flight"},
      {StoreBug::Barrier, "race: "}};
  for (auto [bug, text] : mistakes)
    for (bool isBox : {false, true})
      for (bool lazy : {false, true})
        for (auto order : kAllOrders) {
          EmulatorOptions options;
          options.order = order;
          options.checkRaces = true;
          options.lazyAsyncCopies = lazy;
          EXPECT_CONTAINS(store(isBox, false, bug, options, align(inBytes),
                                align(outBytes)),
                          text);
        }
}

TEST_F(BulkStoreTest, EarlyOverwritingYieldsOtherWords) {
  std::vector<char> inBytes = randomBytes(256 + 16);
  std::vector<char> outBytes(box.tensorBytes() + 16, 1);
  char *in = align(inBytes), *out = align(outBytes);
  in[0] = 5;
  EXPECT_EQ(store(false, false, StoreBug::Overwrite, {}, in, out), "");
  EXPECT_EQ(out[0], 0);
}
} // namespace
