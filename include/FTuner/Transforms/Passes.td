//===- Passes.td - Transformations --------------------------*- tablegen -*-===//
#ifndef FTUNER_TRANSFORMS_PASSES
#define FTUNER_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def UKernelAttachDevicePass : Pass<"ukernel-attach-device", "::mlir::ModuleOp"> {
  let summary = "Attach the description of the target device to the module";
  let description = [{
    Reads a built-in device by name or a JSON file by path and stores its fields
    as `ukernel.device`. Later passes read only the attribute. Without the
    option, the module must already have it.

    ```mlir
    module {}
    // becomes
    module attributes {ukernel.device = #ukernel.device<"h200", {name = "h200", sm_count = 132 : i64, …}>} {}
    ```
  }];
  let options = [
    Option<"device", "device", "std::string", /*default=*/"",
           "Name of a built-in device, or path of a device description">];
  let dependentDialects = ["::ftuner::ukernel::UKernelDialect"];
}

def UKernelAssertViewsPass : Pass<"ukernel-assert-views", "::mlir::func::FuncOp"> {
  let summary = "Assert what casts of tensors claim of sizes";
  let description = [{
    A `tensor.cast` to a static size is a claim of whoever wrote it. Others
    believe it, and take the cast away: kernels would then read and write
    outside of the tensor. Here, before anything else, each such claim is
    asserted. What reshapes and slices claim is asserted where the host makes
    their views.

    ```mlir
    %c = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32>
    // becomes
    %n = tensor.dim %x, %c1 : tensor<?x?xf32>
    %same = arith.cmpi eq, %n, %c4 : index
    cf.assert %same, "expected size 4 of dimension 1"
    %c = tensor.cast %x : tensor<?x?xf32> to tensor<?x4xf32>
    ```

    A `tensor.pad` that takes away as many elements as it adds becomes one that
    is not folded.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::tensor::TensorDialect"];
}

def UKernelResolveSizesPass : Pass<"ukernel-resolve-sizes", "::mlir::func::FuncOp"> {
  let summary = "Replace sizes that are known to be equal by one value";
  let description = [{
    Sizes are followed back to dimensions of the function's arguments, through
    symbols, reshapes, assertions, products, maxima of equal sizes and divisions
    of a product by its factor. Each size that is a product of such dimensions
    becomes one value at the start of the function.

    ```mlir
    %m = arith.maxui %b, %b2 : index          // both have the symbol B
    %p = arith.muli %m, %c32 : index
    %q = arith.divsi %p, %c32 : index
    // becomes, for all uses of %m and %q
    %b = tensor.dim %x, %c0 : tensor<?x32x128xf16>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def UKernelExpandViewsPass : Pass<"ukernel-expand-views", "::mlir::func::FuncOp"> {
  let summary = "Give operators the loops that their operands had before these were joined";
  let description = [{
    Reshapes fold with the operators around them by expansion, so that batches
    and heads which an importer joined for a product are loops of the product
    again. A product's reduction is not split, and a reshape folds only where
    the sizes of its parts are proven. Loops of extent 1 go where reshapes add
    and drop them around an operator. The two parts of a dimension that are
    concatenated in the other order, as rotary embeddings do, become one operator
    that reads its input so. Functions without a contraction or without a reshape
    stay as they are.

    ```mlir
    %x2 = tensor.collapse_shape %x [[0, 1], [2], [3]] : tensor<?x32x?x128xf16> into tensor<?x?x128xf16>
    %p = linalg.batch_matmul ins(%x2, %y2 : …) outs(%e : tensor<?x?x?xf32>)
    %r = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [%b, 32, %t, %l] : …
    // becomes
    %r = linalg.generic {indexing_maps = [(b, h, m, n, k) -> (b, h, m, k), …], …}
           ins(%x, %y : tensor<?x32x?x128xf16>, …) outs(%e : tensor<?x32x?x?xf32>)
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def UKernelPutChannelsLastPass : Pass<"ukernel-put-channels-last", "::mlir::func::FuncOp"> {
  let summary = "Compute convolutions with channels last";
  let description = [{
    Rewrites the convolutions of a function whose channels lie before places
    (NCHW) as ones whose channels are last (NHWC), each between two transposes.
    Transposes move down through padding, elementwise operators, pools,
    convolutions of each channel and concatenations, until they cancel or leave
    the network. A function is rewritten if its convolutions are in types of at
    most 16 bits, if one of them has at least 1152 taps times channels, or if
    there are at least three, of more than one tap and at least 8 channels. An
    image of fewer channels is read where it lies. Convolutions with groups stay.

    ```mlir
    %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<?x64x56x56xf16>, tensor<64x64x3x3xf16>) …
    // becomes
    %t = linalg.transpose ins(%x : …) outs(… : tensor<?x56x56x64xf16>) permutation = [0, 2, 3, 1]
    %r = linalg.generic … ins(%t, %w : tensor<?x56x56x64xf16>, tensor<64x64x3x3xf16>) …
    %y = linalg.transpose ins(%r : tensor<?x54x54x64xf32>) … permutation = [0, 3, 1, 2]
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def UKernelNormalizeLinalgPass : Pass<"ukernel-normalize-linalg", "::mlir::ModuleOp"> {
  let summary = "Bring contractions and elementwise chains into the form that workloads start from";
  let description = [{
    Elementwise operators, named or of `arith` and `math` on tensors, become
    `linalg.generic`, and each chain one of them. What fills a tensor becomes
    `linalg.fill`. Contractions read transposed and broadcast operands through
    their maps; loops of one role (m, n or k) that are neighbours in every
    operand become one loop, over reshaped views, and so do batch loops beyond
    three. Convolutions without groups whose windows are points become
    contractions.
    Products of integers have no zero points, but sums over the factors beside
    them, and sums in i64 that are cast to i32 are sums in i32. Operators are
    matched by their maps and bodies; nothing is fused into a contraction, and
    no fusion changes where a sum in f16 or bf16 rounds. An assertion inside an
    operator becomes a condition: elements that it does not hold for are NaN, or
    0 of integers. A sine and cosine of one operation (`math.sincos`) become two.

    ```mlir
    %wt = linalg.transpose ins(%w : tensor<64x48xf32>) outs(%e : …) permutation = [1, 0]
    %wb = linalg.broadcast ins(%wt : tensor<48x64xf32>) outs(%e1 : …) dimensions = [0]
    %p = linalg.batch_matmul ins(%x, %wb : tensor<?x?x48xf32>, tensor<?x48x64xf32>) outs(…)
    %r = linalg.exp ins(%p : tensor<?x?x64xf32>) outs(…)
    // becomes
    %x2 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x48xf32> into tensor<?x48xf32>
    %p2 = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n, k), (m, n, k) -> (m, n)], …}
            ins(%x2, %w : tensor<?x48xf32>, tensor<64x48xf32>) outs(…)
    %r2 = linalg.generic … ins(%p2 : tensor<?x64xf32>) outs(…)   // math.exp
    %r = tensor.expand_shape %r2 [[0, 1], [2]] output_shape [%b, %s, 64] : …
    ```
  }];
  let options = [
    Option<"keepRounded", "keep-rounded", "bool", /*default=*/"false",
           "Tensors between kernels have the narrow type that the program "
           "rounds to, and the next kernel widens what it reads">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def UKernelFormWorkloadsPass : Pass<"ukernel-form-workloads", "::mlir::ModuleOp"> {
  let summary = "Turn each contraction with its fused epilogue into a ukernel.workload";
  let description = [{
    Takes contractions with one reduce loop and up to three batch loops, in
    any order of loops, dimensions and factors, the elementwise `linalg.generic`
    that alone uses the result, and the fill or broadcast that it accumulates
    to. The innermost dimension of the result is n, and a dimension that only
    the other factor has is m; loops of these kinds beyond one each are batch
    axes, which an operand lacks. lhs must be contiguous along m or k, rhs along
    k or n. Ranges come from `ukernel.shape` and `ukernel.symbols` through
    reshapes. What types, symbols and earlier
    assertions do not prove about equal sizes is asserted by `cf.assert`, as is,
    at the function's entry, that each symbol has one size. Structured operators
    that are left to fallback kernels are reported by remarks, and so are those that read
    elements which nobody has set (`tensor.empty`). `ukernel.extents` keeps which
    symbols the extents are products of. With `precision=tf32` products of f32
    may round their factors to tf32, whatever these are cast from, and with
    `precision=tf32-truncate` cut off the bits that it lacks, too. With
    `leave-constant-products` contractions of nothing but constants, results of
    operations with the attribute `ukernel.constant`, and what is computed from
    such values stay, with that attribute. With `leave-packed-products` those
    on integers of 2 to 7 bits, of which kernels keep one in a byte, stay with
    the attribute `ukernel.left`. With `leave-windows` convolutions stay so, too.

    A convolution, named or generic, with groups or without, becomes a product
    whose axes are fused of its loops: the last run of pixels and that of filters
    in the result are rows and columns, whichever is innermost being columns,
    channels and taps are summed up, and the other loops are batch axes. Padding
    of the image with zeros becomes part of how the product reads it, where
    its amounts are constants before the image. Convolutions of each channel by
    itself, which have no filters, do not become products.

    ```mlir
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = linalg.matmul ins(%a, %b : tensor<?x48xf32>, tensor<48x64xf32>) outs(%f : tensor<?x64xf32>) -> tensor<?x64xf32>
    %r = linalg.generic … ins(%p, %bias : tensor<?x64xf32>, tensor<64xf32>) outs(%e : tensor<?x64xf32>) { … }
    // becomes
    %r = ukernel.workload ins(%a, %b : …) init(%zero : f32) extras(%bias : …) outs(%e : …)
           maps = […] ranges = […] contract { … } epilogue { … } -> tensor<?x64xf32>
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"precision", "precision", "std::string", /*default=*/"\"f32\"",
           "What products of f32 may round their factors to: 'tf32', "
           "'tf32-truncate', where bits may also be cut off, or 'f32' for "
           "nothing">,
    Option<"paths", "paths", "std::string", /*default=*/"\"\"",
           "Codegen paths, separated by commas, whose operators are formed, too, "
           "beside the default ones; rows are formed for these paths alone">,
    Option<"leaveConstantProducts", "leave-constant-products", "bool",
           /*default=*/"false",
           "Leave contractions whose operands constants alone determine to "
           "whoever computes these before the program runs">,
    Option<"leavePackedProducts", "leave-packed-products", "bool",
           /*default=*/"false",
           "Leave contractions that would read or write integers of 2 to 7 "
           "bits to whoever keeps several of them in a byte">,
    Option<"leaveWindows", "leave-windows", "bool", /*default=*/"false",
           "Leave convolutions, whose kernels have fused axes">,
    Option<"leavePointwise", "leave-pointwise", "bool", /*default=*/"false",
           "Report no operators that ukernel-form-pointwise forms later">];
  let statistics = [
    Statistic<"numWorkloads", "workloads", "Number of workloads formed">,
    Statistic<"numFallbacks", "fallbacks", "Number of structured operators left to fallback kernels">];
}

def UKernelPadRowsPass : Pass<"ukernel-pad-rows", "::mlir::func::FuncOp"> {
  let summary = "Mark intermediate tensors whose rows begin at aligned addresses";
  let description = [{
    Marks results of operators whose only readers are operators that can take
    padded rows, and the operands that read them, by `ukernel.padded_rows`:
    rows along the innermost dimension begin at multiples of 32 bytes and may be
    read and written up to the next one, so that a row of any length is moved in
    vectors. `ukernel-allocate-padded-rows` lays out the memory.

    ```mlir
    %s = ukernel.workload … outs(%e : tensor<?x?xf16>) … -> tensor<?x?xf16>
    %p = ukernel.row_reduction ins(%s : tensor<?x?xf16>) …
    // becomes
    %s = ukernel.workload … {ukernel.padded_rows = array<i64: 3>}
    %p = ukernel.row_reduction … {ukernel.padded_rows = array<i64: 0>}
    ```
  }];
}

def UKernelAllocatePaddedRowsPass : Pass<"ukernel-allocate-padded-rows", "::mlir::func::FuncOp"> {
  let summary = "Allocate the rows of marked buffers at aligned addresses";
  let description = [{
    Rounds up the last dimension of each allocation that operators write with
    `ukernel.padded_rows`, if everything that uses it can take such rows; its
    users get the elements as a subview. Other marked buffers stay as they are:
    the dispatcher finds their rows unaligned.

    ```mlir
    %s = memref.alloc(%m, %n) : memref<?x?xf16>
    // becomes
    %a = memref.alloc(%m, %n16) : memref<?x?xf16>
    %s = memref.subview %a[0, 0] [%m, %n] [1, 1] : memref<?x?xf16> to memref<?x?xf16, strided<[?, 1]>>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def UKernelFormWindowsPass : Pass<"ukernel-form-windows", "::mlir::ModuleOp"> {
  let summary = "Turn pools and convolutions of each channel into a ukernel.pointwise";
  let description = [{
    Takes operators that reduce windows of static extents to one element for
    each point of their other loops, such as pooling and convolutions of each
    channel, if a codegen path computes them. They become a `ukernel.pointwise`
    with taps. A `tensor.pad` of a known value before the operator becomes the
    padding of an input. The accumulators start from the scalar of a fill, from
    the body of an elementwise operator, such as the broadcast of a bias, or
    from a tensor. An elementwise operator that alone reads the result at the
    same points becomes the region `map`.

    Windows of dynamic extents, padding of a value or of amounts that only the
    run knows, and operators that a warp computes for each point stay; the pass
    `ukernel-fuse-windows` prepares them for fallback kernels.

    ```mlir
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] { … tensor.yield %lowest : f32 }
    %f = linalg.fill ins(%lowest : f32) outs(%e : …) -> tensor<?x64x56x56xf32>
    %r = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%p, %w : …, tensor<3x3xf32>) outs(%f : …)
    // becomes
    %r = ukernel.pointwise ins(%x : …) outs(%e : tensor<?x64x56x56xf32>)
           maps = [affine_map<(p, t, d0, d1, d2, d3, t0, t1) -> (d0, d1, 2 * d2 + t0 - 1, 2 * d3 + t1 - 1)>, …]
           taps = [3, 3] padded = [0xFF800000 : f32] start { … } reduce { … } map { … }
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"paths", "paths", "std::string", /*default=*/"\"\"",
           "Codegen paths, separated by commas, that compute the operators; the "
           "default ones without">];
  let statistics = [
    Statistic<"numFormed", "operators", "Number of operators formed">];
}

def UKernelFuseWindowsPass : Pass<"ukernel-fuse-windows", "::mlir::func::FuncOp"> {
  let summary = "Fuse windows that are reduced with their padding and what follows";
  let description = [{
    Operators that reduce windows of static extents, such as pooling and
    convolutions of each channel, and that are no workload become elementwise
    ones, whose bodies have the loops over the window. They start from a scalar
    where a fill was before, read what a `tensor.pad` pads, or take its value by
    a condition, and have the elementwise operators behind them, each the only
    reader, in their bodies. Sums in f16 or bf16 are sums in f32, rounded once,
    as those of all fallback kernels. `ukernel.window` keeps what they were.
    Operators that a warp computes for each point stay as they are.

    ```mlir
    %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] { … tensor.yield %lowest : f32 }
    %f = linalg.fill ins(%lowest : f32) outs(%e : …) -> tensor<?x64x56x56xf32>
    %r = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%p, %w : …, tensor<3x3xf32>) outs(%f : …)
    // becomes
    %r = linalg.generic {iterator_types = ["parallel", "parallel", "parallel", "parallel"], …}
           outs(%e : tensor<?x64x56x56xf32>) attrs = {ukernel.window = "linalg.pooling_nchw_max"} {
      %m = scf.for %i = %c0 to %c3 step %c1 iter_args(%m0 = %lowest) … {
        … %a = scf.if %inside { tensor.extract %x[…] } else { %lowest } …
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numWindows", "windows", "Number of operators with windows that became elementwise">];
}

def UKernelFormPointwisePass : Pass<"ukernel-form-pointwise", "::mlir::ModuleOp"> {
  let summary = "Turn each chain of elementwise operators into a ukernel.pointwise";
  let description = [{
    Takes elementwise operators on tensors with zero to eight loops, whose outputs
    have all loops and whose inputs have some of them, in any order, if a codegen
    path computes them. Outputs without dimensions are viewed as tensors of one
    element. It runs after the passes that give prologues, epilogues,
    rows and windows their operators, and takes what these leave. First it fuses
    operators that the normalization keeps apart for rows, and gives each part of
    a concatenation that no operator can write in place an operator that copies
    it; concatenations of equal sizes share these. Fills and copies stay fallback
    kernels, and so do operators whose positions are not loops, that accumulate
    into their outputs, or that have loops in their bodies. A remark on each copy
    of elements says what it copies, and why no operator reads or writes them in
    place; the operator keeps the text as `ukernel.copy`.

    ```mlir
    %r = linalg.generic … ins(%x, %bias : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) { … }
    // becomes
    %r = ukernel.pointwise ins(%x, %bias : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>)
           maps = […] ranges = […] map { … } -> tensor<?x?xf32>
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"paths", "paths", "std::string", /*default=*/"\"\"",
           "Codegen paths, separated by commas, that compute the operators; the "
           "default ones without">];
  let statistics = [
    Statistic<"numFormed", "operators", "Number of operators formed">];
}

def UKernelPackWeightsPass : Pass<"ukernel-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Put constant weights into the order in which blocks read them";
  let description = [{
    The rhs of a workload, of k and n alone, whose numbers the program holds is
    put into the [packed order](../tensor-cores.md#packed-weights), and the
    workload says so, if one of the codegen paths `paths`, or of all, computes it
    then; on the device of the module. With `any-constant` other values that
    constants, and results of operations with the attribute `ukernel.constant`,
    determine are put into that order by operations on tensors, which are to be
    computed before the program runs. Remarks say why constant weights stay as
    they are. A workload with packed weights is computed by no path that does not
    know their order.

    ```mlir
    %w = arith.constant dense<…> : tensor<128x64xf16>
    %r = ukernel.workload ins(%x, %w : …) …
    // becomes
    %w = arith.constant dense<…> : tensor<128x64xf16>   // in another order
    %r = ukernel.workload ins(%x, %w : …) … packed …
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"paths", "paths", "std::string", /*default=*/"",
           "Codegen paths that may compute packed weights, separated by commas; "
           "all if empty">,
    Option<"anyConstant", "any-constant", "bool", /*default=*/"false",
           "Pack also what constants determine by operations">];
  let statistics = [
    Statistic<"numPacked", "packed", "Number of workloads with packed weights">];
}

def UKernelPlanWorkloadsPass : Pass<"ukernel-plan-workloads", "::mlir::ModuleOp"> {
  let summary = "Search the kernel families of each workload and choose which serves which shape";
  let description = [{
    Poses each workload to a search strategy and writes the answer as a
    `ukernel.plan`; workloads with equal axes, ranges, operands and ties between
    axes share one. With `top-k` above 1 the plan also has the best programs of
    the shapes that the search looked at. Typed remarks (`--remarks-filter`)
    report the families, the shapes that each serves, the figures of the search
    after every stage, and which stages were relaxed.

    Where a plan has families of a codegen path that needs the device's exact
    architecture, the same search without such paths gives the plan for devices
    of others, which the first names as `portable`.

    Workloads that have a plan keep it. The plan must be legal: the codegen path
    can emit every family for the workload, one block fits on the device, boxes
    fit, and operands that may not be aligned are served by families that take
    any alignment. An illegal plan is an error; a remark names each family that
    may spill.

    The options are those that the search, its strategies and its cost models
    declare ([list](options.md)). An option that neither the strategy nor the
    cost model reads has no effect, and a remark says so.

    ```mlir
    %r = ukernel.workload ins(…) …
    // becomes
    ukernel.plan @plan_0 <families = […], choices = […], general = 0, unaligned_general = 5, statistics = {…}>
    %r = ukernel.workload plan(@plan_0) ins(…) …
    ```
  }];
  let dependentDialects = ["::ftuner::ukernel::UKernelDialect"];
}

def UKernelPrepareHostPass : Pass<"ukernel-prepare-host", "::mlir::ModuleOp"> {
  let summary = "Record the host ABI and add functions that compute result sizes";
  let description = [{
    Checks that every public function can be called from C (ranked tensors and
    scalars in, ranked tensors out, no calls left), gives it a C name, and
    records its type on tensors as `ukernel.abi_type` and its name in the source
    as `ukernel.name`. A private function beside it, named by
    `ukernel.result_sizes`, computes the sizes of its results from the sizes of
    its tensor arguments (the dynamic ones, in order) and its scalars. Operators
    without loops (softmax, pack, …) are decomposed; splat constants become
    fills. Tensor arguments are marked as never written. Tensors that `scf.for`
    and `scf.while` carry are written back to one buffer in each iteration;
    a loop that may change the sizes of one is an error.

    ```mlir
    func.func @f(%a: tensor<?x4xf32>) -> tensor<?x4xf32> { … }
    // becomes
    func.func @f(%a: tensor<?x4xf32> {bufferization.writable = false}) -> tensor<?x4xf32>
        attributes {ukernel.abi_type = (tensor<?x4xf32>) -> tensor<?x4xf32>,
                    ukernel.name = "f", ukernel.result_sizes = @f_result_sizes} { … }
    func.func private @f_result_sizes(%d0: index) -> (index, index) { … }
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def UKernelResultsToArgumentsPass : Pass<"ukernel-results-to-arguments", "::mlir::ModuleOp"> {
  let summary = "Compute results in buffers that the caller passes";
  let description = [{
    Appends an argument for every result of a function with the host ABI. A
    buffer that is allocated and returned, also through reshapes, becomes that
    argument; whatever else is returned is copied.

    ```mlir
    func.func @f(%a: memref<4xf32>) -> memref<2x2xf32> {
      %b = memref.alloc() : memref<4xf32>
      …
      %r = memref.expand_shape %b [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
      return %r : memref<2x2xf32>
    }
    // becomes
    func.func @f(%a: memref<4xf32>, %out: memref<2x2xf32>) {
      %b = memref.reinterpret_cast %out to offset: [0], sizes: [4], strides: [1] : memref<2x2xf32> to memref<4xf32>
      …
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"];
}

def UKernelDispatchWorkloadsPass : Pass<"ukernel-dispatch-workloads", "::mlir::ModuleOp"> {
  let summary = "Turn each planned workload into a dispatch over launches of its kernels";
  let description = [{
    Takes workloads on memrefs. If all addresses, row strides and contiguous
    extents have the alignment that the families require, `choices` or `general`
    of the plan give the family for the sizes; otherwise `unaligned` or
    `unaligned_general`. Each family that some size can take becomes one
    `ukernel.kernel`, which workloads of the same form and plan share; constant
    scalars are part of it. Views whose innermost stride is not 1 are copied.

    A plan with a `portable` one becomes two such dispatches, in the branches of
    an `scf.if` on `ukernel.exact_image`; the kernels of the second have
    `_portable` in their names. Where a plan of the module is for an exact
    architecture and names no portable one, the module runs there alone, and
    portable plans are left out.

    With `assume-aligned` only sizes, strides and the offsets of views decide,
    for hosts that cannot see addresses. The caller then promises that every
    buffer, the workspace included, begins at a multiple of the bytes that the
    kernels require (`alignment` of `#ukernel.entry`). On a buffer that does not, a
    kernel faults at its first vector access.

    ```mlir
    ukernel.workload plan(@plan_0) ins(%a, %b : memref<?x768xf32>, memref<768x2304xf32>)
      init(%zero : f32) outs(%o : memref<?x2304xf32>) …
    // becomes
    %size_class = arith.select %m_is_small, %c0, %c1 : index
    %class = arith.select %aligned, %size_class, %c2 : index
    scf.index_switch %class
    case 0 {
      ukernel.launch @f_0_k0 blocks(%blocks) args(%a, %b, %zero, %o : …) sizes(%m, %n, %k) parts(%n1)
    }
    case 1 { … }
    default { ukernel.launch @f_0_k2 … }
    ukernel.kernel @f_0_k0(…) attributes {schedule = #schedule, workload = "f_0"} { … }
    ```
  }];
  let options = [
    Option<"assumeAligned", "assume-aligned", "bool", /*default=*/"false",
           "Take every buffer to begin at an address that all families can use">];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def UKernelLowerFallbacksPass : Pass<"ukernel-lower-fallbacks", "::mlir::ModuleOp"> {
  let summary = "Turn operators that are not workloads into fallback kernels, a thread or a warp for each element";
  let description = [{
    Linalg operators, copies, stores of scalars and constants on memrefs each
    become a `gpu.module` with one kernel and a launch of it. A thread computes
    one point of the parallel loops; the other loops run inside it. A warp does
    where an operand is contiguous along a loop that sums up, or takes a maximum
    or the like: that loop runs across its lanes. Values of f16
    and bf16 are computed in f32 and rounded to their types each; accumulators
    are rounded when they are stored. A remark names each such operator, and one
    on each copy of a buffer says why it is there; an operator without such a
    lowering is an error.

    ```mlir
    linalg.exp ins(%a : memref<?xf32>) outs(%b : memref<?xf32>)
    // becomes
    ukernel.launch @f_fallback_0::@f_fallback_0 blocks(%blocks)
      args(%a, %b : memref<?xf32>, memref<?xf32>) sizes(%n, %n)
    ```
  }];
  let dependentDialects = [
    "::ftuner::ukernel::UKernelDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def UKernelMergeKernelsPass : Pass<"ukernel-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "Keep one of kernels with equal code";
  let description = [{
    Of kernels that differ only in their names, their places in the source and
    the workloads that they serve, only the first is kept: the layers of a model
    repeat their operators. Launches of the others launch it, and its
    `#ukernel.entry` names the workloads of all. Runs before the kernels are
    lowered, so that each is lowered once.

    ```mlir
    gpu.module @f_fallback_0 { gpu.func @f_fallback_0(…) kernel { … } }
    gpu.module @f_fallback_3 { gpu.func @f_fallback_3(…) kernel { … } } // equal
    ukernel.launch @f_fallback_3::@f_fallback_3 blocks(%blocks) …
    // becomes
    gpu.module @f_fallback_0 { gpu.func @f_fallback_0(…) kernel { … } }
    ukernel.launch @f_fallback_0::@f_fallback_0 blocks(%blocks) …
    ```
  }];
  let statistics = [
    Statistic<"numMerged", "merged", "Number of kernels replaced by an equal one">];
}

def UKernelPlanWorkspacePass : Pass<"ukernel-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "Place intermediates in one workspace that the caller provides";
  let description = [{
    Appends an argument `memref<?xi8>` to every function with the host ABI;
    every allocation becomes a view of it at a multiple of 256 bytes. A private
    function, named by `ukernel.workspace_size`, computes its size in bytes from
    the sizes of the tensor arguments and the scalars; it is negative where a
    size is.

    ```mlir
    %b = memref.alloc(%n) : memref<?xf32>
    // becomes
    %b = memref.view %workspace[%offset][%n] : memref<?xi8> to memref<?xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect"];
}

#endif
