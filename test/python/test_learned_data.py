"""Data sets of programs: the trees of each source's kernels by hand, files and their errors."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from commands import run_command
from ftuner.latency.model import model
from ftuner.learned import sources
from ftuner.learned.dataset import Dataset
from ftuner.learned.trees import Tree, loop

pytest.importorskip("scipy")


def write(path: Path, *rows: dict[str, Any]) -> str:
    lines = [",".join(rows[0]), *(",".join(f'"{value}"' for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def read(path: Path, *rows: dict[str, Any], **options: Any) -> Dataset:
    data, _ = sources.gather([write(path, *rows)], **options)
    assert len(data) == len(rows)
    return data


def numbers(data: Dataset, row: int = 0) -> list[dict[str, float]]:
    """Features of a row's statements, magnitudes as the numbers that they stand for."""
    (tree,) = data.trees[row]
    found = []
    for statement in tree.features:
        values = dict(zip(model().program_features(), statement.tolist()))
        found.append(
            {name: round(2**value - 1, 3) if value != 1 else 1.0 for name, value in values.items()}
        )
    # Products of lengths are exact to the digits of a magnitude in f32.
    return found


def is_near(value: float, wanted: float) -> bool:
    return value == pytest.approx(wanted, rel=2e-5)


VENDOR = dict(
    op="linear", device="v100", B=1, M=1000, N=700, K=500, latency_ms=0.5, kernel="volta_sgemm_128x64_tn", tile_m=128,
    tile_n=64, layout="tn", grid_x=6, grid_y=16, grid_z=2, block_x=128, block_y=1, block_z=1, num_kernels=2,
    aux_kernel="splitk_reduce", fold=3,
)  # fmt: skip


def test_vendor_product_with_slices_of_k(tmp_path: Path) -> None:
    data = read(
        tmp_path / "rows.csv",
        VENDOR,
        {**VENDOR, "op": "bmm", "B": 3, "layout": "nn", "grid_z": 3, "aux_kernel": ""},
    )
    # The name's 128 lies along N: 6 × 16 tiles, two slices of 250 elements in 32 steps of 8.
    blocks, steps = 6 * 16 * 2, 32
    assert data.trees[0][0].blocks == blocks
    statements = numbers(data)
    assert len(statements) == 7
    start, lhs, rhs, multiply, store, add, sums = statements
    assert is_near(start["iterations"], blocks * 64 * 128)
    assert is_near(lhs["iterations"], blocks * steps * 64 * 8) and is_near(
        rhs["iterations"], blocks * steps * 128 * 8
    )
    assert is_near(lhs["threads.x"], 128) and is_near(lhs["blocks.x"], blocks)
    assert is_near(multiply["float-multiply-add"], blocks * steps * 8 * 64 * 128)
    assert is_near(store["allocation.bytes"], 4 * 2 * 1000 * 700)
    assert is_near(add["iterations"], 2 * 256 * -(-700_000 // 256))
    assert is_near(sums["allocation.bytes"], 4 * 1000 * 700) and is_near(
        sums["float-add"], 256 * -(-700_000 // 256)
    )
    # Without slices the product of a batch adds no bias.
    statements = numbers(data, 1)
    assert data.trees[1][0].blocks == 3 * 6 * 16 and len(statements) == 5
    assert is_near(statements[3]["float-multiply-add"], 3 * 6 * 16 * 63 * 8 * 64 * 128)
    assert data.task_names[data.task[0]] == "linear 1x1000x700x500 f32 on v100"
    assert (
        data.fold.tolist() == [3, 3]
        and set(data.knowledge) == {"known"}
        and (data.predicted > 0).all()
    )


def test_linear_adds_its_bias(tmp_path: Path) -> None:
    data = read(tmp_path / "rows.csv", {**VENDOR, "grid_z": 1, "aux_kernel": ""})
    bias = numbers(data)[4]
    assert len(numbers(data)) == 6 and is_near(bias["float-add"], 6 * 16 * 64 * 128)


def test_joined_slices_store_the_output_once(tmp_path: Path) -> None:
    row = {
        **VENDOR, "M": 1024, "N": 1024, "K": 1024, "kernel": "volta_sgemm_32x32_sliced1x4_tn", "tile_m": 32, "tile_n": 32, "grid_x": 32,
        "grid_y": 32, "grid_z": 1, "aux_kernel": "",
    }  # fmt: skip
    statements = numbers(read(tmp_path / "rows.csv", row, {**row, "grid_z": 2}))
    join, bias, store = statements[-3:]
    assert is_near(join["float-add"], 4 * 1024 * 1024) and is_near(join["threads.x"], 128)
    for one in (bias, store):
        assert is_near(one["iterations"], 1024 * 1024)
    assert is_near(bias["float-add"], 1024 * 1024) and is_near(
        store["buffer0.bytes"] + store["buffer1.bytes"], 2 * 4 * 1024 * 1024
    )
    # One of two slices of K that blocks add up adds the bias.
    *_, store, bias = numbers(read(tmp_path / "rows.csv", row, {**row, "grid_z": 2}), 1)
    assert is_near(store["float-add"], 2 * 1024 * 1024) and is_near(bias["float-add"], 1024 * 1024)


def test_rows_at_the_launch_floor_are_left_out(tmp_path: Path) -> None:
    tiny = [
        {**VENDOR, "M": 10, "N": 10 + i, "K": 10, "latency_ms": 0.03, "grid_z": 1}
        for i in range(10)
    ]
    slow, fast = ({**VENDOR, "latency_ms": time} for time in (0.0601, 0.0599))
    data, (file,) = sources.gather([write(tmp_path / "rows.csv", *tiny, slow, fast)])
    assert len(data) == 1 and file.found.left_out == {"below twice the launch floor": 11}


XGEMM = dict(
    device="rtx3090",
    MWG=64,
    NWG=32,
    KWG=32,
    MDIMC=8,
    NDIMC=8,
    MDIMA=8,
    NDIMB=8,
    VWM=2,
    VWN=1,
    SA=1,
    SB=0,
    time_ms=5,
)


def test_configurations_of_one_task(tmp_path: Path) -> None:
    rows = [XGEMM, {**XGEMM, "SB": 1}, {**XGEMM, "SA": 0}]
    data = read(tmp_path / "rows.csv", *rows)
    assert [len(numbers(data, row)) for row in range(3)] == [4, 5, 3]
    start, copy, multiply, store = numbers(data)
    blocks = 64 * 128
    assert data.trees[0][0].blocks == blocks and is_near(multiply["threads.x"], 64)
    # 128 steps of 32 elements.
    assert is_near(copy["iterations"], blocks * 128 * 64 * 32) and is_near(
        copy["vectorized.length"], 2
    )
    assert is_near(multiply["float-multiply-add"], 4096.0**3)
    # What the kernel does not stage is read from global memory.
    assert is_near(store["allocation.bytes"], 4 * 4096 * 4096)
    assert len(set(data.task)) == 1 and data.group.tolist() == [0, 0, 0]
    # MDIMA has no effect where A is not staged.
    twice, (file,) = sources.gather(
        [write(tmp_path / "b.csv", {**XGEMM, "SA": 0}, {**XGEMM, "SA": 0, "MDIMA": 16})]
    )
    assert len(twice) == 1 and sum(file.found.left_out.values()) == 1


IMAGE = dict(
    device="w6600", block_size_x=32, block_size_y=4, tile_size_x=2, tile_size_y=1, read_only=0, use_padding=0,
    use_shmem=1, threads=128, smem_bytes=0, time_ms=4,
)  # fmt: skip


def test_image_convolution_on_foreign_cards(tmp_path: Path) -> None:
    rows = [
        IMAGE,
        {**IMAGE, "device": "mi250x", "use_shmem": 0},
        {**IMAGE, "device": "a4000", "use_padding": 1},
    ]
    data = read(tmp_path / "rows.csv", *rows)
    copy, start, multiply, store = numbers(data)
    blocks = 64 * 1024
    assert data.trees[0][0].blocks == blocks
    # 18 rows by 4 threads, 78 columns by 32.
    assert is_near(copy["iterations"], blocks * 128 * 5 * 3) and is_near(
        copy["allocation.bytes"], 4 * 18 * 78
    )
    assert is_near(multiply["float-multiply-add"], 4096 * 4096 * 225.0) and is_near(
        store["iterations"], 4096 * 4096
    )
    assert len(numbers(data, 1)) == 3
    # 78 columns and 18 more: as many banks from one row to the next as threads.
    assert is_near(numbers(data, 2)[0]["allocation.bytes"], 4 * 18 * 96)
    assert data.device_names == ["a4000", "mi250x", "w6600"] and np.isnan(data.predicted).all()
    assert data.device.tolist() == [2, 1, 0]
    # Compute units, and no matrix units in the one.
    assert 2 ** data.device_vectors[:, 0] - 1 == pytest.approx([48, 110, 28])
    assert data.device_vectors[2, 6] == 0 and data.device_vectors[1, 6] == pytest.approx(
        np.log2(1025)
    )
    empty, (file,) = sources.gather(
        [write(tmp_path / "b.csv", IMAGE, {**IMAGE, "tile_size_x": 3, "time_ms": ""})]
    )
    assert len(empty) == 1 and file.found.left_out == {"failed to launch": 1}


def test_no_kernels_are_made_for_foreign_cards() -> None:
    path = Path(sources.__file__).parent / "devices" / "mi250x.json"
    with pytest.raises(ftuner.Error, match="expected the description of a CUDA device"):
        model().device(path)


TOKENS = dict(
    device="a40",
    dtype="f16",
    layout="nt",
    M=512,
    N=4096,
    K=4096,
    latency_us=200,
    op="mlp",
    model="llama",
    tensor_parallel=1,
)


def test_tensor_products_are_proxies(tmp_path: Path) -> None:
    data = read(tmp_path / "rows.csv", TOKENS, {**TOKENS, "M": 64, "N": 512, "latency_us": 30})
    statements = numbers(data)
    # Tiles divide the product: each pair of elements is multiplied once.
    assert len(statements) == 6 and is_near(statements[3]["float-multiply-add"], 512 * 4096 * 4096)
    assert is_near(statements[5]["allocation.bytes"], 2 * 512 * 4096)
    assert (
        set(data.knowledge) == {"proxy"}
        and set(data.model) == {"llama"}
        and set(data.operator) == {"linear-f16"}
    )
    # A narrow product has slices, which a second kernel adds up.
    assert len(numbers(data, 1)) == 8 and (data.predicted > 0).all()
    hopper = read(tmp_path / "b.csv", {**TOKENS, "device": "h100"})
    # One instruction copies the whole tile.
    assert numbers(hopper)[1]["threads.x"] == 0 or is_near(numbers(hopper)[1]["threads.x"], 1)


def test_products_without_names(tmp_path: Path) -> None:
    row = dict(device="v100", dtype="f32", M=1760, N=128, K=1760, transpose="nn", latency_ms=0.1)
    rows = [
        row,
        {**row, "dtype": "f16"},
        {**row, "device": "p100", "dtype": "f16-store", "transpose": "tn"},
    ]
    data = read(tmp_path / "rows.csv", *rows)
    assert list(data.operator) == ["product-f32", "product-f16", "product-f16-store"]
    assert np.isnan(data.predicted).tolist() == [False, False, True]
    assert numbers(data)[3]["float-multiply-add"] >= 1760 * 128 * 1760 * (1 - 1e-5)
    assert set(data.knowledge) == {"proxy"}


def test_memory_bound_operators(tmp_path: Path) -> None:
    def row(op: str, rows: int, cols: int) -> dict[str, Any]:
        tensors = {"softmax": 2, "layernorm": 2, "add": 3}[op]
        return dict(
            op=op,
            device="v100",
            rows=rows,
            cols=cols,
            bytes=4 * tensors * rows * cols,
            latency_us=100,
        )

    sizes = [
        ("softmax", 1000, 512),
        ("softmax", 300, 3000),
        ("layernorm", 300, 1000),
        ("add", 100, 1000),
    ]
    data = read(tmp_path / "rows.csv", *(row(*size) for size in sizes))
    # Warps hold four rows of a block.
    held = numbers(data)
    assert (
        len(held) == 6
        and data.trees[0][0].blocks == 250
        and is_near(held[0]["iterations"], 1000 * 512)
    )
    # 512 threads read 3000 elements in two rounds of vectors of four, three times.
    looped = numbers(data, 1)
    assert (
        len(looped) == 5
        and is_near(looped[0]["iterations"], 300 * 512 * 2 * 4)
        and is_near(looped[0]["threads.x"], 512)
    )
    norm = numbers(data, 2)
    assert (
        len(norm) == 3
        and is_near(norm[0]["iterations"], 300 * 128 * 2 * 4)
        and is_near(norm[2]["allocation.bytes"], 4e3 * 300)
    )
    (add,) = numbers(data, 3)
    assert data.trees[3][0].blocks == 196 and is_near(add["float-add"], 196 * 512)
    assert is_near(sum(add[f"buffer{index}.bytes"] for index in range(3)), 12 * 196 * 512)


ATTENTION = dict(
    phase="prefill", device="h100", kernel="fa3", heads=8, kv_heads=2, head_dim=128, batch=3, q_len=512, kv_len=512,
    latency_us=50,
)  # fmt: skip


def test_attention_is_a_proxy(tmp_path: Path) -> None:
    decode = {**ATTENTION, "phase": "decode", "batch": 1, "q_len": 1, "kv_len": 4096}
    data = read(tmp_path / "rows.csv", ATTENTION, decode)
    # Four tiles of queries; of 8 tiles of keys they visit five on the average.
    statements = numbers(data)
    blocks = 3 * 8 * 4
    assert data.trees[0][0].blocks == blocks and len(statements) == 7
    assert is_near(statements[2]["float-multiply-add"], blocks * 5 * 128 * 64 * 128)
    assert is_near(statements[5]["float-multiply-add"], blocks * 5 * 128 * 64 * 128)
    assert is_near(statements[1]["iterations"], blocks * 5 * 64 * 128)
    # 2 blocks on 132 SMs: 16 slices of 256 keys, of four queries in a tile of 64.
    sliced = numbers(data, 1)
    assert data.trees[1][0].blocks == 32 and len(sliced) == 8
    assert is_near(sliced[2]["float-multiply-add"], 32 * 4 * 64 * 64 * 128)
    encoder = read(
        tmp_path / "b.csv",
        dict(
            device="h100", framework="vllm", heads=4, head_dim=64, batch=2, seq=256, latency_us=30
        ),
    )
    assert encoder.trees[0][0].blocks == 2 * 4 * 2 and list(encoder.operator) == [
        "attention-encoder"
    ]


def test_convolutions_by_algorithm(tmp_path: Path) -> None:
    row = dict(
        device="v100", B=2, C=16, K=64, H=32, latency_ms=0.2, algorithm="implicit_gemm",
        kernel="volta_scudnn_128x64_relu_small", num_kernels=1,
    )  # fmt: skip
    names = ("winograd", "winograd_nonfused", "fft")
    rows = [
        row,
        *({**row, "algorithm": name, "kernel": "volta_sgemm_128x128_nn"} for name in names),
    ]
    data, (file,) = sources.gather([write(tmp_path / "rows.csv", *rows)])
    assert len(data) == 3 and list(data.knowledge) == ["known", "proxy", "proxy"]
    assert list(file.found.left_out.values()) == [1]
    direct, fused, separate = (numbers(data, index) for index in range(3))
    assert data.trees[0][0].blocks == 16 and is_near(
        direct[3]["float-multiply-add"], 2 * 1024 * 64 * 16 * 9
    )
    # 512 tiles of four pixels in blocks of 32 × 32, with 16 products of each pair.
    assert data.trees[1][0].blocks == 32 and is_near(
        fused[3]["float-multiply-add"], 32 * 2 * 8 * 16 * 32 * 32
    )
    # 128 tiles of 16 pixels: 36 products of 128 × 64 × 16, in tiles of 128 × 128.
    assert len(separate) == 8 and is_near(separate[5]["float-multiply-add"], 36 * 2 * 8 * 128 * 128)


def test_operators_of_models(tmp_path: Path) -> None:
    row = dict(device="v100", model="bert", seq=64, batch=2, layers=4, times=4)
    rows = [
        dict(row, op="end_to_end", input_shapes="", output_shape="", latency_us=9000),
        dict(
            row,
            op="bert.output.dense",
            input_shapes="[[2,64,1024]]",
            output_shape="(2,64,512)",
            latency_us=300,
        ),
        dict(
            row,
            op="matmul",
            input_shapes="[[2,4,64,32],[2,4,32,64]]",
            output_shape="(2,4,64,64)",
            latency_us=90,
        ),
        dict(
            row,
            op="bert.LayerNorm",
            input_shapes="[[2,64,512]]",
            output_shape="(2,64,512)",
            latency_us=80,
        ),
        dict(row, op="sub", input_shapes="[[2]]", output_shape="(2,)", latency_us=20),
    ]
    data, (file,) = sources.gather([write(tmp_path / "rows.csv", *rows)])
    assert list(data.operator) == ["linear", "bmm", "layernorm-f32"] and set(data.model) == {"bert"}
    assert file.found.left_out == {"a whole model": 1, "below twice the least time of the card": 1}
    assert numbers(data)[3]["float-multiply-add"] >= 128 * 512 * 1024 * (1 - 1e-5)
    assert data.trees[2][0].blocks == 128 and (data.predicted > 0).all()
    with pytest.raises(ftuner.Error, match=r"rows.csv:2: columns 'input_shapes'"):
        sources.gather(
            [write(tmp_path / "rows.csv", {**rows[1], "input_shapes": "[[2,-64]]"}, rows[3])]
        )


LOG_LINE: dict[str, Any] = {
    "format_version": 3,
    "measurer": "gpu",
    "device": "v100",
    "workload": "s,s,r|lhs:f32(0,2)|rhs:f32(1,2)|output:f32(0,1)|7/4#0#1#2;multiply-add:f32:f32*1;sum:f32:zero/0;",
    "family": {
        "path": "simt",
        "schedule": {"threads_m": 8, "threads_n": 16, "stages": 2, "vector_width": 4},
        "axis": 0,
        "reduce_split": 1,
        "ukernels": [{"block_tile": [32, 64, 32], "register_tile": [4, 4, 1], "workers": 128}],
    },
    "shape": [64, 128, 96],
    "microseconds": 12.0,
}


def test_logs_of_measurers(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    lines = [
        LOG_LINE,
        {**LOG_LINE, "microseconds": 11.0},
        {**LOG_LINE, "shape": [64, 128, 192], "measurer": "model:latency"},
        {**LOG_LINE, "microseconds": None},
        {**LOG_LINE, "workload": "s,r|input:f32(0,1)"},
    ]
    log.write_text("\n".join(map(json.dumps, lines)) + '\n{"format_ver')
    data, (file,) = sources.gather([str(log)])
    assert data.microseconds.tolist() == [11.0, 12.0] and list(data.kind) == [
        "measured",
        "synthetic",
    ]
    assert set(file.found.left_out.values()) == {1} and len(file.found.left_out) == 3
    assert data.trees[0][0].blocks == 4 and is_near(
        numbers(data)[3]["float-multiply-add"], 64 * 128 * 96
    )
    assert data.task_names[data.task[0]] == "product 1x64x128x96 nt f32 on v100"
    wrong: dict[str, dict[str, Any]] = {
        "a.jsonl:1: the field 'family' is missing": {"family": None},
        "a.jsonl:1: expected a line of a log of version 3": {"format_version": 2},
        "a.jsonl:1: expected a time as 'microseconds', but got -1": {"microseconds": -1},
        "a.jsonl:1: .*threads": {
            "family": {
                **LOG_LINE["family"],
                "schedule": {**LOG_LINE["family"]["schedule"], "threads_m": 7},
            }
        },
    }
    family: dict[str, Any] = LOG_LINE["family"]

    def tiles(extent: Any) -> dict[str, Any]:
        return {**family, "ukernels": [{"block_tile": [extent, 64, 32]}]}

    wrong |= {
        "a.jsonl:1: expected a whole number from 0 to 2 as 'axis', but got 7": {
            "family": {**family, "axis": 7, "ukernels": 2 * family["ukernels"]}
        },
        "a.jsonl:1: expected a whole number from 1 to 2147483647 as an extent of 'block_tile', but got 10+$": {
            "family": tiles(10**30)
        },
        "a.jsonl:1: .* an extent of 'block_tile', but got '32'": {"family": tiles("32")},
        "a.jsonl:1: .* an extent of 'block_tile', but got 32.5": {"family": tiles(32.5)},
        "a.jsonl:1: .* an extent of 'shape', but got True": {"shape": [True, 128, 96]},
        "a.jsonl:1: .* as 'schedule.stages', but got 'q'": {
            "family": {**family, "schedule": {"stages": "q"}}
        },
        "a.jsonl:1: .* as 'reduce_split', but got -1": {"family": {**family, "reduce_split": -1}},
        "a.jsonl:1: expected a time as 'microseconds', but got True": {"microseconds": True},
        "a.jsonl:1: expected the name of a device as 'device', but got 5": {"device": 5},
        "a.jsonl:1: .*'foo'": {"device": "foo"},
        "a.jsonl:1: expected a text as 'workload', but got 5": {"workload": 5},
        "a.jsonl:1: expected an object as 'family', but got .1.": {"family": [1]},
        "a.jsonl:1: expected factors of one of f32, .*, but got f64": {
            "workload": LOG_LINE["workload"].replace("f32", "f64")
        },
    }
    for message, fields in wrong.items():
        line = {name: value for name, value in {**LOG_LINE, **fields}.items() if value is not None}
        log.write_text(json.dumps(line) + "\n" + json.dumps(LOG_LINE) + "\n")
        with pytest.raises(ftuner.Error, match=message):
            sources.gather([str(log)])


def test_synthetic_rows_are_named_so() -> None:
    data, _ = sources.gather([], synthetic=25, seed=3)
    again, _ = sources.gather([], synthetic=25, seed=3)
    assert (
        set(data.kind) == {"synthetic"}
        and set(data.source) == {"synthetic"}
        and len(set(data.device)) > 15
    )
    assert (data.microseconds == data.predicted).all() and data.task_names == again.task_names


def test_files_come_back(tmp_path: Path) -> None:
    data, _ = sources.gather(
        [write(tmp_path / "a.csv", VENDOR), write(tmp_path / "b.csv", XGEMM, {**XGEMM, "SB": 1})]
    )
    assert data.group.tolist() == [-1, 0, 0] and list(data.source) == ["a", "b", "b"]
    path = tmp_path / "a.dataset"
    digest = data.save(path)
    found = Dataset.load(path)
    for name in (*Dataset.NUMBERS, *Dataset.TEXTS):
        assert (getattr(found, name) == getattr(data, name)).all(), name
    assert found.task_names == data.task_names and found.device_names == data.device_names
    for written, read in zip(data.trees, found.trees):
        assert [tree.blocks for tree in written] == [tree.blocks for tree in read]
        assert all(
            (a.features == b.features).all() and (a.ordering == b.ordering).all()
            for a, b in zip(written, read)
        )
    assert found.save(tmp_path / "b.dataset") == digest
    assert data.select(np.array([1])).save(tmp_path / "c.dataset") != digest
    both = Dataset.concatenate([data, found])
    assert (
        len(both) == 6 and len(both.task_names) == 2 and both.group.tolist() == [-1, 0, 0, -1, 1, 1]
    )


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    data, _ = sources.gather([write(tmp_path / "a.csv", VENDOR)])
    path = tmp_path / "a.dataset"
    data.save(path)
    content = path.read_bytes()
    random = np.random.default_rng(4)
    for _ in range(40):
        damaged = bytearray(content)
        damaged[int(random.integers(len(damaged)))] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged[: len(damaged) - int(random.integers(2)) * 30])
        try:
            # A byte that says nothing, such as a date, may have changed.
            assert Dataset.load(path).microseconds.tolist() == [500.0]
        except ftuner.Error as error:
            assert re.search("is not a data set|cannot read", str(error))
    with pytest.raises(ftuner.Error, match="cannot read '/nowhere'"):
        Dataset.load("/nowhere")


def test_trees_name_what_is_wrong() -> None:
    tree = Tree(3)
    with tree.nest(loop("m", np.array([4, 0, -1]), "grid", 0)):
        tree.statement(
            "compute", {"float-add": 1}, reads=[tree.buffer("x", strides=[1], elements=4)]
        )
    with pytest.raises(
        ftuner.Error, match=r"row 2: loops\[0\].length: expected a whole number of at least 0"
    ):
        tree.features()
    other = Tree(1)
    other.statement("compute", {"float-sub": 1})
    with pytest.raises(
        ftuner.Error, match=r"statements\[0\].operations: unknown field 'float-sub'"
    ):
        other.features()
    large = Tree(2)
    with large.nest(*[loop("m", np.array([1, 2**31 - 1])) for _ in range(40)]):
        large.statement("compute", {"float-add": 1})
    with pytest.raises(
        ftuner.Error, match=r"row 1: statements\[0\]: expected features that are numbers"
    ):
        large.features()


def test_trees_are_asked_for_places_and_features_together() -> None:
    tree = Tree(1)
    tree.statement("compute", {"float-add": 1})
    text, values = tree.as_json()
    count, places, features = ctypes.c_int64(), (ctypes.c_int64 * 1)(), (ctypes.c_float * 164)()
    for some in ((places, None), (None, features)):
        with pytest.raises(ftuner.Error, match="expected ordering and features, or neither"):
            model()._call(
                "json_trees",
                text.encode(),
                values.ctypes.data_as(ctypes.c_void_p),
                ctypes.c_size_t(0),
                ctypes.c_size_t(1),
                ctypes.byref(count),
                *some,
                ctypes.c_size_t(1),
            )
        none = ctypes.c_void_p()
        with pytest.raises(ftuner.Error, match="expected ordering and features, or neither"):
            model()._call(
                "program_trees",
                b"h200",
                b"simt",
                none,
                ctypes.c_size_t(0),
                none,
                none,
                *some,
                ctypes.c_size_t(0),
            )


def learn(*arguments: str, code: int = 0) -> str:
    result = run_command("learn", *arguments, environment={"OMP_NUM_THREADS": "1"})
    assert result.returncode == code, result.stderr
    return str(result.stderr if code else result.stdout)


def test_the_command_makes_a_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    write(
        folder / "gemm_latency_train.csv",
        *({**VENDOR, "N": 700 + i, "fold": i % 5} for i in range(12)),
    )
    write(folder / "notes.csv", dict(unrelated=1))
    output = str(tmp_path / "a.dataset")
    found = json.loads(learn("data", str(folder), "-o", output, "--rows=10", "--seed=2", "--json"))
    # Published rows of a V100 are of a PCIe card.
    assert found["rows"] == 10 and found["counts"] == [
        dict(source="gemm_latency_train", device="v100-pcie", operator="linear", kind="measured", knowledge="known", rows=10)
    ]  # fmt: skip
    assert found["tasks"] == 10
    pytest.importorskip("torch")
    trained = learn("train", output, "-o", str(tmp_path / "p"), "--epochs=1", "--hold-out=0")
    assert "held out, by latency" in trained


def test_wrong_rows_are_errors(tmp_path: Path) -> None:
    foreign = tmp_path / "my.json"
    rows = write(tmp_path / "rows.csv", {**IMAGE, "device": "my"})
    cases: dict[str, dict[str, Any]] = {
        "rows.csv:2: column 'device': expected a built-in device": {},
        "--sources: expected some of ftuner, .*, but got 'none'": {"only": ["none"]},
        "cannot read the device '/nowhere'": {"device_files": ["/nowhere"]},
        "my.json: field 'figures': expected sm_count, ": {"device_files": [str(foreign)]},
    }
    foreign.write_text('{"name": "my", "figures": {"sm_count": 3}}')
    for message, options in cases.items():
        with pytest.raises(ftuner.Error, match=message):
            sources.gather([rows], **options)
    figures = json.loads((Path(sources.__file__).parent / "devices" / "w6600.json").read_text())[
        "figures"
    ]
    foreign.write_text(json.dumps({"name": "my", "figures": figures}))
    assert sources.gather([rows], device_files=[str(foreign)])[0].device_names == ["my"]
    with pytest.raises(ftuner.Error, match=r"other.csv:1: expected the columns of one of ftuner"):
        sources.gather([write(tmp_path / "other.csv", dict(unrelated=1))])
    target = tmp_path / "a.dataset"
    error = learn("data", write(tmp_path / "b.csv", {**VENDOR, "M": 0}), "-o", str(target), code=1)
    assert (
        "b.csv:2: column 'M': expected a whole number of at least 1" in error
        and not target.exists()
    )
    assert "or --synthetic" in learn("data", "-o", str(target), code=2)
