//===- CudaExecutorTest.cpp - Runs on a GPU, over a driver that emulates --===//
//
// libftrt gets a driver without a device, whose memory is the host's; kernels
// that it is asked to launch run in the emulator.
//
//===----------------------------------------------------------------------===//
#include "../RandomSeed.h"
#include "../Runtime/FakeDriver.h"
#include "FTuner/Executor/Executor.h"
#include "FTuner/InitAll.h"
#include "FTuner/Pipelines/Pipelines.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <functional>
#include <random>

using namespace ftuner;

namespace {
const char *const kMatmul = R"(
  module attributes {ukernel.symbols = {M = #ukernel.range<1 to 64>}} {
    func.func @matmul(%a: tensor<?x40xf32> {ukernel.shape = ["M", 40]},
                      %b: tensor<40x48xf32>) -> tensor<?x48xf32> {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %m = tensor.dim %a, %c0 : tensor<?x40xf32>
      %empty = tensor.empty(%m) : tensor<?x48xf32>
      %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x48xf32>) -> tensor<?x48xf32>
      %result = linalg.matmul ins(%a, %b : tensor<?x40xf32>, tensor<40x48xf32>)
                              outs(%init : tensor<?x48xf32>) -> tensor<?x48xf32>
      return %result : tensor<?x48xf32>
    }
  })";

/// What the driver does with a launch.
std::function<void(const fake::Launch &)> onLaunch;

class CudaExecutorTest : public testing::Test {
protected:
  CudaExecutorTest() {
    setenv("FTRT_CUDA_DRIVER", FTUNER_FAKE_DRIVER, /*overwrite=*/1);
    fake::fake_driver_reset();
    fake::fake_driver_control()->onLaunch = [](const fake::Launch &launch) {
      onLaunch(launch);
    };
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  void SetUp() override {
    module = mlir::parseSourceString<mlir::ModuleOp>(kMatmul, &context);
    ASSERT_TRUE(module);
    FTunerOptions options;
    options.set("device", std::string("h200"));
    mlir::PassManager pm(&context);
    buildFTunerPipeline(pm, options);
    ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
    auto function = findFunction(*module, "matmul");
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    auto found = getSignature(*function);
    ASSERT_TRUE(mlir::succeeded(found));
    signature = std::move(*found);
    auto created = emulator::Emulator::create(*module);
    ASSERT_TRUE(bool(created)) << llvm::toString(created.takeError());
    emulator = std::move(*created);
    onLaunch = [this](const fake::Launch &launch) { emulate(launch); };
  }

  void emulate(const fake::Launch &launch) {
    emulator::LaunchConfig config;
    config.grid.x = launch.grid;
    config.block.x = launch.block;
    config.dynamicSharedBytes = launch.dynamicSharedBytes;
    llvm::Error error =
        emulator->launch(launch.kernel, config, launch.parameters);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  std::unique_ptr<Executor> create(int64_t offset = 0) {
    CudaExecutorOptions options;
    options.runtimeLibrary = FTRT_PATH;
    options.offset = offset;
    auto executor = createCudaExecutor(*module, signature, options);
    if (!executor) {
      error = llvm::toString(executor.takeError());
      return nullptr;
    }
    return std::move(*executor);
  }

  std::vector<ArgumentValue> makeArguments(int64_t m) {
    ArgumentOptions options;
    options.seed = seed;
    auto arguments = parseArguments(std::to_string(m) + "x40xf32,40x48xf32",
                                    signature, options);
    EXPECT_TRUE(bool(arguments));
    return std::move(*arguments);
  }

  /// Runs, or leaves the text in `error`.
  std::optional<RunResult> run(Executor &executor,
                               llvm::ArrayRef<ArgumentValue> arguments) {
    auto result = executor.run(arguments);
    if (result)
      return std::move(*result);
    error = llvm::toString(result.takeError());
    return std::nullopt;
  }

  static void expectProduct(const Tensor &result,
                            llvm::ArrayRef<ArgumentValue> arguments) {
    int64_t m = result.getShape()[0];
    ASSERT_EQ(result.getShape()[1], 48);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < 48; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < 40; ++k)
          sum += arguments[0].tensor.getDouble(i * 40 + k) *
                 arguments[1].tensor.getDouble(k * 48 + j);
        ASSERT_NEAR(result.getDouble(i * 48 + j), sum, 1e-4) << i << " " << j;
      }
  }

  RandomSeed seed;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Signature signature;
  std::unique_ptr<emulator::Emulator> emulator;
  std::string error;
};

TEST_F(CudaExecutorTest, RunsAndCopiesBack) {
  std::unique_ptr<Executor> executor = create();
  ASSERT_TRUE(executor) << error;
  for (int64_t m : {53, 1, 100, 0}) {
    std::vector<ArgumentValue> arguments = makeArguments(m);
    std::optional<RunResult> result = run(*executor, arguments);
    ASSERT_TRUE(result) << error;
    EXPECT_EQ(result->results.size(), 1u);
    EXPECT_EQ(result->results[0].getShape()[0], m);
    expectProduct(result->results[0], arguments);
    EXPECT_EQ(result->launches.size(), m == 0 ? 0u : 1u);
    EXPECT_EQ(result->device, "Fake 90 (sm_90), kernels for h200 (sm_90)");
  }
  // The kernels were loaded once, before the first run.
  EXPECT_EQ(fake::fake_driver_control()->calls[fake::cuLibraryLoadData], 1);
  executor.reset();
  EXPECT_EQ(fake::fake_driver_control()->librariesLoaded, 0);
}

TEST_F(CudaExecutorTest, MovesBuffersOffTheirAlignment) {
  std::unique_ptr<Executor> executor = create(/*offset=*/4);
  ASSERT_TRUE(executor) << error;
  onLaunch = [&](const fake::Launch &launch) {
    EXPECT_EQ(*static_cast<uintptr_t *>(launch.parameters[0]) % 256, 4u);
    emulate(launch);
  };
  std::vector<ArgumentValue> arguments = makeArguments(53);
  std::optional<RunResult> result = run(*executor, arguments);
  ASSERT_TRUE(result) << error;
  expectProduct(result->results[0], arguments);
}

TEST_F(CudaExecutorTest, PoisonsResults) {
  std::unique_ptr<Executor> executor = create();
  ASSERT_TRUE(executor) << error;
  onLaunch = [](const fake::Launch &) {};
  std::optional<RunResult> result = run(*executor, makeArguments(7));
  ASSERT_TRUE(result) << error;
  for (int64_t i = 0; i < 7 * 48; ++i)
    EXPECT_TRUE(std::isnan(result->results[0].getDouble(i)));
}

TEST_F(CudaExecutorTest, FindsWritesThatMustNotBe) {
  std::unique_ptr<Executor> executor = create();
  ASSERT_TRUE(executor) << error;
  // Parameters are the two arguments and the result.
  auto writeAt = [&](unsigned parameter, int64_t byte) {
    onLaunch = [=](const fake::Launch &launch) {
      emulate(launch);
      (*static_cast<char **>(launch.parameters[parameter]))[byte] ^= 1;
    };
    return run(*executor, makeArguments(7)).has_value();
  };
  EXPECT_TRUE(writeAt(2, 7 * 48 * 4 - 1));
  EXPECT_FALSE(writeAt(2, 7 * 48 * 4));
  EXPECT_EQ(error, "the compiled code wrote outside of result 0");
  EXPECT_FALSE(writeAt(2, -1));
  EXPECT_EQ(error, "the compiled code wrote outside of result 0");
  EXPECT_FALSE(writeAt(0, 0));
  EXPECT_EQ(error, "the compiled code wrote to tensor argument 0");
  EXPECT_FALSE(writeAt(1, -4));
  EXPECT_EQ(error, "the compiled code wrote outside of tensor argument 1");
}

TEST_F(CudaExecutorTest, ReportsTheDriversWords) {
  std::unique_ptr<Executor> executor = create();
  ASSERT_TRUE(executor) << error;
  fake::Control &control = *fake::fake_driver_control();
  control.failures[fake::cuLaunchKernel] = ftrt::cuda::CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_FALSE(run(*executor, makeArguments(7)));
  EXPECT_NE(error.find("running function 'matmul' failed: kernel 'matmul_0_k"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << error;
  control.failures[fake::cuLaunchKernel] = 0;
  control.failures[fake::cuStreamSynchronize] =
      ftrt::cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_FALSE(run(*executor, makeArguments(7)));
  EXPECT_NE(error.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos)
      << error;
  control.failures[fake::cuStreamSynchronize] = 0;
  control.failures[fake::cuLibraryLoadData] =
      ftrt::cuda::CUDA_ERROR_INVALID_PTX;
  EXPECT_FALSE(create());
  EXPECT_NE(error.find("CUDA_ERROR_INVALID_PTX"), std::string::npos) << error;
}

TEST_F(CudaExecutorTest, NeedsTheRuntimeLibrary) {
  CudaExecutorOptions options;
  options.runtimeLibrary = "/nonexistent/libftrt.so.1";
  auto executor = createCudaExecutor(*module, signature, options);
  ASSERT_FALSE(bool(executor));
  EXPECT_NE(llvm::toString(executor.takeError())
                .find("cannot open the runtime library: "
                      "/nonexistent/libftrt.so.1: cannot open"),
            std::string::npos);
}
} // namespace
