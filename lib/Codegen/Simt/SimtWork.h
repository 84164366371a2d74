//===- SimtWork.h - What a block of the SIMT path executes ------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H
#define FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H

#include "FTuner/Codegen/Simt/SimtLayout.h"
#include "FTuner/Schedule/BlockWork.h"

namespace ftuner {

/// A step of the main loop of a block with this layout. `isReduceExact`: the
/// extent of the reduce axis is known to be a multiple of its tile.
BlockWork simtWork(const SimtLayout &layout, int64_t vectorWidth,
                   bool isAsynchronous, bool isReduceExact);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_SIMT_SIMTWORK_H
