//===- PtxasMeasurer.h - Registers and spills by the assembler --*- C++ -*-===//
#ifndef FTUNER_KERNEL_MEASURE_PTXASMEASURER_H
#define FTUNER_KERNEL_MEASURE_PTXASMEASURER_H

#include "FTuner/Kernel/Measure/KernelTable.h"

namespace ftuner {

/// Compiles kernels and assembles them: registers and spills of a thread, no
/// times. They do not depend on the shape, so each kernel is assembled once. Of
/// rows that blocks share out in slices: the most registers of all launches,
/// and the sum of what they spill.
class PtxasMeasurer final : public Measurer {
public:
  /// `ptxas` is the path of the assembler (`findPtxas`). The registry and the
  /// compiler outlive the measurer.
  PtxasMeasurer(const OperatorRegistry &operators, KernelCompiler &compiler,
                std::string ptxas)
      : compiler(compiler), ptxas(std::move(ptxas)), answers(operators) {}

  llvm::StringRef name() const override { return "ptxas"; }
  bool measuresTime() const override { return false; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  struct Answer {
    Measurement measurement;
    std::string failure;
  };
  void measureKernels(llvm::ArrayRef<MeasurementRequest> requests);

  KernelCompiler &compiler;
  std::string ptxas;
  KernelTable<Answer> answers;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_MEASURE_PTXASMEASURER_H
