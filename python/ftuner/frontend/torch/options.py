"""Options of the backend."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from ftuner import compiler, locations

from . import histograms


@dataclass(frozen=True)
class Options:
    """Options of the backend, given as ``torch.compile(..., options={...})``.

    All others go to `ftuner.compile`, such as ``max_kernels=8``.
    """

    #: The runner of all that FTuner does not take: "inductor", which joins it to kernels, or "eager", PyTorch's
    #: operators one by one.
    host: str = "inductor"
    #: One of the modes of host "inductor", such as "max-autotune", for all but the products.
    mode: str = "default"
    #: Products that FTuner computes: "all" that it can, or those sizes where it is predicted to be
    #: "faster" than PyTorch's own operators.
    take: str = "faster"
    #: Reductions of rows, such as softmax, norms and sums, that FTuner computes: "always" all that it
    #: can, "never" none. "auto": with host "eager" all that it can, with "inductor" those that are
    #: predicted to be faster than Inductor's kernel (`ftuner.frontend.torch.regions.row_choice`).
    rows: str = "auto"
    #: As in `ftuner.compile`. None: the GPU that the tensors are on ("cuda"), or
    #: that of `ftuner.compile` for tensors on the CPU, which run in the emulator.
    device: Any = None
    #: As in `ftuner.compile`. None: for tensors on the CPU only.
    emulate: bool | None = None
    #: "sdpa" leaves scaled_dot_product_attention to PyTorch; "math" takes it
    #: apart into products and a softmax.
    attention: str = "sdpa"
    #: Leave to PyTorch what FTuner cannot compile, with a warning, instead of
    #: raising ftuner.CompileError.
    fallback: bool = False
    #: Frequencies of sizes of the model's arguments: {"NAME.DIM": {SIZE: FREQUENCY}}.
    histogram: dict[str, dict[int, float]] = field(default_factory=dict)
    compile: dict[str, Any] = field(default_factory=dict)
    #: `histogram` by the names of a graph's symbols.
    symbols: dict[str, dict[int, float]] = field(default_factory=dict)
    #: True if sizes are symbols unless PyTorch knows better, as ``dynamic=True`` of torch.compile
    #: has it. None: as PyTorch's compiler has it when it asks. No option of users.
    dynamic: bool | None = None

    @staticmethod
    def parse(options: dict[str, Any] | None) -> Options:
        """Raises TypeError and ValueError for options that are not valid."""
        remaining = dict(options or {})
        names = (
            "attention", "device", "emulate", "fallback", "histogram", "host", "mode", "rows",
            "take",
        )  # fmt: skip
        given = {name: remaining.pop(name) for name in names if name in remaining}
        # The compiler is asked only where options need it: it is not where a cache is all there is.
        others = [name for name in remaining if name not in ("cache", "cubins")]
        of_pipeline = _pipeline_options() if others else set()
        for name in others:
            if name.replace("-", "_") not in of_pipeline:
                known = ", ".join(sorted({*names, "cache", "cubins", *of_pipeline}))
                raise TypeError(f"expected an option of the backend ({known}), but got {name!r}")
        flags = {name: given.get(name) for name in ("emulate", "fallback")}
        for name, value in {**flags, "cache": remaining.get("cache")}.items():
            if not isinstance(value, (bool, type(None))):
                raise TypeError(f"expected option {name} to be True or False, but got {value!r}")
        known_values = {
            "attention": ("sdpa", "math"),
            "host": ("inductor", "eager"),
            "take": ("faster", "all"),
            "rows": ("auto", "always", "never"),
        }
        for name, choices in known_values.items():
            value = given.get(name, choices[0])
            if value not in choices:
                *others, last = map(repr, choices)
                raise ValueError(
                    f"expected option {name} {', '.join(others)} or {last}, but got {value!r}"
                )
        if "histogram" in given:
            given["histogram"] = histograms.check(given["histogram"])
        _check_mode(given.get("mode", "default"), given.get("host", "inductor"))
        return Options(compile=remaining, **given)

    def with_settings(self) -> Options:
        """Returns the options with PyTorch's present settings, unless an option says otherwise.

        These are its precision for products of float32, and whether sizes are dynamic.
        """
        compile = self.compile
        if "precision" not in compile and _allows_tf32():
            compile = {**compile, "precision": "tf32"}
        dynamic = self.dynamic
        if dynamic is None:
            dynamic = not torch._dynamo.config.assume_static_by_default
        return replace(self, compile=compile, dynamic=dynamic)

    def without_rows(self) -> Options:
        """Returns the options for graphs of training, whose reductions stay with PyTorch."""
        return replace(self, rows="never")


def _check_mode(mode: Any, host: str) -> None:
    if mode == "default":
        return
    if host != "inductor":
        raise ValueError(f"expected option mode with host 'inductor' only, but got {mode!r}")
    known = torch._inductor.list_mode_options()
    if mode not in known:
        raise ValueError(f"expected option mode to be one of {', '.join(known)}, but got {mode!r}")


def _allows_tf32() -> bool:
    """Returns whether PyTorch may round factors of float32 products to tf32 on a GPU.

    That is what torch.set_float32_matmul_precision, allow_tf32 and fp32_precision set. PyTorch's
    compiler guards it: with another setting it compiles again.
    """
    setting = torch.backends.cuda.matmul
    # Newer versions of PyTorch refuse to read allow_tf32 where fp32_precision was set.
    precision = getattr(setting, "fp32_precision", None)
    return bool(setting.allow_tf32 if precision is None else precision == "tf32")


def _pipeline_options() -> set[str]:
    known = compiler.pipeline_options(locations.tool("ftuner-translate")) - {"device"}
    return {name.replace("-", "_") for name in known}
