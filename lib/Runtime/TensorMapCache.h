//===- TensorMapCache.h - Tensor maps that were encoded lately --*- C++ -*-===//
//
// Encoding a map costs a call of the driver, and most launches ask for maps of
// before: of weights always the same, of activations those that an allocator
// gives again. All threads share a table of a fixed number of places.
//
// Each place has a sequence number, odd while it is written (a seqlock):
// readers copy words and look whether the number stayed the same, writers that
// find a place taken leave it. So nobody waits. All words are atomic, without
// an order of their own, so that reading a half written place is no data race.
//
// Rejected: a table for each thread (memory of every thread that ever launched,
// which the loader allocates at its first access; weights encoded once for each
// thread), a lock (a thread that is suspended would stop all launches).
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_RUNTIME_TENSORMAPCACHE_H
#define FTUNER_LIB_RUNTIME_TENSORMAPCACHE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ftrt {

/// All that a map depends on, as words.
using TensorMapKey = std::array<uint64_t, 15>;
/// The 128 bytes.
using TensorMapWords = std::array<uint64_t, 16>;

class TensorMapCache {
public:
  /// Copies the key's map, if there is one, and returns whether there is.
  bool find(const TensorMapKey &key, TensorMapWords &map) const;
  /// Puts it in the place of another, or nowhere.
  void insert(const TensorMapKey &key, const TensorMapWords &map);

  /// Keys whose places may be the same.
  static constexpr unsigned kSets = 128;
  /// Places of a key.
  static constexpr unsigned kWays = 4;

private:
  struct Place {
    /// 0: empty.
    std::atomic<uint64_t> sequence{0};
    std::array<std::atomic<uint64_t>, TensorMapKey().size()> key{};
    std::array<std::atomic<uint64_t>, TensorMapWords().size()> map{};
  };
  /// Returns whether the place holds the whole map of the key.
  static bool read(const Place &place, const TensorMapKey &key,
                   TensorMapWords &map);
  static uint64_t hash(const TensorMapKey &key);

  std::array<Place, kSets * kWays> places;
  /// The place of a key that is written next if all are taken.
  std::atomic<unsigned> next{0};
};

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_TENSORMAPCACHE_H
