//===- GridRunner.h - Runs the blocks of a launch ---------------*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_GRIDRUNNER_H
#define FTUNER_LIB_EMULATOR_CORE_GRIDRUNNER_H

#include "ClusterRunner.h"
#include "KernelLimits.h"
#include <memory>
#include <string>
#include <vector>

namespace ftuner::emulator {

/// Says why the grid, block and shared memory of `launch` suit no GPU or not
/// this kernel; empty where they do. Grids without blocks are fine.
std::string checkLaunch(const std::string &kernel, const KernelLimits &limits,
                        const Launch &launch);

/// Keeps stacks and shared memory of the blocks that run at the same time for
/// the next launch. Not safe from several threads.
class GridRunner {
public:
  /// Runs all blocks of a launch that checkLaunch accepts, until one is
  /// through, the log is full or the launch is interrupted: on `workers` CPU
  /// threads, 0 for as many as there are cores, fewer where the system has no
  /// more threads or memory for them, and on one where the launch has a
  /// checker or a counter. Says what went wrong before the first block ran;
  /// errors of the kernel are in the launch's log.
  std::string run(const Launch &launch, unsigned workers);

private:
  std::vector<std::unique_ptr<ClusterRunner>> runners;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_GRIDRUNNER_H
