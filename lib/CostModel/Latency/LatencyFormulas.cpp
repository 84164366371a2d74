//===- LatencyFormulas.cpp - Time of a kernel from its facts --------------===//
#include "FTuner/CostModel/LatencyFormulas.h"
#include "LoopFormulas.h"
#include "StreamFormulas.h"

using namespace ftuner;
using namespace ftuner::latency;

//===----------------------------------------------------------------------===//
// Blocks on SMs
//===----------------------------------------------------------------------===//

double ftuner::busiestScheduler(const LatencyDevice &device, double warps,
                                double blocks) {
  if (2 * warps == device.warpSchedulers) {
    double run = device.halfBlockRun, both = 2 * run;
    double rest = blocks - both * std::floor(blocks / both);
    return run * std::floor(blocks / both) + std::min(rest, run);
  }
  return std::ceil(blocks * std::ceil(warps) / device.warpSchedulers);
}

/// Registers are handed out in units of 256 per warp, and each scheduler has
/// its own.
unsigned latency::residentBlocks(const LatencyDevice &device,
                                 const LatencyBlock &block) {
  double registersPerWarp =
      std::ceil(block.registersPerThread * 32 / 256) * 256;
  double warpsPerScheduler = std::floor(
      device.registersPerSm / (device.warpSchedulers * registersPerWarp));
  double resident = std::min(
      {std::floor(warpsPerScheduler * device.warpSchedulers / block.warps),
       std::floor(device.sharedMemoryPerSmBytes /
                  std::max(block.sharedMemoryBytes, 1.0)),
       std::floor(device.maxThreadsPerSm / (32 * block.warps)),
       device.maxBlocksPerSm});
  return static_cast<unsigned>(
      std::clamp(resident, 1.0, double(LatencyLoopTable::maxResident)));
}

LatencyTable ftuner::tabulate(const LatencyDevice &device,
                              const LatencyKernel &kernel,
                              const LatencyConstants &constants) {
  return std::visit(
      [&](const auto &block) -> LatencyTable {
        return tabulate(device, block, constants);
      },
      kernel);
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

/// Microseconds of the kernels that sum slices. They start when all slices are
/// written, so nothing hides their reads, from L2 where it still holds the
/// sums.
static double secondKernelTime(const LatencyDevice &device,
                               const LatencyGrid &grid, bool isTensor,
                               const LatencyConstants &constants) {
  double missed = knee(grid.sumBytes / heldBytes(device, isTensor, constants));
  double dram = missed * grid.sumBytes /
                dramBytesPerMicrosecond(device, isTensor, constants);
  double l2 =
      (1 - missed) * grid.sumBytes /
      (device.smCount * device.clockMhz * l2BytesPerCycle(isTensor, constants));
  return grid.secondKernels * constants.secondKernel + dram + l2;
}

/// Microseconds in which the board may spend the energy of the launch, of which
/// blocks take `picojoules` at 16 nm.
static double powerTime(const LatencyDevice &device, double picojoules,
                        double dramBytes, const LatencyConstants &constants) {
  picojoules =
      picojoules / device.nodeEfficiency + dramBytes * constants.dramEnergy;
  return picojoules * 1e-6 /
         (device.boardPowerWatts * (1 - constants.idleShare));
}

/// Microseconds of a kernel that would take `unlimited` without a power limit,
/// and takes `power` under that limit by itself.
static double limitPower(double unlimited, double power,
                         const LatencyConstants &constants) {
  return power > unlimited ? unlimited * ((power + constants.powerDelay) /
                                          (unlimited + constants.powerDelay))
                           : unlimited;
}

static double boxTime(const LatencyDevice &device, const LatencyGrid &grid) {
  return grid.boxCycles / device.clockMhz;
}

namespace {
/// Microseconds of a launch that do not depend on the kind of its kernel.
struct LaunchTimes {
  Times times;
  /// The power limit by itself, the kernel under it, and the kernels that sum
  /// slices.
  double power = 0, kernel = 0, second = 0;

  template <typename Launch>
  LaunchTimes(const LatencyDevice &device, const Launch &launch,
              const LatencyGrid &grid, const LatencyConstants &constants)
      : times(launch.times()),
        power(powerTime(device, launch.energy(), times.dramBytes, constants)),
        kernel(limitPower(times.unlimited, power, constants)),
        second(secondKernelTime(device, grid, launch.isTensor(), constants)) {}
};
} // namespace

/// Calls `use` with the launch, a LoopLaunch or a StreamLaunch.
template <typename Use>
static auto withLaunch(const LatencyDevice &device, const LatencyPart *parts,
                       unsigned numParts, const LatencyGrid &grid,
                       const LatencyConstants &constants, const Use &use) {
  if (std::holds_alternative<LatencyLoopTable>(*parts[0].table))
    return use(LoopLaunch(device, parts, numParts, grid, constants));
  return use(StreamLaunch(device, parts, numParts, grid, constants));
}

double ftuner::predictLatency(const LatencyDevice &device,
                              const LatencyPart *parts, unsigned numParts,
                              const LatencyGrid &grid,
                              const LatencyConstants &constants) {
  return withLaunch(
      device, parts, numParts, grid, constants, [&](const auto &launch) {
        LaunchTimes all(device, launch, grid, constants);
        return constants.launch +
               std::max(all.kernel + all.second, boxTime(device, grid));
      });
}

LatencyPrediction ftuner::explainLatency(const LatencyDevice &device,
                                         const LatencyPart *parts,
                                         unsigned numParts,
                                         const LatencyGrid &grid,
                                         const LatencyConstants &constants) {
  return withLaunch(
      device, parts, numParts, grid, constants, [&](const auto &launch) {
        LaunchTimes all(device, launch, grid, constants);
        const Times &times = all.times;
        const Waves &waves = times.waves;
        LatencyPrediction terms;
        terms.launch = constants.launch;
        terms.secondKernel = all.second;
        terms.boxes =
            std::max(boxTime(device, grid) - all.kernel - all.second, 0.0);
        terms.total = terms.launch + all.kernel + all.second + terms.boxes;
        terms.residentBlocks = waves.resident;
        terms.schedulerImbalance = imbalance(
            device, launch.tallBlock(), std::min(waves.resident, waves.perSm));
        terms.waves = waves.blocks / (device.smCount * waves.resident);
        terms.dramBytes = times.dramBytes;
        terms.smTime = times.sm;
        terms.dramTime = times.dram;
        terms.powerTime = all.power;

        double accounted = launch.addTerms(terms, times);
        accounted += terms.tail;
        // The norm of SMs and DRAM is shared out the same way.
        std::array<double, 2> share =
            shares(times.overlap,
                   std::array<double, 2>{times.sm - times.bare, times.dram});
        double together = times.unlimited - times.bare;
        double scale = (times.bare + together * share[0]) / accounted;
        for (double *term : {&terms.issue, &terms.sharedMemory, &terms.l2,
                             &terms.latency, &terms.blockStart, &terms.tail})
          *term *= scale;
        terms.dram = together * share[1];
        terms.power = all.kernel - times.unlimited;
        return terms;
      });
}
