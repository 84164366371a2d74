"""Products by the side that is predicted to be faster: FTuner, or PyTorch's own operators."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
import ftuner.torch as ft
import torch
from checks import PRICED, relative_error, run_script
from ftuner.frontend.torch.regions import choice
from ftuner.frontend.torch.regions.choice import Choice, Interval, Selector, describe
from ftuner.latency import vendor
from scale import SCALE
from torch import Tensor, nn

HOSTS = "eager", "inductor"
FASTER = {**PRICED, "take": "faster"}


class Layer(nn.Module):
    """Products with what regions have: views with sizes, epilogues, extras of two shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))
        self.up, self.down = nn.Linear(16, 40), nn.Linear(40, 16)

    def forward(self, x: Tensor) -> Tensor:
        layers = self.q, self.k, self.v
        q, k, v = (layer(x).unflatten(-1, (2, 8)).transpose(1, 2) for layer in layers)
        weights = torch.softmax(q @ k.mT / 8**0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(x)))


def prices(monkeypatch: pytest.MonkeyPatch, fast_from: float) -> None:
    """PyTorch is far slower with fewer rows, and far faster from so many on."""

    def predict(device: Any, dtype: str, products: Any, **layout: bool) -> Any:
        return np.array([1e6 if b * m < fast_from else 1e-6 for b, m, n, k in products])

    monkeypatch.setattr(vendor, "predict", predict)


def check(model: nn.Module, compiled: Any, inputs: list[Tensor]) -> None:
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        for x in inputs:
            result, eager, reference = compiled(x), model(x), exact(x.double())
            assert result.shape == eager.shape and result.stride() == eager.stride()
            limit = max(1.5 * relative_error(eager, reference), 1e-6)
            assert relative_error(result, reference) <= limit


@pytest.mark.parametrize("host", HOSTS if SCALE > 1 else HOSTS[1:])
def test_sizes_are_computed_by_the_faster(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both give the same numbers; each call goes where the prediction says."""
    prices(monkeypatch, 4000)
    model = Layer().eval()
    # A device and a number of kernels with families of these products for few and for many rows.
    options = {**FASTER, "host": host, "attention": "math", "max_kernels": 8, "device": "h100"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    check(model, compiled, [torch.randn(2, size, 16) for size in (5, 9)])
    few = ft.report()
    assert few.taken == few.products == 8 and few.calls > 0
    check(model, compiled, [torch.randn(40, size, 16) for size in (200, 230)])
    many = ft.report()
    ftuner_calls, pytorch_calls = (
        getattr(many, name) - getattr(few, name) for name in ("calls", "pytorch_calls")
    )
    assert (
        ftuner_calls + pytorch_calls == 2 * 8 and pytorch_calls >= 2 * 6 and few.pytorch_calls <= 2
    )
    assert many.graphs == 1
    linear = many.intervals["addmm"] if host == "eager" else next(iter(many.intervals.values()))
    assert {interval.is_ftuners for interval in linear} == {True, False}
    for interval in linear:
        assert interval.is_ftuners == (interval.ftuner_us <= interval.pytorch_us)
    (name,) = [key for key, some in many.intervals.items() if some is linear]
    assert all(f"    {line}" in str(many) for line in describe(many.intervals[name]))
    assert "calls where PyTorch is predicted to be faster" in str(many)


@pytest.mark.parametrize("host", HOSTS if SCALE > 1 else HOSTS[:1])
def test_tensors_of_other_layouts(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's operators get the tensors as the function does: permuted, in whole, without repetition."""
    known = choice.choose

    def choose(*arguments: Any) -> Choice | None:
        found = known(*arguments)
        assert found is not None and len(found.intervals) > 1
        few, *many = found.intervals
        return replace(found, intervals=(few, *(replace(one, is_ftuners=False) for one in many)))

    monkeypatch.setattr(choice, "choose", choose)

    class Model(nn.Module):
        def forward(self, x: Tensor, wide: Tensor, one: Tensor) -> Tensor:
            y = x @ wide[:, 1]
            return (y * one).mT.relu() + one.mT

    def inputs(size: int) -> tuple[Tensor, ...]:
        x, one = torch.randn(size, 2, 16).transpose(0, 1), torch.randn(1, 1, 40).expand(2, size, 40)
        for tensor in (x, one):
            torch._dynamo.mark_dynamic(tensor, 1, min=2, max=1024)
        return x, torch.randn(2, 3, 16, 40), one

    options = {**FASTER, "host": host, "max_kernels": 8, "device": "h100"}
    model = Model()
    compiled = torch.compile(model, backend="ftuner", options=options)
    with torch.no_grad():
        for size in (5, 9, 700, 801):
            args = inputs(size)
            result, eager, exact = compiled(*args), model(*args), model(*(x.double() for x in args))
            assert result.stride() == eager.stride()
            assert relative_error(result, exact) <= max(2 * relative_error(eager, exact), 2e-7)
    report = ft.report()
    assert report.taken == report.products == 1 and report.copies == 0
    assert report.calls > 0 and report.pytorch_calls > 0


@pytest.mark.parametrize("host", HOSTS)
def test_products_that_are_slower_everywhere_stay(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their epilogue: so Inductor joins it to what else there is."""
    prices(monkeypatch, 0)
    model = nn.Sequential(nn.Linear(24, 40), nn.GELU())
    options = {**FASTER, "host": host}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    check(model, compiled, [torch.randn(size, 24) for size in (6, 300)])
    report = ft.report()
    assert (report.taken, report.products, report.calls, report.pytorch_calls) == (0, 1, 0, 0)
    assert "take='all'" in report.left[0].reason
    assert report.warning == "FTuner computes no product"


def test_products_that_are_faster_everywhere_are_taken_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prices(monkeypatch, float("inf"))
    compiled = torch.compile(nn.Linear(24, 40), backend="ftuner", dynamic=True, options=FASTER)
    with torch.no_grad():
        compiled(torch.randn(300, 24))
    report = ft.report()
    assert (report.taken, report.calls, report.pytorch_calls) == (1, 1, 0)


def test_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    prices(monkeypatch, 4000)
    model = Layer()
    compiled = torch.compile(
        model,
        backend="ftuner",
        dynamic=True,
        options={**FASTER, "attention": "math", "max_kernels": 4},
    )
    for batch, size in ((2, 5), (40, 200)):
        x = torch.randn(batch, size, 16)
        compiled(x).square().sum().backward()
        found = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        exact = copy.deepcopy(model).double()
        exact(x.double()).square().sum().backward()
        for gradient, parameter in zip(found, exact.parameters()):
            # The gradient of the bias of k is 0, with rounding errors.
            if parameter.grad.norm() > 1e-9:
                assert relative_error(gradient, parameter.grad) < 1e-5
    assert ft.report().pytorch_calls and ft.report().calls


def test_predicted_times_decide() -> None:
    """The latency model predicts the times for the given device."""
    model = nn.Linear(768, 3072).half()
    options = {**FASTER, "device": "a100", "max_kernels": 4}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    x = torch.randn(40, 768).half()
    torch._dynamo.mark_dynamic(x, 0, min=2, max=8192)
    with torch.no_grad():
        compiled(x)
    (intervals,) = ft.report().intervals.values()
    assert len(intervals) > 1
    for interval in intervals:
        # The vendor's kernel is no more than some times slower or faster.
        assert 0.3 < interval.ftuner_us / interval.pytorch_us < 3
    assert intervals[0].low[0] <= 2 and intervals[-1].high[0] in (8192, None)


def test_devices_without_a_price_take_all() -> None:
    """Nothing is known of 16-bit products without tensor cores."""
    model = nn.Linear(24, 40).half()
    options = {**FASTER, "device": "p100"}
    compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
    with torch.no_grad():
        compiled(torch.randn(6, 24).half())
    assert ft.report().taken == 1 and not ft.report().intervals


SCRIPT = """
import json, sys
import numpy, torch
import ftuner
import ftuner.torch as ft
from ftuner.latency import vendor

def predict(device, dtype, products, **layout):
    assert sys.argv[2] == "first", "a graph from the cache has its choices"
    return numpy.array([1e6 if b * m < 4000 else 1e-6 for b, m, n, k in products])

vendor.predict = predict
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(24, 36), torch.nn.LayerNorm(36)).eval()
options = json.loads(sys.argv[1])
compiled = torch.compile(model, backend="ftuner", dynamic=True, options=options)
with torch.no_grad():
    for size in (6, 20000):
        x = torch.randn(size, 24)
        error = (compiled(x) - model(x)).norm() / model(x).norm()
        assert error < 1e-6
hits = torch._dynamo.utils.counters["inductor"]["fxgraph_cache_hit"]
report = ft.report()
result = [hits, report.calls, report.pytorch_calls, report.cached]
print(json.dumps(result))
"""


def test_a_second_process_chooses_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    options = json.dumps({**FASTER, "host": "inductor", "max_kernels": 4})
    # The first is this one; the script gives the vendor's kernels another price.
    monkeypatch.setattr(vendor, "predict", vendor.predict)
    found = [run_script(SCRIPT, options, "first")]
    command = [sys.executable, "-c", SCRIPT, options, "second"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found.append(json.loads(done.stdout.splitlines()[-1]))
    assert found == [[0, 1, 1, 0], [1, 1, 1, 1]]


def test_the_first_interval_that_holds_decides() -> None:
    choice = Choice(
        (
            Interval((1, 8, 8), (63, 8, 8), 1.0, 2.0, 1.5, True, True),
            Interval((1, 8, 8), (None, 8, 8), 2.0, 1.0, 1.0, True, False),
        ),
        {"d0": (0, 0), "d1": (0, 1)},
        ("d0 * d1", 8, 8),
    )
    selector = Selector.read(choice.write("def forward(self, tensor0):\n    return tensor0\n"))
    assert [selector.is_ftuners([torch.empty(*sizes, 8)]) for sizes in ((9, 7), (8, 8))] == [
        True,
        False,
    ]
    assert str(choice.intervals[0]).startswith("m = 1 to 63, n = 8, k = 8: FTuner (1.0 us")
    with pytest.raises(ftuner.Error, match="another version"):
        Selector.read(json.dumps({"format": 0}))


def test_intervals_of_one_side_are_told_together() -> None:
    def interval(
        low: int, high: int | None, ftuner_us: float, batch: int = 1, joins: bool = True
    ) -> Interval:
        host = 4.5 if joins else 6.0
        return Interval(
            (low, 8, batch), (high, 8, batch), ftuner_us, 6.0, host, joins, ftuner_us <= 6.0
        )

    intervals = [interval(1, 9, 2.0), interval(10, 20, 3.0), interval(21, None, 9.0)]
    intervals += [interval(1, None, 2.0, batch=2, joins=False)]
    assert describe([*intervals, *intervals]) == [
        # The operators that the user would run: joined, where the host joins them.
        "m = 1 to 20, n = 8, k = 1: FTuner, predicted 1.50 to 2.25 times as fast as the vendor's"
        " product and Inductor's joined operators",
        "m from 21, n = 8, k = 1: PyTorch's operators one by one, predicted 1.50 times as fast as FTuner",
        "m from 1, n = 8, k = 2: FTuner, predicted 3.00 times as fast as PyTorch's operators",
    ]


def test_options() -> None:
    with pytest.raises(ValueError, match="option take 'faster' or 'all'"):
        ft.inductor_pass(take="some")
    assert ft.inductor_pass(take="all").uuid() != ft.inductor_pass(take="faster").uuid()


class TestPrices:
    """Prices of the vendor's library by the latency model."""

    @pytest.mark.parametrize("dtype", ["f32", "tf32", "f16", "bf16"])
    @pytest.mark.parametrize("device", ["v100", "a100", "h100", "h200"])
    def test_they_follow_the_work(self, device: str, dtype: str) -> None:
        sizes = [
            (1, 128, 768, 768),
            (1, 4096, 768, 768),
            (1, 4096, 3072, 768),
            (8, 4096, 3072, 768),
        ]
        times = vendor.predict(device, dtype, sizes)
        if dtype == "bf16" and device == "v100":
            assert times is None
            return
        assert times is not None and (np.diff(times) > 0).all()
        # Eight times the work takes about eight times as long.
        assert 6.5 < times[3] / times[2] < 9

    def test_they_are_those_of_measured_rows(self, tmp_path: Path) -> None:
        """Prices equal those of rows of such a product, on tensor cores and CUDA cores."""
        from ftuner.latency.measurements.readers import read
        from ftuner.latency.measurements.rows import Devices
        from ftuner.latency.model import model

        file = tmp_path / "rows.csv"
        file.write_text(
            "dtype,layout,M,N,K,latency_us,device,library\n"
            "bf16,nt,96,4096,4096,30,h100,2026\nbf16,nt,3000,1024,4096,60,h100,2026\n"
        )
        rows = read([file], Devices())
        expected = rows.predict(model().default_calibration("h100"))
        found = vendor.predict("h100", "bf16", [(1, 96, 4096, 4096), (1, 3000, 1024, 4096)])
        assert found == pytest.approx(expected)

    def test_unknown(self) -> None:
        assert vendor.predict("p100", "f16", [(1, 8, 8, 8)]) is None
        assert vendor.predict("p100", "tf32", [(1, 64, 64, 64)]) == pytest.approx(
            vendor.predict("p100", "f32", [(1, 64, 64, 64)])
        )
