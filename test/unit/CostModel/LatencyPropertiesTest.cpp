//===- LatencyPropertiesTest.cpp - Properties of all predictions ----------===//
//
// Random devices, calibrations, workloads and kernel families: predictions are
// finite and positive, their terms add up, better hardware is never slower and
// more work never faster.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/CostModel/CostModel.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

namespace {

/// Predictions are sums and norms of many numbers.
constexpr double kRounding = 1e-9;
constexpr unsigned kSeeds = 8;
constexpr unsigned kCasesPerSeed = 250;

struct Case {
  DeviceSpec device;
  Workload workload;
  KernelFamily family;
  Shape shape;
  Partition partition;
  CostModelOptions options;

  std::string str() const {
    std::string text = device.name + " (" + std::to_string(device.smCount) +
                       " SMs) " + family.str() + " blocks " +
                       std::to_string(partition.first) + " + " +
                       std::to_string(partition.second) + " shape";
    for (int64_t extent : shape)
      text += " " + std::to_string(extent);
    return text;
  }
  std::unique_ptr<CostEvaluator> evaluator() const {
    return findCostModel("latency")->createEvaluator(workload, device, options);
  }
  /// Predicted microseconds.
  double time() const {
    return -evaluator()->score(shape, {&family, partition});
  }
};

/// Draws cases from a seed.
class CaseSource {
public:
  explicit CaseSource(unsigned seed) : random(seed) {}

  Case draw();
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[random() % values.size()];
  }
  int64_t uniform(int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random);
  }
  double real(double first, double last) {
    return std::uniform_real_distribution<double>(first, last)(random);
  }

private:
  DeviceSpec drawDevice();
  Workload drawWorkload();
  KernelFamily drawFamily(const Workload &workload, const DeviceSpec &device);

  std::mt19937 random;
};

/// Changes the SMs or their clock, with the peak in step.
void scale(DeviceSpec &device, double sms, double clock) {
  double smCount = device.smCount;
  device.smCount = std::max<int64_t>(1, std::llround(smCount * sms));
  device.clockMhz *= clock;
  device.fp32Tflops *= device.smCount / smCount * clock;
}

DeviceSpec CaseSource::drawDevice() {
  std::vector<std::string> names = builtinDeviceNames();
  DeviceSpec device =
      llvm::cantFail(loadDeviceSpec(names[random() % names.size()]));
  scale(device, real(0.2, 2), real(0.5, 1.5));
  device.dramGbps *= real(0.3, 3);
  device.l2Mib *= real(0.2, 4);
  switch (random() % 3) {
  case 0:
    device.boardPowerWatts.reset();
    break;
  case 1:
    device.boardPowerWatts = real(25, 800);
    break;
  }
  return device;
}

Workload CaseSource::drawWorkload() {
  bool lhs = random() % 2, rhs = random() % 2;
  Workload workload = random() % 3 == 0
                          ? Workload::batchMatmul({}, {}, {}, {}, lhs, rhs)
                          : Workload::matmul({}, {}, {}, lhs, rhs);
  // Operands of the epilogue: a bias along n, one along m, a residual.
  if (random() % 2)
    workload.operands.push_back({OperandRole::Extra, {matmulAxes.n}});
  if (random() % 4 == 0)
    workload.operands.push_back({OperandRole::Extra, {matmulAxes.m}});
  if (random() % 4 == 0)
    workload.operands.push_back(
        {OperandRole::Extra, workload.find(OperandRole::Output)->axes});
  return workload;
}

KernelFamily CaseSource::drawFamily(const Workload &workload,
                                    const DeviceSpec &device) {
  for (;;) {
    int64_t gm = pick({1, 2, 3, 4, 5, 8, 10, 16, 32});
    int64_t gn = pick({1, 2, 4, 6, 8, 12, 16, 24, 32, 64});
    int64_t rows = uniform(1, 16), columns = pick({1, 2, 4, 8});
    llvm::SmallVector<int64_t, 2> heights;
    if (rows > 1 && random() % 2)
      heights.push_back(uniform(1, rows - 1));
    heights.push_back(rows);
    int64_t depth = pick({8, 16, 24, 32});
    SimtSchedule schedule{gm, gn};
    schedule.stages = device.hasAsyncCopy() ? uniform(2, 4) : 2;
    schedule.vectorWidth = pick({1, 4});
    KernelFamily family =
        simtFamily(schedule, heights, columns, depth,
                   static_cast<unsigned>(workload.axes.size()));
    llvm::Error error = family.path().check(workload, family, device);
    bool isLegal = !error;
    llvm::consumeError(std::move(error));
    if (isLegal)
      return family;
  }
}

Case CaseSource::draw() {
  Case drawn;
  drawn.device = drawDevice();
  drawn.workload = drawWorkload();
  drawn.family = drawFamily(drawn.workload, drawn.device);
  LatencyConstants &constants = drawn.options.calibration.constants;
  if (random() % 2) {
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  constants.MEMBER = real(LOW, HIGH);
#include "FTuner/CostModel/LatencyConstants.def"
#include "FTuner/Workload/Contraction.h"
  }
  // Extents from 1 to some thousands, small ones as often as large ones.
  auto extent = [&] {
    return std::max<int64_t>(
        1, static_cast<int64_t>(std::exp(real(0, std::log(8192)))));
  };
  bool isPair = drawn.family.tiles.size() == 2;
  auto blocks = [&] { return ceilDiv(extent(), drawn.family.lowHeight()); };
  drawn.partition.first = blocks();
  drawn.partition.second = isPair ? blocks() : 0;
  drawn.shape = {
      drawn.partition.first * drawn.family.lowHeight() +
          (isPair ? drawn.partition.second * drawn.family.highHeight() : 0),
      extent(), extent()};
  if (drawn.workload.axes.size() > 3)
    drawn.shape.push_back(uniform(1, 64));
  return drawn;
}

/// Runs `body` on the cases of several seeds.
void forEachCase(unsigned casesPerSeed,
                 const std::function<void(CaseSource &, const Case &)> &body) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    CaseSource source(seed);
    for (unsigned i = 0; i < casesPerSeed; ++i) {
      Case drawn = source.draw();
      SCOPED_TRACE("seed " + std::to_string(seed) + ", case " +
                   std::to_string(i) + ": " + drawn.str());
      body(source, drawn);
      if (testing::Test::HasFailure())
        return;
    }
  }
}

TEST(LatencyProperties, AreFinitePositiveAndTheSumOfTheirTerms) {
  forEachCase(kCasesPerSeed, [](CaseSource &, const Case &drawn) {
    std::unique_ptr<CostEvaluator> evaluator = drawn.evaluator();
    Program program{&drawn.family, drawn.partition};
    CostBreakdown breakdown = evaluator->evaluate(drawn.shape, program);
    EXPECT_TRUE(std::isfinite(breakdown.score));
    EXPECT_LT(breakdown.score, 0);
    double sum = 0;
    for (const CostTerm &term : breakdown.terms) {
      EXPECT_TRUE(std::isfinite(term.value)) << term.name;
      EXPECT_GE(term.value, 0) << term.name;
      sum += term.weight * term.value;
    }
    EXPECT_NEAR(sum, breakdown.score, kRounding * std::abs(sum));
    EXPECT_NEAR(evaluator->score(drawn.shape, program), breakdown.score,
                kRounding * std::abs(sum));
  });
}

TEST(LatencyProperties, BetterHardwareIsNeverSlower) {
  struct Improvement {
    const char *name;
    std::function<void(Case &, double)> apply;
  };
  const Improvement improvements[] = {
      {"DRAM bandwidth",
       [](Case &c, double factor) { c.device.dramGbps *= factor; }},
      {"clock", [](Case &c, double factor) { scale(c.device, 1, factor); }},
      {"SMs", [](Case &c, double factor) { scale(c.device, factor, 1); }},
      {"size of L2", [](Case &c, double factor) { c.device.l2Mib *= factor; }},
      {"board power",
       [](Case &c, double factor) {
         if (c.device.boardPowerWatts)
           *c.device.boardPowerWatts *= factor;
       }},
      {"no power limit",
       [](Case &c, double) { c.device.boardPowerWatts.reset(); }},
      {"bandwidth of L2",
       [](Case &c, double factor) {
         c.options.calibration.constants.l2BytesPerCycle *= factor;
       }},
      {"latency of global memory",
       [](Case &c, double factor) {
         c.options.calibration.constants.globalLatency /= factor;
       }},
  };
  forEachCase(kCasesPerSeed, [&](CaseSource &source, const Case &drawn) {
    double before = drawn.time();
    for (const Improvement &improvement : improvements) {
      Case better = drawn;
      improvement.apply(better, source.real(1, 3));
      EXPECT_LE(better.time(), before * (1 + kRounding)) << improvement.name;
    }
    // One more SM, where counts of waves change least.
    Case better = drawn;
    scale(better.device, (better.device.smCount + 1.0) / better.device.smCount,
          1);
    EXPECT_LE(better.time(), before * (1 + kRounding)) << "one more SM";
  });
}

TEST(LatencyProperties, MoreWorkIsNeverFaster) {
  forEachCase(kCasesPerSeed, [](CaseSource &source, const Case &drawn) {
    double before = drawn.time();
    auto expectSlower = [&](const char *change, const Case &more) {
      EXPECT_GE(more.time(), before * (1 - kRounding))
          << change << ": " << more.str();
    };
    for (unsigned part = 0; part < drawn.family.tiles.size(); ++part) {
      Case more = drawn;
      int64_t blocks = source.pick({1, 1, 2, 7, 100});
      (part == 0 ? more.partition.first : more.partition.second) += blocks;
      more.shape[matmulAxes.m] += blocks * more.family.height(part);
      expectSlower(part == 0 ? "blocks of the first part"
                             : "blocks of the second part",
                   more);
    }
    // Eight columns keep the rows of the output as aligned as they were.
    Case more = drawn;
    more.shape[matmulAxes.n] += 8 * source.pick({1, 1, 4, 64});
    expectSlower("n", more);
    more = drawn;
    more.shape[matmulAxes.k] += source.pick({1, 8, 64, 1000});
    expectSlower("k", more);
    if (more.shape.size() > 3) {
      more = drawn;
      more.shape[3] += source.pick({1, 1, 5, 40});
      expectSlower("batch", more);
    }
  });
}

/// If DRAM and power do not limit, time depends only on the blocks of the
/// busiest SM, and a round that begins costs at least the start of a block.
TEST(LatencyProperties, WavesShow) {
  unsigned numRounds = 0;
  forEachCase(40, [&](CaseSource &, const Case &drawn) {
    Case single = drawn;
    single.family.tiles.erase(single.family.tiles.begin(),
                              single.family.tiles.end() - 1);
    single.partition.second = 0;
    single.device.boardPowerWatts.reset();
    single.device.dramGbps = 1e12;
    single.options.calibration.constants.dramStart = 0;
    single.device.smCount = std::min<int64_t>(single.device.smCount, 8);
    single.shape = {0, single.family.tiles[0][matmulAxes.n], 1024};
    single.shape.resize(single.workload.axes.size(), 1);
    auto setBlocks = [&](int64_t blocks) {
      single.partition.first = blocks;
      single.shape[matmulAxes.m] = blocks * single.family.lowHeight();
    };
    setBlocks(1);
    int64_t resident = 0;
    for (const CostTerm &figure :
         single.evaluator()
             ->evaluate(single.shape, {&single.family, single.partition})
             .figures)
      if (figure.name == "resident_blocks")
        resident = static_cast<int64_t>(figure.value);
    ASSERT_GE(resident, 1);
    double start = single.options.calibration.constants.blockStart /
                   single.device.clockMhz;
    double last = 0;
    int64_t lastPerSm = 0;
    for (int64_t blocks = 1;
         blocks <= (2 * resident + 1) * single.device.smCount; ++blocks) {
      setBlocks(blocks);
      double time = single.time();
      int64_t perSm = ceilDiv(blocks, single.device.smCount);
      if (blocks > 1 && blocks <= single.device.smCount) {
        // More blocks leave each less of what L2 delivers.
        EXPECT_GE(time, last * (1 - 1e-6)) << blocks << " blocks";
      } else if (perSm == lastPerSm) {
        EXPECT_NEAR(time, last, 1e-6 * last) << blocks << " blocks";
      } else if (perSm % resident == 1 % resident) {
        EXPECT_GE(time, last + start * (1 - 1e-6)) << blocks << " blocks";
        ++numRounds;
      } else {
        EXPECT_GE(time, last * (1 - 1e-6)) << blocks << " blocks";
      }
      last = time;
      lastPerSm = perSm;
    }
  });
  EXPECT_EQ(numRounds, 3 * 40 * kSeeds);
}

} // namespace
