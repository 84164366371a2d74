//===- IreeDispatch.h - Workloads as dispatches -----------------*- C++ -*-===//
//
// What IREE's host does for a workload: it computes the family of the sizes and
// the blocks, and dispatches. A plan with split-K slices has two dispatches:
//
//   slices = flow.dispatch @first sums of slices[…](inputs)
//   result = flow.dispatch @kernels or sums of slices[…](tensors, slices)
//
// The two dispatches choose separately. For sizes of families without slices,
// the first one has 0 blocks, so that IREE's runtime does not launch it, and
// one element, since CUDA does not allocate 0 bytes; kernels of the second one
// ignore it.
//
// Rejected: a branch around the first dispatch, since IREE submits each side by
// itself and allocates for it.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_LIB_TARGET_IREE_IREEDISPATCH_H
#define FTUNER_LIB_TARGET_IREE_IREEDISPATCH_H

#include "FTuner/Kernel/KernelBuilder.h"
#include "FTuner/Search/Problem/Plan.h"
#include "IreeOps.h"

namespace ftuner::iree {

/// Equal workloads with one plan, and their kernels, which have the numbers of
/// the families.
struct WorkloadKernels {
  /// On buffers.
  IsolatedOperator isolated;
  mlir::FlatSymbolRefAttr planName;
  Plan plan;
  /// The kernels that compute the result, from slices where the family has
  /// some.
  Choice choice;
  /// That with most parameters: others may lack the part.
  KernelSignature signature;
  /// The kernels that sum the slices of families; no kernels if no family has
  /// slices. The operator of the signature is the one that computes slices.
  Choice slices;
  KernelSignature sliceSignature;

  bool hasSlices() const { return !slices.kernels.empty(); }
};

/// Describes what a choice of kernels with these parameters takes.
void describe(Choice &choice, llvm::StringRef name,
              const KernelSignature &signature);

/// A kernel with `ukernel.entry`.
Kernel toKernel(mlir::gpu::GPUModuleOp kernel, int64_t number,
                int64_t alignment);

/// Dispatches an operator on tensors, in front of it. Returns its results.
mlir::ValueRange buildDispatches(ukernel::OperatorOpInterface op,
                                 const WorkloadKernels &workload,
                                 IreeTarget target);

} // namespace ftuner::iree

#endif // FTUNER_LIB_TARGET_IREE_IREEDISPATCH_H
