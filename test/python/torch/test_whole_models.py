"""The twelve models of examples/python/torch_models.py, each from one compilation."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import ftuner
from checks import ROOT, load_script
from ftuner.describe.work import evaluate
from scale import SCALE

pytest.importorskip("iree.compiler")
pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

models = load_script("examples/python/torch_models.py")


#: Models of the suite: the others have operators and products like one of these.
PART = ["whisper", "lstm", "t5", "mobilenet", "recommender"]


@pytest.mark.parametrize("name", models.MODELS if SCALE > 1 else PART)
def test_model(name: str) -> None:
    """Right at each size, every product by a uKernel, and a name of every other operator."""
    case = models.MODELS[name]()
    exported = models.export(case)
    run = exported.compile(emulate=True, max_kernels=1)
    for size in case.sizes if SCALE > 1 else case.sizes[:2]:
        error, eager = models.errors(case, run, size)
        assert error < 4 * eager + 1e-7, f"{name} at {size}: {error}, eager {eager}"
    report = run.report
    assert report.products == case.products
    assert report.fallback_kernels == sum(report.operators.values())
    assert all(operator.startswith(("linalg.", "tensor.")) for operator in report.operators)
    assert f"{report.fallback_kernels} fallback kernels" in str(report)
    check_declared_sizes(case, exported.text, run)
    check_shares(run)


def declared(case: Any) -> dict[str, Any]:
    """The dimensions that a model's caller declares, by name."""
    return {dim.__name__: dim for shape in case.shapes for dim in shape.values()}


def check_declared_sizes(case: Any, text: str, run: Any) -> None:
    """Ranges are as declared, and none of their sizes is left to a general family.

    But where operands are not aligned, which no size can help.
    """
    dims = declared(case)
    for name, dim in dims.items():
        assert f"{name} = #ukernel.range<{dim.min} to {dim.max}>" in text
    plans = {plan["name"]: plan for plan in run.module.manifest["workloads"]}
    report = run.report
    # All sizes of a few, and the ends with some between of others.
    ranges = [
        [*range(dim.min, dim.max + 1)][:: 1 if len(dims) < 3 else 31] + [dim.max]
        for dim in (dims[name] for name in report.sizes)
    ]
    seen = 0
    for workload in report.data["workloads"]:
        boxes = [entry["box"] for entry in plans[workload["kernels_of"]]["dispatch"]]
        shapes = set()
        for sizes in itertools.product(*ranges):
            named = dict(zip(report.sizes, sizes))
            shapes.add(tuple(evaluate(extent, named) for extent in workload["extents"]))
        for shape in shapes:
            assert any(
                all(
                    axis["min"] <= size and (axis["max"] is None or size <= axis["max"])
                    for axis, size in zip(box, shape)
                )
                for box in boxes
            ), f"no entry of {workload['kernels_of']} holds {shape}"
        seen += len(shapes)
    assert seen >= len(ranges[0])


def check_shares(run: Any) -> None:
    """Shares of any sizes from the compiled function equal the compiler's shares."""
    for share in run.report.data["shares"]:
        found = run.report.share_at(share["sizes"])
        assert found.keys() == share.keys()
        for key, value in share.items():
            assert found[key] == (value if key == "sizes" else pytest.approx(value, rel=1e-6)), key


@pytest.mark.parametrize(
    "name", ["bert", "gpt2", "llama", "t5", "attention"] if SCALE > 1 else ["t5"]
)
def test_sizes_keep_their_names(name: str) -> None:
    """Every workload is explained by the sizes that the caller named."""
    exported = models.export(models.MODELS[name]())
    explained = ftuner.explain(exported.text, {"B": 3, "T": 17}, max_kernels=1)
    shapes = [workload["shapes"][0]["shape"] for workload in explained.workloads]
    assert shapes and all(re.fullmatch(r"[\d, \[\]]+", str(shape)) for shape in shapes)
    assert {3 * 17, 17} & {extent for shape in shapes for extent in shape}


def test_models_at_fixed_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark's rows, in small: a model to PTX, and a layer of it in the emulator."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks/cpu"))
    whole_models = load_script("benchmarks/cpu/whole_models.py")
    table = tmp_path / "table.md"
    arguments = "--small --layers 1 --max-kernels 1 --models bert_base --batches 16 --lengths 3"
    monkeypatch.setattr(
        sys,
        "argv",
        ["whole_models.py", *arguments.split(), "--devices", "t4", "--write", str(table)],
    )
    assert whole_models.main() == 0
    assert table.read_text() == capsys.readouterr().out
    rows = [line.split(" | ") for line in table.read_text().splitlines() if "| t4 |" in line]
    assert [row[:3] for row in rows] == [["| bert_base", "16", "t4"]] * 2
    assert rows[0][5] == "6"  # Products.
    assert float(rows[1][6]) < 4 * float(rows[1][7].split(" ")[0])
    # A row that fails says why, and the command fails.
    monkeypatch.setattr(whole_models, "WORST_RATIO", -2)
    sys.argv += ["--skip", "whole"]
    assert whole_models.main() == 1
    assert "failed: at length 3 the error is " in capsys.readouterr().out


def table_rows(text: str) -> list[dict[str, str]]:
    """The rows of a Markdown table by their titles."""
    header, _, *rows = [
        line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")
    ]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_operator_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time by operator, in small: with rows nothing of a softmax or norm is left, and masks are computed once."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks/cpu"))
    times = load_script("benchmarks/cpu/operator_times.py")
    table, measured = tmp_path / "table.md", tmp_path / "measured.csv"
    measured.write_text(
        "device,framework,dtype,batch,seq,implementation,latency_ms\n"
        "t4,a,f16,2,33,ft,0.2\nt4,b,f16,2,33,ft,0.1\nt4,b,f16,2,3,xla,0.4\n"
    )
    arguments = (
        "--small --layers 3 --max-kernels 1 --models bert_encoder --types f16 --devices t4 --batches 2 "
        f"--lengths 3 33 --measured {measured} --write {table}"
    )
    monkeypatch.setattr(sys, "argv", ["operator_times.py", *arguments.split()])
    assert times.main() == 0
    assert table.read_text().strip() == capsys.readouterr().out.strip()
    rows = table_rows(table.read_text())
    assert [(row["rows"], row["T"]) for row in rows] == [
        ("without", "3"), ("with rows", "3"), ("without", "33"), ("with rows", "33")
    ]  # fmt: skip
    before, after = rows[2:]
    assert int(before["left"]) > 0 == int(after["left"])
    assert after["softmax"] != "0" != after["norms"] and before["softmax"] == before["norms"] == "0"
    launches = int(after["launches"])
    assert launches < int(before["launches"]) and after["a layer"] == f"{launches / 3:.1f}"
    # The fastest measurement, and the prediction over it.
    us = float(after["µs"].replace(",", ""))
    assert after["ft measured, ms (ours over it)"] == f"0.1 ({us / 100:.2f})"
    assert after["xla measured, ms (ours over it)"] == "–"
    # Every kernel belongs to a layer; no kernel prepares the mask.
    sys.argv[sys.argv.index("3")] = "2"
    assert times.main() == 0
    fewer = int(table_rows(table.read_text())[-1]["launches"])
    assert 3 * (launches - fewer) == launches
    # Nothing is explained again.
    monkeypatch.setattr(times, "explain", None)
    assert times.main() == 0
    # What is left fails.
    store = table.with_name("table.md.json")
    store.write_text(store.read_text().replace('"left": 0', '"left": 2'))
    assert times.main() == 1
    assert "2 fallback kernels of a softmax or norm" in capsys.readouterr().err


def test_kinds_of_operators() -> None:
    times = load_script("benchmarks/cpu/operator_times.py")

    def workload(operator: str, axes: str, extents: list[Any]) -> dict[str, Any]:
        return {"operator": operator, "axes": axes.split(), "extents": extents}

    for kind, kernel in {
        "linear": workload("ukernel.workload (arith.mulf, arith.addf)", "M N K", ["T", 8, 8]),
        "batched products": workload("ukernel.workload (math.exp)", "M N K B0", ["T", 8, 8, 12]),
        "softmax": workload("ukernel.row_reduction (arith.maximumf, math.exp)", "M R", ["T", 8]),
        "norms": workload("ukernel.row_reduction (arith.addf, math.rsqrt)", "M R", ["T", 8]),
        "other rows": workload("ukernel.row_reduction (arith.addf)", "M R", ["T", 8]),
        "computing": {"operator": "linalg.generic (arith.addf)"},
        "moving": {"operator": "linalg.transpose"},
    }.items():
        assert times.kind_of(kernel) == kind
    assert times.kind_of(workload("ukernel.workload", "M N K B0", ["T", 8, 8, 1])) == "linear"
    left = ("linalg.reduce (arith.addf)", "linalg.generic (arith.subf, math.exp)", "linalg.softmax")
    assert all(times.is_left({"operator": operator}) for operator in left)
    assert not times.is_left({"operator": "linalg.generic (arith.addf, math.erf)"})
