"""`trees`: loops and statements of each launch of a model (docs/program-trees.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import compiler
from ..describe import descriptions
from ..describe.explanation import Sizes, size_arguments
from ..latency.model import ProgramTree


@dataclass(frozen=True)
class LaunchTrees:
    """A launch with the trees of the parts of its kernel that have blocks.

    `name` is that of the workload, or of a fallback kernel. `times` is how often a call launches
    it, None where that is not known. Without trees, `reason` says why. `data` is as in
    docs/program-trees.md.
    """

    name: str
    is_fallback: bool
    operator: str
    times: float | None
    trees: list[ProgramTree]
    reason: str | None
    data: dict[str, Any]


@dataclass(frozen=True)
class CallTrees:
    """The launches of a function, in order, where it is called with such sizes."""

    function: str
    sizes: dict[str, int]
    launches: list[LaunchTrees]


def trees(
    source: compiler.Source,
    sizes: Sizes = None,
    *,
    device: descriptions.Device | None = None,
    **options: Any,
) -> list[CallTrees]:
    """The trees of all launches of a source, of each function at each of the sizes.

    `sizes` must tell all dynamic sizes of the functions (`{"T": 53}`, or a list of such);
    `options` are those of `compile`. Raises `CompileError` if the source or a size is not valid.
    """
    data = trees_data(source, sizes, device=device, has_features=True, **options)
    return [
        CallTrees(
            function["symbol"], call["sizes"], [_read_launch(item) for item in call["launches"]]
        )
        for function in data["functions"]
        for call in function["calls"]
    ]


def _read_launch(data: dict[str, Any]) -> LaunchTrees:
    return LaunchTrees(
        name=data.get("workload", data.get("kernel", "")),
        is_fallback="kernel" in data,
        operator=data["operator"],
        times=data["launches"],
        trees=[
            ProgramTree(
                tree["blocks"],
                np.array(tree["ordering"], np.int64),
                np.array(tree["features"], np.float32),
            )
            for tree in data["trees"]
        ],
        reason=data["reason"],
        data=data,
    )


def trees_data(
    source: compiler.Source,
    sizes: Sizes = None,
    *,
    device: descriptions.Device | None = None,
    has_features: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """The JSON of the trees, with the features of their statements if `has_features`."""
    more = ["--features"] if has_features else []
    data: dict[str, Any] = json.loads(_translate(source, sizes, device, options, "--json", *more))
    return data


def trees_text(
    source: compiler.Source,
    sizes: Sizes = None,
    *,
    device: descriptions.Device | None = None,
    **options: Any,
) -> str:
    """The trees for people."""
    return _translate(source, sizes, device, options)


def _translate(
    source: compiler.Source,
    sizes: Sizes,
    device: descriptions.Device | None,
    options: Any,
    *more: str,
) -> str:
    description = descriptions.resolve(device)
    return compiler.translate(
        compiler.read_source(source),
        description,
        compiler.read_options(options, description),
        ["--ftuner-trees", *size_arguments(sizes), *more],
    )
