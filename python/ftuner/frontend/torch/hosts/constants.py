"""Numbers of a model that PyTorch's compiler has to take as constants.

With dynamic shapes, Dynamo makes each Python float an input of the graph. Where AOTAutograd finds
after all of its tracing that some cannot be inputs, such as the epsilon of a layer norm, the whole
compilation starts again with those as constants. A graph of Dynamo tells many of them already.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx

try:
    from torch._dynamo.exc import TensorifyScalarRestartAnalysis
    from torch._dynamo.symbolic_convert import TensorifyState
    from torch.utils._sympy.symbol import SymT, symbol_is_type
except ImportError:  # A PyTorch that finds constants in another way.
    TensorifyState = None  # type: ignore[assignment,misc]

#: Functions that ignore their floats as the backend gets them, so no graph of ATen has these.
_IGNORING = (torch.nn.functional.embedding,)


def restart_with_constants(gm: fx.GraphModule) -> None:
    """Starts the compilation again where AOTAutograd is bound to, before it traces anything.

    By PyTorch's own exception for it; AOTAutograd still finds what this leaves.
    """
    if TensorifyState is None:
        return
    names = {name for name in _constants(gm.graph) if not TensorifyState.should_specialize(name)}
    for name in names:
        TensorifyState.specialize(name)
    if names:
        raise TensorifyScalarRestartAnalysis


def _constants(graph: fx.Graph) -> Iterator[str]:
    """Symbols of floats that are inputs of the graph and will be constants."""
    for node in graph.nodes:
        value = node.meta.get("example_value")
        if node.target != "item" or not isinstance(value, torch.SymFloat):
            continue
        # As it was made, and as tracing left it: replaced by its value once an operator asked.
        symbol, current = value.node._expr, value.node.expr
        is_input = symbol.is_symbol and symbol_is_type(symbol, SymT.FLOAT)
        is_ignored = all(user.target in _IGNORING for user in node.users)
        if is_input and (current.is_number or is_ignored):
            yield symbol.name
