"""The scripts of benchmarks/gpu, as far as they run without a GPU.

Records are synthetic, made here; nothing in this file is a measurement.
"""

from __future__ import annotations

import csv
import ctypes
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU = ROOT / "benchmarks" / "gpu"
sys.path.insert(0, str(GPU))

torch = pytest.importorskip("torch", minversion="2")

import ftuner
from ftuner_bench import (
    builds,
    bundle,
    correctness,
    forward,
    parts,
    products,
    records,
    report,
    stats,
    timing,
    ways,
    workloads,
)
from ftuner_bench.machine import Cuda, Rehearsal
from ftuner_bench.recorded import key

BUILD = pathlib.Path(os.environ.get("FTUNER_HOME", ROOT / "build" / "release"))


# Statistics, on answers that are known.


def test_quantiles() -> None:
    assert stats.quantile([3.0], 0.5) == 3
    assert stats.quantile([4, 1, 3, 2], 0.5) == 2.5
    assert stats.quantile([1, 2, 3, 4, 5], 0.25) == 2
    values = [random.gauss(0, 1) for _ in range(37)]
    for share in (0, 0.25, 0.5, 0.9, 1):
        assert stats.quantile(values, share) == pytest.approx(np.quantile(values, share))
    with pytest.raises(ValueError, match="at least one value"):
        stats.quantile([], 0.5)


def test_geometric_mean() -> None:
    assert stats.geometric_mean([1, 4]) == pytest.approx(2)
    assert stats.geometric_mean([0.5, 2, 8, 0.125]) == pytest.approx(1)
    with pytest.raises(ValueError, match="positive"):
        stats.geometric_mean([1, 0])


def test_rank_correlations() -> None:
    assert stats.ranks([10, 30, 20, 30]) == [1, 3.5, 2, 3.5]
    assert stats.spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert stats.kendall([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)
    assert stats.spearman([1, 2, 3], [9, 8, 7]) == stats.kendall([1, 2, 3], [9, 8, 7]) == -1
    # Ties: of 6 pairs, 5 differ in x, 5 in y, 4 in both and alike.
    assert stats.kendall([1, 2, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / 5)
    assert stats.spearman([1, 1, 1], [1, 2, 3]) is None
    assert stats.kendall([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="equally many"):
        stats.spearman([1], [1, 2])


def test_best_share() -> None:
    assert stats.best_share([3, 2, 1], [5.0, 4.0, 2.0], 1) == pytest.approx(0.4)
    assert stats.best_share([3, 2, 1], [5.0, 4.0, 2.0], 2) == pytest.approx(0.5)
    assert stats.best_share([3, 2, 1], [5.0, 4.0, 2.0], 10) == 1
    # The first of equal scores counts.
    assert stats.best_share([1, 1], [2.0, 1.0], 1) == pytest.approx(0.5)


# Sizes and records.


@pytest.mark.parametrize("largest", [1, 2, 3, 16, 100, 128])
def test_spread(largest: int) -> None:
    order = workloads.spread(largest)
    assert sorted(order) == list(range(1, largest + 1))
    assert set(order[:2]) == {1, largest}
    # A quarter of the sizes leaves no large gap, and has odd and even ones.
    some = sorted(order[: max(2, largest // 4)])
    assert max((b - a for a, b in zip(some, some[1:])), default=0) <= max(8, largest // 2)
    if largest >= 100:
        assert 0.3 < sum(size % 2 for size in some) / len(some) < 0.7


def test_workloads() -> None:
    dense16 = workloads.FULL[1]
    assert dense16.argument_shapes(3) == ((48, 768), (768, 2304))
    assert dense16.flops(3) == 2 * 48 * 768 * 2304
    nt, nn = workloads.FULL[2:4]
    assert nt.argument_shapes(5) == ((192, 5, 64), (192, 5, 64))
    assert nt.result_shape(5) == (192, 5, 5) and nn.result_shape(5) == (192, 5, 64)
    assert nn.dynamic_sizes(5) == [5, 5, 5] and nt.dynamic_sizes(5) == [5, 5]
    (up,) = workloads.matching(workloads.FULL, "llama_up")
    assert up.argument_shapes(7) == ((7, 4096), (22016, 4096)) and up.result_shape(7) == (7, 22016)
    assert up.bytes(7) == 2 * (7 * 4096 + 22016 * 4096 + 7 * 22016)
    assert set(up.grid()[:2]) == {1, 4096} and sorted(up.grid()) == sorted(up.sizes)
    assert up.grid([53, 4096, 5000]) == [4096, 53]
    assert up.beyond() == (0, 4097, 6400, 8193) and dense16.beyond() == (0, 129, 200, 257)
    assert len({workload.name for workload in workloads.FULL}) == len(workloads.FULL)


def test_matching() -> None:
    def names(patterns: str) -> list[str]:
        return [workload.name for workload in workloads.matching(workloads.FULL, patterns)]

    assert names("") == [workload.name for workload in workloads.FULL]
    assert names("batch_*,dense") == ["dense", "batch_nt", "batch_nn"]
    assert names("*_tf32") == ["dense_tf32", "llama_out_tf32"]
    assert names("*_truncate") == ["llama_out_tf32_truncate"]
    with pytest.raises(ValueError, match="expected one of dense, .* but got 'dens'"):
        names("dense,dens")


def test_key_of_recorded_functions() -> None:
    text = "module attributes {s = #ukernel.range<1 to 9>} { func.func @a_b(%x: f32) }"
    other = "module attributes {s = #ukernel.range<2 to ?>} {\n func.func @c(%x: f32) }"
    assert key(text) == key(other)
    assert key(text) != key(other.replace("f32", "f64"))


# Reports, from synthetic records.


def synthetic(seed: int) -> list[dict[str, Any]]:
    """Records of a run that never was: cuBLAS takes twice FTuner's time, Triton half of it."""
    source = random.Random(seed)
    result: list[dict[str, Any]] = []

    def write(part: str, kind: str, **fields: Any) -> None:
        result.append({"part": part, "kind": kind, **fields})

    def time_of(median: float) -> dict[str, float]:
        return {"median": median, "q1": median * 0.9, "q3": median * 1.1, "min": median, "count": 7}

    for size in (1, 2, 16):
        write(
            "correctness",
            "check",
            workload="dense",
            size=size,
            offset=0,
            error=1e-7 * size,
            problems=[],
        )
        for mode in timing.MODES:
            base = size * source.uniform(1, 3)
            for peer, factor in (("ftuner", 1), ("cublas", 2), ("triton", 0.5)):
                missing = peer == "triton" and size == 2
                write(
                    "products",
                    "time",
                    workload="dense",
                    size=size,
                    extents=[1, size, 96, 32],
                    peer=peer,
                    mode=mode,
                    microseconds=None if missing else time_of(base * factor),
                    problem="no luck" if missing else None,
                    facts={},
                    sets=3,
                )
    for mode in ("graph_warm", "graph_cold"):
        for rank in range(1, 31):
            # The best of all is third: the first reaches 80 % of it.
            time_ = {1: 10.0, 3: 8.0}.get(rank, 10.0 + rank)
            write(
                "selection",
                "program",
                workload="dense",
                size=16,
                mode=mode,
                threads=128,
                shared_bytes=1024,
                microseconds=time_of(time_),
                problem=None,
                resources={"registers_per_thread": 64, "spill_store_bytes": 0},
                program={
                    "rank": rank,
                    "family": rank % 4,
                    "path": "simt",
                    "schedule": {"threads_m": 8, "stages": 3},
                    "blocks": [1, 2],
                    "padded": 0,
                    "score": 3 - rank / 30,
                    "rating": 3 - rank / 30,
                    "metrics": {"pad": 1.0, "occ": 0.5, "cmr": 0.4, "blocks": 9},
                    "ukernels": [{"block_tile": [8, 32, 16], "register_tile": [1, 4, 1]}] * 2,
                },
            )
    for length in (2, 8):
        for way, factor in (("eager", 3), ("torch_ftuner", 1)):
            write(
                "models",
                "model",
                model="gpt2",
                batch=1,
                length=length,
                how=way,
                mode="plain_warm",
                microseconds=time_of(100 * factor),
                error=1e-7,
                problem=None,
            )
    write(
        "overhead",
        "host_time",
        workload="dense",
        what="function, one size",
        size=53,
        nanoseconds=time_of(500),
    )
    write("products", "coverage", workload="dense", what="times", done=[1, 2, 16], missing=[3, 4])
    write(
        "products",
        "peer",
        workload="dense",
        peer="cublaslt",
        error=None,
        prepare_seconds=0.1,
        problem="RuntimeError: no cublasLt.h was found",
    )
    return result


FACTS = {
    "gpu": "synthetic",
    "device": "h200",
    "rehearsal": True,
    "revision": "",
    "seconds": 1.0,
    "date": "2000-01-01",
    "seed": 1,
    "host": {},
    "statuses": {},
    "clocks": None,
}


def test_ratios() -> None:
    found = {(row["mode"], row["peer"]): row for row in report.ratios(synthetic(1))}
    for mode in timing.MODES:
        assert found[mode, "cublas"]["geometric_mean"] == pytest.approx(2)
        assert found[mode, "cublas"]["sizes"] == 3 and found[mode, "cublas"]["faster_share"] == 1
        assert found[mode, "triton"]["sizes"] == 2
        assert found[mode, "triton"]["geometric_mean"] == pytest.approx(0.5)
        # The best is Triton twice, cuBLAS once.
        assert found[mode, "best"]["geometric_mean"] == pytest.approx((0.5 * 2 * 0.5) ** (1 / 3))
        assert found[mode, "best"]["faster_share"] == pytest.approx(1 / 3)


def test_selection_summary() -> None:
    row, _ = report.selection(synthetic(2))
    assert row["programs"] == 30 and row["best_rank"] == 3
    assert row["top1"] == pytest.approx(0.8) and row["top10"] == 1
    assert row["spearman"] == pytest.approx(1 - 6 * (1 + 1 + 4) / (30 * 899))
    mean, _ = report.means_of_selection(report.selection(synthetic(2)))
    assert mean["top1"] == pytest.approx(0.8) and mean["kendall"] == pytest.approx(1 - 2 * 2 / 435)


def test_report(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("matplotlib")
    text = report.write(tmp_path, FACTS, {"dense": "Dense (T, 96, 32)"}, synthetic(3))
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "models.csv",
        "models.png",
        "products.csv",
        "products.png",
        "programs.csv",
        "results.json",
        "selection.png",
        "summary.txt",
    ]
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 5000
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["rehearsal"] and content["checks"]["checks"] == 3
    assert content["checks"]["largest_error"] == pytest.approx(1.6e-6)
    with (tmp_path / "products.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 3 * 4
    first = rows[0]
    assert float(first["gflops"]) == pytest.approx(
        2e-3 * 96 * 32 * int(first["t"]) / float(first["median_us"])
    )
    with (tmp_path / "programs.csv").open() as file:
        row = next(csv.DictReader(file))
    assert (
        row["block_tiles"] == "8x32x16+8x32x16"
        and row["schedule"] == "threads_m=8 stages=3"
        and row["registers"] == "64"
    )
    assert text.startswith("REHEARSAL") and "0 failed" in text
    assert "Not reached in time: dense, times: 2 of 5 sizes" in text
    assert "Left out: cublaslt for dense: RuntimeError: no cublasLt.h was found" in text
    # Columns of a table are padded to one width.
    start = text.index("workload")
    lines = text[start : text.index("\n\n", start)].splitlines()
    assert len(lines) == 2 + 3 and len({len(line) for line in lines}) == 1


def test_report_of_failures(tmp_path: pathlib.Path) -> None:
    bad = {
        "part": "correctness",
        "kind": "check",
        "workload": "dense",
        "size": 7,
        "offset": 0,
        "error": None,
        "problems": ["3 elements were not written"],
    }
    text = report.write(tmp_path, FACTS, {}, [bad])
    assert "FAILED dense T=7: 3 elements were not written" in text and "1 failed" in text


# Timing and checks, on a CPU in the place of a GPU.


def test_compare_takes_turns_and_reports_failures() -> None:
    order: list[str] = []

    def call(name: str) -> Callable[[], None]:
        return lambda: order.append(name)

    def broken() -> None:
        raise RuntimeError("not today")

    found, errors = timing.compare(
        Rehearsal(0), {"a": [call("a")], "broken": [broken], "b": [call("b")]}, "graph_warm", 3
    )
    assert set(found) == {"a", "b"} and found["a"]["count"] == 3
    assert errors == {"broken": "RuntimeError: not today"}
    # After both were warmed up, rounds begin with another each time.
    assert "".join(order[-6:]) == "abbaab"


def test_ways_are_checked(capsys: Any) -> None:
    """A way may be as far off as PyTorch, whatever the order; a wrong one is not timed, and FTuner's fails."""
    session: Any = types.SimpleNamespace(machine=Rehearsal(0))
    exact = torch.ones(4, dtype=torch.float64)

    def shifted(distance: float) -> Any:
        return lambda x: (x, x + distance)

    names = {"ftuner": shifted(0.012), "eager": shifted(0.009), "other": shifted(0.5)}
    checked = ways.check(session, "case", "f16", names, [(exact,), (exact,)], [exact, exact])
    assert checked.passed and list(checked.calls) == ["ftuner", "eager"]
    assert len(checked.calls["eager"]) == 2
    assert "relative error 0.5 above 0.0135" in checked.problems["other"]
    assert "FAILED case, other" in capsys.readouterr().out
    checked = ways.check(
        session, "case", "f16", {"ftuner": shifted(0.012)}, [(exact,)], [exact, exact]
    )
    assert not checked.passed and not checked.calls
    # One result too few.
    assert not ways.check(session, "case", "f16", {"ftuner": shifted(0)}, [(exact,)], exact).passed


def test_capture_on_a_gpu(monkeypatch: Any) -> None:
    """`Cuda` makes these calls of PyTorch, which has no GPU here."""
    log: list[str] = []

    class Graph:
        def capture_begin(self, capture_error_mode: str) -> None:
            log.append(f"begin {capture_error_mode}")

        def capture_end(self) -> None:
            log.append("end")

        def replay(self) -> None:
            log.append("replay")

    class Event:
        def record(self) -> None:
            log.append("record")

        def synchronize(self) -> None:
            log.append("wait")

        def elapsed_time(self, other: Event) -> float:
            return 0.25

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    cuda = Cuda.__new__(Cuda)
    cuda._start, cuda._end = Event(), Event()  # type: ignore
    replay = cuda.capture([lambda: log.append("a"), lambda: log.append("b")], 2)
    assert cuda.microseconds(replay) == 250
    assert log == "begin thread_local,a,b,a,b,end,replay,record,replay,record,wait".split(",")
    log.clear()
    with pytest.raises(ZeroDivisionError):
        cuda.capture([lambda: 1 // 0], 1)
    assert log == ["begin thread_local", "end"]


class FakeFunction:
    """A product with a bug, called with addresses as a compiled function is."""

    def __init__(self, bug: str, element: type) -> None:
        self.bug, self.element = bug, np.dtype(element)

    def workspace_bytes(self, *_: int) -> int:
        return 0

    def __call__(self, a: int, b: int, c: int, m: int, *_: int) -> None:
        def array(address: int, shape: tuple[int, ...]) -> np.ndarray:
            length = math.prod(shape) * self.element.itemsize
            memory = (ctypes.c_char * length).from_address(address)
            return np.frombuffer(memory, self.element).reshape(shape)

        left, right = array(a, (m, 32)), array(b, (32, 96))
        result = left.astype(np.float32) @ right.astype(np.float32)
        if self.bug == "factor":
            result[:, 5] *= 1.1
        if self.bug == "tf32":
            bits = left.copy().view(np.uint32) & np.uint32(0xFFFFE000)
            result = bits.view(np.float32) @ right
        if self.bug == "unwritten":
            array(c, (m, 96))[: m - 1] = result[: m - 1]
            return
        array(c, (m, 96))[:] = result
        if self.bug == "beyond":
            array(c + self.element.itemsize * m * 96, (1,))[0] = 0
        if self.bug == "operand":
            array(a, (1,))[0] += 1
        if self.bug == "fails":
            raise OSError("launch failed")


BUGS = {
    "none": None,
    "factor": "relative error",
    "tf32": "above 1e-05",
    "unwritten": "96 elements were not written",
    "beyond": "memory beside the result was written",
    "operand": "operand A was written",
    "fails": "launch failed",
}


@pytest.mark.parametrize(
    ("type", "bug"),
    [("f32", bug) for bug in BUGS] + [("f16", bug) for bug in BUGS if bug != "tf32"],
)
def test_checks_catch_bugs(tmp_path: pathlib.Path, type: str, bug: str) -> None:
    words = BUGS[bug]
    (workload,) = workloads.matching(workloads.SMALL, "dense" if type == "f32" else f"dense_{type}")

    class Session:
        machine = Rehearsal(0)
        seed = random.randrange(1 << 30)
        write = records.Writer(tmp_path / "records.gz", "correctness")

    passed = correctness.check(
        Session(),
        FakeFunction(bug, {"f32": np.float32, "f16": np.float16}[type]),
        workload,  # type: ignore
        size=5,
        seed=1,
        offset=1,
    )
    (record,) = records.read(tmp_path / "records.gz")
    assert passed == (words is None)
    assert words is None or any(words in problem for problem in record["problems"])


def test_build_reports_the_compiler(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(builds.COMMANDS, "none", lambda output: ["cc", "/nonexistent/none.c"])
    assert not builds.build(tmp_path, "none")
    with pytest.raises(RuntimeError, match="building none failed: .*nonexistent"):
        builds.built(tmp_path, "none", 1)
    with pytest.raises(RuntimeError, match="took more than"):
        builds.built(tmp_path, "other", 0)


def test_cublaslt_beside_pytorch(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(RuntimeError, match="no cublasLt.h was found beside no libcublasLt.so"):
        builds.cublaslt_paths()
    library = tmp_path / "nvidia" / "cu13" / "lib" / "libcublasLt.so.13"
    headers = tmp_path / "nvidia" / "cu13" / "include"
    for folder in (library.parent, headers):
        folder.mkdir(parents=True)
    library.touch()
    (headers / "cublasLt.h").touch()
    assert builds.cublaslt_paths()[0][0] == headers and builds.cublaslt_paths()[1] == library


def test_launch_loop(tmp_path: pathlib.Path) -> None:
    """The loop of C calls each size in turn and hands codes back."""
    assert builds.build(tmp_path, "launch_loop")
    loop = ctypes.CDLL(str(builds.built(tmp_path, "launch_loop", 1)))
    loop.ftuner_bench_call.restype = ctypes.c_double
    seen: list[int] = []
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * 2
    )

    @signature
    def function(a: int, b: int, c: int, m: int, workspace: int, stream: int) -> int:
        assert (a, b, c, workspace, stream) == (1, 2, 3, None, 7)
        seen.append(m)
        return 3 if m == 99 else 0

    def call(*sizes: int) -> float:
        return loop.ftuner_bench_call(
            function,
            *map(ctypes.c_void_p, (1, 2, 3)),
            (ctypes.c_int64 * len(sizes))(*sizes),
            len(sizes),
            2,
            None,
            ctypes.c_void_p(7),
        )

    assert call(5, 6) > 0 and seen == [5, 6, 5, 6]
    assert call(5, 99) == -4


def test_sources_compile() -> None:
    """Also those that import what is only there where a GPU is."""
    for path in GPU.rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    for script in GPU.glob("*.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True)


# A rehearsal: everything but the GPU itself, in the emulator.


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("rehearsal") / "bundle"
    done = subprocess.run(
        [
            str(GPU / "prepare.sh"),
            "--rehearsal",
            # Its kernels of all codegen paths take part.
            "--devices=h100",
            "--skip=proof",
            f"--build={BUILD}",
            f"--out={folder}",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


#: Runs run.py, whose parts fork from a process that has imported PyTorch, in place of importing it each.
FORKING = """
import os, sys, tempfile
import torch, torch._dynamo, torch._inductor.custom_graph_pass, transformers
import ftuner.torch
from ftuner_bench import part, processes, run


class Forked(processes.Child):
    def __init__(self, module, arguments, environment):
        self.forked = module == "part"
        if not self.forked:
            super().__init__(module, arguments, environment)
            return
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.environ.update(environment)
            tempfile.tempdir = None
            sys.argv = ["part", *arguments]
            code = 3
            try:
                code = part.main()
                sys.stdout.flush()
            finally:
                os._exit(code)

    def wait(self, seconds):
        if not self.forked:
            return super().wait(seconds)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def end(self):
        if not self.forked:
            super().end()


run.Child = Forked
sys.exit(run.main())
"""


def run_rehearsal(folder: pathlib.Path, out: pathlib.Path, *arguments: str) -> Any:
    skipped = "compile,compile_max,torch_ftuner_inductor,torch_ftuner_faster"
    command = [sys.executable, "-c", FORKING, f"--bundle={folder}"]
    return subprocess.run(
        [*command, f"--out={out}", f"--skip-peers={skipped}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "FTUNER_HOME": str(folder),
            "PYTHONPATH": f"{folder}:{folder / 'python'}",
        },
    )


def results(out: pathlib.Path) -> tuple[pathlib.Path, Any]:
    """The files of the archive, and results.json."""
    with tarfile.open(out / "results.tar.xz") as archive:
        archive.extractall(out.parent, filter="data")
    return out.parent / "results", json.loads((out.parent / "results" / "results.json").read_text())


def test_rehearsal(rehearsal: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    # Each part has its own sizes among these.
    sizes = (2, 8, 16, 64)
    done = run_rehearsal(rehearsal, out, f"--sizes={','.join(map(str, sizes))}", "--budget=500")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "REHEARSAL" in done.stdout and len(list(out.iterdir())) == 3
    files, content = results(out)
    assert content["rehearsal"] and content["statuses"] == dict.fromkeys(
        (part.name for part in parts.PARTS), 0
    )
    assert all(not entry["missing"] for entry in content["coverage"])
    texts = [note["text"] for note in content["notes"]]
    for words in ("the proof needs a GPU", "bandwidths needs a GPU", "probes need a GPU"):
        assert any(words in text for text in texts)
    _check_products(content, sizes)
    _check_models(content, texts)
    _check_forward(files, content)
    # IREE's own runtime, over the stand-in for the driver.
    assert [(row["case"], row["size"]) for row in content["iree"]] == [
        ("projection", 5), ("projection", 16),
    ]  # fmt: skip
    assert all(row["error"] < 1e-4 and row["problem"] is None for row in content["iree"])
    # Kernels that take pointers, and kernels that take tensor maps.
    assert [(row["workload"], row["what"]) for row in content["host_time"]] == [
        (workload, way)
        for workload in ("dense", "llama_out")
        for way in (
            "function, one size",
            "function, all sizes in turn",
            "function, by the Python package",
            "torch.matmul with out",
        )
    ]


def _check_products(content: Any, sizes: tuple[int, ...]) -> None:
    # Every workload at its sizes and at four beyond its range; threads and a graph in both calls.
    known = [set(workload.grid()) & set(sizes) for workload in workloads.SMALL]
    assert content["checks"]["checks"] == sum(len(found) + 4 for found in known) + 2 * 2
    assert not content["checks"]["failures"]
    modes = {(row["workload"], row["mode"]) for row in content["ratios"]}
    assert modes == {
        (workload.name, mode)
        for workload in workloads.SMALL
        if not workload.gelu
        for mode in (timing.MODES if workload.type == "f32" else products.TENSOR_MODES)
    }
    assert {(row["workload"], row["size"]) for row in content["selection_by_size"]} == {
        ("dense", 8), ("batch_nn", 8), ("llama_out", 64), ("bert_up_gelu", 64),
    }  # fmt: skip


def _check_models(content: Any, texts: list[str]) -> None:
    # A layer has four linear layers, and attention.
    (note,) = [text for text in texts if "functions not in the bundle" in text]
    assert "0 functions not in the bundle" in note and note.startswith("GPT-2, batch 1: 4 of 5")
    assert {row["how"] for row in content["models"]} == {"eager", "torch_ftuner"}
    assert all(row["lengths"] == 3 and row["largest_error"] < 1e-5 for row in content["models"])


def _check_forward(files: pathlib.Path, content: Any) -> None:
    """A layer of BERT, an operator and an epilogue by only FTuner, beside PyTorch; and rows."""
    assert {row["case"] for row in content["forward"]} == set(forward.REHEARSED)
    for row in content["forward"]:
        unfused = {"ftuner_unfused"} if row["case"].startswith("linear_") else set()
        assert row["microseconds"].keys() == {"ftuner", "eager"} | unfused
        assert all(time > 0 for time in row["microseconds"].values())
    with (files / "rows.csv").open(encoding="utf-8", newline="") as file:
        measured = list(csv.DictReader(file))
    assert {(row["op"], row["how"]) for row in measured} == {
        (op, how) for op in ("softmax", "add_layernorm") for how in ("ftuner", "eager")
    }
    assert all(float(row["latency_us"]) > 0 and float(row["error"]) < 1e-4 for row in measured)
    assert {"device", "rows", "cols", "bytes", "dtype"} <= measured[0].keys()
    kernels = json.loads((files / "kernels.json").read_text())
    assert {row["how"] for row in kernels} == {"ftuner", "ftuner_unfused", "eager"}


def test_paths_of_a_bundle(rehearsal: pathlib.Path) -> None:
    """By default gated paths take part: a bundle has kernels of them, of those with tensor maps too."""
    programs = json.loads(bundle.unpack(rehearsal / "h100" / "llama_out_programs.json.xz"))
    paths = {program["path"] for program in programs["sizes"]["64"]}
    assert "wgmma" in paths and paths <= {"mma", "wgmma"}
    # A cluster that the search does not rank, and slices of k, which are functions.
    others = [program for program in programs["sizes"]["64"] if program["rank"] is None]
    assert [program["schedule"]["cluster_n"] for program in others]
    sliced = json.loads(bundle.unpack(rehearsal / "h100" / "bert_up_gelu_programs.json.xz"))
    assert [one["reduce_split"] for one in sliced["sizes"]["64"] if "function" in one] == [4]
    packed = ftuner.load(bundle.unpack_to_file(rehearsal / "h100" / "llama_out_packed.so.xz"))
    (workload,) = packed.manifest["workloads"]
    assert {family["path"] for family in workload["families"]} == {"wgmma"}
    pool = ftuner.load(bundle.unpack_to_file(rehearsal / "h100" / "llama_out_programs.so.xz"))
    kinds = {one["kind"] for kernel in pool.manifest["kernels"] for one in kernel["parameters"]}
    assert "tensor_map" in kinds


def test_wrong_kernels_fail_the_run(rehearsal: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Libraries that compute something else, and a program with a block too few."""
    folder = tmp_path / "bundle"
    shutil.copytree(rehearsal, folder)
    made = folder / "h100"
    programs = json.loads(bundle.unpack(made / "dense_programs.json.xz"))
    victim = next(p for p in programs["sizes"]["8"] if "family" in p and sum(p["blocks"]) > 1)
    victim["blocks"][-1] -= 1
    plain = tmp_path / "programs.json"
    plain.write_text(json.dumps(programs))
    bundle.pack(plain, made / "dense_programs.json.xz")
    shutil.copy(made / "dense_programs.so.xz", made / "batch_nn.so.xz")
    shutil.copy(
        made / "forward" / "bert_base_f32_16.so.xz",
        made / "forward" / "add_layer_norm_768_f32.so.xz",
    )
    out = tmp_path / "out"
    done = run_rehearsal(
        folder,
        out,
        "--sizes=8",
        "--budget=200",
        "--only=checks,selection,forward",
        "--workloads=dense,batch_nn",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    _, content = results(out)
    # batch_nn's library lacks the function: that part breaks, and says so.
    assert content["statuses"] == {"checks": 2, "selection": 1, "forward": 1}
    assert [p["program"]["rank"] for p in content["wrong_programs"]] == [victim["rank"]]
    assert any("batch_nn" in error["message"] for error in content["errors"])


def test_prepare_refuses(tmp_path: pathlib.Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    for arguments, words in (
        ([f"--build={tmp_path}"], "FTuner is not built"),
        ([f"--out={tmp_path}"], "holds something else than a bundle"),
        (["--workloads=dens", f"--out={tmp_path / 'x'}"], "but got 'dens'"),
        (["--devices=k9", f"--out={tmp_path / 'x'}"], "unknown device 'k9'"),
    ):
        done = subprocess.run(
            [str(GPU / "prepare.sh"), f"--build={BUILD}", *arguments],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and words in done.stderr, done.stderr
    assert (tmp_path / "precious.txt").read_text() == "mine"
