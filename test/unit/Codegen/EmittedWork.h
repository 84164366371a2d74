//===- EmittedWork.h - What `work` says, beside the PTX ---------*- C++ -*-===//
//
// Emits kernels, runs a step of their main loop in an interpreter, and counts
// instructions and the addresses of all lanes as the model's `work` says them.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TEST_UNIT_CODEGEN_EMITTEDWORK_H
#define FTUNER_TEST_UNIT_CODEGEN_EMITTEDWORK_H

#include "EmittedKernel.h"
#include "FTuner/Schedule/Arithmetic.h"
#include "FTuner/Schedule/Grid.h"
#include "PtxInterpreter.h"

#include "gtest/gtest.h"
#include <map>
#include <optional>
#include <random>
#include <tuple>

namespace ftuner {

/// An access: kind, words of a lane, and addresses in words relative to the
/// first lane's.
struct Pattern {
  WarpAccess::Kind kind;
  int64_t width;
  std::array<int64_t, 32> address;

  bool operator==(const Pattern &other) const {
    return !(*this < other) && !(other < *this);
  }
  bool operator<(const Pattern &other) const {
    return std::tie(kind, width, address) <
           std::tie(other.kind, other.width, other.address);
  }
};

/// How often a step has accesses.
using Patterns = std::map<Pattern, double>;
std::string describe(const Patterns &patterns);

/// What the warps of a block execute in one step.
struct Step {
  double fma = 0, mma = 0, other = 0;
  /// Of `other`: groups of asynchronous copies that are closed and waited for.
  double commits = 0, waits = 0;
  /// Of `other`: asynchronous copies that read nothing if a condition holds.
  double sizedCopies = 0;
  Patterns patterns;

  /// Instructions of `patterns`. An asynchronous copy is one of two accesses.
  double memoryInstructions(bool isAsync) const;
};

/// Bounds of a ratio.
struct Band {
  double least, most;
};

double median(std::vector<double> values);

/// Compares families of one path, whose suites say how.
class EmittedWork : public testing::Test {
protected:
  EmittedWork() : context(makeContext()) {}
  /// Records the bounds of `ratios`, which --gtest_output=json shows.
  void TearDown() override;

  static DeviceSpec deviceOf(const EmittedCase &emitted) {
    return llvm::cantFail(loadDeviceSpec(emitted.device));
  }
  static bool isLegal(const EmittedCase &emitted);
  static Step predict(const EmittedCase &emitted, unsigned part);
  /// Empty with a failure where something is wrong.
  std::optional<Step> observe(const EmittedCase &emitted, unsigned part);
  /// Instructions of a block's warps behind its last barrier, with a main loop
  /// of a few steps.
  std::optional<double> observeEpilogue(const EmittedCase &emitted,
                                        unsigned part);

  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random() % values.size()];
  }

private:
  std::vector<std::vector<PtxPhase>> run(const EmittedCase &emitted,
                                         unsigned part,
                                         TileOffsets<NumberArithmetic> &offsets,
                                         unsigned barriers);

protected:
  std::unique_ptr<mlir::MLIRContext> context;
  std::mt19937 random{1};
  /// Predicted over observed instructions that do not multiply, of all
  /// comparisons.
  std::vector<double> ratios;
};

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_CODEGEN_EMITTEDWORK_H
