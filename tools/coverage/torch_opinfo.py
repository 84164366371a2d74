#!/usr/bin/env python3
"""PyTorch's own samples of operators through ftuner.torch.export with dynamic sizes, in the emulator.

The samples come from PyTorch's operator database (torch.testing, which needs the package expecttest): pointwise
operators, reductions, indexing and operators on shapes, without random numbers, complex numbers, results whose size
depends on data, sorts and linear algebra. Every dimension of at least 2 is dynamic where torch.export leaves it so. A
sample ends as

  right    the results are eager PyTorch's: type, shape, places of NaN and infinities, and values within a few units in
           the last place of those in float64; at the sample's sizes, at larger ones if the operator takes its inputs
           repeated, and, for pointwise operators and reductions, with NaN, infinities and zeros among the inputs.
  refused  by one sentence, a CompileError.
  unclear  refused in words that are not a sentence for users.
  wrong    the results are others.
  crashed  the process ended, another exception was raised, or it took too long.
  left     torch.export does not take the sample, or it has no tensor as a result: it does not count.

--results FILE keeps the outcomes line by line, and a run continues where one with the same file ended.
--write makes the page docs/torch-operators.md of them. The command fails if a sample is unclear, wrong or crashed.
"""

import argparse
import collections
import datetime
import json
import multiprocessing
import os
import re
import sys
import time
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import apart

RIGHT, REFUSED, UNCLEAR, WRONG, CRASHED, LEFT = OUTCOMES = (
    "right",
    "refused",
    "unclear",
    "wrong",
    "crashed",
    "left",
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.path.join(ROOT, "docs", "torch-operators.md")

#: Longer than a sample takes.
SECONDS = 120

OPTIONS = {"device": "h200", "emulate": True, "max_kernels": 1}

#: Operators of the groups, beside the classes of the database that are a group themselves.
POINTWISE = """
    addcmul addcdiv clamp lerp logaddexp2 where masked_fill isin nn.functional.hardswish nn.functional.leaky_relu
    nn.functional.gelu nn.functional.glu nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits nn.functional.mse_loss nn.functional.l1_loss
    nn.functional.smooth_l1_loss nn.functional.huber_loss nn.functional.kl_div nn.functional.poisson_nll_loss
    nn.functional.gaussian_nll_loss nn.functional.hinge_embedding_loss nn.functional.soft_margin_loss
    nn.functional.margin_ranking_loss nn.functional.multilabel_soft_margin_loss clone contiguous to alias_copy
    zeros_like ones_like full_like new_zeros new_ones new_full zero_ scalar_tensor
""".split()
REDUCTIONS = """
    max.reduction_with_dim max.reduction_no_dim min.reduction_with_dim min.reduction_no_dim aminmax var_mean
    var_mean.unbiased std_mean std_mean.unbiased logsumexp softmax softmax.with_dtype log_softmax
    log_softmax.with_dtype nn.functional.softmin nn.functional.softmin.with_dtype norm norm.fro norm.inf dist trace
    trapz trapezoid cumulative_trapezoid cumsum cumprod cummax cummin logcumsumexp nn.functional.normalize
    nn.functional.cosine_similarity nn.functional.pairwise_distance nn.functional.cosine_embedding_loss
    nn.functional.cross_entropy nn.functional.nll_loss nn.functional.triplet_margin_loss
    nn.functional.layer_norm nn.functional.rms_norm nn.functional.group_norm nn.functional.instance_norm
    nn.functional.batch_norm nn.functional.local_response_norm native_layer_norm native_group_norm linalg.norm
    linalg.vecdot linalg.cross cross allclose equal dot vdot inner tensordot einsum sum_to_size renorm cdist
    masked.softmax masked.log_softmax masked.softmin masked.normalize masked.cumsum masked.cumprod masked.logaddexp
    torch.ops.aten._safe_softmax.default
""".split()
INDEXING = """
    gather index_select take take_along_dim __getitem__ index_fill index_copy index_add index_put put scatter
    scatter_add scatter_reduce.sum scatter_reduce.prod scatter_reduce.mean scatter_reduce.amin scatter_reduce.amax
    index_reduce.mean index_reduce.prod index_reduce.amin index_reduce.amax select_scatter slice_scatter
    diagonal_scatter masked_scatter nn.functional.embedding nn.functional.one_hot tril triu diag diagonal
    diagonal_copy linalg.diagonal narrow narrow_copy select slice unravel_index searchsorted bucketize
    _unsafe_masked_index
""".split()
SHAPES = """
    broadcast_to broadcast_tensors cat stack hstack vstack dstack column_stack _chunk_cat expand expand_as
    expand_copy reshape reshape_as view view_as view_copy ravel flatten unflatten permute permute_copy transpose
    transpose_copy T H mT mH t t_copy movedim flip fliplr flipud roll rot90 repeat_interleave split split.list_args
    split_with_sizes split_with_sizes_copy unsafe_split tensor_split chunk unsafe_chunk hsplit vsplit dsplit unbind
    unbind_copy squeeze squeeze.multiple squeeze_copy unsqueeze unsqueeze_copy meshgrid.variadic_tensors
    meshgrid.list_of_tensors atleast_1d atleast_2d atleast_3d diag_embed diagflat block_diag cartesian_prod
    combinations unfold unfold_copy as_strided as_strided_copy nn.functional.pixel_shuffle
    nn.functional.pixel_unshuffle nn.functional.channel_shuffle constant_pad_nd nn.functional.pad.constant
    nn.functional.pad.reflect nn.functional.pad.replicate nn.functional.pad.replicate_negative
    nn.functional.pad.circular kron outer diff fft.fftshift fft.ifftshift
""".split()

#: Pointwise operators by their class that are outside: complex numbers, functions of CUDA.
OUTSIDE = """
    complex polar cdouble cfloat chalf nn.functional.silu.complex jiterator_unary jiterator_binary
    jiterator_binary_return_by_ref nn.functional.rrelu hash_tensor imag
""".split()


#: Operators with an operand that is invalid if an element comes twice, such as a permutation.
UNREPEATABLE = ("searchsorted",)

#: Statistics that PyTorch updates element by element, so that the mean of an infinite row is NaN.
STATISTICS = (
    "native_layer_norm",
    "native_group_norm",
    "nn.functional.group_norm",
    "var_mean",
    "std_mean",
)


def database():
    """The operators with their groups, by their names."""
    from torch.testing._internal.common_methods_invocations import op_db

    groups = {
        name: group
        for group, names in (
            ("pointwise", POINTWISE),
            ("reductions", REDUCTIONS),
            ("indexing", INDEXING),
            ("shapes", SHAPES),
        )
        for name in names
    }
    classes = {
        "UnaryUfuncInfo": "pointwise",
        "BinaryUfuncInfo": "pointwise",
        "ReductionOpInfo": "reductions",
        "ShapeFuncInfo": "shapes",
    }
    found = {}
    for operator in op_db:
        name = f"{operator.name}.{operator.variant_test_name}".rstrip(".")
        group = groups.get(name, classes.get(type(operator).__name__))
        if group and name not in OUTSIDE:
            found[name] = group, operator
    if missing := set(groups) - set(found):
        raise SystemExit(f"error: the database has no {', '.join(sorted(missing))}")
    return found


def samples_of(operator, count):
    """At most `count` of an operator's samples by their numbers, spread over all of them."""
    import torch

    types = operator.supported_dtypes("cpu")
    dtype = next(t for t in (torch.float32, torch.int64, torch.bool) if t in types)
    torch.manual_seed(0)
    found = list(operator.sample_inputs("cpu", dtype))
    numbers = (
        range(len(found))
        if len(found) <= count
        else sorted({round(k * (len(found) - 1) / max(count - 1, 1)) for k in range(count)})
    )
    return {number: found[number] for number in numbers}


class Case:
    """A sample as a model of its tensors; everything else of it is part of the model."""

    def __init__(self, operator, sample):
        from torch.utils import _pytree as pytree

        import torch

        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = tuple(leaves[place].detach().clone().contiguous() for place in places)

        class Model(torch.nn.Module):
            def forward(self, *tensors):
                given = list(leaves)
                for place, tensor in zip(places, tensors):
                    given[place] = tensor
                first, args, kwargs = pytree.tree_unflatten(given, spec)
                found = pytree.tree_leaves(operator.op(first, *args, **kwargs))
                return tuple(found)

        self.model = Model()
        self.shapes = tuple(
            {dim: torch.export.Dim.AUTO for dim, size in enumerate(t.shape) if size > 1}
            for t in self.tensors
        )

    def eager(self, tensors):
        """Results of eager PyTorch; those that it gives are the inputs themselves are copied."""
        import torch

        with torch.no_grad():
            return self.model(*(tensor.clone() for tensor in tensors))

    def is_taken(self):
        """Returns true if torch.export takes the sample, and all of its results, at least one, are tensors."""
        import torch

        try:
            torch.export.export(self.model, self.tensors, dynamic_shapes=(self.shapes,))
            results = self.eager(self.tensors)
        except Exception:
            return False
        return bool(results) and all(isinstance(result, torch.Tensor) for result in results)


def widen(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def problem_of(result, eager, exact):
    """Describes the error of a result; an empty text if it is right."""
    import torch

    if result.shape != eager.shape or result.dtype != eager.dtype:
        return f"{result.dtype} {tuple(result.shape)}, not {eager.dtype} {tuple(eager.shape)}"
    if not result.is_floating_point():
        differ = (result != eager) & (result != exact.to(eager.dtype))
        return f"{int(differ.sum())} of {eager.numel()} differ" if differ.any() else ""
    epsilon = torch.finfo(result.dtype).eps
    result, eager = result.double(), eager.double()
    exact = exact.double() if exact.shape == eager.shape else eager
    if ((result.isnan() != eager.isnan()) & (result.isnan() != exact.isnan())).any():
        return f"NaN at {int(result.isnan().sum())} places, not {int(eager.isnan().sum())}"
    # float64 may be finite where float32 overflows.
    is_close = exact.isfinite() & ((result - exact).abs() <= 1e-5 * exact.abs())
    infinite = eager.isinf() & ~result.isnan() & (result != eager) & ~is_close
    infinite |= result.isinf() & (result != eager) & (exact.abs() < 1e38)
    if infinite.any():
        return f"{int(infinite.sum())} infinities differ"
    known = result.isfinite() & eager.isfinite() & exact.isfinite()
    result, eager, exact = result[known], eager[known], exact[known]
    if not result.numel():
        return ""
    scale = exact.abs().clamp(max=1e300)
    allowed = 4 * (eager - exact).abs().max() + 16 * epsilon * scale + 4 * epsilon * scale.median()
    excess = (result - exact).abs() - allowed
    if excess.max() > 0:
        at = int(excess.argmax())
        return f"{float(result[at]):.9g}, not {float(exact[at]):.9g} (eager {float(eager[at]):.9g})"
    return ""


def larger(case, exported):
    """The sample's inputs with each unknown size one larger; None if that is not known.

    The first elements of a dimension come twice, so that sorted elements stay sorted.
    """
    lists = re.search(r"func\.func @main\((.*?)\)\s*->", exported.text, re.S)
    ranges = re.findall(r"(\w+) = #ukernel\.range<(\d+) to ([^>]*)>", exported.text)
    symbols = {name for name, low, high in ranges if low != high}
    if not lists or not symbols:
        return None
    arguments = re.split(r"%arg\d+: ", lists[1])[1:]
    if len(arguments) != len(case.tensors):
        return None
    found = []
    for tensor, argument in zip(case.tensors, arguments):
        shape = re.search(r"ukernel\.shape = \[([^]]*)\]", argument)
        names = [name.strip().strip('"') for name in shape[1].split(",")] if shape else []
        for dim, name in enumerate(names):
            if name in symbols:
                places = [0, *range(tensor.shape[dim])]
                tensor = tensor[(slice(None),) * dim + (places,)]
        found.append(tensor.contiguous())
    return found


def poisoned(tensors):
    """Inputs with NaN, infinities and zeros at some places; None if none has room for them."""
    import torch

    found = []
    for tensor in tensors:
        tensor = tensor.clone()
        if tensor.is_floating_point() and tensor.numel() > 3:
            values = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0], dtype=tensor.dtype)
            places = torch.randperm(tensor.numel())[:5]
            tensor.view(-1)[places] = values[: len(places)]
        found.append(tensor)
    return found if any(not torch.equal(a, b) for a, b in zip(found, tensors)) else None


def compare(case, function, tensors, where):
    """Describes the errors of a function's results, if any; `where` is None if eager must take the inputs."""
    try:
        eager, exact = case.eager(tensors), None
    except Exception:
        if where is None:
            raise
        return ""
    try:
        exact = case.eager([widen(tensor) for tensor in tensors])
    except Exception:
        exact = eager
    try:
        results = function(*tensors)
    except Exception as error:
        # PyTorch traced the model for some sizes only, which the function checks.
        if where is None or "as the model was traced for" not in str(error):
            raise
        return ""
    results = results if isinstance(results, (tuple, list)) else (results,)
    if len(results) != len(eager):
        return f"{len(results)} results, not {len(eager)}"
    for found in zip(results, eager, exact):
        if problem := problem_of(*found):
            return f"{where or 'the sample'}: {problem}"
    return ""


def is_of_export(error):
    """Returns whether torch.export itself raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return (
        any(frame.name == "program_of" for frame in frames)
        and "site-packages/torch" in frames[-1].filename
    )


def kernels_of(function):
    """The kernels of a compiled function, in words such as "1 uKernels, 0 fallback kernels"."""
    works = [one["work"] for one in function.module.manifest["functions"]]
    ukernels, fallbacks = (
        sum(len(work[kind]) for work in works) for kind in ("workloads", "fallback_kernels")
    )
    return f"{ukernels} uKernels, {fallbacks} fallback kernels"


def outcome_of(group, operator, sample):
    """How a sample ends, and the words with it; those of a right one name its kernels."""
    import ftuner.torch

    case = Case(operator, sample)
    try:
        exported = ftuner.torch.export(case.model, case.tensors, dynamic_shapes=case.shapes)
        function = exported.compile(**OPTIONS)
    except Exception as error:
        if is_of_export(error) or not case.is_taken():
            return LEFT, ""
        words = " ".join(str(error).split())
        if (
            isinstance(error, ftuner.CompileError)
            or "expected a model that changes nothing" in words
        ):
            return (REFUSED if is_sentence(words) else UNCLEAR), words[:600]
        return CRASHED, f"{type(error).__name__}: {words[:400]}"
    try:
        tries = [(case.tensors, None)]
        if operator.name not in UNREPEATABLE:
            tries += [(larger(case, exported), "larger sizes")]
        if group in ("pointwise", "reductions") and operator.name not in STATISTICS:
            tries += [(poisoned(case.tensors), "NaN, infinities and zeros")]
        for tensors, where in tries:
            if tensors is not None and (problem := compare(case, function, tensors, where)):
                return WRONG, problem
    except Exception as error:
        return CRASHED, f"at the call: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
    return RIGHT, kernels_of(function)


#: Words that must not occur in messages to users: addresses, unfinished code, Python objects, operations of dialects.
UNCLEAR_WORDS = re.compile(
    r"0x[0-9a-f]+|FIX ME|<class|<function|<built-in|site-packages|ftuner/torch/|torch\.operator|torch_c|tm_tensor|"
    r"ml_program|'\w+\.\w+' op|tensor<"
)


def is_sentence(words):
    return not UNCLEAR_WORDS.search(words)


def work_through(group, operator, count, done, tell):
    """Reports the outcome of each sample of an operator that is not done; before a sample runs, reports its number."""
    warnings.simplefilter("ignore")
    for number, sample in samples_of(operator, count).items():
        if number in done:
            continue
        tell(f"{number}\n".encode())
        begin = time.monotonic()
        try:
            outcome, words = outcome_of(group, operator, sample)
        except Exception as error:
            outcome, words = (
                CRASHED,
                f"{type(error).__name__}: {' '.join(str(error).split())[:400]}",
            )
        result = {
            "sample": number,
            "outcome": outcome,
            "words": words,
            "seconds": round(time.monotonic() - begin, 2),
        }
        tell((json.dumps(result) + "\n").encode())


def run_operator(group, operator, count, done, limit=SECONDS):
    """Yields the outcome of each sample; a process that ends is followed by another one."""
    done = set(done)
    while True:
        output, code = apart.run_isolated(
            lambda tell: work_through(group, operator, count, done, tell), limit
        )
        lines = output.decode().splitlines()
        for line in lines:
            if line.startswith("{"):
                result = json.loads(line)
                done.add(result["sample"])
                yield result
        if not code:
            return
        number = int(lines[-1]) if lines and lines[-1].isdigit() else None
        if number is None and not any(line.startswith("{") for line in lines):
            yield {
                "sample": -1,
                "outcome": CRASHED,
                "words": f"the process ended with code {code}",
                "seconds": 0,
            }
            return
        if number is not None:
            done.add(number)
            how = (
                f"it took more than {limit} s"
                if code == -14
                else f"the process ended with code {code}"
            )
            yield {"sample": number, "outcome": CRASHED, "words": how, "seconds": 0}


def load():
    """Loads what all samples need, before processes split."""
    import torch

    torch.set_num_threads(1)
    import torch.testing._internal.common_methods_invocations

    import ftuner.torch  # noqa: F401
    from ftuner.frontend.importing import torch_mlir

    for module in ("extras.fx_importer", "ir", "passmanager"):
        torch_mlir.load(module, "these samples")


def run(chosen, count, known, jobs, put):
    """Runs operators by their names; `put` gets each outcome, with the operator's name."""
    names = sorted(chosen)
    context = multiprocessing.get_context("fork")
    todo, queue = context.SimpleQueue(), context.SimpleQueue()
    for name in [*names, *[None] * jobs]:
        todo.put(name)

    parent = os.getpid()

    def work():
        while (name := todo.get()) is not None:
            for result in run_operator(*chosen[name], count, known.get(name, {})):
                if os.getppid() != parent:
                    return  # Nobody reads the results.
                queue.put({"operator": name, **result})
        queue.put(None)

    workers = [context.Process(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.daemon = True
        worker.start()
    left = jobs
    while left:
        result = queue.get()
        if result is None:
            left -= 1
        else:
            put(result)
    for worker in workers:
        worker.join()


PAGE = """# Operators of PyTorch

`tools/coverage/torch_opinfo.py --write` runs samples of PyTorch's own operator database (`torch.testing`) through
`ftuner.torch.export` with dynamic sizes and the emulator, and writes this page. Every dimension of at least 2 is
dynamic where `torch.export` leaves it so. A sample is right if its results are eager PyTorch's: type, shape, places
of NaN and infinities, and values within a few units in the last place of those in float64. That is so at the sample's
sizes, at larger ones, and for pointwise operators and reductions with NaN, infinities and zeros among the inputs.
Samples that `torch.export` does not take are not counted. Random and complex numbers, sorts, linear algebra, and results
whose size depends on data are not part of the table. Two exceptions: `searchsorted` is not run at larger sizes, since
its operand `sorter` would be no permutation; norms and variances that return their mean get no infinities, since
PyTorch's mean of an infinite row is NaN. The last columns count right samples that one uKernel computes, and those with
fallback kernels; the other samples have several uKernels, or move nothing.

{date}, torch {torch}, iree-base-compiler {iree}, at most {count} samples of each operator:

| group | operators | samples | right | refused | wrong, crashed or unclear | one uKernel | fallback kernels |
|---|---|---|---|---|---|---|---|
{totals}

## By operator

| operator | group | samples | right | refused | wrong, crashed or unclear | why |
|---|---|---|---|---|---|---|
{operators}
"""


def reason_of(words):
    """A refusal without names of files, values and nodes."""
    words = re.sub(r"^cannot import the model: ", "", words)
    words = re.sub(r" \((/|node )[^)]*\)", "", words)
    words = re.sub(r"(/[\w.+-]+)+:\d+", "…", words)
    return words.replace("|", "\\|")[:200]


def page(results, chosen, count):
    """The page of the docs; `results` are outcomes and words by operator and sample."""
    from importlib.metadata import version

    def kernels(found):
        """The right samples that one uKernel computes, and those with fallback kernels."""
        words = [words for outcome, words in found if outcome == RIGHT]
        one = sum(text == "1 uKernels, 0 fallback kernels" for text in words)
        return f"{one} | {sum(not text.endswith(' 0 fallback kernels') for text in words)}"

    def cells(found):
        counts = collections.Counter(outcome for outcome, _ in found if outcome != LEFT)
        bad = sum(counts[outcome] for outcome in (UNCLEAR, WRONG, CRASHED))
        return f"{counts.total()} | {counts[RIGHT]} | {counts[REFUSED]} | {bad}"

    totals, rows = [], []
    for group in ("pointwise", "reductions", "indexing", "shapes", None):
        names = [name for name, (its, _) in chosen.items() if group in (its, None)]
        found = [outcome for name in names for outcome in results.get(name, {}).values()]
        totals.append(f"| {group or 'all'} | {len(names)} | {cells(found)} | {kernels(found)} |")
    for name, found in sorted(results.items()):
        reasons = collections.Counter(
            reason_of(words) for outcome, words in found.values() if outcome not in (RIGHT, LEFT)
        )
        if any(outcome != LEFT for outcome, _ in found.values()):
            rows.append(
                f"| {name} | {chosen[name][0]} | {cells(found.values())} | {'; '.join(reasons)} |"
            )
    return PAGE.format(
        date=datetime.date.today().isoformat(),
        torch=version("torch"),
        iree=version("iree-base-compiler"),
        count=count,
        totals="\n".join(totals),
        operators="\n".join(rows),
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--operators", metavar="REGEX", default="", help="only operators whose whole name matches"
    )
    parser.add_argument("--group", choices=("pointwise", "reductions", "indexing", "shapes"))
    parser.add_argument(
        "--samples", type=int, default=8, metavar="N", help="of each operator at most (default: 8)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument(
        "--results", metavar="FILE", help="outcomes, line by line; those in it are not run again"
    )
    parser.add_argument(
        "--again",
        metavar="REGEX",
        help="runs samples of FILE whose outcome and words have it again",
    )
    parser.add_argument("--write", action="store_true", help="writes docs/torch-operators.md")
    options = parser.parse_args()
    if options.write and (options.operators or options.group):
        parser.error("--write: expected all operators, but got --operators or --group")
    load()
    chosen = {
        name: found
        for name, found in database().items()
        if re.fullmatch(options.operators or ".*", name) and options.group in (None, found[0])
    }
    results = collections.defaultdict(dict)
    if options.results and os.path.exists(options.results):
        with open(options.results) as file:
            for line in file:
                result = json.loads(line)
                words = f"{result['outcome']}: {result['words']}"
                results[result["operator"]][result["sample"]] = result["outcome"], result["words"]
                if options.again and re.search(options.again, words):
                    del results[result["operator"]][result["sample"]]
    file = open(options.results, "a") if options.results else None

    def put(result):
        results[result["operator"]][result["sample"]] = result["outcome"], result["words"]
        if file:
            print(json.dumps(result), file=file, flush=True)
        if result["outcome"] in (UNCLEAR, WRONG, CRASHED):
            print(
                f"{result['outcome']} {result['operator']} {result['sample']}: {result['words']}",
                flush=True,
            )

    run(chosen, options.samples, results, options.jobs, put)
    results = {name: found for name, found in results.items() if name in chosen}
    if options.write:
        with open(PATH, "w") as target:
            target.write(page(results, chosen, options.samples))
    counts = collections.Counter(
        outcome for found in results.values() for outcome, _ in found.values()
    )
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES))
    return int(any(counts[outcome] for outcome in (UNCLEAR, WRONG, CRASHED)))


if __name__ == "__main__":
    sys.exit(main())
