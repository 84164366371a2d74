//===- MatrixCopyTest.cpp - ldmatrix and stmatrix -------------------------===//
#include "EmulatorTest.h"

using namespace ftuner::emulator;

namespace {
constexpr unsigned kRows = 32, kRowBytes = 16;

std::string number(int value) { return std::to_string(value); }

/// The attributes of a copy.
std::string attributes(bool isTransposed) {
  return std::string("layout = #nvvm.mma_layout<") +
         (isTransposed ? "col" : "row") +
         ">, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
         "eltType = #nvvm.ld_st_matrix_elt_type<b16>}";
}

/// Defines %r0, %r1, ... from %row.
std::string makeLoad(unsigned count, bool isTransposed) {
  std::string type = count == 1 ? "i32" : "!llvm.struct<(i32";
  for (unsigned i = 1; i < count; ++i)
    type += ", i32";
  if (count > 1)
    type += ")>";
  std::string text = "%r = nvvm.ldmatrix %row {num = " + number(count) +
                     " : i32, " + attributes(isTransposed) +
                     " : (!llvm.ptr<3>) -> " + type + "\n";
  if (count == 1)
    return text + "%zero = llvm.mlir.constant(0 : i32) : i32\n"
                  "%r0 = llvm.or %r, %zero : i32\n";
  for (unsigned i = 0; i < count; ++i)
    text += "%r" + number(i) + " = llvm.extractvalue %r[" + number(i) +
            "] : " + type + "\n";
  return text;
}

/// Stores %v0, %v1, ... to %row.
std::string makeStore(unsigned count, bool isTransposed) {
  std::string text = "nvvm.stmatrix %row", types;
  for (unsigned i = 0; i < count; ++i) {
    text += ", %v" + number(i);
    types += ", i32";
  }
  return text + " {" + attributes(isTransposed) + " : !llvm.ptr<3>" + types +
         "\n";
}

/// Thread t copies row t of `in` to shared memory, and names row `rows[t]` of
/// it, moved by `shift` bytes, to `copy`. Each thread of a warp loads
/// `numValues` values of `values`, for stores, and stores `numResults`
/// registers there. At the end, row t of shared memory goes to `in` again.
std::string makeKernel(const std::string &copy, unsigned numValues,
                       unsigned numResults, int shift = 0,
                       const std::string &barrier = "nvvm.barrier0\n") {
  std::string text = R"(
    llvm.mlir.global external @__dynamic_shmem__0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
    llvm.func @copy(%in: !llvm.ptr<1>, %rows: !llvm.ptr<1>, %values: !llvm.ptr<1>) attributes {gpu.kernel} {
      %base = llvm.mlir.addressof @__dynamic_shmem__0 : !llvm.ptr<3>
      %four = llvm.mlir.constant(4 : i32) : i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %i = llvm.mul %tid, %four : i32
      %src = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %own = llvm.getelementptr %base[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %w = llvm.load %src {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      llvm.store %w, %own {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
      %list = llvm.getelementptr %rows[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %named = llvm.load %list : !llvm.ptr<1> -> i32
      %j = llvm.mul %named, %four : i32
      %start = llvm.getelementptr %base[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %row = llvm.getelementptr %start[)" +
                     number(shift) + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
      %mine = llvm.getelementptr %values[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)";
  for (unsigned i = 0; i < std::max(numValues, numResults); ++i)
    text += "%p" + number(i) + " = llvm.getelementptr %mine[" + number(i) +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n";
  for (unsigned i = 0; i < numValues; ++i)
    text += "%v" + number(i) + " = llvm.load %p" + number(i) +
            " : !llvm.ptr<1> -> i32\n";
  text += barrier + copy + barrier;
  for (unsigned i = 0; i < numResults; ++i)
    text += "llvm.store %r" + number(i) + ", %p" + number(i) +
            " : i32, !llvm.ptr<1>\n";
  return text + R"(
      %end = llvm.load %own {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
      llvm.store %end, %src {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      llvm.return
    }
  )";
}

class MatrixCopyTest : public EmulatorTest {
protected:
  using Row = std::array<uint16_t, 8>;
  struct alignas(16) Memory {
    Row rows[kRows];
  };

  MatrixCopyTest() : rows(kRows), values(4 * kRows) {
    for (Row &row : memory.rows)
      for (uint16_t &element : row)
        element = static_cast<uint16_t>(random());
    for (uint32_t &value : values)
      value = random();
    for (uint32_t i = 0; i < kRows; ++i)
      rows[i] = i;
    std::shuffle(rows.begin(), rows.end(), random);
  }

  std::string run(Emulator &emulator, unsigned threads = kRows,
                  uint32_t sharedBytes = kRows * kRowBytes) {
    emulator.addBuffer(&memory, sizeof(memory), "in", /*writable=*/true);
    emulator.addBuffer(rows.data(), 4 * kRows, "rows", /*writable=*/false);
    emulator.addBuffer(values.data(), 16 * kRows, "values", /*writable=*/true);
    return launch(emulator, "copy", {1}, {threads}, sharedBytes, &memory,
                  rows.data(), values.data());
  }

  /// The place of half `half` of register `i` of a lane: row of shared memory
  /// and element of it, by the table of the PTX ISA.
  std::pair<unsigned, unsigned> place(unsigned lane, unsigned i, unsigned half,
                                      bool isTransposed) const {
    unsigned row = lane / 4, column = lane % 4 * 2 + half;
    if (isTransposed)
      std::swap(row, column);
    return {rows[8 * i + row], column};
  }

  Memory memory;
  std::vector<uint32_t> rows, values;
};

TEST_F(MatrixCopyTest, Loads) {
  for (unsigned count : {1, 2, 4})
    for (bool isTransposed : {false, true})
      for (const EmulatorOptions &options : allCheckedOptions()) {
        auto emulator = create(
            makeKernel(makeLoad(count, isTransposed), 0, count), options);
        ASSERT_TRUE(emulator) << error;
        ASSERT_EQ(run(*emulator), "");
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned i = 0; i < count; ++i)
            for (unsigned half = 0; half < 2; ++half) {
              auto [row, column] = place(lane, i, half, isTransposed);
              ASSERT_EQ(values[4 * lane + i] >> 16 * half & 0xffff,
                        memory.rows[row][column])
                  << count << " matrices, lane " << lane;
            }
      }
}

TEST_F(MatrixCopyTest, Stores) {
  for (unsigned count : {1, 2, 4})
    for (bool isTransposed : {false, true})
      for (const EmulatorOptions &options : allCheckedOptions()) {
        auto emulator = create(
            makeKernel(makeStore(count, isTransposed), count, 0), options);
        ASSERT_TRUE(emulator) << error;
        Memory expected = memory;
        for (unsigned lane = 0; lane < 32; ++lane)
          for (unsigned i = 0; i < count; ++i)
            for (unsigned half = 0; half < 2; ++half) {
              auto [row, column] = place(lane, i, half, isTransposed);
              expected.rows[row][column] =
                  static_cast<uint16_t>(values[4 * lane + i] >> 16 * half);
            }
        ASSERT_EQ(run(*emulator), "");
        ASSERT_EQ(std::memcmp(&memory, &expected, sizeof(memory)), 0);
      }
}

TEST_F(MatrixCopyTest, AddressesBeyondTheMatricesDoNotCount) {
  for (unsigned lane = 16; lane < 32; ++lane)
    rows[lane] = 1 << 24;
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(makeKernel(makeLoad(2, false), 0, 2), options);
    ASSERT_TRUE(emulator) << error;
    EXPECT_EQ(run(*emulator), "");
  }
}

TEST_F(MatrixCopyTest, RowsOutsideSharedMemory) {
  rows[5] = kRows;
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(makeKernel(makeLoad(4, false), 0, 4), options);
    ASSERT_TRUE(emulator) << error;
    std::string text = run(*emulator);
    EXPECT_CONTAINS(text, "1 errors");
    EXPECT_CONTAINS(text,
                    "out-of-bounds read of a matrix row of 16 bytes at offset "
                    "512 of dynamic shared memory (512 bytes)");
    EXPECT_CONTAINS(text, "thread (5,0,0)");
    EXPECT_CONTAINS(text, "at -:");
    emulator = create(makeKernel(makeStore(4, false), 4, 0), options);
    ASSERT_TRUE(emulator) << error;
    EXPECT_CONTAINS(run(*emulator), "out-of-bounds write of a matrix row");
  }
}

TEST_F(MatrixCopyTest, MisalignedRows) {
  std::replace(rows.begin(), rows.end(), 31u, 30u);
  for (const EmulatorOptions &options : allCheckedOptions()) {
    auto emulator = create(makeKernel(makeLoad(4, false), 0, 4, 8), options);
    ASSERT_TRUE(emulator) << error;
    std::string text = run(*emulator);
    EXPECT_CONTAINS(text, "32 errors");
    EXPECT_CONTAINS(text, "misaligned read of a matrix row: expected an "
                          "alignment of 16 bytes, but got address 0x");
  }
}

TEST_F(MatrixCopyTest, MissingBarriersAreRaces) {
  // Row t comes from thread t, and any thread may load it.
  for (auto order : kAllOrders) {
    EmulatorOptions options;
    options.checkRaces = true;
    options.order = order;
    options.seed = seed;
    for (bool isStore : {false, true}) {
      std::string copy = isStore ? makeStore(4, false) : makeLoad(4, false);
      auto emulator = create(
          makeKernel(copy, isStore ? 4 : 0, isStore ? 0 : 4, 0, ""), options);
      ASSERT_TRUE(emulator) << error;
      std::string text = run(*emulator);
      EXPECT_CONTAINS(text, "race: ");
      EXPECT_CONTAINS(text, "dynamic shared memory (512 bytes)");
    }
  }
}

TEST_F(MatrixCopyTest, LanesThatStayAwayAreReported) {
  auto emulator = create(makeKernel(R"(
      %c8 = llvm.mlir.constant(8 : i32) : i32
      %isLow = llvm.icmp "slt" %tid, %c8 : i32
      llvm.cond_br %isLow, ^low, ^join
    ^low:
      )" + makeLoad(1, false) + R"(
      llvm.br ^join
    ^join:
      )",
                                    0, 0));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator),
                  "divergence: a warp collective waits for 24 lanes that do "
                  "not come: thread (8,0,0) is at a barrier");
}

TEST_F(MatrixCopyTest, NeedsAWholeWarp) {
  auto emulator = create(makeKernel(makeLoad(1, false), 0, 1));
  ASSERT_TRUE(emulator) << error;
  EXPECT_CONTAINS(run(*emulator, /*threads=*/24),
                  "a matrix operation needs all 32 lanes of a warp, but got "
                  "24");
}
} // namespace
