//===- Scheduler.cpp - The threads of a block -----------------------------===//
#include "Block/Scheduler.h"
#include <algorithm>
#include <cstdlib>

using namespace ftuner::emulator;
namespace context = boost::context::detail;

static thread_local Fiber *runningFiber = nullptr;

Fiber *Scheduler::running() { return runningFiber; }

std::string Scheduler::blockName() const {
  return sharedCluster.blocks.size() == 1
             ? ""
             : joinText(" of block ", blockRank, " of the cluster");
}

//===----------------------------------------------------------------------===//
// Beginning
//===----------------------------------------------------------------------===//

bool Scheduler::prepare(const Launch &launch, bool runsOnCaller) {
  thisLaunch = &launch;
  isCaller = runsOnCaller;
  size_t count = size_t(launch.block[0]) * launch.block[1] * launch.block[2];
  if (!stacks.allocate(count))
    return false;
  threads.resize(count);
  lanes.resize((count + kWarpSize - 1) / kWarpSize);
  order.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    order[i] = launch.order == RunOrder::Reverse ? count - 1 - i : i;
  random.seed(launch.seed + blockRank);
  return true;
}

void Scheduler::initializeFiber(Fiber &fiber, uint32_t index,
                                const SharedMemory &shared) {
  const uint32_t (&dim)[3] = thisLaunch->block;
  ThreadRegisters &registers = fiber.registers;
  registers.threadId[0] = index % dim[0];
  registers.threadId[1] = index / dim[0] % dim[1];
  registers.threadId[2] = index / dim[0] / dim[1];
  std::copy_n(dim, 3, registers.blockDim);
  std::copy_n(thisLaunch->grid, 3, registers.gridDim);
  uint32_t lane = index % kWarpSize, bit = 1u << lane;
  registers.laneId = lane;
  registers.warpId = index / kWarpSize;
  registers.warpCount = lanes.size();
  registers.warpSize = kWarpSize;
  uint32_t masks[5] = {bit, bit | (bit - 1), bit - 1, ~(bit - 1),
                       ~(bit | (bit - 1))};
  std::copy_n(masks, 5, registers.laneMasks);
  registers.dynamicSharedBytes = thisLaunch->dynamicSharedBytes;
  registers.dynamicShared = shared.dynamicBase;
  registers.staticShared = shared.staticBase;

  fiber.index = index;
  fiber.actor =
      static_cast<uint32_t>(blockRank * lanes.size() * kWarpSize + index);
  fiber.site = 0;
  fiber.warpPhase = 0;
  fiber.copies.clear();
  fiber.groupSizes.clear();
  fiber.committed = 0;
  fiber.productsIssued = fiber.productsDone = 0;
  fiber.productGroups.clear();
  fiber.hasProductFence = false;
  fiber.vainWaits = 0;
  fiber.copiesDone = fiber.registerCalls = fiber.bulkGroups = 0;
  fiber.hasArrived = fiber.isArrivalAligned = false;
  fiber.arrivalPhase = fiber.arrivalSite = fiber.fenceTime = 0;
  fiber.startedBlocks = 0;
  fiber.state = Fiber::State::Ready;
  fiber.stackBase = stacks.base(index);
  fiber.stackTop = stacks.top(index);
  fiber.sanitizer.create(fiber.stackBase, fiber.stackTop - fiber.stackBase);
  fiber.context = context::make_fcontext(
      fiber.stackTop, fiber.stackTop - fiber.stackBase, &Scheduler::fiberMain);
}

void Scheduler::initializeIds(ThreadRegisters &registers,
                              uint64_t linearBlock) const {
  const uint32_t (&grid)[3] = thisLaunch->grid;
  uint32_t size = thisLaunch->clusterSize;
  uint32_t (&id)[3] = registers.blockId;
  id[0] = linearBlock % grid[0];
  id[1] = linearBlock / grid[0] % grid[1];
  id[2] = linearBlock / grid[0] / grid[1];
  std::copy_n(id, 3, registers.clusterId);
  registers.clusterId[0] = id[0] / size;
  std::copy_n(grid, 3, registers.clusterGrid);
  registers.clusterGrid[0] = grid[0] / size;
  for (uint32_t i = 0; i < 3; ++i) {
    registers.blockInCluster[i] = i == 0 ? blockRank : 0;
    registers.clusterDim[i] = i == 0 ? size : 1;
  }
  registers.clusterRank = blockRank;
  registers.clusterSize = size;
}

void Scheduler::begin(BlockRunner &runner, const SharedMemory &shared,
                      uint64_t linearBlock) {
  for (uint32_t i = 0; i < threads.size(); ++i) {
    threads[i].runner = &runner;
    threads[i].scheduler = this;
    initializeFiber(threads[i], i, shared);
    initializeIds(threads[i].registers, linearBlock);
  }
  std::fill(lanes.begin(), lanes.end(), ~0u);
  if (uint32_t rest = threads.size() % kWarpSize)
    lanes.back() = (1u << rest) - 1;
  std::fill_n(counts, Fiber::kNumStates, 0);
  counts[static_cast<unsigned>(Fiber::State::Ready)] = threads.size();
  isAtEnd = false;
}

//===----------------------------------------------------------------------===//
// Switching between scheduler and fibers
//===----------------------------------------------------------------------===//

void Scheduler::fiberMain(context::transfer_t transfer) {
  Fiber &fiber = *static_cast<Fiber *>(transfer.data);
  Scheduler &scheduler = *fiber.scheduler;
  scheduler.ownContext = transfer.fctx;
  fiber.sanitizer.enterFrom(scheduler.ownSanitizer);
  scheduler.thisLaunch->entry(scheduler.thisLaunch->parameters);
  ++scheduler.sharedCluster.events;
  scheduler.yield(fiber, Fiber::State::Exited);
  std::abort(); // Exited fibers are not resumed.
}

void Scheduler::resume(Fiber &fiber) {
  runningFiber = &fiber;
  ownSanitizer.takeThread();
  ownSanitizer.leaveFor(fiber.sanitizer);
  context::transfer_t back = context::jump_fcontext(fiber.context, &fiber);
  ownSanitizer.enterFrom(fiber.sanitizer);
  fiber.context = back.fctx;
  runningFiber = nullptr;
}

void Scheduler::yield(Fiber &fiber, Fiber::State state) {
  setState(fiber, state);
  bool isLast = state == Fiber::State::Exited || state == Fiber::State::Killed;
  fiber.sanitizer.leaveFor(ownSanitizer, isLast);
  context::transfer_t back = context::jump_fcontext(ownContext, nullptr);
  fiber.sanitizer.enterFrom(ownSanitizer);
  ownContext = back.fctx;
}

void Scheduler::kill(Fiber &fiber) {
  if (!owns(fiber))
    fiber.scheduler->kill(fiber);
  lanes[fiber.registers.warpId] &= ~(1u << fiber.registers.laneId);
  yield(fiber, Fiber::State::Killed);
  std::abort(); // Killed fibers are not resumed.
}

//===----------------------------------------------------------------------===//
// The order
//===----------------------------------------------------------------------===//

void Scheduler::resumeReady() {
  if (thisLaunch->order == RunOrder::Shuffled)
    std::shuffle(order.begin(), order.end(), random);
  // Collectives let lanes go on. In order, a warp runs from barrier to barrier,
  // so that its stacks stay in the cache.
  for (size_t begin = 0; begin < order.size(); begin += kWarpSize) {
    size_t end = std::min(begin + kWarpSize, order.size());
    bool any = true;
    while (any) {
      any = false;
      for (size_t i = begin; i < end; ++i) {
        Fiber &fiber = threads[order[i]];
        if (fiber.state != Fiber::State::Ready)
          continue;
        any = true;
        resume(fiber);
        if (sharedCluster.isStopped || isInterrupted()) {
          sharedCluster.isStopped = true;
          return;
        }
      }
    }
  }
}
