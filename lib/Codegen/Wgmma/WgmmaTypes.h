//===- WgmmaTypes.h - What instructions of four warps multiply --*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_WGMMATYPES_H
#define FTUNER_LIB_CODEGEN_WGMMA_WGMMATYPES_H

#include "FTuner/Codegen/TensorFactors.h"
#include "FTuner/Codegen/Wgmma/WgmmaSchedule.h"

namespace ftuner {

/// The instruction for factors of one type.
struct WgmmaInstruction {
  TensorPipe pipe;
  ElementType accumulator;
};

/// The instruction that the device has for a type, if any. They are those of
/// compute capability 9.0, and of no other (PTX ISA, wgmma.mma_async).
std::optional<WgmmaInstruction> findWgmmaInstruction(ElementType factor,
                                                     const DeviceSpec &device);

/// Whether there are instructions of so many columns: multiples of 8 up to 256,
/// of bytes multiples of 16 from 32 on.
bool hasWgmmaColumns(int64_t columns, int64_t elementBytes);

/// Whether factors pass through registers where threads or tensor maps copy
/// them: instructions read shared memory, so f32 is rounded to tf32 on the way
/// there, which maps do by themselves.
bool convertsWgmmaFactors(const Workload &workload, bool usesTma);

/// Whether a factor can have a tensor map, or needs none as it is packed: one
/// axis along each dimension, and not too many.
bool hasWgmmaMap(const Operand &factor);

/// Whether the unit that copies can bring what blocks of the schedule's cluster
/// share: producers have boxes copied, or the rhs, which blocks along m share,
/// is packed.
bool canShareCopies(const Workload &workload, const WgmmaSchedule &schedule);

/// Returns true where bulk copies can store the results of persistent blocks of
/// the schedule: rows of the output and of a warp's tile lie along n, and are
/// accessed as vectors.
bool canStoreInBulk(const Workload &workload, const WgmmaSchedule &schedule);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_WGMMATYPES_H
