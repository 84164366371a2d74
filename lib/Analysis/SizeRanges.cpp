//===- SizeRanges.cpp - Declared ranges of tensors' sizes -----------------===//
#include "FTuner/Analysis/SizeRanges.h"
#include "FTuner/Analysis/Extents.h"

using namespace mlir;
using namespace ftuner;

SizeRanges::SizeRanges(FunctionOpInterface function)
    : extents(std::make_unique<ExtentAnalysis>(function)) {}

SizeRanges::~SizeRanges() = default;

ukernel::RangeAttr SizeRanges::rangeOf(Value tensor, int64_t dim) {
  return extents->rangeOf(extents->dimOf(tensor, dim));
}
