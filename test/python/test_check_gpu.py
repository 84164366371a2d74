"""`ftuner check-gpu` over the stand-in driver (lib/CudaEmulator), and what its verdict changes.

The driver is opened once for each process, so commands run in processes of their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import run_command
from ftuner import compiler, locations
from ftuner.describe import descriptions
from ftuner.proof import families, numbers, pointwise_operators, row_operators, verdicts
from scale import SCALE

Run = Callable[..., Any]

#: A few families, so that tests are quick; for wgmma the ways that differ most.
FEW = {
    "chains": ["bias and square, f16", "sum with a transposed tensor, bf16"],
    "simt": ["f32"],
    "mma": ["bf16"],
    "rows": ["softmax, f32, several rows a warp", "layer norm of a sum, f16, any alignment"],
    "wgmma": [
        "warp specialization and TMA",
        "ping-pong",
        "tf32, rounded by tensor maps",
        "fitted boxes, swapped operands",
    ],
}
GATE = "wgmma.fit_boxes"
BROKEN = "wgmma_ping_pong"
PRODUCT = """
func.func @f(%a: tensor<256x64xbf16>, %b: tensor<64x256xbf16>) -> tensor<256x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x64xbf16>, tensor<64x256xbf16>)
                     outs(%i : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}
"""


def home() -> Path:
    return locations.prefixes()[0]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix like the build tree's, with few families; with FTUNER_TEST_SCALE it has all."""
    prefix = tmp_path_factory.mktemp("home")
    for name in ("bin", "lib"):
        (prefix / name).symlink_to(home() / name)
    proofs = prefix / "share" / "ftuner" / "proofs"
    proofs.mkdir(parents=True)
    for name in ("devices", "calibrations"):
        (proofs.parent / name).symlink_to((home() / "share" / "ftuner" / name).resolve())
    for path, names in FEW.items():
        data = json.loads((home() / locations.PROOFS / f"{path}.json").read_text())
        if SCALE == 1:
            data["families"] = [one for one in data["families"] if one["name"] in names]
            assert len(data["families"]) == len(names)
        (proofs / f"{path}.json").write_text(json.dumps(data))
    return prefix


def families_of(prefix: Path) -> list[families.Family]:
    known = families._sets_in(prefix / locations.PROOFS).values()
    return [family for one in known for family in one.families]


@pytest.fixture(scope="module")
def kernels(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with the kernels of the families, for the stand-in driver."""
    library = tmp_path_factory.mktemp("kernels") / "libfamilies.so"
    text = "".join(family.text() for family in families_of(few))
    source = compiler.SourceText("families.mlir", text.encode())
    device = descriptions.resolve("h100")
    compiler.build_library(source, device, compiler.Options([]), library, emulate=True)
    return library


@pytest.fixture
def on_card(few: Path, kernels: Path, tmp_path: Path) -> Run:
    """Runs `ftuner` with a stand-in driver that shows a card; each test has its own cache."""

    def run(*arguments: str, code: str = "", **variables: str) -> Any:
        environment = {
            **os.environ,
            "FTUNER_HOME": str(few),
            "FTUNER_CACHE_DIR": str(tmp_path / "cache"),
            "FTRT_CUDA_DRIVER": str(home() / "lib/cuda-emulator/libcuda.so.1"),
            "FTRT_EMULATED_LIBRARIES": str(kernels),
            "FTUNER_CHECK_GPU": "0",
            **variables,
        }
        if not code:
            return run_command(*arguments, environment=environment)
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )

    return run


def check(run: Run, *arguments: str, fails: bool = False, **variables: str) -> Any:
    """The JSON of check-gpu."""
    done = run("check-gpu", "--json", *arguments, **variables)
    assert done.returncode == (1 if fails else 0), done.stdout + done.stderr
    return json.loads(done.stdout)


#: Compiles with several options, and prints what the search could take each time.
COMPILE = """
import json, sys, warnings
import ftuner
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for options in json.loads(sys.argv[2]):
        module = ftuner.compile(sys.argv[1], emulate=False, max_kernels=1, **options)
        search = module.manifest["workloads"][0]["search"]
        print(json.dumps([search["paths"], search["proven_paths"], str(module.library_path)]))
print(json.dumps([str(warning.message) for warning in caught]))
"""
LEFT = ["simt", "mma", "rows", "chains"]
ALL = ["simt", "mma", "wgmma", "rows", "chains"]


def compile_for(run: Run, *options: dict[str, Any], **variables: str) -> Any:
    """Paths, proven ones and library for each of the options, for the card; and what warned."""
    given = [{"device": "cuda", **one} for one in options or ({},)]
    done = run(PRODUCT, json.dumps(given), code=COMPILE, **variables)
    assert done.returncode == 0, done.stderr
    *found, words = map(json.loads, done.stdout.splitlines())
    return found, words


def test_no_gpu(on_card: Run) -> None:
    done = on_card("check-gpu", FTRT_CUDA_DRIVER="/missing/libcuda.so")
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"error: there is no GPU to check: .*/missing/libcuda.so.*\n", done.stderr)


def test_passed_gate_opens(on_card: Run, few: Path, tmp_path: Path) -> None:
    ((paths, proven, before),), words = compile_for(on_card)
    assert paths == ALL and proven == []
    assert len(words) == 1 and f"the gate {GATE} is left out" in words[0]
    assert "run ftuner check-gpu" in words[0]

    report = check(on_card)
    assert {path: verdict["passed"] for path, verdict in report["paths"].items()} == {
        "simt": True, "mma": True, "rows": True, "chains": True, "wgmma": True, GATE: True,
    }  # fmt: skip
    assert report["card"] == {
        "name": "FTuner emulator", "capability": "9.0", "sm_count": 132, "driver": "for CUDA 12.4",
    }  # fmt: skip
    found = [(one["path"], one["name"], one["status"]) for one in report["families"]]
    assert found == [(family.group, family.name, "passed") for family in families_of(few)]
    assert Path(report["file"]).parent == tmp_path / "cache" / "verdicts"

    # Paths that are forced are not there by a verdict; another device is not the card.
    given = [
        {},
        {"paths": "auto"},
        {"paths": "wgmma"},
        {"paths": "simt,mma,rows,chains"},
        {"device": "h100"},
    ]
    found, words = compile_for(on_card, *given)
    assert words == []
    assert [one[0] for one in found] == [ALL, ALL, ["wgmma"], LEFT, ALL]
    assert [one[1] for one in found] == [[GATE], [GATE], [], [], []]
    assert before != found[0][2], "the cache must tell them apart"


def test_failed_family_keeps_the_path_out(on_card: Run) -> None:
    report = check(on_card, fails=True, FTRT_EMULATED_FAULTS=f"lost:{BROKEN}")
    verdict = report["paths"]["wgmma"]
    assert (
        not verdict["passed"] and verdict["family"] == "ping-pong" and verdict["status"] == "failed"
    )
    assert "m = 1, n = 136, k = 136: relative error inf" in verdict["words"]
    assert report["paths"]["mma"]["passed"] and report["paths"]["rows"]["passed"]
    # What is behind it ran.
    assert report["families"][-1]["status"] == "passed"

    found, words = compile_for(on_card, {}, {"paths": "simt,mma,wgmma,rows,chains"})
    # A path that is left out takes its gates with it.
    assert [one[:2] for one in found] == [[LEFT, []], [ALL, []]]
    assert "family 'ping-pong' failed" in words[0]
    # Once it is mended the path is checked by itself, and verdicts on others stay.
    assert list(check(on_card, "--paths=wgmma")["paths"]) == ["wgmma"]
    assert compile_for(on_card)[0][0][:2] == [ALL, [GATE]]


def test_failed_gate_stays_closed(on_card: Run) -> None:
    report = check(on_card, fails=True, FTRT_EMULATED_FAULTS="lost:wgmma_fitted_boxes_swapped")
    assert report["paths"]["wgmma"]["passed"] and not report["paths"][GATE]["passed"]
    ((paths, proven, _),), words = compile_for(on_card)
    assert paths == ALL and proven == []
    assert f"the gate {GATE} is left out" in words[0] and "failed" in words[0]
    done = on_card("check-gpu", f"--paths={GATE}")
    assert done.returncode == 0 and "wgmma.fit_boxes: 1 of 1 families passed" in done.stdout


def test_first_use_checks_the_card(on_card: Run, tmp_path: Path) -> None:
    """A part without a verdict is checked once, before its first use."""
    found, words = compile_for(on_card, {}, {}, FTUNER_CHECK_GPU="1")
    assert words == [] and [one[:2] for one in found] == [[ALL, [GATE]]] * 2
    (file,) = (tmp_path / "cache" / "verdicts").iterdir()
    written = file.stat().st_mtime_ns
    assert compile_for(on_card, FTUNER_CHECK_GPU="1")[0][0][1] == [GATE]
    assert file.stat().st_mtime_ns == written
    file.unlink()
    # What fails then is left out, though it is open.
    ((paths, *_),), words = compile_for(
        on_card, FTUNER_CHECK_GPU="1", FTRT_EMULATED_FAULTS=f"lost:{BROKEN}"
    )
    assert paths == LEFT and "family 'ping-pong' failed" in words[0]


def test_hanging_family_is_named(on_card: Run) -> None:
    done = on_card("check-gpu", "--timeout=3", FTRT_EMULATED_FAULTS=f"hang:{BROKEN}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ping-pong: HUNG: no answer within 3 s" in done.stdout
    assert "tf32, rounded by tensor maps: SKIPPED" in done.stdout
    assert re.search(r"simt: (\d+) of \1 families passed", done.stdout)
    assert "wgmma: FAILED: family 'ping-pong' hung" in done.stdout
    ((paths, *_),), words = compile_for(on_card)
    assert paths == LEFT and "family 'ping-pong' hung" in words[0]


def test_failing_launch_ends_the_process(on_card: Run) -> None:
    """A driver that reports a failure may have lost its context: others run in a new process."""
    report = check(on_card, fails=True, FTRT_EMULATED_FAULTS="fail:mma_")
    assert report["paths"]["simt"]["passed"] and report["paths"]["wgmma"]["passed"]
    assert "was made to fail" in report["paths"]["mma"]["words"]
    assert compile_for(on_card)[0][0][0] == ["simt", "wgmma", "rows", "chains"]


@pytest.mark.parametrize("content", ["", "[1]", '{"format_version": 1}', "{" * 10000])
def test_corrupt_verdict(content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path))
    card = verdicts.Card("A card", "9.0", 132, "1.2")
    file = verdicts.write(card, {"wgmma": verdicts.PathVerdict(True)}, [])
    assert verdicts.read(card) == {"wgmma": verdicts.PathVerdict(True)}
    file.write_text(content)
    with pytest.warns(match="ignored the verdict .*; run ftuner check-gpu again"):
        assert verdicts.read(card) == {}


def test_verdicts_are_of_one_card_and_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FTUNER_CACHE_DIR", str(tmp_path))
    card = verdicts.Card("NVIDIA H100 80GB HBM3", "9.0", 132, "570.86")
    file = verdicts.write(card, {"wgmma": verdicts.PathVerdict(True)}, [])
    assert file.name.startswith("nvidia-h100-80gb-hbm3-")
    assert verdicts.read(verdicts.Card(card.name, "9.0", 132, "575.51")) == {}
    assert verdicts.read(verdicts.Card("NVIDIA H200", "9.0", 132, "570.86")) == {}
    known = descriptions.devices()
    assert [name for name in known if card.is_described_by(known[name])] == ["h100"]
    # Another set of families is another question.
    data = json.loads(file.read_text())
    data["paths"]["wgmma"]["set"] = "other"
    file.write_text(json.dumps(data))
    assert verdicts.read(card) == {}
    # It keeps what it says of other paths.
    verdicts.write(card, {"simt": verdicts.PathVerdict(False, "f32", "failed", "")}, [])
    assert set(json.loads(file.read_text())["paths"]) == {"simt", "wgmma"}


def test_other_capability(on_card: Run) -> None:
    done = on_card("check-gpu", "--paths=wgmma", FTRT_EMULATED_CAPABILITY="8.0")
    assert done.returncode == 1
    assert "error: the codegen path wgmma is not for FTuner emulator" in done.stderr
    done = on_card("check-gpu", "--paths=hgmma")
    assert done.returncode == 1
    assert (
        "paths: expected some of chains, mma, rows, simt, wgmma, wgmma.fit_boxes, but got"
        in done.stderr
    )
    done = on_card("check-gpu", "--timeout=0")
    assert done.returncode == 2 and "--timeout: expected seconds above 0" in done.stderr
    done = on_card("check-gpu", "--gpu=3")
    assert done.returncode == 1 and "there is no GPU 3 to check: this machine has 1" in done.stderr


def test_numbers() -> None:
    good = np.ones((3, 4))
    assert numbers.relative_error(good, good) == 0
    assert numbers.relative_error(np.full((3, 4), np.nan), good) == float("inf")
    one_off = good.copy()
    one_off[1, 2] = 0
    assert numbers.relative_error(one_off, good) == pytest.approx(12**-0.5)
    values = np.array([1.0, -2.5, 1 + 2**-8, 1 + 3 * 2**-8], np.float32)
    np.testing.assert_array_equal(
        numbers.from_bf16(numbers.to_bf16(values)), [1, -2.5, 1, 1 + 2**-6]
    )
    known = [family for one in families.sets().values() for family in one.families]
    assert len({family.symbol for family in known}) == len(known)


def test_wrong_rows_are_found(on_card: Run) -> None:
    """A kernel of rows that computes nothing leaves NaN in every result."""
    broken = "lost:rows_layer_norm_of_a_sum_f16_any"
    verdict = check(on_card, "--paths=rows", fails=True, FTRT_EMULATED_FAULTS=broken)["paths"][
        "rows"
    ]
    assert verdict["family"] == "layer norm of a sum, f16, any alignment"
    assert "m = 5, r = 1: relative error inf" in verdict["words"]


def test_row_numbers() -> None:
    """Checks accept the right result of rows, and find a second result that is wrong."""
    known = families.sets()["rows"].families
    assert {family.operator for family in known} == set(row_operators.OPERATORS)
    family = next(one for one in known if one.operator == "layer_norm")
    given = numbers.arguments(family, {"m": 3, "r": 40})
    total, normed = numbers.expected(family, given)
    np.testing.assert_allclose(total, given[0].astype(np.float64) + given[1])
    restored = (normed - given[3]) / given[2]
    np.testing.assert_allclose(restored.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(restored.std(axis=1), 1, rtol=1e-4)


def test_chain_numbers() -> None:
    """Families compute every chain, and checks expect the right results of one."""
    known = families.sets()["chains"].families
    assert {family.operator for family in known} == set(pointwise_operators.OPERATORS)
    family = next(one for one in known if one.operator == "bias")
    x, bias = given = numbers.arguments(family, {"m": 3, "n": 40})
    total, square = numbers.expected(family, given)
    np.testing.assert_allclose(total, x.astype(np.float64) + bias)
    np.testing.assert_allclose(square, total**2)


@pytest.mark.parametrize("path", FEW)
def test_plans_are_legal(path: str, tmp_path: Path) -> None:
    """Plans of all families are legal on a card of 9.0 and on the oldest card of the path."""
    known = families.sets()[path]
    for device in (
        "h100",
        {"chains": "k80", "simt": "k80", "rows": "k80", "mma": "t4", "wgmma": "h200"}[path],
    ):
        capability = families.parse_capability(descriptions.devices()[device]["compute_capability"])
        own = known.for_card(capability)
        assert own
        file = tmp_path / f"{device}.mlir"
        file.write_text("".join(family.text() for family in own))
        command = [locations.tool("ftuner-opt"), file, f"--ftuner-front-end=device={device}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
