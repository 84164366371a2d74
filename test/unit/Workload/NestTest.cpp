//===- NestTest.cpp - Operators of several computations -------------------===//
//
// Nests of softmax, a norm, attention and a convolution: what they say, what
// they count, and what is refused.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Workload/Contraction.h"
#include "FTuner/Workload/RowReduction.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ftuner;

static std::string errorOf(const Workload &workload) {
  llvm::Error error = workload.check();
  return error ? llvm::toString(std::move(error)) : "no error";
}

static Operations special(double count) {
  return {OperationKind::Function, ElementType::F32, ElementType::F32, count};
}
static Operations arithmetic(double count) {
  return {OperationKind::Add, ElementType::F32, ElementType::F32, count};
}

/// Y[m, r] = e^(X - mx) / s.
static Workload softmax() {
  Workload workload;
  workload.axes = {{"M", {1, std::nullopt}}, {"R", {1, std::nullopt}}};
  workload.operands = {Operand(OperandRole::Input, {0, 1}),
                       Operand(OperandRole::Output, {0, 1})};
  Computation state, normalize;
  state.name = "state";
  state.axes = {0, 1};
  state.reduce = {1};
  state.reads = {Read::operand(0)};
  state.operations = {arithmetic(3), special(1)};
  state.state.emplace();
  state.state->merge = Merge::ScaledSums;
  state.state->accumulators = {{"mx", ElementType::F32, Identity::Lowest},
                               {"s"}};
  state.state->mergeOperations = {arithmetic(4), special(2)};
  normalize.name = "y";
  normalize.axes = {0, 1};
  normalize.reads = {Read::operand(0), Read::computation(0)};
  normalize.operations = {arithmetic(1), special(2)};
  normalize.writes = {1};
  workload.computations = {state, normalize};
  return workload;
}

/// Z = X + R, Y = (Z - μ) · rstd · γ + β, and μ and rstd of each row.
static Workload layerNorm() {
  Workload workload;
  workload.axes = {{"M", {1, std::nullopt}}, {"R", SizeRange::fixed(768)}};
  auto add = [&](OperandRole role, llvm::SmallVector<unsigned> axes) {
    workload.operands.emplace_back(role, std::move(axes));
  };
  add(OperandRole::Input, {0, 1});
  add(OperandRole::Input, {0, 1});
  add(OperandRole::Extra, {1});
  add(OperandRole::Extra, {1});
  add(OperandRole::Output, {0, 1});
  add(OperandRole::Output, {0, 1});
  add(OperandRole::Output, {0});
  add(OperandRole::Output, {0});
  Computation sum, moments, norm;
  sum.name = "v";
  sum.axes = {0, 1};
  sum.reads = {Read::operand(0), Read::operand(1)};
  sum.operations = {arithmetic(1)};
  sum.writes = {4};
  moments.name = "moments";
  moments.axes = {0, 1};
  moments.reduce = {1};
  moments.reads = {Read::computation(0)};
  moments.operations = {arithmetic(5), special(1)};
  moments.state.emplace();
  moments.state->merge = Merge::Moments;
  moments.state->accumulators = {{"mean"}, {"rstd"}, {"count"}};
  moments.state->finalize = {special(2)};
  moments.writes = {6, 7};
  norm.name = "y";
  norm.axes = {0, 1};
  norm.reads = {Read::computation(0), Read::computation(1), Read::operand(2),
                Read::operand(3)};
  norm.operations = {arithmetic(4)};
  norm.writes = {5};
  workload.computations = {sum, moments, norm};
  return workload;
}

/// Axes b, h, q, t, d, e; a causal mask, and lengths of sequences.
static Workload attention() {
  enum : unsigned { B, H, Q, T, D, E };
  Workload workload;
  workload.axes = {{"B", {1, 64}},
                   {"H", SizeRange::fixed(12)},
                   {"Q", {1, 4096}},
                   {"T", {1, 4096}},
                   {"D", SizeRange::fixed(64)},
                   {"E", SizeRange::fixed(64)}};
  workload.operands = {
      Operand(OperandRole::Input, {B, H, Q, D}, ElementType::F16),
      Operand(OperandRole::Input, {B, H, T, D}, ElementType::F16),
      Operand(OperandRole::Input, {B, H, T, E}, ElementType::F16),
      Operand(OperandRole::Extra, {B}, ElementType::I32),
      Operand(OperandRole::Output, {B, H, Q, E}, ElementType::F16)};
  auto computation = [&](const char *name, AxisSet axes, AxisSet reduce) {
    Computation result;
    result.name = name;
    result.axes = axes;
    result.reduce = reduce;
    if (!reduce.empty())
      result.state.emplace();
    return result;
  };
  Computation s = computation("s", {B, H, Q, T, D}, {D});
  s.reads = {Read::operand(0), Read::operand(1)};
  s.operations = {{OperationKind::MultiplyAdd, ElementType::F16}};
  Computation x = computation("x", {B, H, Q, T}, {});
  x.reads = {Read::computation(0)};
  x.operations = {arithmetic(1)};
  Computation row = computation("row", {B, H, Q, T}, {T});
  row.reads = {Read::computation(1)};
  row.operations = {arithmetic(2), special(1)};
  row.state->merge = Merge::ScaledSums;
  row.state->accumulators = {{"mx", ElementType::F32, Identity::Lowest}, {"l"}};
  Computation o = computation("o", {B, H, Q, T, E}, {T});
  o.reads = {Read::computation(1), Read::computation(2), Read::operand(2)};
  o.operations = {{OperationKind::MultiplyAdd, ElementType::F16}};
  o.state->correctedBy = 2;
  Computation out = computation("out", {B, H, Q, E}, {});
  out.reads = {Read::computation(3), Read::computation(2)};
  out.operations = {special(1)};
  out.writes = {4};
  workload.computations = {s, x, row, o, out};
  // t <= q and t < length[b].
  workload.domain = {{{{{Q, 1}, {T, -1}}, 0}}, {{{{T, -1}}, -1}, {{3, 1}}}};
  return workload;
}

/// m = (image, row, column), k = (r, s, c), 3 x 3, stride 2, zeros around.
static Workload convolution() {
  Workload workload = Workload::matmul({1, std::nullopt}, SizeRange::fixed(64),
                                       SizeRange::fixed(9 * 32));
  workload.axes[0].loops = {{"IMAGE", {1, std::nullopt}},
                            {"P", SizeRange::fixed(28)},
                            {"Q", SizeRange::fixed(28)}};
  workload.axes[2].loops = {{"R", SizeRange::fixed(3)},
                            {"S", SizeRange::fixed(3)},
                            {"C", SizeRange::fixed(32)}};
  Operand &image = workload.operands[0];
  image.axes = {0, 0, 0, 2};
  image.windows = {{{{0, 1, 0}}, 0},
                   {{{0, 2, 1}, {2, 1, 0}}, -1},
                   {{{0, 2, 2}, {2, 1, 1}}, -1},
                   {{{2, 1, 2}}, 0}};
  image.outside = Identity::Zero;
  return workload;
}

TEST(Nest, SaysWhatIsComputed) {
  EXPECT_EQ(errorOf(softmax()), "no error");
  EXPECT_EQ(softmax().str(), "state[M] = scaled-sums over R of input[M, R]\n"
                             "y[M, R] = input[M, R], state -> output\n");
  EXPECT_EQ(errorOf(layerNorm()), "no error");
  EXPECT_EQ(layerNorm().str(),
            "v[M, R] = input0[M, R], input1[M, R] -> output4\n"
            "moments[M] = moments over R of v -> output6, output7\n"
            "y[M, R] = v, moments, extra2[R], extra3[R] -> output5\n");
  EXPECT_EQ(errorOf(attention()), "no error");
  EXPECT_EQ(attention().str(),
            "where Q + -1*T >= 0\n"
            "where -1*T - 1 + extra[B] >= 0\n"
            "s[B, H, Q, T] = sum over D of input0[B, H, Q, D], "
            "input1[B, H, T, D]\n"
            "x[B, H, Q, T] = s\n"
            "row[B, H, Q] = scaled-sums over T of x\n"
            "o[B, H, Q, E] = sum over T of x, row, input2[B, H, T, E], scaled "
            "by row\n"
            "out[B, H, Q, E] = o, row -> output\n");
  EXPECT_EQ(errorOf(convolution()), "no error");
  EXPECT_EQ(convolution().str(),
            "product[M, N] = sum over K of lhs[IMAGE, 2*P + R - 1, 2*Q + S - "
            "1, C] or zero, rhs[K, N] -> output\n");
}

TEST(Nest, TellsSpaceFromReduceForEachComputation) {
  Workload workload = attention();
  EXPECT_EQ(workload.reduceAxes(), (AxisSet{3, 4}));
  EXPECT_EQ(workload.spaceAxes(), (AxisSet{0, 1, 2, 5}));
  EXPECT_TRUE(workload.computations[1].space().contains(3));
  EXPECT_EQ(workload.reduction(), &workload.computations[0]);
  EXPECT_EQ(softmax().accumulatorType(), ElementType::F32);
}

TEST(Nest, CountsEachComputation) {
  Shape rows = {53, 1000};
  EXPECT_DOUBLE_EQ(softmax().flops(rows), 53.0 * 1000 * (4 + 3));
  EXPECT_DOUBLE_EQ(softmax().specials(rows), 53.0 * 1000 * 3);
  EXPECT_DOUBLE_EQ(softmax().compulsoryBytes(rows), 2.0 * 53 * 1000 * 4);
  // What finishes a row counts once for it.
  EXPECT_DOUBLE_EQ(layerNorm().specials({7, 768}), 7.0 * 768 + 7 * 2);
  EXPECT_DOUBLE_EQ(layerNorm().compulsoryBytes({7, 768}),
                   4.0 * (4 * 7 * 768 + 2 * 768 + 2 * 7));
  // Pairs below the diagonal alone; lengths are not known.
  Workload masked = attention();
  for (int64_t q : {1, 5, 256})
    for (int64_t t : {1, 3, 300}) {
      Shape shape = {2, 12, q, t, 64, 64};
      double pairs = 0;
      for (int64_t row = 0; row < q; ++row)
        pairs += std::min(row + 1, t);
      EXPECT_DOUBLE_EQ(masked.points({2, 3}, shape), pairs) << q << " " << t;
      EXPECT_DOUBLE_EQ(masked.flops(masked.computations[0], shape),
                       2 * 2 * 12 * pairs * 64);
      EXPECT_DOUBLE_EQ(masked.points({2}, shape), q);
    }
  // 2^31 rows by as many columns, about half of them.
  double most = std::pow(2.0, 31) - 1;
  Shape large = {1, 1, maxExtent, maxExtent, 1, 1};
  EXPECT_NEAR(masked.points({2, 3}, large) / (most * most / 2), 1, 1e-5);
  // Windows overlap, and reach one pixel beyond on both sides.
  EXPECT_DOUBLE_EQ(convolution().compulsoryBytes({2 * 28 * 28, 64, 9 * 32}),
                   4.0 * (2 * 57 * 57 * 32 + 9 * 32 * 64 + 2 * 28 * 28 * 64));
}

/// Conditions over loops of fused axes are taken to hold everywhere.
TEST(Nest, DoesNotCountConditionsOfLoops) {
  Workload workload = convolution();
  int64_t shape[] = {10 * 28 * 28, 64, 9 * 32};
  double points = workload.points({0, 1, 2}, shape);
  workload.domain = {{{{{0, 2, 1}, {2, 1, 0}}, -1}}};
  EXPECT_EQ(errorOf(workload), "no error");
  EXPECT_EQ(workload.points({0, 1, 2}, shape), points);
  workload.domain = {{{{{0, 2, 3}}, -1}}};
  EXPECT_EQ(errorOf(workload), "domain: expected loops of axis 'M' below 3");
}

TEST(Nest, IsSeenAsAReductionOfRows) {
  Workload workload = softmax();
  std::optional<RowReductionView> rows = workload.asRowReduction();
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->row(), 1u);
  EXPECT_EQ(rows->firstSpace(), 0u);
  EXPECT_EQ(rows->numReductions(), 1);
  EXPECT_EQ(rows->operandsAlong().size(), 2u);
  EXPECT_EQ(rows->widestBytes(), 4);
  Workload norm = layerNorm();
  rows = norm.asRowReduction();
  ASSERT_TRUE(rows);
  // Statistics have no element for each of a row's.
  EXPECT_LT(rows->operandsAlong().size(), norm.operands.size());
  EXPECT_FALSE(attention().asRowReduction());
  EXPECT_FALSE(convolution().asRowReduction());
}

/// A reduction that asks for another one's result reads the row behind it.
TEST(Nest, HasAPhaseForEachReductionOfAChain) {
  Workload workload = Workload::rowSums({1, 512}, {1, 2048});
  EXPECT_EQ(workload.asRowReduction()->numPhases(), 1);
  Computation sum = workload.computations.front();
  workload.computations.insert(workload.computations.begin(), sum);
  EXPECT_EQ(workload.asRowReduction()->numPhases(), 1);
  workload.computations[1].reads.push_back(Read::computation(0));
  EXPECT_EQ(workload.asRowReduction()->numPhases(), 2);
}

TEST(Nest, NoneIsTakenForAProductThatIsNone) {
  EXPECT_FALSE(softmax().isContraction());
  EXPECT_FALSE(attention().isContraction());
  Workload product =
      Workload::matmul({1, 64}, SizeRange::fixed(64), SizeRange::fixed(64));
  ASSERT_TRUE(product.asContraction());
  EXPECT_EQ(product.asContraction()->batchAxes(), AxisSet());
  product.domain = {{{{{0, 1}, {1, -1}}, 0}}};
  EXPECT_EQ(errorOf(product), "no error");
  EXPECT_EQ(llvm::toString(product.checkContraction()),
            "expected every point of the axes");
  product.domain.clear();
  product.reduction()->state->merge = Merge::Maximum;
  EXPECT_EQ(llvm::toString(product.checkContraction()),
            "expected a sum of products");
}

TEST(Nest, AConvolutionIsAProductWithWindows) {
  Workload workload = convolution();
  ASSERT_TRUE(workload.isContraction())
      << llvm::toString(workload.checkContraction());
  ContractionView view = *workload.asContraction();
  EXPECT_TRUE(view.hasWindows());
  EXPECT_FALSE(view.rhs().hasWindows());
  // Channels are next to each other, of one tap.
  EXPECT_EQ(view.lhs().contiguousAxis(), view.k);
  EXPECT_EQ(workload.contiguousRun(view.lhs()), 32);
  EXPECT_EQ(workload.contiguousRun(view.rhs()), std::nullopt);
  workload.axes[2].loops[2].range = {1, std::nullopt};
  workload.axes[2].range = {9, std::nullopt, 9};
  EXPECT_EQ(workload.contiguousRun(view.lhs()), 1);
  // Rows of a kernel are not: neighbours along k are channels.
  workload = convolution();
  workload.operands[0].windows[3].terms = {{2, 1, 0}};
  EXPECT_EQ(workload.contiguousRun(view.lhs()), 1);
  // Neither are those along the columns of an image.
  workload.operands[0].windows[3] = {{{0, 2, 2}, {2, 1, 1}}, -1};
  EXPECT_EQ(workload.operands[0].contiguousAxis(), 0u);
  EXPECT_EQ(workload.contiguousRun(workload.operands[0]), 1);

  auto messageOf = [](llvm::function_ref<void(Workload &)> change) {
    Workload changed = convolution();
    change(changed);
    return llvm::toString(changed.checkContraction());
  };
  EXPECT_EQ(messageOf([](Workload &w) {
              w.operands[0].windows[3].terms[0] = {1, 1};
            }),
            "operand 0: expected windows without the other factor's axis 'N'");
  EXPECT_EQ(messageOf([](Workload &w) {
              w.operands[2].windows = {{{{0, 1, 1}}, 0}, {{{1, 1}}, 0}};
            }),
            "operand 2: expected dimensions of one axis each");
}

TEST(Nest, AProductHasItsPrologueAndEpilogueAsComputations) {
  Workload workload =
      Workload::matmul({1, 64}, SizeRange::fixed(64), SizeRange::fixed(64));
  workload.operands.insert(workload.operands.begin() + 2,
                           Operand(OperandRole::Input, {1}));
  workload.operands.insert(workload.operands.begin() + 3,
                           Operand(OperandRole::Init, {}));
  workload.operands.insert(workload.operands.begin() + 4,
                           Operand(OperandRole::Extra, {1}));
  changeContraction(workload, [](ContractionParts &parts) {
    parts.prologues[1] = {arithmetic(1)};
    parts.epilogue = {arithmetic(1), special(1)};
  });
  EXPECT_EQ(errorOf(workload), "no error");
  EXPECT_EQ(workload.str(),
            "right[N, K] = rhs[K, N], input[N]\n"
            "product[M, N] = sum over K of lhs[M, K], right, init\n"
            "epilogue[M, N] = product, extra[N] -> output\n");
  ContractionView view = *workload.asContraction();
  EXPECT_EQ(view.prologue(0), nullptr);
  EXPECT_EQ(view.prologueOperations(1), llvm::ArrayRef{arithmetic(1)});
  EXPECT_EQ(view.epilogueOperations().size(), 2u);
  EXPECT_DOUBLE_EQ(workload.flops({3, 64, 64}),
                   64.0 * 64 + 2.0 * 3 * 64 * 64 + 2.0 * 3 * 64);
  // Parts stay what they are when they are set again.
  std::string before = workload.fingerprint(FingerprintOf::Kernels);
  changeContraction(workload);
  EXPECT_EQ(workload.fingerprint(FingerprintOf::Kernels), before);
}

TEST(Nest, AMergeIsWhatItSaysOrTheOperationItIs) {
  auto of = [](Merge merge, std::vector<Operations> operations = {}) {
    State state;
    state.merge = merge;
    state.accumulators.front().type = ElementType::F16;
    state.mergeOperations = std::move(operations);
    std::vector<OperationKind> kinds;
    for (const Operations &some : state.operationsOfMerge()) {
      EXPECT_EQ(some.count, 1);
      kinds.push_back(some.kind);
    }
    return kinds;
  };
  using Kinds = std::vector<OperationKind>;
  EXPECT_EQ(of(Merge::Sum), Kinds{OperationKind::Add});
  EXPECT_EQ(of(Merge::Product), Kinds{OperationKind::Multiply});
  EXPECT_EQ(of(Merge::Maximum), Kinds{OperationKind::Extreme});
  EXPECT_EQ(of(Merge::Minimum), Kinds{OperationKind::Extreme});
  EXPECT_EQ(of(Merge::Sum, {special(1)}), Kinds{OperationKind::Function});
}

// Logs of measurements go by fingerprints.
TEST(Nest, FingerprintsNameUnits) {
  auto of = [](std::vector<Operations> operations) {
    Workload workload =
        Workload::rowSums(SizeRange::fixed(8), SizeRange::fixed(8));
    workload.computations.front().operations = std::move(operations);
    std::string text = workload.fingerprint(FingerprintOf::Kernels);
    size_t begin = text.find(';'), end = text.find(";sum");
    return text.substr(begin, end - begin);
  };
  auto some = [](OperationKind kind, ElementType type = ElementType::F32) {
    return Operations{kind, type, type, 1};
  };
  EXPECT_EQ(of({some(OperationKind::Add), some(OperationKind::Divide),
                some(OperationKind::Extreme), some(OperationKind::Select),
                some(OperationKind::Function),
                some(OperationKind::Add, ElementType::F16)}),
            ";arithmetic:f32:f32*2;special:f32:f32*2;other:f32:f32*1"
            ";arithmetic:f16:f16*1");
  // Quotients of integers are arithmetic.
  EXPECT_EQ(of({some(OperationKind::Divide, ElementType::I32),
                some(OperationKind::Bitwise, ElementType::I32)}),
            ";arithmetic:i32:i32*2");
  // What is one kind stays apart, as where a sum is rounded before its body.
  EXPECT_EQ(of({some(OperationKind::Cast), some(OperationKind::Cast)}),
            ";other:f32:f32*1;other:f32:f32*1");
}

TEST(Nest, FingerprintsTellKernelsAndSearchesApart) {
  auto of = [](const Workload &workload) {
    return std::pair(workload.fingerprint(FingerprintOf::Kernels),
                     workload.fingerprint(FingerprintOf::Search));
  };
  Workload product =
      Workload::matmul({1, 64}, SizeRange::fixed(64), SizeRange::fixed(64));
  std::string kernels, search;
  std::tie(kernels, search) = of(product);
  // Ranges are the search's alone.
  Workload longer = product;
  longer.axes[0].range.max = 128;
  EXPECT_EQ(of(longer).first, kernels);
  EXPECT_NE(of(longer).second, search);
  // So are symbols, by where they are equal and not by name.
  Workload named = product, other = product, apart = product;
  named.axes[0].symbols = named.axes[1].symbols = {"T"};
  other.axes[0].symbols = other.axes[1].symbols = {"U"};
  apart.axes[0].symbols = {"T"};
  apart.axes[1].symbols = {"U"};
  EXPECT_EQ(of(named).second, of(other).second);
  EXPECT_NE(of(named).second, of(apart).second);
  EXPECT_EQ(of(named).first, kernels);
  // What follows a product is the kernels' alone.
  Workload activated = product;
  changeContraction(activated, [](ContractionParts &parts) {
    parts.epilogue = {special(1)};
  });
  EXPECT_NE(of(activated).first, kernels);
  EXPECT_EQ(of(activated).second, search);
  // Everything else is both's.
  auto expectOther = [&](llvm::function_ref<void(Workload &)> change) {
    Workload changed = product;
    change(changed);
    EXPECT_NE(of(changed).first, kernels);
    EXPECT_NE(of(changed).second, search);
  };
  expectOther(
      [](Workload &w) { w.operands[0].elementType = ElementType::F16; });
  expectOther([](Workload &w) {
    std::swap(w.operands[1].axes[0], w.operands[1].axes[1]);
  });
  expectOther([](Workload &w) { w.operands[1].isPacked = true; });
  expectOther([](Workload &w) { w.operands[0].outside = Identity::Zero; });
  expectOther(
      [](Workload &w) { w.reduction()->state->merge = Merge::Maximum; });
  expectOther([](Workload &w) {
    w.reduction()->state->accumulators[0].type = ElementType::F64;
  });
  expectOther(
      [](Workload &w) { w.reduction()->operations[0].truncates = true; });
  expectOther([](Workload &w) { w.domain = {{{{{0, 1}, {1, -1}}, 0}}}; });
}

TEST(Nest, RefusesWhatMakesNoSense) {
  auto expect = [](Workload workload,
                   llvm::function_ref<void(Workload &)> change,
                   const char *message) {
    change(workload);
    EXPECT_EQ(errorOf(workload), message);
  };
  expect(
      softmax(), [](Workload &w) { w.computations[1].writes = {}; },
      "operand 1: expected an output that one computation writes, but got "
      "0");
  expect(
      softmax(), [](Workload &w) { w.computations[0].writes = {1}; },
      "computation 'state': expected an output along its space axes, but "
      "operand 1 has others");
  expect(
      softmax(), [](Workload &w) { w.computations[1].writes = {0}; },
      "computation 'y': expected outputs that it writes, but operand 0 is "
      "none");
  expect(
      softmax(),
      [](Workload &w) { w.computations[0].reads = {Read::computation(1)}; },
      "computation 'state': expected to read earlier computations alone");
  expect(
      softmax(), [](Workload &w) { w.computations[0].state.reset(); },
      "computation 'state': expected a state, for it reduces axes");
  expect(
      softmax(), [](Workload &w) { w.computations[1].axes = {1}; },
      "computation 'y': expected the space axes of 'state', which it reads");
  expect(
      layerNorm(),
      [](Workload &w) { w.computations[1].state->accumulators.resize(1); },
      "computation 'moments': expected an accumulator for each output");
  expect(
      layerNorm(),
      [](Workload &w) { w.computations[1].state->finalize[0].count = -1; },
      "expected counts of operations that are at least 0");
  expect(
      attention(),
      [](Workload &w) { w.computations[3].state->correctedBy = 4; },
      "computation 'o': expected an earlier state that scales its own");
  expect(
      attention(), [](Workload &w) { w.domain[1].operands[0].operand = 0; },
      "domain: expected operands of integers");
  expect(
      convolution(),
      [](Workload &w) { w.operands[0].windows[1].terms[0].loop = 3; },
      "operand 0: expected one of the 3 loops of axis 'M', but got 3");
  expect(
      convolution(), [](Workload &w) { w.axes[2].range = SizeRange::fixed(5); },
      "axis 'K': expected the extent of its loops, 288");
}
