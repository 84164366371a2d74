"""Replaces products of a graph, and then reductions of rows, by calls of functions, for every host.

A host is who runs the rest of the graph: PyTorch's operators one by one, or Inductor.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import ftuner
from ftuner.describe import descriptions
from ftuner.host.function import Function

from . import layout as lay
from .capture import note
from .choice import Choice, Interval, choose
from .importer import Call, ImportedRegion, import_region, range_of, replace_region
from .layout import Extent
from .library import LIBRARY, Built, Settings
from .options import Options
from .partition import (
    NotTaken, RegionFinder, computes, flops_of, hint, reason_to_leave,
)  # fmt: skip
from .prediction import kernels_of, launches, layer_of, predict
from .report import Launches, Left, Report, layer_order, update
from .row_choice import INDUCTOR_FASTER, is_faster, why_inductors
from .row_importer import ImportedRows, import_rows, replace_rows
from .row_regions import RowFinder, RowRegion, constant_of
from .rows import ROWS


@dataclass(frozen=True)
class Product:
    """A part of a graph that became a function, and what that was compiled for."""

    imported: ImportedRegion
    function: Function
    settings: Settings
    #: Who computes which sizes; None: FTuner all of them.
    choice: Choice | None = None


#: Why products stay with PyTorch that FTuner could compute.
SLOWER = "PyTorch is predicted to be faster at all sizes; the option take='all' takes it anyway"


@dataclass(frozen=True)
class Rows:
    """Reductions of rows that became a function, and what that was compiled for."""

    imported: ImportedRows
    function: Function
    settings: Settings
    #: All sizes are FTuner's.
    choice: None = None


class Host(ABC):
    """Who runs a graph: how it calls functions, and what it does with the rest."""

    #: Whether it makes one kernel of pointwise operators that follow each other.
    joins: bool
    #: Whether it calls functions of rows.
    takes_rows: bool = True
    #: Whether PyTorch may compute some sizes of a product, and FTuner the others.
    alternates: bool = True

    @abstractmethod
    def call(self, graph: fx.Graph, product: Product, arguments: Call) -> fx.Node:
        """A new node that calls the function, where the graph is being written."""

    def call_rows(self, graph: fx.Graph, rows: Rows, arguments: Call) -> fx.Node:
        """The same for a function of rows; the node gives a sequence of tensors."""
        raise NotImplementedError

    @abstractmethod
    def operators(self, counts: Report) -> dict[str, int]:
        """Where the operators are counted that the host runs."""


def _location(node: fx.Node) -> str:
    """File and line of the model that a node computes."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    return files[-1] if files else ""


def _operator(node: fx.Node) -> str:
    return str(node.target).removeprefix("aten.")


def _left(node: fx.Node, reason: str) -> Left:
    operator = _operator(node)
    return Left(operator, reason, _location(node), hint(reason), flops_of(node))


def _device_of(graph: fx.Graph, options: Options) -> tuple[Any, bool]:
    """The device to compile for, and whether kernels are compiled for the emulator."""
    values = (node.meta.get("val") for node in graph.nodes)
    gpus = {
        value.device
        for value in values
        if isinstance(value, torch.Tensor) and value.device.type == "cuda"
    }
    device = options.device
    if device is None:
        device = f"cuda:{min(gpu.index or 0 for gpu in gpus)}" if gpus else descriptions.default()
    return device, not gpus if options.emulate is None else options.emulate


def _shape_env_of(graph: fx.Graph) -> ShapeEnv | None:
    fake_mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    return fake_mode.shape_env if fake_mode else None


def _import(graph: fx.Graph, finder: RegionFinder, options: Options) -> list[ImportedRegion]:
    shape_env = _shape_env_of(graph)
    return [
        import_region(region, shape_env, options.symbols, bool(options.dynamic))
        for region in finder.regions()
    ]


def _compile(imported: list[ImportedRegion], settings: Settings, dynamic: bool) -> list[Built]:
    """Compiles the functions, of which some then are for more sizes than was asked for."""
    functions = [item.function for item in imported]
    if not dynamic:
        return LIBRARY.get(functions, settings)
    compiled = ROWS.get(functions, settings, LIBRARY)
    for item, (function, _) in zip(imported, compiled):
        item.function = function
    return [built for _, built in compiled]


def replace_parts(graph: fx.Graph, options: Options, host: Host) -> None:
    """Replaces products, and rows, of an ATen graph by calls of FTuner functions, and counts."""
    finder = RegionFinder(graph)
    plain = launches(kernels_of(graph, host.joins))
    dynamic = bool(options.dynamic)
    imported = _import(graph, finder, options)
    device, emulate = _device_of(graph, options)
    settings = Settings(device, emulate, options.compile)
    functions = _compile(imported, settings, dynamic)
    left = [
        _left(node, reason)
        for node in graph.nodes
        if (reason := finder.reasons.get(node) or reason_to_leave(node)) is not None
    ]
    names: list[str] = []
    intervals: dict[str, list[Interval]] = {}
    flops = 0.0
    fused = copies = 0
    dead: list[fx.Node] = []
    taken: list[Product] = []
    replaced: dict[fx.Node, fx.Node] = {}
    for item, function in zip(imported, functions):
        node = item.region.product
        if isinstance(function, ftuner.CompileError):
            left.append(_refuse(node, function, options.fallback))
            continue
        if isinstance(function, NotTaken):
            left.append(_left(node, str(function)))
            continue
        choice = None if options.take == "all" else choose(item, function, settings, host.joins)
        if choice is not None and not host.alternates:
            choice = choice.whole()
        if choice is not None:
            intervals.setdefault(item.function.name, []).extend(choice.intervals)
            if not any(interval.is_ftuners for interval in choice.intervals):
                left.append(_left(node, SLOWER))
                continue
        product = Product(item, function, settings, None if choice and choice.is_all else choice)
        product_flops = flops_of(node)
        try:
            call = partial(host.call, graph, product)
            copies += replace_region(item, graph, call, replaced, product.choice is not None)
        except NotTaken as error:
            left.append(_left(node, str(error)))
            continue
        names.append(item.function.name)
        taken.append(product)
        note(function)
        flops += product_flops or 0
        fused += len(item.region.emitted)
        dead += item.region.nodes
    _erase_unused(graph, dead)
    rows = _RowReplacement(graph, options, host, settings)
    rows.run()
    graph.lint()
    kernels = kernels_of(graph, host.joins)
    prediction = predict(graph, kernels, [*taken, *rows.taken])
    others = launches(kernels)
    ours = Counter(layer_of(product.imported.region.product) for product in taken)
    ours += Counter(layer_of(one.imported.region.seed) for one in rows.taken)
    stay = Counter(_operator(node) for node in graph.nodes if computes(node))
    with update() as counts:
        counts.graphs += 1
        operators = host.operators(counts)
        for operator, count in stay.items():
            operators[operator] = operators.get(operator, 0) + count
        counts.products += len(names) + len(left)
        counts.taken += len(names)
        counts.taken_flops += flops
        counts.left += left
        counts.fused += fused + sum(len(one.imported.region.fused) for one in rows.taken)
        counts.rows += rows.looked_at
        counts.rows_taken += sum(len(one.imported.region.reductions) for one in rows.taken)
        counts.row_functions += len(rows.taken)
        counts.rows_left += rows.left
        for layer in sorted({*plain, *others, *ours}, key=layer_order):
            counts.layers.setdefault(layer, Launches()).add(ours[layer], others[layer], plain[layer])
        if prediction is not None:
            counts.ftuner_us += prediction.ftuner_us
            counts.others_us += prediction.others_us
            counts.others_unknown += prediction.unknown
        counts.copies += copies
        for name, some in intervals.items():
            counts.intervals.setdefault(name, []).extend(some)
        for name in names:
            counts.functions[name] = counts.functions.get(name, 0) + 1


class _RowReplacement:
    """Replaces reductions of rows in a graph whose products are replaced already.

    Attributes:
        taken: what was replaced.
        left: what stays with the host, and why, in the order of the graph.
        reasons: why reductions stay whose regions could be no call.
        looked_at: reductions in the graph.
    """

    def __init__(self, graph: fx.Graph, options: Options, host: Host, settings: Settings) -> None:
        self.graph, self.options, self.host, self.settings = graph, options, host, settings
        self.taken: list[Rows] = []
        self.left: list[Left] = []
        self.reasons: dict[fx.Node, str] = {}
        self.looked_at = 0

    def run(self) -> None:
        if self.options.rows == "never" or not self.host.takes_rows:
            return
        finder = RowFinder(self.graph)
        self.looked_at = len(finder.reductions)
        is_chosen = self.host.joins and self.options.rows == "auto"
        shape_env = _shape_env_of(self.graph)

        def reason(length: Extent) -> str | None:
            return why_inductors(range_of(length, shape_env)) if is_chosen else None

        imported: list[ImportedRows] = []
        for region in finder.regions(reason):
            try:
                imported.append(import_rows(region, shape_env, self.options.symbols))
            except NotTaken as error:
                self._leave(region, str(error))
        dead: list[fx.Node] = []
        replaced: dict[fx.Node, fx.Node] = {}
        functions = LIBRARY.get([item.function for item in imported], self.settings)
        for item, function in zip(imported, functions):
            if not isinstance(function, Function):
                self._leave(item.region, _first_error(function))
                continue
            if is_chosen and not is_faster(item.function, function, self.settings):
                self._leave(item.region, INDUCTOR_FASTER)
                continue
            rows = Rows(item, function, self.settings)
            try:
                call = partial(self.host.call_rows, self.graph, rows)
                replace_rows(item, self.graph, call, replaced)
            except NotTaken as error:
                self._leave(item.region, str(error))
                continue
            note(function)
            self.taken.append(rows)
            inputs = (one for node in item.region.nodes for one in node.all_input_nodes)
            dead += [one for one in inputs if constant_of(one) is not None]
            dead += item.region.nodes
        _erase_unused(self.graph, dead)
        reasons = {**finder.reasons, **self.reasons}
        self.left = [
            Left(_operator(node), reasons[node], _location(node))
            for node in sorted(reasons, key=finder.order.__getitem__)
        ]

    def _leave(self, region: RowRegion, reason: str) -> None:
        self.reasons.update((node, reason) for node in region.reductions)


def _first_error(error: ftuner.CompileError | NotTaken) -> str:
    """What a compiler says first, without the place in a text that nobody sees."""
    lines = getattr(error, "diagnostics", "").splitlines()
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return (errors or str(error).splitlines() or ["no reason given"])[0]


def _erase_unused(graph: fx.Graph, nodes: list[fx.Node]) -> None:
    """Erases those of the nodes that nothing uses, with the views that then nothing uses.

    What else is without use in a graph is the host's business, who knows what has effects.
    """
    kept = {node for node in graph.nodes}
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in kept or node.users:
            continue
        sources = [source for source in node.all_input_nodes if source.target in lay.VIEWS]
        graph.erase_node(node)
        kept.discard(node)
        pending += sources


def _refuse(product: fx.Node, error: ftuner.CompileError, fallback: bool) -> Left:
    """Raises the error with the place in the model, or warns and leaves the product."""
    where = product.meta.get("stack_trace") or ""
    message = f"FTuner could not compile {product.target} ({product.name}): {error}"
    if not fallback:
        raise ftuner.CompileError(
            f"{message}\nin the model:\n{where}", error.diagnostics
        ) from error
    warnings.warn(f"{message}; PyTorch computes it", stacklevel=2)
    return _left(product, str(error))
