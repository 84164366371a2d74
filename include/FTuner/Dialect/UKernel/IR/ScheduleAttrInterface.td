//===- ScheduleAttrInterface.td - Schedules of codegen paths -*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_SCHEDULEATTRINTERFACE
#define FTUNER_DIALECT_UKERNEL_IR_SCHEDULEATTRINTERFACE

include "mlir/IR/Interfaces.td"

def UKernel_ScheduleAttrInterface : AttrInterface<"ScheduleAttrInterface"> {
  let cppNamespace = "::ftuner::ukernel";
  let summary = "schedule of a codegen path";
  let description = [{
    How a codegen path computes a block tile. Each path has an attribute of its
    own, which it adds to the dialect (`UKernelDialect::addSchedule`); its
    mnemonic is the path's name.
  }];
  let methods = [
    InterfaceMethod<"The schedule as the core's value.",
      "::ftuner::Schedule", "toSchedule">,
    InterfaceMethod<[{
        Says what keeps the schedule from computing a block tile of these sizes,
        whatever the workload and the device are.
      }],
      "::llvm::LogicalResult", "verifyTile",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::llvm::ArrayRef<int64_t>":$tile)>,
    InterfaceMethod<"Prints what comes behind the mnemonic.",
      "void", "printFields", (ins "::mlir::AsmPrinter &":$printer), [{}], [{
        $_attr.print(printer);
      }]>,
  ];
}

#endif
