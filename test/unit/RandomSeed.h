//===- RandomSeed.h - Seed of a test with random data -----------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_RANDOMSEED_H
#define FTUNER_TEST_UNIT_RANDOMSEED_H

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <string>

/// The seed of a random source: that of the environment variable
/// FTUNER_TEST_SEED, or else a new one in each run. As long as it lives, every
/// failure prints it, so that the run can be repeated:
///
///   RandomSeed seed;
///   std::mt19937 random(seed);
class RandomSeed {
public:
  explicit RandomSeed(const char *file = __builtin_FILE(),
                      int line = __builtin_LINE())
      : value(choose()),
        trace(file, line, "FTUNER_TEST_SEED=" + std::to_string(value)) {}
  operator unsigned() const { return value; }

private:
  static unsigned choose() {
    const char *given = std::getenv("FTUNER_TEST_SEED");
    return given ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                 : std::random_device()();
  }

  unsigned value;
  testing::ScopedTrace trace;
};

#endif // FTUNER_TEST_UNIT_RANDOMSEED_H
