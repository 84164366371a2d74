//===- WgmmaTurnsTest.cpp - Sets of groups that take turns on tiles -------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "Products.h"

#include "gtest/gtest.h"

using namespace ftuner;

namespace {

class WgmmaTurnsTest : public ::testing::Test {
protected:
  WgmmaTurnsTest()
      : workload(Workload::matmul({1, 4096, 1}, SizeRange::fixed(2304),
                                  SizeRange::fixed(768), false, true)) {
    setTypes(workload, ElementType::F16, ElementType::F32);
  }

  static WgmmaSchedule persistent(int64_t turns) {
    WgmmaSchedule schedule = {1, 1, 4, 16, false, 1, true};
    schedule.persistentBlocks = 132;
    schedule.turns = turns;
    return schedule;
  }
  static KernelFamily family(const WgmmaSchedule &schedule) {
    return wgmmaFamily(schedule, {64, 128}, 128, 64);
  }
  std::string error(const WgmmaSchedule &schedule) {
    return llvm::toString(model.check(workload, family(schedule), device));
  }

  const CodegenModel &model = *findCodegenModel("wgmma");
  DeviceSpec device = llvm::cantFail(loadDeviceSpec("h100"));
  Workload workload;
};

TEST_F(WgmmaTurnsTest, AreAFieldOfSchedules) {
  KernelFamily one = family(persistent(1)), two = family(persistent(2));
  EXPECT_FALSE(one == two);
  EXPECT_EQ(WgmmaSchedule::of(two.schedule).turns, 2);
  EXPECT_EQ(WgmmaSchedule().turns, 1);
  EXPECT_NE(two.str().find("turns 2"), std::string::npos);
  EXPECT_EQ(one.str().find("turns"), std::string::npos);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] { writeFamily(json, two); });
  llvm::json::Value parsed = llvm::cantFail(llvm::json::parse(text));
  EXPECT_EQ(llvm::cantFail(parseFamily(*parsed.getAsObject())), two);
}

TEST_F(WgmmaTurnsTest, AreOfPersistentBlocksWithRoom) {
  EXPECT_EQ(error(persistent(1)), "");
  EXPECT_EQ(error(persistent(2)), "");
  for (int64_t turns : {-1, 0, 3, 4})
    EXPECT_NE(error(persistent(turns)).find("expected turns of 1 or 2"),
              std::string::npos);
  WgmmaSchedule other = persistent(2);
  other.persistentBlocks = 0;
  EXPECT_NE(error(other).find("turn"), std::string::npos);
  // Sets of two groups leave none to copy.
  other = persistent(2);
  other.groupsM = 2;
  EXPECT_NE(error(other).find("beside producers"), std::string::npos);
  other = persistent(2);
  other.clusterM = 2;
  EXPECT_EQ(error(other), "");
}

/// Sets share stages and have slabs and a barrier of their own.
TEST_F(WgmmaTurnsTest, LieBehindEachOther) {
  KernelFamily one = family(persistent(1)), two = family(persistent(2));
  for (unsigned part : {0, 1}) {
    WgmmaLayout alone = wgmmaLayout(workload, one, part),
                both = wgmmaLayout(workload, two, part);
    EXPECT_EQ(both.groupsOfSet(), 1);
    EXPECT_EQ(both.warpsOfSet(), 4);
    EXPECT_EQ(both.multiplyingWarps(), 8);
    EXPECT_EQ(both.multiplyingThreads(), 256);
    EXPECT_EQ(both.threads(), 384);
    EXPECT_EQ(alone.multiplyingWarps(), alone.warpsOfSet());
    EXPECT_EQ(alone.threads(), 256);
    EXPECT_EQ(both.slabsOffset(), alone.slabsOffset());
    EXPECT_EQ(both.slabStride, alone.slabStride);
    EXPECT_GE(both.barriersOffset,
              both.slabsOffset() + both.multiplyingWarps() * both.slabStride);
    EXPECT_EQ(alone.barriers(), 2 * alone.stages);
    EXPECT_EQ(both.barriers(), 2 * both.stages + 2);
    EXPECT_EQ(both.sharedMemoryBytes(),
              both.barriersOffset + 8 * both.barriers());
  }
  EXPECT_EQ(model.threads(two), 384);
  EXPECT_EQ(model.resources(workload, two).threads, 384);
}

TEST_F(WgmmaTurnsTest, HaveRegistersOfTheirOwn) {
  auto registers = wgmmaRegisters(workload, family(persistent(2)));
  ASSERT_TRUE(registers.has_value());
  EXPECT_LE(registers->producer + 2 * registers->consumer,
            3 * registers->entry);
  EXPECT_LE(registers->blocks * 384 * registers->entry, 65536);
  EXPECT_GE(registers->consumer, 128 + 40);
}

/// A set multiplies at a time, and what it stores is hidden.
TEST_F(WgmmaTurnsTest, DoTheWorkOfOneSet) {
  BlockWork alone = model.work(workload, family(persistent(1)), 1, device),
            both = model.work(workload, family(persistent(2)), 1, device);
  EXPECT_EQ(alone.warps, 8);
  EXPECT_EQ(both.warps, 12);
  EXPECT_FALSE(alone.hidesStores);
  EXPECT_TRUE(both.hidesStores);
  EXPECT_TRUE(both.isPersistent);
  EXPECT_EQ(both.tensor[0].operations, alone.tensor[0].operations);
  EXPECT_EQ(both.tensor[0].instructions, alone.tensor[0].instructions);
  EXPECT_EQ(both.otherInstructions, alone.otherInstructions);
  EXPECT_EQ(both.globalBytes, alone.globalBytes);
}

/// Operands that maps cannot describe have nobody to take turns.
TEST_F(WgmmaTurnsTest, EndWithTensorMaps) {
  for (int64_t alignment : {8, 4, 1}) {
    KernelFamily narrow = model.relaxed(family(persistent(2)), alignment);
    EXPECT_EQ(WgmmaSchedule::of(narrow.schedule).turns, 1);
    EXPECT_EQ(llvm::toString(model.check(workload, narrow, device)), "");
  }
}

TEST_F(WgmmaTurnsTest, AreOffered) {
  auto space = model.createSpace(workload, device);
  int64_t offered = 0, clusters = 0;
  space->forEachBlock(
      16, [&](const KernelFamily &block, const UKernel &, bool) {
        space->forEachSchedule(block, [&](const KernelFamily &family) {
          WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
          if (schedule.turns == 1)
            return true;
          EXPECT_EQ(schedule.groups(), 1);
          EXPECT_GT(schedule.persistentBlocks, 0);
          if (!llvm::errorToBool(model.check(workload, family, device))) {
            ++offered;
            clusters += schedule.clusterBlocks() > 1;
          }
          return true;
        });
      });
  EXPECT_GT(offered, 20);
  EXPECT_GT(clusters, 10);
}

} // namespace
