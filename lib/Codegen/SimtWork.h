//===- SimtWork.h - What a block of the SIMT path executes ------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMTWORK_H
#define FTUNER_LIB_CODEGEN_SIMTWORK_H

#include "FTuner/Codegen/BlockWork.h"
#include "FTuner/Codegen/SimtLayout.h"

namespace ftuner {

/// A step of the main loop of a block with this layout.
BlockWork simtWork(const SimtLayout &layout, int64_t vectorWidth,
                   bool isAsynchronous);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMTWORK_H
