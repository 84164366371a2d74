//===- EmittedKernel.h - Kernels of given families as PTX -------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H
#define FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H

#include "FTuner/Schedule/CodegenModel.h"
#include "mlir/IR/MLIRContext.h"
#include <array>
#include <optional>
#include <string>

namespace ftuner {

/// What becomes of a factor before it is multiplied: sums with numbers of the
/// multiplied type.
struct EmittedPrologue {
  /// In memory, of what is cast to the multiplied type first.
  std::optional<ElementType> type;
  /// A scalar, a number for each element along m or n, and along k.
  bool addsScalar = false, addsAlongSpace = false, addsAlongReduce = false;

  bool addsAny() const {
    return addsScalar || addsAlongSpace || addsAlongReduce;
  }
};

/// A family, and the product that it computes: dynamic in m, n and k fixed
/// unless `isDynamic`.
struct EmittedCase {
  std::string device = "h200";
  bool transposeLhs = false, transposeRhs = false;
  KernelFamily family;
  int64_t n = 0, k = 0;
  /// Elements of a batch axis; 0 where there is none. The rhs may lack it.
  int64_t batch = 0;
  bool sharesRhs = false;
  bool isDynamic = false;
  /// The type in which factors are multiplied; sums are in i32 of i8, else in
  /// f32.
  ElementType multiplied = ElementType::F32;
  /// Of tf32.
  bool isTruncated = false;
  /// Of lhs and rhs.
  std::array<EmittedPrologue, 2> prologues = {};

  Workload workload() const;
  std::string str() const;
  /// Whether lhs (0) or rhs (1) has the batch axis.
  bool isBatched(unsigned factor) const {
    return batch != 0 && !(factor == 1 && sharesRhs);
  }
};

struct EmittedPtx {
  std::string ptx;
  /// Names of the parameters in order: "lhs", "rhs", "output", "m", …
  std::vector<std::string> parameters;
  int64_t threads = 0;
};

/// Compiles the kernel as the pipeline does.
llvm::Expected<EmittedPtx> emit(mlir::MLIRContext &context,
                                const EmittedCase &emitted);

/// A context with everything that lowering needs.
std::unique_ptr<mlir::MLIRContext> makeContext();

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_CODEGEN_EMITTEDKERNEL_H
