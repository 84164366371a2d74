//===- UKernelAttributes.td - Attributes --------------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELATTRIBUTES
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELATTRIBUTES

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class UKernel_Attr<string name, string attrMnemonic>
    : AttrDef<UKernel_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def UKernel_RangeAttr : UKernel_Attr<"Range", "range"> {
  let summary = "sizes of a symbol";
  let description = [{
    min, min + step, … up to max; `?` leaves the range open. `weights` is a
    histogram of sizes: size and relative frequency, a floating-point number.

    * `range_c1`: min is at least 0.
    * `range_c2`: max is at least min, unless it is open.
    * `range_c3`: step is at least 1.
    * `range_c4`: every weight is finite and at least 0, and one is positive.
    * `range_c5`: weighted sizes are in the range and ascend.

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
    /// One weight for each of weightSizes; null without weights.
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$weights);
  let builders = [
    AttrBuilder<(ins "int64_t":$min, "int64_t":$max,
                     CArg<"int64_t", "1">:$step), [{
      return $_get($_ctxt, min, max, step, ::llvm::ArrayRef<int64_t>(),
                   ::mlir::DenseF64ArrayAttr());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isOpen() const { return getMax() == ::mlir::ShapedType::kDynamic; }
    bool isFixed() const { return getMin() == getMax(); }
    /// Weights in the order of getWeightSizes().
    ::llvm::ArrayRef<double> getWeightValues() const {
      return getWeights() ? getWeights().asArrayRef() : ::llvm::ArrayRef<double>();
    }
    /// Whether the range holds the size.
    bool contains(int64_t size) const {
      return size >= getMin() && (isOpen() || size <= getMax()) &&
             (size - getMin()) % getStep() == 0;
    }
  }];
}

def UKernel_DeviceAttr : UKernel_Attr<"Device", "device"> {
  let summary = "description of a GPU";
  let description = [{
    The fields of the device's JSON file (docs/devices.md), so that IR between
    the stages does not depend on files. Whole numbers are `i64`, others `f64`,
    texts are strings, nested objects dictionaries.

    * `device_c1`: the name is not empty and equals the field `name`.

    ```mlir
    #ukernel.device<"h200", {name = "h200", sm_count = 132 : i64, l2_mib = 60.5 : f64}>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::DictionaryAttr":$fields);
  let assemblyFormat = "`<` $name `,` $fields `>`";
  let genVerifyDecl = 1;
}

def UKernel_FamilyAttr : UKernel_Attr<"Family", "family"> {
  let summary = "one or two block tiles with a schedule, which become one kernel";
  let description = [{
    `tiles` are the block tiles, in elements along each axis of the workload; two
    of them differ only in their heights along `axis`. The schedule is an
    attribute of a codegen path and holds for both. `split` is the split-K factor:
    the slices of the reduce axis that different blocks sum. `balanced` is the
    number of SMs over which the host balances the blocks of two tiles; without it
    partitions are exact if possible. `reduce` lists the reduce axes, if not axis 2.

    * `family_c1`: there are one or two tiles, of equally many sizes, at least 1
      each.
    * `family_c2`: the axis is one of the tiles' axes, and those of `reduce` are
      others of them.
    * `family_c3`: two tiles have ascending heights and are equal on the other
      axes.
    * `family_c4`: the schedule can compute the tiles.
    * `family_c5`: `split` is at least 1; with `balanced`, which is positive,
      there are two tiles.

    ```mlir
    #ukernel.family<#schedule, axis = 0,
      tiles = [[112, 64, 16], [128, 64, 16]]>
    ```
  }];
  let parameters = (ins
    "::ftuner::ukernel::ScheduleAttrInterface":$schedule,
    "int64_t":$axis,
    ArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$tiles,
    OptionalArrayRefParameter<"int64_t">:$reduce,
    DefaultValuedParameter<"int64_t", "1">:$split,
    DefaultValuedParameter<"int64_t", "0">:$balanced);
  let assemblyFormat = [{
    `<` custom<Schedule>($schedule) `,` `axis` `=` $axis `,` `tiles` `=` custom<Tiles>($tiles)
    `` custom<Partition>($reduce, $split, $balanced) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Number of axes of the tiles.
    size_t getRank() const { return getTiles().front().size(); }
    ::llvm::ArrayRef<int64_t> getTile(size_t part) const {
      return getTiles()[part].asArrayRef();
    }
  }];
}

def UKernel_ChoiceAttr : UKernel_Attr<"Choice", "choice"> {
  let summary = "a box of shapes and the family that serves it";
  let description = [{
    One range for each axis of the workload; `to` names a family by its index.

    * `choice_c1`: the box has at least one range.
    * `choice_c2`: the ranges have step 1 and no weights.
    * `choice_c3`: the index is at least 0.
    * `choice_c4`: bounds of the ranges are at most 2147483647.

    ```mlir
    #ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 3>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::ftuner::ukernel::RangeAttr">:$box,
    "int64_t":$family);
  let assemblyFormat = "`<` `[` $box `]` `to` $family `>`";
  let genVerifyDecl = 1;
}

def UKernel_RankingAttr : UKernel_Attr<"Ranking", "ranking"> {
  let summary = "the best programs of one shape";
  let description = [{
    Families by the score of their program for the shape, best first. They need
    not be families of the plan.

    * `ranking_c1`: there is at least one family, and one finite score for each.
    * `ranking_c2`: scores do not ascend.
    * `ranking_c3`: the shape has a size of at least 1 for each axis of every
      family.
    * `ranking_c4`: predicted times, in microseconds, are there for all families
      or none; each is finite and above 0.
    * `ranking_c5`: `measured` times, in microseconds, are there for all families
      or none; each is finite and at least 0, and 0 where the search did not have
      the program measured.

    ```mlir
    #ukernel.ranking<[53, 2304, 768],
      families = [#ukernel.family<#schedule,
                    axis = 0, tiles = [[32, 32, 8]]>],
      scores = [2.25], microseconds = [18.5]>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    ArrayRefParameter<"::ftuner::ukernel::FamilyAttr">:$families,
    /// One score for each family.
    "::mlir::DenseF64ArrayAttr":$scores,
    /// One predicted time for each family, or null.
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$microseconds,
    /// One measured time for each family, or null.
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$measured);
  let assemblyFormat = [{
    `<` `[` $shape `]` `,` `families` `=` `[` $families `]` `,`
    `scores` `=` custom<Scores>($scores) ``
    custom<Times>($microseconds, $measured) `>`
  }];
  let genVerifyDecl = 1;
}

def UKernel_PredictionsAttr : UKernel_Attr<"Predictions", "predictions"> {
  let summary = "predicted times of a plan";
  let description = [{
    For some shapes: the family that serves each, for aligned operands; the
    predicted time of its program; that time over the time of the fastest program
    that the search found, less 1 (regret), and the probability that the fastest
    is really at least as fast as the next one (confidence). Where the search had
    programs measured, also the measured time of the family's program.

    * `predictions_c1`: there is at least one shape, and as many families,
      microseconds, regrets and confidences as shapes.
    * `predictions_c2`: shapes have equally many sizes, at least one, all at
      least 1.
    * `predictions_c3`: families are at least 0.
    * `predictions_c4`: microseconds are finite and above 0, regrets finite and
      at least 0, confidences from 0.5 to 1.
    * `predictions_c5`: `measured` times, in microseconds, are there for all
      shapes or none; each is finite and at least 0, and 0 where the program was
      not measured.

    ```mlir
    #ukernel.predictions<shapes = [[1, 2304, 768], [53, 2304, 768]], families = [8, 11],
      microseconds = [11.1534, 18.1206], regrets = [0.0, 0.00125], confidences = [0.624, 0.511]>
    ```
  }];
  let parameters = (ins
    /// Sizes of one shape after the other.
    ArrayRefParameter<"int64_t">:$sizes,
    ArrayRefParameter<"int64_t">:$families,
    "::mlir::DenseF64ArrayAttr":$microseconds,
    "::mlir::DenseF64ArrayAttr":$regrets,
    "::mlir::DenseF64ArrayAttr":$confidences,
    /// One measured time for each shape, or null.
    OptionalParameter<"::mlir::DenseF64ArrayAttr">:$measured);
  let assemblyFormat = [{
    `<` custom<Shapes>($sizes, $families) `,`
    `microseconds` `=` custom<Figures>($microseconds) `,`
    `regrets` `=` custom<Figures>($regrets) `,`
    `confidences` `=` custom<Figures>($confidences)
    (`,` `measured` `=` custom<Figures>($measured)^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    size_t getNumShapes() const { return getFamilies().size(); }
    /// Sizes of a shape.
    size_t getRank() const { return getSizes().size() / getNumShapes(); }
    /// The sizes of one shape.
    ::llvm::ArrayRef<int64_t> getShape(size_t index) const {
      return getSizes().slice(index * getRank(), getRank());
    }
  }];
}

def UKernel_PlanAttr : UKernel_Attr<"Plan", "plan"> {
  let summary = "kernel families of a workload and which serves which shape";
  let description = [{
    Operands are aligned if the widest vectors of the families in `choices` and of
    `general` may access them. Aligned operands are served by the first of
    `choices` whose box holds the shape, or else by `general`. Other operands are
    served by the first such entry of `unaligned`, whose families take any
    alignment, or else by `unaligned_general`. `search` says who made the plan:
    `strategy`, `cost_model`, the `calibration` of the predicted times, the
    `measurer` of measured ones, the `paths`
    that it could take, and the gates that were open to it since their families
    were proven on the card (`proven_paths`).
    `statistics` are figures of the search, `predictions` are times, and
    `rankings` are the best programs of the shapes that it looked at, if
    requested. `unaligned` and these four may be absent.

    * `plan_c1`: there is at least one family, and all have equally many axes.
    * `plan_c2`: choices, those of `unaligned`, `general` and `unaligned_general` name
      families of the plan.
    * `plan_c3`: every box has one range, and every ranking and prediction one
      size, for each axis.
    * `plan_c4`: predictions name families of the plan.
    * `plan_c5`: `search` holds strings.
    * `plan_c6`: families of `unaligned` and `unaligned_general` take operands of any
      alignment.

    Whether a plan is legal depends on the workload and the device:
    `ukernel-plan-workloads` rejects illegal plans.

    ```mlir
    #ukernel.plan<
      families = [#ukernel.family<#schedule,
                    axis = 0, tiles = [[32, 32, 8]]>],
      choices = [#ukernel.choice<[#ukernel.range<1 to 64>, #ukernel.range<1 to ?>, #ukernel.range<1 to ?>] to 0>],
      general = 0, unaligned_general = 0, search = {cost_model = "latency", strategy = "ftuner"},
      statistics = {candidates = 12.0 : f64},
      predictions = <shapes = [[53, 2304, 768]], families = [0],
                     microseconds = [18.5], regrets = [0.0], confidences = [0.62]>>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"::ftuner::ukernel::FamilyAttr">:$families,
    OptionalArrayRefParameter<"::ftuner::ukernel::ChoiceAttr">:$choices,
    "int64_t":$general,
    OptionalArrayRefParameter<"::ftuner::ukernel::ChoiceAttr">:$unaligned,
    "int64_t":$unalignedGeneral,
    OptionalParameter<"::mlir::DictionaryAttr">:$search,
    OptionalParameter<"::mlir::DictionaryAttr">:$statistics,
    OptionalParameter<"::ftuner::ukernel::PredictionsAttr">:$predictions,
    OptionalArrayRefParameter<"::ftuner::ukernel::RankingAttr">:$rankings);
  let assemblyFormat = [{
    `<` `families` `=` `[` $families `]` `,` `choices` `=` custom<List>($choices) `,`
    `general` `=` $general `,` `` custom<Unaligned>($unaligned)
    `unaligned_general` `=` $unalignedGeneral ``
    custom<Findings>($search, $statistics, $predictions, $rankings) `>`
  }];
  let genVerifyDecl = 1;
}

/// Kind of the value that a host passes for a parameter of a kernel, in the
/// order of the kernel ABI (docs/abi.md); FTuner/Kernel/KernelSignature.h says
/// more.
def UKernel_ParameterKind : I32EnumAttr<"ParameterKind", "parameter of a kernel", [
    I32EnumAttrCase<"Pointer", 0, "pointer">,
    I32EnumAttrCase<"Size", 1, "size">,
    I32EnumAttrCase<"Stride", 2, "stride">,
    I32EnumAttrCase<"Scalar", 3, "scalar">,
    I32EnumAttrCase<"ScalarLow", 4, "scalar_low">,
    I32EnumAttrCase<"ScalarHigh", 5, "scalar_high">,
    I32EnumAttrCase<"Part", 6, "part">,
    I32EnumAttrCase<"TensorMap", 7, "tensor_map">]> {
  let cppNamespace = "::ftuner::ukernel";
  let genSpecializedAttr = 0;
}

def UKernel_ParameterAccess : I32EnumAttr<"ParameterAccess", "access of a kernel to a buffer", [
    I32EnumAttrCase<"Read", 0, "read">,
    I32EnumAttrCase<"Write", 1, "write">,
    I32EnumAttrCase<"ReadWrite", 2, "readwrite">]> {
  let cppNamespace = "::ftuner::ukernel";
  let genSpecializedAttr = 0;
}

def UKernel_UseAttr : UKernel_Attr<"Use", "use"> {
  let summary = "a workload that a kernel computes, and the family that it is of";
  let description = [{
    The workload is named as in the manifest; a kernel that was built without
    one has none.

    ```mlir
    #ukernel.use<family = <#schedule, axis = 0, tiles = [[32, 32, 8]]>,
      workload = "dense_0">
    ```
  }];
  let parameters = (ins
    "::ftuner::ukernel::FamilyAttr":$family,
    OptionalParameter<"::mlir::StringAttr">:$workload);
  let assemblyFormat = [{
    `<` `family` `=` $family (`,` `workload` `=` $workload^)? `>`
  }];
}

def UKernel_TensorMapAttr : UKernel_Attr<"TensorMap", "tensor_map"> {
  let summary = "how a host encodes a tensor map that a kernel takes";
  let description = [{
    `pointer`, `sizes` and `strides` are of the tensor in global memory, `box`
    is what one copy moves. Dimensions go from the innermost, which is
    contiguous, outwards; `strides`, in elements, begin with the second one. A
    string is the name of the kernel's parameter that holds the value. The
    elements are of the parameter's `type`, or of f32 where that is tf32, to which
    copies round them; elements beyond the tensor become zeros, and nothing is
    interleaved. docs/abi.md says how to encode it. A number of `fit_below` that
    is not 0 fits the box to a tensor that has fewer elements along that
    dimension: it has as many, rounded up to a multiple of 8.

    * `tensor_map_c1`: sizes and strides are names or numbers that are not
      negative, and there is one stride less than sizes.
    * `tensor_map_c2`: the box has 1 to 5 dimensions, as many as there are sizes,
      of 1 to 256 elements each.
    * `tensor_map_c3`: the swizzle is of 32, 64 or 128 bytes, or 0 for none, and
      the promotion in L2 of 64, 128 or 256 bytes, or 0 for none.
    * `tensor_map_c4`: `fit_below` has a number for each dimension, or is left
      out; each is a multiple of 8 of at most 256.

    ```mlir
    #ukernel.tensor_map<pointer = "lhs", sizes = ["k", "m", 12],
      strides = ["lhs_stride1", "lhs_stride0"], box = [64, 128, 1],
      swizzle_bytes = 128, l2_promotion_bytes = 128, fit_below = [0, 128, 0]>
    ```
  }];
  let parameters = (ins
    StringRefParameter<>:$pointer,
    "::mlir::ArrayAttr":$sizes,
    "::mlir::ArrayAttr":$strides,
    ArrayRefParameter<"int64_t">:$box,
    "int64_t":$swizzleBytes,
    "int64_t":$l2PromotionBytes,
    OptionalArrayRefParameter<"int64_t">:$fitBelow);
  let extraClassDeclaration = [{
    ::ftuner::TensorMapBox toBox() const;
  }];
  let assemblyFormat = [{
    `<` `pointer` `=` $pointer `,` `sizes` `=` $sizes `,` `strides` `=` $strides `,`
    `box` `=` `[` $box `]` `,` `swizzle_bytes` `=` $swizzleBytes `,`
    `l2_promotion_bytes` `=` $l2PromotionBytes
    (`,` `fit_below` `=` `[` $fitBelow^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

def UKernel_EntryAttr : UKernel_Attr<"Entry", "entry"> {
  let summary = "launch descriptor of an emitted kernel";
  let description = [{
    What a host needs to launch the kernel: threads of a block, dynamic shared
    memory in bytes, alignment in bytes that every pointer and row must have,
    and the parameters in order: `pointer`; `size`, `stride` and `part` as i32;
    `scalar` by value, and a scalar of 64 bits as two i32, `scalar_low` and
    `scalar_high`, whose `type` is that of the whole; `tensor_map`, whose `type`
    is that of the elements, as the 128 bytes that `map` encodes to. `uses` are the workloads that
    the kernel serves, each with its family; a fallback kernel has none.

    * `entry_c1`: there are 1 to 1024 threads.
    * `entry_c2`: the shared memory is not negative.
    * `entry_c3`: the alignment is a power of two.
    * `entry_c4`: every parameter is a dictionary with a string `kind` that is
      one of `pointer`, `size`, `stride`, `scalar`, `scalar_low`, `scalar_high`,
      `tensor_map` and `part`; `name` is a string, `type` a type and `access` one of `read`,
      `write` and `readwrite`, each where it is there.
    * `entry_c5`: after each `scalar_low`, and nowhere else, is a `scalar_high`.
    * `entry_c6`: each `tensor_map`, and no other parameter, has a `map` that is a
      `#ukernel.tensor_map`. It names a `pointer` of the same `type` (of f32 for
      tf32), a `size` for each size and a `stride` for each stride that is a name.
      Its elements are of 8, 16, 32 or 64 bits, rows of its box of a multiple of
      16 bytes and, with a swizzle, at most that of the swizzle.

    ```mlir
    #ukernel.entry<threads = 256, shared_memory_bytes = 49152, alignment = 16,
      parameters = [{kind = "pointer", name = "lhs", type = f32, access = "read"},
                    {kind = "size", name = "m", type = i32} ]>
    ```
  }];
  let parameters = (ins
    "int64_t":$threads,
    "int64_t":$sharedMemoryBytes,
    "int64_t":$alignment,
    /// One dictionary for each parameter: kind, name, type, for pointers access,
    /// for tensor maps map.
    "::mlir::ArrayAttr":$parameters,
    OptionalArrayRefParameter<"::ftuner::ukernel::UseAttr">:$uses);
  let assemblyFormat = [{
    `<` `threads` `=` $threads `,` `shared_memory_bytes` `=` $sharedMemoryBytes `,`
    `alignment` `=` $alignment `,` `parameters` `=` $parameters
    (`,` `uses` `=` `[` $uses^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
}

#endif
