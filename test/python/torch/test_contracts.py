"""Facts that FTuner's backend of torch.compile holds beside the compiler, compared with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

import ftuner.torch as ft
from ftuner.frontend.torch import partition
from ftuner.frontend.torch.row_registry import ROW_RULES, row_rule

from checks import OPTIONS

EPILOGUES: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...], bool]] = {
    "a summand of the whole result": (
        lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (5, 7, 24)), True,
    ),
    "a bias": (lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (24,)), True),
    "positions of joined rows": (
        lambda x, w, e: x @ w + e, ((5, 7, 16), (16, 24), (7, 24)), False,
    ),
    "a scale of batches of joined rows": (
        lambda x, w, e: x @ w * e, ((5, 7, 16), (16, 24), (5, 1, 1)), False,
    ),
    "a scale inside of heads": (
        lambda x, w, e: (x @ w).view(x.shape[0], x.shape[1], 4, 6) * e,
        ((5, 7, 16), (16, 24), (6,)),
        False,
    ),
    "a mask for all batches": (
        lambda x, w, e: torch.bmm(x, w) + e, ((5, 7, 16), (5, 16, 24), (7, 24)), True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EPILOGUES)
def test_fused_epilogues(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler makes one kernel of an epilogue exactly if the partition expects it to."""
    function, shapes, is_fused = EPILOGUES[name]
    known, said = partition._is_fused, []

    def always(*args: Any) -> bool:
        said.append(known(*args))
        return True

    monkeypatch.setattr(partition, "_is_fused", always)
    torch._dynamo.reset()
    ft.reset_report()
    compiled = torch.compile(function, backend="ftuner", dynamic=True, options=OPTIONS)
    args = [torch.randn(shape) for shape in shapes]
    with torch.no_grad():
        assert torch.allclose(compiled(*args), function(*args), atol=1e-4)
    report = ft.report()
    assert all(said) == is_fused
    assert report.taken == is_fused and (report.fused > 0) == is_fused
    if not is_fused:
        # The compiler would make a kernel of its own of the epilogue.
        assert "simple kernels beside the uKernels" in report.left[0].reason


def test_rows_of_rules() -> None:
    """Each rule says what its rows are; an operator without `dim` has to."""
    aten = torch.ops.aten
    with pytest.raises(TypeError, match="expected rows, as it has no argument 'dim'"):
        row_rule(aten.native_layer_norm_backward.default)(lambda: None)
    assert aten.native_layer_norm_backward.default not in ROW_RULES

    x = torch.randn(2, 6, 4, 5)
    graph = make_fx(
        lambda x: (
            torch.softmax(x, 1), x.sum(), x.sum((0, -1)), x.mean(-2), x.amax((1, 2)), x.max(),
            torch.nn.functional.layer_norm(x, (4, 5)), torch.nn.functional.group_norm(x, 3),
            x.argmax(), x.var(), torch.linalg.vector_norm(x, dim=3),
        )
    )(x).graph  # fmt: skip
    nodes = [node for node in graph.nodes if node.target in ROW_RULES]
    rows = [ROW_RULES[node.target].rows(node).dims for node in nodes]
    everything = (0, 1, 2, 3)
    assert rows == [
        (1,), everything, (0, 3), (2,), (1, 2), everything, (2, 3), (1, 2, 3), everything,
        everything, (3,),
    ]  # fmt: skip
