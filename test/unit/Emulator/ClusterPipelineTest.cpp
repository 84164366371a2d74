//===- ClusterPipelineTest.cpp - Blocks that copy for each other ----------===//
//
// The blocks of a cluster copy parts of each stage for all of them, and tell
// each other when a stage is free; then with one mistake at a time.
//
//===----------------------------------------------------------------------===//
#include "ClusterKernels.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "HostImageFixture.h"
#include "WordsTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kThreads = 64;
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
  InitFence,    ///< Nothing makes mbarriers known to the other block.
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
)" + unless(Bug::InitFence, "nvvm.fence.mbarrier.init\n") +
         R"(
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

constexpr unsigned kBlocks = 3 * kSize;
constexpr unsigned kSharedBytes = 1024 + kStages * kStageBytes;

Map encode(uint32_t *words) {
  Map map;
  uint64_t sizes[2] = {kLanes, kSteps * kSize}, strides[1] = {kPartBytes};
  uint32_t box[2] = {kLanes, 1}, steps[2] = {1, 1};
  EXPECT_EQ(encodeTensorMap(map.bytes, {2, 2, words, sizes, strides, box, steps,
                                        0, 0, 0, 0}),
            "");
  return map;
}

/// At a multiple of 16 bytes.
uint32_t *align(std::vector<uint32_t> &words) {
  auto address = reinterpret_cast<uintptr_t>(words.data());
  return reinterpret_cast<uint32_t *>((address + 15) / 16 * 16);
}

bool isRight(const uint32_t *words, const std::vector<uint32_t> &out) {
  for (unsigned i = 0; i < out.size(); ++i) {
    uint32_t expected = 0;
    for (unsigned step = 0; step < kSteps; ++step) {
      const uint32_t *parts = words + step * kSize * kLanes + i % kLanes;
      expected = 3 * expected + parts[0] + 5 * parts[kLanes];
    }
    if (out[i] != expected)
      return false;
  }
  return true;
}

class ClusterPipelineTest : public WordsTest {
protected:
  std::string run(Bug bug, const EmulatorOptions &options,
                  Copies copies = Copies::Ranges) {
    auto emulator = create(makePipeline(bug, copies), options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    fill(kSteps * kSize * kLanes + 4, kBlocks * kLanes);
    emulator->addBuffer(align(in), kSteps * kSize * kPartBytes, "in", false);
    emulator->addBuffer(out.data(), out.size() * 4, "out", true);
    return launch(*emulator, "pipeline", {kBlocks}, {kThreads}, kSharedBytes,
                  encode(align(in)), align(in), out.data());
  }
  bool isRight() { return ::isRight(align(in), out); }
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
      {Bug::WrongFree, ""},
      {Bug::InitFence, "initialised it without a barrier in between"}};
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

class ClusterImageTest : public HostImageFixture {};

TEST_F(ClusterImageTest, RunsClusters) {
  const ftrt_host_image *image = compileAndLoad(
      "module attributes {gpu.container_module} { gpu.module @m {" +
      makePipeline(Bug::None, Copies::Boxes) + "} }");
  ASSERT_TRUE(image);
  const ftrt_host_kernel *kernel = find(image, "pipeline");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->block_x, kThreads);
  EXPECT_EQ(kernel->cluster_x, kSize);
  std::vector<uint32_t> in(kSteps * kSize * kLanes + 4), out(kBlocks * kLanes);
  for (uint32_t &word : in)
    word = static_cast<uint32_t>(random());
  uint32_t *words = align(in);
  ASSERT_EQ(launch(kernel, kBlocks, kThreads, kSharedBytes, encode(words),
                   words, out.data()),
            FTRT_SUCCESS)
      << message;
  EXPECT_TRUE(isRight(words, out));
  EXPECT_EQ(launch(kernel, kBlocks + 1, kThreads, kSharedBytes, encode(words),
                   words, out.data()),
            FTRT_ERROR_LAUNCH_FAILED);
  EXPECT_CONTAINS(message, "expected a grid of clusters of 2 blocks along x");
}

TEST_F(ClusterPipelineTest, Counters) {
  EmulatorOptions options;
  options.counters = true;
  auto emulator = create(makePipeline(Bug::None, Copies::Ranges), options);
  ASSERT_TRUE(emulator) << error;
  fill(kSteps * kSize * kLanes + 4, kBlocks * kLanes);
  ASSERT_EQ(launch(*emulator, "pipeline", {kBlocks}, {kThreads}, kSharedBytes,
                   encode(align(in)), align(in), out.data()),
            "");
  EXPECT_TRUE(isRight());
  std::vector<KernelCounters> counters = emulator->takeCounters();
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].blocks, kBlocks);
  EXPECT_EQ(counters[0].warps, kBlocks * kThreads / 32);
  // At the start and at the end.
  EXPECT_EQ(counters[0].barriers, 2 * kBlocks);
  EXPECT_EQ(counters[0][RequestKind::SharedLoad].requests,
            uint64_t(2) * kSteps * kBlocks);
}
} // namespace
