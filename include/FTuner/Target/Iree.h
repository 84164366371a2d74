//===- Iree.h - Planned modules for IREE ------------------------*- C++ -*-===//
//
// IREE runs kernels of others: an executable holds their PTX, each kernel is an
// export of it, and a dispatch names the first of a chain of exports, of which
// the host takes the first whose condition holds (docs/iree.md). So a workload
// becomes one dispatch, and the families of its plan one chain:
//
//   class  = the family of the sizes, by comparisons
//   blocks = scf.index_switch class
//   flow.dispatch @kernels::@first[class, blocks](tensors, i32…)
//
// All other operators stay as they are, for IREE to compile. Operations of IREE
// are in their generic form, so that nothing of it is needed.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_TARGET_IREE_H
#define FTUNER_TARGET_IREE_H

#include "mlir/IR/BuiltinOps.h"

namespace ftuner {

/// Turns the planned workloads of a module on tensors into dispatches of one
/// executable, `@ftuner_kernels`, that holds the PTX of their kernels, and
/// removes what is FTuner's from the module. The context must allow
/// unregistered dialects. Reports a module without a device, workloads without
/// a plan or on buffers, and what IREE cannot pass: more than 16 tensors or 64
/// values of 32 bits.
mlir::LogicalResult convertToIree(mlir::ModuleOp module);

} // namespace ftuner

#endif // FTUNER_TARGET_IREE_H
