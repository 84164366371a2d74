//===- ArtifactStages.cpp - The filter of the authors' code ---------------===//
//
// github.com/guesswewho/FTuner, tvm/src/auto_scheduler/search_policy:
// filter_rules.h and sketch_policy.cc. There are differences: a stage that
// leaves nothing is relaxed, where that code has no answer; shared memory
// counts as the codegen path allocates it, all stages of its pipeline included;
// a stable order decides between equals.
//
//===----------------------------------------------------------------------===//
#include "FTuner/Search/Problem/SearchTuning.h"
#include "ShapeFilter.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace ftuner;

namespace {
/// The figures that the artifact computes for a uKernel, whatever the shape.
class ArtifactFigures {
public:
  ArtifactFigures(const SearchProblem &problem, const Candidate &candidate)
      : problem(problem), candidate(candidate), ukernel(candidate.ukernel),
        rates(problem.device, metricOptions().read(problem.options.own)) {}

  /// Returns the accumulators of a thread.
  double accumulators() const {
    return registerPoints() * ukernel.workers / candidate.resources.threads;
  }
  /// Returns the registers of a thread: reg · (1 + k / 16).
  double registers() const {
    double depth = 1;
    for (unsigned axis : problem.workload.reduceAxes().list())
      depth *= static_cast<double>(ukernel.blockTile[axis]);
    return accumulators() * (1 + depth / 16);
  }
  /// Returns the compute time of a k iteration of the block over the time to
  /// load its operands.
  double sharedMemoryCmr() const {
    double points = 1, bytes = 0;
    for (int64_t size : ukernel.blockTile)
      points *= static_cast<double>(size);
    for (const Operand &operand : problem.workload.operands) {
      if (operand.role != OperandRole::Lhs &&
          operand.role != OperandRole::Rhs &&
          operand.role != OperandRole::Input)
        continue;
      double size = static_cast<double>(operand.elementBytes);
      for (unsigned axis : AxisSet::containing(operand.axes).list())
        size *= static_cast<double>(ukernel.blockTile[axis]);
      bytes += size;
    }
    return ratio(points, bytes, rates.globalBytesPerSecond);
  }
  /// Returns the compute time of a register tile over the time to read its
  /// operands from shared memory. As in the artifact, the sum of the tile's
  /// sizes is one too large.
  double registerCmr() const {
    double elements = 1;
    for (unsigned axis : problem.workload.spaceAxes().list())
      elements += static_cast<double>(ukernel.registerTile[axis]);
    int64_t bytes = problem.workload.operands.front().elementBytes;
    return ratio(registerPoints(), elements * static_cast<double>(bytes),
                 rates.sharedBytesPerSecond);
  }

private:
  double registerPoints() const {
    double points = 1;
    for (unsigned axis : problem.workload.spaceAxes().list())
      points *= static_cast<double>(ukernel.registerTile[axis]);
    return points;
  }
  double ratio(double points, double bytes, double bytesPerSecond) const {
    double flops =
        rates.flopsPerSecond(candidate.family.path(), problem.workload);
    return (2 * points / flops) / (bytes / bytesPerSecond);
  }

  const SearchProblem &problem;
  const Candidate &candidate;
  const UKernel &ukernel;
  MetricRates rates;
};
} // namespace

/// Returns how often the required share is lowered until `value` exceeds it.
static double timesLowered(double value) {
  double lacking = (tuning::artifactShare - value) / tuning::artifactShareStep;
  return lacking < 0 ? 0 : std::floor(lacking + 1e-9) + 1;
}

static std::string above(llvm::StringRef figure, double minimum) {
  std::string text;
  llvm::raw_string_ostream(text)
      << figure << " > " << llvm::format("%.4g", minimum);
  return text;
}

void ftuner::runArtifactStages(ShapeFilter &filter) {
  const SearchProblem &problem = filter.problem;
  const DeviceSpec &device = problem.device;
  int64_t activeBlocks = filter.options.activeBlocksPerSm;
  auto figures = [&](const Survivor &s) {
    return ArtifactFigures(problem, filter.candidate(s));
  };

  auto threads = [&](const Survivor &s) {
    return static_cast<double>(filter.candidate(s).resources.threads);
  };
  filter.apply({Threads,
                [&](const Survivor &s) {
                  int64_t count = filter.candidate(s).resources.threads;
                  return count % tuning::filterThreads == 0 &&
                         count < tuning::artifactThreads;
                },
                [&](const Survivor &s) {
                  return threads(s) < tuning::artifactThreads ? threads(s)
                                                              : -threads(s);
                },
                "threads", threads,
                [&] {
                  return "a multiple of " +
                         std::to_string(tuning::filterThreads) + " below " +
                         std::to_string(tuning::artifactThreads);
                }});

  auto blocksOfSm = [&](const Survivor &s) {
    return ceilDiv(s.metrics.blocks, device.smCount);
  };
  auto occ = [](const Survivor &s) { return s.metrics.occ; };
  filter.apply(
      {Occupancy,
       [&](const Survivor &s) {
         return blocksOfSm(s) >= activeBlocks && timesLowered(occ(s)) == 0;
       },
       [&](const Survivor &s) {
         // A share is lowered at most 20 times, so too few blocks rank
         // below every share, and more blocks above fewer.
         if (blocksOfSm(s) < activeBlocks)
           return -1e3 * device.smCount * activeBlocks / s.metrics.blocks;
         return -timesLowered(occ(s));
       },
       "occ", occ,
       [&] {
         return above("occ", tuning::artifactShare) +
                " and ceil(blocks / SMs) ≥ " + std::to_string(activeBlocks);
       }});

  auto residentBlocks = [&](const Survivor &s) {
    return static_cast<double>(std::min(activeBlocks, blocksOfSm(s)));
  };
  auto registers = [&](const Survivor &s) { return figures(s).registers(); };
  auto registersOfSm = [&](const Survivor &s) {
    return residentBlocks(s) * threads(s) * registers(s);
  };
  filter.apply(
      {Registers,
       [&](const Survivor &s) {
         return registers(s) < tuning::artifactRegisters &&
                registersOfSm(s) < static_cast<double>(device.registersPerSm);
       },
       [&](const Survivor &s) {
         return -std::max(registers(s) / tuning::artifactRegisters,
                          registersOfSm(s) / device.registersPerSm);
       },
       "registers", registers,
       [&] {
         return "reg · (1 + k / 16) < " +
                std::to_string(std::lround(tuning::artifactRegisters)) +
                ", and of min(ceil(blocks / SMs), " +
                std::to_string(activeBlocks) + ") blocks less than an SM's";
       }});

  auto sharedMemory = [&](const Survivor &s) {
    return residentBlocks(s) *
           static_cast<double>(filter.candidate(s).resources.sharedMemoryBytes);
  };
  filter.apply({SharedMemory,
                [&](const Survivor &s) {
                  return sharedMemory(s) <
                         static_cast<double>(device.sharedMemoryPerSmBytes);
                },
                [&](const Survivor &s) { return -sharedMemory(s); }, "bytes",
                sharedMemory,
                [&] {
                  return "shared memory of min(ceil(blocks / SMs), " +
                         std::to_string(activeBlocks) +
                         ") blocks less than an SM's";
                }});

  auto pad = [](const Survivor &s) { return s.metrics.pad; };
  filter.apply({Padding,
                [&](const Survivor &s) { return timesLowered(pad(s)) == 0; },
                [&](const Survivor &s) { return -timesLowered(pad(s)); }, "pad",
                pad, [&] { return above("pad", tuning::artifactShare); }});

  filter.keepBest(
      SharedMemoryCmr, filter.options.psiCountShared, "cmr of shared memory",
      [&](const Survivor &s) { return figures(s).sharedMemoryCmr(); });
  filter.keepBest(RegisterCmr, filter.options.psiCount, "cmr of registers",
                  [&](const Survivor &s) { return figures(s).registerCmr(); });
}
