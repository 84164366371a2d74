//===- WgmmaPingPongTest.cpp - Ping-pong schedules of the wgmma path ------===//
#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "Products.h"

#include "gtest/gtest.h"

using namespace ftuner;

namespace {

class WgmmaPingPongTest : public ::testing::Test {
protected:
  WgmmaPingPongTest()
      : workload(Workload::matmul({1, 4096, 1}, SizeRange::fixed(2304),
                                  SizeRange::fixed(768), false, true)) {
    setTypes(workload, ElementType::F16, ElementType::F32);
  }

  static WgmmaSchedule persistent(bool pingPong) {
    WgmmaSchedule schedule = {1, 1, 4, 16, false, 1, true};
    schedule.persistentBlocks = 132;
    schedule.pingPong = pingPong;
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

TEST_F(WgmmaPingPongTest, AreAFieldOfSchedules) {
  KernelFamily one = family(persistent(false)), two = family(persistent(true));
  EXPECT_FALSE(one == two);
  EXPECT_TRUE(WgmmaSchedule::of(two.schedule).pingPong);
  EXPECT_FALSE(WgmmaSchedule().pingPong);
  EXPECT_NE(two.str().find("ping-pong"), std::string::npos);
  EXPECT_EQ(one.str().find("ping-pong"), std::string::npos);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] { writeFamily(json, two); });
  llvm::json::Value parsed = llvm::cantFail(llvm::json::parse(text));
  EXPECT_EQ(llvm::cantFail(parseFamily(*parsed.getAsObject())), two);
}

TEST_F(WgmmaPingPongTest, AreOfPersistentBlocksWithRoom) {
  EXPECT_EQ(error(persistent(false)), "");
  EXPECT_EQ(error(persistent(true)), "");
  WgmmaSchedule other = persistent(true);
  other.persistentBlocks = 0;
  EXPECT_NE(error(other).find("expected ping-pong of persistent blocks alone"),
            std::string::npos);
  // Sets of two warpgroups leave none to copy.
  other = persistent(true);
  other.warpgroupsM = 2;
  EXPECT_NE(error(other).find("beside producers"), std::string::npos);
  other = persistent(true);
  other.clusterM = 2;
  EXPECT_EQ(error(other), "");
}

/// Sets share stages and have staging tiles and a barrier of their own.
TEST_F(WgmmaPingPongTest, LieBehindEachOther) {
  KernelFamily one = family(persistent(false)), two = family(persistent(true));
  for (unsigned part : {0, 1}) {
    WgmmaLayout alone = wgmmaLayout(workload, one, part),
                both = wgmmaLayout(workload, two, part);
    EXPECT_EQ(both.warpgroupsOfSet(), 1);
    EXPECT_EQ(both.warpsOfSet(), 4);
    EXPECT_EQ(both.consumerWarps(), 8);
    EXPECT_EQ(both.consumerThreads(), 256);
    EXPECT_EQ(both.threads(), 384);
    EXPECT_EQ(alone.consumerWarps(), alone.warpsOfSet());
    EXPECT_EQ(alone.threads(), 256);
    EXPECT_EQ(both.stagingOffset(), alone.stagingOffset());
    EXPECT_EQ(both.stagingStride, alone.stagingStride);
    EXPECT_GE(both.barriersOffset,
              both.stagingOffset() + both.consumerWarps() * both.stagingStride);
    EXPECT_EQ(alone.barriers(), 2 * alone.stages);
    EXPECT_EQ(both.barriers(), 2 * both.stages + 2);
    EXPECT_EQ(both.sharedMemoryBytes(),
              both.barriersOffset + 8 * both.barriers());
  }
  EXPECT_EQ(model.threads(two), 384);
  EXPECT_EQ(model.resources(workload, two).threads, 384);
}

TEST_F(WgmmaPingPongTest, HaveRegistersOfTheirOwn) {
  auto registers = wgmmaRegisters(workload, family(persistent(true)));
  ASSERT_TRUE(registers.has_value());
  EXPECT_LE(registers->producer + 2 * registers->consumer,
            3 * registers->entry);
  EXPECT_LE(registers->blocks * 384 * registers->entry, 65536);
  EXPECT_GE(registers->consumer, 128 + 40);
}

/// A set multiplies at a time, and what it stores is hidden.
TEST_F(WgmmaPingPongTest, DoTheWorkOfOneSet) {
  BlockWork alone = model.work(workload, family(persistent(false)), 1, device),
            both = model.work(workload, family(persistent(true)), 1, device);
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

/// Operands that maps cannot describe end ping-pong.
TEST_F(WgmmaPingPongTest, EndWithTensorMaps) {
  for (int64_t alignment : {8, 4, 1}) {
    KernelFamily narrow = model.relaxed(family(persistent(true)), alignment);
    EXPECT_FALSE(WgmmaSchedule::of(narrow.schedule).pingPong);
    EXPECT_EQ(llvm::toString(model.check(workload, narrow, device)), "");
  }
}

TEST_F(WgmmaPingPongTest, AreOffered) {
  auto space = model.createSpace(workload, device);
  int64_t offered = 0, clusters = 0;
  space->forEachBlock(
      16, [&](const KernelFamily &block, const UKernel &, BlockKind) {
        space->forEachSchedule(block, [&](const KernelFamily &family) {
          WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
          if (!schedule.pingPong)
            return true;
          EXPECT_EQ(schedule.warpgroups(), 1);
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
