//===- MemoryChecker.cpp - Bounds, alignment and races --------------------===//
#include "MemoryChecker.h"
#include "Text.h"
#include <algorithm>

using namespace ftuner::emulator;

/// Where an access begins.
struct MemoryChecker::Place {
  enum Kind { DynamicShared, StaticShared, Stack, Global, Unknown } kind;
  const Buffer *buffer = nullptr; ///< For Global.
  bool fits = false;              ///< The access also ends there.

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

void MemoryChecker::Page::refine() {
  if (granule == 1)
    return;
  std::vector<Cell> fine;
  fine.reserve(kPageBytes);
  for (const Cell &cell : cells)
    fine.insert(fine.end(), granule, cell);
  cells = std::move(fine);
  granule = 1;
}

void MemoryChecker::beginBlock(const SharedMemory &memory,
                               uint32_t linearBlock) {
  shared = memory;
  block = linearBlock;
  ++phase;
}

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
  auto within = [&](const char *base, size_t size, size_t length) {
    return SharedMemory::isWithin(address, length, base, size);
  };
  Place place{Place::Unknown};
  if (within(shared.dynamicBase, shared.dynamicBytes, 1)) {
    place.kind = Place::DynamicShared;
    place.fits = within(shared.dynamicBase, shared.dynamicBytes, bytes);
    return place;
  }
  if (within(shared.staticBase, shared.staticBytes, 1)) {
    place.kind = Place::StaticShared;
    place.fits = within(shared.staticBase, shared.staticBytes, bytes);
    return place;
  }
  size_t stackBytes = fiber.stackTop - fiber.stackBase;
  if (within(fiber.stackBase, stackBytes, 1)) {
    place.kind = Place::Stack;
    place.fits = within(fiber.stackBase, stackBytes, bytes);
    return place;
  }
  const Buffer *buffer = findBuffer(address);
  if (buffer && within(buffer->base, buffer->bytes, 1)) {
    place.kind = Place::Global;
    place.buffer = buffer;
    place.fits = within(buffer->base, buffer->bytes, bytes);
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
  switch (place.kind) {
  case Place::DynamicShared:
    return at(shared.dynamicBase) + "dynamic shared memory" +
           size(shared.dynamicBytes);
  case Place::StaticShared:
    return at(shared.staticBase) + "static shared memory" +
           size(shared.staticBytes);
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
  consider(shared.dynamicBase, shared.dynamicBytes, "dynamic shared memory");
  consider(shared.staticBase, shared.staticBytes, "static shared memory");
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
      page.refine();
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
  record.thread = static_cast<uint16_t>(fiber.index);
  return record;
}

bool MemoryChecker::isUnordered(const Fiber &fiber, const Record &earlier,
                                bool isShared) const {
  if (earlier.block == kNone)
    return false;
  if (earlier.block != block)
    return !isShared; // Shared memory of an earlier block is another memory.
  if (earlier.phase != phase || earlier.thread == fiber.index)
    return false;
  bool sameWarp = earlier.thread / kWarpSize == fiber.index / kWarpSize;
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
  if (cell.severalWarps)
    return true;
  if (cell.severalThreads) // At least one of them is not this thread.
    return cell.read.thread / kWarpSize != fiber.index / kWarpSize ||
           cell.read.warpPhase == static_cast<uint16_t>(fiber.warpPhase);
  return isUnordered(fiber, cell.read, isShared);
}

void MemoryChecker::noteRead(const Fiber &fiber, Cell &cell,
                             bool isShared) const {
  Record now = makeRecord(fiber);
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

void MemoryChecker::reportRace(const Fiber &fiber, const Place &place,
                               const char *address, AccessKind kind,
                               const Record &earlier, const char *earlierKind,
                               uint32_t site) {
  std::string other = formatThread(fiber, earlier.thread);
  std::string where = earlier.block == block
                          ? "thread " + other + " without a barrier in between"
                          : "thread " + other + " of another block";
  log.report(fiber, ErrorKind::Race, site,
             joinText("race: ", getName(kind), " ", describe(place, address),
                      " after a ", earlierKind, " by ", where));
}

void MemoryChecker::trackAccess(const Fiber &fiber, const Place &place,
                                const char *address, size_t bytes,
                                AccessKind kind, uint32_t site) {
  bool isShared = place.isShared();
  bool clean = true; // Report each access once.
  forEachCell(address, bytes, [&](Cell &cell, const char *at) {
    if (clean && cell.isInFlight && cell.write.block == block) {
      clean = false;
      log.report(fiber, ErrorKind::CopyInFlight, site,
                 joinText("access ", describe(place, at),
                          " while an asynchronous copy of thread ",
                          formatThread(fiber, cell.write.thread),
                          " to it is in flight"));
    }
    bool bothAtomic = kind == AccessKind::Atomic && cell.isAtomic;
    if (clean && !bothAtomic && isUnordered(fiber, cell.write, isShared)) {
      clean = false;
      reportRace(fiber, place, at, kind, cell.write, "write", site);
    }
    if (kind == AccessKind::Read) {
      noteRead(fiber, cell, isShared);
      return;
    }
    if (clean && cell.productReads != 0 && cell.read.block == block) {
      clean = false;
      log.report(fiber, ErrorKind::Product, site,
                 joinText(getName(kind), " ", describe(place, at),
                          " while a product of matrices that reads it is in "
                          "flight"));
    }
    cell.fenceCount = fenceCountOf(fiber.index);
    if (clean && readsAreUnordered(fiber, cell, isShared)) {
      clean = false;
      reportRace(fiber, place, at, kind, cell.read, "read", site);
    }
    cell.write = makeRecord(fiber);
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
  forEachCell(copy.target, copy.bytes, [&](Cell &cell, const char *) {
    cell.isInFlight = false;
    cell.write = now;
    cell.fenceCount = fenceCountOf(fiber.index);
  });
}

void MemoryChecker::readForProduct(const Fiber &fiber, const char *address,
                                   size_t bytes, bool isIssue, uint32_t site) {
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
  forEachCell(address, bytes, [&](Cell &cell, const char *at) {
    if (!isIssue) {
      if (cell.productReads != 0)
        --cell.productReads;
      noteRead(fiber, cell, /*isShared=*/true);
      return;
    }
    ++cell.productReads;
    if (cell.write.block != block ||
        cell.fenceCount != fenceCountOf(cell.write.thread))
      return;
    log.report(fiber, ErrorKind::Proxy, site,
               joinText("a product of matrices reads ",
                        describe(locate(fiber, at, 1), at), " that thread ",
                        formatThread(fiber, cell.write.thread),
                        " wrote without fence.proxy.async behind it"));
  });
}
