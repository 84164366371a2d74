//===- MmaWork.h - What a block of the mma path executes --------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_MMAWORK_H
#define FTUNER_LIB_CODEGEN_MMA_MMAWORK_H

#include "FTuner/Codegen/Mma/MmaLayout.h"
#include "FTuner/Schedule/BlockWork.h"
#include "MmaTypes.h"

namespace ftuner {

/// What decides the instructions of a block beside its layout.
struct MmaCode {
  MmaInstruction instruction;
  /// Of the copies of lhs and rhs.
  struct Copy : FactorCopy {
    /// Each register of a fragment is rounded to tf32.
    bool isRounded = false;
  };
  std::array<Copy, 2> copies = {};
  /// Cycles of a scheduler's tensor cores for an instruction.
  double cyclesOfProduct = 8;
  /// Copies do not pass through registers.
  bool isAsynchronous = true;
  /// The extent of the reduce axis is known to be a multiple of its tile.
  bool isReduceExact = true;
};

/// A step of the main loop of a block with this layout.
BlockWork mmaWork(const MmaLayout &layout, const MmaCode &code);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_MMA_MMAWORK_H
