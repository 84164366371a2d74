"""Runs fake_gpu.py with the fake driver; the driver is opened once for each process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent


def test_with_fake_driver() -> None:
    home = os.environ.get("FTUNER_HOME", "")
    driver = Path(home, "test/unit/Runtime/libFTunerFakeDriver.so")
    if not driver.is_file():
        pytest.skip("the fake driver is in build trees only")
    environment = {**os.environ, "FTRT_CUDA_DRIVER": str(driver)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "fake_gpu.py"]
    run = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
