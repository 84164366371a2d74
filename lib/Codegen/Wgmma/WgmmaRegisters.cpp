//===- WgmmaRegisters.cpp - Registers by role of wgmma --------------------===//
#include "FTuner/Codegen/Wgmma/WgmmaRegisters.h"

#include <algorithm>

using namespace ftuner;

/// Registers for addresses, predicates and loop state beside accumulators, and
/// for each vector that a thread copies in a step. ptxas 13.0 gives kernels of
/// 128 x 128 and 128 x 256 elements 50 and 68 registers beside accumulators,
/// with 8 and 12 vectors.
static constexpr int64_t kAddressRegisters = 32, kSlotRegisters = 3;
/// The same of threads that multiply alone: the epilogue decides. With swapped
/// operands it writes rows at more distances: of two tiles of up to 256 rows,
/// 128 accumulators and 40 registers spill by 5. So do tiles of two heights in
/// ping-pong, where turns and the stages between them are kept beside.
static constexpr int64_t kConsumerRegisters = 40, kSwappedRegisters = 16,
                         kTurnRegisters = 8;
/// Beside an instruction's accumulators, of what a kernel starts with, wherever
/// more are moved to before it: ptxas 13.0 refuses 104 accumulators with 128
/// registers and asks for 130, and 56 with 80 and asks for 82.
static constexpr int64_t kInstructionRegisters = 26;
/// Registers of a thread that has boxes copied: with tiles of two heights that
/// are moved inside of operands of any size, 40 spill by 1. Registers beside
/// accumulators where the threads that multiply have them copied: 42 with 128
/// accumulators by ptxas 13.0, 32 with 64.
static constexpr int64_t kMapRegisters = 48, kMapSharedRegisters = 42;
/// Numbers of registers that a warpgroup may have are multiples of the unit,
/// from the least on (PTX ISA, setmaxnreg). The most of threads that multiply:
/// CUTLASS gives as many.
static constexpr int64_t kUnit = 8, kLeast = 24, kMost = 240;
/// Of an SM of compute capability 9.0, the only one that has the instructions
/// (CUDA programming guide, "Technical Specifications").
static constexpr int64_t kRegistersOfSm = 65536, kThreadsOfSm = 2048,
                         kSharedBytesOfSm = 228 << 10, kReservedBytes = 1 << 10;

/// Of a thread that copies, beside what else it does.
static int64_t copyRegisters(const Workload &workload,
                             const WgmmaLayout &layout,
                             const WgmmaSchedule &schedule) {
  int64_t registers = 0;
  for (unsigned factor : {0, 1}) {
    if (!layout.copiesByThreads(factor))
      continue;
    FactorCopy copy = factorCopy(workload, schedule.accessBytes, factor);
    int64_t ofSlot = kSlotRegisters + copy.prologue.registers;
    // Two stages: copies pass through registers.
    if (layout.stages == 2)
      ofSlot += ceilDiv(copy.vectorWidth *
                            std::max(layout.elementBytes, copy.globalBytes),
                        4);
    registers += ofSlot * layout.tileOf(factor).copySlots(
                              layout.copyingThreads(), copy.vectorWidth);
  }
  return registers;
}

int64_t ftuner::wgmmaSharedRoleRegisters(const Workload &workload,
                                         const BlockTile &tile,
                                         const WgmmaSchedule &schedule) {
  WgmmaLayout layout = wgmmaLayout(workload, tile, schedule);
  return layout.warpTile().accumulators() +
         (layout.usesTma
              ? kMapSharedRegisters
              : kAddressRegisters + copyRegisters(workload, layout, schedule));
}

std::optional<WgmmaRegisters>
ftuner::wgmmaRegisters(const Workload &workload, const KernelFamily &family) {
  WgmmaSchedule schedule = WgmmaSchedule::of(family.schedule);
  int64_t warpgroups = schedule.consumerWarpgroups(), bytes = 0, consumer = 0;
  int64_t instruction = 0;
  int64_t producer = kMapRegisters;
  for (unsigned part = 0; part < family.tiles.size(); ++part) {
    WgmmaLayout layout = wgmmaLayout(workload, family, part);
    bytes = std::max(bytes, layout.sharedMemoryBytes());
    consumer = std::max(consumer,
                        layout.warpTile().accumulators() + kConsumerRegisters +
                            (schedule.swapOperands ? kSwappedRegisters : 0) +
                            (schedule.pingPong ? kTurnRegisters : 0));
    instruction = std::max(instruction, layout.columns.warpgroupExtent() / 2 +
                                            kInstructionRegisters);
    if (!layout.usesTma)
      producer =
          std::max(producer, kAddressRegisters +
                                 copyRegisters(workload, layout, schedule));
  }
  consumer = ceilBy(consumer, kUnit);
  producer = std::max(ceilBy(producer, kUnit), kLeast);
  if (consumer > kMost || producer > kMost)
    return std::nullopt;
  int64_t blocks = std::min(kSharedBytesOfSm / (bytes + kReservedBytes),
                            kThreadsOfSm / schedule.threads());
  for (; blocks >= 1; --blocks) {
    WgmmaRegisters registers;
    registers.blocks = blocks;
    registers.entry = std::min(
        kRegistersOfSm / (blocks * schedule.threads()) / kUnit * kUnit, kMost);
    registers.producer = producer;
    registers.consumer = consumer;
    if (std::max(producer, consumer) <= registers.entry)
      return registers;
    int64_t pool = registers.entry * (warpgroups + schedule.producerWarpgroups);
    int64_t left = (pool - producer * schedule.producerWarpgroups) / warpgroups;
    registers.consumer = std::min(left / kUnit * kUnit, kMost);
    registers.areMoved = true;
    if (std::max(producer, instruction) <= registers.entry &&
        registers.consumer >= consumer)
      return registers;
  }
  return std::nullopt;
}
