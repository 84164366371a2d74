//===- MemoryChecker.cpp - Bounds, alignment and races --------------------===//
#include "Checks/MemoryChecker.h"
#include "Checks/Text.h"
#include <algorithm>

using namespace ftuner::emulator;

/// The memory in which an access begins.
struct MemoryChecker::Place {
  enum Kind { DynamicShared, StaticShared, Stack, Global, Unknown } kind;
  const SharedMemory *memory = nullptr; ///< For shared memory.
  bool isRemote = false;                ///< It is another block's.
  const Buffer *buffer = nullptr;       ///< For Global.
  bool fits = false;                    ///< The access also ends there.

  bool isShared() const {
    return kind == DynamicShared || kind == StaticShared;
  }
};

static uintptr_t toInteger(const char *address) {
  return reinterpret_cast<uintptr_t>(address);
}

static const char *getName(AccessKind kind) {
  switch (kind) {
  case AccessKind::Read:
    return "read";
  case AccessKind::Write:
    return "write";
  case AccessKind::Atomic:
    break;
  }
  return "atomic access";
}

void MemoryChecker::refine(Page &page) {
  if (page.granule == 1)
    return;
  std::vector<Cell> fine;
  fine.reserve(kPageBytes);
  for (const Cell &cell : page.cells)
    for (unsigned i = 0; i < page.granule; ++i) {
      fine.push_back(cell);
      if (cell.readers == 0 || i == 0)
        continue;
      fine.back().readers = static_cast<uint32_t>(readerLists.size());
      std::vector<Record> copy = readerLists[cell.readers];
      readerLists.push_back(std::move(copy));
    }
  page.cells = std::move(fine);
  page.granule = 1;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

const Buffer *MemoryChecker::findBuffer(const char *address) {
  if (lastBuffer &&
      SharedMemory::isWithin(address, 1, lastBuffer->base, lastBuffer->bytes))
    return lastBuffer;
  auto above = std::upper_bound(buffers.begin(), buffers.end(), address,
                                [](const char *a, const Buffer &b) {
                                  return toInteger(a) < toInteger(b.base);
                                });
  if (above == buffers.begin())
    return nullptr;
  return lastBuffer = &*(above - 1);
}

MemoryChecker::Place MemoryChecker::locate(const Fiber &fiber,
                                           const char *address, size_t bytes) {
  auto holds = [&](const char *base, size_t size, size_t length) {
    return SharedMemory::isWithin(address, length, base, size);
  };
  Place place{Place::Unknown};
  auto locateIn = [&](const SharedMemory &shared) {
    bool isDynamic = holds(shared.dynamicBase, shared.dynamicBytes, 1);
    if (!isDynamic && !holds(shared.staticBase, shared.staticBytes, 1))
      return false;
    place.kind = isDynamic ? Place::DynamicShared : Place::StaticShared;
    place.memory = &shared;
    place.fits = isDynamic
                     ? holds(shared.dynamicBase, shared.dynamicBytes, bytes)
                     : holds(shared.staticBase, shared.staticBytes, bytes);
    return true;
  };
  if (locateIn(memories[fiber.registers.clusterRank]))
    return place;
  size_t stackBytes = fiber.stackTop - fiber.stackBase;
  if (holds(fiber.stackBase, stackBytes, 1)) {
    place.kind = Place::Stack;
    place.fits = holds(fiber.stackBase, stackBytes, bytes);
    return place;
  }
  const Buffer *buffer = findBuffer(address);
  if (buffer && holds(buffer->base, buffer->bytes, 1)) {
    place.kind = Place::Global;
    place.buffer = buffer;
    place.fits = holds(buffer->base, buffer->bytes, bytes);
    return place;
  }
  if (memories.size() > 1)
    for (const SharedMemory &shared : memories)
      if (locateIn(shared)) {
        place.isRemote = true;
        return place;
      }
  return place;
}

std::string MemoryChecker::describe(const Place &place,
                                    const char *address) const {
  auto at = [&](const char *base) {
    return "at offset " + std::to_string(address - base) + " of ";
  };
  auto size = [](size_t bytes) {
    return " (" + std::to_string(bytes) + " bytes)";
  };
  auto owner = [&] {
    return place.isRemote
               ? joinText(" of block ", place.memory - memories.data(),
                          " of the cluster")
               : std::string();
  };
  switch (place.kind) {
  case Place::DynamicShared:
    return at(place.memory->dynamicBase) + "dynamic shared memory" +
           size(place.memory->dynamicBytes) + owner();
  case Place::StaticShared:
    return at(place.memory->staticBase) + "static shared memory" +
           size(place.memory->staticBytes) + owner();
  case Place::Stack:
    return "on the thread's stack";
  case Place::Global:
    return at(place.buffer->base) + "buffer '" + place.buffer->name + "'" +
           size(place.buffer->bytes);
  case Place::Unknown:
    break;
  }
  // Close to a known range the offset says more than the address.
  uintptr_t value = toInteger(address), nearest = 1 << 20;
  std::string text = "outside every buffer";
  auto consider = [&](const char *base, size_t bytes, const std::string &name) {
    uintptr_t begin = toInteger(base), end = begin + bytes;
    uintptr_t distance = value < begin ? begin - value : value - end;
    if (bytes == 0 || distance >= nearest)
      return;
    nearest = distance;
    text = at(base) + name + size(bytes);
  };
  for (const SharedMemory &shared : memories) {
    consider(shared.dynamicBase, shared.dynamicBytes, "dynamic shared memory");
    consider(shared.staticBase, shared.staticBytes, "static shared memory");
  }
  for (const Buffer &buffer : buffers)
    consider(buffer.base, buffer.bytes, joinText("buffer '", buffer.name, "'"));
  return text;
}

bool MemoryChecker::checkBounds(const Fiber &fiber, const Place &place,
                                const char *address, size_t bytes,
                                AccessKind kind, uint32_t site) {
  const char *name = getName(kind);
  if (!place.fits) {
    log.report(fiber, ErrorKind::OutOfBounds, site,
               joinText("out-of-bounds ", name, " of ", bytes, " bytes ",
                        describe(place, address)));
    return false;
  }
  if (kind != AccessKind::Read && place.kind == Place::Global &&
      !place.buffer->writable) {
    log.report(fiber, ErrorKind::ReadOnly, site,
               joinText(name, " of ", bytes, " bytes ",
                        describe(place, address), ", which is read-only"));
    return false;
  }
  return true;
}

bool MemoryChecker::access(const Fiber &fiber, const char *address,
                           size_t bytes, AccessKind kind, uint32_t alignment,
                           uint32_t site) {
  if (bytes == 0)
    return true;
  Place place = locate(fiber, address, bytes);
  if (options.bounds) {
    if (!checkBounds(fiber, place, address, bytes, kind, site))
      return false;
    if (alignment > 1 && toInteger(address) % alignment != 0)
      log.report(fiber, ErrorKind::Misaligned, site,
                 joinText("misaligned access of ", bytes, " bytes ",
                          describe(place, address),
                          ": expected an alignment of ", alignment,
                          " bytes, but got address ", formatAddress(address)));
  }
  bool isConstant = place.kind == Place::Global && !place.buffer->writable;
  if (options.races && place.kind != Place::Stack && !isConstant)
    trackAccess(fiber, place, address, bytes, kind, site);
  return true;
}

MemoryChecker::Page &MemoryChecker::pageOf(uintptr_t address) {
  uintptr_t number = address / kPageBytes;
  RecentPage &recent = recentPages[number % recentPages.size()];
  if (recent.number != number) {
    std::unique_ptr<Page> &page = pages[number];
    if (!page)
      page = std::make_unique<Page>();
    recent = {number, page.get()};
  }
  return *recent.page;
}

template <typename Function>
void MemoryChecker::forEachCell(const char *start, size_t bytes,
                                Function function) {
  uintptr_t address = toInteger(start), end = address + bytes;
  bool isNarrow = address % 4 != 0 || bytes % 4 != 0;
  while (address != end) {
    Page &page = pageOf(address);
    if (isNarrow)
      refine(page);
    uintptr_t pageEnd =
        std::min<uintptr_t>(end, (address / kPageBytes + 1) * kPageBytes);
    for (; address < pageEnd; address += page.granule)
      function(page.cells[address % kPageBytes / page.granule],
               reinterpret_cast<const char *>(address));
  }
}

MemoryChecker::Record MemoryChecker::makeRecord(const Fiber &fiber) const {
  Record record;
  record.block = block;
  record.phase = phase;
  record.warpPhase = static_cast<uint16_t>(fiber.warpPhase);
  record.thread = static_cast<uint16_t>(fiber.actor);
  if (options.partialOrder)
    record.clock = clocks.now(fiber.actor);
  return record;
}

bool MemoryChecker::isUnordered(const Fiber &fiber, const Record &earlier,
                                bool isShared) const {
  if (earlier.block == kNone)
    return false;
  if (earlier.block != block)
    return !isShared; // Shared memory of an earlier block is another memory.
  if (options.partialOrder && isKnown(fiber, earlier))
    return false;
  if (earlier.thread >= actorBase)
    return true; // Phases order only threads.
  if (earlier.phase != phase || earlier.thread == fiber.actor)
    return false;
  bool sameWarp = earlier.thread / kWarpSize == fiber.actor / kWarpSize;
  return !sameWarp ||
         earlier.warpPhase == static_cast<uint16_t>(fiber.warpPhase);
}

bool MemoryChecker::readsAreUnordered(const Fiber &fiber, const Cell &cell,
                                      bool isShared) const {
  if (cell.read.block == kNone)
    return false;
  if (!isShared && (cell.severalBlocks || cell.read.block != block))
    return true;
  if (cell.read.block != block || cell.read.phase != phase)
    return false;
  if (options.partialOrder && cell.readers != 0)
    return readersAreUnordered(fiber, cell, isShared);
  if (cell.severalWarps)
    return true;
  if (cell.severalThreads) // At least one of them is not this thread.
    return cell.read.thread / kWarpSize != fiber.actor / kWarpSize ||
           cell.read.warpPhase == static_cast<uint16_t>(fiber.warpPhase);
  return isUnordered(fiber, cell.read, isShared);
}

bool MemoryChecker::isKnown(const Fiber &fiber, const Record &earlier) const {
  return clocks.knows(fiber.actor, earlier.thread, earlier.clock);
}

bool MemoryChecker::readersAreUnordered(const Fiber &fiber, const Cell &cell,
                                        bool isShared) const {
  const std::vector<Record> &readers = readerLists[cell.readers];
  return std::any_of(readers.begin(), readers.end(), [&](const Record &reader) {
    return isUnordered(fiber, reader, isShared);
  });
}

void MemoryChecker::noteReader(const Record &reader, Cell &cell) {
  if (cell.readers == 0) {
    cell.readers = static_cast<uint32_t>(readerLists.size());
    readerLists.emplace_back();
  }
  std::vector<Record> &readers = readerLists[cell.readers];
  if (!readers.empty() && (readers.front().block != reader.block ||
                           readers.front().phase != reader.phase))
    readers.clear();
  for (Record &known : readers)
    if (known.thread == reader.thread) {
      known = reader;
      return;
    }
  readers.push_back(reader);
}

// Once for each word of each read.
[[gnu::always_inline]] inline void
MemoryChecker::noteRead(const Record &now, Cell &cell, bool isShared) {
  if (options.partialOrder)
    noteReader(now, cell);
  Record &read = cell.read;
  bool samePhase = read.block == now.block && read.phase == now.phase;
  if (!isShared && read.block != kNone && read.block != now.block)
    cell.severalBlocks = true;
  if (!samePhase) {
    cell.severalThreads = cell.severalWarps = false;
  } else if (read.thread / kWarpSize != now.thread / kWarpSize) {
    cell.severalWarps = true;
  } else if (read.warpPhase != now.warpPhase) {
    // Ordered after the reads so far. A lagging lane of the warp cannot be:
    // the synchronisation waited for it.
    cell.severalThreads = false;
  } else if (read.thread != now.thread) {
    cell.severalThreads = true;
  }
  read = now;
}

std::string MemoryChecker::describeThread(const Fiber &fiber,
                                          uint32_t actor) const {
  auto rank = static_cast<uint32_t>(actor / blockStride);
  std::string text =
      "thread " +
      formatThread(fiber, static_cast<uint32_t>(actor % blockStride));
  return rank == fiber.registers.clusterRank
             ? text
             : joinText(text, " of block ", rank, " of the cluster");
}

std::string MemoryChecker::describeWriter(const Fiber &fiber,
                                          const Record &record) const {
  return record.thread >= actorBase ? "a copy that an mbarrier counts"
                                    : describeThread(fiber, record.thread);
}

void MemoryChecker::reportRace(const Fiber &fiber, const Place &place,
                               const char *address, AccessKind kind,
                               const Record &earlier, const char *earlierKind,
                               uint32_t site) {
  std::string where = describeWriter(fiber, earlier);
  if (earlier.block != block)
    where += " of another block";
  else if (earlier.thread >= actorBase)
    where += " without a wait for it in between";
  else
    where += " without a barrier in between";
  log.report(fiber, ErrorKind::Race, site,
             joinText("race: ", getName(kind), " ", describe(place, address),
                      " after a ", earlierKind, " by ", where));
}

void MemoryChecker::trackAccess(const Fiber &fiber, const Place &place,
                                const char *address, size_t bytes,
                                AccessKind kind, uint32_t site) {
  bool isShared = place.isShared();
  bool clean = true; // Report each access once.
  Record now = makeRecord(fiber);
  auto fenceCount = static_cast<uint32_t>(fencesOf(fiber.actor).size());
  forEachCell(address, bytes, [&](Cell &cell, const char *at) {
    if (clean && cell.isInFlight && cell.write.block == block) {
      clean = false;
      log.report(fiber, ErrorKind::CopyInFlight, site,
                 joinText("access ", describe(place, at),
                          " while an asynchronous copy of ",
                          describeThread(fiber, cell.write.thread),
                          " to it is in flight"));
    }
    bool bothAtomic = kind == AccessKind::Atomic && cell.isAtomic;
    if (clean && !bothAtomic && isUnordered(fiber, cell.write, isShared)) {
      clean = false;
      reportRace(fiber, place, at, kind, cell.write, "write", site);
    }
    if (kind == AccessKind::Read) {
      noteRead(now, cell, isShared);
      return;
    }
    if (clean && cell.productReads != 0 && cell.read.block == block) {
      clean = false;
      log.report(fiber, ErrorKind::Product, site,
                 joinText(getName(kind), " ", describe(place, at), " while a ",
                          cell.isBulkRead ? "bulk copy" : "product of matrices",
                          " that reads it is in flight"));
    }
    cell.fenceCount = fenceCount;
    if (clean && readsAreUnordered(fiber, cell, isShared)) {
      clean = false;
      reportRace(fiber, place, at, kind, cell.read, "read", site);
    }
    if (cell.readers != 0)
      readerLists[cell.readers].clear(); // All come before this write.
    cell.isAsyncWrite = false;
    cell.write = now;
    cell.isAtomic = kind == AccessKind::Atomic;
    cell.isInFlight = false;
  });
}

bool MemoryChecker::issueCopy(const Fiber &fiber, const AsyncCopy &copy) {
  // Alignment is the caller's business: the copy's own rules are stricter.
  if (!access(fiber, copy.source, copy.sourceBytes, AccessKind::Read, 1,
              copy.site) ||
      !access(fiber, copy.target, copy.bytes, AccessKind::Write, 1, copy.site))
    return false;
  if (options.races)
    forEachCell(copy.target, copy.bytes,
                [&](Cell &cell, const char *) { cell.isInFlight = true; });
  return true;
}

void MemoryChecker::completeCopy(const Fiber &fiber, const AsyncCopy &copy) {
  if (!options.races)
    return;
  // The source may have been read at any time since the issue.
  access(fiber, copy.source, copy.sourceBytes, AccessKind::Read, 1, copy.site);
  Record now = makeRecord(fiber);
  auto fenceCount = static_cast<uint32_t>(fencesOf(fiber.actor).size());
  forEachCell(copy.target, copy.bytes, [&](Cell &cell, const char *) {
    cell.isInFlight = false;
    cell.write = now;
    cell.fenceCount = fenceCount;
  });
}

void MemoryChecker::land(uint32_t actor, uint32_t time, const char *target,
                         size_t bytes, bool isBulk) {
  if (!options.races)
    return;
  Record now;
  now.block = block;
  now.phase = phase;
  now.thread = static_cast<uint16_t>(threadOfActor(actor));
  now.clock = time;
  forEachCell(target, bytes, [&](Cell &cell, const char *) {
    cell.isInFlight = false;
    cell.write = now;
    cell.isAsyncWrite = isBulk;
    cell.fenceCount = 0; // Nobody can fence what an actor wrote.
  });
}

bool MemoryChecker::isWriteUnfenced(const Fiber &fiber, const Cell &cell) {
  if (cell.write.block != block || cell.isAsyncWrite)
    return false;
  const std::vector<Record> &records = fencesOf(cell.write.thread);
  return records.size() <= cell.fenceCount ||
         isUnordered(fiber, records[cell.fenceCount], /*isShared=*/true);
}

void MemoryChecker::readForProduct(const Fiber &fiber, const char *address,
                                   size_t bytes, bool isIssue, uint32_t site) {
  if (options.partialOrder && !isIssue)
    productReadTimes[fiber.actor / kWarpSize] = clocks.now(fiber.actor);
  readAsync(fiber, address, bytes, isIssue, /*isBulk=*/false, site);
}

void MemoryChecker::readForBulkCopy(const Fiber &fiber, const char *source,
                                    size_t bytes, bool isIssue, uint32_t site) {
  readAsync(fiber, source, bytes, isIssue, /*isBulk=*/true, site);
}

void MemoryChecker::readAsync(const Fiber &fiber, const char *address,
                              size_t bytes, bool isIssue, bool isBulk,
                              uint32_t site) {
  if (!options.races)
    return;
  if (isIssue) {
    // An error may have left the block before in its midst.
    forEachCell(address, bytes, [&](Cell &cell, const char *) {
      if (cell.read.block != block)
        cell.productReads = 0;
    });
    access(fiber, address, bytes, AccessKind::Read, /*alignment=*/1, site);
  }
  bool clean = true; // Report each read of a bulk copy once.
  Record now = makeRecord(fiber);
  const Cell *last = nullptr;
  bool wasUnfenced = false;
  forEachCell(address, bytes, [&](Cell &cell, const char *at) {
    if (!isIssue) {
      if (cell.productReads != 0)
        --cell.productReads;
      noteRead(now, cell, /*isShared=*/true);
      return;
    }
    ++cell.productReads;
    cell.isBulkRead = isBulk;
    // Neighbours mostly have one writer.
    if (!last || last->write.thread != cell.write.thread ||
        last->write.block != cell.write.block ||
        last->fenceCount != cell.fenceCount ||
        last->isAsyncWrite != cell.isAsyncWrite)
      wasUnfenced = isWriteUnfenced(fiber, cell);
    last = &cell;
    if (!clean || !wasUnfenced)
      return;
    clean = !isBulk;
    log.report(fiber, ErrorKind::Proxy, site,
               joinText(isBulk ? "a bulk copy" : "a product of matrices",
                        " reads ", describe(locate(fiber, at, 1), at), " that ",
                        describeWriter(fiber, cell.write),
                        " wrote without fence.proxy.async behind it"));
  });
}

bool MemoryChecker::issueBulkCopy(const Fiber &fiber, const char *target,
                                  size_t bytes, uint32_t site) {
  bool isReported = !options.races;
  if (options.races)
    forEachCell(target, bytes, [&](Cell &cell, const char *at) {
      if (isReported || !isWriteUnfenced(fiber, cell))
        return;
      isReported = true;
      log.report(fiber, ErrorKind::Proxy, site,
                 joinText("a bulk copy overwrites ",
                          describe(locate(fiber, at, 1), at), " that ",
                          describeWriter(fiber, cell.write),
                          " wrote without fence.proxy.async behind it"));
    });
  if (!access(fiber, target, bytes, AccessKind::Write, /*alignment=*/1, site))
    return false;
  if (options.races)
    forEachCell(target, bytes, [&](Cell &cell, const char *) {
      cell.isInFlight = cell.isAsyncWrite = true;
    });
  return true;
}
