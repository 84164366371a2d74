//===- BoostedTreesTest.cpp - Trees as XGBoost evaluates them -------------===//
#include "BoostedTrees.h"
#include "TreeTrainer.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace ftuner;

static std::string text(const llvm::json::Value &value) {
  std::string result;
  llvm::raw_string_ostream(result) << value;
  return result;
}

// Of version 3; the library of the tests' own training may be older.
TEST(BoostedTreesTest, PredictsWhatXgboost3Predicts) {
  auto file = llvm::MemoryBuffer::getFile(FTUNER_XGBOOST_MODEL);
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::json::Value root =
      llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
  const llvm::json::Object &object = *root.getAsObject();
  llvm::Expected<BoostedTrees> trees =
      BoostedTrees::parse(text(*object.get("model")));
  ASSERT_TRUE(static_cast<bool>(trees)) << llvm::toString(trees.takeError());
  EXPECT_EQ(trees->numTrees(), 8u);
  EXPECT_EQ(trees->numFeatures(), 4u);
  const llvm::json::Array &rows = *object.getArray("rows");
  int numUnknown = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<float> row;
    for (const llvm::json::Value &value : *rows[i].getAsArray()) {
      numUnknown += !value.getAsNumber();
      row.push_back(static_cast<float>(value.getAsNumber().value_or(
          std::numeric_limits<double>::quiet_NaN())));
    }
    double expected = *(*object.getArray("predictions"))[i].getAsNumber();
    EXPECT_NEAR(trees->predict(row), expected, 1e-6 * std::abs(expected));
  }
  EXPECT_GT(numUnknown, 3);
}

/// Rows of a function of three of five features, some of which are unknown.
static TrainingRows someRows(size_t count, uint64_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-2, 2);
  TrainingRows rows;
  rows.numFeatures = 5;
  for (size_t i = 0; i < count; ++i) {
    float x[5];
    for (float &value : x)
      value = draw(random);
    rows.labels.push_back(x[0] * x[1] + std::sin(3 * x[2]));
    rows.weights.push_back(1 + std::abs(x[3]));
    if (i % 7 == 0)
      x[4] = std::numeric_limits<float>::quiet_NaN();
    rows.features.insert(rows.features.end(), x, x + 5);
  }
  return rows;
}

TEST(TreeTrainerTest, TreesPredictWhatTheLibraryDoes) {
  auto trainer = TreeTrainer::open();
  ASSERT_TRUE(static_cast<bool>(trainer))
      << llvm::toString(trainer.takeError());
  TreeOptions options;
  options.maxRounds = 100;
  for (bool hasBase : {false, true}) {
    TrainingRows rows = someRows(500, 4);
    if (hasBase)
      rows.baseScores.assign(rows.size(), 0.25f);
    std::vector<float> expected;
    llvm::Expected<std::string> json =
        (*trainer)->trainJson(rows, options, &expected);
    ASSERT_TRUE(static_cast<bool>(json)) << llvm::toString(json.takeError());
    llvm::Expected<BoostedTrees> trees = BoostedTrees::parse(*json);
    ASSERT_TRUE(static_cast<bool>(trees)) << llvm::toString(trees.takeError());
    ASSERT_EQ(expected.size(), rows.size());
    // Base scores of rows take the place of the model's.
    std::vector<float> none(5, 0);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      llvm::ArrayRef<float> row = llvm::ArrayRef(rows.features).slice(5 * i, 5);
      float found = trees->predict(row);
      if (!hasBase)
        EXPECT_NEAR(found, expected[i], 1e-6 + 1e-6 * std::abs(expected[i]));
      double error = expected[i] - rows.labels[i];
      squares += error * error;
      sum += rows.labels[i] * rows.labels[i];
    }
    // They have learnt something.
    EXPECT_LT(squares, 0.05 * sum);
  }
}

TEST(TreeTrainerTest, TheSameRowsGiveTheSameTrees) {
  auto trainer = TreeTrainer::open();
  ASSERT_TRUE(static_cast<bool>(trainer))
      << llvm::toString(trainer.takeError());
  TreeOptions options;
  options.maxRounds = 20;
  TrainingRows rows = someRows(200, 8);
  EXPECT_EQ(llvm::cantFail((*trainer)->trainJson(rows, options)),
            llvm::cantFail((*trainer)->trainJson(rows, options)));
}

TEST(TreeTrainerTest, SaysWhichPackageIsMissing) {
  auto trainer = TreeTrainer::open("/nowhere/libxgboost.so");
  ASSERT_FALSE(static_cast<bool>(trainer));
  std::string why = llvm::toString(trainer.takeError());
  EXPECT_NE(why.find("libxgboost0"), std::string::npos) << why;
  EXPECT_NE(why.find("xgboost-cpu"), std::string::npos) << why;
  // A library, but another one.
  auto other = TreeTrainer::open("libm.so.6");
  ASSERT_FALSE(static_cast<bool>(other));
  why = llvm::toString(other.takeError());
  EXPECT_NE(why.find("from version 1.6 on"), std::string::npos) << why;
}

static std::string errorOf(llvm::StringRef json) {
  llvm::Expected<BoostedTrees> trees = BoostedTrees::parse(json);
  return trees ? "" : llvm::toString(trees.takeError());
}

/// A model of one tree with these lists.
static std::string model(llvm::StringRef left, llvm::StringRef right,
                         llvm::StringRef objective = "reg:squarederror",
                         llvm::StringRef base = "5E-1") {
  return (R"({"learner":{"learner_model_param":{"base_score":")" + base +
          R"(","num_feature":"2"},"objective":{"name":")" + objective +
          R"("},"gradient_booster":{"model":{"trees":[{"left_children":[)" +
          left + R"(],"right_children":[)" + right +
          R"(],"split_indices":[1,0,0],"split_conditions":[0.5,10,20],)"
          R"("default_left":[1,0,0]}]}}}})")
      .str();
}

TEST(BoostedTreesTest, WalksByHand) {
  llvm::Expected<BoostedTrees> trees =
      BoostedTrees::parse(model("1,-1,-1", "2,-1,-1"));
  ASSERT_TRUE(static_cast<bool>(trees)) << llvm::toString(trees.takeError());
  EXPECT_EQ(trees->predict({9, 0.4f}), 10.5f);
  EXPECT_EQ(trees->predict({9, 0.5f}), 20.5f);
  EXPECT_EQ(trees->predict({9, std::numeric_limits<float>::quiet_NaN()}),
            10.5f);
}

TEST(BoostedTreesTest, RefusesWhatItCannotEvaluate) {
  EXPECT_EQ(errorOf(model("1,-1,-1", "2,-1,-1")), "");
  for (const auto &[json, expected] :
       {std::pair(std::string("{"), "expected JSON"),
        std::pair(std::string("{}"), "expected 'learner'"),
        std::pair(model("1,-1,-1", "2,-1,-1", "binary:logistic"),
                  "expected the objective 'reg:squarederror'"),
        std::pair(model("1,-1,-1", "2,-1,-1", "reg:squarederror", "[1E0,2E0]"),
                  "expected a number as 'base_score'"),
        // Walks that would not end, or leave the tree.
        std::pair(model("0,-1,-1", "2,-1,-1"), "behind it"),
        std::pair(model("1,-1,-1", "3,-1,-1"), "behind it"),
        std::pair(model("1,-1", "2,-1,-1"), "expected 2 numbers")})
    EXPECT_NE(errorOf(json).find(expected), std::string::npos) << errorOf(json);
}
