//===- DietCodeBaselinesTest.cpp - Modes of DietCode, and its transfer ----===//
#include "DietCodeBaselines.h"
#include "../../Search/DeviceTest.h"
#include "DietCodeTransfer.h"
#include "FTuner/Schedule/Alignment.h"
#include "FTuner/Search/Ranking/Candidates.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace ftuner;

namespace {
class DietCodeBaselinesTest : public DeviceTest {
protected:
  DietCodeBaselinesTest() : DeviceTest("v100") {}

  SearchProblem problem(const Workload &workload, const char *mode) {
    SearchProblem problem{
        workload, device, paths, *findCostModel("latency"), {}};
    problem.options.own["trials"] = int64_t(64);
    problem.options.own["dietcode-mode"] = std::string(mode);
    return problem;
  }

  const CodegenModel *simt = findCodegenModel("simt");
  llvm::ArrayRef<const CodegenModel *> paths = simt;
  Workload dense =
      Workload::matmul({1, 128}, SizeRange::fixed(2304), SizeRange::fixed(768));
};
} // namespace

static std::optional<double> statistic(const Plan &plan, llvm::StringRef name) {
  for (const SearchStatistic &statistic : plan.statistics)
    if (statistic.name == name)
      return statistic.value;
  return std::nullopt;
}

namespace {
/// A cost model that is asked for one program at a time.
class SinglyAsked final : public CostModel {
public:
  explicit SinglyAsked(const CostModel &model) : model(model) {}

  llvm::StringRef name() const override { return model.name(); }
  bool predictsTime() const override { return model.predictsTime(); }
  std::optional<Prefilter>
  prefilter(const CostModelOptions &options) const override {
    return model.prefilter(options);
  }
  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    struct Evaluator final : CostEvaluator {
      std::unique_ptr<CostEvaluator> asked;
      double score(llvm::ArrayRef<int64_t> shape,
                   const Program &program) override {
        return asked->score(shape, program);
      }
      CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                             const Program &program) override {
        return asked->evaluate(shape, program);
      }
    };
    auto evaluator = std::make_unique<Evaluator>();
    evaluator->asked = model.createEvaluator(workload, device, options);
    return evaluator;
  }

private:
  const CostModel &model;
};
} // namespace

// Programs that are predicted together have the times that each has by itself.
TEST_F(DietCodeBaselinesTest, PredictionsInBatchesGiveTheSamePlan) {
  auto planBy = [&](const CostModel &model, const char *mode) {
    SearchProblem planned{dense, device, paths, model, {}};
    planned.options.own["trials"] = int64_t(16);
    planned.options.own["dietcode-mode"] = std::string(mode);
    return llvm::cantFail(solve(planned, *findSearchStrategy("dietcode")));
  };
  const CostModel &learned = *findCostModel("learned");
  for (const char *mode : {"joint", "bucket"}) {
    Plan together = planBy(learned, mode);
    Plan singly = planBy(SinglyAsked(learned), mode);
    EXPECT_EQ(together.families, singly.families) << mode;
    ASSERT_EQ(together.entries.size(), singly.entries.size()) << mode;
    for (auto [a, b] : llvm::zip_equal(together.entries, singly.entries))
      EXPECT_EQ(a.family, b.family) << mode;
    ASSERT_EQ(together.predictions.size(), singly.predictions.size()) << mode;
    for (auto [a, b] :
         llvm::zip_equal(together.predictions, singly.predictions))
      EXPECT_EQ(a.microseconds, b.microseconds) << mode;
  }
}

static const char *const modes[] = {"per-shape", "largest", "loop-partitioning",
                                    "bucket", "global-padding"};

// `solve` verifies plans: each size has a kernel, and each row one block.
TEST_F(DietCodeBaselinesTest, EveryModeKeepsTheContract) {
  SizeRange t{1, 128}, d = SizeRange::fixed(64);
  Workload nt =
      Workload::batchMatmul(SizeRange::fixed(192), t, t, d, false, true);
  nt.axes[0].symbols = nt.axes[1].symbols = {"T"};
  std::pair<const char *, Workload> workloads[] = {
      {"dense", dense},
      {"nt", nt},
      {"values", Workload::batchMatmul(SizeRange::fixed(12), t, d, t)},
      {"open", Workload::matmul({1, std::nullopt}, d, d)},
      {"odd", Workload::matmul({3, 39, 3}, SizeRange::fixed(1009), d)},
      {"one", Workload::matmul(SizeRange::fixed(1), SizeRange::fixed(1),
                               SizeRange::fixed(1))},
      {"none", Workload::matmul({0, 8}, d, d)}};
  for (const char *mode : modes)
    for (auto &[name, workload] : workloads) {
      SCOPED_TRACE(std::string(mode) + " " + name);
      SearchProblem p = problem(workload, mode);
      p.options.own["instances"] = int64_t(3);
      p.options.own["buckets"] = int64_t(4);
      for (int64_t maxKernels : {1, 2, 16}) {
        if (maxKernels != 16 && llvm::StringRef(name) != "dense")
          continue;
        p.options.maxKernels = maxKernels;
        llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
        ASSERT_TRUE(static_cast<bool>(plan))
            << llvm::toString(plan.takeError());
        EXPECT_LE(plan->families.size(), static_cast<size_t>(maxKernels));
      }
    }
}

// A bucket that no kernel of the few fits has one of these few.
TEST_F(DietCodeBaselinesTest, FewKernelsServeAllBuckets) {
  Workload tokens =
      Workload::matmul({1, 268}, SizeRange::fixed(2304), SizeRange::fixed(768));
  for (const char *mode : {"bucket", "per-shape", "loop-partitioning"})
    for (int64_t maxKernels : {1, 2, 3}) {
      SCOPED_TRACE(std::string(mode) + " " + std::to_string(maxKernels));
      SearchProblem p = problem(tokens, mode);
      p.options.own["trials"] = int64_t(24);
      p.options.own["buckets"] = int64_t(4);
      p.options.maxKernels = maxKernels;
      llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
      ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
      EXPECT_LE(plan->families.size(), static_cast<size_t>(maxKernels));
    }
}

// Sizes of `dense` cannot break the alignment, pointers can: one variant does.
TEST_F(DietCodeBaselinesTest, AlignedSizesLeaveOneKernelForOthers) {
  for (const char *mode : {"per-shape", "bucket"}) {
    SCOPED_TRACE(mode);
    SearchProblem p = problem(dense, mode);
    p.options.own["buckets"] = int64_t(4);
    p.options.maxKernels = 4;
    llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
    ASSERT_TRUE(static_cast<bool>(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(plan->families.size(), 4u);
    EXPECT_EQ(llvm::count_if(plan->families,
                             [](const KernelFamily &family) {
                               return family.takesAnyAlignment();
                             }),
              1);
    EXPECT_TRUE(plan->unalignedEntries.empty());
  }
}

// Attempts of a search share what it may measure.
TEST_F(DietCodeBaselinesTest, AttemptsShareTheTrials) {
  SearchProblem p = problem(dense, "bucket");
  std::vector<WeightedShape> shapes = {{{53, 2304, 768}, 1},
                                       {{128, 2304, 768}, 1}};
  const int64_t trials = 40;
  int64_t asked = 0, attempts = 0;
  auto failing = [&](llvm::ArrayRef<MeasurementRequest> requests) {
    std::vector<llvm::Expected<double>> times;
    for (size_t i = 0; i < requests.size(); ++i)
      times.push_back(llvm::createStringError("out of order"));
    asked += static_cast<int64_t>(requests.size());
    return times;
  };
  auto makeTuner = [&](llvm::ArrayRef<WeightedShape> shape, bool onlyDivisors,
                       size_t searches,
                       int64_t spent) -> std::unique_ptr<DietCodeTuner> {
    DietCodeOptions own;
    own.trials = trials - spent;
    own.onlyDivisors = onlyDivisors;
    own.measureAt = MeasureAt::Instance;
    own.model = ThroughputModel::None;
    if (own.trials <= 0)
      return nullptr;
    ++attempts;
    return std::make_unique<DietCodeTuner>(p, *simt, shape, own, failing, true,
                                           1);
  };
  auto baseline = DietCodeBaseline::create(p, DietCodeMode::Bucket, 2, shapes,
                                           nullptr, makeTuner);
  ASSERT_TRUE(static_cast<bool>(baseline))
      << llvm::toString(baseline.takeError());
  EXPECT_EQ(*baseline, nullptr);
  EXPECT_GE(attempts, 2);
  EXPECT_LE(asked, 2 * trials);
}

TEST_F(DietCodeBaselinesTest, TheSameQuestionGetsTheSameAnswer) {
  for (const char *mode : modes) {
    SearchProblem p = problem(dense, mode);
    std::string texts[2];
    for (std::string &text : texts) {
      llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
      ASSERT_TRUE(static_cast<bool>(plan));
      for (const KernelFamily &family : plan->families)
        text += family.str();
      for (const SearchStatistic &found : plan->statistics)
        text += found.name + std::to_string(found.value);
    }
    EXPECT_EQ(texts[0], texts[1]) << mode;
  }
}

TEST_F(DietCodeBaselinesTest, PerShapeTakesDivisorsOfEachShape) {
  Workload rows = Workload::matmul({16, 2048, 16}, SizeRange::fixed(2304),
                                   SizeRange::fixed(768));
  llvm::Expected<Plan> plan =
      solve(problem(rows, "per-shape"), *findSearchStrategy("dietcode"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_EQ(*statistic(*plan, "searches"), 8);
  EXPECT_EQ(*statistic(*plan, "without_divisors"), 0);
  // Each search has one round: there are no trials for more.
  EXPECT_EQ(*statistic(*plan, "micro_kernels"), 8 * 64);
  for (const ShapePrediction &prediction : plan->predictions)
    for (auto [extent, tile] : llvm::zip_equal(
             prediction.shape, plan->families[prediction.family].tiles.front()))
      EXPECT_EQ(extent % tile, 0) << prediction.shape[0];
}

TEST_F(DietCodeBaselinesTest, LoopPartitioningPadsLessThanARowOfThreads) {
  llvm::Expected<Plan> plan = solve(problem(dense, "loop-partitioning"),
                                    *findSearchStrategy("dietcode"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_EQ(*statistic(*plan, "partitioned"), 1);
  const KernelFamily &family =
      plan->families[plan->familyFor({128, 2304, 768})];
  ASSERT_EQ(family.tiles.size(), 2u);
  int64_t granule = family.path().heightGranule(family);
  for (int64_t rows = 1; rows <= 128; ++rows) {
    Partition partition = partitionShape(family, {rows, 2304, 768});
    EXPECT_LT(partition.padded, granule) << rows;
    // As many full tiles as there can be.
    EXPECT_EQ(partition.second, ceilBy(rows, granule) / family.highHeight());
  }
}

TEST_F(DietCodeBaselinesTest, ABucketComputesItsEndForEverySize) {
  SearchProblem p = problem(dense, "bucket");
  p.options.own["buckets"] = int64_t(4);
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_EQ(*statistic(*plan, "not_padded"), 0);
  ASSERT_EQ(plan->entries.size(), 4u);
  for (int64_t rows = 1; rows <= 128; ++rows) {
    const KernelFamily &family =
        plan->families[plan->familyFor({rows, 2304, 768})];
    int64_t computed = rows + partitionShape(family, {rows, 2304, 768}).padded;
    EXPECT_GE(computed, ceilBy(rows, 32)) << rows;
  }
}

TEST_F(DietCodeBaselinesTest, ABucketPadsAllAxesOfItsSymbol) {
  SizeRange t{1, 64};
  Workload nt = Workload::batchMatmul(SizeRange::fixed(12), t, t,
                                      SizeRange::fixed(64), false, true);
  nt.axes[0].symbols = nt.axes[1].symbols = {"T"};
  SearchProblem p = problem(nt, "bucket");
  p.options.maxKernels = 64;
  p.options.own["buckets"] = int64_t(4);
  llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_EQ(*statistic(*plan, "not_padded"), 0);
  for (int64_t size = 1; size <= 64; ++size) {
    int64_t end = ceilBy(size, 16);
    Shape shape = {size, size, 64, 12};
    // Rows of some sizes are not aligned.
    const KernelFamily &family =
        plan->families[plan->familyFor(shape, alignmentOf(nt, shape))];
    for (unsigned axis : {0, 1})
      EXPECT_GE(ceilBy(size, family.tiles.front()[axis]), end) << size;
  }
}

TEST_F(DietCodeBaselinesTest, CopiesCountOperandsThatArePadded) {
  // X: 60 × 768 to 64 × 768; O: 60 × 2304 of 64 × 2304; W stays.
  PaddingCopies copies = paddingCopies(dense, {60, 2304, 768}, {64, 2304, 768});
  EXPECT_EQ(copies.kernels, 2);
  EXPECT_EQ(copies.bytes, 4.0 * ((60 + 64) * 768 + 2 * 60 * 2304));
  EXPECT_EQ(paddingCopies(dense, {64, 2304, 768}, {64, 2304, 768}).kernels, 0);
  llvm::Expected<Plan> plan =
      solve(problem(dense, "global-padding"), *findSearchStrategy("dietcode"));
  ASSERT_TRUE(static_cast<bool>(plan));
  EXPECT_GT(*statistic(*plan, "copies_us"), 1);
  EXPECT_EQ(plan->entries.size(), 1u);
}

TEST_F(DietCodeBaselinesTest, NamedSizesWeighByTheHistogram) {
  auto copied = [&](double ofOne, double ofAll) {
    // Size 100 belongs to 1, the named one below it.
    dense.axes[0].weights = {{1, ofOne / 2}, {100, ofOne / 2}, {128, ofAll}};
    SearchProblem p = problem(dense, "global-padding");
    p.options.own["instance-sizes"] = std::string("1,128,128,500");
    llvm::Expected<Plan> plan = solve(p, *findSearchStrategy("dietcode"));
    if (!plan) {
      ADD_FAILURE() << llvm::toString(plan.takeError());
      return 0.0;
    }
    EXPECT_EQ(*statistic(*plan, "instances"), 2);
    return *statistic(*plan, "copied_bytes");
  };
  // Of the largest size nothing is copied.
  double often = copied(3, 1), seldom = copied(1, 3);
  EXPECT_GT(seldom, 0);
  EXPECT_NEAR(often / seldom, 3, 0.01);
}

TEST(DietCodeBucketsTest, HaveEqualWidthAndCoverTheAxis) {
  auto ends = [](SizeRange range, int64_t count) {
    Axis axis;
    axis.range = range;
    return bucketEnds(axis, count);
  };
  EXPECT_EQ(ends({1, 128}, 4), (std::vector<int64_t>{32, 64, 96, 128}));
  EXPECT_EQ(ends({1, 10}, 4), (std::vector<int64_t>{3, 6, 9, 10}));
  EXPECT_EQ(ends({16, 2048, 16}, 2), (std::vector<int64_t>{1024, 2048}));
  EXPECT_EQ(ends(SizeRange::fixed(7), 5), (std::vector<int64_t>{7}));
  EXPECT_EQ(ends({0, 3}, 1), (std::vector<int64_t>{3}));
}

//===----------------------------------------------------------------------===//
// Transfer
//===----------------------------------------------------------------------===//

namespace {
class DietCodeTransferTest : public DietCodeBaselinesTest {
protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("dietcode", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const {
    return (folder + "/" + name).str();
  }
  /// By the cost model.
  static DietCodeTuner::Timer timerOf(const SearchProblem &problem) {
    return [&problem](llvm::ArrayRef<MeasurementRequest> requests) {
      std::vector<llvm::Expected<double>> times;
      for (const MeasurementRequest &request : requests)
        times.push_back(-problem.predict(request.family, request.shape).score);
      return times;
    };
  }
  /// A model that learned from so many trials on a device.
  LearnedModel learn(int64_t trials, const LearnedModel *source = nullptr) {
    SearchProblem p = problem(dense, "joint");
    DietCodeOptions own;
    own.trials = trials;
    DietCodeTuner tuner(p, *simt, shapes, own, timerOf(p), true, 3);
    if (source)
      tuner.transferFrom(*source);
    if (llvm::Error error = tuner.run())
      ADD_FAILURE() << llvm::toString(std::move(error));
    best = 0;
    for (const TunedKernel &kernel : tuner.kernels())
      best = std::max(best, tuner.score(kernel, shapes.back().shape));
    llvm::Expected<LearnedModel> model = tuner.learned("made up");
    if (!model) {
      ADD_FAILURE() << llvm::toString(model.takeError());
      return {};
    }
    return std::move(*model);
  }
  std::string errorOf(llvm::StringRef text) {
    std::ofstream(path("bad.json")) << text.str();
    return llvm::toString(
        readLearnedModel(path("bad.json"), DietCodeTuner::featureNames())
            .takeError());
  }
  std::string textOf(const LearnedModel &model) {
    EXPECT_FALSE(llvm::errorToBool(writeLearnedModel(
        path("model.json"), model, DietCodeTuner::featureNames())));
    std::ostringstream text;
    text << std::ifstream(path("model.json")).rdbuf();
    return text.str();
  }

  llvm::SmallString<64> folder;
  std::vector<WeightedShape> shapes = {
      {{1, 2304, 768}, 1}, {{53, 2304, 768}, 1}, {{128, 2304, 768}, 1}};
  /// The best result of the last search.
  double best = 0;
};
} // namespace

TEST_F(DietCodeTransferTest, AFileGivesTheSameModel) {
  LearnedModel model = learn(128);
  EXPECT_EQ(model.device, "v100");
  textOf(model);
  llvm::Expected<LearnedModel> read =
      readLearnedModel(path("model.json"), DietCodeTuner::featureNames());
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->features, model.features);
  EXPECT_EQ(read->throughputs, model.throughputs);
  size_t width = DietCodeTuner::featureNames().size();
  for (size_t i = 0; i < model.size(); ++i) {
    auto row = llvm::ArrayRef(model.features).slice(i * width, width);
    EXPECT_NEAR(read->predict(row), model.predict(row), 1e-6);
  }
}

TEST_F(DietCodeTransferTest, FilesThatDoNotFitAreRefused) {
  auto replaced = [&](std::string text, const std::string &from,
                      const std::string &to) {
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  std::string text = textOf(learn(64));
  auto expectError = [&](const std::string &from, const std::string &to,
                         const std::string &error) {
    std::string found = errorOf(replaced(text, from, to));
    EXPECT_NE(found.find(error), std::string::npos) << found;
  };
  EXPECT_NE(errorOf("{").find("expected JSON"), std::string::npos);
  EXPECT_NE(errorOf(text.substr(0, text.size() / 2)).find("expected JSON"),
            std::string::npos);
  EXPECT_NE(errorOf("[]").find("expected an object with"), std::string::npos);
  expectError("format_version\":1", "format_version\":2",
              "field 'format_version': expected 1");
  expectError("\"block_n\"", "\"block_x\"",
              "feature 1: expected block_n, but got block_x");
  expectError(",\"device_l2_mib\"", "",
              "expected device_l2_mib, but got nothing");
  expectError("\"throughput\":", "\"throughput\":-",
              "row 0: expected a through");
  expectError("\"rows\":[{\"features\":[", "\"rows\":[{\"features\":[1,",
              "row 0: expected 'features'");
  expectError("\"ensembles\":[{", "\"ensembles\":[{},{", "model of XGBoost");
  EXPECT_NE(llvm::toString(readLearnedModel(path("none.json"),
                                            DietCodeTuner::featureNames())
                               .takeError())
                .find("cannot be read"),
            std::string::npos);
  EXPECT_TRUE(llvm::errorToBool(writeLearnedModel(
      path("no/folder.json"), learn(64), DietCodeTuner::featureNames())));
}

TEST_F(DietCodeTransferTest, SourceRowsHaveATenthOfTheWeight) {
  EXPECT_DOUBLE_EQ(sourceWeight(100, 100), 0.1);
  EXPECT_DOUBLE_EQ(sourceWeight(64, 640), 0.01);
  LearnedModel model;
  model.features = {1, 2, 3};
  model.throughputs = {4e12, 8e12, 2e12};
  TrainingRows rows;
  rows.numFeatures = 1;
  appendRows(model, nullptr, 0.5, rows);
  EXPECT_EQ(rows.features, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(rows.weights, (std::vector<float>{0.25, 0.5, 0.125}));
  EXPECT_FLOAT_EQ(rows.labels[1], 0);
  EXPECT_FLOAT_EQ(rows.labels[2], std::log(0.25f));
}

TEST_F(DietCodeTransferTest, AModelServesFromTheFirstRound) {
  LearnedModel source = learn(256);
  device = *loadDeviceSpec("a100");
  learn(64);
  double withoutSource = best;
  LearnedModel model = learn(64, &source);
  EXPECT_GT(best, withoutSource);
  EXPECT_EQ(model.texts.size(), 2u);
  EXPECT_EQ(model.size(), 64u);
}
