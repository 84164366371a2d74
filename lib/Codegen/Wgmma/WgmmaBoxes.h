//===- WgmmaBoxes.h - Rows that tensor maps copy ----------------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_WGMMABOXES_H
#define FTUNER_LIB_CODEGEN_WGMMA_WGMMABOXES_H

#include "FTuner/Schedule/CodegenModel.h"

namespace ftuner {

/// `CodegenModel::boxRows` of the path. Rows along k that lie behind the last
/// element are not counted as outside.
BoxRows wgmmaBoxRows(const Workload &workload, const KernelFamily &family,
                     llvm::ArrayRef<int64_t> shape);

} // namespace ftuner

#endif // FTUNER_LIB_CODEGEN_WGMMA_WGMMABOXES_H
