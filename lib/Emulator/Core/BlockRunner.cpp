//===- BlockRunner.cpp - Runs the threads of a block as fibers ------------===//
#include "BlockRunner.h"
#include "RuntimeFunctions.h"
#include "Text.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

using namespace ftuner::emulator;
namespace context = boost::context::detail;

namespace {
/// Usable bytes of a thread's stack, with an inaccessible page below.
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kGuardPageBytes = 4096;
constexpr size_t kStackStride = kStackBytes + kGuardPageBytes;
/// Stacks start at different cache sets; a page's worth of them.
constexpr size_t kStackColourBytes = 192;
/// Bytes around shared memory that a kernel must not write; checked per block.
constexpr size_t kSharedGuardBytes = 1024;
/// Bytes before and after those, so that wild reads yield NaN and do not crash.
constexpr size_t kSharedSlackBytes = 256 * 1024;
constexpr size_t kSharedAlignment = 1024;
/// Matrix descriptors hold the low bits of addresses in shared memory.
constexpr size_t kSharedWindowBytes = size_t(1)
                                      << MatrixDescriptor::kAddressBits;

thread_local Fiber *runningFiber = nullptr;

size_t alignTo(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
} // namespace

extern "C" Fiber *ftuner_emulator_thread() { return runningFiber; }

//===----------------------------------------------------------------------===//
// Memory of a block
//===----------------------------------------------------------------------===//

BlockRunner::~BlockRunner() { freeStacks(); }

void BlockRunner::freeStacks() {
  if (!stacks)
    return;
  forgetStacks(stacks, stackCount * kStackStride);
  munmap(stacks, stackCount * kStackStride);
  stacks = nullptr;
  stackCount = 0;
}

bool BlockRunner::allocateStacks(size_t count) {
  if (count <= stackCount)
    return true;
  freeStacks();
  void *memory = mmap(nullptr, count * kStackStride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  stacks = static_cast<char *>(memory);
  stackCount = count;
  for (size_t i = 0; i < count; ++i)
    if (mprotect(stacks + i * kStackStride, kGuardPageBytes, PROT_NONE) != 0)
      return false;
  return true;
}

bool BlockRunner::prepare(const Launch &newLaunch, bool runsOnCaller) {
  launch = &newLaunch;
  isCaller = runsOnCaller;
  size_t threads =
      size_t(launch->block[0]) * launch->block[1] * launch->block[2];
  if (!allocateStacks(threads))
    return false;
  fibers.resize(threads);
  warps.resize((threads + kWarpSize - 1) / kWarpSize);
  warpgroups.resize((threads + kGroupThreads - 1) / kGroupThreads);
  order.resize(threads);
  for (uint32_t i = 0; i < threads; ++i)
    order[i] = launch->order == RunOrder::Reverse ? threads - 1 - i : i;
  random.seed(launch->seed + rank);

  size_t staticEnd = kSharedGuardBytes + launch->staticSharedBytes;
  size_t dynamicBegin =
      alignTo(staticEnd + kSharedGuardBytes, kSharedAlignment);
  size_t end = dynamicBegin + launch->dynamicSharedBytes + kSharedGuardBytes;
  arena.resize(end + kSharedWindowBytes + 2 * kSharedSlackBytes,
               static_cast<char>(kPoison));
  char *base = reinterpret_cast<char *>(
      alignTo(reinterpret_cast<uintptr_t>(arena.data()) + kSharedSlackBytes,
              kSharedWindowBytes));
  shared.staticBase = base + kSharedGuardBytes;
  shared.staticBytes = launch->staticSharedBytes;
  shared.dynamicBase = base + dynamicBegin;
  shared.dynamicBytes = launch->dynamicSharedBytes;
  return true;
}

void BlockRunner::initializeFiber(Fiber &fiber, uint32_t index) {
  const uint32_t (&dim)[3] = launch->block;
  ThreadRegisters &registers = fiber.registers;
  registers.threadId[0] = index % dim[0];
  registers.threadId[1] = index / dim[0] % dim[1];
  registers.threadId[2] = index / dim[0] / dim[1];
  std::copy_n(dim, 3, registers.blockDim);
  std::copy_n(launch->grid, 3, registers.gridDim);
  uint32_t lane = index % kWarpSize, bit = 1u << lane;
  registers.laneId = lane;
  registers.warpId = index / kWarpSize;
  registers.warpCount = warps.size();
  registers.warpSize = kWarpSize;
  uint32_t masks[5] = {bit, bit | (bit - 1), bit - 1, ~(bit - 1),
                       ~(bit | (bit - 1))};
  std::copy_n(masks, 5, registers.laneMasks);
  registers.dynamicSharedBytes = launch->dynamicSharedBytes;
  registers.dynamicShared = shared.dynamicBase;
  registers.staticShared = shared.staticBase;

  fiber.runner = this;
  fiber.index = index;
  fiber.actor = static_cast<uint32_t>(rank * warps.size() * kWarpSize + index);
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
  fiber.stackBase = stacks + index * kStackStride + kGuardPageBytes;
  fiber.stackTop = stacks + (index + 1) * kStackStride -
                   index * kStackColourBytes % kGuardPageBytes;
  fiber.sanitizer.create(fiber.stackBase, fiber.stackTop - fiber.stackBase);
  fiber.context =
      context::make_fcontext(fiber.stackTop, fiber.stackTop - fiber.stackBase,
                             &BlockRunner::fiberMain);
}

void BlockRunner::initializeIds(ThreadRegisters &registers,
                                uint64_t linearBlock) const {
  const uint32_t (&grid)[3] = launch->grid;
  uint32_t size = launch->clusterSize;
  uint32_t (&id)[3] = registers.blockId;
  id[0] = linearBlock % grid[0];
  id[1] = linearBlock / grid[0] % grid[1];
  id[2] = linearBlock / grid[0] / grid[1];
  std::copy_n(id, 3, registers.clusterId);
  registers.clusterId[0] = id[0] / size;
  std::copy_n(grid, 3, registers.clusterGrid);
  registers.clusterGrid[0] = grid[0] / size;
  for (uint32_t i = 0; i < 3; ++i) {
    registers.blockInCluster[i] = i == 0 ? rank : 0;
    registers.clusterDim[i] = i == 0 ? size : 1;
  }
  registers.clusterRank = rank;
  registers.clusterSize = size;
}

void BlockRunner::beginBlock(uint64_t linearBlock) {
  char *begin = shared.staticBase - kSharedGuardBytes;
  char *end = shared.dynamicBase + shared.dynamicBytes + kSharedGuardBytes;
  std::memset(begin, kPoison, end - begin);
  for (uint32_t i = 0; i < fibers.size(); ++i) {
    initializeFiber(fibers[i], i);
    initializeIds(fibers[i].registers, linearBlock);
  }
  for (Warp &warp : warps)
    warp = {/*lanes=*/~0u};
  if (uint32_t rest = fibers.size() % kWarpSize)
    warps.back().lanes = (1u << rest) - 1;
  for (Warpgroup &group : warpgroups)
    group = {};
  productsInFlight = 0;
  mbarriers.clear();
  transfers.clear();
  bulkStores.clear();
  for (NamedBarrier &barrier : namedBarriers)
    barrier = {};
  registersPerThread = 0;
  updatePlainCopies();
  std::fill_n(counts, Fiber::kNumStates, 0);
  counts[static_cast<unsigned>(Fiber::State::Ready)] = fibers.size();
  hasEnded = false;
  if (launch->counter)
    launch->counter->beginBlock(shared, rank, fibers.size());
}

void BlockRunner::endBlock() {
  hasEnded = true;
  if (launch->counter)
    launch->counter->endBlock(rank);
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::Exited &&
        fiber.productsIssued != fiber.productsDone)
      launch->log->report(
          fiber, ErrorKind::PendingProduct, 0,
          joinText(fiber.productsIssued - fiber.productsDone,
                   " products of matrices still pending at the kernel's end"));
  reportTransfersAtEnd();
  finishBulkStores();
  for (Fiber &fiber : fibers) {
    size_t pending = 0, first = 0;
    for (size_t i = fiber.copies.size(); i-- > 0;)
      if (fiber.copies[i].bytes != 0) { // Else its mbarrier had it done.
        ++pending;
        first = i;
      }
    if (fiber.state != Fiber::State::Exited || pending == 0)
      continue;
    launch->log->report(fiber, ErrorKind::PendingCopy, fiber.copies[first].site,
                        joinText(pending,
                                 " asynchronous copies still pending at the "
                                 "kernel's end"),
                        ", the first issued");
  }
  if (launch->checker && !hasKilledFibers())
    launch->checker->endBlock(rank);
}

void BlockRunner::checkGuards() {
  auto isIntact = [](const char *begin, const char *end) {
    return std::all_of(begin, end, [](char byte) {
      return static_cast<unsigned char>(byte) == kPoison;
    });
  };
  const char *staticEnd = shared.staticBase + shared.staticBytes;
  const char *dynamicEnd = shared.dynamicBase + shared.dynamicBytes;
  if (!isIntact(shared.staticBase - kSharedGuardBytes, shared.staticBase) ||
      !isIntact(staticEnd, shared.dynamicBase) ||
      !isIntact(dynamicEnd, dynamicEnd + kSharedGuardBytes))
    launch->log->report(fibers[0], ErrorKind::SharedMemoryGuard, 0,
                        joinText("the block wrote outside its shared memory (",
                                 shared.dynamicBytes, " bytes dynamic, ",
                                 shared.staticBytes, " static)"));
}

//===----------------------------------------------------------------------===//
// Switching between scheduler and fibers
//===----------------------------------------------------------------------===//

void BlockRunner::fiberMain(context::transfer_t transfer) {
  Fiber &fiber = *static_cast<Fiber *>(transfer.data);
  BlockRunner &runner = *fiber.runner;
  runner.scheduler = transfer.fctx;
  fiber.sanitizer.enterFrom(runner.schedulerSanitizer);
  runner.launch->entry(runner.launch->parameters);
  runner.yield(fiber, Fiber::State::Exited);
  std::abort(); // Exited fibers are not resumed.
}

void BlockRunner::resume(Fiber &fiber) {
  runningFiber = &fiber;
  schedulerSanitizer.takeThread();
  schedulerSanitizer.leaveFor(fiber.sanitizer);
  context::transfer_t back = context::jump_fcontext(fiber.context, &fiber);
  schedulerSanitizer.enterFrom(fiber.sanitizer);
  fiber.context = back.fctx;
  runningFiber = nullptr;
}

void BlockRunner::yield(Fiber &fiber, Fiber::State state) {
  setState(fiber, state);
  bool isLast = state == Fiber::State::Exited || state == Fiber::State::Killed;
  fiber.sanitizer.leaveFor(schedulerSanitizer, isLast);
  context::transfer_t back = context::jump_fcontext(scheduler, nullptr);
  fiber.sanitizer.enterFrom(schedulerSanitizer);
  scheduler = back.fctx;
}

void BlockRunner::kill(Fiber &fiber) {
  if (fiber.runner != this)
    fiber.runner->kill(fiber);
  warps[fiber.registers.warpId].lanes &= ~(1u << fiber.registers.laneId);
  yield(fiber, Fiber::State::Killed);
  std::abort(); // Killed fibers are not resumed.
}

void BlockRunner::setState(Fiber &fiber, Fiber::State state) {
  if (state == Fiber::State::Exited)
    ++cluster.events;
  --counts[static_cast<unsigned>(fiber.state)];
  fiber.state = state;
  ++counts[static_cast<unsigned>(state)];
}

//===----------------------------------------------------------------------===//
// Scheduling
//===----------------------------------------------------------------------===//

void BlockRunner::resumeReadyFibers() {
  if (launch->order == RunOrder::Shuffled)
    std::shuffle(order.begin(), order.end(), random);
  // Collectives let lanes go on. In order, a warp runs from barrier to barrier,
  // so that its stacks stay in the cache.
  for (size_t begin = 0; begin < order.size(); begin += kWarpSize) {
    size_t end = std::min(begin + kWarpSize, order.size());
    bool any = true;
    while (any) {
      any = false;
      for (size_t i = begin; i < end; ++i) {
        Fiber &fiber = fibers[order[i]];
        if (fiber.state != Fiber::State::Ready)
          continue;
        any = true;
        resume(fiber);
        if (cluster.isStopped || isInterrupted()) {
          cluster.isStopped = true;
          return;
        }
      }
    }
  }
}

bool BlockRunner::reportDivergence() {
  if (count(Fiber::State::AtWarpOp) != 0) {
    reportMissingLanes();
    return true;
  }
  for (const Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtProducts) {
      launch->log->report(
          fiber, ErrorKind::Divergence, fiber.site,
          "divergence: a wait for products of matrices that not all "
          "threads of the warpgroup issue");
      return true;
    }
  return false;
}

std::string BlockRunner::describeWaits(const Fiber *&first) const {
  std::string text;
  auto add = [&](size_t threads, const auto &...words) {
    text +=
        joinText(text.empty() ? "" : "; ", threads, " threads wait ", words...);
  };
  for (const Mbarrier &mbarrier : mbarriers)
    for (uint32_t parity : {0u, 1u}) {
      size_t threads = 0;
      for (const Fiber &fiber : fibers) {
        bool waits = fiber.state == Fiber::State::AtMbarrier ||
                     fiber.state == Fiber::State::Polling;
        if (!waits || fiber.mbarrier != mbarrier.number ||
            (fiber.mbarrierPhase & 1) != parity)
          continue;
        first = first ? first : &fiber;
        ++threads;
      }
      if (threads)
        add(threads, "for phase ", mbarrier.phase, " of ", describe(mbarrier),
            ", which expects ", mbarrier.pending, " more arrivals of ",
            mbarrier.expected, " and ", mbarrier.bytes, " bytes");
    }
  for (uint32_t id = 0; id < kNamedBarriers; ++id) {
    size_t threads = 0;
    for (const Fiber &fiber : fibers)
      if (fiber.state == Fiber::State::AtNamedBarrier &&
          fiber.barrierId == id) {
        first = first ? first : &fiber;
        ++threads;
      }
    if (threads)
      add(threads, "at barrier ", id, clusterName(), ", where ",
          namedBarriers[id].arrived, " of ", namedBarriers[id].expected,
          " threads came");
  }
  size_t atRegisters = 0;
  for (const Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtRegisters) {
      first = first ? first : &fiber;
      ++atRegisters;
    }
  if (atRegisters) {
    std::string sizes;
    for (const Warpgroup &group : warpgroups)
      sizes += joinText(sizes.empty() ? "" : ", ", group.registers);
    add(atRegisters, "for registers (setmaxnreg) beyond the pool of ",
        registersPerThread,
        " for a thread of each warpgroup; the warpgroups "
        "have ",
        sizes);
  }
  for (const Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtBarrier ||
        fiber.state == Fiber::State::AtCluster)
      first = first ? first : &fiber;
  if (count(Fiber::State::AtBarrier) != 0)
    add(count(Fiber::State::AtBarrier), "at a barrier of the block",
        clusterName());
  if (count(Fiber::State::AtCluster) != 0)
    add(count(Fiber::State::AtCluster), "at the barrier of the cluster, where ",
        cluster.arrived, " threads came");
  return text;
}
