//===- SearchSetupTest.cpp - From values of options to a search -----------===//
#include "FTuner/Search/Setup/SearchSetup.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace ftuner;

namespace {
const std::string kRoller = "roller", kSia = "sia", kExact = "exact";

std::string errorOf(const OptionValues &given) {
  llvm::Expected<SearchSetup> setup = makeSearchSetup(given);
  return setup ? "" : llvm::toString(setup.takeError());
}

std::vector<std::string> unread(const OptionValues &given) {
  return llvm::cantFail(makeSearchSetup(given)).unread;
}

TEST(SearchSetup, FindsWhatIsNamed) {
  llvm::Expected<SearchSetup> setup = makeSearchSetup(
      {{"strategy", kRoller}, {"cost-model", kSia}, {"zeta", int64_t(3)}});
  ASSERT_TRUE(static_cast<bool>(setup)) << llvm::toString(setup.takeError());
  EXPECT_EQ(setup->strategy->name(), "roller");
  EXPECT_EQ(setup->costModel->name(), "sia");
  EXPECT_EQ(setup->options.zeta, 3);
  EXPECT_FALSE(setup->calibration);
  EXPECT_TRUE(
      llvm::cantFail(makeSearchSetup({{"calibration", std::string("global")}}))
          .calibration);
}

TEST(SearchSetup, ErrorsNameTheOption) {
  EXPECT_EQ(errorOf({{"wings", int64_t(2)}}), "unknown option --wings");
  std::string names = llvm::join(
      llvm::map_range(costModels(),
                      [](const CostModel *model) { return model->name(); }),
      ", ");
  EXPECT_EQ(errorOf({{"cost-model", std::string("dice")}}),
            "option --cost-model: expected one of " + names +
                ", but got 'dice'");
  EXPECT_EQ(errorOf({{"max-kernels", int64_t(0)}}),
            "option --max-kernels: expected 1 to 1024, but got 0");
  EXPECT_EQ(errorOf({{"calibration", std::string("none.json")}})
                .find("option --calibration: cannot read calibration file"),
            0u);
}

TEST(SearchSetup, SaysWhyNothingCanBeMeasured) {
  const OptionValue two = int64_t(2);
  const std::string names = "option --measurer: expected 'gpu', "
                            "'recorded:FILE', 'command:CMD' or 'model:NAME', "
                            "but got ";
  auto text = [](const char *value) { return OptionValue(std::string(value)); };
  EXPECT_EQ(errorOf({{"measurer", text("stopwatch")}}), names + "'stopwatch'");
  EXPECT_EQ(errorOf({{"measurer", text("gpu:0")}}), names + "'gpu:0'");
  EXPECT_EQ(errorOf({{"measurer", text("recorded:")}}), names + "'recorded:'");
  EXPECT_EQ(errorOf({{"measurer", text("command: ")}}), names + "'command: '");
  for (const char *model : {"model:sia", "model:dice", "model:"})
    EXPECT_EQ(errorOf({{"measurer", text(model)}}),
              "option --measurer: expected a cost model that predicts time, "
              "but got '" +
                  std::string(model + 6) + "'");
  for (const char *good :
       {"gpu", "recorded:a b", "command:x: y", "model:latency", "cost-model"})
    EXPECT_EQ(errorOf({{"measurer", text(good)}, {"measure-top", two}}), "");
  EXPECT_EQ(errorOf({{"measure-top", two}}),
            "option --measurer: expected who measures what 'measure-top' or "
            "'measure' asks for");
  EXPECT_EQ(errorOf({{"measure", text("filter")}}),
            "option --measurer: expected who measures what 'measure-top' or "
            "'measure' asks for");
  EXPECT_EQ(errorOf({{"measure-top", two}, {"measurer", text("ptxas")}}),
            "option --measurer: expected a measurer of times for 'measure-top' "
            "or 'measure', but got 'ptxas'");
  EXPECT_EQ(errorOf({{"measure-unsure", 1.5}}),
            "option --measure-unsure: expected 0 to 1, but got 1.5");
  EXPECT_EQ(unread({{"measurer", text("gpu")}, {"measure-budget", two}}),
            (std::vector<std::string>{
                "option --measurer=gpu has no effect without 'measure-top' "
                "or 'measure'",
                "option --measure-budget=2 has no effect without "
                "'measure-top' or 'measure'"}));
}

TEST(SearchSetup, SaysWhatHasNoEffect) {
  EXPECT_TRUE(unread({}).empty());
  // Defaults of other strategies' options do not count as given.
  EXPECT_TRUE(unread({{"strategy", kRoller}, {"psi", 0.5}}).empty());
  EXPECT_TRUE(unread({{"psi", 0.75}, {"c0", 2.0}}).empty());
  auto lines = unread({{"strategy", kRoller}, {"psi", 0.75}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "option --psi=0.75 has no effect: it is read by "
                      "ftuner, but not by strategy 'roller' with cost model "
                      "'latency'");
  // A cost model reads what the strategy does not.
  EXPECT_TRUE(unread({{"strategy", kRoller}, {"cost-model", kSia}, {"c0", 2.0}})
                  .empty());
  EXPECT_EQ(
      unread({{"strategy", kRoller}, {"c0", 2.0}, {"pool", kExact}}).size(),
      2u);
  // Times are predicted whatever ranks.
  EXPECT_TRUE(
      unread({{"cost-model", kSia}, {"calibration", std::string("global")}})
          .empty());
}

TEST(SearchSetup, AModelThatStandsInReadsItsOptions) {
  OptionValues given = {{"learned-model", std::string("h200")},
                        {"measurer", std::string("model:learned")},
                        {"measure-top", int64_t(2)}};
  EXPECT_TRUE(unread(given).empty());
  // Nothing is ordered anew there.
  given["learned-programs"] = int64_t(9);
  auto lines = unread(given);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].find("option --learned-programs=9 has no effect"), 0u);
  given.erase("learned-programs");
  given["measurer"] = std::string("model:latency");
  EXPECT_EQ(unread(given).size(), 1u);
  given["measurer"] = std::string("model:learned");
  given.erase("measure-top");
  EXPECT_EQ(unread(given).size(), 2u);
}

TEST(SearchSetup, SaysWhatNoStageOfTheFilterReads) {
  const std::string paper = "paper", artifact = "artifact";
  EXPECT_TRUE(unread({{"max-candidates", int64_t(9)}, {"psi", 0.75}}).empty());
  EXPECT_EQ(unread({{"psi-count", int64_t(5)}}),
            std::vector<std::string>{"option --psi-count=5 has no effect: no "
                                     "stage of the filter 'pareto' reads it"});
  EXPECT_TRUE(
      unread({{"filter", artifact}, {"psi-count", int64_t(5)}}).empty());
  EXPECT_EQ(unread({{"filter", artifact},
                    {"epsilon-min", 0.6},
                    {"max-candidates", int64_t(9)},
                    {"psi", 0.75}})
                .size(),
            3u);
  EXPECT_EQ(unread({{"filter", paper}, {"max-candidates", int64_t(9)}}),
            std::vector<std::string>{"option --max-candidates=9 has no "
                                     "effect: no stage of the filter 'paper' "
                                     "reads it"});
  // A strategy that does not read the filter says so once.
  EXPECT_EQ(unread({{"strategy", kRoller}, {"psi-count", int64_t(5)}}).size(),
            1u);
}
} // namespace
