//===- SimtWork.h - What a block of the SIMT path executes ------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H
#define FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H

#include "FTuner/Codegen/ContractionModel.h"
#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Schedule/BlockWork.h"

namespace ftuner {

/// What the code of a block depends on beside its layout.
struct SimtCode {
  bool isAsynchronous = true;
  /// Whether the extent of the reduce axis is known to be a multiple of its
  /// tile.
  bool isReduceExact = true;
  /// Bytes of an element in global memory, and whether it is cast on the way
  /// to shared memory: of lhs and rhs.
  int64_t elementBytes[2] = {4, 4};
  bool isConverted[2] = {false, false};
  /// What else becomes of its elements there.
  PrologueWork prologues[2] = {};
  /// Instructions of a thread in a step for positions of windows.
  double windowInstructions[2] = {0, 0};
};

/// A step of the main loop of a block with this layout.
BlockWork simtWork(const SimtLayout &layout, const SimtCode &code);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H
