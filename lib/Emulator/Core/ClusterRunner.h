//===- ClusterRunner.h - Runs the blocks of a cluster together --*- C++ -*-===//
#ifndef FTUNER_LIB_EMULATOR_CORE_CLUSTERRUNNER_H
#define FTUNER_LIB_EMULATOR_CORE_CLUSTERRUNNER_H

#include "BlockRunner.h"
#include <memory>
#include <random>
#include <vector>

namespace ftuner::emulator {

/// Runs one cluster at a time: its blocks take turns on one CPU thread. What
/// blocks keep for the next one is kept.
class ClusterRunner {
public:
  ClusterRunner() = default;
  ClusterRunner(const ClusterRunner &) = delete;
  ClusterRunner &operator=(const ClusterRunner &) = delete;

  /// As BlockRunner::prepare, for all blocks.
  bool prepare(const Launch &launch, bool runsOnCaller);
  /// Runs one cluster to its end, or to an error or an interruption that stops
  /// it.
  void run(uint64_t linearCluster);

private:
  void begin(uint64_t linearCluster);
  void resumeReady();
  /// Performs one thing that lets threads go on, if no thread can go on.
  bool makeProgress();
  /// Calls `step` of one block after the other until one returns true.
  template <typename Step>
  bool anyBlock(Step step);
  bool openBarrier();
  bool answerPolls();
  /// Says why no thread can go on.
  void reportDeadlock();

  const Launch *launch = nullptr;
  Cluster cluster;
  /// At least the blocks of the cluster.
  std::vector<std::unique_ptr<BlockRunner>> runners;
  std::vector<BlockRunner *> blocks; ///< By rank.
  std::vector<BlockRunner *> order;  ///< In which blocks take their turns.
  std::mt19937 random;
  /// Events when polls were answered last, which was so often since.
  uint64_t eventsAtPolls = 0, idlePolls = 0;
};

} // namespace ftuner::emulator

#endif // FTUNER_LIB_EMULATOR_CORE_CLUSTERRUNNER_H
