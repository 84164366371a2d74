"""Products of all forms through torch.compile: layouts, epilogues, counts."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import ftuner
import ftuner.torch as ft
import torch
from checks import OPTIONS, check_model, compile_model, relative_error
from ftuner.frontend.torch.dynamo import Options, compile_graph
from scale import SCALE
from torch import Tensor, nn


def rows(*sizes: int, depth: int = 32) -> list[tuple[Tensor, ...]]:
    return [(torch.randn(3, size, depth),) for size in sizes]


def test_linear_is_one_product_of_all_rows() -> None:
    report = check_model(nn.Sequential(nn.Linear(32, 48), nn.GELU()), rows(7, 19, 2, 64))
    assert (report.graphs, report.products, report.taken, report.calls) == (1, 1, 1, 4)
    assert report.functions == {"addmm_gelu": 1}
    assert report.copies == report.copied_arguments == 0


def test_equal_layers_share_a_function() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(5)))
    report = check_model(model, rows(4, 9, depth=16))
    assert report.taken == 5 and report.compiled <= 1
    assert report.functions == {"addmm_relu": 5}


def test_residual_and_gate_are_fused() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.gate, self.down = (nn.Linear(*s) for s in ((16, 40), (16, 40), (40, 16)))

        def forward(self, x: Tensor) -> Tensor:
            return x + 0.5 * self.down(F.silu(self.gate(x)) * self.up(x))

    report = check_model(Block(), rows(5, 12, depth=16))
    assert report.taken == 3
    # up or gate takes the product with the other; down the residual.
    assert sum("mul" in name for name in report.functions) >= 2
    assert report.fused == 4


# The suite has each two of the three, either way.
@pytest.mark.parametrize("transposed", range(8) if SCALE > 1 else (0, 3, 5, 6))
def test_transposed_operands_are_read_in_place(transposed: int) -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        a = a.mT if transposed & 1 else a
        b = b.mT if transposed & 2 else b
        return (a @ b).mT.contiguous() if transposed & 4 else a @ b

    def inputs(batch: int, m: int, n: int, k: int) -> tuple[Tensor, Tensor]:
        a = torch.randn(batch, k, m) if transposed & 1 else torch.randn(batch, m, k)
        b = torch.randn(batch, n, k) if transposed & 2 else torch.randn(batch, k, n)
        return a, b

    report = check_model(model, [inputs(3, 5, 6, 7), inputs(2, 17, 9, 4), inputs(4, 3, 33, 21)])
    assert report.taken == 1 and report.copies == report.copied_arguments == 0
    assert report.fused == (1 if transposed & 4 else 0)


def test_permutations_of_three_dimensions() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        y = a.permute(1, 2, 0) @ b.permute(1, 2, 0)
        return y.permute(2, 0, 1).contiguous() + 1

    inputs = [(torch.randn(6, 3, s), torch.randn(7, 3, 6)) for s in (5, 9)]
    report = check_model(model, inputs)
    assert report.taken == 1 and report.copies == 0 and report.fused == 2


def test_a_result_that_another_product_adds() -> None:
    """It is read as its own function writes it, not before that function's copy."""

    def model(x: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return (u @ v).relu() + (x @ w).transpose(1, 2).contiguous()

    def inputs(s: int) -> tuple[Tensor, ...]:
        shapes = ((3, s, 8), (8, 12), (3, 12, 6), (3, 6, s))
        return tuple(torch.randn(shape) for shape in shapes)

    report = check_model(model, [inputs(5), inputs(11)])
    assert report.taken == 2 and report.fused == 3
    assert report.calls == 4


def test_heads_are_read_and_written_in_place() -> None:
    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.unflatten(-1, (4, 8)).transpose(1, 2) for x in (q, k, v))
        weights = torch.softmax(q @ k.mT / 8**0.5, -1)
        return (weights @ v).transpose(1, 2).reshape(q.shape[0], -1, 32)

    inputs = [tuple(torch.randn(b, s, 32) for _ in range(3)) for b, s in ((2, 7), (5, 3), (3, 12))]
    report = check_model(attention, inputs)
    assert (report.taken, report.copies, report.copied_arguments) == (2, 0, 0)
    # The scale, and the copy of the permuted result.
    assert report.fused == 2
    assert report.calls == 6


def test_summands_broadcast_in_every_way() -> None:
    def model(x: Tensor, w: Tensor, row: Tensor, column: Tensor, one: Tensor) -> Tensor:
        return ((x @ w + row) - column[..., None]) / one

    def inputs(b: int, s: int) -> tuple[Tensor, ...]:
        shapes = ((b, s, 8), (8, 12), (12,), (b, s), (1, 1))
        return tuple(torch.randn(shape) for shape in shapes)

    report = check_model(model, [inputs(2, 5), inputs(4, 9)])
    assert report.taken == 1 and report.fused == 3


def test_summands_along_some_rows_only_stay_outside() -> None:
    """Rows of all batches are one axis, which an epilogue cannot read in part."""

    def model(x: Tensor, w: Tensor, row: Tensor, batch: Tensor) -> Tensor:
        return (x @ w + row) * batch[:, None, :]

    def inputs(b: int, s: int) -> tuple[Tensor, ...]:
        return torch.randn(b, s, 8), torch.randn(8, 12), torch.randn(12), torch.randn(b, 12)

    report = check_model(model, [inputs(2, 5), inputs(4, 9)])
    assert report.taken == 1 and report.fused == 1 and not report.left


def test_sums_with_factors() -> None:
    def model(c: Tensor, a: Tensor, b: Tensor, d: Tensor, e: Tensor) -> list[Tensor]:
        return [
            torch.addmm(c, a, b, beta=0.5, alpha=3),
            torch.addmm(c, a, b, beta=0, alpha=2),
            torch.baddbmm(c, d, e, beta=2, alpha=-1),
        ]

    def inputs(m: int, n: int) -> tuple[Tensor, ...]:
        shapes = ((m, n), (m, 6), (6, n), (3, m, 6), (3, 6, n))
        return tuple(torch.randn(shape) for shape in shapes)

    assert check_model(model, [inputs(5, 7), inputs(8, 4)]).taken == 3


def test_grouped_queries_read_shared_heads_in_place() -> None:
    def model(q: Tensor, k: Tensor) -> Tensor:
        b, heads, s, d = q.shape
        k = k[:, :, None].expand(b, 2, heads // 2, s, d).reshape(b, heads, s, d)
        return q @ k.mT

    def inputs(b: int, s: int) -> tuple[Tensor, Tensor]:
        tensors = torch.randn(b, 6, s, 8), torch.randn(b, 2, s, 8)
        for tensor in tensors:
            torch._dynamo.mark_static(tensor, 1)
        return tensors

    report = check_model(model, [inputs(3, 5), inputs(4, 9)])
    assert report.taken == 1 and report.copies == 0


def test_einsum() -> None:
    def model(x: Tensor, w: Tensor) -> list[Tensor]:
        return [torch.einsum("bsk,khd->bhsd", x, w), torch.einsum("bsk,btk->bts", x, x)]

    inputs = [(torch.randn(b, s, 8), torch.randn(8, 3, 4)) for b, s in ((2, 5), (3, 4))]
    report = check_model(model, inputs)
    assert report.taken == 2 and not report.left


def test_a_product_with_two_readers_ends_there() -> None:
    def model(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        y = x @ w
        return y, torch.relu(y)

    report = check_model(model, [(torch.randn(5, 8), torch.randn(8, 6))])
    assert report.taken == 1 and report.fused == 0


def test_a_value_used_twice_is_fused() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        y = x @ w
        return y * torch.sigmoid(1.702 * y) + y

    report = check_model(model, [(torch.randn(5, 8), torch.randn(8, 6))])
    assert report.taken == 1 and report.fused == 4


def in_order(order: tuple[int, ...], *shape: int) -> Tensor:
    """A tensor without gaps whose dimensions lie in memory in this order."""
    inverse = [order.index(dim) for dim in range(len(order))]
    return torch.randn([shape[dim] for dim in order]).permute(inverse)


# The suite has each dimension at each place of both tensors.
ORDERS = [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)]


@pytest.mark.parametrize("order", ORDERS if SCALE > 1 else ORDERS[1:4])
def test_tensors_in_any_order_of_memory(order: tuple[int, ...]) -> None:
    """Also where PyTorch gives the result the order of another tensor."""

    def model(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        return a @ b + c, (a @ b.relu()) * 2

    def inputs(m: int, n: int) -> tuple[Tensor, ...]:
        # The neighbours of a result are never those of a batch.
        of_result = (0, 2, 1) if order[2] == 0 else order
        return (
            in_order(order, 3, m, 8),
            in_order(order[::-1], 3, 8, n),
            in_order(of_result, 3, m, n),
        )

    report = check_model(model, [inputs(5, 9), inputs(33, 4), inputs(2, 31)])
    # Neighbours of one of the operands are of several products.
    copies = (order[2] == 0) + (order[0] == 0)
    assert report.taken == 2 and report.copies == 2 * copies and report.copied_arguments == 0


def test_results_whose_neighbours_are_of_several_products() -> None:
    def model(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return c + a @ b

    inputs = [
        (torch.randn(3, m, 8), torch.randn(3, 8, 6), in_order((1, 2, 0), 3, m, 6)) for m in (5, 9)
    ]
    report = check_model(model, inputs)
    # The sum stays outside.
    assert report.taken == 1 and report.operators == {"add.Tensor": 1}


def parts_of_a_projection(x: Tensor, form: str) -> Sequence[Tensor]:
    """Queries, keys and values with 2 heads of 4 elements, parts of x (B, S, 24)."""
    if form == "chunk":
        return [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in x.chunk(3, -1)]
    if form == "unbind":
        return x.unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4).unbind(0)
    if form == "select":
        parts = x.unflatten(-1, (2, 3, 4)).transpose(1, 2)
        return [parts[:, :, :, number] for number in (0, 1, -1)]
    wide = x.unflatten(-1, (2, 12)).transpose(1, 2)
    return [wide[..., :10][..., :4], wide[..., 4:8], wide[..., -4:]]


FORMS = ["unbind", "slice", "chunk", "select"]


@pytest.mark.parametrize("form", FORMS if SCALE > 1 else FORMS[:2])
def test_parts_of_a_tensor_are_read_in_it(form: str) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.projection = nn.Linear(6, 24, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = parts_of_a_projection(self.projection(x), form)
            return (torch.softmax(q @ k.mT / 2, -1) @ v).transpose(1, 2).flatten(2)

    def inputs(b: int, s: int) -> tuple[Tensor, ...]:
        return (torch.randn(b, s, 6),)

    attention = Attention()

    report = check_model(attention, [inputs(2, 7), inputs(5, 3), inputs(3, 12)], rows="always")
    assert (report.taken, report.rows_taken) == (3, 1) and not report.operators
    assert report.copies == report.copied_arguments == 0
    # Other sizes are other graphs.
    with torch.no_grad():
        for b, s in ((1, 7), (3, 1), (0, 4)):
            args = inputs(b, s)
            torch.testing.assert_close(compile_model(attention)(*args), attention(*args))


def test_parts_inside_of_an_epilogue() -> None:
    def model(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        scale, shift = (x @ w).unsqueeze(1).chunk(2, -1)
        return (x[:, :, None] @ bias[None, 2:3, 1:13]) * scale.mT.mT + shift + bias[0, 12:]

    inputs = [(torch.randn(b, 6), torch.randn(6, 24), torch.randn(4, 24)) for b in (3, 8)]
    report = check_model(model, inputs)
    assert report.taken == 2 and report.copies == report.copied_arguments == 0


def test_tensors_that_are_repeated() -> None:
    """No element is copied of tensors that were expanded before."""

    def model(a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
        return torch.relu(a @ b + mask)

    def inputs(batch: int, m: int, n: int) -> tuple[Tensor, ...]:
        a, mask = torch.randn(batch, m, 8), torch.randn(n).expand(batch, m, n)
        return a, torch.randn(1, n, 8).mT.expand(batch, 8, n), mask

    report = check_model(model, [inputs(3, 5, 9), inputs(2, 8, 17)])
    assert report.taken == 1 and report.fused == 2
    assert report.copies == report.copied_arguments == 0


def test_tensors_with_gaps_are_copied() -> None:
    """They come from outside of the graph, so there is no tensor to read them in."""

    def model(a: Tensor, b: Tensor) -> Tensor:
        return a @ b

    def inputs(m: int) -> tuple[Tensor, ...]:
        return torch.randn(3, m, 20)[:, :, 3:11], torch.randn(3, 16, 6)[:, ::2]

    report = check_model(model, [inputs(5), inputs(9)])
    assert report.taken == 1 and report.copies == 2


def test_numbers_of_chunks() -> None:
    """PyTorch writes the same quotient of sizes in two ways, in sizes and in strides."""

    def model(x: Tensor) -> Tensor:
        chunks = x.shape[1] // 4
        x = x.reshape(x.shape[0] * chunks, x.shape[1] // chunks, x.shape[2])
        return torch.exp(x @ x.mT)

    compiled = compile_model(model)
    for batch, length in ((2, 16), (3, 24)):
        x = torch.randn(batch, length, 8)
        exact = model(x.double())
        limit = max(2 * relative_error(model(x), exact), 2e-7)
        assert relative_error(compiled(x), exact) <= limit
    report = ft.report()
    assert report.taken == 1 and report.fused == 1 and report.copies == 0


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that the backend compiles from then on."""
    texts: list[str] = []
    original = ftuner.compile

    def record(text: str, **options: object) -> object:
        texts.append(text)
        return original(text, **options)

    monkeypatch.setattr(ftuner, "compile", record)
    return texts


def test_ranges_come_from_mark_dynamic(texts: list[str]) -> None:
    x = torch.randn(4, 9, 24)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
    torch._dynamo.mark_dynamic(x, 1, min=3, max=100)
    with torch.no_grad():
        compile_model(nn.Linear(24, 20))(x)
    assert len(texts) == 1
    # A least size of 2 is PyTorch's own, whether it is declared or not; a batch of 1 is served, too.
    assert "d0 = #ukernel.range<3 to 1600>" in texts[0]


def test_a_declared_size_of_one(texts: list[str]) -> None:
    """PyTorch compiles another graph for it, which has the function of all other sizes."""
    model = nn.Linear(24, 20)
    compiled = compile_model(model)
    with torch.no_grad():
        for size in (9, 64, 2, 1):
            x = torch.randn(size, 24)
            if size > 1:
                torch._dynamo.mark_dynamic(x, 0, min=1, max=64)
            exact = model.double()(x.double())
            model.float()
            assert relative_error(compiled(x), exact) < 1e-6
    assert ft.report().graphs == 2
    assert len(texts) == 1 and "d0 = #ukernel.range<1 to 64>" in texts[0]


def test_graphs_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: the graph of fake tensors, and what the compiler is asked for."""
    asked: list[dict[str, object]] = []

    def record(text: str, **options: object) -> object:
        asked.append({"text": text, **options})
        raise ftuner.CompileError("nothing to run it on", "")

    def model(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
        return torch.relu(x @ w.t()) * scale

    monkeypatch.setattr(ftuner, "compile", record)
    with FakeTensorMode():
        x, w = torch.empty(3, 7, 33, device="cuda"), torch.empty(47, 33, device="cuda")
        graph = make_fx(model)(x, w, torch.empty((), dtype=torch.float64))
    with pytest.raises(ftuner.CompileError, match="nothing to run it on"):
        compile_graph(graph, Options.parse({"max_kernels": 3}))
    (request,) = asked
    assert request["device"] == "cuda:0" and request["emulate"] is False
    assert request["max_kernels"] == 3
    # The factor is on the CPU: it goes by value, and the GPU waits for nothing.
    assert "%scalar0: f32" in str(request["text"])


def test_static_sizes_stay_static() -> None:
    compiled = torch.compile(
        nn.Linear(12, 20), backend="ftuner", dynamic=False, options=dict(OPTIONS)
    )
    x = torch.randn(5, 12)
    with torch.no_grad():
        assert compiled(x).shape == (5, 20)
    assert ft.report().taken == 1


def test_tf32_by_pytorchs_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to allow tf32 does, and each change of it compiles again."""
    asked: list[object] = []
    original = ftuner.compile

    def record(text: str, **options: object) -> object:
        asked.append(options.get("precision"))
        return original(text, **options)

    monkeypatch.setattr(ftuner, "compile", record)
    setting = torch.backends.cuda.matmul
    # Sizes for which tensor cores are predicted to be faster.
    x, layer = torch.randn(190, 768), nn.Linear(768, 2304, bias=False)
    exact = x.double() @ layer.weight.double().t()
    torch._dynamo.mark_dynamic(x, 0, min=2, max=256)
    compiled = compile_model(layer, cost_model="latency")

    def error() -> float:
        with torch.no_grad():
            return relative_error(compiled(x), exact)

    try:
        assert error() < 1e-6
        torch.set_float32_matmul_precision("high")
        assert 1e-5 < error() < 1e-3
        torch.set_float32_matmul_precision("highest")
        assert error() < 1e-6
        torch.set_float32_matmul_precision("medium")
        assert 1e-5 < error() < 1e-3
        setting.allow_tf32 = False
        assert error() < 1e-6
        setting.allow_tf32 = True
        assert 1e-5 < error() < 1e-3
        if hasattr(setting, "fp32_precision"):
            setting.fp32_precision = "ieee"
            assert error() < 1e-6
            setting.fp32_precision = "tf32"
            assert 1e-5 < error() < 1e-3
        # The option is asked before PyTorch.
        given = compile_model(layer, precision="f32")
        with torch.no_grad():
            assert relative_error(given(x), exact) < 1e-6
    finally:
        # Settings of the newer kind first: PyTorch refuses to read a mixture.
        if hasattr(setting, "fp32_precision"):
            setting.fp32_precision = "none"
        torch.set_float32_matmul_precision("highest")
    # What is known to the process is not compiled again.
    assert asked == [None, "tf32", "f32"]


def test_products_of_single_rows() -> None:
    """One row, one column, one element to sum up, with views that drop and add such dimensions."""

    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(12, 20), nn.Linear(20, 1)

        def forward(self, x: Tensor) -> Tensor:
            return F.silu(self.down(F.gelu(self.up(x)))[..., 0])

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax(q @ k.transpose(2, 3), -1) @ v
        return weights.transpose(1, 2).reshape(q.shape[0], 1, -1)

    def outer(x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(x @ y)

    cases: list[tuple[object, list[tuple[Tensor, ...]]]] = [
        (Pooled(), [(torch.randn(1, 1, 12),)]),
        (Pooled(), [(torch.randn(1, 12),)]),
        (outer, [(torch.randn(m, 1), torch.randn(1, 16)) for m in (3, 9)]),
        (
            attend,
            [
                (torch.randn(2, 4, 1, 8), torch.randn(2, 4, s, 8), torch.randn(2, 4, s, 8))
                for s in (5, 8)
            ],
        ),
    ]
    for model, inputs in cases:
        ft.reset_report()
        torch._dynamo.reset()
        report = check_model(model, inputs)
        assert not report.left and report.products in (1, 2)


def test_sizes_of_0_and_1() -> None:
    """PyTorch compiles them apart; a product without rows is not for FTuner."""
    layer = nn.Linear(12, 20)
    compiled = compile_model(layer)
    with torch.no_grad():
        for size in (1, 0, 5):
            x = torch.randn(size, 12)
            torch.testing.assert_close(compiled(x), layer(x))
    report = ft.report()
    assert report.taken == 2
    assert [left.reason for left in report.left] == ["m is 0"]


def test_what_stays_with_pytorch_is_counted() -> None:
    """Operators that compute, without views and operators that a function has taken."""
    layer, other = nn.Linear(12, 20), nn.Linear(20, 20)

    def model(x: Tensor) -> Tensor:
        y = torch.sort(other(torch.softmax(layer(x), -1))).values
        return torch.cat([part.unsqueeze(0) for part in y.split(5, -1)], 0)

    x = torch.randn(4, 12)
    with torch.no_grad():
        torch.testing.assert_close(compile_model(model)(x), model(x))
    report = ft.report()
    assert report.taken == 2
    kinds = {name.partition(".")[0]: count for name, count in report.operators.items()}
    assert kinds == {"_softmax": 1, "sort": 1, "cat": 1}
    assert report.pytorch_kernels == 3
    assert "3 of 5 kernels stay with PyTorch: " in str(report)


def test_other_types_stay_with_pytorch() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        return x @ w

    x, w = torch.randn(5, 12).double(), torch.randn(12, 20).double()
    torch.testing.assert_close(compile_model(model)(x, w), model(x, w))
    report = ft.report()
    assert report.taken == 0
    assert [left.reason for left in report.left] == [
        "operands of float64, not float32, float16 or bfloat16"
    ]
    assert "test_backend.py" in report.left[0].location


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_where_pytorch_does(dtype: torch.dtype) -> None:
    """A layer with bias, GELU, a residual and a cast at the end, in one function."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(32, 48)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return (F.gelu(self.linear(x)) * 0.7 + y).float()

    layer = Layer().to(dtype)
    inputs = [(torch.randn(m, 32).to(dtype), torch.randn(m, 48).to(dtype)) for m in (3, 17, 64)]
    report = check_model(layer, inputs, factor=1.5, floor=1e-4)
    assert report.functions == {"addmm_gelu_mul_add_to_copy": 1}
    with torch.no_grad():
        result, eager = compile_model(layer)(*inputs[1]), layer(*inputs[1])
    # Elements differ where sums in another order round to another neighbour.
    assert (result == eager).float().mean() > 0.9


def test_autocast_products_are_taken() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return x + self.down(F.relu(self.up(x)))

    block = Block()
    report = check_model(block, rows(5, 31, 64), factor=1.5, floor=1e-4)
    assert (report.products, report.taken) == (2, 2)


def test_products_of_other_types_stay() -> None:
    def model(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
        return [a @ b, a @ b[:, 0], x @ y.double(), torch.dot(a[0], a[0])]

    integers = torch.arange(6).view(2, 3), torch.arange(12).view(3, 4)
    args = *integers, torch.randn(3, 4).double(), torch.randn(4)
    for result, expected in zip(compile_model(model)(*args), model(*args)):
        torch.testing.assert_close(result, expected)
    reasons = {(left.operator, left.reason) for left in ft.report().left}
    other = "operands of other types than float32, float16 or bfloat16"
    assert reasons == {
        ("mm.default", "operands of int64, not float32, float16 or bfloat16"),
        ("mv.default", other),
        ("dot.default", other),
    }
    assert len(ft.report().left) == 4


def test_factors_that_are_no_constants_stay() -> None:
    """With dynamic sizes PyTorch makes symbols of integers, too."""

    def model(s: Tensor, a: Tensor, b: Tensor, factor: int) -> Tensor:
        return torch.addmm(s, a, b, beta=factor, alpha=factor)

    compiled = compile_model(model)
    s, a, b = torch.randn(5, 7), torch.randn(5, 6), torch.randn(6, 7)
    for factor in (2, 3, 7):
        torch.testing.assert_close(compiled(s, a, b, factor), model(s, a, b, factor))
    reasons = {left.reason for left in ft.report().left}
    assert reasons == {"a factor of the sum that is not a constant"}


def test_products_with_vectors() -> None:
    """They are products with one row, and bring their epilogue; gradients, too."""

    def model(a: Tensor, x: Tensor, s: Tensor) -> list[Tensor]:
        return [
            torch.relu(a @ x + s),
            torch.addmv(s, a, x, beta=0.5, alpha=2),
            torch.addmv(s[:1], a, x),
            x @ a.mT,
            torch.dot(x, x),
            torch.vdot(x, a[0]),
        ]

    def inputs(m: int, k: int) -> tuple[Tensor, ...]:
        return torch.randn(m, k), torch.randn(k), torch.randn(m)

    report = check_model(model, [inputs(5, 24), inputs(40, 7), inputs(17, 33)])
    assert report.taken == report.products == 6 and not report.left
    assert report.fused == 2 and report.copied_arguments == 0
    torch._dynamo.reset()
    compiled = compile_model(lambda a, x: torch.tanh(a @ x).sum())
    a, x = (tensor.requires_grad_() for tensor in inputs(9, 16)[:2])
    gradients = torch.autograd.grad(compiled(a, x), (a, x))
    expected = torch.autograd.grad(torch.tanh(a.double() @ x.double()).sum(), (a, x))
    for result, value in zip(gradients, expected):
        torch.testing.assert_close(result, value, rtol=1e-5, atol=1e-6)


def test_attention_of_pytorch() -> None:
    """scaled_dot_product_attention stays, and is taken apart on request."""

    def model(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    def inputs(s: int) -> tuple[Tensor, ...]:
        return tuple(torch.randn(2, 3, s, 16) for _ in range(3))

    report = check_model(model, [inputs(6), inputs(11)])
    assert report.taken == 0 and len(report.left) == 1
    assert "attention='math'" in report.left[0].reason
    torch._dynamo.reset()
    ft.reset_report()
    report = check_model(model, [inputs(6), inputs(11)], attention="math")
    assert report.taken == 2 and not report.left


def test_unknown_devices() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught, torch.no_grad():
        compile_model(nn.Linear(12, 20), device="no-such-device")(torch.randn(5, 12))
    assert isinstance(caught.value.inner_exception, ftuner.Error)
    assert "no-such-device" in str(caught.value.inner_exception)


def _refuse(text: str, **options: object) -> object:
    raise ftuner.CompileError("refused", "diagnostics of the compiler")


def test_refusal_fails_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ftuner, "compile", _refuse)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught, torch.no_grad():
        compile_model(nn.Linear(13, 21))(torch.randn(5, 13))
    inner = caught.value.inner_exception
    assert isinstance(inner, ftuner.CompileError)
    assert inner.diagnostics == "diagnostics of the compiler"
    assert "in the model:" in str(inner) and "addmm" in str(inner)


def test_refusal_falls_back_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ftuner, "compile", _refuse)
    layer, x = nn.Linear(13, 21), torch.randn(5, 13)
    with pytest.warns(UserWarning, match="PyTorch computes it"), torch.no_grad():
        torch.testing.assert_close(compile_model(layer, fallback=True)(x), layer(x))
    report = ft.report()
    assert report.taken == 0 and report.left[0].reason == "refused"


def test_bad_options() -> None:
    x = torch.randn(5, 12)
    for options, message in (
        ({"attention": "flash"}, "expected option attention 'sdpa' or 'math', but got 'flash'"),
        ({"max_kernel": 3}, "expected an option of the backend .*, but got 'max_kernel'"),
        ({"atention": "math"}, r"attention, .*max_kernels, .*but got 'atention'"),
        ({"fallback": 1}, "expected option fallback to be True or False, but got 1"),
        ({"emulate": "no"}, "expected option emulate to be True or False, but got 'no'"),
        ({"cache": "no"}, "expected option cache to be True or False, but got 'no'"),
        ({"device": 5}, "device: expected a name, a path or a dict, but got int"),
    ):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=message), torch.no_grad():
            torch.compile(nn.Linear(12, 20), backend="ftuner", options=options)(x)
    with pytest.raises(Exception, match="expected option mode to be one of default, "):
        torch.compile(nn.Linear(12, 20), backend="ftuner", mode="fast")(x)


def test_fused_layers_are_reported() -> None:
    """PyTorch's own layers for inference hold their products."""
    layer = nn.TransformerEncoderLayer(16, 2, 24, batch_first=True).train(False)
    bilinear, x = nn.Bilinear(16, 16, 4), torch.randn(2, 5, 16)
    with torch.no_grad():
        compile_model(lambda x: (layer(x), bilinear(x, x)))(x)
    assert {left.operator: left.reason for left in ft.report().left} == {
        "_transformer_encoder_layer_fwd.default": "PyTorch's fused layer for inference; "
        "torch.backends.mha.set_fastpath_enabled(False) takes it apart",
        "_trilinear.default": "a product of three tensors",
    }
    assert ft.report().products == 2 and ft.report().taken == 0


def test_threads() -> None:
    """One compiled model, called from several threads at once."""
    model = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 16)).eval()
    compiled = compile_model(model)
    with torch.no_grad():
        compiled(torch.randn(4, 24))
    errors: list[float] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for size in range(2, 12):
                x = torch.randn(size + seed, 24, generator=generator)
                errors.append(relative_error(compiled(x), model(x)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 40 and max(errors) < 1e-6
    assert ft.report().calls == 2 * 41


def test_registered_by_name() -> None:
    assert "ftuner" in torch._dynamo.list_backends()


def test_report_reads_well() -> None:
    check_model(nn.Linear(12, 20), [(torch.randn(5, 12),)])
    assert "1 of 1 products by FTuner" in str(ft.report())
    # Inductor's kernels are not counted in graphs of `inductor_pass` and of packages.
    left = {"add.Tensor": 2}
    assert "2 operators for Inductor: 2 x add.Tensor" in str(ft.Report(inductor_operators=left))
    counted = ft.Report(inductor_operators=left, inductor_kernels=1)
    assert "2 operators for Inductor, which joined them to 1 kernels: 2 x" in str(counted)


@pytest.mark.parametrize("mode", ["auto", "always", "never"])
def test_progress_is_told_where_it_is_asked_for(
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has the progress in any case; lines of text are printed on request."""
    monkeypatch.setenv("FTUNER_PROGRESS", mode)
    # Sizes that no other test has, so that something is compiled.
    width = {"auto": 33, "always": 35, "never": 37}[mode]
    model = nn.Sequential(nn.Linear(width, 17), nn.ReLU(), nn.Linear(17, width))
    with caplog.at_level("INFO", logger="ftuner"):
        check_model(model, rows(5, 9, depth=width))
    messages = [record.getMessage() for record in caplog.records if record.name == "ftuner"]
    title = "compiling 2 functions for torch.compile"
    assert messages[0] == title and messages[1].startswith(f"{title}: 1 of 2, ")
    assert messages[2].startswith(f"{title}: 2 of 2, ") and len(messages) == 3
    written = capfd.readouterr().err
    assert written == (
        "".join(f"ftuner: {line}\n" for line in messages) if mode == "always" else ""
    )
    caplog.clear()
    check_model(model, rows(5, depth=width))
    assert not [record for record in caplog.records if record.name == "ftuner"]


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, wiped in the end."""
    import io
    import sys

    from ftuner.host.progress import Progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("compiling 3 functions", 3) as progress:
        progress.advance()
        threading.Event().wait(0.5)
    shown = sys.stderr.getvalue()
    assert "compiling 3 functions: 1 of 3, 0." in shown
    assert shown.endswith("\r\033[K") and "\n" not in shown


def test_report_says_what_is_left_and_how_to_get_it() -> None:
    """Half of the products are FTuner's, but few of the FLOPs."""

    def model(x: Tensor, w: Tensor, wide: Tensor, v: Tensor) -> list[Tensor]:
        return [x @ w, wide @ wide, v @ v]

    args = torch.randn(5, 8), torch.randn(8, 6), torch.randn(40, 40).double(), torch.arange(6)
    compile_model(model)(*args)
    report = ft.report()
    assert (report.products, report.taken) == (3, 1)
    taken, left = 2 * 5 * 8 * 6, 2 * 40**3 + 2 * 6
    assert report.taken_flops == taken
    assert report.flops_share == pytest.approx(taken / (taken + left))
    text = str(report)
    assert "left to PyTorch, 2 of 3 products:" in text
    assert "0.4% of the FLOPs of products by FTuner" in text
    assert "warning: FTuner computes only 0.4% of the FLOPs of products" in text
    assert "operands of float64, not float32, float16 or bfloat16: operands of float32, " in text


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN][: None if SCALE > 1 else 1])
def test_recurrent_layers_are_reported(layer: type[nn.RNNBase]) -> None:
    """PyTorch's compiler does not hand them over unless it is told to."""
    x = torch.randn(3, 2, 8)
    model = layer(8, 16)
    with torch.no_grad():
        torch.compile(model, backend="ftuner", dynamic=True, options=OPTIONS)(x)
    report = ft.report()
    assert report.products == 0 and len(report.breaks) == 1
    text = str(report)
    assert "warning: FTuner was given no product" in text
    assert "LSTM" in text and "torch._dynamo.config.allow_rnn=True" in text
    ft.reset_report()
    assert not ft.report().breaks and "warning" not in str(ft.report())


def test_a_fused_recurrent_layer_is_left() -> None:
    x = torch.randn(3, 2, 8)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        compile_model(nn.LSTM(8, 16), dynamic=False)(x)
        report = ft.report()
        assert report.taken == 0 and [left.operator for left in report.left] == [
            "mkldnn_rnn_layer.default"
        ]
        assert "torch.backends.mkldnn.set_flags(False)" in str(report)


def test_flops_of_a_convolution_count() -> None:
    with torch.no_grad():
        compile_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), dynamic=False)(
            torch.randn(1, 3, 8, 8)
        )
    (left,) = ft.report().left
    assert left.reason == "a convolution" and left.flops == 2 * 4 * 36 * 27
