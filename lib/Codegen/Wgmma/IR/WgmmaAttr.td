//===- WgmmaAttr.td - The schedule of the wgmma path ---------*- tablegen -*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAATTR
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAATTR

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

def UKernel_WgmmaAttr : AttrDef<UKernel_Dialect, "Wgmma",
    [DeclareAttrInterfaceMethods<UKernel_ScheduleAttrInterface>]> {
  let mnemonic = "wgmma";
  let summary = "schedule on the tensor cores, by wgmma.mma_async";
  let description = [{
    `groups` of four warps of a block along m and n, each of which computes an
    equal share of the block tile; `stages` pipeline stages in shared memory;
    `access` bytes of shared memory filled by one copy along contiguous axes, to
    which operands are aligned (1: a single element of any alignment). With
    `swap_operands`, false unless given, instructions compute the transposed
    product: the rhs feeds their 64 rows and the lhs their columns. Beside the
    groups there may be `producers`, 0 unless given: a group that copies the
    operands and does nothing else. With `tensor_maps`, false unless given, the
    device copies boxes of the operands by itself. A `cluster` of two blocks
    along m or n, one unless given, shares a tile: each block computes an equal
    part, and copies an equal part of the factor that both need for both. With
    `persistent` blocks, 0 unless given, a launch has at most so many, each of
    which takes one tile after the other. With 2 `turns`, 1 unless given, such a
    block has twice the `groups`, in two sets that take turns on tiles: one
    multiplies while the other stores.

    * `wgmma_c1`: there are two numbers of groups, at least 1 each.
    * `wgmma_c2`: there is at least one stage.
    * `wgmma_c3`: an access has 1, 4, 8 or 16 bytes.
    * `wgmma_c4`: block tiles have sizes along m, n and k at least, those along
      m and n multiples of the granules of all groups of all blocks: 64 and 8
      elements, or 8 and 64 with swapped operands.
    * `wgmma_c5`: there are no producers or 1.
    * `wgmma_c6`: with tensor maps, an access has 16 bytes.
    * `wgmma_c7`: there are two numbers of blocks, 1 and 2 or 1 and 1; two blocks
      have producers, and along n tensor maps. Along m the workload's rhs is
      packed or there are tensor maps, too.
    * `wgmma_c8`: there are no persistent blocks, or whole clusters of them, with
      producers and tensor maps.
    * `wgmma_c9`: there is 1 turn, or 2 of persistent blocks.

    ```mlir
    #ukernel.wgmma<groups = [2, 1], stages = 4, access = 16>
    #ukernel.wgmma<groups = [1, 2], stages = 4, access = 16, swap_operands = true>
    #ukernel.wgmma<groups = [2, 1], stages = 4, access = 16, producers = 1, tensor_maps = true>
    #ukernel.wgmma<groups = [2, 1], stages = 4, access = 16, producers = 1, tensor_maps = true, cluster = [2, 1], persistent = 132>
    #ukernel.wgmma<groups = [1, 1], stages = 4, access = 16, producers = 1, tensor_maps = true, persistent = 132, turns = 2>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$groups,
    "int64_t":$stages,
    "int64_t":$access,
    DefaultValuedParameter<"bool", "false">:$swap_operands,
    DefaultValuedParameter<"int64_t", "0">:$producers,
    DefaultValuedParameter<"bool", "false">:$tensor_maps,
    ArrayRefParameter<"int64_t">:$cluster,
    DefaultValuedParameter<"int64_t", "0">:$persistent,
    DefaultValuedParameter<"int64_t", "1">:$turns);
  let builders = [AttrBuilder<(ins "const ::ftuner::Schedule &":$schedule)>];
  let assemblyFormat = [{
    `<` `groups` `=` `[` $groups `]` `,` `stages` `=` $stages `,` `access` `=` $access ``
    custom<WgmmaOptions>($swap_operands, $producers, $tensor_maps, $cluster, $persistent, $turns) `>`
  }];
  let genVerifyDecl = 1;
}

#endif
