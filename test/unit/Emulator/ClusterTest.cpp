//===- ClusterTest.cpp - Blocks of a cluster ------------------------------===//
//
// Small kernels for the barrier of a cluster and for each use of the shared
// memory of other blocks, and a pipeline whose blocks copy for each other; then
// with one mistake at a time.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "WordsTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 64;

std::string replaceAll(std::string text, const std::string &from,
                       const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string number(uint64_t value) {
  return std::to_string(static_cast<int64_t>(value));
}

std::string
makeConstants(const std::vector<std::pair<const char *, uint64_t>> &constants) {
  std::string text;
  for (auto [name, value] : constants)
    text += "%" + std::string(name) + " = llvm.mlir.constant(" + number(value) +
            " : i32) : i32\n";
  return text;
}

std::string clusterOf(unsigned blocks) {
  return "gpu.kernel, nvvm.kernel, nvvm.cluster_dim = array<i32: " +
         number(blocks) + ", 1, 1>";
}

const std::string kMeet = "nvvm.cluster.arrive {aligned}\n"
                          "nvvm.cluster.wait {aligned}\n";

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
      %first = llvm.mul %block, %dim : i32
      %at = llvm.add %first, %tid : i32
      %from = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %x = llvm.load %from : !llvm.ptr<1> -> i32
      %own = llvm.getelementptr %words[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %x, %own : i32, !llvm.ptr<3>
      )" +
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
  expectFailure(makeExchange(2, apart, kMeet),
                "comes to the barrier of the cluster");
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
      %first = llvm.mul %block, %dim : i32
      %at = llvm.add %first, %tid : i32
      %from = llvm.getelementptr %in[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %x = llvm.load %from : !llvm.ptr<1> -> i32
      %own = llvm.getelementptr %words[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %x, %own : i32, !llvm.ptr<3>
)" +
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
  expectFailure(makeTransfer(false),
                "wrote without fence.proxy.async behind it");
  expectFailure(
      replaceAll(makeTransfer(true), "%words, %full3", "%words, %full"),
      "is counted by an mbarrier of block");
}

//===----------------------------------------------------------------------===//
// A pipeline with multicasts
//===----------------------------------------------------------------------===//

constexpr unsigned kSize = 2, kStages = 2, kSteps = 7, kLanes = 32;
constexpr unsigned kPartBytes = 4 * kLanes, kStageBytes = kSize * kPartBytes;

enum class Bug {
  None,
  EndBarrier,   ///< Blocks end while others still arrive at their mbarriers.
  StartBarrier, ///< Each block waits for its own mbarriers alone.
  RemoteFree,   ///< Consumers do not tell the other block.
  Mask,         ///< Copies go to the own block alone.
  WideMask,     ///< They go to more blocks than there are.
  FewBytes,     ///< Mbarriers do not expect the other block's copies.
  RemoteWait,   ///< Consumers wait at the other block's mbarrier.
  WrongFree,    ///< They tell the other block twice.
};

enum class Copies { Ranges, Boxes };

/// Warp 0 of each block consumes stages, each of one part from each block;
/// thread 32 has the part of the block copied to all blocks.
std::string makePipeline(Bug bug, Copies copies) {
  auto unless = [&](Bug other, const std::string &text) {
    return bug == other ? std::string() : text;
  };
  bool isAlone = bug == Bug::RemoteFree;
  std::string copy =
      copies == Copies::Ranges
          ? "nvvm.cp.async.bulk.shared.cluster.global %pto, %pfrom, %pfull, "
            "%partBytes multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>\n"
          : "nvvm.cp.async.bulk.tensor.shared.cluster.global %pto, %map, "
            "%pfull, box[%zero, %pat] multicast_mask = %mask : !llvm.ptr<7>, "
            "!llvm.ptr\n";
  auto wait = [](const std::string &label, const std::string &address,
                 const std::string &parity) {
    return "llvm.br ^" + label + "\n^" + label + ":\n%" + label +
           "v = nvvm.mbarrier.try_wait " + address + ", " + parity +
           " {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32 -> i1\n" +
           "llvm.cond_br %" + label + "v, ^" + label + "d, ^" + label + "\n^" +
           label + "d:\n";
  };
  auto place = [](const std::string &p, const std::string &step) {
    return replaceAll(replaceAll(R"(
      %Pstage = llvm.and K, %one : i32
      %Pround = llvm.lshr K, %one : i32
      %Peven = llvm.and %Pround, %one : i32
      %Podd = llvm.xor %Peven, %one : i32
      %Pfull = llvm.getelementptr %smem[%Pstage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      %Pempty = llvm.getelementptr %empties[%Pstage] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      %Poffset = llvm.mul %Pstage, %stageBytes : i32
      %Pdata = llvm.getelementptr %stages[%Poffset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
)",
                                 "%P", "%" + p),
                      " K,", " " + step + ",");
  };
  std::string free;
  for (unsigned i = 0; i < (isAlone ? 1 : kSize); ++i) {
    std::string n = number(i);
    std::string block = isAlone                 ? "%rank"
                        : bug == Bug::WrongFree ? "%other"
                        : i == 0                ? "%rank"
                                                : "%other";
    free += "%free" + n + " = nvvm.mapa %cempty, " + block +
            " : !llvm.ptr<3> -> !llvm.ptr<7>\nnvvm.mbarrier.arrive %free" + n +
            " {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>\n";
  }
  return R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @pipeline(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}, %in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {gpu.known_block_size = array<i32: 64, 1, 1>, )" +
         clusterOf(kSize) + "} {\n" +
         makeConstants(
             {{"zero", 0},
              {"one", 1},
              {"three", 3},
              {"five", 5},
              {"size", kSize},
              {"lanes", kLanes},
              {"all", ~uint64_t(0)},
              {"steps", kSteps},
              {"frees", isAlone ? 1 : kSize},
              {"partBytes", kPartBytes},
              {"stageBytes", kStageBytes},
              {"bytes", bug == Bug::FewBytes ? kPartBytes : kStageBytes}}) +
         R"(
      %one16 = llvm.mlir.constant(1 : i16) : i16
      %three16 = llvm.mlir.constant()" +
         (bug == Bug::WideMask ? "7" : "3") + R"( : i16) : i16
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %full1 = llvm.getelementptr %smem[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %empties = llvm.getelementptr %smem[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %empty1 = llvm.getelementptr %smem[24] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %stages = llvm.getelementptr %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %block = nvvm.read.ptx.sreg.ctaid.x : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %other = llvm.xor %rank, %one : i32
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      llvm.cond_br %isFirst, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %smem, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %full1, %one : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empties, %frees : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empty1, %frees : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      llvm.br ^inited
    ^inited:
)" +
         (bug == Bug::StartBarrier ? "nvvm.barrier0\n"
                                   : "nvvm.cluster.arrive.relaxed {aligned}\n"
                                     "nvvm.cluster.wait {aligned}\n") +
         R"(
      %isConsumer = llvm.icmp "ult" %tid, %lanes : i32
      llvm.cond_br %isConsumer, ^consume(%zero, %zero : i32, i32), ^other
    ^other:
      %isProducer = llvm.icmp "eq" %tid, %lanes : i32
      llvm.cond_br %isProducer, ^produce(%zero : i32), ^end
    ^produce(%p: i32):
      %pmore = llvm.icmp "ult" %p, %steps : i32
      llvm.cond_br %pmore, ^pbody, ^end
    ^pbody:
)" + place("p", "%p") +
         wait("pw", "%pempty", "%podd") + R"(
      nvvm.mbarrier.arrive.expect_tx %pfull, %bytes {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<3>, i32
      %pparts = llvm.mul %p, %size : i32
      %pat = llvm.add %pparts, %rank : i32
      %pbytes = llvm.mul %pat, %partBytes : i32
      %pfrom = llvm.getelementptr %in[%pbytes] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %poff = llvm.mul %rank, %partBytes : i32
      %pown = llvm.getelementptr %pdata[%poff] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %pto = llvm.addrspacecast %pown : !llvm.ptr<3> to !llvm.ptr<7>
      %rank16 = llvm.trunc %rank : i32 to i16
      %alone = llvm.shl %one16, %rank16 : i16
      %never = llvm.icmp "eq" %p, )" +
         (bug == Bug::Mask ? "%p" : "%steps") + R"( : i32
      %mask = llvm.select %never, %alone, %three16 : i1, i16
      )" +
         copy + R"(
      %pnext = llvm.add %p, %one : i32
      llvm.br ^produce(%pnext : i32)
    ^consume(%c: i32, %sum: i32):
      %more = llvm.icmp "ult" %c, %steps : i32
      llvm.cond_br %more, ^cbody, ^done
    ^cbody:
)" + place("c", "%c") +
         (bug == Bug::RemoteWait
              ? "%cfull7 = nvvm.mapa %cfull, %other : !llvm.ptr<3> -> "
                "!llvm.ptr<7>\n%cwhat = llvm.addrspacecast %cfull7 : "
                "!llvm.ptr<7> to !llvm.ptr<3>\n" +
                    wait("cw", "%cwhat", "%ceven")
              : wait("cw", "%cfull", "%ceven")) +
         R"(
      %a = llvm.getelementptr %cdata[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %b = llvm.getelementptr %a[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
      %x = llvm.load %a : !llvm.ptr<3> -> i32
      %y = llvm.load %b : !llvm.ptr<3> -> i32
      %s0 = llvm.mul %sum, %three : i32
      %s1 = llvm.add %s0, %x : i32
      %s2 = llvm.mul %y, %five : i32
      %s = llvm.add %s1, %s2 : i32
      nvvm.bar.warp.sync %all : i32
      %next = llvm.add %c, %one : i32
      llvm.cond_br %isFirst, ^free, ^freed
    ^free:
)" + free +
         R"(
      llvm.br ^freed
    ^freed:
      llvm.br ^consume(%next, %s : i32, i32)
    ^done:
      %first = llvm.mul %block, %lanes : i32
      %at = llvm.add %first, %tid : i32
      %to = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %sum, %to : i32, !llvm.ptr<1>
      llvm.br ^end
    ^end:
)" + unless(Bug::EndBarrier, "nvvm.cluster.arrive\nnvvm.cluster.wait\n") +
         "llvm.return\n}\n";
}

struct alignas(64) Map {
  char bytes[kTensorMapBytes];
};

class ClusterPipelineTest : public WordsTest {
protected:
  static constexpr unsigned kBlocks = 3 * kSize;
  std::string run(Bug bug, const EmulatorOptions &options,
                  Copies copies = Copies::Ranges) {
    auto emulator = create(makePipeline(bug, copies), options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    fill(kSteps * kSize * kLanes + 4, kBlocks * kLanes);
    Map map;
    uint64_t sizes[2] = {kLanes, kSteps * kSize}, strides[1] = {kPartBytes};
    uint32_t box[2] = {kLanes, 1}, steps[2] = {1, 1};
    EXPECT_EQ(encodeTensorMap(map.bytes, {2, 2, words(), sizes, strides, box,
                                          steps, 0, 0, 0, 0}),
              "");
    emulator->addBuffer(words(), kSteps * kSize * kPartBytes, "in", false);
    emulator->addBuffer(out.data(), out.size() * 4, "out", true);
    return launch(*emulator, "pipeline", {kBlocks}, {kThreads},
                  1024 + kStages * kStageBytes, map, words(), out.data());
  }
  /// Of the input, at a multiple of 16 bytes.
  uint32_t *words() {
    auto address = reinterpret_cast<uintptr_t>(in.data());
    return reinterpret_cast<uint32_t *>((address + 15) / 16 * 16);
  }
  bool isRight() {
    for (unsigned i = 0; i < out.size(); ++i) {
      uint32_t expected = 0;
      for (unsigned step = 0; step < kSteps; ++step) {
        const uint32_t *parts = words() + step * kSize * kLanes + i % kLanes;
        expected = 3 * expected + parts[0] + 5 * parts[kLanes];
      }
      if (out[i] != expected)
        return false;
    }
    return true;
  }
};

TEST_F(ClusterPipelineTest, CopiesToAllBlocks) {
  for (EmulatorOptions options : allCheckedOptions()) {
    options.seed = static_cast<unsigned>(random());
    for (Copies copies : {Copies::Ranges, Copies::Boxes}) {
      ASSERT_EQ(run(Bug::None, options, copies), "");
      EXPECT_TRUE(isRight());
    }
  }
}

TEST_F(ClusterPipelineTest, MistakesAreFoundByChecks) {
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::EndBarrier, "of the cluster is used"},
      {Bug::StartBarrier, "is used before that block is known to have started"},
      {Bug::RemoteFree, ""},
      {Bug::Mask, "deadlock: "},
      {Bug::WideMask, "expected a multicast mask of some of the 2 blocks of "
                      "the cluster, but got 7"},
      {Bug::FewBytes, ""},
      {Bug::RemoteWait, "needs one of the own block, but got one of block"},
      {Bug::WrongFree, ""}};
  for (auto [bug, text] : mistakes)
    for (Copies copies : {Copies::Ranges, Copies::Boxes})
      for (auto order : kAllOrders) {
        EmulatorOptions options;
        options.order = order;
        options.seed = static_cast<unsigned>(random());
        options.checkRaces = true;
        std::string found = run(bug, options, copies);
        EXPECT_NE(found, "") << static_cast<int>(bug);
        EXPECT_CONTAINS(found, text);
      }
}

TEST_F(ClusterPipelineTest, MistakesAreFoundWithoutChecks) {
  for (Bug bug : {Bug::StartBarrier, Bug::Mask, Bug::WideMask, Bug::FewBytes,
                  Bug::RemoteWait, Bug::RemoteFree, Bug::EndBarrier})
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      bool isFound = run(bug, options) != "" || !isRight();
      EXPECT_TRUE(isFound) << static_cast<int>(bug);
    }
}

TEST_F(ClusterPipelineTest, Counters) {
  EmulatorOptions options;
  options.counters = true;
  ASSERT_EQ(run(Bug::None, options), "");
  EXPECT_TRUE(isRight());
}
} // namespace
