//===- MmaTypes.h - What the tensor cores multiply --------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
#define FTUNER_LIB_CODEGEN_MMA_MMATYPES_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Schedule/BlockWork.h"
#include "FTuner/Workload/Workload.h"

namespace ftuner {

/// The instruction for factors of one type.
struct MmaInstruction {
  TensorPipe pipe;
  /// Reduce elements of one instruction on 16 rows and 8 columns.
  int64_t depth;
  ElementType accumulator;
};

/// The one that the device has, if any (PTX ISA, "Matrix multiply-accumulate
/// operation using mma instruction").
std::optional<MmaInstruction> findMmaInstruction(ElementType factor,
                                                 const DeviceSpec &device);

/// Whether copies of so many bytes bypass registers.
inline bool copiesAsynchronously(const DeviceSpec &device,
                                 int64_t accessBytes) {
  return device.hasAsyncCopy() && accessBytes >= 4;
}

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_MMATYPES_H
