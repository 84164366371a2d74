//===- UKernelOps.td - Operations ---------------------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELOPS
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELOPS

include "FTuner/Dialect/UKernel/IR/UKernelAttributes.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class UKernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<UKernel_Dialect, mnemonic, traits>;

def UKernel_PlanOp : UKernel_Op<"plan", [Symbol]> {
  let summary = "the answer of a search for one workload";
  let arguments = (ins SymbolNameAttr:$sym_name, UKernel_PlanAttr:$plan);
  let assemblyFormat = "$sym_name $plan attr-dict";
}

def UKernel_WorkloadOp : UKernel_Op<"workload", [
    AttrSizedOperandSegments, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface>]> {
  let summary = "a contraction with its fused epilogue";
  let description = [{
    Computes, for every point of the space axes,
    `out = epilogue(init + sum over the reduce axes of lhs · rhs, extras…)`.
    The iteration space is (m, n, k); the indexing maps have these three
    dimensions and are listed for lhs, rhs, init (if it is a shaped value),
    every extra, and out. A scalar extra or init has no dimension: its map is
    `(m, n, k) -> ()`. Without `init` the accumulator starts from the value of
    the output operand.

    The first region holds the scalar contraction (lhs, rhs, accumulator); the
    second, if present, the scalar epilogue (accumulator, extras…). On tensors
    the op returns the output; on memrefs it returns nothing.

    ```mlir
    %r = ukernel.workload plan(@plan_0)
      ins(%A, %B : tensor<?x768xf32>, tensor<768x2304xf32>) init(%zero : f32)
      extras(%bias : tensor<2304xf32>) outs(%O : tensor<?x2304xf32>)
      maps = [affine_map<(m, n, k) -> (m, k)>, …]
      contract { ^bb0(%a: f32, %b: f32, %c: f32): … ukernel.yield %s : f32 }
      epilogue { ^bb0(%acc: f32, %x: f32): … ukernel.yield %y : f32 }
      -> tensor<?x2304xf32>
    ```
  }];
  let arguments = (ins
    AnyShaped:$lhs, AnyShaped:$rhs,
    Optional<AnyType>:$init,
    Variadic<AnyType>:$extras,
    AnyShaped:$output,
    AffineMapArrayAttr:$indexing_maps,
    /// Ranges of m, n and k.
    OptionalAttr<ArrayAttr>:$ranges,
    OptionalAttr<FlatSymbolRefAttr>:$plan);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$contract, MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)?
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    (`init` `(` $init^ `:` type($init) `)`)?
    (`extras` `(` $extras^ `:` type($extras) `)`)?
    `outs` `(` $output `:` type($output) `)`
    `maps` `=` $indexing_maps
    (`ranges` `=` $ranges^)?
    `contract` $contract
    (`epilogue` $epilogue^)?
    attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
    ::mlir::AffineMap getLhsMap();
    ::mlir::AffineMap getRhsMap();
    /// The map of a shaped init; null without one.
    ::mlir::AffineMap getInitMap();
    ::mlir::AffineMap getExtraMap(unsigned index);
    ::mlir::AffineMap getOutputMap();
    /// Static extents of m, n, k; ShapedType::kDynamic where unknown.
    ::llvm::SmallVector<int64_t, 3> getStaticExtents();
    /// The (operand, dimension) that defines the extent of an axis.
    std::pair<::mlir::Value, int64_t> getExtentSource(unsigned axis);
    bool hasEpilogue() { return !getEpilogue().empty(); }
  }];
  let hasVerifier = 1;
}

def UKernel_YieldOp : UKernel_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["WorkloadOp"]>]> {
  let summary = "value of a workload's region";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def UKernel_KernelOp : UKernel_Op<"kernel", [
    Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
    HasParent<"::mlir::ModuleOp">]> {
  let summary = "one kernel family of one workload, on memrefs";
  let description = [{
    The block arguments are the workload's operands in order (lhs, rhs, init,
    extras, output), then the sizes m, n, k of type index, then the number of
    blocks of the first part, of type index. The body is one `ukernel.combine`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, AnyAttr:$path, OptionalAttr<StrAttr>:$workload);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Operands of the workload, as block arguments.
    ::mlir::ValueRange getOperandArguments();
    /// m, n, k.
    ::mlir::ValueRange getSizeArguments();
    ::mlir::Value getPartArgument();
    ::ftuner::ukernel::CombineOp getCombine();
  }];
}

def UKernel_CombineOp : UKernel_Op<"combine", [SingleBlock, NoTerminator, HasParent<"KernelOp">]> {
  let summary = "covers an axis with the blocks of one or two uKernels";
  let description = [{
    The first `count` blocks along `axis` compute the first tile, the others the
    second. With one tile, all blocks compute it.

    ```mlir
    ukernel.combine axis 0 [%n1 x 112, 128] { ukernel.tile … ukernel.tile … }
    ukernel.combine axis 0 [128] { ukernel.tile … }
    ```
  }];
  let arguments = (ins I64Attr:$axis, Optional<Index>:$count, DenseI64ArrayAttr:$heights);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `axis` $axis custom<Parts>($count, $heights) $body attr-dict
  }];
  let hasVerifier = 1;
}

def UKernel_TileOp : UKernel_Op<"tile", [SingleBlock, NoTerminator, HasParent<"CombineOp">]> {
  let summary = "what one thread block computes";
  let description = [{
    Holds the workload on memrefs, its operands read through `ukernel.pad` where
    the tile may reach beyond them.
  }];
  let arguments = (ins UKernel_UKernelAttr:$ukernel);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$ukernel $body attr-dict";
  let hasVerifier = 1;
}

def UKernel_PadOp : UKernel_Op<"pad", [Pure, SameOperandsAndResultType]> {
  let summary = "local padding: zero fill between global and shared memory";
  let description = [{
    Views the source as if every dimension reached up to the next multiple of
    its tile size, the elements beyond being zero. A tile size of 1 means that
    the dimension is exact. Folds to its source where every dimension is exact.

    ```mlir
    %p = ukernel.pad %A to [112, 16] : memref<?x768xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, DenseI64ArrayAttr:$tile);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$source `to` $tile attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def UKernel_LaunchOp : UKernel_Op<"launch", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel on the device";
  let description = [{
    `kernel` names a `ukernel.kernel`, or, once it is emitted, the function in
    its `gpu.module` (`@k::@k`). Buffers and scalars are the workload's operands
    in order. Nothing is launched when `blocks` is 0. The emitted kernel takes
    the buffers' pointers, then sizes, strides and parts as i32, then scalars.

    ```mlir
    ukernel.launch @k4 blocks(%grid) args(%A, %B, %bias, %O : …) sizes(%m, %n, %k) parts(%n1)
    ```
  }];
  let arguments = (ins
    SymbolRefAttr:$kernel,
    Index:$blocks,
    Variadic<AnyType>:$args,
    Variadic<Index>:$sizes,
    Variadic<Index>:$strides,
    Variadic<Index>:$parts);
  let assemblyFormat = [{
    $kernel `blocks` `(` $blocks `)`
    `args` `(` ($args^ `:` type($args))? `)`
    (`sizes` `(` $sizes^ `)`)? (`strides` `(` $strides^ `)`)? (`parts` `(` $parts^ `)`)?
    attr-dict
  }];
  let hasVerifier = 1;
}

#endif
