//===- WordsTest.h - Fixture of kernels from words to words -----*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_EMULATOR_WORDSTEST_H
#define FTUNER_TEST_UNIT_EMULATOR_WORDSTEST_H

#include "EmulatorTest.h"

namespace ftuner::emulator {

/// A kernel takes random words and a place for others.
class WordsTest : public EmulatorTest {
protected:
  void fill(size_t numIn, size_t numOut) {
    in.resize(numIn);
    for (uint32_t &word : in)
      word = static_cast<uint32_t>(random());
    out.assign(numOut, 0);
  }

  /// Returns the error's text, empty on success.
  std::string runBlocks(uint32_t blocks, uint32_t threads, uint32_t sharedBytes,
                        const std::string &text, const char *kernel,
                        const EmulatorOptions &options) {
    auto emulator = create(text, options);
    EXPECT_TRUE(emulator) << error;
    if (!emulator)
      return error;
    emulator->addBuffer(in.data(), in.size() * 4, "in", false);
    emulator->addBuffer(out.data(), out.size() * 4, "out", true);
    return launch(*emulator, kernel, {blocks}, {threads}, sharedBytes,
                  in.data(), out.data());
  }

  std::vector<uint32_t> in, out;
};

} // namespace ftuner::emulator

#endif // FTUNER_TEST_UNIT_EMULATOR_WORDSTEST_H
