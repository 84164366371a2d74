//===- OptionsTest.cpp - Declarations, bounds and values of options -------===//
#include "FTuner/Support/Options.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace ftuner;

namespace {
enum class Flavour { Plain, Rich };

struct Anneal {
  int64_t population = 64;
  double temperature = 0.25, coldest = 0.1;
  bool restarts = false;
  std::string log, seed;
  Flavour flavour = Flavour::Rich;
};

const OptionTable<Anneal> &table() {
  static const OptionTable<Anneal> table = {
      option("population", &Anneal::population, "Programs of a generation")
          .within(1, 4096),
      option("temperature", &Anneal::temperature, "First temperature")
          .within(0, 1),
      option("coldest", &Anneal::coldest, "Last temperature")
          .within(0, 1)
          .atMost("temperature"),
      option("restarts", &Anneal::restarts, "Start again when it is cold"),
      option("log", &Anneal::log, "File of all programs")
          .checkedBy([](llvm::StringRef path) {
            return path.contains('?')
                       ? llvm::createStringError("no file '" + path + "'")
                       : llvm::Error::success();
          }),
      option("flavour", &Anneal::flavour, "Flavour",
             {{"plain", Flavour::Plain}, {"rich", Flavour::Rich}})
          .testing(),
      option("seed", &Anneal::seed, "The first programs")
          .file(OptionFile::Access::Read, "file:")
          .file(OptionFile::Access::Command, "run:")
          .orBuiltin([] { return std::vector<std::string>{"none"}; })
          .basic(),
  };
  return table;
}

const OptionDecl &decl(llvm::StringRef name) {
  for (const OptionDecl *decl : table().decls())
    if (decl->name == name)
      return *decl;
  ADD_FAILURE() << name.str();
  return *table().decls().front();
}

std::string text(llvm::Error error) {
  return error ? llvm::toString(std::move(error)) : "";
}

/// The value as text, or what is wrong with it.
std::string parsed(llvm::StringRef name, llvm::StringRef given) {
  llvm::Expected<OptionValue> value = decl(name).parse(given);
  return value ? toText(*value) : llvm::toString(value.takeError());
}

std::string checked(const OptionValues &given) {
  return text(checkValues(table().decls(), given));
}

TEST(Options, DefaultsAreThoseOfTheMembers) {
  EXPECT_EQ(decl("population").defaultValue, OptionValue(int64_t(64)));
  EXPECT_EQ(decl("temperature").defaultValue, OptionValue(0.25));
  EXPECT_EQ(decl("restarts").defaultValue, OptionValue(false));
  EXPECT_EQ(decl("log").defaultValue, OptionValue(std::string()));
  EXPECT_EQ(decl("flavour").defaultValue, OptionValue(std::string("rich")));
  EXPECT_EQ(decl("population").typeName(), "integer");
  EXPECT_EQ(decl("temperature").typeName(), "number");
  EXPECT_EQ(decl("restarts").typeName(), "switch");
  EXPECT_EQ(decl("flavour").typeName(), "string");
  EXPECT_EQ(decl("seed").typeName(), "file");
}

TEST(Options, AreReadByName) {
  Anneal own = table().read({{"population", int64_t(5)},
                             {"temperature", 0.5},
                             {"restarts", true},
                             {"log", std::string("a b")},
                             {"flavour", std::string("plain")},
                             {"of-another", int64_t(3)}});
  EXPECT_EQ(own.population, 5);
  EXPECT_EQ(own.temperature, 0.5);
  EXPECT_EQ(own.coldest, 0.1);
  EXPECT_TRUE(own.restarts);
  EXPECT_EQ(own.log, "a b");
  EXPECT_EQ(own.flavour, Flavour::Plain);
}

TEST(Options, TextsBecomeValuesOfTheirType) {
  EXPECT_EQ(parsed("population", "-12"), "-12");
  EXPECT_EQ(parsed("population", "0x10"), "16");
  for (const char *wrong : {"", "many", "1.5", "9223372036854775808", "1 "})
    EXPECT_EQ(parsed("population", wrong),
              "expected a whole number from 1 to 4096");
  EXPECT_EQ(parsed("temperature", "1e-3"), "0.001");
  EXPECT_EQ(parsed("temperature", "nan"), "nan");
  EXPECT_EQ(parsed("temperature", "warm"), "expected a number from 0 to 1");
  EXPECT_EQ(parsed("restarts", ""), "true");
  EXPECT_EQ(parsed("restarts", "TRUE"), "true");
  EXPECT_EQ(parsed("restarts", "0"), "false");
  EXPECT_EQ(parsed("restarts", "maybe"), "expected true or false");
  EXPECT_EQ(parsed("log", "1"), "1");
}

TEST(Options, NumbersReadBackToTheLastBit) {
  for (double number : {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308,
                        -0.12345678901234567, 3.0})
    EXPECT_EQ(
        std::get<double>(llvm::cantFail(decl("coldest").parse(toText(number)))),
        number);
}

TEST(Options, ValuesAreChecked) {
  EXPECT_EQ(checked({}), "");
  EXPECT_EQ(checked({{"population", int64_t(1)}}), "");
  EXPECT_EQ(checked({{"population", int64_t(4096)}}), "");
  EXPECT_EQ(checked({{"population", int64_t(0)}}),
            "option --population: expected 1 to 4096, but got 0");
  EXPECT_EQ(checked({{"population", int64_t(4097)}}),
            "option --population: expected 1 to 4096, but got 4097");
  EXPECT_EQ(checked({{"temperature", std::nan("")}}),
            "option --temperature: expected 0 to 1, but got nan");
  EXPECT_EQ(checked({{"temperature", 1.0000001}}),
            "option --temperature: expected 0 to 1, but got 1.0000001");
  EXPECT_EQ(checked({{"flavour", std::string("sour")}}),
            "option --flavour: expected one of plain, rich, but got 'sour'");
  EXPECT_EQ(checked({{"flavour", 1.0}}),
            "option --flavour: expected one of plain, rich, but got '1'");
  EXPECT_EQ(checked({{"population", 5.0}}), "option --population: expected a "
                                            "whole number from 1 to 4096, but "
                                            "got '5'");
}

TEST(Options, AnotherOptionIsABound) {
  EXPECT_EQ(checked({{"temperature", 0.5}, {"coldest", 0.5}}), "");
  EXPECT_EQ(checked({{"temperature", 0.5}, {"coldest", 0.75}}),
            "option --coldest: expected 0 to 0.5, but got 0.75");
  // Against its default, and from the members.
  EXPECT_EQ(checked({{"temperature", 0.05}}),
            "option --coldest: expected 0 to 0.05, but got 0.1");
  Anneal own;
  EXPECT_EQ(text(table().check(own)), "");
  own.temperature = 0.05;
  EXPECT_EQ(text(table().check(own)),
            "option --coldest: expected 0 to 0.05, but got 0.1");
}

TEST(Options, ListsKnowTheirReaders) {
  OptionList list;
  list.add({"strategy", "anneal"}, table().decls());
  list.add({"strategy", "other"}, {&decl("population"), &decl("log")});
  EXPECT_TRUE(list.clashes().empty());
  ASSERT_EQ(list.options().size(), 7u);
  EXPECT_EQ(list.find("population")->readers.size(), 2u);
  EXPECT_EQ(list.find("population")->help,
            "Programs of a generation (1 to 4096; default: 64; read by anneal, "
            "other)");
  EXPECT_EQ(list.find("coldest")->help,
            "Last temperature (0 to 1, at most temperature; default: 0.1; read "
            "by anneal)");
  EXPECT_EQ(list.find("flavour")->help,
            "Flavour (plain, rich; default: rich; read by anneal)");
  EXPECT_EQ(list.find("restarts")->help,
            "Start again when it is cold (default: false; read by anneal)");
  EXPECT_EQ(list.find("wings"), nullptr);
}

TEST(Options, GroupsFollowFromReadersAndLevels) {
  OptionList list;
  list.add({"strategy", "anneal"}, table().decls());
  list.add({"strategy", "other"}, {&decl("population"), &decl("log")});
  list.add({"strategy", "third"}, {&decl("log"), &decl("restarts")});
  list.add({"cost model", "sia"}, {&decl("restarts")});
  EXPECT_EQ(list.find("coldest")->group(), "Strategy 'anneal'");
  EXPECT_EQ(list.find("population")->group(),
            "Strategies 'anneal' and 'other'");
  EXPECT_EQ(list.find("log")->group(), "Several strategies");
  EXPECT_EQ(list.find("restarts")->group(), "Cost models");
  EXPECT_EQ(list.find("flavour")->group(), "Testing");
  OptionList baselines;
  baselines.add({"baseline", "roller"}, {&decl("log"), &decl("coldest")});
  baselines.add({"baseline", "gensor"}, {&decl("log")});
  EXPECT_EQ(baselines.find("coldest")->group(), "Baseline 'roller'");
  EXPECT_EQ(baselines.find("log")->group(), "Baselines 'roller' and 'gensor'");
  OptionList other;
  other.add({"search", "", "Measurement"}, {&decl("log")});
  other.add({"search", ""}, {&decl("coldest")});
  other.add({"pipeline", ""}, {&decl("population")});
  EXPECT_EQ(other.find("log")->group(), "Measurement");
  EXPECT_EQ(other.find("coldest")->group(), "Search");
  EXPECT_EQ(other.find("population")->group(), "Compilation");
}

TEST(Options, FilesHavePrefixesAndAccesses) {
  const OptionDecl &seed = decl("seed");
  ASSERT_EQ(seed.files.size(), 2u);
  EXPECT_EQ(seed.files[0].prefix, "file:");
  EXPECT_EQ(nameOf(seed.files[0].access), "read");
  EXPECT_EQ(nameOf(seed.files[1].access), "command");
  EXPECT_EQ(seed.builtinNames(), std::vector<std::string>{"none"});
  EXPECT_EQ(nameOf(seed.level), "basic");
  EXPECT_EQ(nameOf(decl("log").level), "advanced");
  EXPECT_TRUE(decl("log").files.empty());
}

TEST(Options, ListsCheckNamesAndTexts) {
  OptionList list;
  list.add({"strategy", "anneal"}, table().decls());
  EXPECT_EQ(text(list.check({{"population", int64_t(3)}})), "");
  EXPECT_EQ(text(list.check({{"wings", int64_t(3)}})),
            "unknown option --wings");
  EXPECT_EQ(text(list.check({{"population", int64_t(-3)}})),
            "option --population: expected 1 to 4096, but got -3");
  EXPECT_EQ(text(list.checkTexts({{"log", std::string("a")}})), "");
  EXPECT_EQ(text(list.checkTexts({{"log", std::string("a?")}})),
            "option --log: no file 'a?'");
}

TEST(Options, ANameIsDeclaredInOneWay) {
  static const OptionTable<Anneal> other = {
      option("population", &Anneal::population, "Another one")};
  OptionList list;
  list.add({"strategy", "anneal"}, table().decls());
  list.add({"strategy", "other"}, other.decls());
  ASSERT_EQ(list.clashes().size(), 1u);
  EXPECT_EQ(list.clashes().front(), "population");
  EXPECT_EQ(list.find("population")->decl, &decl("population"));
}
} // namespace
