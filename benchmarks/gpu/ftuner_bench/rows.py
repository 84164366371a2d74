"""Operators on rows, of any number and any length: softmax and norms by FTuner, PyTorch and Inductor.

One function of each operator and type serves all sizes: rows and columns are both dynamic. Times
are of graphs with cold caches. rows.csv has the columns of measured memory-bound operators
(op, device, rows, cols, bytes, latency_us, dtype), and by whom. Errors are against float64.
"""

from __future__ import annotations

import dataclasses
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import torch._dynamo

import torch

from . import buffers, bundle
from .session import Session, within
from .ways import check, compile_ahead
from .workloads import spread

ROUNDS = 7
COLUMNS = (32, 33, 128, 768, 1024, 4096, 8192, 16384, 50257)
ROWS = (1, 128, 2048, 16384)
# Elements of the largest tensor: half a GB in f32.
MOST_ELEMENTS = 1 << 27


class _Softmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class _LayerNorm(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, (x.shape[-1],), scale, shift)


class _AddLayerNorm(torch.nn.Module):
    """The sum with a residual and its norm."""

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        return total, torch.nn.functional.layer_norm(total, (x.shape[-1],), scale, shift)


class _RmsNorm(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        wide = x.float() if x.dtype != torch.float64 else x
        root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * root).to(x.dtype) * scale


@dataclasses.dataclass(frozen=True)
class Case:
    """An operator and its type.

    tensors, vectors: arguments of rows x columns, and behind them of columns. outputs: results of
    rows x columns.
    """

    operator: str
    type: str
    build: Callable[[], torch.nn.Module]
    tensors: int = 1
    vectors: int = 0
    outputs: int = 1

    @property
    def name(self) -> str:
        return f"{self.operator}_{self.type}"

    def inputs(self, rows: int, cols: int, device: str, seed: int) -> tuple[torch.Tensor, ...]:
        # On the device: the host takes seconds for the largest.
        generator = torch.Generator(device=device).manual_seed(seed)
        shapes = [(rows, cols)] * self.tensors + [(cols,)] * self.vectors
        kind = buffers.TYPES[self.type]
        return tuple(
            torch.randn(*shape, generator=generator, device=device).to(kind) for shape in shapes
        )

    def bytes(self, rows: int, cols: int) -> int:
        """Bytes that are read and written at the least."""
        elements = rows * cols * (self.tensors + self.outputs) + cols * self.vectors
        return elements * buffers.TYPES[self.type].itemsize


CASES = tuple(
    case
    for type in ("f32", "f16")
    for case in (
        Case("softmax", type, _Softmax),
        Case("layernorm", type, _LayerNorm, vectors=2),
        Case("rmsnorm", type, _RmsNorm, vectors=1),
        Case("add_layernorm", type, _AddLayerNorm, tensors=2, vectors=2, outputs=2),
    )
)


def cases(small: bool) -> tuple[Case, ...]:
    rehearsed = ("softmax_f32", "add_layernorm_f32")
    return tuple(case for case in CASES if case.name in rehearsed) if small else CASES


def grid(small: bool) -> list[tuple[int, int]]:
    """Rows and columns."""
    if small:
        return [(3, 33), (2, 768)]
    every = [(rows, cols) for cols in COLUMNS for rows in ROWS if rows * cols <= MOST_ELEMENTS]
    # Any first part of them has few and many rows and columns.
    return [every[place - 1] for place in spread(len(every))]


def prepare(
    small: bool,
    folder: pathlib.Path,
    compile_text: Callable[[str, pathlib.Path], None],
    say: Callable[[str], None],
) -> None:
    """Compiles a library of each case into `folder`."""
    from torch.export import Dim

    import ftuner.torch

    folder.mkdir(parents=True)
    for case in cases(small):
        rows, cols = Dim("R", min=1, max=max(ROWS)), Dim("C", min=1, max=1 << 16)
        dims = [{0: rows, 1: cols}] * case.tensors + [{0: cols}] * case.vectors
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = ftuner.torch.export(
                case.build(),
                case.inputs(8, 96, "cpu", 0),
                dynamic_shapes=tuple(dims),
                name=case.name,
            )
        compile_text(exported.text, folder / f"{case.name}.so.xz")
        say(f"{case.operator}, {case.type}")


def measure(session: Session) -> bool:
    folder = session.folder("rows")
    if folder is None:
        return True
    every, sizes = cases(session.machine.rehearsal), grid(session.machine.rehearsal)
    passed = True
    with torch.no_grad():
        for number, case in enumerate(every):
            share = within(session, len(every) - number)
            uncaptured: set[str] = set()
            done: list[str] = []
            try:
                ways = _ways(session, case, folder)
                if "compile" in ways:
                    some = next(size for size in sizes if size[0] > 1)
                    ahead = case.inputs(*some, session.machine.device, session.seed)
                    compile_ahead(ways["compile"], ahead)
                # No size takes as long as the compiler.
                share.restart()
                for rows, cols in sizes:
                    if not share.allows() and done:
                        break
                    passed &= _size(session, case, rows, cols, ways, uncaptured)
                    done.append(f"{rows}x{cols}")
            except Exception as error:  # of one case: the others go on
                passed = False
                message = f"{case.name}: {type(error).__name__}: {error}"
                session.write("error", message=message, traceback="")
                print(f"FAILED {message}", flush=True)
            wanted = [f"{rows}x{cols}" for rows, cols in sizes]
            session.coverage(case.name, wanted, done, "rows")
            session.machine.tidy()
    return passed


def _ways(session: Session, case: Case, folder: pathlib.Path) -> dict[str, Callable[..., Any]]:
    import ftuner

    library = bundle.unpack_to_file(folder / f"{case.name}.so.xz")
    module = case.build()
    ways = {"ftuner": ftuner.load(library).functions[case.name], "eager": module.forward}
    if "compile" not in session.skipped_peers:
        torch._dynamo.reset()

        # A code object of its own for each case: recompilations are counted by code.
        def forward(*inputs: torch.Tensor) -> Any:
            return module(*inputs)

        forward.__code__ = forward.__code__.replace(co_name=f"rows_{case.name}")
        ways["compile"] = torch.compile(forward, dynamic=True)
    return ways


def _size(
    session: Session,
    case: Case,
    rows: int,
    cols: int,
    ways: dict[str, Callable[..., Any]],
    uncaptured: set[str],
) -> bool:
    """uncaptured: ways that a graph did not take, which are not tried again."""
    inputs = case.inputs(rows, cols, session.machine.device, session.seed + rows)
    expected = case.build()(*[tensor.double() for tensor in inputs])
    least = case.bytes(rows, cols)
    count = min(64, max(1, round(buffers.COLD_FACTOR * session.machine.cache_bytes / least)))
    sets = [inputs, *(tuple(tensor.clone() for tensor in inputs) for _ in range(count))]
    title = f"{case.name}, {rows} x {cols}"
    if rows == 1:
        # torch.compile specialises sizes of 1: another compilation.
        ways = {way: function for way, function in ways.items() if way != "compile"}
    checked = check(session, title, case.type, ways, sets, expected)
    for way, summary, rest in checked.times(session, "graph_cold", ROUNDS, uncaptured):
        session.write(
            "row",
            op=case.operator,
            device=session.device,
            how=way,
            rows=rows,
            cols=cols,
            bytes=least,
            latency_us=(summary or {}).get("median"),
            dtype=case.type,
            **rest,
        )
    return checked.passed
