//===- SearchMeasurer.cpp - Who measures for a module's searches ----------===//
#include "FTuner/Pipelines/SearchMeasurer.h"
#include "FTuner/Kernel/Measure/GpuMeasurer.h"
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Pipelines/PlannedOperators.h"
#include "FTuner/Search/Setup/MeasurerFactory.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace ftuner;

namespace {
/// A GPU with the operators of a module.
class ModuleGpu final : public Measurer {
public:
  static llvm::Expected<std::unique_ptr<Measurer>>
  create(ModuleOp module, const DeviceSpec &device);

  StringRef name() const override { return "gpu"; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(ArrayRef<MeasurementRequest> requests) override {
    return measurer->measure(requests);
  }

private:
  OperatorRegistry operators;
  std::unique_ptr<KernelCompiler> compiler;
  std::unique_ptr<Gpu> gpu;
  std::unique_ptr<GpuMeasurer> measurer;
};
} // namespace

/// PREFIX/lib/libftrt.so.1 beside PREFIX/bin, where the program is.
static std::string runtimeLibrary() {
  static int place;
  llvm::SmallString<128> path(
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(
          llvm::sys::fs::getMainExecutable(nullptr, &place))));
  llvm::sys::path::append(path, "lib", "libftrt.so.1");
  return path.str().str();
}

llvm::Expected<std::unique_ptr<Measurer>>
ModuleGpu::create(ModuleOp module, const DeviceSpec &device) {
  auto result = std::make_unique<ModuleGpu>();
  // What is there first: compiling takes long.
  llvm::Expected<std::unique_ptr<Gpu>> gpu = Gpu::create(runtimeLibrary());
  if (!gpu)
    return gpu.takeError();
  result->gpu = std::move(*gpu);
  llvm::Expected<KernelCompiler> compiler = KernelCompiler::create(
      module.getContext(), device, buildKernelLoweringPipeline);
  if (!compiler)
    return compiler.takeError();
  result->compiler = std::make_unique<KernelCompiler>(std::move(*compiler));
  if (failed(collectOperators(module, result->operators)))
    return llvm::createStringError("lowering to buffers failed");
  result->measurer = std::make_unique<GpuMeasurer>(
      result->operators, *result->compiler, *result->gpu);
  return result;
}

llvm::Expected<std::unique_ptr<Measurer>>
ftuner::makeSearchMeasurer(ModuleOp module, const SearchSetup &setup,
                           const DeviceSpec &device) {
  if (setup.options.measuring.measurer != "gpu")
    return makeMeasurer(setup, device);
  auto measurer = ModuleGpu::create(module, device);
  if (!measurer)
    return optionError("measurer", llvm::toString(measurer.takeError()));
  return measurer;
}
