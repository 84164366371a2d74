"""Values of exported models that depend on weights and constants only.

A weight norm or the scale of a batch norm is the same for every call. Such values become
arguments of the function in place of the weights that they are computed from. PyTorch computes
them when the model is exported, and once more after a weight changed in place.

Three kinds of values stay in the function: views of weights, copies that need more memory than their
sources, such as dequantized weights, and values of small constants only.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

import torch
from torch import fx

from ..graph import layout as lay

#: Maximum bytes of a folded value that is larger than its weights.
_FREE_BYTES = 2**16

_VIEWS = lay.VIEWS | {
    torch.ops.aten.slice.Tensor,
    torch.ops.aten.select.int,
    torch.ops.aten.flatten.using_ints,
    torch.ops.aten.unflatten.int,
    torch.ops.aten.squeeze.default,
    torch.ops.aten.movedim.int,
}


@dataclass
class Weights:
    """Tensors that follow the arguments of a model's function.

    Attributes:
        sources: parameters, buffers and larger constants, which share memory with the model.
        names: of the function's last arguments, in their order.
        folding: computes the tensors that are not `sources`, from the sources.
    """

    sources: dict[str, torch.Tensor]
    names: list[str]
    folding: fx.GraphModule | None = None
    _versions: tuple[int, ...] = ()
    _tensors: list[torch.Tensor] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tensors(self) -> list[torch.Tensor]:
        """The tensors, contiguous, with the values that the sources have now."""
        versions = tuple(map(_version, self.sources.values()))
        with self._lock:
            if not self._tensors or versions != self._versions:
                self._tensors, self._versions = self._compute(), versions
            return self._tensors

    def _compute(self) -> list[torch.Tensor]:
        values = dict(self.sources)
        if self.folding is not None:
            with torch.no_grad():
                values |= self.folding(*self.sources.values())
        return [values[name].detach().contiguous() for name in self.names]


def _version(tensor: torch.Tensor) -> int:
    """The number of changes of a tensor in place; 0 for a tensor that does not count them."""
    return 0 if tensor.is_inference() else tensor._version


def fold(
    program: ExportedProgram, weights: Mapping[str, torch.Tensor], nodes: Sequence[fx.Node]
) -> Weights:
    """Replaces values of weights by arguments.

    Args:
        program: has the weights as its last inputs.
        weights: by name.
        nodes: the placeholder of each.
    """
    result = Weights(dict(weights), list(weights))
    for node in list(program.graph.nodes):
        # The types of a function's values say as much, and a reader keeps a weight.
        if node.target == torch.ops.aten._assert_tensor_metadata.default:
            program.graph.erase_node(node)
    folded = _folded(program, nodes)
    if not folded:
        return result
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node in nodes:
            copies[node] = graph.placeholder(node.name)
    constants = _constants(program)
    module = torch.nn.Module()

    def copy(node: fx.Node) -> fx.Node:
        for source in node.all_input_nodes:
            if source in copies:
                continue
            if source in constants:
                module.register_buffer(source.name, constants[source], persistent=False)
                copies[source] = graph.get_attr(source.name)
            else:
                copies[source] = copy(source)
        return graph.node_copy(node, lambda source: copies[source])

    values = {}
    for node in folded:
        if node not in copies:
            copies[node] = copy(node)
        values[f"folded.{node.name}"] = copies[node]
    graph.output(values)
    result.folding = fx.GraphModule(module, graph)
    for node in folded:
        _make_argument(program, node)
        result.names.append(f"folded.{node.name}")
    program.graph.eliminate_dead_code()
    specs = program.graph_signature.input_specs
    for name, node in zip(list(weights), nodes):
        if not node.users:
            program.graph.erase_node(node)
            specs[:] = [spec for spec in specs if spec.arg.name != node.name]
            result.names.remove(name)
    return result


def _constants(program: ExportedProgram) -> dict[fx.Node, torch.Tensor]:
    """The constants that are part of a program, by their placeholders."""
    targets = {
        spec.arg.name: str(spec.target)
        for spec in program.graph_signature.input_specs
        if spec.kind == InputKind.CONSTANT_TENSOR
    }
    return {
        node: program.constants[targets[node.name]].detach()
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in targets
    }


def _make_argument(program: ExportedProgram, node: fx.Node) -> None:
    """Makes a program take a value that it computed."""
    last = [other for other in program.graph.nodes if other.op == "placeholder"][-1]
    with program.graph.inserting_after(last):
        argument = program.graph.placeholder(f"folded_{node.name}")
    argument.meta = dict(node.meta)
    node.replace_all_uses_with(argument)
    arg = TensorArgument(name=argument.name)
    program.graph_signature.input_specs.append(InputSpec(InputKind.USER_INPUT, arg, None))


def _folded(program: ExportedProgram, weights: Sequence[fx.Node]) -> list[fx.Node]:
    """The values of weights that the rest of the program reads, in the order of the graph."""
    constants = _constants(program)
    #: The weights that each value depends on.
    reads: dict[fx.Node, frozenset[fx.Node]] = {node: frozenset([node]) for node in weights}
    reads |= {node: frozenset() for node in constants}
    for node in program.graph.nodes:
        if _is_known(node) and all(source in reads for source in node.all_input_nodes):
            reads[node] = frozenset().union(*(reads[source] for source in node.all_input_nodes))
    while True:
        folded = [
            node
            for node in program.graph.nodes
            if node in reads and reads[node] and _computes(node) and not _is_inner(node, reads)
        ]
        refused = [node for node in folded if not _is_worth_it(node, reads[node])]
        if not refused:
            return folded
        for node in refused:
            del reads[node]
        # A value that reads a value in the function stays there, too.
        for node in program.graph.nodes:
            if node in reads and node.op == "call_function":
                if not all(source in reads for source in node.all_input_nodes):
                    del reads[node]


def _is_known(node: fx.Node) -> bool:
    """Returns whether a node gives tensors of known sizes that do not differ from call to call."""
    if node.op != "call_function":
        return False
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        if torch.Tag.nondeterministic_seeded in target.tags or target._schema.is_mutable:
            return False
    elif getattr(target, "__name__", "") != "getitem":
        return False
    value = node.meta.get("val")
    tensors = value if isinstance(value, (tuple, list)) else [value]
    return all(
        isinstance(tensor, torch.Tensor) and all(isinstance(size, int) for size in tensor.shape)
        for tensor in tensors
    )


def _computes(node: fx.Node) -> bool:
    return (
        node.op == "call_function"
        and node.target not in _VIEWS
        and isinstance(node.meta.get("val"), torch.Tensor)
    )


def _is_inner(node: fx.Node, reads: Mapping[fx.Node, Any]) -> bool:
    """Returns whether only other values of weights read a value, also through views."""
    for user in node.users:
        if user not in reads:
            return False
        if not _computes(user) and not _is_inner(user, reads):
            return False
    return True


def _is_worth_it(node: fx.Node, weights: frozenset[fx.Node]) -> bool:
    """Returns whether a value needs no more memory than its weights, and is not a result."""
    pending = [node]
    while pending:
        for user in pending.pop().users:
            if user.op == "output":
                return False
            if not _computes(user):
                pending.append(user)
    return _bytes(node) <= max(_FREE_BYTES, sum(map(_bytes, weights)))


def _bytes(node: fx.Node) -> int:
    value: torch.Tensor = node.meta["val"]
    return math.prod(value.shape) * value.element_size()
