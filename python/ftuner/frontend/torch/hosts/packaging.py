"""AOTInductor as host: its graphs hold FTuner's functions."""

from __future__ import annotations

from torch._guards import detect_fake_mode

import ftuner
import torch
from torch import fx

from ..graph import layout as lay
from ..regions.importing import Call
from ..report import Report
from .host import Host, Part
from .packaged import PACKAGED_PRODUCT, Interface


class PackagedHost(Host):
    """AOTInductor: functions are called by `ftuner::packaged_product`, and constants of the graph.

    PyTorch takes constants whose names begin with `_tensor_constant` for what tracing made, which
    callers that exchange a model's weights need not give.
    """

    def __init__(self, graph: fx.Graph) -> None:
        from torch._inductor.virtualized import V

        if not V.aot_compilation:
            raise ftuner.Error("expected AOTInductor for a pass with packaged=True")
        module = graph.owning_module
        mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
        if module is None or mode is None:
            raise ftuner.Error("expected a graph of Inductor's, whose module holds constants")
        self._module, self._mode = module, mode
        #: Names of constants by the hashes of the libraries.
        self._names: dict[str, str] = {}

    joins = True
    alternates = False
    takes_rows = False

    def call(self, graph: fx.Graph, part: Part, arguments: Call) -> fx.Node:
        library = part.function.module.library_path.read_bytes()
        sizes = part.imported.function.result_sizes[0]
        interface = Interface.for_function(part.function, sizes, library)
        constant = graph.get_attr(self._constant(interface.sha256, library))
        value = getattr(self._module, str(constant.target))
        constant.meta["val"] = self._mode.from_tensor(value)
        given = [*arguments.tensors, *arguments.scalars]
        return graph.call_function(PACKAGED_PRODUCT, (given, constant, interface.write(library)))

    def _constant(self, key: str, library: bytes) -> str:
        """The name of the constant with the bytes of this hash, which calls may share."""
        if key not in self._names:
            name = f"_tensor_constant_ftuner_{key[:16]}"
            data = torch.frombuffer(bytearray(library), dtype=torch.uint8)
            self._module.register_buffer(name, data, persistent=False)
            self._names[key] = name
        return self._names[key]

    def operators(self, counts: Report) -> dict[str, int]:
        return counts.inductor_operators


def share_sizes(graph: fx.Graph) -> None:
    """Lets each size be read once, where the graph reads it first: of the model's arguments.

    Graphs of torch.export read sizes of intermediates, too. A product whose size is read would not
    be joined with the pointwise operators after it.
    """
    first: dict[lay.Extent, fx.Node] = {}
    for node in list(graph.nodes):
        if node.target is not torch.ops.aten.sym_size.int:
            continue
        known = first.setdefault(lay.extent_of(node.meta["val"]), node)
        if known is not node:
            node.replace_all_uses_with(known)
            graph.erase_node(node)
