//===- SearchOptionsTest.cpp - The options that the search declares -------===//
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Search/Problem/SearchStrategy.h"
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Search/Strategies/FilterOptions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <limits>

using namespace ftuner;

namespace {

std::string checked(const OptionValues &given) {
  llvm::Error error = searchOptionList().check(given);
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(SearchOptions, EveryNameIsDeclaredInOneWay) {
  EXPECT_EQ(llvm::join(searchOptionList().clashes(), ", "), "");
}

TEST(SearchOptions, DeclarationsAreFitForCommandLines) {
  for (const DeclaredOption &option : searchOptionList().options()) {
    const OptionDecl &decl = *option.decl;
    SCOPED_TRACE(decl.name);
    EXPECT_TRUE(llvm::all_of(decl.name, [](char c) {
      return llvm::isLower(c) || llvm::isDigit(c) || c == '-';
    }));
    EXPECT_TRUE(llvm::isUpper(decl.text.front()));
    EXPECT_NE(decl.text.back(), '.');
    // Each text stands by itself, so that the list may be sorted.
    for (const char *word : {"Whether ", "What ", "Which ", "Where ", "Who ",
                             "How ", "Most ", "Least ", "The same "})
      EXPECT_FALSE(llvm::StringRef(decl.text).starts_with(word));
    EXPECT_TRUE(llvm::StringRef(decl.text).contains(' '));
    EXPECT_FALSE(option.readers.empty());
    EXPECT_LE(decl.min, decl.max);
    // What is printed is what is read.
    llvm::Expected<OptionValue> read = decl.parse(toText(decl.defaultValue));
    ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
    EXPECT_EQ(*read, decl.defaultValue);
    // Numbers are bounded: no default is a bound that the code relies on.
    if (!std::holds_alternative<bool>(decl.defaultValue) &&
        !std::holds_alternative<std::string>(decl.defaultValue)) {
      EXPECT_FALSE(decl.bounds().empty());
    }
  }
}

TEST(SearchOptions, DefaultsAreThoseOfTheStruct) {
  EXPECT_EQ(checked({}), "");
  SearchOptions read = readSearchOptions({}), made;
  EXPECT_FALSE(read.check());
  EXPECT_EQ(read.topK, made.topK);
  EXPECT_EQ(read.maxKernels, made.maxKernels);
  EXPECT_EQ(read.pool, made.pool);
  EXPECT_TRUE(read.own.empty());
}

/// Returns a value of the option that is not its default; of a number a bound.
OptionValue otherValueOf(const OptionDecl &decl) {
  if (const auto *isOn = std::get_if<bool>(&decl.defaultValue))
    return !*isOn;
  if (const auto *whole = std::get_if<int64_t>(&decl.defaultValue))
    return static_cast<int64_t>(*whole == decl.max ? decl.min : decl.max);
  if (const auto *number = std::get_if<double>(&decl.defaultValue))
    return *number == decl.max ? decl.min : decl.max;
  const std::string &text = std::get<std::string>(decl.defaultValue);
  for (const std::string &choice : decl.choices)
    if (choice != text)
      return choice;
  return text + "x";
}

TEST(SearchOptions, ValuesReachTheirMembers) {
  // Strategies and cost models declare these options.
  OptionValues own = {
      {"epsilon-min", 0.11},
      {"epsilon-max", 0.12},
      {"epsilon-step", 0.13},
      {"lambda-max", 0.15},
      {"lambda-min", 0.14},
      {"lambda-step", 0.16},
      {"filter", std::string("artifact")},
      {"psi", 0.17},
      {"psi-count", int64_t(7)},
      {"psi-count-shared", int64_t(8)},
      {"active-blocks-per-sm", int64_t(5)},
      {"max-candidates", int64_t(6)},
  };
  OptionValues given = {
      {"top-k", int64_t(2)},
      {"max-kernels", int64_t(3)},
      {"tile-rule", std::string("divisors")},
      {"pool", std::string("exact")},
      {"batch-tiles", false},
      {"main-axis", std::string("largest")},
      {"split-k", false},
      {"sliced-k", false},
      {"tensor-maps", false},
      {"zeta", int64_t(4)},
      {"least-gain", 0.18},
      {"strategy", std::string("roller")},
      {"cost-model", std::string("sia")},
      {"paths", std::string("simt")},
      {"proven-paths", std::string("wgmma.fit_boxes")},
      {"failed-paths", std::string("mma")},
      {"measure-top", int64_t(10)},
      {"measure", std::string("filter")},
      {"measurer", std::string("model:latency")},
      {"measure-budget", int64_t(11)},
      {"measure-log", std::string("a.jsonl")},
      {"measure-unsure", 0.19},
      {"measure-memory", int64_t(12)},
      {"measure-seconds", int64_t(13)},
  };
  // All others are options of strategies and cost models.
  for (const DeclaredOption &option : searchOptionList().options())
    if (!given.count(option.decl->name))
      own.try_emplace(option.decl->name, otherValueOf(*option.decl));
  given.insert(own.begin(), own.end());
  ASSERT_EQ(checked(given), "");
  SearchOptions options = readSearchOptions(given);
  EXPECT_EQ(options.topK, 2);
  EXPECT_EQ(options.maxKernels, 3);
  EXPECT_EQ(options.tileRule, TileRule::Divisors);
  EXPECT_EQ(options.pool, ProgramPool::Exact);
  EXPECT_FALSE(options.batchTiles);
  EXPECT_EQ(options.mainAxis, MainAxis::Largest);
  EXPECT_FALSE(options.splitK);
  EXPECT_FALSE(options.slicedK);
  EXPECT_FALSE(options.tensorMaps);
  EXPECT_EQ(options.measuring.top, 10);
  EXPECT_EQ(options.measuring.set, MeasuredSet::Filter);
  EXPECT_EQ(options.measuring.measurer, "model:latency");
  EXPECT_EQ(options.measuring.budget, 11);
  EXPECT_EQ(options.measuring.log, "a.jsonl");
  EXPECT_EQ(options.measuring.unsure, 0.19);
  EXPECT_EQ(options.measuring.memoryMib, 12);
  EXPECT_EQ(options.measuring.commandSeconds, 13);
  EXPECT_EQ(options.zeta, 4);
  EXPECT_EQ(options.minGain, 0.18);
  // The rest is for the strategies and cost models that declared it.
  EXPECT_EQ(options.own, own);
  EXPECT_EQ(options.cost.own, own);
  FilterOptions filter = filterOptions().read(options.own);
  EXPECT_EQ(filter.reading, FilterReading::Artifact);
  EXPECT_EQ(filter.psiCount, 7);
  EXPECT_EQ(filter.psiCountShared, 8);
  EXPECT_EQ(filter.epsilonMin, 0.11);
  EXPECT_EQ(filter.epsilonMax, 0.12);
  EXPECT_EQ(filter.epsilonStep, 0.13);
  EXPECT_EQ(filter.lambdaMin, 0.14);
  EXPECT_EQ(filter.lambdaMax, 0.15);
  EXPECT_EQ(filter.lambdaStep, 0.16);
  EXPECT_EQ(filter.psi, 0.17);
  EXPECT_EQ(filter.activeBlocksPerSm, 5);
  EXPECT_EQ(filter.maxCandidates, 6);
  SearchChoice choice = searchChoiceOptions().read(given);
  EXPECT_EQ(choice.strategy, "roller");
  EXPECT_EQ(choice.costModel, "sia");
  EXPECT_EQ(choice.paths, "simt");
  EXPECT_EQ(choice.provenPaths, "wgmma.fit_boxes");
  EXPECT_EQ(choice.failedPaths, "mma");
}

/// Returns the paths of a choice, the proven ones and the ones that are left
/// out.
static std::string pathsOf(std::string names, std::string proven = "") {
  SearchChoice choice;
  choice.paths = std::move(names);
  choice.provenPaths = std::move(proven);
  llvm::Expected<ChosenPaths> paths = readPaths(choice);
  if (!paths)
    return llvm::toString(paths.takeError());
  return namesOf(paths->models, ",") + ";" + namesOf(paths->proven, ",") + ";" +
         namesOf(paths->unproven, ",");
}

TEST(SearchOptions, GatesOpenWhereTheyWereProven) {
  EXPECT_EQ(SearchChoice().paths, "auto");
  std::string open = namesOf(defaultCodegenModels(), ",");
  std::string gates = namesOf(codegenGates(), ", ");
  EXPECT_EQ(pathsOf("auto"), open + ";;" + namesOf(codegenGates(), ","));
  llvm::SmallVector<Gate> others(codegenGates());
  llvm::erase_if(others, [](const Gate &gate) {
    return gate.name() == "wgmma.fit_boxes";
  });
  EXPECT_EQ(pathsOf("auto", "wgmma.fit_boxes"),
            open + ";wgmma.fit_boxes;" + namesOf(others, ","));
  // Names force, whatever was proven.
  EXPECT_EQ(pathsOf("wgmma,simt"), "simt,wgmma;;");
  EXPECT_EQ(pathsOf("mma", "wgmma.fit_boxes"), "mma;;");
  EXPECT_EQ(checked({{"proven-paths", std::string("mma")}}), "");
  OptionValues notGated = {{"proven-paths", std::string("mma")}};
  EXPECT_EQ(llvm::toString(searchOptionList().checkTexts(notGated)),
            "option --proven-paths: expected names of gates (" + gates +
                "), separated by commas, but got 'mma'");
  EXPECT_EQ(pathsOf("auto,wgmma"),
            "expected names of codegen paths (" + codegenModelNames() +
                "), separated by commas, but got 'auto'");
}

/// The fields that stay at their defaults.
static std::string closedFieldsOf(std::string paths, std::string proven,
                                  std::string failed) {
  SearchChoice choice;
  choice.paths = std::move(paths);
  choice.provenPaths = std::move(proven);
  choice.failedPaths = std::move(failed);
  std::string names;
  for (const ScheduleField *field :
       llvm::cantFail(readPaths(choice)).closedFields)
    names += field->name.str() + ",";
  return names;
}

TEST(SearchOptions, FieldsOfSchedulesHaveGates) {
  EXPECT_EQ(closedFieldsOf("auto", "", ""), "fit_boxes,bulk_stores,");
  EXPECT_EQ(closedFieldsOf("auto", "wgmma.fit_boxes", ""), "bulk_stores,");
  EXPECT_EQ(closedFieldsOf("auto", "wgmma.fit_boxes,wgmma.bulk_stores",
                           "wgmma.fit_boxes"),
            "fit_boxes,");
  EXPECT_EQ(closedFieldsOf("wgmma", "", "wgmma.fit_boxes"), "");
  // What failed is left out, open or not.
  SearchChoice choice;
  choice.failedPaths = "wgmma, rows";
  EXPECT_EQ(namesOf(llvm::cantFail(readPaths(choice)).models, ","),
            "simt,mma,chains");
  OptionValues unknown = {{"failed-paths", std::string("fma")}};
  std::string message = llvm::toString(searchOptionList().checkTexts(unknown));
  EXPECT_NE(message.find("option --failed-paths: expected names of codegen "
                         "paths and gates ("),
            std::string::npos)
      << message;
}

TEST(SearchOptions, BoundsAreTheDocumentedOnes) {
  EXPECT_EQ(checked({{"zeta", int64_t(1024)}}), "");
  EXPECT_EQ(checked({{"zeta", int64_t(1025)}}),
            "option --zeta: expected 0 to 1024, but got 1025");
  EXPECT_EQ(checked({{"active-blocks-per-sm", int64_t(0)}}),
            "option --active-blocks-per-sm: expected 1 to 1024, but got 0");
  EXPECT_EQ(checked({{"max-kernels", int64_t(1025)}}),
            "option --max-kernels: expected 1 to 1024, but got 1025");
  EXPECT_EQ(checked({{"top-k", int64_t(0)}}),
            "option --top-k: expected 1 to 1048576, but got 0");
  EXPECT_EQ(checked({{"epsilon-min", 0.96}}),
            "option --epsilon-max: expected 0.96 to 1, but got 0.95");
  EXPECT_EQ(checked({{"lambda-min", 0.96}}),
            "option --lambda-min: expected 0 to 0.95, but got 0.96");
  EXPECT_EQ(checked({{"c1", 2e9}}),
            "option --c1: expected -1e+09 to 1e+09, but got 2e+09");
  std::string strategies =
      llvm::join(llvm::map_range(searchStrategies(),
                                 [](const SearchStrategy *strategy) {
                                   return strategy->name();
                                 }),
                 ", ");
  EXPECT_EQ(checked({{"strategy", std::string("luck")}}),
            "option --strategy: expected one of " + strategies +
                ", but got 'luck'");
}

/// A strategy that reads an option that no list knows.
class OwnStrategy final : public SearchStrategy {
public:
  struct Own {
    int64_t luck = 7;
  };
  static const OptionTable<Own> &table() {
    static const OptionTable<Own> table = {
        option("luck", &Own::luck, "How lucky it is").within(0, 10)};
    return table;
  }
  llvm::StringRef name() const override { return "own"; }
  OptionDecls options() const override { return table().decls(); }
  llvm::Expected<Plan> search(const SearchProblem &problem,
                              const SearchContext &) const override {
    return llvm::createStringError(
        "luck is " + llvm::Twine(table().read(problem.options.own).luck));
  }
  llvm::Expected<std::vector<ShapeReport>>
  explain(const SearchProblem &, const SearchContext &,
          llvm::ArrayRef<Shape>) const override {
    return std::vector<ShapeReport>();
  }
};

TEST(SearchOptions, SolveChecksWhatIsTheStrategysOwn) {
  Workload workload = Workload::matmul({1, 8}, {64, 64}, {64, 64});
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("a100"));
  SearchProblem problem{
      workload, device, codegenModels(), *findCostModel("sia"), {}};
  auto answer = [&] {
    return llvm::toString(solve(problem, OwnStrategy()).takeError());
  };
  EXPECT_EQ(answer(), "luck is 7");
  problem.options.own = {{"luck", int64_t(9)}};
  EXPECT_EQ(answer(), "luck is 9");
  problem.options.own = {{"luck", int64_t(11)}};
  EXPECT_EQ(answer(), "option --luck: expected 0 to 10, but got 11");
  problem.options.own = {{"luck", 3.5}};
  EXPECT_EQ(answer(),
            "option --luck: expected a whole number from 0 to 10, but got "
            "'3.5'");
  // And what is the cost model's.
  problem.options.own = {};
  problem.options.cost.own = {{"c1", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(answer(), "option --c1: expected -1e+09 to 1e+09, but got inf");
}
} // namespace
