//===- EquationsTest.cpp - Equations 2 to 7 worked by hand ----------------===//
//
// Dense (N = 2304, K = 768, f32) on V100: 80 SMs at 1530 MHz, 15.7 TFLOP/s,
// 900 GB/s, 80 · 1530 MHz · 128 B = 15667.2 GB/s of shared memory, 65536
// registers of an SM.
//
//===----------------------------------------------------------------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Search/Strategies/Filter.h"
#include <gtest/gtest.h>

using namespace ftuner;

namespace {
class EquationsTest : public DeviceTest {
protected:
  Metrics metrics(int64_t rows, const KernelFamily &family) {
    return ukernelMetrics(workload, {rows, 2304, 768}, family, 0, device);
  }
  SearchProblem problem() {
    return {workload, device, path, *findCostModel("sia"), {}};
  }
  static Candidate candidate(const KernelFamily &family,
                             int64_t registersPerThread) {
    return {family,
            family.ukernel(0),
            {family.threads(), registersPerThread, 16384}};
  }
  /// Counts of the filter for one candidate alone.
  FilterCounts filter(int64_t rows, const KernelFamily &family,
                      int64_t registersPerThread) {
    CandidateSet set;
    set.candidates.push_back(candidate(family, registersPerThread));
    SearchProblem problem = this->problem();
    CandidateFilter filter(problem, set);
    filter.run({rows, 2304, 768});
    return filter.counts;
  }
  /// One block of bm × bn, rm × rn for each thread.
  KernelFamily tile(int64_t bm, int64_t bn, int64_t rm, int64_t rn) {
    StubSchedule schedule;
    schedule.workersM = bm / rm;
    schedule.workersN = bn / rn;
    return stubFamily(stub, schedule, rm, rn);
  }

  Workload workload = Workload::matmul({1, 2048}, SizeRange::fixed(2304),
                                       SizeRange::fixed(768));
  StubModel stub;
  const CodegenModel *path = &stub;
};
} // namespace

TEST_F(EquationsTest, FewRows) {
  // 53 rows in blocks of 8 × 128 with 4 × 4 for each of 2 · 32 threads:
  // ceil(53 / 8) · (2304 / 128) = 7 · 18 = 126 blocks.
  Metrics m = metrics(53, tile(8, 128, 4, 4));
  EXPECT_EQ(m.blocks, 126);
  EXPECT_NEAR(m.pad, 53.0 / 56, 1e-12);   // (2)
  EXPECT_NEAR(m.occ, 126.0 / 160, 1e-12); // (3)
  // (7) data_R = 4 · (18 · 53 · 768 + 7 · 768 · 2304) = 52475904 B,
  // data_W = 4 · 53 · 2304 = 488448 B: 58.84928 us of DRAM.
  // trans_W = 126 · (8 + 128) · 768 · 4 = 52641792 B, trans_R = 126 · 64 ·
  // (4 + 4) · 768 · 4 = 198180864 B: 16.00941 us of shared memory.
  // (6) 2 · 53 · 2304 · 768 FLOP take 11.946754 us.
  EXPECT_NEAR(m.cmr, 11.946753630573248 / 58.84928, 1e-9);
}

TEST_F(EquationsTest, Hundreds) {
  // 848 = 16 · 53 rows in blocks of 64 × 96 with 8 × 6: 14 · 24 blocks.
  Metrics m = metrics(848, tile(64, 96, 8, 6));
  EXPECT_EQ(m.blocks, 336);
  EXPECT_NEAR(m.pad, 848.0 / 896, 1e-12);
  EXPECT_NEAR(m.occ, 336.0 / 400, 1e-12);
  // data_R = 4 · (24 · 848 · 768 + 14 · 768 · 2304) = 161611776 B,
  // data_W = 7815168 B: 188.25216 us. trans_W = 165150720 B, trans_R = 336 ·
  // 128 · 14 · 768 · 4 = 1849688064 B: 128.60235 us. Compute: 191.148058 us.
  EXPECT_NEAR(m.cmr, 191.14805808917197 / 188.25216, 1e-9);
}

TEST_F(EquationsTest, Thousands) {
  // 2048 rows in blocks of 128 × 128 with 8 × 8: 16 · 18 blocks, no padding.
  Metrics m = metrics(2048, tile(128, 128, 8, 8));
  EXPECT_EQ(m.blocks, 288);
  EXPECT_NEAR(m.pad, 1, 1e-12);
  EXPECT_NEAR(m.occ, 288.0 / 320, 1e-12);
  // (226492416 + 18874368) B: 272.62976 us. (226492416 + 3623878656) B of
  // shared memory: 245.76 us. Compute: 461.640593 us.
  EXPECT_NEAR(m.cmr, 461.64059312101915 / 272.62976, 1e-9);

  // (1) with other coefficients than 1.
  KernelFamily family = tile(128, 128, 8, 8);
  Program program{&family, partitionExtent(family, 2048, 1)};
  CostModelOptions weights;
  weights.own = {{"c0", 2.0}, {"c1", 3.0}, {"c2", 5.0}};
  for (const CostModel *model : costModels()) {
    if (!model->name().starts_with("sia"))
      continue;
    CostBreakdown score =
        model->evaluate(workload, {2048, 2304, 768}, program, device, weights);
    EXPECT_NEAR(score.score, 2 * m.cmr + 3 * m.pad + 5 * m.occ, 1e-9);
  }
}

TEST_F(EquationsTest, PeaksAreThoseOfThePath) {
  // (6) Pipes of twice the peak compute in half the time.
  KernelFamily family = tile(128, 128, 8, 8);
  double cmr = metrics(2048, family).cmr;
  stub.peakShare = 2;
  EXPECT_NEAR(metrics(2048, family).cmr, cmr / 2, 1e-12);
  Program program{&family, partitionExtent(family, 2048, 1)};
  EXPECT_NEAR(programMetrics(workload, {2048, 2304, 768}, program, device).cmr,
              cmr / 2, 1e-12);
}

TEST_F(EquationsTest, WorkersHoldTheRegisterTiles) {
  // (7) Eight warps of 32 × 64 read 96 numbers for each k where 256 threads of
  // 8 × 8 read 256 · 16.
  stub.threadsPerWorker = 32;
  KernelFamily family = tile(128, 128, 32, 64);
  EXPECT_EQ(family.threads(), 8 * 32);
  UKernel ukernel = family.ukernel(0);
  EXPECT_EQ(ukernel.workers, 8);
  Metrics m = metrics(2048, family);
  // 226492416 B and 288 · 8 · 96 · 3072 B of shared memory are less than DRAM.
  EXPECT_NEAR(m.cmr, 461.64059312101915 / 272.62976, 1e-9);
  device.dramGbps = 1e6;
  EXPECT_NEAR(metrics(2048, family).cmr,
              461.64059312101915 / ((226492416 + 679477248) / 15667.2e3), 1e-9);
}

TEST_F(EquationsTest, RegistersOfTheActiveBlocks) {
  // (4) 288 blocks on 80 SMs: block_bound = min(ceil(288 / 80), 2) = 2, so 256
  // threads may have 65536 / 2 / 256 = 128 registers.
  KernelFamily family = tile(128, 128, 8, 8);
  EXPECT_EQ(filter(2048, family, 128).relaxed[SetBound], 0);
  EXPECT_EQ(filter(2048, family, 129).relaxed[SetBound], 1);
  // 4 · 18 = 72 blocks: one on an SM, so 255 fit.
  EXPECT_EQ(filter(512, family, 255).relaxed[SetBound], 0);
}

TEST_F(EquationsTest, BlocksThatSaturate) {
  // (5) 2 · 80 = 160 blocks: 9 · 18 = 162 do, 8 · 18 = 144 do not.
  KernelFamily family = tile(128, 128, 8, 8);
  EXPECT_EQ(filter(9 * 128, family, 100).relaxed[SpaceAxis], 0);
  EXPECT_EQ(filter(8 * 128, family, 100).relaxed[SpaceAxis], 1);
}

TEST_F(EquationsTest, RatioOfTheBest) {
  // (6) with ψ = 0.5 of the best, 1.6933, rejects ratios below 0.8466.
  SearchProblem problem = this->problem();
  CandidateSet set;
  for (const KernelFamily &family :
       {tile(128, 128, 8, 8), tile(128, 128, 8, 4), tile(128, 128, 2, 4)})
    set.candidates.push_back(candidate(family, 16));
  CandidateFilter filter(problem, set);
  filter.run({2048, 2304, 768});
  // Shared memory bounds the others: 8 × 4 moves 226492416 + 288 · 512 · 12 ·
  // 3072 B in 361.4118 us, 2 × 4 226492416 + 288 · 2048 · 6 · 3072 B in
  // 708.3671 us: CMR 1.2773 and 0.6517.
  EXPECT_NEAR(metrics(2048, set.candidates[1].family).cmr,
              461.64059312101915 / 361.4117647, 1e-6);
  EXPECT_NEAR(metrics(2048, set.candidates[2].family).cmr,
              461.64059312101915 / 708.3670588, 1e-6);
  EXPECT_EQ(filter.counts.kept[SpaceAxis], 3);
  EXPECT_EQ(filter.counts.kept[ReduceAxis], 2);
}

TEST_F(EquationsTest, MeasuredBandwidthsDecideWhichMemoryBounds) {
  // 648 and 15381 GB/s and 11.967 TFLOP/s were measured on a V100. Blocks of
  // 128 × 192 with 8 × 8 a thread: 16 · 12 of them, 384 threads each.
  //   global  12 · |A| + 16 · |B| + 1 · |C|
  //           = 75497472 + 113246208 + 18874368 = 207618048 B
  //   shared  192 · 768 · 4 · (320 + 384 · 16) = 3812622336 B
  // Peaks: 230.687 us and 243.351 us, so shared memory bounds. Measured:
  // 320.398 us and 247.879 us, so device memory does.
  KernelFamily family = tile(128, 192, 8, 8);
  double flops = 2.0 * 2048 * 2304 * 768;
  double shared = 3812622336.0 / (device.sharedMemoryGbps() * 1e9);
  ASSERT_GT(shared, 207618048.0 / 900e9);
  EXPECT_NEAR(metrics(2048, family).cmr, flops / 15.7e12 / shared, 1e-9);
  Metrics measured = ukernelMetrics(workload, {2048, 2304, 768}, family, 0,
                                    device, {Bandwidths::Measured});
  EXPECT_NEAR(measured.cmr, flops / 11.967e12 / (207618048.0 / 648e9), 1e-9);
  // The filter, and SIA, see the same.
  SearchProblem problem = this->problem();
  problem.options.own["bandwidths"] = std::string("measured");
  problem.options.cost.own = problem.options.own;
  CandidateSet set;
  set.candidates.push_back(candidate(family, 16));
  CandidateFilter filter(problem, set);
  EXPECT_DOUBLE_EQ(filter.run({2048, 2304, 768}).survivors.front().metrics.cmr,
                   measured.cmr);
  EXPECT_DOUBLE_EQ(problem.score(family, {2048, 2304, 768}),
                   measured.cmr + measured.pad + measured.occ);
  EXPECT_EQ(llvm::toString(problem.check()), "");
  device.measuredDramGbps.reset();
  EXPECT_EQ(llvm::toString(problem.check()),
            "option --bandwidths: expected a device with the fields "
            "'measured_dram_gbps' and 'measured_shared_memory_gbps' for "
            "'measured', but device 'v100' has none");
}
