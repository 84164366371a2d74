"""From MLIR to results: compile, load and explain, in the emulator, against NumPy in float64."""

from __future__ import annotations

import re
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner import locations
from handmade import ROOT
from models import MATMUL, pointwise

DENSE = ROOT / "examples" / "dense.mlir"
ATTENTION = ROOT / "examples" / "attention.mlir"


def expect(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def relative_error(result: Any, wanted: Any) -> float:
    return float(np.linalg.norm(result - wanted) / np.linalg.norm(wanted))


@pytest.fixture(scope="module")
def matmul() -> ftuner.Module:
    return ftuner.compile(MATMUL, emulate=True)


@pytest.mark.parametrize("rows", [0, 1, 7, 13, 16, 53])
def test_matmul(matmul: ftuner.Module, rng: np.random.Generator, poisoned: Any, rows: int) -> None:
    """Sizes beyond the range, 0 and primes are right, and nothing else is written."""
    a = rng.standard_normal((rows, 32), np.float32)
    b = rng.standard_normal((32, 64), np.float32)
    out, is_intact = poisoned((rows, 64))
    assert matmul(a, b, out=out) is out
    if rows:
        assert relative_error(out, a.astype(np.float64) @ b) < 1e-6
    assert is_intact()
    np.testing.assert_array_equal(matmul.matmul(a, b), out)


def test_module(matmul: ftuner.Module) -> None:
    assert matmul.has_emulator and matmul.architectures == []
    assert ".entry matmul_0_k0" in matmul.ptx
    assert matmul.manifest["device"]["name"] == "h200"
    signature = matmul.matmul.signature
    assert str(signature) == "matmul(a: f32[T, 32], b: f32[32, 64]) -> f32[?, 64]"
    assert signature.symbols == ("T",)
    assert matmul.matmul.result_shapes(9) == [(9, 64)]
    again = ftuner.load(matmul.library_path)
    assert list(again) == ["matmul"] and again.manifest == matmul.manifest
    matmul.prepare()


def test_torch(matmul: ftuner.Module) -> None:
    torch = pytest.importorskip("torch", minversion="2")
    a, b = torch.randn(11, 32), torch.randn(32, 64)
    c = matmul(a, b)
    assert isinstance(c, torch.Tensor)
    assert relative_error(c.double().numpy(), (a.double() @ b.double()).numpy()) < 1e-6


@pytest.mark.parametrize("type", ["f32", "f16", "f64", "i8", "i32", "i64"])
def test_pointwise(rng: np.random.Generator, type: str) -> None:
    module = ftuner.compile(pointwise(type), emulate=True)
    assert list(module) == ["scaled-sum", "double_"]
    a = rng.standard_normal((5, 9), np.float32)
    b = rng.standard_normal((5, 9), np.float32)
    total, scaled = module["scaled-sum"](a, b, 0.25)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(scaled, (a + b) * np.float32(0.25))
    dtypes = {"f32": np.float32, "f16": np.float16, "f64": np.float64}
    dtype = np.dtype(dtypes.get(type) or f"int{type[1:]}")
    x = (rng.standard_normal(300) * 20).astype(dtype)
    y = module.double_(x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x + x)


def test_bf16() -> None:
    torch = pytest.importorskip("torch", minversion="2")
    module = ftuner.compile(pointwise("bf16"), emulate=True)
    x = torch.randn(300, dtype=torch.bfloat16)
    assert torch.equal(module.double_(x), x + x)


def test_bf16_in_numpy(rng: np.random.Generator) -> None:
    """ml_dtypes has the type; a module that was loaded before it was imported knows it, too."""
    module = ftuner.compile(pointwise("bf16"), emulate=True)
    with expect(TypeError, "expected elements of type bfloat16, but got uint16"):
        module.double_(np.ones(3, np.uint16))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = rng.standard_normal(300, np.float32).astype(ml_dtypes.bfloat16)
    y = module.double_(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), (x + x).astype(np.float32))


def test_shared_sizes() -> None:
    module = ftuner.compile(pointwise("f32"), emulate=True)
    a, b = np.ones((5, 9), np.float32), np.ones((5, 8), np.float32)
    with expect(ValueError, "scaled-sum: argument 'b': expected size 9 of dimension 1, which is N"):
        module["scaled-sum"](a, b, 1.0)


def test_threads(matmul: ftuner.Module, rng: np.random.Generator) -> None:
    b = rng.standard_normal((32, 64), np.float32)
    inputs = [rng.standard_normal((rows, 32), np.float32) for rows in range(1, 25)]
    errors: list[Any] = []

    def work(first: int) -> None:
        for a in inputs[first::4]:
            errors.append(relative_error(matmul(a, b), a.astype(np.float64) @ b))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == len(inputs) and max(errors) < 1e-6


def test_source_is_text_or_path(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(MATMUL)
    for source in (path, str(path)):
        assert list(ftuner.compile(source, emulate=True)) == ["matmul"]
    with expect(ftuner.Error, "cannot read 'missing.mlir': No such file"):
        ftuner.compile("missing.mlir")
    with expect(ftuner.Error, f"cannot read '{tmp_path}': Is a directory"):
        ftuner.compile(tmp_path)
    with expect(TypeError, "source: expected MLIR or a path, but got int"):
        ftuner.compile(3)  # type: ignore[arg-type]


def test_diagnostics(tmp_path: Path) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f() {\n  nonsense\n}\n")
    with pytest.raises(ftuner.CompileError) as caught:
        ftuner.compile(path)
    assert f"{path}:2:3" in caught.value.diagnostics
    assert "error:" in str(caught.value)
    with expect(ftuner.CompileError, "<source>:1:1"):
        ftuner.compile("nonsense\n")
    with expect(ftuner.CompileError, "nothing to compile"):
        ftuner.compile("module {\n}\n")


def test_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of a compiler that goes on are warnings."""
    home = Path(locations.tool("ftuner-translate")).parents[1]
    (tmp_path / "bin").mkdir()
    for folder in ("lib", "share"):
        (tmp_path / folder).symlink_to(home / folder)
    tool = tmp_path / "bin" / "ftuner-translate"
    tool.write_text(
        f"#!/bin/sh\necho '$1: warning: slow' >&2\nexec {home}/bin/ftuner-translate \"$@\"\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("FTUNER_HOME", str(tmp_path))
    with pytest.warns(ftuner.CompileWarning, match="warning: slow"):
        ftuner.compile(MATMUL, emulate=True)
    with warnings.catch_warnings():  # From the cache.
        warnings.simplefilter("error")
        ftuner.compile(MATMUL, emulate=True)


def test_options(matmul: ftuner.Module) -> None:
    small = ftuner.compile(MATMUL, emulate=True, max_kernels=1, cost_model="sia", pool=None)
    assert len(small.manifest["kernels"]) < len(matmul.manifest["kernels"])
    with pytest.raises(TypeError) as error:
        ftuner.compile(MATMUL, max_kernel=1)
    assert str(error.value) == "the compiler has no option 'max_kernel'; did you mean max_kernels?"
    with expect(
        TypeError, "the compiler has no option 'o': expected one of active_blocks_per_sm, "
    ):
        ftuner.compile(MATMUL, o="/tmp/x")
    with expect(
        ftuner.CompileError,
        "option --max-kernels: expected a whole number from 1 to 1024, but got 'many'",
    ):
        ftuner.compile(MATMUL, max_kernels="many")
    with expect(ftuner.CompileError, "sm_1"):
        ftuner.compile(MATMUL, cubins=["sm_1"])
    with expect(TypeError, "cubins: expected a list of processors, but got 90"):
        ftuner.compile(MATMUL, cubins=90)


def test_devices(tmp_path: Path) -> None:
    import json

    a100 = ftuner.devices()["a100"]
    own_device = {**a100, "name": "mine"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(own_device))
    for device, name in (
        ("a100", "a100"),
        (path, "mine"),
        (str(path), "mine"),
        (own_device, "mine"),
    ):
        assert ftuner.compile(MATMUL, device=device).manifest["device"]["name"] == name
    with expect(
        ftuner.Error, "unknown device 'h201': expected cuda, the path of a JSON file or one"
    ):
        ftuner.compile(MATMUL, device="h201")
    with expect(TypeError, "device: expected a name, a path or a dict, but got int"):
        ftuner.compile(MATMUL, device=9)
    own_device["sm_count"] = -3
    with expect(ftuner.CompileError, "<device>:6: field 'sm_count': expected a positive integer"):
        ftuner.compile(MATMUL, device=own_device)


def test_without_gpu() -> None:
    from ftuner.host import runtime

    if runtime.get().has_device():
        pytest.skip("there is a GPU")
    with expect(ftuner.Error, "driver"):
        ftuner.query_device()
    with expect(ftuner.Error, "driver"):
        ftuner.compile(MATMUL, device="cuda")
    module = ftuner.compile(MATMUL, emulate=False)
    assert not module.has_emulator
    with expect(ftuner.Error, "compile with emulate=True"):
        module(np.ones((2, 32), np.float32), np.ones((32, 64), np.float32))
    with expect(ftuner.Error, "driver"):
        module.prepare(device=0)


def test_relative_home(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(locations.tool("ftuner-translate")).parents[1]
    monkeypatch.chdir(home.parent)
    monkeypatch.setenv("FTUNER_HOME", home.name)
    assert ftuner.compile(MATMUL, emulate=True, cache=False).functions


def test_explain() -> None:
    explanation = ftuner.explain(DENSE, {"T": 53}, device="h200", max_kernels=8)
    assert explanation.data["sizes"] == [{"T": 53}]
    (workload,) = explanation.workloads
    (shape,) = workload["shapes"]
    assert shape["shape"][0] == 53
    terms = shape["program"]["terms"]
    score = sum(term["weight"] * term["value"] for term in terms)
    assert score == pytest.approx(shape["program"]["score"], rel=1e-6)
    assert len(shape["programs"]) > 1 and shape["stages"]
    assert "Chosen" not in explanation.text and str(explanation) == explanation.text
    assert repr(explanation) == "<Explanation of 1 function and 1 workload on h200>"
    assert explanation._repr_html_().startswith("<pre>Device h200")
    options = {"device": "h200", "max_kernels": 8}
    in_full = ftuner.explain(DENSE, {"T": 53}, workload="dense_0", **options)
    assert "Chosen" in in_full.text and "Function dense" not in in_full.text
    everything = ftuner.explain(DENSE, {"T": 53}, full=True, **options)
    assert "Chosen" in everything.text and "Function dense" in everything.text
    assert everything.data == in_full.data == explanation.data
    with expect(ftuner.CompileError, "error:"):
        ftuner.explain(DENSE, {"Q": 1})
    several = ftuner.explain(DENSE, [{"T": 53}, {"T": 7}], device="h200", max_kernels=8)
    assert several.data["sizes"] == [{"T": 53}, {"T": 7}]
    first, second = several.workloads[0]["shapes"]
    assert [first["shape"][0], second["shape"][0]] == [53, 7]
    assert first["program"] == shape["program"] and "T = 7" in several.text
    with expect(ValueError, "sizes: expected T for each shape, but got M"):
        ftuner.explain(DENSE, [{"T": 53}, {"M": 7}])
    everything = ftuner.explain(DENSE)
    assert len(everything.workloads[0]["shapes"]) == 128
    assert everything.workloads[0]["summary"]["regret"]["mean"] >= 0


def test_shares_at_any_size() -> None:
    """The compiled function itself tells what the compiler says of these sizes."""
    report = ftuner.compile(ATTENTION, emulate=False, max_kernels=2).attention.report
    for sizes in ({"B": 1, "T": 7}, {"B": 3, "T": 120}):
        explained = ftuner.explain(ATTENTION, sizes, max_kernels=2).data
        (share,) = explained["functions"][0]["work"]["shares"]
        found = report.share_at(sizes)
        for key in ("ukernel_flops", "fallback_flops", "flops_share", "fallback_us"):
            assert found[key] == pytest.approx(share[key], rel=1e-6), key
        # The compiled function knows the nearest shape if the search did not look at a shape.
        assert found["ukernel_us"] == pytest.approx(share["ukernel_us"], rel=0.5)
    with expect(ValueError, "sizes: expected numbers from 0 on of B, T, but got T = 7"):
        report.share_at({"T": 7})


def test_explanation_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    explanation = ftuner.explain(DENSE, device="t4", cost_model="sia", max_kernels=2)
    for metrics in (False, True):
        figure = tmp_path / f"figure-{metrics}.svg"
        assert explanation.plot(figure, metrics=metrics) == [figure]
        assert "dense_0 on t4" in figure.read_text()
    with expect(ftuner.Error, "unknown workload 'x': expected one of dense_0"):
        explanation.plot(tmp_path / "x.svg", workload="x")
    with expect(ftuner.Error, "expected a workload with several sizes"):
        ftuner.explain(DENSE, {"T": 53}).plot(tmp_path / "x.svg")
    del explanation.workloads[0]["shapes"][7]["fastest"]
    with expect(ftuner.Error, "lacks what a figure needs: KeyError('fastest')"):
        explanation.plot(tmp_path / "x.svg")
    assert not (tmp_path / "x.svg").exists()


# A sum of all elements for each element.
COSTS = """
func.func @costs(%x: tensor<?xf64> {ukernel.shape = ["T"]}) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f64
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %e = tensor.empty(%n) : tensor<?xf64>
  %f = linalg.fill ins(%z : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<?xf64>) outs(%f : tensor<?xf64>) {
  ^bb0(%in: f64, %out: f64):
    %s = arith.addf %in, %out : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}
"""


def test_costs_that_an_operator_does_not_need() -> None:
    """A report says which operators cost more than linearly, and which times are implausible."""
    (function,) = ftuner.compile(
        COSTS, device="h200", emulate=False, max_kernels=1
    ).functions.values()
    report = function.report
    (place,) = report.growing
    assert place.startswith("ukernel.row_reduction (arith.addf) at ")
    assert f"costs more than linearly in its data: {place}" in str(report)
    assert report.share_at({"T": 100})["implausible"] == []
    assert report.share_at({"T": 4_000_000})["implausible"] == ["costs_0"]
    assert repr(report) == f"<WorkReport of {report.summary}>"
    assert report._repr_html_().startswith("<pre>costs: ")
    assert "by position or by name" in (function.__call__.__doc__ or "")


def test_progress(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A compilation reports its progress on request; a result from the cache does not."""
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path))
    for mode in ("auto", "always", "always"):
        monkeypatch.setenv("FTUNER_PROGRESS", mode)
        path = tmp_path / f"{mode}.mlir"
        path.write_text(f"{MATMUL}// {mode}")
        capfd.readouterr()
        is_new = not any(entry.source == str(path) for entry in ftuner.cache.list())
        ftuner.compile(path, emulate=False)
        lines = capfd.readouterr().err.splitlines()
        if mode == "auto" or not is_new:
            assert lines == []
            continue
        assert lines[0] == f"ftuner: compiling {path}"
        stages = [re.sub(r".*: |, [0-9.]+ s$", "", line) for line in lines[1:]]
        expected = [
            "finding products and rows",
            "searching for programs",
            "compiling kernels",
            "writing the library",
        ]
        assert not any(stage.startswith(("canonicalize", "cse", "ukernel-")) for stage in stages)
        assert [
            stage.partition(",")[0] for stage in stages if stage.partition(",")[0] in expected
        ] == expected


PRODUCT = """
module attributes {ukernel.symbols = {T = #ukernel.range<1 to 512>}} {
  func.func @product(%a: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %b: tensor<256x512xf16>) -> tensor<?x512xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %m = tensor.dim %a, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%m) : tensor<?x512xf32>
    %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
    %r = linalg.matmul ins(%a, %b : tensor<?x256xf16>, tensor<256x512xf16>)
                       outs(%i : tensor<?x512xf32>) -> tensor<?x512xf32>
    return %r : tensor<?x512xf32>
  }
}
"""


def test_two_images(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of only one architecture have others in their place; both run in the emulator."""
    module = ftuner.compile(
        PRODUCT, device="h100", paths="simt,mma,wgmma", max_kernels=2, emulate=True
    )
    device = module.manifest["device"]
    assert (device["chip"], device["portable_chip"]) == ("sm_90a", "sm_90")
    assert ".target sm_90a" in module.ptx
    a = rng.standard_normal((70, 256)).astype(np.float16)
    b = rng.standard_normal((256, 512)).astype(np.float16)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    for image in ("exact", "portable"):
        monkeypatch.setenv("FTRT_EMULATOR_IMAGE", image)
        assert relative_error(module.product(a, b), wanted) < 1e-6
    monkeypatch.setenv("FTRT_EMULATOR_IMAGE", "sm_90")
    with expect(ftuner.Error, "FTRT_EMULATOR_IMAGE: expected 'exact' or 'portable'"):
        module.product(a, b)
