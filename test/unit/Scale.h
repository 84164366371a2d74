//===- Scale.h - How much of themselves tests run ---------------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_SCALE_H
#define FTUNER_TEST_UNIT_SCALE_H

#include <cstdlib>

/// Whether tests run all that they have, and not a part that finds most:
/// FTUNER_TEST_SCALE above 1 (docs/testing.md).
inline bool runsEverything() {
  const char *scale = std::getenv("FTUNER_TEST_SCALE");
  return scale && std::atoi(scale) > 1;
}

#endif // FTUNER_TEST_UNIT_SCALE_H
