"""Runs of benchmarks/gpu without a GPU: order, time, resuming, and what a run leaves behind.

Records are synthetic, or of parts that are made here; nothing in this file is a measurement.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU = ROOT / "benchmarks" / "gpu"
sys.path.insert(0, str(GPU))

from ftuner import compiler
from ftuner.describe import descriptions
from ftuner.proof import check, families
from ftuner_bench import (
    bundle,
    plans,
    prepare,
    probes,
    records,
    report,
    run,
    runtime,
    workloads,
)
from ftuner_bench.parts import CALL_SECONDS, PARTS, Part, of_call, seconds_for

BUILD = pathlib.Path(os.environ.get("FTUNER_HOME", ROOT / "build" / "release"))

# Limits on the files of a run: their number, and the bytes of each.
MAX_FILES, MAX_FILE_BYTES = 8, 16 << 20


# Records.


def test_records(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "records.gz"
    with records.Writer(path, "one", 3) as write:
        write("time", value=float("nan"), nested={"a": (1, float("inf"))})
    with records.Writer(path, "two") as write:
        write("check", problems=[])
    read = list(records.read(path))
    assert [(record["part"], record["run"]) for record in read] == [("one", 3), ("two", 0)]
    assert read[0]["value"] is None and read[0]["nested"] == {"a": [1, None]}
    assert abs(read[0]["at"] - time.time()) < 60
    path.write_bytes(b'{"part": "one"}\n')
    with pytest.raises(ValueError, match="expected records, compressed by gzip"):
        list(records.read(path))


def test_records_that_were_cut_off(tmp_path: pathlib.Path) -> None:
    """Written records stay, wherever the last writer was stopped, and other writers can continue."""
    path = tmp_path / "records.gz"
    written = []
    with records.Writer(path, "first") as write:
        write("time", value=random.random())
    for number in range(20):
        write = records.Writer(path, "second")
        for _ in range(random.randrange(5)):
            write("time", value=random.random(), words="x" * random.randrange(300))
        write.file.close()  # As if the process was killed.
        before = list(records.read(path))
        assert before[: len(written)] == written
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) - random.randrange(3)])
        records.repair(path)
        written = list(records.read(path))
        assert len(before) - 1 <= len(written) and written == before[: len(written)]
        assert records._unpack(path)[1]


def test_chosen_records() -> None:
    """The records of the run that finished a part count, else of the run with the most records."""

    def record(part: str, run: int, kind: str = "time", **fields: Any) -> records.Record:
        return {"part": part, "run": run, "kind": kind, **fields}

    every = [
        *[record("a", 0)] * 5,
        *[record("a", 1)] * 2,
        record("a", 1, "finished", short=False),
        *[record("b", 0)] * 4,
        *[record("b", 1)] * 3,
        *[record("c", 0), record("c", 0, "finished", short=True)],
        *[record("c", 1)] * 3,
    ]
    found = records.chosen(every)
    assert {(one["part"], one["run"]) for one in found} == {("a", 1), ("b", 0), ("c", 1)}
    assert len(found) == 3 + 4 + 3


# The order of parts and their time.


def test_parts() -> None:
    def names(*arguments: str) -> list[str]:
        return [part.name for part in run.chosen_parts(run.parse(["--bundle=x", *arguments]))]

    first = ["proof", "bandwidths", "probes", "correctness", "projections", "pools", "epilogues"]
    second = [
        "checks", "rows", "forward", "products", "overhead", "models", "integers",
        "tensor_products", "iree", "selection",
    ]  # fmt: skip
    assert names() == first + second
    assert names("first") == first and names("second") == second
    assert names("--only=models,correctness") == ["correctness", "models"]
    assert names("second", "--skip=products") == [name for name in second if name != "products"]
    # A first call takes at most five minutes, whatever is late, and a second one what is left of
    # fifteen if each machine takes two minutes to start.
    assert CALL_SECONDS["first"] + run.GRACE <= 5 * 60
    assert sum(CALL_SECONDS.values()) + 2 * 110 <= 15 * 60
    for call, budget in CALL_SECONDS.items():
        assert sum(part.seconds for part in of_call(call)) + run.REPORTING <= budget


def test_seconds_of_parts() -> None:
    proof, *others = PARTS
    for left in (0.0, 5.0, 100.0, 1000.0):
        assert seconds_for(proof, others, left) == proof.seconds == 20
    small, large = Part("small", "", 10), Part("large", "", 30)
    # More where time is left over, what is needed where it is short, and then the rest.
    assert seconds_for(small, [large], 80) == 20 and seconds_for(large, [], 60) == 60
    assert seconds_for(small, [large], 30) == 10 and seconds_for(large, [], 20) == 20


def test_default_paths() -> None:
    """Every codegen path, gated ones too, takes part."""
    assert set(prepare.PATHS.split(",")) == {name.partition(".")[0] for name in families.sets()}
    text = subprocess.run(
        [str(GPU / "prepare.sh"), "--help"], capture_output=True, text=True
    ).stdout
    assert "(default: simt,mma,rows,chains,wgmma)" in " ".join(text.split())


def test_sizes_of_language_models() -> None:
    wanted = {*range(1, 137), 257, 1008, 1024, 1040, 2048, 4096}
    (projections,) = (part for part in PARTS if part.name == "projections")
    taken = {workload.name: workload for workload in workloads.FULL if projections.takes(workload)}
    for layer in ("qkv", "out", "up", "down"):
        for name in (f"llama_{layer}", f"llama_{layer}_bf16"):
            assert wanted <= set(taken[name].grid())
            # Those that decide come first, so that they are reached in any time.
            assert {1, 48, 53, 97, 100, 128, 129, 257, 1008, 1040, 2048, 4096} <= set(
                taken[name].grid()[:25]
            )


def test_every_workload_is_timed() -> None:
    """By one part of products, but for those with an epilogue, which the pools have; and checked by one."""
    for workload in workloads.FULL:
        modules: dict[str, list[Part]] = {}
        for part in PARTS:
            if part.groups and part.takes(workload):
                modules.setdefault(part.module or part.name, []).append(part)
        assert len(modules["correctness"]) == 1
        assert len(modules.get("products", [])) == (0 if workload.gelu else 1)


def programs(kinds: int, count: int) -> list[dict[str, Any]]:
    """Programs of several kinds; programs of the last kind are the slowest."""
    return [
        {
            "path": "wgmma",
            "reduce_split": 1 + kind % 2,
            "schedule": {
                "cluster_m": 1 + kind // 2 % 2, "persistent_blocks": 132 * (kind // 4 % 2),
                "ping_pong": kind // 8, "swap_operands": 0, "warpgroups_m": 1, "stages": number,
            },
        }
        for kind in range(kinds)
        for number in range(count)
    ]  # fmt: skip


def test_samples_of_pools() -> None:
    """The best programs, the best of every kind, and some of the others."""
    few = programs(16, 3)
    assert plans.sample(few, 1) == list(enumerate(few, 1))
    many = programs(12, 50)
    kept = dict(plans.sample(many, 1))
    assert len(kept) == plans.MOST_PROGRAMS and set(range(1, plans.BEST_PROGRAMS + 1)) <= set(kept)
    # The first and the second of each.
    assert {50 * kind + place for kind in range(12) for place in (1, 2)} <= set(kept)
    assert list(kept) == sorted(kept) and all(kept[rank] is many[rank - 1] for rank in kept)
    assert plans.sample(many, 1) == plans.sample(many, 1) != plans.sample(many, 2)


def wgmma_program(tile: list[int], swap: int, persistent: int) -> dict[str, Any]:
    fields = ", swap_operands = true" * swap
    fields += f", persistent = {persistent}" if persistent else ""
    schedule = {
        "warpgroups_m": 1, "warpgroups_n": 1, "swap_operands": swap, "producer_warpgroups": 1,
        "tma": 1, "cluster_m": 1, "cluster_n": 1, "persistent_blocks": persistent, "ping_pong": 0,
    }  # fmt: skip
    return {
        "path": "wgmma", "schedule": schedule, "axis": 0, "reduce_split": 1, "blocks": [9],
        "ukernels": [{"block_tile": tile, "register_tile": tile, "workers": 1}],
        "attribute": "#ukernel.family<#ukernel.wgmma<warpgroups = [1, 1], stages = 4"
        f"{fields}, tma = true>, axis = 0, tiles = [{tile}], balanced = 132>",
    }  # fmt: skip


def test_variants_of_programs() -> None:
    """Each program once, with the tile of a cluster and blocks for the size; the search's programs stay."""
    pool = [wgmma_program([64, 128, 64], 0, 132), wgmma_program([32, 64, 64], 1, 0)]
    ranked = plans.variants(pool, 1, [1000, 4096, 4096], 132)
    found = [program for _, program in ranked]
    # Three clusters, alone, persistent and in ping-pong, of which the pool has two.
    assert len(found) == len({plans.family_text(one) for one in found}) == 2 * 9
    assert {rank: one for rank, one in ranked if rank} == dict(enumerate(pool, 1))
    one = next(o for o in found if o["schedule"]["cluster_m"] == 2 and o["schedule"]["ping_pong"])
    assert one["attribute"] == (
        "#ukernel.family<#ukernel.wgmma<warpgroups = [1, 1], stages = 4, tma = true, cluster = [2, 1], "
        "persistent = 132, ping_pong = true>, axis = 0, tiles = [[128, 128, 64]]>"
    )
    assert one["blocks"] == [8] and one["ukernels"][0]["block_tile"] == [128, 128, 64]
    # Few blocks: slices, of at least four steps, of what is not persistent.
    few = [program for _, program in plans.variants(pool, 1, [64, 4096, 1024], 132)]
    sliced = [one for one in few if one["reduce_split"] > 1]
    assert [one["reduce_split"] for one in sliced] == [2, 4]
    assert sliced[0]["attribute"].endswith("tiles = [[32, 64, 64]], split = 2>")
    assert all(one["schedule"]["swap_operands"] for one in sliced)
    assert len(few) == 18 + 2


def test_fitted_boxes() -> None:
    assert [runtime.fitted_box(64, 64, size) for size in (1, 8, 53, 57, 64, 99)] == [
        8,
        8,
        56,
        64,
        64,
        64,
    ]
    assert runtime.fitted_box(64, 0, 5) == 64


def test_prices_of_rows_of_boxes() -> None:
    boxes = [
        {
            "box_rows": height, "valid_rows": inside, "blocks": blocks, "in_flight": 4,
            "clocks_per_box": 30 + 2 * inside + 0.1 * blocks * (height - inside),
        }
        for blocks in (1, 132)
        for height in (8, 64, 128)
        for inside in (height, height // 2, 1)
    ]  # fmt: skip
    found = probes.prices(boxes)
    assert [(one["blocks"], one["in_flight"]) for one in found] == [(1, 4), (132, 4)]
    for one in found:
        assert one["clocks_per_row_outside"] == pytest.approx(0.1 * one["blocks"])
        assert one["clocks_per_valid_row"] == pytest.approx(2)
        assert one["clocks_fixed"] == pytest.approx(30) and one["mean_error"] < 1e-9
    lines = "\n".join(report._box_rows([{"prices": found}])).splitlines()
    assert lines[2].split()[:2] == ["blocks", "in_flight"] and lines[-1].split()[:2] == ["132", "4"]
    # Boxes of one kind decide nothing.
    assert probes.prices(boxes[:1]) == []


# run.sh.


def small_bundle(folder: pathlib.Path, rehearsal: bool = False) -> pathlib.Path:
    """A bundle without artefacts."""
    (folder / "lib").mkdir(parents=True)
    shutil.copy(BUILD / "lib" / "libftrt.so.1", folder / "lib")
    shutil.copytree(
        GPU / "ftuner_bench", folder / "ftuner_bench", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(GPU / "run.sh", folder)
    devices: dict[str, Any] = {"h200": {"files": {}}, "h100": {"files": {}}}
    bundle.write(folder, "synthetic", "2.13.0", rehearsal, workloads.FULL, devices)
    return folder


def command(folder: pathlib.Path, *arguments: str) -> dict[str, Any]:
    return {"args": [str(folder / "run.sh"), *arguments], "cwd": folder, "text": True}


def run_script(folder: pathlib.Path, *arguments: str, **variables: str) -> Any:
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    return subprocess.run(**command(folder, *arguments), capture_output=True, env=environment)


def results(out: pathlib.Path) -> Any:
    """results.json, from the archive."""
    with tarfile.open(out / "results.tar.xz") as archive:
        file = archive.extractfile("results/results.json")
        assert file
        return json.load(file)


def test_no_driver(tmp_path: pathlib.Path) -> None:
    folder = small_bundle(tmp_path / "bundle")
    done = run_script(folder, FTRT_CUDA_DRIVER="/nonexistent/libcuda.so.1")
    assert done.returncode == 3, done.stderr
    words = "error: nothing can be measured here: ftrt_device_count failed with code 5"
    assert words in done.stderr and "/nonexistent/libcuda.so.1" in done.stderr
    assert not (folder / "ftuner-results").exists()


def test_bad_arguments_and_bundles(tmp_path: pathlib.Path) -> None:
    folder = small_bundle(tmp_path / "bundle")
    for arguments, words in (
        (["third"], "expected the call first or second, but got 'third'"),
        (["second", "--only", "proof"], "no part of the second call is chosen"),
        (["--only", "speed"], "expected a part of proof,"),
        (["--sizes", "1,x"], "expected positive integers, but got 'x'"),
        (["--device", "k80"], "expected one of h200, h100, but got 'k80'"),
        (["--report-only", f"--out={tmp_path}"], "error: --out: "),
    ):
        done = run_script(folder, *arguments)
        assert done.returncode == 2 and words in done.stderr, done.stderr
    (folder / "bundle.json").write_text('{"format_version": 7}')
    done = run_script(folder)
    assert done.returncode == 2 and "expected format_version 2, but got 7" in done.stderr
    devices: dict[str, Any] = {"h200": {"files": {}}}
    bundle.write(folder, "synthetic", "2.13.0", False, workloads.FULL, devices, call="first")
    done = run_script(folder, "second")
    assert (
        done.returncode == 2
        and "expected the first call of this bundle, but got second" in done.stderr
    )
    bundle.write(folder, "synthetic", "2.13.0", False, workloads.FULL, {})
    done = run_script(folder)
    assert done.returncode == 2 and "prepare.sh did not finish" in done.stderr
    (folder / "bundle.json").unlink()
    done = run_script(folder)
    assert done.returncode == 1 and "is no bundle" in done.stderr


def test_choice_of_the_device(tmp_path: pathlib.Path) -> None:
    found = bundle.read(small_bundle(tmp_path / "bundle"))
    assert found.choose_device("NVIDIA H100 80GB HBM3") == ("h100", True)
    assert found.choose_device("NVIDIA H200") == ("h200", True)
    assert found.choose_device("NVIDIA L4") == ("h200", False)


def test_releases_of_pytorch() -> None:
    assert bundle.is_same_release("2.11.0+cu130", "2.11.1")
    assert not bundle.is_same_release("2.13.0", "2.11.0") and not bundle.is_same_release(
        "2.1", "2.11"
    )
    done = subprocess.run(
        [str(GPU / "prepare.sh"), f"--build={BUILD}", "--torch=1.7"], capture_output=True, text=True
    )
    assert done.returncode == 1 and "expected PyTorch 1.7 to trace the models" in done.stderr


def test_plan(tmp_path: pathlib.Path) -> None:
    """The parts of a call, their seconds and their bytes, without a GPU."""
    folder = small_bundle(tmp_path / "bundle")
    files = {
        "proof": "h200/proof",
        "library_llama_out": "h200/a.xz",
        "programs_llama_out": "h200/b.xz",
    }
    (folder / "h200" / "proof").mkdir(parents=True)
    for path, size in (("proof/one", 100), ("proof/two", 11), ("a.xz", 200), ("b.xz", 300)):
        (folder / "h200" / path).write_bytes(bytes(size))
    bundle.write(folder, "synthetic", "2.13.0", False, workloads.FULL, {"h200": {"files": files}})
    done = run_script(folder, "first", "--plan")
    assert done.returncode == 0, done.stderr
    _, _, *rows = [line.split() for line in done.stdout.split("\n\n")[0].splitlines()]
    assert [row[0] for row in rows] == [part.name for part in of_call("first")]
    bytes_of = {row[0]: int(row[3]) for row in rows}
    assert bytes_of["proof"] == 111 and bytes_of["projections"] == 200 and bytes_of["pools"] == 300
    assert sum(bytes_of.values()) == 611
    total = re.search(r"(\d+) s of parts and 20 s of tables, of 275 s; ([\d,]+) bytes", done.stdout)
    assert total and int(total[1]) == sum(int(row[2]) for row in rows)
    assert int(total[2].replace(",", "")) == bundle.size_of(folder)
    assert not (folder / "ftuner-results").exists()


# Parts that are made here take the place of the real ones.

STEPS = ("first", "second", "third")
PARTS_HERE = f"""
PARTS = tuple(Part(name, "of a test", 20, needs_torch=False) for name in {STEPS})
"""
# Writes three notes; the second part waits after its second note if the bundle says so.
STEP = """
import os, subprocess, time

def measure(session):
    for number in range(3):
        child = 0
        if number == 2 and session.part.name == "second" and (session.bundle.folder / "hang").exists():
            child = subprocess.Popen(["sleep", "1000"]).pid
        session.write("note", text=f"{session.part.name} {number}", pids=[os.getpid(), child])
        if child:
            time.sleep(1000)
    wanted = list(range(4))
    if session.part.name == "third":
        session.coverage("none", wanted, wanted[: 2 if (session.bundle.folder / "late").exists() else 4], "steps")
    return session.part.name != "third" or not (session.bundle.folder / "wrong").exists()
"""


@pytest.fixture
def steps(tmp_path: pathlib.Path) -> pathlib.Path:
    """A bundle of three parts that need neither PyTorch nor a GPU."""
    folder = small_bundle(tmp_path / "bundle", rehearsal=True)
    file = folder / "ftuner_bench" / "parts.py"
    file.write_text(file.read_text() + PARTS_HERE)
    for name in STEPS:
        (folder / "ftuner_bench" / f"{name}.py").write_text(STEP)
    return folder


def notes(out: pathlib.Path) -> list[records.Record]:
    path = out / run.RECORDS
    return [one for one in records.read(path) if one["kind"] == "note"] if path.exists() else []


def is_alive(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], Any], words: str) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(words)


def start_and_hang(
    folder: pathlib.Path, out: pathlib.Path
) -> tuple[subprocess.Popen[str], list[int]]:
    """A run whose second part hangs, and the processes of that part."""
    (folder / "hang").touch()
    environment = {**os.environ, "PYTHON": sys.executable}
    process = subprocess.Popen(
        **command(folder, f"--out={out}", "--seed=5"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    hanging = wait_for(
        lambda: [note for note in notes(out) if note["text"] == "second 2"], "no note came"
    )
    (folder / "hang").unlink()
    return process, hanging[0]["pids"]


def test_killed_runs_are_resumed(steps: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A kill loses at most the part under way, leaves no process, and the next run goes on."""
    out = tmp_path / "out"
    process, pids = start_and_hang(steps, out)
    assert all(map(is_alive, pids))
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_alive, pids)), "a process outlived its run")
    before = notes(out)
    assert [note["text"] for note in before] == [
        f"{name} {n}" for name in STEPS[:2] for n in range(3)
    ]
    # Tables of what is there, where there is neither bundle nor GPU.
    done = run_script(steps, f"--out={out}", "--report-only")
    assert done.returncode == 0 and "first: first 2" in done.stdout, done.stderr
    assert results(out)["statuses"] == {"first": 0}

    done = run_script(steps, f"--out={out}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== first: finished by an earlier run" in done.stdout and "seed 5" in done.stdout
    assert [note["text"] for note in notes(out)[len(before) :]] == [
        f"{name} {n}" for name in STEPS[1:] for n in range(3)
    ]
    content = results(out)
    assert content["statuses"] == dict.fromkeys(STEPS, 0) and content["runs"] == 2
    assert len(content["notes"]) == 9 and not content["errors"]
    assert sorted(path.name for path in out.iterdir()) == [
        "records.jsonl.gz", "results.tar.xz", "summary.txt",
    ]  # fmt: skip

    # Nothing is left to do; other questions need another folder.
    done = run_script(steps, f"--out={out}")
    assert done.returncode == 0 and done.stdout.count("finished by an earlier run") == 3
    done = run_script(steps, f"--out={out}", "--sizes=3")
    assert (
        done.returncode == 2 and f"error: --out: {out} has results of another sizes" in done.stderr
    )
    folder = os.open(out, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    done = run_script(steps, f"--out={out}")
    os.close(folder)
    assert done.returncode == 2 and "another run writes its results there" in done.stderr


def test_runs_that_are_killed_anywhere(steps: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Whenever runs are killed, the next ones complete them, and records of finished parts stay."""
    out = tmp_path / "out"
    environment = {**os.environ, "PYTHON": sys.executable}
    for _ in range(3):
        process = subprocess.Popen(
            **command(steps, f"--out={out}"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        time.sleep(random.uniform(0, 1.5))
        process.kill()
        process.wait()
        path = out / run.RECORDS
        every = list(records.read(path)) if path.exists() else []
        finished = {one["part"] for one in every if records.is_finished(one)}
        assert [note["text"] for note in notes(out) if note["part"] in finished] == [
            f"{name} {n}" for name in STEPS for n in range(3) if name in finished
        ]
    done = run_script(steps, f"--out={out}")
    assert done.returncode == 0, done.stdout + done.stderr
    content = results(out)
    assert content["statuses"] == dict.fromkeys(STEPS, 0)
    assert [note["text"] for note in content["notes"]] == [
        f"{name} {n}" for name in STEPS for n in range(3)
    ]


def test_stopped_runs_report(steps: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    process, pids = start_and_hang(steps, out)
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 2 and "stopped by SIGTERM" in text, text
    assert not any(map(is_alive, pids))
    content = results(out)
    assert content["statuses"] == {"first": 0} and len(content["notes"]) == 6


def test_short_and_failed_parts(steps: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A part that had too little time is repeated; a failed part is not, and fails the run."""
    out = tmp_path / "out"
    done = run_script(steps, f"--out={out}", "--budget=25")
    assert done.returncode == 2, done.stdout
    assert {error["message"] for error in results(out)["errors"]} == {"no time was left"}
    for name in ("late", "wrong"):
        (steps / name).touch()
    for _ in range(2):
        # Less than it needs, and not all was reached.
        done = run_script(steps, f"--out={out}", "--only=third", "--budget=35")
        assert done.returncode == 1 and "== third: of a test" in done.stdout, done.stdout
    (steps / "late").unlink()
    done = run_script(steps, f"--out={out}", "--only=third")
    assert done.returncode == 1 and not results(out)["coverage"][0]["missing"]
    done = run_script(steps, f"--out={out}", "--only=third")
    assert done.returncode == 1 and "== third: finished by an earlier run" in done.stdout


def test_late_parts_are_killed(
    steps: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{steps}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(run, "GRACE", 0.05)
    (steps / "hang").touch()
    out = tmp_path / "out"
    out.mkdir()
    options = run.parse(["--bundle=x", f"--out={out}", "--seed=1"])
    runs = run.Parts(options, bundle.read(steps), "h200", 0, tmp_path)
    assert runs.run(Part("second", "of a test", 20), 2.0) == 2
    *_, record = records.read(out / run.RECORDS)
    assert record["kind"] == "error" and record["message"].startswith("killed")


# The proof, over the stand-in driver.

FEW = {
    "mma": ["bf16"],
    "rows": ["softmax, f32, several rows a warp"],
    "wgmma": ["ping-pong", "tf32, rounded by tensor maps"],
}


def test_proof_comes_first(tmp_path: pathlib.Path) -> None:
    """It has its seconds whatever the budget is; families that fail are listed, and the rest runs."""
    folder, out = small_bundle(tmp_path / "bundle"), tmp_path / "out"
    shutil.copy(BUILD / "lib" / "libftrt_emulator.so.1", folder / "lib")
    (folder / "share").mkdir()
    (folder / "share" / "ftuner").symlink_to(BUILD / "share" / "ftuner")
    known = families.sets()
    few = [one for path, names in FEW.items() for one in known[path].families if one.name in names]
    # The kernels that the stand-in runs.
    library = tmp_path / "libfamilies.so"
    source = compiler.SourceText("families.mlir", "".join(one.text() for one in few).encode())
    device = descriptions.resolve("h100")
    compiler.build_library(source, device, compiler.Options([]), library, emulate=True)
    packed = folder / "h100" / "proof"
    packed.mkdir(parents=True)
    (tmp_path / "built").mkdir()
    libraries, _ = check.build(few, device, tmp_path / "built", compiler.build_family, cubins=())
    for symbol, one in libraries.items():
        bundle.pack(one, packed / f"{symbol}.so.xz")
    devices = {"h100": {"files": {"proof": "h100/proof"}}}
    bundle.write(folder, "synthetic", "2.13.0", False, workloads.FULL, devices)
    done = run_script(
        folder,
        f"--out={out}",
        "--budget=1",
        FTRT_CUDA_DRIVER=str(BUILD / "lib/cuda-emulator/libcuda.so.1"),
        FTRT_EMULATED_LIBRARIES=str(library),
        FTRT_EMULATED_FAULTS="lost:wgmma_ping_pong",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.index("== proof: ") < done.stdout.index("FAILED wgmma, ping-pong: failed")
    content = results(out)
    assert [(one["path"], one["name"], one["status"]) for one in content["families"]] == [
        (one.path, one.name, "failed" if one.name == "ping-pong" else "passed") for one in few
    ]
    assert list(content["statuses"]) == [part.name for part in PARTS]
    assert content["statuses"]["proof"] == 1 and set(content["statuses"].values()) == {1, 2}
    assert [error["message"] for error in content["errors"]] == ["no time was left"] * (
        len(PARTS) - 1
    )
    summary = (out / "summary.txt").read_text()
    assert "Proof of rows: 1 of 1 families passed" in summary
    assert "Proof of wgmma: 1 of 2 families passed\n  FAILED ping-pong: " in summary


# Files of a run.


def test_number_and_size_of_files(tmp_path: pathlib.Path) -> None:
    """A run that measures twice as much as nine minutes allow fits into what may come back."""
    source = random.Random(1)

    def time_() -> dict[str, float]:
        return {key: source.uniform(1, 1000) for key in ("median", "q1", "q3", "min")} | {
            "count": 7
        }

    def program() -> dict[str, Any]:
        metrics = {name: source.random() for name in ("pad", "occ", "cmr", "gld", "tail", "waves")}
        return {
            "rank": source.randrange(80), "family": source.randrange(400), "path": "wgmma",
            "schedule": {f"field_{n}": source.randrange(8) for n in range(12)},
            "blocks": [source.randrange(500), 0], "padded": 0, "score": source.random(),
            "rating": source.random(), "metrics": {**metrics, "blocks": 9},
            "attribute": f"#ukernel.family<wgmma, <{source.random()}>, {'tiles = [8, 8], ' * 30}>",
            "ukernels": [{"block_tile": [8, 32, 16], "register_tile": [1, 4, 1]}] * 2,
        }  # fmt: skip

    count, max_bytes = 600, 60_000
    with records.Writer(tmp_path / run.RECORDS, "") as write:
        write("run", titles={}, **dict.fromkeys((*run.COMMON, "seed", "date", "host"), ""))
    for part in ("selection", "tensor_products"):
        with records.Writer(tmp_path / run.RECORDS, part) as write:
            for number in range(count):
                fields = {
                    "workload": "llama_up",
                    "size": number % 152 + 1,
                    "microseconds": time_(),
                    "problem": None,
                }
                if part == "selection":
                    fields |= {
                        "program": program(),
                        "threads": 384,
                        "shared_bytes": 99,
                        "resources": {},
                    }
                    write("program", mode="graph_warm", **fields)
                else:
                    facts = {"algorithms": source.randrange(32)}
                    write(
                        "time",
                        mode="graph_cold",
                        extents=[1, 1, 1, 1],
                        peer="cublas",
                        sets=3,
                        facts=facts,
                        **fields,
                    )
    (tmp_path / run.CLOCKS).write_text("2000/01/01 00:00:00.000, 1200, 3000, 30, 100.5, 5\n" * 6000)
    assert run.main(["--bundle=x", "--report-only", f"--out={tmp_path}"]) == 0
    files = list(tmp_path.iterdir())
    assert len(files) <= MAX_FILES
    for file in files:
        size = file.stat().st_size
        assert (
            size if file.name == run.CLOCKS else size * max_bytes / (2 * count)
        ) < MAX_FILE_BYTES, file


def test_clocks_beside_samples(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clocks.csv"
    assert report.clocks(path) is None and report.readings(path) == []
    path.write_text(
        "2000/01/01 00:00:00.000, 1200, 3000, 30, [N/A], 5\n"
        "2000/01/01 00:00:00.500, 1900, 3000, 32, 512.5, 90\n"
        "2000/01/01 00:00:0"
    )
    found = report.clocks(path)
    assert found is not None and found["sm_mhz"]["max"] == 1900 and found["power_w"]["count"] == 1
    times = report.readings(path)
    begin = times[0][0]
    assert report.near(times, begin + 0.1) == (1200, None)
    assert report.near(times, begin + 0.4) == report.near(times, begin + 1.4) == (1900, 512.5)
    assert report.near(times, begin + 2) == report.near([], begin) == (None, None)


def test_large_bundles_are_refused(
    tmp_path: pathlib.Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def device(self: prepare.Preparation, name: str) -> dict[str, Any]:
        (self.out / name).write_bytes(random.randbytes(1 << 20))
        return {"files": {}}

    monkeypatch.setattr(prepare.Preparation, "device", device)
    arguments = ["prepare.sh", f"--build={BUILD}", f"--out={tmp_path}", "--devices", "a", "b", "c"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert prepare.MOST_BYTES == 40 << 20 and prepare.main() == 0
    monkeypatch.setattr(prepare, "MOST_BYTES", 3 << 20)
    assert prepare.main() == 1
    # The devices' files, and the benchmarks with the package.
    words = r"error: expected a bundle of less than 3 MiB, but got [3-9]\.\d MiB;"
    assert re.search(words, capsys.readouterr().err)
