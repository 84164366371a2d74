//===- WgmmaWork.h - What a block of the wgmma path executes ----*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_WGMMAWORK_H
#define FTUNER_LIB_CODEGEN_WGMMA_WGMMAWORK_H

#include "FTuner/Codegen/Wgmma/WgmmaLayout.h"
#include "FTuner/Schedule/BlockWork.h"
#include "WgmmaTypes.h"
#include <array>

namespace ftuner {

/// What decides the instructions of a block beside its layout.
struct WgmmaCode {
  WgmmaInstruction instruction;
  /// Of lhs and rhs.
  std::array<FactorCopy, 2> copies = {};
  /// Copies do not pass through registers.
  bool isAsynchronous = true;
  /// The extent of the reduce axis is known to be a multiple of its tile.
  bool isReduceExact = true;
};

/// A step of the main loop of a block with this layout.
BlockWork wgmmaWork(const WgmmaLayout &layout, const WgmmaCode &code);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_WGMMAWORK_H
