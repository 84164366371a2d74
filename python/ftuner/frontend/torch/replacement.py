"""Replaces regions of a graph by calls of functions, one kind after the other, for every host.

A host runs the rest of the graph: PyTorch's operators one by one, or Inductor.
"""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial
from typing import Any

from torch._guards import detect_fake_mode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import ftuner
import torch
from ftuner.describe import descriptions
from ftuner.host.function import Function
from torch import fx

from .capture import note
from .graph import layout as lay
from .graph.layout import Extent
from .graph.nodes import Unsupported, flops_of, hint, launches_kernel, rejection_reason
from .hosts.host import Host, Part
from .library import LIBRARY, Built
from .options import Options
from .prediction import kernels_of, launches, layer_of, predict
from .regions.choice import Choice, Interval
from .regions.elementwise import fold_casts
from .regions.growth import RegionFinder, constant_of
from .regions.importing import ImportedRegion, import_region, range_of, replace_region
from .regions.kernels import KernelOracle, find_regions
from .regions.kinds import KINDS
from .regions.region import Context, Region, RegionKind, Rejected
from .report import KindCounts, Launches, RejectedOp, Report, layer_order, update
from .settings import Settings
from .weight_rows import WEIGHT_ROWS


def _location(node: fx.Node) -> str:
    """File and line of the model that a node computes."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    return files[-1] if files else ""


def _operator(node: fx.Node) -> str:
    return str(node.target).removeprefix("aten.")


def _rejected(node: fx.Node, reason: str) -> RejectedOp:
    return RejectedOp(_operator(node), reason, _location(node), hint(reason), flops_of(node))


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


def replace_regions(graph: fx.Graph, options: Options, host: Host) -> None:
    """Replaces products, and rows, of an ATen graph by calls of FTuner functions, and counts."""
    fold_casts(graph)
    plain = launches(kernels_of(graph, host.joins))
    device, emulate = _device_of(graph, options)
    context = Context(options, host, Settings(device, emulate, options.compile))
    never = {node: reason for node in graph.nodes if (reason := rejection_reason(node)) is not None}
    replacements = [Replacement(kind, graph, context) for kind in KINDS]
    replacements[0].reasons.update(never)
    for replacement in replacements:
        if replacement.kind.is_wanted(context):
            replacement.run()
    graph.lint()
    parts = [part for replacement in replacements for part in replacement.parts]
    kernels = kernels_of(graph, host.joins)
    prediction = predict(graph, kernels, parts)
    others = launches(kernels)
    taken: Counter[str] = Counter()
    for part in parts:
        taken[layer_of(part.imported.region.seed)] += _kernel_count(part)
    stay = Counter(_operator(node) for node in graph.nodes if launches_kernel(node))
    with update() as counts:
        counts.graphs += 1
        operators = host.operators(counts)
        for operator, count in stay.items():
            operators[operator] = operators.get(operator, 0) + count
        for replacement in replacements:
            replacement.count(counts)
        for layer in sorted({*plain, *others, *taken}, key=layer_order):
            counts.layers.setdefault(layer, Launches()).add(
                taken[layer], others[layer], plain[layer]
            )
        if prediction is not None:
            counts.ftuner_us += prediction.ftuner_us
            counts.others_us += prediction.others_us
            counts.others_unknown += prediction.unknown


def _kernel_count(part: Part) -> int:
    """The number of kernels that a call of a function launches."""
    work = part.function.report.data
    fallbacks = sum(kernel["launches"] for kernel in work.get("fallback_kernels", ()))
    return max(1, len(work.get("workloads", ())) + int(fallbacks))


class Replacement:
    """Replaces the regions of one kind in a graph.

    Attributes:
        parts: the parts that were replaced.
        reasons: the reasons why operators stay with the host.
        counts: what the report counts of this kind.
    """

    def __init__(self, kind: RegionKind, graph: fx.Graph, context: Context) -> None:
        self.kind, self.graph, self.context = kind, graph, context
        self.parts: list[Part] = []
        self.reasons: dict[fx.Node, str] = {}
        self.counts = KindCounts()
        self._intervals: dict[str, list[Interval]] = {}
        self._copies = 0

    def run(self) -> None:
        finder, imported = self._find()
        replaced: dict[fx.Node, fx.Node] = {}
        dead: list[fx.Node] = []
        for item, built in zip(imported, self._compile(imported)):
            region = item.region
            flops = sum(flops_of(node) or 0 for node in region.seeds)
            try:
                part = self._chosen(item, built)
                call = partial(self.context.host.call, self.graph, part)
                self._copies += replace_region(item, self.graph, call, replaced, bool(part.choice))
            except Unsupported as error:
                self.reasons.update((node, str(error)) for node in region.seeds)
                continue
            note(part.function)
            self.parts.append(part)
            self.counts.taken_flops += flops
            inputs = (one for node in region.nodes for one in node.all_input_nodes)
            dead += [one for one in inputs if constant_of(one) is not None]
            dead += region.nodes
        reasons = {**finder.reasons, **self.reasons}
        for node in sorted(reasons, key=finder.order.__getitem__):
            self.counts.rejected.append(_rejected(node, reasons[node]))
        _erase_unused(self.graph, dead)

    def _find(self) -> tuple[RegionFinder, list[ImportedRegion]]:
        options, shape_env = self.context.options, _shape_env_of(self.graph)

        def refuse(length: Extent) -> str | None:
            return self.kind.refuse(range_of(length, shape_env), self.context)

        def describe(region: Region) -> ImportedRegion:
            return import_region(region, shape_env, options.symbols, bool(options.dynamic))

        oracle = KernelOracle(self.context.settings)
        return find_regions(self.kind, self.graph, refuse, describe, oracle)

    def _compile(self, imported: list[ImportedRegion]) -> list[Built]:
        """Compiles the functions, of which some then are for more sizes than was asked for."""
        functions, settings = [item.function for item in imported], self.context.settings
        if not self.context.options.dynamic:
            return LIBRARY.get(functions, settings)
        compiled = WEIGHT_ROWS.get(functions, settings, LIBRARY)
        for item, (function, _) in zip(imported, compiled):
            item.function = function
        return [built for _, built in compiled]

    def _chosen(self, item: ImportedRegion, built: Built) -> Part:
        """The part that a region becomes. Raises Unsupported if it stays with the host."""
        if isinstance(built, Unsupported):
            raise built
        if not isinstance(built, Function):
            raise Unsupported(self._refusal(item.region.seed, built))
        try:
            choice = self.kind.choose(item, built, self.context)
        except Rejected as error:
            self._note_choice(item, error.choice)
            raise
        self._note_choice(item, choice)
        return Part(
            item, built, self.context.settings, None if choice and choice.is_all else choice
        )

    def _note_choice(self, item: ImportedRegion, choice: Choice | None) -> None:
        if choice is not None:
            self._intervals.setdefault(item.function.name, []).extend(choice.intervals)

    def _refusal(self, seed: fx.Node, error: ftuner.CompileError) -> str:
        """The compiler's reason; raises the error, or warns, for kinds that must compile."""
        if not self.kind.must_compile:
            return _first_error(error)
        where = seed.meta.get("stack_trace") or ""
        message = f"FTuner could not compile {seed.target} ({seed.name}): {error}"
        if not self.context.options.fallback:
            raise ftuner.CompileError(
                f"{message}\nin the model:\n{where}", error.diagnostics
            ) from error
        warnings.warn(f"{message}; PyTorch computes it", stacklevel=2)
        return str(error)

    def count(self, report: Report) -> None:
        """Adds what was done to the report."""
        regions = [part.imported.region for part in self.parts]
        self.counts.taken = sum(len(region.seeds) for region in regions)
        self.counts.functions = len(regions)
        report.kind(self.kind.name).add(self.counts)
        report.fused += sum(len(region.fused) for region in regions)
        report.copies += self._copies
        for name, intervals in self._intervals.items():
            report.intervals.setdefault(name, []).extend(intervals)
        if self.kind.is_listed:
            for part in self.parts:
                name = part.imported.function.name
                report.functions[name] = report.functions.get(name, 0) + 1


def _first_error(error: ftuner.CompileError) -> str:
    """The compiler's first error, without its place in a text that users do not see."""
    errors = [
        line.partition("error: ")[2] for line in error.diagnostics.splitlines() if "error: " in line
    ]
    return (errors or str(error).splitlines() or ["no reason given"])[0]


def _erase_unused(graph: fx.Graph, nodes: list[fx.Node]) -> None:
    """Erases the nodes without users, and the views that have no users then.

    The host erases other nodes without users: it knows which ones have effects.
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
