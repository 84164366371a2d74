//===- UKernelAttributes.td - Attributes --------------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELATTRIBUTES
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELATTRIBUTES

include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"

class UKernel_Attr<string name, string attrMnemonic>
    : AttrDef<UKernel_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def UKernel_RangeAttr : UKernel_Attr<"Range", "range"> {
  let summary = "sizes of a symbol";
  let description = [{
    min, min + step, … up to max; `?` leaves the range open. `weights` is a
    histogram of sizes: size and relative frequency.

    ```mlir
    #ukernel.range<1 to 128>
    #ukernel.range<16 to ? step 16>
    #ukernel.range<1 to 128 weights [7 : 0.25, 53 : 0.75]>
    ```
  }];
  let parameters = (ins
    "int64_t":$min,
    /// ShapedType::kDynamic for an open range.
    "int64_t":$max,
    "int64_t":$step,
    ArrayRefParameter<"int64_t">:$weightSizes,
    ArrayRefParameter<"double">:$weightValues);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isOpen() const { return getMax() == ::mlir::ShapedType::kDynamic; }
  }];
}

def UKernel_DeviceAttr : UKernel_Attr<"Device", "device"> {
  let summary = "description of a GPU";
  let description = [{
    The fields of the device's JSON file, so that IR between the stages does not
    depend on files.

    ```mlir
    #ukernel.device<"h200", {sm_count = 132 : i64, clock_mhz = 1980.0 : f64}>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::DictionaryAttr":$fields);
  let assemblyFormat = "`<` $name `,` $fields `>`";
}

def UKernel_UKernelAttr : UKernel_Attr<"UKernel", "ukernel"> {
  let summary = "tile sizes of one thread block at two memory levels";
  let description = [{
    `smem` is the tile of the block, `reg` the tile of a thread, along each axis
    of the workload. `split` slices the reduce axis over blocks.

    ```mlir
    #ukernel.ukernel<smem = [112, 64, 16], reg = [7, 4, 1]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$smem,
    ArrayRefParameter<"int64_t">:$reg,
    DefaultValuedParameter<"int64_t", "1">:$split);
  let assemblyFormat = [{
    `<` `smem` `=` `[` $smem `]` `,` `reg` `=` `[` $reg `]` (`,` `split` `=` $split^)? `>`
  }];
  let genVerifyDecl = 1;
}

def UKernel_SimtAttr : UKernel_Attr<"Simt", "simt"> {
  let summary = "codegen path on the CUDA cores, f32";
  let description = [{
    `stages` pipeline stages in shared memory; `vector` elements moved by one
    global access along contiguous axes (4: operands are aligned; 1: any).

    ```mlir
    #ukernel.simt<stages = 3, vector = 4>
    ```
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$vector);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def UKernel_FamilyAttr : UKernel_Attr<"Family", "family"> {
  let summary = "one or two uKernels that become one kernel";
  let description = [{
    ```mlir
    #ukernel.family<#ukernel.simt<stages = 3, vector = 4>, axis = 0,
      parts = [#ukernel.ukernel<smem = [112, 64, 16], reg = [7, 4, 1]>,
               #ukernel.ukernel<smem = [128, 64, 16], reg = [8, 4, 1]>]>
    ```
  }];
  let parameters = (ins
    "::mlir::Attribute":$path,
    "int64_t":$axis,
    ArrayRefParameter<"::ftuner::ukernel::UKernelAttr">:$parts);
  let assemblyFormat = [{
    `<` $path `,` `axis` `=` $axis `,` `parts` `=` `[` $parts `]` `>`
  }];
  let genVerifyDecl = 1;
}

def UKernel_ChoiceAttr : UKernel_Attr<"Choice", "choice"> {
  let summary = "a box of shapes and the family that serves it";
  let description = [{
    ```mlir
    #ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 3>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::ftuner::ukernel::RangeAttr">:$box,
    "int64_t":$family);
  let assemblyFormat = "`<` `[` $box `]` `to` $family `>`";
}

def UKernel_PlanAttr : UKernel_Attr<"Plan", "plan"> {
  let summary = "kernel families of a workload and which serves which shape";
  let description = [{
    The first choice whose box holds the shape wins; `general` serves the other
    shapes with aligned operands, `fallback` any operands.
  }];
  let parameters = (ins
    ArrayRefParameter<"::ftuner::ukernel::FamilyAttr">:$families,
    ArrayRefParameter<"::ftuner::ukernel::ChoiceAttr">:$choices,
    "int64_t":$general,
    "int64_t":$fallback,
    OptionalParameter<"::mlir::DictionaryAttr">:$statistics);
  let assemblyFormat = [{
    `<` `families` `=` `[` $families `]` `,` `choices` `=` `[` $choices `]` `,`
    `general` `=` $general `,` `fallback` `=` $fallback (`,` `statistics` `=` $statistics^)? `>`
  }];
  let genVerifyDecl = 1;
}

def UKernel_EntryAttr : UKernel_Attr<"Entry", "entry"> {
  let summary = "launch descriptor of an emitted kernel";
  let description = [{
    What a host needs to launch the kernel: threads of a block, dynamic shared
    memory, alignment in bytes that every pointer and row must have, and the
    kinds of the parameters in order (`pointer`, `size`, `stride`, `part` as
    i32, `scalar` by value). `family` and `workload` say where it comes from;
    both are absent for kernels of leftover operators.

    ```mlir
    #ukernel.entry<threads = 256, shared_memory_bytes = 49152, alignment = 16,
                   parameters = {…}>
    ```
  }];
  let parameters = (ins
    "int64_t":$threads,
    "int64_t":$sharedMemoryBytes,
    "int64_t":$alignment,
    /// One dictionary for each parameter: kind, name, type and, for pointers, access.
    "::mlir::ArrayAttr":$parameters,
    OptionalParameter<"::ftuner::ukernel::FamilyAttr">:$family,
    OptionalParameter<"::mlir::StringAttr">:$workload);
  let assemblyFormat = [{
    `<` `threads` `=` $threads `,` `shared_memory_bytes` `=` $sharedMemoryBytes `,`
    `alignment` `=` $alignment `,` `parameters` `=` $parameters
    (`,` `family` `=` $family^)? (`,` `workload` `=` $workload^)? `>`
  }];
}

#endif
