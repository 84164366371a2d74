//===- MeasurersTest.cpp - Measurers that compile kernels -----------------===//
//
// The assembler is a script with made-up figures. libftrt gets a driver without
// a device, whose memory is the host's and whose clock the test moves; what it
// is asked to launch runs in the emulator.
//
//===----------------------------------------------------------------------===//
#include "../Runtime/FakeDriver.h"
#include "FTuner/Emulator/Emulator.h"
#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Kernel/Measure/GpuMeasurer.h"
#include "FTuner/Kernel/Measure/PtxasMeasurer.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Runtime/EmulatedTensorMap.h"
#include "KernelTest.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Pass/PassManager.h"
#include <cmath>
#include <cstdlib>
#include <functional>

using namespace ftuner;

namespace {

class MeasurersTest : public KernelTest {
protected:
  MeasurersTest()
      : compiler(llvm::cantFail(KernelCompiler::create(
            &context, device, buildKernelLoweringPipeline))) {
    for (auto [number, op] : llvm::enumerate(ops))
      workloads.push_back(&operators.add(op, "w" + std::to_string(number)));
  }

  MeasurementRequest request(unsigned op, unsigned family, int64_t rows) {
    return {workloads[op], toKernelFamily(families[family]), {rows, 48, 40}};
  }
  template <typename T>
  static std::string failure(llvm::Expected<T> &answer) {
    return answer ? "no failure" : llvm::toString(answer.takeError());
  }

  OperatorRegistry operators;
  KernelCompiler compiler;
  std::vector<const Workload *> workloads;
};

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

TEST_F(MeasurersTest, OperatorsOutliveTheirModule) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module->clone();
  copy->walk([&](ukernel::OperatorOpInterface op) {
    // The same two operators.
    EXPECT_TRUE(llvm::is_contained(workloads, &operators.add(op, "again")));
  });
  copy = nullptr;
  module = nullptr;
  EXPECT_EQ(operators.find(*workloads[0])->workload.name, "w0");
  // By likeness.
  Workload like = *workloads[1];
  like.name = "other";
  ASSERT_TRUE(operators.find(like));
  EXPECT_EQ(operators.find(like)->workload.name, "w1");
  like.axes[1].range = SizeRange::fixed(49);
  EXPECT_FALSE(operators.find(like));
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

TEST_F(MeasurersTest, AssemblesEachKernelOnce) {
  PtxasMeasurer measurer(operators, compiler, FTUNER_FAKE_PTXAS);
  EXPECT_FALSE(measurer.measuresTime());
  std::vector<MeasurementRequest> requests = {
      request(0, 0, 5), request(0, 1, 5), request(0, 0, 7), request(1, 0, 5)};
  for (auto &answer : measurer.measure(requests)) {
    ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
    EXPECT_EQ(answer->registersPerThread, 96);
    EXPECT_EQ(answer->spillBytes, 0);
    EXPECT_FALSE(answer->microseconds);
  }
  // Nothing is assembled again: the answer would be another.
  setenv("SPILL", "all", /*overwrite=*/1);
  auto again = measurer.measure(requests);
  unsetenv("SPILL");
  EXPECT_EQ(again.back()->spillBytes, 0);
}

TEST_F(MeasurersTest, SaysOfEachKernelWhyItWasNotAssembled) {
  PtxasMeasurer measurer(operators, compiler, FTUNER_FAKE_PTXAS);
  MeasurementRequest odd = request(0, 0, 5), unknown = request(0, 1, 5);
  odd.family.tiles[0][2] = odd.family.tiles[1][2] = 6;
  Workload other =
      Workload::matmul({1, 8, 1}, SizeRange::fixed(5), SizeRange::fixed(3));
  other.name = "other";
  unknown.workload = &other;
  auto answers = measurer.measure({odd, request(0, 1, 5), unknown});
  EXPECT_NE(failure(answers[0]).find("expected tiles of contiguous axes"),
            std::string::npos);
  EXPECT_TRUE(bool(answers[1])) << failure(answers[1]);
  EXPECT_EQ(failure(answers[2]),
            "the operator of workload 'other' is not known");

  PtxasMeasurer missing(operators, compiler, "/nowhere/ptxas");
  auto none = missing.measure({request(0, 0, 5)});
  EXPECT_NE(failure(none[0]).find("'/nowhere/ptxas' cannot assemble kernel "
                                  "'w0_k0' for 'sm_90'"),
            std::string::npos);
}

/// A softmax of rows that four blocks share out: the extreme, the sum, and what
/// follows are a launch each.
static const char *const kSlicedRows = R"(
  #all = affine_map<(m, r) -> (m, r)>
  ukernel.plan @p <families = [
      #ukernel.family<#ukernel.rows<rows = 1, lane_rows = 1, lanes = 32, warps = 1, held_units = 0, access = 1>,
                      axis = 0, tiles = [[1, 128]], reduce = [1], split = 4>],
    choices = [], general = 0, unaligned_general = 0>
  func.func @f(%x: memref<?x4096xf32>, %y: memref<?x4096xf32>) {
    ukernel.row_reduction plan(@p) ins(%x : memref<?x4096xf32>) outs(%y : memref<?x4096xf32>) maps = [#all, #all]
    reduce {
    ^bb0(%a: f32, %acc: f32):
      %n = arith.maximumf %acc, %a : f32
      ukernel.yield %n : f32
    }, {
    ^bb0(%a: f32, %r0: f32, %acc: f32):
      %d = arith.subf %a, %r0 : f32
      %e = math.exp %d : f32
      %n = arith.addf %acc, %e : f32
      ukernel.yield %n : f32
    } values {
    ^bb0(%r0: f32, %r1: f32):
      ukernel.yield
    } map {
    ^bb0(%a: f32, %r0: f32, %r1: f32):
      %d = arith.subf %a, %r0 : f32
      %e = math.exp %d : f32
      %q = arith.divf %e, %r1 : f32
      ukernel.yield %q : f32
    }
    return
  })";

TEST_F(MeasurersTest, SpillsOfAllLaunchesAddUp) {
  auto rows = mlir::parseSourceString<mlir::ModuleOp>(kSlicedRows, &context);
  ASSERT_TRUE(rows);
  auto op = *(*rows)->getRegion(0).getOps<mlir::func::FuncOp>().begin();
  auto softmax = *op.getBody().getOps<ukernel::OperatorOpInterface>().begin();
  auto plan = *rows->getOps<ukernel::PlanOp>().begin();
  MeasurementRequest request = {
      &operators.add(softmax, "softmax"),
      toKernelFamily(plan.getPlan().getFamilies().front()),
      {1, 4096}};
  PtxasMeasurer measurer(operators, compiler, FTUNER_FAKE_PTXAS);
  // 24 bytes that are stored and loaded, by each kernel.
  setenv("SPILL", "all", /*overwrite=*/1);
  auto answers = measurer.measure({request});
  unsetenv("SPILL");
  ASSERT_TRUE(bool(answers[0])) << failure(answers[0]);
  EXPECT_EQ(answers[0]->registersPerThread, 96);
  EXPECT_EQ(answers[0]->spillBytes, 3 * 48);
}

//===----------------------------------------------------------------------===//
// GPU
//===----------------------------------------------------------------------===//

std::function<void(const fake::Launch &)> onLaunch;

class GpuMeasurerTest : public MeasurersTest {
protected:
  GpuMeasurerTest() {
    setenv("FTRT_CUDA_DRIVER", FTUNER_FAKE_DRIVER, /*overwrite=*/1);
    fake::fake_driver_reset();
    fake::fake_driver_control()->onLaunch = [](const fake::Launch &launch) {
      onLaunch(launch);
    };
  }

  /// The kernels w0_k0 (of two parts) and w1_k0 (of one), lowered apart from
  /// the measurer.
  void createEmulator() {
    kernels = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    (*kernels)->setAttr(ukernel::UKernelDialect::kDeviceAttrName,
                        toAttribute(&context, device));
    auto b = mlir::OpBuilder::atBlockEnd(kernels->getBody());
    ASSERT_TRUE(mlir::succeeded(
        buildGpuModule(b, ops[0], families[0], "w0_k0", device)));
    ASSERT_TRUE(mlir::succeeded(
        buildGpuModule(b, ops[1], families[1], "w1_k0", device)));
    mlir::PassManager pm(&context);
    buildKernelLoweringPipeline(pm);
    ASSERT_TRUE(mlir::succeeded(pm.run(*kernels)));
    auto created = emulator::Emulator::create(*kernels);
    ASSERT_TRUE(bool(created)) << llvm::toString(created.takeError());
    emulator = std::move(*created);
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

  template <typename T>
  static T parameter(const fake::Launch &launch, unsigned number) {
    return *static_cast<T *>(launch.parameters[number]);
  }

  mlir::OwningOpRef<mlir::ModuleOp> kernels;
  std::unique_ptr<emulator::Emulator> emulator;
};

TEST_F(GpuMeasurerTest, TakesTheMedianOfSamples) {
  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  GpuMeasurerOptions options;
  options.warmUps = 2;
  options.repetitions = 5;
  options.sampleMicroseconds = 100;
  GpuMeasurer measurer(operators, compiler, **gpu, options);
  EXPECT_TRUE(measurer.measuresTime());
  // 20 microseconds each, but for a sample that something else disturbs: 5
  // launches after 2 that warm up and one alone.
  int64_t count = 0;
  onLaunch = [&](const fake::Launch &) {
    fake::fake_driver_control()->microseconds +=
        count < 3 || count >= 8 ? 20 : 900;
    ++count;
  };
  auto answers = measurer.measure({request(0, 1, 5)});
  ASSERT_TRUE(bool(answers[0])) << llvm::toString(answers[0].takeError());
  EXPECT_NEAR(*answers[0]->microseconds, 20, 1e-3);
  EXPECT_EQ(count, 2 + 1 + 5 * 5);
}

TEST_F(GpuMeasurerTest, LaunchesComputeTheProduct) {
  createEmulator();
  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  GpuMeasurerOptions options;
  options.repetitions = 1;
  options.mostLaunches = 1;
  GpuMeasurer measurer(operators, compiler, **gpu, options);
  int64_t rows = 53;
  std::vector<std::string> launched;
  onLaunch = [&](const fake::Launch &launch) {
    fake::fake_driver_control()->microseconds += 3;
    emulate(launch);
    launched.push_back(launch.kernel);
    bool hasBias = launched.back() == "w1_k0";
    const auto *a = parameter<const float *>(launch, 0);
    const auto *b = parameter<const float *>(launch, 1);
    const float *x = hasBias ? parameter<const float *>(launch, 2) : nullptr;
    const auto *o = parameter<const float *>(launch, hasBias ? 3 : 2);
    ASSERT_EQ(parameter<int32_t>(launch, hasBias ? 4 : 3), rows);
    double largest = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 48; ++j) {
        double sum = hasBias ? x[j] : 0;
        for (int64_t k = 0; k < 40; ++k)
          sum += static_cast<double>(a[i * 40 + k]) * b[k * 48 + j];
        ASSERT_NEAR(o[i * 48 + j], sum, 1e-4) << i << " " << j;
        largest = std::max(largest, std::abs(sum));
      }
    EXPECT_GT(largest, 0.1);
  };
  auto answers = measurer.measure({request(0, 0, rows), request(1, 1, rows)});
  for (auto &answer : answers) {
    ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
    EXPECT_NEAR(*answer->microseconds, 3, 1e-3);
  }
  EXPECT_EQ(llvm::count(launched, "w0_k0"), 5);
  EXPECT_EQ(llvm::count(launched, "w1_k0"), 5);
}

TEST_F(GpuMeasurerTest, RunsOneKernelAtATime) {
  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  GpuMeasurerOptions options;
  options.warmUps = 1;
  options.repetitions = 3;
  GpuMeasurer measurer(operators, compiler, **gpu, options);
  std::vector<std::string> runs;
  onLaunch = [&](const fake::Launch &launch) {
    fake::fake_driver_control()->microseconds += 100;
    std::string run = launch.kernel;
    run += " " + std::to_string(launch.grid);
    if (runs.empty() || runs.back() != run)
      runs.push_back(run);
  };
  // All launches of a request are over before those of the next one begin.
  for (auto &answer : measurer.measure(
           {request(0, 0, 5), request(1, 1, 5), request(0, 0, 300)}))
    EXPECT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  EXPECT_EQ(runs.size(), 3u);
}

TEST_F(GpuMeasurerTest, EncodesTensorMaps) {
  auto product = mlir::parseSourceString<mlir::ModuleOp>(R"(
    #lhs = affine_map<(m, n, k) -> (m, k)>
    #rhs = affine_map<(m, n, k) -> (n, k)>
    #out = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%a: memref<?x192xf16>, %b: memref<128x192xf16>, %o: memref<?x128xf32>) {
      ukernel.workload ins(%a, %b : memref<?x192xf16>, memref<128x192xf16>)
          outs(%o : memref<?x128xf32>) maps = [#lhs, #rhs, #out] contract {
      ^bb0(%p: f16, %q: f16, %c: f32):
        %x = arith.extf %p : f16 to f32
        %y = arith.extf %q : f16 to f32
        %product = arith.mulf %x, %y : f32
        %sum = arith.addf %c, %product : f32
        ukernel.yield %sum : f32
      }
      return
    })",
                                                         &context);
  ASSERT_TRUE(product);
  ukernel::OperatorOpInterface op;
  product->walk([&](ukernel::OperatorOpInterface found) { op = found; });
  auto family = mlir::dyn_cast_or_null<
      ukernel::FamilyAttr>(mlir::parseAttribute(
      "#ukernel.family<#ukernel.wgmma<warpgroups = [1, 1], stages = 4, access "
      "= 16, "
      "tma = true>, axis = 0, tiles = [[128, 128, 64]]>",
      &context));
  ASSERT_TRUE(family);

  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  GpuMeasurerOptions options;
  options.repetitions = 1;
  options.mostLaunches = 1;
  GpuMeasurer measurer(operators, compiler, **gpu, options);
  constexpr int32_t rows = 77;
  int count = 0;
  onLaunch = [&](const fake::Launch &launch) {
    ++count;
    fake::fake_driver_control()->microseconds += 3;
    // Behind three pointers and m.
    ASSERT_EQ(parameter<int32_t>(launch, 3), rows);
    for (unsigned factor : {0u, 1u}) {
      auto map = parameter<emulator::EmulatedTensorMap>(launch, 4 + factor);
      EXPECT_EQ(map.mark, emulator::EmulatedTensorMap::kMark);
      EXPECT_EQ(map.address, parameter<uint64_t>(launch, factor));
      EXPECT_EQ(map.rank, 2);
      EXPECT_EQ(map.type, emulator::TensorMapType::Float16);
      EXPECT_EQ(map.sizes[0], 192u);
      EXPECT_EQ(map.sizes[1], factor == 0 ? rows : 128u);
      EXPECT_EQ(map.strides[0], 2 * 192u);
      EXPECT_EQ(map.box[0], 64);
    }
  };
  auto answers = measurer.measure({{&operators.add(op, "mapped"),
                                    toKernelFamily(family),
                                    {rows, 128, 192}}});
  ASSERT_TRUE(bool(answers[0])) << llvm::toString(answers[0].takeError());
  EXPECT_NEAR(*answers[0]->microseconds, 3, 1e-3);
  EXPECT_EQ(count, 5);
}

TEST_F(GpuMeasurerTest, RefusesShapesThatKernelsMustNotSee) {
  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  GpuMeasurer measurer(operators, compiler, **gpu);
  onLaunch = [](const fake::Launch &) { FAIL() << "a launch"; };
  MeasurementRequest few = request(0, 1, 5), other = few, none = few;
  few.shape = {5, 48};
  other.shape = {5, 48, 41};
  none.shape = {0, 48, 40};
  auto answers = measurer.measure({few, other, none});
  EXPECT_EQ(failure(answers[0]), "expected 3 sizes, but got 2");
  EXPECT_EQ(failure(answers[1]), "expected 40 along K, but got 41");
  EXPECT_EQ(failure(answers[2]), "expected at least 1 along M, but got 0");
}

TEST_F(GpuMeasurerTest, TellsWhatTheDriverSays) {
  auto gpu = Gpu::create(FTRT_PATH);
  ASSERT_TRUE(bool(gpu)) << llvm::toString(gpu.takeError());
  fake::Control &driver = *fake::fake_driver_control();
  onLaunch = [](const fake::Launch &) {};
  {
    GpuMeasurer measurer(operators, compiler, **gpu);
    auto answers = measurer.measure({request(0, 1, 5)});
    EXPECT_EQ(failure(answers[0]), "the GPU tells no time between events");
    driver.failures[fake::cuEventSynchronize] =
        ftrt::cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
    answers = measurer.measure({request(0, 1, 5)});
    EXPECT_NE(failure(answers[0]).find("a kernel failed while it ran"),
              std::string::npos);
  }
  fake::fake_driver_reset();
  driver.failures[fake::cuLibraryLoadData] = ftrt::cuda::CUDA_ERROR_INVALID_PTX;
  GpuMeasurer measurer(operators, compiler, **gpu);
  auto answers = measurer.measure({request(0, 1, 5)});
  EXPECT_NE(failure(answers[0]).find("CUDA_ERROR_INVALID_PTX"),
            std::string::npos);
}

TEST(GpuTest, NeedsTheRuntimeLibrary) {
  auto gpu = Gpu::create("/nowhere/libftrt.so");
  ASSERT_FALSE(bool(gpu));
  EXPECT_NE(llvm::toString(gpu.takeError())
                .find("cannot open the runtime library: /nowhere/libftrt.so"),
            std::string::npos);
}

} // namespace
