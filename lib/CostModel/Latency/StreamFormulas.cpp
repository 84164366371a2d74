//===- StreamFormulas.cpp - Memory-bound kernels --------------------------===//
#include "StreamFormulas.h"
#include <utility>

using namespace ftuner;
using namespace ftuner::latency;

LatencyStreamTable ftuner::tabulate(const LatencyDevice &device,
                                    const LatencyStream &block,
                                    const LatencyConstants &) {
  return {residentBlocks(device, block), block};
}

/// Operations of the special function units of an SM per cycle, on compute
/// capability 7.0 to 10.0 (CUDA C++ Programming Guide, arithmetic throughput).
static constexpr double kSpecialRate = 16;
/// Cycles until a block's first instruction, and from its last store to the
/// next block. Not fitted: other blocks hide most of it.
static constexpr double kStreamStart = 500;

namespace {
/// Cycles of `resident` blocks of a memory-bound kernel on an SM, by resource.
struct StreamTerms {
  double issue = 0, sharedMemory = 0, l2 = 0, latency = 0, start = 0;
  /// Cycles of `latency` and `start` that pass before a block's first bytes
  /// arrive, and in which it works on its last row.
  double bare = 0;

  /// Cycles in which they end: as in main loops, the resources of different
  /// blocks overlap.
  double cycles(double p) const {
    return norm(
        p, std::array<double, 4>{issue, sharedMemory, l2, latency + start});
  }
};
} // namespace

/// Returns whether a block loads a row once, and the next one meanwhile.
static bool holdsRows(const StreamPart &part) {
  return part.steps <= part.table->block.heldSteps;
}

/// p of SMs and DRAM. A block that reads its rows again loads, reduces and
/// stores by turns, so DRAM waits unless other blocks of its SM are elsewhere.
/// One that holds them leaves DRAM idle only before its first load arrives and
/// after its last (`StreamTerms::bare`), whether it loops over rows or is one
/// of many.
static double streamOverlap(const StreamPart &part, const Waves &waves,
                            const LatencyConstants &constants) {
  const LatencyStream &block = part.table->block;
  bool readsOnce = block.laterPasses == 0 || holdsRows(part);
  if (readsOnce || block.syncCycles <= 0)
    return constants.overlap;
  double together = std::min(waves.resident, std::max(waves.perSm, 1.0));
  return std::min(1 + constants.streamOverlapByBlocks * together,
                  constants.overlap);
}

/// Steps whose instructions a block executes: of a row that it holds all that
/// it has registers for, also those beyond the row's end, which load nothing.
static double executedSteps(const StreamPart &part) {
  return holdsRows(part) ? part.table->block.heldSteps : part.steps;
}

/// Returns the warp instructions of a block: of the f32 lanes, and of all.
static std::pair<double, double> streamInstructions(const StreamPart &part) {
  const LatencyStream &block = part.table->block;
  double steps = executedSteps(part), fma = steps * block.fma;
  return {fma,
          fma + steps * block.otherInstructions + block.epilogueInstructions};
}

/// Cycles from the arrival of a row to its last store: a warp issues no faster
/// than its instructions, which depend on each other, allow, however many
/// others its scheduler has.
static double workCycles(const StreamPart &part,
                         const LatencyConstants &constants) {
  const LatencyStream &block = part.table->block;
  double warpInstructions =
      streamInstructions(part).second / (block.warps * block.rowLoop);
  return warpInstructions / constants.streamWarpRate + block.syncCycles;
}

/// Sectors of DRAM that accesses break, over the fewest that they could take.
/// Rows that lie behind each other begin at multiples of the greatest common
/// divisor of their bytes and a sector's.
static double brokenSectors(const LatencyStream &block,
                            const LatencyGrid &grid) {
  constexpr double kSectorBytes = 32;
  if (grid.rowBytes <= 0)
    return 0;
  double begin = kSectorBytes;
  while (std::fmod(grid.rowBytes, begin) != 0 && begin > 1)
    begin /= 2;
  double run = block.runBytes > 0 ? std::min(block.runBytes, grid.rowBytes)
                                  : grid.rowBytes;
  return (1 - begin / kSectorBytes) * std::min(kSectorBytes / run, 1.0);
}

/// Bytes that each pass of a block over its rows loads of them alone.
static double rowBytes(const LatencyStream &block) {
  return block.l2Bytes - block.commonBytes;
}

/// Returns the bytes of a block that come from L2, without later passes. The
/// first block of an SM loads the data that all rows share for the other
/// blocks, as far as L1 holds it beside the rows of `resident` blocks.
static double l2BytesOnce(const LatencyDevice &device, const StreamPart &part,
                          double filled, double resident, double blocks) {
  const LatencyStream &block = part.table->block;
  double steps = part.steps * filled;
  double common =
      holdsRows(part) ? block.commonBytes / block.rowLoop : block.commonBytes;
  double distinct = steps * block.distinctCommonBytes;
  double inL1 = distinct + resident * steps * rowBytes(block) / block.rowLoop;
  double missed = device.l1Bytes > 0 ? knee(inL1 / device.l1Bytes) : 1;
  double blocksPerSm = std::max(blocks / device.smCount, 1.0);
  double shared =
      std::min(steps * common,
               missed * steps * common + (1 - missed) * distinct / blocksPerSm);
  return steps * (rowBytes(block) + block.storedBytes) + shared;
}

/// Returns the terms of a part. `missFirst` and `missAgain` are the shares of
/// first and of later loads that L2 does not hold; `blocks` is the number of
/// blocks of the launch.
static StreamTerms streamTerms(const LatencyDevice &device,
                               const StreamPart &part, const LatencyGrid &grid,
                               const LatencyConstants &constants,
                               double resident, double blocks, double missFirst,
                               double missAgain) {
  const LatencyStream &block = part.table->block;
  StreamTerms terms;
  // Two instructions of one warp are hardly ever issued together.
  double slots = std::min(device.issueSlots, device.warpSchedulers);
  auto [fma, instructions] = streamInstructions(part);
  // Each scheduler has its own f32 lanes.
  terms.issue =
      resident *
      std::max(std::max(instructions / slots, fma * 32 / device.fp32Lanes) *
                   imbalance(device, block, resident),
               executedSteps(part) * block.specialOperations / kSpecialRate);
  double again =
      block.laterPasses * std::max(part.steps - block.heldSteps, 0.0);
  terms.sharedMemory =
      resident * (part.steps * block.sharedCycles +
                  (part.steps + again) * constants.line * block.globalLines);
  // SMs at work share what L2 delivers, as in LoopLaunch.
  double share = std::max(std::min(blocks / device.smCount, 1.0),
                          constants.streamL2BytesPerCycle / kPortBytesPerCycle);
  // A row that ends within its last step has no more than it has.
  double filled = std::min(
      grid.reduceLength / std::max(block.kTile * part.steps, 1.0), 1.0);
  terms.l2 = resident * share * (1 + brokenSectors(block, grid)) *
             (l2BytesOnce(device, part, filled, resident, blocks) +
              again * rowBytes(block)) /
             constants.streamL2BytesPerCycle;
  auto wait = [&](double miss) {
    return constants.streamLatency * (1 + constants.streamDramLatency * miss);
  };
  double loads =
      std::max(part.steps * block.exposedLoads, 1.0) * wait(missFirst) +
      again * block.exposedLoads * wait(missAgain) +
      constants.directLatency * part.steps * block.directRegisters;
  double work = workCycles(part, constants);
  // The next row is loaded while this one is reduced and stored.
  double nextRow = holdsRows(part) ? std::max(loads, work) : loads + work;
  terms.latency =
      loads + work + (block.rowLoop - 1) * nextRow + block.clusterCycles;
  terms.bare = kStreamStart + wait(missFirst) + work;
  terms.start = kStreamStart;
  return terms;
}

namespace {
/// A launch of a memory-bound kernel.
struct Stream {
  /// Terms of as many blocks as an SM holds, and of the blocks of the last
  /// round.
  StreamTerms round, rest;
  double rounds = 0, restBlocks = 0;
  double cycles = 0, tail = 0, bare = 0;
  double dramBytes = 0;
};
} // namespace

static Stream describeStream(const LatencyDevice &device, const Waves &waves,
                             const StreamPart &part, const LatencyGrid &grid,
                             const LatencyConstants &constants) {
  const LatencyStream &block = part.table->block;
  double touched = grid.touchedBytes > 0 ? grid.touchedBytes : grid.outputBytes;
  double missFirst = knee(touched / (constants.streamL2Share * device.l2Bytes));
  // What blocks at work have read, half of what they move, L2 must hold until
  // they read it again.
  double together = std::min(waves.blocks, waves.resident * device.smCount);
  double missAgain =
      knee(together / waves.blocks * grid.outputBytes / 2 / device.l2Bytes);
  auto terms = [&](double resident) {
    return streamTerms(device, part, grid, constants, resident, waves.blocks,
                       missFirst, missAgain);
  };
  Stream stream;
  double again =
      block.laterPasses * std::max(part.steps - block.heldSteps, 0.0);
  stream.dramBytes =
      (grid.outputBytes * missFirst +
       waves.blocks * again * rowBytes(block) * missAgain) *
      (1 + constants.streamUnaligned * brokenSectors(block, grid));
  stream.rounds = std::floor(waves.perSm / waves.resident);
  stream.restBlocks = std::clamp(waves.perSm - stream.rounds * waves.resident,
                                 0.0, waves.resident);
  stream.round = terms(waves.resident);
  double roundCycles = stream.round.cycles(constants.overlap);
  stream.cycles = stream.rounds > 0 ? stream.rounds * roundCycles : 0;
  if (stream.restBlocks > 0) {
    stream.rest = terms(stream.restBlocks);
    double restCycles = stream.rest.cycles(constants.overlap);
    double last = lastRound(constants, restCycles, roundCycles, stream.rounds);
    stream.cycles += last;
    if (stream.rounds > 0)
      stream.tail = std::max(
          last - roundCycles * (waves.blocks / device.smCount / waves.resident -
                                stream.rounds),
          0.0);
  }
  stream.bare = std::min(stream.round.bare, stream.cycles);
  return stream;
}

StreamLaunch::StreamLaunch(const LatencyDevice &device, const LatencyPart *all,
                           unsigned numParts, const LatencyGrid &grid,
                           const LatencyConstants &constants)
    : device(device), grid(grid), constants(constants), numParts(numParts) {
  for (unsigned i = 0; i < numParts; ++i)
    parts[i] = {&std::get<LatencyStreamTable>(*all[i].table), all[i].count,
                all[i].steps};
}

double StreamLaunch::energy() const {
  double picojoules = 0;
  for (unsigned i = 0; i < numParts; ++i) {
    const LatencyStream &block = parts[i].table->block;
    // 32 lanes, 2 FLOP each.
    picojoules += parts[i].count * parts[i].steps *
                  (64 * block.fma * constants.flopEnergy +
                   block.l2Bytes * constants.l2Energy);
  }
  return picojoules;
}

Times StreamLaunch::times() const {
  Times times;
  times.waves = countWaves(device, parts, numParts);
  Stream stream = describeStream(device, times.waves, last(), grid, constants);
  times.sm = stream.cycles / device.clockMhz;
  times.dramBytes = stream.dramBytes;
  double peak = device.dramGbps * 1e3;
  times.dram = stream.dramBytes / (peak * constants.streamDramShare);
  times.bare = stream.bare / device.clockMhz;
  times.overlap = streamOverlap(last(), times.waves, constants);
  times.unlimited =
      times.bare + norm(times.overlap, std::array<double, 2>{
                                           times.sm - times.bare, times.dram});
  // `streamDramShare` is the share in kernels whose SMs take part of the time.
  times.unlimited = std::max(
      times.unlimited, stream.dramBytes / (peak * constants.streamBestShare));
  return times;
}

double StreamLaunch::addTerms(LatencyPrediction &terms,
                              const Times &times) const {
  Stream stream = describeStream(device, times.waves, last(), grid, constants);
  const StreamTerms &bound = stream.rounds > 0 ? stream.round : stream.rest;
  std::array<double, 4> share =
      shares(constants.overlap,
             std::array<double, 4>{bound.issue, bound.sharedMemory, bound.l2,
                                   bound.latency + bound.start});
  double full = stream.cycles - stream.tail;
  double waiting = full * share[3] / (bound.latency + bound.start);
  terms.issue = full * share[0];
  terms.sharedMemory = full * share[1];
  terms.l2 = full * share[2];
  terms.latency = waiting * bound.latency;
  terms.blockStart = waiting * bound.start;
  terms.tail = stream.tail;
  return full;
}
