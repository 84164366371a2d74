//===- ScheduleTableTest.cpp - What follows from the tables of schedules --===//
//
// Walks the table of every path. ScheduleAttrTest.cpp does the same in IR.
//
//===----------------------------------------------------------------------===//
#include "../Search/StubModel.h"
#include "FTuner/Codegen/Mma/MmaSchedule.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Codegen/Wgmma/WgmmaSchedule.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "ScheduleSamples.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <set>

using namespace ftuner;

namespace {
class ScheduleTableTest : public ::testing::Test {
protected:
  ScheduleTableTest() {
    llvm::append_range(paths, codegenModels());
    paths.push_back(&stub);
  }

  StubModel stub;
  llvm::SmallVector<const CodegenModel *> paths;
};
} // namespace

/// A search copies and hashes millions.
static_assert(sizeof(Schedule) == 64);

TEST_F(ScheduleTableTest, NamesAndDescribesEachField) {
  for (const CodegenModel *path : paths) {
    SCOPED_TRACE(path->name().str());
    const ScheduleTable &table = path->scheduleTable();
    EXPECT_FALSE(table.summary.empty());
    EXPECT_FALSE(table.fields.empty());
    EXPECT_LE(table.fields.size(), Schedule::capacity);
    std::set<std::string> names, keys;
    for (const ScheduleField &field : table.fields) {
      EXPECT_TRUE(names.insert(field.name.str()).second) << field.name.str();
      EXPECT_FALSE(field.text.empty()) << field.name.str();
      for (llvm::StringRef word : {field.name, field.key})
        EXPECT_EQ(word.find_if_not([](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        }),
                  llvm::StringRef::npos)
            << word.str();
    }
    // Fields of one parameter are neighbours.
    for (size_t first = 0; first < table.fields.size();) {
      auto together = parameterAt(table.fields, first);
      EXPECT_TRUE(keys.insert(together.front().key.str()).second);
      for (const ScheduleField &field : together)
        EXPECT_EQ(field.isOptional, together.front().isOptional);
      first += together.size();
    }
  }
}

TEST_F(ScheduleTableTest, DefaultsAreLegal) {
  for (const CodegenModel *path : paths)
    EXPECT_EQ(llvm::toString(checkSchedule(defaultSchedule(*path))), "");
  EXPECT_EQ(SimtSchedule().pack(), defaultSchedule(simtModel()));
  EXPECT_EQ(WgmmaSchedule().pack(), defaultSchedule(wgmmaModel()));
}

TEST_F(ScheduleTableTest, RefusesNumbersBeyondTheBoundsByName) {
  for (const CodegenModel *path : paths)
    forEachIllegalField(*path, [&](const ScheduleField &field,
                                   llvm::ArrayRef<int64_t> values,
                                   int64_t value) {
      std::string expected = (path->name() + ": expected " + field.name +
                              " of " + field.legalValues() + ", but got ")
                                 .str();
      // As they are given, and as a schedule keeps them.
      EXPECT_EQ(llvm::toString(checkFields(*path, values)),
                expected + std::to_string(value));
      EXPECT_EQ(llvm::toString(checkSchedule(Schedule(*path, values)))
                    .substr(0, expected.size()),
                expected);
    });
}

TEST_F(ScheduleTableTest, KeepsEveryLegalNumber) {
  for (const CodegenModel *path : paths)
    forEachLegalField(*path, [&](const ScheduleField &,
                                 llvm::ArrayRef<int64_t> values) {
      EXPECT_EQ(llvm::toString(checkFields(*path, values)), "");
      Schedule schedule(*path, values);
      for (auto [number, value] : llvm::zip_first(values, schedule.fields()))
        EXPECT_EQ(number, value);
    });
}

/// A struct with a number for each field, in the order of the rows.
template <typename ScheduleT>
static void testPacking(const CodegenModel &path) {
  forEachLegalField(path, [&](const ScheduleField &field,
                              llvm::ArrayRef<int64_t> values) {
    Schedule schedule(path, values);
    ScheduleT unpacked = unpackSchedule<ScheduleT>(schedule);
    EXPECT_EQ(packSchedule(path, unpacked), schedule) << field.name.str();
    // Each number is that of its own member.
    for (auto [row, number] : llvm::zip_first(ScheduleT::rows(), values))
      EXPECT_EQ(row.flag ? int64_t(unpacked.*row.flag) : unpacked.*row.number,
                number);
  });
}

TEST_F(ScheduleTableTest, PacksEachMemberWhereItsRowIs) {
  testPacking<SimtSchedule>(simtModel());
  testPacking<MmaSchedule>(mmaModel());
  testPacking<WgmmaSchedule>(wgmmaModel());
  testPacking<StubSchedule>(stub);
}

TEST_F(ScheduleTableTest, SaturatesNumbersBeyond32Bits) {
  SimtSchedule schedule;
  schedule.threadsM = (int64_t(1) << 32) + 1;
  schedule.threadsN = -(int64_t(1) << 40);
  SimtSchedule read = SimtSchedule::of(schedule.pack());
  EXPECT_EQ(read.threadsM, std::numeric_limits<int32_t>::max());
  EXPECT_EQ(read.threadsN, std::numeric_limits<int32_t>::min());
}

TEST_F(ScheduleTableTest, WritesLegalValuesInWords) {
  ScheduleField field;
  EXPECT_EQ(field.legalValues(), "at least 0");
  field.least = 2;
  field.most = 9;
  EXPECT_EQ(field.legalValues(), "2 to 9");
  field.most = 3;
  EXPECT_EQ(field.legalValues(), "2 or 3");
  field.few = {1, 4, 8};
  field.numFew = 3;
  EXPECT_EQ(field.legalValues(), "1, 4 or 8");
}

TEST_F(ScheduleTableTest, WritesTextAndAttribute) {
  WgmmaSchedule schedule;
  EXPECT_EQ(schedule.pack().str(), "stages 4 access 16");
  EXPECT_EQ(attributeText(schedule.pack()),
            "warpgroups = [1, 1], stages = 4, access = 16");
  schedule = {2, 1, 5, 16, true, 1, true, 2, 1, 132, true};
  EXPECT_EQ(schedule.pack().str(),
            "stages 5 access 16 swapped producers 1 tma cluster [2,1] "
            "persistent 132 ping-pong");
  EXPECT_EQ(
      attributeText(schedule.pack()),
      "warpgroups = [2, 1], stages = 5, access = 16, swap_operands = true, "
      "producer_warpgroups = 1, tma = true, cluster = [2, 1], persistent "
      "= 132, ping_pong = true");
}

TEST_F(ScheduleTableTest, RefusesWhatBreaksARule) {
  WgmmaSchedule schedule;
  schedule.pingPong = true;
  EXPECT_EQ(llvm::toString(checkSchedule(schedule.pack())),
            "wgmma: expected ping-pong of persistent blocks alone, but got "
            "warpgroups = [1, 1], stages = 4, access = 16, ping_pong = true");
  // Each rule is broken by something whose numbers are all legal.
  for (const CodegenModel *path : paths)
    for (const ScheduleRule &rule : path->scheduleTable().rules) {
      bool isBroken = false;
      forEachLegalPair(*path, [&](llvm::ArrayRef<int64_t> values) {
        isBroken |= !rule.holds(Schedule(*path, values));
      });
      EXPECT_TRUE(isBroken) << rule.expected.str();
      EXPECT_TRUE(rule.holds(defaultSchedule(*path))) << rule.expected.str();
    }
}

TEST_F(ScheduleTableTest, JsonNamesTheFieldThatIsIllegal) {
  KernelFamily family = simtFamily(SimtSchedule(), {4}, 2, 16);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] { writeFamily(json, family); });
  llvm::json::Value value = llvm::cantFail(llvm::json::parse(text));
  llvm::json::Object &object = *value.getAsObject();
  EXPECT_EQ(llvm::cantFail(parseFamily(object)), family);
  (*object.getObject("schedule"))["stages"] = int64_t(1) << 40;
  EXPECT_EQ(llvm::toString(parseFamily(object).takeError()),
            "simt: expected stages of 2 to 1024, but got 1099511627776");
}
