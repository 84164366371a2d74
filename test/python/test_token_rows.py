"""Rows of tensor cores whose kernels are not known: reading, fits, and a part of the judge."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner.latency.fit import (
    MEMORY,
    MEMORY_SHARED,
    TENSOR,
    TENSOR_ENERGIES,
    TENSOR_SHARED,
    error,
    fit_global,
    fit_own,
)
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable, concatenate, fold_of
from ftuner.latency.measurements.token_rows import VendorTile, launches_of, tiles
from ftuner.latency.model import model
from handmade import ROOT

FOLDER = ROOT / "benchmarks" / "latency_model"
SAMPLE = FOLDER / "token_rows_sample.csv"
MAP = {"a100": "a100-80gb"}
COLUMNS = "device dtype layout M N K latency_us library".split()


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns, *rows])
    return path


@pytest.fixture(scope="module")
def sample() -> MeasurementTable:
    rows = read([SAMPLE], Devices(MAP))
    return rows[rows.is_fit]


def test_rows_take_the_fastest_of_their_choices(sample: MeasurementTable) -> None:
    assert sample.choices is not None and sample.choices.min() >= 1
    assert len(sample.launches) == sample.choices.sum()
    constants = model().calibration("global")
    every = model().predict(sample.launches, constants)
    first = 0
    for row, time in enumerate(sample.predict(constants)):
        choices = every[first : first + sample.choices[row]]
        first += sample.choices[row]
        assert time == choices.min()
    fastest = model().predict(sample.fastest(constants), constants)
    assert np.array_equal(fastest, sample.predict(constants))


def test_rows_that_are_picked_keep_their_choices(
    sample: MeasurementTable, rng: np.random.Generator
) -> None:
    constants = model().calibration("global")
    picked = rng.permutation(len(sample))[:40]
    whole = sample.predict(constants)
    assert np.array_equal(sample[picked].predict(constants), whole[picked])
    mask = np.zeros(len(sample), bool)
    mask[picked] = True
    assert np.array_equal(sample[mask].predict(constants), whole[mask])
    assert np.array_equal(sample[3:9].device, sample.device[3:9])
    both = concatenate([sample[picked], sample[mask]])
    assert np.array_equal(both.predict(constants), np.concatenate([whole[picked], whole[mask]]))


def test_neighbours_in_m_are_in_one_fold(sample: MeasurementTable) -> None:
    for n, k, fold in zip(sample.extra["N"], sample.extra["K"], sample.fold):
        assert fold == fold_of(int(n), int(k))


def test_short_rows_are_left_out(tmp_path: Path) -> None:
    """Short rows of rounded times are left out; rows of finer times count, however short."""

    def fitted(*times: float) -> list[bool]:
        rows = [["a40", "f16", "nt", 64, 4096, 4096, us, "2023"] for us in times]
        found = read([write_csv(tmp_path / "a.csv", COLUMNS, rows)], Devices())
        assert not found.is_host.any() and found.is_tensor.all()
        return [bool(is_fit) for is_fit in found.is_fit]

    assert fitted(9, 9.5, 10, 50) == [False, False, True, True]
    assert fitted(9, 9.9, 10, 50) == [True, True, True, True]


def test_rows_of_an_unknown_library_are_left_out(tmp_path: Path) -> None:
    rows = [["a40", "f16", "nt", m, 4096, 4096, 50.1, year] for m, year in ((1, "2026"), (2, ""))]
    found = read([write_csv(tmp_path / "a.csv", COLUMNS, rows)], Devices())
    assert found.extra["M"].tolist() == [1]
    assert len(found.warnings) == 1 and "1 rows left out" in found.warnings[0]
    path = write_csv(tmp_path / "b.csv", COLUMNS, rows[1:])
    with pytest.raises(ftuner.Error, match="a column 'library' that says whose kernels ran"):
        read([path], Devices())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "f64"}, "a.csv:3: column 'dtype': expected one of f16, bf16, tf32, i8"),
        ({"layout": "nn"}, "a.csv:3: column 'layout': expected nt, but got 'nn'"),
        ({"M": 0}, "a.csv:3: column 'M': expected a whole number of at least 1"),
        ({"latency_us": "fast"}, "a.csv:3: column 'latency_us': expected a number"),
        ({"device": "p4"}, "a.csv:3: column 'dtype': .*description of 'p4' states, but got 'f16'"),
        ({"device": "t4", "dtype": "tf32"}, "a.csv:3: column 'dtype': .*'t4' states"),
    ],
)
def test_wrong_rows(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = dict(zip(COLUMNS, ["a40", "f16", "nt", 64, 4096, 4096, 50, "2023"]))
    rows = [list(good.values()), list({**good, **change}.values())]
    with pytest.raises(ftuner.Error, match=message):
        read([write_csv(tmp_path / "a.csv", COLUMNS, rows)], Devices())


def test_files_name_their_own_devices(tmp_path: Path) -> None:
    rows = [["a100", "f16", "nt", 64, 4096, 4096, 50, "2023"]]
    paths = [write_csv(tmp_path / f"{name}.csv", COLUMNS, rows) for name in "ab"]
    found = read(paths, Devices({"a100": "a100-pcie", "b.csv:a100": "a100-80gb"}))
    assert [found.devices.names[index] for index in found.device] == ["a100-pcie", "a100-80gb"]


@pytest.mark.parametrize(
    ("columns", "row", "group"),
    [
        ("framework N K M", ["sglang", 4096, 2048, 300], "vendor bf16 sglang"),
        ("dtype layer N K M", ["f16", "gate_proj", 4096, 2048, 300], "vendor f16 layer"),
        ("dtype layout library M N K", ["f16", "nt", "2026", 300, 4096, 2048], "vendor f16"),
    ],
)
def test_published_files_say_less(tmp_path: Path, columns: str, row: list[Any], group: str) -> None:
    """Each is one reader's, and all are rows of the library of 2026."""
    path = write_csv(
        tmp_path / "a.csv", ["device", *columns.split(), "latency_us"], [["h100", *row, 20]]
    )
    found = read([path], Devices())
    assert found.group.tolist() == [group] and found.extra["library"].tolist() == ["2026"]
    assert [int(found.extra[axis][0]) for axis in "MNK"] == [300, 4096, 2048]
    assert found.is_fit.all() and found.fold.tolist() == [fold_of(4096, 2048)]


def test_a_library_that_is_not_known(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "a.csv", COLUMNS, [["h100", "f16", "nt", 64, 4096, 4096, 50, "1999"]]
    )
    with pytest.raises(ftuner.Error, match="column 'library': expected one of 2023, 2026"):
        read([path], Devices())


def test_steps_over_rows_are_those_of_the_library(tmp_path: Path) -> None:
    """The row too many costs a Hopper's library of 2023 a whole block, that of 2026 little, and
    an A100's of either year the same."""
    sizes = [(m, 14336, 4096) for m in (256, 257)]
    constants = model().start()

    def step(device: str, library: str) -> float:
        rows = [[device, "f16", "nt", *size, 50, library] for size in sizes]
        path = write_csv(tmp_path / "a.csv", COLUMNS, rows)
        first, second = read([path], Devices()).predict(constants)
        return float(second / first)

    assert step("h100", "2023") > 1.25
    assert step("h100", "2026") < 1.12
    assert step("a100-80gb", "2026") == step("a100-80gb", "2023")


def test_every_nth_row() -> None:
    whole, thin = read([SAMPLE], Devices(MAP)), read([SAMPLE], Devices(MAP), step=9)
    assert np.array_equal(thin.extra["M"], whole.extra["M"][::9])
    assert np.array_equal(thin.microseconds, whole.microseconds[::9])


def test_types_differ_by_bytes_and_rates(tmp_path: Path) -> None:
    """If the tensor cores set the pace, a type's rate decides its time."""
    types = ("f16", "bf16", "tf32", "i8")
    rows = [["a100-80gb", name, "nt", 8192, 8192, 8192, 5000, "2023"] for name in types]
    found = read([write_csv(tmp_path / "a.csv", COLUMNS, rows)], Devices())
    constants = {**model().start(), "tensor": 2.0}
    time = dict(zip(types, found.predict(constants)))
    assert time["bf16"] == time["f16"]
    assert time["tf32"] / time["f16"] == pytest.approx(2, rel=0.15)
    assert time["f16"] / time["i8"] == pytest.approx(2, rel=0.15)


def test_the_set_of_kernels() -> None:
    """The set follows the documentation: tiles that fit, with the most stages for their residency."""
    capacity = 167936.0
    found = list(tiles(capacity, has_warpgroups=False))
    assert len(set(found)) == len(found)
    assert {(tile.rows, tile.columns) for tile in found} == {
        (64, 64), (64, 128), (128, 64), (128, 128), (64, 256), (256, 64), (128, 256), (256, 128),
    }  # fmt: skip
    for tile in found:
        assert tile.shared_bytes + 1024 <= capacity and 2 <= tile.stages <= 6
        more = VendorTile(tile.rows, tile.columns, tile.step_bytes, tile.stages + 1, False)
        if tile.stages < 6:
            assert capacity // (more.shared_bytes + 1024) < capacity // (tile.shared_bytes + 1024)
    assert not any(tile.is_warpgroup for tile in found)
    assert any(tile.is_warpgroup for tile in tiles(capacity, has_warpgroups=True))


def test_the_set_of_the_library_of_2026() -> None:
    """On Hopper tiles of whole instructions, which hold their accumulators, with the most stages
    that fit; elsewhere nothing is new."""
    assert tiles(167936.0, False, "2026") == tiles(167936.0, False, "2023")
    capacity = 233472.0
    found = tiles(capacity, True, "2026")
    assert len(set(found)) == len(found)
    named = [(8, 64), (24, 64), (160, 128), (192, 192), (128, 256), (128, 320), (24, 384)]
    assert {(tile.rows, tile.columns) for tile in found} >= set(named)
    for tile in found:
        assert tile.is_warpgroup and tile.is_across and tile.step_bytes == 128
        assert tile.rows % 8 == 0 and tile.columns % 64 == 0
        assert tile.rows * tile.columns <= 2 * 128 * 160 and tile.cluster in [
            (1, 1),
            (2, 1),
            (1, 2),
        ]
        assert tile.shared_bytes + 1024 <= capacity
        assert tile.stages == 16 or tile.shared_bytes * (1 + 1 / tile.stages) + 1024 > capacity


def test_a_cluster_reads_what_it_shares_once() -> None:
    figures = [model().device("h100")[1]]
    one = VendorTile(128, 256, 128, 4, True, is_across=True)
    pair = VendorTile(128, 256, 128, 4, True, (2, 1), True)
    size = np.array([1100.0, 1100.0])
    both = launches_of(
        [one, pair], np.arange(2), np.ones(2, np.int64), "f16", (size, size, size), figures,
        np.zeros(2, np.int64),
    )  # fmt: skip
    fields = model().part_fields
    l2 = both.parts[:, -1, fields.index("l2_bytes")]
    assert l2.tolist() == [(128 + 256) * 128, (128 + 128) * 128]
    # Nine rows of blocks are five pairs.
    assert both.parts[:, -1, fields.index("count")].tolist() == [9 * 5, 10 * 5]


def test_fits_find_the_constants_of_made_up_times(
    sample: MeasurementTable, rng: np.random.Generator
) -> None:
    """Times by random constants: a fit finds constants that predict others of the kind."""
    start = model().calibration("global")
    moved = {name: start[name] * rng.uniform(0.85, 1.15) for name in TENSOR}
    moved["tensor_dram_share"] = float(rng.uniform(0.65, 0.9))
    truth = {**start, **moved}
    own = sample[sample.device == 0]
    own.microseconds = own.predict(truth)
    train = own.fold != 0
    found = fit_own(own[train], start)
    unseen = own[~train]
    left = error(unseen.predict(found.constants), unseen.microseconds)
    assert left < 0.01, (moved, found.constants)
    assert left < 0.5 * error(unseen.predict(start), unseen.microseconds), moved
    # Nothing else moves.
    assert all(found.constants[name] == start[name] for name in start if name not in TENSOR)


def test_rows_of_the_tensor_cores_do_not_change_the_others(
    tmp_path: Path, sample: MeasurementTable, rng: np.random.Generator
) -> None:
    columns = "op device B M N K latency_ms kernel".split()
    rows = [
        ["linear", "h100", 1, int(m), 1024, 2048, float(m) * rng.uniform(1, 1.2) * 1e-3,
         "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"]
        for m in rng.integers(256, 8192, 60)
    ]  # fmt: skip
    path = write_csv(tmp_path / "plain.csv", columns, rows)
    devices = Devices(MAP)
    plain = read([path], devices)
    both = read([path, SAMPLE], devices)
    both = both[both.is_fit]
    start = model().calibration("global")
    # What all kernels share and rows of the tensor cores tell is of the global constants.
    others = [name for name in start if name not in (*TENSOR, *TENSOR_SHARED)]
    own_only, together = fit_own(plain, start), fit_own(both[both.device == 0], start)
    assert {n: own_only.constants[n] for n in others} == {n: together.constants[n] for n in others}
    assert any(together.constants[name] != start[name] for name in TENSOR)
    global_only, of_all = fit_global(plain, start), fit_global(both, start)
    assert {n: global_only.constants[n] for n in others} == {n: of_all.constants[n] for n in others}


def test_devices_of_a_die_share_constants(tmp_path: Path, rng: np.random.Generator) -> None:
    """`ftuner calibrate --each`: rows of an A100 with 80 GB tell the tensor cores of all."""
    columns = "op device B M N K latency_ms kernel".split()
    rows = [
        ["linear", name, 1, int(m), 1024, 2048, float(m) * rng.uniform(1, 1.2) * 1e-3,
         "ampere_sgemm_128x128_nn"]
        for name in ("a100-pcie", "v100-pcie")
        for m in rng.integers(256, 8192, 40)
    ]  # fmt: skip
    path = write_csv(tmp_path / "plain.csv", columns, rows)
    out = tmp_path / "out"
    run = subprocess.run(
        [sys.executable, "-m", "ftuner", "calibrate", str(path), str(SAMPLE), "--each", "-o",
         str(out), "--map", f"{SAMPLE.name}:a100=a100-80gb"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    files = {one.stem: json.loads(one.read_text()) for one in out.glob("*.json")}
    assert {"global", "a100-pcie", "a100-80gb", "a40", "h100", "v100-pcie"} == set(files)
    plain, large = files["a100-pcie"]["constants"], files["a100-80gb"]["constants"]
    # Memory-bound kernels, without rows, keep the compiler's constants of the device.
    memory = (*MEMORY, *MEMORY_SHARED)
    assert all(plain[name] == large[name] for name in plain if name not in memory)
    built_in = model().default_calibration("a100-80gb")
    assert all(large[name] == built_in[name] for name in memory)
    # Constants that tell nothing of the rest of a die do not calibrate other devices.
    assert {name for name, one in files.items() if "die" in one} == {"a100-pcie", "v100-pcie"}
    v100, shared = files["v100-pcie"]["constants"], files["global"]["constants"]
    others = [name for name in TENSOR if name not in TENSOR_ENERGIES]
    assert {n: v100[n] for n in others} == {n: shared[n] for n in others}
    # Energies follow the nearest process: 8 nm is nearer to 12 than 7 and 4.
    nearest = files["a40"]["constants"]
    assert {n: v100[n] for n in TENSOR_ENERGIES} == {n: nearest[n] for n in TENSOR_ENERGIES}


# --- the judge -------------------------------------------------------------------------------

GOALS = {"unseen": 0.12, "left out": 0.15}


def test_built_in_calibrations_keep_the_goals(sample: MeasurementTable) -> None:
    for index, name in enumerate(sample.devices.names):
        own = sample[sample.device == index]
        wrong = error(own.predict(model().default_calibration(name)), own.microseconds)
        assert wrong <= GOALS["unseen"], (name, wrong)


def test_unseen_shapes_and_devices_keep_the_goals(sample: MeasurementTable) -> None:
    start = model().start()
    shared = {**model().calibration("global"), **{name: start[name] for name in TENSOR}}
    for index, name in enumerate(sample.devices.names):
        mask = sample.device == index
        own, predicted = sample[mask], np.full(mask.sum(), np.nan)
        for fold in range(5):
            test = own.fold == fold
            predicted[test] = own[test].predict(fit_own(own[~test], shared).constants)
        wrong = error(predicted, own.microseconds)
        assert wrong <= GOALS["unseen"], (name, wrong)
        wrong = error(own.predict(fit_global(sample[~mask], shared).constants), own.microseconds)
        assert wrong <= GOALS["left out"], (name, wrong)


@pytest.mark.parametrize(("scale", "status"), [(1, 0), (0.2, 1)])
def test_predictions_beyond_what_was_measured_fail(
    tmp_path: Path, sample: MeasurementTable, scale: float, status: int
) -> None:
    """Kernels that are predicted above the best share of any row: the command says so."""
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    out.mkdir()
    (data / "gemm_f16_tokens.csv.gz").write_bytes(SAMPLE.read_bytes())
    errors = {name: 0.1 for name in sample.devices.names}
    (out / "tokens.json").write_text(json.dumps({"unseen": errors}))
    times = tmp_path / "times.json"
    times.write_text(
        json.dumps(
            {
                sample.devices.names[d]: {
                    f"{int(n)} {int(k)} {int(m)}": us * scale * 1.01
                    for m, n, k, us, device in zip(
                        *(sample.extra[axis] for axis in "MNK"), sample.microseconds, sample.device
                    )
                    if device == d
                }
                for d in range(len(sample.devices.names))
            }
        )
    )
    program = tmp_path / "program"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        f"times = json.load(open({str(times)!r}))[sys.argv[1]]\n"
        "for line in sys.stdin:\n"
        "    n, k, *rows = line.split()\n"
        "    for m in rows:\n"
        "        family = ' of '.join(['a family', *sys.argv[2:]])\n"
        "        print(n, k, m, times[f'{n} {k} {m}'], family, sep='\\t')\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    command = [sys.executable, str(FOLDER / "predict_tokens.py"), "--data", str(data), "--out", str(out),
               "--program", str(program)]  # fmt: skip
    env = {**os.environ, "MPLBACKEND": "agg"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert run.returncode == status, run.stderr
    assert ("of the peak predicted, but at most" in run.stderr) == (status == 1)
    assert len((out / "predictions.csv").read_text().splitlines()) == len(sample) + 1
    name = sample.devices.names[-1]
    some = ["--devices", name, "--paths", "mma", "--name", "some"]
    run = subprocess.run([*command, *some], capture_output=True, text=True, check=False, env=env)
    assert run.returncode == status, run.stderr
    lines = (out / "some.csv").read_text().splitlines()[1:]
    assert len(lines) == (sample.device == len(sample.devices.names) - 1).sum()
    assert all(line.startswith(f"{name},") and line.endswith("a family of mma") for line in lines)


def test_prices_kernels_of_known_design() -> None:
    script = str(FOLDER / "known_kernels.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    ratios = [float(line.split("|")[-2]) for line in run.stdout.splitlines()[2:] if "|" in line]
    assert len(ratios) == 7
    assert all(0.75 < ratio < 1.35 for ratio in ratios), run.stdout
