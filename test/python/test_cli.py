"""The command line, as its users run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner import compiler, locations
from ftuner.cli.common import UsageError, parse_shape, parse_shapes, print_json
from ftuner.cli.running import relative_error
from ftuner.describe import plotting
from ftuner.study.trees import trees
from handmade import ROOT
from models import MATMUL, pointwise


def run(
    *arguments: Any, cwd: Path | None = None, input: str | None = None
) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, cwd=cwd, given=input)


def start(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Runs a separate Python."""
    command = [sys.executable, "-m", "ftuner", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def ok(*arguments: Any, cwd: Path | None = None, input: str | None = None) -> str:
    result = run(*arguments, cwd=cwd, input=input)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""  # Progress is for terminals.
    return result.stdout


def fails(code: int, message: str, *arguments: Any) -> None:
    result = run(*arguments)
    assert result.returncode == code, result.stdout + result.stderr
    assert message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr
    assert "error: " in result.stderr


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "matmul.mlir"
    path.write_text(MATMUL)
    return path


@pytest.fixture(scope="module")
def two_functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sources") / "two.mlir"
    path.write_text(pointwise("f32"))
    return path


def test_json_of_what_has_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    """NaN and infinities are null, at any depth, and the rest is as it was."""
    infinity = float("inf")
    print_json(
        {
            "a": float("nan"),
            "b": [1.5, (-infinity, np.float64("nan"))],
            "c": {"d": infinity},
            "e": "NaN",
        }
    )
    printed = capsys.readouterr().out

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    found = json.loads(printed, parse_constant=refuse)
    assert found == {"a": None, "b": [1.5, [None, None]], "c": {"d": None}, "e": "NaN"}
    assert printed == json.dumps(found, indent=1) + "\n"


def test_version_and_help() -> None:
    result = start("--version")
    assert result.returncode == 0
    assert re.match(rf"FTuner {re.escape(ftuner.__version__)}\n.*LLVM version \d+", result.stdout)
    assert start("--verson").returncode == 2
    assert ok("--version") == result.stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+", ftuner.__version__)
    commands = ("compile", "run", "explain", "trees", "bench", "devices", "cache")
    text = ok("--help")
    for command in commands:
        assert f"  {command} " in text
        assert "examples:" in ok(command, "--help")


def test_compile(source: Path, tmp_path: Path) -> None:
    library = tmp_path / "libmine.so"
    text = ok("compile", source, "--emulate", "--max-kernels=2", "-o", library)
    assert text.splitlines()[0] == str(library)
    assert "matmul(a: f32[T, 32], b: f32[32, 64]) -> f32[?, 64]" in text
    assert (tmp_path / "mine.h").is_file()
    module = ftuner.load(library)
    assert module.has_emulator and module.name == "mine"
    described = json.loads(
        ok(
            "compile",
            source,
            "--json",
            "--ptx",
            tmp_path / "m.ptx",
            "--manifest",
            tmp_path / "m.json",
        )
    )
    assert described["emulator"] is False and Path(described["library"]).is_file()
    cached = ftuner.load(described["library"])
    assert (tmp_path / "m.ptx").read_text() == cached.ptx
    assert json.loads((tmp_path / "m.json").read_text()) == cached.manifest


def test_compile_tells_what_ukernels_carry(tmp_path: Path) -> None:
    wide = tmp_path / "wide.mlir"
    wide.write_text(
        """func.func @wide(%x: tensor<?x32xf64>, %w: tensor<32x48xf64>, %i: tensor<?x48xf64>)
               -> tensor<?x48xf64> {
             %p = linalg.matmul ins(%x, %w : tensor<?x32xf64>, tensor<32x48xf64>)
                                outs(%i : tensor<?x48xf64>) -> tensor<?x48xf64>
             return %p : tensor<?x48xf64>
           }
        """
    )
    done = run("compile", wide)
    assert done.returncode == 0
    assert "wide: uKernels carry 0.0% of the FLOPs and 0.0% of the predicted time" in done.stdout
    assert "warning: wide: uKernels carry only 0.0 % of the FLOPs" in done.stderr
    work = json.loads(ok("compile", wide, "--json"))["work"]["wide"]
    assert work["shares"][-1]["flops_share"] == 0 and work["warning"]


def test_run(source: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    text = ok("run", source, "--size", "T=13", "--check")
    assert "by emulator" in text
    assert re.search(r"result 0: 13x64xf32, relative error \d\S* \(tolerance 1e-05\)\n", text)
    a = rng.standard_normal((7, 32), np.float32)
    b = rng.standard_normal((32, 64), np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    inputs = ["--input", f"0={tmp_path}/a.npy", "--input", f"1={tmp_path}/b.npy"]
    report = json.loads(ok("run", source, *inputs, "--save-dir", tmp_path / "out", "--json"))
    result = np.load(report["results"][0]["file"])
    np.testing.assert_allclose(result, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
    # The same seed gives the same data.
    for folder in ("x", "y"):
        ok("run", source, "--size", "T=5", "--seed", 3, "--save-dir", tmp_path / folder)
    first, second = (np.load(tmp_path / f / "result0.npy") for f in ("x", "y"))
    np.testing.assert_array_equal(first, second)


def test_run_of_several_functions(two_functions: Path) -> None:
    call = ("run", two_functions, "--function", "scaled-sum", "--input", "2=0.5")
    text = ok(*call, "--size", "M=5,N=9", "--check", "--json")
    results = json.loads(text)["results"]
    assert [entry["shape"] for entry in results] == [[5, 9], [5, 9]]
    assert all(entry["ok"] for entry in results)
    ok("run", two_functions, "--function", "double_", "--size", "0.0=300", "--check")
    fails(2, "choose one by --function: scaled-sum, double_", "run", two_functions)
    fails(2, "expected one of the functions scaled-sum", "run", two_functions, "--function", "f")
    fails(2, "argument 's' is a number (f32): give it by --input s=NUMBER",
          "run", two_functions, "--function", "scaled-sum", "--size", "M=1,N=1")  # fmt: skip


def test_wrong_results_are_told(source: Path) -> None:
    fails(1, "results differ from the reference",
          "run", source, "--size", "T=3", "--check", "--tolerance", "0")  # fmt: skip


def test_relative_error() -> None:
    one = np.array([1.0, np.nan, np.inf])
    assert relative_error(one, one) == 0
    assert relative_error(one, np.array([1.0, 2.0, np.inf])) == float("inf")
    assert relative_error(np.zeros(2), np.zeros(3)) == float("inf")
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 0.0])) == pytest.approx(4 / 3)


def test_explain() -> None:
    dense = ROOT / "examples" / "dense.mlir"
    text = ok("explain", dense, "--size", "T=53", "--max-kernels=4")
    assert text.splitlines()[2] == "Function dense, all of it" and "Timeline of dense" in text
    assert "Chosen" not in text and len(text.splitlines()) <= 40
    data = json.loads(ok("explain", dense, "--size", "T=53", "--json"))
    assert data["workloads"][0]["shapes"][0]["shape"][0] == 53
    assert data["workloads"][0]["shapes"][0]["program"]["predicted_us"] > 0
    # The compiler reads a copy, whose folder is nobody's business.
    assert data["workloads"][0]["location"].startswith("dense.mlir:")
    text = ok("explain", dense, "--size", "T=53", "--max-kernels=4", "--workload=dense_0")
    assert "Chosen" in text and "(dense.mlir:" in text and "Timeline" not in text
    assert "Chosen" in ok("explain", dense, "--size", "T=53", "--max-kernels=4", "--all")
    fails(2, "not allowed with", "explain", dense, "--all", "--json")


def test_explain_and_predict_without_workloads() -> None:
    """A module of fallback kernels has their bounds."""
    pooling = ROOT / "examples" / "pooling.mlir"
    options = ("--size", "N=2", "--paths=simt")
    assert "linalg.pooling" in ok("explain", pooling, *options)
    assert re.search(r"100\.0%  1 +windows", ok("predict", pooling, *options))


def test_trees() -> None:
    dense = ROOT / "examples" / "dense.mlir"
    text = ok("trees", dense, "--size", "T=53", "--device=v100")
    assert "multiply: sums ← lhs tile (shared)" in text
    data = json.loads(ok("trees", dense, "--size", "T=53", "--device=v100", "--json"))
    (launch,) = data["functions"][0]["calls"][0]["launches"]
    (tree,) = launch["trees"]
    assert "features" not in tree and launch["shape"][0] == 53
    # The same tree, with its numbers, as values of Python.
    (call,) = trees(dense, {"T": 53}, device="v100")
    assert (call.function, call.sizes) == ("dense", {"T": 53})
    (of_call,) = call.launches
    assert (of_call.name, of_call.is_fallback, of_call.times) == ("dense_0", False, 1)
    (numbers,) = of_call.trees
    assert numbers.blocks == tree["blocks"]
    assert numbers.ordering.tolist() == tree["ordering"]
    assert numbers.features.shape == (len(tree["statements"]), 164)
    assert of_call.data["trees"][0]["loops"] == tree["loops"]
    fails(2, "expected --json", "trees", dense, "--size", "T=53", "--features")
    fails(1, "expected a size of T", "trees", dense)
    fails(1, "unknown name 'U'", "trees", dense, "--size", "U=3")


def test_calibration(source: Path, tmp_path: Path) -> None:
    """A file is found from where the command is called; a built-in name wins over it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    own_calibration = {"name": "mine", "constants": {"launch": 50}}
    for path in (tmp_path / "mine.json", tmp_path / "mine", tmp_path / "v100-pcie"):
        path.write_text(json.dumps(own_calibration))
    explain = ("explain", source, "--size", "T=5", "--json")
    for path, name in (
        ("mine.json", "mine"), ("mine", "mine"), ("v100-pcie", "v100-pcie"), ("", "h200")
    ):  # fmt: skip
        data = json.loads(ok(*explain, f"--calibration={path}", cwd=tmp_path))
        assert data["calibration"] == name
        predicted = data["workloads"][0]["shapes"][0]["program"]["predicted_us"]
        assert (predicted > 50) == (name == "mine")
    for output in ([], ["-o", tmp_path / "libx.so"]):
        library = ("compile", source, *output, "--manifest", tmp_path / "m.json")
        ok(*library, "--calibration=../mine.json", cwd=folder)
        assert '"mine"' in (tmp_path / "m.json").read_text()
    fails(1, "option --calibration: expected a file or one of a100",
          "compile", source, "--calibration=none/x.json")  # fmt: skip
    fails(1, f"cannot read calibration file '{folder}': expected a regular file",
          "explain", source, f"--calibration={folder}")  # fmt: skip
    (folder / "bad.json").write_text('{"name": "bad",\n "constants": {"fma": 9}}')
    result = run("explain", source, "--calibration=bad.json", cwd=folder)
    assert result.returncode == 1 and "option --calibration: bad.json:2: field" in result.stderr


def test_explain_plot(tmp_path: Path) -> None:
    dense = ROOT / "examples" / "dense.mlir"
    figure = tmp_path / "dense.png"
    fails(1, "expected an output that ends in one of", "explain", dense, "--plot", "dense.gif")
    fails(
        2, "option --plot: expected no --size", "explain", dense, "--plot", figure, "--size", "T=3"
    )
    fails(2, "option --plot: expected no --size", "explain", dense, "--plot", figure, "--json")
    fails(1, "error:", "explain", tmp_path / "missing.mlir", "--plot", figure)
    assert not figure.exists()
    pytest.importorskip("matplotlib")
    assert ok("explain", dense, "--device", "v100", "--plot", figure) == f"{figure}\n"
    assert figure.read_bytes()[:4] == b"\x89PNG"
    fails(1, "cannot write", "explain", dense, "--plot", tmp_path / "none" / "dense.svg")


def test_plot_of_an_equal_workload(tmp_path: Path) -> None:
    """One entry stands for all equal workloads; each of their names draws it."""
    pytest.importorskip("matplotlib")
    module, _, function = MATMUL.partition("  func.func")
    function = "  func.func" + function.rpartition("}")[0]
    two = module + function + function.replace("@matmul", "@again") + "}"
    data = ftuner.explain(two, device="v100").data
    (workload,) = data["workloads"]
    (other,) = workload["equal_workloads"]
    for name in (workload["name"], other):
        (path,) = plotting.draw_plan(data, tmp_path / f"{name}.png", workload=name)
        assert path.exists()
    with pytest.raises(ftuner.Error, match=f"one of {workload['name']}, {other}$"):
        plotting.draw_plan(data, tmp_path / "x.png", workload="nothing")


def test_bench(source: Path, tmp_path: Path) -> None:
    text = ok("bench", source, "--size", "T=1..9:4", "--repeat", 2, "--csv", tmp_path / "t.csv")
    assert "in the CPU emulator" in text
    rows = (tmp_path / "t.csv").read_text().splitlines()
    assert rows[0] == "T,microseconds,first_quartile,third_quartile,calls"
    assert [row.split(",")[0] for row in rows[1:]] == ["1", "5", "9"]
    data = json.loads(ok("bench", source, "--size", "T=2,3", "--repeat", 3, "--json"))
    assert data["executor"] == "emulator" and data["gpu"] is None
    assert [row["T"] for row in data["rows"]] == [2, 3]
    for row in data["rows"]:
        assert 0 < row["first_quartile"] <= row["microseconds"] <= row["third_quartile"]
    pytest.importorskip("matplotlib")
    ok("bench", source, "--size", "T=2,3", "--repeat", 1, "--plot", tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"


def test_size_lists() -> None:
    """One grammar in all commands: lists and ranges, their combinations, and further shapes."""
    sizes = [1, 7, 20, 25, 30]
    assert parse_shapes(["T=1,7,20..30:5", "N=3"]) == [{"T": size, "N": 3} for size in sizes]
    assert parse_shapes(["B=1,2,T=3,4"]) == [{"B": b, "T": t} for b in (1, 2) for t in (3, 4)]
    further = [{"B": 1, "T": 64}, {"B": 1, "T": 128}]
    assert parse_shapes(["B=1,T=64,T=128"]) == parse_shapes(["B=1", "T=64,128"]) == further
    assert parse_shapes(["B=1,T=5", "B=2,T=7"]) == [{"B": 1, "T": 5}, {"B": 2, "T": 7}]
    assert parse_shapes([]) == [] and parse_shape([]) == {} and parse_shape(["T=0"]) == {"T": 0}
    for text in ("T", "T=", "T=x", "T=5..1", "T=1..5:0", "=3", "3", "T=1,", "B=1,B=2,T=3"):
        with pytest.raises(UsageError):
            parse_shapes([text])
    with pytest.raises(UsageError, match="expected one shape, but got 2"):
        parse_shape(["B=1,T=64,T=128"])


def test_sizes_in_all_commands(tmp_path: Path) -> None:
    """`--size` means the same everywhere, and a size that is missing is an error that names it."""
    source = tmp_path / "two.mlir"
    source.write_text(
        """module attributes {ukernel.symbols = {B = #ukernel.range<1 to 16>, T = #ukernel.range<1 to 64>}} {
  func.func @f(%a: tensor<?x8xf32> {ukernel.shape = ["B", 8]}, %b: tensor<8x4xf32>,
               %o: tensor<?x4xf32> {ukernel.shape = ["B", 4]}, %r: tensor<?xf32> {ukernel.shape = ["T"]})
      -> (tensor<?x4xf32>, tensor<?xf32>) {
    %c = linalg.matmul ins(%a, %b : tensor<?x8xf32>, tensor<8x4xf32>) outs(%o : tensor<?x4xf32>) -> tensor<?x4xf32>
    %z = arith.constant 0.0 : f32
    %e = linalg.fill ins(%z : f32) outs(%r : tensor<?xf32>) -> tensor<?xf32>
    return %c, %e : tensor<?x4xf32>, tensor<?xf32>
  }
}
"""
    )
    for command in ("explain", "predict", "trees", "run", "bench"):
        call = (command, source, "--device=v100", "--max-kernels=1")
        more = ("--repeat", 1) if command == "bench" else ()
        # One message is the compiler's own.
        words = "expected a size of T" if command == "trees" else "the sizes T are not known"
        fails(2 if command in ("run", "bench") else 1, words, *call, "--size", "B=2", *more)
        fails(2, "expected a whole number for T, or a range", *call, "--size", "B=2,T=x", *more)
        if command == "run":
            fails(2, "expected one shape, but got 2", *call, "--size", "B=1,T=5,T=7")
        else:
            text = ok(*call, "--size", "B=1,T=5,T=7", *more)
            if command != "trees":
                assert text == ok(*call, "--size", "B=1,T=5,7", *more) or command == "bench"


def test_devices(tmp_path: Path) -> None:
    text = ok("devices")
    assert re.search(r"^h200 +Hopper +9.0 +132 ", text, re.MULTILINE)
    assert json.loads(ok("devices", "--json")) == ftuner.devices()
    assert json.loads(ok("devices", "h200")) == ftuner.devices()["h200"]
    ok("devices", "a100", "-o", tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["name"] == "a100"
    fails(2, "expected one of a100", "devices", "h201")
    fails(2, "option --output: expected a name or --query", "devices", "-o", "x")
    fails(1, "cannot write '/missing/x'", "devices", "a100", "-o", "/missing/x")


def test_cache(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path / "c"))
    assert ok("cache", "path") == f"{tmp_path}/c\n"
    assert ok("cache", "list") == "the cache is empty\n"
    ok("compile", source)
    assert "matmul(a" in ok("cache", "list")
    (entry,) = json.loads(ok("cache", "list", "--json"))
    assert entry["source"] == str(source) and entry["device"] == "h200"
    assert ok("cache", "clear", "--older-than", "1h") == "removed 0 entries\n"
    assert ok("cache", "clear") == "removed 1 entries\n"
    fails(2, "--older-than: expected an age such as 12h", "cache", "clear", "--older-than", "soon")
    fails(2, "option --json has no effect without list", "cache", "path", "--json")


def test_errors(source: Path, tmp_path: Path) -> None:
    fails(2, "invalid choice: 'compil'", "compil")
    fails(2, "required: COMMAND")
    fails(2, "unrecognized arguments: extra", "run", source, "extra")
    fails(2, "unrecognized arguments: --T=5", "devices", "--T=5")
    fails(2, "unrecognized arguments: --max-kernel=5", "compile", source, "--max-kernel=5")
    fails(2, "--max-kernel=5; did you mean --max-kernels? (", "compile", source, "--max-kernel=5")
    fails(2, "--sise; did you mean --size? (", "run", source, "--sise", "T=4")
    # Before anything is compiled: for this device nothing could be.
    nowhere = (source, "--device", "h201", "--size")
    words = "--size: expected one of the sizes T, but got 'TT'; did you mean T?"
    fails(2, words, "run", *nowhere, "TT=4")
    fails(2, "--size: expected one of the sizes T, but got 'Q'", "bench", *nowhere, "Q=4")
    fails(1, "unknown device 'h201'", "run", *nowhere, "T=4")
    fails(1, "cannot read 'missing.mlir': No such file", "compile", "missing.mlir")
    fails(1, "unknown device 'h201'", "compile", source, "--device", "h201")
    fails(2, "the sizes T are not known: give them by --size T=64", "run", source)
    fails(2, "--size: expected one of the sizes T, but got 'Q'", "run", source, "--size", "T=1,Q=2")
    fails(2, "--size: expected a whole number for T", "run", source, "--size", "T=-1")
    fails(2, "--input: expected an argument from 0 to 1", "run", source, "--input", "2=1")
    fails(1, "cannot read the array 'no.npy': No such file or directory\n",
          "run", source, "--input", "0=no.npy")  # fmt: skip
    fails(1, f"cannot read the array '{source}': expected numbers in a .npy file",
          "run", source, "--input", f"0={source}")  # fmt: skip
    np.save(tmp_path / "a.npy", np.ones((3, 32)))
    fails(1, "matmul: argument 'a': expected elements of type float32, but got float64",
          "run", source, "--input", f"0={tmp_path}/a.npy")  # fmt: skip
    fails(2, "--size: T is 3 in a file, but got 4",
          "run", source, "--input", f"0={tmp_path}/a.npy", "--size", "T=4")  # fmt: skip
    bad = tmp_path / "bad.mlir"
    bad.write_text("nonsense")
    fails(1, f"{bad}:1:1: error:", "compile", bad)
    fails(1, "error:", "compile", source, "-o", "/missing/libx.so")


def test_values_of_compiler_options(source: Path) -> None:
    """With and without `=`, before and after the source."""

    def library(*arguments: Any) -> str:
        return ok("compile", *arguments).splitlines()[0]

    expected = library(source, "--max-kernels=2", "--cost-model=sia", "--c0=-1.5")
    assert expected != library(source)
    for arguments in (
        [source, "--max-kernels", 2, "--cost-model", "sia", "--c0", "-1.5"],
        ["--max-kernels", 2, "--cost-model", "sia", source, "--c0", "-1.5"],
        ["--c0", "-1.5", "--max-kernels", 2, source, "--cost-model=sia", "--device", "h200"],
    ):
        assert library(*arguments) == expected
    # What is on or off takes no value that follows it.
    text = ok("compile", "--ptxas-feedback", source, "--manifest", "-")
    assert "ptxas_rounds" in text and text == ok(
        "compile", source, "--ptxas-feedback=true", "--manifest", "-"
    )
    known = compiler.valued_options(locations.tool("ftuner-translate"))
    assert known == compiler.pipeline_options(locations.tool("ftuner-translate")) - {
        "batch-tiles",
        "mutate-threads",
        "pack-weights",
        "pad-reduce",
        "pad-term",
        "perfect-tiles",
        "ptxas-feedback",
        "scale-out",
        "sliced-k",
        "split-k",
        "tensor-maps",
        "virtual-threads",
        "walk-reduce",
    }
    for arguments in (["--max-kernels"], ["--max-kernels", "--json"]):
        fails(2, "option --max-kernels: expected one value", "compile", source, *arguments)
    fails(2, "unrecognized arguments: --max-kernel", "compile", source, "--max-kernel", "5")
    fails(2, "unrecognized arguments: 5", "compile", source, "--max-kernels", "4", "5")
    fails(2, "required: source", "compile", "--max-kernels", "4")
    fails(2, "unrecognized arguments: --max-kernels", "devices", "--max-kernels", "4")


def test_help_lists_the_compiler_s_options() -> None:
    """Commands that compile list each option once, with bounds and default; first only the basic ones."""
    declared = compiler.declared_options(locations.tool("ftuner-translate"))
    basic = [option for option in declared if option.level == "basic"]
    assert 8 <= len(basic) <= 13
    for command in ("compile", "run", "explain", "trees", "bench", "iree"):
        for shown, listed in (("--help", basic), ("--help-all", declared)):
            text = ok(command, shown)
            for option in declared:
                times = int(option in listed and option.level != "testing")
                found = re.findall(rf"^  --{option.name}(?![\w-])", text, re.MULTILINE)
                assert len(found) == times, (command, shown, option)
                if times and option.name != "device":
                    assert "".join(option.help.split()) in "".join(text.split())
    assert "1 to 1024; default: 24" in " ".join(ok("compile", "--help").split())
    groups = re.findall(r"^(\w.*):$", ok("compile", "--help-all"), re.MULTILINE)
    assert {"Search", "Measurement", "Baseline 'dietcode'"} < set(
        groups
    ) and "Testing" not in groups
    assert "--max-kernels" not in ok("devices", "--help")


def test_options_of_a_strategy_that_came_later(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package knows what the compiler lists, and nothing else."""
    fails(2, "unrecognized arguments: --population", "compile", source, "--population", 5)
    prefix = locations.find("test/Extension/prefix")
    monkeypatch.setenv("FTUNER_HOME", str(prefix))
    text = " ".join(ok("compile", "--help-all").split())
    assert "this number of programs of a generation (1 to 4096; default: 64;" in text
    of_strategy = ["--strategy", "later", "--population", 5, "--crossover=points"]
    manifest = ok("compile", source, *of_strategy, "--max-kernels", 1, "--manifest", "-")
    statistics = json.loads(manifest)["workloads"][0]["statistics"]
    assert statistics["later_population"] == 5 and statistics["later_points"] == 1
    module = ftuner.compile(MATMUL, strategy="later", population=6, max_kernels=1)
    assert module.manifest["workloads"][0]["statistics"]["later_population"] == 6
    # Its file counts with its content, and not with its path.
    recipe = tmp_path / "recipe"
    compiled = []
    for content, path in (("a", recipe), ("abc", recipe), ("a", tmp_path / "moved")):
        path.write_text(content)
        compiled.append(ftuner.compile(MATMUL, strategy="later", recipe=path, max_kernels=1))
    first, changed, moved = compiled
    assert first.library_path != changed.library_path and moved.library_path == first.library_path
    assert changed.manifest["workloads"][0]["statistics"]["later_recipe_bytes"] == 3
    fails(1, "error: option --population: expected 1 to 4096, but got 0",
          "compile", source, "--population", 0)  # fmt: skip


def test_wrong_options_are_not_the_input_s_fault(source: Path) -> None:
    for arguments, message in (
        (["--cost-model", "dice"], "error: option --cost-model: expected one of latency, sia"),
        (["--max-kernels=0"], "error: option --max-kernels: expected 1 to"),
        (["--psi", "much"], "error: option --psi: expected a number from 0 to 1, but got 'much'"),
        (["--strategy", "luck"], "error: option --strategy: expected one of"),
        (["--cubins", "sm_9999"], "error: expected an architecture that LLVM can generate"),
    ):
        result = run("compile", source, *arguments)
        assert result.returncode == 1
        assert re.search(f"^{re.escape(message)}", result.stderr, re.MULTILINE), result.stderr
        assert f"{source}:1" not in result.stderr and "module attributes" not in result.stderr


def test_standard_input() -> None:
    assert "matmul(a: f32[T, 32]" in ok("compile", "-", input=MATMUL)
    assert "relative error" in ok("run", "-", "--size", "T=5", "--check", input=MATMUL)
    assert "<stdin>:" in ok("explain", "-", "--size", "T=5", "--all", input=MATMUL)
    assert "CPU emulator" in ok("bench", "-", "--size", "T=5", "--repeat", 1, input=MATMUL)
    result = run("compile", "-", input="nonsense")
    assert result.returncode == 1 and "<stdin>:1:1: error:" in result.stderr
    assert run("compile", "-", input="").returncode == 1


def test_standard_output(source: Path, tmp_path: Path) -> None:
    """`-` is not a file, and nothing else is on standard output then."""
    ok("compile", source, "--ptx", "m.ptx", "--manifest", "m.json", cwd=tmp_path)
    ptx, manifest = ((tmp_path / name).read_text() for name in ("m.ptx", "m.json"))
    assert ok("compile", source, "--ptx", "-", cwd=tmp_path) == ptx
    assert ok("compile", "-", "--manifest", "-", cwd=tmp_path, input=MATMUL) == manifest
    assert ok("compile", source, "-o", "libx.so", "--ptx=-", cwd=tmp_path) == ptx
    assert json.loads(ok("devices", "h200", "-o", "-", cwd=tmp_path))["name"] == "h200"
    times = ok("bench", source, "--size", "T=5", "--repeat", 1, "--csv", "-", cwd=tmp_path)
    assert times.startswith("T,microseconds,") and len(times.splitlines()) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libx.so", "m.json", "m.ptx", "x.h"]
    # Devices and pipes are not files to replace.
    assert ok("compile", source, "--ptx", "/dev/stdout").startswith(ptx)
    for arguments in (["--manifest", "-"], ["--json"]):
        fails(2, "expected one option that writes to standard output, but got --ptx -",
              "compile", source, "--ptx", "-", *arguments)  # fmt: skip
    fails(2, "--output: expected the name of a library", "compile", source, "-o", "-")
    fails(1, "expected an output that ends in", "explain", source, "--plot", "-")


@pytest.mark.parametrize("name", ["100%", "a%2Fb %%%%%%"])
def test_folders_with_percent_signs(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(folder / "c%"))
    monkeypatch.setenv("TMPDIR", str(folder))
    ok("compile", source, "--emulate", "-o", folder / "libx.so", "--ptx", folder / "x%.ptx")
    assert ftuner.load(folder / "libx.so").ptx == (folder / "x%.ptx").read_text()
    ok("run", source, "--size=T=5", "--save-dir", folder / "r%d", "--check")
    assert np.load(folder / "r%d" / "result0.npy").shape == (5, 64)
    module = ftuner.compile(MATMUL, emulate=True)
    assert str(module.library_path).startswith(str(folder / "c%"))
    assert ftuner.compile(MATMUL, emulate=True, cache=False).functions
    assert len(json.loads(ok("cache", "list", "--json"))) == 1


def test_results_are_saved_all_or_none(two_functions: Path, tmp_path: Path) -> None:
    (tmp_path / "result1.npy").mkdir()
    call = ("run", two_functions, "--function", "scaled-sum", "--input", "2=0.5", "--size=M=5,N=9")
    fails(1, "cannot write", *call, "--save-dir", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["result1.npy"]


def test_names_that_are_no_unicode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are shown, whatever the encoding of standard output."""
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path / "c"))
    source = tmp_path / os.fsdecode(b"m\xff.mlir")
    source.write_text(MATMUL)
    compiling = ("compile", source, "--device=h200")
    first = start(*compiling)
    assert first.returncode == 0 and start(*compiling).stdout == first.stdout
    (entry,) = json.loads(ok("cache", "list", "--json"))
    assert entry["source"].endswith("m\ufffd.mlir")
    for encoding in ("utf-8", "ascii"):
        monkeypatch.setenv("PYTHONIOENCODING", encoding)
        for command in (("cache", "list"), compiling):
            result = start(*command)
            assert result.returncode == 0 and result.stderr == "", result.stderr
            assert "matmul(a" in result.stdout


def test_missing_driver(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTRT_CUDA_DRIVER", "/missing/libcuda.so")
    message = "no CUDA driver: '/missing/libcuda.so'"
    fails(1, message, "devices", "--query")
    fails(1, message, "compile", source, "--device", "cuda")
    fails(1, message, "run", source, "--size", "T=1", "--executor", "cuda")
    fails(1, message, "bench", source, "--size", "T=1", "--executor", "cuda")


def test_missing_home(source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FTUNER_HOME", str(tmp_path))
    fails(1, f"in {tmp_path}: FTUNER_HOME should name a build tree or an install prefix",
          "compile", source)  # fmt: skip


def test_closed_pipe(source: Path) -> None:
    """A reader that has seen enough is not a failure to report."""
    command = f"{sys.executable} -m ftuner devices --json | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_progress(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere only where it is asked for, as lines."""
    call = ("compile", source)
    assert run(*call).stderr == ""
    monkeypatch.setenv("FTUNER_PROGRESS", "always")
    assert run(*call, "--max-kernels=5").stderr.startswith(f"ftuner: compiling {source}\n")
    assert run(*call, "--max-kernels=5").stderr == f"ftuner: compiling {source}\n"  # Cached.
    monkeypatch.setenv("FTUNER_PROGRESS", "loud")
    fails(1, "FTUNER_PROGRESS: expected auto, always or never, but got 'loud'", *call)


@pytest.mark.parametrize("mode", ["auto", "never"])
def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Progress is drawn on a terminal, and wiped afterwards."""
    import pty

    monkeypatch.setenv("FTUNER_PROGRESS", mode)

    reader, writer = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "ftuner",
        "bench",
        # Nothing that takes less than a moment is told.
        str(ROOT / "examples" / "dense.mlir"),
        "--size",
        "T=1,2",
        "--device=h200",
        "--max-kernels=4",
        "--no-cache",
    ]
    process = subprocess.Popen(command, stderr=writer, stdout=subprocess.PIPE)
    os.close(writer)
    shown = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # The other end is closed.
            break
        if not piece:
            break
        shown += piece
    process.communicate()
    assert process.returncode == 0
    if mode == "never":
        assert shown == b""
        return
    assert b"compiling" in shown and b"timing [" in shown and shown.endswith(b"\r\x1b[K")
