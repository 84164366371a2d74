//===- EmittedKernel.h - Kernels of given uKernels as PTX -------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H
#define FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H

#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "mlir/IR/MLIRContext.h"
#include <string>

namespace ftuner {

/// A family of the SIMT path, and the product that it computes: dynamic in m, n
/// and k fixed unless `isDynamic`.
struct EmittedCase {
  std::string device = "h200";
  bool transposeLhs = false, transposeRhs = false;
  KernelFamily family;
  int64_t n = 0, k = 0;
  bool isDynamic = false;

  Workload workload() const;
  std::string str() const;
};

struct EmittedKernel {
  std::string ptx;
  /// Names of the parameters in order: "lhs", "rhs", "output", "m", …
  std::vector<std::string> parameters;
  int64_t threads = 0;
};

/// Lowers the family by the passes of `ftuner-compile`.
llvm::Expected<EmittedKernel> emit(mlir::MLIRContext &context,
                                   const EmittedCase &emitted);

/// A context with everything that lowering needs.
std::unique_ptr<mlir::MLIRContext> makeContext();

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H
