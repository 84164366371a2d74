"""The kernels that ran on a card: which of today's differ from them is written down, and reviewed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks" / "results" / "h200-2026-11-26" / "proof" / "kernels"


def _compare(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        str(ROOT / "tools" / "proven_kernels.py"),
        "compare",
        str(folder),
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_differences_are_known() -> None:
    done = _compare(RECORD)
    assert done.returncode == 0, done.stderr
    known = json.loads((RECORD / "differences.json").read_text())
    families = json.loads((RECORD / "families.json").read_text())["families"]
    assert len({*known["equal"], *known["differ"], *known["gone"]}) == len(families)
    # Whoever reviews them names each instruction that a card has to prove.
    review = (RECORD / "README.md").read_text()
    kinds = {kind for one in known["differ"].values() for kind in one["instructions"]}
    assert not [kind for kind in sorted(kinds) if f"`{kind}`" not in review]


def test_a_new_difference_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(RECORD, folder)
    known = json.loads((folder / "differences.json").read_text())
    known["differ"]["wgmma_tensor_maps"] = {
        "instructions": {"wgmma.fence": [1, 2]},
        "arithmetic": True,
    }
    (folder / "differences.json").write_text(json.dumps(known))
    done = _compare(folder, "--only", "wgmma_tensor_maps")
    assert (
        done.returncode == 1
        and "does not say what is different of wgmma_tensor_maps" in done.stderr
    )


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    shutil.copytree(RECORD, folder)
    families = json.loads((folder / "families.json").read_text())
    families["families"]["wgmma_tensor_maps"]["ptx"] = "0" * 64
    (folder / "families.json").write_text(json.dumps(families))
    done = _compare(folder)
    assert (
        done.returncode == 1
        and "the PTX of wgmma_tensor_maps is not what families.json says" in done.stderr
    )
