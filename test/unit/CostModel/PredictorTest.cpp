//===- PredictorTest.cpp - Files of predictors, and the model learned -----===//
#include "FTuner/CostModel/Predictor.h"
#include "../DamagedText.h"
#include "../RandomSeed.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace ftuner;

namespace {
/// A file in its parts: the header, and the numbers behind it.
struct PredictorFile {
  llvm::json::Object header;
  std::string numbers;

  explicit PredictorFile(llvm::StringRef content) {
    auto [line, blob] = content.split('\n');
    header = std::move(*llvm::cantFail(llvm::json::parse(line)).getAsObject());
    numbers = blob.str();
  }
  /// Position of an array's first number, and how many it has.
  std::pair<size_t, size_t> find(llvm::StringRef name) const {
    size_t first = 0;
    for (const llvm::json::Value &value : *header.getArray("arrays")) {
      const llvm::json::Array &entry = *value.getAsArray();
      size_t count = 1;
      for (const llvm::json::Value &size : *entry[1].getAsArray())
        count *= *size.getAsInteger();
      if (entry[0].getAsString() == name)
        return {first, count};
      first += count;
    }
    return {0, 0};
  }
  void set(llvm::StringRef name, size_t index, float value) {
    std::memcpy(numbers.data() + (find(name).first + index) * sizeof(float),
                &value, sizeof(float));
  }
  /// With the hash of the numbers as they are now.
  std::string content() {
    std::array<uint8_t, 32> digest =
        llvm::SHA256::hash(llvm::arrayRefFromStringRef(numbers));
    header["sha256"] = llvm::toHex(digest, /*LowerCase=*/true);
    std::string text;
    llvm::raw_string_ostream(text)
        << llvm::json::Value(llvm::json::Object(header)) << '\n'
        << numbers;
    return text;
  }
};

class PredictorTest : public ::testing::Test {
protected:
  void SetUp() override {
    auto buffer =
        llvm::MemoryBuffer::getFile(FTUNER_PREDICTORS "/h200.predictor");
    ASSERT_TRUE(static_cast<bool>(buffer));
    content = (*buffer)->getBuffer().str();
  }
  /// The error of reading a changed file.
  std::string errorAfter(const std::function<void(PredictorFile &)> &change) {
    PredictorFile file(content);
    change(file);
    return errorOf(file.content());
  }
  static std::string errorOf(llvm::StringRef content) {
    auto read = Predictor::parse(content, "some.predictor");
    return read ? "" : llvm::toString(read.takeError());
  }
  std::string content;
};

} // namespace

TEST_F(PredictorTest, AgreesWithPyTorch) {
  auto read = Predictor::parse(content, "h200");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_LT((*read)->worstGoldenError(), 1e-5);
  EXPECT_TRUE((*read)->corrects());
  EXPECT_EQ((*read)->hash().size(), 64u);
  EXPECT_GT((*read)->devices().at("h200"), 1000);
  std::optional<PredictorDeviation> deviation = (*read)->deviation("h200");
  ASSERT_TRUE(deviation.has_value());
  EXPECT_GT(deviation->withinShape, 0.01);
  EXPECT_LT(deviation->withinShape, 0.3);
  EXPECT_EQ((*read)->deviation("v100"), std::nullopt);
}

TEST_F(PredictorTest, RefusesWhatIsDamaged) {
  auto expectError = [&](llvm::StringRef text,
                         const std::function<void(PredictorFile &)> &change) {
    std::string error = errorAfter(change);
    EXPECT_TRUE(llvm::StringRef(error).starts_with(
        "'some.predictor' is no predictor: "))
        << error;
    EXPECT_TRUE(llvm::StringRef(error).contains(text)) << error;
  };
  EXPECT_EQ(errorAfter([](PredictorFile &) {}), "");
  expectError("of version 2, but got 'ftuner-predictor' of version 3",
              [](auto &file) { file.header["version"] = 3; });
  expectError("of version 2, but got 'x' of version 2",
              [](auto &file) { file.header["format"] = "x"; });
  expectError("but got null of version 2",
              [](auto &file) { file.header.erase("format"); });
  expectError("but got 'ftuner-predictor-no-structure' of version 2, a "
              "baseline of 'ftuner learn evaluate'",
              [](auto &file) {
                file.header["format"] = "ftuner-predictor-no-structure";
              });
  expectError("array 'decoder.0.bias' occurs twice", [](auto &file) {
    file.header.getArray("arrays")->push_back(
        llvm::json::Array{"decoder.0.bias", llvm::json::Array{1}});
    file.numbers += "1234";
  });
  expectError("ends within array",
              [](auto &file) { file.numbers.resize(file.numbers.size() - 4); });
  expectError("bytes of numbers", [](auto &file) { file.numbers += "1234"; });
  expectError("no finite number", [](auto &file) {
    file.set("decoder.0.weight", 3, std::numeric_limits<float>::quiet_NaN());
  });
  expectError("golden row", [](auto &file) {
    file.set("encoder.layers.1.linear1.bias", 0, 1e3f);
  });
  expectError("golden row",
              [](auto &file) { file.header["positions"] = false; });
  expectError("expected deviations above 0",
              [](auto &file) { file.set("feature_deviation", 5, 0); });
  expectError("heads divide", [](auto &file) {
    (*file.header.getObject("architecture"))["heads"] = 5;
  });
  expectError("numbers, but got", [](auto &file) {
    (*file.header.getObject("architecture"))["feed_forward"] = 64;
  });
  expectError("it has no array 'heads.9.1.weight'", [](auto &file) {
    file.header["statements"] = llvm::json::Array{9};
    for (llvm::json::Value &value : *file.header.getArray("arrays"))
      if ((*value.getAsArray())[0].getAsString() == "feature_ranges.5") {
        (*value.getAsArray())[0] = "feature_ranges.9";
        (*value.getAsArray())[1] = llvm::json::Array{2, 9, 164};
      }
    file.numbers.resize(file.numbers.size() + 2 * 4 * 164 * 4);
  });
  expectError("figures of a device", [](auto &file) {
    (*file.header.getArray("device_figures"))[0] = "other";
  });
  expectError("expected 'golden_error'",
              [](auto &file) { file.header["golden_error"] = 0.5; });
  expectError("expected golden rows",
              [](auto &file) { file.header.erase("golden"); });
  expectError("range of labels",
              [](auto &file) { file.header.erase("label_range"); });
  expectError("labels: expected one of", [](auto &file) {
    (*file.header.getObject("labels"))["kind"] = "other";
  });
  expectError(
      "devices: expected the rows of 'h200' as a whole number from 0 "
      "on, but got -1",
      [](auto &file) { (*file.header.getObject("devices"))["h200"] = -1; });
  expectError("but got \"many\"", [](auto &file) {
    (*file.header.getObject("devices"))["h200"] = "many";
  });
  expectError("deviations: expected 'rows' of device 'h200'", [](auto &file) {
    (*file.header.getObject("deviations")->getObject("h200"))["rows"] = 1.5;
  });
  for (const char *key : {"overall", "between"}) {
    auto set = [&](double value) {
      return [=](PredictorFile &file) {
        (*file.header.getObject("deviations")->getObject("h200"))[key] = value;
      };
    };
    std::string wanted =
        "deviations: expected '" + std::string(key) + "' of device 'h200'";
    expectError(wanted, set(-1));
    // What JSON has no number for.
    PredictorFile file(content);
    set(12345.5)(file);
    std::string text = file.content();
    text.replace(text.find("12345.5"), 7, "1e99999");
    EXPECT_TRUE(llvm::StringRef(errorOf(text)).contains(wanted))
        << errorOf(text);
  }
  expectError("golden rows: expected 'ordering' as whole numbers from 0 on, "
              "but got -1",
              [](auto &file) {
                (*(*(*(*file.header.getArray("golden"))[0].getAsArray())[0]
                        .getAsObject())["ordering"]
                      .getAsArray())[0] = -1;
              });
  expectError("array 'feature_ranges.5': expected least features up to the "
              "greatest ones, but got",
              [](auto &file) { file.set("feature_ranges.5", 7, 1e6f); });
  // A result that overflows is not a prediction.
  expectError("but got nan", [](auto &file) {
    size_t count = file.find("decoder.0.weight").second;
    for (size_t i = 0; i < count; ++i)
      file.set("decoder.0.weight", i, std::numeric_limits<float>::max());
  });
  EXPECT_TRUE(
      llvm::StringRef(errorOf("{\"a\":" + std::string(2000000, '[') + "\n"))
          .contains("expected at most 16 levels of nesting"));
  // The numbers changed, and the hash did not.
  std::string changed = content;
  changed.back() ^= 1;
  EXPECT_TRUE(llvm::StringRef(errorOf(changed)).contains("hash"));
  for (llvm::StringRef other :
       {"", "{", "{}\n", "text\n", "[1]\n", "{\"a\":\n"})
    EXPECT_TRUE(llvm::StringRef(errorOf(other)).contains("is no predictor"));
  for (size_t size = 0; size < 2000; size += 97)
    EXPECT_NE(errorOf(llvm::StringRef(content).take_front(size)), "");
}

TEST_F(PredictorTest, NoDamageOfTheHeaderCrashes) {
  RandomSeed seed;
  std::mt19937 random(seed);
  size_t end = content.find('\n');
  std::string numbers = content.substr(end);
  for (int i = 0; i < 200; ++i) {
    std::string header = damage(content.substr(0, end), random);
    auto read = Predictor::parse(header + numbers, "some.predictor");
    if (!read)
      EXPECT_TRUE(llvm::StringRef(llvm::toString(read.takeError()))
                      .starts_with("'some.predictor' is no predictor: "))
          << header;
    else
      EXPECT_LE((*read)->worstGoldenError(), Predictor::goldenError) << header;
  }
}

TEST_F(PredictorTest, FilesThatCannotBeReadAreNamed) {
  auto errorFor = [](llvm::StringRef name) {
    auto read = loadPredictor(name);
    return read ? std::string() : llvm::toString(read.takeError());
  };
  EXPECT_TRUE(llvm::StringRef(errorFor("nonsense")).contains("one of h200"));
  EXPECT_TRUE(llvm::StringRef(errorFor("no/such")).contains("cannot read"));
  EXPECT_TRUE(llvm::StringRef(errorFor("/")).contains("a regular file"));
  EXPECT_EQ(errorFor("h200"), "");
  llvm::Error error = findCostModel("learned")
                          ->load({{"learned-model", std::string("nonsense")}})
                          .takeError();
  EXPECT_TRUE(llvm::StringRef(llvm::toString(std::move(error)))
                  .starts_with("option --learned-model: unknown predictor"));
  EXPECT_EQ(llvm::cantFail(findCostModel("learned")->load({})), nullptr);
}

namespace {
class LearnedTest : public ::testing::Test {
protected:
  void SetUp() override {
    device = llvm::cantFail(loadDeviceSpec("h200"));
    options.calibration = defaultCalibration(device);
    family = simtFamily({4, 32, 2, 4}, {7, 8}, 4, 16);
    predictor = llvm::cantFail(loadPredictor("h200"));
  }
  Program program() const { return {&family, partitionShape(family, shape)}; }
  /// The built-in predictor, with another header.
  static std::shared_ptr<const Predictor>
  changed(const std::function<void(PredictorFile &)> &change) {
    auto buffer =
        llvm::MemoryBuffer::getFile(FTUNER_PREDICTORS "/h200.predictor");
    PredictorFile file((*buffer)->getBuffer());
    change(file);
    return llvm::cantFail(Predictor::parse(file.content(), "some.predictor"));
  }
  static void adaptTo(PredictorFile &file, llvm::StringRef device,
                      int64_t rows) {
    (*file.header.getObject("devices"))[device] = rows;
  }
  std::unique_ptr<CostEvaluator> evaluator(llvm::StringRef model) {
    return findCostModel(model)->createEvaluator(workload, device, options);
  }
  static double figure(const CostBreakdown &breakdown, llvm::StringRef name) {
    for (llvm::ArrayRef<CostTerm> terms :
         {llvm::ArrayRef(breakdown.terms), llvm::ArrayRef(breakdown.figures)})
      for (const CostTerm &term : terms)
        if (term.name == name)
          return term.value;
    return std::numeric_limits<double>::quiet_NaN();
  }

  DeviceSpec device;
  Workload workload = Workload::matmul({1, 4096}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  KernelFamily family;
  Shape shape = {212, 2304, 768};
  CostModelOptions options;
  std::shared_ptr<const Predictor> predictor;
};
} // namespace

TEST_F(LearnedTest, CorrectsLatency) {
  CostBreakdown byLatency = evaluator("latency")->evaluate(shape, program());
  CostBreakdown learned = evaluator("learned")->evaluate(shape, program());
  EXPECT_EQ(figure(learned, "latency_time"), -byLatency.score);
  EXPECT_NE(learned.score, byLatency.score);
  EXPECT_NEAR(learned.score, byLatency.score - figure(learned, "correction"),
              1e-9);
  // By what the predictor says of the trees.
  PredictorProgram trees = predictorProgram(workload, program(), shape, device);
  double ratio = 0;
  predictor->predict({&trees}, predictor->encodeDevice(latencyDevice(device)),
                     ratio);
  EXPECT_NEAR(learned.score, ratio * byLatency.score, 1e-9);
}

TEST_F(LearnedTest, NoProgramChangesAnother) {
  std::vector<KernelFamily> families;
  for (int64_t rows = 1; rows <= 8; ++rows)
    for (int64_t columns : {1, 2, 4, 8})
      families.push_back(simtFamily({8, 16, columns, 2}, {rows}, 4, 16));
  std::vector<Program> programs;
  for (const KernelFamily &family : families)
    programs.push_back({&family, partitionShape(family, shape)});
  std::vector<double> scores(programs.size());
  std::vector<const FamilyCosts *> costs(programs.size());
  evaluator("learned")->scoreAll(programs, costs, shape, scores);
  for (size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(scores[i], evaluator("learned")->score(shape, programs[i]));
}

TEST_F(LearnedTest, UnknownProgramsHaveTheTimeOfLatency) {
  // A thousand times longer than what was measured.
  workload = Workload::matmul({1, 1 << 20}, SizeRange::fixed(1 << 20),
                              SizeRange::fixed(1 << 20));
  shape = {1 << 20, 1 << 20, 1 << 20};
  PredictorProgram trees = predictorProgram(workload, program(), shape, device);
  EXPECT_GT(predictor->unfamiliarShare(trees), Predictor::maxUnfamiliarShare);
  trees.front().ordering.resize(3);
  EXPECT_EQ(predictor->unknownIn(trees), "3 statements");
  std::unique_ptr<CostEvaluator> learned = evaluator("learned");
  EXPECT_EQ(learned->score(shape, program()),
            evaluator("latency")->score(shape, program()));
  ASSERT_EQ(learned->remarks().size(), 1u);
  EXPECT_TRUE(llvm::StringRef(learned->remarks()[0])
                  .starts_with("1 of 1 programs have the time of 'latency'"));
}

TEST_F(LearnedTest, SaysWhatItWasTrainedOn) {
  EXPECT_TRUE(evaluator("learned")->remarks().empty());
  EXPECT_NE(evaluator("learned")->confidence(-10, -11)->probability,
            evaluator("latency")->confidence(-10, -11)->probability);
  device = llvm::cantFail(loadDeviceSpec("v100"));
  std::vector<std::string> lines = evaluator("learned")->remarks();
  // These constants are of another card, too.
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(llvm::StringRef(lines[0]).contains("trained on h200, and not on "
                                                 "v100"));
  const CostModel &model = *findCostModel("learned");
  EXPECT_EQ(model.calibrationName(options),
            options.calibration.name + "+predictor-" +
                predictor->hash().take_front(12).str());
  EXPECT_EQ(model.prefilter(options)->model, findCostModel("latency"));
  EXPECT_EQ(model.prefilter(options)->programs, 64);
  options.own = {{"learned-programs", int64_t(5)}};
  EXPECT_EQ(model.prefilter(options)->programs, 5);
  EXPECT_FALSE(findCostModel("latency")->prefilter(options).has_value());
}

TEST_F(LearnedTest, SaysWhatItWasAdaptedToWithoutTimes) {
  options.loaded[findCostModel("learned")] =
      changed([](PredictorFile &file) { adaptTo(file, "v100", 0); });
  device = llvm::cantFail(loadDeviceSpec("v100"));
  options.calibration = defaultCalibration(device);
  std::vector<std::string> lines = evaluator("learned")->remarks();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "cost model 'learned' was trained on h200, and adapted "
                      "to v100 without times: nothing says how far it is off "
                      "there");
  device = llvm::cantFail(loadDeviceSpec("a100"));
  options.calibration = defaultCalibration(device);
  lines = evaluator("learned")->remarks();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(llvm::StringRef(lines[0]).contains("was trained on h200, and not "
                                                 "on a100"))
      << lines[0];
  options.loaded[findCostModel("learned")] =
      changed([](PredictorFile &file) { adaptTo(file, "a100", 9); });
  EXPECT_TRUE(evaluator("learned")->remarks().empty());
}

TEST_F(LearnedTest, SaysWhoseConstantsItCorrects) {
  options.calibration = globalCalibration();
  std::vector<std::string> lines = evaluator("learned")->remarks();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "cost model 'learned' corrects 'latency' with the "
                      "constants of calibration '" +
                          defaultCalibration(device).name + "', and not of '" +
                          globalCalibration().name +
                          "': nothing says how far it is off with these");
}

namespace {
/// Two boosted trees by hand, which predict microseconds: the first asks for
/// the first feature, the second for the first figure of the device.
class ForestTest : public PredictorTest {
protected:
  /// Input, threshold, left and right node, value.
  using Nodes = std::vector<std::array<float, 5>>;
  static constexpr float figure = kNumProgramFeatures;
  Nodes nodes = {{0, 2, 1, 2, 0},      {-1, 0, 0, 0, 10}, {-1, 0, 0, 0, 20},
                 {figure, 5, 2, 1, 0}, {-1, 0, 0, 0, 3},  {-1, 0, 0, 0, 5}};

  std::vector<int64_t> statements = {1};
  double deviation = 1;
  float greatest = 9;

  struct Row {
    float feature, figure;
  };
  /// The file, with these golden rows of one statement and what they give.
  PredictorFile file(llvm::ArrayRef<std::pair<Row, float>> golden) const {
    PredictorFile result(content);
    llvm::json::Object &header = result.header;
    header = llvm::json::Object{
        {"format", "ftuner-boosted-trees"},
        {"version", 2},
        {"base", 0.5},
        {"statements", llvm::json::Array(statements)},
        {"device_figures",
         llvm::json::Array(*header.getArray("device_figures"))},
        {"labels", llvm::json::Object{{"kind", "none"},
                                      {"values", llvm::json::Array{}},
                                      {"mean", 0},
                                      {"deviation", deviation},
                                      {"shift", 0},
                                      {"least", 1e-3},
                                      {"greatest", 1e12}}},
        {"corrects", false},
        {"devices", llvm::json::Object{{"h200", 4}, {"v100", 4}}},
        {"deviations", llvm::json::Object{}},
        {"label_range", llvm::json::Array{1, 100}}};
    llvm::json::Array arrays, rows;
    result.numbers.clear();
    auto add = [&](llvm::StringRef name, std::vector<int64_t> shape,
                   llvm::ArrayRef<float> values) {
      arrays.push_back(llvm::json::Array{name.str(), llvm::json::Array(shape)});
      result.numbers.append(reinterpret_cast<const char *>(values.data()),
                            values.size() * sizeof(float));
    };
    std::vector<float> flat;
    for (const auto &node : nodes)
      llvm::append_range(flat, node);
    add("nodes", {2, static_cast<int64_t>(nodes.size() / 2), 5}, flat);
    for (int64_t count : statements) {
      std::vector<float> ranges(2 * count * kNumProgramFeatures);
      std::fill(ranges.begin() + ranges.size() / 2, ranges.end(), greatest);
      add("feature_ranges." + std::to_string(count),
          {2, count, int64_t(kNumProgramFeatures)}, ranges);
    }
    auto count = static_cast<int64_t>(golden.size());
    std::vector<float> features, figures, values;
    for (const auto &[row, value] : golden) {
      rows.push_back(llvm::json::Array{llvm::json::Object{
          {"blocks", 1}, {"ordering", llvm::json::Array{0}}}});
      features.push_back(row.feature);
      features.resize(features.size() + kNumProgramFeatures - 1);
      figures.push_back(row.figure);
      figures.resize(figures.size() + numFigures - 1);
      values.push_back(value);
    }
    add("golden_features", {count, int64_t(kNumProgramFeatures)}, features);
    add("golden_device", {count, int64_t(numFigures)}, figures);
    add("golden_values", {count}, values);
    header["arrays"] = std::move(arrays);
    header["golden"] = std::move(rows);
    return result;
  }
  std::string error() const {
    return errorOf(file({{{2, 5}, 0.5f + 10 + 5}}).content());
  }
  static constexpr size_t numFigures = 14;
};
} // namespace

TEST_F(ForestTest, GoesLeftUpToTheThreshold) {
  std::pair<Row, float> golden[] = {{{2, 5}, 0.5f + 10 + 5},
                                    {{2.5f, 5}, 0.5f + 20 + 5},
                                    {{1, 5.5f}, 0.5f + 10 + 3},
                                    {{3, 6}, 0.5f + 20 + 3}};
  auto read = Predictor::parse(file(golden).content(), "some.predictor");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_FALSE((*read)->corrects());
  EXPECT_LT((*read)->worstGoldenError(), 1e-7);
  // Of several statements and parts the mean, by blocks: (1 · 1 + 3 · 3) / 4.
  PredictorProgram program;
  for (float value : {1.0f, 3.0f}) {
    PredictorTree &tree = program.emplace_back();
    tree.features.emplace_back().fill(0);
    tree.features[0][0] = value;
    tree.ordering = {0};
    tree.blocks = value;
  }
  std::vector<float> figures(numFigures);
  double found = 0;
  (*read)->predict({&program}, figures, found);
  EXPECT_EQ(found, 0.5 + 20 + 5);
  std::swap(program[0].blocks, program[1].blocks); // 1.5
  (*read)->predict({&program}, figures, found);
  EXPECT_EQ(found, 0.5 + 10 + 5);
  // Another golden value is refused.
  golden[1].second += 1;
  EXPECT_TRUE(llvm::StringRef(errorOf(file(golden).content()))
                  .contains("golden row 1: expected 2.65"));
}

TEST_F(ForestTest, RefusesDamagedNodes) {
  EXPECT_EQ(error(), "");
  auto errorWith = [&](size_t node, size_t field, float value) {
    Nodes whole = nodes;
    nodes[node][field] = value;
    std::string text = error();
    nodes = whole;
    return text;
  };
  const std::string wrong = "'some.predictor' is no predictor: expected nodes "
                            "whose children come behind them";
  EXPECT_EQ(errorWith(0, 2, 0), wrong);
  EXPECT_EQ(errorWith(0, 3, 3), wrong);
  EXPECT_EQ(errorWith(3, 2, -1), wrong);
  EXPECT_EQ(errorWith(0, 2, 1.5f), wrong);
  EXPECT_EQ(errorWith(3, 0, figure + numFigures), wrong);
  EXPECT_EQ(errorWith(0, 0, 0.5f), wrong);
  PredictorFile incomplete = file({{{2, 5}, 15.5f}});
  (*(*incomplete.header.getArray("arrays"))[0].getAsArray())[0] = "other";
  EXPECT_TRUE(llvm::StringRef(errorOf(incomplete.content()))
                  .contains("expected an array 'nodes'"));
  incomplete = file({{{2, 5}, 15.5f}});
  incomplete.header.erase("base");
  EXPECT_TRUE(llvm::StringRef(errorOf(incomplete.content()))
                  .contains("expected 'base'"));
}

TEST_F(ForestTest, WhatOverflowsHasTheTimeOfLatency) {
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("h200"));
  Workload workload = Workload::matmul({1, 4096}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  Shape shape = {212, 2304, 768};
  KernelFamily family = simtFamily({4, 32, 2, 4}, {7, 8}, 4, 16);
  Program program{&family, partitionShape(family, shape)};
  for (const PredictorTree &tree :
       predictorProgram(workload, program, shape, device))
    if (!llvm::is_contained(statements, int64_t(tree.ordering.size())))
      statements.push_back(tree.ordering.size());
  greatest = 1e6f;
  // Labels from 18 on overflow: golden rows have smaller ones, a device with
  // more than 2^5 SMs has larger ones.
  deviation = 1e307;
  nodes[4][4] = 30;
  auto read = Predictor::parse(file({{{2, 5}, 1e12f}}).content(), "some");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  CostModelOptions options;
  options.loaded[findCostModel("learned")] = *read;
  auto evaluator = [&](llvm::StringRef model) {
    return findCostModel(model)->createEvaluator(workload, device, options);
  };
  std::unique_ptr<CostEvaluator> learned = evaluator("learned");
  EXPECT_EQ(learned->score(shape, program),
            evaluator("latency")->score(shape, program));
  ASSERT_EQ(learned->remarks().size(), 1u);
  EXPECT_TRUE(llvm::StringRef(learned->remarks()[0])
                  .ends_with("with a prediction that is no finite number"))
      << learned->remarks()[0];
}
