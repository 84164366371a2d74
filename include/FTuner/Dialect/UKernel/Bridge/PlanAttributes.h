//===- PlanAttributes.h - The core's data as attributes ---------*- C++ -*-===//
//
// Search and cost models know nothing of IR; these functions carry their data
// in and out of it. `toAttribute` and the function that reads the attribute
// back are inverse to each other.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_DIALECT_UKERNEL_BRIDGE_PLANATTRIBUTES_H
#define FTUNER_DIALECT_UKERNEL_BRIDGE_PLANATTRIBUTES_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/Search/Problem/Plan.h"

namespace ftuner {

/// The device's fields as its JSON file has them (docs/devices.md).
ukernel::DeviceAttr toAttribute(mlir::MLIRContext *context,
                                const DeviceSpec &device);
/// Reads an attribute with the checks of a JSON file.
llvm::Expected<DeviceSpec> toDeviceSpec(ukernel::DeviceAttr attribute);
/// Returns the device that the module is compiled for. Emits an error on the
/// module if it has no device, or if the device's fields are not valid.
mlir::FailureOr<DeviceSpec> deviceOf(mlir::ModuleOp module);

ukernel::RangeAttr toAttribute(mlir::MLIRContext *context,
                               const SizeRange &range,
                               llvm::ArrayRef<SizeWeight> weights = {});
SizeRange toSizeRange(ukernel::RangeAttr attribute);
std::vector<SizeWeight> toWeights(ukernel::RangeAttr attribute);

/// Returns the family with the attribute of its codegen path, or an error if
/// the path has no attribute.
llvm::Expected<ukernel::FamilyAttr> toAttribute(mlir::MLIRContext *context,
                                                const KernelFamily &family);
KernelFamily toKernelFamily(ukernel::FamilyAttr attribute);
/// `reduce` of a workload's families: empty where axis 2 is the only one.
llvm::SmallVector<int64_t> reduceAxesOf(const Workload &workload);

/// Without the remarks, which are told when the plan is made.
llvm::Expected<ukernel::PlanAttr> toAttribute(mlir::MLIRContext *context,
                                              const Plan &plan);
/// Returns the plan that an attribute holds, read once: the dialect keeps it
/// for all passes, and for what is written of the module after them.
const Plan &toPlan(ukernel::PlanAttr attribute);

/// ukernel.plan, once dispatched: names of the workloads whose kernels it
/// describes (`workload` of #ukernel.entry), an array of strings.
inline constexpr llvm::StringLiteral kWorkloadsAttrName = "ukernel.workloads";
/// ukernel.plan: families that a search must not choose for its workloads, an
/// array of #ukernel.family. `ukernel-plan-workloads` replaces a plan that
/// holds one of them.
inline constexpr llvm::StringLiteral kRejectedAttrName = "ukernel.rejected";
/// Reads `ukernel.rejected`: empty without it, an error for anything but
/// families.
llvm::Expected<std::vector<KernelFamily>> rejectedFamilies(ukernel::PlanOp op);
/// ukernel.plan, where the assembler was asked: its figures of each family, an
/// array of dictionaries in the order of the families. `registers` of a thread
/// and `spill_bytes` (stored and loaded) are i64; both are absent where no
/// shape needs the family.
inline constexpr llvm::StringLiteral kMeasuredAttrName = "ukernel.measured";
inline constexpr llvm::StringLiteral kMeasuredRegistersName = "registers";
inline constexpr llvm::StringLiteral kMeasuredSpillBytesName = "spill_bytes";

} // namespace ftuner

#endif // FTUNER_DIALECT_UKERNEL_BRIDGE_PLANATTRIBUTES_H
