//===- LaunchCounter.cpp - Counts what a launch executes ------------------===//
#include "LaunchCounter.h"
#include "FTuner/CostModel/WarpAccess.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace ftuner::emulator;

namespace {
constexpr unsigned kSectorBytes = 32;
constexpr unsigned kWordBytes = 4;
/// Maximum that an instruction accesses for a lane.
constexpr unsigned kMaxAccessBytes = 16;
/// Rows of a matrix that are accessed at once.
constexpr unsigned kRowsAtOnce = 8;

/// Part of a request that a lane asks for; nothing if `bytes` is 0.
struct LaneAccess {
  uintptr_t address;
  unsigned bytes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Transfers of a request
//===----------------------------------------------------------------------===//

/// Sectors: those touched, and those that as many bytes need.
static void countSectors(llvm::ArrayRef<LaneAccess> lanes,
                         RequestCounters &counters) {
  llvm::SmallVector<LaneAccess, kWarpSize> sorted(lanes);
  llvm::sort(sorted, [](const LaneAccess &a, const LaneAccess &b) {
    return a.address < b.address;
  });
  uintptr_t nextByte = 0, nextSector = 0;
  uint64_t bytes = 0;
  for (const LaneAccess &lane : sorted) {
    if (lane.bytes == 0)
      continue;
    uintptr_t end = lane.address + lane.bytes;
    bytes += end - std::clamp(nextByte, lane.address, end);
    nextByte = std::max(nextByte, end);
    uintptr_t lastSector = (end - 1) / kSectorBytes;
    uintptr_t first = std::max(nextSector, lane.address / kSectorBytes);
    counters.transfers += lastSector + 1 > first ? lastSector + 1 - first : 0;
    nextSector = std::max(nextSector, lastSector + 1);
  }
  counters.idealTransfers += llvm::divideCeil(bytes, kSectorBytes);
}

/// Wavefronts: those it takes, and those without conflicts.
static void countWavefronts(llvm::ArrayRef<LaneAccess> lanes,
                            RequestCounters &counters) {
  std::array<int64_t, kWarpSize> words;
  unsigned bytes = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    bool isActive = lane < lanes.size() && lanes[lane].bytes != 0;
    words[lane] =
        isActive ? static_cast<int64_t>(lanes[lane].address / kWordBytes) : -1;
    if (isActive)
      bytes = std::max(bytes, lanes[lane].bytes);
  }
  auto width = static_cast<int64_t>(llvm::divideCeil(bytes, kWordBytes));
  counters.transfers += ftuner::wavefronts(words, width);
  counters.idealTransfers += ftuner::minWavefronts(words, width);
}

void LaunchCounter::count(RequestKind kind, const Request &request) {
  llvm::SmallVector<LaneAccess, kWarpSize> lanes;
  uint64_t bytes = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    lanes.push_back({request.address[lane], request.bytes[lane]});
    bytes += request.bytes[lane];
  }
  if (bytes == 0)
    return; // All lanes fill with zeros.
  RequestCounters &sum = counters[kind];
  ++sum.requests;
  sum.bytes += bytes;
  if (isShared(kind))
    countWavefronts(lanes, sum);
  else
    countSectors(lanes, sum);
}

//===----------------------------------------------------------------------===//
// Requests from the accesses of lanes
//===----------------------------------------------------------------------===//

void LaunchCounter::arrive(const Fiber &fiber, RequestKind kind,
                           const char *address, size_t bytes, uint32_t site) {
  uint32_t warp = fiber.registers.warpId, lane = fiber.registers.laneId;
  uint64_t key =
      (uint64_t(site) << 16 | warp << 8) | static_cast<uint64_t>(kind);
  Block &block = blockOf(fiber);
  auto [it, isNew] = block.streamOf.try_emplace(key, block.streams.size());
  if (isNew) {
    size_t numLanes =
        std::min<size_t>(kWarpSize, numThreads - warp * kWarpSize);
    Stream &stream = block.streams.emplace_back();
    stream.kind = kind;
    stream.lanes = llvm::maskTrailingOnes<uint32_t>(numLanes);
  }
  Stream &stream = block.streams[it->second];
  if (fiber.warpPhase > stream.phase) {
    countOpenRequests(stream);
    stream.phase = fiber.warpPhase;
  }
  size_t index = stream.numArrivals[lane]++ - stream.numCounted;
  if (index >= stream.open.size())
    stream.open.resize(index + 1);
  Request &request = stream.open[index];
  request.arrived |= 1u << lane;
  request.address[lane] = reinterpret_cast<uintptr_t>(address);
  request.bytes[lane] = static_cast<uint8_t>(bytes);
  while (!stream.open.empty() && stream.open.front().arrived == stream.lanes) {
    count(kind, stream.open.front());
    stream.open.pop_front();
    ++stream.numCounted;
  }
}

void LaunchCounter::countOpenRequests(Stream &stream) {
  for (const Request &request : stream.open)
    count(stream.kind, request);
  stream.open.clear();
  stream.numCounted = 0;
  stream.numArrivals.fill(0);
}

void LaunchCounter::countOpenRequests(Block &block) {
  for (Stream &stream : block.streams)
    countOpenRequests(stream);
}

void LaunchCounter::access(const Fiber &fiber, const char *address,
                           size_t bytes, AccessKind kind, uint32_t alignment,
                           uint32_t site) {
  if (SharedMemory::isWithin(address, 1, fiber.stackBase,
                             fiber.stackTop - fiber.stackBase))
    return;
  bool inShared = llvm::any_of(blocks, [&](const Block &block) {
    return block.shared.contains(address, 1);
  });
  RequestKind request =
      inShared ? RequestKind::SharedLoad : RequestKind::GlobalLoad;
  if (kind == AccessKind::Write)
    request = inShared ? RequestKind::SharedStore : RequestKind::GlobalStore;
  else if (kind == AccessKind::Atomic)
    request = inShared ? RequestKind::SharedAtomic : RequestKind::GlobalAtomic;
  size_t maxBytes = std::min<size_t>(std::max(1u, alignment), kMaxAccessBytes);
  while (bytes != 0) {
    size_t part = std::min<size_t>(maxBytes, llvm::bit_floor(bytes));
    arrive(fiber, request, address, part, site);
    address += part;
    bytes -= part;
  }
}

void LaunchCounter::copy(const Fiber &fiber, const AsyncCopy &copy) {
  arrive(fiber, RequestKind::CopySource, copy.source, copy.sourceBytes,
         copy.site);
  arrive(fiber, RequestKind::CopyTarget, copy.target, copy.bytes, copy.site);
}

void LaunchCounter::copyMatrices(const MatrixCopy &copy, const MatrixRows &rows,
                                 AccessKind kind) {
  RequestCounters &sum =
      counters[kind == AccessKind::Read ? RequestKind::MatrixLoad
                                        : RequestKind::MatrixStore];
  ++sum.requests;
  for (unsigned first = 0; first < copy.lanes(); first += kRowsAtOnce) {
    std::array<LaneAccess, kRowsAtOnce> lanes;
    for (unsigned i = 0; i < kRowsAtOnce; ++i) {
      const char *row = rows[first + i];
      unsigned bytes = row ? kMatrixRowBytes : 0;
      lanes[i] = {reinterpret_cast<uintptr_t>(row), bytes};
      sum.bytes += bytes;
    }
    countWavefronts(lanes, sum);
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void LaunchCounter::beginBlock(const SharedMemory &shared, uint32_t rank,
                               size_t threads) {
  // An error may have left the block before in its midst.
  blocks.resize(rank + 1);
  numThreads = threads;
  Block &block = blocks[rank];
  block.shared = shared;
  block.entries.assign(threads * basicBlocks.size(), 0);
  block.streams.clear();
  block.streamOf.clear();
}

void LaunchCounter::passBarrier(uint32_t rank) {
  ++counters.barriers;
  countOpenRequests(blocks[rank]);
}

void LaunchCounter::endBlock(uint32_t rank) {
  countOpenRequests(blocks[rank]);
  const std::vector<uint32_t> &entries = blocks[rank].entries;
  ++counters.blocks;
  size_t numBasicBlocks = basicBlocks.size();
  for (size_t begin = 0; begin < numThreads; begin += kWarpSize) {
    ++counters.warps;
    size_t end = std::min<size_t>(begin + kWarpSize, numThreads);
    for (size_t block = 0; block < numBasicBlocks; ++block) {
      // Lanes enter it together for the n-th time.
      uint64_t times = 0;
      for (size_t thread = begin; thread < end; ++thread)
        times =
            std::max<uint64_t>(times, entries[thread * numBasicBlocks + block]);
      for (auto [sum, number] :
           llvm::zip(counters.instructions, basicBlocks[block]))
        sum += times * number;
    }
  }
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

namespace ftuner::emulator {

const char *getName(RequestKind kind) {
  switch (kind) {
#define FTUNER_REQUEST_KIND(ENUMERATOR, NAME, IS_SHARED)                       \
  case RequestKind::ENUMERATOR:                                                \
    return NAME;
#include "FTuner/Emulator/Counters.def"
  }
  return "";
}

const char *getName(InstructionKind kind) {
  switch (kind) {
#define FTUNER_INSTRUCTION_KIND(ENUMERATOR, NAME)                              \
  case InstructionKind::ENUMERATOR:                                            \
    return NAME;
#include "FTuner/Emulator/Counters.def"
  }
  return "";
}

bool isShared(RequestKind kind) {
  switch (kind) {
#define FTUNER_REQUEST_KIND(ENUMERATOR, NAME, IS_SHARED)                       \
  case RequestKind::ENUMERATOR:                                                \
    return IS_SHARED;
#include "FTuner/Emulator/Counters.def"
  }
  return false;
}

uint64_t KernelCounters::bankConflicts() const {
  uint64_t numConflicts = 0;
  for (size_t i = 0; i < kNumRequestKinds; ++i)
    if (isShared(static_cast<RequestKind>(i)))
      numConflicts += requests[i].transfers - requests[i].idealTransfers;
  return numConflicts;
}

} // namespace ftuner::emulator
