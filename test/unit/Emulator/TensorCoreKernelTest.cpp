//===- TensorCoreKernelTest.cpp - A whole product on the tensor cores -----===//
//
// C = A Bᵀ by a kernel as real ones are: copies to swizzled shared memory in
// three stages, ldmatrix, mma.sync, any M, N and K. Then the same kernel with
// one mistake at a time, each of which must be found.
//
//===----------------------------------------------------------------------===//
#include "EmulatorTest.h"
#include "llvm/ADT/APFloat.h"

using namespace ftuner::emulator;

namespace {
/// Where the kernel differs from the right one.
enum class Bug {
  None,
  SwappedFragments, ///< The registers of B in the wrong order.
  SwappedHalves,    ///< Lanes name the rows of A as B's are named.
  MissingWait,
  MissingBarrier,
  EarlyRefill,  ///< A stage is refilled before all warps have left it.
  WrongSwizzle, ///< B is read by another swizzle than it was written.
  NoSwizzle,    ///< Right, but slow.
  LostZeroFill, ///< Rows are copied beyond their end.
};

constexpr unsigned kTileM = 32, kTileN = 16, kTileK = 64, kStages = 3;
constexpr unsigned kThreads = 64;
constexpr unsigned kRowBytes = 2 * kTileK, kChunkBytes = 16;
constexpr unsigned kBytesOfA = kTileM * kRowBytes;
constexpr unsigned kBytesOfB = kTileN * kRowBytes;
constexpr unsigned kStageBytes = kBytesOfA + kBytesOfB;

std::string number(int64_t value) { return std::to_string(value); }

/// Writes the kernel as text of the LLVM dialect.
class KernelText {
public:
  explicit KernelText(Bug bug) : bug(bug) {}
  std::string write();

private:
  using Value = std::string;

  void line(const std::string &text) { body += "  " + text + "\n"; }
  Value define(const std::string &text) {
    Value name = "%v" + number(numValues++);
    line(name + " = " + text);
    return name;
  }
  /// Constants come first, so that every block may use them.
  Value constant(int64_t value) {
    Value name = "%c" + (value < 0 ? "m" + number(-value) : number(value));
    std::string text = "  " + name + " = llvm.mlir.constant(" + number(value) +
                       " : i32) : i32\n";
    if (constants.find(text) == std::string::npos)
      constants += text;
    return name;
  }
  Value binary(const char *op, const Value &a, const Value &b) {
    return define(std::string("llvm.") + op + " " + a + ", " + b + " : i32");
  }
  Value binary(const char *op, const Value &a, int64_t b) {
    return binary(op, a, constant(b));
  }
  Value isLess(const Value &a, const Value &b) {
    return define("llvm.icmp \"slt\" " + a + ", " + b + " : i32");
  }
  Value select(const Value &condition, const Value &a, const Value &b) {
    return define("llvm.select " + condition + ", " + a + ", " + b +
                  " : i1, i32");
  }
  Value at(const char *space, const Value &base, const Value &offset) {
    std::string type = std::string("!llvm.ptr<") + space + ">";
    return define("llvm.getelementptr " + base + "[" + offset + "] : (" + type +
                  ", i32) -> " + type + ", i8");
  }
  /// Byte of a chunk in the rows of a stage.
  Value place(const Value &row, const Value &chunk, int64_t key) {
    Value swizzled = chunk;
    if (bug != Bug::NoSwizzle)
      swizzled = binary("xor", chunk, binary("and", row, key));
    return binary("add", binary("mul", row, kRowBytes),
                  binary("mul", swizzled, kChunkBytes));
  }
  void copyRows(const Value &base, const Value &firstRow, const Value &numRows,
                unsigned rows, const Value &stage, const Value &k);
  void copyStage(const Value &step);
  std::vector<Value> loadMatrices(const Value &offset);
  void multiply(const Value &stage, std::vector<Value> &sums);
  void store(const std::vector<Value> &sums);

  Bug bug;
  std::string constants, body;
  unsigned numValues = 0;
};

/// Starts copies of `rows` rows of a step to `stage`.
void KernelText::copyRows(const Value &base, const Value &firstRow,
                          const Value &numRows, unsigned rows,
                          const Value &stage, const Value &k) {
  for (unsigned i = 0; i < rows; i += kThreads / 8) {
    Value row = binary("add", "%tidRow", i);
    Value globalRow = binary("add", firstRow, row);
    Value isRow = isLess(globalRow, numRows);
    Value column = binary("add", k, binary("mul", "%tidChunk", 8));
    Value element = binary("add", binary("mul", globalRow, "%K"), column);
    Value isIn =
        define("llvm.and " + isRow + ", " + isLess(column, "%K") + " : i1");
    Value bytes = select(bug == Bug::LostZeroFill ? isRow : isIn,
                         constant(kChunkBytes), constant(0));
    Value from = at("1", base, binary("mul", element, 2));
    Value to =
        at("3", "%shared", binary("add", stage, place(row, "%tidChunk", 7)));
    line("nvvm.cp.async.shared.global " + to + ", " + from +
         ", 16, cache = cg, " + bytes + " : !llvm.ptr<3>, !llvm.ptr<1>, i32");
  }
}

void KernelText::copyStage(const Value &step) {
  Value stage = binary("mul", binary("urem", step, kStages), kStageBytes);
  Value k = binary("mul", step, kTileK);
  copyRows("%A", "%row0", "%M", kTileM, stage, k);
  copyRows("%B", "%column0", "%N", kTileN, binary("add", stage, kBytesOfA), k);
  line("nvvm.cp.async.commit.group");
}

std::vector<std::string> KernelText::loadMatrices(const Value &offset) {
  const std::string type = "!llvm.struct<(i32, i32, i32, i32)>";
  Value loaded =
      define("nvvm.ldmatrix " + at("3", "%shared", offset) +
             " {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = "
             "#nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = "
             "#nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> " +
             type);
  std::vector<Value> registers;
  for (unsigned i = 0; i < 4; ++i)
    registers.push_back(define("llvm.bitcast " +
                               define("llvm.extractvalue " + loaded + "[" +
                                      number(i) + "] : " + type) +
                               " : i32 to vector<2xf16>"));
  return registers;
}

/// Adds the product of a stage to the sums of the warp's 16 x 16 elements.
void KernelText::multiply(const Value &stage, std::vector<Value> &sums) {
  const std::string type = "!llvm.struct<(f32, f32, f32, f32)>";
  Value low = binary("and", "%lane", 7), low16 = binary("and", "%lane", 15);
  Value bit3 = binary("and", binary("lshr", "%lane", 3), 1);
  Value bit4 = binary("lshr", "%lane", 4);
  Value byBit4 = binary("add", low, binary("mul", bit4, 8));
  bool isSwapped = bug == Bug::SwappedHalves;
  Value rowOfA =
      binary("add", binary("mul", "%warp", 16), isSwapped ? byBit4 : low16);
  Value rowOfB = byBit4;
  for (unsigned k = 0; k < kTileK; k += 16) {
    Value chunkOfA = binary("add", isSwapped ? bit3 : bit4, k / 8);
    Value chunkOfB = binary("add", bit3, k / 8);
    std::vector<Value> a =
        loadMatrices(binary("add", stage, place(rowOfA, chunkOfA, 7)));
    Value stageOfB = binary("add", stage, kBytesOfA);
    std::vector<Value> b = loadMatrices(
        binary("add", stageOfB,
               place(rowOfB, chunkOfB, bug == Bug::WrongSwizzle ? 3 : 7)));
    for (unsigned tile = 0; tile < 2; ++tile) {
      Value first = b[2 * tile], second = b[2 * tile + 1];
      if (bug == Bug::SwappedFragments)
        std::swap(first, second);
      std::string c;
      for (unsigned i = 0; i < 4; ++i)
        c += (i ? ", " : "") + sums[4 * tile + i];
      Value d = define(
          "nvvm.mma.sync A[" + a[0] + ", " + a[1] + ", " + a[2] + ", " + a[3] +
          "] B[" + first + ", " + second + "] C[" + c +
          "] {layoutA = #nvvm.mma_layout<row>, layoutB = "
          "#nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} "
          ": (vector<2xf16>, vector<2xf16>, f32) -> " +
          type);
      for (unsigned i = 0; i < 4; ++i)
        sums[4 * tile + i] =
            define("llvm.extractvalue " + d + "[" + number(i) + "] : " + type);
    }
  }
}

void KernelText::store(const std::vector<Value> &sums) {
  for (unsigned tile = 0; tile < 2; ++tile)
    for (unsigned i = 0; i < 4; ++i) {
      Value row =
          binary("add", binary("add", "%row0", binary("mul", "%warp", 16)),
                 binary("add", binary("lshr", "%lane", 2), i / 2 * 8));
      Value column = binary("add",
                            binary("add", "%column0",
                                   binary("mul", binary("and", "%lane", 3), 2)),
                            tile * 8 + i % 2);
      Value isIn = define("llvm.and " + isLess(row, "%M") + ", " +
                          isLess(column, "%N") + " : i1");
      std::string id = number(4 * tile + i);
      line("llvm.cond_br " + isIn + ", ^store" + id + ", ^next" + id);
      line("^store" + id + ":");
      Value to =
          at("1", "%C",
             binary("mul", binary("add", binary("mul", row, "%N"), column), 4));
      line("llvm.store " + sums[4 * tile + i] + ", " + to +
           " : f32, !llvm.ptr<1>");
      line("llvm.br ^next" + id);
      line("^next" + id + ":");
    }
}

std::string KernelText::write() {
  auto name = [&](const std::string &as, const std::string &text) {
    line("%" + as + " = " + text);
  };
  auto named = [&](const std::string &as, const char *op, const Value &a,
                   int64_t b) {
    name(as,
         std::string("llvm.") + op + " " + a + ", " + constant(b) + " : i32");
  };
  line("%shared = llvm.mlir.addressof @memory : !llvm.ptr<3>");
  line("%tid = nvvm.read.ptx.sreg.tid.x : i32");
  line("%ctaidX = nvvm.read.ptx.sreg.ctaid.x : i32");
  line("%ctaidY = nvvm.read.ptx.sreg.ctaid.y : i32");
  named("lane", "and", "%tid", 31);
  named("warp", "lshr", "%tid", 5);
  named("tidChunk", "and", "%tid", 7);
  named("tidRow", "lshr", "%tid", 3);
  named("column0", "mul", "%ctaidX", kTileN);
  named("row0", "mul", "%ctaidY", kTileM);
  Value steps = binary("udiv", binary("add", "%K", kTileK - 1), kTileK);
  for (unsigned step = 0; step + 1 < kStages; ++step)
    copyStage(constant(step));
  line("%float0 = llvm.mlir.constant(0.0 : f32) : f32");
  const unsigned numSums = 8;
  std::vector<Value> sums;
  std::string zeros, arguments, types;
  for (unsigned i = 0; i < numSums; ++i) {
    sums.push_back("%sum" + number(i));
    zeros += ", %float0";
    types += ", f32";
    arguments += ", %sum" + number(i) + ": f32";
  }
  Value zero = constant(0);
  line("llvm.br ^loop(" + zero + zeros + " : i32" + types + ")");
  line("^loop(%step: i32" + arguments + "):");
  line("llvm.cond_br " + isLess("%step", steps) + ", ^step, ^end");
  line("^step:");
  std::vector<Value> carried = sums;
  Value ahead = binary("add", "%step", kStages - 1);
  if (bug == Bug::EarlyRefill)
    copyStage(ahead);
  if (bug != Bug::MissingWait)
    line("nvvm.cp.async.wait.group " +
         number(kStages - (bug == Bug::EarlyRefill ? 1 : 2)));
  if (bug != Bug::MissingBarrier)
    line("nvvm.barrier0");
  if (bug != Bug::EarlyRefill)
    copyStage(ahead);
  multiply(binary("mul", binary("urem", "%step", kStages), kStageBytes),
           carried);
  Value next = binary("add", "%step", 1);
  std::string values;
  for (const Value &value : carried)
    values += ", " + value;
  line("llvm.br ^loop(" + next + values + " : i32" + types + ")");
  line("^end:");
  line("nvvm.cp.async.wait.group 0");
  store(sums);
  line("llvm.return");
  return "llvm.mlir.global external @memory() {addr_space = 3 : i32, alignment "
         "= 128 : i64} : !llvm.array<0 x i8>\n"
         "llvm.func @product(%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: "
         "!llvm.ptr<1>, %M: i32, %N: i32, %K: i32) attributes {gpu.kernel} "
         "{\n" +
         constants + body + "}\n";
}

class TensorCoreKernelTest : public EmulatorTest {
protected:
  /// Fills A and B for a product of this size.
  void prepare(unsigned newM, unsigned newN, unsigned newK) {
    m = newM;
    n = newN;
    k = newK;
    a.assign(m * k / 8 + 1, {});
    b.assign(n * k / 8 + 1, {});
    for (auto *matrix : {&a, &b})
      for (Chunk &chunk : *matrix)
        for (uint16_t &element : chunk.elements)
          element = static_cast<uint16_t>(randomHalf());
  }

  /// Runs the kernel; the text of an error, or "wrong result".
  std::string run(Bug bug, EmulatorOptions options,
                  KernelCounters *counters = nullptr) {
    auto emulator = create(KernelText(bug).write(), options);
    if (!emulator)
      return "cannot create: " + error;
    std::string text = run(*emulator);
    if (counters)
      *counters = emulator->takeCounters().at(0);
    return text;
  }

  std::string run(Emulator &emulator) {
    std::vector<float> c(m * n, -1);
    emulator.addBuffer(a.data(), 2 * m * k, "A", /*writable=*/false);
    emulator.addBuffer(b.data(), 2 * n * k, "B", /*writable=*/false);
    emulator.addBuffer(c.data(), 4 * m * n, "C", /*writable=*/true);
    std::string text = launch(
        emulator, "product",
        {(n + kTileN - 1) / kTileN, (m + kTileM - 1) / kTileM}, {kThreads},
        kStages * kStageBytes, a.data(), b.data(), c.data(), m, n, k);
    emulator.removeBuffer(a.data());
    emulator.removeBuffer(b.data());
    emulator.removeBuffer(c.data());
    if (!text.empty())
      return text;
    double difference = 0, size = 0;
    for (unsigned row = 0; row < m; ++row)
      for (unsigned column = 0; column < n; ++column) {
        double sum = 0, summed = 0;
        for (unsigned i = 0; i < k; ++i) {
          double product =
              toDouble(a, row * k + i) * toDouble(b, column * k + i);
          sum += product;
          summed += std::abs(product);
        }
        difference += std::pow(sum - c[row * n + column], 2);
        // Relative to what is summed: a sum of one element may cancel.
        size += summed * summed;
      }
    // Not a number is wrong, too.
    return std::sqrt(difference / size) <= 4e-7 ? "" : "wrong result";
  }

  struct alignas(16) Chunk {
    uint16_t elements[8];
  };

  uint32_t randomHalf() {
    llvm::APFloat value(std::normal_distribution<float>()(random));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return static_cast<uint32_t>(value.bitcastToAPInt().getZExtValue());
  }
  static double toDouble(const std::vector<Chunk> &matrix, unsigned index) {
    llvm::APInt bits(16, matrix[index / 8].elements[index % 8]);
    return llvm::APFloat(llvm::APFloat::IEEEhalf(), bits).convertToDouble();
  }

  unsigned m = 0, n = 0, k = 0;
  std::vector<Chunk> a, b;
};

TEST_F(TensorCoreKernelTest, IsRightAndClean) {
  const unsigned sizes[][3] = {
      {1, 1, 8}, {32, 16, 64}, {33, 17, 72}, {70, 40, 264}};
  for (EmulatorOptions options : allCheckedOptions()) {
    options.seed = seed;
    auto emulator = create(KernelText(Bug::None).write(), options);
    ASSERT_TRUE(emulator) << error;
    for (auto [newM, newN, newK] : sizes) {
      prepare(newM, newN, newK);
      EXPECT_EQ(run(*emulator), "") << m << " x " << n << " x " << k;
    }
  }
}

TEST_F(TensorCoreKernelTest, WrongResultsOfBugs) {
  prepare(40, 24, 200);
  std::vector<Bug> bugs = {Bug::SwappedFragments, Bug::SwappedHalves,
                           Bug::MissingWait, Bug::WrongSwizzle};
#ifndef FTUNER_ADDRESS_SANITIZER
  // Reads beyond an operand, which the sanitizer says before the result is
  // there.
  bugs.push_back(Bug::LostZeroFill);
#endif
  for (Bug bug : bugs)
    EXPECT_EQ(run(bug, EmulatorOptions()), "wrong result")
        << static_cast<int>(bug);
  // Here a slow warp reads the stage that a fast one refills.
  EmulatorOptions options;
  options.order = EmulatorOptions::Reverse;
  options.lazyAsyncCopies = false;
  EXPECT_EQ(run(Bug::EarlyRefill, options), "wrong result");
}

TEST_F(TensorCoreKernelTest, ChecksFindBugs) {
  prepare(40, 24, 200);
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.order = order;
    options.seed = seed;
    options.checkRaces = true;
    EXPECT_CONTAINS(run(Bug::MissingBarrier, options), "race: ");
    EXPECT_CONTAINS(run(Bug::EarlyRefill, options), "race: ");
    EXPECT_CONTAINS(run(Bug::MissingWait, options),
                    "while an asynchronous copy of thread");
    options.checkRaces = false;
    options.checkBounds = true;
    EXPECT_CONTAINS(run(Bug::LostZeroFill, options),
                    "out-of-bounds read of 16 bytes at offset");
  }
}

TEST_F(TensorCoreKernelTest, CountersFindConflicts) {
  prepare(64, 32, 256);
  const unsigned blocks = 4, steps = 4, warps = 2;
  EmulatorOptions options;
  options.counters = true;
  for (Bug bug : {Bug::None, Bug::NoSwizzle}) {
    KernelCounters counters;
    ASSERT_EQ(run(bug, options, &counters), "");
    unsigned loads = blocks * warps * steps * (kTileK / 16) * 2;
    const RequestCounters &matrices = counters[RequestKind::MatrixLoad];
    EXPECT_EQ(matrices.requests, loads);
    EXPECT_EQ(matrices.idealTransfers, 4 * loads);
    EXPECT_EQ(matrices.transfers, (bug == Bug::None ? 4 : 32) * loads);
    // Two stages ahead are all zeros.
    unsigned copies = blocks * warps * (kTileM + kTileN) / (kThreads / 8);
    EXPECT_EQ(counters[RequestKind::CopySource].requests, copies * steps);
    EXPECT_EQ(counters[RequestKind::CopySource].bytes,
              blocks * steps * kStageBytes);
    const RequestCounters &targets = counters[RequestKind::CopyTarget];
    EXPECT_EQ(targets.requests, copies * (steps + kStages - 1));
    EXPECT_EQ(targets.transfers, targets.idealTransfers);
    EXPECT_EQ(counters.bankConflicts(), bug == Bug::None ? 0 : 28 * loads);
    EXPECT_EQ(counters[InstructionKind::TensorF16],
              blocks * warps * steps * (kTileK / 16) * 2);
    EXPECT_EQ(counters[InstructionKind::LoadStore],
              loads + targets.requests + counters.warps * 8);
    EXPECT_EQ(counters.barriers, blocks * steps);
  }
}
} // namespace
