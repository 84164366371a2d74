"""Commands without the packages of their extra, and the public modules of frontends."""

from __future__ import annotations

import subprocess
import sys

import pytest

from handmade import ROOT

MISSING_PACKAGES = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"scipy", "sklearn", "matplotlib"}:
            raise ImportError(name)

sys.meta_path.insert(0, Missing())
from ftuner.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "command, expected",
    [
        (
            "calibrate rows.csv -o folder",
            "ftuner calibrate needs SciPy: pip install 'ftuner[study]'",
        ),
        (
            "learn data rows.csv -o file",
            "ftuner learn data needs SciPy: pip install 'ftuner[learned]'",
        ),
        (
            "learn train rows.csv -o file",
            "ftuner learn needs PyTorch, SciPy and scikit-learn: pip install 'ftuner[learned]'",
        ),
    ],
)
def test_a_missing_extra_is_named(command: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING_PACKAGES, *command.split()], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == f"error: {expected}\n"
    extra = expected.rpartition("[")[2].partition("]")[0]
    with open(f"{ROOT}/pyproject.toml", encoding="utf-8") as file:
        assert f"\n{extra} = [" in file.read()


def test_the_studies_need_no_package() -> None:
    """A comparison runs where only NumPy is installed."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING_PACKAGES, "compare", "--help"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "strategies" in done.stdout


#: Names that documents and users import; one process, since PyTorch takes seconds to import.
PUBLIC = """
import ftuner, ftuner.iree, ftuner.latency, ftuner.learned
import ftuner.onnx_backend as backend
import ftuner.torch as ft
from ftuner.torch import aoti_compile_and_package, build_library, inductor_pass, report, reset_report
ft.export, ft.backend, ft.Options, ft.Report, ft.ExportedModel, ft.InductorPass, ft.capture_sizes
ftuner.iree.compile, ftuner.iree.Compiled, ftuner.iree.Report
backend.prepare, backend.Backend, backend.run_model, backend.run_node, backend.supports_device
ftuner.latency.model, ftuner.latency.Model, ftuner.latency.Launches
ftuner.cache.path, ftuner.compile, ftuner.Timeline
"""


def test_public_modules_keep_their_names() -> None:
    for package in ("torch", "onnx"):
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, "-c", PUBLIC], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
