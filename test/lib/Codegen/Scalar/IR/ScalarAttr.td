//===- ScalarAttr.td - The schedule of the scalar path ------*- tablegen -*-===//
#ifndef FTUNER_TEST_LIB_CODEGEN_SCALAR_IR_SCALARATTR
#define FTUNER_TEST_LIB_CODEGEN_SCALAR_IR_SCALARATTR

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

class UKernel_ScalarScheduleAttr<string name, string text>
    : AttrDef<UKernel_Dialect, name,
              [DeclareAttrInterfaceMethods<UKernel_ScheduleAttrInterface>]> {
  let mnemonic = text;
  let summary = "one element for each thread";
  let parameters = (ins "int64_t":$threadsM, "int64_t":$threadsN);
  let builders = [AttrBuilder<(ins "const ::ftuner::Schedule &":$schedule)>];
  let assemblyFormat = "`<` $threadsM `x` $threadsN `>`";
  let genVerifyDecl = 1;
}

def UKernel_ScalarAttr : UKernel_ScalarScheduleAttr<"Scalar", "scalar">;
def UKernel_ExactAttr : UKernel_ScalarScheduleAttr<"Exact", "exact">;
def UKernel_MappedAttr : UKernel_ScalarScheduleAttr<"Mapped", "mapped"> {
  let parameters = (ins "int64_t":$threadsM, "int64_t":$threadsN, "bool":$maps);
  let assemblyFormat = "`<` $threadsM `x` $threadsN `maps` $maps `>`";
}

#endif
