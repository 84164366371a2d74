//===- MbarrierTest.cpp - Pipelines that mbarriers guard ------------------===//
//
// A warp hands words to three others through two stages of shared memory, which
// mbarriers guard; then with one mistake at a time, each of which must be
// found.
//
//===----------------------------------------------------------------------===//
#include "WordsTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kWarp = 32, kConsumers = 96, kThreads = kWarp + kConsumers;
constexpr unsigned kSteps = 7, kStageBytes = 128, kSharedBytes = 2048;

enum class Bug {
  None,
  FullWait,        ///< Consumers do not wait for a stage.
  EmptyWait,       ///< The producer does not wait until it is read.
  EarlyRelease,    ///< Consumers release a stage before they read it.
  Phase,           ///< Consumers wait for the phase before.
  SecondArrival,   ///< A consumer arrives twice.
  MissingArrival,  ///< A consumer never arrives.
  Loop,            ///< A wait that is tried once.
  Barrier,         ///< None between the initialisation and the first use.
  Initialisation,  ///< One mbarrier has none.
  Overwriting,     ///< One is overwritten.
  SecondInit,      ///< One is initialised twice.
  Parity,          ///< Of 2.
  ZeroCount,       ///< An mbarrier of no arrivals.
  Misaligned,      ///< An mbarrier between two.
  UncountedCopies, ///< One arrival more than the mbarrier expects.
};

enum class Wait { Try, Test, Loop };
enum class Producer { Stores, Copies, CountedCopies };

/// `llvm.br` loops until the phase of parity `parity` of `address` is over.
std::string waitFor(const std::string &label, const std::string &address,
                    const std::string &parity, Wait kind) {
  if (kind == Wait::Loop)
    return "nvvm.mbarrier.try_wait.parity " + address + ", " + parity +
           ", %ticks : !llvm.ptr<3>, i32, i32\n";
  std::string name = kind == Wait::Try ? "try_wait" : "test.wait";
  return "llvm.br ^" + label + "\n^" + label + ":\n%" + label +
         "v = nvvm.mbarrier." + name + " " + address + ", " + parity +
         " : !llvm.ptr<3>, i32 -> i1\nllvm.cond_br %" + label + "v, ^" + label +
         "d, ^" + label + "\n^" + label + "d:\n";
}

std::string makePipeline(Bug bug, Wait wait = Wait::Try,
                         Producer producer = Producer::Stores) {
  auto constant = [](const std::string &name, int value) {
    return "%" + name + " = llvm.mlir.constant(" + std::to_string(value) +
           " : i32) : i32\n";
  };
  auto is = [&](Bug other, const std::string &text) {
    return bug == other ? text : std::string();
  };
  auto unless = [&](Bug other, const std::string &text) {
    return bug == other ? std::string() : text;
  };
  std::string text =
      R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @pipeline(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.kernel} {
)" + constant("zero", 0) +
      constant("one", 1) + constant("two", 2) + constant("four", 4) +
      constant("eight", 8) + constant("c12", 12) + constant("c16", 16) +
      constant("warp", kWarp) + constant("steps", kSteps) +
      constant("consumers", bug == Bug::ZeroCount ? 0 : kConsumers) +
      constant("stage", kStageBytes) + constant("base", 1024) +
      constant("seven", 7) + constant("c31", 31) + constant("ticks", 1000) +
      constant("producers", bug == Bug::UncountedCopies ? kWarp - 1 : kWarp) +
      R"(
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %f0 = llvm.getelementptr %smem[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %f1 = llvm.getelementptr %smem[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %e0 = llvm.getelementptr %smem[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %e1 = llvm.getelementptr %smem[)" +
      (bug == Bug::Misaligned ? "28" : "24") +
      R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %first = llvm.icmp "eq" %tid, %zero : i32
      llvm.cond_br %first, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %f0, %producers : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %f1, %producers : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %e0, %consumers : !llvm.ptr<3>, i32
)" +
      unless(Bug::Initialisation,
             "nvvm.mbarrier.init %e1, %consumers : !llvm.ptr<3>, i32\n") +
      is(Bug::SecondInit,
         "nvvm.mbarrier.init %e1, %consumers : !llvm.ptr<3>, i32\n") +
      is(Bug::Overwriting, "llvm.store %zero, %e1 : i32, !llvm.ptr<3>\n") +
      R"(
      nvvm.fence.mbarrier.init
      llvm.br ^inited
    ^inited:
)" + unless(Bug::Barrier, "nvvm.barrier0\n") +
      R"(
      %isProducer = llvm.icmp "ult" %tid, %warp : i32
      llvm.cond_br %isProducer, ^produce(%zero : i32), ^consumers
    ^produce(%p: i32):
      %pmore = llvm.icmp "ult" %p, %steps : i32
      llvm.cond_br %pmore, ^pbody, ^end
    ^pbody:
      %ps = llvm.and %p, %one : i32
      %pround = llvm.lshr %p, %one : i32
      %pparity = llvm.and %pround, %one : i32
      %pother = llvm.xor %pparity, %one : i32
      %pm = llvm.mul %ps, %eight : i32
      %pfull = llvm.getelementptr %smem[%pm] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %pempty = llvm.getelementptr %e0[%pm] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
)" + unless(Bug::EmptyWait, waitFor("pw", "%pempty", "%pother", wait)) +
      R"(
      %pi0 = llvm.mul %p, %warp : i32
      %pi = llvm.add %pi0, %tid : i32
      %from = llvm.getelementptr %in[%pi] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %po0 = llvm.mul %ps, %stage : i32
      %po1 = llvm.add %po0, %base : i32
      %pline = llvm.getelementptr %smem[%po1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %to = llvm.getelementptr %pline[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
)";
  if (producer == Producer::Stores)
    text += "%word = llvm.load %from : !llvm.ptr<1> -> i32\n"
            "llvm.store %word, %to : i32, !llvm.ptr<3>\n"
            "%pstate = nvvm.mbarrier.arrive %pfull : !llvm.ptr<3> -> i64\n";
  else
    text += "nvvm.cp.async.shared.global %to, %from, 4, cache = ca : "
            "!llvm.ptr<3>, !llvm.ptr<1>\n"
            "nvvm.cp.async.mbarrier.arrive %pfull" +
            std::string(producer == Producer::Copies ? " {noinc = true}" : "") +
            " : !llvm.ptr<3>\n";
  if (producer == Producer::CountedCopies)
    text += "%pstate = nvvm.mbarrier.arrive %pfull : !llvm.ptr<3> -> i64\n";
  text += R"(
      %pnext = llvm.add %p, %one : i32
      llvm.br ^produce(%pnext : i32)
    ^consumers:
      %c = llvm.sub %tid, %warp : i32
      %mixed = llvm.mul %c, %seven : i32
      %at = llvm.and %mixed, %c31 : i32
      llvm.br ^consume(%zero, %zero : i32, i32)
    ^consume(%k: i32, %sum: i32):
      %more = llvm.icmp "ult" %k, %steps : i32
      llvm.cond_br %more, ^body, ^store
    ^body:
      %s = llvm.and %k, %one : i32
      %round = llvm.lshr %k, %one : i32
      %even = llvm.and %round, %one : i32
)";
  std::string parity = bug == Bug::Phase    ? "llvm.xor %even, %one : i32"
                       : bug == Bug::Parity ? "llvm.or %even, %two : i32"
                                            : "llvm.or %even, %zero : i32";
  text += "%parity = " + parity + R"(
      %m = llvm.mul %s, %eight : i32
      %full = llvm.getelementptr %smem[%m] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %empty = llvm.getelementptr %e0[%m] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
)";
  if (bug == Bug::Loop)
    text += "%once = nvvm.mbarrier.try_wait %full, %parity : !llvm.ptr<3>, i32 "
            "-> i1\n";
  else
    text += unless(Bug::FullWait, waitFor("cw", "%full", "%parity", wait));
  std::string release =
      "%state = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64\n";
  text += is(Bug::EarlyRelease, release) + R"(
      %o0 = llvm.mul %s, %stage : i32
      %o1 = llvm.add %o0, %base : i32
      %line = llvm.getelementptr %smem[%o1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %slot = llvm.getelementptr %line[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %x = llvm.load %slot : !llvm.ptr<3> -> i32
      %weight = llvm.add %k, %one : i32
      %scaled = llvm.mul %x, %weight : i32
      %next = llvm.add %sum, %scaled : i32
)";
  if (bug == Bug::MissingArrival || bug == Bug::SecondArrival) {
    bool isMissing = bug == Bug::MissingArrival;
    text += "%isOne = llvm.icmp \"eq\" %c, %four : i32\nllvm.cond_br %isOne, ^";
    text += isMissing ? "arrived" : "again";
    text += ", ^";
    text += isMissing ? "again" : "last";
    text += "\n^again:\n%state2 = nvvm.mbarrier.arrive %empty : !llvm.ptr<3> "
            "-> i64\nllvm.br ^";
    text += isMissing ? "arrived\n"
                      : "last\n^last:\n" + release + "llvm.br ^arrived\n";
    text += "^arrived:\n";
  } else {
    text += unless(Bug::EarlyRelease, release);
  }
  return text + R"(
      llvm.br ^consume(%weight, %next : i32, i32)
    ^store:
      %result = llvm.getelementptr %out[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %sum, %result : i32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
      llvm.return
    }
)";
}

class MbarrierTest : public WordsTest {
protected:
  void SetUp() override { fill(kSteps * kWarp, kConsumers); }
  std::string run(const std::string &text, const EmulatorOptions &options) {
    return runBlocks(3, kThreads, kSharedBytes, text, "pipeline", options);
  }
  bool isRight() const {
    for (unsigned c = 0; c < kConsumers; ++c) {
      uint32_t sum = 0;
      for (unsigned k = 0; k < kSteps; ++k)
        sum += in[k * kWarp + c * 7 % kWarp] * (k + 1);
      if (out[c] != sum)
        return false;
    }
    return true;
  }
};

// Three blocks write the same values, which looks like a race of blocks.
std::vector<EmulatorOptions> optionsWithoutRaces() {
  std::vector<EmulatorOptions> result;
  for (const EmulatorOptions &options : allCheckedOptions())
    if (!options.checkRaces)
      result.push_back(options);
  return result;
}

TEST_F(MbarrierTest, HandsWordsOn) {
  for (Wait wait : {Wait::Try, Wait::Test, Wait::Loop})
    for (Producer producer :
         {Producer::Stores, Producer::Copies, Producer::CountedCopies})
      for (const EmulatorOptions &options : optionsWithoutRaces()) {
        out.assign(kConsumers, 0);
        EXPECT_EQ(run(makePipeline(Bug::None, wait, producer), options), "");
        EXPECT_TRUE(isRight());
      }
}

/// Runs one block.
class MbarrierCheckTest : public MbarrierTest {
protected:
  std::string runBlock(const std::string &text, const EmulatorOptions &options,
                       const char *kernel = "pipeline",
                       uint32_t threads = kThreads) {
    return runBlocks(1, threads, kSharedBytes, text, kernel, options);
  }
};

TEST_F(MbarrierCheckTest, NoFalseRaces) {
  for (Wait wait : {Wait::Try, Wait::Test, Wait::Loop})
    for (Producer producer :
         {Producer::Stores, Producer::Copies, Producer::CountedCopies})
      for (EmulatorOptions options : allCheckedOptions()) {
        options.seed = static_cast<unsigned>(random());
        out.assign(kConsumers, 0);
        EXPECT_EQ(runBlock(makePipeline(Bug::None, wait, producer), options),
                  "");
        EXPECT_TRUE(isRight());
      }
}

TEST_F(MbarrierCheckTest, MistakesAreFound) {
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::FullWait, ""},
      {Bug::EmptyWait, ""}, // The words depend on the order.
      {Bug::EarlyRelease, "race: write "},
      {Bug::Phase, ""},
      {Bug::SecondArrival, ""},
      {Bug::MissingArrival, "deadlock: "},
      {Bug::Barrier, "mbarrier"},
      {Bug::Initialisation, "there is no mbarrier at address "},
      {Bug::Overwriting, "was overwritten"},
      {Bug::SecondInit, "is initialised again without mbarrier.inval"},
      {Bug::Parity, "parity 2; it must be 0 or 1"},
      {Bug::ZeroCount, "expected an mbarrier of 1 to 1048575 arrivals"},
      {Bug::Misaligned, "at a multiple of 8 bytes"}};
  for (auto [bug, text] : mistakes)
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      std::string found = runBlock(makePipeline(bug), options);
      EXPECT_NE(found, "") << static_cast<int>(bug);
      EXPECT_CONTAINS(found, text);
    }
}

TEST_F(MbarrierCheckTest, MistakesOfTrackedCopies) {
  for (auto order : kAllOrders)
    for (bool lazy : {false, true}) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      options.lazyAsyncCopies = lazy;
      for (Bug bug : {Bug::FullWait, Bug::EmptyWait, Bug::UncountedCopies})
        EXPECT_NE(
            runBlock(makePipeline(bug, Wait::Try, Producer::Copies), options),
            "");
    }
}

TEST_F(MbarrierCheckTest, UnwaitedCopiesAreInFlight) {
  EmulatorOptions options;
  options.checkRaces = true;
  std::string text = makePipeline(Bug::FullWait, Wait::Try, Producer::Copies);
  EXPECT_CONTAINS(runBlock(text, options), "is in flight");
  options.lazyAsyncCopies = false;
  EXPECT_CONTAINS(runBlock(text, options),
                  "after a write by a copy that an mbarrier counts without a "
                  "wait for it in between");
}

TEST_F(MbarrierCheckTest, MissingLoopYieldsWrongWords) {
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    std::string found = runBlock(makePipeline(Bug::Loop), options);
    EXPECT_TRUE(!found.empty() || !isRight());
  }
}

TEST_F(MbarrierCheckTest, DeadlockNamesMbarriersAndPhases) {
  std::string text = runBlock(makePipeline(Bug::MissingArrival), {});
  EXPECT_CONTAINS(text, "32 threads wait for phase 0 of the mbarrier at offset "
                        "16 of dynamic shared memory, which expects 1 more "
                        "arrivals of 96 and 0 bytes");
  EXPECT_CONTAINS(text, "96 threads wait for phase 1 of the mbarrier at offset "
                        "0 of dynamic shared memory");
}
} // namespace
