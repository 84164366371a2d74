"""benchmarks/recorded_set compares: what it takes for equal, and what it tells of the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handmade import ROOT

SCRIPT = Path(ROOT, "benchmarks", "recorded_set", "recorded_set.py")

PTX = """.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];

	// .globl	f_0_k0

.visible .entry f_0_k0(
	.param .u64 .ptr .align 1 f_0_k0_param_0
)
{
	ld.param.b64 	%rd1, [f_0_k0_param_0];
	mov.b32 	%r1, memory;
	bra 	$L__BB0_1;
$L__BB0_1:
	ret;
}
	// .globl	f_rest_0

.visible .entry f_rest_0(
	.param .u64 .ptr .align 1 f_rest_0_param_0
)
{
	bra 	$L__BB1_1;
$L__BB1_1:
	ret;
}
"""

MANIFEST: dict[str, Any] = {
    "format_version": 2,
    "kernels": [
        {
            "entry": "f_0_k0",
            "workload": "f_0",
            "parameters": [
                {"name": "lhs", "kind": "pointer", "type": "f32", "access": "read"},
                {"name": "first_part_blocks", "kind": "part", "type": "i32"},
                {"name": "extra0", "kind": "scalar", "type": "f32"},
                {"name": "extra1", "kind": "scalar", "type": "f64"},
            ],
        },
        {"entry": "f_rest_0", "workload": None},
    ],
    "workloads": [
        {
            "name": "f_0",
            "plan": "plan_0",
            "families": [
                {
                    "kernel": "f_0_k0",
                    "path": "simt",
                    "stages": 3,
                    "vector_width": 4,
                    "axis": 0,
                    "ukernels": [
                        {
                            "shared_memory_tile": [32, 64, 16],
                            "register_tile": [2, 4, 1],
                            "reduce_split": 1,
                        },
                        {
                            "shared_memory_tile": [48, 64, 16],
                            "register_tile": [3, 4, 1],
                            "reduce_split": 1,
                        },
                    ],
                }
            ],
            "predictions": [{"shape": [1, 64, 64], "predicted_us": 2.5}],
        }
    ],
}


def with_schedules(manifest: dict[str, Any]) -> dict[str, Any]:
    """Returns the manifest with schedules in its families, as format 3 has them."""
    result: dict[str, Any] = json.loads(json.dumps(manifest))
    result["format_version"] = 3
    for family in result["workloads"][0]["families"]:
        family["schedule"] = {"threads_m": 16, "threads_n": 16}
        family["schedule"].update({key: family.pop(key) for key in ("stages", "vector_width")})
        family["reduce_split"] = 1
        family["ukernels"] = [
            {
                "block_tile": part["shared_memory_tile"],
                "register_tile": part["register_tile"],
                "workers": 256,
            }
            for part in family["ukernels"]
        ]
    return result


def with_parts_last(manifest: dict[str, Any]) -> dict[str, Any]:
    """Returns the manifest with kernels by the ABI of version 4."""
    result = with_schedules(manifest)
    result["format_version"] = 4
    pointer, part, scale, offset = result["kernels"][0]["parameters"]
    halves = [{**offset, "kind": kind} for kind in ("scalar_low", "scalar_high")]
    result["kernels"][0]["parameters"] = [pointer, scale, *halves, part]
    return result


def renamed(text: str) -> str:
    for name, other in (
        ("f_0", "a_longer_name_0"),
        ("f_rest", "x"),
        ("plan_0", "p"),
        ("memory", "m"),
    ):
        text = text.replace(name, other)
    return text.replace("shared_m_tile", "shared_memory_tile")


def write(folder: Path, ptx: str, manifest: str, refused: str | None = None) -> str:
    folder.mkdir()
    (folder / "one.mlir").write_text("module {}")
    (folder / "one.ptx").write_text(ptx)
    (folder / "one.json").write_text(manifest)
    (folder / "record.json").write_text(
        json.dumps({"one": {"device": "a100", "flags": [], "refused": refused, "seconds": 1}})
    )
    return str(folder)


def compare(before: str, after: str) -> tuple[int, str]:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "compare", before, after], capture_output=True, text=True
    )
    assert not run.stderr
    return run.returncode, run.stdout


@pytest.fixture
def before(tmp_path: Path) -> str:
    return write(tmp_path / "before", PTX, json.dumps(MANIFEST))


@pytest.mark.parametrize("version", [with_schedules, with_parts_last])
def test_names_and_versions_are_no_difference(
    tmp_path: Path, before: str, version: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    after = write(tmp_path / "after", renamed(PTX), renamed(json.dumps(version(MANIFEST))))
    assert compare(before, after) == (
        0,
        "1 of 1 cases identical (2 kernels; 0 refused by both), 0 different\n",
    )


def test_former_names_of_schedules_are_no_difference(tmp_path: Path) -> None:
    former, now = (with_parts_last(MANIFEST) for _ in range(2))
    now["format_version"] = 5
    for family in former["workloads"][0]["families"]:
        family["schedule"] = {
            "groups_m": 2,
            "groups_n": 1,
            "stages": 4,
            "producers": 1,
            "tensor_maps": 1,
            "turns": 2,
        }
    for family in now["workloads"][0]["families"]:
        family["schedule"] = {"warpgroups_m": 2, "warpgroups_n": 1, "stages": 4}
        family["schedule"].update({"producer_warpgroups": 1, "tma": 1, "ping_pong": 1})
    before = write(tmp_path / "before", PTX, json.dumps(former))
    assert compare(before, write(tmp_path / "same", PTX, json.dumps(now)))[0] == 0
    now["workloads"][0]["families"][0]["schedule"]["ping_pong"] = 0
    status, text = compare(before, write(tmp_path / "other", PTX, json.dumps(now)))
    assert status == 1 and "schedule.ping_pong: 1 and 0" in text


CHANGES = [
    ("ptx", "mov.b32", "mov.u32", "kernel f_0_k0: line 6: mov.b32"),
    ("ptx", ".target sm_80", ".target sm_90", "PTX before the kernels: line 2"),
    # A branch to another block of the kernel, not another number of the kernel.
    ("ptx", "bra \t$L__BB1_1", "bra \t$L__BB1_2", "kernel f_rest_0: line 5"),
    ("ptx", PTX[PTX.index("\t// .globl	f_rest_0") :], "", "2 and 1 kernels"),
    (
        "json",
        '"stages": 3',
        '"stages": 2',
        ".workloads[0].families[0].canonical_family.schedule.stages: 3 and 2",
    ),
    ("json", "[3, 4, 1]", "[6, 4, 1]", ".families[0].canonical_family.thread_tiles[1][0]: 3 and 6"),
    (
        "json",
        '"kernel": "f_0_k0"',
        '"kernel": "f_rest_0"',
        ".families[0].kernel: '<kernel 0>' and '<kernel 1>'",
    ),
    ("json", "2.5", "2.25", ".predictions[0].predicted_us: 2.5 and 2.25"),
    (
        "json",
        '"reduce_split": 1',
        '"other": 1',
        "expected the keys reduce_split, register_tile, shared_memory_tile",
    ),
    (
        "json",
        '"format_version": 2',
        '"format_version": 99',
        "no canonical form of format version 99",
    ),
    ("json", "]}]}", "", "manifest: "),
]


@pytest.mark.parametrize("kind, old, new, expected", CHANGES)
def test_tells_what_differs(
    tmp_path: Path, before: str, kind: str, old: str, new: str, expected: str
) -> None:
    texts = {"ptx": PTX, "json": json.dumps(MANIFEST)}
    assert old in texts[kind]
    texts[kind] = texts[kind].replace(old, new)
    status, printed = compare(before, write(tmp_path / "after", texts["ptx"], texts["json"]))
    assert status == 1
    assert printed.startswith("DIFFERENT one\n") and expected in printed


def test_tells_of_refusals_and_missing_cases(tmp_path: Path, before: str) -> None:
    status, printed = compare(before, write(tmp_path / "after", "", "", "error: no"))
    assert status == 1 and "refused after: error: no" in printed
    (tmp_path / "after" / "record.json").write_text("{}")
    status, printed = compare(before, str(tmp_path / "after"))
    assert status == 1 and "only before" in printed
