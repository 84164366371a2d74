//===- CooperativeAttr.td - The schedule of the cooperative path -*- tablegen -*-===//
#ifndef FTUNER_TEST_LIB_CODEGEN_COOPERATIVE_IR_COOPERATIVEATTR
#define FTUNER_TEST_LIB_CODEGEN_COOPERATIVE_IR_COOPERATIVEATTR

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

def UKernel_CooperativeAttr : AttrDef<UKernel_Dialect, "Cooperative",
    [DeclareAttrInterfaceMethods<UKernel_ScheduleAttrInterface>]> {
  let mnemonic = "cooperative";
  let summary = "warps that reduce rows together";
  let parameters = (ins "int64_t":$rows, "int64_t":$warps);
  let builders = [AttrBuilder<(ins "const ::ftuner::Schedule &":$schedule)>];
  let assemblyFormat = "`<` `rows` $rows `warps` $warps `>`";
  let genVerifyDecl = 1;
}

#endif
