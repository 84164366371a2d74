//===- Products.h - Products of given types ---------------------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_CODEGEN_PRODUCTS_H
#define FTUNER_TEST_UNIT_CODEGEN_PRODUCTS_H

#include "FTuner/Workload/Contraction.h"

namespace ftuner {

/// Makes the factors of a product of that type, and its sums of another. tf32
/// stands for f32 that is rounded.
inline void setTypes(Workload &workload, ElementType type, ElementType sum) {
  for (Operand &operand : workload.operands)
    if (isInput(operand.role)) {
      operand.elementType = type == ElementType::TF32 ? ElementType::F32 : type;
      operand.elementBytes = bytesOf(type);
    }
  changeContraction(workload, [&](ContractionParts &parts) {
    parts.accumulatorType = sum;
    parts.multipliedType = type;
  });
}

} // namespace ftuner

#endif // FTUNER_TEST_UNIT_CODEGEN_PRODUCTS_H
