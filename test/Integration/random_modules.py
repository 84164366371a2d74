#!/usr/bin/env python3
"""Runs random linalg modules in the emulator, against the reference.

A module is a matrix product, or a batch of them, what it starts from and what follows it, each in a
random one of the forms that a person or an importer may write: named ops and
generics, any order of axes and loops, transposed and broadcast weights, static
and dynamic extents, odd ones too. It must run in the expected number of kernels
and give the reference's numbers, with bounds and race checks and shuffled threads.

A seed gives one module, its sizes, its device and its alignment: `--seed=S --count=1`
runs it again.
"""

import json
import random
import shlex
from dataclasses import dataclass

import harness

DEVICES = ("a100", "h200", "v100", "t4")

SIZES = {"b": (1, 2, 3), "m": (1, 3, 7, 16, 33), "n": (1, 4, 8, 17, 32), "k": (1, 5, 16, 24)}
ODD_SIZES = {"b": (3, 5), "m": (13, 53, 97, 131), "n": (5, 29, 67, 101), "k": (11, 37, 67, 101)}


@dataclass(frozen=True)
class Value:
    """An SSA value; a tensor has the axes that its dimensions stand for."""

    name: str
    type: str
    axes: tuple = ()


class Function:
    """Writes a function of f32 scalars and tensors, line by line.

    sizes: extent of each axis. dynamic: the axes that are `?` in the text.
    """

    def __init__(self, rng, sizes, dynamic):
        self.rng, self.sizes, self.dynamic = rng, sizes, dynamic
        self.arguments, self.lines, self.extents = [], [], {}
        # Whether the rows of all batches are one axis of the kernel.
        self.joins_rows = False

    def tensor(self, axes, dynamic=None):
        dynamic = self.dynamic if dynamic is None else dynamic
        return (
            "tensor<" + "".join(f"{'?' if a in dynamic else self.sizes[a]}x" for a in axes) + "f32>"
        )

    def argument(self, *axes):
        """An argument: a tensor, or a scalar where no axes are given."""
        value = Value(f"%arg{len(self.arguments)}", self.tensor(axes) if axes else "f32", axes)
        self.arguments.append(value)
        return value

    def op(self, text, type, axes=()):
        """Appends an operation with one result of this type."""
        value = Value(f"%{len(self.lines)}", type, axes)
        self.lines.append(f"{value.name} = {text}")
        return value

    def constant(self, number):
        return self.op(f"arith.constant {float(number)} : f32", "f32")

    def dim(self, value, axis):
        index = self.op(f"arith.constant {value.axes.index(axis)} : index", "index")
        return self.op(f"tensor.dim {value.name}, {index.name} : {value.type}", "index").name

    def empty(self, axes):
        for axis in axes:
            if axis in self.dynamic and axis not in self.extents:
                source = next(value for value in self.arguments if axis in value.axes)
                self.extents[axis] = self.dim(source, axis)
        extents = ", ".join(self.extents[axis] for axis in axes if axis in self.dynamic)
        type = self.tensor(axes)
        return self.op(f"tensor.empty({extents}) : {type}", type, axes)

    def named(self, name, inputs, out, dimensions=""):
        """A named op of linalg; those with a list of dimensions leave out the result's type."""
        return self.op(
            f"linalg.{name} {_operands('ins', inputs)} {_operands('outs', [out])} "
            + (dimensions or f"-> {out.type}"),
            out.type,
            out.axes,
        )

    def generic(self, inputs, out, body=(), result="%r", loops=None):
        """A generic over `loops`, by default out's axes. In `body`, %i0, %i1, ... are the
        elements of `inputs` and %o is that of `out`; `result` is what it yields."""
        loops = loops or out.axes
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(value.axes)})>"
            for value in (*inputs, out)
        )
        kinds = ", ".join('"parallel"' if axis in out.axes else '"reduction"' for axis in loops)
        elements = ", ".join([*(f"%i{i}: f32" for i in range(len(inputs))), "%o: f32"])
        return self.op(
            "\n".join(
                [
                    f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
                    f"      {_operands('ins', inputs)} {_operands('outs', [out])} {{",
                    f"    ^bb0({elements}):",
                    *(f"      {line}" for line in body),
                    f"      linalg.yield {result} : f32",
                    f"  }} -> {out.type}",
                ]
            ),
            out.type,
            out.axes,
        )

    def text(self, results):
        parameters = ", ".join(f"{value.name}: {value.type}" for value in self.arguments)
        lines = [*self.lines, f"return {_names(results)} : {_types(results)}"]
        return (
            f"func.func @f({parameters}) -> ({_types(results)}) {{\n"
            + "".join(f"  {line}\n" for line in lines)
            + "}\n"
        )

    def run_arguments(self, sizes):
        """The value of ftuner-run's --args for these extents."""
        return ",".join(
            "".join(f"{sizes[axis]}x" for axis in value.axes) + "f32" if value.axes else "0.75"
            for value in self.arguments
        )


def _names(values):
    return ", ".join(value.name for value in values)


def _types(values):
    return ", ".join(value.type for value in values)


def _operands(keyword, values):
    return f"{keyword}({_names(values)} : {_types(values)})" if values else ""


# The product.


@dataclass(frozen=True)
class Form:
    """Axes of the product's operands and result, and the order of its loops."""

    lhs: tuple
    rhs: tuple
    out: tuple
    loops: tuple


def random_form(rng):
    def shuffled(*axes):
        return tuple(rng.sample(axes, len(axes)))

    def batched(*axes):
        """Any order but with the batch innermost, which no kernel reads in vectors."""
        order = shuffled("b", *axes)
        return order if order[-1] != "b" else order[::-1]

    rhs = shuffled("k", "n")
    kind = rng.random()
    if kind < 0.3:
        return Form(
            batched("m", "k"), batched("k", "n"), batched("m", "n"), shuffled("b", "m", "n", "k")
        )
    if kind < 0.5:  # batches share the weight
        return Form(("b", "m", "k"), rhs, ("b", "m", "n"), ("b", "m", "n", "k"))
    return Form(shuffled("m", "k"), rhs, shuffled("m", "n"), shuffled("m", "n", "k"))


def vector_axis(f, axes):
    """A vector over a part of joined rows would need a kernel of its own."""
    return "n" if f.joins_rows else f.rng.choice(axes)


def transposed(f, value):
    out = f.empty(value.axes[::-1])
    if f.rng.random() < 0.5:
        return f.named(
            "transpose", [value], out, f"permutation = {[*range(len(value.axes))][::-1]}"
        )
    return f.generic([value], out, result="%i0")


def product(f, form, lhs, rhs, start):
    """start + lhs · rhs, by a named op where one fits, or by a generic."""
    if f.rng.random() < 0.4:
        rhs = transposed(f, rhs)
    if "b" in form.out and rhs.axes == ("k", "n") and f.rng.random() < 0.6:
        weights = f.named("broadcast", [rhs], f.empty(("b", "k", "n")), "dimensions = [0]")
        return f.named("batch_matmul", [lhs, weights], start)
    is_matmul = (lhs.axes, rhs.axes, form.out) == (("m", "k"), ("k", "n"), ("m", "n"))
    if is_matmul and f.rng.random() < 0.7:
        return f.named("matmul", [lhs, rhs], start)
    is_batch_matmul = (lhs.axes, rhs.axes, form.out) == (
        ("b", "m", "k"),
        ("b", "k", "n"),
        ("b", "m", "n"),
    )
    if is_batch_matmul and f.rng.random() < 0.7:
        return f.named("batch_matmul", [lhs, rhs], start)
    inputs = f.rng.sample([lhs, rhs], 2)
    terms = ", ".join(f.rng.sample(["%p", "%o"], 2))
    return f.generic(
        inputs,
        start,
        ["%p = arith.mulf %i1, %i0 : f32", f"%r = arith.addf {terms} : f32"],
        loops=form.loops,
    )


# What the product starts from: a tensor with these axes.


def from_zero(f, axes):
    return f.named("fill", [f.constant(0)], f.empty(axes))


def from_constant(f, axes):
    return f.named("fill", [f.constant(1.5)], f.empty(axes))


def from_scalar(f, axes):
    return f.named("fill", [f.argument()], f.empty(axes))


def from_tensor(f, axes):
    return f.argument(*axes)


def from_vector(f, axes):
    vector = f.argument(vector_axis(f, axes))
    others = [i for i, axis in enumerate(axes) if axis not in vector.axes]
    return f.named("broadcast", [vector], f.empty(axes), f"dimensions = {others}")


# What follows the product: the function's results.


def to_itself(_, value):
    return [value]


def to_vector_sum(f, value):
    vector = f.argument(vector_axis(f, value.axes))
    return [f.generic([value, vector], f.empty(value.axes), ["%r = arith.subf %i0, %i1 : f32"])]


def to_tensor_sum(f, value):
    residual = f.argument(*value.axes)
    if f.rng.random() < 0.5:
        return [f.named("add", [value, residual], f.empty(value.axes))]
    return [f.generic([value, residual], f.empty(value.axes), ["%r = arith.subf %i0, %i1 : f32"])]


def to_transposed_sum(f, value):
    """The result has the product's last axis first. No path stores along a batch axis: it does not come last."""
    axes = [*value.axes[-1:], *value.axes[:-1]]
    if axes[-1] == "b" and not f.joins_rows:
        axes.insert(0, axes.pop())
    residual = f.argument(*axes)
    return [
        f.generic([value, residual], f.empty(residual.axes), ["%r = arith.subf %i0, %i1 : f32"])
    ]


def to_relu(f, value):
    zero = f.constant(0)
    return [
        f.generic([value], f.empty(value.axes), [f"%r = arith.maximumf %i0, {zero.name} : f32"])
    ]


def to_chain(f, value):
    """Three ops; the last reads a value that another has read before."""
    vector = f.argument(vector_axis(f, value.axes))
    out = f.empty(value.axes)
    sum = f.generic([value, vector], out, ["%r = arith.addf %i0, %i1 : f32"])
    return [f.named("mul", [f.named("erf", [sum], out), sum], out)]


def to_scaled(f, value):
    scale = f.argument()
    return [f.generic([value], f.empty(value.axes), [f"%r = arith.mulf %i0, {scale.name} : f32"])]


def to_negated(f, value):
    """Reads the product as the destination."""
    return [f.generic([], value, ["%r = arith.negf %o : f32"])]


def to_cast(f, value):
    """The product goes on with dynamic extents only."""
    type = f.tensor(value.axes, dynamic=value.axes)
    cast = f.op(f"tensor.cast {value.name} : {value.type} to {type}", type, value.axes)
    extents = ", ".join([f.dim(cast, axis) for axis in value.axes])
    out = f.op(f"tensor.empty({extents}) : {type}", type, value.axes)
    return [f.named("tanh", [cast], out)]


def to_two(f, value):
    """The product is a result too, so what follows it is a kernel of its own."""
    residual = f.argument(*value.axes)
    out = f.empty(value.axes)
    return [value, f.named("mul", [f.named("tanh", [value], out), residual], out)]


STARTS = (from_zero, from_constant, from_scalar, from_tensor, from_vector)
ENDS = (
    to_itself,
    to_vector_sum,
    to_tensor_sum,
    to_transposed_sum,
    to_relu,
    to_chain,
    to_scaled,
    to_negated,
    to_cast,
    to_two,
)


class Module:
    """The random module of a seed: its text, and how to run it."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.device = rng.choice(DEVICES)
        misaligned, has_odd_sizes = rng.random() < 0.3, rng.random() < 0.2
        choices = ODD_SIZES if has_odd_sizes else SIZES
        form, start, end = random_form(rng), rng.choice(STARTS), rng.choice(ENDS)
        sizes = {axis: rng.choice(choices[axis]) for axis in form.loops}
        dynamic = [axis for axis in form.loops if rng.random() < 0.5]

        f = Function(rng, sizes, dynamic)
        f.joins_rows = "b" in form.lhs and "b" not in form.rhs
        lhs, rhs = f.argument(*form.lhs), f.argument(*form.rhs)
        results = end(f, product(f, form, lhs, rhs, start(f, form.out)))
        self.text = f.text(results)
        self.results = len(results)
        # One kernel, and another for what follows a product that is a result.
        self.launches = len(results)
        others = sizes | {axis: rng.choice(choices[axis]) for axis in dynamic}
        self.runs = [f.run_arguments(sizes), f.run_arguments(others)]
        self.flags = ["--function=f", f"--device={self.device}", f"--seed={seed % 2**31}"]
        self.flags += ["--misalign=4"] if misaligned else []
        self.features = {
            "device": self.device,
            "misaligned": misaligned,
            "odd sizes": has_odd_sizes,
            "start": start.__name__,
            "end": end.__name__,
            "batch": ("b" in form.lhs, "b" in form.rhs),
            "transposed loops": form.loops[-1] != "k",
            **{
                name: axes[-1]
                for name, axes in (("lhs", form.lhs), ("rhs", form.rhs), ("out", form.out))
            },
            **{f"dynamic {axis}": axis in dynamic for axis in form.loops},
            **{
                name: name in self.text
                for name in ("linalg.matmul", "linalg.batch_matmul", "linalg.transpose")
            },
        }
        self.label = " ".join(
            [
                self.device,
                start.__name__,
                end.__name__,
                *self.runs,
                "misaligned" if misaligned else "aligned",
            ]
        )

    def properties(self):
        return self.features


def problems_of(module, result):
    """What is wrong with a finished process of ftuner-run."""
    lines = (result.stdout + result.stderr).splitlines()
    problems = [line for line in lines if "error:" in line]
    if result.returncode != 0:
        problems.append(f"exit {result.returncode}")
    runs = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if len(runs) != len(module.runs):
        problems.append(f"expected {len(module.runs)} runs, but got {len(runs)}")
    for run in runs:
        if len(harness.launched(run)) != module.launches:
            problems.append(
                f"{run['args']}: expected {module.launches} launches, but got "
                f"{[launch['kernel'] for launch in run['launches']]}"
            )
        if len(run["results"]) != module.results:
            problems.append(
                f"{run['args']}: expected {module.results} results, but got {len(run['results'])}"
            )
        problems += [
            f"{run['args']}: relative error {checked['relative_error']}"
            for checked in run["results"]
            if not checked["ok"]
        ]
    return problems


def check(h, module):
    path = h.write(f"{module.seed}.mlir", module.text)
    args = [
        path,
        *module.flags,
        "--executor=emulator",
        "--json",
        "--check",
        "--check-bounds",
        "--check-races",
        "--thread-order=shuffled",
        *[f"--args={run}" for run in module.runs],
    ]
    h.describe(f"seed {module.seed}", module.label)
    problems = problems_of(module, h.tool("ftuner-run", *args))
    if problems:
        problems += [shlex.join(["ftuner-run", *args]), *module.text.splitlines()]
    return problems


def main():
    h, options = harness.start(__doc__, harness.random_cases(16))
    harness.add_random_cases(h, options, Module, check)
    h.finish()


if __name__ == "__main__":
    main()
