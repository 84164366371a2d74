"""Replaces the products of a graph by calls of functions, for every host.

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

import ftuner
from ftuner.function import Function

from . import layout as lay
from .capture import note
from .choice import Choice, Interval, choose
from .importer import Call, ImportedRegion, import_region, replace_region
from .library import LIBRARY, Built, Settings
from .options import Options
from .partition import (
    NotTaken, RegionFinder, computes, flops_of, hint, is_product, reason_to_leave,
)  # fmt: skip
from .prediction import kernels_of, launches, layer_of, predict
from .report import Launches, Left, Report, layer_order, update
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


class Host(ABC):
    """Who runs a graph: how it calls functions, and what it does with the rest."""

    #: Whether it makes one kernel of pointwise operators that follow each other.
    joins: bool
    #: Whether PyTorch may compute some sizes of a product, and FTuner the others.
    alternates: bool = True

    @abstractmethod
    def call(self, graph: fx.Graph, product: Product, arguments: Call) -> fx.Node:
        """A new node that calls the function, where the graph is being written."""

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
    gpus = {
        node.meta["val"].device
        for node in graph.nodes
        if is_product(node) and node.meta["val"].device.type == "cuda"
    }
    device = options.device
    if device is None:
        device = f"cuda:{min(gpu.index or 0 for gpu in gpus)}" if gpus else "h200"
    return device, not gpus if options.emulate is None else options.emulate


def _import(graph: fx.Graph, finder: RegionFinder, options: Options) -> list[ImportedRegion]:
    fake_mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
    shape_env = fake_mode.shape_env if fake_mode else None
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


def replace_products(graph: fx.Graph, options: Options, host: Host) -> None:
    """Replaces the products of an ATen graph by calls of FTuner functions, and counts."""
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
    graph.lint()
    kernels = kernels_of(graph, host.joins)
    prediction = predict(graph, kernels, taken)
    others = launches(kernels)
    ours = Counter(layer_of(product.imported.region.product) for product in taken)
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
        counts.fused += fused
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
