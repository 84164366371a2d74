//===- WgmmaEmitter.h - Blocks whose stages have barriers -------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H

#include "WgmmaTile.h"

#include "FTuner/Codegen/IR/CodegenPath.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ftuner {

/// Emits what a block does whose stages have barriers: producers beside
/// consumers, or consumers that have boxes copied (WgmmaPipeline.cpp).
mlir::LogicalResult emitWgmmaPipeline(mlir::ImplicitLocOpBuilder &b,
                                      const WgmmaKernel &kernel,
                                      BlockTiles &tiles);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAEMITTER_H
