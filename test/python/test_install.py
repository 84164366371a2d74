"""The package as a wheel lays it out: tools and runtime in the package's own folder.

Puts the files together as the build backend does, without compiling anything again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ftuner
from handmade import ROOT

tomllib = pytest.importorskip("tomllib")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package."""
    build = Path(os.environ.get("FTUNER_HOME", ""))
    if not (build / "CMakeCache.txt").is_file() or not shutil.which("cmake"):
        pytest.skip("expected FTUNER_HOME to be a build tree")
    folder = tmp_path_factory.mktemp("site")
    package = folder / "ftuner"
    shutil.copytree(
        ROOT / "python" / "ftuner", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    (generated,) = project["tool"]["scikit-build"]["generate"]
    text = generated["template"].replace("${version}", ftuner.__version__)
    (folder / generated["path"]).write_text(text)
    scripts = folder / "bin"
    scripts.mkdir()
    for name, target in project["project"]["scripts"].items():
        module, function = target.split(":")
        script = scripts / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"from {module} import {function}\nsys.exit({function}())\n"
        )
        script.chmod(0o755)
    command = ["cmake", "--install", str(build), "--prefix", str(package)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def run(site: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    del environment["FTUNER_HOME"]
    result = subprocess.run(
        command, cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_example(site: Path) -> None:
    """The README's example needs nothing but the package."""
    text = run(site, sys.executable, str(ROOT / "examples" / "python" / "dense.py"))
    assert "(53, 2304) float32, relative error" in text


def test_version(site: Path) -> None:
    """All programs print the same versions, FTuner's first."""
    texts = {
        run(site, str(site / "bin" / name), "--version")
        for name in ("ftuner", "ftuner-opt", "ftuner-translate", "ftuner-run")
    }
    assert len(texts) == 1, texts
    assert texts.pop().startswith(f"FTuner {ftuner.__version__}\n")


@pytest.mark.parametrize("name", ["ftuner-opt", "ftuner-translate", "ftuner-run"])
def test_tools(site: Path, name: str) -> None:
    text = run(site, str(site / "bin" / name), "--help")
    assert name in text and "USAGE" in text


def test_headers(site: Path) -> None:
    """C programs find the runtime in the package."""
    assert (site / "ftuner" / "include" / "FTuner" / "Runtime" / "ftrt.h").is_file()
    assert (site / "ftuner" / "lib" / "cmake" / "FTuner" / "FTunerConfig.cmake").is_file()


def test_without_tools(site: Path, tmp_path: Path) -> None:
    """A package without its programs has a version, and says what is missing."""
    shutil.copytree(site / "ftuner", tmp_path / "ftuner", ignore=shutil.ignore_patterns("bin"))
    version = run(tmp_path, sys.executable, "-m", "ftuner", "--version")
    assert version == f"FTuner {ftuner.__version__}\n"
    code = (
        "import ftuner\n"
        "try:\n    ftuner.compile('func.func @f() {\\n}', emulate=True)\n"
        "except ftuner.Error as error:\n    print(error)"
    )
    text = run(tmp_path, sys.executable, "-c", code)
    assert "cannot find 'bin/ftuner-translate'" in text and "set FTUNER_HOME" in text
