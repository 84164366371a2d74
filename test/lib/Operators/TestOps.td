//===- TestOps.td - Operators for tests --------------------*- tablegen -*-===//
#ifndef FTUNER_TEST_LIB_OPERATORS_TESTOPS
#define FTUNER_TEST_LIB_OPERATORS_TESTOPS

include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Test_Dialect : Dialect {
  let name = "test";
  let cppNamespace = "::ftuner::test";
  let summary = "Operators beside contractions";
}

class Test_OperatorOp<string mnemonic> : Op<Test_Dialect, mnemonic, [
    IsolatedFromAbove, SingleBlock, DestinationStyleOpInterface,
    UKernel_OperatorOpInterface, UKernel_ReductionOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$combiner);
  let hasRegionVerifier = 1;
  code commonDeclarations = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::StringRef getAxisName(unsigned axis);
    ::ftuner::OperandRole getOperandRole(unsigned number);
  }];
}

def Test_RowSumOp : Test_OperatorOp<"row_sum"> {
  let summary = "sums up each row of a matrix";
  let description = [{
    `out[m] = init + sum over k of input[m, k]`; without init the sum starts
    from the output.

    ```mlir
    %r = test.row_sum ins(%x : tensor<?x?xf32>) init(%zero : f32)
      outs(%o : tensor<?xf32>) {
    ^bb0(%a: f32, %c: f32):
      %s = arith.addf %c, %a : f32
      ukernel.yield %s : f32
    } -> tensor<?xf32>
    ```
  }];
  let arguments = (ins AnyShaped:$input, Optional<AnyType>:$init, AnyShaped:$output,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)? `ins` `(` $input `:` type($input) `)`
    (`init` `(` $init^ `:` type($init) `)`)? `outs` `(` $output `:` type($output) `)`
    (`ranges` `=` $ranges^)? $combiner attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = commonDeclarations # [{
    ::mlir::ArrayAttr getIndexingMaps();
  }];
}

def Test_ConvOp : Test_OperatorOp<"conv"> {
  let summary = "a convolution, for windows";
  let description = [{
    `out[m] = out[m] + sum over k of input[position of m and k] · weight[k]`,
    with maps for input, weight and output. There may be more axes: space axes
    are those that the output has, named m, n, b0 and b1, and reduce axes the
    others, named k and l. `fused` gives the axis of each loop of fused ones,
    which maps have as dimensions behind the axes.

    ```mlir
    %r = test.conv ins(%x, %w : tensor<?xf16>, tensor<3xf16>) outs(%o : tensor<?xf32>)
      maps = [affine_map<(m, k) -> (2 * m + k)>, affine_map<(m, k) -> (k)>,
              affine_map<(m, k) -> (m)>] {
    ^bb0(%a: f16, %b: f16, %c: f32):
      …
    } -> tensor<?xf32>
    ```
  }];
  let arguments = (ins AnyShaped:$input, AnyShaped:$weight, AnyShaped:$output,
                       AffineMapArrayAttr:$indexing_maps,
                       OptionalAttr<DenseI64ArrayAttr>:$fused,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)?
    `ins` `(` $input `,` $weight `:` type($input) `,` type($weight) `)`
    `outs` `(` $output `:` type($output) `)` `maps` `=` $indexing_maps
    (`fused` `=` $fused^)? (`ranges` `=` $ranges^)? $combiner attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = commonDeclarations # [{
    ::llvm::SmallVector<::ftuner::ukernel::FusedLoop> getFusedLoops();
  }];
}

def Test_RowsOp : Op<Test_Dialect, "rows", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    DestinationStyleOpInterface,
    UKernel_OperatorOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a reduction of each row, and what follows from it";
  let description = [{
    The last dimension of the maps is the axis `r`, along which a row lies; the
    others, `m`, `n` and so on, number the rows. Of each row,

      * `reduce` takes an element of each input and the state, which starts from
        `identities`, and yields the next state;
      * `merge` takes the states of two parts of the row and yields that of both;
      * `finish` takes the state and yields the row's values. The outputs without
        `r` are the first of them;
      * `map` takes an element of each input and the row's values, and yields an
        element of each output with `r`.

    A softmax has a maximum and a sum as its state; a layer norm a count, a mean
    and a sum of squared distances, and its mean and its scale as outputs.

    ```mlir
    %y = test.rows ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>)
      maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m, r)>]
      identities = [0.0 : f32]
      reduce {
      ^bb0(%a: f32, %s: f32):
        %t = arith.addf %s, %a : f32
        ukernel.yield %t : f32
      } merge "sum" {
      ^bb0(%s: f32, %t: f32):
        %u = arith.addf %s, %t : f32
        ukernel.yield %u : f32
      } finish {
      ^bb0(%s: f32):
        ukernel.yield %s : f32
      } map {
      ^bb0(%a: f32, %s: f32):
        %b = arith.divf %a, %s : f32
        ukernel.yield %b : f32
      } -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyShaped>:$inputs, Variadic<AnyShaped>:$outputs,
                       AffineMapArrayAttr:$indexing_maps, ArrayAttr:$identities,
                       StrAttr:$merge_rule,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$reduce, SizedRegion<1>:$merge,
                        SizedRegion<1>:$finish, SizedRegion<1>:$map);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)? `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $outputs `:` type($outputs) `)` `maps` `=` $indexing_maps
    `identities` `=` $identities (`ranges` `=` $ranges^)?
    `reduce` $reduce `merge` $merge_rule $merge `finish` $finish `map` $map
    attr-dict (`->` type($results)^)?
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::StringRef getAxisName(unsigned axis);
    ::ftuner::OperandRole getOperandRole(unsigned number);
    void describe(::ftuner::Workload &workload);
    bool readsOutput() { return false; }
    bool supportsSlices() { return true; }
    ::llvm::SmallVector<::ftuner::ukernel::SliceState> getSliceStates();
    ::mlir::Operation *buildSlice(::mlir::OpBuilder &builder, ::mlir::ValueRange states);
    ::llvm::SmallVector<::mlir::Operation *> buildMerge(
        ::mlir::OpBuilder &builder, int64_t numSlices, ::mlir::ValueRange states);
    /// The axis along which a row lies, the last one.
    unsigned getRowAxis() { return getIndexingMapsArray().front().getNumDims() - 1; }
    /// Whether an output has an element for each of a row, and not one alone.
    bool isAlongRow(::mlir::OpOperand &output) {
      return getMatchingIndexingMap(&output).isFunctionOfDim(getRowAxis());
    }
    /// The outputs that are or are not so, by their numbers as operands.
    ::llvm::SmallVector<unsigned, 2> getOutputNumbers(bool alongRow);
    ::llvm::SmallVector<::mlir::Type, 3> getStateTypes();
  }];
}

def Test_ConvolutionOp : Op<Test_Dialect, "convolution", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    DestinationStyleOpInterface,
    UKernel_OperatorOpInterface, UKernel_ReductionOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a convolution of images as a product";
  let description = [{
    `out[image, p, q, n] = epilogue(init + sum over r, s and c of
    image[image, p · stride + r · dilation − padding, …, c] · filter[n, r, s, c],
    bias[n])`, with zeros around the images: a product whose axis m is fused of
    (image, p, q), and k of (r, s, c). `hwcf`: the filter is `[r, s, c, n]`.
    Without init sums start from the output.

    ```mlir
    %y = test.convolution ins(%x, %w : tensor<?x28x28x32xf16>, tensor<64x3x3x32xf16>)
      init(%zero : f32) outs(%o : tensor<?x14x14x64xf32>)
      strides = [2, 2] dilations = [1, 1] padding = [1, 1] {
      ^bb0(%a: f16, %b: f16, %c: f32):
        %u = arith.extf %a : f16 to f32
        %v = arith.extf %b : f16 to f32
        %p = arith.mulf %u, %v : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } -> tensor<?x14x14x64xf32>
    ```
  }];
  let arguments = (ins AnyShaped:$image, AnyShaped:$filter, Optional<AnyType>:$init,
                       Optional<AnyShaped>:$bias, AnyShaped:$output,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$padding, UnitAttr:$hwcf,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let regions = (region SizedRegion<1>:$combiner, VariadicRegion<SizedRegion<1>>:$epilogues);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)? `ins` `(` $image `,` $filter `:` type($image) `,` type($filter) `)`
    (`init` `(` $init^ `:` type($init) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    `outs` `(` $output `:` type($output) `)`
    `strides` `=` $strides `dilations` `=` $dilations `padding` `=` $padding (`hwcf` $hwcf^)?
    (`ranges` `=` $ranges^)? $combiner (`epilogue` $epilogues^)?
    attr-dict (`->` type($result)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
    ::mlir::ArrayAttr getIndexingMaps();
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::StringRef getAxisName(unsigned axis);
    ::llvm::SmallVector<::ftuner::ukernel::FusedLoop> getFusedLoops();
    ::ftuner::OperandRole getOperandRole(unsigned number);
    std::optional<::ftuner::Identity> getOutside(unsigned number);
    bool hasEpilogue() { return !getEpilogues().empty(); }
    ::mlir::Region &getEpilogue() { return getEpilogues().front(); }
    bool supportsSlices() { return true; }
    ::mlir::Operation *buildSlice(::mlir::OpBuilder &builder, ::mlir::ValueRange states);
  }];
}

#endif
