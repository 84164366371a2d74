//===- RowsAst.h - Loops of a block of rows ---------------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_ROWS_ROWSAST_H
#define FTUNER_LIB_CODEGEN_ROWS_ROWSAST_H

#include "FTuner/Codegen/Rows/RowsSchedule.h"
#include "FTuner/Schedule/ProgramAst.h"

namespace ftuner {

/// Adds the statements of a block to the tree, whose open loops are the grid:
/// rows that are held are loaded once, others in each pass. Of rows with slices
/// a launch reduces what it can with the results of those before it, and the
/// last one has the elements.
void describeRowsBlock(const Workload &workload, const RowsLayout &layout,
                       llvm::ArrayRef<int64_t> shape, int64_t launch,
                       ProgramAst &ast);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_ROWS_ROWSAST_H
