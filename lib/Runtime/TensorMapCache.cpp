//===- TensorMapCache.cpp - Tensor maps that were encoded lately ----------===//
#include "TensorMapCache.h"

using namespace ftrt;

uint64_t TensorMapCache::hash(const TensorMapKey &key) {
  // An odd number with bits all over (2^64 over the golden ratio).
  constexpr uint64_t factor = 0x9e3779b97f4a7c15;
  uint64_t result = 0;
  for (uint64_t word : key) {
    result = (result ^ word) * factor;
    result ^= result >> 32;
  }
  return result;
}

bool TensorMapCache::read(const Place &place, const TensorMapKey &key,
                          TensorMapWords &map) {
  uint64_t before = place.sequence.load(std::memory_order_acquire);
  if (before == 0 || before % 2 != 0)
    return false;
  for (std::size_t i = 0; i < key.size(); ++i)
    if (place.key[i].load(std::memory_order_relaxed) != key[i])
      return false;
  for (std::size_t i = 0; i < map.size(); ++i)
    map[i] = place.map[i].load(std::memory_order_relaxed);
  // What was read above is of this sequence number if it is still there.
  std::atomic_thread_fence(std::memory_order_acquire);
  return place.sequence.load(std::memory_order_relaxed) == before;
}

bool TensorMapCache::find(const TensorMapKey &key, TensorMapWords &map) const {
  const Place *set = &places[hash(key) % kSets * kWays];
  for (unsigned way = 0; way < kWays; ++way)
    if (read(set[way], key, map))
      return true;
  return false;
}

void TensorMapCache::insert(const TensorMapKey &key,
                            const TensorMapWords &map) {
  Place *set = &places[hash(key) % kSets * kWays];
  unsigned way = 0;
  while (way < kWays && set[way].sequence.load(std::memory_order_relaxed) != 0)
    ++way;
  if (way == kWays)
    way = next.fetch_add(1, std::memory_order_relaxed) % kWays;
  Place &place = set[way];
  uint64_t sequence = place.sequence.load(std::memory_order_relaxed);
  if (sequence % 2 != 0 ||
      !place.sequence.compare_exchange_strong(sequence, sequence + 1,
                                              std::memory_order_acquire,
                                              std::memory_order_relaxed))
    return; // Another thread writes it.
  // No word of what follows is seen before the odd number.
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < key.size(); ++i)
    place.key[i].store(key[i], std::memory_order_relaxed);
  for (std::size_t i = 0; i < map.size(); ++i)
    place.map[i].store(map[i], std::memory_order_relaxed);
  place.sequence.store(sequence + 2, std::memory_order_release);
}
