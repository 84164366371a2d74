//===- MmaTypes.h - What the tensor cores multiply --------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
#define FTUNER_LIB_CODEGEN_MMA_MMATYPES_H

#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// The instruction for factors of one type, with 8 columns.
struct MmaInstruction {
  TensorPipe pipe;
  int64_t rows;
  /// Reduce elements.
  int64_t depth;
  ElementType accumulator;
};

/// The type in which a sum of products multiplies: operands may be of narrower
/// ones, and are cast on the way to shared memory.
inline ElementType multipliedType(const Workload &workload) {
  return workload.operations.front().operandType;
}

/// The instruction that the device has for a type, if any (PTX ISA, "Matrix
/// multiply-accumulate operation using mma instruction").
std::optional<MmaInstruction> findMmaInstruction(ElementType factor,
                                                 const DeviceSpec &device);

/// The widest access of aligned operands, or 1 (MmaSchedule::accessBytes).
inline int64_t widestAccess(int64_t alignment) {
  return alignment >= 16 ? 16 : alignment >= 8 ? 8 : alignment >= 4 ? 4 : 1;
}

/// Whether copies bypass registers, of so many bytes and factors that are (not)
/// cast on the way.
inline bool copiesAsynchronously(const DeviceSpec &device, int64_t bytes,
                                 bool isCast) {
  return device.hasAsyncCopy() && bytes >= 4 && !isCast;
}

/// Whether a factor is cast, or something computed of it, on the way to shared
/// memory.
inline bool convertsFactors(const Workload &workload) {
  ElementType type = multipliedType(workload);
  for (OperandRole role : {OperandRole::Lhs, OperandRole::Rhs})
    if (workload.find(role)->elementBytes != bytesOf(type) ||
        hasPrologue(workload, /*factor=*/role == OperandRole::Rhs))
      return true;
  return false;
}

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
