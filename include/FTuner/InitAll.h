//===- InitAll.h - Registration ---------------------------------*- C++ -*-===//
#ifndef FTUNER_INITALL_H
#define FTUNER_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace ftuner {
/// FTuner's dialect, its interfaces' external models, and what its pipelines
/// need of upstream (all dialects, extensions, LLVM IR translations).
void registerAllDialects(mlir::DialectRegistry &registry);
/// FTuner's passes and pipelines.
void registerAllPasses();
} // namespace ftuner

#endif // FTUNER_INITALL_H
