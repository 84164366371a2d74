//===- SizeRanges.h - Declared ranges of tensors' sizes ---------*- C++ -*-===//
//
// What the formation of workloads knows of sizes, for those that copy operators
// into functions of their own before workloads are formed.
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

  /// The sizes that a dimension of a ranked tensor takes, by what is declared
  /// of the function's arguments; `0 to ?` where that says nothing.
  ukernel::RangeAttr rangeOf(mlir::Value tensor, int64_t dim);

private:
  std::unique_ptr<ExtentAnalysis> extents;
};

} // namespace ftuner

#endif // FTUNER_ANALYSIS_SIZERANGES_H
