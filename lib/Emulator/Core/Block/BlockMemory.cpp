//===- BlockMemory.cpp - Memory that a block's threads use ----------------===//
#include "Block/BlockMemory.h"
#include "Matrices/WarpMatrix.h"
#include <algorithm>
#include <cstring>

using namespace ftuner::emulator;

namespace {
/// Bytes around shared memory that a kernel must not write; checked per block.
constexpr size_t kGuardBytes = 1024;
/// Bytes before and after those, so that wild reads yield NaN and do not crash.
constexpr size_t kSlackBytes = 256 * 1024;
constexpr size_t kAlignment = 1024; ///< Dynamic shared memory's.
/// Matrix descriptors hold the low bits of addresses in shared memory.
constexpr size_t kWindowBytes = size_t(1) << MatrixDescriptor::kAddressBits;

size_t alignTo(size_t value, size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
} // namespace

//===----------------------------------------------------------------------===//
// Shared memory of the block
//===----------------------------------------------------------------------===//

void BlockMemory::prepare() {
  const Launch &launch = scheduler.launch();
  size_t staticEnd = kGuardBytes + launch.staticSharedBytes;
  size_t dynamicBegin = alignTo(staticEnd + kGuardBytes, kAlignment);
  size_t end = dynamicBegin + launch.dynamicSharedBytes + kGuardBytes;
  arena.resize(end + kWindowBytes + 2 * kSlackBytes,
               static_cast<char>(kPoison));
  char *base = reinterpret_cast<char *>(alignTo(
      reinterpret_cast<uintptr_t>(arena.data()) + kSlackBytes, kWindowBytes));
  memory.staticBase = base + kGuardBytes;
  memory.staticBytes = launch.staticSharedBytes;
  memory.dynamicBase = base + dynamicBegin;
  memory.dynamicBytes = launch.dynamicSharedBytes;
}

void BlockMemory::begin() {
  char *begin = memory.staticBase - kGuardBytes;
  char *end = memory.dynamicBase + memory.dynamicBytes + kGuardBytes;
  std::memset(begin, kPoison, end - begin);
}

void BlockMemory::checkGuards() const {
  auto isIntact = [](const char *begin, const char *end) {
    return std::all_of(begin, end, [](char byte) {
      return static_cast<unsigned char>(byte) == kPoison;
    });
  };
  const char *staticEnd = memory.staticBase + memory.staticBytes;
  const char *dynamicEnd = memory.dynamicBase + memory.dynamicBytes;
  if (!isIntact(memory.staticBase - kGuardBytes, memory.staticBase) ||
      !isIntact(staticEnd, memory.dynamicBase) ||
      !isIntact(dynamicEnd, dynamicEnd + kGuardBytes))
    scheduler.report(scheduler.fibers()[0], ErrorKind::SharedMemoryGuard, 0,
                     "the block wrote outside its shared memory (",
                     memory.dynamicBytes, " bytes dynamic, ",
                     memory.staticBytes, " static)");
}

char *BlockMemory::window() const {
  return reinterpret_cast<char *>(
      reinterpret_cast<uintptr_t>(memory.dynamicBase) >>
      MatrixDescriptor::kAddressBits << MatrixDescriptor::kAddressBits);
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void BlockMemory::checkAccess(Fiber &fiber, const char *address, size_t bytes,
                              AccessKind kind, uint32_t alignment,
                              uint32_t site) {
  if (scheduler.cluster().blocks.size() > 1)
    if (const ClusterBlock *peer = findPeer(address))
      peer->memory->checkRemoteUse(fiber, /*isLasting=*/true, site);
  MemoryChecker *checker = scheduler.checker();
  if (checker && !checker->access(fiber, address, bytes, kind, alignment, site))
    scheduler.kill(fiber);
  if (ExecutionCounter *counter = scheduler.counter())
    counter->access(fiber, address, bytes, kind, alignment, site);
}

//===----------------------------------------------------------------------===//
// Shared memory of other blocks
//===----------------------------------------------------------------------===//

const ClusterBlock *BlockMemory::findPeer(const char *address) const {
  const std::vector<ClusterBlock> &blocks = scheduler.cluster().blocks;
  if (blocks.size() == 1 || memory.contains(address, 1))
    return nullptr;
  for (const ClusterBlock &block : blocks)
    if (block.memory != this && block.memory->memory.contains(address, 1))
      return &block;
  return nullptr;
}

char *BlockMemory::mapAddress(Fiber &fiber, char *address, uint32_t rank,
                              uint32_t site) {
  const std::vector<ClusterBlock> &blocks = scheduler.cluster().blocks;
  if (rank >= blocks.size()) {
    scheduler.report(fiber, ErrorKind::OutOfBounds, site,
                     "expected a block below ", blocks.size(),
                     ", the size of the cluster, but got ", rank);
    scheduler.kill(fiber);
  }
  if (!memory.contains(address, 0)) {
    scheduler.report(
        fiber, ErrorKind::OutOfBounds, site,
        "expected an address in the block's shared memory, but got "
        "offset ",
        address - memory.dynamicBase, " of dynamic shared memory (",
        memory.dynamicBytes, " bytes)");
    scheduler.kill(fiber);
  }
  return blocks[rank].memory->translate(*this, address);
}

void BlockMemory::checkRemoteUse(Fiber &user, bool isLasting, uint32_t site) {
  if (scheduler.hasEnded()) {
    scheduler.report(user, ErrorKind::Lifetime, site, "shared memory",
                     blockName(),
                     " is used after that block has ended; a barrier of the "
                     "cluster at the end keeps it");
    scheduler.kill(user);
  }
  MemoryChecker *checker = scheduler.checker();
  uint32_t rank = scheduler.rank();
  if (!(user.startedBlocks >> rank & 1)) {
    user.startedBlocks |= 1u << rank;
    uint32_t phase = scheduler.cluster().phase;
    bool isKnown =
        checker ? checker->knowsStart(user, rank, phase) : phase != 0;
    if (!isKnown)
      scheduler.report(
          user, ErrorKind::Lifetime, site, "shared memory", blockName(),
          " is used before that block is known to have started: no "
          "barrier of the cluster comes before");
  }
  if (isLasting && checker)
    checker->noteRemoteUse(user, rank, site);
}
