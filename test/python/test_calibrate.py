"""`ftuner calibrate`: what it refuses, and what it writes where."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner import cli
from ftuner.describe import descriptions
from ftuner.host import outputs
from ftuner.latency import calibrate, fit, model
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable

FTUNER = "m n k block_m block_n block_k threads_m threads_n stages vector_width us".split()
VENDOR = "device M N K latency_ms kernel".split()
XGEMM = "MWG NWG MDIMC NDIMC MDIMA NDIMB VWM VWN SA SB time_ms".split()
# A good row of each.
GOOD: dict[str, dict[str, Any]] = {
    "ftuner": dict(zip(FTUNER, [64, 256, 512, 48, 64, 16, 8, 8, 2, 4, 10])),
    "vendor": dict(zip(VENDOR, ["v100", 512, 512, 512, 0.1, "volta_sgemm_64x64_tn"])),
    "configurations": dict(zip(XGEMM, [128, 128, 16, 8, 16, 8, 4, 2, 0, 1, 6.0])),
}


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    lines = [rows[0].keys(), *(row.values() for row in rows)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    return path


def ftuner_rows(count: int, seed: int = 0, **others: Any) -> list[dict[str, Any]]:
    """Rows whose times are near the predictions for v100, none of them bound by memory."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        m, n, k = (int(rng.integers(2, 24)) * size for size in (128, 128, 32))
        time = 1e-7 * m * n * k**0.9 * rng.normal(1, 0.1)
        row = [m, n, k, 128, 128, 8, 16, 16, 2, 4, time]
        out.append({**dict(zip(FTUNER, row)), **others})
    return out


def run(*arguments: Any) -> int:
    return cli.main(["calibrate", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with rows of one device."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "rows.csv", ftuner_rows(30))
    return tmp_path


def describe(path: Path, **changes: Any) -> Path:
    """A description like v100's."""
    device = {**descriptions.devices()["v100"], **changes}
    del device["source"]
    path.write_text(json.dumps(device))
    return path


# --- outputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-o rows.csv", "'rows.csv': it is an input"),
        ("-o ./a/../rows.csv", "rows.csv': it is an input"),
        ("-o prior.json --prior prior.json", "'prior.json': it is an input"),
        ("-o out.json --report ./out.json", "'./out.json': it is another output"),
        ("-o out.svg --plot out.svg", "'out.svg': it is another output"),
        ("-o=", "'': expected the path of a regular file"),
        ("-o a", "'a': expected the path of a regular file"),
        ("-o new/", "'new/': expected the path of a regular file"),
        ("-o pipe", "'pipe': expected the path of a regular file"),
        ("-o rows.csv/out.json", "Not a directory"),
        ("-o none/out.json --plot out.svg", "there is no folder"),
        ("-o out.json --plot none/out.svg", "there is no folder"),
        ("-o out.json --plot out", "ends in one of .svg"),
        ("-o out.json --plot a", "ends in one of .svg"),
        ("-o out.json --plot out.txt", "ends in one of .svg"),
        ("-o out.json --origin \udcff", "--origin: expected UTF-8"),
        ("-o out.json --origin " + 4001 * "x", "--origin: expected UTF-8 of at most 4000 bytes"),
        ("--each -o rows.csv", "expected a folder"),
        ("--each -o a/b --report a/b/v100.json", "it is another output"),
    ],
)
def test_outputs_are_checked_before_the_fit(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    message: str,
) -> None:
    (folder / "a").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "prior.json").write_text('{"name": "x", "constants": {}}')
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for name in ("calibrate_all", "calibrate_device"):
        monkeypatch.setattr(calibrate, name, lambda *_, **__: pytest.fail("it fits"))
    assert run("rows.csv", "--device", "v100", *arguments.split(" ")) in (1, 2)
    assert message in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_links_and_permissions_stay(folder: Path) -> None:
    (folder / "real.json").write_text("x")
    (folder / "real.json").chmod(0o600)
    (folder / "link.json").symlink_to("real.json")
    assert run("rows.csv", "--device", "v100", "-o", "link.json") == 0
    assert os.readlink(folder / "link.json") == "real.json"
    assert json.loads((folder / "real.json").read_text())["name"] == "v100"
    assert (folder / "real.json").stat().st_mode & 0o777 == 0o600


def test_standard_input_and_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run("rows.csv", "--device", "v100", "-o", "x.json", "--origin", "mine") == 0
    capsysbinary.readouterr()
    rows = io.BytesIO((folder / "rows.csv").read_bytes())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(rows))
    assert run("-", "--device", "v100", "-o", "-", "--origin", "mine") == 0
    found, other = (
        json.loads(text)
        for text in (capsysbinary.readouterr().out, (folder / "x.json").read_bytes())
    )
    # Standard input lacks a name.
    digest = hashlib.sha256((folder / "rows.csv").read_bytes()).hexdigest()
    assert other.pop("data") == {"rows.csv": digest} and "data" not in found
    assert other.pop("command") == "ftuner calibrate rows.csv --device v100"
    assert found.pop("command") == "ftuner calibrate - --device v100"
    assert found == other
    assert sorted(path.name for path in folder.iterdir()) == ["rows.csv", "x.json"]
    for arguments in (
        ["-", "-", "-o", "y"],
        ["-", "-o", "y", "--report", "-"],
        ["-", "--each", "-o", "-"],
    ):
        assert run(*arguments, "--device", "v100") == 2


def test_all_files_are_written_or_none(folder: Path) -> None:
    with pytest.raises(ftuner.Error, match="none/b"):
        outputs.write({"a": b"1", "none/b": b"2"})
    assert [path.name for path in folder.iterdir()] == ["rows.csv"]


def test_a_calibration_that_the_compiler_refuses_is_not_written(folder: Path) -> None:
    rows = read(["rows.csv"], Devices(only="v100"))
    one = calibrate.calibrate_device(rows, model().calibration("global"))
    one.errors["all"] = (12, 1e7, 1e7, None)
    with pytest.raises(ftuner.Error, match="would refuse .*error_before.*expected a number from"):
        calibrate.to_text(one, calibrate.Source(""))


@pytest.mark.parametrize("output", ["out", "out/", "new/out"])
def test_each_makes_its_folder(folder: Path, output: str) -> None:
    assert run("rows.csv", "--device", "v100", "--each", "-o", output, "--plot", "a.png") == 0
    files = sorted(path.name for path in (folder / output).iterdir())
    assert files == ["global.json", "v100.json"]
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["global", "../evil", "a/b", ".hidden", "a b"])
def test_each_takes_names_that_are_file_names(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    describe(folder / "gpu.json", name=name)
    assert run("rows.csv", "--device", "gpu.json", "--each", "-o", "out/deep") == 1
    assert f"but got '{name}'" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["gpu.json", "rows.csv"]


# --- devices ---------------------------------------------------------------------------------


def test_descriptions_of_the_user_come_before_built_in_ones(folder: Path) -> None:
    half = str(describe(folder / "half.json", sm_count=40))
    other = str(describe(folder / "other.json", name="mine", sm_count=20))
    write_csv(folder / "named.csv", ftuner_rows(2, device="v100"))
    for devices in (Devices(only=half), Devices({"gpu": half})):
        rows = read(["named.csv"], devices)
        assert devices.sources == [half] and devices.figures[0]["sm_count"] == 40
        assert len(rows) == 2
    devices = Devices(only=other)
    write_csv(folder / "mine.csv", [*ftuner_rows(1, device="mine"), *ftuner_rows(1, device="t4")])
    read(["mine.csv"], devices)
    assert devices.sources == [other, "t4"]


@pytest.mark.parametrize(
    ("mapping", "only"), [({"gpu": "half.json"}, "v100"), ({"a": "half.json", "b": "v100"}, None)]
)
def test_two_descriptions_of_one_name_are_an_error(
    folder: Path, mapping: dict[str, str], only: str | None
) -> None:
    describe(folder / "half.json", sm_count=40)
    with pytest.raises(ftuner.Error, match="one description of the device 'v100', but got two"):
        Devices(mapping, only)
    rows = [*ftuner_rows(1, device="half.json"), *ftuner_rows(1, device="v100")]
    write_csv(folder / "both.csv", rows)
    with pytest.raises(ftuner.Error, match="one description of the device 'v100', but got two"):
        read(["both.csv"], Devices())


# --- rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("vendor", {"latency_ms": 1e306}, "column 'latency_ms': expected a number"),
        ("vendor", {"M": 3e9}, "column 'M': expected a whole number"),
        ("vendor", {"kernel": "volta_sgemm_32x32_sliced0x0_nn"}, "column 'kernel': expected"),
        ("vendor", {"kernel": f"sgemm_{10**23}x1_nn"}, "column 'kernel': expected a name"),
        ("vendor", {"tile_m": 2000}, "column 'tile_m': expected a whole number"),
        ("vendor", {"grid_z": 0.5}, "column 'grid_z': expected a whole number"),
        ("vendor", {"block_x": 1024, "block_y": 2}, "column 'block_x': expected at most 1024"),
        ("vendor", {"fold": 1e30}, "column 'fold': expected a whole number"),
        ("ftuner", {"m": 1e19}, "column 'm': expected a whole number"),
        ("ftuner", dict.fromkeys("mnk", 2**31 - 1), "expected a kernel that takes at"),
        ("ftuner", {"us": 1e10}, "column 'us': expected a number"),
        ("ftuner", {"transpose_lhs": 2}, "column 'transpose_lhs': expected"),
        ("ftuner", {"path": "none"}, "column 'path': expected one of .*, but got 'none'"),
        ("ftuner", {"threads_m": ""}, "column 'threads_m': expected a whole number in rows of"),
        ("ftuner", {"threads_m": -1}, "column 'threads_m': expected a whole number"),
        ("ftuner", {"threads_m": 0}, "simt: expected threads_m of 1 to 1024"),
        ("ftuner", {"second_block": 32}, "axis 0: expected ascending heights"),
        ("ftuner", {"first_count": 3}, "column 'first_count': expected no more blocks"),
        ("configurations", {"VWM": 64}, "column 'VWM': expected 1, 2, 4 or 8"),
        ("configurations", {"SA": 2}, "column 'SA': expected"),
        ("configurations", {"MWG": 2048}, "column 'MWG': expected"),
        ("configurations", {"time_ms": 1e307}, "column 'time_ms': expected"),
        ("configurations", {"KWG": 7}, "expected whole warps and tiles"),
    ],
)
def test_rows_out_of_bounds(
    tmp_path: Path, kind: str, change: dict[str, Any], message: str
) -> None:
    optional = {"tile_m": 64, "grid_z": 1, "block_x": 64, "block_y": 1, "fold": 0, "KWG": 32}
    none = {"transpose_lhs": 0, "second_block": 0, "first_count": 0, "path": model().paths[0]}
    good = {**{key: {**optional, **none}.get(key) for key in change}, **GOOD[kind]}
    path = write_csv(tmp_path / "a.csv", [good, {**good, **change}])
    only = None if kind == "vendor" else "v100"
    assert len(read([write_csv(tmp_path / "b.csv", [good])], Devices(only=only))) == 1
    with pytest.raises(ftuner.Error, match=f"a.csv:3: {message}"):
        read([path], Devices(only=only))


@pytest.mark.parametrize("kind", GOOD)
def test_columns_of_other_formats_are_ignored(tmp_path: Path, kind: str) -> None:
    others = [column for column in ("kernel", "MWG", "block_m") if column not in GOOD[kind]]
    rows = [{**GOOD[kind], **dict.fromkeys(others, "x")}]
    devices = Devices(only=None if kind == "vendor" else "v100")
    group = read([write_csv(tmp_path / "a.csv", rows)], devices).group[0]
    assert str(group).startswith(kind)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**GOOD["ftuner"], **GOOD["vendor"]}, "but got those of vendor rows and FTuner rows"),
        ({"kernel": "k", **dict.fromkeys(FTUNER[:-1], 1)}, "but for FTuner rows it lacks 'us'"),
        ({"kernel": "k", "M": 1, "N": 1, "K": 1}, "it lacks 'latency_ms or latency_us'"),
    ],
)
def test_columns_tell_one_format(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(ftuner.Error, match=f"a.csv:1: .*{message}"):
        read([write_csv(tmp_path / "a.csv", [row])], Devices(only="v100"))


def test_rows_left_out_are_told_with_a_device(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = GOOD["vendor"]
    write_csv(folder / "a.csv", [good, {**good, "kernel": "gemv2T_kernel_val"}])
    assert run("a.csv", "--device", "v100", "-o", "out.json") == 1
    assert "a.csv: 1 rows left out: no tile" in capsys.readouterr().err
    rows = read(["a.csv"], Devices())
    assert rows[rows.device == 0].warnings == rows.warnings != []


# --- fits ------------------------------------------------------------------------------------


def test_too_few_rows_without_a_floor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(folder / "a.csv", ftuner_rows(5))
    assert run("a.csv", "--device", "v100", "-o", "out.json") == 1
    assert "expected at least 8 rows, but got 5" in capsys.readouterr().err


@pytest.mark.parametrize("each", [False, True])
def test_the_deviation_of_the_prior_stays_where_rows_are_few(folder: Path, each: bool) -> None:
    (folder / "prior.json").write_text('{"name": "x", "constants": {}, "deviation": 0.123}')
    options = ["--each", "-o", "out"] if each else ["-o", "v100.json"]
    assert run("rows.csv", "--device", "v100", "--prior", "prior.json", *options) == 0
    files = [folder / "out" / "global.json", folder / "out" / "v100.json"]
    for file in files if each else [folder / "v100.json"]:
        assert json.loads(file.read_text())["deviation"] == 0.123


def shared_rows(path: Path) -> MeasurementTable:
    names = ("h200", "a100", "v100")
    rows = [row for i, name in enumerate(names) for row in ftuner_rows(40, i, device=name)]
    return read([write_csv(path, rows)], Devices())


def test_global_constants_that_rows_hardly_move_stay(tmp_path: Path) -> None:
    rows, start = shared_rows(tmp_path / "a.csv"), model().start()
    found = calibrate.calibrate_all(rows, start)
    for name in ("dram_share", "drift", "spill"):
        assert found.constants[name] == start[name] and name in found.unmoved
    text = calibrate.report(found, calibrate.span_warnings(rows, start))
    assert "hardly any rows are bound by memory" in text and "hardly move them: " in text


def test_the_effect_that_frees_a_constant_depends_on_the_prior(tmp_path: Path) -> None:
    rows, start = shared_rows(tmp_path / "a.csv"), model().start()
    changed = rows.predict({**start, "dram_share": 1.05 * start["dram_share"]})
    effect = np.log(changed / rows.predict(start)) / np.log(1.05)
    size = np.sqrt(np.mean(effect**2))
    assert fit.MIN_EFFECT < size < fit.MIN_EFFECT_WITHOUT_PRIOR
    found = fit.fit(rows, start, ["dram_share"], prior=0.1)
    assert [*found.free, *found.at_bounds] == ["dram_share"]
    assert fit.fit(rows, start, ["dram_share"]).unmoved == ["dram_share"]


def test_constants_that_end_at_a_bound_are_told_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, start = shared_rows(tmp_path / "a.csv"), model().start()
    # No launch is that fast: the time of a block's start goes to its bound.
    rows.microseconds = rows.predict({**start, "block_start": 1e-3})
    found = fit.fit(rows, start, ["block_start"])
    assert found.at_bounds == ["block_start"]
    assert found.constants["block_start"] == start["block_start"]
    monkeypatch.setattr(fit, "prior_weight", lambda _: 0.0)
    one = rows[rows.device == 0]
    own = calibrate.calibrate_device(one, start, ["block_start"])
    assert own.at_bounds == ["block_start"] and own.constants == start
    assert "ended at a bound: block_start" in calibrate.report(own)


def test_constants_that_predict_no_better_are_refused(tmp_path: Path) -> None:
    """The rows are noise around the prior's predictions."""
    start = model().start()
    names = list(fit.OWN)
    for seed in range(20):
        rows = shared_rows(tmp_path / "a.csv")
        rows = rows[rows.device == 0]
        noise = np.random.default_rng(seed).normal(0, 0.3, len(rows))
        rows.microseconds = rows.predict(start) * np.exp(noise)
        found = calibrate.calibrate_device(rows, start, names)
        if found.is_refused:
            break
    assert found.is_refused and found.constants == start
    assert found.errors["all"][1] == found.errors["all"][2]
    assert "no better" in calibrate.report(found)


def test_a_calibration_names_the_die_of_its_device(folder: Path) -> None:
    assert run("rows.csv", "--device", "v100", "-o", "v100.json") == 0
    assert json.loads((folder / "v100.json").read_text())["die"] == "GV100"
    own_device = describe(folder / "mine.json", name="mine", die="XY1")
    assert run("rows.csv", "--device", own_device, "-o", "mine-calibration.json") == 0
    assert json.loads((folder / "mine-calibration.json").read_text())["die"] == "XY1"


def test_each_device_keeps_its_own_constants_while_shared_ones_are_fitted(tmp_path: Path) -> None:
    """Devices that differ in one constant do not move another."""
    rows, start = shared_rows(tmp_path / "a.csv"), model().start()
    times = np.empty(len(rows))
    own = {}
    for index, factor in enumerate((0.6, 1.0, 2.5)):
        mask = rows.device == index
        own[index] = {"l2_bytes_per_cycle": factor * start["l2_bytes_per_cycle"]}
        times[mask] = rows[mask].predict({**start, **own[index]})
    rows.microseconds = times
    shared_only = fit.fit(rows, start, ["block_start"])
    with_own = fit.fit(rows, start, ["block_start"], own=own)
    assert with_own.constants["block_start"] == pytest.approx(start["block_start"], rel=1e-3)
    assert shared_only.constants["block_start"] != pytest.approx(start["block_start"], rel=1e-2)
