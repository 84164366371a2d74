//===- SizeRanges.h - Declared ranges of tensors' sizes ---------*- C++ -*-===//
//
// The ranges of sizes that the formation of workloads will see, for passes that
// copy operators into new functions before workloads are formed.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_ANALYSIS_SIZERANGES_H
#define FTUNER_ANALYSIS_SIZERANGES_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include <memory>

namespace ftuner {

class ExtentAnalysis;

/// The sizes of the tensors of one function, which must not change meanwhile.
class SizeRanges {
public:
  explicit SizeRanges(mlir::FunctionOpInterface function);
  ~SizeRanges();

  /// Returns the range of a dimension of a ranked tensor, from the declared
  /// ranges of the function's arguments; `0 to ?` if these say nothing.
  ukernel::RangeAttr rangeOf(mlir::Value tensor, int64_t dim);

private:
  std::unique_ptr<ExtentAnalysis> extents;
};

} // namespace ftuner

#endif // FTUNER_ANALYSIS_SIZERANGES_H
