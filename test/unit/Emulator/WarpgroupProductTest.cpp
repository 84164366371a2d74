//===- WarpgroupProductTest.cpp - wgmma -----------------------------------===//
//
// D = A B + D by two products of a warpgroup in a loop, from operands that lie
// in shared memory in every layout of the matrix descriptors; then with one
// mistake at a time, each of which must be found.
//
//===----------------------------------------------------------------------===//
#include "EmulatorTest.h"
#include "llvm/ADT/APFloat.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kRows = 64, kSteps = 2, kThreads = 128, kDepthBytes = 32;

struct Case {
  std::string type; ///< Of A and B.
  std::string sum;  ///< "f32", "f16" or "s32".
  unsigned bytes;   ///< Of an element.
  unsigned columns;
  unsigned swizzle; ///< Bytes of the pattern; 16 for none.
  bool aTransposed = false, bTransposed = false;
};

enum class Bug {
  None,
  ProxyFence,   ///< No fence between writes and products.
  Barrier,      ///< No barrier between them.
  ProductFence, ///< No wgmma.fence.
  Wait,         ///< Accumulators are read too early.
  EarlyCopy,    ///< The same by an asynchronous copy.
  EarlyWrite,   ///< An operand is written while a product reads it.
  Swizzle,      ///< The descriptor names another one.
  Stride,       ///< The descriptor has another stride.
  Divergence,   ///< One warp stays away.
};

/// An operand as it lies in shared memory: steps of 32 bytes of depth, each in
/// a place of its own.
struct Layout {
  unsigned extent, bytes, swizzle;
  bool isTransposed;

  unsigned width() const { return swizzle; }
  unsigned depth() const { return kDepthBytes / bytes; }
  /// Distances along the extent and the depth, of whole patterns.
  unsigned groups() const { return (extent + 7) / 8; }
  unsigned panels() const { return (extent * bytes + width() - 1) / width(); }
  unsigned stride() const {
    if (!isTransposed)
      return swizzle == 16 ? 256 : 8 * width();
    return swizzle == 16 ? 128 : 8 * width() * panels();
  }
  unsigned leading() const {
    if (!isTransposed)
      return swizzle == 16 ? 128 : 16;
    return swizzle == 16 ? 128 * groups() : 8 * width();
  }
  unsigned stepBytes() const {
    unsigned used;
    if (!isTransposed)
      used = groups() * stride();
    else
      used = swizzle == 16 ? 2 * leading() : 2 * stride();
    return (used + 1023) / 1024 * 1024;
  }
  /// Byte of element (`outer`, `k`) of a step, which is aligned to 1024 bytes.
  unsigned offset(unsigned outer, unsigned k) const {
    unsigned at;
    if (!isTransposed) {
      unsigned b = k * bytes;
      at = swizzle == 16 ? outer % 8 * 16 + outer / 8 * stride() +
                               b / 16 * leading() + b % 16
                         : outer % 8 * width() + outer / 8 * stride() + b;
    } else {
      unsigned b = outer * bytes;
      at = swizzle == 16
               ? k % 8 * 16 + k / 8 * leading() + b / 16 * stride() + b % 16
               : k % 8 * width() + k / 8 * stride() + b / width() * leading() +
                     b % width();
    }
    switch (swizzle) {
    case 128:
      return at ^ (at / 128 % 8) * 16;
    case 64:
      return at ^ (at / 128 % 4) * 16;
    case 32:
      return at ^ (at / 128 % 2) * 16;
    }
    return at;
  }
  uint64_t descriptor() const {
    uint64_t mode = swizzle == 128  ? 1
                    : swizzle == 64 ? 2
                    : swizzle == 32 ? 3
                                    : 0;
    return uint64_t(leading() / 16) << 16 | uint64_t(stride() / 16) << 32 |
           mode << 62;
  }
};

class WarpgroupProductTest : public EmulatorTest {
protected:
  std::string number(uint64_t value) {
    return std::to_string(static_cast<int64_t>(value));
  }
  unsigned registersOf(const Case &c) {
    return c.sum == "f16" ? c.columns / 4 : c.columns / 2;
  }
  Layout layoutOfA(const Case &c) {
    return {kRows, c.bytes, c.swizzle, c.aTransposed};
  }
  Layout layoutOfB(const Case &c) {
    return {c.columns, c.bytes, c.swizzle, c.bTransposed};
  }
  unsigned sharedBytes(const Case &c) {
    return kSteps * (layoutOfA(c).stepBytes() + layoutOfB(c).stepBytes());
  }
  std::string makeKernel(const Case &c, Bug bug);
  /// Runs the kernel on the image of shared memory; D is kept by thread.
  std::string run(const Case &c, Bug bug, const EmulatorOptions &options,
                  std::vector<uint32_t> &image, std::vector<uint32_t> &d);
  void check(const Case &c);
};

std::string WarpgroupProductTest::makeKernel(const Case &c, Bug bug) {
  unsigned registers = registersOf(c);
  std::string member = c.sum == "f32" ? "f32" : "i32",
              record = "!llvm.struct<(";
  for (unsigned i = 0; i < registers; ++i)
    record += (i ? ", " : "") + member;
  record += ")>";
  uint64_t a = layoutOfA(c).descriptor(), b = layoutOfB(c).descriptor();
  if (bug == Bug::Swizzle)
    b ^= uint64_t(3) << 62;
  if (bug == Bug::Stride)
    b += uint64_t(1) << 32;
  auto constant = [&](const std::string &name, uint64_t value,
                      const std::string &type) {
    return "%" + name + " = llvm.mlir.constant(" + number(value) + " : " +
           type + ") : " + type + "\n";
  };
  std::string text =
      R"(
    llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
    llvm.func @product(%in: !llvm.ptr<1>, %d: !llvm.ptr<1>) attributes {gpu.kernel} {
)" + constant("zero", 0, "i32") +
      constant("one", 1, "i32") + constant("four", 4, "i32") +
      constant("steps", kSteps, "i32") + constant("threads", kThreads, "i32") +
      constant("words", sharedBytes(c) / 4, "i32") +
      constant("count", registers, "i32") + constant("mask", 0x3fff0, "i64") +
      constant("shift", 4, "i64") + constant("fa", a, "i64") +
      constant("fb", b, "i64") +
      constant("sa", layoutOfA(c).stepBytes() / 16, "i64") +
      constant("sb", layoutOfB(c).stepBytes() / 16, "i64") +
      constant("ob", kSteps * layoutOfA(c).stepBytes() / 16, "i64") +
      R"(
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      llvm.br ^copy(%tid : i32)
    ^copy(%w: i32):
      %more = llvm.icmp "ult" %w, %words : i32
      llvm.cond_br %more, ^word, ^copied
    ^word:
      %from = llvm.getelementptr %in[%w] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %to = llvm.getelementptr %smem[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %from : !llvm.ptr<1> -> i32
      llvm.store %v, %to : i32, !llvm.ptr<3>
      %next = llvm.add %w, %threads : i32
      llvm.br ^copy(%next : i32)
    ^copied:
)";
  if (bug != Bug::ProxyFence)
    text += "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
            "#nvvm.shared_space<cta>}\n";
  if (bug != Bug::Barrier)
    text += "nvvm.barrier0\n";
  text += R"(
      %address = llvm.ptrtoint %smem : !llvm.ptr<3> to i64
      %low = llvm.and %address, %mask : i64
      %units = llvm.lshr %low, %shift : i64
      %a0 = llvm.or %units, %fa : i64
      %ub = llvm.add %units, %ob : i64
      %b0 = llvm.or %ub, %fb : i64
      %first = llvm.mul %tid, %count : i32
      %own = llvm.getelementptr %d[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %s = llvm.mlir.undef : )" +
          record + "\n";
  std::string sums = "%s";
  for (unsigned i = 0; i < registers; ++i) {
    std::string n = number(i);
    text += "%p" + n + " = llvm.getelementptr %own[" + n +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n%l" + n +
            " = llvm.load %p" + n + " : !llvm.ptr<1> -> " + member + "\n%s" +
            n + " = llvm.insertvalue %l" + n + ", " + sums + "[" + n +
            "] : " + record + "\n";
    sums = "%s" + n;
  }
  if (bug == Bug::Divergence)
    text += R"(
      %c96 = llvm.mlir.constant(96 : i32) : i32
      %late = llvm.icmp "uge" %tid, %c96 : i32
      llvm.cond_br %late, ^end, ^start
    ^start:
)";
  text += "llvm.br ^loop(%zero, %a0, %b0, " + sums + " : i32, i64, i64, " +
          record + ")\n^loop(%i: i32, %da: i64, %db: i64, %acc: " + record +
          "):\n%isIn = llvm.icmp \"ult\" %i, %steps : i32\n"
          "llvm.cond_br %isIn, ^body, ^done\n^body:\n";
  if (bug != Bug::ProductFence)
    text += "nvvm.wgmma.fence.aligned\n";
  text += "%r = nvvm.wgmma.mma_async %da, %db, %acc, <m = 64, n = " +
          number(c.columns) + ", k = " + number(kDepthBytes / c.bytes) +
          ">, D [<" + c.sum + ">, #nvvm.wgmma_scale_out<one>], A [<" + c.type +
          ">, #nvvm.wgmma_scale_in<one>, <" + (c.aTransposed ? "col" : "row") +
          ">], B [<" + c.type + ">, #nvvm.wgmma_scale_in<one>, <" +
          (c.bTransposed ? "row" : "col") + ">] : " + record + " -> " + record +
          R"(
      nvvm.wgmma.commit.group.sync.aligned
      nvvm.wgmma.wait.group.sync.aligned 1
      %an = llvm.add %da, %sa : i64
      %bn = llvm.add %db, %sb : i64
      %in1 = llvm.add %i, %one : i32
      llvm.br ^loop(%in1, %an, %bn, %r : i32, i64, i64, )" +
          record + ")\n^done:\n";
  if (bug == Bug::EarlyCopy)
    text += "%refill = llvm.getelementptr %smem[" +
            number((kSteps - 1) * layoutOfA(c).stepBytes()) +
            "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
            "nvvm.cp.async.shared.global %refill, %in, 16, cache = cg : "
            "!llvm.ptr<3>, !llvm.ptr<1>\n";
  if (bug == Bug::EarlyWrite)
    text += "%last = llvm.getelementptr %smem[" +
            number((kSteps - 1) * layoutOfA(c).stepBytes()) +
            "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
            "%slot = llvm.getelementptr %last[%tid] : (!llvm.ptr<3>, i32) -> "
            "!llvm.ptr<3>, i32\nnvvm.barrier0\nllvm.store %zero, %slot : i32, "
            "!llvm.ptr<3>\n";
  std::string operands, types, outputs, inputs;
  for (unsigned i = 0; i < registers; ++i) {
    std::string n = number(i), comma = i ? ", " : "";
    text +=
        "%e" + n + " = llvm.extractvalue %acc[" + n + "] : " + record + "\n";
    operands += comma + "%e" + n;
    types += comma + member;
    outputs += "=r,";
    inputs += (i ? "," : "") + n;
  }
  if (bug != Bug::Wait)
    text += "nvvm.wgmma.wait.group.sync.aligned 0\n";
  text += "%pin = llvm.inline_asm has_side_effects \"\", \"" + outputs +
          inputs + "\" " + operands + " : (" + types + ") -> " + record + "\n";
  if (bug == Bug::EarlyCopy)
    text += "nvvm.cp.async.commit.group\nnvvm.cp.async.wait.group 0\n";
  for (unsigned i = 0; i < registers; ++i) {
    std::string n = number(i);
    text += "%o" + n + " = llvm.extractvalue %pin[" + n + "] : " + record +
            "\nllvm.store %o" + n + ", %p" + n + " : " + member +
            ", !llvm.ptr<1>\n";
  }
  if (bug == Bug::Divergence)
    text += "llvm.br ^end\n^end:\n";
  return text + "llvm.return\n}\n";
}

std::string WarpgroupProductTest::run(const Case &c, Bug bug,
                                      const EmulatorOptions &options,
                                      std::vector<uint32_t> &image,
                                      std::vector<uint32_t> &d) {
  auto emulator = create(makeKernel(c, bug), options);
  EXPECT_TRUE(emulator) << error;
  if (!emulator)
    return error;
  emulator->addBuffer(image.data(), image.size() * 4, "in", false);
  emulator->addBuffer(d.data(), d.size() * 4, "d", true);
  return launch(*emulator, "product", {1}, {kThreads}, sharedBytes(c),
                image.data(), d.data());
}

double valueOf(const std::string &type, uint32_t bits) {
  auto convert = [&](const llvm::fltSemantics &semantics, unsigned width) {
    return llvm::APFloat(semantics, llvm::APInt(width, bits)).convertToDouble();
  };
  if (type == "f16")
    return convert(llvm::APFloat::IEEEhalf(), 16);
  if (type == "bf16")
    return convert(llvm::APFloat::BFloat(), 16);
  if (type == "tf32")
    return convert(llvm::APFloat::IEEEsingle(), 32);
  return type == "s8" ? static_cast<int8_t>(bits) : static_cast<double>(bits);
}

void WarpgroupProductTest::check(const Case &c) {
  unsigned depth = kSteps * kDepthBytes / c.bytes, perStep = depth / kSteps;
  Layout layouts[2] = {layoutOfA(c), layoutOfB(c)};
  std::vector<uint32_t> image(sharedBytes(c) / 4);
  auto *bytes = reinterpret_cast<char *>(image.data());
  std::vector<double> operands[2];
  for (unsigned side = 0; side < 2; ++side) {
    const Layout &layout = layouts[side];
    for (unsigned outer = 0; outer < layout.extent; ++outer)
      for (unsigned k = 0; k < depth; ++k) {
        float value = std::normal_distribution<float>()(random);
        uint32_t bits = random() & 0xff;
        if (c.type == "f16") {
          llvm::APFloat half(value);
          bool loses;
          half.convert(llvm::APFloat::IEEEhalf(),
                       llvm::APFloat::rmNearestTiesToEven, &loses);
          bits = static_cast<uint32_t>(half.bitcastToAPInt().getZExtValue());
        } else if (c.bytes > 1) {
          std::memcpy(&bits, &value, 4);
          bits = c.bytes == 2 ? bits >> 16 : bits;
        }
        std::memcpy(bytes + side * kSteps * layouts[0].stepBytes() +
                        k / perStep * layout.stepBytes() +
                        layout.offset(outer, k % perStep),
                    &bits, c.bytes);
        if (c.type == "tf32")
          bits &= 0xffffe000;
        operands[side].push_back(valueOf(c.type, bits));
      }
  }
  bool isHalf = c.sum == "f16";
  std::vector<uint32_t> start(kThreads * registersOf(c));
  for (uint32_t &value : start) {
    value = random();
    if (c.sum == "f32") {
      float sum = std::normal_distribution<float>()(random);
      std::memcpy(&value, &sum, 4);
    } else if (isHalf) {
      value = 0x3c00c000; // -2 and 1
    }
  }
  for (const EmulatorOptions &options : allCheckedOptions()) {
    std::vector<uint32_t> d = start;
    ASSERT_EQ(run(c, Bug::None, options, image, d), "");
    for (unsigned row = 0; row < kRows; ++row)
      for (unsigned column = 0; column < c.columns; ++column) {
        double product = 0;
        for (unsigned k = 0; k < depth; ++k)
          product +=
              operands[0][row * depth + k] * operands[1][column * depth + k];
        unsigned thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
        unsigned pair = column / 8 * 2 + row % 16 / 8;
        unsigned at =
            thread * registersOf(c) + (isHalf ? pair : 2 * pair + column % 2);
        if (c.sum == "s32") {
          ASSERT_EQ(d[at], start[at] + static_cast<uint32_t>(
                                           static_cast<int64_t>(product)));
          continue;
        }
        unsigned shift = isHalf ? column % 2 * 16 : 0;
        auto number = [&](uint32_t bits) {
          return valueOf(isHalf ? "f16" : "tf32",
                         isHalf ? bits >> shift & 0xffff : bits);
        };
        double expected = product + number(start[at]);
        ASSERT_NEAR(number(d[at]), expected,
                    isHalf ? 0.03 + std::abs(expected) * 0.002 : 1e-4)
            << row << " " << column;
      }
    if (HasFailure())
      return;
  }
}

TEST_F(WarpgroupProductTest, AllSwizzlesOfContiguousDepth) {
  for (unsigned swizzle : {16, 32, 64, 128}) {
    check({"f16", "f32", 2, 24, swizzle});
    check({"bf16", "f32", 2, 8, swizzle});
  }
}

TEST_F(WarpgroupProductTest, AllSwizzlesOfTransposedOperands) {
  for (unsigned swizzle : {16, 32, 64, 128}) {
    check({"f16", "f32", 2, 64, swizzle, true, true});
    check({"bf16", "f32", 2, 128, swizzle, false, true});
    check({"bf16", "f32", 2, 16, swizzle, true, false});
  }
}

TEST_F(WarpgroupProductTest, OtherTypes) {
  check({"f16", "f16", 2, 16, 128});
  check({"tf32", "f32", 4, 32, 128});
  check({"s8", "s32", 1, 32, 128});
  check({"u8", "s32", 1, 16, 64});
  check({"bf16", "f32", 2, 256, 128});
}

TEST_F(WarpgroupProductTest, MistakesAreFound) {
  Case c{"f16", "f32", 2, 16, 128};
  std::vector<uint32_t> image(sharedBytes(c) / 4, 0x3c003c00);
  const std::pair<Bug, const char *> mistakes[] = {
      {Bug::ProxyFence, "wrote without fence.proxy.async behind it"},
      {Bug::Barrier, "race: read "},
      {Bug::ProductFence, "without wgmma.fence before it"},
      {Bug::Wait, "accumulators are read while a product of matrices is in "
                  "flight"},
      {Bug::EarlyWrite, "while a product of matrices that reads it is in "
                        "flight"},
      {Bug::Divergence, "a wait for products of matrices that not all threads "
                        "of the warpgroup issue"}};
  for (auto [bug, text] : mistakes)
    for (auto order : kAllOrders) {
      EmulatorOptions options;
      options.order = order;
      options.checkRaces = true;
      std::vector<uint32_t> d(kThreads * registersOf(c));
      EXPECT_CONTAINS(run(c, bug, options, image, d), text);
    }
}

TEST_F(WarpgroupProductTest, EarlyRefillYieldsNaN) {
  Case c{"f16", "f32", 2, 16, 128};
  std::vector<uint32_t> image(sharedBytes(c) / 4, 0x3c003c00);
  std::vector<uint32_t> d(kThreads * registersOf(c));
  EXPECT_EQ(run(c, Bug::EarlyCopy, {}, image, d), "");
  float first;
  std::memcpy(&first, d.data(), 4);
  EXPECT_TRUE(std::isnan(first));
}

TEST_F(WarpgroupProductTest, WrongDescriptorsYieldOtherValues) {
  Case c{"f16", "f32", 2, 16, 128};
  std::vector<uint32_t> image(sharedBytes(c) / 4);
  for (uint32_t &word : image)
    word = (random() & 0x03ff03ff) | 0x3c003c00; // From 1 to 2.
  std::vector<uint32_t> right(kThreads * registersOf(c));
  ASSERT_EQ(run(c, Bug::None, {}, image, right), "");
  for (Bug bug : {Bug::Swizzle, Bug::Stride}) {
    std::vector<uint32_t> d(right.size());
    run(c, bug, {}, image, d);
    EXPECT_NE(d, right);
  }
}
} // namespace
