//===- UKernelInterfaces.td - Interfaces of operators -------*- tablegen -*-===//
#ifndef FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES
#define FTUNER_DIALECT_UKERNEL_IR_UKERNELINTERFACES

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/IndexingMapOpInterface.td"

def UKernel_OperatorOpInterface : OpInterface<"OperatorOpInterface", [
    DestinationStyleOpInterface, IndexingMapOpInterface]> {
  let description = [{
    An operator that kernels are searched for: a nest of computations over one
    iteration space (`Workload`). The axes are the dimensions of the indexing
    maps. A map says which element of its operand a point reads or writes: an
    affine expression over the axes for each dimension, one axis alone in the
    simple case, sums of multiples of axes for windows and strides. Scalars have
    a map without results.

    Each computation has axes of its own, some of which it may reduce, and
    writes outputs once for each point of the others. An axis that any
    computation reduces is a reduce axis of the operator: blocks step along it,
    or hold it whole. The others, the space axes, lie over the grid. An operator
    with one reduction implements `ReductionOpInterface`, which says the rest.

    An axis may be fused of several loops, such as the image, row and column of
    a convolution's output: a point's position along it is that of a point in
    the box of the loops, the last of which is fastest. Maps name the loops
    then, as dimensions behind those of the axes:

    ```
    (m, n, k, image, p, q, r, s, c) -> (image, 2 * p + r - 1, 2 * q + s - 1, c)
    ```

    An operand that has all loops of an axis in their order, each a dimension
    alone, is taken for one with that axis, and must lie in memory so.

    Passes ask this interface and no certain operator: they form a core
    `Workload` from it, plan, bufferize and dispatch it, and a codegen path says
    of the `Workload` whether it computes it.

    * `operator_c1`: there are axes. For each, or for each loop of a fused one
      whose extent the operator does not have itself, there is an operand one of
      whose dimensions it indexes alone.
    * `operator_c2`: there is a map of all axes and loops for each operand, of
      sums of multiples of them, one for each of its dimensions. Maps name the
      loops of fused axes and not these.
    * `operator_c3`: outputs are the operands that are written, one or more.
    * `operator_c4`: the declared ranges, if there are any, are one
      `#ukernel.range` for each axis.
    * `operator_c5`: every output is written by one computation, along axes that
      this does not reduce; computations read operands along their own axes.
    * `operator_c6`: loops are those of axes, in the order of these.
    * `operator_c7`: operands are tensors or scalars, or buffers or scalars;
      static sizes along one axis or loop are equal.
  }];
  let cppNamespace = "::ftuner::ukernel";
  let methods = [
    //===------------------------------------------------------------------===//
    // Iteration space
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        The kind of each axis: parallel ones are space axes.
      }], "::llvm::SmallVector<::mlir::utils::IteratorType>", "getLoopIteratorTypes">,
    InterfaceMethod<[{
        The name of an axis, in small letters: "m", "b0".
      }], "::llvm::StringRef", "getAxisName", (ins "unsigned":$axis)>,
    InterfaceMethod<[{
        Whether every block computes one element along the space axis, so that
        what it computes does not have the axis.
      }], "bool", "isBatchAxis", (ins "unsigned":$axis), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        The loops of fused axes, which are dimensions of the maps behind the
        axes: by axes, and of one axis the fastest last.
      }], "::llvm::SmallVector<::ftuner::ukernel::FusedLoop>", "getFusedLoops", (ins), "", [{
        return {};
      }]>,
    InterfaceMethod<[{
        Static extents of all axes; ShapedType::kDynamic where unknown.
      }], "::llvm::SmallVector<int64_t, 4>", "getStaticExtents", (ins), "", [{
        return ::ftuner::ukernel::detail::getStaticExtents($_op);
      }]>,
    InterfaceMethod<[{
        The operand and dimension that define the extent of a dimension of the
        maps, an axis or a loop: the first that it indexes alone.
      }], "std::pair<::mlir::Value, int64_t>", "getExtentSource", (ins "unsigned":$dim), "", [{
        return ::ftuner::ukernel::detail::getExtentSource($_op, dim);
      }]>,

    //===------------------------------------------------------------------===//
    // Operands
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        The role of an operand by its number.
      }], "::ftuner::OperandRole", "getOperandRole", (ins "unsigned":$number)>,
    InterfaceMethod<[{
        A name of an operand by its number, an identifier: "lhs", "extra0".
      }], "std::string", "getOperandName", (ins "unsigned":$number), "", [{
        return ::ftuner::ukernel::detail::getOperandName($_op, number);
      }]>,

    InterfaceMethod<[{
        What a read beyond an operand gives, such as the zeros around an image;
        none where every position lies inside.
      }], "std::optional<::ftuner::Identity>", "getOutside", (ins "unsigned":$number), "", [{
        return std::nullopt;
      }]>,

    //===------------------------------------------------------------------===//
    // Computations
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        Makes the computations of a workload that has the operator's axes and
        operands.
      }], "void", "describe", (ins "::ftuner::Workload &":$workload), "", [{
        ::ftuner::ukernel::detail::describeReduction($_op, workload);
      }]>,
    InterfaceMethod<[{
        Whether the elements that an output has are read before it is written.
      }], "bool", "readsOutput", (ins), "", [{
        return ::ftuner::ukernel::detail::startsFromOutput($_op);
      }]>,

    InterfaceMethod<[{
        Returns whether kernels accept buffers with any strides. By default neighbours
        along the last dimension are neighbours in memory, and the loops of a
        fused axis lie in one piece.
      }], "bool", "takesAnyStrides", (ins), "", [{
        return false;
      }]>,

    //===------------------------------------------------------------------===//
    // Slices of the reduce axes, on memrefs
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        Whether different kernels may reduce slices of the first reduce axis,
        whose states `buildMerge` merges.
      }], "bool", "supportsSlices", (ins), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        The accumulators of a slice: for each the type of its elements, and a
        map from the axes to its dimensions, which are space axes alone. By
        default one, with the output's dimensions.
      }], "::llvm::SmallVector<::ftuner::ukernel::SliceState>", "getSliceStates", (ins), "", [{
        return ::ftuner::ukernel::detail::getSliceStates($_op);
      }]>,
    InterfaceMethod<[{
        Builds what reduces one slice, at the insertion point: an operator like
        this one that starts from the identity and writes `states`, a buffer of
        each accumulator, and nothing else. Requires supportsSlices().
      }], "::mlir::Operation *", "buildSlice",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$states), "", [{
        llvm_unreachable("expected an operator that supports slices");
      }]>,
    InterfaceMethod<[{
        Whether kernels of the family merge the states themselves, in launches
        behind that of `buildSlice`: those of `buildLaterSlices`. Then there is
        nothing for `buildMerge` to do.
      }], "bool", "mergesInKernels", (ins), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        Builds the operators of those launches, in their order, at the insertion
        point. `states` are buffers of all slices, one slice behind the other
        along the first dimension. Requires mergesInKernels().
      }], "::llvm::SmallVector<::mlir::Operation *>", "buildLaterSlices",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$states), "", [{
        llvm_unreachable("expected an operator whose kernels merge slices");
      }]>,
    InterfaceMethod<[{
        Builds what makes the outputs of `numSlices` slices, at the insertion
        point, in one or more operations over elements of the outputs. Each of
        `states` has a dimension of slices before its own. By default slices
        are added up in their order, what the sum starts from is added, and the
        epilogue applied.
      }], "::llvm::SmallVector<::mlir::Operation *>", "buildMerge",
      (ins "::mlir::OpBuilder &":$builder, "int64_t":$numSlices,
           "::mlir::ValueRange":$states), "", [{
        return {::ftuner::ukernel::detail::buildSumOfSlices(
            $_op, builder, numSlices, states)};
      }]>,

    //===------------------------------------------------------------------===//
    // Search
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        The declared sizes of the axes, #ukernel.range each; null if there are
        none.
      }], "::mlir::ArrayAttr", "getRangesAttr">,
    InterfaceMethod<"Declares the sizes of the axes; null: none.",
      "void", "setRangesAttr", (ins "::mlir::ArrayAttr":$ranges)>,
    InterfaceMethod<[{
        The `ukernel.plan` of the operator; null if it has none.
      }], "::mlir::FlatSymbolRefAttr", "getPlanAttr">,
    InterfaceMethod<"Names the plan of the operator; null: none.",
      "void", "setPlanAttr", (ins "::mlir::FlatSymbolRefAttr":$plan)>,

    //===------------------------------------------------------------------===//
    // Tiles
    //===------------------------------------------------------------------===//
    InterfaceMethod<[{
        Clones the operator, on memrefs, into a `ukernel.tile` that has `tile`
        elements along each axis. The clone has `operands` in place of its own,
        one for each, inputs behind `ukernel.pad` unless they are exact, and
        neither plan nor ranges. Pads are of dimensions that one axis indexes
        alone.
      }], "::mlir::Operation *", "cloneIntoTile",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::llvm::ArrayRef<int64_t>":$tile), "", [{
        return ::ftuner::ukernel::detail::cloneIntoTile(
            $_op, builder, operands, tile);
      }]>
  ];
  let extraSharedClassDeclaration = [{
    /// Number of axes of the iteration space.
    unsigned getNumAxes() { return $_op.getLoopIteratorTypes().size(); }
    /// Dimensions of the maps: the axes, or of a fused one its loops.
    ::llvm::SmallVector<unsigned, 3> getDimsOfAxis(unsigned axis) {
      return ::ftuner::ukernel::detail::getDimsOfAxis($_op, axis);
    }
    /// The operands and dimensions whose sizes multiply to the extent of an
    /// axis: one, or one for each loop of a fused axis.
    ::llvm::SmallVector<std::pair<::mlir::Value, int64_t>, 3>
    getExtentSources(unsigned axis) {
      return ::llvm::map_to_vector<3>(
          getDimsOfAxis(axis),
          [&](unsigned dim) { return $_op.getExtentSource(dim); });
    }
    /// Whether the axis is summed over, or combined in another way.
    bool isReduceAxis(unsigned axis) {
      return $_op.getLoopIteratorTypes()[axis] ==
             ::mlir::utils::IteratorType::reduction;
    }
    /// Whether the operand is read at every point of the iteration space.
    bool isInput(unsigned number) {
      return ::ftuner::isInput($_op.getOperandRole(number));
    }
    /// The map of an operand by its number; without results for a scalar.
    ::mlir::AffineMap getMapOfOperand(unsigned number) {
      return $_op.getMatchingIndexingMap(&$_op->getOpOperand(number));
    }
    /// Whether the operand is written.
    bool isOutput(unsigned number) {
      return $_op.getOperandRole(number) == ::ftuner::OperandRole::Output;
    }
    /// Whether the operator is on tensors, and not on memrefs.
    bool hasTensors() {
      return ::mlir::isa<::mlir::TensorType>(
          $_op.getDpsInitOperand(0)->get().getType());
    }
  }];
  let extraTraitClassDeclaration = [{
    /// The shape of an operand; empty for a scalar.
    ::llvm::ArrayRef<int64_t> getShape(::mlir::OpOperand *operand) {
      auto type = ::mlir::dyn_cast<::mlir::ShapedType>(operand->get().getType());
      return type ? type.getShape() : ::llvm::ArrayRef<int64_t>();
    }
  }];
  let verify = [{
    return ::ftuner::ukernel::detail::verifyOperator(
        ::llvm::cast<::ftuner::ukernel::OperatorOpInterface>($_op));
  }];
  let verifyWithRegions = 1;
}

def UKernel_ReductionOpInterface : OpInterface<"ReductionOpInterface", [
    UKernel_OperatorOpInterface]> {
  let description = [{
    An operator with one reduction and one output. It computes, for every point
    of its space axes,

      out = epilogue(combiner over the points of the reduce axes, extras…)

    Inputs (`Lhs` and `Rhs` are those of a contraction, `Input` any other) are
    read at every point, init, extras and the output once for every point of the
    space axes. The combiner takes an element of each input, in the order of
    operands, and the accumulator, and yields the next accumulator. It starts
    from init, or from the output where there is none, whose elements are of the
    accumulator's type or of a narrower float type, and are extended. The
    epilogue takes the accumulator and an element of each extra, and yields an
    element of the output; both end with `ukernel.yield`.

    * `reduction_c1`: there is one output.
    * `reduction_c2`: what the accumulator starts from has elements of its type,
      or of a narrower float type.
    * `reduction_c3`: init, extras and the output run along space axes alone.
  }];
  let cppNamespace = "::ftuner::ukernel";
  let methods = [
    InterfaceMethod<[{
        The scalar computation of one point.
      }], "::mlir::Region &", "getCombiner">,
    InterfaceMethod<[{
        The one operation of the combiner that updates the accumulator, which is
        its operand; null if there are several. Of two halves of the reduce axes
        it makes one, and upstream knows its neutral element
        (`arith::getNeutralElement`).
      }], "::mlir::Operation *", "getCombiningOp", (ins), "", [{
        return ::ftuner::ukernel::detail::getCombiningOp($_op);
      }]>,
    InterfaceMethod<[{
        What the accumulator starts from: init, or the output where there is
        none.
      }], "::mlir::OpOperand &", "getStartOperand", (ins), "", [{
        return ::ftuner::ukernel::detail::getStartOperand($_op);
      }]>,
    InterfaceMethod<[{
        The type of the accumulator, the last argument of the combiner.
      }], "::mlir::Type", "getAccumulatorType", (ins), "", [{
        return ::ftuner::ukernel::detail::getAccumulatorType($_op);
      }]>,
    InterfaceMethod<[{
        Whether there is an epilogue; without one the output holds accumulators.
      }], "bool", "hasEpilogue", (ins), "", [{
        return false;
      }]>,
    InterfaceMethod<[{
        The region of the epilogue; requires hasEpilogue().
      }], "::mlir::Region &", "getEpilogue", (ins), "", [{
        llvm_unreachable("expected an operator with an epilogue");
      }]>
  ];
  let extraSharedClassDeclaration = [{
    /// The operand that is written.
    ::mlir::OpOperand &getOutputOperand() {
      return *$_op.getDpsInitOperand(0);
    }
  }];
  let verify = [{
    return ::ftuner::ukernel::detail::verifyReduction(
        ::llvm::cast<::ftuner::ukernel::ReductionOpInterface>($_op));
  }];
  let verifyWithRegions = 1;
}

#endif
