//===- AlignmentTest.cpp - Alignment that sizes have, and can have --------===//
#include "FTuner/Schedule/Alignment.h"
#include "../RandomSeed.h"
#include "FTuner/Workload/Contraction.h"
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

/// M × N × K, all row-major: K is contiguous in the lhs, N in the rhs and the
/// output.
static Workload product(SizeRange m, SizeRange n, SizeRange k,
                        ElementType inputs, ElementType output) {
  Workload workload = Workload::matmul(m, n, k);
  for (Operand &operand : workload.operands)
    operand = Operand(operand.role, operand.axes,
                      operand.role == OperandRole::Output ? output : inputs);
  return workload;
}

/// A product whose rows along N alone may break the alignment.
static Workload alongN(SizeRange n, ElementType type) {
  return product({1, 128}, n, SizeRange::fixed(64), type, type);
}

TEST(Alignment, OfFourByteElements) {
  Workload workload = alongN({1, std::nullopt}, ElementType::F32);
  EXPECT_EQ(alignmentOf(workload, {53, 2304, 64}), 16);
  EXPECT_EQ(alignmentOf(workload, {53, 2302, 64}), 8);
  EXPECT_EQ(alignmentOf(workload, {53, 2303, 64}), 4);
  // K is contiguous in the lhs.
  EXPECT_EQ(alignmentOf(workload, {53, 2304, 62}), 8);
  EXPECT_EQ(alignmentOf(workload, {53, 2302, 63}), 4);
  // M in none.
  EXPECT_EQ(alignmentOf(workload, {1, 4, 4}), 16);
}

TEST(Alignment, OfTwoByteElements) {
  Workload workload = alongN({1, std::nullopt}, ElementType::F16);
  EXPECT_EQ(alignmentOf(workload, {53, 2304, 64}), 16);
  EXPECT_EQ(alignmentOf(workload, {53, 2300, 64}), 8);
  EXPECT_EQ(alignmentOf(workload, {53, 2302, 64}), 4);
  EXPECT_EQ(alignmentOf(workload, {53, 2303, 64}), 2);
  // The same rows of the output in f32 are twice as long.
  Workload mixed = product({1, 128}, {1, std::nullopt}, SizeRange::fixed(64),
                           ElementType::F16, ElementType::F32);
  EXPECT_EQ(alignmentOf(mixed, {53, 2300, 64}), 8);
  mixed.operands[1] = Operand(OperandRole::Rhs, mixed.operands[1].axes);
  EXPECT_EQ(alignmentOf(mixed, {53, 2300, 64}), 16);
  EXPECT_EQ(alignmentOf(mixed, {53, 2300, 60}), 8);
}

TEST(Alignment, LeavesOutEpiloguesOfKnownOddRows) {
  auto alongK = [](SizeRange n, ElementType output) {
    Workload workload =
        Workload::matmul({1, 128}, n, SizeRange::fixed(64),
                         /*transposeLhs=*/false, /*transposeRhs=*/true);
    for (Operand &operand : workload.operands)
      operand = Operand(operand.role, operand.axes,
                        operand.role == OperandRole::Output ? output
                                                            : ElementType::F16);
    return workload;
  };
  // The factors' rows are along K.
  Workload odd = alongK(SizeRange::fixed(50257), ElementType::F16);
  EXPECT_FALSE(hasVectorEpilogue(odd));
  EXPECT_EQ(alignmentOf(odd, {53, 50257, 64}), 16);
  EXPECT_EQ(reachableAlignment(odd), 16);
  EXPECT_EQ(alignmentOf(odd, {53, 50257, 60}), 8);
  // Rows of words.
  for (auto [n, type, alignment] : {std::tuple(50257, ElementType::F32, 4),
                                    std::tuple(50258, ElementType::F16, 4),
                                    std::tuple(50256, ElementType::F16, 16)}) {
    Workload words = alongK(SizeRange::fixed(n), type);
    EXPECT_TRUE(hasVectorEpilogue(words));
    EXPECT_EQ(alignmentOf(words, {53, n, 64}), alignment);
  }
  // Known at run time alone.
  Workload dynamic = alongK({1, 60000}, ElementType::F16);
  EXPECT_TRUE(hasVectorEpilogue(dynamic));
  EXPECT_EQ(alignmentOf(dynamic, {53, 50257, 64}), 2);
}

TEST(Alignment, GuaranteedOfEverySize) {
  auto guaranteed = [](SizeRange n, ElementType type) {
    return guaranteedAlignment(alongN(n, type));
  };
  EXPECT_EQ(guaranteed({16, 2048, 16}, ElementType::F32), 16);
  EXPECT_EQ(guaranteed({16, 2048, 16}, ElementType::F16), 16);
  EXPECT_EQ(guaranteed({4, 64, 4}, ElementType::F32), 16);
  EXPECT_EQ(guaranteed({4, 64, 4}, ElementType::F16), 8);
  EXPECT_EQ(guaranteed({2, 62, 4}, ElementType::F32), 8);
  EXPECT_EQ(guaranteed({2, 62, 4}, ElementType::F16), 4);
  EXPECT_EQ(guaranteed({1, std::nullopt}, ElementType::F32), 4);
  EXPECT_EQ(guaranteed({1, std::nullopt}, ElementType::F16), 2);
  // The step of a fixed size says nothing.
  EXPECT_EQ(guaranteed(SizeRange::fixed(2304), ElementType::F16), 16);
  EXPECT_EQ(guaranteed(SizeRange::fixed(7), ElementType::F32), 4);
}

TEST(Alignment, ReachableBySomeSize) {
  auto reachable = [](SizeRange n, ElementType type) {
    return reachableAlignment(alongN(n, type));
  };
  // 0, 2, 4, …: every other size allows vectors of 4 elements.
  EXPECT_EQ(reachable({0, 64, 2}, ElementType::F32), 16);
  EXPECT_EQ(reachable({0, 63, 3}, ElementType::F32), 16);
  EXPECT_EQ(reachable({2, 62, 4}, ElementType::F32), 8);
  EXPECT_EQ(reachable(SizeRange::fixed(7), ElementType::F32), 4);
  // Of 1, 2 and 3 elements two are the best.
  EXPECT_EQ(reachable({1, 3}, ElementType::F32), 8);
  EXPECT_EQ(reachable({1, 3}, ElementType::F16), 4);
  EXPECT_EQ(reachable({1, 7}, ElementType::F16), 8);
  EXPECT_EQ(reachable({1, std::nullopt}, ElementType::F16), 16);
  EXPECT_EQ(reachable({1, std::nullopt, 8}, ElementType::F16), 2);
}

TEST(Alignment, AgreesWithEverySizeOfARange) {
  RandomSeed seed;
  std::mt19937 random(seed);
  const ElementType types[] = {ElementType::F64, ElementType::F32,
                               ElementType::F16, ElementType::I8};
  for (int round = 0; round < 2000; ++round) {
    SizeRange n;
    n.min = 1 + random() % 40;
    n.step = 1 + random() % 20;
    n.max = n.min + random() % 200;
    Workload workload = alongN(n, types[random() % 4]);
    int64_t least = widestAccessBytes, most = 0;
    for (int64_t size = n.min; size <= *n.max; size += n.step) {
      int64_t alignment = alignmentOf(workload, {1, size, 64});
      // A power of two that divides every row.
      ASSERT_EQ(widestAccessBytes % alignment, 0);
      ASSERT_EQ(size * workload.operands[1].elementBytes % alignment, 0);
      least = std::min(least, alignment);
      most = std::max(most, alignment);
    }
    SCOPED_TRACE(testing::Message()
                 << n.min << " to " << *n.max << " by " << n.step);
    // Of two sizes and more their difference counts, too.
    if (n.min + n.step <= *n.max) {
      ASSERT_EQ(guaranteedAlignment(workload), least);
    } else {
      ASSERT_LE(guaranteedAlignment(workload), least);
    }
    ASSERT_EQ(reachableAlignment(workload), most);
  }
}

TEST(Alignment, PaddedRowsAreAlignedAtAllLengths) {
  Workload workload = alongN({1, 512}, ElementType::F16);
  for (Operand &operand : workload.operands)
    operand.isPitched = operand.contiguousAxis() == 1;
  EXPECT_EQ(guaranteedAlignment(workload), 16);
  EXPECT_EQ(alignmentOf(workload, {53, 511, 64}), 16);
  // Rows of other operands still count.
  EXPECT_EQ(alignmentOf(workload, {53, 511, 60}), 8);
  EXPECT_EQ(rowPitch(2 * 511, /*isPadded=*/true), 1024);
  EXPECT_EQ(rowPitch(2 * 511, /*isPadded=*/false), 1022);
}

TEST(Alignment, OfWhatVectorsAccess) {
  Workload workload = alongN({1, std::nullopt}, ElementType::F32);
  auto withExtra = [&](llvm::SmallVector<unsigned> axes) {
    Workload other = workload;
    other.operands.emplace_back(OperandRole::Extra, axes);
    return isVectorAccess(other, other.operands.back());
  };
  for (const Operand &operand : workload.operands)
    EXPECT_TRUE(isVectorAccess(workload, operand));
  // A bias along N, a residual; not a bias along M, nor a scalar.
  EXPECT_TRUE(withExtra({matmulAxes.n}));
  EXPECT_TRUE(withExtra({matmulAxes.m, matmulAxes.n}));
  EXPECT_FALSE(withExtra({matmulAxes.m}));
  EXPECT_FALSE(withExtra({}));
  // What a prologue reads, along whichever axis.
  Workload scaled = workload;
  scaled.operands.emplace_back(OperandRole::Input,
                               llvm::SmallVector<unsigned>{matmulAxes.m});
  EXPECT_TRUE(isVectorAccess(scaled, scaled.operands.back()));
  // Rows of the bias in f16 are half as long.
  workload.operands.emplace_back(OperandRole::Extra,
                                 llvm::SmallVector<unsigned>{matmulAxes.n},
                                 ElementType::F16);
  EXPECT_EQ(alignmentOf(workload, {53, 2308, 64}), 8);
}

TEST(Alignment, BooleansOfTheEpilogueAreNoVectors) {
  for (int64_t n : {2308, 36, 37}) {
    SCOPED_TRACE(n);
    Workload workload = alongN({1, std::nullopt}, ElementType::F32);
    int64_t alone = alignmentOf(workload, {53, n, 64});
    workload.operands.emplace_back(
        OperandRole::Extra,
        llvm::SmallVector<unsigned>{matmulAxes.m, matmulAxes.n},
        ElementType::I1);
    EXPECT_FALSE(isVectorAccess(workload, workload.operands.back()));
    EXPECT_EQ(alignmentOf(workload, {53, n, 64}), alone);
    // Bytes that a prologue reads are copied in vectors.
    workload.operands.back().role = OperandRole::Input;
    EXPECT_TRUE(isVectorAccess(workload, workload.operands.back()));
  }
  // A mask whose rows are no whole words does not part an epilogue.
  Workload fixed = alongN(SizeRange::fixed(37), ElementType::F32);
  fixed.operands.emplace_back(OperandRole::Extra,
                              llvm::SmallVector<unsigned>{matmulAxes.n},
                              ElementType::I1);
  EXPECT_TRUE(hasVectorEpilogue(fixed));
}

TEST(Alignment, NaturalIsThatOfTheLargestElements) {
  EXPECT_EQ(naturalAlignment(alongN({1, 8}, ElementType::F32)), 4);
  EXPECT_EQ(naturalAlignment(alongN({1, 8}, ElementType::F16)), 2);
  Workload mixed =
      product({1, 8}, {1, 8}, {1, 8}, ElementType::F16, ElementType::F32);
  EXPECT_EQ(naturalAlignment(mixed), 4);
  // Scalars come in registers.
  mixed.operands.emplace_back(OperandRole::Extra, llvm::SmallVector<unsigned>{},
                              ElementType::F64);
  EXPECT_EQ(naturalAlignment(mixed), 4);
}
