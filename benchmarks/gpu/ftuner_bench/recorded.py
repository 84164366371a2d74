"""FTuner functions of models, compiled when the bundle is made, found again by their text.

Where a bundle runs there is no compiler. So `ftuner.compile` is replaced while models
are traced: by a recorder where the bundle is made, by a look-up where it runs. The
text of a function, its name and its ranges aside, decides: ranges say where a
function is fast, and it is right for all sizes.
"""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import ftuner
import torch
from torch._inductor.custom_graph_pass import CustomGraphPass

from .bundle import unpack_to_file


def key(text: str) -> str:
    """Equal for functions that compute the same."""
    names = re.findall(r"func\.func @([\w$.-]+)", text)
    for name in names:
        text = re.sub(rf"@{re.escape(name)}\b", "@f", text)
    text = re.sub(r"#ukernel\.range<[^>]*>", "#range", text)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:24]


@contextlib.contextmanager
def replaced(compile_: Callable[..., ftuner.Module]) -> Iterator[None]:
    """`ftuner.compile` is `compile_` inside, and no times of graphs are predicted: a bundle has no
    library of the cost model."""
    from ftuner.torch import replacement

    originals = ftuner.compile, replacement.predict
    ftuner.compile = compile_
    replacement.predict = lambda *_: None
    try:
        yield
    finally:
        ftuner.compile, replacement.predict = originals


def recorder(
    folder: pathlib.Path, build: Callable[[str, pathlib.Path], None]
) -> Callable[..., ftuner.Module]:
    """Compiles each text once, by `build(text, library)`, into `folder`."""

    def compile_(source: str, **_: Any) -> ftuner.Module:
        library = folder / f"{key(source)}.so.xz"
        if not library.exists():
            build(source, library)
        return ftuner.load(unpack_to_file(library))

    return compile_


class _Traced(Exception):
    """A graph's functions are recorded."""


class _LastPass(CustomGraphPass):
    """A pass behind which a graph is not compiled any further."""

    def __init__(self, one: CustomGraphPass) -> None:
        self.one, self.graphs = one, 0

    def __call__(self, graph: torch.fx.Graph) -> None:
        self.one(graph)
        self.graphs += 1
        raise _Traced

    def uuid(self) -> None:
        """No graph with it is looked up, or kept."""


def trace_with_inductor(
    model: torch.nn.Module, example: torch.Tensor, products: CustomGraphPass
) -> None:
    """Runs a pass on Inductor's graph of a model, which has one, without compiling it."""
    last = _LastPass(products)
    options = {"post_grad_custom_pre_pass": last, "shape_padding": False}
    try:
        torch.compile(model, dynamic=True, options=options)(example)
    except Exception:
        if not last.graphs:
            raise


class Recorded:
    """Finds what was recorded; anything else is a CompileError, and is counted."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.missing: set[str] = set()

    def __call__(self, source: str, **_: Any) -> ftuner.Module:
        library = self.folder / f"{key(source)}.so.xz"
        if not library.exists():
            self.missing.add(source)
            raise ftuner.CompileError("the bundle has no such function", source)
        return ftuner.load(unpack_to_file(library))
