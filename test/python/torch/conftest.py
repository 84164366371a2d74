"""Fixtures of the tests of the backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch._inductor.config

import ftuner.torch as ft
import torch


@pytest.fixture(scope="module", autouse=True)
def own_inductor_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides what Inductor compiled before, and for other files of tests: passes run.

    It does not compile programs to try the vectors of this processor either, which takes seconds.
    """
    known = torch._inductor.config.patch({"cpp.vec_isa_ok": True})
    with pytest.MonkeyPatch.context() as patch, known:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        # The same for processes that tests start: Inductor's caches go by its configuration.
        patch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "1")
        yield


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing compiled, nothing counted, and NaN in memory that is not written."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    ft.reset_report()
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)
