//===- BulkPipelineTest.cpp - A product fed by another warpgroup ----------===//
//
// D = A B^T by a warpgroup, whose operands come through two stages, guarded by
// mbarriers: one thread of another warpgroup has them copied by tensor maps, or
// all its threads copy them (cp.async). Or the two blocks of a cluster compute
// the same, and each has one operand copied for both. Then with one mistake at
// a time.
//
//===----------------------------------------------------------------------===//
#include "ClusterKernels.h"
#include "EmulatorTest.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kRows = 64, kColumns = 16, kStepDepth = 64, kSteps = 5;
constexpr unsigned kThreads = 256, kRegisters = kColumns / 2;
constexpr unsigned kBytesOfA = kRows * 128, kBytesOfB = kColumns * 128;
constexpr unsigned kStageBytes = kBytesOfA + kBytesOfB, kStages = 1024;
constexpr unsigned kSharedBytes = kStages + 2 * kStageBytes;
/// Of the tensors: none fills its last box.
constexpr unsigned kUsedRows = 60, kUsedColumns = 13, kDepth = 296;

enum class Bug {
  None,
  FullWait,      ///< Products do not wait for a stage.
  EmptyWait,     ///< Copies do not wait until it is read.
  EarlyRelease,  ///< A stage is released while products read it.
  Phase,         ///< Products wait for the phase before.
  Swizzle,       ///< The map of B names another one.
  Stride,        ///< The descriptor of B has another stride.
  FewBytes,      ///< The mbarrier expects A's bytes alone.
  ManyBytes,     ///< It expects more than both.
  InitFence,     ///< None behind the initialisation.
  LeftCopies,    ///< Copies of one step more, for which nobody waits.
  Arrivals,      ///< Each lane releases the stage, not one of a warp.
  Registers,     ///< More than there are.
  ProxyFence,    ///< None behind the copies of threads.
  LateFence,     ///< It comes behind the arrival.
  RemoteRelease, ///< A stage is released without the other block's products.
  EarlyRemote,   ///< The other block is told while products read it.
};

enum class Loader { Maps, Threads };

struct alignas(64) Map {
  char bytes[kTensorMapBytes];
};

/// The producers' loop, whose threads copy chunks of 16 bytes, each to its
/// place in the swizzled stage.
std::string makeThreadLoop(const std::string &place,
                           const std::string &waitForEmpty, Bug bug) {
  std::string text = R"(
      %thread = llvm.sub %tid, %c128 : i32
      %seven = llvm.mlir.constant(7 : i32) : i32
      %sixteen = llvm.mlir.constant(16 : i32) : i32
      %ceight = llvm.mlir.constant(8 : i32) : i32
      %rowBytes = llvm.mlir.constant()" +
                     number(kDepth * 2) + R"( : i32) : i32
      %allDepth = llvm.mlir.constant()" +
                     number(kDepth) + R"( : i32) : i32
      llvm.br ^produce(%zero : i32)
    ^produce(%p: i32):
      %pmore = llvm.icmp "ult" %p, %copies : i32
      llvm.cond_br %pmore, ^pbody, ^end
    ^pbody:
)" + place + waitForEmpty +
                     "%at = llvm.mul %p, %depth : i32\n";
  for (unsigned i = 0; i < 5; ++i) {
    bool isA = i < 4;
    std::string chunk = R"(
      %x_skip = llvm.mlir.constant(SKIP : i32) : i32
      %x_used = llvm.mlir.constant(USED : i32) : i32
      %x_c = llvm.add %thread, %x_skip : i32
      %x_row = llvm.lshr %x_c, %three : i32
      %x_col = llvm.and %x_c, %seven : i32
      %x_low = llvm.and %x_row, %seven : i32
      %x_mixed = llvm.xor %x_col, %x_low : i32
      %x_t = llvm.mul %x_mixed, %sixteen : i32
      %x_line = llvm.shl %x_row, %seven : i32
      %x_offset = llvm.add %x_line, %x_t : i32
      %x_dst = llvm.getelementptr BASE[%x_offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %x_elements = llvm.mul %x_col, %ceight : i32
      %x_k = llvm.add %at, %x_elements : i32
      %x_isRow = llvm.icmp "ult" %x_row, %x_used : i32
      %x_isDepth = llvm.icmp "ult" %x_k, %allDepth : i32
      %x_isIn = llvm.and %x_isRow, %x_isDepth : i1
      %x_size = llvm.select %x_isIn, %sixteen, %zero : i1, i32
      %x_f0 = llvm.mul %x_row, %rowBytes : i32
      %x_f1 = llvm.add %x_k, %x_k : i32
      %x_f2 = llvm.add %x_f0, %x_f1 : i32
      %x_from = llvm.select %x_isIn, %x_f2, %zero : i1, i32
      %x_src = llvm.getelementptr SOURCE[%x_from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      nvvm.cp.async.shared.global %x_dst, %x_src, 16, cache = cg, %x_size : !llvm.ptr<3>, !llvm.ptr<1>, i32
)";
    auto replace = [&](const std::string &from, const std::string &to) {
      for (size_t at = 0; (at = chunk.find(from, at)) != std::string::npos;
           at += to.size())
        chunk.replace(at, from.size(), to);
    };
    replace("SKIP", number(isA ? 128 * i : 0));
    replace("USED", number(isA ? kUsedRows : kUsedColumns));
    replace("BASE", isA ? "%pa" : "%pb");
    replace("SOURCE", isA ? "%a" : "%b");
    replace("%x_", "%x" + number(i));
    text += chunk;
  }
  const std::string fence =
      "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
      "#nvvm.shared_space<cta>}\n";
  const std::string arrive =
      "%pstate = nvvm.mbarrier.arrive %pfull : !llvm.ptr<3> -> i64\n";
  text += "nvvm.cp.async.commit.group\nnvvm.cp.async.wait.group 0\n";
  text += bug == Bug::ProxyFence  ? arrive
          : bug == Bug::LateFence ? arrive + fence
                                  : fence + arrive;
  return text + "%pnext = llvm.add %p, %one : i32\n"
                "llvm.br ^produce(%pnext : i32)\n";
}

std::string makeKernel(Bug bug, Loader loader, unsigned blocks) {
  bool isCluster = blocks > 1;
  std::string record = "!llvm.struct<(f32, f32, f32, f32, f32, f32, f32, f32)>";
  std::string constants;
  auto constant = [&](const std::string &name, uint64_t value,
                      const std::string &type = "i32") {
    constants += "%" + name + " = llvm.mlir.constant(" + number(value) + " : " +
                 type + ") : " + type + "\n";
  };
  auto unless = [&](Bug other, const std::string &text) {
    return bug == other ? std::string() : text;
  };
  constant("zero", 0);
  constant("one", 1);
  constant("three", 3);
  constant("four", 4);
  constant("frees", bug == Bug::RemoteRelease ? 4 : 4 * blocks);
  constant("five", 5);
  constant("six", 6);
  constant("c31", 31);
  constant("c128", 128);
  constant("minus", ~uint64_t(0));
  constant("steps", kSteps);
  constant("copies", kSteps + (bug == Bug::LeftCopies));
  constant("stage", kStageBytes);
  constant("depth", kStepDepth);
  constant("arrivals", loader == Loader::Maps ? 1 : 128);
  constant("bytes", bug == Bug::FewBytes    ? kBytesOfA
                    : bug == Bug::ManyBytes ? kStageBytes + 128
                                            : kStageBytes);
  constant("both", 3, "i16");
  constant("mask", 0x3ffff, "i64");
  constant("shift", 4, "i64");
  uint64_t form = uint64_t(1) << 16 | uint64_t(64) << 32 | uint64_t(1) << 62;
  constant("formA", form, "i64");
  constant("formB", form + (bug == Bug::Stride ? uint64_t(8) << 32 : 0), "i64");
  constant("offsetB", kBytesOfA, "i64");
  const std::string map = ": !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, "
                          "llvm.align = 64 : i64, nvvm.grid_constant}";
  // try_wait, in a loop.
  auto wait = [](const std::string &label, const std::string &address,
                 const std::string &parity) {
    return "llvm.br ^" + label + "\n^" + label + ":\n%" + label +
           "v = nvvm.mbarrier.try_wait " + address + ", " + parity +
           " : !llvm.ptr<3>, i32 -> i1\nllvm.cond_br %" + label + "v, ^" +
           label + "d, ^" + label + "\n^" + label + "d:\n";
  };
  // The stage and the round of step `k`, and the mbarriers.
  auto place = [](const std::string &p, const std::string &k) {
    std::string text = R"(
      %Pst = llvm.and K, %one : i32
      %Pround = llvm.lshr K, %one : i32
      %Peven = llvm.and %Pround, %one : i32
      %Podd = llvm.xor %Peven, %one : i32
      %Pfull = llvm.getelementptr %smem[%Pst] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      %Pempty = llvm.getelementptr %empties[%Pst] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      %Po = llvm.mul %Pst, %stage : i32
      %Pa = llvm.getelementptr %stages[%Po] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      %Pb = llvm.getelementptr %Pa[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
)";
    for (size_t at; (at = text.find("%P")) != std::string::npos;)
      text.replace(at, 2, "%" + p);
    for (size_t at; (at = text.find("K,")) != std::string::npos;)
      text.replace(at, 1, k);
    return text;
  };
  std::string text = R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @product(%mapA)" +
                     map + ", %mapB" + map +
                     ", %d: !llvm.ptr<1>, %a: !llvm.ptr<1>, %b: !llvm.ptr<1>) "
                     "attributes {" +
                     clusterOf(blocks) + ", nvvm.maxnreg = 136 : i32} {\n" +
                     constants + R"(
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %empties = llvm.getelementptr %smem[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %empty1 = llvm.getelementptr %smem[24] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %full1 = llvm.getelementptr %smem[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %stages = llvm.getelementptr %smem[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      %otherBlock = llvm.xor %rank, %one : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %lane = llvm.and %tid, %c31 : i32
      %isFirst = llvm.icmp "eq" %tid, %zero : i32
      %warp0 = llvm.lshr %tid, %five : i32
      %warp = nvvm.shfl.sync idx %minus, %warp0, %zero, %c31 : i32 -> i32
      llvm.cond_br %isFirst, ^init, ^inited
    ^init:
      nvvm.mbarrier.init %smem, %arrivals : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %full1, %arrivals : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empties, %frees : !llvm.ptr<3>, i32
      nvvm.mbarrier.init %empty1, %frees : !llvm.ptr<3>, i32
)";
  text += unless(Bug::InitFence, "nvvm.fence.mbarrier.init\n");
  text += R"(
      llvm.br ^inited
    ^inited:
      )" + (isCluster ? kMeet : "nvvm.barrier0\n") +
          R"(
      %isConsumer = llvm.icmp "ult" %warp, %four : i32
      llvm.cond_br %isConsumer, ^consumer, ^producers
    ^producers:
      nvvm.setmaxregister decrease 40
)";
  // One block has A copied for both, the other B.
  auto copy = [&](const std::string &operand, const std::string &map) {
    std::string begin = "nvvm.cp.async.bulk.tensor.shared.cluster.global ";
    std::string box = ", %map" + map + ", %pfull, box[%at, %zero]";
    if (!isCluster)
      return begin + "%p" + operand + box +
             " {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr\n";
    return "%all" + operand + " = llvm.addrspacecast %p" + operand +
           " : !llvm.ptr<3> to !llvm.ptr<7>\n%copies" + map +
           " = llvm.icmp \"eq\" %rank, " + (operand == "a" ? "%zero" : "%one") +
           " : i32\n" + begin + "%all" + operand + box +
           " multicast_mask = %both predicate = %copies" + map +
           " : !llvm.ptr<7>, !llvm.ptr\n";
  };
  std::string waitForEmpty =
      unless(Bug::EmptyWait, wait("pw", "%pempty", "%podd"));
  if (loader == Loader::Threads)
    text += makeThreadLoop(place("p", "%p"), waitForEmpty, bug);
  else
    text += R"(
      %isProducer = llvm.icmp "eq" %warp, %four : i32
      llvm.cond_br %isProducer, ^elect, ^end
    ^elect:
      %elected = nvvm.elect.sync -> i1
      llvm.cond_br %elected, ^produce(%zero : i32), ^end
    ^produce(%p: i32):
      %pmore = llvm.icmp "ult" %p, %copies : i32
      llvm.cond_br %pmore, ^pbody, ^end
    ^pbody:
)" + place("p", "%p") +
            waitForEmpty + R"(
      %at = llvm.mul %p, %depth : i32
      nvvm.mbarrier.arrive.expect_tx %pfull, %bytes : !llvm.ptr<3>, i32
)" + copy("a", "A") +
            copy("b", "B") + R"(
      %pnext = llvm.add %p, %one : i32
      llvm.br ^produce(%pnext : i32)
)";
  text += std::string(R"(
    ^consumer:
      nvvm.setmaxregister increase )") +
          (bug == Bug::Registers ? "240" : "232") + R"(
      %start = llvm.mlir.zero : )" +
          record + "\nllvm.br ^consume(%zero, %start : i32, " + record +
          ")\n^consume(%k: i32, %acc: " + record + R"():
      %more = llvm.icmp "ult" %k, %steps : i32
      llvm.cond_br %more, ^body, ^done
    ^body:
)" + place("c", "%k") +
          unless(Bug::FullWait,
                 wait("cw", "%cfull", bug == Bug::Phase ? "%codd" : "%ceven")) +
          R"(
      %ia = llvm.ptrtoint %ca : !llvm.ptr<3> to i64
      %la = llvm.and %ia, %mask : i64
      %ua = llvm.lshr %la, %shift : i64
      %da0 = llvm.or %ua, %formA : i64
      %ib = llvm.ptrtoint %cb : !llvm.ptr<3> to i64
      %lb = llvm.and %ib, %mask : i64
      %ub = llvm.lshr %lb, %shift : i64
      %db0 = llvm.or %ub, %formB : i64
      %two = llvm.mlir.constant(2 : i64) : i64
      nvvm.wgmma.fence.aligned
)";
  std::string sums = "%acc";
  for (unsigned i = 0; i < 4; ++i) {
    std::string n = number(i), next = number(i + 1);
    text += "%r" + n + " = nvvm.wgmma.mma_async %da" + n + ", %db" + n + ", " +
            sums +
            ", <m = 64, n = 16, k = 16>, D [<f32>, "
            "#nvvm.wgmma_scale_out<one>], A [<f16>, "
            "#nvvm.wgmma_scale_in<one>, <row>], B [<f16>, "
            "#nvvm.wgmma_scale_in<one>, <col>] : " +
            record + " -> " + record + "\n%da" + next + " = llvm.add %da" + n +
            ", %two : i64\n%db" + next + " = llvm.add %db" + n +
            ", %two : i64\n";
    sums = "%r" + n;
  }
  bool isEarly = bug == Bug::EarlyRelease;
  std::string tellOther =
      std::string("%released7 = nvvm.mapa %released") +
      (bug == Bug::EarlyRemote ? "0" : "") +
      ", %otherBlock : !llvm.ptr<3> -> !llvm.ptr<7>\n"
      "nvvm.mbarrier.arrive %released7 {scope = #nvvm.mem_scope<cluster>} : "
      "!llvm.ptr<7>\n";
  text += R"(
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 1
      %next = llvm.add %k, %one : i32
      %isLater = llvm.icmp "ne" %k, %zero : i32
      %isLane0 = llvm.icmp "eq" %lane, %zero : i32
)";
  text += std::string("%releases = llvm.and ") +
          (bug == Bug::Arrivals ? "%isLater" : "%isLane0") + ", " +
          (isEarly ? "%isLane0" : "%isLater") + " : i1\n";
  text += "%other = llvm.xor %cst, %one : i32\n"
          "%released = llvm.getelementptr %empties[" +
          std::string(isEarly ? "%cst" : "%other") +
          "] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64\n" + R"(
      llvm.cond_br %releases, ^release, ^kept
    ^release:
      %state = nvvm.mbarrier.arrive %released : !llvm.ptr<3> -> i64
)" +
          (isCluster && bug != Bug::EarlyRemote
               ? unless(Bug::RemoteRelease, tellOther)
               : "") +
          R"(
      llvm.br ^kept
    ^kept:
      )" +
          (bug == Bug::EarlyRemote ? R"(
      llvm.cond_br %isLane0, ^tell, ^told
    ^tell:
      %released0 = llvm.getelementptr %empties[%cst] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
      )" + tellOther + R"(
      llvm.br ^told
    ^told:
)"
                                   : std::string()) +
          R"(
      llvm.br ^consume(%next, %r3 : i32, )" +
          record + R"()
    ^done:
)";
  std::string operands, types, outputs, inputs;
  for (unsigned i = 0; i < kRegisters; ++i) {
    std::string n = number(i), comma = i ? ", " : "";
    text +=
        "%e" + n + " = llvm.extractvalue %acc[" + n + "] : " + record + "\n";
    operands += comma + "%e" + n;
    types += comma + "f32";
    outputs += "=f,";
    inputs += (i ? "," : "") + n;
  }
  text += "nvvm.wgmma.wait.group.sync.aligned 0\n%pin = llvm.inline_asm "
          "has_side_effects \"\", \"" +
          outputs + inputs + "\" " + operands + " : (" + types + ") -> " +
          record +
          "\n%eight = llvm.mlir.constant(8 : i32) : i32\n"
          "%blockSize = llvm.mlir.constant(1024 : i32) : i32\n"
          "%ofBlock = llvm.mul %rank, %blockSize : i32\n"
          "%ofThread = llvm.mul %tid, %eight : i32\n"
          "%own0 = llvm.add %ofBlock, %ofThread : i32\n";
  for (unsigned i = 0; i < kRegisters; ++i) {
    std::string n = number(i);
    text += "%o" + n + " = llvm.extractvalue %pin[" + n + "] : " + record +
            "\n%i" + n + " = llvm.mlir.constant(" + n + " : i32) : i32\n%n" +
            n + " = llvm.add %own0, %i" + n + " : i32\n%p" + n +
            " = llvm.getelementptr %d[%n" + n +
            "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\nllvm.store %o" + n +
            ", %p" + n + " : f32, !llvm.ptr<1>\n";
  }
  return text + "llvm.br ^end\n^end:\n" +
         (isCluster ? "nvvm.cluster.arrive\nnvvm.cluster.wait\n" : "") +
         "llvm.return\n}\n";
}

class BulkPipelineTest : public EmulatorTest {
protected:
  BulkPipelineTest() {
    for (auto [operand, rows] :
         {std::pair(&a, kUsedRows), std::pair(&b, kUsedColumns)}) {
      operand->resize(rows * kDepth + 8);
      for (uint16_t &value : *operand) // From 1 to 2, and from -1 to -2.
        value = static_cast<uint16_t>((random() & 0x83ff) | 0x3c00);
    }
  }
  static uint16_t *align(std::vector<uint16_t> &values) {
    return reinterpret_cast<uint16_t *>(
        (reinterpret_cast<uintptr_t>(values.data()) + 15) / 16 * 16);
  }
  static double valueOf(uint16_t bits) {
    double value = 1 + (bits & 0x3ff) / 1024.0;
    return bits & 0x8000 ? -value : value;
  }
  Map encode(uint16_t *tensor, unsigned used, unsigned rows, unsigned swizzle) {
    Map map;
    uint64_t sizes[2] = {kDepth, used}, strides[1] = {kDepth * 2};
    uint32_t box[2] = {64, rows}, steps[2] = {1, 1};
    EXPECT_EQ(encodeTensorMap(map.bytes, {6, 2, tensor, sizes, strides, box,
                                          steps, 0, swizzle, 0, 0}),
              "");
    return map;
  }
  std::string run(Bug bug, const EmulatorOptions &options,
                  Loader loader = Loader::Maps, unsigned blocks = 1) {
    auto emulator = create(makeKernel(bug, loader, blocks), options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    d.assign(blocks * 128 * kRegisters, 0);
    emulator->addBuffer(align(a), kUsedRows * kDepth * 2, "a", false);
    emulator->addBuffer(align(b), kUsedColumns * kDepth * 2, "b", false);
    emulator->addBuffer(d.data(), d.size() * 4, "d", true);
    // A row of B is narrower where its swizzle is another one.
    return launch(
        *emulator, "product", {blocks}, {kThreads}, kSharedBytes,
        encode(align(a), kUsedRows, kRows, 3),
        encode(align(b), kUsedColumns, kColumns, bug == Bug::Swizzle ? 0 : 3),
        d.data(), align(a), align(b));
  }
  bool isRight() {
    for (size_t begin = 0; begin < d.size(); begin += 128 * kRegisters)
      if (!isRight(&d[begin]))
        return false;
    return true;
  }
  bool isRight(const float *block) {
    for (unsigned row = 0; row < kRows; ++row)
      for (unsigned column = 0; column < kColumns; ++column) {
        double expected = 0;
        if (row < kUsedRows && column < kUsedColumns)
          for (unsigned k = 0; k < kDepth; ++k)
            expected += valueOf(align(a)[row * kDepth + k]) *
                        valueOf(align(b)[column * kDepth + k]);
        unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
        unsigned at = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
        float found = block[thread * kRegisters + at];
        if (!(std::abs(found - expected) < 2e-2))
          return false;
      }
    return true;
  }
  std::vector<uint16_t> a, b;
  std::vector<float> d;
};

TEST_F(BulkPipelineTest, Multiplies) {
  for (EmulatorOptions options : allCheckedOptions()) {
    options.seed = static_cast<unsigned>(random());
    for (Loader loader : {Loader::Maps, Loader::Threads}) {
      ASSERT_EQ(run(Bug::None, options, loader), "");
      EXPECT_TRUE(isRight());
    }
  }
}

TEST_F(BulkPipelineTest, MistakesOfThreadsThatCopy) {
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::FullWait, ""},
      {Bug::EmptyWait, ""},
      {Bug::EarlyRelease, "while a product of matrices that reads it is in "
                          "flight"},
      {Bug::Phase, ""},
      {Bug::Arrivals, ""},
      {Bug::ProxyFence, "wrote without fence.proxy.async behind it"},
      {Bug::LateFence, "wrote without fence.proxy.async behind it"}};
  for (auto [bug, text] : mistakes)
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      std::string found = run(bug, options, Loader::Threads);
      EXPECT_NE(found, "") << static_cast<int>(bug);
      EXPECT_CONTAINS(found, text);
    }
}

TEST_F(BulkPipelineTest, BlocksOfAClusterCopyForEachOther) {
  for (EmulatorOptions options : allCheckedOptions()) {
    options.seed = static_cast<unsigned>(random());
    ASSERT_EQ(run(Bug::None, options, Loader::Maps, 2), "");
    EXPECT_TRUE(isRight());
  }
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::FullWait, ""},
      {Bug::EmptyWait, ""},
      {Bug::EarlyRelease, "while a product of matrices that reads it is in "
                          "flight"},
      {Bug::EarlyRemote, ""},
      {Bug::RemoteRelease, ""},
      {Bug::FewBytes, ""},
      {Bug::InitFence, "which was initialised without fence.mbarrier_init"}};
  for (auto [bug, text] : mistakes)
    for (auto order : kAllOrders)
      for (bool checksRaces : {false, true}) {
        EmulatorOptions options;
        options.order = order;
        options.checkRaces = checksRaces;
        std::string found = run(bug, options, Loader::Maps, 2);
        bool isFound = found != "" || (!checksRaces && !isRight());
        EXPECT_TRUE(isFound) << static_cast<int>(bug) << " " << order;
        if (checksRaces)
          EXPECT_CONTAINS(found, text);
      }
}

TEST_F(BulkPipelineTest, MistakesAreFoundByChecks) {
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::FullWait, ""},
      {Bug::EmptyWait, ""},
      {Bug::EarlyRelease, "while a product of matrices that reads it is in "
                          "flight"},
      {Bug::Phase, ""},
      {Bug::FewBytes, ""},
      {Bug::ManyBytes, "and 128 bytes"},
      {Bug::InitFence, "which was initialised without fence.mbarrier_init"},
      {Bug::LeftCopies, "are still pending at the kernel's end"},
      {Bug::Arrivals, ""},
      {Bug::Registers,
       "128 threads wait for registers (setmaxnreg) beyond the pool"}};
  for (auto [bug, text] : mistakes)
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      std::string found = run(bug, options);
      EXPECT_NE(found, "") << static_cast<int>(bug);
      EXPECT_CONTAINS(found, text);
    }
}

TEST_F(BulkPipelineTest, MistakesYieldOtherValuesWithoutChecks) {
  for (Bug bug : {Bug::FullWait, Bug::EmptyWait, Bug::EarlyRelease, Bug::Phase,
                  Bug::Swizzle, Bug::Stride, Bug::FewBytes, Bug::ManyBytes,
                  Bug::LeftCopies, Bug::Arrivals})
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      bool isFound = run(bug, options) != "" || !isRight();
      EXPECT_TRUE(isFound) << static_cast<int>(bug);
    }
}
} // namespace
