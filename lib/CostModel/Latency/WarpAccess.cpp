//===- WarpAccess.cpp - Cycles of memory accesses of a warp ---------------===//
#include "FTuner/CostModel/WarpAccess.h"
#include <algorithm>
#include <cstddef>

using namespace ftuner;

/// Returns whether every lane that takes part has the address of its neighbour.
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

int ftuner::minWavefronts(const std::array<int64_t, 32> &address,
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
