"""Rows that tensor maps copy: as many in the emulator as the codegen path counts from grid and boxes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ftuner import locations
from ftuner.proof import families
from scale import SCALE

#: Sizes of m beside and above the tiles' sizes.
ROWS = (1, 7, 8, 9, 63, 65, 100, 127, 129, 300)


def _families() -> list[families.Family]:
    known = [
        family
        for one in families.sets().values()
        for family in one.families
        if family.path == "wgmma" and "tma = true" in family.schedule
    ]
    return known if SCALE > 1 else known[3::7]


def _json(tool: str, *arguments: object) -> Any:
    command = [locations.tool(tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", _families(), ids=lambda family: str(family.symbol))
def test_rows_are_counted(family: families.Family, tmp_path: Path) -> None:
    # Whole steps along k: rows behind its end are not counted as outside.
    sizes = {**family.sizes, "k": 128}
    family = dataclasses.replace(family, sizes=sizes)
    file = tmp_path / "family.mlir"
    file.write_text(family.text())
    dynamic = [axis for axis, size in sizes.items() if not isinstance(size, int)]
    number = sum(map(ord, family.symbol))
    rows = ROWS if SCALE > 1 else (ROWS[number % len(ROWS)],)
    for row in rows if "m" in dynamic else (0,):
        shape = {**family.shapes()[-1], **({"m": row} if "m" in dynamic else {})}
        arguments = ",".join(
            "x".join([*(str(shape[axis]) for axis in axes), kind])
            for kind, axes in family.operands()
        )
        ran = _json(
            "ftuner-run", file, f"--function={family.symbol}", "--device=h100",
            "--executor=emulator", "--counters", "--json", f"--args={arguments}",
        )  # fmt: skip
        counted = ran["counters"][0]["box_rows"]
        batches = [axis for axis in family.results()[0][1] if axis not in "mn"]
        names = {"m": "M", "n": "N", **{axis: f"B{i}" for i, axis in enumerate(batches)}}
        named = ",".join(f"{names[axis]}={shape[axis]}" for axis in dynamic)
        explained = _json(
            "ftuner-translate", file, "--ftuner-explain", "--device=h100", "--json",
            "--paths=wgmma", *([f"--size={named}"] if named else []),
        )  # fmt: skip
        programs = [one["program"] for one in explained["workloads"][0]["shapes"]]
        assert [one["box_rows"] for one in programs] == [counted], f"{family.name}, {shape}"
        if "fit_boxes" in family.schedule and len(family.tiles) == 1:
            assert counted["outside"] * 2 <= counted["copied"] or row < 8
