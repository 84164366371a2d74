//===- EmulatorTest.h - Fixture of the emulator's tests ---------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_EMULATOR_EMULATORTEST_H
#define FTUNER_TEST_UNIT_EMULATOR_EMULATORTEST_H

#include "../RandomSeed.h"
#include "../Scale.h"
#include "FTuner/Emulator/Emulator.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace ftuner::emulator {

inline constexpr EmulatorOptions::ThreadOrder kAllOrders[] = {
    EmulatorOptions::Forward, EmulatorOptions::Reverse,
    EmulatorOptions::Shuffled};

class EmulatorTest : public testing::Test {
protected:
  EmulatorTest() {
    context.loadDialect<mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                        mlir::NVVM::NVVMDialect>();
  }

  /// Wraps `body`, symbols of a gpu.module, and creates an emulator of it.
  /// Returns null and leaves the text in `error` where that fails.
  std::unique_ptr<Emulator> create(const std::string &body,
                                   const EmulatorOptions &options = {}) {
    return createFromModule("module attributes {gpu.container_module} {\n"
                            "gpu.module @kernels {\n" +
                                body + "}\n}\n",
                            options);
  }

  std::unique_ptr<Emulator>
  createFromModule(const std::string &text,
                   const EmulatorOptions &options = {}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      error = "cannot parse the test's module";
      ADD_FAILURE() << error;
      return nullptr;
    }
    // The emulator must not rely on the caller's module.
    auto emulator = Emulator::create(*module, options);
    if (!emulator) {
      error = llvm::toString(emulator.takeError());
      return nullptr;
    }
    return std::move(*emulator);
  }

  /// Launches and returns the error's text, empty on success.
  template <typename... Arguments>
  std::string launch(Emulator &emulator, llvm::StringRef kernel, Dim3 grid,
                     Dim3 block, uint32_t sharedBytes, Arguments... arguments) {
    void *parameters[] = {static_cast<void *>(&arguments)..., nullptr};
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    config.dynamicSharedBytes = sharedBytes;
    return llvm::toString(emulator.launch(kernel, config, parameters));
  }

  std::vector<float> randomFloats(size_t count) {
    std::normal_distribution<float> distribution;
    std::vector<float> result(count);
    for (float &value : result)
      value = distribution(random);
    return result;
  }

  static bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  }

  mlir::MLIRContext context;
  std::string error;
  RandomSeed seed;
  std::mt19937 random{seed};
};

#define EXPECT_CONTAINS(text, part)                                            \
  EXPECT_TRUE(contains(text, part)) << "in: " << (text)

/// Every way to check, in every order of the threads. Each of both has copies
/// that write at once and copies that write late; with FTUNER_TEST_SCALE above
/// 1, all three are combined.
inline std::vector<EmulatorOptions> allCheckedOptions() {
  std::vector<EmulatorOptions> result;
  for (auto order : kAllOrders)
    for (unsigned checks = 0; checks < 4; ++checks)
      for (bool lazy : {false, true}) {
        if (!runsEverything() && (order + checks) % 2 != lazy)
          continue;
        EmulatorOptions options;
        options.order = order;
        options.seed = 7;
        options.checkBounds = checks & 1;
        options.checkRaces = checks & 2;
        options.lazyAsyncCopies = lazy;
        result.push_back(options);
      }
  return result;
}

} // namespace ftuner::emulator

#endif // FTUNER_TEST_UNIT_EMULATOR_EMULATORTEST_H
