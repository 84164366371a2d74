//===- LatencyFormulas.cpp - Time of a kernel from its facts --------------===//
#include "FTuner/CostModel/LatencyFormulas.h"
#include <algorithm>
#include <cmath>
#include <optional>

using namespace ftuner;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static double square(double x) { return x * x; }

/// x^p for x in 0 … 1. The usual p, 4, needs no logarithm.
static double power(double x, double p) {
  return p == 4 ? square(square(x)) : std::pow(x, p);
}

static double root(double x, double p) {
  return p == 4 ? std::sqrt(std::sqrt(x)) : std::pow(x, 1 / p);
}

/// (Σ x^p)^(1/p): p = 1 adds, a large p takes the greatest. Terms are not
/// negative.
template <size_t N>
static double norm(double p, const std::array<double, N> &terms) {
  double greatest = 1e-30;
  for (double term : terms)
    greatest = std::max(greatest, term);
  double sum = 0;
  for (double term : terms)
    sum += power(term / greatest, p);
  return greatest * root(sum, p);
}

/// The share x^p / Σ x^p of each term in their norm.
template <size_t N>
static std::array<double, N> shares(double p, std::array<double, N> terms) {
  double greatest = 1e-30, sum = 0;
  for (double term : terms)
    greatest = std::max(greatest, term);
  for (double &term : terms)
    sum += term = power(term / greatest, p);
  for (double &term : terms)
    term /= sum;
  return terms;
}

/// 0 far below 1, 1 far above.
static double knee(double x) { return x * x / (1 + x * x); }

//===----------------------------------------------------------------------===//
// One step of a block
//===----------------------------------------------------------------------===//

double ftuner::busiestScheduler(const LatencyDevice &device, double warps,
                                double blocks) {
  if (2 * warps == device.warpSchedulers) {
    double run = device.halfBlockRun, both = 2 * run;
    double rest = blocks - both * std::floor(blocks / both);
    return run * std::floor(blocks / both) + std::min(rest, run);
  }
  return std::ceil(blocks * std::ceil(warps) / device.warpSchedulers);
}

/// Blocks that an SM holds at once. Registers are handed out in units of 256
/// per warp, and each scheduler has its own.
static double residentBlocks(const LatencyDevice &device,
                             const LatencyBlock &block) {
  double registersPerWarp =
      std::ceil(block.registersPerThread * 32 / 256) * 256;
  double warpsPerScheduler = std::floor(
      device.registersPerSm / (device.warpSchedulers * registersPerWarp));
  double resident = std::min(
      {std::floor(warpsPerScheduler * device.warpSchedulers / block.warps),
       std::floor(device.sharedMemoryPerSmBytes /
                  std::max(block.sharedMemoryBytes, 1.0)),
       std::floor(device.maxThreadsPerSm / (32 * block.warps)),
       device.maxBlocksPerSm});
  return std::clamp(resident, 1.0, double(LatencyTable::maxResident));
}

/// How well resources overlap with `resident` blocks: p of the norm.
static double overlap(const LatencyBlock &block,
                      const LatencyConstants &constants, double resident) {
  return block.isPipelined
             ? constants.overlap
             : 1 + constants.overlapByWarps * resident * block.warps;
}

/// What the busiest scheduler issues over the mean, at least 1: warps are dealt
/// to schedulers whole. `more`: warps' worth of time that it takes beside.
static double imbalance(const LatencyDevice &device, const LatencyBlock &block,
                        double resident, double more = 0) {
  return (busiestScheduler(device, block.warps, resident) + more) *
         device.warpSchedulers / (resident * block.warps);
}

/// Warps whose issue time a scheduler wastes: its warps wait for their
/// fragments, and few do not fill each other's gaps. Of main loops on an H200,
/// a scheduler with one warp issued in 66 % of its cycles, with two in 83 %
/// (benchmarks/results/h200-2026-11-26, unrolling.md).
static double wastedWarps(const LatencyBlock &block,
                          const LatencyConstants &constants) {
  return block.isTensor() ? 0 : constants.loneWarp;
}

/// Cycles of a step of one block on each resource, by itself, when `resident`
/// blocks are: issue, shared memory, L2, latency.
static std::array<double, 4> stepTerms(const LatencyDevice &device,
                                       const LatencyTable &table,
                                       const LatencyConstants &constants,
                                       double resident) {
  return {table.issue * imbalance(device, table.block, resident,
                                  wastedWarps(table.block, constants)) +
              table.head / resident,
          table.sharedMemory, table.l2, table.latency / resident};
}

/// Cycles in which an SM's tensor cores do the operations of a step.
static double tensorCycles(const LatencyDevice &device,
                           const LatencyBlock &block) {
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

static double l2BytesPerCycle(bool isTensor,
                              const LatencyConstants &constants) {
  return isTensor ? constants.tensorL2BytesPerCycle : constants.l2BytesPerCycle;
}

/// Cycles of a copy from global memory.
static double copyLatency(const LatencyBlock &block,
                          const LatencyConstants &constants) {
  return block.isTensor() ? constants.tensorLatency : constants.globalLatency;
}

LatencyTable ftuner::tabulate(const LatencyDevice &device,
                              const LatencyBlock &block,
                              const LatencyConstants &constants) {
  LatencyTable table;
  table.block = block;
  table.resident = static_cast<unsigned>(residentBlocks(device, block));
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
                             stepTerms(device, table, constants, r));
  return table;
}

/// Cycles of a block's start, of its wait for others of its cluster, of its
/// epilogue and of its stores. Those of kernels of the CUDA cores are part of
/// `blockStart`.
static double blockStart(const LatencyDevice &device, const LatencyPart &part,
                         const LatencyConstants &constants) {
  const LatencyBlock &block = part.table->block;
  return (block.isTensor() ? constants.tensorStart : constants.blockStart) +
         block.clusterCycles + block.epilogueInstructions / device.issueSlots +
         part.outputBytes / l2BytesPerCycle(block.isTensor(), constants);
}

/// Cycles of an SM per block of the part when `resident` blocks are.
static double blockCycles(const LatencyDevice &device, const LatencyPart &part,
                          const LatencyConstants &constants, double resident) {
  return part.steps * part.table->step[static_cast<size_t>(resident) - 1] +
         blockStart(device, part, constants) / resident;
}

//===----------------------------------------------------------------------===//
// Waves, DRAM and power
//===----------------------------------------------------------------------===//

namespace {
/// Blocks of the busiest SM.
struct Waves {
  double blocks = 0;
  double resident = 1;
  double perSm = 0;
  /// Those of them that are of the last, taller part.
  double tall = 0;
};
} // namespace

static Waves countWaves(const LatencyDevice &device, const LatencyPart *parts,
                        unsigned numParts) {
  Waves waves;
  waves.resident = parts[0].table->resident;
  for (unsigned i = 0; i < numParts; ++i) {
    waves.blocks += parts[i].count;
    waves.resident = std::min<double>(waves.resident, parts[i].table->resident);
  }
  waves.perSm = std::ceil(waves.blocks / device.smCount);
  waves.tall = std::ceil(parts[numParts - 1].count / device.smCount);
  return waves;
}

/// Cycles of a round that is not full, behind `before` others: `ofRest` if its
/// blocks were dealt evenly, `ofRound` if it were full.
///
/// Blocks of the first round are dealt evenly. Those of the last go to the
/// slots that become free first: where blocks began together they end together,
/// so some SMs get as many as they hold, and others none. The more rounds there
/// were, the more blocks have drifted apart. How much of that a card shows is
/// the constant `last_round`, from 0 (an even deal, as on an A100) to 1 (one
/// kernel on an H200: 396 blocks, two at once on each of 132 SMs, take two full
/// rounds; benchmarks/results/h200-2026-11-26).
static double lastRound(const LatencyPart &part,
                        const LatencyConstants &constants, double ofRest,
                        double ofRound, double before) {
  if (before == 0 || part.table->block.isPersistent)
    return ofRest;
  return ofRest +
         constants.lastRound * std::max(ofRound - ofRest, 0.0) / before;
}

/// Cycles of an SM for blocks of one part: full rounds of `resident`, then the
/// rest, behind `roundsBefore` rounds of other blocks.
static double roundCycles(const LatencyDevice &device, const LatencyPart &part,
                          const LatencyConstants &constants, double resident,
                          double blocks, double roundsBefore) {
  double rounds = std::floor(blocks / resident);
  // Of counts beyond 2^53 whatever is left.
  double rest = std::clamp(blocks - rounds * resident, 0.0, resident);
  double ofRound = resident * blockCycles(device, part, constants, resident);
  double cycles = rounds > 0 ? rounds * ofRound : 0;
  if (rest == 0)
    return cycles;
  double ofRest = rest * blockCycles(device, part, constants, rest);
  return cycles +
         lastRound(part, constants, ofRest, ofRound, rounds + roundsBefore);
}

/// Cycles of an SM for a round of blocks of both parts: resources add up, and
/// the latency is the longer one. Taller blocks are dealt first, so the first
/// scheduler gets as many of their warps as any, and the most warps. A tall
/// block takes no less of anything than a short one, even where its rows are
/// read in fewer accesses.
static double mixedRoundCycles(const LatencyDevice &device,
                               const LatencyPart &shorter, double numShorter,
                               const LatencyPart &taller, double numTaller,
                               const LatencyConstants &constants) {
  auto ofShorter = [&](double LatencyTable::*term) {
    return shorter.steps * shorter.table->*term;
  };
  auto ofTaller = [&](double LatencyTable::*term) {
    return std::max(taller.steps * taller.table->*term, ofShorter(term));
  };
  auto sum = [&](double LatencyTable::*term) {
    return numShorter * ofShorter(term) + numTaller * ofTaller(term);
  };
  const LatencyBlock &block = taller.table->block;
  double blocks = numShorter + numTaller;
  double warps = busiestScheduler(device, block.warps, blocks);
  double tallWarps = busiestScheduler(device, block.warps, numTaller);
  double wasted = wastedWarps(block, constants);
  double issue = ((tallWarps + wasted) * ofTaller(&LatencyTable::issue) +
                  (warps - tallWarps) * ofShorter(&LatencyTable::issue)) *
                 device.warpSchedulers / block.warps;
  issue += std::max(shorter.steps * shorter.table->head,
                    taller.steps * taller.table->head);
  return norm(overlap(block, constants, blocks),
              std::array<double, 4>{issue, sum(&LatencyTable::sharedMemory),
                                    sum(&LatencyTable::l2),
                                    ofTaller(&LatencyTable::latency)}) +
         blockStart(device, taller, constants);
}

/// Cycles of starts that persistent blocks hide, which start once: of all
/// rounds but the first, the wait for the cluster and the first copies, which
/// run behind the work of the round before. Where stores run behind the next
/// tile, two tiles are under way, and a round takes its main loops, or half of
/// what it takes from its first product to its last store, if that is more.
static double hiddenCycles(const LatencyDevice &device, const Waves &waves,
                           const LatencyPart &part,
                           const LatencyConstants &constants) {
  const LatencyBlock &block = part.table->block;
  if (!block.isPersistent)
    return 0;
  double start = blockStart(device, part, constants);
  double hidden =
      std::min(start, copyLatency(block, constants) + block.clusterCycles);
  if (block.hidesStores) {
    double stores = start - hidden,
           loops = waves.resident * part.steps *
                   part.table->step[static_cast<size_t>(waves.resident) - 1];
    hidden += std::min(stores, (loops + stores) / 2);
  }
  return (std::ceil(waves.perSm / waves.resident) - 1) * hidden;
}

/// Cycles of the busiest SM. It gets as many blocks of the taller part as any
/// SM, and those first: so a further short block only adds to the last round,
/// and a further tall one replaces shorter ones in the rounds after it. Either
/// way no round gets cheaper.
static double smCycles(const LatencyDevice &device, const Waves &waves,
                       const LatencyPart *parts, unsigned numParts,
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

/// Bytes that L2 holds for reuse.
static double heldBytes(const LatencyDevice &device, bool isTensor,
                        const LatencyConstants &constants) {
  return (isTensor ? constants.tensorL2Share : constants.l2Share) *
         device.l2Bytes;
}

static double dramBytesPerMicrosecond(const LatencyDevice &device,
                                      bool isTensor,
                                      const LatencyConstants &constants) {
  return device.dramGbps * 1e3 *
         (isTensor ? constants.tensorDramShare : constants.dramShare);
}

/// Microseconds of the kernels that sum slices. They start when all slices are
/// written, so nothing hides their reads, from L2 where it still holds the
/// sums.
static double secondKernelTime(const LatencyDevice &device,
                               const LatencyGrid &grid, bool isTensor,
                               const LatencyConstants &constants) {
  double missed = knee(grid.sumBytes / heldBytes(device, isTensor, constants));
  double dram = missed * grid.sumBytes /
                dramBytesPerMicrosecond(device, isTensor, constants);
  double l2 =
      (1 - missed) * grid.sumBytes /
      (device.smCount * device.clockMhz * l2BytesPerCycle(isTensor, constants));
  return grid.secondKernels * constants.secondKernel + dram + l2;
}

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

/// Microseconds in which the board may spend the energy of the launch.
static double powerTime(const LatencyDevice &device, const LatencyPart *parts,
                        unsigned numParts, double dramBytes,
                        const LatencyConstants &constants) {
  double picojoules = 0;
  for (unsigned i = 0; i < numParts; ++i) {
    const LatencyBlock &block = parts[i].table->block;
    // 32 lanes, 2 FLOP each.
    picojoules += parts[i].count * parts[i].steps *
                  (64 * block.fma * constants.flopEnergy +
                   block.tf32Operations * constants.tf32Energy +
                   block.f16Operations * constants.f16Energy +
                   block.i8Operations * constants.i8Energy +
                   block.l2Bytes * constants.l2Energy);
  }
  picojoules =
      picojoules / device.nodeEfficiency + dramBytes * constants.dramEnergy;
  return picojoules * 1e-6 /
         (device.boardPowerWatts * (1 - constants.idleShare));
}

namespace {
/// The parts of a prediction, before they are shared out.
struct Times {
  Waves waves;
  double dramBytes = 0;
  double sm = 0, dram = 0, power = 0;
  /// The SMs' time that passes before DRAM has something to do, and after
  /// its last byte has arrived.
  double bare = 0;
  /// p of the norm of SMs and DRAM.
  double overlap = 1;
  /// SMs and DRAM together, and that under the power limit.
  double unlimited = 0, kernel = 0;
  /// What comes behind.
  double second = 0;
};
} // namespace

/// Bytes per cycle that an SM takes from L2 at most: as many as each of 64
/// blocks of 64 x 128 elements got that had an H200 for themselves
/// (benchmarks/results/h200-2026-11-26, clusters.md, T = 128 with 8 stages).
static constexpr double kPortBytesPerCycle = 80;

namespace {
/// The parts of a launch with what follows from its grid: the bytes that a
/// block stores, and, where SMs are idle, what L2 delivers to the others, as
/// far as their ports allow. The constants are of all SMs at work.
class BusyParts {
public:
  BusyParts(const LatencyDevice &device, const LatencyPart *all,
            unsigned numParts, const LatencyGrid &grid,
            const LatencyConstants &constants)
      : parts(all) {
    double blocks = 0;
    for (unsigned i = 0; i < numParts; ++i)
      blocks += all[i].count;
    bool isTensor = all[0].table->block.isTensor();
    // Memory-bound kernels see to it themselves.
    if (all[0].table->block.isStreaming)
      return;
    for (unsigned i = 0; i < numParts; ++i) {
      busy[i] = all[i];
      if (isTensor)
        busy[i].outputBytes =
            (grid.sumBytes > 0 ? grid.sumBytes : grid.outputBytes) / blocks;
    }
    parts = busy;
    double share =
        std::max(blocks / device.smCount,
                 l2BytesPerCycle(isTensor, constants) / kPortBytesPerCycle);
    if (share >= 1)
      return;
    for (unsigned i = 0; i < numParts; ++i) {
      LatencyTable &table = tables[i].emplace(*all[i].table);
      table.l2 *= share;
      table.step[0] = norm(overlap(table.block, constants, 1),
                           stepTerms(device, table, constants, 1));
      busy[i].table = &table;
    }
  }
  const LatencyPart *get() const { return parts; }

private:
  /// Made where they are needed alone: tables are large.
  std::optional<LatencyTable> tables[2];
  LatencyPart busy[2];
  const LatencyPart *parts;
};
} // namespace

/// The same, under the power limit.
static Times limitPower(const LatencyDevice &device, const LatencyPart *parts,
                        unsigned numParts, const LatencyConstants &constants,
                        Times times) {
  times.power = powerTime(device, parts, numParts, times.dramBytes, constants);
  times.kernel = times.unlimited;
  if (times.power > times.unlimited)
    times.kernel *= (times.power + constants.powerDelay) /
                    (times.unlimited + constants.powerDelay);
  return times;
}

//===----------------------------------------------------------------------===//
// Memory-bound kernels
//===----------------------------------------------------------------------===//

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

/// Whether a block loads a row once, and the next one meanwhile.
static bool holdsRows(const LatencyPart &part) {
  return part.steps <= part.table->block.heldSteps;
}

/// p of SMs and DRAM. A block that reads its rows again loads, reduces and
/// stores by turns, so DRAM waits unless other blocks of its SM are elsewhere.
/// One that holds them leaves DRAM idle only before its first load arrives and
/// after its last (`StreamTerms::bare`), whether it loops over rows or is one
/// of many.
static double streamOverlapOf(const LatencyPart &part, const Waves &waves,
                              const LatencyConstants &constants) {
  const LatencyBlock &block = part.table->block;
  bool readsOnce = block.laterPasses == 0 || holdsRows(part);
  if (readsOnce || block.syncCycles <= 0)
    return constants.overlap;
  double together = std::min(waves.resident, std::max(waves.perSm, 1.0));
  return std::min(1 + constants.streamOverlapByBlocks * together,
                  constants.overlap);
}

/// Steps whose instructions a block executes: of a row that it holds all that
/// it has registers for, also those beyond the row's end, which load nothing.
static double executedSteps(const LatencyPart &part) {
  return holdsRows(part) ? part.table->block.heldSteps : part.steps;
}

/// Warp instructions of a block: those of the f32 lanes, and all.
static std::pair<double, double> streamInstructions(const LatencyPart &part) {
  const LatencyBlock &block = part.table->block;
  double steps = executedSteps(part), fma = steps * block.fma;
  return {fma,
          fma + steps * block.otherInstructions + block.epilogueInstructions};
}

/// Cycles from the arrival of a row to its last store: a warp issues no faster
/// than its instructions, which depend on each other, allow, however many
/// others its scheduler has.
static double workCycles(const LatencyPart &part,
                         const LatencyConstants &constants) {
  const LatencyBlock &block = part.table->block;
  double ofWarp =
      streamInstructions(part).second / (block.warps * block.rowLoop);
  return ofWarp / constants.streamWarpRate + block.syncCycles;
}

/// Sectors of DRAM that accesses break, over the fewest that they could take.
/// Rows that lie behind each other begin at multiples of the greatest common
/// divisor of their bytes and a sector's.
static double brokenSectors(const LatencyBlock &block,
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
static double rowBytes(const LatencyBlock &block) {
  return block.l2Bytes - block.commonBytes;
}

/// Bytes of a block that come from L2, without those of later passes. What all
/// rows share the first block of an SM loads for the others, as far as L1 holds
/// it beside the rows of `resident` blocks.
static double l2BytesOnce(const LatencyDevice &device, const LatencyPart &part,
                          double filled, double resident, double blocks) {
  const LatencyBlock &block = part.table->block;
  double steps = part.steps * filled;
  double common =
      holdsRows(part) ? block.commonBytes / block.rowLoop : block.commonBytes;
  double distinct = steps * block.distinctCommonBytes;
  double inL1 = distinct + resident * steps * rowBytes(block) / block.rowLoop;
  double missed = device.l1Bytes > 0 ? knee(inL1 / device.l1Bytes) : 1;
  double blocksOfSm = std::max(blocks / device.smCount, 1.0);
  double shared =
      std::min(steps * common,
               missed * steps * common + (1 - missed) * distinct / blocksOfSm);
  return steps * (rowBytes(block) + block.storedBytes) + shared;
}

/// `missFirst` and `missAgain`: the shares of first and of later loads that L2
/// does not hold; `blocks`: those of the launch.
static StreamTerms streamTerms(const LatencyDevice &device,
                               const LatencyPart &part, const LatencyGrid &grid,
                               const LatencyConstants &constants,
                               double resident, double blocks, double missFirst,
                               double missAgain) {
  const LatencyBlock &block = part.table->block;
  StreamTerms terms;
  // Two instructions of one warp are hardly ever issued together.
  double slots = std::min(device.issueSlots, device.warpSchedulers);
  auto [fma, instructions] = streamInstructions(part);
  // Each scheduler has f32 lanes of its own.
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
  // SMs at work share what L2 delivers, as in BusyParts.
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
  double ofNext = holdsRows(part) ? std::max(loads, work) : loads + work;
  terms.latency =
      loads + work + (block.rowLoop - 1) * ofNext + block.clusterCycles;
  terms.bare = kStreamStart + wait(missFirst) + work;
  terms.start = kStreamStart;
  return terms;
}

namespace {
/// A launch of a memory-bound kernel.
struct Stream {
  /// Of as many blocks as an SM holds, and of those of the last round.
  StreamTerms round, rest;
  double rounds = 0, restBlocks = 0;
  double cycles = 0, tail = 0, bare = 0;
  double dramBytes = 0;
};
} // namespace

static Stream describeStream(const LatencyDevice &device, const Waves &waves,
                             const LatencyPart &part, const LatencyGrid &grid,
                             const LatencyConstants &constants) {
  const LatencyBlock &block = part.table->block;
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
  double ofRound = stream.round.cycles(constants.overlap);
  stream.cycles = stream.rounds > 0 ? stream.rounds * ofRound : 0;
  if (stream.restBlocks > 0) {
    stream.rest = terms(stream.restBlocks);
    double ofRest = stream.rest.cycles(constants.overlap);
    double last = lastRound(part, constants, ofRest, ofRound, stream.rounds);
    stream.cycles += last;
    if (stream.rounds > 0)
      stream.tail = std::max(
          last - ofRound * (waves.blocks / device.smCount / waves.resident -
                            stream.rounds),
          0.0);
  }
  stream.bare = std::min(stream.round.bare, stream.cycles);
  return stream;
}

static void predictStream(const LatencyDevice &device, const LatencyPart &part,
                          const LatencyGrid &grid,
                          const LatencyConstants &constants, Times &times) {
  Stream stream = describeStream(device, times.waves, part, grid, constants);
  times.sm = stream.cycles / device.clockMhz;
  times.dramBytes = stream.dramBytes;
  double peak = device.dramGbps * 1e3;
  times.dram = stream.dramBytes / (peak * constants.streamDramShare);
  times.bare = stream.bare / device.clockMhz;
  times.overlap = streamOverlapOf(part, times.waves, constants);
  times.unlimited =
      times.bare + norm(times.overlap, std::array<double, 2>{
                                           times.sm - times.bare, times.dram});
  // `streamDramShare` is that of kernels whose SMs take their part of the time.
  times.unlimited = std::max(
      times.unlimited, stream.dramBytes / (peak * constants.streamBestShare));
}

/// Shares out the cycles of a memory-bound kernel's SMs. Returns their sum.
static double addStream(LatencyPrediction &terms, const LatencyDevice &device,
                        const Waves &waves, const LatencyPart &part,
                        const LatencyGrid &grid,
                        const LatencyConstants &constants) {
  Stream stream = describeStream(device, waves, part, grid, constants);
  const StreamTerms &of = stream.rounds > 0 ? stream.round : stream.rest;
  std::array<double, 4> share = shares(
      constants.overlap, std::array<double, 4>{of.issue, of.sharedMemory, of.l2,
                                               of.latency + of.start});
  double full = stream.cycles - stream.tail;
  double waiting = full * share[3] / (of.latency + of.start);
  terms.issue = full * share[0];
  terms.sharedMemory = full * share[1];
  terms.l2 = full * share[2];
  terms.latency = waiting * of.latency;
  terms.blockStart = waiting * of.start;
  terms.tail = stream.tail;
  return stream.cycles;
}

static Times predictTimes(const LatencyDevice &device, const LatencyPart *parts,
                          unsigned numParts, const LatencyGrid &grid,
                          const LatencyConstants &constants) {
  Times times;
  times.waves = countWaves(device, parts, numParts);
  if (parts[0].table->block.isStreaming) {
    predictStream(device, parts[numParts - 1], grid, constants, times);
    times.second =
        secondKernelTime(device, grid, /*isTensor=*/false, constants);
    return limitPower(device, parts, numParts, constants, times);
  }
  bool isTensor = parts[0].table->block.isTensor();
  times.sm = smCycles(device, times.waves, parts, numParts, constants) /
             device.clockMhz;
  DramTraffic traffic =
      dramTraffic(device, grid, times.waves, isTensor, constants);
  times.dramBytes = traffic.bytes;
  times.dram =
      traffic.missesFirst * constants.dramStart +
      traffic.bytes / dramBytesPerMicrosecond(device, isTensor, constants);
  times.second = secondKernelTime(device, grid, isTensor, constants);
  times.overlap = overlap(parts[0].table->block, constants,
                          std::min(times.waves.resident, times.waves.perSm));
  times.unlimited =
      norm(times.overlap, std::array<double, 2>{times.sm, times.dram});
  return limitPower(device, parts, numParts, constants, times);
}

static double boxTime(const LatencyDevice &device, const LatencyGrid &grid) {
  return grid.boxCycles / device.clockMhz;
}

double ftuner::predictLatency(const LatencyDevice &device,
                              const LatencyPart *parts, unsigned numParts,
                              const LatencyGrid &grid,
                              const LatencyConstants &constants) {
  BusyParts busy(device, parts, numParts, grid, constants);
  Times times = predictTimes(device, busy.get(), numParts, grid, constants);
  return constants.launch +
         std::max(times.kernel + times.second, boxTime(device, grid));
}

//===----------------------------------------------------------------------===//
// Breakdown
//===----------------------------------------------------------------------===//

/// Adds the cycles of `blocks` blocks of a part, `resident` at once, to the
/// terms that they go to; `shownStarts` is the share of their starts that no
/// other block hides. Returns their sum.
static double addBlocks(LatencyPrediction &terms, const LatencyDevice &device,
                        const LatencyPart &part,
                        const LatencyConstants &constants, double resident,
                        double blocks, double shownStarts) {
  const LatencyTable &table = *part.table;
  double loop =
      blocks * part.steps * table.step[static_cast<size_t>(resident) - 1];
  std::array<double, 4> share =
      shares(overlap(table.block, constants, resident),
             stepTerms(device, table, constants, resident));
  double start =
      blocks * blockStart(device, part, constants) / resident * shownStarts;
  terms.issue += loop * share[0];
  terms.sharedMemory += loop * share[1];
  terms.l2 += loop * share[2];
  terms.latency += loop * share[3];
  terms.blockStart += start;
  return loop + start;
}

LatencyPrediction ftuner::explainLatency(const LatencyDevice &device,
                                         const LatencyPart *all,
                                         unsigned numParts,
                                         const LatencyGrid &grid,
                                         const LatencyConstants &constants) {
  BusyParts busy(device, all, numParts, grid, constants);
  const LatencyPart *parts = busy.get();
  bool isStreaming = parts[0].table->block.isStreaming;
  Times times = predictTimes(device, parts, numParts, grid, constants);
  const Waves &waves = times.waves;
  LatencyPrediction terms;
  terms.launch = constants.launch;
  terms.secondKernel = times.second;
  terms.boxes =
      std::max(boxTime(device, grid) - times.kernel - terms.secondKernel, 0.0);
  terms.total = terms.launch + times.kernel + terms.secondKernel + terms.boxes;
  terms.residentBlocks = waves.resident;
  terms.schedulerImbalance = imbalance(device, parts[numParts - 1].table->block,
                                       std::min(waves.resident, waves.perSm));
  terms.waves = waves.blocks / (device.smCount * waves.resident);
  terms.dramBytes = times.dramBytes;
  terms.smTime = times.sm;
  terms.dramTime = times.dram;
  terms.powerTime = times.power;

  // Cycles of an SM: those of the blocks if all ran in full waves on all SMs,
  // and what the last wave adds. A wave that is the only one has no tail.
  double cycles = times.sm * device.clockMhz, accounted = 0;
  double rounds = std::ceil(waves.perSm / waves.resident);
  double shownStarts =
      isStreaming ? 1
                  : 1 - hiddenCycles(device, waves, parts[0], constants) /
                            (rounds * blockStart(device, parts[0], constants));
  if (isStreaming) {
    accounted =
        addStream(terms, device, waves, parts[numParts - 1], grid, constants) -
        terms.tail;
  } else if (waves.perSm < waves.resident) {
    double tall = numParts > 1 ? waves.tall : 0;
    accounted = addBlocks(terms, device, parts[0], constants, waves.perSm,
                          waves.perSm - tall, shownStarts);
    if (numParts > 1)
      accounted += addBlocks(terms, device, parts[1], constants, waves.perSm,
                             tall, shownStarts);
  } else {
    for (unsigned i = 0; i < numParts; ++i)
      accounted += addBlocks(terms, device, parts[i], constants, waves.resident,
                             parts[i].count / device.smCount, shownStarts);
    terms.tail = std::max(cycles - accounted, 0.0);
  }
  accounted += terms.tail;

  // The norm of SMs and DRAM is shared out the same way.
  std::array<double, 2> share = shares(
      times.overlap, std::array<double, 2>{times.sm - times.bare, times.dram});
  double together = times.unlimited - times.bare;
  double scale = (times.bare + together * share[0]) / accounted;
  for (double *term : {&terms.issue, &terms.sharedMemory, &terms.l2,
                       &terms.latency, &terms.blockStart, &terms.tail})
    *term *= scale;
  terms.dram = together * share[1];
  terms.power = times.kernel - times.unlimited;
  return terms;
}

//===----------------------------------------------------------------------===//
// Accesses of a warp
//===----------------------------------------------------------------------===//

/// Whether every lane that takes part has the address of its neighbour.
static bool neighboursAgree(const std::array<int64_t, 32> &address) {
  for (unsigned lane = 0; lane < 32; lane += 2)
    if (address[lane] >= 0 && address[lane + 1] >= 0 &&
        address[lane] != address[lane + 1])
      return false;
  return true;
}

/// Parts of the warp that an access goes in.
static unsigned countParts(const std::array<int64_t, 32> &address,
                           int64_t width) {
  unsigned numParts = static_cast<unsigned>(std::clamp<int64_t>(width, 1, 4));
  return numParts > 1 && neighboursAgree(address) ? numParts / 2 : numParts;
}

int ftuner::leastWavefronts(const std::array<int64_t, 32> &address,
                            int64_t width) {
  unsigned numParts = countParts(address, width);
  unsigned lanes = 32 / numParts;
  int sum = 0;
  for (unsigned part = 0; part < numParts; ++part) {
    auto begin = address.begin() + part * lanes;
    sum += std::any_of(begin, begin + lanes,
                       [](int64_t first) { return first >= 0; });
  }
  return sum;
}

int ftuner::wavefronts(const std::array<int64_t, 32> &address, int64_t width) {
  unsigned numParts = countParts(address, width);
  unsigned lanes = 32 / numParts;
  // Words that start at multiples of the width share the fate of their first:
  // they are one unit of 1 << shift words.
  int64_t offsets = 0;
  for (int64_t first : address)
    offsets |= first < 0 ? 0 : first;
  unsigned shift = 0;
  while (((width | offsets) >> shift) % 2 == 0)
    ++shift;
  int64_t units = width >> shift;
  int64_t banks = 32 >> shift;
  int sum = 0;
  for (unsigned part = 0; part < numParts; ++part) {
    // The different units of each bank.
    std::array<std::array<int64_t, 64>, 32> found;
    std::array<int, 32> numFound = {};
    int busiest = 0;
    for (unsigned lane = part * lanes; lane < (part + 1) * lanes; ++lane) {
      if (address[lane] < 0)
        continue;
      for (int64_t i = 0; i < units; ++i) {
        int64_t unit = (address[lane] >> shift) + i;
        auto bank = static_cast<size_t>(unit & (banks - 1));
        auto begin = found[bank].begin(), end = begin + numFound[bank];
        if (std::find(begin, end, unit) != end)
          continue;
        *end = unit;
        busiest = std::max(busiest, ++numFound[bank]);
      }
    }
    sum += busiest;
  }
  return sum;
}

int ftuner::globalLines(const std::array<int64_t, 32> &address, int64_t width) {
  std::array<int64_t, 64> lines;
  auto end = lines.begin();
  for (int64_t word : address) {
    if (word < 0)
      continue;
    for (int64_t line : {word / 32, (word + width - 1) / 32}) {
      // Most lanes touch the line of the lane before.
      if (end != lines.begin() && end[-1] == line)
        continue;
      if (std::find(lines.begin(), end, line) == end)
        *end++ = line;
    }
  }
  return static_cast<int>(end - lines.begin());
}
