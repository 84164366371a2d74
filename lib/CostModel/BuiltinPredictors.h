//===- BuiltinPredictors.h - Predictors inside the library ------*- C++ -*-===//
#ifndef FTUNER_LIB_COSTMODEL_BUILTINPREDICTORS_H
#define FTUNER_LIB_COSTMODEL_BUILTINPREDICTORS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstddef>

namespace ftuner {

/// The bytes of a file of lib/CostModel/predictors.
struct BuiltinPredictor {
  const char *name;
  const unsigned char *bytes;
  size_t size;
};
/// Written by cmake/EmbedPredictors.cmake.
llvm::ArrayRef<BuiltinPredictor> builtinPredictors();

} // namespace ftuner

#endif // FTUNER_LIB_COSTMODEL_BUILTINPREDICTORS_H
