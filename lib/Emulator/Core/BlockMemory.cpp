//===- BlockMemory.cpp - Memory that the threads of a block use -----------===//
#include "BlockRunner.h"
#include "Text.h"

using namespace ftuner::emulator;

std::string BlockRunner::clusterName() const {
  return cluster.blocks.size() == 1
             ? ""
             : joinText(" of block ", rank, " of the cluster");
}

void BlockRunner::checkAccess(Fiber &fiber, const char *address, size_t bytes,
                              AccessKind kind, uint32_t alignment,
                              uint32_t site) {
  if (cluster.blocks.size() > 1)
    if (BlockRunner *peer = findPeer(address))
      peer->checkRemoteUse(fiber, /*isLasting=*/true, site);
  if (launch->checker &&
      !launch->checker->access(fiber, address, bytes, kind, alignment, site))
    kill(fiber);
  if (launch->counter)
    launch->counter->access(fiber, address, bytes, kind, alignment, site);
}

//===----------------------------------------------------------------------===//
// Shared memory of other blocks
//===----------------------------------------------------------------------===//

BlockRunner *BlockRunner::findPeer(const char *address) const {
  if (cluster.blocks.size() == 1 || shared.contains(address, 1))
    return nullptr;
  for (BlockRunner *block : cluster.blocks)
    if (block != this && block->shared.contains(address, 1))
      return block;
  return nullptr;
}

char *BlockRunner::mapAddress(Fiber &fiber, char *address, uint32_t blockRank,
                              uint32_t site) {
  if (blockRank >= cluster.blocks.size()) {
    launch->log->report(
        fiber, ErrorKind::OutOfBounds, site,
        joinText("expected a block below ", cluster.blocks.size(),
                 ", the size of the cluster, but got ", blockRank));
    kill(fiber);
  }
  if (!shared.contains(address, 0)) {
    launch->log->report(
        fiber, ErrorKind::OutOfBounds, site,
        joinText("expected an address in the block's shared memory, but got "
                 "offset ",
                 address - shared.dynamicBase, " of dynamic shared memory (",
                 shared.dynamicBytes, " bytes)"));
    kill(fiber);
  }
  return cluster.blocks[blockRank]->translate(*this, address);
}

void BlockRunner::checkRemoteUse(Fiber &user, bool isLasting, uint32_t site) {
  if (hasEnded) {
    launch->log->report(user, ErrorKind::Lifetime, site,
                        joinText("shared memory", clusterName(),
                                 " is used after that block has ended; a "
                                 "barrier of the cluster at the end keeps it"));
    kill(user);
  }
  if (!(user.startedBlocks >> rank & 1)) {
    user.startedBlocks |= 1u << rank;
    bool isKnown = launch->checker
                       ? launch->checker->knowsStart(user, rank, cluster.phase)
                       : cluster.phase != 0;
    if (!isKnown)
      launch->log->report(user, ErrorKind::Lifetime, site,
                          joinText("shared memory", clusterName(),
                                   " is used before that block is known to "
                                   "have started: no barrier of the cluster "
                                   "comes before"));
  }
  if (isLasting && launch->checker)
    launch->checker->noteRemoteUse(user, rank, site);
}
