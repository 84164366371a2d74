"""Fixtures: a hand-made library, compiled examples, and a cache of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from handmade import build_handmade
from scale import SCALE


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "everything: runs with FTUNER_TEST_SCALE above 1 alone")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if SCALE == 1 and item.get_closest_marker("everything")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run with skipped tests if everything is installed (tools/setup.sh)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "FTUNER_TEST_NO_SKIP" in os.environ and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests never use the cache of their user, or of other files of tests."""
    folder = tmp_path_factory.mktemp("cache")
    # But for libraries that are compiled against PyTorch: the tests of a build tree share them.
    shared = Path(
        os.environ.get("FTUNER_HOME") or folder.parent, "test", "python", "torch_libraries"
    )
    try:
        shared.mkdir(parents=True, exist_ok=True)
        (folder / "torch").symlink_to(shared)
    except OSError:
        pass  # What FTUNER_HOME names cannot be written.
    before = os.environ.get("FTUNER_CACHE_DIR")
    os.environ["FTUNER_CACHE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["FTUNER_CACHE_DIR"]
    else:
        os.environ["FTUNER_CACHE_DIR"] = before


@pytest.fixture
def rng() -> np.random.Generator:
    """Random data of the seed FTUNER_TEST_SEED, or of a new one in each run, which a failing test prints."""
    seed = int(os.environ.get("FTUNER_TEST_SEED") or np.random.SeedSequence().generate_state(1)[0])
    print(f"FTUNER_TEST_SEED={seed}")
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> ftuner.Module:
    """The library of handmade.c."""
    return ftuner.load(build_handmade(tmp_path_factory.mktemp("handmade")))


@pytest.fixture
def poisoned() -> Callable[..., tuple[np.ndarray, Callable[[], bool]]]:
    """Makes an array full of NaN between guard bands, and a check that the bands are untouched."""

    def make(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        guard = 64
        count = int(np.prod(shape))
        dtype = np.dtype(dtype)
        poison = np.nan if dtype.kind == "f" else 0x5A
        memory = np.full(count + 2 * guard, poison, dtype)
        pattern = memory.tobytes()[: guard * dtype.itemsize]
        array = memory[guard : guard + count].reshape(shape)

        def is_intact() -> bool:
            return memory[:guard].tobytes() == pattern and memory[-guard:].tobytes() == pattern

        return array, is_intact

    return make
