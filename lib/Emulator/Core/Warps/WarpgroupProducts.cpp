//===- WarpgroupProducts.cpp - Asynchronous products ----------------------===//
#include "Warps/WarpgroupProducts.h"
#include <algorithm>
#include <cstring>

using namespace ftuner::emulator;

namespace {
/// The words of the emulator before the registers of D.
struct AccumulatorHeader {
  uint32_t version;     ///< Version of the last product issued.
  uint32_t lastProduct; ///< Its number.
};
static_assert(sizeof(AccumulatorHeader) == 4 * kAccumulatorHeader);

AccumulatorHeader loadHeader(const uint32_t *accumulators) {
  AccumulatorHeader header;
  std::memcpy(&header, accumulators, sizeof(header));
  return header;
}

/// Returns whether `number` is `other` or a later one; numbers wrap around.
bool isAtLeast(uint32_t number, uint32_t other) {
  return static_cast<int32_t>(number - other) >= 0;
}
} // namespace

void WarpgroupProducts::begin() {
  size_t threads = scheduler.fibers().size();
  warpgroups.resize((threads + kGroupThreads - 1) / kGroupThreads);
  for (Warpgroup &group : warpgroups) {
    group.products.clear();
    group.performed = 0;
  }
  countInFlight(0);
}

void WarpgroupProducts::countInFlight(size_t count) {
  inFlight = count;
  copies.setProductsInFlight(count != 0);
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

uint32_t WarpgroupProducts::issue(Fiber &fiber, uint32_t *accumulators,
                                  const uint32_t *start, uint32_t version,
                                  const ProductRequest &request) {
  ErrorLog &log = scheduler.log();
  GroupVariant variant = GroupVariant::decode(request.variant);
  size_t groupIndex = fiber.index / kGroupThreads;
  uint32_t thread = fiber.index % kGroupThreads;
  size_t threads = scheduler.fibers().size();
  if (threads < (groupIndex + 1) * kGroupThreads) {
    scheduler.report(fiber, ErrorKind::WarpCollective, request.site,
                     "a product of a warpgroup needs all 128 threads, but "
                     "got ",
                     threads - groupIndex * kGroupThreads);
    scheduler.kill(fiber);
  }
  AccumulatorHeader header = loadHeader(accumulators);
  if (version == 0) {
    if (header.version != 0 &&
        isAtLeast(header.lastProduct, fiber.productsDone))
      log.report(fiber, ErrorKind::Product, request.site,
                 "accumulators are written while a product of matrices is in "
                 "flight");
    if (!fiber.hasProductFence)
      log.report(fiber, ErrorKind::Product, request.site,
                 "accumulators enter a product of matrices without "
                 "wgmma.fence before it");
    if (!variant.startsAtZero)
      std::copy_n(start, variant.registersOfD(),
                  accumulators + kAccumulatorHeader);
  } else if (version != header.version) {
    log.report(fiber, ErrorKind::Product, request.site,
               "accumulators enter a product of matrices that a later one has "
               "overwritten");
  }
  Warpgroup &group = warpgroups[groupIndex];
  uint32_t number = fiber.productsIssued++;
  uint32_t place = number - group.performed;
  if (place == group.products.size()) {
    group.products.emplace_back().request = request;
    countInFlight(inFlight + 1);
    for (uint64_t descriptor : {request.a, request.b})
      if (!MatrixDescriptor(descriptor).isSupported())
        log.report(fiber, ErrorKind::Product, request.site,
                   "no emulation of a matrix descriptor with a base offset");
  }
  Product &product = group.products[place];
  if (!(product.request == request)) {
    scheduler.report(
        fiber, ErrorKind::WarpCollective, request.site,
        "a product of a warpgroup has other descriptors, or is another "
        "one, than that of the warpgroup's first thread");
    scheduler.kill(fiber);
  }
  product.registers[thread] = accumulators + kAccumulatorHeader;
  header.version = std::max(header.version + 1, 1u);
  header.lastProduct = number;
  std::memcpy(accumulators, &header, sizeof(header));
  if (scheduler.checker() && fiber.registers.laneId == 0)
    checkReads(fiber, request, /*isIssue=*/true);
  if (!scheduler.launch().lazyAsyncCopies)
    performBelow(groupIndex, number + 1);
  return header.version;
}

//===----------------------------------------------------------------------===//
// Use of the accumulators
//===----------------------------------------------------------------------===//

void WarpgroupProducts::readAccumulators(Fiber &fiber,
                                         const uint32_t *accumulators,
                                         uint32_t *registers, uint32_t version,
                                         uint32_t count, uint32_t site) {
  fiber.hasProductFence = false; // What was read may be changed.
  if (version == 0)
    return;
  AccumulatorHeader header = loadHeader(accumulators);
  if (version != header.version)
    scheduler.report(fiber, ErrorKind::Product, site,
                     "accumulators are read that a later product of "
                     "matrices has overwritten");
  if (isAtLeast(header.lastProduct, fiber.productsDone)) {
    scheduler.report(fiber, ErrorKind::Product, site,
                     "accumulators are read while a product of matrices is "
                     "in flight");
    std::fill_n(registers, count, ~0u);
    return;
  }
  std::copy_n(accumulators + kAccumulatorHeader, count, registers);
}

void WarpgroupProducts::wait(Fiber &fiber, uint32_t pendingGroups,
                             uint32_t site) {
  std::vector<uint32_t> &groups = fiber.productGroups;
  if (groups.size() <= pendingGroups)
    return;
  size_t done = groups.size() - pendingGroups;
  uint32_t target = groups[done - 1];
  groups.erase(groups.begin(), groups.begin() + done);
  fiber.productsDone = target;
  fiber.site = site;
  if (!isAtLeast(warpgroups[fiber.index / kGroupThreads].performed, target))
    scheduler.yield(fiber, Fiber::State::AtProducts);
  // The warp executes the wait together, so its lanes come after its reads.
  ++fiber.warpPhase;
  if (MemoryChecker *checker = scheduler.checker())
    checker->acquireProductReads(fiber);
}

//===----------------------------------------------------------------------===//
// Performing
//===----------------------------------------------------------------------===//

bool WarpgroupProducts::complete() {
  if (scheduler.count(Fiber::State::AtProducts) == 0)
    return false;
  bool any = false;
  std::vector<Fiber> &fibers = scheduler.fibers();
  const Cluster &cluster = scheduler.cluster();
  for (size_t group = 0; group < warpgroups.size() && !cluster.isStopped;
       ++group) {
    size_t begin = group * kGroupThreads;
    size_t end = std::min(begin + kGroupThreads, fibers.size());
    for (size_t i = begin; i < end; ++i) {
      Fiber &fiber = fibers[i];
      if (fiber.state != Fiber::State::AtProducts)
        continue;
      performBelow(group, fiber.productsDone);
      if (!isAtLeast(warpgroups[group].performed, fiber.productsDone))
        continue;
      scheduler.setState(fiber, Fiber::State::Ready);
      any = true;
    }
  }
  return any;
}

void WarpgroupProducts::performBelow(size_t groupIndex, uint32_t end) {
  Warpgroup &group = warpgroups[groupIndex];
  const Fiber *threads = &scheduler.fibers()[groupIndex * kGroupThreads];
  while (!isAtLeast(group.performed, end)) {
    const Product &product = group.products.front();
    for (unsigned i = 0; i < kGroupThreads; ++i)
      if (!product.registers[i] && threads[i].state != Fiber::State::Killed)
        return; // It is yet to come.
    perform(groupIndex, product);
    group.products.pop_front();
    countInFlight(inFlight - 1);
    ++group.performed;
  }
}

void WarpgroupProducts::gather(const Fiber &fiber,
                               const ProductRequest &request, bool isA,
                               GroupOperand &operand) const {
  GroupVariant variant = GroupVariant::decode(request.variant);
  MatrixDescriptor descriptor(isA ? request.a : request.b);
  bool isTransposed = isA ? variant.hasRowsInner : variant.hasColumnsInner;
  unsigned extent = isA ? GroupVariant::kRows : variant.columns;
  constexpr unsigned kBytes = GroupVariant::kDepthBytes, kChunk = 16;
  unsigned outer = isTransposed ? kBytes / 2 : extent;
  unsigned inner = isTransposed ? extent / 8 : kBytes / kChunk;
  const SharedMemory &shared = memory.shared();
  const char *window = memory.window();
  for (unsigned i = 0; i < outer; ++i)
    for (unsigned j = 0; j < inner; ++j) {
      const char *address = window + descriptor.chunk(i, j, isTransposed);
      if (!shared.contains(address, kChunk)) {
        scheduler.report(
            fiber, ErrorKind::OutOfBounds, request.site,
            "out-of-bounds read of a product of matrices at offset ",
            address - shared.dynamicBase, " of dynamic shared memory (",
            shared.dynamicBytes, " bytes)");
        std::fill_n(operand.bytes, sizeof(operand.bytes), 0xff);
        return;
      }
      if (!isTransposed) {
        std::memcpy(operand.bytes + i * kBytes + j * kChunk, address, kChunk);
        continue;
      }
      for (unsigned k = 0; k < 8; ++k)
        std::memcpy(operand.bytes + (8 * j + k) * kBytes + 2 * i,
                    address + 2 * k, 2);
    }
}

void WarpgroupProducts::perform(size_t groupIndex, const Product &product) {
  Fiber *threads = &scheduler.fibers()[groupIndex * kGroupThreads];
  if (scheduler.checker())
    for (unsigned i = 0; i < kGroupThreads; i += kWarpSize)
      if (product.registers[i])
        checkReads(threads[i], product.request, /*isIssue=*/false);
  GroupOperand a, b;
  gather(threads[0], product.request, /*isA=*/true, a);
  gather(threads[0], product.request, /*isA=*/false, b);
  multiplyGroup(GroupVariant::decode(product.request.variant), a, b,
                product.registers);
}

void WarpgroupProducts::checkReads(Fiber &fiber, const ProductRequest &request,
                                   bool isIssue) {
  GroupVariant variant = GroupVariant::decode(request.variant);
  unsigned warp = fiber.registers.warpId % 4;
  const SharedMemory &shared = memory.shared();
  const char *window = memory.window();
  auto read = [&](uint64_t bits, unsigned first, unsigned extent,
                  bool isTransposed) {
    unsigned begin = isTransposed ? 0 : first;
    unsigned outer = isTransposed ? 16 : first + extent;
    unsigned innerBegin = isTransposed ? first / 8 : 0;
    unsigned inner = isTransposed ? (first + extent) / 8 : 2;
    for (unsigned i = begin; i < outer; ++i)
      for (unsigned j = innerBegin; j < inner; ++j) {
        const char *address =
            window + MatrixDescriptor(bits).chunk(i, j, isTransposed);
        if (shared.contains(address, 16)) // Else perform() says so.
          scheduler.checker()->readForProduct(fiber, address, 16, isIssue,
                                              request.site);
      }
  };
  read(request.a, 16 * warp, 16, variant.hasRowsInner);
  read(request.b, 0, variant.columns, variant.hasColumnsInner);
}

//===----------------------------------------------------------------------===//
// What is left undone
//===----------------------------------------------------------------------===//

bool WarpgroupProducts::reportMissingThreads() const {
  for (const Fiber &fiber : scheduler.fibers())
    if (fiber.state == Fiber::State::AtProducts) {
      scheduler.report(
          fiber, ErrorKind::Divergence, fiber.site,
          "divergence: a wait for products of matrices that not all "
          "threads of the warpgroup issue");
      return true;
    }
  return false;
}

void WarpgroupProducts::reportPending() const {
  for (const Fiber &fiber : scheduler.fibers())
    if (fiber.state == Fiber::State::Exited &&
        fiber.productsIssued != fiber.productsDone)
      scheduler.report(
          fiber, ErrorKind::PendingProduct, 0,
          fiber.productsIssued - fiber.productsDone,
          " products of matrices still pending at the kernel's end");
}
