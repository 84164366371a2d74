//===- LoopFormulas.cpp - Kernels with main loops of products -------------===//
#include "LoopFormulas.h"

using namespace ftuner;
using namespace ftuner::latency;

//===----------------------------------------------------------------------===//
// One step of a block
//===----------------------------------------------------------------------===//

/// How well resources overlap with `resident` blocks: p of the norm.
static double overlap(const LatencyLoop &block,
                      const LatencyConstants &constants, double resident) {
  return block.isPipelined
             ? constants.overlap
             : 1 + constants.overlapByWarps * resident * block.warps;
}

/// Warps whose issue time a scheduler wastes: its warps wait for their
/// fragments, and few do not fill each other's gaps. In main loops on an H200,
/// a scheduler with one warp issued in 66 % of its cycles, with two in 83 %
/// (benchmarks/results/h200-2026-11-26, unrolling.md).
static double wastedWarps(const LatencyLoop &block,
                          const LatencyConstants &constants) {
  return block.isTensor() ? 0 : constants.loneWarp;
}

/// Returns the cycles of a step of one block on each resource, by itself, when
/// `resident` blocks are: issue, shared memory, L2, latency. `l2` replaces the
/// table's cycles on L2.
static std::array<double, 4> stepTerms(const LatencyDevice &device,
                                       const LatencyLoopTable &table, double l2,
                                       const LatencyConstants &constants,
                                       double resident) {
  return {table.issue * imbalance(device, table.block, resident,
                                  wastedWarps(table.block, constants)) +
              table.head / resident,
          table.sharedMemory, l2, table.latency / resident};
}

/// Cycles in which an SM's tensor cores do the operations of a step.
static double tensorCycles(const LatencyDevice &device,
                           const LatencyLoop &block) {
  double share = block.hasPeakRate ? 1 : device.warpTensorShare;
  double cycles = 0;
  for (auto [operations, rate] :
       {std::pair(block.tf32Operations, device.tf32Rate),
        {block.f16Operations, device.f16Rate},
        {block.i8Operations, device.i8Rate}})
    if (operations > 0)
      cycles += operations / (rate * share);
  return cycles;
}

/// Cycles of a copy from global memory.
static double copyLatency(const LatencyLoop &block,
                          const LatencyConstants &constants) {
  return block.isTensor() ? constants.tensorLatency : constants.globalLatency;
}

LatencyLoopTable ftuner::tabulate(const LatencyDevice &device,
                                  const LatencyLoop &block,
                                  const LatencyConstants &constants) {
  LatencyLoopTable table;
  table.block = block;
  table.resident = residentBlocks(device, block);
  table.issue = std::max({block.fma * 32 / device.fp32Lanes * constants.fma,
                          tensorCycles(device, block) * constants.tensor,
                          (block.fma + block.tensorInstructions +
                           constants.other * block.otherInstructions +
                           constants.loadedRegister * block.loadedRegisters) /
                              device.issueSlots});
  table.sharedMemory =
      block.sharedCycles + constants.line * block.globalLines +
      constants.spill * block.spilledRegisters * block.warps * block.kTile;
  table.l2 = block.l2Bytes / l2BytesPerCycle(block.isTensor(), constants);
  // Warps of a scheduler fill each other's gaps.
  table.head =
      block.headCycles / std::max(block.warps / device.warpSchedulers, 1.0);
  // A stage is filled again when all blocks of the cluster have freed it.
  table.latency = (copyLatency(block, constants) + block.clusterCycles) *
                      block.exposedLoads +
                  constants.directLatency * block.directRegisters;
  for (unsigned r = 1; r <= table.resident; ++r)
    table.step[r - 1] = norm(overlap(block, constants, r),
                             stepTerms(device, table, table.l2, constants, r));
  return table;
}

/// Cycles of a block's start, of its wait for others of its cluster, of its
/// epilogue and of its stores. Kernels of the CUDA cores have these cycles in
/// `blockStart`.
static double blockStart(const LatencyDevice &device, const LoopPart &part,
                         const LatencyConstants &constants) {
  const LatencyLoop &block = part.table->block;
  return (block.isTensor() ? constants.tensorStart : constants.blockStart) +
         block.clusterCycles + block.epilogueInstructions / device.issueSlots +
         part.outputBytes / l2BytesPerCycle(block.isTensor(), constants);
}

/// Cycles of an SM per block of the part when `resident` blocks are.
static double blockCycles(const LatencyDevice &device, const LoopPart &part,
                          const LatencyConstants &constants, double resident) {
  return part.steps * part.step(resident) +
         blockStart(device, part, constants) / resident;
}

//===----------------------------------------------------------------------===//
// Rounds of blocks
//===----------------------------------------------------------------------===//

/// Like `latency::lastRound`; persistent blocks are dealt evenly.
static double lastRound(const LoopPart &part, const LatencyConstants &constants,
                        double restCycles, double roundCycles, double before) {
  return latency::lastRound(constants, restCycles, roundCycles,
                            part.table->block.isPersistent ? 0 : before);
}

/// Cycles of an SM for blocks of one part: full rounds of `resident`, then the
/// rest, after `roundsBefore` rounds of other blocks.
static double roundCycles(const LatencyDevice &device, const LoopPart &part,
                          const LatencyConstants &constants, double resident,
                          double blocks, double roundsBefore) {
  double rounds = std::floor(blocks / resident);
  // Counts above 2^53 lose precision: clamp the remainder.
  double rest = std::clamp(blocks - rounds * resident, 0.0, resident);
  double fullCycles = resident * blockCycles(device, part, constants, resident);
  double cycles = rounds > 0 ? rounds * fullCycles : 0;
  if (rest == 0)
    return cycles;
  double restCycles = rest * blockCycles(device, part, constants, rest);
  return cycles + lastRound(part, constants, restCycles, fullCycles,
                            rounds + roundsBefore);
}

/// Cycles of an SM for a round of blocks of both parts: resources add up, and
/// the latency is the longer one. Taller blocks are dealt first, so the first
/// scheduler gets as many of their warps as any, and the most warps. A tall
/// block takes no less of anything than a short one, even where its rows are
/// read in fewer accesses.
static double mixedRoundCycles(const LatencyDevice &device,
                               const LoopPart &shorter, double numShorter,
                               const LoopPart &taller, double numTaller,
                               const LatencyConstants &constants) {
  auto ofShorter = [&](double LatencyLoopTable::*term) {
    return shorter.steps * shorter.table->*term;
  };
  auto ofTaller = [&](double LatencyLoopTable::*term) {
    return std::max(taller.steps * taller.table->*term, ofShorter(term));
  };
  auto sum = [&](double ofShort, double ofTall) {
    return numShorter * ofShort + numTaller * ofTall;
  };
  double shortL2 = shorter.steps * shorter.l2;
  double tallL2 = std::max(taller.steps * taller.l2, shortL2);
  const LatencyLoop &block = taller.table->block;
  double blocks = numShorter + numTaller;
  double warps = busiestScheduler(device, block.warps, blocks);
  double tallWarps = busiestScheduler(device, block.warps, numTaller);
  double wasted = wastedWarps(block, constants);
  double issue = ((tallWarps + wasted) * ofTaller(&LatencyLoopTable::issue) +
                  (warps - tallWarps) * ofShorter(&LatencyLoopTable::issue)) *
                 device.warpSchedulers / block.warps;
  issue += std::max(shorter.steps * shorter.table->head,
                    taller.steps * taller.table->head);
  return norm(overlap(block, constants, blocks),
              std::array<double, 4>{
                  issue,
                  sum(ofShorter(&LatencyLoopTable::sharedMemory),
                      ofTaller(&LatencyLoopTable::sharedMemory)),
                  sum(shortL2, tallL2), ofTaller(&LatencyLoopTable::latency)}) +
         blockStart(device, taller, constants);
}

/// Cycles of starts that persistent blocks hide, which start once: of all
/// rounds but the first, the wait for the cluster and the first copies, which
/// run behind the work of the round before. Where stores run behind the next
/// tile, two tiles are under way, and a round takes its main loops, or half of
/// what it takes from its first product to its last store, if that is more.
static double hiddenCycles(const LatencyDevice &device, const Waves &waves,
                           const LoopPart &part,
                           const LatencyConstants &constants) {
  const LatencyLoop &block = part.table->block;
  if (!block.isPersistent)
    return 0;
  double start = blockStart(device, part, constants);
  double hidden =
      std::min(start, copyLatency(block, constants) + block.clusterCycles);
  if (block.hidesStores) {
    double stores = start - hidden,
           loops = waves.resident * part.steps * part.step(waves.resident);
    hidden += std::min(stores, (loops + stores) / 2);
  }
  return (std::ceil(waves.perSm / waves.resident) - 1) * hidden;
}

/// Cycles of the busiest SM. It gets as many blocks of the taller part as any
/// SM, and those first: so a further short block only adds to the last round,
/// and a further tall one replaces shorter ones in the rounds after it. Either
/// way no round gets cheaper.
static double smCycles(const LatencyDevice &device, const Waves &waves,
                       const LoopPart *parts, unsigned numParts,
                       const LatencyConstants &constants) {
  double hidden = hiddenCycles(device, waves, parts[0], constants);
  if (numParts == 1)
    return roundCycles(device, parts[0], constants, waves.resident, waves.perSm,
                       /*roundsBefore=*/0) -
           hidden;
  auto round = [&](double blocks, double tall) {
    return mixedRoundCycles(device, parts[0], blocks - tall, parts[1], tall,
                            constants);
  };
  double cycles = 0, left = waves.perSm, tall = waves.tall, before = 0;
  if (double rounds = std::floor(tall / waves.resident); rounds > 0) {
    before = rounds;
    cycles += rounds * round(waves.resident, waves.resident);
    left -= rounds * waves.resident;
    tall -= rounds * waves.resident;
  }
  if (tall > 0) {
    double blocks = std::min(waves.resident, left);
    cycles += lastRound(parts[1], constants, round(blocks, tall),
                        round(waves.resident, tall), before);
    left -= blocks;
    ++before;
  }
  return cycles +
         roundCycles(device, parts[0], constants, waves.resident, left,
                     before) -
         hidden;
}

//===----------------------------------------------------------------------===//
// DRAM
//===----------------------------------------------------------------------===//

namespace {
/// Bytes of DRAM that a launch moves, and the share of its first reads that L2
/// does not hold.
struct DramTraffic {
  double bytes = 0, missesFirst = 0;
};
} // namespace

/// Traffic of a product: first reads and the output, operands that blocks read
/// again after L2 has lost them, and what narrow accesses waste.
static DramTraffic dramTraffic(const LatencyDevice &device,
                               const LatencyGrid &grid, const Waves &waves,
                               bool isTensor,
                               const LatencyConstants &constants) {
  // Blocks of one problem at once, and how many columns and rows they span.
  double together = std::min({waves.blocks, waves.resident * device.smCount,
                              grid.blocksX * grid.blocksY});
  double wide = std::min(grid.blocksX, together);
  if (grid.isSwizzled)
    wide = std::max(
        std::min(std::sqrt(together * grid.tileY / grid.tileX), grid.blocksX),
        std::min(together / grid.blocksY, grid.blocksX));
  double high = std::clamp(together / wide, 1.0, std::max(grid.blocksY, 1.0));

  double operands = grid.lhsBytes + grid.rhsBytes;
  double held = heldBytes(device, isTensor, constants);
  double missesAgain = knee(operands / held);
  double missesFirst = knee(
      (grid.problems * operands + grid.outputBytes + grid.sumBytes) / held);

  // Blocks drift apart along the reduce axis until L2 no longer serves
  // neighbours.
  double rows = std::min(grid.blocksX * grid.tileX + grid.blocksY * grid.tileY,
                         constants.driftRows);
  double window = device.l2Bytes / (grid.elementBytes * rows);
  double lost =
      grid.reduceLength / (grid.reduceLength + constants.drift * window);
  auto reads = [&](double blocks, double neighbours) {
    return missesFirst + missesAgain * ((blocks / neighbours - 1) * (1 - lost) +
                                        (blocks - 1) * lost);
  };
  // Kernels of the tensor cores read runs of 64 bytes and more, whose cost is
  // part of their `tensorDramShare`.
  double narrow = isTensor ? 0
                           : 32 * constants.narrowRun * grid.reduceLength /
                                 (grid.reduceLength + constants.narrowRunDepth);
  double bytes = grid.problems * (grid.lhsBytes * reads(grid.blocksX, wide) *
                                      (1 + narrow / grid.lhsRunBytes) +
                                  grid.rhsBytes * reads(grid.blocksY, high) *
                                      (1 + narrow / grid.rhsRunBytes)) +
                 (grid.outputBytes + grid.sumBytes) *
                     (grid.isOutputAligned ? 1 : 1 + constants.unalignedStore);
  return {bytes, missesFirst};
}

//===----------------------------------------------------------------------===//
// A launch
//===----------------------------------------------------------------------===//

LoopLaunch::LoopLaunch(const LatencyDevice &device, const LatencyPart *all,
                       unsigned numParts, const LatencyGrid &grid,
                       const LatencyConstants &constants)
    : device(device), grid(grid), constants(constants), numParts(numParts) {
  double blocks = 0;
  for (unsigned i = 0; i < numParts; ++i) {
    blocks += all[i].count;
    const auto &table = std::get<LatencyLoopTable>(*all[i].table);
    parts[i] = {&table,   all[i].count, all[i].steps, /*outputBytes=*/0,
                table.l2, table.step[0]};
  }
  if (isTensor())
    for (unsigned i = 0; i < numParts; ++i)
      parts[i].outputBytes =
          (grid.sumBytes > 0 ? grid.sumBytes : grid.outputBytes) / blocks;
  double share =
      std::max(blocks / device.smCount,
               l2BytesPerCycle(isTensor(), constants) / kPortBytesPerCycle);
  if (share >= 1)
    return;
  for (unsigned i = 0; i < numParts; ++i) {
    LoopPart &part = parts[i];
    const LatencyLoopTable &table = *part.table;
    part.l2 *= share;
    part.singleStep = norm(overlap(table.block, constants, 1),
                           stepTerms(device, table, part.l2, constants, 1));
  }
}

double LoopLaunch::energy() const {
  double picojoules = 0;
  for (unsigned i = 0; i < numParts; ++i) {
    const LatencyLoop &block = parts[i].table->block;
    // 32 lanes, 2 FLOP each.
    picojoules += parts[i].count * parts[i].steps *
                  (64 * block.fma * constants.flopEnergy +
                   block.tf32Operations * constants.tf32Energy +
                   block.f16Operations * constants.f16Energy +
                   block.i8Operations * constants.i8Energy +
                   block.l2Bytes * constants.l2Energy);
  }
  return picojoules;
}

Times LoopLaunch::times() const {
  Times times;
  times.waves = countWaves(device, parts, numParts);
  times.sm = smCycles(device, times.waves, parts, numParts, constants) /
             device.clockMhz;
  DramTraffic traffic =
      dramTraffic(device, grid, times.waves, isTensor(), constants);
  times.dramBytes = traffic.bytes;
  times.dram =
      traffic.missesFirst * constants.dramStart +
      traffic.bytes / dramBytesPerMicrosecond(device, isTensor(), constants);
  times.overlap = overlap(parts[0].table->block, constants,
                          std::min(times.waves.resident, times.waves.perSm));
  times.unlimited =
      norm(times.overlap, std::array<double, 2>{times.sm, times.dram});
  return times;
}

/// Adds the cycles of `blocks` blocks of a part, `resident` at once, to the
/// terms that they go to; `shownStarts` is the share of their starts that no
/// other block hides. Returns their sum.
static double addBlocks(LatencyPrediction &terms, const LatencyDevice &device,
                        const LoopPart &part, const LatencyConstants &constants,
                        double resident, double blocks, double shownStarts) {
  const LatencyLoopTable &table = *part.table;
  double loop = blocks * part.steps * part.step(resident);
  std::array<double, 4> share =
      shares(overlap(table.block, constants, resident),
             stepTerms(device, table, part.l2, constants, resident));
  double start =
      blocks * blockStart(device, part, constants) / resident * shownStarts;
  terms.issue += loop * share[0];
  terms.sharedMemory += loop * share[1];
  terms.l2 += loop * share[2];
  terms.latency += loop * share[3];
  terms.blockStart += start;
  return loop + start;
}

double LoopLaunch::addTerms(LatencyPrediction &terms,
                            const Times &times) const {
  // The cycles of the blocks if all ran in full waves on all SMs, and what the
  // last wave adds. A wave that is the only one has no tail.
  const Waves &waves = times.waves;
  double rounds = std::ceil(waves.perSm / waves.resident);
  double shownStarts =
      1 - hiddenCycles(device, waves, parts[0], constants) /
              (rounds * blockStart(device, parts[0], constants));
  double sum = 0;
  if (waves.perSm < waves.resident) {
    double tall = numParts > 1 ? waves.tall : 0;
    sum = addBlocks(terms, device, parts[0], constants, waves.perSm,
                    waves.perSm - tall, shownStarts);
    if (numParts > 1)
      sum += addBlocks(terms, device, parts[1], constants, waves.perSm, tall,
                       shownStarts);
    return sum;
  }
  for (unsigned i = 0; i < numParts; ++i)
    sum += addBlocks(terms, device, parts[i], constants, waves.resident,
                     parts[i].count / device.smCount, shownStarts);
  terms.tail = std::max(times.sm * device.clockMhz - sum, 0.0);
  return sum;
}
