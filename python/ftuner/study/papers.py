"""Workloads and reported figures of the papers whose searches are strategies here.

The table is papers.json, with the papers' numbers of tables and figures. It is read, and the
workloads' MLIR is made, without the rest of the package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1
NAMES = ("ftuner", "dietcode", "gensor")

#: The lengths of all dynamic workloads of the papers.
LENGTHS = "1 to 128"


@dataclass(frozen=True)
class Part:
    """An operator of a workload, and how many times it is there."""

    name: str
    count: int
    operator: Mapping[str, Any]

    @property
    def flops(self) -> int | None:
        """FLOPs of one call; None if a size is dynamic."""
        one = self.operator
        if one["kind"] == "pool":
            return int(one["images"] * one["channels"] * _outputs(one) ** 2 * one["window"] ** 2)
        if one["kind"] == "conv":
            points = one["images"] * one["filters"] * _outputs(one) ** 2
            return int(2 * points * one["channels"] * one["window"] ** 2)
        if not isinstance(one.get("m"), int):
            return None
        return int(2 * one["m"] * one.get("n", 1) * one["k"])


@dataclass(frozen=True)
class Workload:
    """A line of a paper's table of workloads."""

    name: str
    #: Description for readers.
    description: str
    parts: Sequence[Part]

    @property
    def factors(self) -> set[int]:
        """The main axis of each part has as many times `T`; empty where all sizes are static."""
        given = [(part.operator["kind"], part.operator.get("m")) for part in self.parts]
        factors = {m[0] for _, m in given if isinstance(m, list)}
        return factors | {1 for kind, _ in given if kind.startswith("batch_")}

    def text(self) -> str:
        """A module with a function for each part; its symbols are `T`, or `T16` for 16 · T."""
        functions = [function(part.name, part.operator) for part in self.parts]
        return module(functions, [part.operator.get("m") for part in self.parts])


@dataclass(frozen=True)
class Reported:
    """Figures of a paper; `kind` says what `values` are, by system.

    ms: of each of the sizes T, or one. tflops. sm_use: percent at each T. seconds: of tuning.
    less_by, faster_by: percent by which the reference takes less time than the system, and by which
    the system's time over the reference's is above 1; means over T. search_shorter: seconds of the
    system over the reference's.
    """

    kind: str
    workload: str
    #: Table or figure of the paper.
    source: str
    values: Mapping[str, Any]
    sizes: Sequence[int] = ()


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    devices: Sequence[str]
    strategies: Sequence[str]
    #: The strategy that stands for a system here, by the paper's name of the system.
    systems: Mapping[str, str]
    #: The paper's own system.
    reference: str
    workloads: Sequence[Workload]
    reported: Sequence[Reported]

    def sizes(self, workload: str) -> Sequence[int]:
        """T of the figures of a workload; empty without figures."""
        return next(
            (one.sizes for one in self.reported if one.workload == workload and one.sizes), ()
        )


def load(name: str) -> Paper:
    """The paper of one of `NAMES`."""
    data = json.loads(Path(__file__).with_name("papers.json").read_text(encoding="utf-8"))
    assert data["format_version"] == FORMAT_VERSION
    paper = data[name]
    workloads = [
        Workload(
            label,
            content["what"],
            [
                Part(label if len(content["parts"]) == 1 else f"{label}_{i}", count, operator)
                for i, (count, operator) in enumerate(content["parts"])
            ],
        )
        for label, content in paper["workloads"].items()
    ]
    reported = [Reported(**content) for content in paper["reported"]]
    return Paper(
        name,
        paper["title"],
        paper["devices"],
        paper["strategies"],
        paper["systems"],
        paper["reference"],
        workloads,
        reported,
    )


# ------------------------------------------------------------------------------------------------
# MLIR
# ------------------------------------------------------------------------------------------------


def function(name: str, operator: Mapping[str, Any]) -> str:
    """A function that computes one operator, in f32, into its last argument.

    Kinds: `product` [m, k] × [k, n], `transposed` for [n, k]; `matvec` [m, k] × [k]; `batch_nt`
    batch × [T, k] × [T, k] transposed; `batch_nn` batch × [T, T] × [T, n]; `conv` and
    `pool` (a sum) of square images [images, channels, size, size] without padding. `m` may be
    [factor, "T"].
    """
    one = operator
    kind = one["kind"]
    if kind == "matvec":
        return _linalg(
            name, "matvec", "", [[_size(one["m"]), one["k"]], [one["k"]]], [_size(one["m"])]
        )
    if kind == "product":
        m, n, k = _size(one["m"]), one["n"], one["k"]
        if not one.get("transposed"):
            return _linalg(name, "matmul", "", [[m, k], [k, n]], [m, n])
        maps = _maps("m, n, k", ("m, k", "n, k", "m, n"))
        return _linalg(name, "matmul", maps, [[m, k], [n, k]], [m, n])
    if kind == "batch_nt":
        return batch_matmul(name, one["batch"], "T", "T", one["k"], transposed=True)
    if kind == "batch_nn":
        return batch_matmul(name, one["batch"], "T", one["n"], "T")
    images, channels, size, out = one["images"], one["channels"], one["size"], _outputs(one)
    strides = f" {{strides = dense<{one['stride']}> : vector<2xi64>}}"
    image, window = [images, channels, size, size], [one["window"], one["window"]]
    if kind == "conv":
        filters = [one["filters"], channels, *window]
        result = [images, one["filters"], out, out]
        return _linalg(name, "conv_2d_nchw_fchw", strides, [image, filters], result)
    return _linalg(name, "pooling_nchw_sum", strides, [image, window], [images, channels, out, out])


def batch_matmul(
    name: str, batch: int, m: int | str, n: int | str, k: int | str, *, transposed: bool = False
) -> str:
    """batch × [m, k] × [k, n], or [n, k], into the last argument; sizes that are strings are symbols."""
    maps = ("b, m, k", "b, n, k", "b, m, n")
    second = [batch, n, k] if transposed else [batch, k, n]
    attributes = _maps("b, m, n, k", maps) if transposed else ""
    return _linalg(name, "batch_matmul", attributes, [[batch, m, k], second], [batch, m, n])


def _maps(loops: str, operands: Sequence[str]) -> str:
    return (
        f" indexing_maps = [{', '.join(f'affine_map<({loops}) -> ({one})>' for one in operands)}]"
    )


def module(functions: Sequence[str], rows: Sequence[Any] = (), lengths: str = LENGTHS) -> str:
    """A module of functions, with the ranges of `T` and of the multiples of it among `rows`."""
    ranges = {"T": lengths} if any('"T"' in text for text in functions) else {}
    last = lengths.split()[-1]
    for size in rows:
        if not (size is None or isinstance(size, int)) and size[0] != 1:
            factor = size[0]
            ranges[_size(size)] = f"{factor} to {factor * int(last)} step {factor}"
    words = ", ".join(f"{name} = #ukernel.range<{text}>" for name, text in ranges.items())
    symbols = f" attributes {{ukernel.symbols = {{{words}}}}}" if words else ""
    return f"module{symbols} {{\n{''.join(functions)}}}\n"


def _outputs(operator: Mapping[str, Any]) -> int:
    """Rows and columns of the result of windows without padding."""
    return int((operator["size"] - operator["window"]) // operator["stride"] + 1)


def _size(size: Any) -> Any:
    """[16, "T"], a dynamic size of 16 · T, has the symbol "T16"."""
    if isinstance(size, (int, str)):
        return size
    factor, symbol = size
    return symbol if factor == 1 else f"{symbol}{factor}"


def _tensor(shape: Sequence[int | str]) -> str:
    sizes = "".join(f"{size}x" if isinstance(size, int) else "?x" for size in shape)
    return f"tensor<{sizes}f32>"


def _argument(name: str, shape: Sequence[int | str]) -> str:
    text = f"%{name}: {_tensor(shape)}"
    if all(isinstance(size, int) for size in shape):
        return text
    words = ", ".join(str(size) if isinstance(size, int) else f'"{size}"' for size in shape)
    return f"{text} {{ukernel.shape = [{words}]}}"


def _linalg(
    name: str,
    operator: str,
    attributes: str,
    inputs: Sequence[Sequence[int | str]],
    result: Sequence[int | str],
) -> str:
    """A function around one operator of linalg that adds to zero.

    The window of a pooling is not an argument: it has only a shape.
    """
    names = ["a", "b"]
    types = [_tensor(shape) for shape in inputs]
    output = _tensor(result)
    is_pooling = operator.startswith("pooling")
    given = [_argument(*pair) for pair in zip(names, inputs)][: 1 if is_pooling else 2]
    lines = [f"  func.func @{name}({', '.join([*given, _argument('out', result)])}) -> {output} {{"]
    if is_pooling:
        lines.append(f"    %b = tensor.empty() : {types[1]}")
    lines += [
        "    %zero = arith.constant 0.0 : f32",
        f"    %start = linalg.fill ins(%zero : f32) outs(%out : {output}) -> {output}",
        f"    %r = linalg.{operator}{attributes} ins(%a, %b : {', '.join(types)}) outs(%start : {output}) -> {output}",
        f"    return %r : {output}",
        "  }",
    ]
    return "\n".join(lines) + "\n"
