//===- SimtAttr.td - The schedule of the SIMT path ----------*- tablegen -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_IR_SIMTATTR
#define FTUNER_LIB_CODEGEN_SIMT_IR_SIMTATTR

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

def UKernel_SimtAttr : AttrDef<UKernel_Dialect, "Simt",
    [DeclareAttrInterfaceMethods<UKernel_ScheduleAttrInterface>]> {
  let mnemonic = "simt";
  let summary = "schedule on the CUDA cores, f32";
  let description = [{
    `threads` of a block along m and n, each of which computes an equal share of
    the block tile; `stages` pipeline stages in shared memory; `vector` elements
    moved by one global access along contiguous axes (4: operands are aligned;
    1: any).

    * `simt_c1`: there are two numbers of threads, at least 1 each.
    * `simt_c2`: there is at least one stage.
    * `simt_c3`: the vector has 1, 2 or 4 elements.
    * `simt_c4`: block tiles have sizes along m, n and k at least, those along m
      and n multiples of the threads.

    ```mlir
    #ukernel.simt<threads = [16, 16], stages = 3, vector = 4>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$threads,
    "int64_t":$stages,
    "int64_t":$vector);
  let builders = [AttrBuilder<(ins "const ::ftuner::Schedule &":$schedule)>];
  let assemblyFormat = [{
    `<` `threads` `=` `[` $threads `]` `,` `stages` `=` $stages `,` `vector` `=` $vector `>`
  }];
  let genVerifyDecl = 1;
}

#endif
