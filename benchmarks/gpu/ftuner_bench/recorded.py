"""FTuner functions of models, compiled when the bundle is made, found again by their text.

Where a bundle runs there is no compiler. So `ftuner.compile` is replaced while models
are traced: by a recorder where the bundle is made, by a look-up where it runs. The
text of a function, its name and its ranges aside, decides: ranges say where a
function is fast, and it is right for all sizes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch._inductor.custom_graph_pass import CustomGraphPass

import ftuner
import torch

from .bundle import unpack_to_file


def key(text: str) -> str:
    """Equal for functions that compute the same."""
    names = re.findall(r"func\.func @([\w$.-]+)", text)
    for name in names:
        text = re.sub(rf"@{re.escape(name)}\b", "@f", text)
    text = re.sub(r"#ukernel\.range<[^>]*>", "#range", text)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:24]


class Predictions:
    """Predicted times that decide who computes what, by what was asked: a bundle has no library of the
    cost model.

    They are recorded where `known` is None, and else looked up. missing: how many were not found.
    """

    #: Modules of the package whose function `predict` is asked, by how their answers are kept.
    MODULES = {"vendor": "ftuner.latency.vendor", "rows": "ftuner.latency.looping_rows"}

    def __init__(self, known: dict[str, list[float] | None] | None = None):
        self.is_recording = known is None
        self.known = {} if known is None else known
        self.missing = 0

    def wrap(self, kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def predict(device: Any, *arguments: Any, **options: Any) -> Any:
            asked = json.dumps([kind, *arguments, options])
            if self.is_recording:
                found = original(device, *arguments, **options)
                self.known[asked] = None if found is None else found.tolist()
            elif asked not in self.known:
                self.missing += 1
            times = self.known.get(asked)
            if times is None and kind == "rows":
                # Rows are Inductor's where nothing is known.
                return np.full(len(arguments[0]), np.finfo(float).tiny)
            return None if times is None else np.array(times)

        return predict


@contextlib.contextmanager
def replaced(compile_: Callable[..., ftuner.Module], predictions: Predictions) -> Iterator[None]:
    """`ftuner.compile` is `compile_` inside, predictions of operators are those given, and no times of
    graphs are predicted."""
    from ftuner.frontend.torch import replacement

    modules = {kind: importlib.import_module(name) for kind, name in Predictions.MODULES.items()}
    originals = {kind: module.predict for kind, module in modules.items()}
    original, of_graph = ftuner.compile, replacement.predict
    ftuner.compile = compile_
    replacement.predict = lambda *_: None
    for kind, module in modules.items():
        setattr(module, "predict", predictions.wrap(kind, originals[kind]))
    try:
        yield
    finally:
        ftuner.compile, replacement.predict = original, of_graph
        for kind, module in modules.items():
            setattr(module, "predict", originals[kind])


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
