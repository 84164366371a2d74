"""The latency model in Python, rows of measurements, and `ftuner calibrate`."""

from __future__ import annotations

import dataclasses
import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner.latency import Launches, fit, model
from ftuner.latency.measurements.memory_rows import block_of, launches_of_blocks
from ftuner.latency.measurements.readers import read
from ftuner.latency.measurements.rows import Devices, MeasurementTable
from ftuner.latency.measurements.vendor_rows import parse_kernel_name
from handmade import ROOT

TERMS = "launch issue shared_memory l2 latency block_start tail dram power second_kernel".split()


def run(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments)


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    text = "\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n"
    path.write_text(text)
    return path


# --- model -----------------------------------------------------------------------------------


def test_devices_and_calibrations_by_name() -> None:
    name, figures = model().device("v100")
    assert name == "v100" and figures["sm_count"] == 80
    assert set(model().calibration("global")) == set(model().constants)
    assert model().default_calibration("rtx4090") == model().calibration("global")
    # A board of the V100's die.
    assert model().default_calibration("v100") == model().calibration("v100-pcie")
    assert model().default_calibration("t4") != model().calibration("global")
    with pytest.raises(ftuner.Error, match="unknown device 'nothing'"):
        model().device("nothing")
    with pytest.raises(ftuner.Error, match="unknown calibration 'nothing'"):
        model().calibration("nothing")


def test_constants_start_within_their_bounds() -> None:
    for constant in model().constants.values():
        assert constant.low <= constant.start <= constant.high, constant


def test_records_with_wrong_fields_are_errors() -> None:
    _, figures = model().device("v100")
    with pytest.raises(ftuner.Error, match="missing .*'warps'"):
        model().launches([figures], [0], [{"count": 1}], {})


def test_wavefronts_and_lines() -> None:
    lanes = np.arange(32)
    assert model().wavefronts(lanes[None], 1)[0] == 1
    assert model().wavefronts(lanes[None] * 2, 1)[0] == 2
    assert model().lines(lanes[None] * 4, 4)[0] == 4
    with pytest.raises(ftuner.Error, match="expected 1, 2 or 4 words"):
        model().wavefronts(lanes[None], 3)
    with pytest.raises(ftuner.Error, match="addresses: expected an array of n × 32, but got 1"):
        model().wavefronts(lanes[None, 1:], 1)
    with pytest.raises(ftuner.Error, match="widths: expected an array of 1, but got 3"):
        model().wavefronts(lanes[None], [1, 2, 4])


def test_programs_have_fields_of_their_path() -> None:
    assert "simt" in model().paths
    for path in model().paths:
        fields = model().program_fields(path)
        assert len(set(fields)) == len(fields)
        assert fields[:4] == ("batch", "m", "n", "k")
    assert model().program_fields("simt")[-8:-4] == (
        "threads_m",
        "threads_n",
        "stages",
        "vector_width",
    )
    optional = {"threads_batch": 1, "virtual_threads_m": 0, "virtual_threads_n": 0, "threads_k": 1}
    assert model().program_defaults("simt") == optional
    with pytest.raises(ftuner.Error, match="unknown codegen path 'none': expected one of .*simt"):
        model().program_fields("none")
    with pytest.raises(ftuner.Error, match="unknown codegen path 'none'"):
        model().programs("v100", "none", np.zeros((1, 18), int))


def simt_programs(**changes: int) -> np.ndarray[Any, Any]:
    """Three programs of the SIMT path, all alike."""
    row = dict(
        batch=1, m=512, n=1024, k=512, block_m=64, block_n=64, block_k=16, threads_m=16,
        threads_n=16, reduce_split=1, stages=2, vector_width=4,
    )  # fmt: skip
    fields = model().program_fields("simt")
    row = {**model().program_defaults("simt"), **row, **changes}
    return np.array([[row.get(name, 0) for name in fields]] * 3)


def launches() -> Launches:
    """Three launches of FTuner's."""
    parts, grids = model().programs("v100", "simt", simt_programs())
    figures = np.array([[*model().device("v100")[1].values()]] * 2)
    return Launches(figures, np.array([0, 1, 0]), parts, grids)


def stream(**fields: Any) -> dict[str, Any]:
    """A memory-bound part by the fields that it must have."""
    names = "warps registers_per_thread shared_memory_bytes k_tile fma other_instructions shared_cycles "
    names += "global_lines l2_bytes exposed_loads direct_registers count steps"
    return dict.fromkeys(names.split(), 1.0) | dict(is_streaming=1) | fields


def streams(part: dict[str, Any]) -> Launches:
    grid = dict(zip(model().grid_fields, launches().grids[0]))
    return model().launches([model().device("v100")[1]], [0], [part], grid)


def test_records_leave_out_what_the_other_kind_of_kernel_has() -> None:
    """A stream needs no field of loops, and ignores those that it has."""
    constants = model().start()
    plain = model().predict(streams(stream()), constants)
    assert (
        model().predict(streams(stream(f16_operations=1e6, loaded_registers=1e6)), constants)
        == plain
    )
    assert model().predict(streams(stream(sync_cycles=1e6)), constants) > plain
    with pytest.raises(ftuner.Error, match=r"missing \['l2_bytes'\], unknown \[\]"):
        streams({name: value for name, value in stream().items() if name != "l2_bytes"})
    missing = r"missing \['is_pipelined', 'loaded_registers', 'spilled_registers'\]"
    with pytest.raises(ftuner.Error, match=missing):
        streams(stream(is_streaming=0))


def test_parts_are_of_one_kind() -> None:
    parts = launches()
    parts.parts[1, :, model().part_fields.index("count")] = 1
    parts.parts[1, 0, model().part_fields.index("is_streaming")] = 1
    with pytest.raises(
        ftuner.Error, match="row 1: expected parts that are both streaming, or neither"
    ):
        model().predict(parts, model().start())


def test_predictors_read_fields_of_devices() -> None:
    fields = model().device_fields
    learned = model().learned_device_fields
    assert len(learned) == 14
    assert learned == tuple(name for name in fields if name in learned)


def test_programs_are_trees_of_statements() -> None:
    names = model().program_features()
    assert len(names) == len(set(names)) == 164
    trees = model().trees("v100", "simt", simt_programs())
    assert [len(parts) for parts in trees] == [1, 1, 1]
    (tree,) = trees[2]
    assert tree.blocks == 8 * 16
    # Loops over the sums, a step's copies and products, and the store.
    assert tree.features.shape == (5, 164) and tree.ordering.shape == (5,)
    assert (np.diff(tree.ordering) >= 2).all()
    figures = {name: np.exp2(tree.features[:, i].astype(float)) - 1 for i, name in enumerate(names)}
    assert figures["float-multiply-add"] == pytest.approx([0, 0, 0, 512 * 1024 * 512, 0], rel=1e-5)
    assert figures["blocks.x"] == pytest.approx([128] * 5, rel=1e-5)
    assert figures["threads.x"] == pytest.approx([256] * 5, rel=1e-5)


def test_programs_of_two_heights_are_two_trees() -> None:
    programs = simt_programs(m=208, block_m=64, second_block=80)
    (low, high), *_ = model().trees("v100", "simt", programs)
    assert (low.blocks, high.blocks) == (2 * 16, 1 * 16)
    assert low.features.shape == high.features.shape
    assert not np.array_equal(low.features, high.features)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("device", lambda x: x.astype(np.int32)),
        ("devices", lambda x: x.astype(np.float32)),
        ("devices", np.asfortranarray),
    ],
)
def test_arrays_are_made_what_the_library_reads(name: str, change: Any) -> None:
    wanted = model().predict(launches(), model().start())
    changed = dataclasses.replace(launches(), **{name: change(getattr(launches(), name))})
    assert model().predict(changed, model().start()) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "parts",
            lambda x: x[:1],
            "parts: expected an array of 3 × n × {fields}, but got 1 × 2 × {fields}",
        ),
        ("parts", lambda x: x[:, :, :-1], "parts: expected an array of 3 × n × {fields}"),
        ("parts", lambda x: x * np.nan, "row 0: field 'is_streaming': .* but got nan"),
        ("parts", lambda x: -x, "row 0: field 'warps': expected a number of at least 0"),
        ("grids", lambda x: x[:, 1:], "grids: expected an array of 3 × 19, but got 3 × 18"),
        ("grids", lambda x: x + np.inf, "row 0: field 'blocks_x': .* but got inf"),
        ("device", lambda x: x[:2], "device: expected an array of 3, but got 2"),
        ("device", lambda x: x * 0.5, "device: expected numbers of type int64, but got float64"),
        ("devices", lambda x: x[0], "devices: expected an array of n × 20, but got 20"),
        ("devices", lambda x: x * 0, "device 0: field 'sm_count': expected a positive number"),
    ],
)
def test_wrong_arrays(name: str, change: Any, message: str) -> None:
    changed = dataclasses.replace(launches(), **{name: change(getattr(launches(), name))})
    with pytest.raises(
        ftuner.Error, match=message.replace("{fields}", str(len(model().part_fields)))
    ):
        model().predict(changed, model().start())


def test_a_launch_without_blocks_takes_no_time_beside_others() -> None:
    few = launches()
    wanted = model().predict(few, model().start())
    few.parts[1, :, model().part_fields.index("count")] = 0
    times = model().predict(few, model().start())
    assert times.tolist() == [wanted[0], 0, wanted[2]]
    terms = model().explain(few, model().start())
    assert all(term[1] == 0 for term in terms.values()) and terms["total"][0] == wanted[0]


def test_rows_one_after_the_other_are_priced_through_the_library() -> None:
    """Every field of a block counts: rows of a loop wait for their loads in turn, and share what they hold."""
    _, figures = model().device("v100")
    part = dict(block_of(2, 64, 32768, 32768, sync=200), held_steps=1)
    moved = np.full(1, 1600.0 * 65536)

    def time(**fields: float) -> float:
        found = launches_of_blocks(
            np.full(1, 1600.0), {**part, **fields}, moved, moved, [figures], np.zeros(1, np.int64)
        )
        return float(model().explain(found, model().start())["sm_time"][0])

    assert time() == time(row_loop=1, common_bytes=0)
    assert time(row_loop=8) != time()
    assert time(row_loop=8, common_bytes=32768, distinct_common_bytes=32768) < time(row_loop=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fma": np.nan}, "constants: field 'fma': expected a positive number, but got nan"),
        ({"overlap": 0}, "constants: field 'overlap': expected a positive number, but got 0"),
        ({"launch": -1}, "constants: field 'launch': expected a number of at least 0, but got -1"),
        ({"fma": "a"}, "field 'fma': expected numbers of type float64"),
        ({"zeta": 1}, "unknown .*'zeta'"),
    ],
)
def test_wrong_constants(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ftuner.Error, match=message):
        model().predict(launches(), {**model().start(), **change})
    with pytest.raises(ftuner.Error, match="missing .*'fma'"):
        model().predict(launches(), {"launch": 2.0})
    # As experiments set them.
    model().predict(launches(), {**model().start(), "launch": 0, "overlap": 40})


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        (np.ones((2, 3), int), "programs: expected an array of n × 23, but got 2 × 3"),
        (np.ones(23, int), "programs: expected an array of n × 23, but got 23"),
        (np.full((2, 23), 1.5), "programs: expected numbers of type int64, but got float64"),
    ],
)
def test_wrong_programs(programs: Any, message: str) -> None:
    with pytest.raises(ftuner.Error, match=message):
        model().programs("v100", "simt", programs)
    with pytest.raises(ftuner.Error, match=message):
        model().trees("v100", "simt", programs)


@pytest.mark.parametrize(
    ("change", "is_narrow"),
    [
        ({}, False),
        ({"m": 1021}, False),
        ({"n": 1021}, True),
        ({"k": 1021}, True),
        ({"m": 1021, "transpose_lhs": 1}, True),
        ({"k": 1021, "transpose_lhs": 1}, False),
        ({"k": 1021, "transpose_lhs": 1, "transpose_rhs": 1}, True),
        ({"n": 1021, "transpose_rhs": 1}, True),
    ],
)
def test_vectors_are_for_shapes_that_allow_them(change: dict[str, int], is_narrow: bool) -> None:
    row = dict(
        batch=1, m=1024, n=1024, k=1024, block_m=64, block_n=64, block_k=16, threads_m=16,
        threads_n=16, reduce_split=1, stages=2,
    )  # fmt: skip
    row.update(change)
    fields = model().program_fields("simt")
    table = [
        [
            {**model().program_defaults("simt"), **row, "vector_width": w}.get(name, 0)
            for name in fields
        ]
        for w in (1, 4)
    ]
    narrow, wide = model().programs("v100", "simt", np.array(table))[0]
    assert np.array_equal(narrow, wide) == is_narrow


# --- FTuner rows -----------------------------------------------------------------------------

FTUNER = """m n k block_m block_n block_k threads_m threads_n stages vector_width transpose_rhs
us""".split()


def programs(rng: np.random.Generator, count: int, stages: int = 2) -> list[list[int]]:
    """Programs of FTuner without their times."""
    out = []
    while len(out) < count:
        gm, gn = int(rng.choice([8, 16])), int(rng.choice([8, 16]))
        rm, rn = int(rng.integers(1, 9)), int(rng.choice([4, 8]))
        m, n, k = (int(4 * np.exp(rng.uniform(2, 6))) for _ in range(3))
        shape = [m, n, k, gm * rm, gn * rn, int(rng.choice([8, 16, 32]))]
        out.append([*shape, gm, gn, int(rng.integers(2, stages + 1)), 4, int(rng.integers(2))])
    return out


def test_ftuner_rows_are_priced(tmp_path: Path, rng: np.random.Generator) -> None:
    path = write_csv(tmp_path / "a.csv", FTUNER, [[*row, 10] for row in programs(rng, 60, 4)])
    rows = read([path], Devices(only="h200"))
    constants = model().calibration("global")
    terms = model().explain(rows.launches, constants)
    assert np.allclose(sum(terms[name] for name in TERMS), terms["total"])
    assert np.all(terms["total"] == rows.predict(constants)) and np.all(terms["total"] > 0)


def test_pairs_and_vectors_of_rows(tmp_path: Path) -> None:
    header = (*FTUNER, "second_block", "first_count", "second_count")
    one = [112, 256, 512, 48, 64, 16, 8, 8, 2, 4, 0, 10]
    rows = [[*one, 0, 0, 0], [*one, 64, 1, 1], [*one, 64, 0, 0]]
    found = read([write_csv(tmp_path / "a.csv", header, rows)], Devices(only="v100"))
    counts = found.launches.parts[:, :, model().part_fields.index("count")]
    assert counts.tolist()[:2] == [[0, 12], [4, 4]]


def test_types_of_rows(tmp_path: Path) -> None:
    """Programs of tensor cores, by their type and the fields of their path."""
    header = "type path m n k transpose_rhs block_m block_n block_k warps_m warps_n stages access_bytes swap_operands us"
    row = [128, 4096, 4096, 1, 64, 64, 64, 2, 2, 4, 16, 0, 20]
    rows = [["f16", "mma", *row], ["bf16", "mma", *row], ["i8", "mma", *row]]
    path = write_csv(tmp_path / "a.csv", header.split(), rows)
    found = read([path], Devices(only="a100"))
    fields = model().part_fields
    parts = found.launches.parts[:, 1]
    halves, bytes_ = (parts[:, fields.index(f"{name}_operations")] for name in ("f16", "i8"))
    assert halves.tolist() == [2 * 64**3] * 2 + [0] and bytes_.tolist() == [0, 0, 2 * 64**3]
    l2 = parts[:, fields.index("l2_bytes")]
    assert l2[0] == l2[1] == 2 * l2[2] == 2 * 2 * 64 * 64
    assert found.is_tensor.all()
    path = write_csv(tmp_path / "b.csv", header.split(), [["f8", "mma", *row]])
    with pytest.raises(
        ftuner.Error, match="b.csv:2: column 'type': expected one of f32, tf32, f16"
    ):
        read([path], Devices(only="a100"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_m": 20}, "a.csv:3: .*multiples of 8 elements"),
        ({"us": "fast"}, "a.csv:3: column 'us': expected a number .*, but got 'fast'"),
        ({"us": -1}, "a.csv:3: column 'us': expected a number of at least"),
        ({"k": 0}, "a.csv:3: .*k: expected a number from 1"),
        ({"m": 1.5}, "a.csv:3: column 'm': expected a whole number"),
        ({"stages": 99}, "a.csv:3: "),
    ],
)
def test_wrong_ftuner_rows(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = [64, 256, 512, 48, 64, 16, 8, 8, 2, 4, 0, 10]
    bad = [change.get(name, value) for name, value in zip(FTUNER, good)]
    path = write_csv(tmp_path / "a.csv", FTUNER, [good, bad])
    with pytest.raises(ftuner.Error, match=message):
        read([path], Devices(only="v100"))


def test_rows_say_their_path(tmp_path: Path) -> None:
    good = [64, 256, 512, 48, 64, 16, 8, 8, 2, 4, 0, 10]
    first = model().paths[0]
    unsaid = read([write_csv(tmp_path / "a.csv", FTUNER, [good])], Devices(only="v100"))
    rows = [[*good, first], [*good, ""]]
    path = write_csv(tmp_path / "b.csv", [*FTUNER, "path"], rows)
    said = read([path], Devices(only="v100"))
    for index in range(2):
        assert np.array_equal(said.launches.parts[index], unsaid.launches.parts[0])
    path = write_csv(tmp_path / "c.csv", [*FTUNER, "path"], [*rows, [*good, "none"]])
    with pytest.raises(ftuner.Error, match="c.csv:4: column 'path': expected one of"):
        read([path], Devices(only="v100"))
    # A schedule's field has no default.
    columns = [index for index, name in enumerate(FTUNER) if name != "stages"]
    path = write_csv(tmp_path / "d.csv", [FTUNER[i] for i in columns], [[good[i] for i in columns]])
    with pytest.raises(ftuner.Error, match="d.csv:1: expected a column 'stages'"):
        read([path], Devices(only="v100"))


# --- vendor rows -----------------------------------------------------------------------------

VENDOR = "op device B M N K latency_ms kernel".split()


def test_kernel_names() -> None:
    name = parse_kernel_name("cutlass_80_simt_sgemm_128x64_8x5_nn_align1")
    assert (name.tile_m, name.tile_n, name.layout, name.stages) == (128, 64, "nn", 5)
    name = parse_kernel_name(
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x32x8_stage3_warpsize1x2x1_ffma_aligna4"
    )
    assert (name.tile_m, name.tile_n, name.layout, name.stages) == (64, 32, "tn", 3)
    assert not name.is_tensor_core and name.is_row_major
    name = parse_kernel_name("ampere_sgemm_32x32_sliced1x4_tn")
    assert (name.tile_m, name.slices, name.stages) == (32, 4, 4)
    assert not parse_kernel_name("maxwell_sgemm_128x64_nn").is_swizzled
    assert parse_kernel_name("cutlass_80_tensorop_s1688gemm_128x64_16x6_nn").is_tensor_core
    assert parse_kernel_name("gemv2T_kernel_val").tile_m is None


def test_rows_of_several_files_keep_what_all_have(tmp_path: Path) -> None:
    one = [["bmm", "t4", 4, 512, 512, 512, 0.2, "volta_sgemm_64x64_nn"]]
    two = [["linear", "h100", 1, 64, 96, 128, 0.1, "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"]]
    paths = [write_csv(tmp_path / f"{i}.csv", VENDOR, rows) for i, rows in enumerate((one, two))]
    rows = read(paths, Devices())
    assert rows.extra["M"].tolist() == [512, 64] and rows.extra["tile_m"].tolist() == [64, 128]
    assert rows[1:].extra["K"].tolist() == [128]


def test_vendor_rows_without_optional_columns(tmp_path: Path) -> None:
    rows = [
        ["bmm", "a100", 4, 512, 512, 512, 0.2, "ampere_sgemm_128x128_nn"],
        ["linear", "a100", 1, 512, 512, 512, 0.1, "gemv2T_kernel_val"],
        ["linear", "h100", 1, 512, 512, 512, 0.1, "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"],
    ]
    path = write_csv(tmp_path / "a.csv", VENDOR, rows)
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        found = read([one], Devices({"a100": "a100-pcie"}))
        assert found.devices.names == ["a100-pcie", "h100"]
        assert len(found) == 2 and "1 rows left out" in found.warnings[0]
        counts = found.launches.parts[:, 0, model().part_fields.index("count")]
        assert counts.tolist() == [4 * 4 * 4, 4 * 8]
        assert found.is_host.all() and found.microseconds.tolist() == [200, 100]


def test_tiles_of_vendor_kernels_lie_as_their_names_mean(tmp_path: Path) -> None:
    """tile_m of column-major kernels tiles N, of xmma kernels M; grids that are folded have
    blocks beyond the output, which do nothing."""
    columns = [*VENDOR, "grid_x", "grid_y", "grid_z"]
    xmma = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x64x8_stage3_warpsize2x2x1_ffma"
    rows = [
        ["bmm", "h100", 12, 256, 640, 96, 0.1, xmma, 1, 10, 12],
        ["bmm", "h100", 20, 256, 3072, 96, 0.1, "cutlass_80_simt_sgemm_256x128_8x4_nn", 16, 2, 20],
    ]
    launches = read([write_csv(tmp_path / "a.csv", columns, rows)], Devices()).launches
    loaded = model()
    part = dict(zip(loaded.part_fields, launches.parts[:, 0].T))
    grid = dict(zip(loaded.grid_fields, launches.grids.T))
    assert part["count"].tolist() == [1 * 10 * 12, 12 * 2 * 20]
    assert part["loaded_registers"].min() > 0
    # Along x: M and the left operand of the first, N and the right one of the second.
    assert grid["blocks_x"].tolist() == [1, 12] and grid["blocks_y"].tolist() == [10, 2]
    assert grid["rhs_bytes"].tolist() == [4 * 256 * 96, 4 * 3072 * 96]
    assert grid["lhs_bytes"].tolist() == [4 * 640 * 96, 4 * 256 * 96]
    # A step reads 8 elements of a row of A, and all of the tile's columns of B.
    assert grid["rhs_run_bytes"].tolist() == [32, 4 * 256]
    assert grid["lhs_run_bytes"].tolist() == [4 * 64, 32]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.csv:1: expected a header"),
        ("x,y\n1,2\n", "a.csv:1: expected the columns of vendor rows"),
        (",".join(VENDOR) + "\n", "a.csv: expected rows"),
        (",".join(VENDOR) + "\nlinear,zz,1,8,8,8,1,k_32x32\n", "a.csv:2: .*expected a built-in"),
        (",".join(VENDOR) + "\nlinear,t4,1,8\n", "a.csv:2: expected 8 fields, but got 4"),
        (",".join(VENDOR) + "\nlinear,t4,1,8,8,8,nan,k_32x32\n", "a.csv:2: column 'latency_ms'"),
        ("kernel,M,N,K,latency_ms\nk_32x32,8,8,8,1\n", "expected a column 'device'"),
        ("kernel,kernel\n", "a.csv:1: expected each column once"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ftuner.Error, match=message):
        read([path], Devices())
    result = run("calibrate", path, "-o", tmp_path / "out.json")
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert not (tmp_path / "out.json").exists()


def test_broken_archives_and_missing_files(tmp_path: Path) -> None:
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"kernel\n" * 100)[:-12])
    for path in (packed, tmp_path / "none.csv"):
        with pytest.raises(ftuner.Error, match="cannot read the rows"):
            read([path], Devices())


# --- configurations --------------------------------------------------------------------------

XGEMM = "MWG NWG MDIMC NDIMC MDIMA NDIMB VWM VWN SA SB time_ms".split()


def test_configurations_that_do_not_differ_count_once(tmp_path: Path) -> None:
    one = [128, 128, 16, 8, 16, 8, 4, 2, 0, 1, 6.0]
    other = [*one]
    other[4] = 8  # MDIMA, but A is not staged.
    rows = [one, other, [*one[:8], 1, 1, 5.6]]
    path = write_csv(tmp_path / "gemm_configs_rtx3090.csv", XGEMM, rows)
    found = read([path], Devices())
    assert found.devices.names == ["rtx3090"] and found.microseconds.tolist() == [6000, 5600]
    assert 5000 < found.predict(model().calibration("global"))[1] < 7000


# --- fits ------------------------------------------------------------------------------------


def measured(
    path: Path, rng: np.random.Generator, count: int, noise: float
) -> tuple[MeasurementTable, dict]:
    """FTuner rows whose times follow from known constants."""
    lines = programs(rng, count)
    rows = read([write_csv(path, FTUNER, [[*row, 1] for row in lines])], Devices(only="v100"))
    true = model().calibration("global")
    true.update(block_start=6000.0, l2_bytes_per_cycle=7.0)
    times = rows.predict(true) * np.exp(rng.normal(0, noise, len(rows)))
    table = [[*row, repr(float(t))] for row, t in zip(lines, times)]
    return read([write_csv(path, FTUNER, table)], Devices(only="v100")), true


def test_fits_find_what_rows_determine(tmp_path: Path, rng: np.random.Generator) -> None:
    rows, true = measured(tmp_path / "a.csv", rng, 300, 0.02)
    prior = model().calibration("global")
    found = fit.fit_own(rows, prior)
    assert found.constants["block_start"] == pytest.approx(true["block_start"], rel=0.15)
    assert found.constants["l2_bytes_per_cycle"] == pytest.approx(7.0, rel=0.15)
    before = fit.error(rows.predict(prior), rows.microseconds)
    after = fit.error(rows.predict(found.constants), rows.microseconds)
    assert after < 0.03 < before
    for name in ("flop_energy", "spill"):  # Nothing spills, and nothing is at the power limit.
        assert found.constants[name] == prior[name] and name in found.unmoved


def test_the_prior_weighs_more_with_fewer_rows() -> None:
    weights = [fit.prior_weight(count) for count in (1, 30, 100, 1000, 10**6)]
    assert weights == sorted(weights, reverse=True) and weights[0] == 0.5 and weights[-1] == 0.1


def test_calibrate_writes_what_the_compiler_reads(tmp_path: Path, rng: np.random.Generator) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "my.json"
    measured(path, rng, 80, 0.03)
    report, figure = tmp_path / "report.md", tmp_path / "fit.svg"
    arguments = ("--device", "v100", "-o", out, "--report", report, "--plot", figure)
    result = run("calibrate", path, *arguments)
    assert result.returncode == 0, result.stderr
    assert "| block_start |" in result.stdout and report.read_text() == result.stdout
    assert "one kind" in result.stderr  # Its rows are all FTuner's.
    assert "<svg" in figure.read_text()
    data = json.loads(out.read_text())
    assert data["name"] == "v100" and data["fit"]["error_after"] < data["fit"]["error_before"]
    assert model().calibration(out)["block_start"] == data["constants"]["block_start"]
    source = ROOT / "examples" / "dense.mlir"
    explained = run(
        *("explain", source, "--device", "v100", "--size", "T=53", "--cost-model=latency"),
        f"--calibration={out}",
    )
    assert explained.returncode == 0, explained.stderr


def test_calibrate_several_devices(tmp_path: Path, rng: np.random.Generator) -> None:
    constants, rows = model().calibration("global"), []
    for device in ("t4", "v100", "a100", "p100"):
        for _ in range(60):
            m, n, k = (int(np.exp(rng.uniform(5, 8.5))) for _ in range(3))
            kernel = rng.choice(["volta_sgemm_128x64_nn", "volta_sgemm_64x64_tn"])
            rows.append(["linear", device, 1, m, n, k, 1, kernel])
    path = write_csv(tmp_path / "a.csv", VENDOR, rows)
    times = read([path], Devices()).predict(constants, 30.0) * rng.normal(1, 0.02, len(rows))
    for row, time in zip(rows, times):
        row[6] = time / 1e3
    write_csv(path, VENDOR, rows)
    result = run("calibrate", path, "--each", "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["a100.json", "global.json", "p100.json", "t4.json", "v100.json"]
    shared = json.loads((tmp_path / "out" / "global.json").read_text())
    assert shared["timing"]["offset_us"] == pytest.approx(30, rel=0.2)
    assert shared["fit"]["error_after"] < 0.04
    one = run("calibrate", path, "--device", "t4", "-o", tmp_path / "t4.json")
    assert one.returncode == 0 and "## t4" in one.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--constants", "speed"], 2, "expected some of fma"),
        (["--map", "x"], 2, "expected NAME=VALUE"),
        (["--prior", "none.json"], 1, "none.json"),
        (["--device", "t4"], 1, "expected rows of the device 't4'"),
        (["--plot", "/nowhere/a.svg"], 1, "/nowhere"),
        (["--report", "/nowhere/a.md"], 1, "/nowhere"),
    ],
)
def test_wrong_command_lines(
    tmp_path: Path, rng: np.random.Generator, arguments: list[str], code: int, message: str
) -> None:
    rows = [
        ["linear", "v100", 1, 512 + 8 * i, 512, 512, 0.1, "volta_sgemm_64x64_tn"] for i in range(12)
    ]
    path = write_csv(tmp_path / "a.csv", VENDOR, rows)
    result = run("calibrate", path, "-o", tmp_path / "out.json", *arguments)
    assert result.returncode == code and message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr and not (tmp_path / "out.json").exists()


def test_few_rows_are_refused(tmp_path: Path) -> None:
    row = ["linear", "v100", 1, 512, 512, 512, 0.1, "volta_sgemm_64x64_tn"]
    path = write_csv(tmp_path / "a.csv", VENDOR, [row])
    result = run("calibrate", path, "-o", tmp_path / "out.json")
    assert result.returncode == 1 and "expected at least 8 rows" in result.stderr


# --- the judgement ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--docs", "none.md", "cannot read '{path}': No such file or directory"),
        ("--docs", "plain.md", "'{path}': expected '<!-- judge: begin -->'"),
        ("--out", "plain.md", "cannot make the folder '{path}': File exists"),
    ],
)
def test_judge_tells_first_what_it_cannot_write(
    tmp_path: Path, option: str, name: str, message: str
) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "plain.md").write_text("# No marks\n")
    path = tmp_path / name
    options = {"--vendor": tmp_path / "none.csv", "--out": tmp_path / "out", option: path}
    command = [ROOT / "benchmarks" / "latency_model" / "judge.py", *sum(options.items(), ())]
    result = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and message.format(path=path) in result.stderr
    assert "Traceback" not in result.stderr and not (tmp_path / "out").exists()
