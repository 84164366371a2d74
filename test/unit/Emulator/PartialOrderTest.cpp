//===- PartialOrderTest.cpp - Named barriers, counts, registers -----------===//
//
// Small kernels for each way to order some of the threads of a block, and for
// what comes with specialised warps.
//
//===----------------------------------------------------------------------===//
#include "WordsTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 96, kMostThreads = 256, kSharedBytes = 2048;

/// Each of `kThreads` threads stores its word, and loads that of another one
/// after `meeting`.
std::string makeExchange(const std::string &before, const std::string &meeting,
                         const std::string &attributes = "",
                         unsigned mask = 31) {
  return R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @exchange(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel)" +
         attributes + R"(} {
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      %two = llvm.mlir.constant(2 : i32) : i32
      %c31 = llvm.mlir.constant(31 : i32) : i32
      %c64 = llvm.mlir.constant(64 : i32) : i32
      %c96 = llvm.mlir.constant(96 : i32) : i32
      %count = llvm.mlir.constant()" +
         std::to_string(kThreads) + R"( : i32) : i32
      %mask = llvm.mlir.constant()" +
         std::to_string(mask) + R"( : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %data = llvm.getelementptr %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      )" +
         before +
         R"(
      %from = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %x = llvm.load %from : !llvm.ptr<1> -> i32
      %own = llvm.getelementptr %data[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %x, %own : i32, !llvm.ptr<3>
      )" +
         meeting +
         R"(
      %other = llvm.xor %tid, %mask : i32
      %theirs = llvm.getelementptr %data[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %y = llvm.load %theirs : !llvm.ptr<3> -> i32
      %to = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %y, %to : i32, !llvm.ptr<1>
      llvm.return
    }
)";
}

const std::string kMakeMbarrier =
    "llvm.cond_br %isFirst, ^init, ^inited\n^init:\n"
    "nvvm.mbarrier.init %smem, %count : !llvm.ptr<3>, i32\n"
    "nvvm.fence.mbarrier.init\nllvm.br ^inited\n^inited:\nnvvm.barrier0\n";

class PartialOrderTest : public WordsTest {
protected:
  void SetUp() override { fill(kMostThreads, kMostThreads); }
  std::string runBlock(const std::string &text, const EmulatorOptions &options,
                       const char *kernel, uint32_t threads) {
    return runBlocks(1, threads, kSharedBytes, text, kernel, options);
  }
  void checkExchange(const std::string &text, unsigned mask) {
    for (const EmulatorOptions &options : allCheckedOptions()) {
      out.assign(kMostThreads, 0);
      ASSERT_EQ(runBlock(text, options, "exchange", kThreads), "");
      for (unsigned i = 0; i < kThreads; ++i)
        ASSERT_EQ(out[i], in[i ^ mask]);
    }
  }
  void expectFailure(const std::string &text, const std::string &words) {
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      EXPECT_CONTAINS(runBlock(text, options, "exchange", kThreads), words);
    }
  }
};

TEST_F(PartialOrderTest, StatesOfArrivals) {
  const char *wait = R"(
      %state = nvvm.mbarrier.arrive %smem : !llvm.ptr<3> -> i64
      llvm.br ^wait
    ^wait:
      %isOver = nvvm.mbarrier.try_wait %smem, %state : !llvm.ptr<3>, i64 -> i1
      llvm.cond_br %isOver, ^done, ^wait
    ^done:
)";
  checkExchange(makeExchange(kMakeMbarrier, wait), 31);
  expectFailure(makeExchange(kMakeMbarrier,
                             "%s = nvvm.mbarrier.arrive %smem {relaxed = true} "
                             ": !llvm.ptr<3> -> i64\nllvm.br ^wait\n^wait:\n"
                             "%o = nvvm.mbarrier.try_wait %smem, %s {relaxed = "
                             "true} : !llvm.ptr<3>, i64 -> i1\n"
                             "llvm.cond_br %o, ^done, ^wait\n^done:\n"),
                "race: ");
  expectFailure(makeExchange(kMakeMbarrier,
                             "%s = llvm.mlir.constant(7 : i64) : i64\n"
                             "%o = nvvm.mbarrier.test.wait %smem, %s : "
                             "!llvm.ptr<3>, i64 -> i1\n"),
                "with a state that is neither");
}

TEST_F(PartialOrderTest, CountsOfArrivals) {
  // The first 32 threads arrive for all.
  auto arrive = [](const std::string &op) {
    return "%c3 = llvm.mlir.constant(3 : i32) : i32\n"
           "%isLow = llvm.icmp \"ult\" %tid, %c31 : i32\n"
           "nvvm.bar.warp.sync %minus : i32\n"
           "%lane = llvm.and %tid, %c31 : i32\n"
           "%isLane = llvm.icmp \"eq\" %lane, %zero : i32\n"
           "llvm.cond_br %isLane, ^arrive, ^wait\n^arrive:\n" +
           op +
           "llvm.br ^wait\n^wait:\n"
           "%o = nvvm.mbarrier.try_wait %smem, %zero : !llvm.ptr<3>, i32 -> "
           "i1\nllvm.cond_br %o, ^done, ^wait\n^done:\n";
  };
  std::string minus = "%minus = llvm.mlir.constant(-1 : i32) : i32\n"
                      "%c32 = llvm.mlir.constant(32 : i32) : i32\n";
  checkExchange(makeExchange(kMakeMbarrier + minus,
                             arrive("%s = nvvm.mbarrier.arrive %smem, %c32 : "
                                    "!llvm.ptr<3> -> i64\n"),
                             "", 31),
                31);
  checkExchange(
      makeExchange(kMakeMbarrier + minus,
                   arrive("%s = nvvm.mbarrier.arrive_drop %smem, %c32 : "
                          "!llvm.ptr<3> -> i64\n"),
                   "", 31),
      31);
  expectFailure(makeExchange(kMakeMbarrier + minus,
                             arrive("%s = nvvm.mbarrier.arrive.nocomplete "
                                    "%smem, %c32 : !llvm.ptr<3>, i32 -> "
                                    "i64\n"),
                             "", 31),
                "by an operation that must not complete it");
  expectFailure(makeExchange(kMakeMbarrier + minus,
                             arrive("nvvm.mbarrier.inval %smem : !llvm.ptr<3>"
                                    "\n"),
                             "", 31),
                "mbarrier");
}

TEST_F(PartialOrderTest, NamedBarriers) {
  // Of two warps, and of the third alone.
  std::string meeting = R"(
      %isPair = llvm.icmp "ult" %tid, %c64 : i32
      llvm.cond_br %isPair, ^pair, ^single
    ^pair:
      nvvm.barrier id = %one number_of_threads = %threads
      llvm.br ^met
    ^single:
      %c32 = llvm.mlir.constant(32 : i32) : i32
      nvvm.barrier id = %two number_of_threads = %c32
      llvm.br ^met
    ^met:
)";
  auto withThreads = [](const std::string &number) {
    return "%threads = llvm.mlir.constant(" + number + " : i32) : i32\n";
  };
  checkExchange(makeExchange(withThreads("64"), meeting), 31);
  expectFailure(makeExchange(withThreads("96"), meeting),
                "64 threads wait at barrier 1, where 64 of 96 threads came");
  expectFailure(makeExchange(withThreads("40"), meeting),
                "a multiple of 32 threads");
  expectFailure(makeExchange(withThreads("128"), meeting),
                "a multiple of 32 threads, of 96 that there are");
  // Each warp alone.
  for (auto order : {EmulatorOptions::Forward, EmulatorOptions::Reverse}) {
    EmulatorOptions options;
    options.order = order;
    options.checkRaces = true;
    EXPECT_CONTAINS(runBlock(makeExchange(withThreads("32"), meeting, "", 32),
                             options, "exchange", kThreads),
                    "race: ");
  }
  checkExchange(makeExchange("", "nvvm.barrier id = %one number_of_threads = "
                                 "%c96\n"),
                31);
}

TEST_F(PartialOrderTest, ArrivalsAtNamedBarriers) {
  // The first two warps arrive, and the third, which waits, reads.
  std::string meeting = R"(
      %isPair = llvm.icmp "ult" %tid, %c64 : i32
      llvm.cond_br %isPair, ^pair, ^single
    ^pair:
      nvvm.barrier.arrive id = %one number_of_threads = %c96
      llvm.return
    ^single:
      OP
      %low = llvm.sub %tid, %c64 : i32
      %slot = llvm.getelementptr %data[%low] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %z = llvm.load %slot : !llvm.ptr<3> -> i32
      llvm.store %z, %own : i32, !llvm.ptr<3>
      nvvm.bar.warp.sync %minus : i32
)";
  std::string minus = "%minus = llvm.mlir.constant(-1 : i32) : i32\n";
  auto with = [&](const std::string &op) {
    std::string text = meeting;
    text.replace(text.find("OP"), 2, op);
    return makeExchange(minus, text);
  };
  for (const EmulatorOptions &options : allCheckedOptions()) {
    out.assign(kMostThreads, 0);
    ASSERT_EQ(runBlock(with("nvvm.barrier id = %one number_of_threads = %c96"),
                       options, "exchange", kThreads),
              "");
    for (unsigned i = 64; i < kThreads; ++i)
      ASSERT_EQ(out[i], in[(i - 64) ^ 31]);
  }
  expectFailure(with(""), "race: ");
}

TEST_F(PartialOrderTest, ElectsOneLane) {
  std::string meeting = R"(
      %isOne = nvvm.elect.sync -> i1
      %flag = llvm.zext %isOne : i1 to i32
      llvm.store %flag, %own : i32, !llvm.ptr<3>
      nvvm.barrier0
)";
  ASSERT_EQ(runBlock(makeExchange("", meeting), {}, "exchange", kThreads), "");
  for (unsigned i = 0; i < kThreads; ++i)
    EXPECT_EQ(out[i], (i ^ 31) % 32 == 0);
}

TEST_F(PartialOrderTest, RegistersOfWarpgroups) {
  auto kernel = [](const std::string &decrease, const std::string &increase,
                   const std::string &attributes) {
    return makeExchange("",
                        R"(
      %c128 = llvm.mlir.constant(128 : i32) : i32
      nvvm.barrier0
      %isLow = llvm.icmp "ult" %tid, %c128 : i32
      llvm.cond_br %isLow, ^low, ^high
    ^low:
      nvvm.setmaxregister decrease )" +
                            decrease + R"(
      llvm.br ^set
    ^high:
      nvvm.setmaxregister increase )" +
                            increase + R"(
      llvm.br ^set
    ^set:
)",
                        attributes);
  };
  const std::string limit = ", nvvm.maxnreg = 128 : i32";
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    auto run = [&](const std::string &text) {
      return runBlock(text, options, "exchange", kMostThreads);
    };
    EXPECT_EQ(run(kernel("24", "232", limit)), "");
    EXPECT_EQ(run(kernel("24", "256", ", nvvm.maxntid = array<i32: 256>")), "");
    EXPECT_CONTAINS(run(kernel("40", "232", limit)),
                    "deadlock: 128 threads wait for registers (setmaxnreg) "
                    "beyond the pool of 256");
    EXPECT_CONTAINS(run(kernel("136", "232", limit)),
                    "setmaxnreg decreases the registers of a thread from 128 "
                    "to 136");
    EXPECT_CONTAINS(run(kernel("24", "120", limit)),
                    "setmaxnreg increases the registers of a thread from 128 "
                    "to 120");
  }
  EXPECT_FALSE(create(kernel("24", "232", "")));
  EXPECT_CONTAINS(error, "expected nvvm.maxntid");
}
} // namespace
