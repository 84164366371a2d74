//===- WarpCollectives.cpp - Operations in which lanes meet ---------------===//
#include "Warps/WarpCollectives.h"
#include "Matrices/WarpMatrix.h"
#include <algorithm>

using namespace ftuner::emulator;

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

static bool isSame(const WarpRequest &a, const WarpRequest &b) {
  return a.op == b.op && a.mask == b.mask && a.site == b.site;
}

void WarpCollectives::meetOthers(Fiber &fiber) {
  const WarpRequest &request = fiber.request;
  fiber.site = request.site;
  size_t index = fiber.registers.warpId;
  Warp &warp = warps[index];
  Fiber *lanes = &fiber - fiber.registers.laneId;
  if (warp.waiting == 0)
    warp.isMixed = false;
  else if (!isSame(request, lanes[__builtin_ctz(warp.waiting)].request))
    warp.isMixed = true;
  warp.waiting |= 1u << fiber.registers.laneId;
  uint32_t expected = request.mask & scheduler.liveLanes(index);
  if (warp.waiting == expected && !warp.isMixed)
    execute(index, lanes, expected);
  if (warp.waiting != 0 || scheduler.cluster().isStopped)
    scheduler.yield(fiber, Fiber::State::AtWarpOp);
}

bool WarpCollectives::completeWaiting() {
  if (scheduler.count(Fiber::State::AtWarpOp) == 0)
    return false;
  const Cluster &cluster = scheduler.cluster();
  bool hasPerformed = false;
  for (size_t i = 0; i < warps.size() && !cluster.isStopped; ++i)
    hasPerformed |= completeWarp(i);
  return hasPerformed && !cluster.isStopped;
}

bool WarpCollectives::completeWarp(size_t index) {
  Warp &warp = warps[index];
  Fiber *lanes = &scheduler.fibers()[index * kWarpSize];
  const Cluster &cluster = scheduler.cluster();
  bool hasPerformed = false;
  for (uint32_t lane = 0; lane < kWarpSize && !cluster.isStopped; ++lane) {
    if (!(warp.waiting >> lane & 1))
      continue;
    const WarpRequest &request = lanes[lane].request;
    if (!(request.mask >> lane & 1)) {
      scheduler.report(lanes[lane], ErrorKind::WarpCollective, request.site,
                       "the lane is not in the mask of its own warp "
                       "collective");
      scheduler.cluster().isStopped = true;
      return false;
    }
    uint32_t expected = request.mask & scheduler.liveLanes(index), present = 0;
    for (uint32_t other = 0; other < kWarpSize; ++other) {
      if (!(warp.waiting >> other & 1))
        continue;
      const WarpRequest &its = lanes[other].request;
      if (its.op == request.op && its.mask == request.mask &&
          (its.site == request.site || request.op == WarpOp::Sync))
        present |= 1u << other;
    }
    if ((present & expected) != expected)
      continue; // The rest may still come; else reportMissingLanes reports it.
    execute(index, lanes, expected);
    hasPerformed = true;
  }
  return hasPerformed;
}

//===----------------------------------------------------------------------===//
// Shuffles and votes
//===----------------------------------------------------------------------===//

/// The lane that `request` of lane `lane` reads, and whether it is in range
/// (PTX ISA, shfl.sync).
static std::pair<uint32_t, bool> shuffleSource(const WarpRequest &request,
                                               uint32_t lane) {
  uint32_t clamp = request.maskAndClamp & 31;
  uint32_t segment = request.maskAndClamp >> 8 & 31;
  uint32_t maxLane = (lane & segment) | (clamp & ~segment);
  uint32_t minLane = lane & segment;
  uint32_t offset = request.offset & 31;
  switch (request.op) {
  case WarpOp::ShuffleUp: {
    bool valid = int32_t(lane - offset) >= int32_t(maxLane);
    return {valid ? lane - offset : lane, valid};
  }
  case WarpOp::ShuffleDown:
    if (lane + offset > maxLane)
      return {lane, false};
    return {lane + offset, true};
  case WarpOp::ShuffleXor:
    if ((lane ^ offset) > maxLane)
      return {lane, false};
    return {lane ^ offset, true};
  default: {
    uint32_t source = minLane | (offset & ~segment);
    if (source > maxLane)
      return {lane, false};
    return {source, true};
  }
  }
}

void WarpCollectives::shuffle(Fiber *lanes, uint32_t present) {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!(present >> lane & 1))
      continue;
    WarpRequest &request = lanes[lane].request;
    auto [source, valid] = shuffleSource(request, lane);
    if (present >> source & 1) {
      request.result = lanes[source].request.value | uint64_t(valid) << 32;
      continue;
    }
    scheduler.report(lanes[lane], ErrorKind::WarpCollective, request.site,
                     "a shuffle reads from lane ", source,
                     ", which does not take part");
    request.result = 0xffffffffu;
  }
}

static void vote(WarpOp op, Fiber *lanes, uint32_t present) {
  uint32_t ballot = 0;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (present >> lane & 1 && lanes[lane].request.value)
      ballot |= 1u << lane;
  uint64_t result = 0;
  if (op == WarpOp::VoteAny)
    result = ballot != 0;
  else if (op == WarpOp::VoteAll)
    result = ballot == present;
  else if (op == WarpOp::VoteBallot)
    result = ballot;
  else if (op == WarpOp::VoteUniform)
    result = ballot == 0 || ballot == present;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (present >> lane & 1)
      lanes[lane].request.result = result;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

void WarpCollectives::checkMatrixRow(Fiber &fiber, const char *row,
                                     AccessKind kind, uint32_t site) {
  const char *name = kind == AccessKind::Read ? "read" : "write";
  if (reinterpret_cast<uintptr_t>(row) % kMatrixRowBytes != 0)
    scheduler.report(fiber, ErrorKind::Misaligned, site, "misaligned ", name,
                     " of a matrix row: expected an alignment "
                     "of ",
                     kMatrixRowBytes, " bytes, but got address ",
                     formatAddress(row));
  const SharedMemory &shared = memory.shared();
  if (!shared.contains(row, kMatrixRowBytes)) {
    scheduler.report(fiber, ErrorKind::OutOfBounds, site, "out-of-bounds ",
                     name, " of a matrix row of ", kMatrixRowBytes,
                     " bytes at offset ", row - shared.dynamicBase,
                     " of dynamic shared memory (", shared.dynamicBytes,
                     " bytes)");
    scheduler.kill(fiber);
  }
  MemoryChecker *checker = scheduler.checker();
  if (checker && !checker->access(fiber, row, kMatrixRowBytes, kind,
                                  /*alignment=*/1, site))
    scheduler.kill(fiber);
}

void WarpCollectives::copyMatrices(Fiber &fiber, WarpOp op, char *row,
                                   uint32_t *registers, uint32_t code,
                                   uint32_t site) {
  if (fiber.registers.laneId < MatrixCopy::decode(code).lanes())
    checkMatrixRow(
        fiber, row,
        op == WarpOp::LoadMatrix ? AccessKind::Read : AccessKind::Write, site);
  meet(fiber, {op, ~0u, code, 0, 0, site, 0, registers, row});
}

void WarpCollectives::multiply(Fiber &fiber, uint32_t *registers, uint32_t code,
                               uint32_t site) {
  meet(fiber, {WarpOp::MultiplyMatrices, ~0u, code, 0, 0, site, 0, registers});
}

void WarpCollectives::executeMatrixOp(Fiber *lanes, uint32_t present) {
  const Fiber &first = lanes[__builtin_ctz(present)];
  uint32_t code = first.request.value;
  const std::vector<Fiber> &fibers = scheduler.fibers();
  auto existing = static_cast<uint32_t>(fibers.data() + fibers.size() - lanes);
  if (existing < kWarpSize) {
    scheduler.report(first, ErrorKind::WarpCollective, first.request.site,
                     "a matrix operation needs all 32 lanes of a "
                     "warp, but got ",
                     existing);
    scheduler.cluster().isStopped = true;
    return;
  }
  // What lanes have that were stopped by an error.
  uint32_t lost[MmaVariant::kMaxRegisters];
  std::fill(std::begin(lost), std::end(lost), ~0u);
  WarpValues values;
  MatrixRows rows;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    bool isPresent = present >> lane & 1;
    values[lane] = isPresent ? lanes[lane].request.registers : lost;
    rows[lane] = isPresent ? lanes[lane].request.row : nullptr;
  }
  if (first.request.op == WarpOp::MultiplyMatrices) {
    multiplyMatrices(MmaVariant::decode(code), values);
    return;
  }
  bool isLoad = first.request.op == WarpOp::LoadMatrix;
  MatrixCopy copy = MatrixCopy::decode(code);
  if (ExecutionCounter *counter = scheduler.counter())
    counter->copyMatrices(copy, rows,
                          isLoad ? AccessKind::Read : AccessKind::Write);
  (isLoad ? loadMatrices : storeMatrices)(copy, rows, values);
}

//===----------------------------------------------------------------------===//
// Elections
//===----------------------------------------------------------------------===//

/// Elects always the same of the same lanes; the PTX ISA leaves open which.
void WarpCollectives::elect(Fiber *lanes, uint32_t present) {
  unsigned before = 0;
  if (scheduler.launch().order == RunOrder::Shuffled)
    before = scheduler.launch().seed % unsigned(__builtin_popcount(present));
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    if (present >> lane & 1)
      lanes[lane].request.result = before-- == 0;
}

//===----------------------------------------------------------------------===//
// All collectives
//===----------------------------------------------------------------------===//

void WarpCollectives::execute(size_t index, Fiber *lanes, uint32_t present) {
  WarpOp op = lanes[__builtin_ctz(present)].request.op;
  switch (op) {
  case WarpOp::ShuffleXor:
  case WarpOp::ShuffleUp:
  case WarpOp::ShuffleDown:
  case WarpOp::ShuffleIndex:
    shuffle(lanes, present);
    break;
  case WarpOp::VoteAny:
  case WarpOp::VoteAll:
  case WarpOp::VoteBallot:
  case WarpOp::VoteUniform:
    vote(op, lanes, present);
    break;
  case WarpOp::Sync:
    break;
  case WarpOp::Elect:
    elect(lanes, present);
    break;
  case WarpOp::MultiplyMatrices:
  case WarpOp::LoadMatrix:
  case WarpOp::StoreMatrix:
    executeMatrixOp(lanes, present);
    if (scheduler.cluster().isStopped)
      return;
    break;
  }
  // Memory accesses are ordered only where the whole warp meets.
  bool isOrdered = op == WarpOp::Sync && present == scheduler.liveLanes(index);
  MemoryChecker *checker = scheduler.checker();
  if (op == WarpOp::Sync && checker)
    checker->meet(lanes, present);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!(present >> lane & 1))
      continue;
    lanes[lane].warpPhase += isOrdered;
    scheduler.setState(lanes[lane], Fiber::State::Ready);
  }
  warps[index].waiting &= ~present;
}

//===----------------------------------------------------------------------===//
// Lanes that do not come
//===----------------------------------------------------------------------===//

static const char *getPlaceName(Fiber::State state) {
  switch (state) {
  case Fiber::State::AtBarrier:
  case Fiber::State::AtNamedBarrier:
    return " is at a barrier";
  case Fiber::State::AtWarpOp:
    return " is at another one";
  case Fiber::State::AtMbarrier:
  case Fiber::State::Polling:
    return " waits for an mbarrier";
  case Fiber::State::AtProducts:
    return " waits for products of matrices";
  case Fiber::State::AtRegisters:
    return " waits for registers";
  case Fiber::State::AtCluster:
    return " is at the barrier of the cluster";
  default:
    return " has exited";
  }
}

bool WarpCollectives::reportMissingLanes() const {
  ErrorLog &log = scheduler.log();
  const std::vector<Fiber> &fibers = scheduler.fibers();
  for (const Fiber &fiber : fibers) {
    if (fiber.state != Fiber::State::AtWarpOp)
      continue;
    uint32_t missing = 0;
    std::string where;
    uint32_t warpBegin = fiber.index - fiber.registers.laneId;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      if (!(fiber.request.mask >> lane & 1) ||
          warpBegin + lane >= fibers.size())
        continue;
      const Fiber &other = fibers[warpBegin + lane];
      if (other.state == Fiber::State::AtWarpOp &&
          other.request.op == fiber.request.op &&
          other.request.mask == fiber.request.mask &&
          other.request.site == fiber.request.site)
        continue;
      if (!missing++)
        where = "thread " + formatIndex(other.registers.threadId) +
                getPlaceName(other.state) + log.siteText(other.site);
    }
    log.report(fiber, ErrorKind::Divergence, fiber.site,
               joinText("divergence: a warp collective waits for ", missing,
                        " lanes that do not come: ", where),
               "; it is");
    return true;
  }
  return false;
}
