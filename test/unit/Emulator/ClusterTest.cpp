//===- ClusterTest.cpp - Blocks of a cluster ------------------------------===//
//
// Small kernels for the barrier of a cluster and for each use of the shared
// memory of other blocks, also with one mistake at a time.
//
//===----------------------------------------------------------------------===//
#include "ClusterKernels.h"
#include "WordsTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 64;

/// Each thread takes a word of the input to its place in shared memory.
constexpr const char *kStoreOwn = R"(
      %first = llvm.mul %block, %dim : i32
      %at = llvm.add %first, %tid : i32
      %from = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %x = llvm.load %from : !llvm.ptr<1> -> i32
      %own = llvm.getelementptr %words[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %x, %own : i32, !llvm.ptr<3>
)";

/// Each thread stores its word, and loads that of a thread of the next block of
/// the cluster, with `meeting` in between and `end` behind.
std::string makeExchange(unsigned blocks, const std::string &meeting,
                         const std::string &end, bool isGeneric = false) {
  std::string map =
      isGeneric
          ? "%generic = llvm.addrspacecast %own : !llvm.ptr<3> to !llvm.ptr\n"
            "%theirs = nvvm.mapa %generic, %next : !llvm.ptr -> !llvm.ptr\n"
            "%y = llvm.load %theirs : !llvm.ptr -> i32\n"
          : "%theirs = nvvm.mapa %own, %next : !llvm.ptr<3> -> !llvm.ptr<7>\n"
            "%y = llvm.load %theirs : !llvm.ptr<7> -> i32\n";
  return R"(
    llvm.mlir.global internal @words() {addr_space = 3 : i32} : !llvm.array<64 x i32>
    llvm.func @exchange(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {)" +
         clusterOf(blocks) + "} {\n" + makeConstants({{"one", 1}}) + R"(
      %words = llvm.mlir.addressof @words : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %dim = nvvm.read.ptx.sreg.ntid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %size = nvvm.read.ptx.sreg.cluster.nctarank : i32
)" + kStoreOwn +
         meeting + R"(
      %after = llvm.add %rank, %one : i32
      %next = llvm.urem %after, %size : i32
      )" +
         map + R"(
      %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %y, %to : i32, !llvm.ptr<1>
      )" +
         end + "llvm.return\n}\n";
}

class ClusterTest : public WordsTest {
protected:
  std::string runExchange(unsigned blocks, const std::string &text,
                          const EmulatorOptions &options) {
    fill(blocks * kThreads, blocks * kThreads);
    return runBlocks(blocks, kThreads, 0, text, "exchange", options);
  }
  /// Checks races in every order.
  void expectFailure(const std::string &text, const std::string &words) {
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.seed = static_cast<unsigned>(random());
      options.checkRaces = true;
      EXPECT_CONTAINS(runExchange(4, text, options), words);
    }
  }
};

TEST_F(ClusterTest, Identifiers) {
  constexpr unsigned kWords = 8, kClusterSize = 3, kGridX = 6, kGridY = 2;
  const char *registers[kWords] = {"cluster.ctarank",  "cluster.nctarank",
                                   "cluster.ctaid.x",  "cluster.nctaid.x",
                                   "cluster.nctaid.y", "clusterid.x",
                                   "clusterid.y",      "nclusterid.x"};
  std::string text = R"(
    llvm.func @ids(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {)" +
                     clusterOf(kClusterSize) + "} {\n" +
                     makeConstants({{"words", kWords}}) + R"(
      %x = nvvm.read.ptx.sreg.ctaid.x : i32
      %y = nvvm.read.ptx.sreg.ctaid.y : i32
      %n = nvvm.read.ptx.sreg.nctaid.x : i32
      %row = llvm.mul %y, %n : i32
      %block = llvm.add %row, %x : i32
      %first = llvm.mul %block, %words : i32
      %to = llvm.getelementptr %out[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)";
  for (unsigned i = 0; i < kWords; ++i)
    text += "%r" + number(i) + " = nvvm.read.ptx.sreg." + registers[i] +
            " : i32\n%p" + number(i) + " = llvm.getelementptr %to[" +
            number(i) + "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n" +
            "llvm.store %r" + number(i) + ", %p" + number(i) +
            " : i32, !llvm.ptr<1>\n";
  for (unsigned workers : {1u, 3u}) {
    EmulatorOptions options;
    options.workers = workers;
    auto emulator = create(text + "llvm.return\n}\n", options);
    ASSERT_TRUE(emulator) << error;
    std::vector<uint32_t> found(kWords * kGridX * kGridY);
    ASSERT_EQ(launch(*emulator, "ids", {kGridX, kGridY}, {1}, 0, nullptr,
                     found.data()),
              "");
    for (unsigned block = 0; block < kGridX * kGridY; ++block) {
      unsigned x = block % kGridX, y = block / kGridX;
      const uint32_t expected[kWords] = {x % kClusterSize,
                                         kClusterSize,
                                         x % kClusterSize,
                                         kClusterSize,
                                         1,
                                         x / kClusterSize,
                                         y,
                                         kGridX / kClusterSize};
      for (unsigned i = 0; i < kWords; ++i)
        EXPECT_EQ(found[block * kWords + i], expected[i]) << registers[i];
    }
  }
}

TEST_F(ClusterTest, BlocksReadOthersMemory) {
  constexpr unsigned kClusters = 3;
  for (unsigned size : {1u, 2u, 8u})
    for (bool isGeneric : {false, true}) {
      std::string text = makeExchange(size, kMeet, kMeet, isGeneric);
      for (EmulatorOptions options : allCheckedOptions()) {
        ASSERT_EQ(runExchange(kClusters * size, text, options), "");
        for (unsigned i = 0; i < out.size(); ++i) {
          unsigned block = i / kThreads, rank = block % size;
          unsigned from = block - rank + (rank + 1) % size;
          ASSERT_EQ(out[i], in[from * kThreads + i % kThreads]);
        }
      }
    }
}

TEST_F(ClusterTest, BlocksWriteOthersMemory) {
  std::string text = makeExchange(2, kMeet, kMeet);
  const std::string load = "%y = llvm.load %theirs : !llvm.ptr<7> -> i32\n";
  const std::string loadOwn = "%y = llvm.load %own : !llvm.ptr<3> -> i32\n";
  const std::string store = "llvm.store %x, %theirs : i32, !llvm.ptr<7>\n";
  const std::string add = "%old = llvm.atomicrmw add %theirs, %x monotonic : "
                          "!llvm.ptr<7>, i32\n";
  for (EmulatorOptions options : allCheckedOptions()) {
    ASSERT_EQ(runExchange(4, replaceAll(text, load, store + kMeet + loadOwn),
                          options),
              "");
    for (unsigned i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], in[i ^ kThreads]);
    ASSERT_EQ(
        runExchange(4, replaceAll(text, load, add + kMeet + loadOwn), options),
        "");
    for (unsigned i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], in[i] + in[i ^ kThreads]);
  }
  expectFailure(replaceAll(text, load, store + loadOwn), "race: ");
  expectFailure(replaceAll(text, load, store + loadOwn),
                " of the cluster without a barrier in between");
  // A barrier of each block orders neither.
  expectFailure(replaceAll(text, load, store + "nvvm.barrier0\n" + loadOwn),
                "race: ");
}

TEST_F(ClusterTest, MissingBarriers) {
  // Either block ends first.
  expectFailure(makeExchange(2, kMeet, ""), " of the cluster is used");
  expectFailure(makeExchange(2, "nvvm.barrier0\n", kMeet),
                "is used before that block is known to have started");
  const std::string relaxed = "nvvm.cluster.arrive.relaxed {aligned}\n"
                              "nvvm.cluster.wait {aligned}\n";
  expectFailure(makeExchange(2, relaxed, kMeet),
                "without a barrier in between");
}

TEST_F(ClusterTest, UseAfterTheEnd) {
  // The first block ends while the others wait for each other.
  const std::string end = R"(
      %zero = llvm.mlir.constant(0 : i32) : i32
      %isFirst = llvm.icmp "eq" %rank, %zero : i32
      llvm.cond_br %isFirst, ^leave, ^meet
    ^meet:
      nvvm.cluster.arrive
      nvvm.cluster.wait
      %z = llvm.load %theirs : !llvm.ptr<7> -> i32
      llvm.store %z, %to : i32, !llvm.ptr<1>
      llvm.br ^leave
    ^leave:
)";
  EmulatorOptions options;
  options.checkBounds = true;
  EXPECT_CONTAINS(runExchange(4, makeExchange(2, kMeet, end), options),
                  "is used after that block has ended");
}

TEST_F(ClusterTest, MisusedBarriers) {
  const std::string arrive = "nvvm.cluster.arrive\n";
  const std::string wait = "nvvm.cluster.wait\n";
  expectFailure(makeExchange(2, kMeet + wait, kMeet),
                "without cluster.arrive before it");
  expectFailure(makeExchange(2, kMeet + arrive + arrive, kMeet),
                "again without cluster.wait in between");
  // Some threads of one block wait for their own block.
  const std::string some = R"(
      %c40 = llvm.mlir.constant(40 : i32) : i32
      %mixed = llvm.mul %rank, %tid : i32
      %isOther = llvm.icmp "ugt" %mixed, %c40 : i32
      llvm.cond_br %isOther, ^other, ^meet
    ^other:
      nvvm.barrier0
      llvm.br ^meet
    ^meet:
)";
  expectFailure(makeExchange(2, some + kMeet, kMeet),
                "at a barrier of the block of block 1 of the cluster");
  expectFailure(makeExchange(2, some + kMeet, kMeet),
                "threads wait at the barrier of the cluster, where");
  const std::string apart =
      replaceAll(some, "nvvm.barrier0\n", kMeet + "llvm.br ^rest\n^unused:\n") +
      kMeet + "llvm.br ^rest\n^rest:\n";
  expectFailure(makeExchange(2, apart, kMeet), ", this one elsewhere");
}

TEST_F(ClusterTest, ThreadsThatEndNeedNotMeet) {
  const std::string some = R"(
      %isFirst = llvm.icmp "ult" %tid, %one : i32
      llvm.cond_br %isFirst, ^meet, ^leave
    ^meet:
      nvvm.cluster.arrive
      nvvm.cluster.wait
      llvm.br ^leave
    ^leave:
)";
  EXPECT_EQ(runExchange(4, makeExchange(2, kMeet, kMeet + some), {}), "");
}

TEST_F(ClusterTest, BadAddresses) {
  EmulatorOptions options;
  options.checkBounds = true;
  std::string text = makeExchange(2, kMeet, kMeet);
  EXPECT_CONTAINS(
      runExchange(4, replaceAll(text, "%own, %next", "%own, %size"), options),
      "expected a block below 2, the size of the cluster, but got 2");
  EXPECT_CONTAINS(
      runExchange(
          4,
          replaceAll(text, "%theirs = nvvm.mapa %own,",
                     "%beyond = llvm.getelementptr %own[64] : (!llvm.ptr<3>) "
                     "-> !llvm.ptr<3>, i32\n%theirs = nvvm.mapa %beyond,"),
          options),
      "expected an address in the block's shared memory");
}

TEST_F(ClusterTest, Launches) {
  std::string text = makeExchange(2, kMeet, kMeet);
  EXPECT_CONTAINS(runExchange(3, text, {}),
                  "expected a grid of clusters of 2 blocks along x, but got "
                  "(3,1,1) blocks");
  EXPECT_CONTAINS(runExchange(16, makeExchange(16, kMeet, kMeet), {}),
                  "expected clusters of 1 to 8 blocks, but got 16");
  EXPECT_FALSE(create(replaceAll(text, "2, 1, 1", "1, 2, 1")));
  EXPECT_CONTAINS(error, "no emulation rule for clusters of several blocks "
                         "along y or z");
}

//===----------------------------------------------------------------------===//
// Copies between blocks
//===----------------------------------------------------------------------===//

/// Each thread's word goes to the other block by a bulk copy, whose end that
/// block waits for.
std::string makeTransfer(bool isFenced) {
  return R"(
    llvm.mlir.global internal @words() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>
    llvm.mlir.global internal @received() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>
    llvm.mlir.global internal @full() {addr_space = 3 : i32, alignment = 8 : i64} : i64
    llvm.func @exchange(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {)" +
         clusterOf(2) + "} {\n" +
         makeConstants({{"zero", 0}, {"one", 1}, {"bytes", 4 * kThreads}}) + R"(
      %words = llvm.mlir.addressof @words : !llvm.ptr<3>
      %received = llvm.mlir.addressof @received : !llvm.ptr<3>
      %full = llvm.mlir.addressof @full : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %dim = nvvm.read.ptx.sreg.ntid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %other = llvm.xor %rank, %one : i32
)" + kStoreOwn +
         (isFenced ? "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
                     "space = #nvvm.shared_space<cta>}\n"
                   : "") +
         R"(
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      llvm.cond_br %isFirst, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %full, %one : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      llvm.br ^inited
    ^inited:
)" + kMeet +
         R"(
      llvm.cond_br %isFirst, ^send, ^sent
    ^send:
      nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
      %to7 = nvvm.mapa %received, %other : !llvm.ptr<3> -> !llvm.ptr<7>
      %full7 = nvvm.mapa %full, %other : !llvm.ptr<3> -> !llvm.ptr<7>
      %full3 = llvm.addrspacecast %full7 : !llvm.ptr<7> to !llvm.ptr<3>
      nvvm.cp.async.bulk.shared.cluster.shared.cta %to7, %words, %full3, %bytes : !llvm.ptr<7>, !llvm.ptr<3>
      llvm.br ^sent
    ^sent:
      nvvm.mbarrier.try_wait.parity %full, %zero, %bytes : !llvm.ptr<3>, i32, i32
      %theirs = llvm.getelementptr %received[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %y = llvm.load %theirs : !llvm.ptr<3> -> i32
      %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %y, %to : i32, !llvm.ptr<1>
)" + kMeet +
         "llvm.return\n}\n";
}

TEST_F(ClusterTest, CopiesToOtherBlocks) {
  for (const EmulatorOptions &options : allCheckedOptions()) {
    ASSERT_EQ(runExchange(4, makeTransfer(true), options), "");
    for (unsigned i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], in[i ^ kThreads]);
  }
  // The sender tells the other block's mbarrier what to expect.
  for (const EmulatorOptions &options : allCheckedOptions()) {
    std::string text = replaceAll(makeTransfer(true),
                                  "      nvvm.mbarrier.arrive.expect_tx %full, "
                                  "%bytes : !llvm.ptr<3>, i32\n",
                                  "");
    text =
        replaceAll(text, "      %full3 =",
                   "nvvm.mbarrier.arrive.expect_tx %full7, %bytes {scope = "
                   "#nvvm.mem_scope<cluster>} : !llvm.ptr<7>, i32\n%full3 =");
    ASSERT_EQ(runExchange(4, text, options), "");
    for (unsigned i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], in[i ^ kThreads]);
  }
  expectFailure(makeTransfer(false),
                "wrote without fence.proxy.async behind it");
  expectFailure(
      replaceAll(makeTransfer(true), "%words, %full3", "%words, %full"),
      "is counted by an mbarrier of block");
}
} // namespace
