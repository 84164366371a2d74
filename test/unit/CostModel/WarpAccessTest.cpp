//===- WarpAccessTest.cpp - Accesses of a warp ----------------------------===//
#include "FTuner/CostModel/WarpAccess.h"
#include "../RandomSeed.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace ftuner;

namespace {

std::array<int64_t, 32> addresses(int64_t (*addressOf)(int64_t lane)) {
  std::array<int64_t, 32> result;
  for (int64_t lane = 0; lane < 32; ++lane)
    result[lane] = addressOf(lane);
  return result;
}

TEST(Wavefronts, Patterns) {
  auto linear = addresses([](int64_t lane) { return lane; });
  EXPECT_EQ(wavefronts(linear, 1), 1);
  auto same = addresses([](int64_t) -> int64_t { return 7; });
  EXPECT_EQ(wavefronts(same, 1), 1);
  auto strided = addresses([](int64_t lane) { return 2 * lane; });
  EXPECT_EQ(wavefronts(strided, 1), 2);
  auto column = addresses([](int64_t lane) { return 32 * lane; });
  EXPECT_EQ(wavefronts(column, 1), 32);
  auto vectors = addresses([](int64_t lane) { return 4 * lane; });
  EXPECT_EQ(wavefronts(vectors, 4), 4);
  // A broadcast goes in two parts, and so do equal neighbours.
  EXPECT_EQ(wavefronts(same, 4), 2);
  auto pairs = addresses([](int64_t lane) { return 4 * (lane / 2); });
  EXPECT_EQ(wavefronts(pairs, 4), 2);
  EXPECT_EQ(wavefronts(pairs, 2), 2); // stride 4, words of 16 lanes in one part
  // Equal lanes that are not neighbours save nothing.
  auto apart = addresses([](int64_t lane) { return 4 * (lane % 8); });
  EXPECT_EQ(wavefronts(apart, 4), 4);
}

TEST(Wavefronts, WithoutConflicts) {
  auto column = addresses([](int64_t lane) { return 32 * lane; });
  EXPECT_EQ(minWavefronts(column, 1), 1);
  EXPECT_EQ(minWavefronts(column, 2), 2);
  EXPECT_EQ(minWavefronts(column, 4), 4);
  auto pairs = addresses([](int64_t lane) { return 128 * (lane / 2); });
  EXPECT_EQ(wavefronts(pairs, 4), 16);
  EXPECT_EQ(minWavefronts(pairs, 4), 2);
  // A part without lanes takes no cycle.
  auto some = addresses(
      [](int64_t lane) -> int64_t { return lane / 8 == 1 ? 4 * lane : -1; });
  EXPECT_EQ(minWavefronts(some, 4), 1);
  EXPECT_EQ(minWavefronts(addresses([](int64_t) -> int64_t { return -1; }), 4),
            0);
}

TEST(Wavefronts, IdleLanes) {
  auto idle = addresses([](int64_t) -> int64_t { return -1; });
  EXPECT_EQ(wavefronts(idle, 4), 0);
  EXPECT_EQ(globalLines(idle, 4), 0);
  auto one = idle;
  one[5] = 64;
  EXPECT_EQ(wavefronts(one, 1), 1);
  EXPECT_EQ(globalLines(one, 1), 1);
}

TEST(Wavefronts, CountsDistinctWordsOfTheBusiestBank) {
  RandomSeed seed;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    int64_t width = int64_t(1) << random() % 3;
    int64_t range = 1 + static_cast<int64_t>(random() % 300);
    std::array<int64_t, 32> address;
    for (int64_t &word : address)
      word = width * static_cast<int64_t>(random() % range);
    if (random() % 2)
      for (size_t lane = 0; lane < 32; lane += 2)
        address[lane + 1] = address[lane];
    bool agree = true;
    for (size_t lane = 0; lane < 32; lane += 2)
      agree &= address[lane] == address[lane + 1];
    size_t parts = agree && width > 1 ? width / 2 : width;
    int expected = 0;
    for (size_t part = 0; part < parts; ++part) {
      std::set<int64_t> banks[32];
      for (size_t lane = part * 32 / parts; lane < (part + 1) * 32 / parts;
           ++lane)
        for (int64_t word = address[lane]; word < address[lane] + width; ++word)
          banks[word % 32].insert(word);
      size_t busiest = 0;
      for (const std::set<int64_t> &bank : banks)
        busiest = std::max(busiest, bank.size());
      expected += static_cast<int>(busiest);
    }
    EXPECT_EQ(wavefronts(address, width), expected);
    std::set<int64_t> lines;
    for (int64_t first : address)
      for (int64_t word = first; word < first + width; ++word)
        lines.insert(word / 32);
    EXPECT_EQ(globalLines(address, width), static_cast<int>(lines.size()));
  }
}

TEST(GlobalLines, VectorsAcrossLines) {
  auto crossing = addresses([](int64_t) -> int64_t { return 30; });
  EXPECT_EQ(globalLines(crossing, 4), 2);
}

} // namespace
