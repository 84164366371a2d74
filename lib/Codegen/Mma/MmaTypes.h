//===- MmaTypes.h - What the tensor cores multiply --------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
#define FTUNER_LIB_CODEGEN_MMA_MMATYPES_H

#include "FTuner/Codegen/TensorFactors.h"

namespace ftuner {

/// The instruction for factors of one type, with 8 columns.
struct MmaInstruction {
  TensorPipe pipe;
  int64_t rows;
  /// Reduce elements.
  int64_t depth;
  ElementType accumulator;
};

/// The instruction that the device has for a type, if any (PTX ISA, "Matrix
/// multiply-accumulate operation using mma instruction").
std::optional<MmaInstruction> findMmaInstruction(ElementType factor,
                                                 const DeviceSpec &device);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
