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
    UKernel_OperatorOpInterface,
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
    others, named k and l.

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
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)?
    `ins` `(` $input `,` $weight `:` type($input) `,` type($weight) `)`
    `outs` `(` $output `:` type($output) `)` `maps` `=` $indexing_maps
    (`ranges` `=` $ranges^)? $combiner attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = commonDeclarations;
}

#endif
