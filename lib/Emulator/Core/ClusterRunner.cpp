//===- ClusterRunner.cpp - Runs the blocks of a cluster together ----------===//
//
// Threads run until none can go on, then one thing is done that lets some go
// on, as late as the rules allow: collectives of warps, products of matrices,
// barriers, copies. The first block of the order for which there is something
// goes ahead, as far as it can without the others, which is how blocks get as
// far apart as they may.
//
//===----------------------------------------------------------------------===//
#include "ClusterRunner.h"
#include "Checks/Text.h"
#include <algorithm>
#include <functional>

using namespace ftuner::emulator;

namespace {
/// Answers without any event in between after which nobody expects one.
constexpr uint64_t kMaxIdlePolls = 1000;
} // namespace

bool ClusterRunner::prepare(const Launch &newLaunch, bool runsOnCaller) {
  launch = &newLaunch;
  random.seed(launch->seed);
  while (runners.size() < launch->clusterSize)
    runners.push_back(std::make_unique<BlockRunner>(
        cluster, static_cast<uint32_t>(runners.size())));
  blocks.clear();
  cluster.blocks.clear();
  for (uint32_t i = 0; i < launch->clusterSize; ++i) {
    blocks.push_back(runners[i].get());
    cluster.blocks.push_back(runners[i]->inCluster());
    if (!runners[i]->prepare(newLaunch, runsOnCaller))
      return false;
  }
  order = blocks;
  if (launch->order == RunOrder::Reverse)
    std::reverse(order.begin(), order.end());
  return true;
}

void ClusterRunner::begin(uint64_t linearCluster) {
  cluster.isStopped = false;
  cluster.events = eventsAtPolls = idlePolls = 0;
  cluster.phase = cluster.arrived = 0;
  cluster.arriving.clear();
  cluster.completed.clear();
  if (launch->checker) {
    std::vector<SharedMemory> memories;
    for (const BlockRunner *block : blocks)
      memories.push_back(block->memory.shared());
    size_t threads =
        size_t(launch->block[0]) * launch->block[1] * launch->block[2];
    launch->checker->beginCluster(
        std::move(memories), static_cast<uint32_t>(linearCluster), threads);
  }
  // Blocks of a cluster are neighbours along x, whose extent is a multiple.
  uint64_t block = linearCluster * blocks.size();
  for (BlockRunner *runner : blocks)
    runner->begin(block++);
}

void ClusterRunner::run(uint64_t linearCluster) {
  begin(linearCluster);
  while (true) {
    resumeReady();
    if (cluster.isStopped)
      return;
    if (anyBlock(&BlockRunner::hasReadyThreads))
      continue;
    if (std::all_of(order.begin(), order.end(), [](const BlockRunner *block) {
          return block->scheduler.isThrough();
        }))
      break;
    if (!makeProgress()) {
      reportDeadlock();
      return;
    }
    if (cluster.isStopped || launch->log->isFull())
      return;
  }
  for (BlockRunner *block : blocks)
    block->memory.checkGuards();
}

void ClusterRunner::resumeReady() {
  if (launch->order == RunOrder::Shuffled && order.size() > 1)
    std::shuffle(order.begin(), order.end(), random);
  for (BlockRunner *block : order) {
    block->scheduler.resumeReady();
    if (cluster.isStopped)
      return;
    block->endIfThrough();
  }
}

template <typename Step>
bool ClusterRunner::anyBlock(Step step) {
  return std::any_of(order.begin(), order.end(), [&](BlockRunner *block) {
    return std::invoke(step, *block) || cluster.isStopped;
  });
}

bool ClusterRunner::makeProgress() {
  auto land = [&](bool isWaitedFor) {
    return std::any_of(order.begin(), order.end(), [&](BlockRunner *block) {
      return block->transfers.landOne(isWaitedFor);
    });
  };
  return anyBlock([](BlockRunner &block) {
           return block.collectives.completeWaiting();
         }) ||
         anyBlock(
             [](BlockRunner &block) { return block.products.complete(); }) ||
         anyBlock([](BlockRunner &block) { return block.barriers.open(); }) ||
         openBarrier() || land(/*isWaitedFor=*/true) || answerPolls() ||
         land(/*isWaitedFor=*/false);
}

bool ClusterRunner::openBarrier() {
  if (cluster.arrived == 0 ||
      !std::all_of(order.begin(), order.end(), [](const BlockRunner *block) {
        return block->clusterBarrier.isReached();
      }))
    return false;
  for (BlockRunner *block : blocks)
    if (!block->clusterBarrier.leave()) {
      cluster.isStopped = true;
      return true;
    }
  ++cluster.phase;
  cluster.arrived = 0;
  cluster.completed = std::move(cluster.arriving);
  cluster.arriving.clear();
  return true;
}

bool ClusterRunner::answerPolls() {
  if (!anyBlock(&BlockRunner::hasPolls))
    return false;
  bool isIdle = cluster.events == eventsAtPolls;
  eventsAtPolls = cluster.events;
  idlePolls = isIdle ? idlePolls + 1 : 0;
  if (idlePolls > kMaxIdlePolls)
    return false;
  for (BlockRunner *block : order)
    block->answerPolls();
  return true;
}

void ClusterRunner::reportDeadlock() {
  if (anyBlock(&BlockRunner::reportDivergence) ||
      anyBlock(&BlockRunner::hasKilledThreads))
    return; // The others wait for threads that were killed.
  std::string text;
  const Fiber *first = nullptr;
  for (const BlockRunner *block : blocks) {
    std::string waits = block->describeWaits(first);
    text += joinText(text.empty() || waits.empty() ? "" : "; ", waits);
  }
  if (first)
    launch->log->report(*first, ErrorKind::Deadlock, first->site,
                        joinText("deadlock: ", text), "; the first is");
}
