//===- MmaAttr.td - The schedule of the mma path -------------*- tablegen -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_IR_MMAATTR
#define FTUNER_LIB_CODEGEN_MMA_IR_MMAATTR

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

def UKernel_MmaAttr : AttrDef<UKernel_Dialect, "Mma",
    [DeclareAttrInterfaceMethods<UKernel_ScheduleAttrInterface>]> {
  let mnemonic = "mma";
  let summary = "schedule on the tensor cores, by mma.sync";
  let description = [{
    `warps` of a block along m and n, each of which computes an equal share of
    the block tile; `stages` pipeline stages in shared memory; `access` bytes of
    shared memory filled by one copy along contiguous axes, to which operands
    are aligned (1: a single element of any alignment). With `swap_operands`,
    false unless given, instructions compute the transposed product: the rhs
    feeds their 16 rows and the lhs their 8 columns.

    * `mma_c1`: there are two numbers of warps, at least 1 each.
    * `mma_c2`: there is at least one stage.
    * `mma_c3`: an access has 1, 4, 8 or 16 bytes.
    * `mma_c4`: block tiles have sizes along m, n and k at least, those along m
      and n multiples of the fragments of all warps: 16 and 8 elements, or 8
      and 16 with swapped operands.

    ```mlir
    #ukernel.mma<warps = [2, 2], stages = 3, access = 16>
    #ukernel.mma<warps = [1, 4], stages = 4, access = 16, swap_operands = true>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$warps,
    "int64_t":$stages,
    "int64_t":$access,
    DefaultValuedParameter<"bool", "false">:$swap_operands);
  let builders = [AttrBuilder<(ins "const ::ftuner::Schedule &":$schedule)>];
  let assemblyFormat = [{
    `<` `warps` `=` `[` $warps `]` `,` `stages` `=` $stages `,` `access` `=` $access
    (`,` `swap_operands` `=` $swap_operands^)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif
