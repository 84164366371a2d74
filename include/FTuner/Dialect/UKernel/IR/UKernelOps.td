//===- UKernelOps.td - Operations ---------------------------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELOPS
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELOPS

include "FTuner/Dialect/UKernel/IR/ScheduleAttrInterface.td"
include "FTuner/Dialect/UKernel/IR/UKernelAttributes.td"
include "FTuner/Dialect/UKernel/IR/UKernelDialect.td"
include "FTuner/Dialect/UKernel/IR/UKernelInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class UKernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<UKernel_Dialect, mnemonic, traits>;

def UKernel_PlanOp : UKernel_Op<"plan", [
    Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the answer of a search for one workload";
  let description = [{
    A symbol that workloads refer to. Equal workloads share one plan. A plan
    with families that run on the device's exact architecture alone names the
    plan for devices of others, `portable`.

    * `plan_c7`: `portable` names another `ukernel.plan` of as many axes, which
      has no `portable` itself.

    ```mlir
    ukernel.plan @plan_0 <
      families = [<#schedule, axis = 0,
                   tiles = [[32, 32, 8]]>],
      choices = [], general = 0, unaligned_general = 0>
      portable(@plan_0_portable)
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UKernel_PlanAttr:$plan,
                       OptionalAttr<FlatSymbolRefAttr>:$portable);
  let assemblyFormat = [{
    $sym_name $plan (`portable` `(` $portable^ `)`)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
                                 "::ftuner::ukernel::PlanAttr":$plan), [{
    build($_builder, $_state, name, plan, /*portable=*/nullptr);
  }]>];
}

def UKernel_WorkloadOp : UKernel_Op<"workload", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<IndexingMapOpInterface,
      ["getIndexingMapsArray", "getMatchingIndexingMap"]>,
    UKernel_OperatorOpInterface, UKernel_ReductionOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a contraction with its fused epilogue";
  let description = [{
    Computes, for every point of the space axes,
    `out = epilogue(init + sum over the reduce axes of lhs · rhs, extras…)`.
    What becomes of an element of lhs or of rhs before it is multiplied, its
    prologue, is part of the contraction, and may read `inputs`.
    The iteration space is (m, n, k) and up to three batch axes (b0, b1, b2)
    behind them, one matrix product for each of their points. The indexing maps
    have these dimensions and are listed for lhs, rhs, every input, init (if it
    is a shaped value), every extra, and out. An operand may lack a batch axis:
    all products along it share the operand. A scalar input or extra has no
    dimension: its map is `(m, n, k) -> ()`; a scalar init has no map. Without `init` the accumulator
    starts from the value of the output operand. What it starts from may be of a
    narrower float type, and is extended.

    An axis may be fused of several loops, and factors may be read by windows
    over loops: a convolution is a product whose lhs or rhs is never written out
    as a matrix (an implicit GEMM). `fused` lists the axis of each loop, in the
    order of axes, of one axis the fastest loop last; the maps then have these
    loops as dimensions behind the axes, and name them in place of the fused
    axes. The loops of m are called m0, m1 and so on. A position along a
    dimension of a factor may be a sum of multiples of loops and a constant.
    `padded` says that such a position may lie outside of the factor, where the
    factor counts as zero; without it, all positions lie inside.

    The first region holds the scalar contraction (lhs, rhs, inputs…,
    accumulator); the second, if present, the scalar epilogue (accumulator, extras…). On tensors
    the op returns the output; on memrefs it returns nothing. Where several
    operands have the same axis, its extent is the same at run time. `ranges`
    declares the sizes of the axes that are expected; others are right too.

    * `workload_c1`: lhs, rhs and output are ranked; all shaped operands are
      tensors, or all are memrefs.
    * `workload_c2`: there is one result on tensors, none on memrefs.
    * `workload_c3`: there is one map for each operand but a scalar init.
    * `workload_c4`: maps are of the same dimensions: the axes m, n, k and up to
      three batch axes, then the loops of fused ones. They have one result for
      each dimension of their operand, which is one dimension alone, each at
      most once, or, in lhs and rhs, a sum of multiples of them.
    * `workload_c5`: of m, n and k, lhs has m and k, rhs has k and n, out has m
      and n; inputs do not have both m and n, init and extras have no k. Out has every batch axis, and so has lhs
      or rhs.
    * `workload_c6`: static sizes of one axis are equal.
    * `workload_c7`: the contraction takes an element of lhs, of rhs and of each
      input, and the accumulator, and yields the accumulator's type.
    * `workload_c8`: the epilogue takes the accumulator and an element of each
      extra, and yields an element of the output. Without epilogue there are no
      extras, and the accumulator is an element of the output.
    * `workload_c9`: `plan` names a `ukernel.plan` of as many axes.
    * `workload_c10`: `precision`, which allows kernels to round factors to this
      type before they multiply them, is tf32, and the contraction sums products
      of f32, whatever their factors are cast from.
    * `workload_c11`: `truncated`, which allows them to ignore the bits that the
      type lacks instead, stands behind a `precision`.
    * `workload_c12`: `packed`, which says that elements of rhs lie in memory in
      the [packed order](../tensor-cores.md#packed-weights), wherever their
      indices would be, stands where rhs has no axes but k and n, both static,
      of whole steps of 128 bytes along k and of eights along n, and elements of
      1, 2 or 4 bytes.
    * `workload_c13`: integers of tensors fill their bytes in memory: they have
      8, 16, 32 or 64 bits, or are booleans, a byte each.
    * `workload_c14`: `padded` stands where a position along lhs or rhs is a sum.

    ```mlir
    %r = ukernel.workload plan(@plan_0)
      ins(%A, %B : tensor<?x768xf32>, tensor<768x2304xf32>) init(%zero : f32)
      extras(%bias : tensor<2304xf32>) outs(%O : tensor<?x2304xf32>)
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
              affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>]
      ranges = [#ukernel.range<1 to 128>, #ukernel.range<2304 to 2304>,
                #ukernel.range<768 to 768>]
      contract {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } epilogue {
      ^bb0(%acc: f32, %x: f32):
        %y = arith.addf %acc, %x : f32
        ukernel.yield %y : f32
      } -> tensor<?x2304xf32>

    // Factors in f16, the accumulator in f32: the epilogue rounds it.
    %r = ukernel.workload
      ins(%A, %B : tensor<?x768xf16>, tensor<768x2304xf16>) init(%zero : f32)
      outs(%O : tensor<?x2304xf16>)
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
              affine_map<(m, n, k) -> (m, n)>]
      contract {
      ^bb0(%a: f16, %b: f16, %c: f32):
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %b : f16 to f32
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %c, %p : f32
        ukernel.yield %s : f32
      } epilogue {
      ^bb0(%acc: f32):
        %y = arith.truncf %acc : f32 to f16
        ukernel.yield %y : f16
      } -> tensor<?x2304xf16>

    // Weights of 8 bits with a scale for each column, which f16 rounds.
    %r = ukernel.workload
      ins(%A, %B : tensor<?x768xf16>, tensor<768x2304xi8>)
      inputs(%scale : tensor<2304xf16>) init(%zero : f32)
      outs(%O : tensor<?x2304xf32>)
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
              affine_map<(m, n, k) -> (n)>, affine_map<(m, n, k) -> (m, n)>]
      contract {
      ^bb0(%a: f16, %b: i8, %s: f16, %c: f32):
        %w = arith.sitofp %b : i8 to f16
        %v = arith.mulf %w, %s : f16
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %v : f16 to f32
        %p = arith.mulf %x, %y : f32
        %t = arith.addf %c, %p : f32
        ukernel.yield %t : f32
      } -> tensor<?x2304xf32>

    // Queries times keys of attention, heads inside: [B, S, H, D] · [B, T, H, D].
    %r = ukernel.workload
      ins(%Q, %K : tensor<?x?x12x64xf32>, tensor<?x?x12x64xf32>) init(%zero : f32)
      outs(%O : tensor<?x12x?x?xf32>)
      maps = [affine_map<(m, n, k, b0, b1) -> (b0, m, b1, k)>,
              affine_map<(m, n, k, b0, b1) -> (b0, n, b1, k)>,
              affine_map<(m, n, k, b0, b1) -> (b0, b1, m, n)>]
      contract { … } -> tensor<?x12x?x?xf32>

    // A convolution of 3 x 3 taps with a padding of 1 on every side: m is fused
    // of images, rows and columns, k of the taps and the channels.
    #x = affine_map<(m, n, k, m0, m1, m2, k0, k1, k2)
                    -> (m0, m1 + k0 - 1, m2 + k1 - 1, k2)>
    %r = ukernel.workload
      ins(%x, %w : tensor<?x?x?x64xf16>, tensor<3x3x64x128xf16>) init(%zero : f32)
      outs(%y : tensor<?x?x?x128xf32>)
      maps = [#x, affine_map<(m, n, k, m0, m1, m2, k0, k1, k2) -> (k0, k1, k2, n)>,
              affine_map<(m, n, k, m0, m1, m2, k0, k1, k2) -> (m0, m1, m2, n)>]
      fused = [0, 0, 0, 2, 2, 2] padded
      contract { … } -> tensor<?x?x?x128xf32>
    ```
  }];
  let arguments = (ins
    AnyShaped:$lhs, AnyShaped:$rhs,
    /// Operands that prologues read.
    Variadic<AnyType>:$inputs,
    Optional<AnyType>:$init,
    Variadic<AnyType>:$extras,
    AnyShaped:$output,
    AffineMapArrayAttr:$indexing_maps,
    /// The axis of each loop of fused axes.
    OptionalAttr<DenseI64ArrayAttr>:$fused,
    /// Factors are zero outside of their ends.
    UnitAttr:$padded,
    /// One range for each axis.
    OptionalAttr<ArrayAttr>:$ranges,
    OptionalAttr<FlatSymbolRefAttr>:$plan,
    /// tf32, or none for the program's own.
    OptionalAttr<TypeAttr>:$precision,
    UnitAttr:$truncated,
    /// Elements of rhs lie in the order of PackedOrder.h.
    UnitAttr:$packed);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  // Zero or one epilogue; upstream's utilities cannot clone an empty region.
  let regions = (region SizedRegion<1>:$contract, VariadicRegion<SizedRegion<1>>:$epilogues);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)?
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    (`inputs` `(` $inputs^ `:` type($inputs) `)`)?
    (`init` `(` $init^ `:` type($init) `)`)?
    (`extras` `(` $extras^ `:` type($extras) `)`)?
    `outs` `(` $output `:` type($output) `)`
    `maps` `=` $indexing_maps
    (`fused` `=` $fused^)?
    (`padded` $padded^)?
    (`ranges` `=` $ranges^)?
    (`precision` `=` $precision^)?
    (`truncated` $truncated^)?
    (`packed` $packed^)?
    `contract` $contract
    (`epilogue` $epilogues^)?
    attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    /// The axes of the iteration space, as dimensions of the indexing maps: the
    /// axes of a matrix product, then the batch axes.
    static constexpr unsigned kM = 0, kN = 1, kK = 2, kNumProductAxes = 3,
                              kMaxBatchAxes = 3;
    /// Number of axes, kNumProductAxes to kNumProductAxes + kMaxBatchAxes.
    unsigned getNumAxes() {
      return getOutputMap().getNumDims() - getFused().value_or(::llvm::ArrayRef<int64_t>()).size();
    }
    static bool isBatchAxis(unsigned axis) { return axis >= kNumProductAxes; }
    /// Whether tensors of the type, or of such elements, may be operands
    /// (workload_c13).
    static bool isOperandType(::mlir::Type type);
    /// "m", "n", "k", "b0", "b1" or "b2".
    static ::llvm::StringRef getAxisName(unsigned axis);

    // OperatorOpInterface
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::SmallVector<::ftuner::ukernel::FusedLoop> getFusedLoops();
    ::ftuner::OperandRole getOperandRole(unsigned number);
    std::optional<::ftuner::Identity> getOutside(unsigned number);
    ::mlir::Region &getCombiner() { return getContract(); }
    void describe(::ftuner::Workload &workload);
    bool supportsSlices() { return true; }
    ::mlir::Operation *buildSlice(::mlir::OpBuilder &builder, ::mlir::ValueRange states);

    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }
    ::mlir::AffineMap getLhsMap();
    ::mlir::AffineMap getRhsMap();
    ::mlir::AffineMap getInputMap(unsigned index);
    /// The map of a shaped init; null for a scalar one or none.
    ::mlir::AffineMap getInitMap();
    ::mlir::AffineMap getExtraMap(unsigned index);
    ::mlir::AffineMap getOutputMap();
    /// The map of an operand by its number; null for a scalar init.
    ::mlir::AffineMap getMapOf(unsigned operandNumber);
    bool hasEpilogue() { return !getEpilogues().empty(); }
    /// The region of the epilogue; requires hasEpilogue().
    ::mlir::Region &getEpilogue() { return getEpilogues().front(); }
    /// The order of an rhs of two static dimensions, if it is or were packed.
    ::ftuner::PackedOrder getPackedOrder();
    /// Whether an operand is a tensor or memref, and not a scalar.
    static bool isShaped(::mlir::Type type) {
      return ::mlir::isa<::mlir::ShapedType>(type);
    }
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def UKernel_RowReductionOp : UKernel_Op<"row_reduction", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DestinationStyleOpInterface, UKernel_OperatorOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "reductions of rows, one after the other, and what follows from them";
  let description = [{
    Softmax, norms, sums and extremes of rows. The iteration space is rows, by up
    to four space axes (m, n, b0, b1), and the elements of a row, along the last
    axis r. Each reduction of a row may ask for the results of those before it:

    * `reduce`: each of these regions takes an element of every input, the
      results of the reductions before it, and its accumulator, and yields the
      next accumulator, by one operation that takes it. It starts from that
      operation's neutral element.
    * `values` takes the elements of the inputs that have no r and all results,
      and yields an element of each output that has no r.
    * `map` takes an element of every input and all results, and yields an
      element of each output that has r.

    The order in which a row is reduced is not specified. `ukernel.index` gives
    the position of an element in these regions.

    * `row_reduction_c1`: there are an axis of rows, up to four, the axis r, an output and
      a reduction.
    * `row_reduction_c2`: outputs have every space axis, alone in a dimension.
    * `row_reduction_c3`: a reduction's accumulator is of f32, f64 or i32, and the one
      operation that updates it has a neutral element.
    * `row_reduction_c4`: `values` and `map` yield elements of their outputs.
    * `row_reduction_c5`: `plan` names a `ukernel.plan` of as many axes.
    * `row_reduction_c6`: with a `phase`, operands are buffers, and the last
      outputs are one for each reduction, of its accumulator's type, with the
      space axes in their order.

    Several blocks may reduce slices of a row. Then the operator becomes one
    launch for each *phase*, on buffers: a reduction is of the phase behind those
    of the reductions whose results it asks for, 0 if it asks for none. In phase
    p each slice leaves its numbers of the phase's reductions in the last
    outputs, the states, which hold one slice behind the other; those of earlier
    phases are merged from there. The last phase, behind all reductions, computes
    `values` and `map`.

    ```mlir
    // y = e^(x - max) / sum of e^(x - max)
    %y = ukernel.row_reduction ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>)
      maps = [affine_map<(m, r) -> (m, r)>, affine_map<(m, r) -> (m, r)>]
      reduce {
      ^bb0(%a: f32, %acc: f32):
        %s = arith.maximumf %acc, %a : f32
        ukernel.yield %s : f32
      }, {
      ^bb0(%a: f32, %max: f32, %acc: f32):
        %d = arith.subf %a, %max : f32
        %e = math.exp %d : f32
        %s = arith.addf %acc, %e : f32
        ukernel.yield %s : f32
      } values {
      ^bb0(%max: f32, %sum: f32):
        ukernel.yield
      } map {
      ^bb0(%a: f32, %max: f32, %sum: f32):
        %d = arith.subf %a, %max : f32
        %e = math.exp %d : f32
        %y = arith.divf %e, %sum : f32
        ukernel.yield %y : f32
      } -> tensor<?x?xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs, Variadic<AnyShaped>:$outputs,
                       AffineMapArrayAttr:$indexing_maps,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$phase);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$values, SizedRegion<1>:$map,
                        VariadicRegion<SizedRegion<1>>:$reductions);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)? (`phase` `(` $phase^ `)`)?
    `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $outputs `:` type($outputs) `)` `maps` `=` $indexing_maps
    (`ranges` `=` $ranges^)? `reduce` $reductions `values` $values `map` $map
    attr-dict (`->` type($results)^)?
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned kMaxSpaceAxes = 4;
    /// The axis along which a row lies, the last one.
    unsigned getRowAxis();
    /// Returns the name of an axis of rows that lie along `rowAxis`.
    static ::llvm::StringRef nameAxis(unsigned axis, unsigned rowAxis);
    /// Returns true if an operand has an element for each element of a row, and
    /// not a single one.
    bool isAlongRow(unsigned number);
    /// Returns the outputs, except states, for which `isAlongRow` equals
    /// `alongRow`, by their numbers as operands.
    ::llvm::SmallVector<unsigned, 2> getOutputNumbers(bool alongRow);
    /// The operation that updates the accumulator of a reduction.
    ::mlir::Operation *getCombiningOp(unsigned reduction);
    /// The accumulator of each reduction.
    ::llvm::SmallVector<::mlir::Type, 3> getAccumulatorTypes();
    /// The number as an operand of the state of a reduction; requires a phase.
    unsigned getStateNumber(unsigned reduction);
    /// The phase of each reduction, and the last one, of what follows them all.
    ::llvm::SmallVector<unsigned, 3> getPhases();
    unsigned getLastPhase();

    // OperatorOpInterface
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::StringRef getAxisName(unsigned axis);
    bool isBatchAxis(unsigned axis) { return axis >= 2 && axis != getRowAxis(); }
    ::ftuner::OperandRole getOperandRole(unsigned number);
    void describe(::ftuner::Workload &workload);
    /// States are read in the phases behind theirs.
    bool readsOutput() { return getPhase().has_value(); }
    bool supportsSlices() { return !getPhase(); }
    ::llvm::SmallVector<::ftuner::ukernel::SliceState> getSliceStates();
    ::mlir::Operation *buildSlice(::mlir::OpBuilder &builder, ::mlir::ValueRange states);
    bool mergesInKernels() { return true; }
    ::llvm::SmallVector<::mlir::Operation *> buildLaterSlices(
        ::mlir::OpBuilder &builder, ::mlir::ValueRange states);
  }];
}

def UKernel_PointwiseOp : UKernel_Op<"pointwise", [
    AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DestinationStyleOpInterface, UKernel_OperatorOpInterface,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "values of every point, from elements of the inputs";
  let description = [{
    A chain of elementwise operators. `map` takes an element of every input and
    yields an element of every output. The iteration space is one axis p, the
    number of a point. With several loops p is fused of them, the last one
    fastest, and maps have the loops as dimensions after p. The first output has
    the loops in their order, so that neighbours along p are neighbours in it.
    `ukernel.index` gives the position of a point along a loop, or along p if
    there is only one loop.

    `taps` makes the operator a pool or a convolution of each channel: every
    point reduces a window. `taps` are the extents of the window's loops. They
    are the loops of a second axis t, which is reduced; maps have t as dimension
    after p, and the window's loops as dimensions after those of p. `start`
    yields the accumulators of a point. `reduce` runs for every tap, the last
    loop fastest: it takes an element of every input, then the accumulators, and
    yields the next accumulators. `start` takes the inputs whose maps have no
    tap; `map` takes these and the last accumulators.

    A read outside of a padded input gives the padding: `padded` has a value, or
    `unit` for none, for every input. Reads of other inputs lie inside.

    Buffers may have any strides. An input that has the map of an output may
    share its buffer.

    * `pointwise_c1`: without taps, maps have one dimension, or one and from two
      to eight loops. With taps they have one dimension more, and one more for
      each tap loop.
    * `pointwise_c2`: each output has one dimension for each loop, indexed by that
      loop only; the first output has them in the order of the loops.
    * `pointwise_c3`: `map` yields elements of the outputs.
    * `pointwise_c4`: there are `start` and `reduce` if there are taps, of
      positive extents, up to 4096 in all; `reduce` yields values of the types
      that `start` yields.
    * `pointwise_c5`: padding has the type of the input's elements.

    ```mlir
    // y = x + bias
    %y = ukernel.pointwise ins(%x, %bias : tensor<?x?xf32>, tensor<?xf32>)
      outs(%o : tensor<?x?xf32>)
      maps = [affine_map<(p, d0, d1) -> (d0, d1)>, affine_map<(p, d0, d1) -> (d1)>,
              affine_map<(p, d0, d1) -> (d0, d1)>] map {
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        ukernel.yield %s : f32
      } -> tensor<?x?xf32>
    // y = max of x[p - 1], x[p], x[p + 1], then ReLU
    %y = ukernel.pointwise ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>)
      maps = [affine_map<(p, t, t0) -> (p + t0 - 1)>, affine_map<(p, t, t0) -> (p)>]
      taps = [3] padded = [0xFF800000 : f32] start {
        %lowest = arith.constant 0xFF800000 : f32
        ukernel.yield %lowest : f32
      } reduce {
      ^bb0(%a: f32, %acc: f32):
        %m = arith.maximumf %acc, %a : f32
        ukernel.yield %m : f32
      } map {
      ^bb0(%m: f32):
        %zero = arith.constant 0.0 : f32
        %r = arith.maximumf %m, %zero : f32
        ukernel.yield %r : f32
      } -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs, Variadic<AnyShaped>:$outputs,
                       AffineMapArrayAttr:$indexing_maps,
                       OptionalAttr<DenseI64ArrayAttr>:$taps,
                       OptionalAttr<ArrayAttr>:$padded,
                       OptionalAttr<ArrayAttr>:$ranges, OptionalAttr<FlatSymbolRefAttr>:$plan);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region MaxSizedRegion<1>:$start, MaxSizedRegion<1>:$reduce,
                        SizedRegion<1>:$map);
  let assemblyFormat = [{
    (`plan` `(` $plan^ `)`)? (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $outputs `:` type($outputs) `)` `maps` `=` $indexing_maps
    (`taps` `=` $taps^)? (`padded` `=` $padded^)? (`ranges` `=` $ranges^)?
    (`start` $start^)? (`reduce` $reduce^)? `map` $map attr-dict (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned kMaxLoops = 8;
    static constexpr int64_t kMaxTaps = 4096;
    /// Returns the number of loops of points: 1 if p is not fused.
    unsigned getNumLoops();
    /// Returns the number of loops over a window; 0 without taps.
    unsigned getNumTapLoops() { return getTaps().value_or(::llvm::ArrayRef<int64_t>()).size(); }
    /// Returns true if an operand has elements for the taps of a point, and not
    /// only one.
    bool hasTaps(unsigned number);
    /// Returns the numbers of the inputs without taps.
    ::llvm::SmallVector<unsigned> getPlainInputs();
    /// Returns the value of reads outside of an input; null if it is not padded.
    ::mlir::TypedAttr getPadding(unsigned number);

    // OperatorOpInterface
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
    ::llvm::SmallVector<::mlir::utils::IteratorType> getLoopIteratorTypes();
    ::llvm::StringRef getAxisName(unsigned axis);
    ::llvm::SmallVector<::ftuner::ukernel::FusedLoop> getFusedLoops();
    ::ftuner::OperandRole getOperandRole(unsigned number);
    std::optional<::ftuner::Identity> getOutside(unsigned number);
    void describe(::ftuner::Workload &workload);
    bool readsOutput() { return false; }
    bool takesAnyStrides() { return true; }
  }];
}

def UKernel_IndexOp : UKernel_Op<"index", [Pure]> {
  let summary = "position of an element of a row reduction, or of a point";
  let description = [{
    In a `ukernel.row_reduction` the position along an axis, in a
    `ukernel.pointwise` that along a loop.

    * `index_c1`: it is in a region of a `ukernel.row_reduction` and `axis` is
      m, n or r, or in the region of a `ukernel.pointwise` and `axis` is the
      number of a loop.
    * `index_c2`: in `values` the axis is not r.

    ```mlir
    %column = ukernel.index 1
    ```
  }];
  let arguments = (ins I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}

def UKernel_YieldOp : UKernel_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "values of an operator's region";
  let description = [{
    * `yield_c1`: it is in a region of an operator.

    ```mlir
    ukernel.yield %s : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

def UKernel_KernelOp : UKernel_Op<"kernel", [
    Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
    HasParent<"::mlir::ModuleOp">]> {
  let summary = "one kernel family of one workload, on memrefs";
  let description = [{
    The block arguments are the operator's operands in order (of a
    `ukernel.workload` lhs, rhs, init, extras, output), then the size of each
    axis, of type index, then the number of blocks of the first part, of type
    index. The body is one `ukernel.combine` after constants that take the place
    of scalar operands.
    `schedule` is the attribute of the codegen path, `workload` names the
    function or operator that it comes from.

    * `kernel_c1`: as many arguments as the operator has axes, and one more, are
      of type index and come last; there are others before them.
    * `kernel_c2`: the body is one `ukernel.combine`, after constants.
    * `kernel_c3`: the operator of every tile has the operand arguments' types,
      apart from padding, in order.
    * `kernel_c4`: the schedule can compute every tile.

    ```mlir
    ukernel.kernel @k0(%A: memref<?x768xf32>, %B: memref<768x64xf32>, %zero: f32,
                       %O: memref<?x64xf32>, %m: index, %n: index, %k: index,
                       %n1: index) attributes {schedule = #schedule} {
      ukernel.combine axis 0 [32] {
        ukernel.tile [32, 32, 8] {
          %a = ukernel.pad %A to [32, 8] : memref<?x768xf32>
          %o = ukernel.pad %O to [32, 1] : memref<?x64xf32>
          ukernel.workload ins(%a, %B : memref<?x768xf32>, memref<768x64xf32>)
            init(%zero : f32) outs(%o : memref<?x64xf32>)
            maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                    affine_map<(m, n, k) -> (m, n)>]
            contract {
            ^bb0(%x: f32, %y: f32, %c: f32):
              %p = arith.mulf %x, %y : f32
              %s = arith.addf %c, %p : f32
              ukernel.yield %s : f32
            }
        }
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UKernel_ScheduleAttrInterface:$schedule, OptionalAttr<StrAttr>:$workload);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Operands of the operator, as block arguments.
    ::mlir::ValueRange getOperandArguments();
    ::ftuner::ukernel::CombineOp getCombine();
    /// Number of axes of the operator.
    unsigned getNumAxes();
  }];
}

def UKernel_CombineOp : UKernel_Op<"combine", [SingleBlock, NoTerminator, HasParent<"KernelOp">]> {
  let summary = "partitions an axis into blocks of one or two uKernels";
  let description = [{
    The first `count` blocks along `axis` compute the first tile, the others the
    second. With one tile, all blocks compute it. `balanced` says how the host
    counts the blocks, and `split` is the split-K factor, as in
    `#ukernel.family`. Each slice has an output of its own: the output operand is
    the first of so many, which lie one behind the other.

    * `combine_c1`: there are one or two heights, and a count with two.
    * `combine_c2`: the body holds one `ukernel.tile` for each height.
    * `combine_c3`: the axis is one of the tiles', and each height is its tile's
      size along it.
    * `combine_c4`: two tiles have ascending heights and equal sizes on the other
      axes.
    * `combine_c5`: with slices, operators have no epilogue and start from a
      scalar.

    ```mlir
    ukernel.combine axis 0 [%n1 x 112, 128] { ukernel.tile … ukernel.tile … }
    ukernel.combine axis 0 [128] { ukernel.tile … }
    ```
  }];
  let arguments = (ins I64Attr:$axis, Optional<Index>:$count, DenseI64ArrayAttr:$heights,
                       OptionalAttr<I64Attr>:$balanced, OptionalAttr<I64Attr>:$split);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `axis` $axis custom<Parts>($count, $heights) $body attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def UKernel_TileOp : UKernel_Op<"tile", [SingleBlock, NoTerminator, HasParent<"CombineOp">]> {
  let summary = "what one thread block computes";
  let description = [{
    `sizes` are the block tile, in elements along each axis of the operator. Holds
    the operator on memrefs, its operands read through `ukernel.pad` where
    the tile may reach beyond them.

    * `tile_c1`: the body is one operator, such as `ukernel.workload`, on
      memrefs, after the `ukernel.pad` of its operands.
    * `tile_c2`: there is a size for each axis of the operator.

    ```mlir
    ukernel.tile [32, 32, 8] {
      %a = ukernel.pad %A to [32, 8] : memref<?x768xf32>
      ukernel.workload …
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$sizes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sizes $body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the operator that the tile computes: the last op of the body.
    ::ftuner::ukernel::OperatorOpInterface getOperator();
  }];
}

def UKernel_PadOp : UKernel_Op<"pad", [Pure, SameOperandsAndResultType]> {
  let summary = "local padding: zero fill between global and shared memory";
  let description = [{
    Views the source as if every dimension reached up to the next multiple of
    its tile size, the elements beyond being zero; on an output, the elements
    beyond are not written. A tile size of 1 means that the dimension is exact.
    Static dimensions that their tile size divides become exact; the op folds to
    its source where every dimension is.

    * `pad_c1`: there is one tile size for each dimension.
    * `pad_c2`: tile sizes are at least 1.

    ```mlir
    %p = ukernel.pad %A to [112, 16] : memref<?x768xf32>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, DenseI64ArrayAttr:$tile);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$source `to` $tile attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether tiles never reach beyond the dimension.
    bool isExact(unsigned dim);
  }];
}

def UKernel_LaunchOp : UKernel_Op<"launch", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel on the device";
  let description = [{
    `kernel` names a `ukernel.kernel`, or, once it is emitted, the function in
    its `gpu.module` (`@k::@k`). Buffers and scalars are the workload's operands
    in order. Nothing is launched when `blocks` is 0. The emitted kernel takes
    the buffers' pointers, sizes and strides as i32, scalars, and parts as i32.

    * `launch_c1`: arguments are memrefs, integers, floats or of type index.
    * `launch_c2`: `kernel` names a `ukernel.kernel` or a function.
    * `launch_c3`: for a `ukernel.kernel`, the arguments are as many as its
      operand arguments and have their element types and ranks, there is one
      size for each axis, and at most one part.

    ```mlir
    ukernel.launch @k0 blocks(%grid)
      args(%A, %B, %zero, %O : memref<?x768xf32>, memref<768x64xf32>, f32, memref<?x64xf32>)
      sizes(%m, %n, %k) parts(%n1)
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

def UKernel_AssertOp : UKernel_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "fails a call of the host code unless a condition holds";
  let description = [{
    Like `cf.assert`, with sizes in the message: `{0}` stands for the first of
    `sizes`, `{1}` for the second, at most ten. `ukernel-prepare-host` makes it
    of the `cf.assert` that importers write.

    ```mlir
    %same = arith.cmpi eq, %a, %b : index
    ukernel.assert %same, "net: expected equal sizes, but got {0} and {1}" (%a, %b)
    ```

    * assert_c1: there are at most ten sizes.
  }];
  let arguments = (ins I1:$condition, StrAttr:$message, Variadic<Index>:$sizes);
  let results = (outs);
  let assemblyFormat = "$condition `,` $message (`(` $sizes^ `)`)? attr-dict";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

def UKernel_ExactImageOp : UKernel_Op<"exact_image", [Pure]> {
  let summary = "whether kernels come from the image of an exact architecture";
  let description = [{
    A compiled module may hold its kernels twice: in an image for the device's
    exact architecture (sm_90a), and in a portable one for all others. On the
    host, this asks which of them the device of the call takes. Branches of
    `scf.if` on the answer launch the kernels of each.

    ```mlir
    %exact = ukernel.exact_image
    scf.if %exact {
      ukernel.launch @k0 …
    } else {
      ukernel.launch @k1 …
    }
    ```
  }];
  let arguments = (ins);
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

#endif
