//===- PassOptionListTest.cpp - Declared options of passes ----------------===//
#include "FTuner/Transforms/PassOptionList.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// Options of somebody who comes later.
struct Later {
  int64_t population = 64;
  double temperature = 0.25;
  bool restarts = false;
  std::string log = "none";
};

llvm::ArrayRef<DeclaredOption> declared() {
  static const OptionTable<Later> table = {
      option("population", &Later::population, "Programs of a generation")
          .within(1, 4096),
      option("temperature", &Later::temperature, "First temperature")
          .within(0, 1),
      option("restarts", &Later::restarts, "Start again when it is cold"),
      option("log", &Later::log, "File of all programs"),
  };
  static const OptionList list = [] {
    OptionList list;
    list.add({"strategy", "later"}, table.decls());
    return list;
  }();
  return list.options();
}

struct LaterPass : public PassWrapper<LaterPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LaterPass)
  LaterPass() = default;
  LaterPass(const LaterPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "later"; }
  void runOnOperation() override {}

  PassOptionList options = PassOptionList::make<Option>(*this, declared());
};

OptionValues defaults() {
  return {{"population", int64_t(64)},
          {"temperature", 0.25},
          {"restarts", false},
          {"log", std::string("none")}};
}

/// The pass in a text, parsed; what was wrong in `complaint`.
std::unique_ptr<LaterPass> parse(StringRef text, std::string &complaint) {
  auto pass = std::make_unique<LaterPass>();
  llvm::raw_string_ostream stream(complaint);
  auto handle = [&](const Twine &message) {
    stream << message;
    return failure();
  };
  if (failed(pass->initializeOptions(text, handle)))
    return nullptr;
  return pass;
}

std::string print(Pass &pass) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  pass.printAsTextualPipeline(stream);
  return text;
}

TEST(PassOptionList, HasTheDefaults) {
  LaterPass pass;
  EXPECT_EQ(pass.options.values(), defaults());
}

TEST(PassOptionList, ReadsAText) {
  std::string complaint;
  auto pass = parse("population=3 temperature=0.123456789 restarts log={a b}",
                    complaint);
  ASSERT_TRUE(pass) << complaint;
  OptionValues expected = {{"population", int64_t(3)},
                           {"temperature", 0.123456789},
                           {"restarts", true},
                           {"log", std::string("a b")}};
  EXPECT_EQ(pass->options.values(), expected);
}

TEST(PassOptionList, KnowsWhatWasGiven) {
  std::string complaint;
  auto pass = parse("temperature=0.25", complaint);
  ASSERT_TRUE(pass) << complaint;
  EXPECT_TRUE(pass->options.isGiven("temperature"));
  EXPECT_FALSE(pass->options.isGiven("population"));
  pass->options.set({{"population", int64_t(64)}});
  EXPECT_TRUE(pass->options.isGiven("population"));
  EXPECT_FALSE(pass->options.isGiven("wings"));
}

TEST(PassOptionList, SaysWhatIsExpected) {
  std::string complaint;
  EXPECT_FALSE(parse("population=many", complaint));
  EXPECT_FALSE(parse("wings=2", complaint));
  EXPECT_NE(complaint.find("wings"), std::string::npos) << complaint;
}

TEST(PassOptionList, ATextIsWhatWasPrinted) {
  std::string complaint;
  auto pass = parse("temperature=0.1234567890123456 log={a b}", complaint);
  ASSERT_TRUE(pass);
  std::string text = print(*pass);
  EXPECT_EQ(text, "later{log={a b} population=64 restarts=false "
                  "temperature=0.1234567890123456}");
  StringRef options = StringRef(text).drop_front(strlen("later{")).drop_back();
  auto again = parse(options, complaint);
  ASSERT_TRUE(again) << complaint;
  EXPECT_EQ(again->options.values(), pass->options.values());
}

TEST(PassOptionList, CopiesOfAPassHaveItsValues) {
  OpPassManager pm;
  auto pass = std::make_unique<LaterPass>();
  pass->options.set({{"population", int64_t(9)}, {"wings", int64_t(2)}});
  OptionValues expected = defaults();
  expected["population"] = int64_t(9);
  EXPECT_EQ(pass->options.values(), expected);
  std::string text = print(*pass);
  pm.addPass(std::move(pass));
  OpPassManager copy = pm;
  EXPECT_EQ(print(*copy.begin()), text);
  EXPECT_EQ(static_cast<LaterPass &>(*copy.begin()).options.values(), expected);
}

TEST(PassOptionList, PresetsSetWhatNobodyGave) {
  auto searchOf = [](StringRef given) {
    FTunerOptions options;
    EXPECT_TRUE(succeeded(options.parseFromString(given)));
    EXPECT_FALSE(options.check());
    // As pipelines hand them on.
    FTunerOptions copy;
    copy.copyOptionValuesFrom(options);
    EXPECT_EQ(copy.search(), options.search());
    return options.search();
  };
  auto text = [](const char *value) { return OptionValue(std::string(value)); };
  OptionValues paper = searchOf("preset=paper");
  EXPECT_EQ(paper, searchOf("tile-rule=divisors filter=paper pool=exact "
                            "main-axis=largest cost-model=sia"));
  EXPECT_NE(paper, searchOf(""));
  EXPECT_EQ(searchOf("preset=none"), searchOf(""));
  // What is given wins, wherever it stands, also with the value of a default.
  OptionValues given = searchOf("pool=tight preset=paper main-axis=dynamic");
  EXPECT_EQ(given.at("pool"), text("tight"));
  EXPECT_EQ(given.at("main-axis"), text("dynamic"));
  EXPECT_EQ(given.at("cost-model"), text("sia"));
}

TEST(PassOptionList, PresetsNameOptionsAndValuesThatExist) {
  ASSERT_FALSE(optionPresets().empty());
  for (const OptionPreset &preset : optionPresets()) {
    SCOPED_TRACE(preset.name.str());
    llvm::Error error = pipelineOptionList().check(preset.values);
    EXPECT_FALSE(error) << llvm::toString(std::move(error));
    EXPECT_FALSE(preset.values.count("preset"));
  }
  FTunerOptions options;
  options.set("preset", std::string("luck"));
  EXPECT_EQ(llvm::toString(options.check()),
            "option --preset: expected one of none, paper, artifact, but got "
            "'luck'");
}

static bool isBaseline(const OptionReader &reader) {
  return reader.kind == "baseline";
}

TEST(PassOptionList, TheCoreHasFewOptions) {
  size_t numCore = 0, numBasic = 0;
  for (const DeclaredOption &option : pipelineOptionList().options()) {
    numCore += !llvm::all_of(option.readers, isBaseline);
    numBasic += option.decl->level == OptionLevel::Basic;
  }
  EXPECT_LE(numCore, 50u);
  EXPECT_LE(numBasic, 12u);
}

TEST(PassOptionList, PipelinesHandTheirValuesOn) {
  FTunerOptions options;
  EXPECT_EQ(options.settings().device, "");
  ASSERT_TRUE(succeeded(options.parseFromString(
      "device=h200 max-kernels=5 c0=0.1 strategy=roller")));
  options.set("top-k", int64_t(3));
  EXPECT_EQ(options.settings().device, "h200");
  EXPECT_FALSE(options.settings().ptxasFeedback);
  OptionValues values = options.search();
  EXPECT_EQ(values.size(), searchOptionList().options().size());
  EXPECT_EQ(values.at("max-kernels"), OptionValue(int64_t(5)));
  EXPECT_EQ(values.at("c0"), OptionValue(0.1));
  EXPECT_EQ(values.at("top-k"), OptionValue(int64_t(3)));
  std::unique_ptr<Pass> pass = createUKernelPlanWorkloadsPass(values);
  std::string text = print(*pass);
  for (const char *part : {"max-kernels=5 ", "c0=0.1 ", "strategy=roller ",
                           "top-k=3 ", "epsilon-max=0.95 "})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}
} // namespace
