//===- GpuMeasurer.h - Times of kernels on a GPU ----------------*- C++ -*-===//
#ifndef FTUNER_KERNEL_MEASURE_GPUMEASURER_H
#define FTUNER_KERNEL_MEASURE_GPUMEASURER_H

#include "FTuner/Kernel/Measure/KernelTable.h"
#include "FTuner/RuntimeClient/Gpu.h"

namespace ftuner {

struct GpuMeasurerOptions {
  /// Launches before any is timed.
  int64_t warmUps = 3;
  /// Samples, of which the median counts.
  int64_t repetitions = 11;
  /// A sample is of as many launches as take about this long, so that the
  /// resolution of events, half a microsecond, is well below a percent.
  double sampleMicroseconds = 400;
  int64_t mostLaunches = 400;
};

/// Compiles kernels and runs them on a GPU, each on random data in contiguous
/// buffers: the time of one launch, the median of samples of launches that
/// follow each other, between two events. Operands stay in the L2 cache where
/// they fit, and for a kernel that is shorter than a launch takes on the host,
/// the time is that of the launch.
class GpuMeasurer final : public Measurer {
public:
  /// The others outlive the measurer; the compiler is for the GPU's device.
  GpuMeasurer(const OperatorRegistry &operators, KernelCompiler &compiler,
              const Gpu &gpu, const GpuMeasurerOptions &options = {})
      : compiler(compiler), gpu(gpu), options(options), kernels(operators) {}

  llvm::StringRef name() const override { return "gpu"; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  /// A kernel on the GPU, or why there is none.
  struct Kernel {
    CompiledKernel compiled;
    std::unique_ptr<PtxKernels> loaded;
    std::string failure;
  };
  void loadKernels(llvm::ArrayRef<MeasurementRequest> requests);
  llvm::Expected<double> time(const OperatorRegistry::Entry &entry,
                              const Kernel &kernel,
                              const MeasurementRequest &request);

  KernelCompiler &compiler;
  const Gpu &gpu;
  GpuMeasurerOptions options;
  KernelTable<Kernel> kernels;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_MEASURE_GPUMEASURER_H
